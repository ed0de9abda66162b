/* Finds the extent of the visibilities of an image in frequency, w and baseline length,
 * which its plan must cover. */
#include "imager_extent.h"

#include <math.h>
#include <string.h>

#include "tess_mem.h"
#include "tess_samples.h"

imager_extent imager_extent_empty(void)
{
    return (imager_extent){
        .w_min_lambda = INFINITY, .w_span_lambda = -1, .freq_min = INFINITY};
}

void imager_extent_join(imager_extent *total, const imager_extent *extent)
{
    if (extent->num_vis == 0) return;
    total->num_vis += extent->num_vis;
    total->w_min_lambda = fmin(total->w_min_lambda, extent->w_min_lambda);
    total->w_max_lambda = fmax(total->w_max_lambda, extent->w_max_lambda);
    total->uvw_max_lambda = fmax(total->uvw_max_lambda, extent->uvw_max_lambda);
    total->freq_sum += extent->freq_sum;
    total->freq_min = fmin(total->freq_min, extent->freq_min);
    total->freq_max = fmax(total->freq_max, extent->freq_max);
    total->weight_sum += extent->weight_sum;
    total->largest_weight = fmax(total->largest_weight, extent->largest_weight);
    total->largest_vis_jy = fmax(total->largest_vis_jy, extent->largest_vis_jy);
}

/* The largest magnitude of the finite numbers. Without the sign bit, the bits of
 * floating-point numbers are ordered as the numbers are, and comparisons of integers
 * vectorise. */
static double largest_of(const void *array, bool is_double, int64_t first,
                         int64_t count)
{
    if (is_double) {
        const double *value = (const double *)array + first;
        double largest = 0;
        for (int64_t k = 0; k < count; ++k)
            largest = fabs(value[k]) > largest ? fabs(value[k]) : largest;
        return largest;
    }
    const float *value = (const float *)array + first;
    int32_t most = 0;
    float largest;
    for (int64_t k = 0; k < count; ++k) {
        int32_t bits;
        memcpy(&bits, &value[k], sizeof bits);
        bits &= INT32_MAX;
        most = bits > most ? bits : most;
    }
    memcpy(&largest, &most, sizeof largest);
    return (double)largest;
}

static bool has_weight(const tess_samples *samples, int64_t sample)
{
    for (int k = 0; k < samples->num_weight; ++k) {
        const int64_t at = sample * samples->num_weight + k;
        if (tess_samples_weight(samples, at) != 0) return true;
    }
    return false;
}

static double first_weight(const tess_samples *samples, int64_t row, int32_t c)
{
    return tess_samples_weight(samples,
                               (samples->vis_first[row] + c) * samples->num_weight);
}

void imager_extent_add_row(const tess_samples *samples, const double *freq_hz,
                           bool skip_ignored, int64_t row, int32_t begin, int32_t end,
                           imager_extent *extent)
{
    const double *uvw_m = samples->uvw_m + 3 * row, w_m = fabs(uvw_m[2]);
    const double length_m = sqrt(uvw_m[0] * uvw_m[0] + uvw_m[1] * uvw_m[1] + w_m * w_m);
    const int32_t base = samples->chan_base[row];
    double inv_min = INFINITY, inv_max = 0, freq_sum = 0, weight_sum = 0;
    double freq_min = extent->freq_min, freq_max = extent->freq_max;
    int64_t count = 0;
    for (int32_t c = begin; c < end; ++c) {
        if (skip_ignored && !has_weight(samples, samples->vis_first[row] + c)) continue;
        const double inv = samples->inv_lambda[base + c], freq = freq_hz[base + c];
        ++count;
        inv_min = inv < inv_min ? inv : inv_min;
        inv_max = inv > inv_max ? inv : inv_max;
        freq_sum += freq;
        if (skip_ignored) weight_sum += first_weight(samples, row, c);
        freq_min = freq < freq_min ? freq : freq_min;
        freq_max = freq > freq_max ? freq : freq_max;
    }
    extent->freq_sum += freq_sum;
    extent->weight_sum += weight_sum;
    extent->freq_min = freq_min;
    extent->freq_max = freq_max;
    if (count == 0) return;
    extent->num_vis += count;
    extent->w_min_lambda = fmin(extent->w_min_lambda, w_m * inv_min);
    extent->w_max_lambda = fmax(extent->w_max_lambda, w_m * inv_max);
    extent->uvw_max_lambda = fmax(extent->uvw_max_lambda, length_m * inv_max);
    if (!skip_ignored) return; /* a prediction has no values yet */
    const int64_t first = samples->vis_first[row] + begin, num = end - begin;
    extent->largest_weight =
        fmax(extent->largest_weight,
             largest_of(samples->weight, samples->is_double,
                        first * samples->num_weight, num * samples->num_weight));
    extent->largest_vis_jy =
        fmax(extent->largest_vis_jy,
             largest_of(samples->vis, samples->is_double, 2 * first * samples->num_pol,
                        2 * num * samples->num_pol));
}

