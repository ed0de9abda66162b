/* Simulates an observation: computes its geometry and rows, and streams blocks of
 * visibilities to a writer. */
#include "tess_simulate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim_pointings.h"
#include "sim_predict.h"
#include "sim_sky.h"
#include "sim_uvw.h"
#include "sim_view.h"
#include "tess_beam_models.h"
#include "tess_const.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_out_file.h"
#include "tess_sim_layout.h"
#include "tess_threads.h"

/* Times at which the elevation is looked at before starting. */
enum { NUM_ELEVATION_SAMPLES = 49 };

typedef struct simulation {
    const tess_simulate_opts *opts;
    tess_sim_array array;
    sim_pointings pointings;
    tess_sky sky;
    sim_view *view;
    tess_vis_meta meta;
    tess_uvw_target target; /* the middle of the pointings */
    double start_mjd_s;
    int64_t num_times, num_baselines;
    int64_t scan_times;            /* integrations of a scan */
    tess_vis_scan *scan;           /* with several pointings */
    int32_t *antenna1, *antenna2;  /* [num_baselines] */
    const tess_vis_writer *writer; /* of the set */
    int threads;
    double sigma_jy;
} simulation;

/* The rms of the real and of the imaginary part of a sample with this SEFD. Stokes
 * parameters are means of two correlations. */
static double sigma_of(const tess_simulate_opts *opts)
{
    const double samples = 2.0 * opts->chan_width_hz * opts->time.integration_s;
    const double correlations = opts->corr[0] > 0 ? 2.0 : 1.0;
    const double thermal_jy = opts->sefd_jy / sqrt(samples * correlations);
    return hypot(thermal_jy, opts->noise_jy);
}

/* ---- set-up ---- */

static tess_status list_baselines(simulation *sim)
{
    tess_status status = TESS_OK;
    const int64_t n = sim->array.num_antennas;
    const int first = sim->opts->autocorrelations ? 0 : 1;
    sim->num_baselines = n * (n - 1) / 2 + (first == 0 ? n : 0);
    sim->antenna1 = tess_alloc(sim->num_baselines, sizeof *sim->antenna1);
    sim->antenna2 = tess_alloc(sim->num_baselines, sizeof *sim->antenna2);
    if (!sim->antenna1 || !sim->antenna2) TESS_FAIL(TESS_ERR_ALLOC, "baselines");
    int64_t k = 0;
    for (int32_t a = 0; a < n; ++a)
        for (int32_t b = a + first; b < n; ++b, ++k) {
            sim->antenna1[k] = a;
            sim->antenna2[k] = b;
        }
cleanup:
    return status;
}

static tess_status set_time(simulation *sim)
{
    tess_status status = TESS_OK;
    const tess_simulate_opts *opts = sim->opts;
    sim->target.ra_rad = sim->pointings.center_rad[0];
    sim->target.dec_rad = sim->pointings.center_rad[1];
    sim->target.dut1_s = opts->time.dut1_s;
    memcpy(sim->target.site_m, sim->array.center_m, sizeof sim->target.site_m);
    sim->start_mjd_s = opts->time.start_mjd_s;
    if (opts->time.has_hour_angle)
        TESS_TRY(tess_uvw_time_of(&sim->target, opts->time.hour_angle_rad,
                                  opts->time.start_mjd_s, &sim->start_mjd_s));
    /* A fraction of an integration at the end is not recorded. */
    sim->num_times =
        (int64_t)floor(opts->time.duration_s / opts->time.integration_s + 1e-6);
    if (sim->num_times < 1)
        TESS_FAIL(TESS_ERR_USAGE, "--duration %g s is shorter than --integration %g s",
                  opts->time.duration_s, opts->time.integration_s);
cleanup:
    return status;
}

static double time_of(const simulation *sim, int64_t index)
{
    return sim->start_mjd_s + ((double)index + 0.5) * sim->opts->time.integration_s;
}

