/* Parses the options of `tessera bench gcf`. */
#include "bench_gcf_options.h"

#include <stddef.h>
#include <string.h>

#include "option_rules.h"
#include "tess_backend.h"
#include "tess_bench_gcf_names.h"
#include "tess_cli.h"
#include "tess_const.h"

static const char doc[] =
    "Time gridding and degridding with tables of w-kernels, by the strategies that "
    "studies of it have published and 'factored', in turns on the same points, and "
    "print a table on standard output. Lists are swept: every combination is timed "
    "with every strategy."
    "\v"
    "Strategies: serial (one thread, as points come), atomic (threads add atomically), "
    "private (a whole grid a thread), tiled (points sorted into tiles of 64 x 64 "
    "cells, buffers of their own), factored (the same, kernels as sums of a few "
    "products of "
    "one-dimensional tables), computed (atomic, with kernels of a formula computed, "
    "not "
    "read: --formula). On a GPU "
    "(--backend " TESS_BACKEND_DEVICE
    "), to grid: scatter (a block a visibility, atomic additions), "
    "gather (a thread a cell, points by tile), window (sums stay in registers while a "
    "window of the kernel's size moves), coarse (so too, several cells a thread), "
    "tiled (tiles of sums in registers, points listed by tile and kernel), warp (a "
    "warp "
    "a visibility, atomic additions); to degrid: gather (a warp a visibility), scatter "
    "(a thread a cell, points by tile), window (cells stay in registers while a window "
    "moves), tiled (cells in shared memory, taps in registers for all points of a tile "
    "that read them), computed (gather, with kernels computed); both: factored (in "
    "halves on tensor cores for errors from 1e-3, "
    "in pairs of halves from 3e-5). The default is all that are there and know the "
    "switches given, but for serial and private, and computed without --formula."
    "\n\n"
    "Rates count 8 FLOP per visibility, cell and polarisation of the whole kernel, "
    "over sorting and (de)gridding, on a GPU over the strategy's kernels alone "
    "('seconds'), beside which placing and sorting points there ('sort_s') and copies "
    "('copy_s') are given; 'ratio' is the rate over that of the first strategy, and "
    "'difference' the relative L2 difference from its result. 'rank' is the mean "
    "number of products, 'table_mib' the size of the taps, or of the factors. 'joules' "
    "are of one run over the visibilities, kernels alone on a GPU, with 'watts', 'mhz' "
    "and 'celsius' meanwhile. All planes have the same support; w is such that the "
    "widest kernel fills it. Runs on the first rank only.\n\n"
    "Sets are those of a study of tiled gridding (github.com/OxfordSKA/GPU-gridding), "
    "simulated: synthetic (2152800 visibilities, 714 planes of kernels of up to 72 "
    "cells) "
    "and low-30, low-56, low-82 (31395840 of SKA1-Low, from an elevation of 30, 56 and "
    "82 "
    "degrees on; 922, 601 and 339 planes of up to 192, 144 and 88 cells; 10000 x 10000 "
    "cells). They bring their own --gcf, --size, --planes, --oversampling and --field; "
    "'cells' are all updates, 'study_cells' the study's.\n\n"
    "--study measures the tables of the field's studies, beside what they published: "
    "size (of kernels, 8 to 512), points (1e3 to 1e8), image (grids of 1024 to 16384), "
    "pol, precision, atomics (native or compare-and-swap), computed (kernels of a "
    "formula) and sets, as CSV, "
    "report.md "
    "and plots. Options that are given stand for its lists: --gcf, --vis and --size of "
    "the tables that vary them, the nearest to the usual value in others. Without them "
    "a GPU degrids 4e6 visibilities on 8192 x 8192 cells in size and precision, "
    "else 4e5 on 4096 x 4096, as published, and fewer where --within is short; what "
    "was "
    "published stands beside as many on as large a grid alone.\n\n"
    "Examples:\n"
    "  tessera bench gcf --gcf 8,16,32,64,128 --strategy serial,tiled --threads 1\n"
    "  tessera bench gcf --gcf 128 --strategy tiled,factored --order random,tracks \\\n"
    "      --error 1e-3 --operation grid,degrid --markdown\n"
    "  tessera bench gcf --order low-56 --strategy tiled,factored --repeat 1\n"
    "  tessera bench gcf --study all --out study --backend " TESS_BACKEND_DEVICE
    " --within 5\n"
    "  tessera bench gcf --tune --vis 3e4 --size 1024\n"
    "  tessera bench gcf --backend " TESS_BACKEND_DEVICE
    " --gcf 32,128 --vis 4e5 --precision "
    "single,double";

