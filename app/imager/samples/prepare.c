/* Makes samples for the gridder from a block of a file: forms polarisations, applies
 * flags and limits, and rotates the phase centre. */
#include "prepare.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "tess_const.h"
#include "tess_mem.h"
#include "tess_samples.h"
#include "tess_sincos.h"

void tess_recipe_uvw(const tess_recipe *recipe, const double uvw_m[3],
                     double moved_m[3])
{
    for (int i = 0; i < 3; ++i) {
        moved_m[i] = uvw_m[i];
        if (!recipe->rotate) continue;
        moved_m[i] = 0;
        for (int k = 0; k < 3; ++k)
            moved_m[i] += recipe->rotation[i][k] * uvw_m[k];
    }
}

/* V = Σ S exp(2πi b·(s − s0)) with b·s0 = w: moving the centre to s1 multiplies it by
 * exp(2πi (w − w')), and turning it from there by exp(−2πi(u' l + v' m + w'(n − 1))).
 */
void tess_rotation_phase(const tess_recipe *recipe, const double uvw_m[3],
                         double inv_lambda, double *re, double *im)
{
    double moved_m[3];
    tess_recipe_uvw(recipe, uvw_m, moved_m);
    double path_m = moved_m[2] - uvw_m[2];
    for (int k = 0; recipe->turns && k < 3; ++k)
        path_m += recipe->turn[k] * moved_m[k];
    tess_sincos_turns(path_m * inv_lambda, im, re);
}

/* Good sample of one polarisation: its value and weight; else the reason. */
typedef struct mixed {
    double re, im, weight;
    int ignored; /* -1 when good */
} mixed;

/* Returns the mean of the weights of the hands that are good, in the precision of
 * weigh_plain(). */
static float mean_of_hands(const tess_pol_mix *mix, const float *weight)
{
    double sum = 0;
    int count = 0;
    for (int k = 0; k < mix->num_hands; ++k) {
        const float w = weight[mix->hand[k]];
        if (!(w > 0) || !isfinite(w)) continue;
        sum += (double)w;
        ++count;
    }
    return count > 0 ? (float)(sum / count) : 0;
}

/* Value and weight of one polarisation from the correlations; a sample is good when all
 * correlations it needs are, and its weight is the smallest of theirs, or the mean of
 * the parallel hands'. */
static mixed mix_sample(const tess_pol_mix *mix, const float *vis, const float *weight)
{
    mixed out = {.weight = INFINITY, .ignored = mix->num ? -1 : TESS_IGNORED_FLAGGED};
    for (int k = 0; k < mix->num; ++k) {
        const int at = mix->index[k];
        const double a = creal(mix->coefficient[k]), b = cimag(mix->coefficient[k]);
        const double re = (double)vis[2 * at], im = (double)vis[2 * at + 1];
        const double w = (double)weight[at];
        if (weight[at] == TESS_WEIGHT_FLAGGED)
            out.ignored = TESS_IGNORED_FLAGGED;
        else if (!isfinite(w) || !isfinite(re) || !isfinite(im)) {
            if (out.ignored != TESS_IGNORED_FLAGGED)
                out.ignored = TESS_IGNORED_NOT_FINITE;
        } else if (!(w > 0)) {
            if (out.ignored < 0) out.ignored = TESS_IGNORED_WEIGHT;
        }
        out.re += a * re - b * im;
        out.im += a * im + b * re;
        out.weight = fmin(out.weight, w);
    }
    if (mix->num_hands == 0) return out;
    out.weight = (double)mean_of_hands(mix, weight);
    if (out.ignored < 0 && !(out.weight > 0)) out.ignored = TESS_IGNORED_WEIGHT;
    return out;
}

static void store(tess_samples *samples, int64_t sample, int pol, const mixed *value,
                  double phase_re, double phase_im)
{
    const int64_t at = sample * samples->num_pol + pol;
    const double re =
        value->ignored < 0 ? value->re * phase_re - value->im * phase_im : 0;
    const double im =
        value->ignored < 0 ? value->re * phase_im + value->im * phase_re : 0;
    if (samples->is_double) {
        ((double *)samples->vis)[2 * at] = re;
        ((double *)samples->vis)[2 * at + 1] = im;
    } else {
        ((float *)samples->vis)[2 * at] = (float)re;
        ((float *)samples->vis)[2 * at + 1] = (float)im;
    }
}

