/* The communicator: what test_core_ranks.c leaves out. Broadcasts, minima and maxima,
 * gathering of uneven and of no bytes, parts of communicators, accounts, and a rank
 * that runs out of memory in the middle of a collective. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rank_tests.h"
#include "tess_comm.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_outbox.h"
#include "tess_profile.h"

enum { MOST_RANKS = 16 };

static tess_comm *world;
static int rank, size;

static void test_bcast(void **state)
{
    for (int root = 0; root < size; ++root) {
        char text[64];
        snprintf(text, sizeof text, "rank %d", rank);
        assert_int_equal(tess_comm_bcast(world, text, sizeof text, root), TESS_OK);
        char expected[64];
        snprintf(expected, sizeof expected, "rank %d", root);
        assert_string_equal(text, expected);
        assert_int_equal(tess_comm_bcast(world, NULL, 0, root), TESS_OK);
    }
}

static void test_allreduce(void **state)
{
    double real[3] = {rank, -rank, 0.5};
    int64_t whole[2] = {rank - 100, (INT64_C(1) << 60) - rank};
    assert_int_equal(tess_comm_allreduce_f64(world, real, 3, TESS_MIN), TESS_OK);
    assert_true(real[0] == 0 && real[1] == 1 - size && real[2] == 0.5);
    real[0] = rank;
    assert_int_equal(tess_comm_allreduce_f64(world, real, 1, TESS_SUM), TESS_OK);
    assert_true(real[0] == size * (size - 1) / 2);
    assert_int_equal(tess_comm_allreduce_i64(world, whole, 2, TESS_MAX), TESS_OK);
    assert_int_equal(whole[0], size - 101);
    assert_true(whole[1] == INT64_C(1) << 60); /* exactly: no doubles on the way */
    assert_int_equal(tess_comm_allreduce_f64(world, NULL, 0, TESS_SUM), TESS_OK);
    assert_int_equal(tess_comm_allreduce_i64(world, NULL, 0, TESS_MIN), TESS_OK);
}

static void test_exscan(void **state)
{
    int64_t values[3] = {1, rank, 10 * rank};
    assert_int_equal(tess_comm_exscan_i64(world, values, 3), TESS_OK);
    assert_int_equal(values[0], rank);
    assert_int_equal(values[1], rank * (rank - 1) / 2);
    assert_int_equal(values[2], 5 * rank * (rank - 1));
}

static void test_allgather(void **state)
{
    int32_t own[2] = {rank, rank * rank}, all[2 * MOST_RANKS];
    assert_int_equal(tess_comm_allgather(world, own, sizeof own, all), TESS_OK);
    for (int k = 0; k < size; ++k) {
        assert_int_equal(all[2 * k], k);
        assert_int_equal(all[2 * k + 1], k * k);
    }
}

/* Rank k sends 3k bytes; then only one rank sends any; then none does. */
static void test_gatherv(void **state)
{
    const int root = size - 1;
    for (int mode = 0; mode < 3; ++mode) {
        char own[3 * MOST_RANKS];
        int64_t counts[MOST_RANKS] = {0};
        void *all = own; /* must be set to NULL elsewhere */
        memset(own, 'a' + rank, sizeof own);
        const int64_t bytes = mode == 0 ? 3 * rank : mode == 1 && rank == 0 ? 5 : 0;
        assert_int_equal(tess_comm_gatherv(world, own, bytes, root, &all, counts),
                         TESS_OK);
        if (rank != root) {
            assert_null(all);
            continue;
        }
        const char *at = all;
        for (int k = 0; k < size; ++k) {
            assert_int_equal(counts[k], mode == 0             ? 3 * k
                                        : mode == 1 && k == 0 ? 5
                                                              : 0);
            for (int64_t b = 0; b < counts[k]; ++b)
                assert_int_equal(*at++, 'a' + k);
        }
        tess_free(all);
    }
}

