/* The sub-minor loop on the device: see cuda_cycle.h.
 *
 * In each iteration a block finds the best of its candidates, tells it to all blocks,
 * and learns theirs. Every block then knows the component, and subtracts its PSF at
 * each of its own candidates. The values and places of these are in the block's shared
 * memory if they fit. Products and sums are rounded one by one, and each candidate is
 * worked on by itself. So the components do not depend on the number of blocks.
 *
 * A message is a row of words of 64 bits, each of them half of a number, and the
 * iteration that it belongs to: a word is there when its iteration is. Blocks use two
 * rows in turn. A block that writes a row has read what all blocks told an iteration
 * before, and they have read this row by then.
 *
 * Expected limit: the latency of memory, about 1 µs for a PSF's value and 1 µs for the
 * messages. */
#include "tess_cuda.h"

#include "cuda_cycle.h"
#include "cuda_metric.cuh"
#include "tess_cuda_launch.cuh"

namespace
{

enum {
    LANES = 32,
#ifdef SIMT_EMULATED
    /* each switch from thread to thread takes time there */
    MOST_THREADS = 64,
    FEW_THREADS = 64,
#else
    MOST_THREADS = 1024,
    FEW_THREADS = 512, /* of a block, if a list is not long */
#endif
    MOST_WARPS = MOST_THREADS / LANES,
    MOST_BLOCKS = 256,
    HEAD_WORDS = 5, /* of a message: metric (two), place, x and y */
    AHEAD = 4,      /* candidates of a thread whose PSFs are read at a time */
    LONG = 1 << 14  /* candidates of one layer: a long list */
};

typedef unsigned long long word;

/* What a launch needs beside the loop. */
struct launch {
    int64_t share; /* candidates of a block */
    bool in_shared;
    word *message; /* [2][blocks][words] */
    int words;
    int64_t head; /* bytes of shared memory before the candidates */
    cuda_cycle_end *end;
};

/* A block's candidates: in its shared memory, or in the list. */
struct share {
    int64_t first, count, stride; /* stride: from layer to layer */
    double *value;
    int32_t *x, *y;
    const double *factor;
    const int16_t *of;
};

struct best {
    double metric;
    int place; /* in the list; −1: none */
};

/* What a block has told, without the values of layers. */
struct heard {
    best own;
    int x, y;
};

/* What all threads of a block know about the iteration. */
struct component {
    best of_warp[MOST_WARPS];
    heard of_block[MOST_BLOCKS];
    double *found, *value; /* of layers, in shared memory, too */
    clean_log_fit *fit;    /* likewise, of logarithms */
    double term[CLEAN_SMALL_MOST];
};

__device__ double size_of(const cuda_cycle &c, double metric)
{
    return c.positive ? metric : fabs(metric);
}

__device__ best better(const cuda_cycle &c, const best &a, const best &b)
{
    const double size_a = size_of(c, a.metric), size_b = size_of(c, b.metric);
    if (a.place < 0 || b.place < 0) return a.place < 0 ? b : a;
    if (size_a != size_b) return size_a > size_b ? a : b;
    return a.place < b.place ? a : b;
}

__device__ best best_of_warp(const cuda_cycle &c, best own)
{
    for (int step = LANES / 2; step > 0; step /= 2) {
        best other;
        other.metric = __shfl_xor_sync(~0u, own.metric, step);
        other.place = __shfl_xor_sync(~0u, own.place, step);
        own = better(c, own, other);
    }
    return own;
}

/* ---- candidates ---- */

struct value_of {
    const double *value;
    int64_t stride;
    __device__ double operator()(int layer) const
    {
        return value[layer * stride];
    }
};

template <bool MANY>
__device__ double metric_of(const cuda_cycle &c, const share &own, int64_t k)
{
    double metric = own.value[k];
    if (MANY && !c.sums)
        metric = cuda_metric(c.join, value_of{own.value + k, own.stride});
    return own.factor ? __dmul_rn(metric, own.factor[k]) : metric;
}

/* A thread's best after it has looked at candidate k; candidates come in their order.
 */
__device__ void look_at(const cuda_cycle &c, const share &own, int64_t k, double metric,
                        best *chosen)
{
    const double size = size_of(c, metric);
    if (size > (chosen->place < 0 ? 0 : size_of(c, chosen->metric)))
        *chosen = best{metric, (int)(own.first + k)};
}

/* What places see of the component; NULL: all of it. */
__device__ const double *seen_of(const cuda_cycle &c, const heard &chosen)
{
    return c.list.of ? c.likeness + c.list.of[chosen.own.place] * c.num_places
                     : nullptr;
}

/* What a candidate sees of it. */
__device__ double part_of(const double *seen, const share &own, int64_t k)
{
    return seen ? __ldg(seen + own.of[k]) : 1;
}

/* Changes of a candidate's layers by the component, whose PSFs are at `psf`, and of
 * which the candidate sees a part. */
template <typename R>
__device__ void subtract_layers(const cuda_cycle &c, const component &of, const R *psf,
                                double part, double *value, int64_t stride)
{
    const int layers = c.list.num_layers;
    for (int u = 0; u < layers; ++u) {
        double less = 0;
        if (!c.sums) {
            if (c.has_data[u])
                less = __dmul_rn(__dmul_rn(of.value[u], part), (double)__ldg(psf + u));
        } else
            for (int t = 0; t < layers; ++t) {
                const int pair = t > u ? t * (t + 1) / 2 + u : u * (u + 1) / 2 + t;
                less =
                    __dadd_rn(less, __dmul_rn(of.value[t], (double)__ldg(psf + pair)));
            }
        value[u * stride] = __dsub_rn(value[u * stride], less);
    }
}

/* The PSFs at a candidate; NULL: it is out of their reach. */
template <typename R>
__device__ const R *psf_at(const cuda_window &window, int64_t dx, int64_t dy)
{
    if (dx < -window.half_x || dx > window.half_x || dy < -window.half_y ||
        dy > window.half_y)
        return nullptr;
    return (const R *)window.value +
           ((dy + window.half_y) * window.stride + dx + window.half_x) * window.width;
}

/* Subtracts the component from this thread's candidates of one layer. Returns their
 * best. Several PSFs are asked for before the first is used. */
template <typename R>
__device__ best subtract_single(const cuda_cycle &c, const heard &pixel, double value,
                                const share &own)
{
    const double *seen = seen_of(c, pixel);
    best chosen = {0, -1};
    for (int64_t from = threadIdx.x; from < own.count;
         from += (int64_t)AHEAD * blockDim.x) {
        double psf[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) {
            const int64_t k = from + a * (int64_t)blockDim.x;
            const R *at = nullptr;
            if (k < own.count)
                at = psf_at<R>(c.window, own.x[k] - pixel.x, own.y[k] - pixel.y);
            psf[a] = at ? (double)__ldg(at) : 0;
        }
#pragma unroll
        for (int a = 0; a < AHEAD; ++a) {
            const int64_t k = from + a * (int64_t)blockDim.x;
            if (k >= own.count) break;
            const double flux = __dmul_rn(value, part_of(seen, own, k));
            own.value[k] = __dsub_rn(own.value[k], __dmul_rn(flux, psf[a]));
            look_at(c, own, k, metric_of<false>(c, own, k), &chosen);
        }
    }
    return chosen;
}

template <typename R>
__device__ best subtract_many(const cuda_cycle &c, const heard &pixel,
                              const component &of, const share &own)
{
    const double *seen = seen_of(c, pixel);
    best chosen = {0, -1};
    for (int64_t k = threadIdx.x; k < own.count; k += blockDim.x) {
        const R *psf = psf_at<R>(c.window, own.x[k] - pixel.x, own.y[k] - pixel.y);
        if (psf)
            subtract_layers(c, of, psf, part_of(seen, own, k), own.value + k,
                            own.stride);
        look_at(c, own, k, metric_of<true>(c, own, k), &chosen);
    }
    return chosen;
}

template <bool MANY> __device__ best first_best(const cuda_cycle &c, const share &own)
{
    best chosen = {0, -1};
    for (int64_t k = threadIdx.x; k < own.count; k += blockDim.x)
        look_at(c, own, k, metric_of<MANY>(c, own, k), &chosen);
    return chosen;
}

/* ---- messages ---- */

__device__ void tell(word *to, unsigned iteration, unsigned half)
{
    *(volatile word *)to = (word)iteration << 32 | half;
}

__device__ void tell_number(word *to, unsigned iteration, double number)
{
    const word bits = (word)__double_as_longlong(number);
    tell(to, iteration, (unsigned)bits);
    tell(to + 1, iteration, (unsigned)(bits >> 32));
}

/* Waits for COUNT words. All of them are asked for before the first is looked at. */
template <int COUNT>
__device__ void hear(const word *from, unsigned iteration, unsigned half[COUNT])
{
    bool there = false;
    while (!there) {
        word heard[COUNT];
#pragma unroll
        for (int k = 0; k < COUNT; ++k)
            heard[k] = ((const volatile word *)from)[k];
        there = true;
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            there = there && (unsigned)(heard[k] >> 32) == iteration;
            half[k] = (unsigned)heard[k];
        }
    }
}

