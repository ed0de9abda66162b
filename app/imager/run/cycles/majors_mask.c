/* Automatic masks of major cycles: before each minor loop, several thresholds find a
 * mask in the residuals (tess_multithresh.h). Channels that are cleaned together have
 * the mask of their mean by weight; polarisations that are, the union of their masks.
 * A user's mask, and the level of --pb-mask, bound it. */
#include "majors_private.h"

#include <math.h>
#include <stdio.h>

#include "clean_inputs.h"
#include "tess_mem.h"
#include "tess_words.h"

static bool finds_masks(const majors *all)
{
    return all->run->opts->clean.multithresh.finds;
}

/* Whether components are looked for in a polarisation of a group. */
static bool is_searched(const majors *all, const cleaned *group, int p)
{
    const tess_join_choice *join = &all->run->opts->clean.join;
    const int code = all->run->pol[group->first_pol + p].code;
    if (group->num_pol == 1 || join->num_linked == 0) return true;
    for (int k = 0; k < join->num_linked; ++k)
        if ((int)join->linked[k] == code) return true;
    return false;
}

/* ---- means of channels ---- */

/* The images of a group's channel of a kind. */
typedef const tess_rows *rows_of_channel(const majors *all, const cleaned *group, int c,
                                         int p);

static const tess_rows *residual_of(const majors *all, const cleaned *group, int c,
                                    int p)
{
    return &all->channel[c].residual[group->first_pol + p];
}

static const tess_rows *psf_rows_of(const majors *all, const cleaned *group, int c,
                                    int p)
{
    return &majors_psf(all, c, group->first_pol + p)->rows;
}

/* Gives the mean over channels by weight: the image itself of one channel, or a mean in
 * `own`, which the caller frees. NULL where none has data. Collective. */
static tess_status mean_of(const majors *all, const cleaned *group, int p,
                           rows_of_channel *rows, tess_rows *own,
                           const tess_rows **mean)
{
    tess_status status = TESS_OK;
    double total = 0;
    int last = -1, num = 0;
    for (int c = 0; c < all->num_channels; ++c) {
        const double weight = majors_weight(all, c, group->first_pol + p);
        if (!(weight > 0)) continue;
        total += weight;
        last = c;
        ++num;
    }
    *mean = num == 0 ? NULL : rows(all, group, last, p);
    if (num < 2) return TESS_OK;
    *own = tess_rows_like(*mean, TESS_PIXEL_DOUBLE);
    own->place = all->place;
    status = tess_rows_alloc_zero(own);
    for (int c = 0; c < all->num_channels && status == TESS_OK; ++c) {
        const double weight = majors_weight(all, c, group->first_pol + p);
        if (weight > 0)
            status = tess_rows_add(rows(all, group, c, p), weight / total,
                                   all->opts.threads, own);
    }
    TESS_TRY(tess_comm_agree(all->slabs, status));
    *mean = own;
cleanup:
    return status;
}

/* The main lobe of the mean PSF of a polarisation, and its sidelobe level. Collective.
 */
static tess_status find_sidelobe(const majors *all, const cleaned *group, int p,
                                 tess_clean_beam *lobe, double *level)
{
    tess_status status = TESS_OK;
    tess_rows own = {0};
    const tess_rows *psf;
    *level = 0;
    *lobe = all->opts.beam;
    TESS_TRY(mean_of(all, group, p, psf_rows_of, &own, &psf));
    if (!psf) return TESS_OK;
    TESS_TRY(tess_psf_lobe(all->slabs, psf, lobe));
    TESS_TRY(tess_psf_sidelobe(all->slabs, psf, lobe, level));
cleanup:
    tess_rows_free(&own);
    return status;
}