/* The pointing of an integration: scans go through all of them, again and again. */
static int pointing_of(const simulation *sim, int64_t index)
{
    return (int)(index / sim->scan_times % sim->pointings.num);
}

/* Pointings are written as fields, even if there is only one. */
static tess_status list_scans(simulation *sim)
{
    tess_status status = TESS_OK;
    const tess_simulate_opts *opts = sim->opts;
    const double times = opts->mosaic.scan_s / opts->time.integration_s;
    sim->scan_times = tess_max_i64((int64_t)floor(times + 0.5), 1);
    if (!opts->mosaic.pointings) goto cleanup;
    const int64_t num = (sim->num_times + sim->scan_times - 1) / sim->scan_times;
    if (num < sim->pointings.num)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--duration %g s has %lld scans of %lld integrations, and there are "
                  "%d pointings",
                  opts->time.duration_s, (long long)num, (long long)sim->scan_times,
                  sim->pointings.num);
    sim->scan = tess_alloc_zero(num, sizeof *sim->scan);
    if (!sim->scan) TESS_FAIL(TESS_ERR_ALLOC, "%lld scans", (long long)num);
    for (int64_t k = 0; k < num; ++k) {
        const int64_t first = k * sim->scan_times, left = sim->num_times - first;
        sim->scan[k].num_rows =
            tess_min_i64(left, sim->scan_times) * sim->num_baselines;
        sim->scan[k].field = pointing_of(sim, first);
    }
    sim->meta.segment->scan = sim->scan;
    sim->meta.segment->num_scans = num;
cleanup:
    return status;
}

/* One line when the source sets, or never rises. */
static tess_status check_elevation(const simulation *sim, bool is_first_rank)
{
    tess_status status = TESS_OK;
    const double limit_rad = sim->opts->flag_low ? sim->opts->min_elevation_rad : 0.0;
    double lowest = TESS_PI, highest = -TESS_PI;
    for (int k = 0; k < NUM_ELEVATION_SAMPLES; ++k) {
        tess_uvw_frame frame;
        const double share = (double)k / (NUM_ELEVATION_SAMPLES - 1);
        const int64_t index = (int64_t)(share * (double)(sim->num_times - 1) + 0.5);
        TESS_TRY(tess_uvw_frame_at(&sim->target, time_of(sim, index), &frame));
        lowest = fmin(lowest, frame.elevation_rad);
        highest = fmax(highest, frame.elevation_rad);
    }
    if (lowest < limit_rad && is_first_rank)
        tess_log_warn("the phase centre is below %.4g deg elevation %s (from %.1f to "
                      "%.1f deg)%s",
                      limit_rad / TESS_RAD_PER_DEG,
                      highest < limit_rad ? "all the time" : "part of the time",
                      lowest / TESS_RAD_PER_DEG, highest / TESS_RAD_PER_DEG,
                      sim->opts->flag_low ? "; those rows are flagged"
                                          : "; --min-elevation flags such rows");
cleanup:
    return status;
}

static tess_status fill_segment(const simulation *sim, tess_vis_segment *segment)
{
    tess_status status = TESS_OK;
    const tess_simulate_opts *opts = sim->opts;
    const int64_t n = opts->num_chan;
    segment->num_rows = sim->num_times * sim->num_baselines;
    segment->num_chan = n;
    segment->freq_hz = tess_alloc(n, sizeof *segment->freq_hz);
    segment->chan_width_hz = tess_alloc(n, sizeof *segment->chan_width_hz);
    segment->chan_spw = tess_alloc_zero(n, sizeof *segment->chan_spw);
    if (!segment->freq_hz || !segment->chan_width_hz || !segment->chan_spw)
        TESS_FAIL(TESS_ERR_ALLOC, "%lld channels", (long long)n);
    const double first_hz = opts->freq_hz - 0.5 * (double)(n - 1) * opts->chan_width_hz;
    for (int64_t c = 0; c < n; ++c) {
        segment->freq_hz[c] = first_hz + (double)c * opts->chan_width_hz;
        segment->chan_width_hz[c] = opts->chan_width_hz;
    }
    segment->num_corr = opts->num_corr;
    memcpy(segment->corr, opts->corr, sizeof opts->corr);
    tess_vis_order_corr(opts->output, segment);
cleanup:
    return status;
}