__device__ double number_of(const unsigned half[2])
{
    return __longlong_as_double((long long)((word)half[1] << 32 | half[0]));
}

/* The first warp tells the block's best candidate with the values of its layers. */
__device__ void tell_best(const cuda_cycle &c, const share &own, unsigned iteration,
                          const best &mine, word *to)
{
    const int lane = threadIdx.x;
    const int64_t k = mine.place - own.first;
    if (lane == 0) {
        tell_number(to, iteration, mine.metric);
        tell(to + 2, iteration, (unsigned)mine.place);
        tell(to + 3, iteration, mine.place < 0 ? 0 : (unsigned)own.x[k]);
        tell(to + 4, iteration, mine.place < 0 ? 0 : (unsigned)own.y[k]);
    }
    for (int l = lane; l < c.list.num_layers; l += LANES)
        tell_number(to + HEAD_WORDS + 2 * l, iteration,
                    mine.place < 0 ? 0 : own.value[l * own.stride + k]);
}

/* Threads hear what blocks tell, one block each. */
__device__ void hear_blocks(const word *row, int words, unsigned iteration,
                            component *of)
{
    for (int b = threadIdx.x; b < (int)gridDim.x; b += blockDim.x) {
        unsigned half[HEAD_WORDS];
        hear<HEAD_WORDS>(row + (int64_t)b * words, iteration, half);
        heard *to = &of->of_block[b];
        to->own.metric = number_of(half);
        to->own.place = (int)half[2];
        to->x = (int)half[3];
        to->y = (int)half[4];
    }
}

