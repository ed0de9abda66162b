/* Computes polynomials of primary beams, and parses those of a text. */
#define _GNU_SOURCE
#include "primary_beam.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tess_const.h"
#include "tess_mem.h"
#include "tess_parse.h"

static const double scale[BEAM_TERMS] = {1e-3, 1e-7, 1e-10, 1e-13, 1e-16};

const beam_band *beam_band_of(const beam_polynomials *of, double freq_hz)
{
    const double mhz = freq_hz * 1e-6;
    for (int k = 0; k < of->num; ++k)
        if (mhz >= of->band[k].low_mhz && mhz <= of->band[k].high_mhz)
            return &of->band[k];
    return NULL;
}

/* p and its derivative at x. */
static double value_at(const beam_polynomial *of, double x, double *slope)
{
    double p = 0;
    *slope = 0;
    for (int k = BEAM_TERMS - 1; k >= 0; --k) {
        *slope = *slope * x + p;
        p = p * x + of->c[k] * scale[k];
    }
    *slope = *slope * x + p;
    return p * x + 1;
}

/* Finds the end of the main lobe in steps of distance × frequency, out to where the
 * beam of an antenna of one metre has fallen to nothing. */
static double find_end(const beam_polynomial *of, bool is_inverse)
{
    const double step = 0.125, most = 4096; /* arcmin GHz */
    const double falls = is_inverse ? -1 : 1;
    double slope;
    for (double r = step; r < most; r += step)
        if (!(value_at(of, r * r, &slope) > 0) || slope * falls > 0)
            return (r - step) * (r - step);
    return most * most;
}

static double power(const beam_polynomial *of, bool is_inverse, double x)
{
    double slope;
    if (x > of->end_x) return 0;
    const double p = value_at(of, x, &slope);
    return is_inverse ? 1 / p : p;
}

double beam_polynomial_power(const beam_band *band, double freq_hz, double distance_rad)
{
    const double mhz = freq_hz * 1e-6;
    const double r = distance_rad / (60 * TESS_RAD_PER_ASEC) * mhz * 1e-3;
    const beam_polynomial *of = band->polynomial;
    int above = 0;
    while (above < band->num - 1 && of[above].at_mhz < mhz)
        ++above;
    const int below = above > 0 ? above - 1 : 0;
    if (above == below) return power(&of[above], band->is_inverse, r * r);
    double share = (mhz - of[below].at_mhz) / (of[above].at_mhz - of[below].at_mhz);
    if (!band->interpolates) share = share < 0.5 ? 0 : 1;
    share = fmin(share, 1);
    return (share < 1 ? (1 - share) * power(&of[below], band->is_inverse, r * r) : 0) +
           (share > 0 ? share * power(&of[above], band->is_inverse, r * r) : 0);
}

tess_status beam_polynomials_copy(const beam_band *band, int num, beam_polynomials *to)
{
    tess_status status = TESS_OK;
    int count = 0;
    for (int k = 0; k < num; ++k)
        count += band[k].num;
    beam_polynomials made = {.num = num};
    made.band = tess_alloc_zero(num, sizeof *made.band);
    made.polynomial = tess_alloc_zero(count, sizeof *made.polynomial);
    if (!made.band || !made.polynomial) TESS_FAIL(TESS_ERR_ALLOC, "primary beam");
    beam_polynomial *next = made.polynomial;
    for (int k = 0; k < num; ++k) {
        made.band[k] = band[k];
        made.band[k].polynomial = next;
        for (int j = 0; j < band[k].num; ++j, ++next) {
            *next = band[k].polynomial[j];
            next->end_x = find_end(next, band[k].is_inverse);
        }
    }
    *to = made;
    made = (beam_polynomials){0};
cleanup:
    beam_polynomials_free(&made);
    return status;
}

/* ---- texts ---- */

/* The next word of a line, or NULL. */
static char *next_word(char **rest)
{
    char *word = strsep(rest, " \t\r,");
    while (word && !*word)
        word = strsep(rest, " \t\r,");
    return word;
}

