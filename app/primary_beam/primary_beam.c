/* Chooses the primary beam that a text asks for, and computes its power. */
#define _GNU_SOURCE
#include "primary_beam.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tess_const.h"
#include "tess_fits_array.h"
#include "tess_mem.h"
#include "tess_parse.h"
#include "tess_text_file.h"

/* ---- models ---- */

/* CASA's antennas of ALMA: the illuminated aperture, and its blockage (CASA's
 * vpmanager). */
static const double ALMA_M = 10.7, ACA_M = 6.25, ALMA_BLOCKAGE_M = 0.75;

/* A beam of a telescope. */
typedef struct canned {
    const char *model;
    const char *telescopes; /* names in observations are one of these */
    const char *name;
    const beam_band *band;
    const int *num_bands;
    const beam_cosine_table *cosine;
    const double *diameter_m;
} canned;

static const canned models[] = {
    {.model = "meerkat", .telescopes = "MEERKAT"},
    {.model = "meerkat-uhf", .cosine = &beam_meerkat_uhf},
    {.model = "meerkat-l", .cosine = &beam_meerkat_l},
    {.model = "vla",
     .telescopes = "VLA EVLA JVLA",
     .name = "VLA",
     .band = beam_vla,
     .num_bands = &beam_vla_num},
    {.model = "atca",
     .telescopes = "ATCA",
     .name = "ATCA",
     .band = beam_atca,
     .num_bands = &beam_atca_num},
    {.model = "gmrt",
     .telescopes = "GMRT UGMRT",
     .name = "GMRT",
     .band = beam_gmrt,
     .num_bands = &beam_gmrt_num},
    {.model = "alma",
     .telescopes = "ALMA",
     .name = "ALMA, 12 m",
     .diameter_m = &ALMA_M},
    {.model = "aca", .telescopes = "ACA", .name = "ALMA, 7 m", .diameter_m = &ACA_M},
};

enum { NUM_MODELS = sizeof models / sizeof *models };

#define MODELS                                                                         \
    "auto, meerkat, vla, atca, gmrt, alma, aca, airy:DIAMETER, poly:FILE or a "        \
    "FITS file"

static const canned *find_model(const char *model)
{
    for (int k = 0; k < NUM_MODELS; ++k)
        if (strcasecmp(model, models[k].model) == 0) return &models[k];
    return NULL;
}

/* Whether a list of words has the name of a telescope. Names are written in many ways:
 * a whole word has to agree, in letters of either case. */
static bool lists(const char *telescopes, const char *telescope)
{
    const size_t length = strlen(telescope);
    for (const char *word = telescopes; word && *word; word += *word == ' ') {
        const size_t size = strcspn(word, " ");
        if (size == length && strncasecmp(word, telescope, size) == 0) return true;
        word += size;
    }
    return false;
}

static const canned *model_of_telescope(const char *telescope)
{
    for (int k = 0; telescope && k < NUM_MODELS; ++k)
        if (lists(models[k].telescopes, telescope)) return &models[k];
    return NULL;
}

static const char *after(const char *text, const char *with)
{
    const size_t length = strlen(with);
    return strncasecmp(text, with, length) == 0 ? text + length : NULL;
}

const char *tess_primary_beam_file(const char *model)
{
    const char *poly = model ? after(model, "poly:") : NULL;
    return poly ? poly : model && tess_fits_is_name(model) ? model : NULL;
}

/* "DIAMETER[,BLOCKAGE]" in metres. */
static tess_status parse_airy(const char *text, double *diameter_m, double *blockage_m)
{
    tess_status status = TESS_OK;
    char first[64];
    const size_t length = strcspn(text, ",");
    double diameter, blockage = 0;
    snprintf(first, sizeof first, "%.*s", (int)fmin((double)length, 63), text);
    TESS_TRY(tess_parse_number(first, 1e-3, 1e4, &diameter));
    if (text[length] == ',')
        TESS_TRY(tess_parse_number(text + length + 1, 0, 0.999 * diameter, &blockage));
    *diameter_m = diameter;
    *blockage_m = blockage;
cleanup:
    return status;
}