/* The best of all blocks. Every warp finds it, so that nobody waits for one of them. */
__device__ heard best_of_blocks(const cuda_cycle &c, const launch &with,
                                const component &of)
{
    best all = {0, -1};
    for (int b = threadIdx.x % LANES; b < (int)gridDim.x; b += LANES)
        all = better(c, all, of.of_block[b].own);
    all = best_of_warp(c, all);
    if (all.place < 0) return heard{all, 0, 0};
    return of.of_block[all.place / with.share];
}

/* Chooses the candidate of an iteration. of->found := the values of its layers. */
template <bool MANY>
__device__ heard choose(const cuda_cycle &c, const launch &with, const share &own,
                        unsigned iteration, best mine, component *of)
{
    const int lane = threadIdx.x % LANES, warps = blockDim.x / LANES;
    word *row = with.message + (int64_t)(iteration % 2) * gridDim.x * with.words;
    mine = best_of_warp(c, mine);
    if (lane == 0) of->of_warp[threadIdx.x / LANES] = mine;
    __syncthreads();
    if (threadIdx.x < LANES) {
        mine = lane < warps ? of->of_warp[lane] : best{0, -1};
        mine = best_of_warp(c, mine);
        tell_best(c, own, iteration, mine, row + (int64_t)blockIdx.x * with.words);
    }
#ifdef SIMT_EMULATED
    __syncthreads(); /* a thread that waits for a word gives way to no other */
#endif
    hear_blocks(row, with.words, iteration, of);
    __syncthreads();
    const heard chosen = best_of_blocks(c, with, *of);
    if (chosen.own.place < 0 || !(MANY || own.factor)) return chosen;
    for (int l = threadIdx.x; l < c.list.num_layers; l += blockDim.x) {
        unsigned half[2];
        hear<2>(row + chosen.own.place / with.share * with.words + HEAD_WORDS + 2 * l,
                iteration, half);
        of->found[l] = number_of(half);
    }
    __syncthreads();
    return chosen;
}

/* ---- the loop ---- */

__device__ bool ends_at(const cuda_cycle &c, const best &chosen)
{
    const double size = fabs(chosen.metric);
    if (chosen.place < 0 || size <= c.until || size > c.diverged) return true;
    return chosen.metric < 0 && c.stop_negative;
}