tess_status majors_group_opts(const majors *all, const cleaned *group,
                              tess_clean_opts *opts)
{
    tess_status status = TESS_OK;
    const tess_cycle_choice *cycle = &all->run->opts->clean.cycle;
    double highest = 0;
    *opts = all->opts;
    opts->method.repeats = finds_masks(all); /* what is left would let masks grow */
    if (!(cycle->factor > 0)) return TESS_OK;
    for (int p = 0; p < group->num_pol; ++p) {
        tess_clean_beam lobe;
        double level;
        TESS_TRY(find_sidelobe(all, group, p, &lobe, &level));
        highest = fmax(highest, level);
    }
    const double fraction =
        fmin(fmax(cycle->factor * highest, cycle->min_fraction), cycle->max_fraction);
    opts->mgain = 1 - fraction;
    if (tess_comm_rank(all->slabs) == 0)
        tess_log_info("minor loops end at %.3g of the peak; the highest sidelobe of "
                      "the PSF is %.3g",
                      fraction, highest);
cleanup:
    return status;
}

/* ---- rounds ---- */

tess_status majors_mask_begin(const majors *all, cleaned *group, tess_rows *user)
{
    tess_status status = TESS_OK;
    const tess_multithresh_choice *choice = &all->run->opts->clean.multithresh;
    tess_multithresh_image image = {.nx = all->images.nx,
                                    .ny = all->images.ny,
                                    .row_first = all->images.row_first,
                                    .num_rows = all->images.num_rows,
                                    .threads = all->opts.threads};
    group->masks.user = *user;
    *user = (tess_rows){0};
    for (int p = 0; p < group->num_pol; ++p) {
        if (!is_searched(all, group, p)) continue;
        TESS_TRY(find_sidelobe(all, group, p, &image.beam, &image.sidelobe_level));
        TESS_TRY(tess_multithresh_create(all->slabs, &image, &choice->opts,
                                         &group->masks.found[p]));
    }
    group->masks.region = tess_rows_of(image.nx, image.ny, image.row_first,
                                       image.num_rows, TESS_PIXEL_MASK);
    TESS_TRY(clean_inputs_beam(all->run, all->channel->output, group->first_pol,
                               &group->masks.region));
cleanup:
    return status;
}

/* "mask: 12 regions, 3 too small, above 2.1 mJy/beam (sidelobes), noise 0.3 mJy/beam,
 * 812 pixels" */
static void tell(const majors *all, const cleaned *group, int p,
                 const tess_multithresh_report *report)
{
    char above[48], noise[48], of[16] = "";
    if (tess_comm_rank(all->slabs) != 0) return;
    tess_words_flux(report->threshold, 3, above, sizeof above);
    tess_words_flux(report->sigma, 3, noise, sizeof noise);
    if (all->run->num_pol > 1) {
        char pol[8];
        tess_pol_name(&all->run->pol[group->first_pol + p], pol);
        snprintf(of, sizeof of, " of %s", pol);
    }
    if (report->sigma > 0 || report->peak > 0)
        tess_log_info(
            "mask%s: %lld region%s above %s (%s), %lld too small; noise %s, "
            "%lld pixels",
            of, (long long)report->num_regions, report->num_regions == 1 ? "" : "s",
            above, report->by_sidelobe ? "sidelobes" : "noise",
            (long long)report->num_pruned, noise, (long long)report->num_pixels);
}

/* Cleans within the masks that have been found. Collective. */
static tess_status set_masks(const majors *all, cleaned *group, bool *is_empty)
{
    tess_status status = TESS_OK;
    const group_masks *masks = &group->masks;
    tess_rows mask = tess_rows_of(all->images.nx, all->images.ny, all->images.row_first,
                                  all->images.num_rows, TESS_PIXEL_MASK);
    int64_t set = 0;
    TESS_TRY(tess_comm_agree(all->slabs, tess_rows_alloc_zero(&mask)));
    for (int64_t k = 0; k < tess_rows_count(&mask); ++k) {
        bool is_set = false;
        for (int p = 0; p < group->num_pol; ++p)
            is_set = is_set ||
                     (masks->found[p] && tess_multithresh_pixels(masks->found[p])[k]);
        if (masks->user.value && tess_rows_pixel(&masks->user, k) == 0) is_set = false;
        tess_rows_set(&mask, k, is_set);
        set += is_set;
    }
    TESS_TRY(tess_comm_allreduce_i64(all->slabs, &set, 1, TESS_SUM));
    *is_empty = set == 0;
    if (*is_empty) goto cleanup;
    TESS_TRY(tess_comm_agree(all->slabs, tess_rows_move(&mask, all->place)));
    TESS_TRY(tess_clean_set_mask(group->clean, &mask));
cleanup:
    tess_rows_free(&mask);
    return status;
}