static void test_nobody_sends(void **state)
{
    int64_t send[MOST_RANKS] = {0}, recv[MOST_RANKS];
    void *received = NULL;
    memset(recv, 1, sizeof recv);
    assert_int_equal(tess_comm_alltoallv(world, NULL, send, &received, recv), TESS_OK);
    assert_non_null(received);
    for (int k = 0; k < size; ++k)
        assert_int_equal(recv[k], 0);
    tess_free(received);
    received = NULL;
    assert_int_equal(tess_comm_allgatherv(world, NULL, 0, &received, recv), TESS_OK);
    for (int k = 0; k < size; ++k)
        assert_int_equal(recv[k], 0);
    tess_free(received);
}

/* Two exchanges at a time, from parts of a buffer that are not side by side; the second
 * is dropped. */
static void test_two_flights(void **state)
{
    enum { BYTES = 1 << 20, GAP = 64 };
    tess_flight *flight[2] = {NULL, NULL};
    int64_t at[MOST_RANKS], send[MOST_RANKS], recv[2][MOST_RANKS];
    void *received = NULL;
    char *data = tess_alloc((int64_t)(BYTES + GAP) * size, 1);
    assert_non_null(data);
    memset(data, 99, (size_t)(BYTES + GAP) * (size_t)size);
    for (int k = 0; k < size; ++k) {
        at[k] = (int64_t)(size - 1 - k) * (BYTES + GAP);
        send[k] = BYTES - rank;
        memset(data + at[k], 10 * rank + k, (size_t)send[k]);
    }
    for (int f = 0; f < 2; ++f) {
        assert_int_equal(tess_flight_create(world, &flight[f]), TESS_OK);
        assert_int_equal(tess_flight_finish(flight[f], NULL), TESS_OK);
        assert_int_equal(
            tess_flight_start(flight[f], TESS_OK, NULL, data, at, send, recv[f]),
            TESS_OK);
    }
    tess_flight_progress(flight[0]);
    tess_flight_progress(NULL);
    assert_int_equal(tess_flight_settle(flight[0]), TESS_OK);
    tess_flight_progress(flight[0]);
    assert_int_equal(tess_flight_finish(flight[0], &received), TESS_OK);
    assert_int_equal(tess_flight_finish(flight[1], NULL), TESS_OK);
    assert_int_equal(tess_flight_finish(flight[1], NULL), TESS_OK);
    for (int f = 0; f < 2; ++f)
        tess_flight_free(flight[f]);
    tess_flight_free(NULL);
    const char *from = received;
    for (int k = 0; k < size; ++k) {
        assert_int_equal(recv[0][k], BYTES - k);
        for (int64_t b = 0; b < recv[0][k]; ++b)
            if (*from++ != 10 * k + rank) fail();
    }
    tess_free(received);
    tess_free(data);
}

/* What lies in a window arrives like any message, part after part of it, by memory or
 * by messages: TESS_NODE_RANKS makes some ranks others' nodes. What does not is sent.
 */
