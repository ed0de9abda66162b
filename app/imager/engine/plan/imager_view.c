/* Makes what a target grids of correlations, and correlations of what is predicted of a
 * target's model, with factors for each row. */
#include "imager_targets.h"

#include <math.h>
#include <string.h>

#include "tess_mem.h"
#include "tess_real.h"
#include "tess_samples.h"
#include "tess_sincos.h"

/* What is made of each row. */
typedef struct view_work {
    const imager_job *job;
    imager_factors *factors;
    const tess_samples *from, *less;
    double scale;
    tess_samples *to;
} view_work;

/* Sets the values of one sample, with factor[pols][corrs]. */
static inline void apply_to_sample(const view_work *work, int64_t sample,
                                   const double complex *factor, bool is_double,
                                   int pols, int corrs)
{
    const tess_samples *less = work->less;
    double value[2 * TESS_MAX_POL][2];
    for (int k = 0; k < 2 * corrs; ++k) /* `to` may be `from` */
        value[k / 2][k % 2] =
            tess_real_at(work->from->vis, is_double, 2 * sample * corrs + k);
    for (int p = 0; p < pols; ++p, factor += corrs) {
        const int64_t at = 2 * (sample * pols + p);
        double re = 0, im = 0;
        for (int k = 0; k < corrs; ++k) {
            const double a = creal(factor[k]), b = cimag(factor[k]);
            re += a * value[k][0] - b * value[k][1];
            im += a * value[k][1] + b * value[k][0];
        }
        if (less) {
            re = tess_real_at(less->vis, is_double, at) - work->scale * re;
            im = tess_real_at(less->vis, is_double, at + 1) - work->scale * im;
        }
        tess_real_set(work->to->vis, is_double, at, re);
        tess_real_set(work->to->vis, is_double, at + 1, im);
    }
}

static inline void apply_to_samples(const view_work *work, int64_t row,
                                    const double complex *factor, bool is_double,
                                    int pols, int corrs)
{
    const int64_t first = work->from->vis_first[row];
    for (int32_t c = 0; c < work->from->num_chan[row]; ++c)
        apply_to_sample(work, first + c, factor + (int64_t)c * pols * corrs, is_double,
                        pols, corrs);
}

/* Loops over the numbers of values that are used most are compiled for these. */
static void apply_to_row(const view_work *work, int64_t row, double complex *factor)
{
    const tess_samples *from = work->from;
    const int pols = work->to->num_pol, corrs = from->num_pol;
    work->factors(work->job->view.context, work->job->targets.aim, from, row, factor);
    if (!from->is_double && pols == 1 && corrs == 2)
        apply_to_samples(work, row, factor, false, 1, 2);
    else if (!from->is_double && pols == 1 && corrs == 1)
        apply_to_samples(work, row, factor, false, 1, 1);
    else if (!from->is_double && pols == 2 && corrs == 1)
        apply_to_samples(work, row, factor, false, 2, 1);
    else
        apply_to_samples(work, row, factor, from->is_double, pols, corrs);
}

tess_status imager_view_apply(const imager_job *job, imager_factors *factors,
                              const tess_samples *from, const tess_samples *less,
                              double scale, tess_samples *to)
{
    tess_status status = TESS_OK;
    const view_work work = {job, factors, from, less, scale, to};
    const int64_t most = tess_samples_longest_row(from, 0, from->num_rows);
    bool complete = true;
#pragma omp parallel num_threads(job->layout->threads) reduction(&& : complete)
    {
        double complex *factor =
            tess_alloc(most * to->num_pol * from->num_pol, sizeof *factor);
        complete = factor != NULL;
#pragma omp for schedule(static)
        for (int64_t row = 0; row < from->num_rows; ++row)
            if (factor) apply_to_row(&work, row, factor);
        tess_free(factor);
    }
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "factors of a row of visibilities");
cleanup:
    return status;
}

void imager_view_want(const imager_job *job, const tess_samples *samples, bool *wanted)
{
    const imager_view *view = &job->view;
#pragma omp parallel for num_threads(job->layout->threads) schedule(static)
    for (int64_t row = 0; row < samples->num_rows; ++row)
        wanted[row] = view->counts(view->context, job->targets.aim, samples, row);
}

