/* Included by tracks_isa.c for each precision REAL. */

/* Values of the channels of a row or node: [value][real, imaginary part][channel]. */
enum { NAME(VALUE) = 2 * TRACK_CHANS, NAME(MOST) = TRACK_VALUES * NAME(VALUE) };

/* What a thread keeps of an image. */
typedef struct NAME(image) {
    REAL *factor;        /* [value of the node][value of the sample] */
    REAL *node;          /* [TRACK_NODES][value] */
    int32_t chan, count; /* that the factors are of; count 0: of none */
} NAME(image);

/* Some rows of a track, which all images take before others are read. */
typedef struct NAME(rows) {
    piece at[TRACK_ROWS];
    REAL vis[TRACK_ROWS][NAME(MOST)]; /* times the weight, if there is one */
    REAL weight[TRACK_ROWS][TRACK_VALUES][TRACK_CHANS]; /* otherwise */
    REAL share[TRACK_ROWS][TRACK_NODES];                /* of a row in each node */
    REAL value[TRACK_ROWS][NAME(MOST)]; /* what the image at work takes */
    double inv_lambda[TRACK_CHANS];
} NAME(rows);

/* Loops over all channels take vectors. So a piece of fewer channels goes on into the
 * samples behind it, whose weights are set to 0; at the end of all samples it is
 * copied. */
typedef struct NAME(room) {
    REAL vis[TRACK_CHANS * TRACK_VALUES * 2], weight[TRACK_CHANS * TRACK_VALUES];
} NAME(room);

/* `*vis` and `*weight` become those of TRACK_CHANS channels. */
ALWAYS void NAME(widen)(const tess_samples *from, const piece *at, NAME(room) * room,
                        const int corrs, const int weights, const REAL **vis,
                        const REAL **weight)
{
    *vis = (const REAL *)from->vis + 2 * corrs * at->first;
    *weight = (const REAL *)from->weight + weights * at->first;
    if (at->count == TRACK_CHANS) return;
    if (at->first + TRACK_CHANS > from->num_vis) {
        for (int k = 0; k < 2 * corrs * TRACK_CHANS; ++k)
            room->vis[k] = k < 2 * corrs * at->count ? (*vis)[k] : 0;
        *vis = room->vis;
    }
    for (int k = 0; k < weights * TRACK_CHANS; ++k)
        room->weight[k] = k < weights * at->count ? (*weight)[k] : 0;
    *weight = room->weight;
}

/* Reads the samples of row k of some. The values of a sample without weight may be
 * anything. */
ALWAYS void NAME(read)(const tess_samples *from, NAME(rows) * rows, int k,
                       const int corrs, const int weights)
{
    NAME(room) room;
    const REAL *vis, *weight;
    NAME(widen)(from, &rows->at[k], &room, corrs, weights, &vis, &weight);
    for (int q = 0; q < corrs; ++q) {
        REAL *restrict re = rows->vis[k] + q * NAME(VALUE);
        REAL *restrict im = re + TRACK_CHANS;
        for (int c = 0; c < TRACK_CHANS; ++c) {
            const REAL w = weights == 1 ? weight[c] : 1;
            const REAL x = vis[2 * (c * corrs + q)], y = vis[2 * (c * corrs + q) + 1];
            re[c] = w != 0 ? w * x : 0;
            im[c] = w != 0 ? w * y : 0;
        }
    }
    for (int p = 0; weights > 1 && p < weights; ++p)
        for (int c = 0; c < TRACK_CHANS; ++c)
            rows->weight[k][p][c] = weight[c * weights + p];
}

static void NAME(find_factors)(const tess_tracks *tracks, const tess_tracks_view *view,
                               const piece *at, NAME(image) * image)
{
    const int each = tracks->opts.num_pol * tracks->from->num_pol;
    double complex factor[TRACK_CHANS * TRACK_VALUES * TRACK_VALUES];
    ask_factors(tracks->from, view, at, factor);
    for (int k = 0; k < each; ++k) {
        REAL *to = image->factor + k * NAME(VALUE);
        for (int32_t c = 0; c < TRACK_CHANS; ++c) {
            const double complex of = c < at->count ? factor[c * each + k] : 0;
            to[c] = (REAL)creal(of);
            to[TRACK_CHANS + c] = (REAL)cimag(of);
        }
    }
    image->chan = at->chan;
    image->count = at->count;
}

