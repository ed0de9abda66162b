/* Does `factored` on tensor cores, in single precision. No study of tabulated functions
 * does this. To grid the entries k on a warp's 32 × 32 cells is a complex matrix
 * product,
 *
 *     grid[x, y] += Σ_k A[x, k] b_k(y),   A[x, k] = V_k a_k(x),
 *
 * zeros beyond the footprints included, and so it is in real numbers, with (re, im) of
 * k as the inner dimension: 8 entries are 16 products m16n8k16. To degrid them is
 *
 *     T[k, x] = Σ_y conj(b_k(y)) grid[x, y],   V_k = Σ_x conj(a_k(x)) T[k, x],
 *
 * the first sum on tensor cores, with (re, im) of y as the inner dimension, and the
 * second one in fp32. Each lane reads what it holds of the operands directly from the
 * tables, where columns are in fp32 (V is multiplied in before they are rounded) and
 * rows are pairs of halves already.
 *
 * Where w < 0, a and b are conjugated. Gridding conj(V)·a·b instead and conjugating the
 * sum is the same, so that only the sign of what is added to imaginary parts differs.
 *
 * Precision as in tile_cuda_tensor.cu: one product of halves, 2^−11, or three of their
 * high and low parts, 2^−22, of the largest visibility (or cell of the tile).
 *
 * A 32 × 32 tile meets footprints of S cells started in squares of 16 with the share
 * (S / (S + 47))² of its products, half for S = 128. */
#include "gcf_cuda_factored.cuh"

#ifndef SIMT_EMULATED
#include <cuda_fp16.h>

#include "tess_cuda_mma.cuh"
#endif

