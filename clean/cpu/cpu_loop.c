/* Runs the sub-minor loop: finds the best candidate, adds a component there and
 * subtracts the PSF at all candidates, until the best candidate is small enough. Adds
 * components to models. */
#include "cpu_loop.h"

#include <math.h>
#include <string.h>

#include "clean_scales.h"
#include "cpu_join.h"
#include "cpu_layers.h"
#include "cpu_list.h"
#include "cpu_noise.h"
#include "cpu_spectra.h"
#include "cpu_window.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_omp.h"

/* One more thread works for each of this many candidates. */
enum { EACH_THREAD = 1 << 12 };

/* Number of iterations between two calls of `progress`. */
enum { TELL_EACH = 256 };

/* The index that a rank which has failed sends as its best candidate. */
enum { FAILED = -2 };

typedef struct loop_team {
    clean_work *work;
    clean_loop *loop;
    const cpu_list *list;
    clean_components *found;

    cpu_psf *psf;  /* one that holds all PSFs between layers, or [places][num_layers]
                      PSFs of the images */
    int psf_place; /* that has the component's PSFs */
    cpu_component component;
    int threads;
    double *largest; /* [num_blocks] the largest value of each block */
    double *joined; /* [threads][2][most] numbers by which the candidates of a block are
                       chosen */
    int64_t most;   /* largest number of candidates of a block */
    /* [threads] the best candidate of each thread, by its place in the list */
    clean_peak *own;
    char *told; /* [ranks] the best candidate of each rank, with its values */
    int64_t told_bytes;
    double *value; /* [num_layers] the component's value in each layer */
    double *flux;  /* [num_images] the component's flux in each image */
    double *noise; /* [num_pol] of a component's values: see clean_spectrum_fit() */
    bool done;
    tess_status status;
} loop_team;

static void block_range(const cpu_list *list, int64_t block, int64_t *first,
                        int64_t *end)
{
    const int64_t last = list->block[block + 1];
    *first = list->run[list->block[block]].first;
    *end = list->run[last - 1].first + list->run[last - 1].count;
}

/* The numbers by which the candidates [first, end) are chosen: values of the list, or
 * numbers that are made of them in this thread's memory. */
static const double *metrics(const loop_team *team, int64_t first, int64_t end)
{
    const cpu_list *list = team->list;
    const cpu_lines lines = {.first = list->value + first,
                             .stride_bytes = (size_t)list->count * sizeof(double),
                             .is_double = true,
                             .count = end - first};
    double *joined = team->joined + (int64_t)tess_omp_thread() * 2 * team->most;
    const bool first_layer = list->num_layers == 1 || team->work->layers.basis;
    if (first_layer && list->step == 1 && !list->factor) return list->value + first;
    for (int64_t k = 0; first_layer && k < end - first; ++k)
        joined[k] = *cpu_list_value(list, 0, first + k);
    if (!first_layer)
        cpu_join_lines(&team->work->setup->join, &lines, false, joined,
                       joined + team->most);
    for (int64_t k = 0; list->factor && k < end - first; ++k)
        joined[k] *= list->factor[first + k];
    return joined;
}

static double largest_of_block(const loop_team *team, int64_t block)
{
    const bool positive = team->work->setup->opts.no_negative;
    int64_t first, end;
    block_range(team->list, block, &first, &end);
    return team->work->vector->largest_value(metrics(team, first, end), end - first,
                                             positive);
}

/* The best candidate of this thread's blocks, whose largest values are known. */
static clean_peak best_of(const loop_team *team, int64_t begin, int64_t end_block)
{
    const bool positive = team->work->setup->opts.no_negative;
    int64_t block = -1, first, end;
    for (int64_t b = begin; b < end_block; ++b)
        if (team->largest[b] > (block < 0 ? 0 : team->largest[block])) block = b;
    if (block < 0) return (clean_peak){0, -1};
    block_range(team->list, block, &first, &end);
    const double *metric = metrics(team, first, end);
    for (int64_t k = 0; k < end - first; ++k)
        if ((positive ? metric[k] : fabs(metric[k])) == team->largest[block])
            return (clean_peak){metric[k], first + k};
    return (clean_peak){0, -1};
}

