/* Opens cubes and sets of models, and reads their planes, or the terms of a polynomial
 * in frequency that is fitted to the planes. A model that another program, or a fit
 * that has failed, has left without a number at a place on the sky is refused: the flux
 * that belongs there is not known, and 0 would be a guess. */
#define _GNU_SOURCE
#include "model_cube.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"

/* Frames differ by up to this part of a frequency, 300 km/s. */
static const double MOST_SHIFT = 1e-3;

void model_cube_warn_frame(const model_cube *cube, tess_spectral_frame frame)
{
    const char *path = cube->file[0].path, *specsys = cube->file[0].array.specsys;
    const int last = cube->num_planes - 1;
    if (last < 1 || !*specsys ||
        strcasecmp(specsys, tess_spectral_frame_specsys(frame)) == 0)
        return;
    const double apart_hz = fabs(cube->freq_hz[last] - cube->freq_hz[0]) / last;
    if (apart_hz < MOST_SHIFT * cube->freq_hz[0])
        tess_log_warn(
            "%s: its channels are in the frame %s (SPECSYS), and are taken as "
            "if they were in that of the data's, %s",
            path, specsys, tess_spectral_frame_specsys(frame));
}

/* ---- pixels ---- */

/* Whether a pixel, counted from 0, lies on or beyond the horizon of the reference
 * position. A pixel of slack allows for how headers round. */
static bool is_beyond(const tess_fits_model *model, int64_t i, int64_t j)
{
    const double l = ((double)i + 1 - model->crpix_x) * model->scale_x_rad;
    const double m = ((double)j + 1 - model->crpix_y) * model->scale_y_rad;
    const double slack = fabs(model->scale_x_rad) + fabs(model->scale_y_rad);
    return hypot(l, m) + slack >= 1;
}

tess_status model_pixels_read(const tess_fits_model *model, int stokes_index,
                              int freq_index, int64_t row_first, int64_t num_rows,
                              double *out)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_fits_read(model, stokes_index, freq_index, row_first, num_rows,
                            TESS_PIXEL_DOUBLE, out));
    for (int64_t k = 0; k < num_rows * model->nx; ++k) {
        const int64_t i = k % model->nx, j = row_first + k / model->nx;
        if (isfinite(out[k])) continue;
        if (!isnan(out[k]) || !is_beyond(model, i, j))
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: pixel (%lld, %lld) of the model is %s; give it a flux, or 0",
                      model->path, (long long)i + 1, (long long)j + 1,
                      isnan(out[k]) ? "blank (NaN)" : "infinite");
        out[k] = 0;
    }
cleanup:
    return status;
}

/* The centres [rad] and the relative pixel sizes of the files of a set may differ by
 * this much. */
static const double SAME = 1e-9;

enum { MOST_TERMS = 16, MOST_FILES = 1 << 16 };

/* ---- files ---- */

/* Opens one more file: a cube, or the image of one channel, with one or all Stokes
 * parameters. Its pixels must be those of the first file. */
static tess_status add_file(model_cube *cube, int64_t *capacity, const char *path)
{
    tess_status status = TESS_OK;
    void *list = cube->file;
    if (tess_grow(&list, capacity, cube->num_files + 1, sizeof *cube->file))
        TESS_FAIL(TESS_ERR_ALLOC, "%s: list of models", path);
    cube->file = list;
    tess_fits_model *file = &cube->file[cube->num_files];
    TESS_TRY(tess_fits_open(path, file));
    ++cube->num_files;
    const tess_fits_model *first = &cube->file[0];
    if (file->nx != first->nx || file->ny != first->ny ||
        !(fabs(file->crpix_x - first->crpix_x) < 1e-6) ||
        !(fabs(file->crpix_y - first->crpix_y) < 1e-6) ||
        !(fabs(file->ra_rad - first->ra_rad) < SAME) ||
        !(fabs(file->dec_rad - first->dec_rad) < SAME) ||
        !(fabs(file->scale_y_rad / first->scale_y_rad - 1) < SAME) ||
        !(fabs(file->scale_x_rad / first->scale_x_rad - 1) < SAME) ||
        strcmp(file->unit, first->unit) != 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: its pixels, or their unit, are not those of %s",
                  path, first->path);
cleanup:
    return status;
}