static void store_weight(tess_samples *samples, int64_t sample, int which,
                         double weight)
{
    const int64_t at = sample * samples->num_weight + which;
    if (samples->is_double)
        ((double *)samples->weight)[at] = weight;
    else
        ((float *)samples->weight)[at] = (float)weight;
}

/* A row of a block, and where its samples go. */
typedef struct row_place {
    int64_t row;
    double uvw_m[3]; /* turned to the centre of the images */
    int64_t first;   /* sample */
} row_place;

/* Prepares the sample of channel c, and returns whether an image uses it. `why` is the
 * reason why no image may use it, or -1, and becomes the reason of the first image or,
 * if images share a weight, of the first that may not use it. */
static bool prepare_sample(const tess_recipe *recipe, const tess_vis_block *block,
                           const row_place *place, int64_t c, tess_samples *samples,
                           int *why)
{
    const int64_t at = (place->row * block->num_chan + c) * block->num_corr;
    const int64_t first = place->first;
    const bool wanted = !recipe->chan_wanted || recipe->chan_wanted[c];
    const int reason = *why;
    double phase_re = 1, phase_im = 0, smallest = INFINITY;
    bool used = false;
    if (recipe->rotate)
        tess_rotation_phase(recipe, block->uvw_m + 3 * place->row,
                            recipe->inv_lambda[c], &phase_re, &phase_im);
    for (int p = 0; p < recipe->num_pol; ++p) {
        mixed value =
            mix_sample(&recipe->mix[p], block->vis + 2 * at, block->weight + at);
        if (reason >= 0 && value.ignored < 0) value.ignored = reason;
        if (!wanted) value.ignored = TESS_NUM_IGNORED;
        if (value.ignored >= 0 && (p == 0 || (recipe->shared_weight && *why < 0)))
            *why = value.ignored;
        used = used || value.ignored < 0;
        /* undo the rotation's inverse: conj, because tess_rotation_phase leads back */
        store(samples, first + c, p, &value, phase_re, -phase_im);
        const double weight = value.ignored < 0 ? value.weight : 0;
        smallest = fmin(smallest, weight);
        if (!recipe->shared_weight) store_weight(samples, first + c, p, weight);
    }
    if (recipe->shared_weight) store_weight(samples, first + c, 0, smallest);
    return recipe->shared_weight ? smallest > 0 : used;
}

/* Prepares one row; returns the number of good visibilities in it. */
static int64_t prepare_row(const tess_recipe *recipe, const tess_vis_block *block,
                           const row_place *place, tess_samples *samples,
                           int64_t ignored[TESS_NUM_IGNORED], double *beyond)
{
    int64_t good = 0;
    const double *uvw_m = place->uvw_m;
    const bool autocorrelation =
        block->antenna1[place->row] == block->antenna2[place->row];
    for (int64_t c = 0; c < block->num_chan; ++c) {
        const double inv_lambda = recipe->inv_lambda[c];
        int why = autocorrelation ? TESS_IGNORED_AUTOCORR
                                  : uv_range_ignores(&recipe->range, uvw_m, inv_lambda);
        if (prepare_sample(recipe, block, place, c, samples, &why)) {
            ++good;
            continue;
        }
        if (why >= 0 && why < TESS_NUM_IGNORED) ++ignored[why];
        if (why == TESS_IGNORED_BEYOND_UV)
            *beyond = fmax(*beyond, uv_range_reach(uvw_m, inv_lambda));
    }
    return good;
}

/* ---- rows of which every sample is good ---- */

/* What the rows of a block have in common, if they can be plain at all: those are made
 * without asking for reasons, to the same numbers. */
typedef struct plain_block {
    bool possible;
    double inv_min, inv_max; /* of the channels */
} plain_block;

static plain_block plain_block_of(const tess_recipe *recipe,
                                  const tess_vis_block *block)
{
    plain_block plain = {.possible = !recipe->rotate && !recipe->chan_wanted,
                         .inv_min = INFINITY};
    for (int p = 0; p < recipe->num_pol; ++p)
        if (recipe->mix[p].num == 0) plain.possible = false;
    for (int64_t c = 0; c < block->num_chan; ++c) {
        plain.inv_min = fmin(plain.inv_min, recipe->inv_lambda[c]);
        plain.inv_max = fmax(plain.inv_max, recipe->inv_lambda[c]);
    }
    return plain;
}

