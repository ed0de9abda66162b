/** @file majors_private.h  (private to app/imager/run/cycles/majors*.c)
 *  The images of an output while they are cleaned.
 */
#ifndef TESS_MAJORS_PRIVATE_H
#define TESS_MAJORS_PRIVATE_H

#include "image_kinds.h"
#include "majors.h"
#include "majors_mask.h"
#include "tess_clean.h"
#include "tess_log.h"

/* Images that are cleaned together: [channels][num_pol]. */
typedef struct cleaned {
    tess_clean *clean; /* NULL: none of them has data */
    int first_pol, num_pol;
    bool goes_on;
    bool is_done;      /* its minor loop of the current major iteration has ended */
    double least_peak; /* the smallest of the peaks with which major iterations of this
                          phase began */
    int num_stalled;   /* number of major iterations in a row that did not begin with a
                          smaller peak */
    int64_t num_majors, num_masked; /* of these, those inside the automatic mask */
    int64_t iterations;
    tess_clean_report report; /* report of the last minor loop */
    group_masks masks;
    image_end end;
} cleaned;

typedef struct majors {
    image_run *run;
    tess_comm *slabs;              /* ranks in the order of their rows */
    const channel_group *channels; /* with the rounds in which images are made */
    group_channel *channel;        /* [num_channels] of these */
    int num_channels;
    int64_t num;              /* number of complete major iterations */
    bool has_model;           /* some model may have a pixel that is not 0 */
    bool changed;             /* models have changed since residuals were made */
    bool is_hard;             /* residuals have no slopes between facets */
    tess_clean_images images; /* shape of one image */
    double *likeness; /* of gains of facets in these samples; NULL: they are alike */
    const tess_place *place; /* where the dirty images live; so do the others */
    tess_clean_opts opts;
    int num_groups;
    cleaned group[TESS_MAX_POL];
    bool has_first; /* the first major iteration is over, and its residuals have been
                       kept */
    tess_rows *residual, *model; /* [num_channels · num_pol] rows of a group's images,
                                      borrowed for one call */
    double *weight, *freq_hz; /* [num_channels · num_pol], [num_channels] likewise */
    tess_progress progress;
} majors;

/** Number of images of all channels. */
static inline int majors_num_images(const majors *all)
{
    return all->num_channels * all->run->num_pol;
}

/** The product of a kind, channel and polarisation. */
static inline imager_product *majors_product(const majors *all, int channel,
                                             image_kind kind, int pol)
{
    return all->channel[channel].product +
           image_kinds_place(&all->run->output.kinds, kind) + pol;
}

/** Weight of an image; 0: it has no data. */
static inline double majors_weight(const majors *all, int channel, int pol)
{
    const group_channel *c = &all->channel[channel];
    return c->has_data ? c->made[pol].sum_weights : 0;
}

/** The PSF of a polarisation among the images that were made. */
static inline const imager_product *majors_psf(const majors *all, int channel, int pol)
{
    const image_run *run = all->run;
    const bool one_psf = image_num_psf(run) == 1;
    return &all->channel[channel].made[run->num_pol + (one_psf ? 0 : pol)];
}

/** Facets, if images have PSFs or may have gains of their own there, or none; and the
 * same of a group, with the likeness of its gains, which is borrowed. Local. */
tess_clean_places majors_places(const image_run *run);
tess_clean_places majors_own_places(const majors *all);

/** Compare gains of facets in the samples that are cleaned. Collective. */
tess_status majors_compare_gains(majors *all);

/** Give a group the PSFs of its places. Collective. */
tess_status majors_give_psfs(majors *all, cleaned *group);

/** Make the images of a channel that are written (majors_products.c). Collective. */
tess_status majors_take_products(const majors *all, int channel);

/** Give a checkpoint the state of major cycles (image_cycle_save). Local. */
tess_status majors_save(void *majors, image_cycle *cycle);

/** Whether the run continues from a checkpoint that was written during major cycles of
 * this output. Local. */
bool majors_can_continue(const majors *all);

/** Take up models, states and counts from that checkpoint. Collective. */
tess_status majors_continue(majors *all);

/* ---- majors_residual.c ---- */

/** Make the residual images of all channels: those of the data less the models.
 * Collective. */
tess_status majors_make_residuals(majors *all);

/* ---- majors_minor.c ---- */

/** Options of minor loops: those of the run, with the beam and the scales that follow
 * from the PSF. Local. */
tess_clean_opts majors_minor_opts(const image_run *run, const struct image_found *beam);

/** Give the ranks in the order of their rows: the run's communicator, or another that
 * the caller frees. Collective. */
tess_status majors_order_ranks(const image_run *run, tess_comm **slabs);

/** A fitted beam in pixels. Local. */
tess_clean_beam majors_beam(const image_run *run, const tess_fits_beam *beam);

/* ---- majors_watch.c ---- */

/** Tell the watcher of the options, if there is one, what the minor loop of a group has
 * done, and end its cleaning if the watcher says so. Collective. */
tess_status majors_tell_watcher(const majors *all, cleaned *group);

/* ---- majors_warnings.c ---- */

/** Warn of a user's mask, this rank's rows in host memory, that lets noise be cleaned.
 * Collective. */
tess_status majors_warn_of_mask(const majors *all, const tess_rows *mask);

/** Before the first minor loop, warn if the accuracy of gridding makes the residuals
 * wrong by more than the noise. Collective. */
tess_status majors_warn_of_accuracy(const majors *all);

/* ---- component_list.c ---- */

/** List the Stokes I components of all minor loops as points, or Gaussians of a scale's
 * width, with the spectral terms that were fitted. `*list` gets the text on the first
 * rank; its former text is freed. To be called before the products are taken.
 * Collective. */
tess_status component_list_make(const majors *all, image_source_list *list);

#endif
