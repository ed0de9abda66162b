/* The beam of an output's images: gathers the middle of a PSF and fits a Gaussian to
 * it, or takes the beam that options give. */
#include "image_beam.h"

#include <math.h>
#include <string.h>

#include "image_kinds.h"
#include "tess_beam.h"
#include "tess_common_beam.h"
#include "tess_const.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_multithresh.h"
#include "tess_text.h"

/* The beam is not looked for in a box larger than this [pixels]. */
enum { MAX_BEAM_BOX = 1024, MAX_BEAM_ROUNDS = 5 };

static const double BOX_BEAMS = 10;

/* The middle box of an image on rank 0, side × side; elsewhere *box stays NULL. */
static tess_status gather_box(const image_files *output, const tess_rows *rows,
                              int64_t side_x, int64_t side_y, double **box)
{
    tess_status status = TESS_OK;
    const int64_t first_x = rows->nx / 2 - side_x / 2;
    const int64_t first_y = output->opts->ny / 2 - side_y / 2;
    int64_t begin = first_y - rows->row_first, end = begin + side_y, bytes = 0;
    void *received = NULL;
    tess_rows view = {0};
    int64_t *counts = tess_alloc_zero(tess_comm_size(output->comm), sizeof *counts);
    if (begin < 0) begin = 0;
    if (end > rows->num_rows) end = rows->num_rows;
    if (end < begin) end = begin;
    /* each row travels with its place */
    double *send = tess_alloc((end - begin) * (side_x + 1), sizeof *send);
    status = counts && send ? tess_rows_check_whole(rows, "PSF") : TESS_ERR_ALLOC;
    if (status == TESS_OK)
        status = tess_rows_view_some(rows, begin, end - begin, &view);
    TESS_TRY(tess_comm_agree(output->comm, status));
    for (int64_t k = 0; k < view.num_rows; ++k) {
        double *to = send + k * (side_x + 1);
        to[0] = (double)(view.row_first + k - first_y);
        tess_rows_doubles(&view, k * view.nx + first_x, side_x, to + 1);
    }
    bytes = (end - begin) * (side_x + 1) * (int64_t)sizeof *send;
    TESS_TRY(tess_comm_gatherv(output->comm, send, bytes, 0, &received, counts));
    if (received) {
        *box = tess_alloc_zero(side_x * side_y, sizeof **box);
        for (int64_t k = 0; *box && k < side_y; ++k) {
            const double *from = (const double *)received + k * (side_x + 1);
            memcpy(*box + (int64_t)from[0] * side_x, from + 1,
                   (size_t)side_x * sizeof **box);
        }
    }
cleanup:
    tess_rows_free(&view);
    tess_free(send);
    tess_free(counts);
    tess_free(received);
    return status;
}

/* Fits the main lobe in a box of rank 0; *beam stays what it is if there is none. */
static tess_status fit_lobe(double *box, int64_t side_x, int64_t side_y,
                            tess_beam *beam)
{
    tess_status status = TESS_OK;
    tess_comm *alone = NULL;
    tess_clean_beam lobe = {0};
    const tess_rows like = tess_rows_of(side_x, side_y, 0, side_y, TESS_PIXEL_DOUBLE);
    const tess_rows rows = tess_rows_borrow(&like, box);
    TESS_TRY(tess_comm_self(&alone));
    TESS_TRY(tess_psf_lobe(alone, &rows, &lobe));
    if (lobe.major_px > 0)
        *beam = (tess_beam){lobe.major_px, lobe.minor_px, lobe.angle_rad};
cleanup:
    tess_comm_free(alone);
    return status;
}

/* Fits the beam in a box of rank 0 as options say. */
static tess_status fit_box(const tess_beam_choice *choice, double *box, int64_t side_x,
                           int64_t side_y, double start, tess_beam *beam,
                           tess_beam_failure *failure)
{
    tess_status status = TESS_OK;
    if (choice->of_lobe) {
        TESS_TRY(fit_lobe(box, side_x, side_y, beam));
        if (beam->major > 0) return TESS_OK;
    }
    if (choice->circular)
        tess_beam_fit_circle(box, side_x, side_y, start, beam, failure);
    else
        TESS_TRY(tess_beam_fit(box, side_x, side_y, start, beam, failure));
cleanup:
    return status;
}

/* Fit as WSClean does: in a box of ten times the expected beam, or as many as options
 * say, and an ellipse again in a larger one while the beam found is larger than was
 * expected. */
