/* Makes a first dirty image of all data, without facets, and finds the peaks in it. */
#include "first_facets.h"

#include <string.h>
#include <unistd.h>

#include "image_facets.h"
#include "image_mosaic.h"
#include "tess_checkpoint.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"
#include "tess_profile.h"
#include "tess_row_stats.h"

/* Peaks below this many times the noise may be no sources. */
static const double LEAST_SIGMA = 5;

/* This rank's rows of the first image. */
typedef struct first_image {
    tess_rows rows;
    tess_facet_image image;
} first_image;

static tess_status keep_dirty(void *context, const tess_image_product *product)
{
    tess_status status = TESS_OK;
    first_image *first = context;
    const tess_image_meta *meta = product->meta;
    if (strcmp(product->kind, "dirty") != 0) return TESS_OK;
    tess_rows_free(&first->rows);
    first->rows = tess_rows_of(meta->nx, meta->ny, product->row_first,
                               product->num_rows, tess_pixel_of(product->is_double));
    first->image = tess_facet_image_of(meta);
    TESS_TRY(tess_rows_alloc(&first->rows));
    if (product->num_rows > 0)
        memcpy(first->rows.value, product->pixel,
               (size_t)tess_rows_bytes(&first->rows));
cleanup:
    return status;
}

/* One image of Stokes I of all channels and times, which no file gets. */
static tess_image_opts options_of_first(const tess_image_opts *opts, first_image *first)
{
    tess_image_opts own = *opts;
    own.output = NULL;
    own.take = keep_dirty;
    own.take_context = first;
    own.num_pol = 1;
    own.pol[0] = 1;
    own.gridding.facets = (tess_facet_choice){.feather = -1};
    own.channels_out = own.intervals_out = 1;
    own.channels = (tess_channel_opts){0};
    own.make_psf = own.no_dirty = false;
    own.clean = (tess_clean_choice){.minor = opts->clean.minor};
    own.clean.minor.niter = 0;
    own.beside = (tess_image_beside){.is_first = true};
    own.checkpoint = (tess_checkpoint_opts){0};
    return own;
}

/* Before anything is read. Local. */
static tess_status check_file(const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    char *path = image_facets_file(opts);
    if (!path) TESS_FAIL(TESS_ERR_ALLOC, "name of the file of facets");
    TESS_TRY(tess_image_check_output(opts, path, opts->overwrite));
    for (size_t k = 0; k < sizeof opts->beside.reserved / sizeof *opts->beside.reserved;
         ++k)
        TESS_TRY(tess_out_check_distinct(path, opts->beside.reserved[k]));
cleanup:
    tess_free(path);
    return status;
}

/* Collective. */
static tess_status find_peaks(tess_comm *comm, const tess_image_opts *opts,
                              const first_image *first, tess_region **peak,
                              int64_t *num)
{
    tess_status status = TESS_OK;
    const tess_facet_choice *facets = &opts->gridding.facets;
    tess_row_stats stats;
    double separation_rad = facets->separation_rad;
    if (!(separation_rad > 0))
        separation_rad = tess_facets_separation(&first->image.geom, facets->number);
    TESS_TRY(
        tess_row_stats_measure(comm, &first->rows, opts->layout.threads, true, &stats));
    TESS_TRY(tess_facets_peaks(comm, &first->image, &first->rows,
                               LEAST_SIGMA * stats.noise, facets->number,
                               separation_rad, peak, num));
cleanup:
    return status;
}

/* Takes the file of facets of the run that is continued, if it was written: facets of
 * another first image might differ, and the models of a checkpoint are theirs.
 * Collective. */
static tess_status take_earlier(tess_comm *comm, tess_image_opts *opts,
                                first_facets *to)
{
    tess_status status = TESS_OK;
    tess_checkpoint_state state = {0};
    int64_t is_there = 0;
    if (!opts->checkpoint.folder || !opts->checkpoint.resume || !opts->output)
        return TESS_OK;
    to->regions = image_facets_file(opts);
    TESS_TRY(tess_comm_agree(comm, to->regions ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_checkpoint_read(comm, opts->checkpoint.folder, &state));
    if (tess_comm_rank(comm) == 0)
        is_there = state.generation > 0 && access(to->regions, F_OK) == 0;
    TESS_TRY(tess_comm_bcast(comm, &is_there, sizeof is_there, 0));
    if (!is_there) goto cleanup;
    opts->gridding.facets.regions = to->regions;
    opts->gridding.facets.number = 0;
    opts->gridding.facets.sources = NULL;
cleanup:
    tess_checkpoint_free(&state);
    return status;
}

/* Makes the first image, and finds the peaks. Collective. */
static tess_status make_first(tess_comm *comm, tess_image_opts *opts,
                              first_facets_maker *make, first_facets *to)
{
    tess_status status = TESS_OK;
    tess_facet_choice *facets = &opts->gridding.facets;
    first_image first = {0};
    tess_profile profile;
    if (tess_comm_rank(comm) == 0)
        tess_log_info("a first dirty image, in whose peaks facets are put");
    const tess_image_opts own = options_of_first(opts, &first);
    tess_profile_start(&profile);
    TESS_TRY(make(comm, &own, &profile));
    TESS_TRY(find_peaks(comm, opts, &first, &to->peak, &facets->num_peaks));
    facets->peak = to->peak;
cleanup:
    tess_rows_free(&first.rows);
    return status;
}

tess_status first_facets_find(tess_comm *comm, tess_image_opts *opts,
                              first_facets_maker *make, first_facets *first)
{
    tess_status status = TESS_OK;
    tess_facet_choice *facets = &opts->gridding.facets;
    if (facets->number == 0) return TESS_OK;
    TESS_TRY(image_mosaic_check(opts));
    TESS_TRY(image_facets_check(opts, false));
    TESS_TRY(take_earlier(comm, opts, first));
    if (facets->number == 0) return TESS_OK;
    if (opts->output) {
        status = tess_comm_rank(comm) == 0 ? check_file(opts) : TESS_OK;
        TESS_TRY(tess_comm_agree(comm, status));
        facets->writes = true;
    }
    if (!facets->sources) TESS_TRY(make_first(comm, opts, make, first));
cleanup:
    return status;
}

void first_facets_free(first_facets *first)
{
    tess_free(first->peak);
    tess_free(first->regions);
    *first = (first_facets){0};
}
