/* Joins the images of patches to one image of the run, and shares a model of the run
 * out to the patches. Pixels of patches and of the image lie on other ranks. */
#include "patch_images.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "image_facets.h"
#include "image_mosaic.h"
#include "imager_model.h"
#include "imager_targets.h"
#include "rows_exchange.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_planes.h"

/* ---- where rows lie ---- */

/* This rank's rows of an image of the run, without memory. */
static tess_rows rows_of_image(const image_run *run, tess_pixel type)
{
    const tess_geom *geom = &run->whole.geom;
    int64_t first, count;
    tess_planes_final_rows(geom->ny, run->job.ranks.fft_ranks,
                           tess_comm_rank(run->job.comm), tess_comm_size(run->job.comm),
                           &first, &count);
    return tess_rows_of(geom->nx, geom->ny, first, count, type);
}

/* Rows of a target as part of the image, in which its first pixel lies at x0, y0. */
static tess_rows part_of_image(const image_run *run, const tess_rows *target,
                               int64_t x0, int64_t y0)
{
    tess_rows part = *target;
    part.nx = run->whole.geom.nx;
    part.ny = run->whole.geom.ny;
    part.row_first += y0;
    part.col_first = x0;
    part.num_cols = target->nx;
    return part;
}

/* The part of these rows that lies in a box, without memory. */
static tess_rows part_in_box(const tess_rows *rows, const tess_facet_box *box)
{
    tess_rows part = tess_rows_like(rows, rows->type);
    const int64_t end = rows->row_first + rows->num_rows;
    const int64_t last = end < box->y1 ? end : box->y1;
    if (part.row_first < box->y0) part.row_first = box->y0;
    part.num_rows = last > part.row_first ? last - part.row_first : 0;
    part.col_first = box->x0;
    part.num_cols = box->x1 - box->x0;
    return part;
}

/* ---- pixels and weights ---- */

/* This rank's part of the image of a patch. */
typedef struct patch_part {
    patch_weigher weigher;
    tess_rows rows; /* within the image of the run */
} patch_part;

/* Does something with row k of a part, of which weight[num_cols] are the weights. */
typedef void part_row(const patch_part *part, int64_t k, const double *weight,
                      void *context);

/* Finds the columns [*first, *end) of row k of a part outside of which all pixels are
 * 0.
 */
static void find_pixels(const tess_rows *rows, int64_t k, int64_t *first, int64_t *end)
{
    const int64_t num = rows->num_cols;
    *first = 0;
    *end = num;
    while (*first < num && !(fabs(tess_rows_pixel(rows, k * num + *first)) > 0))
        ++*first;
    while (*end > *first && !(fabs(tess_rows_pixel(rows, k * num + *end - 1)) > 0))
        --*end;
}

/* Which rows and columns of a part have weights: all, or those of pixels that are not
 * 0, which few of a model are. */
typedef enum part_pixels { ALL_PIXELS, PIXELS_OF_MODEL } part_pixels;

/* Calls a function for rows of a part that have weights. TESS_ERR_ALLOC. Local. */
static tess_status each_row(const patch_part *part, part_pixels which, int threads,
                            part_row *function, void *context)
{
    tess_status status = TESS_OK;
    const tess_rows *rows = &part->rows;
    const patch_weigher *by = &part->weigher;
    bool complete = true;
#pragma omp parallel num_threads(threads) reduction(&& : complete)
    {
        void *work = NULL;
        double *weight = tess_alloc(rows->num_cols, sizeof *weight);
        complete = weight && (!by->begin || by->begin(by, &work) == TESS_OK);
#pragma omp for schedule(dynamic, 16)
        for (int64_t k = 0; k < rows->num_rows; ++k) {
            int64_t first = 0, end = rows->num_cols;
            if (!complete) continue;
            if (which == PIXELS_OF_MODEL) find_pixels(rows, k, &first, &end);
            if (first == end) continue;
            by->weigh(by, work, rows->row_first + k, rows->col_first + first,
                      rows->col_first + end, weight + first);
            function(part, k, weight, context);
        }
        if (by->end) by->end(work);
        tess_free(weight);
    }
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "weights of a part of an image");
cleanup:
    return status;
}

