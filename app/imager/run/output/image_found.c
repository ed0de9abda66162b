/* Measures a run's images, and keeps what the last lines of the log tell of them. */
#include <math.h>

#include "image_found.h"
#include "tess_mem.h"
#include "tess_row_stats.h"

/* The most images that have lines of their own. */
enum { MOST_LINES = 4 };

tess_status image_found_create(const output_table *outputs, int num_pol,
                               image_found_table *summary)
{
    tess_status status = TESS_OK;
    const int64_t channels = outputs->num_channels + (outputs->num_channels > 1);
    *summary = (image_found_table){.num_channels = channels,
                                   .num_intervals = outputs->num_intervals,
                                   .num_pol = num_pol};
    summary->image = tess_alloc_zero(outputs->num_intervals * channels * num_pol,
                                     sizeof *summary->image);
    summary->common = tess_alloc_zero(outputs->num_intervals, sizeof *summary->common);
    if (!summary->image || !summary->common)
        TESS_FAIL(TESS_ERR_ALLOC, "list of %lld images", (long long)outputs->num);
cleanup:
    return status;
}

void image_found_free(image_found_table *summary)
{
    tess_free(summary->image);
    tess_free(summary->common);
    *summary = (image_found_table){0};
}

struct image_found *image_found_at(const image_found_table *summary, int64_t interval,
                                   int64_t channel, int pol)
{
    const int64_t place = channel < 0 ? summary->num_channels - 1 : channel;
    return summary->image +
           (interval * summary->num_channels + place) * summary->num_pol + pol;
}

bool image_found_has_lines(const image_found_table *summary)
{
    return image_found_count(summary) <= MOST_LINES;
}

bool image_found_tells_deviation(const image_files *output, int64_t interval,
                                 int64_t channel, int pol)
{
    const bool is_first_mean = interval == 0 && channel < 0 && pol == 0;
    return image_found_has_lines(output->summary) ||
           (is_first_mean && image_joins_channels(output->opts));
}

/* Whether the peak is the largest value, and not the least: it is the one of larger
 * absolute value, of equal ones the first pixel, so that the number of ranks and
 * threads does not matter. */
static bool peak_is_most(const tess_row_stats *stats)
{
    const double most = fabs(stats->most), least = fabs(stats->least);
    return most > least || (!(most < least) && stats->most_at <= stats->least_at);
}

static double peak_of(const tess_row_stats *stats)
{
    if (!(stats->count > 0)) return 0;
    return peak_is_most(stats) ? stats->most : stats->least;
}

tess_status image_found_measure(tess_comm *comm, const tess_rows *rows, int threads,
                                bool wants_deviation, struct image_found *found)
{
    tess_status status = TESS_OK;
    tess_row_stats stats;
    TESS_TRY(tess_row_stats_measure(comm, rows, threads, wants_deviation, &stats));
    found->has_data = stats.count > 0;
    found->peak_jy = peak_of(&stats);
    found->peak_pixel = peak_is_most(&stats) ? stats.most_at : stats.least_at;
    found->rms_jy = stats.rms;
    found->deviation_jy = stats.noise;
    found->sum_jy = stats.sum;
cleanup:
    return status;
}

tess_status image_found_measure_residual(tess_comm *comm, const tess_rows *rows,
                                         int threads, bool wants_deviation,
                                         struct image_found *found)
{
    tess_status status = TESS_OK;
    tess_row_stats stats;
    TESS_TRY(tess_row_stats_measure(comm, rows, threads, wants_deviation, &stats));
    found->residual_peak_jy = peak_of(&stats);
    found->residual_rms_jy = stats.rms;
    found->residual_deviation_jy = stats.noise;
cleanup:
    return status;
}

tess_status image_model_flux(tess_comm *comm, const tess_rows *rows, double *flux_jy)
{
    tess_status status = TESS_OK;
    tess_pixel_sums sums;
    TESS_TRY(tess_comm_agree(comm, tess_rows_sum(rows, &sums)));
    TESS_TRY(tess_comm_allreduce_f64(comm, &sums.sum, 1, TESS_SUM));
    *flux_jy = sums.sum;
cleanup:
    return status;
}
