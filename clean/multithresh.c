/* Finds masks of residual images by several thresholds (Kepley et al. 2020, PASP 132,
 * 024505). tess_multithresh.h has the algorithm. Regions and growth are found over
 * ranks in mask_regions.c; convolutions are those of restored images. */
#include "tess_multithresh.h"

#include <math.h>
#include <string.h>

#include "chauvenet.h"
#include "mask_regions.h"
#include "row_deviation.h"
#include "tess_const.h"
#include "tess_mem.h"

/* Bits of a pixel. */
enum { MASKED = 1, POSITIVE = 2 };

struct tess_multithresh {
    tess_comm *comm;
    tess_multithresh_image image;
    tess_multithresh_opts opts;
    int64_t rounds;
    bool is_settled;
    uint8_t *mask;     /* [num_rows][nx] the mask: 0 or 1 */
    uint8_t *positive; /* likewise, without what was found for absorption */
};

/* The memory of a round. */
typedef struct round {
    tess_multithresh *of;
    int64_t count;
    double *value;  /* [count] the residual; NaN where nothing is masked */
    uint8_t *found; /* [count] what a step finds */
    uint8_t *bits;  /* [count] a constraint, or blank pixels */
    tess_rows smooth;
    double sidelobe; /* threshold of sidelobes above the median */
    tess_multithresh_report *report;
} round_state;

void tess_multithresh_opts_default(tess_multithresh_opts *opts)
{
    *opts = (tess_multithresh_opts){.sidelobe = 3,
                                    .noise = 5,
                                    .low_noise = 1.5,
                                    .smooth_factor = 1,
                                    .min_beam_frac = 0.3,
                                    .cut = 0.01,
                                    .grow_iterations = 75,
                                    .grow_prune = true,
                                    .min_percent_change = -1,
                                    .fast_noise = true};
}

tess_status tess_multithresh_create(tess_comm *comm,
                                    const tess_multithresh_image *image,
                                    const tess_multithresh_opts *opts,
                                    tess_multithresh **mask_out)
{
    tess_status status = TESS_OK;
    const int64_t count = image->num_rows * image->nx;
    tess_multithresh *mask = tess_alloc_zero(1, sizeof *mask);
    if (mask) {
        mask->comm = comm;
        mask->image = *image;
        mask->opts = *opts;
        mask->mask = tess_alloc_zero(count, 1);
        mask->positive = tess_alloc_zero(count, 1);
    }
    TESS_TRY(tess_comm_agree(
        comm, mask && mask->mask && mask->positive ? TESS_OK : TESS_ERR_ALLOC));
    *mask_out = mask;
    mask = NULL;
cleanup:
    tess_multithresh_destroy(mask);
    return status;
}

void tess_multithresh_destroy(tess_multithresh *mask)
{
    if (!mask) return;
    tess_free(mask->mask);
    tess_free(mask->positive);
    tess_free(mask);
}

void tess_multithresh_bytes(double pixels, double *most, double *kept)
{
    /* value, found, bits, the convolved mask; and three transforms of a padded plane,
     * 1.5 times as long to each side */
    *kept = 2 * pixels;
    *most = *kept + pixels * (8 + 1 + 1 + 8 + 3 * 2.25 * 8);
}

/* ---- thresholds ---- */

static void copy_values(const tess_rows *residual, const tess_rows *region,
                        round_state *r)
{
    for (int64_t k = 0; k < r->count; ++k) {
        const double value = tess_rows_pixel(residual, k);
        const bool counts =
            isfinite(value) && (!region || tess_rows_pixel(region, k) != 0);
        r->value[k] = counts ? value : (double)NAN;
    }
}

/* Which pixels do not count for the noise: those of the mask. False if nothing would be
 * left, or if the mask is empty. Collective. */
static tess_status blank_mask(round_state *r, bool *some)
{
    tess_status status = TESS_OK;
    int64_t counts[2] = {0, 0}; /* pixels inside and outside */
    for (int64_t k = 0; k < r->count; ++k) {
        const bool is_masked = r->of->mask[k] != 0, is_blank = isnan(r->value[k]);
        r->bits[k] = is_masked || is_blank;
        counts[0] += is_masked && !is_blank;
        counts[1] += !r->bits[k];
    }
    TESS_TRY(tess_comm_allreduce_i64(r->of->comm, counts, 2, TESS_SUM));
    *some = counts[0] > 0 && counts[1] > 0;
cleanup:
    return status;
}

/* Median and σ. Collective. */
static tess_status measure_noise(round_state *r)
{
    tess_status status = TESS_OK;
    const tess_multithresh *mask = r->of;
    tess_multithresh_report *report = r->report;
    row_pixels pixels = {.value = r->value,
                         .is_double = true,
                         .count = r->count,
                         .threads = mask->image.threads};
    bool some = false;
    if (!mask->opts.fast_noise) {
        pixels.is_blank = r->bits;
        TESS_TRY(blank_mask(r, &some));
        if (!some) TESS_TRY(chauvenet_blank(mask->comm, r->value, r->count, r->bits));
    }
    TESS_TRY(row_deviation(mask->comm, &pixels, &report->median, &report->sigma));
    report->sigma *= ROW_SIGMA_PER_DEVIATION;
    report->peak = 0;
    for (int64_t k = 0; k < r->count; ++k)
        if (fabs(r->value[k]) > report->peak) report->peak = fabs(r->value[k]);
    TESS_TRY(tess_comm_allreduce_f64(mask->comm, &report->peak, 1, TESS_MAX));
cleanup:
    return status;
}

