/* Sets the pointings of a mosaic up: finds which pixels the beam of each reaches, and
 * makes them targets of the job, which take the samples of their own fields alone. */
#include "image_mosaic.h"

#include <float.h>
#include <math.h>

#include "image_kinds.h"
#include "imager_targets.h"
#include "pointing_overlap.h"
#include "source_origins.h"
#include "tess_const.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_primary_beam.h"

/* ---- what goes together ---- */

/* What a mosaic does not go together with, and what does the same; NULL: nothing. */
static const char *other_of(const tess_image_opts *opts)
{
    if (opts->gridding.facets.regions) return "--facets";
    if (opts->gridding.w_mode == TESS_W_PROJECTION)
        return "--w projection; leave --w out";
    if (opts->clean.only_model)
        return "--predict-models; tessera predict --mosaic takes NAME-model-pb.fits";
    if (opts->clean.update_model && opts->beside.cube)
        return "--update-model and --cube; tessera predict --mosaic takes "
               "NAME-model-pb.fits";
    if (opts->clean.pb_mask > 0)
        return "--pb-mask; --pb-limit says which pixels are cleaned";
    if (opts->beside.dump_stages) return "--dump-stages";
    return NULL;
}

tess_status image_mosaic_check(const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    if (!opts->selection.joins_pointings) return TESS_OK;
    const char *other = other_of(opts);
    if (other) TESS_FAIL(TESS_ERR_USAGE, "--mosaic cannot be combined with %s", other);
    if (!opts->beside.primary_beam.model)
        TESS_FAIL(TESS_ERR_USAGE, "--mosaic needs a beam; use --primary-beam MODEL");
cleanup:
    return status;
}

/* ---- which pixels a pointing sees ---- */

/* Sets the largest distance at which the beam is above a level at the lowest frequency,
 * where it is widest, out to `most` [sines]. */
static tess_status find_reach(const image_run *run, int pair, double level, double most,
                              double *reach)
{
    tess_status status = TESS_OK;
    double low_hz = INFINITY;
    const double weight = 1, angle_rad = 0;
    tess_beam_mean *mean = NULL;
    for (int64_t c = 0; c < run->info->num_chan; ++c)
        low_hz = fmin(low_hz, run->info->freq_hz[c]);
    const tess_primary_beam *beam[2];
    image_dishes_beams(&run->output.primary_beam->dishes, pair, beam);
    const tess_beam_mean_of of = {.other = beam[1] != beam[0] ? beam[1] : NULL,
                                  .num_chan = 1,
                                  .freq_hz = &low_hz,
                                  .weight = &weight,
                                  .num_angles = 1,
                                  .angle_rad = &angle_rad,
                                  .reach = most,
                                  .threads = run->opts->layout.threads};
    TESS_TRY(tess_beam_mean_create(beam[0], &of, &mean));
    *reach = tess_beam_mean_reach(mean, level, most);
cleanup:
    tess_beam_mean_destroy(mean);
    return status;
}

/* The sine of the largest distance of a pixel from any pointing. */
static double farthest_of(const image_run *run, const image_primary_beam *beam)
{
    double most = 0;
    for (int k = 0; k < beam->num_pointings; ++k)
        most = fmax(most, image_primary_beam_reach(run, &beam->pointing[k]));
    return most;
}

/* Columns, or rows, of an image that a circle of this radius around `middle` touches.
 */
static void find_span(double middle, double radius, int64_t size, int64_t *first,
                      int64_t *end)
{
    const double low = floor(middle - radius), high = ceil(middle + radius) + 1;
    *first = low > 0 ? (int64_t)fmin(low, (double)size) : 0;
    *end = high < (double)size ? (int64_t)fmax(high, 0) : size;
}

