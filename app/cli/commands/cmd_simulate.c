/* tessera simulate: parses the array, the sky and the times, and simulates the
 * observation. */
#define _GNU_SOURCE
#include <argp.h>
#include <erfa.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "groups.h"
#include "options.h"
#include "tess_beam_models.h"
#include "tess_cli.h"
#include "tess_const.h"
#include "tess_mem.h"
#include "tess_out_file.h"
#include "tess_sim_layout.h"
#include "tess_simulate.h"
#include "tess_subcommands.h"
#include "tess_vis.h"

enum {
    OPT_LAYOUT = 0x1000,
    OPT_LIST_LAYOUTS,
    OPT_ANTENNAS,
    OPT_MAX_RADIUS,
    OPT_SKY,
    OPT_OBJECT,
    OPT_RA,
    OPT_DEC,
    OPT_START,
    OPT_HOUR_ANGLE,
    OPT_DURATION,
    OPT_INTEGRATION,
    OPT_FREQ,
    OPT_CHAN_WIDTH,
    OPT_CHANNELS,
    OPT_POL,
    OPT_NOISE,
    OPT_SEFD,
    OPT_SEED,
    OPT_AUTOCORRELATIONS,
    OPT_MIN_ELEVATION,
    OPT_DUT1,
    OPT_POINTINGS,
    OPT_SCAN,
    OPT_PRIMARY_BEAM,
    OPT_THREADS,
    OPT_LOCK_TIMEOUT,
    OPT_OVERWRITE,
    OPT_NO_SYNC,
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Array and sky:", 1},
    {"layout", OPT_LAYOUT, "NAME|FILE.csv", 0,
     "Antenna positions: a built-in array, or a file with columns x,y,z (geocentric "
     "metres) or east,north,up below a line '# lon=DEG lat=DEG alt=M'; optionally "
     "name, diameter",
     1},
    {"list-layouts", OPT_LIST_LAYOUTS, NULL, 0, "List the built-in arrays", 1},
    {"antennas", OPT_ANTENNAS, "N", 0,
     "Use N antennas, taken evenly from the list (default all)", 1},
    {"max-radius", OPT_MAX_RADIUS, "LENGTH", 0,
     "Use antennas within this distance of the array's middle, like 20km", 1},
    {"sky", OPT_SKY, "FILE", 0,
     "Sources: a CSV with columns ra,dec (or l,m), flux_jy and optionally name, q, u, "
     "v, spectral_index, ref_freq, major, minor, pa (Gaussians, FWHM); a list of "
     "sources as DP3 and WSClean write it ('Format = ...'); or a FITS image "
     "in Jy/pixel, each nonzero pixel of which is a source",
     1},
    {NULL, 0, NULL, 0, "Observation:", 2},
    {"ra", OPT_RA, "RA", 0, "Phase centre, J2000: 4h00m00s, 04:00:00 or 60deg", 2},
    {"dec", OPT_DEC, "DEC", 0, "Phase centre, J2000: -30d00m00s, -30:00:00 or -30deg",
     2},
    {"object", OPT_OBJECT, "NAME", 0, "Name of the field (default SIMULATED)", 2},
    {"start", OPT_START, "TIME", 0,
     "Start, UTC: 2026-01-01T20:00:00, or only a date (default 2026-01-01)", 2},
    {"hour-angle", OPT_HOUR_ANGLE, "HA", 0,
     "Start when the phase centre first has this hour angle after --start, like -1h; "
     "the default is half the duration before transit unless --start has a time of day",
     2},
    {"duration", OPT_DURATION, "TIME", 0, "Length, like 2h", 2},
    {"integration", OPT_INTEGRATION, "TIME", 0, "Integration (default 8s)", 2},
    {"freq", OPT_FREQ, "FREQ", 0, "Centre of the band, like 1.28GHz", 2},
    {"chan-width", OPT_CHAN_WIDTH, "FREQ", 0, "Channel width (default 1MHz)", 2},
    {"channels", OPT_CHANNELS, "N", 0, "Number of channels (default 1)", 2},
    {"pol", OPT_POL, "LIST", 0, "Correlations: XX,YY (default), RR,LL,RL,LR, I ...", 2},
    {"autocorrelations", OPT_AUTOCORRELATIONS, "yes|no", 0,
     "Write autocorrelations too (default no)", 2},
    {"min-elevation", OPT_MIN_ELEVATION, "ANGLE", 0,
     "Flag rows below this elevation, like 10deg (default: only warn below 0)", 2},
    {"dut1", OPT_DUT1, "SECONDS", 0, "UT1 - UTC (default 0)", 2},
    {NULL, 0, NULL, 0, "Mosaics:", 3},
    {"pointings", OPT_POINTINGS, "hex:N,SPACING|FILE.csv", 0,
     "Observe several pointings one after another, each of which is a field of its own "
     "phase centre: N around --ra and --dec, ring after ring, like hex:7,15amin, or "
     "those "
     "of a CSV with columns ra, dec and optionally name; --ra and --dec are then the "
     "middle if they are not given",
     3},
    {"scan", OPT_SCAN, "TIME", 0,
     "Time on a pointing before the next one (default an integration)", 3},
    {"primary-beam", OPT_PRIMARY_BEAM, "MODEL", 0,
     "Receive sources through the primary beams of the antennas: auto, or a model of "
     "tessera image --primary-beam, or antennas:FILE of patterns of names and models "
     "(default: sources have their fluxes everywhere)",
     3},
    {NULL, 0, NULL, 0, "Noise:", 4},
    {"noise", OPT_NOISE, "FLUX", 0,
     "rms of the real and imaginary part of each sample, like 0.1Jy or 5mJy", 4},
    {"sefd", OPT_SEFD, "FLUX", 0,
     "System equivalent flux density, like 400Jy: rms SEFD/sqrt(2 width integration); "
     "adds to --noise in quadrature",
     4},
    {"seed", OPT_SEED, "N", 0, "Seed of the noise (default 1)", 4},
    {NULL, 0, NULL, 0, "Output and work:", 5},
    {"output", 'o', "OBS.uvfits|OBS.ms", 0, "The set to write", 5},
    {"overwrite", OPT_OVERWRITE, NULL, 0, "Replace an existing set", 5},
    {"threads", OPT_THREADS, "N", 0, "Threads per rank (default: the allocation's)", 5},
    {"lock-timeout", OPT_LOCK_TIMEOUT, "TIME", 0, TESS_LOCK_TIMEOUT_HELP, 5},
    {"no-sync", OPT_NO_SYNC, NULL, 0,
     "Do not wait until the disk has the set (see tessera image --help)", 5},
    {0},
};

