/* Keeps the tuning table, which tells the strategy that was the fastest on this
 * processor or device, by direction, precision, polarisations and width of kernels. It
 * is a few lines of text in the folder of tess_cache.h, and is replaced as a whole. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gcf_on_device.h"
#include "tess_cache.h"

/* Raise this when strategies, or the file, change. */
static const char FIRST_LINE[] = "tessera strategies 2\n";

enum { PATH_BYTES = 1200 };

static const char *const direction_name[] = {"grid", "degrid"};

static bool path_of(tess_gcf_backend backend, char path[PATH_BYTES])
{
    char folder[800], name[256] = "";
    if (!tess_cache_folder(folder, sizeof folder)) return false;
    if (backend == TESS_GCF_DEVICE)
        gcf_device_name(name, sizeof name);
    else
        tess_cache_processor(name, sizeof name);
    snprintf(path, PATH_BYTES, "%s/strategies-%s.txt", folder, name);
    return name[0] != '\0';
}

tess_status tess_gcf_tuning_write(const tess_gcf_tuning *tuning, int count)
{
    tess_status status = TESS_OK;
    char path[PATH_BYTES] = "", temp[TESS_OUT_FILE_NAME];
    if (!path_of(tuning[0].backend, path))
        TESS_FAIL(TESS_ERR_IO, "there is no folder to keep a tuning table in; set "
                               "TESS_CACHE_DIR");
    FILE *file = tess_cache_begin(path, temp);
    if (!file) TESS_FAIL(TESS_ERR_IO, "%s: cannot be written", path);
    bool good = fputs(FIRST_LINE, file) >= 0;
    for (int k = 0; k < count && good; ++k)
        good =
            fprintf(file, "%s %d %d %d %s %d %.4g\n", direction_name[tuning[k].degrid],
                    tuning[k].is_double ? 64 : 32, tuning[k].num_pol, tuning[k].support,
                    tess_gcf_strategy_name(tuning[k].strategy), tuning[k].shape,
                    tuning[k].gflops) > 0;
    if (!tess_cache_end(file, good, true, temp, path))
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written", path);
cleanup:
    return status;
}

/* Reads a line. Returns false if it is none. */
static bool parse(const char *line, tess_gcf_backend backend, tess_gcf_tuning *out)
{
    char direction[8], name[32], end;
    int bits;
    if (sscanf(line, "%7s %d %d %d %31s %d %lf%c", direction, &bits, &out->num_pol,
               &out->support, name, &out->shape, &out->gflops, &end) != 8 ||
        end != '\n' || (bits != 32 && bits != 64) || out->num_pol < 1 ||
        out->support < 1 || out->shape < 0 || out->shape > TESS_GCF_SHAPES)
        return false;
    out->backend = backend;
    out->is_double = bits == 64;
    out->degrid = strcmp(direction, direction_name[1]) == 0;
    if (!out->degrid && strcmp(direction, direction_name[0]) != 0) return false;
    out->strategy = strcmp(name, "tiled") == 0      ? &tess_gcf_tiled
                    : strcmp(name, "factored") == 0 ? &tess_gcf_factored
                                                    : NULL;
    return out->strategy &&
           tess_gcf_strategy_there(backend, out->strategy, out->degrid);
}

/* Polarisations count for more than any width. */
static double distance(const tess_gcf_tuning *a, const tess_gcf_tuning *b)
{
    return 1e3 * fabs(log((double)a->num_pol / b->num_pol)) +
           fabs(log((double)a->support / b->support));
}

bool tess_gcf_tuned(const tess_gcf_tuning *wanted, tess_gcf_tuning *found)
{
    char path[PATH_BYTES], line[256];
    double nearest = HUGE_VAL;
    FILE *file = path_of(wanted->backend, path) ? tess_cache_read(path) : NULL;
    if (!file) return false;
    if (fgets(line, sizeof line, file) && strcmp(line, FIRST_LINE) == 0)
        while (fgets(line, sizeof line, file)) {
            tess_gcf_tuning one;
            if (!parse(line, wanted->backend, &one) ||
                one.is_double != wanted->is_double || one.degrid != wanted->degrid)
                continue;
            const double apart = distance(&one, wanted);
            if (apart >= nearest) continue;
            nearest = apart;
            *found = one;
        }
    fclose(file);
    return nearest < HUGE_VAL;
}
