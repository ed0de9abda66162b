/** @file spectral_maps.h  (private to app/imager/run/)
 *  Maps of the spectra of channels that were cleaned together.
 */
#ifndef TESS_SPECTRAL_MAPS_H
#define TESS_SPECTRAL_MAPS_H

#include "image_run.h"
#include "majors.h"

/** Restore the images of a group's channels with one beam, fit the spectra of their
 * pixels, and give the maps of all polarisations to `files` (image_files.map,
 * num_maps), with the unit and the caption of each. Nothing where no spectrum is
 * fitted. beam[num_pol]: of the mean. Collective. */
tess_status spectral_maps_make(const channel_group *group,
                               const struct image_found *beam, image_files *files);

/** Free the maps. Local. */
void spectral_maps_free(image_files *files);

/** Memory of a rank for maps of images of which it has `pixels` pixels [bytes]. Local.
 */
double spectral_maps_bytes(const tess_image_opts *opts, double pixels);

#endif
