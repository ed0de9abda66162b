/* UVFITS files made from a description, with values that tell where they came from.
 * Written card by card and byte by byte, so that they do not depend on what is tested.
 */
#ifndef UVFITS_SAMPLE_H
#define UVFITS_SAMPLE_H

#include <fitsio.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sample {
    const char *axes; /* order: C(omplex) S(tokes) F(req) I(F) R(A) D(ec) */
    int bitpix, num_complex, num_stokes, num_chan, num_if;
    double stokes_first, stokes_step, bscale, bzero;
    int num_groups, num_antennas;
    const char *params; /* comma-separated PTYPEs */
    int num_sources, num_setups, num_subarrays;
    bool no_tables;
    double freq_hz, step_hz;
    const double *crpix;      /* of STOKES and FREQ, NAN: no card; NULL: all are 1 */
    int num_places;           /* groups after which uvw repeat; 0: never */
    const char *card;         /* one more card of the primary header, or NULL */
    double second_date_scale; /* PSCAL of a DATE after the first; 0: 1 */
    const char *time_system;  /* TIMSYS of the AN tables, NULL: not said */
    double iat_utc_s, dat_utc_s;
} sample;

static const sample plain = {.axes = "CSFIRD",
                             .bitpix = -32,
                             .num_complex = 3,
                             .num_stokes = 4,
                             .num_chan = 3,
                             .num_if = 2,
                             .stokes_first = -5,
                             .stokes_step = -1,
                             .bscale = 1,
                             .num_groups = 12,
                             .num_antennas = 4,
                             .params = "UU---SIN,VV---SIN,WW---SIN,BASELINE,DATE,DATE",
                             .num_sources = 0,
                             .num_setups = 1,
                             .num_subarrays = 1,
                             .freq_hz = 1.4e9,
                             .step_hz = 1e6};

/* A value that an integer of 16 bits can hold, different everywhere; part 2 is the
 * weight, every fifth of which is a flag. */
static double value_at(int group, int chan_if, int chan, int stokes, int part)
{
    const int number = (((group * 2 + chan_if) * 3 + chan) * 4 + stokes) % 10000;
    if (part == 2 && number % 5 == 0) return number % 2 ? -2.0 : 0.0;
    if (part == 2) return 1.0 + number % 7;
    return part == 0 ? number : -number - 1;
}

/* Baselines 1-2, 1-3, ... of the antennas that the file numbers 11, 12, ... backwards.
 */
static void antennas_of(const sample *s, int group, int *a, int *b)
{
    *a = group % (s->num_antennas - 1);
    *b = *a + 1;
}

static int number_of(const sample *s, int antenna)
{
    return s->num_antennas > 255 ? s->num_antennas - antenna
                                 : 10 + s->num_antennas - antenna;
}

static double param_at(const sample *s, const char *name, int group, int occurrence)
{
    int a, b;
    const int place = 1 + (s->num_places > 0 ? group % s->num_places : group);
    antennas_of(s, group, &a, &b);
    if (name[0] == 'U') return 1e-6 * place;
    if (name[0] == 'V') return -2e-6 * place;
    if (name[0] == 'W') return 3e-7 * place;
    if (strcmp(name, "BASELINE") == 0) {
        const int na = number_of(s, a), nb = number_of(s, b);
        const int subarray = group % s->num_subarrays;
        return (s->num_antennas > 255 ? 2048 * na + nb + 65536 : 256 * na + nb) +
               0.01 * subarray;
    }
    if (strcmp(name, "ANTENNA1") == 0) return number_of(s, a);
    if (strcmp(name, "ANTENNA2") == 0) return number_of(s, b);
    if (strcmp(name, "SUBARRAY") == 0) return 1 + group % s->num_subarrays;
    if (strcmp(name, "DATE") == 0) return occurrence == 0 ? 2 : group / 1024.0;
    if (strcmp(name, "SOURCE") == 0) return 7 + group % s->num_sources;
    if (strcmp(name, "FREQSEL") == 0) return 1 + group / 2 % s->num_setups;
    if (strcmp(name, "INTTIM") == 0) return 4.0;
    return 0;
}

/* What the file stores of a parameter, scaled: PSCAL 0.5 for uvw, PZERO for the date.
 */
static double param_scale(const sample *s, const char *name, int occurrence)
{
    if (occurrence > 0 && s->second_date_scale > 0) return s->second_date_scale;
    return strchr("UVW", name[0]) ? 0.5 : 1.0;
}

/* How often the parameter's name has stood before it. */
static int occurrence_of(char names[16][16], int param)
{
    return param > 0 && strcmp(names[param], names[param - 1]) == 0;
}

