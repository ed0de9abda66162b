/** @file image_beam.h  (private to app/imager/run/)
 *  The beam of an output: fitted to its PSF, or given by options.
 */
#ifndef TESS_IMAGE_BEAM_H
#define TESS_IMAGE_BEAM_H

#include "image_files.h"
#include "image_found.h"
#include "imager_product.h"
#include "output_table.h"

/** Find the beam of the first of these PSFs that has weights, and note it in `found`:
 *  the beam of --beam-size or --beam-shape, the expected one of --theoretic-beam, or
 *  else the one that is fitted, made circular by --circular-beam. Images that are
 * cleaned need a beam: where none can be fitted it is a circular one, as wide as the
 * longest baseline lets expect, and found->beam_failure says why. Collective. */
tess_status image_beam_find(const image_files *output, const imager_product *psf,
                            int num_psf, const imager_extent *extent,
                            struct image_found *found);

/** Find the beam of --common-beam for the channels of an interval, whose beams are
 *  beam[num]; zeros do not count. The run's table of images keeps it, and the log has a
 *  line. TESS_ERR_ALLOC. Local. */
tess_status image_beam_join(const image_files *output, int64_t interval,
                            const tess_fits_beam *beam, int64_t num);

#endif