static tess_status fill_meta(simulation *sim)
{
    tess_status status = TESS_OK;
    const tess_simulate_opts *opts = sim->opts;
    tess_vis_meta *meta = &sim->meta;
    snprintf(meta->path, sizeof meta->path, "%s", opts->output);
    snprintf(meta->telescope, sizeof meta->telescope, "%s", sim->array.telescope);
    snprintf(meta->observer, sizeof meta->observer, "tessera");
    snprintf(meta->project, sizeof meta->project, "simulation");
    snprintf(meta->object, sizeof meta->object, "%s", opts->object);
    meta->equinox = 2000.0;
    meta->ra_rad = sim->target.ra_rad;
    meta->dec_rad = sim->target.dec_rad;
    meta->time_start_mjd_s = sim->start_mjd_s;
    meta->time_end_mjd_s =
        sim->start_mjd_s + (double)sim->num_times * opts->time.integration_s;
    meta->integration_s = opts->time.integration_s;
    meta->segment = tess_alloc_zero(1, sizeof *meta->segment);
    if (!meta->segment) TESS_FAIL(TESS_ERR_ALLOC, "metadata");
    meta->num_segments = 1;
    TESS_TRY(fill_segment(sim, meta->segment));
    meta->num_fields = sim->pointings.num;
    meta->field = sim->pointings.field; /* lent, taken back in destroy */
    meta->num_rows_total = meta->segment->num_rows;
    meta->num_antennas = sim->array.num_antennas;
    meta->antenna = sim->array.antenna; /* lent, taken back in destroy */
cleanup:
    return status;
}

static void destroy(simulation *sim)
{
    if (sim->meta.segment) {
        tess_free(sim->meta.segment->freq_hz);
        tess_free(sim->meta.segment->chan_width_hz);
        tess_free(sim->meta.segment->chan_spw);
    }
    tess_free(sim->meta.segment);
    tess_free(sim->scan);
    sim_view_destroy(sim->view);
    sim_pointings_free(&sim->pointings);
    tess_free(sim->antenna1);
    tess_free(sim->antenna2);
    tess_sky_free(&sim->sky);
    tess_sim_array_free(&sim->array);
}

/* The array and when it observes. Collective only in reading a file. */
static tess_status prepare_array(tess_comm *comm, simulation *sim)
{
    tess_status status = TESS_OK;
    const tess_simulate_opts *opts = sim->opts;
    TESS_TRY(tess_out_check_other(opts->output, opts->sky));
    TESS_TRY(tess_out_check_other(opts->output, opts->layout)); /* may be a file */
    if (opts->mosaic.pointings)
        TESS_TRY(tess_out_check_other(opts->output, opts->mosaic.pointings));
    if (opts->mosaic.primary_beam && tess_beam_models_file(opts->mosaic.primary_beam))
        TESS_TRY(tess_out_check_other(
            opts->output, tess_beam_models_file(opts->mosaic.primary_beam)));
    TESS_TRY(tess_sim_array_read(comm, opts->layout, &sim->array));
    TESS_TRY(
        tess_sim_array_choose(&sim->array, opts->max_radius_m, opts->num_antennas));
    TESS_TRY(sim_pointings_find(comm, opts, &sim->pointings));
    TESS_TRY(set_time(sim));
    TESS_TRY(list_baselines(sim));
    TESS_TRY(fill_meta(sim));
    TESS_TRY(list_scans(sim));
cleanup:
    return status;
}

