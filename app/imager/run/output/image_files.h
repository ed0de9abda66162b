/** @file image_files.h  (private to app/imager/run/)
 *  The files of a run: names, checks, headers, pixels.
 */
#ifndef TESS_IMAGE_FILES_H
#define TESS_IMAGE_FILES_H

#include "image_kinds.h"
#include "imager_product.h"
#include "output_table.h"
#include "source.h"
#include "tess_comm.h"
#include "tess_imager.h"
#include "tess_polar.h"
#include "tess_profile.h"

struct continued_models;
struct image_backlog;
struct image_cubes;
struct image_found;
struct image_found_table;
struct image_primary_beam;

/** A map of spectra, which is written with the images of the mean. */
typedef struct image_map {
    int pol;
    tess_rows rows;
} image_map;

/** The components of an output that was cleaned, as a list of sources. */
typedef struct image_source_list {
    char *text; /**< on the first rank; owned by the run */
    int64_t output;
} image_source_list;

/** Number of maps of each polarisation: each term and its error, then the spectral
 * index and its error. Local. */
int image_map_count(const tess_image_opts *opts);

/** Where products go. */
typedef struct image_files {
    tess_comm *comm;
    const tess_image_opts *opts;
    const tess_source_info *info;
    const output_table *outputs;
    const tess_pol *pol;
    int num_pol;
    image_kinds kinds; /**< once the number of PSFs is known */
    tess_profile *profile;
    image_map
        *map; /**< [num_maps] maps, polarisation by polarisation, for the next mean */
    int num_maps;
    image_source_list sources; /**< components of the output that was cleaned last */
    bool together; /**< threads write the files of an output, several at a time */
    struct image_cubes *cubes; /**< cubes instead of the images of channels, or NULL */
    struct continued_models *continued; /**< models of an earlier run, once their files
                                             are open, or NULL */
    bool *cleans; /**< [channels] whether --channel-mask has a channel; NULL: all */
    struct image_primary_beam *primary_beam; /**< or NULL */
    struct image_backlog *backlog; /**< files that are written while the next output is
                                      made; NULL: they are written at once */
    struct image_found_table
        *summary; /**< gets what the last lines tell of the images */
} image_files;

/** Check that all files of the run can be written. Collective. */
tess_status image_files_check(const image_files *output);

/** Measure the images of an output channel (-1: MFS) and interval for the last lines;
 * the first of these ranks keeps the results. They are those of restored images if
 * there are such, else of dirty ones. Collective. */
tess_status image_files_measure(const image_files *output, int64_t interval,
                                int64_t channel, const imager_product *product,
                                const struct image_found *found);

/** Write the products of an output channel (-1: MFS) and interval, in the order of
 *  kinds. found[num_pol]: the beam, and how they were cleaned. With a backlog, the
 *  files of the output before are completed, and these files are begun: the caller
 *  gives the rows to image_backlog_keep_products(). Collective. */
tess_status image_files_write(const image_files *output, int64_t interval,
                              int64_t channel, const imager_product *product,
                              const imager_extent *extent,
                              const struct image_found *found);

/** Noise of an image of polarisation `k` whose weights are 1/σ² of correlations that
 * are independent; NAN: unknown. The image is Σ W Re V / ΣW, and the variance of Re V
 * is that of a correlation's real part; half of it where V combines two of them, each
 * times 1/2 in absolute value. Local. */
double image_expected_noise(const image_files *output, int k,
                            const imager_product *product);

/** Whether an image with this peak may have the noise that its weights let expect.
 * Images reach dynamic ranges of some 1e6 (Perley 1999, ASP 180, 275); ten times that
 * means weights of another unit. Local. */
bool image_may_have_noise(double peak_jy, double noise_jy);

/** Whether weights may be 1/σ². They are not where the largest of all is 1: many
 * programs give samples without known noise the weight 1, or scale weights to it.
 * Local. */
bool image_knows_noise(const image_files *output);

/** Log the names of the files that image_files_write has written. Local. */
void image_files_log(const image_files *output, int64_t interval, int64_t channel);

/** The polarisations of the images that are asked for, pol[2 × opts->num_pol]; returns
 *  how many. WSClean makes one complex image of XY and YX. Local. */
int image_files_pols(const tess_image_opts *opts, tess_pol *pol);

/** The name of one image: NAME[-tNNNN][-NNNN|-MFS][-POL]-KIND.fits, from malloc(); NULL
 *  where memory is short. `pol`: its polarisation. Local. */
char *image_files_name(const image_files *output, int64_t interval, int64_t channel,
                       int pol, image_kind kind);

/** NAME[-tNNNN], what the names of an interval's files begin with, from malloc().
 * Local.
 */
char *image_files_stem(const image_files *output, int64_t interval);

/** Names of all images and previews of a run, in the order of intervals, channels,
 * kinds and polarisations. TESS_ERR_ALLOC. Local. */
tess_status image_files_names(const image_files *output, char ***names, int64_t *count);
void image_files_names_free(char **names, int64_t count); /**< Local. */

#endif