/* All values are finite, and all weights positive. */
static bool all_good(const float *vis, const float *weight, int64_t count)
{
    int bad = 0; /* no early end: so it vectorises */
    for (int64_t k = 0; k < count; ++k)
        bad |= !(weight[k] > 0) | (weight[k] > FLT_MAX);
    for (int64_t k = 0; k < 2 * count; ++k)
        bad |= !(fabsf(vis[k]) <= FLT_MAX);
    return !bad;
}

/* |u|, |v| and their length grow with 1/λ: the channels at the ends tell of all. */
static bool is_plain(const plain_block *plain, const tess_recipe *recipe,
                     const tess_vis_block *block, int64_t row, const double uvw_m[3])
{
    const int64_t count = block->num_chan * block->num_corr;
    return plain->possible && block->antenna1[row] != block->antenna2[row] &&
           uv_range_ignores(&recipe->range, uvw_m, plain->inv_min) < 0 &&
           uv_range_ignores(&recipe->range, uvw_m, plain->inv_max) < 0 &&
           all_good(block->vis + 2 * row * count, block->weight + row * count, count);
}

/* Polarisation p of a plain row, in the precision of `is_double`. */
static inline void mix_plain(const tess_recipe *recipe, const tess_vis_block *block,
                             int64_t row, int p, tess_samples *samples, int64_t first,
                             bool is_double)
{
    const tess_pol_mix *mix = &recipe->mix[p];
    const int64_t corrs = block->num_corr, at = row * block->num_chan * corrs;
    const int other = mix->index[mix->num - 1], pols = samples->num_pol;
    const double a[2] = {creal(mix->coefficient[0]), cimag(mix->coefficient[0])};
    const double none = mix->num > 1 ? 1 : 0;
    const double b[2] = {none * creal(mix->coefficient[mix->num - 1]),
                         none * cimag(mix->coefficient[mix->num - 1])};
    const float *x = block->vis + 2 * (at + mix->index[0]);
    const float *y = block->vis + 2 * (at + other);
    const int64_t to = first * pols + p;
    double *out = (double *)samples->vis + 2 * to;
    float *out_single = (float *)samples->vis + 2 * to;
    for (int64_t c = 0; c < block->num_chan; ++c) {
        const double xr = (double)x[2 * corrs * c], xi = (double)x[2 * corrs * c + 1];
        const double yr = (double)y[2 * corrs * c], yi = (double)y[2 * corrs * c + 1];
        const double re = (a[0] * xr - a[1] * xi) + (b[0] * yr - b[1] * yi);
        const double im = (a[0] * xi + a[1] * xr) + (b[0] * yi + b[1] * yr);
        if (is_double) {
            out[2 * pols * c] = re;
            out[2 * pols * c + 1] = im;
        } else {
            out_single[2 * pols * c] = (float)re;
            out_single[2 * pols * c + 1] = (float)im;
        }
    }
}

/* Its weight: the smallest of the correlations, or the mean of the parallel hands, and,
 * where polarisations share it, the smallest of theirs. */
static inline void weigh_plain(const tess_recipe *recipe, const tess_vis_block *block,
                               int64_t row, int p, tess_samples *samples, int64_t first,
                               bool is_double)
{
    const tess_pol_mix *mix = &recipe->mix[p];
    const int64_t corrs = block->num_corr;
    const float *w = block->weight + row * block->num_chan * corrs;
    const int hands = mix->num_hands;
    const int one = hands ? mix->hand[0] : mix->index[0];
    const int other = hands ? mix->hand[hands - 1] : mix->index[mix->num - 1];
    const int step = samples->num_weight;
    const int64_t to = first * step + (recipe->shared_weight ? 0 : p);
    double *out = (double *)samples->weight + to;
    float *out_single = (float *)samples->weight + to;
    for (int64_t c = 0; c < block->num_chan; ++c) {
        const float v = w[corrs * c + one], u = w[corrs * c + other];
        float least = hands ? 0.5f * v + 0.5f * u : u < v ? u : v;
        if (recipe->shared_weight && p > 0) {
            const float so_far =
                is_double ? (float)out[step * c] : out_single[step * c];
            least = so_far < least ? so_far : least;
        }
        if (is_double)
            out[step * c] = (double)least;
        else
            out_single[step * c] = least;
    }
}

