/* The commands predict, simulate and info within a program: options by name become a
 * command line, and what the program would print or write stays in memory. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_calls.h"
#include "api_options.h"
#include "tess_mem.h"
#include "tess_print.h"
#include "tess_subcommands.h"
#include "tessera/tess_command.h"

/* A predicted segment and what its description points to. */
typedef struct held_segment {
    tess_predicted info;
    int64_t capacity; /* rows */
    float *vis;
    double *uvw_m, *time_mjd_s, *freq_hz;
    int32_t *antenna1, *antenna2;
    const char *corr[TESS_MAX_CORR];
} held_segment;

struct tess_command {
    const char *name;
    tess_status (*run)(tess_command *command, tess_comm *comm, int argc, char **argv);
    tess_status (*call)(tess_comm *comm, int argc, char **argv); /* run_printing's */
    api_options options;
    const tess_model *model; /* the caller's, or NULL */
    char *text;              /* from open_memstream, or NULL */
    held_segment *segment;   /* [num_segments] */
    int64_t num_segments;
};

static void forget_results(tess_command *command)
{
    for (int64_t k = 0; k < command->num_segments; ++k) {
        held_segment *held = &command->segment[k];
        tess_free(held->vis);
        tess_free(held->uvw_m);
        tess_free(held->time_mjd_s);
        tess_free(held->freq_hz);
        tess_free(held->antenna1);
        tess_free(held->antenna2);
    }
    tess_free(command->segment);
    command->segment = NULL;
    command->num_segments = 0;
    free(command->text);
    command->text = NULL;
}

/* ---- predict ---- */

/* Room for all rows of a segment. */
static tess_status hold_segment(const tess_vis_segment *segment, held_segment *held)
{
    tess_status status = TESS_OK;
    const int64_t rows = segment->num_rows, chans = segment->num_chan;
    const size_t row_bytes =
        (size_t)chans * (size_t)segment->num_corr * 2 * sizeof *held->vis;
    held->vis = tess_alloc(rows, row_bytes);
    held->uvw_m = tess_alloc(rows, 3 * sizeof *held->uvw_m);
    held->time_mjd_s = tess_alloc(rows, sizeof *held->time_mjd_s);
    held->antenna1 = tess_alloc(rows, sizeof *held->antenna1);
    held->antenna2 = tess_alloc(rows, sizeof *held->antenna2);
    held->freq_hz = tess_alloc(chans, sizeof *held->freq_hz);
    if (!held->vis || !held->uvw_m || !held->time_mjd_s || !held->antenna1 ||
        !held->antenna2 || !held->freq_hz)
        TESS_FAIL(TESS_ERR_ALLOC,
                  "no memory to keep predicted visibilities of %s; name an output",
                  tess_mem_text((double)rows * (double)row_bytes));
    held->capacity = rows;
    memcpy(held->freq_hz, segment->freq_hz, (size_t)chans * sizeof *held->freq_hz);
    for (int k = 0; k < segment->num_corr; ++k)
        held->corr[k] = tess_corr_name(segment->corr[k]);
    held->info = (tess_predicted){.num_chan = chans,
                                  .num_corr = segment->num_corr,
                                  .vis = held->vis,
                                  .uvw_m = held->uvw_m,
                                  .time_mjd_s = held->time_mjd_s,
                                  .antenna1 = held->antenna1,
                                  .antenna2 = held->antenna2,
                                  .freq_hz = held->freq_hz,
                                  .corr = held->corr,
                                  .field = -1};
cleanup:
    return status;
}

static tess_status hold_segments(tess_command *command, const tess_vis_meta *meta)
{
    tess_status status = TESS_OK;
    command->segment = tess_alloc_zero(meta->num_segments, sizeof *command->segment);
    if (!command->segment) TESS_FAIL(TESS_ERR_ALLOC, "segments");
    command->num_segments = meta->num_segments;
    for (int s = 0; s < meta->num_segments; ++s)
        TESS_TRY(hold_segment(&meta->segment[s], &command->segment[s]));
cleanup:
    return status;
}

/* A tess_predict_taker. */
static tess_status take(void *context, const tess_vis_meta *meta,
                        const tess_vis_block *block)
{
    tess_status status = TESS_OK;
    tess_command *command = context;
    if (!command->segment) TESS_TRY(hold_segments(command, meta));
    if (block->num_rows == 0) goto cleanup;
    held_segment *held = &command->segment[block->segment];
    const int64_t at = held->info.num_rows;
    const size_t rows = (size_t)block->num_rows;
    const int64_t row_values = 2 * block->num_chan * block->num_corr;
    if (at + block->num_rows > held->capacity ||
        block->num_chan != held->info.num_chan ||
        block->num_corr != held->info.num_corr)
        TESS_FAIL(TESS_ERR_INTERNAL, "predicted rows beyond their segment");
    memcpy(held->vis + at * row_values, block->vis,
           rows * (size_t)row_values * sizeof *held->vis);
    memcpy(held->uvw_m + 3 * at, block->uvw_m, 3 * rows * sizeof *held->uvw_m);
    memcpy(held->time_mjd_s + at, block->time_mjd_s, rows * sizeof *held->time_mjd_s);
    memcpy(held->antenna1 + at, block->antenna1, rows * sizeof *held->antenna1);
    memcpy(held->antenna2 + at, block->antenna2, rows * sizeof *held->antenna2);
    held->info.num_rows += block->num_rows;
cleanup:
    return status;
}