/* A round for a polarisation. Collective. */
static tess_status update(const majors *all, cleaned *group, int p)
{
    tess_status status = TESS_OK;
    const tess_clean_report *last = &group->report;
    const bool at_end = group->num_majors > 0 && last->threshold > 0 &&
                        !(last->threshold > last->final_threshold);
    const tess_rows *region = group->masks.region.value ? &group->masks.region : NULL;
    tess_multithresh_report report;
    tess_rows own = {0};
    const tess_rows *residual;
    TESS_TRY(mean_of(all, group, p, residual_of, &own, &residual));
    if (!residual) return TESS_OK;
    TESS_TRY(tess_multithresh_update(group->masks.found[p], residual, region, at_end,
                                     &report));
    tell(all, group, p, &report);
cleanup:
    tess_rows_free(&own);
    return status;
}

/* Keeps a mask as it is before a round that may be the last. Local. */
static tess_status keep_mask(const majors *all, cleaned *group, int p)
{
    tess_status status = TESS_OK;
    const tess_multithresh *mask = group->masks.found[p];
    const int64_t count = all->images.num_rows * all->images.nx;
    uint32_t *before = tess_alloc(count, sizeof *before);
    if (!before) TESS_FAIL(TESS_ERR_ALLOC, "automatic mask");
    for (int64_t k = 0; k < count; ++k)
        before[k] = (uint32_t)tess_multithresh_state(mask, k);
    group->masks.before[p] = before;
    group->masks.rounds_before[p] = tess_multithresh_rounds(mask);
cleanup:
    return status;
}

void majors_mask_end(cleaned *group)
{
    const bool has_found = group->report.iterations > 0;
    for (int p = 0; p < group->num_pol; ++p) {
        if (group->masks.before[p] && !has_found)
            tess_multithresh_resume(group->masks.found[p],
                                    group->masks.rounds_before[p],
                                    group->masks.before[p]);
        tess_free(group->masks.before[p]);
        group->masks.before[p] = NULL;
    }
    group->masks.is_ready = false;
}

tess_status majors_mask_update(const majors *all, cleaned *group, bool *is_empty)
{
    tess_status status = TESS_OK;
    const bool may_end =
        group->num_majors > 0 && group->report.end == TESS_CLEAN_FINAL_THRESHOLD;
    *is_empty = false;
    if (!finds_masks(all)) return TESS_OK;
    for (int p = 0; p < group->num_pol && may_end && status == TESS_OK; ++p)
        if (group->masks.found[p] && !group->masks.is_ready)
            status = keep_mask(all, group, p);
    TESS_TRY(tess_comm_agree(all->slabs, status));
    for (int p = 0; p < group->num_pol && !group->masks.is_ready; ++p)
        if (group->masks.found[p]) TESS_TRY(update(all, group, p));
    group->masks.is_ready = true;
    TESS_TRY(set_masks(all, group, is_empty));
cleanup:
    return status;
}

void majors_mask_free(cleaned *group)
{
    for (int p = 0; p < TESS_MAX_POL; ++p) {
        tess_multithresh_destroy(group->masks.found[p]);
        tess_free(group->masks.before[p]);
    }
    tess_rows_free(&group->masks.user);
    tess_rows_free(&group->masks.region);
}

