/** @file clean_channel_noise.h  (private to clean/)
 *  Noise of channels. Values of a pixel's channels differ from one another by noise and
 *  sidelobes, and that tells slopes of components from chance. Most pixels of an image
 *  have no source. At a pixel without one, Σ w (value − mean)² / (K − 1) of K channels
 *  is expected to be s², and the lower quartile over pixels is the same for any source.
 *  It is taken from a few pixels at regular distances, the same on any number of ranks.
 *
 *  All functions are Local.
 */
#ifndef TESS_CLEAN_CHANNEL_NOISE_H
#define TESS_CLEAN_CHANNEL_NOISE_H

#include "clean_ops.h"

/** Pixels that are looked at, and the sample of one without data. */
enum { CLEAN_NOISE_SAMPLES = 4096, CLEAN_NOISE_BLANK = -1 };

/** The distance between the pixels. */
int64_t clean_noise_step(const clean_setup *setup);

/** Whether noise is measured in a polarisation: logarithms are fitted to several of its
 *  channels. */
bool clean_noise_matters(const clean_join *join, int pol);

/** The sample of a pixel: Σ w (value − mean)² over the channels of a polarisation, of
 *  value[num_images]. */
double clean_noise_sample(const clean_join *join, int pol, const double *value);

/** s² of sample[CLEAN_NOISE_SAMPLES], which are sorted; 0 without data. */
double clean_noise_of(const clean_join *join, int pol, double *sample);

#endif
