/* Facets for the minor loops of a group: their PSFs, and what they see of one another.
 */
#include "image_facets.h"
#include "majors_private.h"
#include "patch_images.h"
#include "tess_mem.h"

/* Times in files are rounded by less than this. */
static const double MOMENT_S = 5e-4;

tess_clean_places majors_places(const image_run *run)
{
    image_facets *facets = run->whole.facets;
    const bool have_psfs = run->opts->gridding.facets.psf_per_facet;
    if (!facets || !(have_psfs || facets->unlike)) return (tess_clean_places){0};
    return (tess_clean_places){.num = facets->patches.num,
                               .of = image_facets_place,
                               .have_psfs = have_psfs,
                               .have_gains = facets->unlike,
                               .rows = image_facets_places,
                               .context = facets};
}

tess_clean_places majors_own_places(const majors *all)
{
    tess_clean_places places = majors_places(all->run);
    places.have_gains = all->likeness != NULL;
    places.likeness = all->likeness;
    return places.have_psfs || places.have_gains ? places : (tess_clean_places){0};
}

tess_status majors_compare_gains(majors *all)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    const image_facets *facets = run->whole.facets;
    const output_table *outputs = &run->outputs;
    const int64_t output = all->channels->first_output;
    const int64_t first = output % outputs->num_channels;
    const double *span = outputs->interval_span + 2 * (output / outputs->num_channels);
    bool *chan = NULL;
    if (!facets || !facets->unlike) return TESS_OK;
    chan = tess_alloc(outputs->num_chan, sizeof *chan);
    TESS_TRY(tess_comm_agree(run->comm, chan ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t k = 0; k < outputs->num_chan; ++k)
        chan[k] = outputs->chan_output[k] >= first &&
                  outputs->chan_output[k] < first + all->num_channels;
    /* an interval may be a moment, where the length of integrations is not known */
    const facets_compared of = {chan, {span[0] - MOMENT_S, span[1] + MOMENT_S}};
    TESS_TRY(image_facets_compare(run->comm, facets, run->source, &of, &all->likeness));
cleanup:
    tess_free(chan);
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