/* Copies a row to the end of others, which have room for it. */
static void copy_row(const tess_samples *from, int64_t row, tess_samples *to)
{
    const int64_t next = to->num_rows++, bytes = from->is_double ? 8 : 4;
    const int64_t vis = bytes * 2 * from->num_pol, weight = bytes * from->num_weight;
    const size_t count = (size_t)from->num_chan[row];
    memcpy(to->uvw_m + 3 * next, from->uvw_m + 3 * row, 3 * sizeof *to->uvw_m);
    to->chan_base[next] = from->chan_base[row];
    to->num_chan[next] = from->num_chan[row];
    to->vis_first[next] = to->num_vis;
    if (to->origin) to->origin[next] = from->origin[row];
    memcpy((char *)to->vis + to->num_vis * vis,
           (const char *)from->vis + from->vis_first[row] * vis, count * (size_t)vis);
    memcpy((char *)to->weight + to->num_vis * weight,
           (const char *)from->weight + from->vis_first[row] * weight,
           count * (size_t)weight);
    to->num_vis += from->num_chan[row];
}

tess_status imager_view_copy(const imager_job *job, const tess_samples *samples,
                             tess_samples *to)
{
    tess_status status = TESS_OK;
    int64_t num_rows = 0, num_vis = 0;
    bool *wanted = tess_alloc(samples->num_rows, sizeof *wanted);
    if (!wanted) TESS_FAIL(TESS_ERR_ALLOC, "rows of a target");
    imager_view_want(job, samples, wanted);
    for (int64_t row = 0; row < samples->num_rows; ++row) {
        if (!wanted[row]) continue;
        ++num_rows;
        num_vis += samples->num_chan[row];
    }
    TESS_TRY(tess_samples_reserve(to, num_rows, num_vis));
    for (int64_t row = 0; row < samples->num_rows; ++row)
        if (wanted[row]) copy_row(samples, row, to);
cleanup:
    tess_free(wanted);
    return status;
}

tess_geom_phase imager_view_phase(const imager_job *job)
{
    const tess_geom *geom = &job->geom;
    const double l = geom->l0, m = geom->m0;
    const double turned_l = geom->turned_l, turned_m = geom->turned_m;
    const double nm1 = tess_geom_nm1(l * l + m * m) -
                       tess_geom_nm1(turned_l * turned_l + turned_m * turned_m);
    return (tess_geom_phase){l - turned_l, m - turned_m,
                             job->plan->opts.do_w ? nm1 : 0};
}

/* Multiplies all values of a row by responses, power[num_chan][num_pol]. */
static void times_power(const tess_samples *to, int64_t row, const double *power)
{
    const int64_t values = (int64_t)to->num_chan[row] * to->num_pol;
    const int64_t first = 2 * to->vis_first[row] * to->num_pol;
    for (int64_t k = 0; k < values; ++k)
        for (int64_t at = first + 2 * k; at < first + 2 * k + 2; ++at)
            tess_real_set(to->vis, to->is_double, at,
                          isfinite(power[k])
                              ? power[k] * tess_real_at(to->vis, to->is_double, at)
                              : 0);
}

/* Multiplies samples by their responses. */
static tess_status weigh_source(const imager_job *job, tess_samples *to)
{
    tess_status status = TESS_OK;
    const imager_view *view = &job->view;
    const int64_t most = tess_samples_longest_row(to, 0, to->num_rows);
    bool complete = true;
#pragma omp parallel num_threads(job->layout->threads) reduction(&& : complete)
    {
        double *power = tess_alloc(most * view->num_pol, sizeof *power);
        complete = power != NULL;
#pragma omp for schedule(static)
        for (int64_t row = 0; row < to->num_rows; ++row) {
            if (!power) continue;
            view->response(view->context, job->targets.aim, to, row, power);
            times_power(to, row, power);
        }
        tess_free(power);
    }
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "responses of a row of visibilities");
cleanup:
    return status;
}

static void set_source(const imager_job *job, tess_samples *to)
{
    const tess_geom_phase phase = imager_view_phase(job);
#pragma omp parallel for num_threads(job->layout->threads) schedule(static)
    for (int64_t row = 0; row < to->num_rows; ++row) {
        const double *uvw_m = to->uvw_m + 3 * row;
        const double path_m =
            uvw_m[0] * phase.l + uvw_m[1] * phase.m + uvw_m[2] * phase.nm1;
        int64_t at = 2 * to->vis_first[row] * to->num_pol;
        for (int32_t c = 0; c < to->num_chan[row]; ++c) {
            double im, re;
            tess_sincos_turns(path_m * to->inv_lambda[to->chan_base[row] + c], &im,
                              &re);
            for (int p = 0; p < to->num_pol; ++p, at += 2) {
                tess_real_set(to->vis, to->is_double, at, re);
                tess_real_set(to->vis, to->is_double, at + 1, im);
            }
        }
    }
}

tess_status imager_view_source(const imager_job *job, bool gains, tess_samples *to)
{
    set_source(job, to);
    return gains && job->view.response ? weigh_source(job, to) : TESS_OK;
}
