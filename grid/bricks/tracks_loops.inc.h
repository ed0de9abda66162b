/* Included by tracks_isa.c for each precision REAL. */

/* Values of the channels of a row or of a node: [value][channel]. */
typedef struct NAME(values) {
    REAL re[TRACK_VALUES][TRACK_CHANS], im[TRACK_VALUES][TRACK_CHANS];
} NAME(values);

/* Factors of a row: [value of the node][value of the sample][channel]. */
typedef struct NAME(factors) {
    REAL re[TRACK_VALUES * TRACK_VALUES][TRACK_CHANS];
    REAL im[TRACK_VALUES * TRACK_VALUES][TRACK_CHANS];
} NAME(factors);

/* Everything that a thread needs for a track. */
typedef struct NAME(work) {
    NAME(values) node[TRACK_NODES];
    NAME(values) row;
    NAME(factors) factor;
    REAL vis[TRACK_CHANS * TRACK_VALUES * 2], weight[TRACK_CHANS * TRACK_VALUES];
    double inv_lambda[TRACK_CHANS];
    int32_t origin; /* that the factors are of, or −1 */
    int32_t chan, count;
} NAME(work);

static void NAME(find_factors)(const tess_tracks *tracks, const tess_tracks_view *view,
                               const piece *at, NAME(work) * work)
{
    const tess_samples *from = tracks->from;
    const int each = tracks->opts.num_pol * from->num_pol;
    const int32_t origin = from->origin[at->row];
    double complex factor[TRACK_CHANS * TRACK_VALUES * TRACK_VALUES];
    if (work->origin >= 0 && work->chan == at->chan && work->count == at->count &&
        (work->origin == origin || view->same(view->context, work->origin, origin)))
        return;
    ask_factors(from, view, at, factor);
    for (int32_t c = 0; c < TRACK_CHANS; ++c)
        for (int k = 0; k < each; ++k) {
            const double complex of = c < at->count ? factor[c * each + k] : 0;
            work->factor.re[k][c] = (REAL)creal(of);
            work->factor.im[k][c] = (REAL)cimag(of);
        }
    work->origin = origin;
    work->chan = at->chan;
    work->count = at->count;
}

/* Loops over all channels take vectors. So a piece of fewer channels goes on into the
 * samples behind it, whose weights are set to 0; at the end of all samples it is
 * copied.
 * `*vis` and `*weight` become those of TRACK_CHANS channels. */
ALWAYS void NAME(widen)(const tess_samples *from, const piece *at, NAME(work) * work,
                        const int corrs, const int weights, const REAL **vis,
                        const REAL **weight)
{
    *vis = (const REAL *)from->vis + 2 * corrs * at->first;
    *weight = (const REAL *)from->weight + weights * at->first;
    if (at->count == TRACK_CHANS) return;
    if (at->first + TRACK_CHANS > from->num_vis) {
        for (int k = 0; k < 2 * corrs * TRACK_CHANS; ++k)
            work->vis[k] = k < 2 * corrs * at->count ? (*vis)[k] : 0;
        *vis = work->vis;
        for (int k = 0; k < weights * at->count; ++k)
            work->weight[k] = (*weight)[k];
        *weight = work->weight;
    }
    for (int k = 0; k < weights * TRACK_CHANS; ++k)
        work->weight[k] = k < weights * at->count ? (*weight)[k] : 0;
    *weight = work->weight;
}

/* The values that a node takes of the samples of a row, times their weights. The values
 * of a sample without weight may be anything. */
