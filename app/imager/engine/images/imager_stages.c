/* Writes the images of --dump-stages: what each stage of each output has made. `tessera
 * compare` compares those of two runs. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "imager_product.h"
#include "imager_stages.h"
#include "tess_fits.h"
#include "tess_mem.h"
#include "tess_real.h"
#include "tess_samples.h"

static const char ENDING[] = ".stage.fits";

/* ---- the folder ---- */

/* Whether a name has the ending that imager_stages_write() gives. */
static bool ends_as_stage(const char *name)
{
    for (const char *at = strstr(name, "-t"); at; at = strstr(at + 1, "-t")) {
        int used = 0;
        sscanf(at, "-t%*u-%*u-%*u.stage.fits%n", &used);
        if (used > 0 && at[used] == '\0') return true;
    }
    return false;
}

/* Links count, as they do for other outputs. */
static bool is_stage(int folder, const char *name)
{
    struct stat found;
    return ends_as_stage(name) &&
           fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
           (S_ISREG(found.st_mode) || S_ISLNK(found.st_mode));
}

/* Removes the images of an earlier run from the folder, since they would be compared
 * together with those of this run. */
static tess_status clear_folder(const char *folder, bool overwrite)
{
    tess_status status = TESS_OK;
    struct dirent *entry;
    DIR *open = opendir(folder);
    if (!open)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be listed: %s", folder, strerror(errno));
    while ((entry = readdir(open)) != NULL) {
        if (!is_stage(dirfd(open), entry->d_name)) continue;
        if (!overwrite)
            TESS_FAIL(
                TESS_ERR_IO,
                "%s: holds %s of another run; use --overwrite to replace its stages",
                folder, entry->d_name);
        if (unlinkat(dirfd(open), entry->d_name, 0) != 0)
            TESS_FAIL(TESS_ERR_IO, "%s/%s: cannot be replaced: %s", folder,
                      entry->d_name, strerror(errno));
    }
cleanup:
    if (open) closedir(open);
    return status;
}

static tess_status make_folder(const char *folder, bool overwrite)
{
    tess_status status = TESS_OK;
    struct stat found;
    if (mkdir(folder, 0777) == 0) return TESS_OK;
    if (errno != EEXIST)
        TESS_FAIL(TESS_ERR_IO, "%s: folder cannot be made: %s", folder,
                  strerror(errno));
    if (stat(folder, &found) != 0 || !S_ISDIR(found.st_mode))
        TESS_FAIL(TESS_ERR_IO, "%s: is a file; --dump-stages needs a folder", folder);
    TESS_TRY(clear_folder(folder, overwrite));
cleanup:
    return status;
}

tess_status imager_stages_start(tess_comm *comm, const char *folder, bool overwrite)
{
    tess_status status = TESS_OK;
    if (folder && tess_comm_rank(comm) == 0) status = make_folder(folder, overwrite);
    return tess_comm_agree(comm, status);
}

/* ---- images ---- */

tess_status imager_stages_write(const imager_stages *to, const char *stage, int image,
                                const tess_geom *geom, const tess_rows *rows)
{
    tess_status status = TESS_OK;
    char *path = NULL;
    tess_rows view = {0};
    const tess_image_meta meta = {.nx = geom->nx,
                                  .ny = geom->ny,
                                  .scale_rad = geom->scale_rad,
                                  .freq_hz = 1,
                                  .stokes = 1,
                                  .equinox = 2000.0,
                                  .unit = "Jy/beam"};
    if (!to->folder) return TESS_OK;
    if (asprintf(&path, "%s/%s-t%04lld-%04lld-%d%s", to->folder, stage,
                 (long long)to->interval, (long long)to->channel, image, ENDING) < 0) {
        path = NULL;
        status = TESS_ERR_ALLOC;
    }
    if (status == TESS_OK) status = tess_rows_check_whole(rows, stage);
    if (status == TESS_OK) status = tess_rows_view(rows, &view);
    TESS_TRY(tess_comm_agree(to->comm, status));
    /* the files of earlier runs have been removed: a file that has the name now is not
     * tessera's */
    TESS_TRY(
        tess_fits_write(to->comm, path, false, &meta,
                        &(tess_fits_rows){.row_first = view.row_first,
                                          .num_rows = view.num_rows,
                                          .is_double = view.type == TESS_PIXEL_DOUBLE,
                                          .pixel = view.value}));
cleanup:
    free(path); /* allocated by asprintf */
    tess_rows_free(&view);
    return status;
}

/* ---- samples ---- */

enum { SIDE = 128, CELLS = SIDE * SIDE };

tess_status imager_map_create(const imager_stages *to, double **map)
{
    if (to->folder) *map = tess_alloc_zero(2 * CELLS, sizeof **map);
    return tess_comm_agree(to->comm, *map || !to->folder ? TESS_OK : TESS_ERR_ALLOC);
}

void imager_map_add(const tess_geom *geom, const tess_samples *samples, double *map)
{
    /* the map reaches from −1/(2 scale) to 1/(2 scale) */
    const double per_metre = geom->scale_rad * SIDE;
    const bool full = samples->is_double;
    for (int64_t row = 0; map && row < samples->num_rows; ++row)
        for (int32_t c = 0; c < samples->num_chan[row]; ++c) {
            const double inv = samples->inv_lambda[samples->chan_base[row] + c];
            const double x = samples->uvw_m[3 * row] * inv * per_metre + SIDE / 2;
            const double y = samples->uvw_m[3 * row + 1] * inv * per_metre + SIDE / 2;
            const int64_t k = samples->vis_first[row] + c;
            const int64_t v = 2 * k * samples->num_pol;
            if (!(x >= 0 && x < SIDE && y >= 0 && y < SIDE)) continue;
            const double weight =
                tess_real_at(samples->weight, full, k * samples->num_weight);
            const double re = tess_real_at(samples->vis, full, v);
            const double im = tess_real_at(samples->vis, full, v + 1);
            const int64_t cell = (int64_t)y * SIDE + (int64_t)x;
            map[cell] += weight;
            map[CELLS + cell] += weight * (re * re + im * im);
        }
}

tess_status imager_map_write(const imager_stages *to, const tess_geom *geom,
                             double *map)
{
    tess_status status = TESS_OK;
    const tess_geom coarse = {.nx = SIDE, .ny = SIDE, .scale_rad = geom->scale_rad};
    if (!to->folder) return TESS_OK;
    const int64_t mine = tess_comm_rank(to->comm) == 0 ? SIDE : 0;
    const tess_rows like = tess_rows_of(SIDE, SIDE, 0, mine, TESS_PIXEL_DOUBLE);
    TESS_TRY(tess_comm_allreduce_f64(to->comm, map, 2 * CELLS, TESS_SUM));
    for (int k = 0; k < 2; ++k) {
        const tess_rows rows = tess_rows_borrow(&like, map + k * CELLS);
        TESS_TRY(imager_stages_write(to, "0-samples", k, &coarse, &rows));
    }
cleanup:
    return status;
}
