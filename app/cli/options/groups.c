/* The groups of options that several subcommands share: which visibilities, how to
 * grid, and how to lay out the work. */
#define _GNU_SOURCE
#include "groups.h"

#include <errno.h>
#include <float.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "option_rules.h"
#include "options.h"
#include "tess_backend.h"
#include "tess_calibrate.h"
#include "tess_cli.h"
#include "tess_gcf.h"
#include "tess_mem.h"
#include "tess_out_file.h"
#include "tess_vis.h"

/* ---- which visibilities ---- */

enum {
    OPT_DATACOLUMN = 0x100,
    OPT_SUBTRACT_COLUMN,
    OPT_FIELD,
    OPT_SPW,
    OPT_CHANNELS,
    OPT_INTERVALS,
    OPT_UVRANGE,
    OPT_MIN_UVW,
    OPT_MAX_UVW,
    OPT_EVEN,
    OPT_ODD,
    OPT_CENTER,
};

static const struct argp_option selection_options[] = {
    {"datacolumn", OPT_DATACOLUMN, "NAME", 0,
     "Column of a MeasurementSet (default CORRECTED_DATA if there, else DATA)", 0},
    {"subtract-column", OPT_SUBTRACT_COLUMN, "NAME", 0,
     "Subtract this column of the MeasurementSet, like MODEL_DATA, from the data", 0},
    {"field", OPT_FIELD, "F", 0,
     "Field or source by name or number, for sets with several; or some of one phase "
     "centre, like 0,3, or all",
     0},
    {"spw", OPT_SPW, "LIST", 0,
     "Spectral windows (IFs) like 0,2-3, counted from 0 (default all)", 0},
    {"channels", OPT_CHANNELS, "A:B", 0,
     "Channels A to B-1 of each spectral window (default all)", 0},
    {"intervals", OPT_INTERVALS, "A:B", 0, "Time steps A to B-1 (default all)", 0},
    {"uvrange", OPT_UVRANGE, "MIN:MAX", 0,
     "Baseline lengths in wavelengths, like 100:20k (default all)", 0},
    {"minuvw-m", OPT_MIN_UVW, "METRES", OPTION_HIDDEN,
     "Baselines of at least this length", 0},
    {"maxuvw-m", OPT_MAX_UVW, "METRES", OPTION_HIDDEN,
     "Baselines of at most this length", 0},
    {"even-timesteps", OPT_EVEN, NULL, OPTION_HIDDEN,
     "Every second time step from the first on: the noise is in the difference from an "
     "image of the others",
     0},
    {"odd-timesteps", OPT_ODD, NULL, OPTION_HIDDEN,
     "Every second time step from the second on", 0},
    {"center", OPT_CENTER, "RA,DEC", 0,
     "Rotate phase centres to this position, like 12:30:49.4,+12:23:28: observations, "
     "and without --field all fields in them, go into one image",
     0},
    {0},
};

static error_t parse_selection(int key, char *arg, struct argp_state *state)
{
    tess_selection *selection = state->input;
    tess_status status = TESS_OK;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &selection->by;
        return 0;
    case OPT_DATACOLUMN:
        selection->data_column = arg;
        break;
    case OPT_SUBTRACT_COLUMN:
        selection->subtract_column = arg;
        break;
    case OPT_FIELD:
        selection->field = arg;
        break;
    case OPT_SPW:
        status = tess_parse_list(arg, (int)(sizeof selection->spw / sizeof(int)),
                                 selection->spw, &selection->num_spw);
        break;
    case OPT_CHANNELS:
        status = tess_parse_range(arg, &selection->chan_first, &selection->chan_end);
        break;
    case OPT_INTERVALS:
        status =
            tess_parse_range(arg, &selection->interval_first, &selection->interval_end);
        break;
    case OPT_UVRANGE:
        status = tess_parse_uvrange(arg, &selection->uv_min_lambda,
                                    &selection->uv_max_lambda);
        break;
    case OPT_MIN_UVW:
        status = tess_parse_number(arg, 0, DBL_MAX, &selection->uvw_min_m);
        break;
    case OPT_MAX_UVW:
        status = tess_parse_number(arg, DBL_MIN, DBL_MAX, &selection->uvw_max_m);
        break;
    case OPT_EVEN:
    case OPT_ODD:
        selection->time_steps = key == OPT_EVEN ? TESS_EVEN_STEPS : TESS_ODD_STEPS;
        break;
    case OPT_CENTER:
        status = tess_parse_radec(arg, &selection->center_ra_rad,
                                  &selection->center_dec_rad);
        selection->has_center = true;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return tess_cli_result(state, selection_options, key, arg, status);
}

