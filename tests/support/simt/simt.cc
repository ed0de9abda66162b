/* Blocks of threads on the CPU: see cuda_runtime.h. */
#include <ucontext.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cuda_runtime.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#else
static void __sanitizer_start_switch_fiber(void **, const void *, size_t)
{
}
static void __sanitizer_finish_switch_fiber(void *, const void **, size_t *)
{
}
#endif

simt_index threadIdx, blockIdx, blockDim, gridDim;

namespace
{

enum {
    STACK_BYTES = 128 << 10,
    WARP = 32,
    MOST_BYTES = 16,
    MOST_THREADS = 1024,
    SLOTS = 8
};

enum state { RUNS, AT_BLOCK, AT_WARP, ENDED };

struct thread {
    ucontext_t context;
    void *stack, *fake_stack;
    state is;
    unsigned mask, partners;           /* lanes asked for, and those that came */
    unsigned char offered[MOST_BYTES]; /* before they have all come, … */
    int slot;                          /* … and afterwards, where */
    unsigned char value[SLOTS][MOST_BYTES];
};

struct {
    thread all[MOST_THREADS];
    int count, current;
    unsigned exchanges;
    const std::function<void()> *body;
    ucontext_t scheduler;
    void *fake_stack;
    const void *scheduler_stack;
    size_t scheduler_stack_bytes;
    std::vector<unsigned char> shared;
} block;

void give_way(state is)
{
    thread *me = &block.all[block.current];
    me->is = is;
    __sanitizer_start_switch_fiber(is == ENDED ? nullptr : &me->fake_stack,
                                   block.scheduler_stack, block.scheduler_stack_bytes);
    swapcontext(&me->context, &block.scheduler);
    __sanitizer_finish_switch_fiber(me->fake_stack, &block.scheduler_stack,
                                    &block.scheduler_stack_bytes);
}

void begin(void)
{
    __sanitizer_finish_switch_fiber(nullptr, &block.scheduler_stack,
                                    &block.scheduler_stack_bytes);
    (*block.body)();
    give_way(ENDED);
}

void resume(int t)
{
    thread *other = &block.all[t];
    block.current = t;
    threadIdx.x = (unsigned)t;
    __sanitizer_start_switch_fiber(&block.fake_stack, other->stack, STACK_BYTES);
    swapcontext(&block.scheduler, &other->context);
    __sanitizer_finish_switch_fiber(block.fake_stack, nullptr, nullptr);
}

/* Have all those come that t exchanges values with? Lanes that have ended need not. */
bool warp_is_complete(int t, unsigned *partners)
{
    const int first = t / WARP * WARP;
    *partners = 0;
    for (int lane = 0; lane < WARP && first + lane < block.count; ++lane) {
        const thread *other = &block.all[first + lane];
        if ((block.all[t].mask >> lane & 1) && other->is != ENDED &&
            (other->is != AT_WARP || other->mask != block.all[t].mask))
            return false;
        if ((block.all[t].mask >> lane & 1) && other->is == AT_WARP)
            *partners |= 1u << lane;
    }
    return true;
}

/* Let those go on whose partners have all come; how many can. */
int release(void)
{
    bool all_at_block = true, go[MOST_THREADS];
    int ready = 0;
    ++block.exchanges;
    for (int t = 0; t < block.count; ++t) {
        const state is = block.all[t].is;
        all_at_block = all_at_block && (is == AT_BLOCK || is == ENDED);
        go[t] = is == AT_WARP && warp_is_complete(t, &block.all[t].partners);
    }
    for (int t = 0; t < block.count; ++t) {
        if (go[t]) {
            block.all[t].slot = (int)(block.exchanges % SLOTS);
            memcpy(block.all[t].value[block.all[t].slot], block.all[t].offered,
                   MOST_BYTES);
        }
        if (go[t] || (all_at_block && block.all[t].is == AT_BLOCK))
            block.all[t].is = RUNS;
        ready += block.all[t].is == RUNS;
    }
    return ready;
}

void prepare(thread *one)
{
    if (!one->stack) one->stack = malloc(STACK_BYTES);
    getcontext(&one->context);
    one->context.uc_stack.ss_sp = one->stack;
    one->context.uc_stack.ss_size = STACK_BYTES;
    one->context.uc_link = nullptr;
    one->is = RUNS;
    makecontext(&one->context, begin, 0);
}

void run_block(void)
{
    for (int t = 0; t < block.count; ++t)
        prepare(&block.all[t]);
    for (int pass = 0;; ++pass) {
        int left = 0;
        for (int k = 0; k < block.count; ++k) {
            const int t = pass % 2 == 0 ? k : block.count - 1 - k;
            if (block.all[t].is == RUNS) resume(t);
        }
        for (int t = 0; t < block.count; ++t)
            left += block.all[t].is != ENDED;
        if (left == 0) return;
        if (release() == 0) {
            fprintf(stderr, "simt: %d threads wait for ever\n", left);
            abort();
        }
    }
}

} // namespace

void simt_launch(int64_t blocks, int threads, int64_t shared_bytes,
                 const std::function<void()> &body)
{
    if (threads > MOST_THREADS || blocks < 1) abort();
    block.count = threads;
    block.body = &body;
    gridDim = {(unsigned)blocks, 1, 1};
    blockDim = {(unsigned)threads, 1, 1};
    threadIdx = {0, 0, 0};
    for (int64_t b = 0; b < blocks; ++b) {
        blockIdx = {(unsigned)b, 0, 0};
        /* new memory each time: nothing is handed on, and its end is watched */
        std::vector<unsigned char>((size_t)shared_bytes, 0xff).swap(block.shared);
        run_block();
    }
    std::vector<unsigned char>().swap(block.shared);
}

void *gcf_shared(void)
{
    return block.shared.data();
}

void __syncthreads(void)
{
    give_way(AT_BLOCK);
}

int simt_lane(void)
{
    return block.current % WARP;
}

bool simt_there(int lane)
{
    return block.all[block.current].partners >> lane & 1;
}

void simt_exchange(unsigned mask, const void *value, int bytes)
{
    thread *me = &block.all[block.current];
    memcpy(me->offered, value, (size_t)bytes);
    me->mask = mask;
    give_way(AT_WARP);
}

void simt_value(int lane, void *value, int bytes)
{
    const thread *me = &block.all[block.current];
    const int t = block.current / WARP * WARP + lane;
    if (!simt_there(lane)) memset(value, 0xff, (size_t)bytes); /* anything */
    /* others may be some exchanges ahead, but not SLOTS */
    else
        memcpy(value, block.all[t].value[me->slot], (size_t)bytes);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t)
{
    *event = std::chrono::duration<double>(
                 std::chrono::steady_clock::now().time_since_epoch())
                 .count();
    return cudaSuccess;
}