namespace
{

enum {
    LINES = 32, /* cells of a warp along u */
    STEP = 8    /* entries: the depth of two halves of a product */
};

/* ---- halves ---- */

#ifndef SIMT_EMULATED
/* Packs two numbers as halves, the first one in the low bits. */
__device__ inline uint32_t pack(float x, float y)
{
    const __half2 both = __floats2half2_rn(x, y);
    return *(const uint32_t *)&both;
}

__device__ inline float2 unpack(uint32_t bits)
{
    return __half22float2(*(const __half2 *)&bits);
}

__device__ inline uint32_t swap_halves(uint32_t bits)
{
    return __byte_perm(bits, bits, 0x1032);
}
#else
/* Rounds to 11 bits, or to multiples of 2^−24. */
uint32_t half_bits(float x)
{
    uint32_t bits;
    const float size = std::fabs(x);
    const uint32_t sign = std::signbit(x) ? 0x8000 : 0;
    if (!(size < 65520)) abort(); /* operands are scaled to fit */
    if (size < 0x1p-14f) return sign | (uint32_t)std::nearbyint(size * 0x1p24f);
    memcpy(&bits, &size, sizeof bits);
    return sign | (((bits + 0xfff + (bits >> 13 & 1)) >> 13) - (112 << 10));
}

float of_half(uint32_t bits)
{
    const int exponent = (int)(bits >> 10 & 31);
    float value = (float)(bits & 0x3ff) * 0x1p-24f;
    if (exponent > 0) {
        const uint32_t normal = ((bits & 0x7fff) << 13) + (112u << 23);
        memcpy(&value, &normal, sizeof value);
    }
    return bits & 0x8000 ? -value : value;
}

uint32_t pack(float x, float y)
{
    return half_bits(x) | half_bits(y) << 16;
}

float2 unpack(uint32_t bits)
{
    return make_float2(of_half(bits & 0xffff), of_half(bits >> 16));
}

uint32_t swap_halves(uint32_t bits)
{
    return bits << 16 | bits >> 16;
}

/* Computes c[row][column] += Σ_k a[row][k] b[k][column]. The operands lie in the lanes
 * as the instruction has them. */
void multiply_add(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
    const uint32_t b[2] = {b0, b1};
    const int lane = simt_lane(), group = lane / 4, t = lane % 4;
    float2 rows[2][4][2], columns[2][4][2]; /* [row or column][lane][k / 8] */
    uint32_t other[4];
    simt_exchange(GCF_ALL_LANES, a, 16);
    for (int k = 0; k < 4; ++k) {
        simt_value(group * 4 + k, other, 16);
        for (int r = 0; r < 4; ++r)
            rows[r % 2][k][r / 2] = unpack(other[r]);
    }
    simt_exchange(GCF_ALL_LANES, b, 8);
    for (int n = 0; n < 2; ++n)
        for (int k = 0; k < 4; ++k) {
            simt_value((2 * t + n) * 4 + k, other, 8);
            for (int half = 0; half < 2; ++half)
                columns[n][k][half] = unpack(other[half]);
        }
    for (int r = 0; r < 2; ++r)
        for (int n = 0; n < 2; ++n)
            for (int k = 0; k < 4; ++k)
                for (int half = 0; half < 2; ++half)
                    c[2 * r + n] += rows[r][k][half].x * columns[n][k][half].x +
                                    rows[r][k][half].y * columns[n][k][half].y;
}
#endif

/* Makes halves of (x, y), and what is left of them. */
template <int PRODUCTS>
__device__ inline void split(float x, float y, uint32_t *high, uint32_t *low)
{
    *high = pack(x, y);
    *low = 0;
    if (PRODUCTS > 1) {
        const float2 rounded = unpack(*high);
        *low = pack(x - rounded.x, y - rounded.y);
    }
}

/* Finds the index of a line for cells from `first` on. Footprints that are far away lie
 * in the zeros. */
__device__ inline int clamp_to_line(int first, int support)
{
    return max(-(int)FACTORED_PAD, min(support, first));
}

__device__ inline int support_of(uint32_t info)
{
    return (int)(info & ~FACTORED_CONJUGATE);
}

/* An entry as a lane needs it, with the places of the factors of its cells. */
struct factors {
    const float2 *column; /* of the warp's first line */
    uint32_t row;         /* of its first cell, in the tables */
    float2 value;
    bool conjugate, meets;
    uint32_t point;
};

__device__ inline factors factors_of(const factored_args &args,
                                     const factored_walk &walk, uint32_t e,
                                     uint32_t end)
{
    factors out = {};
    /* zeros stand in front of the first line, and its taps behind them */
    out.column = (const float2 *)args.columns;
    if (e < end) {
        const factored_entry<float> one =
            ((const factored_entry<float> *)
                 args.entry)[walk.pol * args.num_entries + e];
        const int support = support_of(one.info);
        const int x = clamp_to_line(walk.u - one.u, support);
        const int y = clamp_to_line(walk.v - one.v, support);
        out.column += (int64_t)one.column + x;
        out.row = one.row + (uint32_t)y;
        out.value = one.value;
        out.conjugate = (one.info & FACTORED_CONJUGATE) != 0;
        out.meets = x > -(int)FACTORED_PAD && x < support && y > -(int)FACTORED_PAD &&
                    y < support;
        out.point = one.point;
    }
    return out;
}

/* ---- gridding ---- */

/* Adds the products of 8 entries, of which the lane has two, to the warp's sums [16
 * lines][8 cells][re, im]. */
template <int PRODUCTS>
__device__ inline void add_products(const factored_args &args, const factors at[2],
                                    float sum[2][4][2][4])
{
    const int group = (int)threadIdx.x % GCF_WARP / 4;
    uint32_t a_high[2][4], a_low[2][4];
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            const factors &of = at[part / 2];
            const float2 a = __ldg(of.column + 16 * m + 8 * (part % 2) + group);
            split<PRODUCTS>(of.value.x * a.x - of.value.y * a.y,
                            of.value.x * a.y + of.value.y * a.x, &a_high[m][part],
                            &a_low[m][part]);
        }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
        uint32_t re[2], im[2], re_low[2], im_low[2];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            /* (b_re, −b_im), and for imaginary parts (b_im, b_re), or that with a minus
             */
            const uint32_t sign = at[k].conjugate ? 0x80000000u : 0x00008000u;
            const uint32_t place = at[k].row + (uint32_t)(8 * n + group);
            re[k] = __ldg(args.row_high + place);
            im[k] = swap_halves(re[k]) ^ sign;
            if (PRODUCTS > 1) {
                re_low[k] = __ldg(args.row_low + place);
                im_low[k] = swap_halves(re_low[k]) ^ sign;
            }
        }
#pragma unroll
        for (int m = 0; m < 2; ++m) {
            multiply_add(sum[m][n][0], a_high[m], re[0], re[1]);
            multiply_add(sum[m][n][1], a_high[m], im[0], im[1]);
            if (PRODUCTS > 1) {
                multiply_add(sum[m][n][0], a_low[m], re[0], re[1]);
                multiply_add(sum[m][n][1], a_low[m], im[0], im[1]);
                multiply_add(sum[m][n][0], a_high[m], re_low[0], re_low[1]);
                multiply_add(sum[m][n][1], a_high[m], im_low[0], im_low[1]);
            }
        }
    }
}

