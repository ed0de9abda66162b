/* Grids and degrids with one support on tensor cores, in single precision. Compiled
 * once for each support, TILE_SUPPORT = 4 … 9.
 *
 * To grid a sub-tile's visibilities k is, for each plane p, the matrix product
 *
 *     G_p[u, v] += Σ_k A_p[u, k] B[k, v],   A_p = tap_w(k, p) tap_u(k, u),
 *                                           B = V_k tap_v(k, v),
 *
 * over the 16 × 16 cells of its footprint, zeros included: with (re, im) as columns,
 * four m16n8k16 products for 16 visibilities. A warp owns every fourth plane and keeps
 * its sums in registers. It makes A in registers from the factors, which are in shared
 * memory as fp16, as is B; both are written once per visibility.
 *
 * Degridding reads the same product the other way: T[k, (u, p)] = Σ_v tap_v(k, v)
 * G_p[u, v] on tensor cores, with G in registers all along, then Σ_p tap_w Σ_u tap_u T
 * in fp32.
 *
 * Precision: fp16 keeps 11 bits. Where that is too few every operand is the sum of a
 * high and a low half, and three of the four products are formed; what is left out is
 * 2^−22 of the largest. Operands are scaled by powers of two so that neither half
 * leaves the range of fp16: visibilities by the largest of their batch, so that those
 * 2^−14 of it still have all their 22 bits and smaller ones an error of 2^−38 of the
 * largest. The relative error of the sums is that of fp32 as long as one counts it
 * against the largest visibilities of a batch.
 *
 * Tensor cores truncate when they add. Sums are therefore added to the target after
 * each batch of 128 visibilities: where all have one sign, 24 additions then lose 7e-7;
 * over a chunk of 1024 they lost 6e-6 (and saved 6 % of the time).
 *
 * Slower on an H200 (29 M MeerKAT-like visibilities, support 7): whole tiles of 16 × 16
 * start cells, which take 84 products where four sub-tiles take 36 (an experiment: half
 * the speed); reading coordinates and visibilities ahead with asynchronous copies (4
 * %); a fifth block on a multiprocessor, which costs spills (9 %, though 2 % faster
 * with one product and support 4); steps not unrolled (3 %). */
#include <cuda_fp16.h>

#include "tess_cuda_mma.cuh"
#include "tile_cuda.cuh"

#ifndef TILE_SUPPORT
#error "TILE_SUPPORT must be 4 to 9"
#endif
#define TENSOR_PASTE_(a, b) a##b
#define TENSOR_PASTE(a, b)  TENSOR_PASTE_(a, b)
#define TENSOR_NAME(x)      TENSOR_PASTE(x, TILE_SUPPORT)

namespace
{

enum {
    W = TILE_SUPPORT,
    HALF = (W + 1) / 2,                /* taps that the others mirror */
    PAIR_ROW = (2 * HALF + 3) / 4 * 4, /* their even and odd parts, whole float4 */
    MAX_TERMS = TESS_MAX_DEGREE / 2 + 1,
    SIDE = CUDA_SUB + W - 1,
    CELLS = 16, /* of the padded footprint, per axis */
    WARPS = 4,
    THREADS = 32 * WARPS,
    BATCH = THREADS,     /* visibilities in shared memory */
    STEPS = BATCH / 16,  /* of 16 visibilities, the depth of a product */
    TAP_EXPONENT = 7,    /* taps, at most 1, are scaled by 2^7 ... */
    VALUE_EXPONENT = 13, /* ... and values to below 2^14 */
    LEAST_EXPONENT = -99 /* smaller values lose bits */
};
static_assert(SIDE <= CELLS, "a footprint is one row of tensor-core tiles");

/* Taps of a symmetric kernel: tap j at y is even(y²) + y·odd(y²), and tap W − 1 − j is
 * even(y²) − y·odd(y²). */
struct half_taps {
    int32_t terms;
    float coefficient[MAX_TERMS][PAIR_ROW]; /* even, odd of tap 0, of tap 1, ... */
};

__device__ inline void taps_of_three(const float *coefficient, int terms, float yu,
                                     float yv, float yw, float *u, float *v, float *w)
{
    float eu[HALF], ou[HALF], ev[HALF], ov[HALF], ew[HALF], ow[HALF];
    const float zu = yu * yu, zv = yv * yv, zw = yw * yw;
    #pragma unroll
    for (int j = 0; j < HALF; ++j)
        eu[j] = ou[j] = ev[j] = ov[j] = ew[j] = ow[j] = 0;
    for (int n = terms - 1; n >= 0; --n) {
        float c[PAIR_ROW];
        #pragma unroll
        for (int k = 0; k < PAIR_ROW; k += 4)
            *(float4 *)&c[k] = *(const float4 *)&coefficient[n * PAIR_ROW + k];
        #pragma unroll
        for (int j = 0; j < HALF; ++j) {
            eu[j] = eu[j] * zu + c[2 * j];
            ou[j] = ou[j] * zu + c[2 * j + 1];
            ev[j] = ev[j] * zv + c[2 * j];
            ov[j] = ov[j] * zv + c[2 * j + 1];
            ew[j] = ew[j] * zw + c[2 * j];
            ow[j] = ow[j] * zw + c[2 * j + 1];
        }
    }
    #pragma unroll
    for (int j = 0; j < HALF; ++j) {
        u[j] = eu[j] + yu * ou[j];
        u[W - 1 - j] = eu[j] - yu * ou[j];
        v[j] = ev[j] + yv * ov[j];
        v[W - 1 - j] = ev[j] - yv * ov[j];
        w[j] = ew[j] + yw * ow[j];
        w[W - 1 - j] = ew[j] - yw * ow[j];
    }
}

/* ---- tensor-core instructions ---- */

__device__ inline uint32_t shared_address(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

__device__ inline void load_matrices(uint32_t address, uint32_t out[4])
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address)
                 : "memory");
}