tess_status tess_primary_beam_check_model(const char *model)
{
    tess_status status = TESS_OK;
    const char *airy = after(model, "airy:"), *poly = after(model, "poly:");
    double unused[2];
    if (airy) return parse_airy(airy, &unused[0], &unused[1]);
    if (strcasecmp(model, "auto") == 0 || find_model(model) ||
        tess_fits_is_name(model) || (poly && *poly))
        return TESS_OK;
    TESS_FAIL(TESS_ERR_USAGE, "'%s' is no primary beam; write " MODELS, model);
cleanup:
    return status;
}

/* ---- opening ---- */

/* Observations with frequencies below the L band are of the UHF band. */
static const canned *band_of_meerkat(const canned *model, double low_hz)
{
    if (model != find_model("meerkat")) return model;
    return find_model(low_hz < beam_meerkat_l.low_mhz * 1e6 ? "meerkat-uhf"
                                                            : "meerkat-l");
}

static tess_status take_model(const canned *model, double low_hz,
                              tess_primary_beam *beam)
{
    tess_status status = TESS_OK;
    model = band_of_meerkat(model, low_hz);
    const char *name = model->cosine ? model->cosine->name : model->name;
    snprintf(beam->name, sizeof beam->name, "%s", name);
    if (model->cosine) {
        beam->kind = BEAM_COSINE;
        beam->cosine = model->cosine;
    } else if (model->diameter_m) {
        beam->kind = BEAM_AIRY;
        beam->diameter_m = *model->diameter_m;
        beam->blockage_m = ALMA_BLOCKAGE_M;
    } else {
        beam->kind = BEAM_POLYNOMIAL;
        TESS_TRY(
            beam_polynomials_copy(model->band, *model->num_bands, &beam->polynomials));
    }
cleanup:
    return status;
}

/* Collective. */
static tess_status take_polynomials(tess_comm *comm, const char *path,
                                    tess_primary_beam *beam)
{
    tess_status status = TESS_OK;
    char *text = NULL;
    snprintf(beam->name, sizeof beam->name, "polynomial of %s", path);
    beam->kind = BEAM_POLYNOMIAL;
    TESS_TRY(tess_text_file_read(comm, path, "a text file of polynomials", &text));
    TESS_TRY(beam_polynomials_parse(path, text, &beam->polynomials));
cleanup:
    tess_free(text);
    return status;
}

static tess_status take_airy(const char *text, tess_primary_beam *beam)
{
    tess_status status = TESS_OK;
    beam->kind = BEAM_AIRY;
    TESS_TRY(parse_airy(text, &beam->diameter_m, &beam->blockage_m));
    snprintf(beam->name, sizeof beam->name, "Airy disk of %g m, %g m of it blocked",
             beam->diameter_m, beam->blockage_m);
cleanup:
    return status;
}

static tess_status take_cube(const char *path, tess_primary_beam *beam)
{
    beam->kind = BEAM_CUBE;
    snprintf(beam->name, sizeof beam->name, "%s", path);
    return beam_cube_open(path, &beam->cube);
}

static double lowest(const tess_primary_beam_request *request)
{
    double low_hz = INFINITY;
    for (int64_t k = 0; k < request->num_chan; ++k)
        low_hz = fmin(low_hz, request->freq_hz[k]);
    return low_hz;
}

/* Collective where the model is a file of polynomials. */
static tess_status take(tess_comm *comm, const tess_primary_beam_request *request,
                        tess_primary_beam *beam)
{
    tess_status status = TESS_OK;
    const char *model = request->model;
    const char *airy = after(model, "airy:"), *poly = after(model, "poly:");
    const canned *known = find_model(model);
    if (strcasecmp(model, "auto") == 0) known = model_of_telescope(request->telescope);
    if (poly) return take_polynomials(comm, poly, beam);
    if (airy) return take_airy(airy, beam);
    if (known) return take_model(known, lowest(request), beam);
    if (tess_fits_is_name(model)) return take_cube(model, beam);
    TESS_FAIL(
        TESS_ERR_INPUT,
        "no primary beam of telescope '%s' is known: make images without one, or with "
        "tessera image --primary-beam " MODELS
        "; facets take beams of stations from tessera-station-beams",
        request->telescope ? request->telescope : "");
cleanup:
    return status;
}

