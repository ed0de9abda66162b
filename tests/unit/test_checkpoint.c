/* Checkpoint files: what is written is read, the one before stays, and serves when
 * damage is found. (Several ranks: tests/faults/checkpoints.py.) */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include "checkpoint_text.h"
#include "tess_checkpoint.h"
#include "tess_mem.h"
#include "tess_status.h"

enum { NX = 5, ROWS = 4, DONE = 6 };

static const char folder[] = "test_checkpoint";
static const char text_name[] = "test_checkpoint/checkpoint";
static const char rank_name[] = "test_checkpoint/checkpoint-1-0";

/* Remove the folder with all that is in it, whoever made it. */
static void wipe(void)
{
    DIR *list = opendir(folder);
    if (!list) return;
    for (const struct dirent *entry; (entry = readdir(list));)
        if (unlinkat(dirfd(list), entry->d_name, 0) != 0)
            unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR);
    closedir(list);
    rmdir(folder);
}

static int start(void **state)
{
    tess_comm *comm = NULL;
    if (tess_comm_self(&comm) != TESS_OK) return -1;
    tess_error_clear();
    wipe();
    if (mkdir(folder, 0777) != 0) return -1;
    *state = comm;
    return 0;
}

static int finish(void **state)
{
    wipe();
    tess_comm_free(*state);
    return 0;
}

static const tess_checkpoint_rows all_rows = {3, ROWS, NX, sizeof(float), 2, NULL};

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
    state->num_mean = state->num_cycle = 1;
    state->mean_weight[0] = 1.0 / 3;
    state->mean_response[0] = 2.0 / 7;
    bool no_room;
    assert_int_equal(
        tess_checkpoint_write(comm, folder, state, &sums, &rows, NULL, &no_room),
        TESS_OK);
    assert_false(no_room);
    tess_free(state->file); /* the state's own, with which these tests do nothing */
    state->file = NULL;
}

enum { CYCLE = 5 };

static tess_checkpoint_state new_state(void)
{
    static unsigned char cycle[CYCLE] = {0, 255, '\n', ' ', 16};
    static char done[] = "011010", identity[] = "size = 5\nchecksum = none\n",
                plan[] = "9 planes";
    return (tess_checkpoint_state){.outputs_done = 7,
                                   .num_done = DONE,
                                   .done = done,
                                   .cycle = cycle,
                                   .cycle_bytes = CYCLE,
                                   .identity = identity,
                                   .plan = plan};
}

static void start_again(tess_checkpoint_state *out)
{
    wipe();
    assert_int_equal(mkdir(folder, 0777), 0);
    *out = new_state();
}

static void test_round_trip(void **state)
{
    tess_checkpoint_state out = new_state(), in;
    float rows[3 * NX] = {0};
    double mean[2 * NX] = {0};
    const tess_checkpoint_rows three = {5, 3, NX, sizeof(float), 2, NULL},
                               two = {2, 2, NX, sizeof(double), 1, NULL};
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
    assert_true(in.mean_response[0] == 2.0 / 7);
    assert_int_equal(in.num_cycle, 1);
    assert_int_equal(in.cycle_bytes, CYCLE);
    assert_memory_equal(in.cycle, out.cycle, CYCLE);
    /* rows 5 to 7; no rank has the last one */
    assert_int_equal(tess_checkpoint_add_sums(folder, &in, 1, &three, rows), TESS_OK);
    for (int k = 0; k < 2 * NX; ++k)
        assert_true(rows[k] == -100 - (float)(2 * NX + k));
    for (int k = 2 * NX; k < 3 * NX; ++k)
        assert_true(rows[k] == 0);
    assert_int_equal(tess_checkpoint_add_mean(folder, &in, 0, &two, mean), TESS_OK);
    for (int k = 0; k < NX; ++k)
        assert_true(mean[k] == 0 && mean[NX + k] == 0.1 * k);
    tess_checkpoint_free(&in);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
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
    assert_int_equal(tess_checkpoint_add_sums(folder, in, 0, &all_rows, rows), TESS_OK);
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
    tess_checkpoint_state out = new_state();
    write_one(*state, &out, 1);
    damage(rank_name, 150);
    expect_refusal(*state, rank_name);
    for (long at = 0; at < 150; at += 7) { /* numbers, words, checksum */
        start_again(&out);
        write_one(*state, &out, 1);
        damage(text_name, at);
        expect_refusal(*state, text_name);
    }
    start_again(&out);
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
        start_again(&out);
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
    static const char *const left[] = {
        "test_checkpoint/checkpoint-2-0",
        "test_checkpoint/checkpoint-2-1.tessera-0badcafe-99-0.tmp",
        "test_checkpoint/checkpoint.tessera-0badcafe-99-0.tmp"};
    tess_checkpoint_state out = new_state(), in;
    write_one(*state, &out, 1);
    write_file(left[0], "tessckp2 and more");
    write_file(left[1], "tess"); /* killed at its fourth byte */
    write_file(left[2], "");     /* and before its first */
    assert_int_equal(tess_checkpoint_read(*state, folder, &in), TESS_OK);
    assert_int_equal(in.generation, 1);
    tess_checkpoint_free(&in);
    write_one(*state, &out, 1);
    assert_int_equal(tess_checkpoint_read(*state, folder, &in), TESS_OK);
    assert_int_equal(in.generation, 2);
    tess_checkpoint_free(&in);
    for (int k = 1; k < 3; ++k)
        assert_int_equal(access(left[k], F_OK), -1);
    write_file(left[1], "tess");
    write_file("test_checkpoint/checkpoint-3-0", "tessckp2 and more");
    tess_checkpoint_tidy(*state, folder, &out);
    assert_int_equal(access(left[1], F_OK), -1);
    assert_int_equal(access("test_checkpoint/checkpoint-3-0", F_OK), -1);
    expect(*state, 2, 1, &in);
    tess_checkpoint_free(&in);
    tess_checkpoint_remove(*state, folder);
    assert_int_equal(access(folder, F_OK), -1);
}