__device__ inline void load_transposed(uint32_t address, uint32_t out[4])
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address)
                 : "memory");
}

__device__ inline __half2 as_half2(uint32_t bits)
{
    return *(__half2 *)&bits;
}

__device__ inline uint32_t as_bits(__half2 value)
{
    return *(uint32_t *)&value;
}

/* Splits (x, y) into high + low. */
__device__ inline void split(float x, float y, __half2 *high, __half2 *low)
{
    *high = __floats2half2_rn(x, y);
    *low = __floats2half2_rn(x - __low2float(*high), y - __high2float(*high));
}

__device__ inline void split(float x, __half *high, __half *low)
{
    *high = __float2half_rn(x);
    *low = __float2half_rn(x - __half2float(*high));
}

/* Writes a row of halves: the taps from cell `offset` on, in words of two. Their low
 * halves lie `low_distance` bytes further on. */
template <bool SPLIT>
__device__ inline void write_halves(unsigned char *row, int offset, int low_distance,
                                    const float *tap)
{
    const bool odd = offset & 1;
    unsigned char *to = row + 4 * (offset >> 1);
    #pragma unroll
    for (int k = 0; k < (W + 2) / 2; ++k) {
        const float before = k > 0 ? tap[2 * k - 1] : 0.0f;
        const float here = 2 * k < W ? tap[2 * k] : 0.0f;
        const float after = 2 * k + 1 < W ? tap[2 * k + 1] : 0.0f;
        __half2 high, low;
        split(odd ? before : here, odd ? here : after, &high, &low);
        *(__half2 *)(to + 4 * k) = high;
        if (SPLIT) *(__half2 *)(to + 4 * k + low_distance) = low;
    }
}

/* Computes 2^exponent; subnormal numbers and 0 are included. */
__device__ inline float power_of_two(int exponent)
{
    if (exponent < -149) return 0;
    return __int_as_float(exponent < -126 ? 1 << (exponent + 149)
                                          : (exponent + 127) << 23);
}

/* ---- what both directions do ---- */

/* What a thread knows of its visibility of a batch. */
struct fetched {
    float yu, yv, yw; /* 2·fraction − 1 */
    float2 value;
    int offset_u, offset_v, plane;
    bool used;
};

/* Places the groups of a batch. A warp places one group. */
__device__ inline bool has_group(const cuda_chunk &chunk, int batch)
{
    return batch * WARPS + (int)threadIdx.x / 32 < chunk.num_groups;
}

__device__ inline cuda_slot slot_in_batch(const cuda_args &args,
                                          const cuda_chunk &chunk, int batch)
{
    cuda_slot slot = {};
    if (has_group(chunk, batch))
        slot = slot_of_lane(args, chunk.first_group + batch * WARPS + threadIdx.x / 32);
    return slot;
}

__device__ inline void note_place(const cuda_place &place, fetched *out)
{
    out->yu = (float)(2 * place.fraction_u - 1);
    out->yv = (float)(2 * place.fraction_v - 1);
    out->yw = (float)(2 * place.fraction_w - 1);
    out->offset_u = place.u;
    out->offset_v = place.v;
    out->plane = place.plane;
}

/* Finds the planes of a window of 32 that a footprint touches which starts `first`
 * planes into it. */
__device__ inline unsigned planes_from(int first, int w_support)
{
    const unsigned planes = (1u << w_support) - 1;
    if (first <= -w_support || first >= 32) return 0;
    return first >= 0 ? planes << first : planes >> -first;
}

/* Finds the planes of the 16 visibilities of each step. */
__device__ inline void note_planes(unsigned planes, unsigned *step_planes)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const unsigned low = __reduce_or_sync(0xffffffffu, lane < 16 ? planes : 0);
    const unsigned high = __reduce_or_sync(0xffffffffu, lane < 16 ? 0 : planes);
    if (lane == 0) {
        step_planes[2 * warp] = low;
        step_planes[2 * warp + 1] = high;
    }
}