/* The best candidate of all threads, by its place in the list. */
static clean_peak best_here(const loop_team *team)
{
    clean_peak chosen = {0, -1};
    for (int t = 0; t < team->threads; ++t)
        if (clean_peak_is_better(&team->own[t], &chosen)) chosen = team->own[t];
    return chosen;
}

/* Chooses the best candidate of all ranks, by its pixel, and puts its values into
 * team->value. Collective if the list is divided. */
static tess_status choose(loop_team *team, clean_peak *chosen)
{
    tess_status status = TESS_OK;
    const cpu_list *list = team->list;
    tess_comm *comm = team->work->setup->comm;
    const size_t values = (size_t)list->num_layers * sizeof(double);
    clean_peak own = best_here(team);
    if (team->status != TESS_OK) own = (clean_peak){0, FAILED};
    for (int i = 0; i < list->num_layers; ++i)
        team->value[i] = own.index < 0 ? 0 : *cpu_list_value(list, i, own.index);
    if (own.index >= 0) own.index = list->index[own.index];
    *chosen = own;
    if (!list->divided) return team->status;
    char *send = team->told + tess_comm_size(comm) * team->told_bytes;
    const char *from = NULL;
    memcpy(send, &own, sizeof own);
    memcpy(send + sizeof own, team->value, values);
    TESS_TRY(tess_comm_allgather(comm, send, team->told_bytes, team->told));
    for (int k = 0; k < tess_comm_size(comm); ++k) {
        const char *told = team->told + k * team->told_bytes;
        clean_peak other;
        memcpy(&other, told, sizeof other);
        if (other.index == FAILED) return team->status ? team->status : TESS_ERR_PEER;
        if (from && !clean_peak_is_better(&other, chosen)) continue;
        *chosen = other;
        from = told;
    }
    memcpy(team->value, from + sizeof own, values);
cleanup:
    return status;
}

static bool ends_at(const loop_team *team, const clean_peak *chosen)
{
    const clean_loop *loop = team->loop;
    const double peak = fabs(chosen->value);
    if (chosen->index < 0 || peak <= loop->until || peak > loop->diverged) return true;
    if (chosen->value < 0 && team->work->setup->opts.stop_negative) return true;
    return loop->iterations >= loop->most;
}

static void set_component(loop_team *team, int64_t index)
{
    const clean_setup *setup = team->work->setup;
    const int64_t nx = setup->images.nx;
    const int place = clean_place_of(setup, index);
    const bool is_point = !(setup->scale_px[team->loop->scale] > 0);
    team->psf_place = clean_psf_place(setup, place);
    team->component = (cpu_component){
        .x = index % nx,
        .y = index / nx,
        .num_layers = team->list->num_layers,
        .value = team->value,
        .seen = is_point ? clean_borders_seen(&setup->borders, place) : NULL};
}

/* Chooses a candidate and adds its component. Called by one thread. */
static void begin_iteration(loop_team *team)
{
    clean_loop *loop = team->loop;
    clean_peak chosen = {0, -1};
    const tess_status status = choose(team, &chosen);
    loop->peak = chosen;
    team->done = status != TESS_OK || ends_at(team, &chosen);
    if (status != TESS_OK) team->status = status;
    if (team->done) return;
    set_component(team, chosen.index);
    for (int i = 0; i < team->list->num_layers; ++i)
        team->value[i] *= loop->gain;
    cpu_layers_flux(team->work, team->noise, team->value, team->flux);
    /* other ranks learn of a failure when they choose the next candidate */
    team->status = clean_components_add(team->found, chosen.index, team->flux);
    ++loop->iterations;
    if (loop->progress && loop->iterations % TELL_EACH == 0)
        loop->progress(loop->context, loop->iterations, fabs(chosen.value));
}

/* Subtracts the component from all layers, which are sums, at the candidates of a
 * block. Returns the largest value that is left. */
static double subtract_sums(const loop_team *team, int64_t block)
{
    const cpu_list *list = team->list;
    const clean_work *work = team->work;
    return work->vector->subtract_sums[work->is_double](
        list->run + list->block[block], list->block[block + 1] - list->block[block],
        team->psf, &team->component, list->factor, work->setup->opts.no_negative,
        list->value);
}