/* ---- patches to an image ---- */

/* Where a patch's pixels are added. */
typedef struct join_to {
    int64_t output;
    bool is_hard;             /* patches have no slopes, as models */
    double factor;            /* of the patch's pixels */
    double root;              /* root of its response; of a pointing, its share of the
                                 weights */
    bool squares;             /* whether roots are of squares of weights, too */
    const tess_rows *image;   /* of all columns, as are the next ones */
    const tess_rows *root_of; /* gets the root, or has no memory */
    const tess_rows *covered;
} join_to;

static inline void add_pixel(const tess_rows *rows, int64_t at, double value)
{
    tess_rows_set(rows, at, tess_rows_pixel(rows, at) + value);
}

/* Rows are copied, so that the compiler knows that no pixel changes them. */
static void join_row(const patch_part *part, int64_t k, const double *weight,
                     void *context)
{
    const join_to to = *(const join_to *)context;
    const tess_rows rows = part->rows, image = *to.image, root_of = *to.root_of;
    uint8_t *const covered = to.covered->value;
    const int64_t row = rows.row_first + k - image.row_first;
    const int64_t first = row * image.num_cols + rows.col_first;
    for (int64_t i = 0; i < rows.num_cols; ++i) {
        if (!(fabs(weight[i]) > 0)) continue;
        add_pixel(&image, first + i,
                  weight[i] * to.factor *
                      tess_rows_pixel(&rows, k * rows.num_cols + i));
        if (root_of.value)
            add_pixel(&root_of, first + i,
                      weight[i] * (to.squares ? weight[i] : 1) * to.root);
        covered[first + i] = 1;
    }
}

/* How the pixels of a patch are weighted in the images of an output or, without slopes,
 * in a model and in images for minor loops. Local. */
static tess_status find_weigher(const image_run *run, int64_t output, int target,
                                bool is_hard, patch_weigher *weigher)
{
    if (run->whole.mosaic) return image_mosaic_weigher(run, output, target, weigher);
    *weigher = image_facets_weigher(run->whole.facets, target, is_hard);
    return TESS_OK;
}

/* Sets what is added of a patch. The image of a pointing is that of its own samples
 * over all weights. */
static void set_factors(const image_run *run, const imager_product *product,
                        join_to *to)
{
    const double response = product->response, counted = product->counted;
    to->squares = run->whole.mosaic != NULL;
    to->root = to->squares ? counted : response > 0 ? sqrt(response) : (double)NAN;
    to->factor = to->squares ? 1 : counted > 0 ? 1 / (counted * to->root) : (double)NAN;
}

/* This rank's pixels of a patch: of an only rank those that it has, and of several ones
 * those that they exchange. Collective. */
static tess_status get_part(const image_run *run, const tess_rows *have,
                            tess_rows *part)
{
    tess_status status = TESS_OK;
    if (tess_comm_size(run->job.comm) == 1) return tess_rows_view(have, part);
    TESS_TRY(tess_comm_agree(run->job.comm, tess_rows_alloc(part)));
    TESS_TRY(imager_rows_exchange(run->job.comm, have, part));
cleanup:
    return status;
}

/* Adds the image of a patch. Collective. */
static tess_status join_patch(const image_run *run, int target,
                              const imager_product *product, join_to *to)
{
    tess_status status = TESS_OK;
    const tess_facet_box box = image_patches_box(run->whole.patches, target);
    const tess_rows have = part_of_image(run, &product->rows, box.x0, box.y0);
    patch_part part = {.rows = part_in_box(to->image, &box)};
    set_factors(run, product, to);
    status = find_weigher(run, to->output, target, to->is_hard, &part.weigher);
    TESS_TRY(tess_comm_agree(run->job.comm, status));
    TESS_TRY(get_part(run, &have, &part.rows));
    TESS_TRY(tess_comm_agree(
        run->job.comm,
        each_row(&part, ALL_PIXELS, run->opts->layout.threads, join_row, to)));
cleanup:
    tess_rows_free(&part.rows);
    return status;
}