static void test_window(void **state)
{
    enum { BYTES = 5000, PARTS = 3, ROUNDS = 8 };
    tess_window *window = NULL;
    tess_flight *flight = NULL;
    int64_t at[MOST_RANKS], send[MOST_RANKS], recv[MOST_RANKS];
    void *part[MOST_RANKS];
    char *other = tess_alloc((int64_t)BYTES * size, 1);
    assert_non_null(other);
    assert_int_equal(tess_window_create(world, (int64_t)PARTS * BYTES * size, &window),
                     TESS_OK);
    char *own = tess_window_own(window);
    assert_int_equal(tess_flight_create(world, &flight), TESS_OK);
    for (int round = 0; round < ROUNDS; ++round) {
        const bool inside = (round + rank) % 4 != 3;
        char *data = inside ? own + (int64_t)(round % PARTS) * BYTES * size : other;
        for (int k = 0; k < size; ++k) {
            at[k] = (int64_t)(size - 1 - k) * BYTES;
            send[k] = (round + k) % 3 == 2 ? 0 : BYTES - rank - round;
            memset(data + at[k], 50 * round + 7 * rank + k, (size_t)send[k]);
        }
        assert_int_equal(
            tess_flight_start(flight, TESS_OK, window, data, at, send, recv), TESS_OK);
        assert_int_equal(tess_flight_wait(flight, part), TESS_OK);
        for (int k = 0; k < size; ++k) {
            const char value = (char)(50 * round + 7 * k + rank);
            const char *from = part[k];
            assert_int_equal(recv[k], (round + rank) % 3 == 2 ? 0 : BYTES - k - round);
            for (int64_t b = 0; b < recv[k]; ++b)
                if (from[b] != value) fail();
        }
        assert_int_equal(tess_flight_finish(flight, NULL), TESS_OK);
    }
    tess_flight_free(flight);
    tess_window_free(window);
    tess_window_free(NULL);
    tess_free(other);
}

static char left_byte(int from, int to, int turn)
{
    return (char)(50 * turn + 7 * from + 3 * to);
}

/* What is left arrives, in boxes that grow, shrink and are emptied between. */
static void test_outbox(void **state)
{
    static const int64_t LENGTH[] = {100, 70000, 0, 300, 200000};
    enum { TURNS = sizeof LENGTH / sizeof *LENGTH };
    tess_outbox *box = NULL;
    int64_t send[MOST_RANKS], recv[MOST_RANKS];
    void *part[MOST_RANKS], *room = NULL;
    assert_int_equal(tess_outbox_create(world, &box), TESS_OK);
    for (int turn = 0; turn < TURNS; ++turn) {
        int64_t total = 0;
        for (int k = 0; k < size; ++k) /* nothing for some */
            total += send[k] = (rank + k + turn) % 3 == 2 ? 0 : LENGTH[turn] + rank + k;
        assert_int_equal(tess_outbox_room(box, TESS_OK, total, &room), TESS_OK);
        char *to = room;
        for (int k = 0; k < size; to += send[k++])
            memset(to, left_byte(rank, k, turn), (size_t)send[k]);
        assert_int_equal(tess_outbox_send(box, TESS_OK, send, recv, part), TESS_OK);
        for (int k = 0; k < size; ++k) {
            const char *from = part[k];
            assert_int_equal(recv[k],
                             (rank + k + turn) % 3 == 2 ? 0 : LENGTH[turn] + rank + k);
            for (int64_t b = 0; b < recv[k]; ++b)
                if (from[b] != left_byte(k, rank, turn)) fail();
        }
        if (turn == 2) tess_outbox_empty(box);
    }
    tess_outbox_free(box);
    tess_outbox_free(NULL);
}

/* Rooms of all ranks, where all can be read. */
static void test_shared_outbox(void **state)
{
    tess_outbox *box = NULL;
    void *room = NULL;
    assert_int_equal(tess_outbox_create(world, &box), TESS_OK);
    for (int turn = 0; turn < 3; ++turn) {
        assert_int_equal(tess_outbox_room(box, TESS_OK, 10, &room), TESS_OK);
        memset(room, left_byte(rank, 0, turn), 10);
        assert_int_equal(tess_outbox_meet(box, TESS_OK, 10), TESS_OK);
        for (int k = 0; k < size && tess_outbox_is_shared(box); ++k)
            assert_int_equal(((const char *)tess_outbox_of(box, k))[9],
                             left_byte(k, 0, turn));
    }
    tess_outbox_free(box);
}

