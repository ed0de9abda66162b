/* Checkpoint files: what is written is read, the one before stays, and serves when
 * damage is found. (Several ranks: tests/faults/checkpoints.py.) */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "tess_checkpoint.h"
#include "tess_status.h"

enum { NX = 5, ROWS = 4, DONE = 6 };

static const char folder[] = "test_checkpoint";
static const char text_name[] = "test_checkpoint/checkpoint";

static int start(void **state)
{
    tess_comm *comm = NULL;
    if (tess_comm_self(&comm) != TESS_OK) return -1;
    tess_error_clear();
    tess_checkpoint_remove(comm, folder);
    if (mkdir(folder, 0777) != 0) return -1;
    *state = comm;
    return 0;
}

static int finish(void **state)
{
    tess_checkpoint_remove(*state, folder);
    tess_comm_free(*state);
    return 0;
}

/* Rows 3 to 6 of two images of floats, and of a mean. */
static void write_one(tess_comm *comm, tess_checkpoint_state *state, float first)
{
    float image[2][ROWS * NX];
    double mean[ROWS * NX];
    for (int k = 0; k < ROWS * NX; ++k) {
        image[0][k] = first + (float)k;
        image[1][k] = -image[0][k];
        mean[k] = 0.1 * k;
    }
    const void *images[2] = {image[0], image[1]}, *means[1] = {mean};
    const tess_checkpoint_rows sums = {3, ROWS, NX, sizeof(float), 2, images};
    const tess_checkpoint_rows rows = {3, ROWS, NX, sizeof(double), 1, means};
    state->num_mean = 1;
    state->mean_weight[0] = 1.0 / 3;
    assert_int_equal(tess_checkpoint_write(comm, folder, state, &sums, &rows, NULL),
                     TESS_OK);
}

static tess_checkpoint_state new_state(void)
{
    static char done[] = "011010", identity[] = "size = 5\nchecksum = none\n",
                plan[] = "9 planes";
    return (tess_checkpoint_state){.outputs_done = 7,
                                   .num_done = DONE,
                                   .done = done,
                                   .identity = identity,
                                   .plan = plan};
}