/* Converts coefficients as they are written, c0 + c1 x ..., to those of this module. */
static tess_status parse_coefficients(char *rest, beam_polynomial *to)
{
    tess_status status = TESS_OK;
    double c[BEAM_TERMS + 1] = {0};
    int num = 0;
    for (char *word; (word = next_word(&rest)); ++num) {
        if (num > BEAM_TERMS)
            TESS_FAIL(TESS_ERR_USAGE, "more than %d coefficients", BEAM_TERMS + 1);
        TESS_TRY(tess_parse_number(word, -DBL_MAX, DBL_MAX, &c[num]));
    }
    if (num < 2 || !(c[0] > 0))
        TESS_FAIL(TESS_ERR_USAGE,
                  "no beam; it needs two coefficients or more, the first above 0");
    for (int k = 0; k < BEAM_TERMS; ++k) {
        to->c[k] = c[k + 1] / c[0] / scale[k];
        if (!isfinite(to->c[k]))
            TESS_FAIL(TESS_ERR_USAGE, "coefficient c%d is too large, beside c0", k + 1);
    }
cleanup:
    return status;
}

/* "LOW HIGH poly|inverse c0 c1 ..." */
static tess_status parse_line(char *line, beam_band *band, beam_polynomial *polynomial)
{
    tess_status status = TESS_OK;
    double hz[2];
    for (int k = 0; k < 2; ++k) {
        const char *word = next_word(&line);
        if (!word)
            TESS_FAIL(TESS_ERR_USAGE, "no range of frequencies like 0.9GHz 1.7GHz");
        TESS_TRY(tess_parse_frequency(word, &hz[k]));
    }
    const char *kind = next_word(&line);
    if (!kind || (strcmp(kind, "poly") != 0 && strcmp(kind, "inverse") != 0))
        TESS_FAIL(TESS_ERR_USAGE, "'%s' is neither poly nor inverse", kind ? kind : "");
    if (!(hz[1] >= hz[0]))
        TESS_FAIL(TESS_ERR_USAGE, "the range of frequencies is empty");
    TESS_TRY(parse_coefficients(line, polynomial));
    polynomial->at_mhz = 0.5e-6 * (hz[0] + hz[1]);
    polynomial->end_x = find_end(polynomial, *kind == 'i');
    *band = (beam_band){.low_mhz = hz[0] * 1e-6,
                        .high_mhz = hz[1] * 1e-6,
                        .polynomial = polynomial,
                        .num = 1,
                        .is_inverse = *kind == 'i'};
cleanup:
    return status;
}

static int64_t count_lines(const char *text)
{
    int64_t count = 1;
    for (; *text; ++text)
        count += *text == '\n';
    return count;
}

tess_status beam_polynomials_parse(const char *path, char *text, beam_polynomials *to)
{
    tess_status status = TESS_OK;
    const int64_t most = count_lines(text);
    beam_polynomials made = {0};
    int64_t number = 0;
    made.band = tess_alloc_zero(most, sizeof *made.band);
    made.polynomial = tess_alloc_zero(most, sizeof *made.polynomial);
    if (!made.band || !made.polynomial) TESS_FAIL(TESS_ERR_ALLOC, "primary beam");
    for (char *line; (line = strsep(&text, "\n"));) {
        ++number;
        line[strcspn(line, "#")] = '\0';
        if (strspn(line, " \t\r") == strlen(line)) continue;
        if (parse_line(line, &made.band[made.num], &made.polynomial[made.num]) !=
            TESS_OK) {
            char why[400];
            snprintf(why, sizeof why, "%s", tess_error_message());
            tess_error_clear();
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: line %lld: %s; write LOW HIGH poly|inverse c0 c1 ...", path,
                      (long long)number, why);
        }
        ++made.num;
    }
    if (made.num == 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: no beam in it; write LOW HIGH poly|inverse c0 c1 ...", path);
    *to = made;
    made = (beam_polynomials){0};
cleanup:
    beam_polynomials_free(&made);
    return status;
}

void beam_polynomials_free(beam_polynomials *of)
{
    tess_free(of->band);
    tess_free(of->polynomial);
    *of = (beam_polynomials){0};
}
