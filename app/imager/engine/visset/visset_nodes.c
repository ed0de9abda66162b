/* Tells how large tracks will be before they are found. */
#include "visset_nodes.h"

#include <math.h>

#include "imager_targets.h"
#include "tess_const.h"

/* To find tracks takes about as long as to grid so many images. */
enum { FEWEST_TARGETS = 3 };

/* The error of a pixel's phase factors, as a share of ε. It is that of the corners: the
 * rms over an image is 0.14 ε if it is due to rounded coordinates, and else smaller by
 * far. */
static const double SHARE = 0.25;

/* The Earth's rate of rotation [rad/s] (IERS Conventions 2010, table 1.2). */
static const double EARTH_RAD_S = 7.292115e-5;

/* Share of items that become nodes, where tracks stay in bricks: .27 to .94 were
 * measured. It depends on how often baselines pass from brick to brick in the middle of
 * their channels. */
static const double SHARE_IN_BRICKS = 0.75;

double visset_mixed_bytes(const imager_job *job, const tess_samples *samples)
{
    return (double)samples->num_vis * job->view.num_pol * (samples->is_double ? 16 : 8);
}

bool visset_has_tracks(const imager_job *job, int num_targets)
{
    const int forced = job->layout->forced.tracks;
    if (forced == 2 || !job->view.group || job->view.num_groups == 0) return false;
    if (job->backend->grid->load || job->plan->projection) return false;
    return forced == 1 || num_targets >= FEWEST_TARGETS;
}

static bool have_same_factors(const void *context, int32_t origin, int32_t other)
{
    const imager_view *view = &((const imager_job *)context)->view;
    return view->group(view->context, origin) == view->group(view->context, other);
}

tess_tracks_opts visset_tracks_opts(const imager_job *job)
{
    const tess_grid_plan *plan = job->plan;
    const tess_geom *geom = &plan->target.geom;
    return (tess_tracks_opts){
        .half = {0.5 * (double)plan->field.nx * geom->scale_rad,
                 0.5 * (double)plan->field.ny * tess_geom_scale_m(geom),
                 plan->opts.do_w ? plan->field.nm1_half : 0},
        .tolerance = SHARE * plan->opts.accuracy,
        .num_pol = job->view.num_pol,
        .most_images = job->view.num_prepared,
        .threads = job->layout->threads,
        .same = have_same_factors,
        .context = job};
}

/* The distance of a cell from the middle of a periodic axis. */
static double from_middle(double cell, int64_t num_cells)
{
    return cell < 0.5 * (double)num_cells ? cell : cell - (double)num_cells;
}

/* The length of the baselines of a brick, as they are seen from the source
 * [wavelengths]. */
static double length_of_brick(const tess_grid_plan *plan, int64_t key)
{
    const tess_geom *geom = &plan->target.geom;
    const double middle = 0.5 * (plan->tile + plan->footprint);
    int64_t block, tile_u, tile_v;
    tess_grid_brick_of_key(plan, key, &block, &tile_u, &tile_v);
    const double u = from_middle((double)tile_u * plan->tile + middle, plan->nu);
    const double v = from_middle((double)tile_v * plan->tile + middle, plan->nv);
    return hypot(u / ((double)plan->nu * geom->scale_rad),
                 v / ((double)plan->nv * tess_geom_scale_m(geom)));
}

/* Visibilities of baselines of about the same length. */
typedef struct length_bin {
    double num_vis, length; /* the sum of their lengths [wavelengths] */
} length_bin;

enum { BINS = 64 };

/* Sorts the visibilities of bricks by the length of their baselines. */
static void count_lengths(const tess_grid_plan *plan, const tess_brick_list *bricks,
                          length_bin bin[BINS])
{
    const tess_geom *geom = &plan->target.geom;
    const double most = hypot(0.5 / geom->scale_rad, 0.5 / tess_geom_scale_m(geom));
    for (int64_t k = 0; k < bricks->num_bricks; ++k) {
        const double length = length_of_brick(plan, bricks->key[k]);
        const double num_vis = (double)bricks->num_vis[k];
        length_bin *of = &bin[(int)fmin(BINS * length / most, BINS - 1)];
        of->num_vis += num_vis;
        of->length += num_vis * length;
    }
}

/* Nodes for each row of tracks that go from brick to brick. Baselines turn with the
 * Earth. In the mean over directions in which their ends move, a pixel at the corner is
 * 2/π (|l| + |m|) away. */
static double share_of_nodes(const imager_job *job, const tess_samples *samples,
                             const tess_brick_list *bricks)
{
    const tess_tracks_opts opts = visset_tracks_opts(job);
    const tess_origins *origins = samples->origins;
    const double away = 2 / TESS_PI * (opts.half[0] + opts.half[1]);
    const double turns = EARTH_RAD_S * origins->interval_s * away;
    length_bin bin[BINS] = {{0}};
    double nodes = 0, num_vis = 0;
    count_lengths(job->plan, bricks, bin);
    for (int k = 0; k < BINS; ++k) {
        if (bin[k].num_vis == 0) continue;
        const double step_rad = TESS_TWO_PI * turns * bin[k].length / bin[k].num_vis;
        nodes += bin[k].num_vis *
                 tess_tracks_density(&opts, step_rad, origins->num_intervals);
        num_vis += bin[k].num_vis;
    }
    return num_vis > 0 ? nodes / num_vis : 0;
}

double visset_tracks_bytes(const imager_job *job, const tess_samples *samples,
                           const tess_brick_list *bricks)
{
    const tess_tracks_opts opts = visset_tracks_opts(job);
    const bool in_bricks = job->layout->reproducible;
    const int64_t num = in_bricks ? bricks->num_runs : samples->num_rows;
    const double items = tess_tracks_items((double)num, (double)samples->num_vis);
    const double share =
        in_bricks ? SHARE_IN_BRICKS : share_of_nodes(job, samples, bricks);
    const tess_tracks_size size = {(double)samples->num_rows, items, share * items};
    /* a node has as many runs as the channels of a row have */
    const double runs = fmax(1, (double)bricks->num_runs / fmax(items, 1));
    return tess_tracks_bytes(samples, &size) +
           size.nodes * runs * (double)sizeof(tess_run) +
           tess_tracks_values(&opts, &size) * visset_mixed_bytes(job, samples);
}