enum {
    OPT_BACKEND = 0x100,
    OPT_OPERATION,
    OPT_STRATEGY,
    OPT_GCF,
    OPT_VIS,
    OPT_SIZE,
    OPT_POL,
    OPT_PRECISION,
    OPT_ORDER,
    OPT_STUDY,
    OPT_OUT,
    OPT_OVERWRITE,
    OPT_WITHIN,
    OPT_SHRINK,
    OPT_PLANES,
    OPT_OVERSAMPLING,
    OPT_FIELD,
    OPT_ERROR,
    OPT_LEAST,
    OPT_SHAPE,
    OPT_SINGLE_TAPS,
    OPT_MERGE,
    OPT_TUNE,
    OPT_FORMULA,
    OPT_FAST_MATH,
    OPT_THREADS,
    OPT_REPEAT,
    OPT_MARKDOWN
};

static const struct argp_option options[] = {
    {"backend", OPT_BACKEND, "cpu|" TESS_BACKEND_DEVICE, 0,
     "Where to time it (default cpu)", 0},
    {"operation", OPT_OPERATION, "grid|degrid,...", 0, "What to time (default grid)",
     0},
    {"strategy", OPT_STRATEGY, "NAME,...", 0,
     "Strategies, see below (default atomic,tiled,factored, or those of a GPU)", 0},
    {"gcf", OPT_GCF, "N,...", 0,
     "Width of the kernels [cells], multiples of 8 up to 512 (default 8,32,128)", 0},
    {"vis", OPT_VIS, "N,...", 0, "Visibilities, about (default 1e5)", 0},
    {"size", OPT_SIZE, "N,...", 0, "Cells of the grid along each axis (default 4096)",
     0},
    {"pol", OPT_POL, "1|2|4,...", 0, "Polarisations in one pass (default 1)", 0},
    {"precision", OPT_PRECISION, "single|double,...", 0, "Default single", 0},
    {"order", OPT_ORDER, "random|sorted|tracks|baselines|SET,...", 0,
     "Points anywhere in any order (default), the same sorted by tiles, tracks of a "
     "dense array in order of time, or track after track, or a published data set, see "
     "below",
     0},
    {"study", OPT_STUDY, "TABLE,...|all", 0,
     "Measure the tables of the field's studies, see below", 0},
    {"out", OPT_OUT, "FOLDER", 0,
     "Where a study is written: a new folder, or an empty one", 0},
    {"overwrite", OPT_OVERWRITE, NULL, 0,
     "Replace files of a study, or of --intensity, that are there", 0},
    {"within", OPT_WITHIN, "MINUTES", 0,
     "About how long a study may grid: its cases have as many points. Joules are of "
     "it, "
     "but take .2 s a line at least (default 10)",
     0},
    {"shrink", OPT_SHRINK, "F", 0,
     "Sets: of an array F times as large, with so many times fewer cells and planes "
     "(default 1)",
     0},
    {"planes", OPT_PLANES, "N", 0, "Planes of w (default 8)", 0},
    {"oversampling", OPT_OVERSAMPLING, "N", 0, "Offsets per cell (default 8)", 0},
    {"field", OPT_FIELD, "ANGLE", 0, "Field of the whole grid (default 10deg)", 0},
    {"error", OPT_ERROR, "E", 0,
     "factored: error of a kernel, relative L2 (default 1e-3)", 0},
    {"least-cells", OPT_LEAST, "N", 0,
     "factored: kernels narrower than so many cells a product are taken from their "
     "table (default 32; 0: none)",
     0},
    {"shape", OPT_SHAPE, "N", 0,
     "tiled on a GPU: how a block's threads lie, 1 to 6: 512, 256, 512, 256, 256 and "
     "128 threads, 1, 2, 2, 4, 2 and 4 blocks a multiprocessor, 256, 256, 128, 128, "
     "384 "
     "and 256 bytes of sums a thread (default 0: chosen)",
     0},
    {"single-taps", OPT_SINGLE_TAPS, NULL, 0,
     "Strategies with tables: in double precision, read taps in single", 0},
    {"merge", OPT_MERGE, NULL, 0,
     "Visibilities of one offset, cell, plane and sign of w are made one before, on "
     "the host: 'gflops' count what is left ('merged'), 'all_gflops' all",
     0},
    {"formula", OPT_FORMULA, NULL, 0,
     "Kernels exp(-B r + 2 pi i w (1 - sqrt(1 - r^2))) in place of w-kernels, which "
     "'computed' computes",
     0},
    {"fast-math", OPT_FAST_MATH, NULL, 0,
     "computed: in single precision by the GPU's fast functions, or short series", 0},
    {"tune", OPT_TUNE, NULL, 0,
     "Time tiled and factored, on a GPU tiled in every shape, for kernels of 8 to 128 "
     "cells in both precisions and directions, and keep which are the fastest on this "
     "processor or kind of GPU in TESS_CACHE_DIR, XDG_CACHE_HOME/tessera or "
     "~/.cache/tessera: tessera image --w projection --strategy auto takes those",
     0},
    {"threads", OPT_THREADS, "N", 0, "Threads (default as for tessera image)", 0},
    {"repeat", OPT_REPEAT, "N", 0, "Runs, besides the first, that count (default 3)",
     0},
    {"markdown", OPT_MARKDOWN, NULL, 0, "A table to be read, not CSV", 0},
    {0},
};