__device__ inline void note_largest(float2 value, unsigned *largest)
{
    const unsigned bits = max(__float_as_uint(value.x) & 0x7fffffffu,
                              __float_as_uint(value.y) & 0x7fffffffu);
    const unsigned of_warp = __reduce_max_sync(0xffffffffu, bits);
    if ((threadIdx.x & 31) == 0) largest[threadIdx.x / 32] = of_warp;
}

/* Finds the exponent of the largest value of the block. */
__device__ inline int exponent_of(const unsigned *largest)
{
    unsigned bits = 0;
    for (int k = 0; k < WARPS; ++k)
        bits = max(bits, largest[k]);
    return max((int)LEAST_EXPONENT, min(127, (int)(bits >> 23) - 127));
}

__device__ inline void copy_taps(const half_taps &taps, float *coefficient)
{
    for (int k = threadIdx.x; k < taps.terms * PAIR_ROW; k += THREADS)
        coefficient[k] = taps.coefficient[k / PAIR_ROW][k % PAIR_ROW];
}

/* ---- gridding ---- */

/* A visibility's row of shared memory: B high, B low, tap_u high, tap_u low; an odd
 * number of 16 bytes apart so that eight rows fall into different banks. */
template <bool SPLIT> struct grid_row {
    enum {
        B_LOW = 64,
        U_HIGH = SPLIT ? 128 : 64,
        U_LOW = U_HIGH + 32,
        USED = SPLIT ? 192 : 96,
        BYTES = USED + 16
    };
};

template <int PLANES, bool SPLIT> struct grid_shared {
    enum { SLOTS = PLANES * WARPS };
    alignas(16) unsigned char row[BATCH * grid_row<SPLIT>::BYTES];
    /* Computes tap_w[step][plane][k/2 mod 4]: high of k, k + 1, k + 8, k + 9, then low
     * of them. */
    alignas(16) unsigned char tap_w[STEPS * SLOTS * (SPLIT ? 64 : 32)];
    alignas(16) float coefficient[MAX_TERMS * PAIR_ROW];
    unsigned step_planes[STEPS];
    unsigned largest[WARPS];
};

/* Finds the place of cell c in the row of B, in complex values. Thread t of a tile's
 * row gets cells 2t and 2t + 1 from two neighbouring tiles, so that one instruction
 * adds both. */
__device__ inline int column_of(int c)
{
    return (c >> 3) * 8 + (c & 1) * 4 + ((c >> 1) & 3);
}

template <bool SPLIT>
__device__ inline void write_row(unsigned char *row, const fetched &at, float2 value,
                                 const float *u, const float *v)
{
    typedef grid_row<SPLIT> R;
    #pragma unroll
    for (int k = 0; k < R::USED; k += 16)
        *(uint4 *)(row + k) = make_uint4(0, 0, 0, 0);
    #pragma unroll
    for (int j = 0; j < W; ++j) {
        unsigned char *to = row + 4 * column_of(at.offset_v + j);
        __half2 high, low;
        split(value.x * v[j], value.y * v[j], &high, &low);
        *(__half2 *)to = high;
        if (SPLIT) *(__half2 *)(to + R::B_LOW) = low;
    }
    write_halves<SPLIT>(row + R::U_HIGH, at.offset_u, R::U_LOW - R::U_HIGH, u);
}

/* Computes tap_w of the warp's two steps. All lanes must call. */
template <int PLANES, bool SPLIT>
__device__ inline void write_tap_w(grid_shared<PLANES, SPLIT> &shared, int first,
                                   int w_support, const float *w)
{
    enum { ENTRY = SPLIT ? 16 : 8, STEP = PLANES * WARPS * 4 * ENTRY };
    const int lane = threadIdx.x & 31, k = lane & 15;
    unsigned char *both = shared.tap_w + threadIdx.x / 32 * 2 * STEP;
    #pragma unroll
    for (int at = 0; at < 2 * STEP; at += 512)
        if (at + 16 * lane < 2 * STEP)
            *(uint4 *)(both + at + 16 * lane) = make_uint4(0, 0, 0, 0);
    __syncwarp();
    unsigned char *mine =
        both + lane / 16 * STEP + (k & 7) / 2 * ENTRY + k / 8 * 4 + (k & 1) * 2;
    #pragma unroll
    for (int j = 0; j < W; ++j) {
        const int p = first + j;
        if (j >= w_support || p < 0 || p >= PLANES * WARPS) continue;
        __half high, low;
        split(w[j], &high, &low);
        *(__half *)(mine + p * 4 * ENTRY) = high;
        if (SPLIT) *(__half *)(mine + p * 4 * ENTRY + 8) = low;
    }
}

/* Makes A for one plane: the taps in u times those in w, 22 bits from 11 with fused
 * multiply-adds. u[0..3] are a0, a2, a1, a3 of the instruction. */
