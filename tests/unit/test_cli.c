/* Command lines and parameter files, by a small command with the shared groups. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "groups.h"
#include "options.h"
#include "tess_cli.h"
#include "tess_forced.h"
#include "tess_image_args.h"
#include "tess_mem.h"

enum { OPT_SCALE = 0x100, OPT_OBS };

static const struct argp_option options[] = {
    {"scale", OPT_SCALE, "ANGLE", 0, "Scale", 0},
    {"flag", 'f', NULL, 0, "A switch", 0},
    {"obs", OPT_OBS, "OBS...", 0, "May repeat", 0},
    {0},
};

typedef struct small_args {
    double scale_rad;
    int flags, num_obs, num_plain;
    tess_selection selection;
    tess_gridding gridding;
    tess_layout layout;
} small_args;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    small_args *args = state->input;
    tess_status status = TESS_OK;
    switch (key) {
    case ARGP_KEY_INIT:
        tess_cli_default(state, "scale", "1asec");
        state->child_inputs[0] = &args->selection;
        state->child_inputs[1] = &args->gridding;
        state->child_inputs[2] = &args->layout;
        return 0;
    case ARGP_KEY_ARG:
        if (args->num_plain == 1) return ARGP_ERR_UNKNOWN;
        ++args->num_plain;
        return 0;
    case OPT_SCALE:
        status = tess_parse_scale(arg, &args->scale_rad);
        break;
    case 'f':
        ++args->flags;
        break;
    case OPT_OBS:
        ++args->num_obs;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return tess_cli_result(state, options, key, arg, status);
}

static const struct argp_child children[] = {{&tess_selection_argp, 0, NULL, 0},
                                             {&tess_gridding_argp, 0, NULL, 0},
                                             {&tess_layout_argp, 0, NULL, 0},
                                             {&tess_cli_common_argp, 0, NULL, 0},
                                             {0}};
static const struct argp argp = {options, parse, "OBS", "Small", children, NULL, NULL};

typedef struct fixture {
    tess_comm *comm;
    tess_cli cli;
    small_args args;
    char words[512]; /* of the command line, to which the options point */
} fixture;

static int start(void **state)
{
    fixture *f = tess_alloc_zero(1, sizeof *f);
    if (!f || tess_comm_self(&f->comm) != TESS_OK) return -1;
    tess_error_clear();
    *state = f;
    return 0;
}

static int finish(void **state)
{
    fixture *f = *state;
    tess_cli_free(&f->cli);
    tess_comm_free(f->comm);
    tess_free(f);
    return 0;
}

/* Parse a command line given as words with blanks between them. */
static tess_status run(fixture *f, const char *line)
{
    char *argv[32] = {NULL}, *rest = f->words, *word;
    int argc = 0;
    tess_cli_free(&f->cli);
    snprintf(f->words, sizeof f->words, "%s", line);
    while ((word = strtok_r(rest, " ", &rest)) && argc < 31)
        argv[argc++] = word;
    tess_error_clear();
    f->args = (small_args){0};
    return tess_cli_parse(f->comm, &argp, argc, argv, &f->args, &f->cli);
}

static void assert_wrong(fixture *f, const char *line, const char *expected)
{
    assert_int_equal(run(f, line), TESS_ERR_USAGE);
    if (!strstr(tess_error_message(), expected))
        fail_msg("'%s' gave '%s'", line, tess_error_message());
}

static void groups_get_their_values(void **state)
{
    fixture *f = *state;
    assert_int_equal(run(f, "small a.ms --scale 2deg -f --threads=3 --memory 8GiB "
                            "--spw 0,2 --channels 3:9 --accuracy 1e-6 --w none "
                            "--uvrange :1k"),
                     TESS_OK);
    assert_int_equal(f->args.flags, 1);
    assert_int_equal(f->args.layout.threads, 3);
    assert_true(f->args.layout.memory_bytes == 8LL << 30);
    assert_int_equal(f->args.selection.num_spw, 2);
    assert_true(f->args.selection.chan_first == 3 && f->args.selection.chan_end == 9);
    assert_true(f->args.selection.uv_max_lambda == 1000);
    assert_true(f->args.gridding.accuracy == 1e-6);
    assert_int_equal(f->args.gridding.w_mode, TESS_W_NONE);
    assert_string_equal(f->args.gridding.backend, "auto");
}