static const struct argp_child children[] = {
    {&tess_bench_gcf_probes_argp, 0, "Other ways to do it, as studies had them:", 3},
    {&tess_cli_common_argp, 0, "General:", 4},
    {0},
};

static tess_status take_strategies(const tess_option_rule *rule, const char *text,
                                   void *value)
{
    const char *name[TESS_STUDY_NUM_STRATEGIES + 1] = {NULL};
    tess_option_rule with_names = *rule;
    for (int k = 0; k < TESS_STUDY_NUM_STRATEGIES; ++k)
        name[k] = tess_study_name((tess_study_strategy)k);
    with_names.words = name;
    return tess_bench_take_words(&with_names, text, value);
}

static tess_status take_tables(const tess_option_rule *rule, const char *text,
                               void *value)
{
    tess_bench_list all = {.count = TESS_BENCH_GCF_NUM_TABLES};
    if (strcmp(text, "all") != 0) return tess_bench_take_words(rule, text, value);
    for (int k = 0; k < all.count; ++k)
        all.value[k] = k;
    *(tess_bench_list *)value = all;
    return TESS_OK;
}

/* Widths of kernels: multiples of TESS_GCF_STEP. */
static tess_status take_widths(const tess_option_rule *rule, const char *text,
                               void *value)
{
    tess_status status = TESS_OK;
    tess_bench_list widths;
    TESS_TRY(tess_bench_take_integers(rule, text, &widths));
    for (int k = 0; k < widths.count; ++k)
        if ((int)widths.value[k] % TESS_GCF_STEP != 0)
            TESS_FAIL(TESS_ERR_USAGE, "'%g' is not a multiple of %d", widths.value[k],
                      TESS_GCF_STEP);
    *(tess_bench_list *)value = widths;
cleanup:
    return status;
}

/* Numbers of polarisations: 1, 2 or 4. */
static tess_status take_pols(const tess_option_rule *rule, const char *text,
                             void *value)
{
    tess_status status = TESS_OK;
    tess_bench_list pols;
    TESS_TRY(tess_bench_take_integers(rule, text, &pols));
    for (int k = 0; k < pols.count; ++k)
        if ((int)pols.value[k] == 3)
            TESS_FAIL(TESS_ERR_USAGE, "'3' is not valid; write 1, 2 or 4");
    *(tess_bench_list *)value = pols;
cleanup:
    return status;
}

#define AT(member) offsetof(tess_bench_gcf_args, member)