/* Ends of the names of models as the data see them, and in true flux. */
static const char as_seen[] = "-model.fits", in_true_flux[] = "-model-pb.fits";
static const char of_beam[] = "-pb.fits";

/* Writes the name of an image, NAME-model.fits or NAME-Q-model.fits, to `path`: "" if
 * the name is too long. */
static void member_name(const char *name, const char *stokes, const char *end,
                        char *path, size_t size)
{
    if (snprintf(path, size, "%s%s%s%s", name, *stokes ? "-" : "", stokes, end) >=
        (int)size)
        *path = '\0';
}

/* Likewise that of a member of a set, NAME-0003-model.fits or NAME-0003-Q-model.fits.
 */
static void set_name(const char *name, int channel, const char *stokes, const char *end,
                     char *path, size_t size)
{
    char of_channel[4096];
    const int length =
        snprintf(of_channel, sizeof of_channel, "%s-%04d", name, channel);
    *path = '\0';
    if (length < (int)sizeof of_channel)
        member_name(of_channel, stokes, end, path, size);
}

/* Stokes parameters in names of files; "" stands for a name without one. */
static const char *const set_stokes[] = {"",   "I",  "Q",  "U", "V",
                                         "XX", "YY", "RR", "LL"};
enum { SET_STOKES = sizeof set_stokes / sizeof *set_stokes };

/* The files of a set that exist: the last channel of any, -1 if there is none, and the
 * Stokes parameters that any channel has. */
typedef struct found_set {
    int last;
    bool has[SET_STOKES];
} found_set;

/* Notes the channel and the Stokes parameter of a file in the folder, if its name is
 * one of the set's. */
static void note_member(const char *entry, const char *name, const char *end,
                        found_set *set)
{
    const size_t length = strlen(name);
    char *rest, tail[32];
    if (strncmp(entry, name, length) != 0 || entry[length] != '-') return;
    const char *digits = entry + length + 1;
    if (strspn(digits, "0123456789") < 4) return;
    const long channel = strtol(digits, &rest, 10);
    if (channel >= MOST_FILES) return;
    for (int k = 0; k < SET_STOKES; ++k) {
        snprintf(tail, sizeof tail, "%s%s%s", *set_stokes[k] ? "-" : "", set_stokes[k],
                 end);
        if (strcmp(rest, tail) != 0) continue;
        set->has[k] = true;
        if (channel > set->last) set->last = (int)channel;
    }
}

/* Finds the files of a set. A folder that cannot be listed has none. */
static found_set look_for_set(const char *name, const char *end)
{
    found_set set = {.last = -1};
    char folder[TESS_OUT_FILE_NAME];
    const char *slash = strrchr(name, '/');
    tess_out_file_folder(name, folder);
    DIR *list = opendir(folder);
    for (const struct dirent *entry; list && (entry = readdir(list));)
        note_member(entry->d_name, slash ? slash + 1 : name, end, &set);
    if (list) closedir(list);
    return set;
}

/* Opens the files of all channels of a set. Every channel must have the same Stokes
 * parameters, and no channel may be missing. */
static tess_status add_set(model_cube *cube, int64_t *capacity, const char *name,
                           const char *end)
{
    tess_status status = TESS_OK;
    const found_set set = look_for_set(name, end);
    char path[4096];
    for (int c = 0; c <= set.last; ++c)
        for (int k = 0; k < SET_STOKES; ++k) {
            if (!set.has[k]) continue;
            set_name(name, c, set_stokes[k], end, path, sizeof path);
            if (access(path, F_OK) != 0)
                TESS_FAIL(TESS_ERR_INPUT,
                          "%s: is missing; the set %s-NNNN%s has files up to "
                          "channel %04d, and each needs all Stokes parameters",
                          path, name, end, set.last);
            TESS_TRY(add_file(cube, capacity, path));
        }
cleanup:
    return status;
}

/* Opens the cube of this name or, if there is none, the set of this name. */
static tess_status find_set(const char *name, const char *end, int64_t *capacity,
                            model_cube *cube)
{
    tess_status status = TESS_OK;
    char path[4096] = "";
    if (snprintf(path, sizeof path, "%s-cube%s", name, end) >= (int)sizeof path)
        *path = '\0';
    if (*path && access(path, F_OK) == 0)
        TESS_TRY(add_file(cube, capacity, path));
    else
        TESS_TRY(add_set(cube, capacity, name, end));
cleanup:
    return status;
}

