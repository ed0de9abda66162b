/* `tessera image --resume` from damaged checkpoints: a run that was stopped goes on
 * from what the input says of its planes, passes and blocks. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_input.h"
#include "fuzz_file.h"
#include "tess_comm.h"
#include "tess_subcommands.h"
#include "tess_log.h"

static tess_comm *comm;
static char top[64], folder[96], *identity;

static void put_text(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", top, name);
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) abort();
}

static void clean(void)
{
    checkpoint_input_remove(folder);
    checkpoint_input_remove(top);
}

/* An observation of three antennas. */
static void simulate(void)
{
    char sky[128], layout[128], obs[128];
    put_text("layout.csv", "# lon=20 lat=-30 alt=1000\nname,east,north,up\n"
                           "A,0,0,0\nB,300,100,5\nC,-200,400,-3\n");
    put_text("sky.csv", "l,m,flux_jy\n0.001,0.002,1\n");
    snprintf(layout, sizeof layout, "--layout=%s/layout.csv", top);
    snprintf(sky, sizeof sky, "--sky=%s/sky.csv", top);
    snprintf(obs, sizeof obs, "--output=%s/obs.uvfits", top);
    char command[] = "simulate", ra[] = "--ra=60deg", dec[] = "--dec=-30deg",
         duration[] = "--duration=60s", channels[] = "--channels=2",
         freq[] = "--freq=1.4GHz", quiet[] = "--quiet";
    char *argv[] = {command,  layout,   sky,  obs,   ra,  dec,
                    duration, channels, freq, quiet, NULL};
    if (tess_cmd_simulate(comm, 10, argv) != TESS_OK) abort();
}

/* Images of the observation, with one more option. */
static tess_status image(const char *more)
{
    char obs[128], output[128], checkpoint[128], last[64];
    snprintf(obs, sizeof obs, "%s/obs.uvfits", top);
    snprintf(output, sizeof output, "--output=%s/out", top);
    snprintf(checkpoint, sizeof checkpoint, "--checkpoint=%s", folder);
    snprintf(last, sizeof last, "%s", more);
    char command[] = "image", size[] = "--size=32", scale[] = "--scale=20asec",
         overwrite[] = "--overwrite", memory[] = "--memory=64MB",
         accuracy[] = "--accuracy=1e-2", channels[] = "--channels-out=2",
         quiet[] = "--quiet";
    char *argv[] = {command, obs,      output,   checkpoint, size, scale, overwrite,
                    memory,  accuracy, channels, quiet,      last, NULL};
    return tess_cmd_image(comm, 12, argv);
}

/* A log would grow with each input. */
static void drop_log(void)
{
    char log[128];
    tess_log_close();
    snprintf(log, sizeof log, "%s/out.log", top);
    unlink(log);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    setenv("TESS_FORCE", "passes=2", 1);
    const char *seed = getenv("TESS_FUZZ_SEED");
    snprintf(top, sizeof top, "fuzz-%ld", (long)getpid());
    snprintf(folder, sizeof folder, "fuzz-%ld/checkpoints", (long)getpid());
    if (tess_comm_self(&comm) != TESS_OK || mkdir(top, 0700) != 0) abort();
    atexit(clean);
    simulate();
    const tess_status status = image("--max-time=0.001");
    if (status != TESS_ERR_STOPPED) {
        fprintf(stderr, "%d: %s\n", (int)status, tess_error_message());
        abort();
    }
    tess_error_clear();
    drop_log();
    identity = checkpoint_input_identity(folder);
    if (!identity) abort();
    if (seed) checkpoint_input_save(folder, seed);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    checkpoint_input_write(folder, data, size, identity);
    fuzz_check(image("--resume"));
    drop_log();
    return 0;
}