double majors_mask_bytes(const image_run *run, double pixels)
{
    double most, kept;
    if (!run->opts->clean.multithresh.finds) return 0;
    tess_multithresh_bytes(pixels, &most, &kept);
    return run->num_pol * (kept + 2 * pixels) + most - kept;
}

/* ---- checkpoints ---- */

tess_status majors_take_bits(const majors *all, int image, uint32_t **found)
{
    tess_status status = TESS_OK;
    tess_rows rows = tess_rows_of(all->images.nx, all->images.ny, all->images.row_first,
                                  all->images.num_rows, TESS_PIXEL_DOUBLE);
    *found = tess_alloc(tess_rows_count(&rows), sizeof **found);
    if (!*found) TESS_FAIL(TESS_ERR_ALLOC, "automatic mask");
    TESS_TRY(tess_rows_alloc_zero(&rows));
    TESS_TRY(image_checkpoint_cycle_rows(image_run_checkpoint(all->run), image, &rows));
    for (int64_t k = 0; k < tess_rows_count(&rows); ++k)
        (*found)[k] = (uint32_t)tess_rows_pixel(&rows, k);
cleanup:
    tess_rows_free(&rows);
    return status;
}

int majors_mask_count(const majors *all)
{
    return finds_masks(all) ? all->run->num_pol : 0;
}

tess_status majors_mask_save(const majors *all, image_cycle *cycle)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < majors_mask_count(all); ++k) {
        const cleaned *group = &all->group[k / all->group[0].num_pol];
        const tess_multithresh *mask = group->masks.found[k - group->first_pol];
        tess_rows *rows = &cycle->image[cycle->num];
        *rows = tess_rows_like(&cycle->image[0], TESS_PIXEL_DOUBLE);
        TESS_TRY(tess_rows_alloc_zero(rows));
        ++cycle->num;
        for (int64_t i = 0; mask && i < tess_rows_count(rows); ++i)
            tess_rows_set(rows, i, tess_multithresh_state(mask, i));
    }
cleanup:
    return status;
}

tess_status majors_mask_take(const majors *all, cleaned *group, const int64_t *rounds,
                             int image)
{
    tess_status status = TESS_OK;
    for (int p = 0; p < group->num_pol; ++p) {
        uint32_t *found = NULL;
        if (!group->masks.found[p]) continue;
        TESS_TRY(majors_take_bits(all, image + group->first_pol + p, &found));
        tess_multithresh_resume(group->masks.found[p], rounds[p], found);
        tess_free(found);
    }
cleanup:
    return status;
}

/* ---- products ---- */

/* The mask of a polarisation: 1 where components could be. Local. */
static tess_status make_product(const majors *all, const cleaned *group, int p,
                                tess_rows *rows)
{
    tess_status status = TESS_OK;
    const tess_multithresh *mask = group->masks.found[p];
    const tess_rows *user = &group->masks.user;
    *rows = tess_rows_of(all->images.nx, all->images.ny, all->images.row_first,
                         all->images.num_rows, TESS_PIXEL_SINGLE);
    TESS_TRY(tess_rows_alloc_zero(rows));
    for (int64_t k = 0; mask && k < tess_rows_count(rows); ++k)
        if (tess_multithresh_pixels(mask)[k] &&
            !(user->value && tess_rows_pixel(user, k) == 0))
            tess_rows_set(rows, k, 1);
    TESS_TRY(tess_rows_move(rows, all->place));
cleanup:
    return status;
}

tess_status majors_mask_products(const majors *all, int channel)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < majors_mask_count(all) && status == TESS_OK; ++k) {
        const cleaned *group = &all->group[k / all->group[0].num_pol];
        status = make_product(all, group, k - group->first_pol,
                              &majors_product(all, channel, IMAGE_MASK, k)->rows);
    }
    return tess_comm_agree(all->slabs, status);
}