/* Opens the images of a run of one channel, one for each Stokes parameter. */
static tess_status add_images(model_cube *cube, int64_t *capacity, const char *name,
                              const char *end)
{
    tess_status status = TESS_OK;
    char path[4096];
    for (int k = 0; k < SET_STOKES; ++k) {
        member_name(name, set_stokes[k], end, path, sizeof path);
        if (access(path, F_OK) == 0) TESS_TRY(add_file(cube, capacity, path));
    }
cleanup:
    return status;
}

/* Opens what a run of this name has left: a cube, a set, or the images of one channel.
 */
static tess_status find_named(const char *name, const char *end, int64_t *capacity,
                              model_cube *cube)
{
    tess_status status = TESS_OK;
    TESS_TRY(find_set(name, end, capacity, cube));
    if (cube->num_files == 0) TESS_TRY(add_images(cube, capacity, name, end));
cleanup:
    return status;
}

/* Refuses models as the data see them, beside which a run has left its primary beam, in
 * place of models in true flux: the beam would act twice. Gains alone may multiply
 * them. */
static tess_status check_unseen(const char *name, const model_cube *cube)
{
    tess_status status = TESS_OK;
    char beam[sizeof cube->file->path + sizeof of_beam];
    if (cube->num_files == 0) return TESS_OK;
    const char *path = cube->file[0].path;
    snprintf(beam, sizeof beam, "%.*s%s", (int)(strlen(path) - strlen(as_seen)), path,
             of_beam);
    if (access(beam, F_OK) == 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: its models have been multiplied by the primary beam (%s), and "
                  "none is in true flux; make the images with --pbcor, which writes "
                  "these, too",
                  name, beam);
cleanup:
    return status;
}

/* Whether there is something of this name, and no folder, which may lie beside the
 * models of this NAME. */
static bool is_no_folder(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && !S_ISDIR(found.st_mode);
}

static tess_status find_files(const model_name *name, model_cube *cube)
{
    tess_status status = TESS_OK;
    int64_t capacity = 0;
    const bool is_file = is_no_folder(name->path);
    if (!is_file && name->factor != MODEL_AS_IT_IS)
        TESS_TRY(find_named(name->path, in_true_flux, &capacity, cube));
    if (!is_file && cube->num_files == 0) {
        TESS_TRY(find_named(name->path, as_seen, &capacity, cube));
        if (name->factor == MODEL_BY_BEAMS) TESS_TRY(check_unseen(name->path, cube));
    }
    if (cube->num_files == 0) /* fails with the reason if it is no model either */
        TESS_TRY(add_file(cube, &capacity, name->path));
cleanup:
    return status;
}

/* ---- planes ---- */

/* A plane of a file, before planes are sorted by frequency. */
typedef struct found_plane {
    double freq_hz;
    int file, freq, stokes, code;
    bool has_data;
} found_plane;

static int by_frequency(const void *a, const void *b)
{
    const found_plane *p = a, *q = b;
    if (p->freq_hz < q->freq_hz || p->freq_hz > q->freq_hz)
        return p->freq_hz < q->freq_hz ? -1 : 1;
    return p->code - q->code;
}

/* Lists the planes of a file. */
static tess_status add_planes(const model_cube *cube, int file, found_plane **list,
                              int64_t *count, int64_t *capacity)
{
    tess_status status = TESS_OK;
    const tess_fits_model *fits = &cube->file[file];
    double *freq_hz = tess_alloc(fits->num_freq, sizeof *freq_hz);
    bool *has_data = tess_alloc(fits->num_freq, sizeof *has_data);
    if (!freq_hz || !has_data ||
        tess_grow((void **)list, capacity,
                  *count + (int64_t)fits->num_freq * fits->num_stokes, sizeof **list))
        TESS_FAIL(TESS_ERR_ALLOC, "%s: planes", fits->path);
    TESS_TRY(tess_fits_frequencies(fits, freq_hz, has_data));
    for (int s = 0; s < fits->num_stokes; ++s)
        for (int k = 0; k < fits->num_freq; ++k)
            (*list)[(*count)++] = (found_plane){.freq_hz = freq_hz[k],
                                                .file = file,
                                                .freq = k,
                                                .stokes = s,
                                                .code = fits->stokes[s],
                                                .has_data = has_data[k]};
cleanup:
    tess_free(freq_hz);
    tess_free(has_data);
    return status;
}