/* A warp grids its item. The sums of its cells stay in registers (64). Tables are read
 * through L1. Atomic: one addition for every cell and item. The expected limit is the
 * rate of sectors of L1: 16 loads for every 16 tensor-core products (24 for every 48).
 */
template <int PRODUCTS>
__global__ void __launch_bounds__(FACTORED_THREADS, PRODUCTS == 1 ? 4 : 3)
    grid_kernel(factored_args args)
{
    const int lane = (int)threadIdx.x % GCF_WARP, group = lane / 4, t = lane % 4;
    factored_walk walk;
    uint32_t first, end;
    float sum[2][4][2][4] = {};
    if (!factored_begin(args, &walk)) return;
    while (factored_next(args, &walk, &first, &end)) {
        /* looked up while those before are worked on */
        factors next[2] = {factors_of(args, walk, first + (uint32_t)t, end),
                           factors_of(args, walk, first + (uint32_t)t + STEP / 2, end)};
        for (uint32_t e = first; e < end; e += STEP) {
            const uint32_t mine = e + (uint32_t)t;
            const factors at[2] = {next[0], next[1]};
            next[0] = factors_of(args, walk, mine + STEP, end);
            next[1] = factors_of(args, walk, mine + STEP + STEP / 2, end);
            if (__any_sync(GCF_ALL_LANES, at[0].meets || at[1].meets))
                add_products<PRODUCTS>(args, at, sum);
        }
    }
    float2 *cells = (float2 *)args.cells + walk.pol * args.pol_stride;
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const int x = walk.u + 16 * m + 8 * (k / 2) + group;
                const int y = walk.v + 8 * n + 2 * t + k % 2;
                if (x < args.nu && y < args.nv)
                    add_complex(cells + (int64_t)x * args.nv + y,
                                make_float2(sum[m][n][0][k] * args.unit,
                                            sum[m][n][1][k] * args.unit));
            }
}

/* ---- degridding ---- */

/* Computes 2^exponent, from −126 to 127. */
__device__ inline float power_of_two(int exponent)
{
    return ldexpf(1.0f, exponent);
}

/* Loads the warp's cells as the second operand of the instruction, [8 cells along v][8
 * lines]. They are multiplied by a factor that makes them halves below 2^13, and the
 * result is divided by it. */
template <int PRODUCTS>
__device__ inline float load_cells(const factored_args &args, const factored_walk &walk,
                                   uint32_t high[4][4][2], uint32_t low[4][4][2])
{
    const int lane = (int)threadIdx.x % GCF_WARP, group = lane / 4, t = lane % 4;
    const float2 *cells = (const float2 *)args.cells + walk.pol * args.pol_stride;
    float2 value[4][4][2];
    float most = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int x = walk.u + 8 * n + group;
                const int y = walk.v + 8 * k + t + 4 * half;
                float2 one = make_float2(0, 0);
                if (x < args.nu && y < args.nv)
                    one = __ldg(cells + (int64_t)x * args.nv + y);
                value[k][n][half] = one;
                most = fmaxf(most, fmaxf(fabsf(one.x), fabsf(one.y)));
            }
#pragma unroll
    for (int with = 1; with < GCF_WARP; with *= 2)
        most = fmaxf(most, __shfl_xor_sync(GCF_ALL_LANES, most, with));
    int exponent = 0;
    if (most > 0) (void)frexpf(most, &exponent);
    exponent = max(-100, min(exponent, 120));
    const float scale = power_of_two(FACTORED_VALUE_EXPONENT - exponent);
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                split<PRODUCTS>(value[k][n][half].x * scale,
                                value[k][n][half].y * scale, &high[k][n][half],
                                &low[k][n][half]);
    return power_of_two(exponent - FACTORED_VALUE_EXPONENT - FACTORED_ROW_EXPONENT);
}

/* Computes T of 8 entries, of which the lane has number lane / 4: re and im of lines 8
 * n + 2 (lane % 4) + {0, 1} in c[n][{0, 1}] and c[n][{2, 3}]. */