template <bool SPLIT>
__device__ inline void make_a(const uint32_t u_high[4], const uint32_t u_low[4],
                              const unsigned char *tap_w, uint32_t high[4],
                              uint32_t low[4])
{
    uint4 w;
    if (SPLIT)
        w = *(const uint4 *)tap_w;
    else {
        const uint2 two = *(const uint2 *)tap_w;
        w = make_uint4(two.x, two.y, 0, 0);
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
        const int from = r == 1 ? 2 : r == 2 ? 1 : r;
        const __half2 uh = as_half2(u_high[from]), wh = as_half2(r < 2 ? w.x : w.y);
        const __half2 product = __hmul2(uh, wh);
        high[r] = as_bits(product);
        if (SPLIT) {
            const __half2 ul = as_half2(u_low[from]), wl = as_half2(r < 2 ? w.z : w.w);
            __half2 rest = __hfma2(uh, wh, __hneg2(product));
            rest = __hfma2(ul, wh, rest);
            rest = __hfma2(uh, wl, rest);
            low[r] = as_bits(rest);
        }
    }
}

/* Sums a warp's planes over a batch. Returns the planes that the batch touches. */
template <int PLANES, bool SPLIT, bool BY_STEP>
__device__ inline unsigned add_batch(const grid_shared<PLANES, SPLIT> &shared,
                                     float sum[PLANES][4][4])
{
    typedef grid_row<SPLIT> R;
    enum { ENTRY = SPLIT ? 16 : 8, SLOTS = PLANES * WARPS };
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const uint32_t corner = shared_address(shared.row) +
                            ((lane >> 3 & 1) * 8 + (lane & 7)) * R::BYTES +
                            (lane >> 4) * 16;
    unsigned touched = 0;
    for (int step = BY_STEP ? warp : 0; step < STEPS; step += BY_STEP ? WARPS : 1) {
        const unsigned planes = shared.step_planes[step] >> (BY_STEP ? 0 : warp);
        if ((planes & (BY_STEP ? 1 : 0x11111111u)) == 0) continue;
        touched |= planes;
        const uint32_t row = corner + step * 16 * R::BYTES;
        uint32_t b_high[8], b_low[8], u_high[4], u_low[4];
        load_transposed(row, b_high);
        load_transposed(row + 32, b_high + 4);
        load_transposed(row + R::U_HIGH, u_high);
        if (SPLIT) {
            load_transposed(row + R::B_LOW, b_low);
            load_transposed(row + R::B_LOW + 32, b_low + 4);
            load_transposed(row + R::U_LOW, u_low);
        }
        #pragma unroll
        for (int i = 0; i < PLANES; ++i) {
            if (!(planes >> (WARPS * i) & 1)) continue;
            const int p = BY_STEP ? i : warp + WARPS * i;
            uint32_t high[4], low[4];
            make_a<SPLIT>(u_high, u_low,
                          shared.tap_w + ((step * SLOTS + p) * 4 + (lane & 3)) * ENTRY,
                          high, low);
            #pragma unroll
            for (int n = 0; n < 4; ++n)
                multiply_add(sum[i][n], high, b_high[2 * n], b_high[2 * n + 1]);
            if (SPLIT) {
                #pragma unroll
                for (int n = 0; n < 4; ++n)
                    multiply_add(sum[i][n], low, b_high[2 * n], b_high[2 * n + 1]);
                #pragma unroll
                for (int n = 0; n < 4; ++n)
                    multiply_add(sum[i][n], high, b_low[2 * n], b_low[2 * n + 1]);
            }
        }
    }
    return touched;
}

/* Adds the sums of a warp to the target. */
template <int PLANES, bool BY_STEP>
__device__ inline void add_to_target(const cuda_args &args, const cuda_target &target,
                                     int pol, int first, unsigned touched, int exponent,
                                     const float sum[PLANES][4][4])
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const float unit = power_of_two(exponent - 2 * TAP_EXPONENT - VALUE_EXPONENT);
    float2 *out = (float2 *)args.data + target.origin + pol * target.pol_stride;
    #pragma unroll
    for (int half = 0; half < 2; ++half)
        #pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
            const int u = (lane >> 2) + 8 * half, v = 2 * (lane & 3) + 8 * pair;
            if (u >= SIDE || v >= SIDE) continue;
            float2 *cell = out + target_index(target, u, v);
            #pragma unroll
            for (int i = 0; i < PLANES; ++i) {
                const int p = first + (BY_STEP ? i : warp + WARPS * i);
                if (!(touched >> (WARPS * i) & 1)) continue;
                const float *a = &sum[i][2 * pair][2 * half];
                const float *b = &sum[i][2 * pair + 1][2 * half];
                add_complex2(
                    cell + p * target.plane_stride,
                    make_float4(a[0] * unit, a[1] * unit, b[0] * unit, b[1] * unit));
            }
        }
}

__device__ inline fetched fetch_value(const cuda_args &args, const cuda_chunk &chunk,
                                      const cuda_brick &brick, int batch, int pol)
{
    fetched out = {};
    const cuda_slot slot = slot_in_batch(args, chunk, batch);
    if (slot.used) {
        const cuda_place place = place_of(args, brick, chunk.sub, slot.row, slot.chan);
        note_place(place, &out);
        out.value = value_of<float>(args, place, slot.sample, pol);
        out.used = out.value.x != 0 || out.value.y != 0;
    }
    return out;
}