/* The values that an image takes of the samples of row k. */
ALWAYS void NAME(mix)(NAME(rows) *restrict rows, int k, const REAL *restrict factor,
                      const int pols, const int corrs, const int weights)
{
    for (int p = 0; p < pols; ++p) {
        REAL *restrict to = rows->value[k] + p * NAME(VALUE);
        for (int c = 0; c < TRACK_CHANS; ++c) {
            REAL re = 0, im = 0;
            for (int q = 0; q < corrs; ++q) {
                const REAL *f = factor + (p * corrs + q) * NAME(VALUE);
                const REAL *vis = rows->vis[k] + q * NAME(VALUE);
                const REAL a = f[c], b = f[TRACK_CHANS + c];
                const REAL x = vis[c], y = vis[TRACK_CHANS + c];
                re += a * x - b * y;
                im += a * y + b * x;
            }
            if (weights > 1) {
                const REAL w = rows->weight[k][p][c];
                re = w != 0 ? w * re : 0;
                im = w != 0 ? w * im : 0;
            }
            to[c] = re;
            to[TRACK_CHANS + c] = im;
        }
    }
}

/* Multiplies values by exp(2πi · sign · path / λ). */
ALWAYS void NAME(turn)(REAL *restrict of, const int pols, double path_m,
                       const double *restrict inv_lambda, const REAL sign)
{
    REAL sine[TRACK_CHANS], cosine[TRACK_CHANS];
    for (int c = 0; c < TRACK_CHANS; ++c)
        NAME(sincos)(path_m * inv_lambda[c], &sine[c], &cosine[c]);
    for (int p = 0; p < pols; ++p, of += NAME(VALUE))
        for (int c = 0; c < TRACK_CHANS; ++c) {
            const REAL re = of[c], im = of[TRACK_CHANS + c], s = sign * sine[c];
            of[c] = re * cosine[c] - im * s;
            of[TRACK_CHANS + c] = re * s + im * cosine[c];
        }
}

/* Adds four rows, or one, to a node: values of nodes are loaded and stored once for
 * them. */
ALWAYS void NAME(add)(const NAME(rows) *restrict rows, int num_rows, int num_nodes,
                      const int pols, REAL *restrict node)
{
    for (int j = 0; j < num_nodes; ++j, node += pols * NAME(VALUE)) {
        int k = 0;
        for (; k + 4 <= num_rows; k += 4) {
            const REAL a = rows->share[k][j], b = rows->share[k + 1][j];
            const REAL c = rows->share[k + 2][j], d = rows->share[k + 3][j];
            for (int i = 0; i < pols * NAME(VALUE); ++i)
                node[i] += a * rows->value[k][i] + b * rows->value[k + 1][i] +
                           c * rows->value[k + 2][i] + d * rows->value[k + 3][i];
        }
        for (; k < num_rows; ++k)
            for (int i = 0; i < pols * NAME(VALUE); ++i)
                node[i] += rows->share[k][j] * rows->value[k][i];
    }
}

/* Writes the visibilities of a row of nodes in an image. */
ALWAYS void NAME(put)(tess_tracks *tracks, int image, int64_t node, const REAL *values,
                      const int pols)
{
    const tess_samples *nodes = &tracks->nodes;
    const int64_t first = image * nodes->num_vis + nodes->vis_first[node];
    REAL *vis = (REAL *)tracks->vis + 2 * pols * first;
    for (int32_t c = 0; c < nodes->num_chan[node]; ++c)
        for (int p = 0; p < pols; ++p) {
            *vis++ = values[p * NAME(VALUE) + c];
            *vis++ = values[p * NAME(VALUE) + TRACK_CHANS + c];
        }
}