static tess_status run_predict(tess_command *command, tess_comm *comm, int argc,
                               char **argv)
{
    tess_status status = TESS_OK;
    tess_fits_pixels pixels;
    tess_predict_memory memory = {.take = take, .take_context = command};
    if (command->model) {
        TESS_TRY(api_model_pixels(command->model, 0, &pixels));
        memory.pixels = &pixels;
    }
    TESS_TRY(tess_cmd_predict_memory(comm, argc, argv, &memory));
cleanup:
    return status;
}

/* ---- simulate, info ---- */

static tess_status run_simulate(tess_command *command, tess_comm *comm, int argc,
                                char **argv)
{
    (void)command;
    return tess_cmd_simulate(comm, argc, argv);
}

static tess_status run_info(tess_command *command, tess_comm *comm, int argc,
                            char **argv)
{
    tess_status status = TESS_OK;
    size_t bytes = 0;
    FILE *out = open_memstream(&command->text, &bytes);
    if (!out) TESS_FAIL(TESS_ERR_ALLOC, "description");
    status = tess_cmd_info_json(comm, argc, argv, out);
    if (fclose(out) != 0 && status == TESS_OK) TESS_FAIL(TESS_ERR_ALLOC, "description");
cleanup:
    return status;
}

/* ---- restore, draw, compare, stats, plan ---- */

/* Runs a command of the program, and keeps what it prints. */
static tess_status run_printing(tess_command *command, tess_comm *comm, int argc,
                                char **argv)
{
    tess_status status = TESS_OK;
    size_t bytes = 0;
    FILE *out = open_memstream(&command->text, &bytes);
    if (!out) TESS_FAIL(TESS_ERR_ALLOC, "text");
    tess_print_to(out);
    status = command->call(comm, argc, argv);
    tess_print_to(NULL);
    if (fclose(out) != 0 && status == TESS_OK) TESS_FAIL(TESS_ERR_ALLOC, "text");
cleanup:
    return status;
}

/* ---- what the header declares ---- */

tess_status tess_command_create(const char *name, tess_command **command)
{
#define PRINTS(command, of_files)                                                      \
    {                                                                                  \
        .name = #command, .run = run_printing, .call = tess_cmd_##command,             \
        .options.has_files = of_files                                                  \
    }
    static const tess_command known[] = {{.name = "predict", .run = run_predict},
                                         {.name = "simulate", .run = run_simulate},
                                         {.name = "info", .run = run_info},
                                         PRINTS(restore, true),
                                         PRINTS(draw, true),
                                         PRINTS(compare, true),
                                         PRINTS(stats, true),
                                         PRINTS(plan, false)};
#undef PRINTS
    tess_status status = api_call_begin();
    const tess_command *found = NULL;
    if (status != TESS_OK) return status;
    for (size_t k = 0; k < sizeof known / sizeof *known; ++k)
        if (name && strcmp(name, known[k].name) == 0) found = &known[k];
    if (!found)
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is none of predict, simulate, info, restore, draw, compare, "
                  "stats, plan",
                  name ? name : "");
    tess_command *made = tess_alloc(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "command");
    *made = *found;
    *command = made;
cleanup:
    return api_call_end(status);
}

tess_status tess_command_set(tess_command *command, const char *name, const char *value)
{
    tess_status status = api_call_begin();
    if (status != TESS_OK) return status;
    status = api_options_set(&command->options, name, value);
    return api_call_end(status);
}

void tess_command_model(tess_command *command, const tess_model *model)
{
    command->model = model;
}

tess_status tess_command_run(tess_command *command)
{
    tess_status status = api_call_begin();
    tess_comm *comm = NULL;
    api_texts argv = {0};
    if (status != TESS_OK) return status;
    api_turn_begin();
    forget_results(command);
    TESS_TRY(tess_comm_self(&comm));
    TESS_TRY(api_options_arguments(&command->options, command->name, &argv));
    TESS_TRY(command->run(command, comm, (int)argv.count, argv.text));
cleanup:
    if (status != TESS_OK) forget_results(command);
    api_texts_free(&argv);
    tess_comm_free(comm);
    api_turn_end();
    return api_call_end(status);
}

const char *tess_command_text(const tess_command *command)
{
    return command->text ? command->text : "";
}

int64_t tess_command_count(const tess_command *command)
{
    return command->num_segments;
}

const tess_predicted *tess_command_predicted(const tess_command *command, int64_t k)
{
    return k >= 0 && k < command->num_segments ? &command->segment[k].info : NULL;
}

void tess_command_destroy(tess_command *command)
{
    if (!command) return;
    forget_results(command);
    api_options_free(&command->options);
    tess_free(command);
}
