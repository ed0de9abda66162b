/** @file tess_trace.h
 *  Records what each thread of a rank did at which time, as spans with a name, for
 *  --trace. Several threads may record at the same time. A NULL trace records nothing.
 */
#ifndef TESS_TRACE_H
#define TESS_TRACE_H

#include <stdint.h>

#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Lanes of a rank. Gridding thread k has lane TESS_LANE_GRID + k. */
enum { TESS_LANE_STAGES, TESS_LANE_READER, TESS_LANE_GRID };

enum { TESS_SPAN_NAME = 16 };

typedef struct tess_span {
    double begin, end; /**< [s], of tess_time_now() */
    int64_t lane;
    char name[TESS_SPAN_NAME]; /**< a longer name is cut off */
} tess_span;

typedef struct tess_trace tess_trace;

/** Create an empty trace. TESS_ERR_ALLOC. Local. */
tess_status tess_trace_create(tess_trace **trace);
void tess_trace_destroy(tess_trace *trace); /**< NULL is fine */

/** Record a span. If memory is short the span is counted as lost. Local. */
void tess_trace_add(tess_trace *trace, int64_t lane, const char *name, double begin,
                    double end);

/** The spans that have been recorded, borrowed until the next tess_trace_add. `lost` is
 * the number of spans that are missing. Local. */
void tess_trace_spans(const tess_trace *trace, const tess_span **spans, int64_t *count,
                      int64_t *lost);

#ifdef __cplusplus
}
#endif
#endif
