/* Blocks of threads on the CPU: see cuda_runtime.h. */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
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

/* A thread's place to go on from: what a call must preserve, and the stack. glibc's
 * swapcontext also asks the kernel for the signal mask, which takes most of the time.
 */
#if defined(__x86_64__)
typedef void *simt_context;

extern "C" void simt_switch(simt_context *from, simt_context to);
asm(".text\n"
    "simt_switch:\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n");

static void simt_begin(simt_context *at, void *stack, size_t bytes,
                       void (*function)(void))
{
    void **top = (void **)((uintptr_t)((char *)stack + bytes) & ~(uintptr_t)15);
    *--top = nullptr; /* where it would return to; it never does */
    *--top = (void *)function;
    for (int k = 0; k < 6; ++k)
        *--top = nullptr;
    *at = top;
}
#else
#include <ucontext.h>

typedef ucontext_t simt_context;

static void simt_switch(simt_context *from, const simt_context &to)
{
    swapcontext(from, &to);
}

static void simt_begin(simt_context *at, void *stack, size_t bytes,
                       void (*function)(void))
{
    getcontext(at);
    at->uc_stack.ss_sp = stack;
    at->uc_stack.ss_size = bytes;
    at->uc_link = nullptr;
    makecontext(at, function, 0);
}
#endif

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
    simt_context context;
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
    simt_context scheduler;
    void *fake_stack;
    const void *scheduler_stack;
    size_t scheduler_stack_bytes;
    std::vector<unsigned char> shared;
} block; /* of the launch that has `one_launch` */

std::mutex one_launch; /* lanes launch side by side */

void give_way(state is)
{
    thread *me = &block.all[block.current];
    me->is = is;
    __sanitizer_start_switch_fiber(is == ENDED ? nullptr : &me->fake_stack,
                                   block.scheduler_stack, block.scheduler_stack_bytes);
    simt_switch(&me->context, block.scheduler);
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
    simt_switch(&block.scheduler, other->context);
    __sanitizer_finish_switch_fiber(block.fake_stack, nullptr, nullptr);
}

/* The waiting lanes of a warp of which all partners wait, too. Lanes that have ended do
 * not count. */
unsigned complete_lanes(int first)
{
    unsigned waiting = 0, ended = 0, complete = 0;
    for (int lane = 0; lane < WARP; ++lane) {
        const state is =
            first + lane < block.count ? block.all[first + lane].is : ENDED;
        waiting |= (unsigned)(is == AT_WARP) << lane;
        ended |= (unsigned)(is == ENDED) << lane;
    }
    for (int lane = 0; lane < WARP; ++lane) {
        if (!(waiting >> lane & 1)) continue;
        thread *one = &block.all[first + lane];
        bool all = (one->mask & ~waiting & ~ended) == 0;
        for (int k = 0; k < WARP && all; ++k)
            if (one->mask & waiting & 1u << k)
                all = block.all[first + k].mask == one->mask;
        if (!all) continue;
        /* its partners' masks are the same: so is what is found for them */
        for (int k = 0; k < WARP; ++k)
            if (one->mask & waiting & 1u << k)
                block.all[first + k].partners = one->mask & waiting;
        complete |= one->mask & waiting;
        waiting &= ~one->mask;
    }
    return complete;
}

/* Let those go on whose partners have all come; how many can. */
int release(void)
{
    bool all_at_block = true, go[MOST_THREADS];
    int ready = 0;
    ++block.exchanges;
    for (int first = 0; first < block.count; first += WARP) {
        const unsigned complete = complete_lanes(first);
        for (int t = first; t < first + WARP && t < block.count; ++t) {
            const state is = block.all[t].is;
            all_at_block = all_at_block && (is == AT_BLOCK || is == ENDED);
            go[t] = complete >> (t - first) & 1;
        }
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
    one->is = RUNS;
    simt_begin(&one->context, one->stack, STACK_BYTES, begin);
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
    const std::lock_guard<std::mutex> lock(one_launch);
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

void *tess_shared(void)
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