/* Replaces the values of a component by those of the function of logarithms that is
 * fitted to them, as clean_spectrum_fit() does. */
__device__ void fit_logs(const cuda_cycle &c, component *of)
{
    const clean_log_places &places = c.logs;
    for (int p = 0; p < places.num_pol; ++p) {
        if (threadIdx.x == 0)
            clean_log_fit_component(of->fit, &places, of->value, p, c.noise[p],
                                    of->term);
        __syncthreads();
        for (int k = threadIdx.x; k < places.num_channels; k += blockDim.x)
            of->value[k * places.num_pol + p] =
                clean_log_value(of->term, places.num_terms, places.at[k]);
        __syncthreads();
    }
}

/* The component of the chosen candidate: its values are multiplied by the gain, and its
 * spectrum is fitted to them. The first block writes it down. Returns the value of a
 * single layer; of->value has those of many. */
template <bool MANY>
__device__ double make_component(const cuda_cycle &c, int64_t iteration,
                                 const heard &chosen, bool has_factor, component *of)
{
    const int layers = c.list.num_layers;
    const double single =
        __dmul_rn(has_factor ? of->found[0] : chosen.own.metric, c.gain);
    if (blockIdx.x == 0 && threadIdx.x == 0) c.place[iteration] = chosen.own.place;
    if (!MANY && blockIdx.x == 0 && threadIdx.x == 0) c.value[iteration] = single;
    for (int l = threadIdx.x; MANY && l < layers; l += blockDim.x) {
        double value = c.fit ? 0 : __dmul_rn(of->found[l], c.gain);
        for (int k = 0; c.fit && k < layers; ++k)
            value += c.fit[l * layers + k] * __dmul_rn(of->found[k], c.gain);
        of->value[l] = value;
    }
    if (MANY) __syncthreads();
    if (MANY && c.noise) fit_logs(c, of);
    for (int l = threadIdx.x; MANY && blockIdx.x == 0 && l < layers; l += blockDim.x)
        c.value[iteration * layers + l] = of->value[l];
    return single;
}

/* Brings the block's candidates to its shared memory, or back. */
__device__ void move_values(const cuda_cycle &c, const share &own, bool back)
{
    for (int l = 0; l < c.list.num_layers; ++l)
        for (int64_t k = threadIdx.x; k < own.count; k += blockDim.x) {
            double *there = c.list.value + l * c.list.count + own.first + k;
            double *here = own.value + l * own.stride + k;
            if (back)
                *there = *here;
            else
                *here = *there;
        }
}

__device__ share share_of(const cuda_cycle &c, const launch &with)
{
    share own;
    own.first = (int64_t)blockIdx.x * with.share;
    own.count =
        c.list.count - own.first < with.share ? c.list.count - own.first : with.share;
    own.stride = c.list.count;
    own.value = c.list.value + own.first;
    own.x = c.list.x + own.first;
    own.y = c.list.y + own.first;
    own.factor = c.list.factor ? c.list.factor + own.first : nullptr;
    own.of = c.list.of ? c.list.of + own.first : nullptr;
    if (!with.in_shared) return own;
    double *memory = (double *)((char *)tess_shared() + with.head);
    int32_t *x = (int32_t *)(memory + with.share * c.list.num_layers);
    for (int64_t k = threadIdx.x; k < own.count; k += blockDim.x) {
        x[k] = own.x[k];
        x[with.share + k] = own.y[k];
    }
    own.stride = with.share;
    own.value = memory;
    own.x = x;
    own.y = x + with.share;
    move_values(c, own, false);
    return own;
}

template <typename R, bool MANY>
__global__ void __launch_bounds__(MOST_THREADS) cycle_kernel(cuda_cycle c, launch with)
{
    __shared__ component of;
    if (threadIdx.x == 0) {
        of.found = (double *)tess_shared();
        of.value = of.found + c.list.num_layers;
        of.fit = (clean_log_fit *)(of.value + c.list.num_layers);
    }
    const share own = share_of(c, with);
    const bool has_factor = own.factor != nullptr;
    heard chosen;
    int64_t iteration = 0;
    bool done = false;
    __syncthreads();
    best mine = first_best<MANY>(c, own);
    for (;; ++iteration) {
        chosen = choose<MANY>(c, with, own, (unsigned)iteration + 1, mine, &of);
        done = ends_at(c, chosen.own);
        if (done || iteration == c.most) break;
        const double value =
            make_component<MANY>(c, iteration, chosen, has_factor, &of);
        mine = MANY ? subtract_many<R>(c, chosen, of, own)
                    : subtract_single<R>(c, chosen, value, own);
    }
    if (with.in_shared) move_values(c, own, true);
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *with.end =
            cuda_cycle_end{iteration, chosen.own.metric, chosen.own.place, done};
}

