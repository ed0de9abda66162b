/* Keeps measured costs in files, and decides which rank measures. */
#define _GNU_SOURCE
#include "tess_calibrate.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tess_cache.h"
#include "tess_isa.h"
#include "tess_log.h"
#include "tess_version.h"

enum { PATH_SIZE = 1400, SUPPORTS = TESS_MAX_SUPPORT - TESS_MIN_SUPPORT + 1 };

/* One of the two files, and the part of the costs that is in it: named lists of
 * numbers. */
typedef struct cost_list {
    const char *name;
    double *value;
    int count;
} cost_list;

typedef struct cost_file {
    char path[PATH_SIZE]; /* name of the file; "" if there is no folder for it */
    char key[600]; /* what its numbers hold for: versions, processor, instruction set,
                      threads */
    cost_list list[16];
    int num_lists;
} cost_file;

static void add_list(cost_file *file, const char *name, double *value, int count)
{
    file->list[file->num_lists++] = (cost_list){name, value, count};
}

/* The name of the file for the processor, and for `threads` of it unless 0. */
static void place(cost_file *file, const char *what, int threads)
{
    char folder[900], processor[200], suffix[32] = "";
    const char *isa = tess_isa_name(tess_isa_best());
    tess_cache_processor(processor, sizeof processor);
    if (threads > 0) snprintf(suffix, sizeof suffix, "-%d", threads);
    snprintf(file->key, sizeof file->key, "tessera %s; %s; %s%s; %s",
             tess_version_full(), processor, isa, suffix, tess_version_libraries());
    if (tess_cache_folder(folder, sizeof folder))
        snprintf(file->path, sizeof file->path, "%s/%s-%s-%s%s.json", folder, what,
                 processor, isa, suffix);
}

static cost_file core_file(tess_costs *costs)
{
    cost_file file = {.num_lists = 0};
    place(&file, "costs", 0);
    add_list(&file, "vis_single_s", costs->vis_s[0] + TESS_MIN_SUPPORT, SUPPORTS);
    add_list(&file, "vis_double_s", costs->vis_s[1] + TESS_MIN_SUPPORT, SUPPORTS);
    add_list(&file, "update_single_s", costs->update_s[0] + TESS_MIN_SUPPORT, SUPPORTS);
    add_list(&file, "update_double_s", costs->update_s[1] + TESS_MIN_SUPPORT, SUPPORTS);
    add_list(&file, "sort_s", &costs->sort_s, 1);
    add_list(&file, "fft_flop_s", costs->fft_flop_s, 2);
    add_list(&file, "line_s", costs->line_s, 2);
    add_list(&file, "pixel_s", costs->pixel_s, 2);
    add_list(&file, "correct_s", &costs->correct_s, 1);
    return file;
}

static cost_file memory_file(tess_costs *costs, double *threads, int num_threads)
{
    cost_file file = {.num_lists = 0};
    place(&file, "memory", num_threads);
    add_list(&file, "touch_bytes_s", &costs->touch_bytes_s, 1);
    add_list(&file, "copy_bytes_s", &costs->copy_bytes_s, 1);
    add_list(&file, "enough_threads", threads, TESS_NUM_TRAFFIC);
    return file;
}

static bool is_good(const json_t *root, const cost_list *list)
{
    const json_t *array = json_object_get(root, list->name);
    if (json_array_size(array) != (size_t)list->count) return false;
    for (int k = 0; k < list->count; ++k) {
        const double value = json_number_value(json_array_get(array, (size_t)k));
        if (!isfinite(value) || value < 0) return false;
    }
    return true;
}

static void take(const json_t *root, const cost_list *list)
{
    const json_t *array = json_object_get(root, list->name);
    for (int k = 0; k < list->count; ++k)
        list->value[k] = json_number_value(json_array_get(array, (size_t)k));
}

/* Reads a file. Returns false, and takes nothing, if the file is not there, is damaged
 * or is of another key. */
static bool file_read(const cost_file *file)
{
    FILE *text = file->path[0] ? tess_cache_read(file->path) : NULL;
    json_t *root = text ? json_loadf(text, 0, NULL) : NULL;
    if (text) fclose(text);
    const char *key = json_string_value(json_object_get(root, "key"));
    bool good = key && strcmp(key, file->key) == 0;
    for (int k = 0; good && k < file->num_lists; ++k)
        good = is_good(root, &file->list[k]);
    for (int k = 0; good && k < file->num_lists; ++k)
        take(root, &file->list[k]);
    json_decref(root);
    return good;
}