/* Values whose size is no multiple of a word, and a number. */
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
    bool no_room;
    assert_int_equal(
        tess_checkpoint_write(*state, folder, &out, &sums, &none, &own, &no_room),
        TESS_OK);
    assert_int_equal(own.bytes, 24);
    assert_int_equal(
        tess_checkpoint_write(*state, folder, &out, &sums, &none, &refused, &no_room),
        TESS_ERR_ALLOC);
    tess_error_clear();
    tess_free(out.file);
    assert_int_equal(tess_checkpoint_read(*state, folder, &in), TESS_OK);
    assert_int_equal(in.generation, 1);
    assert_int_equal(tess_checkpoint_add_sums(folder, &in, 0, &sums, rows), TESS_OK);
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
    bool no_room;
    tess_checkpoint_remove(*state, folder);
    assert_int_equal(
        tess_checkpoint_write(*state, folder, &out, &none, &none, NULL, &no_room),
        TESS_ERR_IO);
    assert_false(no_room);
    assert_int_equal(out.generation, 0);
}

/* ---- files of others ---- */

static void expect_file(const char *path, const char *text)
{
    char found[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(found, 1, sizeof found - 1, file) == strlen(text));
    fclose(file);
    assert_string_equal(found, text);
}

/* A folder with files that tessera did not make is used, and they stay. Their names are
 * almost those that tessera gives, or those of temporary files. */
static void test_others(void **state)
{
    static const char *const names[] = {"checkpoint.pt",
                                        "checkpoint-best",
                                        "checkpoint-500",
                                        "checkpoint-2-0.bak",
                                        "checkpoint-02-0",
                                        "checkpoint-2-",
                                        "checkpoint--2-0",
                                        "checkpoint-2-0-1",
                                        "checkpoint.previous.old",
                                        "checkpoint-2-0.tmp",
                                        "checkpoint.tessera-0badcafe-1-2-3.tmp",
                                        "checkpoint-2-0.tessera-0badcafe-x-0.tmp",
                                        "checkpoint-2-0.tessera-99-0.tmp",
                                        "checkpoints",
                                        "checkpoint_1-0",
                                        "checkpoint.tessera-0badcafe-99-0.tmp",
                                        "checkpoint-1-0.tessera-0badcafe-9-0.tmp",
                                        "notes"};
    enum { NUM = sizeof names / sizeof *names };
    char path[NUM][64];
    tess_checkpoint_state out = new_state();
    for (int k = 0; k < NUM; ++k) {
        snprintf(path[k], sizeof path[k], "%s/%s", folder, names[k]);
        write_file(path[k], names[k]);
    }
    assert_int_equal(tess_checkpoint_check_folder(folder), TESS_OK);
    for (int n = 1; n <= 3; ++n)
        write_one(*state, &out, (float)n);
    tess_checkpoint_tidy(*state, folder, &out);
    assert_int_equal(access("test_checkpoint/checkpoint-3-0", F_OK), 0);
    tess_checkpoint_remove(*state, folder);
    assert_int_equal(access("test_checkpoint/checkpoint-3-0", F_OK), -1);
    assert_int_equal(access(text_name, F_OK), -1);
    for (int k = 0; k < NUM; ++k)
        expect_file(path[k], names[k]);
}

