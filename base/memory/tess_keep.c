/* Keeps the memory of large arrays: a list of ranges of addresses, each of which
 * belongs to an array or is idle. */
#define _GNU_SOURCE
#include "tess_keep.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tess_mem.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { KEEPS = false };
#else
enum { KEEPS = true };
#endif

/* Arrays lie in huge pages, because columns of a plane step from page to page. */
enum { HUGE_PAGE = 2 << 20 };

/* Default limits of idle memory. */
enum { SHARE_OF_NODE = 8 };
static const int64_t MOST_IDLE = (int64_t)4 << 30;

typedef struct range {
    char *begin;
    size_t bytes; /* a multiple of a huge page */
    bool idle;
} range;

static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    range *range; /* [count], in order of addresses */
    size_t count, capacity;
    size_t used, idle; /* bytes of all arrays, and of all idle ranges */
    size_t most;       /* the most bytes of arrays so far */
    size_t limit_idle, limit_all;
} keep = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t default_idle(void)
{
    const int64_t share = tess_mem_node_limit_bytes() / SHARE_OF_NODE;
    return (size_t)(share < MOST_IDLE ? share : MOST_IDLE);
}

static void lock(void)
{
    pthread_mutex_lock(&keep.lock);
}

static void unlock(void)
{
    pthread_mutex_unlock(&keep.lock);
}

/* A child of fork() has one thread, which must not find the list half changed, or
 * locked by a thread that it does not have. */
static void set_up(void)
{
    keep.limit_idle = default_idle();
    keep.limit_all = SIZE_MAX;
    pthread_atfork(lock, unlock, unlock);
}

/* ---- the list; all of these are called with the lock held ---- */