/* Everything that is known before the first row. Collective. */
static tess_status prepare(tess_comm *comm, const tess_simulate_opts *opts,
                           simulation *sim)
{
    tess_status status = TESS_OK;
    sim->opts = opts;
    sim->sigma_jy = sigma_of(opts);
    sim->threads = opts->threads;
    if (sim->threads < 1) TESS_TRY(tess_threads_default(comm, &sim->threads));
    TESS_TRY(tess_comm_agree(comm, prepare_array(comm, sim)));
    TESS_TRY(tess_sky_read(comm, opts->sky, sim->target.ra_rad, sim->target.dec_rad,
                           opts->freq_hz, &sim->sky));
    TESS_TRY(sim_view_create(comm,
                             &(sim_view_opts){.sky = &sim->sky,
                                              .pointings = &sim->pointings,
                                              .primary_beam = opts->mosaic.primary_beam,
                                              .meta = &sim->meta,
                                              .threads = sim->threads},
                             &sim->view));
cleanup:
    return status;
}

/* ---- rows ---- */

/* uvw as the file will hold them, so that the visibilities fit what is read back. */
static void set_uvw(const simulation *sim, const tess_uvw_frame *frame, int32_t a,
                    int32_t b, double uvw_m[3])
{
    const double *p = sim->array.antenna[a].xyz_m, *q = sim->array.antenna[b].xyz_m;
    for (int k = 0; k < 3; ++k) {
        const double *axis = frame->axis[k];
        const double value =
            axis[0] * (p[0] - q[0]) + axis[1] * (p[1] - q[1]) + axis[2] * (p[2] - q[2]);
        uvw_m[k] = tess_vis_stored_uvw(sim->writer, value);
    }
}

static tess_status fill_geometry(const simulation *sim, tess_vis_block *block)
{
    tess_status status = TESS_OK;
    tess_uvw_frame frame;
    int64_t frame_index = -1;
    const int64_t num_samples = block->num_chan * block->num_corr;
    const double sigma = sim->sigma_jy;
    const float good_weight = sigma > 0.0 ? (float)(1.0 / (sigma * sigma)) : 1.0f;
    for (int64_t r = 0; r < block->num_rows; ++r) {
        const int64_t row = block->row_first + r;
        const int64_t index = row / sim->num_baselines;
        const int64_t baseline = row % sim->num_baselines;
        if (index != frame_index) {
            const tess_vis_field *field = &sim->meta.field[pointing_of(sim, index)];
            tess_uvw_target target = sim->target;
            target.ra_rad = field->ra_rad;
            target.dec_rad = field->dec_rad;
            TESS_TRY(tess_uvw_frame_at(&target, time_of(sim, index), &frame));
            frame_index = index;
        }
        block->antenna1[r] = sim->antenna1[baseline];
        block->antenna2[r] = sim->antenna2[baseline];
        block->time_mjd_s[r] = time_of(sim, index);
        block->integration_s[r] = sim->opts->time.integration_s;
        set_uvw(sim, &frame, block->antenna1[r], block->antenna2[r],
                block->uvw_m + 3 * r);
        const bool is_low =
            sim->opts->flag_low && frame.elevation_rad < sim->opts->min_elevation_rad;
        const float weight = is_low ? (float)TESS_WEIGHT_FLAGGED : good_weight;
        for (int64_t k = 0; k < num_samples; ++k)
            block->weight[r * num_samples + k] = weight;
    }
cleanup:
    return status;
}

/* Visibilities of one block: large enough for fast writing, small beside any node's
 * memory, also where one rank gathers the blocks of all. */
static const int64_t BLOCK_BYTES = 32 << 20, MIN_BLOCK_BYTES = 256 << 10;

/* A rank's rows of the segment. */
typedef struct rank_rows {
    int64_t first, end; /* of the rank */
    int64_t step;       /* rows of a block, at least 1 */
    int64_t num_blocks; /* the same on all ranks; the last ones may be empty */
} rank_rows;

/* The share of this rank, in blocks of which `num_gathered` are in one rank's memory.
 */