static void put_value(FILE *file, int bitpix, double value)
{
    unsigned char bytes[8];
    uint64_t bits = 0;
    const int size = abs(bitpix) / 8;
    if (bitpix == -64) memcpy(&bits, &value, 8);
    if (bitpix == -32) {
        const float single = (float)value;
        uint32_t word;
        memcpy(&word, &single, 4);
        bits = word;
    }
    if (bitpix > 0) bits = (uint64_t)(int64_t)lrint(value);
    for (int k = 0; k < size; ++k)
        bytes[k] = (unsigned char)(bits >> 8 * (size - 1 - k));
    assert_int_equal(fwrite(bytes, 1, (size_t)size, file), (size_t)size);
}

__attribute__((format(printf, 2, 3))) static void put_card(FILE *file,
                                                           const char *format, ...)
{
    char card[128];
    va_list args;
    va_start(args, format);
    vsnprintf(card, sizeof card, format, args);
    va_end(args);
    fprintf(file, "%-80.80s", card);
}

static int axis_length(const sample *s, char axis)
{
    switch (axis) {
    case 'C':
        return s->num_complex;
    case 'S':
        return s->num_stokes;
    case 'F':
        return s->num_chan;
    case 'I':
        return s->num_if;
    default:
        return 1;
    }
}

static int split_params(const sample *s, char names[16][16])
{
    char copy[256];
    int count = 0;
    snprintf(copy, sizeof copy, "%s", s->params);
    for (char *rest = copy, *name; (name = strsep(&rest, ",")) != NULL;)
        snprintf(names[count++], 16, "%s", name);
    return count;
}

static void put_header(FILE *file, const sample *s, char names[16][16], int num_params)
{
    const int num_axes = (int)strlen(s->axes);
    put_card(file, "SIMPLE  =                    T");
    put_card(file, "BITPIX  = %20d", s->bitpix);
    put_card(file, "NAXIS   = %20d", num_axes + 1);
    put_card(file, "NAXIS1  = %20d", 0);
    for (int k = 0; k < num_axes; ++k)
        put_card(file, "NAXIS%d  = %20d", k + 2, axis_length(s, s->axes[k]));
    put_card(file, "EXTEND  =                    T");
    put_card(file, "GROUPS  =                    T");
    put_card(file, "PCOUNT  = %20d", num_params);
    put_card(file, "GCOUNT  = %20d", s->num_groups);
    put_card(file, "BSCALE  = %20g", s->bscale);
    put_card(file, "BZERO   = %20g", s->bzero);
    for (int k = 0; k < num_axes; ++k) {
        static const char *const types = "CSFIRD";
        static const char *const ctypes[] = {"COMPLEX", "STOKES", "FREQ",
                                             "IF",      "RA",     "DEC"};
        const double crval[] = {1, s->stokes_first, s->freq_hz, 1, 123.5, -45.25};
        const double cdelt[] = {1, s->stokes_step, s->step_hz, 1, 1, 1};
        const int type = (int)(strchr(types, s->axes[k]) - types);
        put_card(file, "CTYPE%d  = '%-8s'", k + 2, ctypes[type]);
        put_card(file, "CRVAL%d  = %20.12g", k + 2, crval[type]);
        put_card(file, "CDELT%d  = %20.12g", k + 2, cdelt[type]);
        double crpix = 1.0;
        if (s->crpix && s->axes[k] == 'S') crpix = s->crpix[0];
        if (s->crpix && s->axes[k] == 'F') crpix = s->crpix[1];
        if (!isnan(crpix)) put_card(file, "CRPIX%d  = %20g", k + 2, crpix);
    }
    for (int k = 0; k < num_params; ++k) {
        const int occurrence = occurrence_of(names, k);
        const bool first_date = strcmp(names[k], "DATE") == 0 && occurrence == 0;
        put_card(file, "PTYPE%-3d= '%-8s'", k + 1, names[k]);
        put_card(file, "PSCAL%-3d= %20g", k + 1, param_scale(s, names[k], occurrence));
        put_card(file, "PZERO%-3d= %20.10g", k + 1, first_date ? 2450000.5 : 0.0);
    }
    put_card(file, "OBJECT  = 'TARGET  '");
    put_card(file, "TELESCOP= 'SAMPLE  '");
    if (s->card) put_card(file, "%s", s->card);
    put_card(file, "END");
    while (ftell(file) % 2880)
        fputc(' ', file);
}

static void put_groups(FILE *file, const sample *s, char names[16][16], int num_params)
{
    const int num_axes = (int)strlen(s->axes);
    int num_values = 1;
    for (int k = 0; k < num_axes; ++k)
        num_values *= axis_length(s, s->axes[k]);
    for (int group = 0; group < s->num_groups; ++group) {
        for (int k = 0; k < num_params; ++k) {
            const int occurrence = occurrence_of(names, k);
            put_value(file, s->bitpix,
                      param_at(s, names[k], group, occurrence) /
                          param_scale(s, names[k], occurrence));
        }
        for (int at = 0; at < num_values; ++at) {
            int index[128] = {0}, rest = at;
            for (int k = 0; k < num_axes; ++k) {
                index[(int)s->axes[k]] = rest % axis_length(s, s->axes[k]);
                rest /= axis_length(s, s->axes[k]);
            }
            const double value =
                value_at(group, index['I'], index['F'], index['S'], index['C']);
            put_value(file, s->bitpix, (value - s->bzero) / s->bscale);
        }
    }
    while (ftell(file) % 2880)
        fputc('\0', file);
}

