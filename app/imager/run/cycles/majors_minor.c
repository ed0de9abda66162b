/* What major cycles tell the minor loops and the restoring of clean/: options, beam,
 * and the ranks in the order of their rows. */
#include "image_kinds.h"
#include "majors_private.h"
#include "spectral_maps.h"

/* Whether clean/ has rows in the order of the ranks of the run. Ranks that share planes
 * in groups do not. Rows that teams have sent to all ranks are in that order. */
static bool are_in_order(const image_run *run)
{
    const int shared = run->job.ranks.fft_ranks;
    return shared == 1 || shared == tess_comm_size(run->comm) ||
           image_shares_channels(run);
}

tess_clean_opts majors_minor_opts(const image_run *run, const struct image_found *beam)
{
    const tess_image_opts *opts = run->opts;
    tess_clean_opts minor = opts->clean.minor;
    minor.scale_px = opts->clean.scale_px;
    minor.scale_beam_px = beam->beam_expected;
    minor.beam = (tess_clean_beam){.major_px = beam->beam.major_rad / opts->scale_rad,
                                   .minor_px = beam->beam.minor_rad / opts->scale_rad,
                                   .angle_rad = beam->beam.pa_rad};
    minor.is_double = opts->gridding.accuracy < TESS_SINGLE_FILE_ACCURACY;
    minor.repeatable = opts->layout.reproducible;
    if (run->comm == run->teams.all && are_in_order(run))
        minor.method.links = run->job.ranks.devices;
    minor.threads = opts->layout.threads;
    minor.method.ops = run->job.backend->clean;
    minor.method.grids = (tess_clean_grids)opts->layout.forced.clean_grids;
    return minor;
}

/* clean/ needs slabs in the order of ranks. Collective. */
tess_status majors_order_ranks(const image_run *run, tess_comm **slabs)
{
    const int shared = run->job.ranks.fft_ranks, size = tess_comm_size(run->comm);
    const int rank = tess_comm_rank(run->comm), groups = size / shared;
    *slabs = run->comm;
    if (are_in_order(run)) return TESS_OK;
    return tess_comm_split(run->comm, 0, rank % shared * groups + rank / shared, slabs);
}

tess_clean_beam majors_beam(const image_run *run, const tess_fits_beam *beam)
{
    return (tess_clean_beam){.major_px = beam->major_rad / run->opts->scale_rad,
                             .minor_px = beam->minor_rad / run->opts->scale_rad,
                             .angle_rad = beam->pa_rad};
}

double majors_reference_hz(const image_run *run)
{
    const double given_hz = run->opts->clean.join.reference_hz;
    double middle_hz, width_hz;
    if (given_hz >= 0) return given_hz;
    output_table_band(&run->outputs, run->info, -1, &middle_hz, &width_hz);
    return middle_hz;
}

tess_status majors_restore(const image_run *run, const tess_fits_beam *beam,
                           const tess_rows *model, const tess_rows *residual,
                           const tess_rows *image)
{
    tess_status status = TESS_OK;
    tess_comm *slabs = run->comm;
    const tess_clean_beam gaussian = majors_beam(run, beam);
    const struct image_found found = {.beam = *beam};
    const tess_clean_opts opts = majors_minor_opts(run, &found);
    TESS_TRY(majors_order_ranks(run, &slabs));
    TESS_TRY(tess_clean_restore(slabs, &opts, &gaussian, model, residual, image));
cleanup:
    if (slabs != run->comm) tess_comm_free(slabs);
    return status;
}