static const char doc[] =
    "Make an observation of a sky model: visibilities by the direct sum in double "
    "precision, streamed to UVFITS or a MeasurementSet, on any number of ranks."
    "\v"
    "Example: an hour of MeerKAT with a source 0.1 degrees North of the centre\n"
    "\n"
    "  printf 'name,ra,dec,flux_jy\\nA,60deg,-29.9deg,1.5\\n' > sky.csv\n"
    "  tessera simulate --layout meerkat --sky sky.csv --ra 4h --dec -30deg \\\n"
    "    --duration 1h --integration 60s --freq 1.28GHz --chan-width 4MHz \\\n"
    "    --channels 16 --sefd 400Jy -o obs.uvfits\n"
    "\n"
    "uvw follow from the positions by IAU 2006/2000A precession-nutation and sidereal "
    "time, towards the apparent place of the phase centre; UT1 = UTC unless --dut1. "
    "The same seed gives the same noise on any number of ranks and threads.";

/* The parsed options. */
typedef struct arguments {
    tess_simulate_opts opts;
    bool list_layouts;
    bool has_ra, has_dec;
    bool has_scan, has_seed;
    bool start_has_time;
} arguments;

/* ---- values ---- */

typedef struct unit {
    const char *name;
    double factor;
} unit;

static const unit flux_units[] = {{"", 1.0},     {"Jy", 1.0},  {"mJy", 1e-3},
                                  {"uJy", 1e-6}, {"kJy", 1e3}, {NULL, 0.0}};
static const unit length_units[] = {{"", 1.0}, {"m", 1.0}, {"km", 1e3}, {NULL, 0.0}};

/* Parses a number >= 0 with one of these units. */
static tess_status parse_quantity(const char *text, const unit *units,
                                  const char *valid, double *value)
{
    tess_status status = TESS_OK;
    char *end = NULL;
    const double number = strtod(text, &end);
    while (*end == ' ')
        ++end;
    const unit *found = units;
    while (found->name && strcmp(found->name, end) != 0)
        ++found;
    if (end == text || !found->name || !isfinite(number) || number < 0.0)
        TESS_FAIL(TESS_ERR_USAGE, "'%s' is not a value like %s", text, valid);
    *value = number * found->factor;
cleanup:
    return status;
}