static const struct argp_child selection_children[] = {
    {&tess_expressions_argp, 0, "Selection as in CASA:", 3}, {0}};

const struct argp tess_selection_argp = {.options = selection_options,
                                         .parser = parse_selection,
                                         .children = selection_children};

/* ---- which rows, by expressions ---- */

enum {
    OPT_SCAN = 0x180,
    OPT_ANTENNA,
    OPT_TIMERANGE,
    OPT_SELECT_FIELD,
    OPT_SELECT_SPW,
    OPT_SELECT_SCAN,
    OPT_SELECT_TIME,
    OPT_SELECT_UVRANGE,
    OPT_SELECT_ANTENNA,
    OPT_SELECT_INTENT,
    OPT_SELECT_TAQL
};

static const struct argp_option expression_options[] = {
    {"scan", OPT_SCAN, "LIST", 0, "Scans of a MeasurementSet, like 1~3,7", 0},
    {"antenna", OPT_ANTENNA, "LIST", 0,
     "Baselines of these antennas, by name or number; A,B& between them, A&B from one "
     "to the other, !A without it",
     0},
    {"timerange", OPT_TIMERANGE, "T~T", 0,
     "Rows of this time (UTC), like 2026/01/31/20:15:00~20:45:00, >T or <T", 0},
    {"select-field", OPT_SELECT_FIELD, "EXPR", OPTION_HIDDEN,
     "Fields of a MeasurementSet by CASA's syntax (MSSelection), like 3C*,0~2", 0},
    {"select-spw", OPT_SELECT_SPW, "EXPR", OPTION_HIDDEN,
     "... spectral windows and channels, like 0:10~20;30~40,1:1.41~1.42GHz", 0},
    {"select-scan", OPT_SELECT_SCAN, "EXPR", OPTION_HIDDEN, "... scans (--scan)", 0},
    {"select-time", OPT_SELECT_TIME, "EXPR", OPTION_HIDDEN, "... times (--timerange)",
     0},
    {"select-uvrange", OPT_SELECT_UVRANGE, "EXPR", OPTION_HIDDEN,
     "... baselines by length, like 0.1~5klambda or >200m", 0},
    {"select-antenna", OPT_SELECT_ANTENNA, "EXPR", OPTION_HIDDEN,
     "... baselines by antenna (--antenna)", 0},
    {"select-intent", OPT_SELECT_INTENT, "EXPR", OPTION_HIDDEN,
     "... what was observed for, like *TARGET*", 0},
    {"select-taql", OPT_SELECT_TAQL, "EXPR", OPTION_HIDDEN,
     "Rows for which this condition of TaQL holds, like 'FEED1 == 0'", 0},
    {0},
};

#define BY(member) offsetof(tess_vis_expressions, member)

static const tess_option_rule expression_rules[] = {
    {OPT_SCAN, tess_take_text, .offset = BY(scan)},
    {OPT_ANTENNA, tess_take_text, .offset = BY(antenna)},
    {OPT_TIMERANGE, tess_take_text, .offset = BY(time)},
    {OPT_SELECT_FIELD, tess_take_text, .offset = BY(field)},
    {OPT_SELECT_SPW, tess_take_text, .offset = BY(spw)},
    {OPT_SELECT_SCAN, tess_take_text, .offset = BY(scan)},
    {OPT_SELECT_TIME, tess_take_text, .offset = BY(time)},
    {OPT_SELECT_UVRANGE, tess_take_text, .offset = BY(uvrange)},
    {OPT_SELECT_ANTENNA, tess_take_text, .offset = BY(antenna)},
    {OPT_SELECT_INTENT, tess_take_text, .offset = BY(intent)},
    {OPT_SELECT_TAQL, tess_take_text, .offset = BY(taql)},
    {0}};