/* Pixels of no patch are not imaged. */
static void blank_others(const join_to *to, int threads)
{
    const uint8_t *const covered = to->covered->value;
    const int64_t count = tess_rows_count(to->covered);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t k = 0; k < count; ++k) {
        if (covered[k] != 0) continue;
        tess_rows_set(to->image, k, (double)NAN);
        if (to->root_of->value) tess_rows_set(to->root_of, k, (double)NAN);
    }
}

/* Makes what has been added of pointings an image of even noise, Σ W B D / √(P max P),
 * and Σ W B² / Σ W the beam of the mosaic, √(P / max P), where P = Σ W B². Sets `most`
 * to max P / Σ W. Pixels below the limit are not imaged. Collective. */
static tess_status finish_mosaic(const image_run *run, const join_to *to, double *most)
{
    tess_status status = TESS_OK;
    const double limit = run->opts->beside.primary_beam.limit;
    const int64_t count = tess_rows_count(to->image);
    const int threads = run->opts->layout.threads;
    double largest = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(max : largest)
    for (int64_t k = 0; k < count; ++k)
        largest = fmax(largest, tess_rows_pixel(to->root_of, k));
    TESS_TRY(tess_comm_allreduce_f64(run->job.comm, &largest, 1, TESS_MAX));
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t k = 0; k < count; ++k) {
        const double root = sqrt(tess_rows_pixel(to->root_of, k) / largest);
        const double sum = tess_rows_pixel(to->image, k);
        tess_rows_set(to->image, k,
                      root > 0 && root >= limit ? sum / (root * largest) : (double)NAN);
        tess_rows_set(to->root_of, k, root);
    }
    *most = largest;
cleanup:
    return status;
}

/* The images of an output while patches are joined to them. */
typedef struct joined {
    int64_t output;
    bool is_hard;                    /* without slopes */
    tess_rows *image;                /* [num_pol] */
    tess_rows root[TESS_MAX_POL];    /* their roots, or no memory */
    tess_rows covered[TESS_MAX_POL]; /* pixels of any patch */
} joined;

static join_to join_to_pol(const joined *all, int pol)
{
    return (join_to){.output = all->output,
                     .is_hard = all->is_hard,
                     .image = &all->image[pol],
                     .root_of = &all->root[pol],
                     .covered = &all->covered[pol]};
}

/* Gives rows zeros. The system provides pages to all threads at a time. */
static tess_status alloc_zero(int threads, tess_rows *rows)
{
    tess_status status = TESS_OK;
    const int64_t line = rows->num_cols * tess_pixel_bytes(rows->type);
    TESS_TRY(tess_rows_alloc(rows));
    char *const value = rows->value;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t k = 0; k < rows->num_rows; ++k)
        memset(value + k * line, 0, (size_t)line);
cleanup:
    return status;
}

/* Begins with images of zeros. Many pointings are summed up in a pixel, but at most the
 * two or three facets that meet there. Local. */
static tess_status start_joining(const image_run *run, bool with_roots, joined *all)
{
    tess_status status = TESS_OK;
    const int threads = run->opts->layout.threads;
    const tess_pixel pixel = tess_pixel_of(image_is_double(run));
    const tess_pixel root = run->whole.mosaic ? TESS_PIXEL_DOUBLE : pixel;
    for (int p = 0; p < run->num_pol; ++p) {
        all->image[p] = rows_of_image(run, pixel);
        all->root[p] = rows_of_image(run, root);
        all->covered[p] = rows_of_image(run, TESS_PIXEL_MASK);
        TESS_TRY(alloc_zero(threads, &all->image[p]));
        if (with_roots) TESS_TRY(alloc_zero(threads, &all->root[p]));
        TESS_TRY(alloc_zero(threads, &all->covered[p]));
    }
cleanup:
    return status;
}

