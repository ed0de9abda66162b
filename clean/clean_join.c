/* Computes the weights of images that are cleaned together. */
#include "clean_join.h"

#include <math.h>

#include "tess_mem.h"

static int pols_of(const tess_clean_images *images)
{
    return images->join.num_pol > 0 ? images->join.num_pol : 1;
}

static int channels_of(const tess_clean_images *images)
{
    return images->num_images / pols_of(images);
}

static int cleaned_of(const tess_clean_images *images)
{
    const int num = images->join.num_cleaned;
    return num > 0 ? num : channels_of(images);
}

int clean_join_count(const tess_clean_images *images)
{
    return cleaned_of(images) * pols_of(images);
}

static double pol_share_of(const tess_clean_images *images)
{
    return images->join.pol_share > 0 ? images->join.pol_share : 1;
}

static bool is_linked(const tess_clean_images *images, int pol)
{
    return !images->join.linked || images->join.linked[pol];
}

static int count_linked(const tess_clean_images *images)
{
    int count = 0;
    for (int p = 0; p < pols_of(images); ++p)
        count += is_linked(images, p);
    return count;
}

static double weight_of(const tess_clean_images *images, int image)
{
    return images->weight ? images->weight[image] : 1;
}

/* ---- checks ---- */

static tess_status check_spectrum(const tess_clean_images *images)
{
    tess_status status = TESS_OK;
    const tess_clean_join *join = &images->join;
    const int cleaned = cleaned_of(images);
    if (join->spectrum == TESS_CLEAN_EACH_CHANNEL) {
        if (cleaned != channels_of(images))
            TESS_FAIL(TESS_ERR_USAGE,
                      "averaged channels need a spectrum that is fitted");
        return TESS_OK;
    }
    if (join->num_terms < 1 || join->num_terms > TESS_CLEAN_MOST_TERMS ||
        join->num_terms > cleaned)
        TESS_FAIL(TESS_ERR_USAGE, "%d spectral terms of %d channels", join->num_terms,
                  cleaned);
    if (!join->freq_hz) TESS_FAIL(TESS_ERR_USAGE, "a spectrum needs frequencies");
    for (int c = 0; c < channels_of(images); ++c)
        if (!(join->freq_hz[c] > 0 && isfinite(join->freq_hz[c])))
            TESS_FAIL(TESS_ERR_USAGE, "the frequency of channel %d is not above 0", c);
cleanup:
    return status;
}

tess_status clean_join_check(const tess_clean_images *images)
{
    tess_status status = TESS_OK;
    const int cleaned = cleaned_of(images);
    if (images->num_images % pols_of(images) != 0)
        TESS_FAIL(TESS_ERR_USAGE, "%d images of %d polarisations", images->num_images,
                  pols_of(images));
    if (count_linked(images) == 0)
        TESS_FAIL(TESS_ERR_USAGE, "no polarisation is searched");
    if (cleaned > channels_of(images))
        TESS_FAIL(TESS_ERR_USAGE, "%d channels to clean of %d", cleaned,
                  channels_of(images));
    TESS_TRY(check_spectrum(images));
cleanup:
    return status;
}

/* ---- weights ---- */

/* The weight of a channel is the mean over those polarisations that are searched for
 * peaks. */
static double channel_weight(const tess_clean_images *images, int channel)
{
    const int pols = pols_of(images);
    double sum = 0;
    for (int p = 0; p < pols; ++p)
        if (is_linked(images, p)) sum += weight_of(images, channel * pols + p);
    return sum / count_linked(images);
}

static void find_averages(const tess_clean_images *images, clean_join *join)
{
    const int pols = join->num_pol;
    for (int p = 0; p < pols; ++p)
        for (int m = 0; m < join->num_channels; ++m) {
            double sum = 0;
            for (int c = 0; c < join->num_out; ++c)
                if (clean_join_channel(join, c) == m)
                    sum += weight_of(images, c * pols + p);
            for (int c = 0; c < join->num_out; ++c)
                if (clean_join_channel(join, c) == m && sum > 0)
                    join->average[c * pols + p] = weight_of(images, c * pols + p) / sum;
        }
}

/* Computes the weights of the cleaned channels from those of the caller's channels.
 * Images without data have weight 0. */
static void find_weights(const tess_clean_images *images, const double *weight,
                         double sum, clean_join *join)
{
    const int pols = join->num_pol;
    const double pol_share = pol_share_of(images);
    for (int c = 0; c < join->num_out; ++c)
        for (int p = 0; p < pols; ++p) {
            const int at = clean_join_channel(join, c) * pols + p;
            if (join->average[c * pols + p] > 0) join->weight[at] = 1;
        }
    for (int m = 0; m < join->num_channels; ++m) {
        double of_channel = 0;
        for (int c = 0; c < join->num_out; ++c)
            if (clean_join_channel(join, c) == m) of_channel += weight[c] / sum;
        for (int p = 0; p < pols; ++p)
            join->weight[m * pols + p] *= of_channel;
    }
    join->all = 0;
    for (int k = 0; k < join->num_channels * pols; ++k) {
        join->share[k] = is_linked(images, k % pols) ? pol_share * join->weight[k] : 0;
        join->all += join->share[k];
    }
}