/* Parses UTC as YYYY-MM-DD or YYYY-MM-DDThh:mm[:ss[.s]][Z]. */
static tess_status parse_start(const char *text, double *mjd_s, bool *has_time)
{
    tess_status status = TESS_OK;
    int year = 0, month = 0, day = 0, hour = 0, minute = 0, at = 0, used = 0;
    double second = 0.0, jd1 = 0.0, jd2 = 0.0;
    bool good = sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &at) == 3 && at > 0;
    const bool timed = good && text[at] != '\0';
    if (timed) {
        good = (text[at] == 'T' || text[at] == ' ') &&
               sscanf(text + at + 1, "%2d:%2d%n", &hour, &minute, &used) == 2 &&
               used > 0;
        at += 1 + used;
        used = 0;
        if (good && text[at] == ':') {
            good = sscanf(text + at, ":%lf%n", &second, &used) == 1 && used > 0;
            at += used;
        }
        if (good && text[at] == 'Z') ++at;
        good = good && text[at] == '\0' && second >= 0.0 && second < 61.0;
    }
    if (!good || year < 1960 || year > 2999 ||
        eraDtf2d("UTC", year, month, day, hour, minute, second, &jd1, &jd2) < 0)
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not a UTC time like 2026-01-01T20:00:00, nor a date like "
                  "2026-01-01",
                  text);
    *mjd_s = ((jd1 - TESS_MJD_ZERO_JD) + jd2) * TESS_SECONDS_PER_DAY;
    *has_time = timed;
cleanup:
    return status;
}

/* Parses a duration or angle with a sign: -1h, 1h30m, -15deg. */
static tess_status parse_hour_angle(const char *text, double *rad)
{
    tess_status status = TESS_OK;
    double value = 0.0;
    if (strstr(text, "deg") || strstr(text, "rad")) {
        TESS_TRY(tess_parse_angle(text, &value));
    } else {
        const double sign = *text == '-' ? -1.0 : 1.0;
        const char *digits = *text == '-' || *text == '+' ? text + 1 : text;
        double seconds = 0.0;
        if (strspn(digits, "0.hms") != strlen(digits) || *digits == '\0')
            TESS_TRY(tess_parse_duration(digits, &seconds));
        value = sign * seconds * TESS_TWO_PI / TESS_SECONDS_PER_DAY;
    }
    if (fabs(value) > TESS_PI) TESS_FAIL(TESS_ERR_USAGE, "'%s' is beyond +-12h", text);
    *rad = value;
cleanup:
    return status;
}

static tess_status parse_pol(const char *text, tess_simulate_opts *opts)
{
    tess_status status = TESS_OK;
    tess_corr pol[TESS_MAX_POL];
    int count = 0;
    TESS_TRY(tess_parse_stokes(text, pol, &count));
    if (count > TESS_MAX_CORR)
        TESS_FAIL(TESS_ERR_USAGE, "'%s' has more than %d", text, (int)TESS_MAX_CORR);
    /* Codes: Stokes parameters 1..4, circular -1..-4, linear -5..-8. */
    for (int k = 1; k < count; ++k)
        if ((pol[k] > 0) != (pol[0] > 0) || (pol[k] < -4) != (pol[0] < -4))
            TESS_FAIL(TESS_ERR_USAGE,
                      "'%s' mixes linear, circular and Stokes; write one kind, like "
                      "XX,YY or RR,LL,RL,LR",
                      text);
    memcpy(opts->corr, pol, (size_t)count * sizeof *pol);
    opts->num_corr = count;
cleanup:
    return status;
}

static tess_status parse_yes_no(const char *text, bool *value)
{
    tess_status status = TESS_OK;
    if (!text || strcmp(text, "yes") == 0 || strcmp(text, "true") == 0)
        *value = true;
    else if (strcmp(text, "no") == 0 || strcmp(text, "false") == 0)
        *value = false;
    else
        TESS_FAIL(TESS_ERR_USAGE, "'%s' is neither yes nor no", text);
cleanup:
    return status;
}

static tess_status parse_int(const char *text, int min, int max, int *value)
{
    int64_t wide = 0;
    const tess_status status = tess_parse_integer(text, min, max, &wide);
    if (status == TESS_OK) *value = (int)wide;
    return status;
}