static void make_file(const char *path)
{
    write_file(path, "a user's");
}

static void make_empty(const char *path)
{
    write_file(path, "");
}

static void make_folder(const char *path)
{
    assert_int_equal(mkdir(path, 0777), 0);
}

static void make_pipe(const char *path)
{
    assert_int_equal(mkfifo(path, 0666), 0);
}

/* To a file that begins as tessera's do. */
static void make_link(const char *path)
{
    write_file("test_checkpoint/target",
               strstr(path, "checkpoint-") ? "tessckp2" : "tessera checkpoint 2\n");
    assert_int_equal(symlink("target", path), 0);
}

static void make_dangling(const char *path)
{
    assert_int_equal(symlink("nowhere", path), 0);
}

/* What has a name that tessera needs, but was not made by it, is neither replaced nor
 * removed nor followed: the run is refused. */
static void test_taken_names(void **state)
{
    static void (*const make[])(const char *) = {make_file, make_empty, make_folder,
                                                 make_pipe, make_link,  make_dangling};
    static const char *const names[] = {
        text_name, "test_checkpoint/checkpoint.previous",
        "test_checkpoint/checkpoint-1-0", "test_checkpoint/checkpoint-12-3"};
    for (int k = 0; k < 4; ++k)
        for (size_t n = 0; n < sizeof make / sizeof *make; ++n) {
            tess_checkpoint_state out;
            const tess_checkpoint_rows none = {0};
            struct stat before, after;
            bool no_room;
            start_again(&out);
            make[n](names[k]);
            assert_int_equal(lstat(names[k], &before), 0);
            assert_int_equal(tess_checkpoint_check_folder(folder), TESS_ERR_IO);
            assert_non_null(strstr(tess_error_message(), names[k]));
            tess_error_clear();
            for (int j = 0; j < (k == 1 ? 2 : 1); ++j) { /* made after the look */
                const bool needed = k == 0 || k == 2 || j == 1;
                assert_int_equal(tess_checkpoint_write(*state, folder, &out, &none,
                                                       &none, NULL, &no_room),
                                 needed ? TESS_ERR_IO : TESS_OK);
                assert_false(no_room);
                tess_error_clear();
            }
            tess_free(out.file);
            tess_checkpoint_remove(*state, folder);
            assert_int_equal(lstat(names[k], &after), 0);
            assert_true(before.st_ino == after.st_ino &&
                        before.st_mode == after.st_mode &&
                        before.st_size == after.st_size);
            assert_int_equal(access("test_checkpoint/nowhere", F_OK), -1);
        }
}

/* ---- full disks ---- */

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static int count_files(void)
{
    int count = -2; /* . and .. */
    DIR *list = opendir(folder);
    assert_non_null(list);
    while (readdir(list))
        ++count;
    closedir(list);
    return count;
}

/* Without room nothing of the new checkpoint is left, those before stay, and one is
 * written when there is room again: for a rank's file, and for a text only. */
static void test_no_room(void **state)
{
    const tess_checkpoint_rows none = {0};
    char identity[2000];
    signal(SIGXFSZ, SIG_IGN);
    memset(identity, 'x', sizeof identity - 1);
    identity[sizeof identity - 1] = '\0';
    for (int k = 0; k < 2; ++k) {
        tess_checkpoint_state out, in;
        bool no_room;
        start_again(&out);
        out.identity = identity;
        write_one(*state, &out, 1);
        write_one(*state, &out, 2);
        assert_int_equal(count_files(), 4);
        limit_files(k == 0 ? 100 : 1000); /* a file has 128 bytes, a text 2000 */
        assert_int_equal(
            tess_checkpoint_write(*state, folder, &out, &none, &none, NULL, &no_room),
            TESS_ERR_IO);
        limit_files(RLIM_INFINITY);
        assert_true(no_room);
        assert_non_null(strstr(tess_error_message(), folder));
        tess_error_clear();
        assert_int_equal(out.generation, 2);
        assert_int_equal(count_files(), 4);
        expect(*state, 2, 2, &in);
        tess_checkpoint_free(&in);
        damage("test_checkpoint/checkpoint-2-0", 150);
        expect(*state, 1, 1, &in); /* the one before has its text still */
        tess_checkpoint_free(&in);
        write_one(*state, &out, 3);
        expect(*state, 3, 3, &in);
        tess_checkpoint_free(&in);
    }
}

/* ---- crafted files: their checksums are right ---- */