static void not_forced(fixture *f, const char *text, const char *expected)
{
    tess_layout layout = {0};
    setenv("TESS_FORCE", text, 1);
    assert_int_equal(tess_forced_take(f->comm, &layout), TESS_ERR_USAGE);
    if (!strstr(tess_error_message(), expected))
        fail_msg("'%s' gave '%s'", text, tess_error_message());
    tess_error_clear();
}

static void choices_are_forced(void **state)
{
    fixture *f = *state;
    tess_layout layout = {0};
    unsetenv("TESS_FORCE");
    assert_int_equal(tess_forced_take(f->comm, &layout), TESS_OK);
    assert_int_equal(layout.forced.pw, 0);
    setenv("TESS_FORCE", "pw=2,split=1,batch=-1,w-range=3:4k", 1);
    assert_int_equal(tess_forced_take(f->comm, &layout), TESS_OK);
    assert_int_equal(layout.forced.pw, 2);
    assert_int_equal(layout.forced.split, 1);
    assert_int_equal(layout.forced.batch_vis, -1);
    assert_true(layout.forced.w_min_lambda == 3 && layout.forced.w_max_lambda == 4000);
    not_forced(f, "pw=2,p=3", "TESS_FORCE: there is no 'p'");
    not_forced(f, "pw", "TESS_FORCE: pw needs a value");
    not_forced(f, "passes=0", "TESS_FORCE: passes: '0'");
    not_forced(f, "pw=", "TESS_FORCE: pw: ''");
    char text[600];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    not_forced(f, text, "TESS_FORCE: has more than");
    unsetenv("TESS_FORCE");
}

static void mistakes_are_named(void **state)
{
    fixture *f = *state;
    assert_wrong(f, "small --scale 2", "--scale: '2' is not an angle");
    assert_wrong(f, "small --scale", "--scale: needs a value");
    assert_wrong(f, "small --nonsense=3 a", "--nonsense: unknown option");
    assert_wrong(f, "small --no a",
                 "--no: ambiguous option; it may be --no-kernel-cache, --no-sync, "
                 "--no-calibration");
    assert_wrong(f, "small --flag=3 a", "--flag: takes no value");
    assert_wrong(f, "small -Z a", "-Z");
    assert_wrong(f, "small a b", "unexpected argument 'b'");
    assert_wrong(f, "small --accuracy 0.5 a", "--accuracy: '0.5'");
    assert_wrong(f, "small --backend gpu a", "--backend: 'gpu'");
    assert_wrong(f, "small --threads 0 a", "--threads: '0'");
    assert_wrong(f, "small --config", "--config");
}

/* Nothing behind the end of an empty word is read, which sanitizers would tell. */
static void words_may_be_empty(void **state)
{
    fixture *f = *state;
    char *empty = tess_strdup("");
    char small[] = "small", scale[] = "--scale";
    char *argv[] = {small, scale, empty, NULL};
    assert_non_null(empty);
    assert_int_equal(tess_cli_parse(f->comm, &argp, 3, argv, &f->args, &f->cli),
                     TESS_ERR_USAGE);
    assert_non_null(strstr(tess_error_message(), "--scale: ''"));
    tess_free(empty);
}