static void start_again(void **state, tess_checkpoint_state *out)
{
    tess_checkpoint_remove(*state, folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    *out = new_state();
}

static void test_round_trip(void **state)
{
    tess_checkpoint_state out = new_state(), in;
    float rows[3 * NX] = {0};
    double mean[2 * NX] = {0};
    assert_int_equal(tess_checkpoint_read(*state, folder, &in), TESS_OK);
    assert_int_equal(in.generation, 0);
    write_one(*state, &out, 1);
    write_one(*state, &out, 100); /* replaces it */
    assert_int_equal(out.generation, 2);
    assert_int_equal(access("test_checkpoint/checkpoint-1-0", F_OK), 0);
    assert_int_equal(tess_checkpoint_read(*state, folder, &in), TESS_OK);
    assert_int_equal(in.generation, 2);
    assert_int_equal(in.num_ranks, 1);
    assert_int_equal(in.outputs_done, 7);
    assert_int_equal(in.num_done, DONE);
    assert_memory_equal(in.done, out.done, DONE);
    assert_string_equal(in.identity, out.identity);
    assert_string_equal(in.plan, out.plan);
    assert_true(in.mean_weight[0] == 1.0 / 3);
    /* rows 5 to 7, of which the last is nobody's */
    assert_int_equal(tess_checkpoint_add_sums(folder, &in, 1, 5, 3, rows), TESS_OK);
    for (int k = 0; k < 2 * NX; ++k)
        assert_true(rows[k] == -100 - (float)(2 * NX + k));
    for (int k = 2 * NX; k < 3 * NX; ++k)
        assert_true(rows[k] == 0);
    assert_int_equal(tess_checkpoint_add_mean(folder, &in, 0, 2, 2, mean), TESS_OK);
    for (int k = 0; k < NX; ++k)
        assert_true(mean[k] == 0 && mean[NX + k] == 0.1 * k);
    tess_checkpoint_free(&in);
}

static void damage(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    assert_int_equal(fputc('?', file), '?');
    assert_int_equal(fclose(file), 0);
}

/* What is read is generation `wanted`, which write_one() began with `first`. */
static void expect(tess_comm *comm, int64_t wanted, float first,
                   tess_checkpoint_state *in)
{
    float rows[ROWS * NX] = {0};
    assert_int_equal(tess_checkpoint_read(comm, folder, in), TESS_OK);
    assert_int_equal(in->generation, wanted);
    assert_string_equal(tess_error_message(), "");
    assert_int_equal(tess_checkpoint_add_sums(folder, in, 0, 3, ROWS, rows), TESS_OK);
    for (int k = 0; k < ROWS * NX; ++k)
        assert_true(rows[k] == first + (float)k);
}

/* Both are damaged, or the only one is; the message is about `name`. */
static void expect_refusal(tess_comm *comm, const char *name)
{
    tess_checkpoint_state in;
    tess_error_clear();
    assert_int_equal(tess_checkpoint_read(comm, folder, &in), TESS_ERR_INPUT);
    assert_non_null(strstr(tess_error_message(), name));
    tess_checkpoint_free(&in);
    tess_error_clear();
}

static void test_damage(void **state)
{
    static const char rank_name[] = "test_checkpoint/checkpoint-1-0";
    tess_checkpoint_state out = new_state();
    write_one(*state, &out, 1);
    damage(rank_name, 150);
    expect_refusal(*state, rank_name);
    for (long at = 0; at < 150; at += 7) { /* numbers, words, checksum */
        start_again(state, &out);
        write_one(*state, &out, 1);
        damage(text_name, at);
        expect_refusal(*state, text_name);
    }
    start_again(state, &out);
    write_one(*state, &out, 1);
    assert_int_equal(truncate(text_name, 30), 0);
    expect_refusal(*state, text_name);
}

static void cut_file(void)
{
    assert_int_equal(truncate("test_checkpoint/checkpoint-3-0", 200), 0);
}

static void damage_file(void)
{
    damage("test_checkpoint/checkpoint-3-0", 150);
}

static void remove_file(void)
{
    assert_int_equal(unlink("test_checkpoint/checkpoint-3-0"), 0);
}

static void cut_text(void)
{
    assert_int_equal(truncate(text_name, 30), 0);
}

static void remove_text(void)
{
    assert_int_equal(unlink(text_name), 0);
}

/* The last two are kept: the one before serves, and stays when there is a new one,
 * which that which was damaged does not. */
static void test_previous(void **state)
{
    static void (*const spoil[])(void) = {cut_file, damage_file, remove_file, cut_text,
                                          remove_text};
    for (size_t k = 0; k < sizeof spoil / sizeof *spoil; ++k) {
        tess_checkpoint_state out, in;
        start_again(state, &out);
        for (int n = 1; n <= 3; ++n)
            write_one(*state, &out, (float)n);
        assert_int_equal(access("test_checkpoint/checkpoint-1-0", F_OK), -1);
        spoil[k]();
        expect(*state, 2, 2, &in);
        write_one(*state, &in, 30);
        tess_checkpoint_free(&in);
        expect(*state, 3, 30, &in);
        tess_checkpoint_free(&in);
        spoil[k]();
        expect(*state, 2, 2, &in);
        tess_checkpoint_free(&in);
        damage("test_checkpoint/checkpoint-2-0", 150);
        expect_refusal(*state, k < 3 ? "checkpoint-3-0" : text_name);
    }
}

/* What a run killed while it wrote has left is neither read nor kept. */
static void test_unfinished(void **state)
{
    static const char *const left[] = {"test_checkpoint/checkpoint-2-0",
                                       "test_checkpoint/checkpoint-2-1.99.0.tmp",
                                       "test_checkpoint/checkpoint.99.0.tmp"};
    tess_checkpoint_state out = new_state(), in;
    write_one(*state, &out, 1);
    for (int k = 0; k < 3; ++k) {
        FILE *file = fopen(left[k], "w");
        assert_non_null(file);
        fclose(file);
    }
    assert_int_equal(tess_checkpoint_read(*state, folder, &in), TESS_OK);
    assert_int_equal(in.generation, 1);
    tess_checkpoint_free(&in);
    write_one(*state, &out, 1);
    assert_int_equal(tess_checkpoint_read(*state, folder, &in), TESS_OK);
    assert_int_equal(in.generation, 2);
    tess_checkpoint_free(&in);
    for (int k = 1; k < 3; ++k)
        assert_int_equal(access(left[k], F_OK), -1);
    tess_checkpoint_remove(*state, folder);
    assert_int_equal(access(folder, F_OK), -1);
}

/* Of a size that is no multiple of a word, and a number. */
typedef struct own_values {
    char text[11];
    int64_t number;
} own_values;

static tess_status move_own(void *context, tess_mover *mover)
{
    own_values *values = context;
    tess_status status = tess_move(mover, values->text, sizeof values->text);
    if (status == TESS_OK)
        status = tess_move(mover, &values->number, sizeof values->number);
    return status;
}

static tess_status refuse_own(void *context, tess_mover *mover)
{
    (void)context;
    (void)mover;
    return TESS_ERR_ALLOC;
}

/* What a rank has for itself comes back, beside rows, and is not taken for them. */
static void test_own(void **state)
{
    const float image[ROWS * NX] = {4};
    const void *images[1] = {image};
    const tess_checkpoint_rows sums = {3, ROWS, NX, sizeof(float), 1, images},
                               none = {0};
    tess_checkpoint_state out = new_state(), in;
    own_values values = {"ten bytes.", INT64_C(1) << 40}, back = {"", 0};
    tess_checkpoint_own own = {move_own, &values, 0}, refused = {refuse_own, NULL, 0};
    tess_mover *mover;
    float rows[ROWS * NX] = {0};
    int64_t more;
    assert_int_equal(tess_checkpoint_write(*state, folder, &out, &sums, &none, &own),
                     TESS_OK);
    assert_int_equal(own.bytes, 24);
    assert_int_equal(
        tess_checkpoint_write(*state, folder, &out, &sums, &none, &refused),
        TESS_ERR_ALLOC);
    tess_error_clear();
    assert_int_equal(tess_checkpoint_read(*state, folder, &in), TESS_OK);
    assert_int_equal(in.generation, 1);
    assert_int_equal(tess_checkpoint_add_sums(folder, &in, 0, 3, ROWS, rows), TESS_OK);
    assert_true(rows[0] == 4);
    assert_int_equal(tess_checkpoint_open_own(folder, &in, 0, &mover), TESS_OK);
    assert_non_null(mover);
    assert_int_equal(move_own(&back, mover), TESS_OK);
    assert_string_equal(back.text, values.text);
    assert_int_equal(back.number, values.number);
    assert_int_equal(tess_move(mover, &more, sizeof more), TESS_ERR_INPUT);
    tess_error_clear();
    tess_checkpoint_close_own(mover);
    tess_checkpoint_free(&in);
    damage("test_checkpoint/checkpoint-1-0", -20);
    expect_refusal(*state, "checkpoint-1-0");
}

static void test_nothing_own(void **state)
{
    tess_checkpoint_state out = new_state(), in;
    tess_mover *mover;
    write_one(*state, &out, 1);
    assert_int_equal(tess_checkpoint_read(*state, folder, &in), TESS_OK);
    assert_int_equal(tess_checkpoint_open_own(folder, &in, 0, &mover), TESS_OK);
    assert_null(mover);
    tess_checkpoint_free(&in);
}

static void test_no_folder(void **state)
{
    tess_checkpoint_state out = new_state();
    const tess_checkpoint_rows none = {0};
    tess_checkpoint_remove(*state, folder);
    assert_int_equal(tess_checkpoint_write(*state, folder, &out, &none, &none, NULL),
                     TESS_ERR_IO);
    assert_int_equal(out.generation, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, start, finish),
        cmocka_unit_test_setup_teardown(test_damage, start, finish),
        cmocka_unit_test_setup_teardown(test_previous, start, finish),
        cmocka_unit_test_setup_teardown(test_unfinished, start, finish),
        cmocka_unit_test_setup_teardown(test_own, start, finish),
        cmocka_unit_test_setup_teardown(test_nothing_own, start, finish),
        cmocka_unit_test_setup_teardown(test_no_folder, start, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