#undef BY

static error_t parse_expression(int key, char *arg, struct argp_state *state)
{
    tess_status status = TESS_OK;
    if (!tess_option_take(expression_rules, key, arg, state->input, &status))
        return ARGP_ERR_UNKNOWN;
    return tess_cli_result(state, expression_options, key, arg, status);
}

const struct argp tess_expressions_argp = {.options = expression_options,
                                           .parser = parse_expression};

/* ---- how to grid ---- */

enum {
    OPT_ACCURACY = 0x100,
    OPT_W,
    OPT_BACKEND,
    OPT_STRATEGY,
    OPT_OVERSAMPLING,
    OPT_W_SPACING,
    OPT_NO_KERNEL_CACHE,
    OPT_GCF,
    OPT_WRITE_GCF
};

#define ACCURACY_DEFAULT 1e-4
#define ACCURACY_MIN     1e-12
#define ACCURACY_MAX     1e-2

static const struct argp_option gridding_options[] = {
    {"accuracy", OPT_ACCURACY, "E", 0,
     "Relative L2 error of the result, 1e-2 to 1e-12 (default 1e-4), or, of an image "
     "of N "
     "pixels whose visibilities cancel, relative to sqrt(N sum |W V|^2) / sum W; below "
     "about 1e-5 the work is done in double precision",
     0},
    {"w", OPT_W, "METHOD", 0,
     "How to treat w: stacking, projection, none, or auto (the default: stacking "
     "unless w has no effect at this accuracy). projection grids with tables of "
     "w-kernels and cannot keep an accuracy below 6e-3; an error of more than 0.3 is "
     "refused",
     0},
    {"backend", OPT_BACKEND, TESS_BACKEND_WORDS, 0, "Where to compute (default auto)",
     0},
    {"strategy", OPT_STRATEGY, "auto|NAME", OPTION_HIDDEN,
     "How --w projection grids with its tables: serial, atomic, tiled or factored; on "
     "a "
     "GPU tiled, factored, scatter, gather, window or, for images, coarse or warp "
     "(default auto: what 'bench gcf --tune' found the fastest, else factored, or "
     "tiled "
     "for narrow kernels on a GPU)",
     0},
    {"oversampling", OPT_OVERSAMPLING, "auto|N", OPTION_HIDDEN,
     "Offsets of a visibility in its cell that --w projection has kernels for, 1 to 64 "
     "(default auto: as many as the accuracy needs, 8 where 64 are not enough)",
     0},
    {"w-spacing", OPT_W_SPACING, "sqrt|linear", OPTION_HIDDEN,
     "Planes of --w projection are spaced evenly in the root of |w| (default) or in "
     "|w|",
     0},
    {"gcf", OPT_GCF, "FILE.fits", OPTION_HIDDEN,
     "Convolution functions for --w projection in place of w-kernels: a FITS cube of "
     "GCFSUPP x GCFOVER + 1 pixels along both axes, planes of w, and real and "
     "imaginary "
     "part, with keywords GCFSUPP (cells), GCFOVER (pixels a cell), "
     "GCFWSPAC (SQRT or LINEAR), GCFWMAX (wavelengths), GCFFLDL and GCFFLDM (field of "
     "the grid, direction cosines)",
     0},
    {"write-gcf", OPT_WRITE_GCF, "FILE.fits", OPTION_HIDDEN,
     "Write the kernels of --w projection as such a cube", 0},
    {"no-kernel-cache", OPT_NO_KERNEL_CACHE, NULL, OPTION_HIDDEN,
     "Compute the tables of --w projection anew. Without it up to 4 GiB of them are "
     "kept "
     "in TESS_CACHE_DIR, XDG_CACHE_HOME/tessera or ~/.cache/tessera",
     0},
    {0},
};

