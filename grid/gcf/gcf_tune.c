/* The tuning table: which strategy was fastest on this processor, by precision and
 * width of kernels; a few lines of text in the folder of tess_cache.h, replaced as a
 * whole. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tess_cache.h"
#include "tess_gcf_grid.h"

/* Raise when strategies, or the file, change. */
static const char FIRST_LINE[] = "tessera strategies 1\n";

enum { PATH_BYTES = 1200 };

static bool path_of(char path[PATH_BYTES])
{
    char folder[800], processor[256];
    if (!tess_cache_folder(folder, sizeof folder)) return false;
    tess_cache_processor(processor, sizeof processor);
    snprintf(path, PATH_BYTES, "%s/strategies-%s.txt", folder, processor);
    return true;
}

tess_status tess_gcf_tuning_write(const tess_gcf_tuning *tuning, int count)
{
    tess_status status = TESS_OK;
    char path[PATH_BYTES] = "", temporary[PATH_BYTES + 16];
    FILE *file = NULL;
    if (!path_of(path))
        TESS_FAIL(TESS_ERR_IO, "there is no folder to keep a tuning table in; set "
                               "TESS_CACHE_DIR");
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    const int handle = mkstemp(temporary);
    if (handle < 0) TESS_FAIL(TESS_ERR_IO, "%s: cannot be written", path);
    file = fdopen(handle, "w");
    if (!file) close(handle);
    bool good = file && fputs(FIRST_LINE, file) >= 0;
    for (int k = 0; k < count && good; ++k)
        good = fprintf(file, "%d %d %s %.4g\n", tuning[k].is_double ? 64 : 32,
                       tuning[k].support, tess_gcf_strategy_name(tuning[k].strategy),
                       tuning[k].gflops) > 0;
    if (file) good = fclose(file) == 0 && good;
    if (!good || rename(temporary, path) != 0) {
        unlink(temporary);
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written", path);
    }
cleanup:
    return status;
}

/* A line; false when it is none. */
static bool parse(const char *line, tess_gcf_tuning *out)
{
    char name[32], end;
    int bits;
    if (sscanf(line, "%d %d %31s %lf%c", &bits, &out->support, name, &out->gflops,
               &end) != 5 ||
        end != '\n' || (bits != 32 && bits != 64) || out->support < 1)
        return false;
    out->is_double = bits == 64;
    const char *known;
    for (tess_gcf_strategy s = 0; (known = tess_gcf_strategy_name(s)) != NULL; ++s)
        if (strcmp(name, known) == 0) {
            out->strategy = s;
            return tess_gcf_strategy_there(TESS_GCF_CPU, s, false) &&
                   tess_gcf_strategy_there(TESS_GCF_CPU, s, true);
        }
    return false;
}

bool tess_gcf_tuned(bool is_double, int support, tess_gcf_strategy *strategy)
{
    char path[PATH_BYTES], line[256];
    double nearest = HUGE_VAL;
    FILE *file = path_of(path) ? fopen(path, "r") : NULL;
    if (!file) return false;
    if (fgets(line, sizeof line, file) && strcmp(line, FIRST_LINE) == 0)
        while (fgets(line, sizeof line, file)) {
            tess_gcf_tuning one;
            if (!parse(line, &one) || one.is_double != is_double) continue;
            const double apart = fabs(log((double)one.support / support));
            if (apart >= nearest) continue;
            nearest = apart;
            *strategy = one.strategy;
        }
    fclose(file);
    return nearest < HUGE_VAL;
}