static rank_rows rows_of(const tess_comm *comm, const tess_vis_segment *segment,
                         int64_t num_gathered)
{
    const int64_t row_bytes =
        segment->num_chan * segment->num_corr * (int64_t)(3 * sizeof(float)) + 64;
    const int64_t bytes = tess_max_i64(BLOCK_BYTES / num_gathered, MIN_BLOCK_BYTES);
    const int64_t rank = tess_comm_rank(comm), size = tess_comm_size(comm);
    const int64_t share = segment->num_rows / size, extra = segment->num_rows % size;
    rank_rows rows = {.first = rank * share + tess_min_i64(rank, extra),
                      .step = tess_max_i64(bytes / row_bytes, 1)};
    rows.end = rows.first + share + (rank < extra);
    rows.num_blocks = (share + (extra > 0) + rows.step - 1) / rows.step;
    return rows;
}

static bool all_finite(const float *value, int64_t count, int threads)
{
    int64_t num_bad = 0;
    (void)threads; /* unused in a build without OpenMP */
#pragma omp parallel for num_threads(threads) reduction(+ : num_bad)
    for (int64_t k = 0; k < count; ++k)
        num_bad += !isfinite(value[k]);
    return num_bad == 0;
}

/* Rows [first, end) of a block, which are of one integration where the view changes. */
static tess_status predict_rows(const simulation *sim, int64_t first, int64_t end,
                                tess_vis_block *block)
{
    tess_status status = TESS_OK;
    const tess_vis_segment *segment = sim->meta.segment;
    const int64_t row = block->row_first + first, index = row / sim->num_baselines;
    const tess_sim_channels channels = {
        .num_chan = segment->num_chan,
        .freq_hz = segment->freq_hz,
        .num_corr = segment->num_corr,
        .corr = segment->corr,
    };
    const tess_sim_noise noise = {
        .sigma_jy = sim->sigma_jy,
        .seed = sim->opts->seed,
        .row_offset = row,
    };
    TESS_TRY(sim_view_turn(sim->view, pointing_of(sim, index), time_of(sim, index)));
    const tess_sim_rows rows = {.num = end - first,
                                .uvw_m = block->uvw_m + 3 * first,
                                .antenna1 = block->antenna1 + first,
                                .antenna2 = block->antenna2 + first,
                                .gains = sim_view_gains(sim->view)};
    tess_sim_predict(sim_view_sky(sim->view), &channels, &noise, &rows, sim->threads,
                     block->vis + 2 * first * segment->num_chan * segment->num_corr);
cleanup:
    return status;
}

static tess_status fill_block(const simulation *sim, int64_t row_first,
                              int64_t num_rows, tess_vis_block *block)
{
    tess_status status = TESS_OK;
    const tess_vis_segment *segment = sim->meta.segment;
    TESS_TRY(
        tess_vis_block_resize(block, num_rows, segment->num_chan, segment->num_corr));
    block->segment = 0;
    block->row_first = row_first;
    TESS_TRY(fill_geometry(sim, block));
    for (int64_t first = 0, end; first < num_rows; first = end) {
        const int64_t index = (row_first + first) / sim->num_baselines;
        end = num_rows;
        if (sim_view_changes(sim->view))
            end = tess_min_i64(end, (index + 1) * sim->num_baselines - row_first);
        TESS_TRY(predict_rows(sim, first, end, block));
    }
    if (!all_finite(block->vis, 2 * num_rows * segment->num_chan * segment->num_corr,
                    sim->threads))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: sources, or noise, make visibilities that single precision does "
                  "not hold",
                  sim->opts->sky);
cleanup:
    return status;
}