/* Subtracts the PSF of a layer's image times the layer's value. */
static void subtract_layer(const loop_team *team, int64_t block, int layer)
{
    const cpu_list *list = team->list;
    const clean_work *work = team->work;
    work->vector->subtract[work->is_double](
        list->run + list->block[block], list->block[block + 1] - list->block[block],
        &team->psf[team->psf_place * list->num_layers + layer], &team->component, layer,
        cpu_list_value(list, layer, 0));
}

/* Subtracts the component at the candidates of a block. Returns the largest value that
 * is left. */
static double subtract_block(const loop_team *team, int64_t block)
{
    const clean_work *work = team->work;
    if (work->layers.basis) return subtract_sums(team, block);
    for (int i = 0; i < team->list->num_layers; ++i)
        if (cpu_layer_has_data(work, i)) subtract_layer(team, block, i);
    return largest_of_block(team, block);
}

static void work_on(loop_team *team, int thread)
{
#pragma omp single
    team->threads = tess_omp_threads();
    const int64_t blocks = team->list->num_blocks;
    const int64_t begin = blocks * thread / team->threads;
    const int64_t end = blocks * (thread + 1) / team->threads;
    for (int64_t b = begin; b < end; ++b)
        team->largest[b] = largest_of_block(team, b);
    team->own[thread] = best_of(team, begin, end);
    for (;;) {
#pragma omp barrier
#pragma omp master
        begin_iteration(team);
#pragma omp barrier
        if (team->done) break;
        for (int64_t b = begin; b < end; ++b)
            team->largest[b] = subtract_block(team, b);
        team->own[thread] = best_of(team, begin, end);
    }
}

static int threads_for(const clean_work *work, const cpu_list *list)
{
    const int64_t useful = 1 + list->count / EACH_THREAD;
    return useful < work->setup->opts.threads ? (int)useful : work->setup->opts.threads;
}

static int64_t most_of_blocks(const cpu_list *list)
{
    int64_t most = 1, first, end;
    for (int64_t b = 0; b < list->num_blocks; ++b) {
        block_range(list, b, &first, &end);
        if (end - first > most) most = end - first;
    }
    return most;
}

static tess_status team_allocate(loop_team *team)
{
    tess_status status = TESS_OK;
    const int layers = team->list->num_layers;
    const int images = team->work->setup->images.num_images;
    const int ranks = tess_comm_size(team->work->setup->comm);
    team->told_bytes = (int64_t)(sizeof(clean_peak) + (size_t)layers * sizeof(double));
    const int psfs =
        team->work->layers.basis ? 1 : layers * clean_num_psf_places(team->work->setup);
    team->psf = tess_alloc_zero(psfs, sizeof *team->psf);
    team->largest = tess_alloc_zero(team->list->num_blocks, sizeof *team->largest);
    team->own = tess_alloc_zero(team->threads, sizeof *team->own);
    team->told = tess_alloc_zero(ranks + 1, (size_t)team->told_bytes);
    team->value = tess_alloc_zero(layers, sizeof *team->value);
    team->flux = tess_alloc_zero(images, sizeof *team->flux);
    team->noise = tess_alloc_zero(team->work->setup->join.num_pol, sizeof *team->noise);
    team->most = most_of_blocks(team->list);
    team->joined = tess_alloc(2 * team->threads * team->most, sizeof *team->joined);
    if (!team->psf || !team->largest || !team->own || !team->told || !team->flux ||
        !team->noise || !team->value || !team->joined)
        TESS_FAIL(TESS_ERR_ALLOC, "sub-minor loop");
    for (int i = 0; i < psfs; ++i)
        team->psf[i] = cpu_window_psf(team->work->window, i);
cleanup:
    return status;
}

static void team_free(loop_team *team)
{
    tess_free(team->psf);
    tess_free(team->largest);
    tess_free(team->own);
    tess_free(team->told);
    tess_free(team->value);
    tess_free(team->flux);
    tess_free(team->noise);
    tess_free(team->joined);
}

/* Measures the noise of values that are multiplied by the gain. Collective. */
static tess_status find_noise(loop_team *team)
{
    tess_status status = TESS_OK;
    const clean_work *work = team->work;
    TESS_TRY(cpu_channel_noise(work, &work->slot[work->kept], team->noise));
    for (int p = 0; p < work->setup->join.num_pol; ++p)
        team->noise[p] *= team->loop->gain * team->loop->gain;
cleanup:
    return status;
}