static void prepare_plain(const tess_recipe *recipe, const tess_vis_block *block,
                          int64_t row, tess_samples *samples, int64_t first)
{
    for (int p = 0; p < recipe->num_pol; ++p) {
        if (samples->is_double) {
            mix_plain(recipe, block, row, p, samples, first, true);
            weigh_plain(recipe, block, row, p, samples, first, true);
        } else {
            mix_plain(recipe, block, row, p, samples, first, false);
            weigh_plain(recipe, block, row, p, samples, first, false);
        }
    }
}

/* ---- blocks ---- */

/* Rows kept so far move down over rows without a good sample. */
static void close_gaps(tess_samples *samples, double *row_time, int64_t row_first,
                       int64_t num_rows, const int64_t *good)
{
    int64_t out = row_first;
    const int64_t vis_bytes = (samples->is_double ? 16 : 8) * samples->num_pol;
    const int64_t weight_bytes = (samples->is_double ? 8 : 4) * samples->num_weight;
    for (int64_t k = 0; k < num_rows; ++k) {
        const int64_t row = row_first + k;
        if (good[k] == 0) continue;
        if (row != out) {
            const int64_t from = samples->vis_first[row], n = samples->num_chan[row];
            const int64_t to =
                out == 0 ? 0 : samples->vis_first[out - 1] + samples->num_chan[out - 1];
            memmove((char *)samples->vis + to * vis_bytes,
                    (char *)samples->vis + from * vis_bytes, (size_t)(n * vis_bytes));
            memmove((char *)samples->weight + to * weight_bytes,
                    (char *)samples->weight + from * weight_bytes,
                    (size_t)(n * weight_bytes));
            memcpy(samples->uvw_m + 3 * out, samples->uvw_m + 3 * row,
                   3 * sizeof(double));
            samples->chan_base[out] = samples->chan_base[row];
            samples->num_chan[out] = samples->num_chan[row];
            samples->vis_first[out] = to;
            if (samples->origins) samples->origin[out] = samples->origin[row];
            if (row_time) row_time[out] = row_time[row];
        }
        ++out;
    }
    samples->num_rows = out;
    samples->num_vis =
        out == 0 ? 0 : samples->vis_first[out - 1] + samples->num_chan[out - 1];
}

/* The number of the step of a time: times in files are rounded. */
static int64_t step_of(const tess_steps *steps, double time)
{
    int64_t low = 0, high = steps->num;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        *(time >= steps->time[middle] - 5e-4 ? &low : &high) = middle;
    }
    return low;
}

bool tess_recipe_wants(const tess_recipe *recipe, double time)
{
    if (time < recipe->time_first || time >= recipe->time_end) return false;
    return !recipe->steps || step_of(recipe->steps, time) % 2 == recipe->steps->first;
}

static bool is_among(const tess_row_origins *of, int32_t antenna)
{
    return antenna >= 0 && antenna < of->num_antennas;
}

/* Checks that rows name antennas of their observation. */
static tess_status check_antennas(const tess_row_origins *of,
                                  const tess_vis_block *block)
{
    tess_status status = TESS_OK;
    for (int64_t row = 0; of->origins && row < block->num_rows; ++row)
        if (!is_among(of, block->antenna1[row]) || !is_among(of, block->antenna2[row]))
            TESS_FAIL(TESS_ERR_INPUT,
                      "row %lld: baseline %d-%d has an antenna that is not in the list "
                      "of %d antennas",
                      (long long)(block->row_first + row), block->antenna1[row],
                      block->antenna2[row], of->num_antennas);
cleanup:
    return status;
}

/* The number of the origin of a row of the block. */
static int32_t origin_of(const tess_row_origins *of, const tess_vis_block *block,
                         int64_t row)
{
    const tess_origin origin = {.antenna1 = of->antenna[block->antenna1[row]],
                                .antenna2 = of->antenna[block->antenna2[row]],
                                .interval = tess_origins_interval(
                                    of->origins, of->stretch, block->time_mjd_s[row]),
                                .field = of->field};
    return tess_origin_number(of->origins, &origin);
}

/* Fills in what all samples of a row share. `at`: the row among those of samples. */
static void begin_row(const tess_recipe *recipe, const tess_vis_block *block,
                      const row_place *place, int64_t at, tess_samples *samples)
{
    memcpy(samples->uvw_m + 3 * at, place->uvw_m, sizeof place->uvw_m);
    samples->chan_base[at] = recipe->chan_base;
    samples->num_chan[at] = (int32_t)block->num_chan;
    samples->vis_first[at] = place->first;
    if (samples->origins)
        samples->origin[at] = origin_of(&recipe->origins, block, place->row);
}

