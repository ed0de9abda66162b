/* Runs the minor cycle of Steer, Dewdney & Ito (1984, A&A 137, 159, section 2): all
 * candidates that reach a share of the peak become components at once, so that extended
 * emission is not broken up into ripples. Their fluxes are scaled so that together they
 * lower the peak by the gain. */
#include <math.h>
#include <stdlib.h>

#include "cpu_list.h"
#include "cpu_loop.h"
#include "cpu_spectra.h"
#include "cpu_window.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Share of the peak from which a candidate is cleaned with it. */
static const double TRIM = 0.8;

typedef struct sdi {
    clean_work *work;
    clean_loop *loop;
    cpu_list list;
    cpu_psf psf;
    int64_t *chosen; /* [list.count] places in the list */
    double *flux;    /* [list.count] of those */
} sdi;

static double metric(const sdi *run, int64_t k)
{
    return run->list.value[k] * (run->list.factor ? run->list.factor[k] : 1);
}

static clean_peak find_peak(const sdi *run)
{
    const bool positive = run->work->setup->opts.no_negative;
    clean_peak best = {0, -1};
    for (int64_t k = 0; k < run->list.count; ++k) {
        const clean_peak peak = {metric(run, k), k};
        if (positive && peak.value < 0) continue;
        if (clean_peak_is_better(&peak, &best)) best = peak;
    }
    return best;
}

static bool ends_at(const sdi *run, const clean_peak *peak)
{
    const clean_loop *loop = run->loop;
    const double size = fabs(peak->value);
    if (peak->index < 0 || size <= loop->until || size > loop->diverged) return true;
    if (peak->value < 0 && run->work->setup->opts.stop_negative) return true;
    return loop->iterations >= loop->most;
}

/* The PSF of one candidate at another. */
static double psf_between(const sdi *run, int64_t from, int64_t to)
{
    const int64_t nx = run->work->setup->images.nx;
    const int64_t dx = run->list.index[to] % nx - run->list.index[from] % nx;
    const int64_t dy = run->list.index[to] / nx - run->list.index[from] / nx;
    const cpu_psf *psf = &run->psf;
    if (llabs(dx) > psf->half_x || llabs(dy) > psf->half_y) return 0;
    const void *row = psf->row[dy + psf->half_y];
    return run->work->is_double ? ((const double *)row)[dx + psf->half_x]
                                : (double)((const float *)row)[dx + psf->half_x];
}

/* Chooses the candidates that are cleaned with the peak; returns their number. */
static int64_t choose(sdi *run, const clean_peak *peak)
{
    const double *value = run->list.value;
    const double top = value[peak->index];
    const int64_t most = run->loop->most - run->loop->iterations;
    double at_peak = 0;
    int64_t count = 0;
    for (int64_t k = 0; k < run->list.count && count < most; ++k)
        if (value[k] / top >= TRIM) run->chosen[count++] = k;
    for (int64_t c = 0; c < count; ++c)
        at_peak +=
            value[run->chosen[c]] * psf_between(run, run->chosen[c], peak->index);
    const double own = top * psf_between(run, peak->index, peak->index);
    const double share = at_peak / own > 1 ? own / at_peak : 1;
    for (int64_t c = 0; c < count; ++c)
        run->flux[c] = run->loop->gain * share * value[run->chosen[c]];
    return count;
}

/* Adds a component at each chosen candidate, and subtracts its PSF from the list. */
static tess_status add_components(sdi *run, int64_t count, clean_components *found)
{
    tess_status status = TESS_OK;
    const clean_work *work = run->work;
    const int64_t nx = work->setup->images.nx;
    const cpu_list *list = &run->list;
    const int64_t runs = list->num_blocks > 0 ? list->block[list->num_blocks] : 0;
    for (int64_t c = 0; c < count; ++c) {
        const int64_t index = list->index[run->chosen[c]];
        TESS_TRY(clean_components_add(found, index, &run->flux[c]));
        const cpu_component component = {
            .x = index % nx, .y = index / nx, .num_layers = 1, .value = &run->flux[c]};
        work->vector->subtract[work->is_double](list->run, runs, &run->psf, &component,
                                                0, list->value);
    }
    run->loop->iterations += count;
cleanup:
    return status;
}

static tess_status iterate(sdi *run, clean_components *found)
{
    tess_status status = TESS_OK;
    run->chosen = tess_alloc(run->list.count, sizeof *run->chosen);
    run->flux = tess_alloc(run->list.count, sizeof *run->flux);
    if (!run->chosen || !run->flux) TESS_FAIL(TESS_ERR_ALLOC, "sub-minor loop");
    for (;;) {
        clean_peak peak = find_peak(run);
        const bool ends = ends_at(run, &peak);
        run->loop->peak =
            (clean_peak){peak.value, peak.index < 0 ? -1 : run->list.index[peak.index]};
        if (ends) break;
        TESS_TRY(add_components(run, choose(run, &peak), found));
    }
cleanup:
    tess_free(run->chosen);
    tess_free(run->flux);
    return status;
}

tess_status cpu_cycle_sdi(clean_work *work, clean_loop *loop, clean_components *found)
{
    tess_status status = TESS_OK;
    sdi run = {.work = work, .loop = loop};
    TESS_TRY(cpu_make_images(work, &work->slot[work->kept]));
    TESS_TRY(cpu_window_fill(work, loop->scale));
    const double start = tess_time_now();
    TESS_TRY(cpu_list_make(work, loop->scale, loop->list_from, &run.list));
    if (run.list.num_layers > 1 || run.list.divided)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--minor-cycle sdi cleans single images with less "
                  "than %d candidates a rank; use --minor-cycle list",
                  1 << 12);
    run.psf = cpu_window_psf(work->window, 0);
    TESS_TRY(tess_comm_agree(work->setup->comm, iterate(&run, found)));
    loop->seconds = tess_time_now() - start;
cleanup:
    cpu_list_free(&run.list);
    return status;
}
