/* How alike the gains of facets are in samples that are cleaned together: finds which
 * antennas, times and frequencies of the observations these are. Minor loops ask for it
 * (tess_clean_places.likeness). */
#include <math.h>

#include "image_facets.h"
#include "source_origins.h"
#include "tess_mem.h"

/* Gains of facets are alike if their likeness is within this of 1. */
static const double ALIKE = 1e-3;

/* A part for each reader. */
typedef struct part_list {
    int num;
    tess_gain_part *part; /* [readers] */
    double *freq_hz; /* [num_freq] of all parts; room for all channels of the table, or
                        for those of the axis in each segment */
    int64_t num_freq;
} part_list;

/* ---- parts ---- */

static tess_status create_parts(const tess_source *source, part_list *to)
{
    tess_status status = TESS_OK;
    const tess_source_info *info = tess_source_info_of(source);
    const int64_t num_chan =
        info->axis ? info->num_chan * tess_source_num_segments(source) : info->num_chan;
    to->part = tess_alloc_zero(tess_source_num_readers(source), sizeof *to->part);
    to->freq_hz = tess_alloc(num_chan, sizeof *to->freq_hz);
    if (!to->part || !to->freq_hz) TESS_FAIL(TESS_ERR_ALLOC, "gains of facets");
cleanup:
    return status;
}

static void free_parts(part_list *of)
{
    tess_free(of->part);
    tess_free(of->freq_hz);
}

/* The times that a reader has among those that are compared; returns how much of its
 * times they are. */
static double take_times(const tess_vis_meta *meta, const facets_compared *of,
                         double time_mjd_s[2])
{
    /* times are those of the middle of an integration */
    const double half_s = meta->integration_s > 0 ? 0.5 * meta->integration_s : 0.5;
    const double first = meta->time_start_mjd_s - half_s;
    const double end = meta->time_end_mjd_s + half_s;
    time_mjd_s[0] = fmax(first, of->time_mjd_s[0]);
    time_mjd_s[1] = fmin(end, of->time_mjd_s[1]);
    return fmax(0, time_mjd_s[1] - time_mjd_s[0]) / (end - first);
}

/* Frequencies from, to [Hz]. */
typedef struct band {
    double low_hz, high_hz, width_hz; /* the middles of channels; the widest of them */
} band;

/* The band of a segment, in the frame of the axis. The shift is that of the first
 * observation's begin. By the Earth's orbit it is off by 2e-4 of the frequency at most
 * on other days, which concerns the ends of bands alone. */
static band band_of(const tess_vis_segment *segment, const channel_axis *axis)
{
    const double doppler = isfinite(axis->doppler) ? axis->doppler : 1;
    band of = {INFINITY, -INFINITY, 0};
    for (int64_t c = 0; c < segment->num_chan; ++c) {
        of.low_hz = fmin(of.low_hz, doppler * segment->freq_hz[c]);
        of.high_hz = fmax(of.high_hz, doppler * segment->freq_hz[c]);
        of.width_hz = fmax(of.width_hz, doppler * segment->chan_width_hz[c]);
    }
    return of;
}

/* Whether a channel of the axis has samples of channels of a band: it reaches half a
 * width to either side, and so do they. */
static bool is_within(double freq_hz, double width_hz, const band *of)
{
    const double half_hz = 0.5 * fmax(width_hz, of->width_hz);
    return freq_hz > of->low_hz - half_hz && freq_hz < of->high_hz + half_hz;
}

/* Appends the channels that are compared and have samples of a segment: its own ones,
 * which begin with this one of the table, or those of an axis; returns how many these
 * are. */
static int64_t take_channels(const tess_source_info *info, const facets_compared *of,
                             const tess_vis_segment *segment, int64_t first,
                             part_list *to)
{
    const int64_t before = to->num_freq;
    const int64_t end = info->axis ? info->num_chan : first + segment->num_chan;
    const band own = info->axis ? band_of(segment, info->axis) : (band){0};
    for (int64_t c = info->axis ? 0 : first; c < end; ++c)
        if ((!of->chan || of->chan[c]) &&
            (!info->axis || is_within(info->freq_hz[c], info->width_hz[c], &own)))
            to->freq_hz[to->num_freq++] = info->freq_hz[c];
    return to->num_freq - before;
}

/* Lists what readers have of the samples. Spectral windows of one reader have the same
 * antennas and times, and are one part. They have channels of their own in the table,
 * or share those of an axis. Those without the correlations of the images have no
 * samples. */
static void list_parts(const tess_source *source, const facets_compared *of,
                       part_list *to)
{
    const tess_source_info *info = tess_source_info_of(source);
    const int num_segments = tess_source_num_segments(source);
    const tess_recipe *recipe;
    int64_t first = 0;
    for (int k = 0; k < num_segments;) {
        const int reader = tess_source_segment_reader(source, k);
        const tess_vis_meta *meta =
            tess_vis_reader_meta(tess_source_reader(source, reader));
        tess_gain_part part = {.num_antennas = meta->num_antennas,
                               .antenna = tess_source_antennas(source, reader),
                               .freq_hz = to->freq_hz + to->num_freq};
        const double share = take_times(meta, of, part.time_mjd_s);
        for (; k < num_segments && tess_source_segment_reader(source, k) == reader;
             ++k) {
            const tess_vis_segment *segment = tess_source_segment(source, k, &recipe);
            if (recipe)
                part.num_vis += share * (double)segment->num_rows *
                                (double)take_channels(info, of, segment, first, to);
            first += segment->num_chan;
        }
        part.num_freq = to->freq_hz + to->num_freq - part.freq_hz;
        if (part.num_vis > 0) to->part[to->num++] = part;
    }
}

/* ---- all ---- */

/* The most that gains of two of `num` facets are unlike. */
static double most_unlike(int num, const double *likeness)
{
    double most = 0;
    for (int64_t k = 0; k < (int64_t)num * num; ++k)
        most = fmax(most, 1 - likeness[k]);
    return most;
}

tess_status image_facets_compare(tess_comm *comm, const image_facets *facets,
                                 const tess_source *source, const facets_compared *of,
                                 double **likeness)
{
    tess_status status = TESS_OK;
    const int num = facets->patches.num;
    part_list parts = {0};
    double unlike = 0, *made = tess_alloc((int64_t)num * num, sizeof *made);
    status = made ? create_parts(source, &parts) : TESS_ERR_ALLOC;
    if (status == TESS_OK) {
        list_parts(source, of, &parts);
        status = tess_gains_likeness(facets->sources, num, parts.num, parts.part, made);
    }
    TESS_TRY(tess_comm_agree(comm, status));
    unlike = most_unlike(num, made);
    TESS_TRY(tess_comm_allreduce_f64(comm, &unlike, 1, TESS_MAX));
    *likeness = unlike < ALIKE ? NULL : made;
    if (*likeness) made = NULL;
cleanup:
    free_parts(&parts);
    tess_free(made);
    return status;
}