static tess_status parse_seed(const char *text, uint64_t *seed)
{
    int64_t value = 0;
    const tess_status status = tess_parse_integer(text, 0, INT64_MAX, &value);
    if (status == TESS_OK) *seed = (uint64_t)value;
    return status;
}

/* ---- argp ---- */

static tess_status take_observation(int key, const char *arg, arguments *args)
{
    tess_simulate_opts *opts = &args->opts;
    switch (key) {
    case OPT_RA:
        args->has_ra = true;
        return tess_parse_ra(arg, &opts->ra_rad);
    case OPT_DEC:
        args->has_dec = true;
        return tess_parse_dec(arg, &opts->dec_rad);
    case OPT_START:
        return parse_start(arg, &opts->time.start_mjd_s, &args->start_has_time);
    case OPT_HOUR_ANGLE:
        opts->time.has_hour_angle = true;
        return parse_hour_angle(arg, &opts->time.hour_angle_rad);
    case OPT_DURATION:
        return tess_parse_duration(arg, &opts->time.duration_s);
    case OPT_INTEGRATION:
        return tess_parse_duration(arg, &opts->time.integration_s);
    case OPT_FREQ:
        return tess_parse_frequency(arg, &opts->freq_hz);
    case OPT_CHAN_WIDTH:
        return tess_parse_frequency(arg, &opts->chan_width_hz);
    case OPT_CHANNELS:
        return tess_parse_integer(arg, 1, 10000000, &opts->num_chan);
    case OPT_POL:
        return parse_pol(arg, opts);
    case OPT_AUTOCORRELATIONS:
        return parse_yes_no(arg, &opts->autocorrelations);
    case OPT_MIN_ELEVATION:
        opts->flag_low = true;
        return tess_parse_angle(arg, &opts->min_elevation_rad);
    case OPT_DUT1:
        return tess_parse_number(arg, -1.0, 1.0, &opts->time.dut1_s);
    default:
        return TESS_ERR_INTERNAL;
    }
}

static tess_status take_mosaic(int key, const char *arg, arguments *args)
{
    tess_simulate_mosaic *mosaic = &args->opts.mosaic;
    switch (key) {
    case OPT_POINTINGS:
        mosaic->pointings = arg;
        return TESS_OK;
    case OPT_SCAN:
        args->has_scan = true;
        return tess_parse_duration(arg, &mosaic->scan_s);
    case OPT_PRIMARY_BEAM:
        mosaic->primary_beam = arg;
        return tess_beam_models_check(arg);
    default:
        return TESS_ERR_INTERNAL;
    }
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    arguments *args = state->input;
    tess_simulate_opts *opts = &args->opts;
    tess_status status = TESS_OK;
    switch (key) {
    case ARGP_KEY_INIT:
        tess_out_file_set_sync(true); /* for an earlier run of this process */
        tess_vis_set_lock_timeout(TESS_VIS_LOCK_TIMEOUT_S);
        return 0;
    case OPT_LAYOUT:
        opts->layout = arg;
        break;
    case OPT_LIST_LAYOUTS:
        args->list_layouts = true;
        break;
    case OPT_ANTENNAS:
        status = parse_int(arg, 2, 2047, &opts->num_antennas);
        break;
    case OPT_MAX_RADIUS:
        status = parse_quantity(arg, length_units, "20km or 500m", &opts->max_radius_m);
        break;
    case OPT_SKY:
        opts->sky = arg;
        break;
    case OPT_OBJECT:
        opts->object = arg;
        break;
    case OPT_NOISE:
        status = parse_quantity(arg, flux_units, "0.1Jy or 5mJy", &opts->noise_jy);
        break;
    case OPT_SEFD:
        status = parse_quantity(arg, flux_units, "400Jy", &opts->sefd_jy);
        break;
    case OPT_SEED:
        args->has_seed = true;
        status = parse_seed(arg, &opts->seed);
        break;
    case OPT_THREADS:
        status = parse_int(arg, 1, 65536, &opts->threads);
        break;
    case OPT_OVERWRITE:
        opts->overwrite = true;
        break;
    case OPT_NO_SYNC:
        tess_out_file_set_sync(false);
        break;
    case OPT_LOCK_TIMEOUT:
        status = tess_cli_lock_timeout(arg);
        break;
    case 'o':
        opts->output = arg;
        break;
    default:
        if (key >= OPT_POINTINGS && key <= OPT_PRIMARY_BEAM)
            status = take_mosaic(key, arg, args);
        else if (key >= OPT_RA && key <= OPT_DUT1)
            status = take_observation(key, arg, args);
        else
            return ARGP_ERR_UNKNOWN;
    }
    return tess_cli_result(state, options, key, arg, status);
}