/* A block on its way to samples, of which its first row becomes row `row_first` and its
 * first visibility `vis_first`. */
typedef struct block_work {
    const tess_recipe *recipe;
    const tess_vis_block *block;
    plain_block plain;
    tess_samples *samples;
    double *row_time; /* of the samples, or NULL */
    int64_t row_first, vis_first;
} block_work;

/* Prepares a row of the block if the recipe wants it; returns the number of good
 * visibilities in it. */
static int64_t prepare_any(const block_work *work, int64_t row,
                           int64_t ignored[TESS_NUM_IGNORED], double *beyond)
{
    const tess_recipe *recipe = work->recipe;
    const tess_vis_block *block = work->block;
    const int64_t chans = block->num_chan, at = work->row_first + row;
    row_place place = {.row = row, .first = work->vis_first + row * chans};
    const double time = block->time_mjd_s[row];
    tess_recipe_uvw(recipe, block->uvw_m + 3 * row, place.uvw_m);
    if (!tess_recipe_wants(recipe, time)) return 0;
    begin_row(recipe, block, &place, at, work->samples);
    if (work->row_time) work->row_time[at] = time;
    if (!TESS_IS_BASELINE(place.uvw_m)) {
        ignored[TESS_IGNORED_NOT_FINITE] += chans;
        return 0;
    }
    if (!is_plain(&work->plain, recipe, block, row, place.uvw_m))
        return prepare_row(recipe, block, &place, work->samples, ignored, beyond);
    prepare_plain(recipe, block, row, work->samples, place.first);
    return chans;
}

tess_status tess_prepare_block(const tess_recipe *recipe, const tess_vis_block *block,
                               int num_threads, tess_samples *samples, double *row_time,
                               tess_profile *profile)
{
    tess_status status = TESS_OK;
    const int64_t rows = block->num_rows, chans = block->num_chan;
    const int64_t row_first = samples->num_rows, vis_first = samples->num_vis;
    const block_work work = {.recipe = recipe,
                             .block = block,
                             .plain = plain_block_of(recipe, block),
                             .samples = samples,
                             .row_time = row_time,
                             .row_first = row_first,
                             .vis_first = vis_first};
    int64_t ignored[TESS_NUM_IGNORED] = {0}, total_good = 0;
    double beyond = 0;
    int64_t *good = tess_alloc(rows, sizeof *good);
    if (!good) TESS_FAIL(TESS_ERR_ALLOC, "rows of a block");
    TESS_TRY(check_antennas(&recipe->origins, block));
    TESS_TRY(tess_samples_reserve(samples, row_first + rows, vis_first + rows * chans));
#pragma omp parallel for num_threads(num_threads) schedule(static) \
        reduction(+ : total_good, ignored[:TESS_NUM_IGNORED]) reduction(max : beyond)
    for (int64_t row = 0; row < rows; ++row) {
        good[row] = prepare_any(&work, row, ignored, &beyond);
        total_good += good[row];
    }
    close_gaps(samples, row_time, row_first, rows, good);
    if (profile) {
        profile->visibilities += total_good;
        for (int k = 0; k < TESS_NUM_IGNORED; ++k)
            profile->ignored[k] += ignored[k];
        profile->beyond_uv_lambda = fmax(profile->beyond_uv_lambda, beyond);
    }
cleanup:
    tess_free(good);
    return status;
}

tess_status tess_prepare_positions(const tess_recipe *recipe,
                                   const tess_vis_block *block, tess_samples *samples,
                                   int64_t *block_row)
{
    tess_status status = TESS_OK;
    const int64_t chans = block->num_chan;
    TESS_TRY(check_antennas(&recipe->origins, block));
    TESS_TRY(tess_samples_reserve(samples, samples->num_rows + block->num_rows,
                                  samples->num_vis + block->num_rows * chans));
    for (int64_t row = 0; row < block->num_rows; ++row) {
        const int64_t at = samples->num_rows;
        row_place place = {.row = row, .first = samples->num_vis};
        tess_recipe_uvw(recipe, block->uvw_m + 3 * row, place.uvw_m);
        if (!TESS_IS_BASELINE(place.uvw_m)) continue;
        begin_row(recipe, block, &place, at, samples);
        block_row[at] = row;
        samples->num_vis += chans;
        ++samples->num_rows;
    }
cleanup:
    return status;
}