/* Computes the frequencies of the cleaned channels, and their mean by weight. */
static tess_status make_spectrum(const tess_clean_images *images, const double *weight,
                                 clean_join *join)
{
    tess_status status = TESS_OK;
    double sum = 0, *freq_hz = tess_alloc_zero(join->num_channels, sizeof *freq_hz);
    clean_spectrum_need need = {.kind = images->join.spectrum,
                                .num_terms = images->join.num_terms,
                                .num_pol = join->num_pol,
                                .num_channels = join->num_channels,
                                .num_out = join->num_out,
                                .freq_hz = freq_hz,
                                .out_freq_hz = images->join.freq_hz,
                                .weight = join->weight};
    if (!freq_hz) TESS_FAIL(TESS_ERR_ALLOC, "frequencies of channels");
    for (int c = 0; c < join->num_out; ++c) {
        need.nu0_hz += weight[c] * images->join.freq_hz[c];
        sum += weight[c];
    }
    need.nu0_hz = images->join.nu0_hz > 0 ? images->join.nu0_hz : need.nu0_hz / sum;
    for (int m = 0; m < join->num_channels; ++m) {
        double with = 0, plain = 0, all = 0;
        int count = 0;
        for (int c = 0; c < join->num_out; ++c) {
            if (clean_join_channel(join, c) != m) continue;
            with += weight[c] * images->join.freq_hz[c];
            all += weight[c];
            plain += images->join.freq_hz[c];
            ++count;
        }
        freq_hz[m] = all > 0 ? with / all : plain / count;
    }
    TESS_TRY(clean_spectrum_create(&need, &join->spectrum));
cleanup:
    tess_free(freq_hz);
    return status;
}

static clean_search search_of(const tess_clean_images *images)
{
    if (images->join.squared && clean_join_count(images) > 1) return CLEAN_SQUARES;
    return count_linked(images) > 1 ? CLEAN_ROOTS : CLEAN_MEAN;
}

void clean_join_outline(const tess_clean_images *images, int *terms, clean_join *join)
{
    *terms = images->join.num_terms;
    *join = (clean_join){.search = search_of(images),
                         .is_signed = images->join.is_signed,
                         .num_pol = pols_of(images),
                         .num_channels = cleaned_of(images),
                         .num_out = channels_of(images),
                         .all = pol_share_of(images),
                         .spectrum = {.kind = images->join.spectrum,
                                      .num_terms = *terms,
                                      .own_terms = terms}};
}

tess_status clean_join_create(const tess_clean_images *images, clean_join *join_out)
{
    tess_status status = TESS_OK;
    const int pols = pols_of(images), count = clean_join_count(images);
    double sum = 0, *weight = NULL;
    clean_join join = {.search = search_of(images),
                       .is_signed = images->join.is_signed,
                       .num_pol = pols,
                       .num_channels = cleaned_of(images),
                       .num_out = channels_of(images)};
    join.weight = tess_alloc_zero(count, sizeof *join.weight);
    join.share = tess_alloc_zero(count, sizeof *join.share);
    join.average = tess_alloc_zero(images->num_images, sizeof *join.average);
    weight = tess_alloc_zero(join.num_out, sizeof *weight);
    if (!join.weight || !join.share || !join.average || !weight)
        TESS_FAIL(TESS_ERR_ALLOC, "weights of %d images", images->num_images);
    for (int c = 0; c < join.num_out; ++c)
        sum += weight[c] = channel_weight(images, c);
    if (!(sum > 0)) TESS_FAIL(TESS_ERR_INPUT, "no image to clean has data");
    find_averages(images, &join);
    find_weights(images, weight, sum, &join);
    if (images->join.spectrum != TESS_CLEAN_EACH_CHANNEL)
        TESS_TRY(make_spectrum(images, weight, &join));
    *join_out = join;
    join = (clean_join){0};
cleanup:
    tess_free(weight);
    clean_join_free(&join);
    return status;
}

void clean_join_free(clean_join *join)
{
    clean_spectrum_free(&join->spectrum);
    tess_free(join->weight);
    tess_free(join->share);
    tess_free(join->average);
    *join = (clean_join){0};
}

/* ---- means ---- */

double clean_join_mean(const clean_join *join, const double *value)
{
    double sum = 0;
    for (int k = 0; k < join->num_channels * join->num_pol; ++k)
        sum += join->share[k] * value[k];
    return sum;
}

double clean_join_mean_of_pol(const clean_join *join, const double *value, int pol)
{
    double sum = 0, weights = 0;
    for (int c = 0; c < join->num_channels; ++c) {
        const int k = c * join->num_pol + pol;
        sum += join->weight[k] * value[k];
        weights += join->weight[k];
    }
    return weights > 0 ? sum / weights : 0;
}

double clean_join_largest_weight(const clean_join *join, int channel)
{
    double largest = 0;
    for (int p = 0; p < join->num_pol; ++p)
        largest = fmax(largest, join->weight[channel * join->num_pol + p]);
    return largest;
}