/* A block grids a chunk of one polarisation. In each batch of 128 visibilities, each
 * thread computes the operands of one visibility, then each warp multiplies all of them
 * for its planes (BY_STEP: every fourth step for all planes). At the end the sums are
 * added to the target, 16 bytes at a time. The expected limit is the issue of
 * instructions that make and load operands. */
template <int PLANES, bool SPLIT, bool BY_STEP>
__global__ void __launch_bounds__(THREADS, PLANES > 3 ? 3 : 4)
    grid_tensor_kernel(const __grid_constant__ cuda_args args,
                       const __grid_constant__ half_taps taps)
{
    extern __shared__ __align__(16) unsigned char memory[];
    grid_shared<PLANES, SPLIT> &shared = *(grid_shared<PLANES, SPLIT> *)memory;
    const cuda_chunk chunk = args.chunk[blockIdx.x];
    const cuda_brick brick = args.brick[chunk.brick];
    const int pol = blockIdx.y, w_support = args.geometry.w_support;
    const int batches = (chunk.num_groups + WARPS - 1) / WARPS;
    const int window = BY_STEP ? PLANES : PLANES * WARPS;
    const cuda_target target = target_of(args, chunk, brick);
    copy_taps(taps, shared.coefficient);
    for (int first = 0; first < brick.num_planes; first += window) {
        fetched at = fetch_value(args, chunk, brick, 0, pol);
        for (int batch = 0; batch < batches; ++batch) {
            note_largest(at.value, shared.largest);
            __syncthreads();
            const int exponent = exponent_of(shared.largest);
            if (!has_group(chunk, batch))
                note_planes(0, shared.step_planes);
            else {
                float u[W], v[W], w[W];
                const float scale =
                    power_of_two(VALUE_EXPONENT - TAP_EXPONENT - exponent);
                taps_of_three(shared.coefficient, taps.terms, at.yu, at.yv, at.yw, u, v,
                              w);
                if (BY_STEP && w_support == 1) w[0] = 1 << TAP_EXPONENT;
                write_row<SPLIT>(shared.row + threadIdx.x * grid_row<SPLIT>::BYTES, at,
                                 make_float2(at.value.x * scale, at.value.y * scale), u,
                                 v);
                write_tap_w<PLANES, SPLIT>(shared, at.plane - first, w_support, w);
                note_planes(at.used ? planes_from(at.plane - first, w_support) : 0,
                            shared.step_planes);
            }
            __syncthreads();
            if (batch + 1 < batches)
                at = fetch_value(args, chunk, brick, batch + 1, pol);
            float sum[PLANES][4][4] = {};
            const unsigned touched = add_batch<PLANES, SPLIT, BY_STEP>(shared, sum);
            /* warps of the planes of one step may meet in a cell, so they add one after
             * the other */
            const bool in_turn = BY_STEP && args.in_order;
            for (int turn = 0; turn < (in_turn ? (int)WARPS : 1); ++turn) {
                if (touched && (!in_turn || turn == (int)threadIdx.x / 32))
                    add_to_target<PLANES, BY_STEP>(args, target, pol, first, touched,
                                                   exponent, sum);
                if (in_turn) __syncthreads();
            }
        }
        __syncthreads();
    }
}

/* ---- degridding ---- */

/* A visibility's row: tap_v high, tap_v low; again an odd number of 16 bytes. */
template <bool SPLIT> struct degrid_row {
    enum { V_LOW = 32, USED = SPLIT ? 64 : 32, BYTES = USED + 16 };
};

template <int PLANES, bool SPLIT> struct degrid_shared {
    enum { SLOTS = PLANES * WARPS };
    alignas(16) unsigned char row[BATCH * degrid_row<SPLIT>::BYTES];
    alignas(16) float tap_u[BATCH * CELLS];      /* cell 4j + t at 4t + j */
    alignas(16) float tap_w[STEPS * SLOTS * 16]; /* [step][plane][visibility] */
    alignas(16) float coefficient[MAX_TERMS * PAIR_ROW];
    float2 part[WARPS][BATCH];
    unsigned step_planes[STEPS];
    unsigned largest[WARPS];
};

/* Loads the values of the grid of a warp's planes as the instruction's B: rows are v,
 * columns are (u, re or im). Returns their exponent. All threads must call. */