/* One rank sends megabytes to each, the others a byte to themselves. */
static void test_uneven(void **state)
{
    enum { LARGE = 3 << 20 };
    int64_t send[MOST_RANKS] = {0}, recv[MOST_RANKS];
    void *received = NULL;
    const bool sender = rank == 0;
    char *data = tess_alloc(sender ? (int64_t)LARGE * size : 1, 1);
    assert_non_null(data);
    data[0] = (char)rank;
    for (int k = 0; sender && k < size; ++k) {
        memset(data + (int64_t)k * LARGE, 40 + k, LARGE);
        send[k] = LARGE;
    }
    if (!sender) send[rank] = 1;
    assert_int_equal(tess_comm_alltoallv(world, data, send, &received, recv), TESS_OK);
    const char *at = received;
    assert_int_equal(recv[0], LARGE);
    for (int64_t b = 0; b < LARGE; ++b)
        if (at[b] != 40 + rank) fail();
    if (!sender) {
        assert_int_equal(recv[rank], 1);
        assert_int_equal(at[LARGE], rank);
    }
    tess_free(received);
    tess_free(data);
}

static void test_reduce_scatter_single(void **state)
{
    int64_t counts[MOST_RANKS], total = 0;
    float values[MOST_RANKS * MOST_RANKS], out[MOST_RANKS] = {0};
    for (int k = 0; k < size; ++k) { /* k values to rank k */
        counts[k] = k;
        for (int j = 0; j < k; ++j)
            values[total++] = (float)(rank * 10 + k);
    }
    assert_int_equal(tess_comm_reduce_scatter(world, values, out, counts, false),
                     TESS_OK);
    for (int j = 0; j < rank; ++j)
        assert_true(out[j] == (float)(5 * size * (size - 1) + size * rank));
}

/* As if two ranks were a node. What rank k gets leaves each other node once. */
static void test_reduce_by_nodes(void **state)
{
    enum { COUNT = 1000 };
    int64_t counts[MOST_RANKS], total = 0;
    int ranks = 0, nodes = 0;
    tess_comm *node = NULL;
    assert_int_equal(tess_comm_node(world, &node), TESS_OK);
    ranks = tess_comm_size(node);
    nodes = (size + 1) / 2;
    assert_int_equal(ranks, rank == size - 1 && size % 2 ? 1 : 2);
    assert_int_equal(tess_comm_rank(node), rank % 2);
    for (int k = 0; k < size; ++k)
        total += counts[k] = COUNT + k;
    double *values = tess_alloc(total, sizeof *values);
    double *out = tess_alloc(counts[rank], sizeof *out);
    assert_true(values && out);
    for (int64_t i = 0; i < total; ++i)
        values[i] = (double)((rank + 1) * i);
    int64_t between = -tess_spent_so_far().bytes_between, first = 0;
    assert_int_equal(tess_comm_reduce_scatter(world, values, out, counts, true),
                     TESS_OK);
    between += tess_spent_so_far().bytes_between;
    for (int k = 0; k < rank; ++k)
        first += counts[k];
    for (int64_t i = 0; i < counts[rank]; ++i)
        assert_true(out[i] == (double)(size * (size + 1) / 2 * (first + i)));
    assert_int_equal(tess_comm_allreduce_i64(world, &between, 1, TESS_SUM), TESS_OK);
    if (size % 2 == 0)
        assert_int_equal(between, (nodes - 1) * total * (int64_t)sizeof *values);
    tess_free(values);
    tess_free(out);
    tess_comm_free(node);
}

/* Small integers, so that sums are exact in any order. */
static double summand(int of_rank, int64_t i)
{
    return (double)((of_rank + 1) * (i % 1000));
}

