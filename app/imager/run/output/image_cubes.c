/* Cubes of a run: opened when the first of their channels is made, written plane by
 * plane by the ranks or teams that have made them, and finished behind the last. */
#define _GNU_SOURCE
#include "image_cubes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_backlog.h"
#include "image_meta.h"
#include "image_names.h"
#include "tess_grid.h"
#include "tess_hash.h"
#include "tess_log.h"
#include "tess_mem.h"

/* ---- axes ---- */

/* Planes in the order of codes away from 0: 1 to 4, −1 to −4, −5 to −8. Of I and RR,
 * or the like, the one that was listed first is first. */
static void order_planes(const tess_pol *pol, int num_pol, int *place)
{
    for (int k = 0; k < num_pol; ++k) {
        place[k] = 0;
        for (int j = 0; j < num_pol; ++j)
            place[k] += abs(pol[j].code) < abs(pol[k].code) ||
                        (abs(pol[j].code) == abs(pol[k].code) && j < k);
    }
}

/* The code of a plane. */
static int code_at(const tess_pol *pol, int num_pol, const int *place, int plane)
{
    int k = 0;
    while (k < num_pol - 1 && place[k] != plane)
        ++k;
    return pol[k].code;
}

static int step_of(const tess_pol *pol, int num_pol, const int *place)
{
    return num_pol > 1
               ? code_at(pol, num_pol, place, 1) - code_at(pol, num_pol, place, 0)
               : 1;
}

tess_status image_cubes_check(const tess_image_opts *opts, const tess_pol *pol,
                              int num_pol)
{
    tess_status status = TESS_OK;
    int place[2 * TESS_MAX_POL];
    if (!opts->beside.cube) return TESS_OK;
    for (int k = 0; k < num_pol; ++k)
        if (pol[k].imaginary)
            TESS_FAIL(
                TESS_ERR_USAGE,
                "--cube: the STOKES axis of a cube cannot hold cross-hands, which "
                "are complex; image Stokes parameters, or leave --cube out");
    order_planes(pol, num_pol, place);
    const int step = step_of(pol, num_pol, place);
    for (int k = 1; k < num_pol; ++k)
        if (code_at(pol, num_pol, place, k) - code_at(pol, num_pol, place, k - 1) !=
            step)
            TESS_FAIL(TESS_ERR_USAGE,
                      "--cube: the STOKES axis of a cube has equal steps, and these "
                      "polarisations have not; image IQUV, or leave --cube out");
cleanup:
    return status;
}

tess_status image_cubes_create(const image_files *output, image_cubes **cubes)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = output->opts;
    const int64_t num_freq = opts->channels_out;
    image_cubes *made = tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "axes of cubes");
    made->num_sets = opts->intervals_out;
    made->freq_hz = tess_alloc(num_freq, sizeof *made->freq_hz);
    made->width_hz = tess_alloc(num_freq, sizeof *made->width_hz);
    made->set = tess_alloc_zero(made->num_sets, sizeof *made->set);
    if (!made->freq_hz || !made->width_hz || !made->set)
        TESS_FAIL(TESS_ERR_ALLOC, "axes of cubes");
    for (int64_t c = 0; c < num_freq; ++c)
        output_table_band(output->outputs, output->info, c, &made->freq_hz[c],
                          &made->width_hz[c]);
    order_planes(output->pol, output->num_pol, made->place);
    made->stokes = code_at(output->pol, output->num_pol, made->place, 0);
    made->stokes_step = step_of(output->pol, output->num_pol, made->place);
    *cubes = made;
    made = NULL;
cleanup:
    image_cubes_destroy(made);
    return status;
}

void image_cubes_destroy(image_cubes *cubes)
{
    if (!cubes) return;
    for (int64_t t = 0; cubes->set && t < cubes->num_sets; ++t)
        for (int c = 0; c < IMAGE_MOST_CUBES; ++c)
            tess_fits_cube_destroy(cubes->set[t].cube[c]);
    tess_free(cubes->freq_hz);
    tess_free(cubes->width_hz);
    tess_free(cubes->set);
    tess_free(cubes);
}

void image_cubes_keep(image_cubes *cubes, const char *identity, int64_t outputs_done)
{
    const uint64_t hash = tess_hash(TESS_HASH_START, identity, strlen(identity));
    snprintf(cubes->run, sizeof cubes->run, "%016llx", (unsigned long long)hash);
    cubes->outputs_done = outputs_done;
}

