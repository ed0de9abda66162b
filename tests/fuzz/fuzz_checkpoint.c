/* Checkpoints: their text, the rows and what a rank has for itself. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_input.h"
#include "fuzz_file.h"
#include "tess_checkpoint.h"
#include "tess_comm.h"
#include "tess_mem.h"

/* The run that the checkpoints are of. */
enum { NX = 5, ROWS = 4, IMAGES = 2, OWN = 24 };

static tess_comm *comm;
static char folder[64];

static void remove_folder(void)
{
    checkpoint_input_remove(folder);
}

static tess_status move_own(void *context, tess_mover *mover)
{
    return tess_move(mover, context, OWN);
}

/* A checkpoint of this run, as an input to start from. */
static void save_seed(const char *path)
{
    static char cycle[] = "state", done[] = "0110", identity[] = "size = 5\n",
                plan[] = "9 planes";
    char own_bytes[OWN] = "what a rank has";
    float image[IMAGES][ROWS * NX] = {{1, 2}};
    double mean[ROWS * NX] = {3};
    const void *images[] = {image[0], image[1]}, *means[] = {mean};
    tess_checkpoint_state state = {.num_done = 4,
                                   .done = done,
                                   .num_mean = 1,
                                   .num_cycle = 1,
                                   .cycle = cycle,
                                   .cycle_bytes = sizeof cycle,
                                   .mean_weight = {0.5},
                                   .identity = identity,
                                   .plan = plan};
    const tess_checkpoint_rows sums = {0, ROWS, NX, sizeof(float), IMAGES, images};
    const tess_checkpoint_rows rows = {0, ROWS, NX, sizeof(double), 1, means};
    tess_checkpoint_own own = {move_own, own_bytes, 0};
    bool no_room;
    if (tess_checkpoint_write(comm, folder, &state, &sums, &rows, &own, &no_room) !=
        TESS_OK)
        abort();
    tess_free(state.file);
    checkpoint_input_save(folder, path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    const char *seed = getenv("TESS_FUZZ_SEED");
    snprintf(folder, sizeof folder, "fuzz-%ld", (long)getpid());
    if (tess_comm_self(&comm) != TESS_OK || mkdir(folder, 0700) != 0) abort();
    if (seed) save_seed(seed);
    atexit(remove_folder);
    return 0;
}

static tess_status read_own(const tess_checkpoint_state *state)
{
    tess_status status = TESS_OK;
    tess_mover *mover = NULL;
    char value[OWN];
    TESS_TRY(tess_checkpoint_open_own(folder, state, 0, &mover));
    if (mover) TESS_TRY(tess_move(mover, value, sizeof value));
cleanup:
    tess_checkpoint_close_own(mover);
    return status;
}

static tess_status resume(void)
{
    tess_status status = TESS_OK;
    tess_checkpoint_state state;
    const tess_checkpoint_rows sums = {0, ROWS, NX, sizeof(float), IMAGES, NULL};
    const tess_checkpoint_rows means = {0, ROWS, NX, sizeof(double), 1, NULL};
    float rows[ROWS * NX] = {0};
    double mean[ROWS * NX] = {0};
    TESS_TRY(tess_checkpoint_read(comm, folder, &state));
    if (state.generation == 0) goto cleanup;
    fuzz_assert(strlen(state.done) <= (size_t)state.num_done && state.identity &&
                    state.plan,
                "a checkpoint's state is complete");
    for (int64_t k = 0; k < IMAGES; ++k)
        TESS_TRY(tess_checkpoint_add_sums(folder, &state, k, &sums, rows));
    TESS_TRY(tess_checkpoint_add_mean(folder, &state, 0, &means, mean));
    TESS_TRY(read_own(&state));
cleanup:
    tess_checkpoint_free(&state);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    checkpoint_input_write(folder, data, size, NULL);
    fuzz_check(resume());
    return 0;
}