static tess_status parse_backend(char *text, const char **backend)
{
    static const char *const names[] = {"auto", "cpu", TESS_BACKEND_DEVICE};
    tess_status status = TESS_OK;
    for (size_t k = 0; k < sizeof names / sizeof *names; ++k)
        if (strcmp(text, names[k]) == 0) {
            *backend = names[k];
            goto cleanup;
        }
    TESS_FAIL(TESS_ERR_USAGE, "'%s' is not a backend; write " TESS_BACKEND_WORDS, text);
cleanup:
    return status;
}

static tess_status parse_oversampling(const char *text, int *oversampling)
{
    tess_status status = TESS_OK;
    int64_t number = 0;
    if (strcmp(text, "auto") != 0)
        TESS_TRY(tess_parse_integer(text, 1, TESS_GCF_MAX_OVERSAMPLING, &number));
    *oversampling = (int)number;
cleanup:
    return status;
}

/* Parses the options that have an effect with --w projection only. */
static bool parse_projection(int key, char *arg, tess_gridding *gridding,
                             tess_status *status)
{
    tess_projection_opts *opts = &gridding->projection;
    switch (key) {
    case OPT_STRATEGY:
        *status = tess_parse_strategy(arg, opts);
        gridding->only_projection = "strategy";
        return true;
    case OPT_OVERSAMPLING:
        *status = parse_oversampling(arg, &opts->oversampling);
        gridding->only_projection = "oversampling";
        return true;
    case OPT_W_SPACING:
        *status = tess_parse_w_spacing(arg, &opts->is_linear);
        gridding->only_projection = "w-spacing";
        return true;
    case OPT_GCF:
        gridding->gcf = arg;
        gridding->only_projection = "gcf";
        return true;
    case OPT_WRITE_GCF:
        gridding->write_gcf = arg;
        gridding->only_projection = "write-gcf";
        return true;
    case OPT_NO_KERNEL_CACHE:
        opts->cached = false;
        gridding->only_projection = "no-kernel-cache";
        return true;
    default:
        return false;
    }
}

static error_t parse_gridding(int key, char *arg, struct argp_state *state)
{
    tess_gridding *gridding = state->input;
    tess_status status = TESS_OK;
    switch (key) {
    case ARGP_KEY_INIT:
        *gridding = (tess_gridding){
            .accuracy = ACCURACY_DEFAULT, .w_mode = TESS_W_AUTO, .backend = "auto"};
        tess_projection_opts_default(&gridding->projection);
        tess_cli_default(state, "accuracy", "1e-4");
        tess_cli_default(state, "w", "auto");
        tess_cli_default(state, "backend", "auto");
        return 0;
    case OPT_ACCURACY:
        status =
            tess_parse_number(arg, ACCURACY_MIN, ACCURACY_MAX, &gridding->accuracy);
        break;
    case OPT_W:
        status = tess_parse_w_mode(arg, &gridding->w_mode);
        break;
    case OPT_BACKEND:
        status = parse_backend(arg, &gridding->backend);
        break;
    default:
        if (!parse_projection(key, arg, gridding, &status)) return ARGP_ERR_UNKNOWN;
    }
    return tess_cli_result(state, gridding_options, key, arg, status);
}

const struct argp tess_gridding_argp = {.options = gridding_options,
                                        .parser = parse_gridding};

/* ---- how to lay out the work ---- */

enum {
    OPT_THREADS = 0x100,
    OPT_MEMORY,
    OPT_NO_CALIBRATION,
    OPT_NO_SYNC,
    OPT_LOCK_TIMEOUT,
};