/* ---- ranges ---- */

/* Whether a frequency is in the beam's range. If not, `text` gets the range in MHz. */
static bool is_known(const tess_primary_beam *beam, double freq_hz, char *text,
                     size_t size)
{
    double low_hz, high_hz;
    const double mhz = freq_hz * 1e-6;
    size_t used = 0;
    *text = '\0';
    switch (beam->kind) {
    case BEAM_AIRY:
        return true;
    case BEAM_POLYNOMIAL:
        for (int k = 0; k < beam->polynomials.num && used < size; ++k)
            used += (size_t)snprintf(text + used, size - used, "%s%g to %g",
                                     k ? ", " : "", beam->polynomials.band[k].low_mhz,
                                     beam->polynomials.band[k].high_mhz);
        return beam_band_of(&beam->polynomials, freq_hz) != NULL;
    case BEAM_COSINE:
        snprintf(text, size, "%g to %g", beam->cosine->low_mhz, beam->cosine->high_mhz);
        return mhz >= beam->cosine->low_mhz && mhz <= beam->cosine->high_mhz;
    case BEAM_CUBE:
        break;
    }
    beam_cube_range(&beam->cube, &low_hz, &high_hz);
    snprintf(text, size, "%.6g to %.6g", low_hz * 1e-6, high_hz * 1e-6);
    /* frequencies of files are rounded */
    return freq_hz >= low_hz * (1 - 1e-9) && freq_hz <= high_hz * (1 + 1e-9);
}

static tess_status check_range(const tess_primary_beam *beam,
                               const tess_primary_beam_request *request)
{
    tess_status status = TESS_OK;
    char known[400];
    for (int64_t k = 0; k < request->num_chan; ++k)
        if (!is_known(beam, request->freq_hz[k], known, sizeof known))
            TESS_FAIL(TESS_ERR_INPUT,
                      "the primary beam (%s) is known at %s MHz, not at %.6g MHz; use "
                      "--channels or another beam",
                      beam->name, known, request->freq_hz[k] * 1e-6);
cleanup:
    return status;
}

tess_status tess_primary_beam_open(tess_comm *comm,
                                   const tess_primary_beam_request *request,
                                   tess_primary_beam **beam_out)
{
    tess_status status = TESS_OK;
    tess_primary_beam *beam = tess_alloc_zero(1, sizeof *beam);
    TESS_TRY(tess_comm_agree(comm, beam ? TESS_OK : TESS_ERR_ALLOC));
    status = take(comm, request, beam);
    if (status == TESS_OK) status = check_range(beam, request);
    TESS_TRY(tess_comm_agree(comm, status));
    *beam_out = beam;
    beam = NULL;
cleanup:
    tess_primary_beam_close(beam);
    return status;
}

const char *tess_primary_beam_name(const tess_primary_beam *beam)
{
    return beam->name;
}

bool tess_primary_beam_turns(const tess_primary_beam *beam)
{
    return beam->kind == BEAM_COSINE || beam->kind == BEAM_CUBE;
}

/* ---- power ---- */

/* The field of a uniformly lit disk: 2 J1(u)/u. */
static double disk(double u)
{
    return u < 1e-6 ? 1 : 2 * j1(u) / u;
}

/* The field of a disk whose middle is blocked: its own less that of the blocked disk.
 */
static double airy_field(const tess_primary_beam *beam, double freq_hz, double sine)
{
    const double u =
        TESS_PI * beam->diameter_m * sine * freq_hz / TESS_SPEED_OF_LIGHT_M_S;
    const double ratio = beam->blockage_m / beam->diameter_m, share = ratio * ratio;
    return (disk(u) - share * disk(u * ratio)) / (1 - share);
}

