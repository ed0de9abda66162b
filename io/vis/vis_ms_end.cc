/* Ends the program with a line where casacore would abort it. casacore writes its small
 * files when the last reader or writer of a set closes it, in destructors, from which
 * no exception reaches a caller. */
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "tess_log.h"
#include "tess_out_file.h"
#include "tess_vis.h"
#include "vis_ms.h"

namespace
{

/* The set that was written last, for the line. */
char written[TESS_OUT_FILE_NAME];

/* Returns the status of the program. */
tess_status tell(const char *what) noexcept
{
    const bool too_many = std::strstr(what, std::strerror(EMFILE));
    if (too_many)
        tess_log_error("%s%stoo many files are open; raise their number (ulimit -n)",
                       written, written[0] ? ": " : "");
    else if (written[0])
        tess_log_error("%s: %s (casacore says: %.400s)", written, tess_ms::unwritable,
                       what);
    else
        tess_log_error("a MeasurementSet cannot be closed; does its disk fail? "
                       "(casacore says: %.400s)",
                       what);
    return too_many ? TESS_ERR_RESOURCE : TESS_ERR_IO;
}

[[noreturn]] void end_program() noexcept
{
    tess_status status = TESS_ERR_IO;
    try {
        const std::exception_ptr thrown = std::current_exception();
        if (thrown) std::rethrow_exception(thrown);
        status = tell("nothing");
    } catch (const std::exception &error) {
        status = tell(error.what());
    } catch (...) {
        status = tell("nothing");
    }
    tess_out_remove_at_end();
    _exit(tess_status_exit(status));
}

} // namespace

void tess_ms::note_written(const char *path)
{
    std::snprintf(written, sizeof written, "%s", path);
}

extern "C" void tess_vis_end_clearly(void)
{
    std::set_terminate(end_program);
}