/* Make and write this rank's range. Collective. */
static tess_status stream_rows(tess_comm *comm, const simulation *sim,
                               tess_vis_writer *writer)
{
    tess_status status = TESS_OK;
    tess_vis_block block = {0};
    tess_progress progress = {0};
    const int64_t size = tess_comm_size(comm);
    const tess_vis_segment *segment = sim->meta.segment;
    const rank_rows rows = rows_of(comm, segment, tess_vis_gathers(writer) ? size : 1);
    const double chan_per_row = (double)segment->num_chan;
    int64_t row = rows.first;
    tess_progress_start(&progress, "simulating", "vis",
                        (double)segment->num_rows * chan_per_row);
    for (int64_t k = 0; k < rows.num_blocks; ++k) {
        const int64_t n = rows.step < rows.end - row ? rows.step : rows.end - row;
        status = fill_block(sim, row, n, &block);
        TESS_TRY(tess_comm_agree(comm, status));
        TESS_TRY(tess_vis_write(writer, &block));
        row += n;
        /* Other ranks are as far as this one. */
        tess_progress_add(&progress, (double)(n * size) * chan_per_row);
    }
    tess_progress_finish(&progress);
cleanup:
    tess_vis_block_free(&block);
    return status;
}

/* ---- all of it ---- */

static void announce(const simulation *sim, int num_ranks)
{
    const tess_vis_segment *segment = sim->meta.segment;
    const double num_vis = (double)segment->num_rows * (double)segment->num_chan;
    tess_log_info("%s, %d antennas; %lld sources, the farthest %.3g deg from the phase "
                  "centre",
                  sim->array.telescope, sim->array.num_antennas,
                  (long long)sim->sky.num_sources,
                  sim->sky.max_offset_rad / TESS_RAD_PER_DEG);
    if (sim->opts->mosaic.pointings)
        tess_log_info("%d pointings in %lld scans of %lld integrations",
                      sim->pointings.num, (long long)segment->num_scans,
                      (long long)sim->scan_times);
    tess_log_info("%lld integrations of %g s x %lld baselines x %lld channels = %.4g "
                  "visibilities, from MJD %.6f UTC; noise %.4g Jy",
                  (long long)sim->num_times, sim->opts->time.integration_s,
                  (long long)sim->num_baselines, (long long)segment->num_chan, num_vis,
                  sim->start_mjd_s / TESS_SECONDS_PER_DAY, sim->sigma_jy);
    const double seconds = num_vis * (double)sim->sky.num_sources /
                           (TESS_SIM_RATE * sim->threads * num_ranks);
    if (seconds > 600.0)
        tess_log_warn(
            "the direct sum over %lld sources will take about %.1f h; tessera predict "
            "is faster for images of many pixels",
            (long long)sim->sky.num_sources, seconds / 3600.0);
}

tess_status tess_simulate(tess_comm *comm, const tess_simulate_opts *opts)
{
    tess_status status = TESS_OK;
    simulation sim = {0};
    tess_vis_writer *writer = NULL;
    const double start_s = tess_time_now();
    const bool is_first_rank = tess_comm_rank(comm) == 0;
    TESS_TRY(prepare(comm, opts, &sim));
    if (is_first_rank) announce(&sim, tess_comm_size(comm));
    TESS_TRY(tess_comm_agree(comm, check_elevation(&sim, is_first_rank)));
    TESS_TRY(tess_vis_create(comm, opts->output, &sim.meta, opts->overwrite, &writer));
    sim.writer = writer;
    TESS_TRY(stream_rows(comm, &sim, writer));
    TESS_TRY(tess_vis_finish(writer));
    const double seconds = tess_time_now() - start_s;
    const double num_vis = (double)sim.meta.segment->num_rows * (double)opts->num_chan;
    if (is_first_rank)
        tess_log_info("%s: %lld rows x %lld channels x %d correlations in %.1f s (%.3g "
                      "Mvis/s)",
                      opts->output, (long long)sim.meta.segment->num_rows,
                      (long long)opts->num_chan, opts->num_corr, seconds,
                      num_vis / fmax(seconds, 1e-6) * 1e-6);
cleanup:
    tess_vis_writer_destroy(writer);
    destroy(&sim);
    return status;
}
