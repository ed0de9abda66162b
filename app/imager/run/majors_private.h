/** @file majors_private.h  (private to app/imager/run/majors*.c)
 *  The images of an output while they are cleaned.
 */
#ifndef TESS_MAJORS_PRIVATE_H
#define TESS_MAJORS_PRIVATE_H

#include "image_kinds.h"
#include "majors.h"
#include "tess_clean.h"
#include "tess_log.h"

/* Images that are cleaned together: [channels][num_pol]. */
typedef struct cleaned {
    tess_clean *clean; /* NULL: they have no data */
    int first_pol, num_pol;
    bool goes_on;
    bool is_done;      /* in the current major iteration */
    double least_peak; /* of those that major iterations of this phase began with */
    int num_stalled;   /* major iterations that did not begin below it, in a row */
    int64_t num_majors, iterations;
    tess_clean_report report; /* of the last minor loop */
    majors_end end;
} cleaned;

typedef struct majors {
    image_run *run;
    tess_comm *slabs;        /* the ranks in the order of their rows */
    majors_channel *channel; /* [num_channels] */
    int num_channels;
    const channel_rounds *rounds; /* of teams, or NULL */
    int64_t num;                  /* of complete major iterations */
    bool has_model;               /* some pixel of some model may not be 0 */
    bool changed;             /* models have changed since the residuals were made */
    tess_clean_images images; /* of one image */
    tess_clean_opts opts;
    int num_groups;
    cleaned group[TESS_MAX_POL];
    bool has_first; /* the first major iteration has been, whose residuals are wanted */
    void **residual; /* [num_channels · num_pol] rows of a group, for a call */
    double **model;
    double *weight, *freq_hz; /* [num_channels · num_pol], [num_channels] likewise */
    tess_progress progress;
    double share; /* of the way to the threshold that progress has told */
} majors;

/** Images of all channels. */
static inline int majors_num_images(const majors *all)
{
    return all->num_channels * all->run->num_pol;
}

/** Product `pol` of a kind of a channel. */
static inline imager_product *majors_product(const majors *all, int channel,
                                             image_kind kind, int pol)
{
    return all->channel[channel].product +
           image_kinds_place(&all->run->output.kinds, kind) + pol;
}

/** Rows of an image of this precision, with room for nothing yet. */
static inline imager_rows majors_like_rows(const imager_rows *rows, bool is_double)
{
    return (imager_rows){rows->row_first, rows->num_rows, rows->nx, is_double, NULL};
}

/** What a checkpoint keeps (imager_cycle_save). Local. */
tess_status majors_save(void *majors, imager_cycle *cycle);

/** Whether the checkpoint that the run continues from is of this output's major cycles.
 *  Local. */
bool majors_can_continue(const majors *all);

/** Go on from there: models, states and what was counted. Collective. */
tess_status majors_continue(majors *all);

/* ---- majors_residual.c ---- */

/** Residual images of all channels, of the data less the models. Collective. */
tess_status majors_make_residuals(majors *all);

/* ---- majors_minor.c ---- */

/** Options of minor loops, from those of the run and what was found of the PSF. Local.
 */
tess_clean_opts majors_minor_opts(const tess_image_opts *opts,
                                  const struct imager_found *beam);

/** The ranks in the order of their rows: the run's, or a communicator of its own, which
 *  the caller frees. Collective. */
tess_status majors_order_ranks(const image_run *run, tess_comm **slabs);

/** A fitted beam in pixels. Local. */
tess_clean_beam majors_beam(const image_run *run, const tess_fits_beam *beam);

#endif