/* Shared memory that a block may ask for. */
int64_t shared_bytes(void)
{
    int bytes = 0;
    if (cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                               tess_device_number()) != cudaSuccess)
        (void)cudaGetLastError();
    return bytes - (int64_t)sizeof(component) - 1024;
}

typedef void cycle_function(cuda_cycle, launch);

cycle_function *function_of(const cuda_cycle *cycle)
{
    const bool many = cycle->list.num_layers > 1;
    if (cycle->is_double)
        return many ? cycle_kernel<double, true> : cycle_kernel<double, false>;
    return many ? cycle_kernel<float, true> : cycle_kernel<float, false>;
}

/* How the candidates are shared: a thread has one of them, or two of a long list, as
 * long as there are enough multiprocessors. Fewer blocks have fewer messages to hear.
 */
launch launch_of(const cuda_cycle *cycle, int *threads, int64_t *blocks, int64_t *bytes)
{
    launch with = {};
    const int64_t count = cycle->list.count;
    const int64_t together = tess_most_together();
    const int64_t most = together < MOST_BLOCKS ? together : (int64_t)MOST_BLOCKS;
    const int64_t warps = (count + LANES - 1) / LANES;
    const bool many = cycle->list.num_layers > 1;
    const bool is_long = count > (many ? most * FEW_THREADS : (int64_t)LONG);
    const int64_t each = is_long && !many ? 2 : 1;
    *threads = is_long ? MOST_THREADS : FEW_THREADS;
    if (warps < FEW_THREADS / LANES) *threads = (int)warps * LANES;
    *blocks = (count + each * *threads - 1) / (each * *threads);
    if (*blocks > most) *blocks = most;
    with.share = (count + *blocks - 1) / *blocks;
    *blocks = (count + with.share - 1) / with.share;
    with.words = HEAD_WORDS + 2 * cycle->list.num_layers;
    with.head = 2 * cycle->list.num_layers * (int64_t)sizeof(double);
    if (cycle->noise) with.head += (int64_t)sizeof(clean_log_fit);
    *bytes = with.head + with.share * (8 * cycle->list.num_layers + 8);
    with.in_shared = *bytes <= shared_bytes();
    if (!with.in_shared) *bytes = with.head;
    return with;
}

} // namespace

tess_status cuda_cycle_run(const cuda_cycle *cycle, cuda_cycle_end *end)
{
    tess_status status = TESS_OK;
    int threads = 0;
    int64_t blocks = 0, bytes = 0, messages = 0;
    void *message = NULL, *end_there = NULL;
    launch with = {};
    *end = cuda_cycle_end{0, 0, -1, true};
    if (cycle->list.count == 0) return TESS_OK;
    if (cycle->list.num_layers > CUDA_MOST_LAYERS)
        TESS_FAIL(TESS_ERR_INTERNAL, "%d images are cleaned together on a device",
                  cycle->list.num_layers);
    with = launch_of(cycle, &threads, &blocks, &bytes);
    messages = 2 * blocks * with.words * (int64_t)sizeof(word);
    TESS_TRY(tess_device_alloc(messages, "messages of blocks", &message));
    TESS_TRY(tess_device_zero(message, messages));
    TESS_TRY(tess_device_alloc((int64_t)sizeof *end, "end of a loop", &end_there));
    with.message = (word *)message;
    with.end = (cuda_cycle_end *)end_there;
    /* always the same, because lanes that launch side by side share what is set */
    TESS_CUDA(cudaFuncSetAttribute(function_of(cycle),
                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   (int)shared_bytes()));
    TESS_CUDA(
        tess_launch_together(function_of(cycle), blocks, threads, bytes, *cycle, with));
    TESS_TRY(tess_device_download(end, end_there, (int64_t)sizeof *end));
cleanup:
    tess_device_free(message);
    tess_device_free(end_there);
    return status;
}
