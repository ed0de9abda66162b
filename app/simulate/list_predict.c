/* Predicts the visibilities of a list of sources: reads blocks of rows, computes their
 * visibilities, and writes them over a copy of the observation or into a column. */
#include "tess_list_predict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim_predict.h"
#include "sim_rows.h"
#include "sim_sky.h"
#include "tess_const.h"
#include "tess_log.h"

typedef struct list_run {
    tess_comm *comm;
    const tess_list_predict_opts *opts;
    tess_profile *profile;
    tess_vis_reader *reader;
    const tess_vis_meta *meta;
    tess_sky sky;
    tess_vis_writer *writer; /* NULL: the caller takes what is predicted */
    char message[1200];
    tess_vis_origin origin;
    tess_vis_block block;
    tess_progress progress;
} list_run;

/* ---- opening ---- */

/* Only positions are read where the visibilities become a column. Local. */
static tess_status open_rows(list_run *run)
{
    tess_status status = TESS_OK;
    tess_vis_select select = run->opts->select;
    select.model_only = true;
    select.uvw_only = run->opts->column != NULL;
    TESS_TRY(tess_vis_open(run->opts->obs, &select, &run->reader));
    run->meta = tess_vis_reader_meta(run->reader);
    int64_t rows = 0;
    for (int s = 0; s < run->meta->num_segments; ++s)
        rows += run->meta->segment[s].num_rows;
    if (rows == 0)
        TESS_FAIL(TESS_ERR_USAGE, "%s: no rows are selected", run->opts->obs);
cleanup:
    return status;
}

/* Collective. */
static tess_status open_observation(list_run *run)
{
    tess_status status = TESS_OK;
    const char *const obs[] = {run->opts->obs};
    if (tess_comm_rank(run->comm) == 0)
        status = tess_vis_check(obs, 1, &run->opts->select);
    TESS_TRY(tess_comm_agree(run->comm, status));
    TESS_TRY(tess_comm_agree(run->comm, open_rows(run)));
cleanup:
    return status;
}

/* Collective. */
static tess_status open_writer(list_run *run)
{
    tess_status status = TESS_OK;
    const tess_list_predict_opts *opts = run->opts;
    snprintf(run->message, sizeof run->message,
             "visibilities%s%s predicted from the list of sources %s",
             opts->column ? " of " : "", opts->column ? opts->column : "", opts->list);
    run->origin = (tess_vis_origin){opts->command_line, run->message};
    if (opts->column)
        TESS_TRY(tess_vis_create_column(run->comm, run->reader, opts->column,
                                        &run->origin, opts->overwrite, &run->writer));
    else if (opts->output)
        TESS_TRY(tess_vis_create_like(run->comm, opts->output, run->reader,
                                      &run->origin, opts->overwrite, &run->writer));
cleanup:
    return status;
}

static double count_vis(const list_run *run)
{
    double count = 0;
    for (int s = 0; s < run->meta->num_segments; ++s)
        count += (double)run->meta->segment[s].num_rows *
                 (double)run->meta->segment[s].num_chan;
    return count;
}

/* Sums over sources are the slow way to predict many of them. */
static void tell_work(const list_run *run)
{
    const double num_vis = count_vis(run);
    const double ranks = tess_comm_size(run->comm) * run->opts->threads;
    tess_log_info("%lld source%s at %.4g visibilities: about %.2g s",
                  (long long)run->sky.num_sources, run->sky.num_sources == 1 ? "" : "s",
                  num_vis,
                  num_vis * (double)run->sky.num_sources / (TESS_SIM_RATE * ranks));
}

/* ---- blocks ---- */

static bool has_finite_uvw(const double *uvw_m)
{
    return TESS_IS_BASELINE(uvw_m);
}

/* Visibilities of rows without finite uvw become 0; false when others are not finite.
 */