/* A PSF that serves all polarisations is the first plane's. */
static tess_cube_axes axes_of(const image_files *output, image_kind kind)
{
    const image_cubes *cubes = output->cubes;
    return (tess_cube_axes){.num_freq = (int)output->opts->channels_out,
                            .num_stokes = output->kinds.num[kind],
                            .freq_hz = cubes->freq_hz,
                            .width_hz = cubes->width_hz,
                            .stokes_step = cubes->stokes_step,
                            .run = *cubes->run ? cubes->run : NULL};
}

static bool is_double(const image_files *output)
{
    return output->opts->gridding.accuracy < TESS_SINGLE_FILE_ACCURACY;
}

/* ---- what is told ---- */

void image_cube_text(const image_files *output, char *text, size_t size)
{
    const tess_image_opts *opts = output->opts;
    const double bytes = (double)opts->nx * (double)opts->ny *
                         (double)opts->channels_out * output->num_pol *
                         (is_double(output) ? 8 : 4);
    snprintf(text, size, "%lld x %lld pixels x %lld channel%s x %d Stokes, %s",
             (long long)opts->nx, (long long)opts->ny, (long long)opts->channels_out,
             opts->channels_out == 1 ? "" : "s", output->num_pol, tess_mem_text(bytes));
}

/* Once: how large they are, and what their frequency axis is. */
static void tell(const image_files *output)
{
    char text[160];
    const tess_cube_axes axes = axes_of(output, IMAGE_DIRTY);
    tess_image_meta meta;
    if (tess_comm_rank(output->comm) != 0) return;
    image_cube_text(output, text, sizeof text);
    tess_log_info("each cube has %s", text);
    image_meta_of_cube(output, 0, IMAGE_DIRTY, &meta);
    meta.cube = &axes;
    if (!tess_cube_is_linear(&meta))
        tess_log_warn(
            "the output channels are not equidistant in frequency: cubes have "
            "a table of frequencies (FREQ-TAB), and CASA and CARTA do not open them");
}

/* ---- files ---- */

static tess_status open_cube(const image_files *output, int64_t interval,
                             const image_corrected *made, tess_fits_cube **cube)
{
    tess_status status = TESS_OK;
    tess_image_meta meta;
    const tess_cube_axes axes = axes_of(output, made->of);
    const int64_t channels = output->opts->channels_out;
    const int64_t done = output->cubes->outputs_done - interval * channels;
    char *path = image_cube_name(output, interval, made->name);
    TESS_TRY(tess_comm_agree(output->comm, path ? TESS_OK : TESS_ERR_ALLOC));
    image_meta_of_cube(output, interval, made->of, &meta);
    meta.stokes = axes.num_stokes == output->num_pol ? output->cubes->stokes
                                                     : output->pol[0].code;
    meta.cube = &axes;
    TESS_TRY(tess_fits_cube_create(output->comm, path, output->opts->overwrite, &meta,
                                   done > 0 ? (int)done : 0, is_double(output), cube));
cleanup:
    free(path); /* from asprintf */
    return status;
}

static tess_status open_set(const image_files *output, int64_t interval)
{
    tess_status status = TESS_OK;
    image_corrected list[IMAGE_MOST_CUBES];
    image_cube_set *set = &output->cubes->set[interval];
    if (set->is_open) return TESS_OK;
    if (interval == 0) tell(output);
    const int num = image_cube_list(output->opts, &output->kinds, list);
    for (int c = 0; c < num; ++c)
        TESS_TRY(open_cube(output, interval, &list[c], &set->cube[c]));
    set->is_open = true;
cleanup:
    return status;
}

tess_status image_cubes_open(const image_files *output, int64_t first, int64_t end)
{
    tess_status status = TESS_OK;
    const int64_t channels = output->opts->channels_out;
    if (!output->cubes) return TESS_OK;
    for (int64_t t = first / channels; t * channels < end; ++t)
        TESS_TRY(open_set(output, t));
cleanup:
    return status;
}

