/* Predicts the visibilities of a list of sources at blocks of rows, which the imager
 * reads and writes. */
#include "tess_list_predict.h"

#include <math.h>
#include <string.h>

#include "sim_predict.h"
#include "sim_sky.h"
#include "tess_const.h"
#include "tess_log.h"
#include "tess_mem.h"

struct tess_list_predictor {
    const char *list;
    int threads;
    double ranks;
    tess_sky sky;
    tess_progress progress;
};

tess_status tess_list_predictor_create(const char *list, int threads,
                                       tess_list_predictor **predictor)
{
    tess_status status = TESS_OK;
    tess_list_predictor *made = tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "list of sources");
    made->list = list;
    made->threads = threads;
    *predictor = made;
cleanup:
    return status;
}

void tess_list_predictor_destroy(tess_list_predictor *predictor)
{
    if (!predictor) return;
    tess_progress_finish(&predictor->progress);
    tess_sky_free(&predictor->sky);
    tess_free(predictor);
}

/* Sums over sources are the slow way to predict many of them. */
static void tell_work(const tess_list_predictor *predictor, double num_vis)
{
    const int64_t sources = predictor->sky.num_sources;
    tess_log_info("%lld source%s at %.4g visibilities: about %.2g s",
                  (long long)sources, sources == 1 ? "" : "s", num_vis,
                  num_vis * (double)sources /
                      (TESS_SIM_RATE * predictor->ranks * predictor->threads));
}

tess_status tess_list_predictor_begin(void *context, tess_comm *comm,
                                      const tess_vis_meta *meta)
{
    tess_status status = TESS_OK;
    tess_list_predictor *predictor = context;
    double num_vis = 0;
    TESS_TRY(tess_sky_read(comm, predictor->list, meta->ra_rad, meta->dec_rad, 0,
                           &predictor->sky));
    predictor->ranks = tess_comm_size(comm);
    for (int s = 0; s < meta->num_segments; ++s)
        num_vis +=
            (double)meta->segment[s].num_rows * (double)meta->segment[s].num_chan;
    tell_work(predictor, num_vis);
    tess_progress_start(&predictor->progress, "predicting", "vis", num_vis);
cleanup:
    return status;
}

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

tess_status tess_list_predictor_fill(void *context, const tess_vis_segment *segment,
                                     tess_vis_block *block)
{
    tess_status status = TESS_OK;
    tess_list_predictor *predictor = context;
    const tess_sim_channels channels = {.num_chan = segment->num_chan,
                                        .freq_hz = segment->freq_hz,
                                        .num_corr = segment->num_corr,
                                        .corr = segment->corr};
    const tess_sim_noise none = {.sigma_jy = 0};
    const tess_sim_rows rows = {.num = block->num_rows, .uvw_m = block->uvw_m};
    tess_sim_predict(&predictor->sky, &channels, &none, &rows, predictor->threads,
                     block->vis);
    if (!finish_rows(block))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: sources make visibilities that single precision does not hold",
                  predictor->list);
    /* other ranks are as far as this one */
    tess_progress_add(&predictor->progress,
                      (double)(block->num_rows * block->num_chan) * predictor->ranks);
cleanup:
    return status;
}
