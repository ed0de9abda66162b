/** @file exchange_parcels.h  (private to app/exchange*.c)
 *  What an exchange is made of, and its rounds: runs as parcels in messages, and
 *  messages as rows that were received.
 */
#ifndef TESS_EXCHANGE_PARCELS_H
#define TESS_EXCHANGE_PARCELS_H

#include "exchange.h"

/* Neighbouring samples of a row that go to one rank: a row of its own there. */
typedef struct parcel {
    int64_t first;                  /* sample of the set */
    int32_t row, chan, count, rank; /* chan: of the first, in the channel table */
    int32_t num_pieces;
} parcel;

/* A run, or a part of one. Those for a rank make up its parcels, one after another. */
typedef struct piece {
    int64_t brick;
    int32_t count, rank;
} piece;

/* What of a round is for one rank. */
typedef struct round_count {
    int64_t parcels, pieces, samples;
} round_count;

/* What one round moved, for the way back and the order of runs. */
typedef struct round_log {
    int64_t first_parcel, num_parcels; /* in exchange->sent, by rank */
    round_count *received, *place;     /* [P], and where they begin here */
} round_log;

/* A round on its way. */
typedef struct round_flight {
    tess_flight *flight;
    char *send, *own_send; /* messages, by rank; own_send: not in the window */
    int64_t *bytes;        /* [3][P]: sent, received, where each rank's begin */
    int64_t log;           /* of exchange->rounds; -1: nothing is taken from it */
    bool active;
} round_flight;

/* While round k is packed, k - 1 is told of and k - 2 has been, and its messages fly:
 * it is unpacked when all have packed k - 1. So nobody waits for a rank that is a round
 * behind. */
enum { ROUNDS_FLYING = 3 };

/* Rounds are packed into the parts of a window in turn: k may take that of k - 5, as
 * all have started k - 2, before which they have unpacked k - 5. */
enum { WINDOW_PARTS = 5 };

/* A thread's part of a round. */
typedef struct round_share {
    tess_run *run; /* [longest row] */
    int64_t capacity_run;
    parcel *parcel;
    int64_t num_parcels, capacity_parcels;
    piece *piece;
    int64_t num_pieces, capacity_pieces;
    int64_t *split;     /* [num_split] samples of split bricks; then: before these */
    int64_t *last;      /* [P] the last parcel for a rank, or -1 */
    round_count *count; /* [P] for a rank; then: before these */
    tess_status status;
} round_share;

struct tess_exchange {
    tess_comm *comm;
    const tess_grid_plan *plan;
    const tess_partition *partition;
    bool with_data;
    int threads;
    int64_t round_bytes;
    int64_t window_from;                /* bytes to send from which there is a window */
    tess_window *window;                /* or NULL */
    round_flight flying[ROUNDS_FLYING]; /* round k is [k % ROUNDS_FLYING] */
    int64_t num_started;                /* rounds, since the exchange was made */
    tess_samples samples;               /* received */
    tess_brick_list bricks;
    int64_t *split_offset; /* [num_split] samples of split bricks sent so far */
    int64_t num_split;
    round_share *share; /* [threads] */
    parcel *sent;       /* prediction: all parcels, in order of round and rank */
    int64_t num_sent, capacity_sent;
    round_log *rounds;
    int64_t num_rounds, capacity_rounds;
    bool sorted; /* what was received, to bricks */
};

/* So many rounds ago. */
static inline round_flight *exchange_round_before(tess_exchange *exchange,
                                                  int64_t rounds)
{
    const int64_t number = exchange->num_started + ROUNDS_FLYING - rounds;
    return &exchange->flying[number % ROUNDS_FLYING];
}

/* Rows of one round: what threads look through. */
typedef struct round_rows {
    const tess_samples *samples;
    int64_t first, end;
    bool skip_ignored;
    tess_exchange_filter *filter;
    const void *context;
} round_rows;

/** Make room to receive so much more; memory is touched only as rows arrive. Local. */
tess_status exchange_reserve(tess_exchange *exchange, const round_count *more);

/** Another round that nothing has come in yet. Local. */
tess_status exchange_log_round(tess_exchange *exchange);

/** Bytes of a row of so many samples on its way, cut into few parcels. */
int64_t exchange_row_bytes(const tess_exchange *exchange, int64_t count);

/** Rows of a round as parcels: own ones to where they are wanted, others into messages.
 *  Threads take equal parts, one after another in all that is made of them. Local. */
tess_status exchange_pack(tess_exchange *exchange, const round_rows *rows,
                          round_flight *round);

/** What a message brings becomes rows and runs. Local. */
tess_status exchange_unpack(tess_exchange *exchange, const char *message, int source,
                            round_count *received);

#endif