/* Fetches what later rows need from memory: rows of a track lie far apart. */
static inline void NAME(fetch)(const tess_tracks *tracks, const track *of, int32_t k)
{
    enum {
        ROWS_AHEAD = 2 * TRACK_ROWS,
        VALUES_AHEAD = TRACK_ROWS,
        LINE = 64 / sizeof(REAL)
    };
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

/* Reads rows [first, first + num) of a track. */
ALWAYS void NAME(read_rows)(const tess_tracks *tracks, const track *of, int32_t first,
                            int num, NAME(rows) * rows, const int corrs,
                            const int weights)
{
    const tess_samples *from = tracks->from, *nodes = &tracks->nodes;
    for (int k = 0; k < num; ++k) {
        const int64_t row = tracks->row[of->first_row + first + k];
        const int64_t node = of->first_node + (of->curve < 0 ? first + k : 0);
        NAME(fetch)(tracks, of, first + k);
        rows->at[k] =
            piece_of(from, row, nodes->chan_base[node], nodes->num_chan[node]);
        NAME(read)(from, rows, k, corrs, weights);
        if (of->curve < 0) continue;
        double share[TRACK_NODES];
        const track_curve *curve = &tracks->curve[of->curve];
        track_weights(curve, of->num_nodes, track_place(curve, from->uvw_m + 3 * row),
                      share);
        for (int j = 0; j < of->num_nodes; ++j)
            rows->share[k][j] = (REAL)share[j];
    }
}

/* Adds these rows to the nodes of an image, unless they are nodes themselves. */
ALWAYS void NAME(take_rows)(tess_tracks *tracks, const track *of,
                            const tess_tracks_view *view, int number, int32_t first,
                            int num, NAME(rows) * rows, NAME(image) * image,
                            const int pols, const int corrs, const int weights)
{
    for (int k = 0; k < num; ++k) {
        const piece *at = &rows->at[k];
        if (tracks->starts[of->first_row + first + k] || image->chan != at->chan ||
            image->count != at->count)
            NAME(find_factors)(tracks, view, at, image);
        NAME(mix)(rows, k, image->factor, pols, corrs, weights);
        if (of->curve < 0)
            NAME(put)(tracks, number, of->first_node + first + k, rows->value[k], pols);
        else
            NAME(turn)
        (rows->value[k], pols, path_of(tracks->from->uvw_m + 3 * at->row, view->phase),
         rows->inv_lambda, -1);
    }
    if (of->curve >= 0) NAME(add)(rows, num, of->num_nodes, pols, image->node);
}

/* Writes the nodes of an image, once all rows have been added. */
ALWAYS void NAME(put_nodes)(tess_tracks *tracks, const track *of,
                            const tess_tracks_view *view, int number,
                            const NAME(rows) * rows, NAME(image) * image,
                            const int pols)
{
    const double *uvw_m = tracks->nodes.uvw_m + 3 * of->first_node;
    REAL *node = image->node;
    for (int j = 0; j < of->num_nodes; ++j, node += pols * NAME(VALUE)) {
        NAME(turn)
        (node, pols, path_of(uvw_m + 3 * j, view->phase), rows->inv_lambda, 1);
        NAME(put)(tracks, number, of->first_node + j, node, pols);
    }
}

/* Images take rows while these are in cache. */
ALWAYS void NAME(take_track)(tess_tracks *tracks, const track *of,
                             const tess_tracks_view *view, int num, NAME(image) * image,
                             const int pols, const int corrs, const int weights)
{
    NAME(rows) rows;
    const tess_samples *nodes = &tracks->nodes;
    const int32_t chan = nodes->chan_base[of->first_node];
    const int32_t count = nodes->num_chan[of->first_node];
    for (int32_t c = 0; c < TRACK_CHANS; ++c)
        rows.inv_lambda[c] = nodes->inv_lambda[chan + (c < count ? c : 0)];
    for (int f = 0; of->curve >= 0 && f < num; ++f)
        memset(image[f].node, 0,
               sizeof(REAL) * (size_t)(of->num_nodes * pols * NAME(VALUE)));
    for (int32_t first = 0; first < of->num_rows; first += TRACK_ROWS) {
        const int left = of->num_rows - first;
        const int some = left < TRACK_ROWS ? left : TRACK_ROWS;
        NAME(read_rows)(tracks, of, first, some, &rows, corrs, weights);
        for (int f = 0; f < num; ++f)
            NAME(take_rows)
        (tracks, of, &view[f], f, first, some, &rows, &image[f], pols, corrs, weights);
    }
    for (int f = 0; of->curve >= 0 && f < num; ++f)
        NAME(put_nodes)(tracks, of, &view[f], f, &rows, &image[f], pols);
}

/* Loops over the numbers of values that are used most are compiled for these. */
static void NAME(take)(tess_tracks *tracks, const track *of,
                       const tess_tracks_view *view, int num, void *work)
{
    const int pols = tracks->opts.num_pol, corrs = tracks->from->num_pol;
    const int weights = tracks->from->num_weight;
    const int64_t factors = pols * corrs * NAME(VALUE);
    const int64_t nodes = TRACK_NODES * pols * NAME(VALUE);
    NAME(image) image[TESS_TRACKS_IMAGES];
    for (int f = 0; f < num; ++f) {
        REAL *own = (REAL *)work + f * (factors + nodes);
        image[f] = (NAME(image)){.factor = own, .node = own + factors};
    }
    if (pols == 1 && corrs == 2 && weights == 1)
        NAME(take_track)(tracks, of, view, num, image, 1, 2, 1);
    else if (pols == 1 && corrs == 1 && weights == 1)
        NAME(take_track)(tracks, of, view, num, image, 1, 1, 1);
    else
        NAME(take_track)(tracks, of, view, num, image, pols, corrs, weights);
}