static const struct argp_option layout_options[] = {
    {"threads", OPT_THREADS, "N", 0,
     "Threads per rank (default from the batch job, OMP_NUM_THREADS or the cores)", 0},
    {"memory", OPT_MEMORY, "SIZE", 0,
     "Memory per node, shared by its ranks, like 8GB or 8GiB, or 50% of what the batch "
     "job may use (default 100%)",
     0},
    {"no-sync", OPT_NO_SYNC, NULL, 0,
     "Do not wait until the disk has the files: they get their names when they are "
     "written, as those of cp do. A machine that loses its power may leave them "
     "incomplete",
     0},
    {"lock-timeout", OPT_LOCK_TIMEOUT, "TIME", 0, TESS_LOCK_TIMEOUT_HELP, 0},
    {"no-calibration", OPT_NO_CALIBRATION, NULL, OPTION_HIDDEN,
     "Plan by built-in costs. Without it, or TESS_CALIBRATION=off in the environment, "
     "runs of more than some seconds are planned by what this machine takes: measured "
     "once (0.3 s) and kept in TESS_CACHE_DIR, XDG_CACHE_HOME/tessera or "
     "~/.cache/tessera. --reproducible and --checkpoint imply it",
     0},
    {0},
};

static tess_status take_memory(const tess_option_rule *rule, const char *text,
                               void *value)
{
    tess_status status = TESS_OK;
    char number[32] = "";
    double percent = 0;
    const size_t length = strlen(text);
    (void)rule;
    if (length == 0 || length > sizeof number || text[length - 1] != '%')
        return tess_parse_memory(text, value);
    memcpy(number, text, length - 1);
    TESS_TRY(tess_parse_number(number, 0.01, 100, &percent));
    *(int64_t *)value = (int64_t)(percent / 100 * (double)tess_mem_node_limit_bytes());
cleanup:
    return status;
}

/* An option that switches something off. */
static tess_status take_off(const tess_option_rule *rule, const char *text, void *value)
{
    (void)rule, (void)text;
    *(bool *)value = false;
    return TESS_OK;
}

static tess_status take_no_sync(const tess_option_rule *rule, const char *text,
                                void *value)
{
    (void)rule, (void)text, (void)value;
    tess_out_file_set_sync(false);
    return TESS_OK;
}

static tess_status take_lock_timeout(const tess_option_rule *rule, const char *text,
                                     void *value)
{
    (void)rule, (void)value;
    return tess_cli_lock_timeout(text);
}

tess_status tess_cli_lock_timeout(const char *text)
{
    tess_status status = TESS_OK;
    double seconds = 0;
    if (strcmp(text, "0") != 0) TESS_TRY(tess_parse_duration(text, &seconds));
    tess_vis_set_lock_timeout(seconds);
cleanup:
    return status;
}

#define AT(member) offsetof(tess_layout, member)

enum { MAX_THREADS = 4096 };

static const tess_option_rule layout_rules[] = {
    {OPT_THREADS, tess_take_int, .offset = AT(threads), .min = 1, .max = MAX_THREADS},
    {OPT_MEMORY, take_memory, .offset = AT(memory_bytes)},
    {OPT_NO_CALIBRATION, take_off, .offset = AT(calibrate)},
    {OPT_NO_SYNC, take_no_sync, .offset = 0},
    {OPT_LOCK_TIMEOUT, take_lock_timeout, .offset = 0},
    {0},
};

#undef AT

static error_t parse_layout(int key, char *arg, struct argp_state *state)
{
    tess_layout *layout = state->input;
    tess_status status = TESS_OK;
    if (key == ARGP_KEY_INIT) {
        layout->calibrate = tess_calibrate_allowed();
        tess_out_file_set_sync(true); /* for an earlier run of this process */
        tess_vis_set_lock_timeout(TESS_VIS_LOCK_TIMEOUT_S);
        return 0;
    }
    if (!tess_option_take(layout_rules, key, arg, layout, &status))
        return ARGP_ERR_UNKNOWN;
    return tess_cli_result(state, layout_options, key, arg, status);
}

const struct argp tess_layout_argp = {.options = layout_options,
                                      .parser = parse_layout};