template <int PRODUCTS>
__device__ inline void multiply_rows(const factored_args &args, const factors &at,
                                     const uint32_t high[4][4][2],
                                     const uint32_t low[4][4][2], float c[4][4])
{
    const int t = (int)threadIdx.x % 4;
    /* of the table's (b_re, −b_im): conj(b)'s (b_re, b_im) and (−b_im, b_re), or b's
     * (b_re, −b_im) and (b_im, b_re) */
    const uint32_t of_re = at.conjugate ? 0 : 0x80000000u;
    const uint32_t of_im = at.conjugate ? 0x00008000u : 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        uint32_t a[4], a_low[4];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const uint32_t place = at.row + (uint32_t)(8 * k + t + 4 * half);
            const uint32_t b = __ldg(args.row_high + place);
            a[2 * half] = b ^ of_re;
            a[2 * half + 1] = swap_halves(b) ^ of_im;
            if (PRODUCTS > 1) {
                const uint32_t rest = __ldg(args.row_low + place);
                a_low[2 * half] = rest ^ of_re;
                a_low[2 * half + 1] = swap_halves(rest) ^ of_im;
            }
        }
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            multiply_add(c[n], a, high[k][n][0], high[k][n][1]);
            if (PRODUCTS > 1) {
                multiply_add(c[n], a_low, high[k][n][0], high[k][n][1]);
                multiply_add(c[n], a, low[k][n][0], low[k][n][1]);
            }
        }
    }
}

/* A warp reads the visibilities of its item's entries off its cells, which stay in
 * registers (32, or 64). Atomic: the share of an entry. The expected limit is that of
 * gridding. */
template <int PRODUCTS>
__global__ void __launch_bounds__(FACTORED_THREADS, PRODUCTS == 1 ? 4 : 3)
    degrid_kernel(factored_args args)
{
    const int lane = (int)threadIdx.x % GCF_WARP, group = lane / 4, t = lane % 4;
    factored_walk walk;
    uint32_t first, end, high[4][4][2], low[4][4][2];
    if (!factored_begin(args, &walk)) return;
    const float unit = load_cells<PRODUCTS>(args, walk, high, low);
    while (factored_next(args, &walk, &first, &end)) {
        factors next = factors_of(args, walk, first + (uint32_t)group, end);
        for (uint32_t e = first; e < end; e += STEP) {
            const factors at = next;
            next = factors_of(args, walk, e + (uint32_t)(group + STEP), end);
            if (!__any_sync(GCF_ALL_LANES, at.meets)) continue;
            float c[4][4] = {};
            multiply_rows<PRODUCTS>(args, at, high, low, c);
            const float sign = at.conjugate ? -1 : 1;
            float2 vis = make_float2(0, 0);
#pragma unroll
            for (int n = 0; n < 4; ++n)
#pragma unroll
                for (int k = 0; k < 2; ++k) {
                    float2 a = __ldg(at.column + 8 * n + 2 * t + k);
                    a.y *= sign;
                    gcf_add_conjugate_product(vis, a,
                                              make_float2(c[n][k], c[n][2 + k]));
                }
#pragma unroll
            for (int with = 1; with < 4; with *= 2) {
                vis.x += __shfl_xor_sync(GCF_ALL_LANES, vis.x, with);
                vis.y += __shfl_xor_sync(GCF_ALL_LANES, vis.y, with);
            }
            const float scale = unit * at.value.x;
            if (t == 0 && at.meets)
                add_complex((float2 *)args.vis + (int64_t)at.point * args.num_pol +
                                walk.pol,
                            make_float2(vis.x * scale, vis.y * scale));
        }
    }
}

/* ---- tables ---- */

/* A thread works on a value. */
__global__ void halves_kernel(int64_t count, const float2 *rows, uint32_t *high,
                              uint32_t *low)
{
    const int64_t k = (int64_t)blockIdx.x * FACTORED_THREADS + threadIdx.x;
    const float scale = 1 << FACTORED_ROW_EXPONENT;
    if (k < count) split<3>(rows[k].x * scale, -rows[k].y * scale, &high[k], &low[k]);
}

int64_t blocks_of(const factored_args &args)
{
    return (args.num_items * args.num_pol + FACTORED_WARPS - 1) / FACTORED_WARPS;
}

} // namespace

tess_status factored_halves(const void *rows, int64_t count, uint32_t *high,
                            uint32_t *low)
{
    tess_status status = TESS_OK;
    tess_launch(halves_kernel, (count + FACTORED_THREADS - 1) / FACTORED_THREADS,
               FACTORED_THREADS, 0, count, (const float2 *)rows, high, low);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

tess_status factored_grid_tensor(const factored_args &args, int products)
{
    tess_status status = TESS_OK;
    tess_launch(products == 1 ? grid_kernel<1> : grid_kernel<3>, blocks_of(args),
               FACTORED_THREADS, 0, args);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

tess_status factored_degrid_tensor(const factored_args &args, int products)
{
    tess_status status = TESS_OK;
    tess_launch(products == 1 ? degrid_kernel<1> : degrid_kernel<3>, blocks_of(args),
               FACTORED_THREADS, 0, args);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}