static void mistakes_are_explained(void **state)
{
    fixture *f = *state;
    assert_wrong(f, "small -scale 2deg a", "did you mean --scale?");
    assert_wrong(f, "small -flag a", "did you mean --flag?"); /* not -f -l -a -g */
    assert_wrong(f, "small -mem 8 a", "did you mean --memory SIZE?");
    assert_wrong(f, "small --cell 2deg a", "did you mean --scale 2deg?");
    assert_wrong(f, "small --cell", "did you mean --scale ANGLE?");
    assert_wrong(f, "small --SCALE 2deg a", "did you mean --scale?");
    assert_wrong(f, "small --uv_range :1 a", "did you mean --uvrange?");
    assert_wrong(f, "small --uvmin 30 a", "did you mean --uvrange 30:?");
    assert_wrong(f, "small -s 3 a",
                 "did you mean one of --scale, --subtract-column, --spw, --scan, "
                 "--stall-timeout?");
    assert_wrong(f, "small --s 3 a", "it may be --scale, --subtract-column, --spw");
    assert_wrong(f, "small --sflag 3 a", "did you mean --flag?");
    assert_wrong(f, "small --qlot a", "unknown option");
    assert_wrong(f, "small --parallel-deconvolution a", "over all ranks");
    assert_wrong(f, "small --scale 2 deg a", "did you mean --scale 2deg?");
    assert_wrong(f, "small --scale=2 deg a", "did you mean --scale 2deg?");
    assert_wrong(f, "small --sacle 2deg a", "did you mean --scale?");
    assert_wrong(f, "small --thread-s 2 a", "did you mean --threads?");
    assert_wrong(f, "small --zzzzzz a", "--zzzzzz: unknown option");
    assert_null(strstr(tess_error_message(), "mean"));
    /* --robust is meant for --weight, which this command has not */
    assert_wrong(f, "small --robust 0 a", "--robust: unknown option");
    assert_null(strstr(tess_error_message(), "--weight"));
    assert_int_equal(run(f, "small --acc 1e-3 a"), TESS_OK); /* one begins so */
}

/* Parameters of CASA's tclean. This command selects and grids, and makes no images. */
static void parameters_of_casa_are_known(void **state)
{
    fixture *f = *state;
    assert_wrong(f, "small --cell=0.1arcsec a", "did you mean --scale 0.1arcsec?");
    assert_wrong(f, "small --gridder standard a",
                 "leave it out, or did you mean --w none");
    assert_wrong(f, "small --gridder wproject a", "did you mean --w projection?");
    assert_wrong(f, "small --gridder odd a", "did you mean --w METHOD?");
    assert_wrong(f, "small --uv_range 1 a", "did you mean --uvrange?");
    assert_wrong(f, "small --locktimeout 1 a", "did you mean --lock-timeout?");
    assert_wrong(f, "small --parallel True a", "start tessera by mpirun");
    /* --niter is not here */
    assert_wrong(f, "small --deconvolver hogbom a", "--deconvolver: unknown option");
    assert_null(strstr(tess_error_message(), "leave"));
}

/* Parameters of tclean (CASA 6.7). */
static const char *const tclean[] = {"vis",
                                     "selectdata",
                                     "field",
                                     "spw",
                                     "timerange",
                                     "uvrange",
                                     "antenna",
                                     "scan",
                                     "observation",
                                     "intent",
                                     "datacolumn",
                                     "imagename",
                                     "imsize",
                                     "cell",
                                     "phasecenter",
                                     "stokes",
                                     "projection",
                                     "startmodel",
                                     "specmode",
                                     "reffreq",
                                     "nchan",
                                     "start",
                                     "width",
                                     "outframe",
                                     "veltype",
                                     "restfreq",
                                     "interpolation",
                                     "perchanweightdensity",
                                     "gridder",
                                     "facets",
                                     "psfphasecenter",
                                     "wprojplanes",
                                     "vptable",
                                     "mosweight",
                                     "aterm",
                                     "psterm",
                                     "wbawp",
                                     "conjbeams",
                                     "cfcache",
                                     "usepointing",
                                     "computepastep",
                                     "rotatepastep",
                                     "pointingoffsetsigdev",
                                     "pblimit",
                                     "normtype",
                                     "deconvolver",
                                     "scales",
                                     "nterms",
                                     "smallscalebias",
                                     "fusedthreshold",
                                     "largestscale",
                                     "restoration",
                                     "restoringbeam",
                                     "pbcor",
                                     "outlierfile",
                                     "weighting",
                                     "robust",
                                     "noise",
                                     "npixels",
                                     "uvtaper",
                                     "niter",
                                     "gain",
                                     "threshold",
                                     "nsigma",
                                     "cycleniter",
                                     "cyclefactor",
                                     "minpsffraction",
                                     "maxpsffraction",
                                     "interactive",
                                     "nmajor",
                                     "fullsummary",
                                     "usemask",
                                     "mask",
                                     "pbmask",
                                     "sidelobethreshold",
                                     "noisethreshold",
                                     "lownoisethreshold",
                                     "negativethreshold",
                                     "smoothfactor",
                                     "minbeamfrac",
                                     "cutthreshold",
                                     "growiterations",
                                     "dogrowprune",
                                     "minpercentchange",
                                     "verbose",
                                     "fastnoise",
                                     "restart",
                                     "savemodel",
                                     "calcres",
                                     "calcpsf",
                                     "psfcutoff",
                                     "parallel"};