/* Takes the Stokes parameters from the planes of the lowest frequency. All other
 * frequencies must have the same. */
static tess_status find_stokes(model_cube *cube, const found_plane *list, int64_t count)
{
    tess_status status = TESS_OK;
    while (cube->num_stokes < 4 && cube->num_stokes < count &&
           !(list[cube->num_stokes].freq_hz > list[0].freq_hz)) {
        cube->stokes[cube->num_stokes] = list[cube->num_stokes].code;
        ++cube->num_stokes;
    }
    for (int64_t k = 0; k < count; ++k)
        if (count % cube->num_stokes != 0 ||
            (k % cube->num_stokes > 0 && list[k].code == list[k - 1].code) ||
            list[k].code != cube->stokes[k % cube->num_stokes] ||
            list[k].freq_hz > list[k - k % cube->num_stokes].freq_hz)
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: models of some frequencies lack Stokes parameters that "
                      "others have, or two have one frequency (%.9g MHz)",
                      cube->file[list[k].file].path, 1e-6 * list[k].freq_hz);
cleanup:
    return status;
}

static tess_status order_planes(model_cube *cube, const found_plane *list,
                                int64_t count)
{
    tess_status status = TESS_OK;
    const int num_stokes = cube->num_stokes;
    cube->num_planes = (int)(count / num_stokes);
    cube->freq_hz = tess_alloc(cube->num_planes, sizeof *cube->freq_hz);
    cube->has_data = tess_alloc(cube->num_planes, sizeof *cube->has_data);
    cube->at = tess_alloc(count, sizeof *cube->at);
    if (!cube->freq_hz || !cube->has_data || !cube->at)
        TESS_FAIL(TESS_ERR_ALLOC, "%s: planes", cube->file[0].path);
    for (int64_t k = 0; k < count; ++k) {
        cube->at[k] = (model_plane){list[k].file, list[k].freq, list[k].stokes};
        cube->freq_hz[k / num_stokes] = list[k].freq_hz;
        cube->has_data[k / num_stokes] = list[k].has_data;
    }
    for (int k = 0; k < cube->num_planes; ++k)
        if (cube->num_planes > 1 && !(cube->freq_hz[k] > 0))
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: it has no FREQ axis that tells which channel it is of",
                      cube->file[cube->at[k * num_stokes].file].path);
cleanup:
    return status;
}

static tess_status find_planes(model_cube *cube)
{
    tess_status status = TESS_OK;
    found_plane *list = NULL;
    int64_t count = 0, capacity = 0;
    for (int f = 0; f < cube->num_files; ++f)
        TESS_TRY(add_planes(cube, f, &list, &count, &capacity));
    if (count > 0) qsort(list, (size_t)count, sizeof *list, by_frequency);
    TESS_TRY(find_stokes(cube, list, count));
    TESS_TRY(order_planes(cube, list, count));
cleanup:
    tess_free(list);
    return status;
}

/* ---- the polynomial ---- */

static double x_of(const model_cube *cube, double freq_hz)
{
    return freq_hz / cube->nu0_hz - 1;
}

double model_cube_factor(const model_cube *cube, int term, double freq_hz)
{
    double factor = 1;
    for (int t = 0; t < term; ++t)
        factor *= x_of(cube, freq_hz);
    return factor;
}

/* Solves A y = b for `count` right-hand sides b[n][count], by Gauss-Jordan elimination
 * with row pivoting. Returns false if A[n][n] is singular. */
