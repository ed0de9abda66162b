/** @file exchange_parcels.h  (private to app/imager/engine/exchange/)
 *  The state of an exchange and of its rounds, in which runs are packed as parcels into
 *  messages, and messages are unpacked into rows.
 */
#ifndef TESS_EXCHANGE_PARCELS_H
#define TESS_EXCHANGE_PARCELS_H

#include "exchange.h"
#include "tess_samples.h"

/* Neighbouring samples of a row that go to one rank; they are a row of their own there.
 */
typedef struct parcel {
    int64_t first; /* the first sample in the set */
    int32_t row, chan, count,
        rank; /* chan: channel of the first sample, in the channel table */
    int32_t num_pieces;
} parcel;

/* A run, or a part of one. The pieces for a rank make up its parcels, one after
 * another. */
typedef struct piece {
    int64_t brick;
    int32_t count, rank;
} piece;

/* The part of a round that is for one rank. */
typedef struct round_count {
    int64_t parcels, pieces, samples;
} round_count;

/* What one round has moved, for the way back and for the order of runs. */
typedef struct round_log {
    int64_t first_parcel,
        num_parcels; /* the round's parcels in exchange->sent, by rank */
    round_count *received,
        *place; /* [P] what came from each rank, and where it begins here */
} round_log;

/* A round on its way. */
typedef struct round_flight {
    tess_flight *flight;
    char *send, *own_send; /* messages, by rank. own_send: memory for them that is not
                              in the window */
    int64_t *bytes; /* [3][P] bytes sent to each rank, bytes received from it, and where
                       these begin */
    int64_t log; /* number in exchange->rounds; -1: nothing is taken from this round */
    bool active;
} round_flight;

/* While this rank packs round k, round k - 1 has been announced and the messages of
 * round k - 2 are in flight. Round k - 2 is unpacked when all ranks have packed round k
 * - 1. So no rank waits for another that is one round behind. */
enum { ROUNDS_FLYING = 3 };

/* Rounds are packed into the parts of a window in turn. Round k may take the part of
 * round k - 5: all ranks have started round k - 2, and before that they have unpacked
 * round k - 5. */
enum { WINDOW_PARTS = 5 };

/* A thread's part of a round. */
typedef struct round_share {
    tess_run *run; /* [longest row] */
    int64_t capacity_run;
    parcel *parcel;
    int64_t num_parcels, capacity_parcels;
    piece *piece;
    int64_t num_pieces, capacity_pieces;
    int64_t *split; /* [num_split] samples of split bricks in this share; later those in
                       the shares before it */
    int64_t *last;  /* [P] the last parcel for a rank, or -1 */
    round_count *count; /* [P] what is for each rank in this share; later what is in the
                           shares before it */
    tess_status status;
} round_share;

struct tess_exchange {
    tess_comm *comm;
    const tess_grid_plan *plan;
    const tess_partition *partition;
    bool with_data;
    int threads;
    int64_t round_bytes;
    int64_t window_from; /* a window is used if this number of bytes or more is sent */
    tess_window *window; /* window of this rank, or NULL */
    round_flight flying[ROUNDS_FLYING]; /* round k is flying[k % ROUNDS_FLYING] */
    int64_t num_started; /* rounds that have been started since the exchange was made */
    tess_samples samples; /* samples that were received */
    tess_brick_list bricks;
    int64_t *split_offset; /* [num_split] samples of split bricks that have been sent so
                              far */
    int64_t num_split;
    round_share *share; /* [threads] */
    parcel *sent;       /* prediction: all parcels, in order of round and rank */
    int64_t num_sent, capacity_sent;
    round_log *rounds;
    int64_t num_rounds, capacity_rounds;
    bool sorted; /* what was received has been sorted to bricks */
};

/* The round that was started `rounds` rounds ago. */
static inline round_flight *exchange_round_before(tess_exchange *exchange,
                                                  int64_t rounds)
{
    const int64_t number = exchange->num_started + ROUNDS_FLYING - rounds;
    return &exchange->flying[number % ROUNDS_FLYING];
}

/* The rows of one round, which threads share. */
typedef struct round_rows {
    const tess_samples *samples;
    int64_t first, end;
    bool skip_ignored;
    tess_exchange_filter *filter;
    const void *context;
} round_rows;

/** Make room for `more` to be received. The memory is touched only as rows arrive.
 * TESS_ERR_ALLOC. Local. */
tess_status exchange_reserve(tess_exchange *exchange, const round_count *more);

/** Begin the log of another round, of which nothing has arrived yet. TESS_ERR_ALLOC.
 * Local. */
tess_status exchange_log_round(tess_exchange *exchange);

/** Bytes of a message for a row of `count` samples that is cut into few parcels. Local.
 */
int64_t exchange_row_bytes(const tess_exchange *exchange, int64_t count);

/** Pack the rows of a round as parcels: own ones go to their place here, others into
 * messages. Threads take equal parts of the rows, and their parcels follow one another
 * in that order. TESS_ERR_ALLOC. Local. */
tess_status exchange_pack(tess_exchange *exchange, const round_rows *rows,
                          round_flight *round);

/** Unpack a message into rows and runs. TESS_ERR_ALLOC. Local. */
tess_status exchange_unpack(tess_exchange *exchange, const char *message, int source,
                            round_count *received);

#endif