/* The pixels within this distance of a pointing. */
static tess_facet_box box_of(const tess_geom *geom, const image_pointing *pointing,
                             double reach)
{
    tess_facet_box box;
    const double *at = pointing->rotation[2]; /* of the pointing: l, m, n */
    const double scale = geom->scale_rad;
    /* a circle is an ellipse in the plane of the image, whose middle is nearer to that
     * of the plane */
    const double shift = 1 - sqrt(1 - reach * reach);
    const double x = (double)(geom->nx / 2) + (geom->l0 - at[0]) / scale;
    const double y = (double)(geom->ny / 2) + (at[1] - geom->m0) / scale;
    find_span(x, (reach + shift * fabs(at[0])) / scale, geom->nx, &box.x0, &box.x1);
    find_span(y, (reach + shift * fabs(at[1])) / scale, geom->ny, &box.y0, &box.y1);
    return box;
}

/* Makes patches of what a pair of kinds of dishes sees of all pointings. Local. */
static tess_status add_pair(const image_run *run, int pair, image_mosaic *to)
{
    tess_status status = TESS_OK;
    const image_primary_beam *beam = to->beam;
    double reach = 0;
    TESS_TRY(find_reach(run, pair, to->limit, farthest_of(run, beam), &reach));
    to->reach = fmax(to->reach, reach);
    for (int k = 0; k < beam->num_pointings; ++k) {
        const image_pointing *pointing = &beam->pointing[k];
        const image_beam_of of = image_beam_of_pair(beam, k, pair);
        if (!(pointing->rotation[2][2] > 0))
            TESS_FAIL(TESS_ERR_INPUT,
                      "--mosaic: field %s points 90 degrees or more away from the "
                      "image's centre; leave it out (--field)",
                      pointing->name);
        const tess_facet_box box = box_of(to->geom, pointing, reach);
        to->patch_of[of.sum] = -1;
        if (box.x1 <= box.x0 || box.y1 <= box.y0) continue;
        to->patch_of[of.sum] = to->patches.num;
        to->beam_of[to->patches.num] = of;
        image_patches_add(&to->patches, to->geom, &box);
    }
cleanup:
    return status;
}

/* Makes patches of all that sees pixels of the image. Local. */
static tess_status find_patches(const image_run *run, image_mosaic *to)
{
    tess_status status = TESS_OK;
    const int most = to->beam->num_sums;
    to->beam_of = tess_alloc(most, sizeof *to->beam_of);
    to->patch_of = tess_alloc(most, sizeof *to->patch_of);
    to->mean = tess_alloc_zero(most, sizeof *to->mean);
    if (!to->beam_of || !to->patch_of || !to->mean)
        TESS_FAIL(TESS_ERR_ALLOC, "pointings");
    TESS_TRY(image_patches_create(most, &to->patches));
    for (int k = 0; k < image_dishes_num_pairs(&to->beam->dishes); ++k)
        TESS_TRY(add_pair(run, k, to));
    if (to->patches.num == 0)
        TESS_FAIL(TESS_ERR_INPUT, "--mosaic: no pointing sees the image; choose "
                                  "another --center or a larger --size");
cleanup:
    return status;
}

/* ---- the view that a pointing takes of samples ---- */

/* Whether a row is of the pointing and of the pair of dishes, as an imager_counts. */
static bool counts(const void *context, int target, const tess_samples *samples,
                   int64_t row)
{
    const image_mosaic *mosaic = context;
    const tess_origin origin = tess_origin_of(samples->origins, samples->origin[row]);
    const image_primary_beam *beam = mosaic->beam;
    const int pair = image_dishes_pair(&beam->dishes, &origin);
    const int pointing = beam->of_field[origin.field];
    return mosaic->patch_of[image_beam_of_pair(beam, pointing, pair).sum] == target;
}

/* ---- beams ---- */

/* Sets the beam in pixels of a row, which is 0 below the limit. That of two unlike
 * dishes is negative where the field of one of them is. */