tess_status cpu_cycle_list(clean_work *work, clean_loop *loop, clean_components *found)
{
    tess_status status = TESS_OK;
    tess_comm *comm = work->setup->comm;
    cpu_list list = {0};
    loop_team team = {.work = work, .loop = loop, .list = &list, .found = found};
    TESS_TRY(cpu_make_images(work, &work->slot[work->kept]));
    TESS_TRY(cpu_window_fill(work, loop->scale));
    const double start = tess_time_now();
    TESS_TRY(cpu_list_make(work, loop->scale, loop->list_from, &list));
    team.threads = threads_for(work, &list);
    TESS_TRY(tess_comm_agree(comm, team_allocate(&team)));
    TESS_TRY(find_noise(&team));
#pragma omp parallel num_threads(team.threads)
    {
        work_on(&team, tess_omp_thread());
    }
    TESS_TRY(tess_comm_agree(comm, team.status));
    loop->seconds = tess_time_now() - start;
cleanup:
    team_free(&team);
    cpu_list_free(&list);
    return status;
}

/* ---- models ---- */

/* Adds a row of the kernel, times the flux, to columns of a model row. */
static void add_row(double *line, int64_t nx, int64_t x, int64_t half,
                    const double *kernel, double flux)
{
    const int64_t begin = x - half < 0 ? -x : -half;
    const int64_t end = x + half >= nx ? nx - 1 - x : half;
    for (int64_t dx = begin; dx <= end; ++dx)
        line[x + dx] += flux * kernel[dx + half];
}

/* Models of some images. */
typedef struct model_part {
    int first, num;
    const tess_rows *view; /* [num] */
} model_part;

/* Adds components to one row. They are sorted by pixel, so that the sum of a pixel is
 * always in the same order. */
static void add_to_row(const tess_clean_images *images, int64_t row,
                       const clean_components *merged, int64_t half,
                       const double *kernel, const model_part *to)
{
    const int64_t nx = images->nx, y = images->row_first + row;
    const int64_t low = y - half < 0 ? 0 : y - half;
    const int64_t end = clean_components_from(merged, (y + half + 1) * nx);
    for (int64_t c = clean_components_from(merged, low * nx); c < end; ++c) {
        const int64_t cx = merged->index[c] % nx, cy = merged->index[c] / nx;
        const double *line = kernel + (y - cy + half) * (2 * half + 1);
        for (int k = 0; k < to->num; ++k)
            add_row((double *)to->view[k].value + row * nx, nx, cx, half, line,
                    merged->flux[c * merged->num_images + to->first + k]);
    }
}

tess_status cpu_add_scale(const clean_setup *setup, int scale,
                          const clean_components *merged, int first, int num,
                          const tess_rows *view)
{
    tess_status status = TESS_OK;
    const model_part to = {first, num, view};
    const double alpha = setup->scale_px[scale];
    const int64_t half = clean_kernel_half(setup->opts.shape, alpha);
    double *kernel = tess_alloc((2 * half + 1) * (2 * half + 1), sizeof *kernel);
    if (!kernel) TESS_FAIL(TESS_ERR_ALLOC, "kernel of scale %g", alpha);
    clean_kernel_fill(setup->opts.shape, alpha, kernel);
#pragma omp parallel for schedule(dynamic, 8) num_threads(setup->opts.threads)
    for (int64_t row = 0; row < setup->images.num_rows; ++row)
        add_to_row(&setup->images, row, merged, half, kernel, &to);
cleanup:
    tess_free(kernel);
    return status;
}

tess_status cpu_add(clean_work *work, const clean_components *merged,
                    const tess_rows *model)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = work->setup;
    const int images = merged->num_images;
    tess_rows *view = tess_alloc_zero(images, sizeof *view);
    if (!view) TESS_FAIL(TESS_ERR_ALLOC, "models");
    for (int k = 0; k < images; ++k)
        TESS_TRY(tess_rows_edit(&model[k], true, &view[k]));
    for (int s = 0; s < setup->num_scales; ++s)
        if (merged[s].count > 0)
            TESS_TRY(cpu_add_scale(setup, s, &merged[s], 0, images, view));
    for (int k = 0; k < images; ++k)
        TESS_TRY(tess_rows_put_back(&model[k], &view[k]));
cleanup:
    for (int k = 0; view && k < images; ++k)
        tess_rows_free(&view[k]);
    tess_free(view);
    return status;
}