static const struct argp_child children[] = {{&tess_cli_common_argp, 0, NULL, -1}, {0}};

static const struct argp simulate_argp = {
    .options = options, .parser = parse_option, .doc = doc, .children = children};

/* ---- checks ---- */

static tess_status require(bool given, const char *name)
{
    tess_status status = TESS_OK;
    if (!given) TESS_FAIL(TESS_ERR_USAGE, "--%s is missing", name);
cleanup:
    return status;
}

/* Pointings of a file have a middle. */
static tess_status check_center(arguments *args)
{
    tess_status status = TESS_OK;
    const char *pointings = args->opts.mosaic.pointings;
    const bool is_file = pointings && strncmp(pointings, "hex:", 4) != 0;
    args->opts.has_center = args->has_ra || args->has_dec || !is_file;
    if (args->opts.has_center) {
        TESS_TRY(require(args->has_ra, "ra"));
        TESS_TRY(require(args->has_dec, "dec"));
    }
    if (args->has_scan && !pointings)
        TESS_FAIL(TESS_ERR_USAGE, "--scan is the time on one of several --pointings, "
                                  "which are missing");
cleanup:
    return status;
}

static tess_status check(arguments *args)
{
    tess_status status = TESS_OK;
    tess_simulate_opts *opts = &args->opts;
    TESS_TRY(require(opts->layout, "layout"));
    TESS_TRY(require(opts->sky, "sky"));
    TESS_TRY(check_center(args));
    TESS_TRY(require(opts->time.duration_s > 0.0, "duration"));
    TESS_TRY(require(opts->freq_hz > 0.0, "freq"));
    TESS_TRY(require(opts->output, "output"));
    if (args->has_seed && !(opts->noise_jy > 0) && !(opts->sefd_jy > 0))
        TESS_FAIL(TESS_ERR_USAGE,
                  "--seed is that of the noise; give --noise or --sefd");
    const double half_band_hz = 0.5 * (double)opts->num_chan * opts->chan_width_hz;
    if (half_band_hz >= opts->freq_hz)
        TESS_FAIL(TESS_ERR_USAGE,
                  "%lld channels of %g Hz around --freq %g Hz begin below 0 Hz",
                  (long long)opts->num_chan, opts->chan_width_hz, opts->freq_hz);
    if (opts->time.duration_s / opts->time.integration_s > 1e9)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--duration %g s has more than 10^9 integrations of %g s",
                  opts->time.duration_s, opts->time.integration_s);
    if (!args->start_has_time && !opts->time.has_hour_angle) {
        opts->time.has_hour_angle = true;
        opts->time.hour_angle_rad =
            -0.5 * opts->time.duration_s * TESS_TWO_PI / TESS_SECONDS_PER_DAY;
        if (opts->time.hour_angle_rad < -TESS_PI) opts->time.hour_angle_rad = -TESS_PI;
    }
cleanup:
    return status;
}

static void print_layouts(void)
{
    const tess_layout_table *table;
    for (int k = 0; (table = tess_layout_builtin(k)); ++k)
        printf("%-10s %s\n", table->name, table->note);
    fflush(stdout);
}

tess_status tess_cmd_simulate(tess_comm *comm, int argc, char **argv)
{
    tess_status status = TESS_OK;
    tess_cli cli = {0};
    bool has_time = false;
    arguments args = {.opts = {.time.integration_s = 8.0,
                               .chan_width_hz = 1e6,
                               .num_chan = 1,
                               .num_corr = 2,
                               .corr = {-5, -6},
                               .seed = 1,
                               .object = "SIMULATED"}};
    TESS_TRY(parse_start("2026-01-01", &args.opts.time.start_mjd_s, &has_time));
    TESS_TRY(tess_cli_parse(comm, &simulate_argp, argc, argv, &args, &cli));
    if (cli.help) goto cleanup;
    if (args.list_layouts) {
        if (tess_comm_rank(comm) == 0) print_layouts();
        goto cleanup;
    }
    TESS_TRY(tess_comm_agree(comm, check(&args)));
    TESS_TRY(tess_simulate(comm, &args.opts));
cleanup:
    tess_cli_free(&cli);
    return status;
}