/* Of `tessera image` each is an option, or is explained. */
static void all_of_tclean_are_known(void **state)
{
    fixture *f = *state;
    for (size_t k = 0; k < sizeof tclean / sizeof *tclean; ++k) {
        char word[64], image[] = "image", value[] = "1", obs[] = "x.ms";
        char *argv[] = {image, word, value, obs, NULL};
        tess_image_args args = {0};
        snprintf(word, sizeof word, "--%s", tclean[k]);
        assert_int_equal(tess_image_args_parse(f->comm, "", 4, argv, &args),
                         TESS_ERR_USAGE);
        const char *message = tess_error_message();
        if (strstr(message, "unknown option") && !strstr(message, "; "))
            fail_msg("%s gave '%s'", word, message);
        if (strstr(message, "ambiguous")) fail_msg("%s gave '%s'", word, message);
        tess_error_clear();
        tess_image_args_free(&args);
    }
}

/* ---- options that need others ---- */

/* The status of `tessera image` with these options beside those that it needs. */
static tess_status check_image(fixture *f, const char *options)
{
    char text[512], *rest = text, *word, *argv[48] = {0};
    tess_image_args args = {0};
    int argc = 0;
    snprintf(text, sizeof text, "image -o test_cli --size 64 --scale 1asec %s a.ms",
             options);
    while ((word = strtok_r(rest, " ", &rest)) && argc < 47)
        argv[argc++] = word;
    const tess_status status = tess_image_args_parse(f->comm, "", argc, argv, &args);
    tess_image_args_free(&args);
    return status;
}

/* Options that are refused alone, and what makes them act. */
static const char *const idle_options[][2] = {
    {"--subtract-spectral-pol 2", "--subtract m.fits"},
    {"--gap-channel-division", "--channels-out 2"},
    {"--channel-division-frequencies 1GHz", "--channels-out 2"},
    {"--weighting-rank-filter-size 9", "--weighting-rank-filter 3"},
    {"--cut-cells", "--uvrange :99"},
    {"--pb-limit .3", "--primary-beam airy:12"},
    {"--model-column A", "--niter 9 --update-model"},
    {"--niter 9 --multiscale-scale-bias .5", "--multiscale"},
    {"--niter 9 --multiscale-max-scales 3", "--multiscale"},
    {"--niter 9 --multiscale-shape gaussian", "--multiscale"},
    {"--niter 9 --multiscale-gain .3", "--multiscale"},
    {"--niter 9 --multiscale-choice fit", "--multiscale"},
    {"--niter 9 --auto-mask-nmiter 3", "--auto-mask 5"},
    {"--niter 9 --force-mask-rounds 3", "--auto-mask 5"},
    {"--niter 9 --local-rms-window 9", "--local-rms"},
    {"--weight natural --weighting-rank-filter 3", "--weight uniform"},
    {"--weight natural --density-box 3", "--weight uniform"},
    {"--weight natural --density-frame lsrk", "--weight uniform"},
    {"--weight natural --super-weight 2", "--taper-gaussian 9asec"},
    {"--weight natural --taper-gaussian 9asec --taper-at visibilities --padding 1.5",
     "--taper-edge 5"},
    {"--weight natural --padding 1.5", "--uvrange 9: --cut-cells"}};

/* Options that others leave without an effect. */
static const char *const crossed_options[][2] = {
    {"--niter 9", "--dirty-as-image"},
    {"--niter 9 --multiscale --multiscale-scale-bias .5",
     "--niter 9 --multiscale --multiscale-choice fit"},
    {"--beam-size 6asec", "--circular-beam"},
    {"--beam-size 6asec", "--theoretic-beam"},
    {"--beam-shape 6asec,5asec,0deg", "--lobe-beam"},
    {"--beam-size 6asec", "--beam-fitting-size 5"},
    {"--theoretic-beam", "--circular-beam"},
    {"--theoretic-beam", "--beam-fitting-size 5"},
    {"--niter 9 --multiscale --multiscale-scales 0,4",
     "--niter 9 --multiscale --multiscale-max-scales 3"}};