static void put_tables(const sample *s, const char *path)
{
    fitsfile *fits = NULL;
    int failed = 0;
    char *fq_names[] = {"FRQSEL", "IF FREQ", "CH WIDTH", "SIDEBAND"}, *fq_forms[4];
    char forms[4][8];
    const char kinds[] = "JDEJ";
    for (int k = 0; k < 4; ++k) {
        snprintf(forms[k], 8, "%d%c", k ? s->num_if : 1, kinds[k]);
        fq_forms[k] = forms[k];
    }
    fits_open_diskfile(&fits, path, READWRITE, &failed);
    fits_create_tbl(fits, BINARY_TBL, s->num_setups, 4, fq_names, fq_forms, NULL,
                    "AIPS FQ", &failed);
    for (int row = s->num_setups - 1; row >= 0; --row) /* FRQSEL falls with the row */
        for (int k = 0; k < s->num_if; ++k) {
            int id = s->num_setups - row, sideband = 1;
            double offset_hz = 1e8 * k + 1e9 * (id - 1);
            float width_hz = (float)s->step_hz;
            fits_write_col(fits, TINT, 1, row + 1, 1, 1, &id, &failed);
            fits_write_col(fits, TDOUBLE, 2, row + 1, k + 1, 1, &offset_hz, &failed);
            fits_write_col(fits, TFLOAT, 3, row + 1, k + 1, 1, &width_hz, &failed);
            fits_write_col(fits, TINT, 4, row + 1, k + 1, 1, &sideband, &failed);
        }
    char *su_names[] = {"ID. NO.", "SOURCE", "RAEPO", "DECEPO"};
    char *su_forms[] = {"1J", "16A", "1D", "1D"};
    if (s->num_sources > 0)
        fits_create_tbl(fits, BINARY_TBL, s->num_sources, 4, su_names, su_forms, NULL,
                        "AIPS SU", &failed);
    for (int row = 0; row < s->num_sources; ++row) {
        int id = 7 + row;
        char name[16], *text = name;
        double ra_deg = 10.0 + row, dec_deg = -20.0 - row;
        snprintf(name, sizeof name, "SRC%c", 'A' + row);
        fits_write_col(fits, TINT, 1, row + 1, 1, 1, &id, &failed);
        fits_write_col(fits, TSTRING, 2, row + 1, 1, 1, &text, &failed);
        fits_write_col(fits, TDOUBLE, 3, row + 1, 1, 1, &ra_deg, &failed);
        fits_write_col(fits, TDOUBLE, 4, row + 1, 1, 1, &dec_deg, &failed);
    }
    char *an_names[] = {"ANNAME", "STABXYZ", "NOSTA"}, *an_forms[] = {"8A", "3D", "1J"};
    for (int version = 1; version <= s->num_subarrays; ++version) {
        fits_create_tbl(fits, BINARY_TBL, s->num_antennas, 3, an_names, an_forms, NULL,
                        "AIPS AN", &failed);
        fits_update_key(fits, TINT, "EXTVER", &version, NULL, &failed);
        if (s->time_system) {
            char text[8];
            double iat_utc_s = s->iat_utc_s, dat_utc_s = s->dat_utc_s;
            snprintf(text, sizeof text, "%s", s->time_system);
            fits_update_key(fits, TSTRING, "TIMSYS", text, NULL, &failed);
            fits_update_key(fits, TDOUBLE, "IATUTC", &iat_utc_s, NULL, &failed);
            fits_update_key(fits, TDOUBLE, "DATUTC", &dat_utc_s, NULL, &failed);
        }
        for (int row = 0; row < s->num_antennas; ++row) {
            int number = number_of(s, row);
            char name[16], *text = name;
            double xyz_m[] = {5e6 + row, 100.0 * version, 3e6};
            snprintf(name, sizeof name, "S%dA%d", version, row);
            fits_write_col(fits, TSTRING, 1, row + 1, 1, 1, &text, &failed);
            fits_write_col(fits, TDOUBLE, 2, row + 1, 1, 3, xyz_m, &failed);
            fits_write_col(fits, TINT, 3, row + 1, 1, 1, &number, &failed);
        }
    }
    fits_close_file(fits, &failed);
    assert_int_equal(failed, 0);
}

static void make(const sample *s, const char *path)
{
    char names[16][16];
    const int num_params = split_params(s, names);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    put_header(file, s, names, num_params);
    put_groups(file, s, names, num_params);
    assert_int_equal(fclose(file), 0);
    if (!s->no_tables) put_tables(s, path);
}

#endif