template <int PLANES, bool SPLIT, bool BY_STEP>
__device__ inline int load_grid(const cuda_args &args, const cuda_target &target,
                                int pol, int first, int num_planes, unsigned *largest,
                                uint32_t high[PLANES][4][2], uint32_t low[PLANES][4][2])
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const bool imaginary = lane >> 2 & 1;
    const float2 *from =
        (const float2 *)args.data + target.origin + pol * target.pol_stride;
    float2 value[PLANES][4][2];
    float2 most = make_float2(0, 0);
    #pragma unroll
    for (int n = 0; n < 4; ++n)
        #pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int u = 4 * n + (lane >> 3), v = 2 * (lane & 3) + 8 * half;
            const float2 *cell = from + target_index(target, u < SIDE ? u : 0, v);
            #pragma unroll
            for (int i = 0; i < PLANES; ++i) {
                const int p = first + (BY_STEP ? i : warp + WARPS * i);
                float4 two = make_float4(0, 0, 0, 0);
                if (p < num_planes && u < SIDE && v < SIDE)
                    two = *(const float4 *)(cell + p * target.plane_stride);
                const float a = imaginary ? two.y : two.x;
                const float b = v + 1 < SIDE ? imaginary ? two.w : two.z : 0.0f;
                value[i][n][half] = make_float2(a, b);
                most.x = fmaxf(most.x, fabsf(a));
                most.y = fmaxf(most.y, fabsf(b));
            }
        }
    note_largest(most, largest);
    __syncthreads();
    const int exponent = exponent_of(largest);
    const float scale = power_of_two(VALUE_EXPONENT - exponent);
    #pragma unroll
    for (int i = 0; i < PLANES; ++i)
        #pragma unroll
        for (int n = 0; n < 4; ++n)
            #pragma unroll
            for (int half = 0; half < 2; ++half) {
                __half2 h, l;
                split(value[i][n][half].x * scale, value[i][n][half].y * scale, &h, &l);
                high[i][n][half] = as_bits(h);
                low[i][n][half] = as_bits(l);
            }
    return exponent;
}

template <int PLANES, bool SPLIT>
__device__ inline void write_taps(degrid_shared<PLANES, SPLIT> &shared,
                                  const fetched &at, int first, int w_support,
                                  const float *u, const float *v, const float *w)
{
    typedef degrid_row<SPLIT> R;
    enum { SLOTS = PLANES * WARPS };
    const int lane = threadIdx.x & 31;
    unsigned char *row = shared.row + threadIdx.x * R::BYTES;
    float *tap_u = shared.tap_u + threadIdx.x * CELLS;
    float *both = shared.tap_w + threadIdx.x / 32 * 2 * SLOTS * 16;
    #pragma unroll
    for (int k = 0; k < R::USED; k += 16)
        *(uint4 *)(row + k) = make_uint4(0, 0, 0, 0);
    #pragma unroll
    for (int k = 0; k < CELLS; k += 4)
        *(float4 *)(tap_u + k) = make_float4(0, 0, 0, 0);
    for (int k = 4 * lane; k < 2 * SLOTS * 16; k += 128)
        *(float4 *)(both + k) = make_float4(0, 0, 0, 0);
    __syncwarp();
    write_halves<SPLIT>(row, at.offset_v, R::V_LOW, v);
    #pragma unroll
    for (int j = 0; j < W; ++j) {
        const int c = at.offset_u + j;
        tap_u[(c & 3) * 4 + (c >> 2)] = u[j];
        const int p = at.plane - first + j;
        if (j < w_support && p >= 0 && p < SLOTS)
            both[(lane / 16 * SLOTS + p) * 16 + (lane & 15)] = w[j];
    }
}

/* Computes the share of each warp, which is that of its planes, in every visibility of
 * the batch. */
template <int PLANES, bool SPLIT, bool BY_STEP>
__device__ inline void read_batch(degrid_shared<PLANES, SPLIT> &shared,
                                  const uint32_t g_high[PLANES][4][2],
                                  const uint32_t g_low[PLANES][4][2])
{
    typedef degrid_row<SPLIT> R;
    enum { SLOTS = PLANES * WARPS };
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const int group = lane >> 2, t = lane & 3;
    const uint32_t corner = shared_address(shared.row) +
                            ((lane >> 3 & 1) * 8 + (lane & 7)) * R::BYTES +
                            (lane >> 4) * 16;
    for (int step = BY_STEP ? warp : 0; step < STEPS; step += BY_STEP ? WARPS : 1) {
        const unsigned planes = shared.step_planes[step] >> (BY_STEP ? 0 : warp);
        float2 sum[2] = {};
        if (planes & (BY_STEP ? 1 : 0x11111111u)) {
            uint32_t v_high[4], v_low[4];
            load_matrices(corner + step * 16 * R::BYTES, v_high);
            if (SPLIT) load_matrices(corner + step * 16 * R::BYTES + R::V_LOW, v_low);
            float u[2][4];
            #pragma unroll
            for (int half = 0; half < 2; ++half)
                *(float4 *)u[half] =
                    *(const float4 *)&shared
                         .tap_u[(step * 16 + group + 8 * half) * CELLS + 4 * t];
            #pragma unroll
            for (int i = 0; i < PLANES; ++i) {
                if (!(planes >> (WARPS * i) & 1)) continue;
                const int p = BY_STEP ? i : warp + WARPS * i;
                float c[4][4] = {};
                #pragma unroll
                for (int n = 0; n < 4; ++n)
                    multiply_add(c[n], v_high, g_high[i][n][0], g_high[i][n][1]);
                if (SPLIT) {
                    #pragma unroll
                    for (int n = 0; n < 4; ++n)
                        multiply_add(c[n], v_low, g_high[i][n][0], g_high[i][n][1]);
                    #pragma unroll
                    for (int n = 0; n < 4; ++n)
                        multiply_add(c[n], v_high, g_low[i][n][0], g_low[i][n][1]);
                }
                #pragma unroll
                for (int half = 0; half < 2; ++half) {
                    float re = 0, im = 0;
                    #pragma unroll
                    for (int n = 0; n < 4; ++n) {
                        re += u[half][n] * c[n][2 * half];
                        im += u[half][n] * c[n][2 * half + 1];
                    }
                    const float w =
                        shared.tap_w[(step * SLOTS + p) * 16 + group + 8 * half];
                    sum[half].x += w * re;
                    sum[half].y += w * im;
                }
            }
            #pragma unroll
            for (int half = 0; half < 2; ++half)
                #pragma unroll
                for (int with = 1; with < 4; with *= 2) {
                    sum[half].x += __shfl_xor_sync(0xffffffffu, sum[half].x, with);
                    sum[half].y += __shfl_xor_sync(0xffffffffu, sum[half].y, with);
                }
        }
        if (t == 0) {
            shared.part[BY_STEP ? 0 : warp][step * 16 + group] = sum[0];
            shared.part[BY_STEP ? 0 : warp][step * 16 + group + 8] = sum[1];
        }
    }
}