static void assert_idle(fixture *f, const char *options)
{
    if (check_image(f, options) != TESS_ERR_USAGE) fail_msg("%s: not refused", options);
    if (!strstr(tess_error_message(), "has no effect"))
        fail_msg("%s: %s", options, tess_error_message());
    tess_error_clear();
}

static void assert_taken(fixture *f, const char *options)
{
    if (check_image(f, options) != TESS_OK)
        fail_msg("%s: %s", options, tess_error_message());
}

static void options_without_effect_are_refused(void **state)
{
    fixture *f = *state;
    char both[256];
    for (size_t k = 0; k < sizeof idle_options / sizeof *idle_options; ++k) {
        const char *const *pair = idle_options[k];
        assert_idle(f, pair[0]);
        snprintf(both, sizeof both, "%s %s", pair[0], pair[1]);
        assert_taken(f, both);
    }
    for (size_t k = 0; k < sizeof crossed_options / sizeof *crossed_options; ++k) {
        const char *const *pair = crossed_options[k];
        assert_taken(f, pair[0]);
        assert_taken(f, pair[1]);
        snprintf(both, sizeof both, "%s %s", pair[0], pair[1]);
        assert_idle(f, both);
    }
    assert_int_equal(check_image(f, "--lobe-beam --circular-beam"), TESS_ERR_USAGE);
    tess_error_clear();
    /* as NAME.conf has defaults */
    assert_taken(f, "--pb-limit 0.2 --density own --weight natural "
                    "--weighting-rank-filter 0 --density-box 0 --density-frame topo");
}

/* What a function prints on stdout, at most 64 KiB of it. */
static void catch_help(fixture *f, const char *line, char text[65536])
{
    char name[] = "help-XXXXXX";
    const int file = mkstemp(name), out = dup(STDOUT_FILENO);
    fflush(stdout);
    assert_true(file >= 0 && out >= 0 && dup2(file, STDOUT_FILENO) >= 0);
    const tess_status status = run(f, line);
    fflush(stdout);
    assert_true(dup2(out, STDOUT_FILENO) >= 0);
    const ssize_t bytes = pread(file, text, 65535, 0);
    text[bytes > 0 ? bytes : 0] = '\0';
    close(file);
    close(out);
    unlink(name);
    assert_int_equal(status, TESS_OK);
}

static void help_shows_what_users_need(void **state)
{
    static char brief[65536], all[65536];
    fixture *f = *state;
    catch_help(f, "small --help", brief);
    catch_help(f, "small --help-all --nonsense", all);
    assert_non_null(strstr(brief, "--memory"));
    assert_null(strstr(brief, "--no-calibration"));
    assert_non_null(strstr(brief, "'tessera small --help-all' lists 19 more options"));
    assert_non_null(strstr(all, "--memory"));
    assert_non_null(strstr(all, "--no-calibration"));
}

static void used_options_make_a_parameter_file(void **state)
{
    fixture *f = *state;
    assert_int_equal(run(f, "small a --scale 2deg --scale 3deg -f"), TESS_OK);
    char *text = tess_cli_used_text(&f->cli, "tessera small ...");
    assert_non_null(text);
    assert_non_null(strstr(text, "\nscale = 3deg\n"));
    assert_null(strstr(text, "2deg"));
    assert_non_null(strstr(text, "\nflag = true\n"));
    assert_non_null(strstr(text, "\naccuracy = 1e-4\n"));
    /* and it is accepted again */
    char name[] = "small";
    char *argv[] = {name, NULL};
    tess_params params = {0};
    assert_int_equal(tess_params_expand_text(&argp, "x.conf", text, 1, argv, &params),
                     TESS_OK);
    assert_true(params.num_keys >= 4);
    tess_params_free(&params);
    tess_free(text);
}

