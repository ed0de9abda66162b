/** @file gcf_cuda_factored.cuh  (private to grid/gcf/)
 *  `factored` on a GPU: what its kernels in fp32 and fp64 (gcf_cuda_factored.cu) and on
 *  tensor cores (gcf_cuda_factored_tensor.cu) share.
 *
 *  Every point becomes as many entries as its kernel has products, sorted by the square
 *  of FACTORED_START cells in which their footprints start. A warp owns some cells of
 *  the grid and goes through the entries whose footprints may meet them: rows of
 * squares, each of which is a run of entries. Crowded cells have several warps, each
 * with a part of the entries.
 */
#ifndef TESS_GCF_CUDA_FACTORED_CUH
#define TESS_GCF_CUDA_FACTORED_CUH

#include "gcf_cuda.cuh"
#include "tess_gcf_cuda_degrid.cuh"

enum {
    FACTORED_START = 16,       /* cells of the squares that points are sorted by */
    FACTORED_PAD = 32,         /* zeros between lines of factors */
    FACTORED_WIDTH = GCF_WARP, /* cells of a warp along v, … */
    FACTORED_WARPS = 4,        /* warps of a block */
    FACTORED_THREADS = FACTORED_WARPS * GCF_WARP,
    FACTORED_ROW_EXPONENT = 7,   /* halves of rows are 2^7 times the rows, at most 1 */
    FACTORED_VALUE_EXPONENT = 13 /* visibilities and cells in halves: below 2^13 */
};
static const uint32_t FACTORED_CONJUGATE = 1u << 31;

/** A product of a point's kernel, V · a(x) · b(y). */
template <typename R> struct __align__(16) factored_entry
{
    int32_t u, v;         /**< first cell */
    uint32_t column, row; /**< first taps of a and b */
    uint32_t info;        /**< support, FACTORED_CONJUGATE */
    uint32_t point;
    typename cuda_complex<R>::type value; /**< V, or a scale of the product */
};

/** Entries of a warp: [first, end) of those that may meet its cells. */
struct factored_item {
    uint32_t tile, first, end, unused;
};

/** What kernels are given. */
struct factored_args {
    const void *columns, *rows; /**< complex, lines of factors, the largest between ½
                                     and 1; FACTORED_PAD zeros around each */
    const uint32_t *row_high, *row_low; /**< conj(rows) as pairs of halves and what is
                                             left */
    const void *entry;                  /**< [num_pol][num_entries] */
    int64_t num_entries;
    const uint32_t *start; /**< [starts_u · starts_v + 1] first entry of squares */
    int starts_u, starts_v, max_support;
    const factored_item *item; /**< [num_items] */
    int64_t num_items;
    int num_pol;
    int tile_lines, tiles_v; /**< cells of a warp along u; tiles of 2 × 2 warps */
    void *vis, *cells;       /**< as in gcf_cuda_job */
    int nu, nv;
    int64_t pol_stride;
    float unit; /**< what results are multiplied with */
};

/** First cell of a warp's tile. Four tiles in a row are a square, so that the warps of
 * a block read the same lines. */
__device__ inline void factored_corner(const factored_args &args, uint32_t tile, int *u,
                                       int *v)
{
    const int square = (int)(tile / 4), k = (int)(tile % 4);
    *u = (2 * (square / args.tiles_v) + k / 2) * args.tile_lines;
    *v = (2 * (square % args.tiles_v) + k % 2) * FACTORED_WIDTH;
}

/** Rows of squares, and squares of each row, in which entries start that meet a tile.
 */
struct factored_reach {
    int first_u, end_u, first_v, end_v;
};

__device__ inline factored_reach factored_reach_of(const factored_args &args, int u,
                                                   int v)
{
    const int reach = args.max_support - 1;
    factored_reach of;
    of.first_u = (u > reach ? u - reach : 0) / FACTORED_START;
    of.first_v = (v > reach ? v - reach : 0) / FACTORED_START;
    of.end_u = min(args.starts_u, (u + args.tile_lines - 1) / FACTORED_START + 1);
    of.end_v = min(args.starts_v, (v + FACTORED_WIDTH - 1) / FACTORED_START + 1);
    return of;
}

/** Finds the entries of a row of squares. */
__device__ inline void factored_run(const factored_args &args,
                                    const factored_reach &reach, int row,
                                    uint32_t *first, uint32_t *end)
{
    const uint32_t *start = args.start + (int64_t)row * args.starts_v;
    *first = *end = 0;
    if (reach.first_v >= reach.end_v) return;
    *first = start[reach.first_v];
    *end = start[reach.end_v];
}

/** The work of a warp: its cells, and runs of entries one after the other. */
struct factored_walk {
    int u, v, pol, row;
    factored_reach reach;
    uint32_t passed; /* entries of the runs before */
    factored_item item;
};

/** Returns false if there is no work for this warp. */
__device__ inline bool factored_begin(const factored_args &args, factored_walk *walk)
{
    const int64_t n =
        (int64_t)blockIdx.x * FACTORED_WARPS + (int64_t)(threadIdx.x / GCF_WARP);
    if (n >= args.num_items * args.num_pol) return false;
    walk->pol = (int)(n / args.num_items);
    walk->item = args.item[n % args.num_items];
    factored_corner(args, walk->item.tile, &walk->u, &walk->v);
    walk->reach = factored_reach_of(args, walk->u, walk->v);
    walk->row = walk->reach.first_u;
    walk->passed = 0;
    return true;
}

/** Moves on to the next run of entries. Returns false after the last one. */
__device__ inline bool factored_next(const factored_args &args, factored_walk *walk,
                                     uint32_t *first, uint32_t *end)
{
    while (walk->row < walk->reach.end_u && walk->passed < walk->item.end) {
        uint32_t from, to;
        factored_run(args, walk->reach, walk->row++, &from, &to);
        const uint32_t begin = walk->passed, stop = begin + (to - from);
        walk->passed = stop;
        const uint32_t low = max(begin, walk->item.first);
        const uint32_t high = min(stop, walk->item.end);
        if (low >= high) continue;
        *first = from + (low - begin);
        *end = from + (high - begin);
        return true;
    }
    return false;
}

/** On tensor cores, products of the halves of operands: 1, or 3. */
tess_status factored_grid_tensor(const factored_args &args, int products);
tess_status factored_degrid_tensor(const factored_args &args, int products);

/** Makes pairs of halves, and what they leave, of `count` rows. */
tess_status factored_halves(const void *rows, int64_t count, uint32_t *high,
                            uint32_t *low);

#endif