static bool solve(int n, double *a, double *b, int count)
{
    for (int k = 0; k < n; ++k) {
        int best = k;
        for (int i = k + 1; i < n; ++i)
            if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
        if (!(fabs(a[best * n + k]) > 0)) return false;
        for (int j = 0; j < n && best != k; ++j) {
            const double swap = a[k * n + j];
            a[k * n + j] = a[best * n + j];
            a[best * n + j] = swap;
        }
        for (int j = 0; j < count && best != k; ++j) {
            const double swap = b[k * count + j];
            b[k * count + j] = b[best * count + j];
            b[best * count + j] = swap;
        }
        for (int i = 0; i < n; ++i) {
            if (i == k) continue;
            const double factor = a[i * n + k] / a[k * n + k];
            for (int j = k; j < n; ++j)
                a[i * n + j] -= factor * a[k * n + j];
            for (int j = 0; j < count; ++j)
                b[i * count + j] -= factor * b[k * count + j];
        }
    }
    for (int k = 0; k < n; ++k)
        for (int j = 0; j < count; ++j)
            b[k * count + j] /= a[k * n + k];
    return true;
}

/* Fits a polynomial in x to the planes by least squares. A[plane][term] holds the
 * powers of x, and the terms are (AᵀA)⁻¹Aᵀ times the planes. During the fit x is
 * divided by the half-width of the band, which keeps AᵀA well conditioned. Planes
 * without data take no part. */
static tess_status fit(model_cube *cube, int num_terms)
{
    tess_status status = TESS_OK;
    const int n = num_terms, planes = cube->num_planes;
    double normal[MOST_TERMS * MOST_TERMS] = {0}, wide = 0;
    int used = 0;
    for (int k = 0; k < planes; ++k)
        used += cube->has_data[k];
    if (n > used || n > MOST_TERMS)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: a polynomial of %d terms needs as many channels with data (at "
                  "most %d terms); there are %d",
                  cube->file[0].path, n, (int)MOST_TERMS, used);
    cube->nu0_hz = 0.5 * (cube->freq_hz[0] + cube->freq_hz[planes - 1]);
    wide = fmax(x_of(cube, cube->freq_hz[planes - 1]), 1e-12);
    cube->matrix = tess_alloc_zero((int64_t)n * planes, sizeof *cube->matrix);
    if (!cube->matrix) TESS_FAIL(TESS_ERR_ALLOC, "terms of a model");
    for (int k = 0; k < planes; ++k) {
        double power[2 * MOST_TERMS] = {1};
        for (int t = 1; t < 2 * n; ++t)
            power[t] = power[t - 1] * x_of(cube, cube->freq_hz[k]) / wide;
        for (int i = 0; i < n && cube->has_data[k]; ++i) {
            cube->matrix[i * planes + k] = power[i];
            for (int j = 0; j < n; ++j)
                normal[i * n + j] += power[i + j];
        }
    }
    if (!solve(n, normal, cube->matrix, planes))
        TESS_FAIL(TESS_ERR_INPUT, "%s: no polynomial of %d terms goes through it",
                  cube->file[0].path, n);
    for (int t = 0; t < n; ++t)
        for (int k = 0; k < planes; ++k)
            cube->matrix[t * planes + k] /= pow(wide, t);
    cube->num_terms = n;
cleanup:
    return status;
}

/* ---- opening ---- */

tess_status model_cube_open(const model_name *name, model_cube **cube_out,
                            char **single)
{
    tess_status status = TESS_OK;
    model_cube *cube = tess_alloc_zero(1, sizeof *cube);
    *cube_out = NULL;
    if (single) *single = NULL;
    if (!cube) TESS_FAIL(TESS_ERR_ALLOC, "%s: model", name->path);
    TESS_TRY(find_files(name, cube));
    if (single && cube->num_files == 1 && cube->file[0].num_freq == 1) {
        if (name->num_terms > 1)
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: it has one channel, and no polynomial goes through that",
                      cube->file[0].path);
        *single = tess_strdup(cube->file[0].path);
        if (!*single) TESS_FAIL(TESS_ERR_ALLOC, "%s: model", name->path);
        goto cleanup;
    }
    TESS_TRY(find_planes(cube));
    if (name->num_terms > 0) TESS_TRY(fit(cube, name->num_terms));
    *cube_out = cube;
    cube = NULL;
cleanup:
    model_cube_free(cube);
    return status;
}