ALWAYS void NAME(mix)(const REAL *restrict vis, const REAL *restrict weight,
                      const NAME(factors) *restrict factor, NAME(values) *restrict to,
                      const int pols, const int corrs, const int weights)
{
    for (int p = 0; p < pols; ++p) {
        const int which = weights > 1 ? p : 0;
        for (int c = 0; c < TRACK_CHANS; ++c) {
            REAL re = 0, im = 0;
            for (int q = 0; q < corrs; ++q) {
                const REAL a = factor->re[p * corrs + q][c];
                const REAL b = factor->im[p * corrs + q][c];
                const REAL x = vis[2 * (c * corrs + q)];
                const REAL y = vis[2 * (c * corrs + q) + 1];
                re += a * x - b * y;
                im += a * y + b * x;
            }
            const REAL w = weights > 0 ? weight[c * weights + which] : 1;
            to->re[p][c] = w != 0 ? w * re : 0;
            to->im[p][c] = w != 0 ? w * im : 0;
        }
    }
}

/* Multiplies values by exp(2πi · sign · path / λ). */
ALWAYS void NAME(turn)(NAME(values) *restrict of, const int pols, double path_m,
                       const double *restrict inv_lambda, const REAL sign)
{
    REAL sine[TRACK_CHANS], cosine[TRACK_CHANS];
    for (int c = 0; c < TRACK_CHANS; ++c)
        NAME(sincos)(path_m * inv_lambda[c], &sine[c], &cosine[c]);
    for (int p = 0; p < pols; ++p)
        for (int c = 0; c < TRACK_CHANS; ++c) {
            const REAL re = of->re[p][c], im = of->im[p][c], s = sign * sine[c];
            of->re[p][c] = re * cosine[c] - im * s;
            of->im[p][c] = re * s + im * cosine[c];
        }
}

ALWAYS void NAME(add)(const double *weight, int num_nodes, const int pols,
                      NAME(work) * work)
{
    for (int j = 0; j < num_nodes; ++j) {
        const REAL w = (REAL)weight[j];
        for (int p = 0; p < pols; ++p)
            for (int c = 0; c < TRACK_CHANS; ++c) {
                work->node[j].re[p][c] += w * work->row.re[p][c];
                work->node[j].im[p][c] += w * work->row.im[p][c];
            }
    }
}

/* Adds a row to the nodes of its track, unless it is a node itself. */
ALWAYS void NAME(take_row)(tess_tracks *tracks, const track *of,
                           const tess_tracks_view *view, const piece *at,
                           NAME(work) * work, const int pols, const int corrs,
                           const int weights)
{
    const tess_samples *from = tracks->from;
    double weight[TRACK_NODES];
    const REAL *vis, *vis_weight;
    NAME(widen)(from, at, work, corrs, weights, &vis, &vis_weight);
    NAME(mix)(vis, vis_weight, &work->factor, &work->row, pols, corrs, weights);
    if (of->curve < 0) return;
    const double *uvw_m = from->uvw_m + 3 * at->row;
    const track_curve *curve = &tracks->curve[of->curve];
    NAME(turn)(&work->row, pols, path_of(uvw_m, view->phase), work->inv_lambda, -1);
    track_weights(curve, of->num_nodes, track_place(curve, uvw_m), weight);
    NAME(add)(weight, of->num_nodes, pols, work);
}

/* Loops over the numbers of values that are used most are compiled for these. */
static void NAME(take_any_row)(tess_tracks *tracks, const track *of,
                               const tess_tracks_view *view, const piece *at,
                               NAME(work) * work)
{
    const int pols = tracks->opts.num_pol, corrs = tracks->from->num_pol;
    const int weights = tracks->from->num_weight;
    NAME(find_factors)(tracks, view, at, work);
    if (pols == 1 && corrs == 2 && weights == 1)
        NAME(take_row)(tracks, of, view, at, work, 1, 2, 1);
    else if (pols == 1 && corrs == 1 && weights == 1)
        NAME(take_row)(tracks, of, view, at, work, 1, 1, 1);
    else
        NAME(take_row)(tracks, of, view, at, work, pols, corrs, weights);
}