static tess_status expand(const char *text, tess_params *params)
{
    char name[] = "small", scale[] = "--scale=9deg", config[] = "--config=x.conf";
    char *argv[] = {name, config, scale, NULL};
    tess_error_clear();
    return tess_params_expand_text(&argp, "x.conf", text, 3, argv, params);
}

static void parameter_file_stands_before_the_command_line(void **state)
{
    tess_params params = {0};
    assert_int_equal(expand("# a comment\n\nscale = 2deg # why\n  flag = yes\r\n"
                            "quiet = off\nobs = a.ms\nobs = \"b #1.ms\"\n",
                            &params),
                     TESS_OK);
    assert_int_equal(params.argc, 6);
    assert_string_equal(params.argv[1], "--scale=2deg");
    assert_string_equal(params.argv[2], "--flag");
    assert_string_equal(params.argv[3], "--obs=a.ms");
    assert_string_equal(params.argv[4], "--obs=b #1.ms");
    assert_string_equal(params.argv[5], "--scale=9deg");
    assert_null(params.argv[6]);
    assert_int_equal(tess_params_line(&params, 1), 3);
    assert_int_equal(tess_params_line(&params, 4), 7);
    assert_int_equal(tess_params_line(&params, 5), 0);
    tess_params_free(&params);
}

static void mistakes_in_a_parameter_file_name_the_line(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"\nscael = 2deg\n", "x.conf:2: unknown key 'scael'"},
        {"scale = 2deg\nscale = 3deg\n", "x.conf:2: scale was already set in line 1"},
        {"scale\n", "x.conf:1: 'scale' is not of the form key = value"},
        {"scale =\n", "x.conf:1: scale has no value"},
        {"flag = maybe\n", "x.conf:1: flag is switched by true or false"},
        {"config = other\n", "x.conf:1: unknown key 'config'"},
        {"= 3\n", "x.conf:1: unknown key ''"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; ++k) {
        tess_params params = {0};
        assert_int_equal(expand(bad[k].text, &params), TESS_ERR_USAGE);
        if (!strstr(tess_error_message(), bad[k].message))
            fail_msg("'%s' gave '%s'", bad[k].text, tess_error_message());
        assert_null(params.argv);
    }
}

static void bad_value_of_a_parameter_file_names_the_line(void **state)
{
    fixture *f = *state;
    FILE *file = fopen("test_cli.conf", "w");
    assert_non_null(file);
    fputs("flag = true\nscale = 2\n", file);
    fclose(file);
    assert_wrong(f, "small --config test_cli.conf a", "test_cli.conf:2: scale: '2'");
    remove("test_cli.conf");
    assert_int_equal(run(f, "small --config test_cli.conf a"), TESS_ERR_IO);
}

static void command_line_is_quoted_for_a_shell(void **state)
{
    char a[] = "image", b[] = "my obs.ms", c[] = "it's", d[] = "";
    char *argv[] = {a, b, c, d, NULL};
    char *text = tess_cli_command_line(4, argv);
    assert_string_equal(text, "tessera image 'my obs.ms' 'it'\\''s' ''");
    tess_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(groups_get_their_values, start, finish),
        cmocka_unit_test_setup_teardown(choices_are_forced, start, finish),
        cmocka_unit_test_setup_teardown(mistakes_are_named, start, finish),
        cmocka_unit_test_setup_teardown(words_may_be_empty, start, finish),
        cmocka_unit_test_setup_teardown(mistakes_are_explained, start, finish),
        cmocka_unit_test_setup_teardown(parameters_of_casa_are_known, start, finish),
        cmocka_unit_test_setup_teardown(all_of_tclean_are_known, start, finish),
        cmocka_unit_test_setup_teardown(options_without_effect_are_refused, start,
                                        finish),
        cmocka_unit_test_setup_teardown(help_shows_what_users_need, start, finish),
        cmocka_unit_test_setup_teardown(used_options_make_a_parameter_file, start,
                                        finish),
        cmocka_unit_test(parameter_file_stands_before_the_command_line),
        cmocka_unit_test(mistakes_in_a_parameter_file_name_the_line),
        cmocka_unit_test_setup_teardown(bad_value_of_a_parameter_file_names_the_line,
                                        start, finish),
        cmocka_unit_test(command_line_is_quoted_for_a_shell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