static void weigh(const patch_weigher *weigher, void *work, int64_t row, int64_t x0,
                  int64_t x1, double *weight)
{
    const image_mosaic *mosaic = weigher->context;
    const image_pointing *pointing =
        &mosaic->beam->pointing[mosaic->beam_of[weigher->patch].pointing];
    const tess_beam_mean *mean = mosaic->mean[weigher->patch];
    const double m = tess_geom_m(mosaic->geom, row);
    (void)work;
    for (int64_t x = x0; x < x1; ++x) {
        const double power =
            mean ? image_pointing_power(pointing, mean, tess_geom_l(mosaic->geom, x), m)
                 : 0;
        weight[x - x0] = fabs(power) >= mosaic->limit ? power : 0;
    }
}

static void forget_beams(image_mosaic *mosaic)
{
    for (int k = 0; mosaic->mean && k < mosaic->patches.num; ++k) {
        tess_beam_mean_destroy(mosaic->mean[k]);
        mosaic->mean[k] = NULL;
    }
}

tess_status image_mosaic_weigher(const image_run *run, int64_t output, int patch,
                                 patch_weigher *weigher)
{
    tess_status status = TESS_OK;
    image_mosaic *mosaic = run->whole.mosaic;
    if (mosaic->output != output) forget_beams(mosaic);
    mosaic->output = output;
    if (!mosaic->mean[patch])
        TESS_TRY(image_primary_beam_mean(run, output, mosaic->beam_of[patch],
                                         &mosaic->mean[patch]));
    *weigher = (patch_weigher){.weigh = weigh, .context = mosaic, .patch = patch};
cleanup:
    return status;
}

/* ---- the PSF ---- */

/* Finds the mean overlap of pointings, weight[patches.num]. Beams of a pair of kinds of
 * dishes are alike: the first stands for all. Local. */
static tess_status find_overlap(const image_mosaic *mosaic, const double *weight,
                                pointing_overlap *overlap)
{
    tess_status status = TESS_OK;
    const image_patches *patches = &mosaic->patches;
    overlap->reach = mosaic->reach;
    for (int k = 0; k < image_dishes_num_pairs(&mosaic->beam->dishes); ++k) {
        const tess_beam_mean *mean = NULL;
        double sum = 0;
        for (int j = 0; j < patches->num; ++j) {
            if (mosaic->beam_of[j].pair != k || !mosaic->mean[j]) continue;
            if (!mean) mean = mosaic->mean[j];
            sum += weight[j];
        }
        if (mean && sum > 0)
            TESS_TRY(pointing_overlap_add(overlap, mean, mosaic->limit, sum));
    }
cleanup:
    return status;
}

/* Whether one pointing has all of the weight, weight[patches.num]. It sees alike all
 * that it sees, so that no source is seen less beside another. Local. */
static bool is_alone(const image_mosaic *mosaic, const double *weight)
{
    int pointing = -1;
    for (int j = 0; j < mosaic->patches.num; ++j) {
        if (!(weight[j] > 0)) continue;
        if (pointing >= 0 && mosaic->beam_of[j].pointing != pointing) return false;
        pointing = mosaic->beam_of[j].pointing;
    }
    return true;
}

tess_status image_mosaic_narrow_psf(const image_run *run, const double *weight,
                                    const tess_rows *psf)
{
    tess_status status = TESS_OK;
    const tess_geom *geom = &run->whole.geom;
    const double step_l = geom->scale_rad, step_m = tess_geom_scale_m(geom);
    pointing_overlap overlap = {0};
    tess_rows view = {0};
    if (is_alone(run->whole.mosaic, weight)) return TESS_OK;
    TESS_TRY(find_overlap(run->whole.mosaic, weight, &overlap));
    TESS_TRY(tess_rows_edit(psf, true, &view));
    for (int64_t k = 0; k < tess_rows_count(&view); ++k) {
        const double x = (double)(k % view.nx - view.nx / 2) * step_l;
        const double y = (double)(view.row_first + k / view.nx - view.ny / 2) * step_m;
        tess_rows_set(&view, k,
                      pointing_overlap_at(&overlap, hypot(x, y)) *
                          tess_rows_pixel(&view, k));
    }
    TESS_TRY(tess_rows_put_back(psf, &view));
cleanup:
    return status;
}

