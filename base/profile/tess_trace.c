/* Records what each thread of a rank did when, for --trace. */
#include "tess_trace.h"

#include <pthread.h>
#include <stdio.h>

#include "tess_mem.h"

struct tess_trace {
    pthread_mutex_t lock;
    tess_span *span;
    int64_t count, capacity, lost;
};

tess_status tess_trace_create(tess_trace **trace_out)
{
    tess_status status = TESS_OK;
    tess_trace *trace = tess_alloc_zero(1, sizeof *trace);
    if (!trace) TESS_FAIL(TESS_ERR_ALLOC, "trace");
    if (pthread_mutex_init(&trace->lock, NULL) != 0) {
        tess_free(trace);
        TESS_FAIL(TESS_ERR_RESOURCE, "trace: no lock");
    }
    *trace_out = trace;
cleanup:
    return status;
}

void tess_trace_destroy(tess_trace *trace)
{
    if (!trace) return;
    pthread_mutex_destroy(&trace->lock);
    tess_free(trace->span);
    tess_free(trace);
}

void tess_trace_add(tess_trace *trace, int64_t lane, const char *name, double begin,
                    double end)
{
    if (!trace) return;
    tess_span span = {.begin = begin, .end = end, .lane = lane};
    snprintf(span.name, sizeof span.name, "%s", name);
    pthread_mutex_lock(&trace->lock);
    if (tess_grow((void **)&trace->span, &trace->capacity, trace->count + 1,
                  sizeof span))
        ++trace->lost;
    else
        trace->span[trace->count++] = span;
    pthread_mutex_unlock(&trace->lock);
}

void tess_trace_spans(const tess_trace *trace, const tess_span **spans, int64_t *count,
                      int64_t *lost)
{
    *spans = trace->span;
    *count = trace->count;
    *lost = trace->lost;
}
