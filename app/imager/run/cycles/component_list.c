/* Gathers the components that minor loops have kept, and makes a list of sources of
 * them. */
#include "majors_private.h"

#include <math.h>
#include <string.h>

#include "image_kinds.h"
#include "mean_sources.h"
#include "tess_geom.h"
#include "tess_mem.h"
#include "tess_source_list.h"

enum { STOKES_I = 1 };

/* A Gaussian component of scale α has the standard deviation 3α/16 (Offringa & Smirnov
 * 2017): its FWHM is that times 2 sqrt(2 ln 2). */
static const double SIGMA_OF_SCALE = 3.0 / 16;

/* The list that is made, on the first rank. */
typedef struct list_maker {
    const majors *all;
    const cleaned *group; /* of Stokes I, NULL: it has no data */
    int pol;              /* Stokes I */
    double ref_hz;
    tess_source_list list;
} list_maker;

static const cleaned *group_of(const majors *all, int pol)
{
    for (int g = 0; g < all->num_groups; ++g) {
        const cleaned *group = &all->group[g];
        if (pol >= group->first_pol && pol < group->first_pol + group->num_pol)
            return group->clean ? group : NULL;
    }
    return NULL;
}

/* ν0 of the spectra, or the mean frequency by weight. */
static double reference_hz(const list_maker *maker)
{
    const majors *all = maker->all;
    double sum = 0, weights = 0;
    const double fitted =
        maker->group ? tess_clean_reference_hz(maker->group->clean) : 0;
    if (fitted > 0) return fitted;
    for (int c = 0; c < all->num_channels; ++c) {
        const group_channel *channel = &all->channel[c];
        const double weight =
            channel->has_data ? channel->made[maker->pol].sum_weights : 0;
        sum += weight * channel->freq_hz;
        weights += weight;
    }
    return weights > 0 ? sum / weights : all->channel[0].freq_hz;
}

/* Where pixel `index` of the images is. */
static void place(const majors *all, int64_t index, tess_listed_source *source)
{
    const int64_t nx = all->images.nx, ny = all->images.ny;
    const double scale_rad = all->run->opts->scale_rad;
    const double *middle = all->run->info->turn;
    const double l = middle[0] - (double)(index % nx - nx / 2) * scale_rad;
    const double m = middle[1] + (double)(index / nx - ny / 2) * scale_rad;
    const double r2 = l * l + m * m;
    const double lmn1[] = {l, m, -r2 / (1 + sqrt(fmax(0, 1 - r2)))};
    tess_sky_place(lmn1, all->run->info->ra_rad, all->run->info->dec_rad,
                   &source->ra_rad, &source->dec_rad);
}

/* The components of a scale, index[count] and term[count][num_terms]. Local. */
static tess_status add_components(list_maker *maker, int scale, double scale_px,
                                  const int64_t *index, const double *term,
                                  int64_t count, int num_terms)
{
    tess_status status = TESS_OK;
    const tess_join_choice *join = &maker->all->run->opts->clean.join;
    const double width_rad = 2 * sqrt(2 * log(2.0)) * SIGMA_OF_SCALE * scale_px *
                             maker->all->run->opts->scale_rad;
    for (int64_t k = 0; k < count; ++k) {
        tess_listed_source source = {
            .flux_jy = {term[k * num_terms]},
            .is_gaussian = scale_px > 0,
            .major_rad = width_rad,
            .minor_rad = width_rad,
            .is_log = num_terms > 1 && join->spectrum == TESS_CLEAN_LOG_POLYNOMIAL,
            .num_terms = num_terms - 1,
            .ref_hz = maker->ref_hz,
            .scale = scale};
        place(maker->all, index[k], &source);
        TESS_TRY(tess_source_list_add(&maker->list, &source, term + k * num_terms + 1));
    }
cleanup:
    return status;
}

/* What the flux of a component is over to be true: the root of the response of facets
 * at a pixel of this rank, on average over channels by weight. */