/* Adds the images of a patch, whose rows are freed. Collective. */
static tess_status add_patch(const image_run *run, int patch, imager_product *product,
                             joined *all)
{
    tess_status status = TESS_OK;
    double mark = tess_time_now();
    for (int p = 0; p < run->num_pol; ++p) {
        join_to to = join_to_pol(all, p);
        TESS_TRY(join_patch(run, patch, &product[p], &to));
        tess_rows_free(&product[p].rows);
    }
    tess_profile_lap(run->profile, TESS_STAGE_REDUCE, &mark);
cleanup:
    return status;
}

/* Finishes the images, which have the facts of the first patch. `response` NULL: it is
 * not wanted. Collective. */
static tess_status finish_joining(const image_run *run, const imager_product *first,
                                  joined *all, imager_product *response)
{
    tess_status status = TESS_OK;
    for (int p = 0; p < run->num_pol; ++p) {
        const join_to to = join_to_pol(all, p);
        double most = 0;
        if (run->whole.mosaic)
            TESS_TRY(finish_mosaic(run, &to, &most));
        else
            blank_others(&to, run->opts->layout.threads);
        if (!response) continue;
        response[p] = first[p];
        if (run->whole.mosaic) response[p].response = most;
        response[p].rows = all->root[p];
        all->root[p] = (tess_rows){0};
    }
cleanup:
    return status;
}

static void free_joined(joined *all)
{
    for (int p = 0; p < TESS_MAX_POL; ++p) {
        tess_rows_free(&all->root[p]);
        tess_rows_free(&all->covered[p]);
    }
}

/* Warns of facets that have no solutions for some of the data, in one line, and notes
 * how many samples these are. */
static void tell_uncounted(const image_run *run, const imager_product *product)
{
    const image_facets *facets = run->whole.facets;
    char text[400] = "";
    size_t used = 0;
    int64_t all = 0;
    for (int k = 0; facets && k < facets->patches.num; ++k) {
        const imager_product *of = &product[k * TESS_MAX_IMAGES];
        const tess_facet *facet = &facets->facets.facet[facets->facet[k]];
        if (of->unsolved == 0) continue;
        all += of->unsolved;
        if (used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "%s facet %s %lld (%.3g %% of the weights)",
                                     used ? "," : "", facet->name,
                                     (long long)of->unsolved, 100 * (1 - of->counted));
    }
    run->profile->grid.unsolved += all;
    if (all > 0)
        tess_log_warn("visibilities without a solution do not count in the facets that "
                      "lack it:%s%s",
                      text, used < sizeof text ? "" : " ...");
}

/* ---- the PSF ---- */

/* Brings the PSF of a patch into rows of an image, in whose middle it is. Collective.
 */
static tess_status to_middle(const image_run *run, int patch, const tess_rows *psf,
                             tess_rows *out)
{
    tess_status status = TESS_OK;
    const tess_geom *geom = &run->whole.geom, *own = imager_job_geom(&run->job, patch);
    *out = rows_of_image(run, psf->type);
    TESS_TRY(tess_comm_agree(run->job.comm, tess_rows_alloc_zero(out)));
    const tess_rows have =
        part_of_image(run, psf, geom->nx / 2 - own->nx / 2, geom->ny / 2 - own->ny / 2);
    TESS_TRY(imager_rows_exchange(run->job.comm, &have, out));
cleanup:
    return status;
}

/* Makes the PSF of all samples that of a mosaic. Collective. */
static tess_status narrow_psf(const image_run *run, const imager_product *product,
                              const tess_rows *psf)
{
    tess_status status = TESS_OK;
    const int num = imager_job_num_targets(&run->job);
    double *weight = tess_alloc(num, sizeof *weight);
    if (!weight) TESS_FAIL(TESS_ERR_ALLOC, "weights of pointings");
    for (int k = 0; k < num; ++k)
        weight[k] = product[k * TESS_MAX_IMAGES].counted;
    TESS_TRY(image_mosaic_narrow_psf(run, weight, psf));
cleanup:
    tess_free(weight);
    return status;
}