static char *load(const char *path, int64_t *bytes)
{
    struct stat info;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &info), 0);
    char *data = calloc((size_t)info.st_size + 1, 1);
    assert_non_null(data);
    assert_true(fread(data, 1, (size_t)info.st_size, file) == (size_t)info.st_size);
    fclose(file);
    *bytes = (int64_t)info.st_size;
    return data;
}

static void store(const char *path, const char *data, int64_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fwrite(data, 1, (size_t)bytes, file) == (size_t)bytes);
    assert_int_equal(fclose(file), 0);
}

/* A checkpoint as it was written, from which others are crafted. */
typedef struct pristine {
    char *text, *rank;
    int64_t text_bytes, rank_bytes;
} pristine;

static pristine write_pristine(tess_comm *comm)
{
    tess_checkpoint_state out;
    pristine made;
    start_again(&out);
    write_one(comm, &out, 1);
    made.text = load(text_name, &made.text_bytes);
    made.rank = load(rank_name, &made.rank_bytes);
    return made;
}

static void restore(const pristine *made)
{
    store(text_name, made->text, made->text_bytes);
    store(rank_name, made->rank, made->rank_bytes);
}

static void free_pristine(pristine *made)
{
    free(made->text);
    free(made->rank);
}

/* The text of the checkpoint is this, up to its checksum. */
static void craft_text(const char *text)
{
    FILE *file = fopen(text_name, "w");
    assert_non_null(file);
    fprintf(file, "%schecksum %016" PRIx64 "\n", text,
            checkpoint_checksum(0, text, (int64_t)strlen(text)));
    assert_int_equal(fclose(file), 0);
}

/* The text without its checksum; the caller's to free. */
static char *text_to_craft(void)
{
    int64_t bytes;
    char *text = load(text_name, &bytes), *last = NULL;
    for (char *k = text; (k = strstr(k, "\nchecksum ")); ++k)
        last = k + 1;
    assert_non_null(last);
    *last = '\0';
    return text;
}

static void craft_replaced(const char *was, const char *is)
{
    char *text = text_to_craft(), *at = strstr(text, was), *crafted = NULL;
    assert_non_null(at);
    assert_true(asprintf(&crafted, "%.*s%s%s", (int)(at - text), text, is,
                         at + strlen(was)) > 0);
    craft_text(crafted);
    free(crafted);
    free(text);
}

/* Number `word` of the rank's file is another. */
static void craft_word(int64_t word, int64_t value)
{
    char was[64], is[64];
    int64_t bytes;
    char *data = load(rank_name, &bytes);
    snprintf(was, sizeof was, "file %" PRId64 " %016" PRIx64, bytes,
             checkpoint_checksum(0, data, bytes));
    memcpy(data + 8 * word, &value, sizeof value);
    snprintf(is, sizeof is, "file %" PRId64 " %016" PRIx64, bytes,
             checkpoint_checksum(0, data, bytes));
    store(rank_name, data, bytes);
    craft_replaced(was, is);
    free(data);
}

static void test_crafted_text(void **state)
{
    static const char *const replaced[][2] = {
        {"generation 1", "generation 0"},
        {"generation 1", "generation -1"},
        {"generation 1", "generation 9223372036854775807"},
        {"generation 1", "generation 99999999999999999999"},
        {"ranks 1", "ranks 0"},
        {"ranks 1", "ranks -1"},
        {"ranks 1", "ranks 2"},
        {"ranks 1", "ranks 1000000000000"},
        {"outputs_done 7", "outputs_done -1"},
        {"outputs_done 7", "outputs_done 18446744073709551615"},
        {"means 1", "means 0"},
        {"means 1", "means 2"},
        {"means 1", "means 33"},
        {"means 1", "means -1"},
        {"0x1.5555555555555p-2", "nan"},
        {"0x1.5555555555555p-2", "-1"},
        {"done 6 011010", "done 5 011010"},
        {"done 6 011010", "done 7 011010"},
        {"done 6 011010", "done 6 01101"},
        {"done 6 011010", "done 6 01x010"},
        {"done 6 011010", "done 60 011010"},
        {"done 6 011010", "done 9223372036854775807 011010"},
        {"done 6 011010", "done -1 011010"},
        {"\nplan ", "\nplam "},
        {"file ", "file -"},
        {"file ", "file 9"},
        {"file ", "file 99999999999999999"},
        {"file ", "file 0x"},
        {"identity 25", "identity 24"},
        {"identity 25", "identity 26"},
        {"identity 25", "identity 1000000"},
        {"identity 25", "identity 18446744073709551615"},
        {"identity 25", "identity -1"},
    };
    tess_checkpoint_state in;
    pristine made = write_pristine(*state);
    for (size_t k = 0; k < sizeof replaced / sizeof *replaced; ++k) {
        restore(&made);
        craft_replaced(replaced[k][0], replaced[k][1]);
        if (tess_checkpoint_read(*state, folder, &in) != TESS_ERR_INPUT)
            fail_msg("'%s' was taken", replaced[k][1]);
        tess_error_clear();
    }
    free_pristine(&made);
}