static bool finish_rows(tess_vis_block *block)
{
    const int64_t values = 2 * block->num_chan * block->num_corr;
    bool finite = true;
    for (int64_t r = 0; r < block->num_rows; ++r) {
        float *vis = block->vis + r * values;
        if (!has_finite_uvw(block->uvw_m + 3 * r))
            memset(vis, 0, (size_t)values * sizeof *vis);
        for (int64_t k = 0; k < values; ++k)
            finite = finite && isfinite(vis[k]);
    }
    return finite;
}

/* Local. */
static tess_status fill_block(list_run *run, int segment, int64_t first,
                              int64_t num_rows)
{
    tess_status status = TESS_OK;
    const tess_vis_segment *of = &run->meta->segment[segment];
    tess_vis_block *block = &run->block;
    const tess_sim_channels channels = {.num_chan = of->num_chan,
                                        .freq_hz = of->freq_hz,
                                        .num_corr = of->num_corr,
                                        .corr = of->corr};
    const tess_sim_noise none = {.sigma_jy = 0};
    double mark = tess_time_now();
    TESS_TRY(tess_vis_read(run->reader, segment, first, num_rows, run->opts->threads,
                           block));
    tess_profile_lap(run->profile, TESS_STAGE_READ, &mark);
    tess_sim_predict(&run->sky, &channels, &none, num_rows, block->uvw_m,
                     run->opts->threads, block->vis);
    if (!finish_rows(block))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: sources make visibilities that single precision does not hold",
                  run->opts->list);
    run->profile->visibilities += num_rows * of->num_chan;
    tess_profile_lap(run->profile, TESS_STAGE_GRID, &mark);
cleanup:
    return status;
}

/* A rank without rows takes part with an empty block. Collective. */
static tess_status write_block(list_run *run)
{
    tess_status status = TESS_OK;
    const tess_vis_block *block = &run->block;
    double mark = tess_time_now();
    if (run->writer)
        TESS_TRY(tess_vis_write(run->writer, block));
    else
        TESS_TRY(run->opts->take(run->opts->take_context, run->meta, block));
    run->profile->stage_bytes[TESS_STAGE_WRITE] += block->num_rows * block->num_chan *
                                                   block->num_corr * 2 *
                                                   (int64_t)sizeof(float);
    tess_profile_lap(run->profile, TESS_STAGE_WRITE, &mark);
cleanup:
    return status;
}

/* Collective. */
static tess_status predict_segment(list_run *run, int segment)
{
    tess_status status = TESS_OK;
    const tess_vis_segment *of = &run->meta->segment[segment];
    const tess_sim_rows rows = tess_sim_rows_of(run->comm, of, true);
    const double ranks = tess_comm_size(run->comm);
    int64_t row = rows.first;
    for (int64_t k = 0; k < rows.num_blocks; ++k) {
        const int64_t left = rows.end - row;
        const int64_t count = left < rows.step ? left : rows.step;
        TESS_TRY(tess_comm_agree(run->comm, fill_block(run, segment, row, count)));
        TESS_TRY(write_block(run));
        row += count;
        /* other ranks are as far as this one */
        tess_progress_add(&run->progress, (double)count * ranks * (double)of->num_chan);
    }
cleanup:
    return status;
}

tess_status tess_list_predict(tess_comm *comm, const tess_list_predict_opts *opts,
                              tess_profile *profile)
{
    tess_status status = TESS_OK;
    list_run run = {.comm = comm, .opts = opts, .profile = profile};
    TESS_TRY(open_observation(&run));
    TESS_TRY(tess_sky_read(comm, opts->list, run.meta->ra_rad, run.meta->dec_rad, 0,
                           &run.sky));
    tell_work(&run);
    TESS_TRY(open_writer(&run));
    tess_progress_start(&run.progress, "predicting", "vis", count_vis(&run));
    for (int s = 0; s < run.meta->num_segments; ++s)
        TESS_TRY(predict_segment(&run, s));
    if (run.writer) TESS_TRY(tess_vis_finish(run.writer));
cleanup:
    tess_progress_finish(&run.progress);
    tess_vis_writer_destroy(run.writer);
    tess_vis_block_free(&run.block);
    tess_sky_free(&run.sky);
    tess_vis_close(run.reader);
    return status;
}