/* Makes the PSF of one patch that of the image. Collective. */
static tess_status make_psf(const image_run *run, visset *set,
                            const imager_stages *stages, imager_product *product,
                            imager_product *psf)
{
    tess_status status = TESS_OK;
    const int patch = run->whole.patches->largest;
    imager_product *of_patch = &product[patch * TESS_MAX_IMAGES];
    const visset_request request = {
        .of_sources = true, .first_target = patch, .num_targets = 1};
    TESS_TRY(visset_image(set, &request, stages, product));
    *psf = *of_patch;
    TESS_TRY(to_middle(run, patch, &of_patch->rows, &psf->rows));
    if (run->whole.mosaic)
        TESS_TRY(tess_comm_agree(run->job.comm, narrow_psf(run, product, &psf->rows)));
cleanup:
    return status;
}

/* ---- all images ---- */

static void free_products(imager_product *product, int num_targets)
{
    for (int k = 0; product && k < num_targets * TESS_MAX_IMAGES; ++k)
        tess_rows_free(&product[k].rows);
    tess_free(product);
}

/* Divides a PSF by its value in the middle. Of a patch without data, it becomes 1
 * there. Collective. */
static tess_status normalise(const image_run *run, tess_rows *psf)
{
    tess_status status = TESS_OK;
    const int64_t row = psf->ny / 2 - psf->row_first;
    double middle = -INFINITY;
    if (row >= 0 && row < psf->num_rows)
        middle = tess_rows_pixel(psf, row * psf->nx + psf->nx / 2);
    TESS_TRY(tess_comm_allreduce_f64(run->job.comm, &middle, 1, TESS_MAX));
    for (int64_t k = 0; middle > 0 && k < tess_rows_count(psf); ++k)
        tess_rows_set(psf, k, tess_rows_pixel(psf, k) / middle);
    if (!(middle > 0) && row >= 0 && row < psf->num_rows)
        tess_rows_set(psf, row * psf->nx + psf->nx / 2, 1);
cleanup:
    return status;
}

/* Collective. */
static tess_status give_psf(const image_run *run, int patch, const tess_rows *of_patch,
                            patch_psf_taker *take, void *context)
{
    tess_status status = TESS_OK;
    tess_rows psf = {0};
    TESS_TRY(to_middle(run, patch, of_patch, &psf));
    TESS_TRY(normalise(run, &psf));
    TESS_TRY(take(context, patch, &psf));
cleanup:
    tess_rows_free(&psf);
    return status;
}