tess_status model_cube_open_set(const char *name, model_cube **cube_out)
{
    tess_status status = TESS_OK;
    int64_t capacity = 0;
    model_cube *cube = tess_alloc_zero(1, sizeof *cube);
    if (!cube) TESS_FAIL(TESS_ERR_ALLOC, "%s: model", name);
    TESS_TRY(find_set(name, as_seen, &capacity, cube));
    if (cube->num_files == 0)
        TESS_FAIL(TESS_ERR_IO,
                  "%s-cube-model.fits and %s-0000-model.fits: there is no such model",
                  name, name);
    TESS_TRY(find_planes(cube));
    *cube_out = cube;
    cube = NULL;
cleanup:
    model_cube_free(cube);
    return status;
}

/* Kinds of models that runs of one NAME leave, in the order in which they are taken. */
enum { KIND_CUBE, KIND_SET, KIND_IMAGES, NUM_KINDS };

/* Writes how the files of a kind are called: "" where there is none. */
static void look_for_kind(const char *name, int kind, const char *end, char path[4096])
{
    int length = 0;
    *path = '\0';
    if (kind == KIND_CUBE) length = snprintf(path, 4096, "%s-cube%s", name, end);
    if (kind == KIND_SET && look_for_set(name, end).last >= 0)
        length = snprintf(path, 4096, "%s-NNNN%s", name, end);
    if (length >= 4096 || (kind == KIND_CUBE && access(path, F_OK) != 0)) *path = '\0';
    for (int k = 0; kind == KIND_IMAGES && k < SET_STOKES; ++k) {
        member_name(name, set_stokes[k], end, path, 4096);
        if (*path && access(path, F_OK) == 0) return;
        *path = '\0';
    }
}

/* Warns of models of other kinds beside those that NAME means: a run of another number
 * of channels has left them, and they may be the newer ones. */
static void warn_of_others(const model_name *name)
{
    static const char *const end[] = {in_true_flux, as_seen};
    char taken[4096] = "", other[4096], others[2 * 4096] = "";
    int kind = 0;
    if (!name->path || is_no_folder(name->path)) return;
    for (int e = name->factor == MODEL_AS_IT_IS; e < 2 && !*taken; ++e)
        for (int k = 0; k < NUM_KINDS && !*taken; ++k) {
            look_for_kind(name->path, k, end[e], taken);
            kind = k;
        }
    for (int k = 0; k < NUM_KINDS && *taken; ++k) {
        if (k == kind) continue;
        look_for_kind(name->path, k, as_seen, other);
        if (!*other) look_for_kind(name->path, k, in_true_flux, other);
        const size_t length = strlen(others);
        if (*other)
            snprintf(others + length, sizeof others - length, "%s%s",
                     length > 0 ? " and " : "", other);
    }
    if (*others)
        tess_log_warn("%s is taken in place of %s; one of them is of another run: name "
                      "the file, or remove what is old",
                      taken, others);
}

static void warn_of_flux(const model_name *name)
{
    char other[4096];
    const size_t length = name->path ? strlen(name->path) : 0;
    const size_t end = sizeof as_seen - 1;
    if (name->factor == MODEL_AS_IT_IS || length < end ||
        strcmp(name->path + length - end, as_seen) != 0)
        return;
    if (snprintf(other, sizeof other, "%.*s%s", (int)(length - end), name->path,
                 in_true_flux) >= (int)sizeof other ||
        access(other, F_OK) != 0)
        return;
    tess_log_warn(
        "%s: this model is multiplied by beams or gains, but its fluxes may be "
        "as the data see them; %s beside it is in true flux",
        name->path, other);
}

void model_cube_warn_name(const model_name *name)
{
    warn_of_flux(name);
    warn_of_others(name);
}

void model_cube_free(model_cube *cube)
{
    if (!cube) return;
    tess_free(cube->file);
    tess_free(cube->freq_hz);
    tess_free(cube->has_data);
    tess_free(cube->at);
    tess_free(cube->matrix);
    tess_free(cube);
}

/* ---- frequencies ---- */

int model_cube_nearest(const model_cube *cube, double freq_hz)
{
    int low = 0, high = cube->num_planes - 1;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        *(cube->freq_hz[middle] <= freq_hz ? &low : &high) = middle;
    }
    return cube->freq_hz[high] - freq_hz < freq_hz - cube->freq_hz[low] ? high : low;
}

/* The ends of the band, which lie half a channel beyond the first and the last
 * frequency. */