/* The power of a uniform aperture with a cosine taper falls to one half at this number
 * of half widths (Condon and Ransom 2016, Essential Radio Astronomy, section 3.2.5;
 * Mauch et al. 2020, ApJ 888, 61, equations 3 and 4). */
#define HALF_POWER 1.18896478

static double mixed(double a, double b, double share)
{
    return a + share * (b - a);
}

static double feed_field(const beam_feed *below, const beam_feed *above, double share,
                         const double place[2])
{
    double r2 = 0;
    for (int k = 0; k < 2; ++k) {
        const double squint = mixed(below->squint[k], above->squint[k], share);
        const double width = mixed(below->width[k], above->width[k], share);
        const double r = (place[k] - squint) / width;
        r2 += r * r;
    }
    const double r = HALF_POWER * sqrt(r2), rest = 1 - 4 * r * r;
    /* at r = 1/2 numerator and denominator are 0, and their ratio is π/4 */
    return fabs(rest) < 1e-9 ? TESS_PI / 4 : cos(TESS_PI * r) / rest;
}

/* The fields of the two feeds. */
static void cosine_fields(const beam_cosine_table *table, double freq_hz, double x,
                          double y, double field[2])
{
    const double amin = 60 * TESS_RAD_PER_ASEC, mhz = freq_hz * 1e-6;
    const double place[2] = {x / amin, y / amin};
    int above = 1;
    while (above < table->num - 1 && table->row[above].at_mhz < mhz)
        ++above;
    const beam_cosine_row *a = &table->row[above - 1], *b = &table->row[above];
    const double share = fmin(1, fmax(0, (mhz - a->at_mhz) / (b->at_mhz - a->at_mhz)));
    for (int k = 0; k < 2; ++k)
        field[k] = feed_field(&a->feed[k], &b->feed[k], share, place);
}

static double polynomial_power(const tess_primary_beam *beam, double freq_hz,
                               double sine)
{
    return beam_polynomial_power(beam_band_of(&beam->polynomials, freq_hz), freq_hz,
                                 asin(sine));
}

void beam_formula_fields(const tess_primary_beam *beam, double freq_hz, double x,
                         double y, double field[2])
{
    const double sine = fmin(1, sqrt(x * x + y * y));
    if (beam->kind == BEAM_COSINE) {
        cosine_fields(beam->cosine, freq_hz, x, y, field);
        return;
    }
    field[0] = field[1] = beam->kind == BEAM_AIRY
                              ? airy_field(beam, freq_hz, sine)
                              : sqrt(fmax(0, polynomial_power(beam, freq_hz, sine)));
}

/* The mean power of the two feeds is that of Stokes I. */
double beam_formula_power(const tess_primary_beam *beam, double freq_hz, double x,
                          double y)
{
    double field[2];
    if (beam->kind == BEAM_POLYNOMIAL)
        return polynomial_power(beam, freq_hz, fmin(1, sqrt(x * x + y * y)));
    beam_formula_fields(beam, freq_hz, x, y, field);
    if (beam->kind == BEAM_AIRY) return field[0] * field[0];
    return 0.5 * (field[0] * field[0] + field[1] * field[1]);
}

double beam_formula_pair(const tess_primary_beam *beam, const tess_primary_beam *other,
                         double freq_hz, double x, double y)
{
    double a[2], b[2];
    if (!other) return beam_formula_power(beam, freq_hz, x, y);
    beam_formula_fields(beam, freq_hz, x, y, a);
    beam_formula_fields(other, freq_hz, x, y, b);
    return 0.5 * (a[0] * b[0] + a[1] * b[1]);
}

void tess_primary_beam_close(tess_primary_beam *beam)
{
    if (!beam) return;
    beam_polynomials_free(&beam->polynomials);
    tess_free(beam);
}
