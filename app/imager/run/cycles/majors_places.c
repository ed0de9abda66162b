/* Facets for the minor loops of a group: their PSFs, and what they see of one another.
 */
#include "image_facets.h"
#include "majors_private.h"
#include "patch_images.h"
#include "tess_mem.h"

tess_clean_places majors_places(const image_run *run)
{
    image_facets *facets = run->whole.facets;
    const bool have_psfs = run->opts->gridding.facets.psf_per_facet;
    if (!facets || !(have_psfs || facets->likeness)) return (tess_clean_places){0};
    return (tess_clean_places){.num = facets->patches.num,
                               .of = image_facets_place,
                               .have_psfs = have_psfs,
                               .likeness = facets->likeness,
                               .rows = image_facets_places,
                               .context = facets};
}

tess_status majors_compare_gains(majors *all)
{
    tess_status status = TESS_OK;
    enum { OF_EACH = 3 }; /* frequencies of a channel */
    const image_run *run = all->run;
    const image_facets *facets = run->whole.facets;
    const output_table *outputs = &run->outputs;
    double *freq_hz = NULL, centre_hz, width_hz;
    if (!facets || !facets->likeness || all->num_channels == outputs->num_channels)
        return TESS_OK;
    const int64_t num = facets->patches.num, num_freq = OF_EACH * all->num_channels;
    freq_hz = tess_alloc(num_freq, sizeof *freq_hz);
    all->likeness = tess_alloc(num * num, sizeof *all->likeness);
    if (!freq_hz || !all->likeness) TESS_FAIL(TESS_ERR_ALLOC, "gains of facets");
    for (int64_t k = 0; k < num_freq; ++k) {
        const group_channel *channel = &all->channel[k / OF_EACH];
        output_table_band(outputs, run->info, channel->output % outputs->num_channels,
                          &centre_hz, &width_hz);
        freq_hz[k] = centre_hz + (double)(k % OF_EACH - 1) / OF_EACH * width_hz;
    }
    TESS_TRY(image_facets_likeness(facets, num_freq, freq_hz, all->likeness));
cleanup:
    tess_free(freq_hz);
    return status;
}

/* Who takes the PSFs of a channel. */
typedef struct psf_target {
    const majors *all;
    cleaned *group;
    int channel;
} psf_target;

static tess_status take_psf(void *context, int patch, const tess_rows *psf)
{
    tess_status status = TESS_OK;
    const psf_target *to = context;
    const int num_pol = to->group->num_pol;
    for (int p = 0; p < num_pol; ++p)
        if (majors_weight(to->all, to->channel, to->group->first_pol + p) > 0)
            TESS_TRY(tess_clean_set_psf_of(to->group->clean, to->channel * num_pol + p,
                                           patch, psf));
cleanup:
    return status;
}

tess_status majors_give_psfs(majors *all, cleaned *group)
{
    tess_status status = TESS_OK;
    const bool shares = all->num_channels > 1;
    if (!majors_places(all->run).have_psfs || majors_places(all->run).num < 2)
        return TESS_OK;
    for (int c = 0; c < all->num_channels; ++c) {
        group_channel *channel = &all->channel[c];
        psf_target to = {all, group, c};
        if (!channel->has_data) continue;
        if (shares) visset_enter(&channel->set);
        status = patch_images_psfs(all->run, &channel->set, take_psf, &to);
        if (shares) visset_leave(&channel->set);
        TESS_TRY(status);
    }
cleanup:
    return status;
}