static void check_large_shares(bool is_double)
{
    int64_t counts[MOST_RANKS], total = 0, first = 0;
    for (int k = 0; k < size; ++k) /* some megabytes in slices, and nothing */
        total += counts[k] = k == 1 ? 0 : 300000 + 37 * k;
    for (int k = 0; k < rank; ++k)
        first += counts[k];
    const size_t bytes = is_double ? sizeof(double) : sizeof(float);
    void *values = tess_alloc(total, bytes), *out = tess_alloc(counts[rank], bytes);
    assert_true(values && (out || counts[rank] == 0));
    for (int64_t i = 0; i < total; ++i) {
        if (is_double)
            ((double *)values)[i] = summand(rank, i);
        else
            ((float *)values)[i] = (float)summand(rank, i);
    }
    assert_int_equal(tess_comm_reduce_scatter(world, values, out, counts, is_double),
                     TESS_OK);
    for (int64_t i = 0; i < counts[rank]; ++i) {
        const double expected = summand(0, first + i) * size * (size + 1) / 2;
        const double found = is_double ? ((double *)out)[i] : ((float *)out)[i];
        if (found != expected) fail();
    }
    tess_free(values);
    tess_free(out);
}

/* Shares that go by memory inside a node, several times in turn. */
static void test_reduce_large_shares(void **state)
{
    for (int turn = 0; turn < 2; ++turn) {
        check_large_shares(false);
        check_large_shares(true);
    }
}

static void test_split(void **state)
{
    tess_comm *part = NULL, *node = NULL;
    /* in reverse order inside each part */
    assert_int_equal(tess_comm_split(world, rank % 2, -rank, &part), TESS_OK);
    const int members = (size + 1 - rank % 2) / 2;
    assert_int_equal(tess_comm_size(part), members);
    assert_int_equal(tess_comm_rank(part), members - 1 - rank / 2);
    int64_t sum = rank;
    assert_int_equal(tess_comm_allreduce_i64(part, &sum, 1, TESS_SUM), TESS_OK);
    assert_int_equal(sum, members * (members - 1) + rank % 2 * members);
    tess_comm_free(part);
    assert_int_equal(tess_comm_node(world, &node), TESS_OK);
    assert_in_range(tess_comm_size(node), 1, size);
    tess_comm_free(node);
    tess_comm_free(NULL);
}

static void test_self(void **state)
{
    tess_comm *self = NULL, *part = NULL;
    int64_t value = 7, counts = 3, received_bytes = 0;
    void *received = NULL;
    double out[3] = {0};
    assert_int_equal(tess_comm_self(&self), TESS_OK);
    assert_int_equal(tess_comm_size(self), 1);
    assert_int_equal(tess_comm_split(self, 3, 0, &part), TESS_OK);
    assert_int_equal(tess_comm_size(part), 1);
    tess_comm_free(part);
    assert_int_equal(tess_comm_exscan_i64(self, &value, 1), TESS_OK);
    assert_int_equal(value, 0);
    assert_int_equal(
        tess_comm_alltoallv(self, "abc", &counts, &received, &received_bytes), TESS_OK);
    assert_int_equal(received_bytes, 3);
    assert_memory_equal(received, "abc", 3);
    tess_free(received);
    const double values[3] = {1, 2, 3};
    assert_int_equal(tess_comm_reduce_scatter(self, values, out, &counts, true),
                     TESS_OK);
    assert_memory_equal(out, values, sizeof out);
    assert_int_equal(tess_comm_agree(self, TESS_ERR_INPUT), TESS_ERR_INPUT);
    assert_int_equal(tess_comm_agree(self, TESS_OK), TESS_OK);
    tess_comm_free(self);
}

/* Every rank in turn fails, and all of them at once. */
static void test_each_fails(void **state)
{
    for (int culprit = 0; culprit <= size; ++culprit) {
        const bool failed = rank == culprit || culprit == size;
        int exit_status = -1;
        const tess_status agreed =
            tess_comm_agree(world, failed ? TESS_ERR_INPUT : TESS_OK);
        assert_int_equal(agreed, failed ? TESS_ERR_INPUT : TESS_ERR_PEER);
        assert_int_equal(tess_comm_blame(world, agreed, &exit_status), culprit % size);
        assert_int_equal(exit_status, tess_status_exit(TESS_ERR_INPUT));
    }
    /* all heard of a failure that none admits: somebody must still say so */
    int exit_status = -1;
    assert_int_equal(tess_comm_blame(world, TESS_ERR_PEER, &exit_status), 0);
    assert_int_equal(exit_status, tess_status_exit(TESS_ERR_PEER));
}