/* Writes the visibilities of a row of nodes. */
static void NAME(put)(tess_tracks *tracks, int64_t node, const NAME(values) * values)
{
    tess_samples *nodes = &tracks->nodes;
    const int pols = nodes->num_pol;
    REAL *vis = (REAL *)nodes->vis + 2 * pols * nodes->vis_first[node];
    for (int32_t c = 0; c < nodes->num_chan[node]; ++c)
        for (int p = 0; p < pols; ++p) {
            *vis++ = values->re[p][c];
            *vis++ = values->im[p][c];
        }
}

/* Fetches what later rows need from memory: rows of a track lie far apart. */
static inline void NAME(fetch)(const tess_tracks *tracks, const track *of, int32_t k)
{
    enum { ROWS_AHEAD = 12, VALUES_AHEAD = 6, LINE = 64 / sizeof(REAL) };
    const tess_samples *from = tracks->from;
    const int32_t *row = tracks->row + of->first_row;
    const int values = 2 * from->num_pol;
    if (k + ROWS_AHEAD < of->num_rows) {
        const int64_t next = row[k + ROWS_AHEAD];
        __builtin_prefetch(from->uvw_m + 3 * next);
        __builtin_prefetch(from->vis_first + next);
        __builtin_prefetch(from->chan_base + next);
        __builtin_prefetch(from->origin + next);
    }
    if (k + VALUES_AHEAD >= of->num_rows) return;
    const int64_t node = of->first_node + (of->curve < 0 ? k + VALUES_AHEAD : 0);
    const int64_t first =
        piece_of(from, row[k + VALUES_AHEAD], tracks->nodes.chan_base[node], 0).first;
    const REAL *vis = (const REAL *)from->vis + values * first;
    __builtin_prefetch((const REAL *)from->weight + from->num_weight * first);
    for (int j = 0; j < values * TRACK_CHANS; j += LINE)
        __builtin_prefetch(vis + j);
}

/* Rows that are nodes themselves. */
static void NAME(take_rows)(tess_tracks *tracks, const track *of,
                            const tess_tracks_view *view, NAME(work) * work)
{
    const tess_samples *nodes = &tracks->nodes;
    for (int32_t k = 0; k < of->num_rows; ++k) {
        const int64_t node = of->first_node + k;
        NAME(fetch)(tracks, of, k);
        const piece at = piece_of(tracks->from, tracks->row[of->first_row + k],
                                  nodes->chan_base[node], nodes->num_chan[node]);
        NAME(take_any_row)(tracks, of, view, &at, work);
        NAME(put)(tracks, node, &work->row);
    }
}

static void NAME(take)(tess_tracks *tracks, const track *of,
                       const tess_tracks_view *view)
{
    NAME(work) work;
    const tess_samples *nodes = &tracks->nodes;
    const int64_t first = of->first_node;
    const int32_t chan = nodes->chan_base[first], count = nodes->num_chan[first];
    work.origin = -1;
    for (int32_t c = 0; c < TRACK_CHANS; ++c)
        work.inv_lambda[c] = nodes->inv_lambda[chan + (c < count ? c : 0)];
    if (of->curve < 0) {
        NAME(take_rows)(tracks, of, view, &work);
        return;
    }
    for (int j = 0; j < of->num_nodes; ++j)
        for (int p = 0; p < nodes->num_pol; ++p) {
            memset(work.node[j].re[p], 0, sizeof work.node[j].re[p]);
            memset(work.node[j].im[p], 0, sizeof work.node[j].im[p]);
        }
    for (int32_t k = 0; k < of->num_rows; ++k) {
        const piece at =
            piece_of(tracks->from, tracks->row[of->first_row + k], chan, count);
        NAME(fetch)(tracks, of, k);
        NAME(take_any_row)(tracks, of, view, &at, &work);
    }
    for (int j = 0; j < of->num_nodes; ++j) {
        const double path_m = path_of(nodes->uvw_m + 3 * (first + j), view->phase);
        NAME(turn)(&work.node[j], nodes->num_pol, path_m, work.inv_lambda, 1);
        NAME(put)(tracks, first + j, &work.node[j]);
    }
}