static double threshold_of(const round_state *r, double times_sigma)
{
    return fmax(r->sidelobe, times_sigma * r->report->sigma);
}

static void set_above(const round_state *r, double threshold, uint8_t *to)
{
    for (int64_t k = 0; k < r->count; ++k)
        to[k] = r->value[k] > threshold;
}

/* ---- steps ---- */

static mask_rows rows_of(const round_state *r)
{
    return (mask_rows){r->of->image.nx, r->of->image.num_rows, r->found};
}

static tess_status prune(const round_state *r, int64_t *regions, int64_t *pruned)
{
    const tess_multithresh *mask = r->of;
    const tess_clean_beam *beam = &mask->image.beam;
    const double area = TESS_GAUSSIAN_AREA * beam->major_px * beam->minor_px;
    const mask_rows rows = rows_of(r);
    return mask_prune(mask->comm, &rows, mask->opts.min_beam_frac * area, regions,
                      pruned);
}

static tess_status largest_of(const round_state *r, double *largest)
{
    *largest = 0;
    for (int64_t k = 0; k < r->count; ++k)
        *largest = fmax(*largest, tess_rows_pixel(&r->smooth, k));
    return tess_comm_allreduce_f64(r->of->comm, largest, 1, TESS_MAX);
}

/* Convolves what was found with the beam, and cuts it. Sums are in double precision and
 * do not depend on the number of ranks, nor does the mask. Collective. */
static tess_status smooth(round_state *r)
{
    tess_status status = TESS_OK;
    const tess_multithresh *mask = r->of;
    const tess_clean_beam *own = &mask->image.beam;
    const double factor = mask->opts.smooth_factor;
    const tess_clean_beam beam = {factor * own->major_px, factor * own->minor_px,
                                  own->angle_rad};
    const tess_clean_opts opts = {
        .is_double = true, .repeatable = true, .threads = mask->image.threads};
    const tess_rows like = tess_rows_like(&r->smooth, TESS_PIXEL_MASK);
    const tess_rows found = tess_rows_borrow(&like, r->found);
    const tess_rows nothing = tess_rows_borrow(&like, r->bits);
    int64_t any = 0;
    double largest;
    for (int64_t k = 0; k < r->count; ++k)
        any += r->found[k];
    TESS_TRY(tess_comm_allreduce_i64(mask->comm, &any, 1, TESS_SUM));
    if (any == 0 || !(beam.minor_px > 0)) return TESS_OK;
    if (r->count > 0) memset(r->bits, 0, (size_t)r->count);
    TESS_TRY(
        tess_clean_restore(mask->comm, &opts, &beam, &found, &nothing, &r->smooth));
    TESS_TRY(largest_of(r, &largest));
    for (int64_t k = 0; k < r->count; ++k)
        r->found[k] = tess_rows_pixel(&r->smooth, k) > mask->opts.cut * largest;
cleanup:
    return status;
}

/* Adds what was found to the mask. */
static void add_found(const round_state *r, bool is_positive)
{
    tess_multithresh *mask = r->of;
    for (int64_t k = 0; k < r->count; ++k) {
        if (!r->found[k] || isnan(r->value[k])) continue;
        mask->mask[k] = 1;
        if (is_positive) mask->positive[k] = 1;
    }
}

/* Grows the mask of the rounds before. Collective. */
static tess_status grow(round_state *r)
{
    tess_status status = TESS_OK;
    const tess_multithresh *mask = r->of;
    tess_multithresh_report *report = r->report;
    const mask_rows rows = rows_of(r);
    const double low = report->median + threshold_of(r, mask->opts.low_noise);
    if (mask->rounds == 0 || mask->opts.grow_iterations == 0) return TESS_OK;
    if (r->count > 0) memcpy(r->found, mask->mask, (size_t)r->count);
    set_above(r, low, r->bits);
    TESS_TRY(mask_grow(mask->comm, &rows, r->bits, mask->opts.grow_iterations));
    if (mask->opts.grow_prune && mask->opts.min_beam_frac > 0)
        TESS_TRY(prune(r, &report->num_grown, &report->grown_pruned));
    TESS_TRY(smooth(r));
cleanup:
    return status;
}

/* Finds absorption. Collective. */
static tess_status find_negative(round_state *r)
{
    tess_status status = TESS_OK;
    const double below = r->report->median - threshold_of(r, r->of->opts.negative);
    for (int64_t k = 0; k < r->count; ++k)
        r->found[k] = r->value[k] < below;
    TESS_TRY(smooth(r));
    for (int64_t k = 0; k < r->count; ++k)
        r->report->num_negative += r->found[k] && !isnan(r->value[k]);
    TESS_TRY(
        tess_comm_allreduce_i64(r->of->comm, &r->report->num_negative, 1, TESS_SUM));
    add_found(r, false);
cleanup:
    return status;
}