static const tess_option_rule rules[] = {
    {OPT_BACKEND, tess_take_word, .offset = AT(opts.backend),
     .words = tess_bench_gcf_backend_name},
    {OPT_OPERATION, tess_bench_take_words, .offset = AT(operation),
     .words = tess_bench_gcf_operation_name, .given = AT(given.operation)},
    {OPT_STRATEGY, take_strategies, .offset = AT(strategy)},
    {OPT_GCF, take_widths, .offset = AT(gcf), .min = TESS_GCF_STEP, .max = 512,
     .given = AT(given.gcf)},
    {OPT_VIS, tess_bench_take_numbers, .offset = AT(vis), .min = 1, .max = 1e12,
     .given = AT(given.vis)},
    {OPT_SIZE, tess_bench_take_integers, .offset = AT(size), .min = 16, .max = 1000000,
     .given = AT(given.size)},
    {OPT_POL, take_pols, .offset = AT(pol), .min = 1, .max = 4},
    {OPT_PRECISION, tess_bench_take_words, .offset = AT(precision),
     .words = tess_bench_gcf_precision_name},
    {OPT_ORDER, tess_bench_take_words, .offset = AT(order),
     .words = tess_bench_gcf_order_name},
    {OPT_STUDY, take_tables, .offset = AT(study.tables),
     .words = tess_bench_gcf_table_name},
    {OPT_OUT, tess_take_text, .offset = AT(study.out)},
    {OPT_OVERWRITE, tess_take_flag, .offset = AT(overwrite)},
    {OPT_WITHIN, tess_take_number, .offset = AT(study.within_min), .min = 0.01,
     .max = 1e5},
    {OPT_SHRINK, tess_take_number, .offset = AT(shrink),
     .min = TESS_BENCH_GCF_LEAST_SHRINK, .max = 1},
    {OPT_PLANES, tess_take_int, .offset = AT(planes), .min = 1,
     .max = TESS_GCF_MAX_PLANES},
    {OPT_OVERSAMPLING, tess_take_int, .offset = AT(oversampling), .min = 1,
     .max = TESS_GCF_MAX_OVERSAMPLING},
    {OPT_FIELD, tess_take_scale, .offset = AT(field_rad)},
    {OPT_ERROR, tess_take_number, .offset = AT(opts.factor_error), .min = 1e-12,
     .max = 0.5},
    {OPT_LEAST, tess_take_int, .offset = AT(opts.least_cells),
     .max = TESS_GCF_MAX_SUPPORT},
    {OPT_SHAPE, tess_take_int, .offset = AT(opts.shape), .max = TESS_GCF_SHAPES},
    {OPT_SINGLE_TAPS, tess_take_flag, .offset = AT(opts.single_taps)},
    {OPT_MERGE, tess_take_flag, .offset = AT(opts.merge)},
    {OPT_TUNE, tess_take_flag, .offset = AT(tune)},
    {OPT_FORMULA, tess_take_flag, .offset = AT(formula)},
    {OPT_FAST_MATH, tess_take_flag, .offset = AT(opts.fast_math)},
    {OPT_THREADS, tess_take_int, .offset = AT(opts.threads), .min = 1, .max = 4096},
    {OPT_REPEAT, tess_take_int, .offset = AT(repeat), .min = 1, .max = 1000},
    {OPT_MARKDOWN, tess_take_flag, .offset = AT(markdown)},
    {0},
};

#undef AT

static void set_defaults(tess_bench_gcf_args *args)
{
    *args = (tess_bench_gcf_args){.operation = {{0}, 1},
                                  .gcf = {{8, 32, 128}, 3},
                                  .vis = {{1e5}, 1},
                                  .size = {{4096}, 1},
                                  .pol = {{1}, 1},
                                  .precision = {{0}, 1},
                                  .order = {{TESS_BENCH_GCF_RANDOM}, 1},
                                  .planes = 8,
                                  .oversampling = 8,
                                  .field_rad = 10 * TESS_RAD_PER_DEG,
                                  .shrink = 1,
                                  .study = {.within_min = 10},
                                  .energy_s = 0.5,
                                  .repeat = 3};
    tess_study_opts_default(&args->opts);
    args->opts.factor_error = 1e-3;
    args->opts.threads = 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    tess_status status = TESS_OK;
    if (key == ARGP_KEY_INIT) {
        set_defaults(state->input);
        state->child_inputs[0] = state->input;
        return 0;
    }
    if (!tess_option_take(rules, key, arg, state->input, &status))
        return ARGP_ERR_UNKNOWN;
    return tess_cli_result(state, options, key, arg, status);
}

const struct argp tess_bench_gcf_argp = {
    .options = options, .parser = parse, .doc = doc, .children = children};