/* The first range that begins at `at` or above. */
static size_t find(const char *at)
{
    size_t low = 0, high = keep.count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (keep.range[middle].begin < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Makes room for two more ranges: a new one, and one that is cut off. */
static bool make_room(void)
{
    if (keep.count + 2 <= keep.capacity) return true;
    const size_t capacity = keep.capacity < 64 ? 64 : 2 * keep.capacity;
    range *more = realloc(keep.range, capacity * sizeof *more);
    if (!more) return false;
    keep.range = more;
    keep.capacity = capacity;
    return true;
}

static void insert(size_t k, range what)
{
    memmove(&keep.range[k + 1], &keep.range[k], (keep.count - k) * sizeof what);
    keep.range[k] = what;
    ++keep.count;
}

static void drop(size_t k)
{
    --keep.count;
    memmove(&keep.range[k], &keep.range[k + 1], (keep.count - k) * sizeof *keep.range);
}

/* Joins idle range k with the range that follows, if that is idle and touches it. */
static void join_next(size_t k)
{
    if (k + 1 >= keep.count) return;
    range *here = &keep.range[k];
    const range *next = here + 1;
    if (!here->idle || !next->idle || here->begin + here->bytes != next->begin) return;
    here->bytes += next->bytes;
    drop(k + 1);
}

/* Gives at least `bytes` of idle memory back to the system, if there are so many: the
 * ends of the smallest ranges first, into which the fewest arrays fit. */
static void give_back(size_t bytes)
{
    bytes = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    while (bytes > 0 && keep.idle > 0) {
        size_t k = keep.count;
        for (size_t j = 0; j < keep.count; ++j)
            if (keep.range[j].idle &&
                (k == keep.count || keep.range[j].bytes < keep.range[k].bytes))
                k = j;
        range *from = &keep.range[k];
        const size_t here = smaller(bytes, from->bytes);
        from->bytes -= here;
        munmap(from->begin + from->bytes, here);
        keep.idle -= here;
        bytes -= here;
        if (from->bytes == 0) drop(k);
    }
}

/* Gives back what is above the limits, if `more` bytes of arrays are to be new. */
static void respect_limits(size_t more)
{
    const size_t used = keep.used + more;
    const size_t all = smaller(used > keep.most ? used : keep.most, keep.limit_all);
    const size_t room = all > used ? all - used : 0;
    const size_t allowed = smaller(room, keep.limit_idle);
    if (keep.idle > allowed) give_back(keep.idle - allowed);
}

/* The smallest idle range that has room for an array; keep.count if there is none. */
static size_t best_fit(size_t bytes)
{
    size_t best = keep.count;
    for (size_t k = 0; k < keep.count; ++k) {
        const range *here = &keep.range[k];
        if (here->idle && here->bytes >= bytes &&
            (best == keep.count || here->bytes < keep.range[best].bytes))
            best = k;
    }
    return best;
}

/* Takes the begin of an idle range; the rest stays idle. */
static char *take_idle(size_t k, size_t bytes)
{
    const range whole = keep.range[k];
    keep.range[k] = (range){whole.begin, bytes, false};
    if (whole.bytes > bytes)
        insert(k + 1, (range){whole.begin + bytes, whole.bytes - bytes, true});
    keep.idle -= bytes;
    return whole.begin;
}

/* New memory, aligned to huge pages: what lies before and behind them is unmapped. An
 * array of `needed` bytes may fill the last page in part, and that page then stays one
 * of small pages, of which the array touches as many as it needs. */
static char *map(size_t bytes, size_t needed)
{
    const size_t all = bytes + HUGE_PAGE;
    char *from =
        mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (from == MAP_FAILED) return NULL;
    const size_t before = (HUGE_PAGE - (uintptr_t)from % HUGE_PAGE) % HUGE_PAGE;
    if (before > 0) munmap(from, before);
    munmap(from + before + bytes, HUGE_PAGE - before);
    const size_t whole = needed / HUGE_PAGE * HUGE_PAGE;
    madvise(from + before, whole, MADV_HUGEPAGE); /* a hint: may be ignored */
    return from + before;
}

static char *take_new(size_t bytes, size_t needed)
{
    respect_limits(bytes);
    char *begin = map(bytes, needed);
    if (!begin) {
        give_back(keep.idle);
        begin = map(bytes, needed);
    }
    if (begin) insert(find(begin), (range){begin, bytes, false});
    return begin;
}

/* ---- calls ---- */

void *tess_keep_alloc(size_t needed)
{
    char *begin = NULL;
    const size_t bytes = (needed + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    if (!KEEPS) return aligned_alloc(HUGE_PAGE, bytes);
    pthread_once(&keep.once, set_up);
    lock();
    if (make_room()) {
        const size_t fit = best_fit(bytes);
        begin = fit < keep.count ? take_idle(fit, bytes) : take_new(bytes, needed);
    }
    if (begin) keep.used += bytes;
    if (keep.used > keep.most) keep.most = keep.used;
    unlock();
    return begin;
}

bool tess_keep_free(void *pointer)
{
    bool found = false;
    if (!KEEPS || !pointer || (uintptr_t)pointer % HUGE_PAGE != 0) return false;
    lock();
    size_t k = find(pointer);
    if (k < keep.count && keep.range[k].begin == pointer && !keep.range[k].idle) {
        found = true;
        keep.range[k].idle = true;
        keep.used -= keep.range[k].bytes;
        keep.idle += keep.range[k].bytes;
        join_next(k);
        if (k > 0) join_next(k - 1);
        respect_limits(0);
    }
    unlock();
    return found;
}

void tess_keep_limit(int64_t idle, int64_t all)
{
    pthread_once(&keep.once, set_up);
    lock();
    keep.limit_idle = idle < 0 ? default_idle() : (size_t)idle;
    keep.limit_all = all < 0 ? SIZE_MAX : (size_t)all;
    respect_limits(0);
    unlock();
}

int64_t tess_keep_release(void)
{
    lock();
    const size_t bytes = keep.idle;
    give_back(bytes);
    keep.most = keep.used;
    unlock();
    return (int64_t)bytes;
}

int64_t tess_keep_idle_bytes(void)
{
    lock();
    const size_t bytes = keep.idle;
    unlock();
    return (int64_t)bytes;
}
