/* Predicts the model of --subtract at whole rows. A fit to the continuum needs all
 * channels of a row less the model, also those that are not imaged, and their
 * correlations as the file has them. Each field of a mosaic sees the model through a
 * beam of its own. Predictions are shared by the ranks in another way
 * than rows are when they are read, so they pass through a file that all ranks see. */
#define _GNU_SOURCE
#include "subtracted_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "predict_reader.h"
#include "predicted_pointing.h"
#include "source_continuum.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"

/* What the name of the file begins with. It lies beside the images, where all ranks can
 * write. A run without images on disk uses the current folder: that of a batch job is
 * usually seen by all nodes, and those of temporary files are not. */
static const char *choose_prefix(const tess_image_opts *opts)
{
    if (opts->output) return opts->output;
    return access(".", W_OK | X_OK) == 0 ? "./tessera" : "/tmp/tessera";
}

/* Makes the file. temp[TESS_OUT_FILE_NAME] is its name. Rank 0 alone. */
static tess_status create_file(const image_run *run, char *temp, int *fd)
{
    tess_status status = TESS_OK;
    char *path = NULL;
    if (asprintf(&path, "%s-subtracted", choose_prefix(run->opts)) < 0) {
        path = NULL;
        TESS_FAIL(TESS_ERR_ALLOC, "name of a file");
    }
    tess_out_file_remove_left(path);
    TESS_TRY(tess_out_file_create(path, temp, fd));
    tess_log_info("the model is subtracted%s; until then its rows lie in %s (%s)",
                  run->opts->selection.continuum.subtracts
                      ? " before the continuum is fitted"
                      : "",
                  temp, tess_mem_text((double)tess_source_model_bytes(run->source)));
    status = tess_out_file_reserve(*fd, path, tess_source_model_bytes(run->source));
cleanup:
    free(path); /* from asprintf */
    return status;
}

/* Another rank. Local. */
static tess_status open_created(const char *temp, int *fd)
{
    tess_status status = TESS_OK;
    *fd = open(temp, O_RDWR | O_CLOEXEC);
    if (*fd < 0)
        TESS_FAIL(TESS_ERR_IO,
                  "%s: cannot be opened: %s; all nodes must see this file: write the "
                  "images into, or start the run in, a folder that they share",
                  temp, strerror(errno));
cleanup:
    return status;
}

/* Opens the file on all ranks, and hands it to the source. Collective. */
static tess_status open_file(image_run *run)
{
    tess_status status = TESS_OK;
    tess_comm *all = run->teams.all;
    const bool first = tess_comm_rank(all) == 0;
    char temp[TESS_OUT_FILE_NAME] = "";
    int fd = -1;
    if (first) {
        status = create_file(run, temp, &fd);
        const tess_status opened = tess_source_model_open(run->source, fd, true, temp);
        if (status == TESS_OK) status = opened;
    }
    TESS_TRY(tess_comm_agree(all, status));
    TESS_TRY(tess_comm_bcast(all, temp, sizeof temp, 0));
    if (!first) {
        status = open_created(temp, &fd);
        const tess_status opened = tess_source_model_open(run->source, fd, false, temp);
        if (status == TESS_OK) status = opened;
    }
    TESS_TRY(tess_comm_agree(all, status));
cleanup:
    return status;
}

/* The reader whose rows are predicted. */
typedef struct target {
    tess_source *source;
    int reader;
} target;

static tess_status take(void *context, const tess_vis_meta *meta,
                        const tess_vis_block *block)
{
    const target *to = context;
    (void)meta;
    return tess_source_model_put(to->source, to->reader, block);
}

/* Has each field of a mosaic see a model of fluxes through the beam of its pointing, as
 * `predict --mosaic` does. Local. */
static tess_status take_pointings(const image_run *run, tess_predict_opts *predict)
{
    tess_status status = TESS_OK;
    const tess_beam_correction *beam = &run->opts->beside.primary_beam;
    tess_selection *selection = &predict->selection;
    if (!selection->joins_pointings) return TESS_OK;
    predict->beam = (tess_predict_beam){.model = beam->model,
                                        .limit = beam->pointing_limit,
                                        .freq_hz = run->info->freq_hz,
                                        .num_chan = run->info->num_chan};
    selection->joins_pointings = false; /* a field at a time is predicted */
    selection->has_center = false;      /* that of the image may be another */
    TESS_TRY(predicted_pointing_center(run->teams.all, predict, selection));
    predict->model_is_told = true;
    if (selection->has_center) return TESS_OK;
    selection->has_center = true; /* of pixels in memory */
    selection->center_ra_rad = run->info->ra_rad;
    selection->center_dec_rad = run->info->dec_rad;
cleanup:
    return status;
}

tess_status subtracted_rows_make(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    target to = {.source = run->source};
    tess_predict_opts predict = {.model = opts->subtract.model,
                                 .model_terms = opts->subtract.terms,
                                 .pixels = opts->subtract.pixels,
                                 .take = take,
                                 .take_context = &to,
                                 .selection = opts->selection,
                                 .gridding = opts->gridding,
                                 .layout = opts->layout,
                                 .command_line = opts->beside.command_line};
    if (!image_subtracts_rows(opts)) return TESS_OK;
    predict.selection.wanted = (tess_rows_wanted){.whole = true};
    predict.selection.shift.given = false; /* rows are as their files have them */
    TESS_TRY(tess_comm_agree(run->teams.all, take_pointings(run, &predict)));
    TESS_TRY(open_file(run));
    for (int k = 0; k < tess_source_num_readers(run->source); ++k) {
        to.reader = k;
        TESS_TRY(predict_reader(run, k, &predict));
    }
    tess_source_rest(run->source); /* no row that was read before is handed out */
    TESS_TRY(tess_comm_agree(run->teams.all, tess_source_model_end(run->source)));
cleanup:
    return status;
}
