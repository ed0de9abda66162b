/** @file exchange_parcels.h  (private to app/exchange*.c)
 *  What an exchange is made of, and its rounds: runs as parcels in messages, and
 *  messages as rows that were received.
 */
#ifndef TESS_EXCHANGE_PARCELS_H
#define TESS_EXCHANGE_PARCELS_H

#include "exchange.h"

/* A run, or a part of one, and where it goes. */
typedef struct parcel {
    int64_t run, first, count; /* samples [first, first + count) of the set */
    int32_t chan_offset;
    int rank;
} parcel;

/* What one round moved, for the way back. */
typedef struct round_log {
    int64_t first_parcel, num_parcels; /* in exchange->sent, by rank */
    int64_t *received, *place;         /* [P] samples, and where they begin */
} round_log;

/* A round on its way. */
typedef struct round_flight {
    bool active;
    tess_flight *flight;
    char *send;     /* messages, by rank */
    int64_t *bytes; /* [3][P]: sent, received, where each rank's begin */
    int64_t log;    /* number of the round */
} round_flight;

/* A thread's part of a round. */
typedef struct round_share {
    parcel *parcel;
    int64_t count, capacity;
    int64_t *split;        /* [num_split] samples of split bricks; then: before these */
    int64_t *num, *values; /* [P] parcels and samples for a rank; then: before these */
    tess_status status;
} round_share;

struct tess_exchange {
    tess_comm *comm;
    const tess_grid_plan *plan;
    const tess_partition *partition;
    bool with_data;
    int threads;
    int64_t round_bytes;
    round_flight flying;  /* the round that has not been unpacked */
    tess_samples samples; /* received */
    tess_brick_list bricks;
    int64_t *split_offset; /* [num_split] samples of split bricks sent so far */
    int64_t num_split;
    round_share *share; /* [threads] */
    parcel *sent;       /* prediction: all parcels, in order of round and rank */
    int64_t num_sent, capacity_sent;
    round_log *rounds;
    int64_t num_rounds, capacity_rounds;
};

/* Runs of one round: what threads look through. */
typedef struct round_runs {
    const tess_samples *samples;
    const tess_run *run;
    int64_t first, end;
    tess_exchange_filter *filter;
    const void *context;
} round_runs;

/** Make room to receive; memory is touched only as rows arrive. Local. */
tess_status exchange_reserve(tess_exchange *exchange, int64_t num_rows,
                             int64_t num_vis);

/** Bytes of a parcel of so many samples on its way. */
int64_t exchange_parcel_bytes(const tess_exchange *exchange, int64_t count);

/** Runs of a round as parcels: own ones to where they are wanted, others into messages.
 *  Threads take equal parts, one after another in all that is made of them. Local. */
tess_status exchange_pack(tess_exchange *exchange, const round_runs *runs,
                          round_flight *round);

/** A message becomes rows. Local. */
tess_status exchange_unpack(tess_exchange *exchange, const char *message, int source);

#endif