/* One rank would receive more than the memory of any machine. Only this rank knows, and
 * no rank hangs. */
static void test_out_of_memory(void **state)
{
    int64_t counts[MOST_RANKS] = {0};
    void *all = NULL;
    const int64_t too_much = rank == size - 1 ? INT64_C(1) << 60 : 0;
    char nothing;
    tess_error_clear();
    /* counts travel first; the buffers are then refused before any byte is sent */
    assert_int_equal(tess_comm_allgatherv(world, &nothing, too_much, &all, counts),
                     TESS_ERR_ALLOC);
    assert_null(all);
    assert_true(tess_error_message()[0] != '\0');
    tess_error_clear();
    assert_int_equal(tess_comm_barrier(world), TESS_OK);
}

static void test_stats(void **state)
{
    int64_t send[MOST_RANKS], recv[MOST_RANKS];
    void *received = NULL;
    char data[MOST_RANKS * 10] = {0};
    for (int k = 0; k < size; ++k)
        send[k] = 10;
    const tess_spent before = tess_spent_so_far();
    assert_int_equal(tess_comm_alltoallv(world, data, send, &received, recv), TESS_OK);
    const tess_spent after = tess_spent_so_far();
    /* what stays on a rank is not sent; agreement inside costs a word */
    assert_true(after.bytes_sent - before.bytes_sent >= 10 * (size - 1));
    assert_true(after.bytes_sent - before.bytes_sent <= 10 * (size - 1) + 64);
    assert_true(after.seconds >= before.seconds);
    tess_free(received);
}

/* The other ranks wait for the last one in an agreement inside an exchange. This time
 * counts once. */
static void test_waiting_counts_once(void **state)
{
    const struct timespec late = {.tv_nsec = 50000000};
    int64_t send[MOST_RANKS], recv[MOST_RANKS];
    tess_flight *flight = NULL;
    void *received = NULL;
    char data[MOST_RANKS * 10] = {0};
    for (int k = 0; k < size; ++k)
        send[k] = 10;
    assert_int_equal(tess_flight_create(world, &flight), TESS_OK);
    const double before_s = tess_spent_so_far().seconds, start_s = tess_time_now();
    assert_int_equal(tess_flight_start(flight, TESS_OK, NULL, data, NULL, send, recv),
                     TESS_OK);
    if (rank == size - 1) nanosleep(&late, NULL);
    assert_int_equal(tess_flight_finish(flight, &received), TESS_OK);
    const double spent_s = tess_spent_so_far().seconds - before_s;
    assert_true(spent_s <= tess_time_now() - start_s + 1e-6);
    tess_flight_free(flight);
    tess_free(received);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bcast),
        cmocka_unit_test(test_allreduce),
        cmocka_unit_test(test_exscan),
        cmocka_unit_test(test_allgather),
        cmocka_unit_test(test_gatherv),
        cmocka_unit_test(test_nobody_sends),
        cmocka_unit_test(test_uneven),
        cmocka_unit_test(test_reduce_scatter_single),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_self),
        cmocka_unit_test(test_each_fails),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_stats),
        cmocka_unit_test(test_two_flights),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_reduce_large_shares),
        cmocka_unit_test(test_outbox),
        cmocka_unit_test(test_shared_outbox),
        cmocka_unit_test(test_waiting_counts_once),
    };
    const struct CMUnitTest of_nodes[] = {cmocka_unit_test(test_reduce_by_nodes)};
    if (tess_comm_start(&argc, &argv, &world) != TESS_OK) return 1;
    rank = tess_comm_rank(world);
    size = tess_comm_size(world);
    TEST_ON_RANKS(world, tests);
    if (getenv("TESS_NODE_RANKS")) TEST_ON_RANKS(world, of_nodes);
    tess_comm_finish(world);
    return 0;
}