/* What is needed to store a visibility. */
struct stored {
    int64_t sample; /* −1: none */
    float turns;
    bool conjugate;
};

__device__ inline fetched fetch_place(const cuda_args &args, const cuda_chunk &chunk,
                                      const cuda_brick &brick, int batch, stored *store)
{
    fetched out = {};
    const cuda_slot slot = slot_in_batch(args, chunk, batch);
    store->sample = -1;
    if (slot.used) {
        const cuda_place place = place_of(args, brick, chunk.sub, slot.row, slot.chan);
        note_place(place, &out);
        out.used = true;
        store->sample = slot.sample;
        store->turns = (float)place.turns;
        store->conjugate = place.conjugate;
    }
    return out;
}

template <int PLANES, bool SPLIT, bool BY_STEP>
__device__ inline void store_vis(const cuda_args &args,
                                 const degrid_shared<PLANES, SPLIT> &shared,
                                 const stored &store, int pol, float unit, bool again)
{
    if (store.sample < 0) return;
    float2 sum = shared.part[0][threadIdx.x];
    #pragma unroll
    for (int k = 1; k < (BY_STEP ? 1 : WARPS); ++k) {
        sum.x += shared.part[k][threadIdx.x].x;
        sum.y += shared.part[k][threadIdx.x].y;
    }
    sum.x *= unit;
    sum.y *= unit;
    float sine, cosine;
    sincos_turns(store.turns, &sine, &cosine);
    float2 vis = vis_of<float>(sum, sine, cosine, store.conjugate);
    float2 *out =
        (float2 *)args.samples.vis + store.sample * args.samples.num_pol + pol;
    if (again) {
        vis.x += out->x;
        vis.y += out->y;
    }
    *out = vis;
}

/* A block degrids a chunk of one polarisation. The values of the grid stay in registers
 * while batches of visibilities pass. The thread that has placed a visibility adds the
 * shares of the warps in it. The expected limit are the FMAs behind the tensor cores,
 * 20 for each plane and step. */
template <int PLANES, bool SPLIT, bool BY_STEP>
__global__ void __launch_bounds__(THREADS, PLANES > 3 ? 3 : 4)
    degrid_tensor_kernel(const __grid_constant__ cuda_args args,
                         const __grid_constant__ half_taps taps)
{
    extern __shared__ __align__(16) unsigned char memory[];
    degrid_shared<PLANES, SPLIT> &shared = *(degrid_shared<PLANES, SPLIT> *)memory;
    const cuda_chunk chunk = args.chunk[blockIdx.x];
    const cuda_brick brick = args.brick[chunk.brick];
    const int pol = blockIdx.y, w_support = args.geometry.w_support;
    const int batches = (chunk.num_groups + WARPS - 1) / WARPS;
    const int window = BY_STEP ? PLANES : PLANES * WARPS;
    copy_taps(taps, shared.coefficient);
    for (int first = 0; first < brick.num_planes; first += window) {
        uint32_t high[PLANES][4][2], low[PLANES][4][2];
        const int exponent = load_grid<PLANES, SPLIT, BY_STEP>(
            args, target_of(args, chunk, brick), pol, first, brick.num_planes,
            shared.largest, high, low);
        const float unit = power_of_two(exponent - 3 * TAP_EXPONENT - VALUE_EXPONENT);
        stored next, store;
        fetched at = fetch_place(args, chunk, brick, 0, &next);
        store.sample = -1;
        for (int batch = 0; batch < batches; ++batch) {
            __syncthreads();
            store_vis<PLANES, SPLIT, BY_STEP>(args, shared, store, pol, unit,
                                              first > 0);
            if (!has_group(chunk, batch))
                note_planes(0, shared.step_planes);
            else {
                float u[W], v[W], w[W];
                taps_of_three(shared.coefficient, taps.terms, at.yu, at.yv, at.yw, u, v,
                              w);
                if (BY_STEP && w_support == 1) w[0] = 1 << TAP_EXPONENT;
                write_taps<PLANES, SPLIT>(shared, at, first, w_support, u, v, w);
                note_planes(at.used ? planes_from(at.plane - first, w_support) : 0,
                            shared.step_planes);
            }
            store = next;
            __syncthreads();
            if (batch + 1 < batches)
                at = fetch_place(args, chunk, brick, batch + 1, &next);
            read_batch<PLANES, SPLIT, BY_STEP>(shared, high, low);
        }
        __syncthreads();
        store_vis<PLANES, SPLIT, BY_STEP>(args, shared, store, pol, unit, first > 0);
    }
}