/* A text that ends at any place. */
static void test_crafted_end(void **state)
{
    tess_checkpoint_state out, in;
    start_again(&out);
    write_one(*state, &out, 1);
    char *text = text_to_craft();
    for (size_t length = strlen(text) - 1; length > 21; --length) {
        text[length] = '\0'; /* behind a line, or the checksum would not be found */
        if (text[length - 1] != '\n') text[length - 1] = '\n';
        craft_text(text);
        assert_int_equal(tess_checkpoint_read(*state, folder, &in), TESS_ERR_INPUT);
        tess_error_clear();
    }
    free(text);
}

/* Every number in front of a rank's file: what is no file's own is damage, and what
 * might be a file's, but is not of this run, is refused when rows are taken from it. */
static void test_crafted_numbers(void **state)
{
    enum { WORDS = 16 };
    static const int64_t values[] = {-1,
                                     0,
                                     1,
                                     3,
                                     6,
                                     7,
                                     1 << 20,
                                     INT64_C(1) << 32,
                                     INT64_MIN,
                                     INT64_MAX,
                                     INT64_C(1) << 61};
    const tess_checkpoint_rows wanted = {3, ROWS, NX, sizeof(float), 2, NULL};
    const tess_checkpoint_rows wanted_mean = {3, ROWS, NX, sizeof(double), 1, NULL};
    pristine made = write_pristine(*state);
    for (int word = 0; word < WORDS; ++word)
        for (size_t k = 0; k < sizeof values / sizeof *values; ++k) {
            tess_checkpoint_state in;
            float rows[ROWS * NX] = {0};
            double mean[ROWS * NX] = {0};
            int64_t was;
            tess_mover *mover = NULL;
            memcpy(&was, made.rank + 8 * word, sizeof was);
            restore(&made);
            craft_word(word, values[k]);
            tess_status status = tess_checkpoint_read(*state, folder, &in);
            if (status == TESS_OK)
                status = tess_checkpoint_add_sums(folder, &in, 1, &wanted, rows);
            if (status == TESS_OK)
                status = tess_checkpoint_add_mean(folder, &in, 0, &wanted_mean, mean);
            if (status == TESS_OK)
                status = tess_checkpoint_open_own(folder, &in, 0, &mover);
            assert_null(mover);
            tess_checkpoint_free(&in);
            /* the first row may be any, and so may that of the mean */
            const bool allowed =
                values[k] == was || ((word == 3 || word == 9) && values[k] >= 0 &&
                                     values[k] < INT64_MAX - ROWS);
            if (status != (allowed ? TESS_OK : TESS_ERR_INPUT))
                fail_msg("number %d is %" PRId64 ": %s", word, values[k],
                         tess_status_text(status));
            tess_error_clear();
        }
    free_pristine(&made);
}

/* Rows of other images than those of the run. */
static void test_other_images(void **state)
{
    const tess_checkpoint_rows others[] = {{3, ROWS, NX - 1, sizeof(float), 2, NULL},
                                           {3, ROWS, NX + 1, sizeof(float), 2, NULL},
                                           {3, ROWS, NX, sizeof(double), 2, NULL},
                                           {3, ROWS, NX, sizeof(float), 1, NULL},
                                           {3, ROWS, NX, sizeof(float), 3, NULL}};
    double rows[ROWS * (NX + 1)] = {0};
    tess_checkpoint_state out = new_state(), in;
    write_one(*state, &out, 1);
    expect(*state, 1, 1, &in);
    for (int k = 0; k < 5; ++k) {
        assert_int_equal(tess_checkpoint_add_sums(folder, &in, 0, &others[k], rows),
                         TESS_ERR_INPUT);
        assert_non_null(strstr(tess_error_message(), "other images"));
        tess_error_clear();
    }
    tess_checkpoint_free(&in);
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
        cmocka_unit_test_setup_teardown(test_others, start, finish),
        cmocka_unit_test_setup_teardown(test_taken_names, start, finish),
        cmocka_unit_test_setup_teardown(test_no_room, start, finish),
        cmocka_unit_test_setup_teardown(test_crafted_text, start, finish),
        cmocka_unit_test_setup_teardown(test_crafted_end, start, finish),
        cmocka_unit_test_setup_teardown(test_crafted_numbers, start, finish),
        cmocka_unit_test_setup_teardown(test_other_images, start, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