/* Pixels of the mask, of all ranks. Collective. */
static tess_status count_mask(const round_state *r, int64_t *count)
{
    *count = 0;
    for (int64_t k = 0; k < r->count; ++k)
        *count += r->of->mask[k];
    return tess_comm_allreduce_i64(r->of->comm, count, 1, TESS_SUM);
}

/* Whether the mask need not be looked at again: where noise is the threshold, it is
 * empty, or has hardly changed since the last loop reached the end. */
static bool is_settled(const round_state *r, int64_t before, bool at_end)
{
    const double percent = r->of->opts.min_percent_change;
    const double changed = fabs((double)(r->report->num_pixels - before));
    if (r->report->by_sidelobe) return false;
    if (r->report->num_pixels == 0) return true;
    return percent >= 0 && at_end &&
           (!(changed > 0) || changed < percent / 100 * (double)before);
}

/* The steps of a round. Collective. */
static tess_status find(round_state *r, bool at_end)
{
    tess_status status = TESS_OK;
    tess_multithresh *mask = r->of;
    tess_multithresh_report *report = r->report;
    int64_t before;
    TESS_TRY(measure_noise(r));
    r->sidelobe = mask->opts.sidelobe * mask->image.sidelobe_level * report->peak;
    report->threshold = report->median + threshold_of(r, mask->opts.noise);
    report->by_sidelobe = r->sidelobe >= mask->opts.noise * report->sigma;
    TESS_TRY(count_mask(r, &before));
    TESS_TRY(grow(r)); /* of the mask before this round's regions are in it */
    if (mask->rounds > 0 && mask->opts.grow_iterations > 0) add_found(r, true);
    set_above(r, report->threshold, r->found);
    if (mask->opts.min_beam_frac > 0)
        TESS_TRY(prune(r, &report->num_regions, &report->num_pruned));
    TESS_TRY(smooth(r));
    add_found(r, true);
    if (mask->opts.negative > 0) TESS_TRY(find_negative(r));
    TESS_TRY(count_mask(r, &report->num_pixels));
    ++mask->rounds;
    mask->is_settled = is_settled(r, before, at_end);
cleanup:
    return status;
}

static tess_status allocate(round_state *r)
{
    tess_status status = TESS_OK;
    const tess_multithresh_image *image = &r->of->image;
    r->count = image->num_rows * image->nx;
    r->value = tess_alloc(r->count, sizeof *r->value);
    r->found = tess_alloc_zero(r->count, 1);
    r->bits = tess_alloc_zero(r->count, 1);
    r->smooth = tess_rows_of(image->nx, image->ny, image->row_first, image->num_rows,
                             TESS_PIXEL_DOUBLE);
    TESS_TRY(tess_rows_alloc(&r->smooth));
    if (!r->value || !r->found || !r->bits) TESS_FAIL(TESS_ERR_ALLOC, "automatic mask");
cleanup:
    return status;
}

tess_status tess_multithresh_update(tess_multithresh *mask, const tess_rows *residual,
                                    const tess_rows *region, bool at_end,
                                    tess_multithresh_report *report)
{
    tess_status status = TESS_OK;
    round_state r = {.of = mask, .report = report};
    tess_rows view = {0};
    *report = (tess_multithresh_report){0};
    r.count = mask->image.num_rows * mask->image.nx;
    if (mask->is_settled) return count_mask(&r, &report->num_pixels);
    status = allocate(&r);
    if (status == TESS_OK) status = tess_rows_view(residual, &view);
    TESS_TRY(tess_comm_agree(mask->comm, status));
    copy_values(&view, region, &r);
    TESS_TRY(find(&r, at_end));
cleanup:
    tess_rows_free(&view);
    tess_rows_free(&r.smooth);
    tess_free(r.value);
    tess_free(r.found);
    tess_free(r.bits);
    return status;
}

/* ---- what is kept ---- */

const uint8_t *tess_multithresh_pixels(const tess_multithresh *mask)
{
    return mask->mask;
}

int64_t tess_multithresh_rounds(const tess_multithresh *mask)
{
    return mask->is_settled ? -mask->rounds : mask->rounds;
}

int tess_multithresh_state(const tess_multithresh *mask, int64_t pixel)
{
    return (mask->mask[pixel] ? MASKED : 0) | (mask->positive[pixel] ? POSITIVE : 0);
}

void tess_multithresh_resume(tess_multithresh *mask, int64_t rounds,
                             const uint32_t *state)
{
    mask->rounds = rounds < 0 ? -rounds : rounds;
    mask->is_settled = rounds < 0;
    for (int64_t k = 0; k < mask->image.num_rows * mask->image.nx; ++k) {
        mask->mask[k] = (state[k] & MASKED) != 0;
        mask->positive[k] = (state[k] & POSITIVE) != 0;
    }
}