static double root_at(const list_maker *maker, int64_t index)
{
    const majors *all = maker->all;
    double sum = 0, weights = 0;
    for (int c = 0; c < all->num_channels; ++c) {
        const imager_product *root =
            majors_product(all, c, IMAGE_PRIMARY_BEAM, maker->pol);
        const double weight = all->channel[c].made[maker->pol].sum_weights;
        if (!all->channel[c].has_data) continue;
        sum += weight * tess_rows_pixel(&root->rows,
                                        index - root->rows.row_first * all->images.nx);
        weights += weight;
    }
    return sum / weights;
}

/* Makes the fluxes of this rank's components true. Of a polynomial of logarithms, the
 * first term alone is a flux. */
static void make_true(const list_maker *maker, tess_clean_list *own)
{
    const image_run *run = maker->all->run;
    const bool is_log = run->opts->clean.join.spectrum == TESS_CLEAN_LOG_POLYNOMIAL;
    if (!image_has_response(run->opts)) return;
    for (int64_t k = 0; k < own->count; ++k) {
        const double root = root_at(maker, own->index[k]);
        for (int t = 0; t < (is_log ? 1 : own->num_terms); ++t)
            own->term[k * own->num_terms + t] /= root;
    }
}

/* The components of a scale of all ranks, in the order of their pixels. Collective. */
static tess_status gather_scale(list_maker *maker, int scale, double scale_px)
{
    tess_status status = TESS_OK;
    tess_comm *comm = maker->all->slabs;
    tess_clean_list own = {0};
    void *index = NULL, *term = NULL;
    int64_t *bytes = tess_alloc_zero(tess_comm_size(comm), sizeof *bytes), all = 0;
    status = bytes ? tess_clean_components(maker->group->clean, scale,
                                           maker->pol - maker->group->first_pol, &own)
                   : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(comm, status));
    make_true(maker, &own);
    const int64_t term_bytes = own.count * own.num_terms * (int64_t)sizeof *own.term;
    TESS_TRY(tess_comm_gatherv(comm, own.term, term_bytes, 0, &term, bytes));
    TESS_TRY(tess_comm_gatherv(comm, own.index, own.count * (int64_t)sizeof *own.index,
                               0, &index, bytes));
    for (int r = 0; tess_comm_rank(comm) == 0 && r < tess_comm_size(comm); ++r)
        all += bytes[r];
    TESS_TRY(tess_comm_agree(comm, add_components(maker, scale, scale_px, index, term,
                                                  all / (int64_t)sizeof *own.index,
                                                  own.num_terms)));
cleanup:
    tess_clean_list_free(&own);
    tess_free(index);
    tess_free(term);
    tess_free(bytes);
    return status;
}

tess_status component_list_make(const majors *all, image_source_list *list)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    list_maker maker = {.all = all};
    double scale_px[TESS_CLEAN_MOST_SCALES];
    char *text = NULL;
    while (maker.pol < run->num_pol - 1 && run->pol[maker.pol].code != STOKES_I)
        ++maker.pol;
    maker.group = group_of(all, maker.pol);
    maker.ref_hz = reference_hz(&maker);
    const int num_scales = tess_clean_scales(&all->images, &all->opts, scale_px, NULL);
    for (int s = 0; maker.group && s < num_scales; ++s)
        TESS_TRY(gather_scale(&maker, s, scale_px[s]));
    if (tess_comm_rank(all->slabs) == 0)
        status = tess_source_list_text(&maker.list, maker.ref_hz, &text);
    /* a channel that is not cleaned has its weight in the mean, too */
    if (text && run->outputs.num_channels > 1 && !image_joins_channels(run->opts))
        status = mean_sources_note(all->channel[0].made[maker.pol].sum_weights,
                                   maker.ref_hz, &text);
    TESS_TRY(tess_comm_agree(run->comm, status));
    tess_free(list->text);
    *list = (image_source_list){.text = text, .output = all->channel[0].output};
    text = NULL;
cleanup:
    tess_free(text);
    tess_source_list_free(&maker.list);
    return status;
}
