/** @file clean_join.h  (private to clean/)
 *  How several images are cleaned together: their weights, what a pixel is chosen by,
 *  and which channels are averaged to one that is cleaned.
 */
#ifndef TESS_CLEAN_JOIN_H
#define TESS_CLEAN_JOIN_H

#include "clean_spectrum.h"
#include "tess_clean.h"

/** The images in which the search looks for peaks. */
typedef enum clean_search {
    CLEAN_MEAN,   /**< Σ share · value, with its sign */
    CLEAN_ROOTS,  /**< mean over channels of the root over polarisations; with the sign
                     of  the first if `is_signed` */
    CLEAN_SQUARES /**< sqrt(Σ share · value²) */
} clean_search;

typedef struct clean_join {
    clean_search search;
    bool is_signed;
    int num_pol, num_channels; /**< images that are cleaned: [num_channels][num_pol] */
    int num_out;               /**< the caller's channels */
    double *weight;  /**< [num_channels][num_pol] of the channel, of sum 1 over
                          channels; 0: the image has no data */
    double *share;   /**< likewise, of the mean; 0 for images that are not searched */
    double all;      /**< Σ share */
    double *average; /**< [num_out][num_pol] share of an image in that of its cleaned
                          channel; 0: it has no data */
    clean_spectrum spectrum;
} clean_join;

/** TESS_ERR_USAGE: a join that cannot be. Local. */
tess_status clean_join_check(const tess_clean_images *images);

/** Images that are cleaned. Local. */
int clean_join_count(const tess_clean_images *images);

/** The parts of a join that memory depends on, as if all images had data. `terms`
 *  becomes a part of it. Local. */
void clean_join_outline(const tess_clean_images *images, int *terms, clean_join *join);

/** TESS_ERR_INPUT: no image has data. TESS_ERR_ALLOC. Local. */
tess_status clean_join_create(const tess_clean_images *images, clean_join *join);
void clean_join_free(clean_join *join); /**< Zeros are fine. Local. */

/** The channel that is cleaned with a channel of the caller. */
static inline int clean_join_channel(const clean_join *join, int channel)
{
    return (int)((int64_t)channel * join->num_channels / join->num_out);
}

/** Whether channels are averaged. */
static inline bool clean_join_averages(const clean_join *join)
{
    return join->num_channels != join->num_out;
}

/** Whether the search looks at the linear mean. */
static inline bool clean_join_is_linear(const clean_join *join)
{
    return join->search == CLEAN_MEAN;
}

/** The weight of a channel, of whichever polarisation that has data. Local. */
double clean_join_largest_weight(const clean_join *join, int channel);

/** Σ share · value over images, value[num_images]. Local. */
double clean_join_mean(const clean_join *join, const double *value);

/** The mean over channels of a polarisation by weight, of value[num_images]; 0: the
 *  polarisation has no data. Local. */
double clean_join_mean_of_pol(const clean_join *join, const double *value, int pol);

#endif