/* Writes a plane, or begins to. Collective. */
static tess_status write_plane(const image_files *output, const tess_cube_plane *plane,
                               tess_fits_cube *cube)
{
    tess_status status = TESS_OK;
    tess_fits_writing *begun = NULL;
    if (!output->backlog)
        return tess_fits_cube_write(output->comm, plane, output->opts->layout.threads,
                                    cube);
    TESS_TRY(tess_fits_cube_begin(output->comm, plane, cube, &begun));
    image_backlog_add(output->backlog, begun);
cleanup:
    return status;
}

tess_status image_cubes_write(const image_files *output, int k,
                              const tess_image_product *product)
{
    const image_cubes *cubes = output->cubes;
    image_corrected list[IMAGE_MOST_CUBES];
    const int num = image_cube_list(output->opts, &output->kinds, list);
    int at = 0;
    while (at < num - 1 && strcmp(list[at].name, product->kind) != 0)
        ++at;
    const bool all = output->kinds.num[list[at].of] == output->num_pol;
    const tess_cube_plane plane = {.freq = (int)product->channel,
                                   .stokes = all ? cubes->place[k] : 0,
                                   .meta = product->meta,
                                   .row_first = product->row_first,
                                   .num_rows = product->num_rows,
                                   .rows = product->pixel};
    tess_fits_cube *cube = cubes->set[product->interval].cube[at];
    return write_plane(output, &plane, cube);
}

static void log_set(const image_files *output, int64_t interval)
{
    image_corrected list[IMAGE_MOST_CUBES];
    const int num = image_cube_list(output->opts, &output->kinds, list);
    for (int c = 0; c < num; ++c) {
        char *path = image_cube_name(output, interval, list[c].name);
        if (path) tess_log_detail("wrote %s", path);
        free(path); /* from asprintf */
    }
}

/* All cubes of an interval get their names together. Collective. */
static tess_status close_set(const image_files *output, int64_t interval)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = output->opts;
    image_cube_set *set = &output->cubes->set[interval];
    tess_held_files held = {.overwrite = opts->overwrite,
                            .threads = opts->layout.threads,
                            .last = !image_writes_columns(opts) &&
                                    interval == opts->intervals_out - 1 &&
                                    opts->channels_out == 1};
    for (int c = 0; c < IMAGE_MOST_CUBES; ++c)
        if (set->cube[c])
            TESS_TRY(tess_fits_cube_finish(output->comm, &held, set->cube[c]));
    TESS_TRY(tess_held_publish(output->comm, &held));
    for (int c = 0; c < IMAGE_MOST_CUBES; ++c)
        tess_fits_cube_destroy(set->cube[c]);
    *set = (image_cube_set){0};
    log_set(output, interval);
cleanup:
    tess_held_free(&held);
    return status;
}

/* What is written stays if the run is stopped now. Collective. */
static tess_status save_set(const image_files *output, int64_t interval)
{
    tess_status status = TESS_OK;
    image_cube_set *set = &output->cubes->set[interval];
    for (int c = 0; c < IMAGE_MOST_CUBES; ++c)
        if (set->cube[c]) TESS_TRY(tess_fits_cube_save(output->comm, set->cube[c]));
    set->is_unsaved = false;
    tess_log_detail("saved the tables of unfinished cubes");
cleanup:
    return status;
}

/* A checkpoint is written now and then, and tables as large as those of a cube of many
 * channels would take longer than the images between two of them. */
tess_status image_cubes_save(const image_files *output)
{
    tess_status status = TESS_OK;
    const image_cubes *cubes = output->cubes;
    for (int64_t t = 0; t < cubes->num_sets; ++t)
        if (cubes->set[t].is_unsaved) TESS_TRY(save_set(output, t));
cleanup:
    return status;
}

bool image_cubes_end(const image_files *output, int64_t first, int64_t end)
{
    const int64_t channels = output->opts->channels_out;
    return output->cubes && end / channels > first / channels;
}

tess_status image_cubes_close(const image_files *output, int64_t first, int64_t end)
{
    tess_status status = TESS_OK;
    const int64_t channels = output->opts->channels_out;
    double mark = tess_time_now();
    if (!output->cubes) return TESS_OK;
    for (int64_t t = first / channels; t * channels < end; ++t) {
        if ((t + 1) * channels <= end)
            TESS_TRY(close_set(output, t));
        else if (*output->cubes->run)
            output->cubes->set[t].is_unsaved = true;
    }
    tess_profile_lap(output->profile, TESS_STAGE_WRITE, &mark);
cleanup:
    return status;
}
