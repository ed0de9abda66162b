/* Writes what an exchange has received to a checkpoint, and restores it from there. */
#include "exchange_parcels.h"
#include "tess_moved.h"

/* The order of samples that have been sorted does not depend on rounds. */
static int64_t rounds_that_count(const tess_exchange *exchange)
{
    return exchange->sorted ? 0 : exchange->num_rounds;
}

int64_t tess_exchange_bytes(const tess_exchange *exchange)
{
    tess_samples_part parts[TESS_SAMPLES_PARTS];
    int64_t bytes = exchange->bricks.num_runs * (int64_t)sizeof *exchange->bricks.run +
                    rounds_that_count(exchange) * tess_comm_size(exchange->comm) * 2 *
                        (int64_t)sizeof(round_count);
    tess_samples_list(&exchange->samples, parts);
    for (int k = 0; k < TESS_SAMPLES_PARTS; ++k)
        bytes += parts[k].bytes;
    return bytes;
}

static tess_status move_samples(tess_samples *samples, tess_mover *mover)
{
    tess_status status = TESS_OK;
    tess_samples_part parts[TESS_SAMPLES_PARTS];
    tess_samples_list(samples, parts);
    for (int k = 0; k < TESS_SAMPLES_PARTS; ++k)
        TESS_TRY(tess_move(mover, parts[k].data, parts[k].bytes));
cleanup:
    return status;
}

/* Checks that what a round brought from one rank lies within all that was received, and
 * adds it to `sum`. */
static bool log_is_sound(const round_count *received, const round_count *place,
                         const round_count *all, round_count *sum)
{
    if (received->parcels < 0 || received->pieces < 0 || place->parcels < 0 ||
        place->pieces < 0 || received->parcels > all->parcels - place->parcels ||
        received->pieces > all->pieces - place->pieces)
        return false;
    sum->parcels += received->parcels;
    sum->pieces += received->pieces;
    return sum->parcels <= all->parcels && sum->pieces <= all->pieces;
}

/* Checks that the rounds, if there are any, have brought all samples. */
static bool rounds_are_sound(const tess_exchange *exchange)
{
    const round_count all = {exchange->samples.num_rows, exchange->bricks.num_runs, 0};
    const int size = tess_comm_size(exchange->comm);
    round_count sum = {0, 0, 0};
    if (exchange->num_rounds == 0) return true;
    for (int64_t k = 0; k < exchange->num_rounds; ++k)
        for (int r = 0; r < size; ++r)
            if (!log_is_sound(&exchange->rounds[k].received[r],
                              &exchange->rounds[k].place[r], &all, &sum))
                return false;
    return size == 1 || (sum.parcels == all.parcels && sum.pieces == all.pieces);
}

/* Checks that an exchange can have what was read from a file. */
static tess_status check_moved(const tess_exchange *exchange, int64_t num_chan)
{
    tess_status status = TESS_OK;
    const tess_brick_list *bricks = &exchange->bricks;
    bool sound = tess_samples_are_sound(&exchange->samples, num_chan) &&
                 rounds_are_sound(exchange);
    for (int64_t k = 0; k < exchange->num_split; ++k)
        sound = sound && exchange->split_offset[k] >= 0 &&
                exchange->split_offset[k] < INT64_MAX / 4;
    for (int64_t k = 0; k < bricks->num_runs; ++k)
        sound = sound && bricks->run[k].source >= 0 &&
                bricks->run[k].source < tess_comm_size(exchange->comm);
    if (!sound || !tess_runs_are_sound(exchange->plan, &exchange->samples, bricks->run,
                                       bricks->num_runs))
        TESS_FAIL(TESS_ERR_INPUT, "checkpoint: samples that no run receives");
cleanup:
    return status;
}

/* Whether arrays may be allocated for these numbers. */
static bool counts_are_sound(const round_count *count, const round_count *room)
{
    static const int64_t most = INT64_C(1) << 40;
    return count->parcels >= 0 && count->pieces >= 0 && count->samples >= 0 &&
           count->parcels <= room->parcels && count->pieces <= room->pieces &&
           count->samples <= room->samples && room->parcels <= most &&
           room->pieces <= most && room->samples <= most;
}

static tess_status move_rounds(tess_exchange *exchange, int64_t count,
                               tess_mover *mover)
{
    tess_status status = TESS_OK;
    const int64_t size = tess_comm_size(exchange->comm);
    for (int64_t k = 0; k < count; ++k) {
        if (mover->reads) TESS_TRY(exchange_log_round(exchange));
        TESS_TRY(tess_move(mover, exchange->rounds[k].received,
                           2 * size * (int64_t)sizeof(round_count)));
    }
cleanup:
    return status;
}

tess_status tess_exchange_move(tess_exchange *exchange, int64_t num_chan,
                               tess_mover *mover)
{
    tess_status status = TESS_OK;
    tess_samples *samples = &exchange->samples;
    tess_brick_list *bricks = &exchange->bricks;
    round_count count = {samples->num_rows, bricks->num_runs, samples->num_vis};
    /* also for samples that are still to come */
    round_count room = {samples->capacity_rows, bricks->capacity_runs,
                        samples->capacity_vis};
    int64_t rounds = rounds_that_count(exchange);
    TESS_TRY(tess_move(mover, &count, sizeof count));
    TESS_TRY(tess_move(mover, &room, sizeof room));
    TESS_TRY(tess_move(mover, &rounds, sizeof rounds));
    if (mover->reads) {
        if (!counts_are_sound(&count, &room))
            TESS_FAIL(TESS_ERR_INPUT, "checkpoint: numbers of samples");
        tess_exchange_reset(exchange);
        TESS_TRY(exchange_reserve(exchange, &room));
        samples->num_rows = count.parcels;
        samples->num_vis = count.samples;
        bricks->num_runs = count.pieces;
    }
    TESS_TRY(move_samples(samples, mover));
    TESS_TRY(
        tess_move(mover, bricks->run, count.pieces * (int64_t)sizeof *bricks->run));
    TESS_TRY(tess_move(mover, exchange->split_offset,
                       exchange->num_split * (int64_t)sizeof *exchange->split_offset));
    TESS_TRY(move_rounds(exchange, rounds, mover));
    if (mover->reads) TESS_TRY(check_moved(exchange, num_chan));
cleanup:
    return status;
}