tess_status patch_images_psfs(const image_run *run, visset *set, patch_psf_taker *take,
                              void *context)
{
    tess_status status = TESS_OK;
    const int num = imager_job_num_targets(&run->job);
    const imager_stages no_stages = {.comm = run->job.comm};
    const visset_request request = {.of_sources = true, .with_gains = true};
    imager_product *product =
        tess_alloc_zero((int64_t)num * TESS_MAX_IMAGES, sizeof *product);
    TESS_TRY(tess_comm_agree(run->job.comm, product ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(visset_image(set, &request, &no_stages, product));
    for (int k = 0; k < num; ++k)
        TESS_TRY(give_psf(run, k, &product[k * TESS_MAX_IMAGES].rows, take, context));
cleanup:
    free_products(product, num);
    return status;
}

/* Makes the images of patches, all together or, of targets in turn, one after the
 * other, and adds them. Collective. */
static tess_status make_patches(const image_run *run, visset *set,
                                const visset_request *request,
                                const imager_stages *stages, imager_product *product,
                                joined *all)
{
    tess_status status = TESS_OK;
    const int num = imager_job_num_targets(&run->job);
    const int at_once = imager_job_in_turn(&run->job) ? 1 : num;
    visset_request some = *request;
    some.psf = false;
    for (int first = 0; first < num; first += at_once) {
        if (at_once < num) {
            some.first_target = first;
            some.num_targets = at_once;
        }
        TESS_TRY(visset_image(set, &some, stages, product));
        for (int k = first; k < first + at_once; ++k)
            TESS_TRY(add_patch(run, k, &product[k * TESS_MAX_IMAGES], all));
    }
cleanup:
    return status;
}

/* What is made of patches. */
typedef struct patch_request {
    visset_request of;
    int64_t output;
    bool is_hard; /* without slopes */
} patch_request;

/* Makes the images of all patches, made[num_pol]. Collective. */
static tess_status make_joined(const image_run *run, visset *set,
                               const patch_request *request,
                               const imager_stages *stages, imager_product *product,
                               imager_product *made, imager_product *response)
{
    tess_status status = TESS_OK;
    tess_rows image[TESS_MAX_POL] = {0};
    joined all = {
        .output = request->output, .is_hard = request->is_hard, .image = image};
    const bool with_roots = response || run->whole.mosaic;
    double mark = tess_time_now();
    TESS_TRY(tess_comm_agree(run->job.comm, start_joining(run, with_roots, &all)));
    tess_profile_lap(run->profile, TESS_STAGE_REDUCE, &mark);
    TESS_TRY(make_patches(run, set, &request->of, stages, product, &all));
    mark = tess_time_now();
    if (run->whole.mosaic) image_mosaic_forget_model(run->whole.mosaic);
    if (response && tess_comm_rank(run->job.comm) == 0) tell_uncounted(run, product);
    TESS_TRY(finish_joining(run, product, &all, response));
    tess_profile_lap(run->profile, TESS_STAGE_REDUCE, &mark);
    for (int p = 0; p < run->num_pol; ++p) {
        made[p] = product[p];
        made[p].rows = image[p];
        image[p] = (tess_rows){0};
    }
cleanup:
    for (int p = 0; p < TESS_MAX_POL; ++p)
        tess_rows_free(&image[p]);
    free_joined(&all);
    return status;
}

/* Collective. */
static tess_status make_images(const image_run *run, visset *set,
                               const patch_request *request,
                               const imager_stages *stages, imager_product *made,
                               imager_product *response)
{
    tess_status status = TESS_OK;
    const int num = imager_job_num_targets(&run->job);
    if (!run->whole.patches) return visset_image(set, &request->of, stages, made);
    imager_product *product =
        tess_alloc_zero((int64_t)num * TESS_MAX_IMAGES, sizeof *product);
    TESS_TRY(tess_comm_agree(run->job.comm, product ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(make_joined(run, set, request, stages, product, made, response));
    if (request->of.psf)
        TESS_TRY(make_psf(run, set, stages, product, &made[run->num_pol]));
cleanup:
    free_products(product, num);
    return status;
}

tess_status patch_images_make(const image_run *run, int64_t output, visset *set,
                              const visset_request *request,
                              const imager_stages *stages, imager_product *made,
                              imager_product *response)
{
    const patch_request of_patches = {.of = *request, .output = output};
    return make_images(run, set, &of_patches, stages, made, response);
}

tess_status patch_images_residual(const image_run *run, int64_t output, visset *set,
                                  bool is_hard, imager_product *made)
{
    const imager_stages no_stages = {.comm = run->job.comm};
    const patch_request request = {
        .of = {.less_model = true}, .output = output, .is_hard = is_hard};
    return make_images(run, set, &request, &no_stages, made, NULL);
}

/* ---- an image to patches ---- */

/* This rank's rows of a model over the root of its response: in true flux. NaN becomes
 * 0. */
static tess_status true_model(const tess_rows *model, const tess_rows *response,
                              int threads, tess_rows *out)
{
    tess_status status = TESS_OK;
    tess_rows view = {0}, root = {0};
    *out = tess_rows_like(model, TESS_PIXEL_DOUBLE);
    TESS_TRY(tess_rows_alloc(out));
    TESS_TRY(tess_rows_view(model, &view));
    if (response) TESS_TRY(tess_rows_view(response, &root));
    const int64_t count = tess_rows_count(out);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t k = 0; k < count; ++k) {
        const double pixel = tess_rows_pixel(&view, k);
        const double value = root.value ? pixel / tess_rows_pixel(&root, k) : pixel;
        tess_rows_set(out, k, isfinite(value) ? value : 0);
    }
cleanup:
    tess_rows_free(&view);
    tess_rows_free(&root);
    return status;
}

static void weigh_row(const patch_part *part, int64_t k, const double *weight,
                      void *context)
{
    const tess_rows *rows = &part->rows;
    (void)context;
    for (int64_t i = 0; i < rows->num_cols; ++i) {
        const int64_t at = k * rows->num_cols + i;
        const double pixel = tess_rows_pixel(rows, at);
        if (fabs(pixel) > 0) tess_rows_set(rows, at, weight[i] * pixel);
    }
}

/* The part of a model that a patch predicts, on the ranks that predict it: the target
 * at work. Collective. */
static tess_status part_of_model(const image_run *run, int64_t output, int target,
                                 const tess_rows *model, tess_rows *out)
{
    tess_status status = TESS_OK;
    const imager_job *job = &run->job;
    const int64_t *first = run->whole.patches->first[target];
    tess_rows own = imager_model_rows(job);
    patch_part part;
    status = find_weigher(run, output, target, true, &part.weigher);
    if (status == TESS_OK) status = tess_rows_alloc_zero(&own);
    TESS_TRY(tess_comm_agree(job->comm, status));
    part.rows = part_of_image(run, &own, first[0], first[1]);
    TESS_TRY(imager_rows_exchange(job->comm, model, &part.rows));
    TESS_TRY(tess_comm_agree(
        job->comm,
        each_row(&part, PIXELS_OF_MODEL, run->opts->layout.threads, weigh_row, NULL)));
    *out = own;
    own = (tess_rows){0};
cleanup:
    tess_rows_free(&own);
    return status;
}

/* Shares the model out to a patch. Collective. */
static tess_status set_patch_model(image_run *run, int64_t output, int patch,
                                   const tess_rows *model)
{
    tess_status status = TESS_OK;
    tess_rows part[TESS_MAX_POL] = {0};
    imager_job_aim(&run->job, patch);
    if (imager_job_in_turn(&run->job))
        TESS_TRY(
            tess_comm_agree(run->job.comm, tess_planes_clear(run->job.model.planes)));
    for (int p = 0; p < run->num_pol; ++p)
        TESS_TRY(part_of_model(run, output, patch, &model[p], &part[p]));
    TESS_TRY(imager_model_set(&run->job, part));
cleanup:
    for (int p = 0; p < run->num_pol; ++p)
        tess_rows_free(&part[p]);
    return status;
}

/* Sets the model of a target of a mosaic, as an imager_view.set_model. Collective. */
static tess_status set_kept_model(const void *mosaic, int target)
{
    const image_mosaic *of = mosaic;
    double mark = tess_time_now();
    const tess_status status =
        set_patch_model(of->run, of->model_output, target, of->model);
    tess_profile_lap(of->run->profile, TESS_STAGE_CORRECT, &mark);
    return status;
}

/* Keeps a model in true flux for the pointings, which it is shared out to one by one.
 * Local. */
static void keep_model(image_run *run, int64_t output, tess_rows *in_flux)
{
    image_mosaic *mosaic = run->whole.mosaic;
    run->job.view.set_model = set_kept_model;
    mosaic->model_output = output;
    for (int p = 0; p < run->num_pol; ++p) {
        tess_rows_free(&mosaic->model[p]);
        mosaic->model[p] = in_flux[p];
        in_flux[p] = (tess_rows){0};
    }
}

tess_status patch_images_set_model(image_run *run, int64_t output,
                                   const tess_rows *model,
                                   const imager_product *response)
{
    tess_status status = TESS_OK;
    tess_rows in_flux[TESS_MAX_POL] = {0};
    if (!run->whole.patches) return imager_model_set(&run->job, model);
    for (int p = 0; p < run->num_pol && status == TESS_OK; ++p)
        status = true_model(&model[p], response ? &response[p].rows : NULL,
                            run->opts->layout.threads, &in_flux[p]);
    TESS_TRY(tess_comm_agree(run->job.comm, status));
    if (run->whole.mosaic) {
        keep_model(run, output, in_flux);
        goto cleanup;
    }
    for (int k = 0; k < imager_job_num_targets(&run->job); ++k)
        TESS_TRY(set_patch_model(run, output, k, in_flux));
cleanup:
    imager_job_aim(&run->job, 0);
    for (int p = 0; p < run->num_pol; ++p)
        tess_rows_free(&in_flux[p]);
    return status;
}