/* ---- launches ---- */

half_taps half_taps_of(const tess_kernel *kernel)
{
    half_taps out = {};
    out.terms = kernel->degree / 2 + 1;
    for (int d = 0; d <= kernel->degree; ++d)
        for (int j = 0; j < HALF; ++j) {
            const double sign = d % 2 ? -1 : 1;
            out.coefficient[d / 2][2 * j + d % 2] =
                (float)(0.5 * (1 << TAP_EXPONENT) *
                        (kernel->coefficient[d][j] +
                         sign * kernel->coefficient[d][W - 1 - j]));
        }
    return out;
}

typedef void kernel_function(const cuda_args args, const half_taps taps);

cudaError_t launch(kernel_function *function, size_t bytes, const tess_kernel *kernel,
                   int num_pol, int64_t num_chunks, const cuda_args &args,
                   cudaStream_t stream)
{
    const cudaError_t error = cudaFuncSetAttribute(
        function, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess) return error;
    function<<<dim3((unsigned)num_chunks, (unsigned)num_pol), THREADS, bytes, stream>>>(
        args, half_taps_of(kernel));
    return cudaGetLastError();
}

/* With one plane, warps share the steps. Up to 12 planes, a warp has three. With more,
 * it has four, and there are several passes beyond 16. */
template <bool SPLIT>
cudaError_t launch_grid(const tess_kernel *kernel, int most_planes, int num_pol,
                        int64_t num_chunks, const cuda_args &args, cudaStream_t stream)
{
    if (args.geometry.w_support == 1)
        return launch(grid_tensor_kernel<1, SPLIT, true>, sizeof(grid_shared<1, SPLIT>),
                      kernel, num_pol, num_chunks, args, stream);
    if (most_planes <= 3 * WARPS)
        return launch(grid_tensor_kernel<3, SPLIT, false>,
                      sizeof(grid_shared<3, SPLIT>), kernel, num_pol, num_chunks, args,
                      stream);
    return launch(grid_tensor_kernel<4, SPLIT, false>, sizeof(grid_shared<4, SPLIT>),
                  kernel, num_pol, num_chunks, args, stream);
}

template <bool SPLIT>
cudaError_t launch_degrid(const tess_kernel *kernel, int most_planes, int num_pol,
                          int64_t num_chunks, const cuda_args &args,
                          cudaStream_t stream)
{
    if (args.geometry.w_support == 1)
        return launch(degrid_tensor_kernel<1, SPLIT, true>,
                      sizeof(degrid_shared<1, SPLIT>), kernel, num_pol, num_chunks,
                      args, stream);
    if (most_planes <= 3 * WARPS)
        return launch(degrid_tensor_kernel<3, SPLIT, false>,
                      sizeof(degrid_shared<3, SPLIT>), kernel, num_pol, num_chunks,
                      args, stream);
    return launch(degrid_tensor_kernel<4, SPLIT, false>,
                  sizeof(degrid_shared<4, SPLIT>), kernel, num_pol, num_chunks, args,
                  stream);
}

} // namespace

cudaError_t TENSOR_NAME(launch_grid_tensor_)(const tess_kernel *kernel, int products,
                                             int most_planes, int num_pol,
                                             int64_t num_chunks, const cuda_args &args,
                                             cudaStream_t stream)
{
    return (products == 1 ? launch_grid<false> : launch_grid<true>)(kernel, most_planes,
                                                                    num_pol, num_chunks,
                                                                    args, stream);
}

cudaError_t TENSOR_NAME(launch_degrid_tensor_)(const tess_kernel *kernel, int products,
                                               int most_planes, int num_pol,
                                               int64_t num_chunks,
                                               const cuda_args &args,
                                               cudaStream_t stream)
{
    return (products == 1 ? launch_degrid<false>
                          : launch_degrid<true>)(kernel, most_planes, num_pol,
                                                 num_chunks, args, stream);
}