/* Numbers of members of extents which ranks sum, of which they take the least, and of
 * which they take the largest. */
enum { SUMS = 2, LEAST = 2, MOST = 5 };

typedef struct extent_lists {
    int64_t *num_vis;       /* [count] summed */
    double (*sum)[SUMS];    /* [count] summed */
    double (*least)[LEAST]; /* [count] */
    double (*most)[MOST];   /* [count] */
} extent_lists;

static void free_lists(extent_lists *lists)
{
    tess_free(lists->num_vis);
    tess_free(lists->sum);
    tess_free(lists->least);
    tess_free(lists->most);
}

/* To be freed with free_lists, also if TESS_ERR_ALLOC is returned. Local. */
static tess_status make_lists(int64_t count, extent_lists *lists)
{
    tess_status status = TESS_OK;
    lists->num_vis = tess_alloc(count, sizeof *lists->num_vis);
    lists->sum = tess_alloc(count, sizeof *lists->sum);
    lists->least = tess_alloc(count, sizeof *lists->least);
    lists->most = tess_alloc(count, sizeof *lists->most);
    if (!lists->num_vis || !lists->sum || !lists->least || !lists->most)
        TESS_FAIL(TESS_ERR_ALLOC, "extents of %lld images", (long long)count);
cleanup:
    return status;
}

static void to_lists(const imager_extent *extent, int64_t k, const extent_lists *lists)
{
    double *least = lists->least[k], *most = lists->most[k];
    lists->num_vis[k] = extent->num_vis;
    lists->sum[k][0] = extent->freq_sum;
    lists->sum[k][1] = extent->weight_sum;
    least[0] = extent->w_min_lambda;
    least[1] = extent->freq_min;
    most[0] = extent->w_max_lambda;
    most[1] = extent->uvw_max_lambda;
    most[2] = extent->freq_max;
    most[3] = extent->largest_weight;
    most[4] = extent->largest_vis_jy;
}

static void from_lists(const extent_lists *lists, int64_t k, imager_extent *extent)
{
    const double *least = lists->least[k], *most = lists->most[k];
    extent->num_vis = lists->num_vis[k];
    extent->freq_sum = lists->sum[k][0];
    extent->weight_sum = lists->sum[k][1];
    extent->w_min_lambda = least[0];
    extent->freq_min = least[1];
    extent->w_max_lambda = most[0];
    extent->uvw_max_lambda = most[1];
    extent->freq_max = most[2];
    extent->largest_weight = most[3];
    extent->largest_vis_jy = most[4];
}

tess_status imager_extent_sum(tess_comm *comm, imager_extent *extent, int64_t count)
{
    tess_status status = TESS_OK;
    extent_lists lists = {0};
    TESS_TRY(tess_comm_agree(comm, make_lists(count, &lists)));
    for (int64_t k = 0; k < count; ++k)
        to_lists(&extent[k], k, &lists);
    TESS_TRY(tess_comm_allreduce_i64(comm, lists.num_vis, count, TESS_SUM));
    TESS_TRY(tess_comm_allreduce_f64(comm, *lists.sum, SUMS * count, TESS_SUM));
    TESS_TRY(tess_comm_allreduce_f64(comm, *lists.least, LEAST * count, TESS_MIN));
    TESS_TRY(tess_comm_allreduce_f64(comm, *lists.most, MOST * count, TESS_MAX));
    for (int64_t k = 0; k < count; ++k)
        from_lists(&lists, k, &extent[k]);
cleanup:
    free_lists(&lists);
    return status;
}