/* ---- all ---- */

/* Pointings of which no pair of dishes sees the image. */
static int count_others(const image_mosaic *mosaic)
{
    const image_primary_beam *beam = mosaic->beam;
    int others = 0;
    for (int k = 0; k < beam->num_pointings; ++k) {
        bool is_seen = false;
        for (int j = 0; j < mosaic->patches.num; ++j)
            is_seen = is_seen || mosaic->beam_of[j].pointing == k;
        others += !is_seen;
    }
    return others;
}

static void tell(const image_mosaic *mosaic)
{
    const image_patches *patches = &mosaic->patches;
    const int others = count_others(mosaic);
    const int num = mosaic->beam->num_pointings - others;
    double pixels = 0;
    for (int k = 0; k < patches->num; ++k)
        pixels += (double)patches->geom[k].nx * (double)patches->geom[k].ny;
    tess_log_info("mosaic of %d pointing%s, which ha%s %.3g times the pixels of the "
                  "image together",
                  num, num == 1 ? "" : "s", num == 1 ? "s" : "ve",
                  pixels / ((double)mosaic->geom->nx * (double)mosaic->geom->ny));
    if (others > 0)
        tess_log_warn("%d other pointing%s not see the image, and %s not count", others,
                      others == 1 ? " does" : "s do", others == 1 ? "does" : "do");
}

/* Local. */
static tess_status find_all(image_run *run, image_mosaic *to)
{
    tess_status status = TESS_OK;
    to->run = run;
    to->output = -1;
    to->beam = run->output.primary_beam;
    to->geom = &run->whole.geom;
    to->limit = fmax(run->opts->beside.primary_beam.pointing_limit, DBL_MIN);
    TESS_TRY(find_patches(run, to));
    TESS_TRY(imager_job_set_targets(&run->job, to->patches.geom, to->patches.num));
    run->job.targets.may_turn = true;
    run->job.targets.in_turn = !run->job.backend->start;
cleanup:
    return status;
}

/* Memory for an image and a PSF that patches are joined to, the beam of the mosaic,
 * which pixels are covered, and a model. */
static double bytes_of(const image_run *run)
{
    const double pixels = (double)run->opts->nx * (double)run->opts->ny;
    const double value = image_is_double(run) ? 8 : 4;
    return pixels / tess_comm_size(run->comm) *
           (value * (run->num_pol + run->opts->make_psf) + 9.0 * run->num_pol +
            (image_is_cleaned(run->opts) || run->holds.stay ? 8.0 * run->num_pol : 0));
}

tess_status image_mosaic_open(image_run *run)
{
    tess_status status = TESS_OK;
    if (!run->opts->selection.joins_pointings) return TESS_OK;
    TESS_TRY(image_primary_beam_find(run));
    image_mosaic *mosaic = tess_alloc_zero(1, sizeof *mosaic);
    TESS_TRY(tess_comm_agree(run->comm, mosaic ? TESS_OK : TESS_ERR_ALLOC));
    run->whole.mosaic = mosaic;
    TESS_TRY(tess_comm_agree(run->comm, find_all(run, mosaic)));
    if (tess_comm_rank(run->comm) == 0) tell(mosaic);
    run->whole.patches = &mosaic->patches;
    run->job.view =
        (imager_view){.num_pol = run->num_pol, .counts = counts, .context = mosaic};
    run->job.memory.joined_bytes = bytes_of(run);
cleanup:
    return status;
}

void image_mosaic_forget_model(image_mosaic *mosaic)
{
    for (int p = 0; p < TESS_MAX_POL; ++p)
        tess_rows_free(&mosaic->model[p]);
}

void image_mosaic_free(image_mosaic *mosaic)
{
    if (!mosaic) return;
    image_mosaic_forget_model(mosaic);
    forget_beams(mosaic);
    tess_free((void *)mosaic->mean);
    tess_free(mosaic->beam_of);
    tess_free(mosaic->patch_of);
    image_patches_free(&mosaic->patches);
    tess_free(mosaic);
}
