/* Waits for the locks of casacore, and takes them. casacore waits for ever without a
 * word to the user, so tessera asks again and again, and says for whom it waits. */
#include "vis_ms_lock.h"

#include <casacore/casa/Containers/Record.h>
#include <casacore/casa/IO/MemoryIO.h>
#include <casacore/tables/Tables/TableDesc.h>
#include <casacore/tables/Tables/TableSyncData.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "tess_log.h"
#include "tess_mem.h"
#include "tess_stop.h"
#include "vis_ms.h"
#include "vis_ms_check.h"

namespace tess_ms
{
namespace
{

using casacore::FileLocker;
using casacore::LockFile;

/* Attempts of LockFile::acquire(). The second one comes after a second, and until then
 * the holder is asked to let the lock go, which most programs do soon. */
enum { AT_ONCE = 1, ASKING = 2 };

/* The bytes of table.lock that casacore locks while it reads or writes the table, and
 * while it has the table open. */
enum { LOCKED_BYTE = 0, USED_BYTE = 1 };

std::string lock_name(const std::string &path)
{
    return path + "/table.lock";
}

/* The program that keeps this process from a lock. */
struct Holder {
    bool exists = false;
    bool writes = false;
    long process = 0; /* 0 and less: unknown, as of another container */
};

/* Asks the system, which changes nothing in the set. Returns false where it cannot
 * tell: there is no file of locks, it cannot be opened, or its disk has no locks. */
bool find_holder(const std::string &path, FileLocker::LockType type, Holder &holder,
                 off_t byte = LOCKED_BYTE)
{
    struct flock lock = {};
    lock.l_type = type == FileLocker::Write ? F_WRLCK : F_RDLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;
    const int fd = open(lock_name(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    const bool known = fcntl(fd, F_GETLK, &lock) == 0;
    close(fd);
    holder.exists = known && lock.l_type != F_UNLCK;
    holder.writes = holder.exists && lock.l_type == F_WRLCK;
    holder.process = holder.exists ? lock.l_pid : 0;
    return known;
}

std::string name_of(const Holder &holder)
{
    return holder.process > 0 ? "process " + std::to_string(holder.process)
                              : std::string("another program");
}

const char *kind_of(const Holder &holder)
{
    return holder.writes ? "write" : "read";
}

/* Waits, with a line, until `attempt` succeeds. */
template <class Attempt>
void wait_for(const std::string &path, FileLocker::LockType type, Attempt attempt)
{
    const double timeout_s = vis_lock_timeout_s(), begin_s = tess_time_now();
    Holder holder;
    if (attempt(AT_ONCE)) return;
    (void)find_holder(path, type, holder);
    if (timeout_s > 0)
        tess_log_warn(
            "%s: waiting for %s, which holds casacore's %s lock on it, for at "
            "most %.3g s (--lock-timeout)",
            path.c_str(), name_of(holder).c_str(), kind_of(holder), timeout_s);
    while (tess_time_now() - begin_s < timeout_s) {
        if (attempt(ASKING)) return;
        if (tess_stop_told())
            MS_FAIL(
                TESS_ERR_STOPPED,
                "%s: stopped while another program held its lock; submit the run again",
                path.c_str());
    }
    (void)find_holder(path, type, holder);
    MS_FAIL(
        TESS_ERR_IO,
        "%s: %s holds casacore's %s lock on it; close the set there, or give a longer "
        "--lock-timeout",
        path.c_str(), name_of(holder).c_str(), kind_of(holder));
}

/* Opens the file of locks, which is made if there is none and one can be made. */
std::unique_ptr<LockFile> open_locks(const std::string &path)
{
    return std::make_unique<LockFile>(lock_name(path), 0.0, casacore::False,
                                      casacore::True, casacore::False);
}

/* Whether there is a table that can be locked. */
bool has_locks(const std::string &path)
{
    Holder holder;
    if (access((path + "/table.dat").c_str(), F_OK) != 0) return false;
    if (access(lock_name(path).c_str(), F_OK) != 0) return true; /* it will be made */
    if (find_holder(path, FileLocker::Write, holder)) return true;
    tess_log_debug("%s: casacore's locks do not work there", path.c_str());
    return false;
}

/* Whether a lock was refused because others hold it. Elsewhere there are no locks, or
 * this user may not take them. */
bool is_held(const LockFile &file)
{
    return file.lastError() == EAGAIN || file.lastError() == EACCES;
}

} // namespace

void wait_until_readable(const std::string &path)
{
    Holder holder;
    if (!find_holder(path, FileLocker::Read, holder) || !holder.exists) return;
    const std::unique_ptr<LockFile> file = open_locks(path);
    wait_for(path, FileLocker::Read, [&](unsigned attempts) {
        return file->acquire(FileLocker::Read, attempts) || !is_held(*file);
    });
    (void)file->release();
}

/* A program that has the set open for writing writes the columns that it knows when it
 * closes the set. It cannot be told from a program that only reads. */
static void warn_of_users(const std::string &path)
{
    Holder user;
    if (!find_holder(path, FileLocker::Write, user, USED_BYTE) || !user.exists) return;
    tess_log_warn(
        "%s: %s has it open; if it was opened for writing there, the new column "
        "is lost when it is closed",
        path.c_str(), name_of(user).c_str());
}

WriteLock::~WriteLock()
{
    if (held_ >= 0) close(held_);
}

/* Makes the lock that `file_` has acquired one of the open file. casacore's lock is one
 * of the process, which loses it when any table of the same name is closed in it.
 * Returns false if another program has got the lock in between. */
bool WriteLock::hold(const std::string &path)
{
    struct flock lock = {}, used = {};
    lock.l_type = F_WRLCK;
    used.l_type = F_RDLCK;
    lock.l_whence = used.l_whence = SEEK_SET;
    lock.l_start = LOCKED_BYTE;
    used.l_start = USED_BYTE;
    lock.l_len = used.l_len = 1;
    const int fd = open(lock_name(path).c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) return true; /* nothing can be locked there */
    (void)file_->release();
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
        (void)fcntl(fd, F_OFD_SETLK, &used);
        held_ = fd;
        return true;
    }
    const bool is_taken = errno == EAGAIN || errno == EACCES;
    close(fd);
    return !is_taken && file_->acquire(FileLocker::Write, AT_ONCE);
}

/* The system tells of locks of open files as of those of another process, also where
 * they are this one's. */
void WriteLock::stop_using()
{
    struct flock used = {};
    used.l_type = F_UNLCK;
    used.l_whence = SEEK_SET;
    used.l_start = USED_BYTE;
    used.l_len = 1;
    if (held_ >= 0) (void)fcntl(held_, F_OFD_SETLK, &used);
}

void WriteLock::take(const std::string &path)
{
    Holder holder;
    if (!has_locks(path)) return;
    path_ = path;
    file_ = open_locks(path);
    wait_for(path, FileLocker::Write, [&](unsigned attempts) {
        if (file_->acquire(FileLocker::Write, attempts)) return hold(path);
        if (is_held(*file_)) return false;
        /* the file may be read only: wait without a lock, then */
        (void)find_holder(path, FileLocker::Write, holder);
        if (holder.exists && attempts > AT_ONCE) (void)usleep(1000000);
        return !holder.exists;
    });
}

bool WriteLock::take_now(const std::string &path)
{
    if (!has_locks(path)) return true;
    path_ = path;
    file_ = open_locks(path);
    return file_->acquire(FileLocker::Write, ASKING) && hold(path);
}

void WriteLock::note_change(const Table &table, bool columns)
{
    if (!file_) return;
    casacore::TableSyncData state;
    rownr_t rows;
    casacore::uInt num_columns;
    Bool changed;
    casacore::Block<Bool> managers;
    file_->getInfo(state.memoryIO());
    (void)state.read(rows, num_columns, changed, managers);
    managers.resize(table.dataManagerInfo().nfields());
    managers = casacore::True;
    state.write(table.nrow(), table.tableDesc().ncolumn(), columns, managers);
    file_->putInfo(state.memoryIO());
    if (!columns) return;
    stop_using();
    warn_of_users(path_);
}

} // namespace tess_ms

extern "C" tess_status vis_ms_await(const char *path)
{
    static const char *const parts[] = {"",
                                        "/ANTENNA",
                                        "/DATA_DESCRIPTION",
                                        "/FIELD",
                                        "/OBSERVATION",
                                        "/POLARIZATION",
                                        "/SPECTRAL_WINDOW"};
    return tess_ms::caught(TESS_ERR_IO, path, tess_ms::damaged, [&] {
        std::string set(path);
        while (set.size() > 1 && set.back() == '/')
            set.pop_back();
        for (const char *part : parts)
            tess_ms::wait_until_readable(set + part);
    });
}