static json_t *file_json(const cost_file *file)
{
    json_t *root = json_object();
    json_object_set_new(root, "key", json_string(file->key));
    for (int k = 0; k < file->num_lists; ++k) {
        json_t *array = json_array();
        for (int j = 0; j < file->list[k].count; ++j)
            json_array_append_new(array, json_real(file->list[k].value[j]));
        json_object_set_new(root, file->list[k].name, array);
    }
    return root;
}

/* Writes the file under another name, and renames it. Unless `replace`, a file that
 * another run has made meanwhile stays. */
static void file_write(const cost_file *file, bool replace)
{
    char temp[TESS_OUT_FILE_NAME];
    FILE *text = file->path[0] ? tess_cache_begin(file->path, temp) : NULL;
    if (!text) return;
    json_t *root = file_json(file);
    const bool written =
        json_dumpf(root, text, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) == 0;
    json_decref(root);
    tess_cache_end(text, written, replace, temp, file->path);
}

/* Takes the numbers of the file; if it has none, takes those that `measure` finds, and
 * keeps them for other runs. */
static tess_status known_or_measured(const cost_file *file, tess_calibrate_mode mode,
                                     tess_status (*measure)(void *), void *context)
{
    tess_status status = TESS_OK;
    if (mode == TESS_CALIBRATE_ONCE && file_read(file)) return TESS_OK;
    TESS_TRY(measure(context));
    const bool there = file->path[0] && access(file->path, F_OK) == 0;
    file_write(file, there || mode == TESS_CALIBRATE_ANEW);
    if (!there) file_read(file); /* another run may have been faster */
cleanup:
    return status;
}

typedef struct memory_context {
    tess_costs *costs;
    double *enough; /* [TESS_NUM_TRAFFIC] */
    int threads;
} memory_context;

static tess_status measure_core(void *context)
{
    return tess_calibrate_core(context);
}

static tess_status measure_memory(void *context)
{
    const memory_context *memory = context;
    const tess_status status = tess_calibrate_memory(memory->threads, memory->costs);
    for (int k = 0; k < TESS_NUM_TRAFFIC; ++k)
        memory->enough[k] = memory->costs->enough_threads[k];
    return status;
}

static void take_enough(const double *enough, tess_costs *costs)
{
    for (int k = 0; k < TESS_NUM_TRAFFIC; ++k)
        costs->enough_threads[k] = enough[k] < INT_MAX ? (int)enough[k] : 0;
}

static tess_status calibrate_here(tess_calibrate_mode mode, int threads,
                                  tess_costs *costs)
{
    tess_status status = TESS_OK;
    double enough[TESS_NUM_TRAFFIC] = {0};
    memory_context memory = {costs, enough, threads};
    *costs = tess_costs_builtin;
    const cost_file core = core_file(costs);
    const cost_file of_memory = memory_file(costs, enough, threads);
    TESS_TRY(known_or_measured(&core, mode, measure_core, costs));
    TESS_TRY(known_or_measured(&of_memory, mode, measure_memory, &memory));
    costs->measured = true;
    take_enough(enough, costs);
cleanup:
    return status;
}

bool tess_calibrate_allowed(void)
{
    const char *value = getenv("TESS_CALIBRATION");
    return !value || strcmp(value, "off") != 0;
}

tess_status tess_calibrate(tess_comm *comm, tess_calibrate_mode mode, int threads,
                           tess_costs *costs)
{
    tess_status status = TESS_OK;
    tess_costs found;
    memset(&found, 0, sizeof found);
    if (tess_comm_rank(comm) == 0) status = calibrate_here(mode, threads, &found);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_bcast(comm, &found, sizeof found, 0));
    *costs = found;
cleanup:
    return status;
}

tess_status tess_calibrate_kept(tess_comm *comm, int threads, tess_costs *costs)
{
    tess_costs found = tess_costs_builtin;
    double enough[TESS_NUM_TRAFFIC] = {0};
    if (tess_comm_rank(comm) == 0) {
        const cost_file of_memory = memory_file(&found, enough, threads);
        if (file_read(&of_memory)) take_enough(enough, &found);
    }
    const tess_status status = tess_comm_bcast(comm, &found, sizeof found, 0);
    *costs = status == TESS_OK ? found : tess_costs_builtin;
    return status;
}