static tess_status fit_beam(const image_files *output, const tess_rows *psf,
                            tess_beam *beam, struct image_found *found)
{
    tess_status status = TESS_OK;
    tess_beam_failure failure = TESS_BEAM_COLLAPSED;
    const int64_t nx = output->opts->nx, ny = output->opts->ny;
    const int64_t limit_x = nx < MAX_BEAM_BOX ? nx : MAX_BEAM_BOX;
    const int64_t limit_y = ny < MAX_BEAM_BOX ? ny : MAX_BEAM_BOX;
    const tess_beam_choice *choice = &output->opts->clean.beam;
    const bool circular = choice->circular;
    const double beams = choice->box_beams > 0 ? choice->box_beams : BOX_BEAMS;
    double start = found->beam_expected;
    int64_t side = 0;
    *beam = (tess_beam){0};
    found->beam_failure = TESS_BEAM_FEW_PIXELS;
    if (!(found->beam_expected > 0)) return TESS_OK;
    side = tess_beam_box(start, beams, INT32_MAX);
    for (int round = 0; round < MAX_BEAM_ROUNDS; ++round) {
        const int64_t side_x = side < limit_x ? side : limit_x;
        const int64_t side_y = side < limit_y ? side : limit_y;
        double *box = NULL;
        TESS_TRY(gather_box(output, psf, side_x, side_y, &box));
        if (box) status = fit_box(choice, box, side_x, side_y, start, beam, &failure);
        tess_free(box);
        TESS_TRY(tess_comm_agree(output->comm, status));
        TESS_TRY(tess_comm_bcast(output->comm, beam, sizeof *beam, 0));
        TESS_TRY(tess_comm_bcast(output->comm, &failure, sizeof failure, 0));
        if (circular || !tess_beam_box_is_small(beam->major, beams, side) ||
            (side_x >= limit_x && side_y >= limit_y))
            break;
        start = beam->major;
        side = tess_beam_box(start, beams, INT32_MAX);
    }
    found->beam_failure = failure;
cleanup:
    return status;
}

static void note_beam(struct image_found *found, double major_rad, double minor_rad,
                      double pa_rad)
{
    found->beam = (tess_fits_beam){major_rad, minor_rad, pa_rad};
}

tess_status image_beam_find(const image_files *output, const imager_product *psf,
                            int num_psf, const imager_extent *extent,
                            struct image_found *found)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = output->opts;
    const tess_beam_choice *choice = &opts->clean.beam;
    const double scale_rad = opts->scale_rad;
    tess_beam beam = {0};
    int first = 0;
    while (first < num_psf && !(psf[first].sum_weights > 0))
        ++first;
    if (first == num_psf) return TESS_OK;
    if (extent->uvw_max_lambda > 0)
        found->beam_expected =
            fmax(1 / extent->uvw_max_lambda, opts->weights.taper.fwhm_rad) / scale_rad;
    if (choice->major_rad > 0) {
        note_beam(found, choice->major_rad, choice->minor_rad, choice->pa_rad);
        return TESS_OK;
    }
    if (choice->theoretic && found->beam_expected > 0) {
        const double width_rad = found->beam_expected * scale_rad;
        note_beam(found, width_rad, width_rad, 0);
        return TESS_OK;
    }
    TESS_TRY(fit_beam(output, &psf[first].rows, &beam, found));
    if (!(beam.major > 0) && image_is_cleaned(opts))
        beam = (tess_beam){found->beam_expected, found->beam_expected, 0};
    note_beam(found, beam.major * scale_rad, beam.minor * scale_rad, beam.angle);
cleanup:
    return status;
}

/* ---- one beam for all channels ---- */

static void tell_common(const tess_fits_beam *common, int64_t interval)
{
    char major[32], minor[32];
    tess_text_angle(common->major_rad, major, sizeof major);
    tess_text_angle(common->minor_rad, minor, sizeof minor);
    tess_log_info("beam of all channels of interval %lld: %s x %s, PA %.3g deg",
                  (long long)interval, major, minor, common->pa_rad / TESS_RAD_PER_DEG);
}

tess_status image_beam_join(const image_files *output, int64_t interval,
                            const tess_fits_beam *beam, int64_t num)
{
    tess_status status = TESS_OK;
    tess_clean_beam common; /* in radians, in place of pixels */
    tess_clean_beam *all = tess_alloc(num, sizeof *all);
    if (!all) TESS_FAIL(TESS_ERR_ALLOC, "beams of %lld channels", (long long)num);
    for (int64_t k = 0; k < num; ++k)
        all[k] =
            (tess_clean_beam){beam[k].major_rad, beam[k].minor_rad, beam[k].pa_rad};
    tess_common_beam(all, num, &common);
    output->summary->common[interval] =
        (tess_fits_beam){common.major_px, common.minor_px, common.angle_rad};
    if (common.major_px > 0) tell_common(&output->summary->common[interval], interval);
cleanup:
    tess_free(all);
    return status;
}