static void band_of(const model_cube *cube, double *low_hz, double *high_hz)
{
    const double *f = cube->freq_hz;
    const int last = cube->num_planes - 1;
    *low_hz = last > 0 ? f[0] - 0.5 * (f[1] - f[0]) : f[0];
    *high_hz = last > 0 ? f[last] + 0.5 * (f[last] - f[last - 1]) : f[0];
}

/* Writes in words of the log how a prediction uses the channels of the model. */
static const char *way_of(const model_cube *cube, char *text, size_t size)
{
    if (cube->num_terms > 0)
        snprintf(text, size, "a polynomial of %d term%s through the model's",
                 cube->num_terms, cube->num_terms == 1 ? "" : "s");
    else
        snprintf(text, size, "the nearest of the model's");
    return text;
}

tess_status model_cube_check_way(const model_cube *cube, const double *freq_hz,
                                 int64_t num_chan, const char *way)
{
    tess_status status = TESS_OK;
    double low_hz, high_hz;
    int64_t beyond = 0;
    const char *path = cube->file[0].path;
    band_of(cube, &low_hz, &high_hz);
    for (int64_t k = 0; k < num_chan; ++k)
        beyond += !(freq_hz[k] >= low_hz && freq_hz[k] <= high_hz);
    if (beyond == num_chan && cube->num_planes > 1)
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: its channels reach from %.6g to %.6g MHz, and none of the data's "
            "lies there (%.6g MHz ...)",
            path, 1e-6 * low_hz, 1e-6 * high_hz, 1e-6 * freq_hz[0]);
    if (!way || cube->num_planes < 2) return TESS_OK; /* one is all channels' model */
    tess_log_info("%s: channels of the data take %s %d channels, %.6g to %.6g MHz",
                  path, way, cube->num_planes, 1e-6 * cube->freq_hz[0],
                  1e-6 * cube->freq_hz[cube->num_planes - 1]);
    if (beyond > 0)
        tess_log_warn("%s: %lld of %lld channels lie beyond the model's band", path,
                      (long long)beyond, (long long)num_chan);
cleanup:
    return status;
}

tess_status model_cube_check(const model_cube *cube, const double *freq_hz,
                             int64_t num_chan, bool tells)
{
    char text[96];
    return model_cube_check_way(cube, freq_hz, num_chan,
                                tells ? way_of(cube, text, sizeof text) : NULL);
}

/* ---- pixels ---- */

static tess_status read_plane(const model_cube *cube, int plane, int stokes,
                              int64_t row_first, int64_t num_rows, double *out)
{
    tess_status status = TESS_OK;
    const model_plane *at = &cube->at[plane * cube->num_stokes + stokes];
    const tess_fits_model *file = &cube->file[at->file];
    if (cube->has_data[plane])
        return model_pixels_read(file, at->stokes, at->freq, row_first, num_rows, out);
    TESS_TRY(tess_fits_read(file, at->stokes, at->freq, row_first, num_rows,
                            TESS_PIXEL_DOUBLE, out));
    for (int64_t k = 0; k < num_rows * file->nx; ++k)
        if (!isfinite(out[k])) out[k] = 0;
cleanup:
    return status;
}

/* Reads rows of a term, which is a weighted sum of all planes. */
static tess_status read_term(const model_cube *cube, int term, int stokes,
                             int64_t row_first, int64_t num_rows, double *out)
{
    tess_status status = TESS_OK;
    const int64_t count = num_rows * cube->file[0].nx;
    double *plane = tess_alloc(count, sizeof *plane);
    if (!plane) TESS_FAIL(TESS_ERR_ALLOC, "rows of a model");
    memset(out, 0, (size_t)count * sizeof *out);
    for (int k = 0; k < cube->num_planes; ++k) {
        const double factor = cube->matrix[term * cube->num_planes + k];
        if (!cube->has_data[k]) continue;
        TESS_TRY(read_plane(cube, k, stokes, row_first, num_rows, plane));
        for (int64_t i = 0; i < count; ++i)
            out[i] += factor * plane[i];
    }
cleanup:
    tess_free(plane);
    return status;
}

tess_status model_cube_read(const model_cube *cube, int part, int stokes,
                            int64_t row_first, int64_t num_rows, double *out)
{
    return (cube->num_terms > 0 ? read_term : read_plane)(cube, part, stokes, row_first,
                                                          num_rows, out);
}
