/* Prints the description of an observation that info_scan.c made, as text or as JSON.
 */
#define _GNU_SOURCE
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "info.h"
#include "tess_const.h"
#include "tess_fits_array.h"
#include "tess_polar.h"
#include "tess_text.h"
#include "tess_words.h"

enum { SHOWN_BYTES = 1024, MOST_COLUMNS = 8 };

/* ---- texts ---- */

static void length_text(double m, char *text, size_t size)
{
    if (m >= 1e4)
        snprintf(text, size, "%.4g km", 1e-3 * m);
    else
        snprintf(text, size, "%.4g m", m);
}

static void duration_text(double seconds, char *text, size_t size)
{
    /* The times of a damaged file may be too far apart for an integer. */
    const bool is_counted = fabs(seconds) < 1e12;
    if (is_counted) seconds = round(10 * seconds) / 10; /* the text shows tenths */
    const long long minutes = is_counted ? (long long)(seconds / 60) : 0;
    if (seconds < 120 || !is_counted)
        snprintf(text, size, "%.4g s", seconds);
    else if (minutes < 120)
        snprintf(text, size, "%lld min %.0f s", minutes,
                 floor(seconds - 60 * (double)minutes));
    else
        snprintf(text, size, "%lld h %lld min", minutes / 60, minutes % 60);
}

static void corr_text(const tess_info_spw *spw, const char *between, char *text,
                      size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int k = 0; k < spw->num_corr && used < size; ++k) {
        const int n = snprintf(text + used, size - used, "%s%s", k ? between : "",
                               tess_corr_name(spw->corr[k]));
        used += n > 0 ? (size_t)n : 0;
    }
}

static double percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100 * (double)part / (double)whole : 0;
}

/* ---- for people ---- */

/* Copies a name from the file without the bytes that a terminal should not get. */
static const char *shown(const char *name, char copy[SHOWN_BYTES])
{
    snprintf(copy, SHOWN_BYTES, "%s", name);
    return tess_text_clean(copy);
}

static void print_line(FILE *out, const char *label, const char *text)
{
    char copy[SHOWN_BYTES];
    if (*text) fprintf(out, "%-14s%s\n", label, shown(text, copy));
}

static void print_times(FILE *out, const tess_vis_meta *meta, const tess_info *info)
{
    char start[48], end[48], duration[48];
    tess_words_time(info->time_start_mjd_s, start, sizeof start);
    tess_words_time(info->time_end_mjd_s, end, sizeof end);
    duration_text(info->time_end_mjd_s - info->time_start_mjd_s, duration,
                  sizeof duration);
    fprintf(out, "%-14s%s to %s UTC (%s)\n", "Time", start, end, duration);
    fprintf(out, "%-14s%lld", "Integrations", (long long)info->num_times);
    if (meta->integration_s > 0) fprintf(out, " of %.4g s", meta->integration_s);
    fputc('\n', out);
}

static void print_fields(FILE *out, const tess_vis_meta *meta)
{
    fprintf(out, "\nFields\n  %4s  %-20s %15s %15s %12s  %s\n", "id", "name", "RA",
            "Dec", "rows", "frame");
    for (int k = 0; k < meta->num_fields; ++k) {
        const tess_vis_field *field = &meta->field[k];
        char ra[32] = "-", dec[32] = "-", copy[SHOWN_BYTES];
        if (isfinite(field->ra_rad)) {
            tess_words_ra(field->ra_rad, 4, ra, sizeof ra);
            tess_words_dec(field->dec_rad, 3, dec, sizeof dec);
        }
        fprintf(out, "  %4d  %-20s %15s %15s %12lld  %s\n", field->id,
                *field->name ? shown(field->name, copy) : "-", ra, dec,
                (long long)field->num_rows, field->frame);
    }
}

static void print_windows(FILE *out, const tess_info *info)
{
    fprintf(out, "\nSpectral windows\n  %4s %9s %14s %14s %14s %12s  %s\n", "spw",
            "channels", "from MHz", "to MHz", "width kHz", "rows", "correlations");
    for (int k = 0; k < info->num_spw; ++k) {
        const tess_info_spw *spw = &info->spw[k];
        char corr[32];
        corr_text(spw, " ", corr, sizeof corr);
        fprintf(out, "  %4d %9lld %14.6f %14.6f %14.6g %12lld  %s\n", spw->spw,
                (long long)spw->num_chan, 1e-6 * spw->freq_min_hz,
                1e-6 * spw->freq_max_hz, 1e-3 * spw->chan_width_hz,
                (long long)spw->num_rows, corr);
    }
}

/* Prints a row for each field, with a column for each window from `first` to `end`. */
static void print_flags_of(FILE *out, const tess_vis_meta *meta, const tess_info *info,
                           int first, int end)
{
    fprintf(out, "  %4s  %-20s", "id", "name");
    for (int k = first; k < end; ++k)
        fprintf(out, " %*s%d", info->spw[k].spw < 10 ? 6 : 5, "spw ", info->spw[k].spw);
    fputc('\n', out);
    for (int field = 0; field < meta->num_fields; ++field) {
        const tess_info_cell *cell[MOST_COLUMNS] = {NULL};
        bool any = false;
        for (int k = 0; k < info->num_cells; ++k) {
            const tess_info_cell *c = &info->cell[k];
            if (c->field != field || c->spw < first || c->spw >= end) continue;
            cell[c->spw - first] = c;
            any = true;
        }
        if (!any) continue;
        char copy[SHOWN_BYTES];
        const char *name = meta->field[field].name;
        fprintf(out, "  %4d  %-20s", meta->field[field].id,
                *name ? shown(name, copy) : "-");
        for (int k = 0; k < end - first; ++k)
            if (cell[k])
                fprintf(out, " %7.2f",
                        percent(cell[k]->samples.flagged, cell[k]->samples.all));
            else
                fprintf(out, " %7s", "-");
        fputc('\n', out);
    }
}

static void print_flags(FILE *out, const tess_vis_meta *meta, const tess_info *info)
{
    if (info->num_cells == 0) return;
    fputs("\nFlagged samples in %\n", out);
    for (int first = 0; first < info->num_spw; first += MOST_COLUMNS) {
        const int left = info->num_spw - first;
        print_flags_of(out, meta, info, first,
                       first + (left < MOST_COLUMNS ? left : MOST_COLUMNS));
    }
}

static void print_antennas(FILE *out, const tess_vis_meta *meta)
{
    fprintf(out, "\nAntennas\n  %4s  %-16s %14s %14s %14s %9s\n", "id", "name", "x m",
            "y m", "z m", "dish m");
    for (int k = 0; k < meta->num_antennas; ++k) {
        const tess_vis_antenna *a = &meta->antenna[k];
        char copy[SHOWN_BYTES];
        fprintf(out, "  %4d  %-16s %14.3f %14.3f %14.3f ", k,
                *a->name ? shown(a->name, copy) : "-", a->xyz_m[0], a->xyz_m[1],
                a->xyz_m[2]);
        if (a->diameter_m > 0)
            fprintf(out, "%9.4g\n", a->diameter_m);
        else
            fprintf(out, "%9s\n", "-");
    }
}

static bool has_usable(const tess_info *info)
{
    return !info->has_flags || tess_info_unusable(&info->samples) < info->samples.all;
}

static void print_rows(FILE *out, const tess_vis_meta *meta, const tess_info *info)
{
    char shortest[32], longest[32];
    length_text(info->min_baseline_m, shortest, sizeof shortest);
    length_text(info->max_baseline_m, longest, sizeof longest);
    fprintf(out, "\n%-14s%d\n", "Antennas", meta->num_antennas);
    fprintf(out, "%-14s%lld, of which %lld autocorrelations", "Rows",
            (long long)info->num_rows, (long long)info->num_auto);
    if (info->num_rows_total != info->num_rows)
        fprintf(out, " (%lld in the file)", (long long)info->num_rows_total);
    fputc('\n', out);
    fprintf(out, "%-14s%s to %s, up to %.4g wavelengths in uv and %.4g in w\n",
            "Baselines", shortest, longest, info->max_uv_lambda, info->max_w_lambda);
    if (!info->has_flags) return;
    const tess_info_samples *samples = &info->samples;
    fprintf(out,
            "%-14s%lld: %.2f %% flagged, %.2f %% of weight <= 0, %lld not finite\n",
            "Samples", (long long)samples->all, percent(samples->flagged, samples->all),
            percent(samples->weight_not_positive, samples->all),
            (long long)samples->not_finite);
    if (!has_usable(info))
        print_line(out, "", "Nothing can be imaged: no sample is usable.");
}

/* ---- what to image ---- */

/* Whether a window has the correlations for a Stokes parameter. */
static bool makes(const tess_info_spw *spw, tess_corr stokes)
{
    const tess_pol pol = {.code = stokes};
    return tess_pol_mix_of(&pol, spw->corr, spw->num_corr).num > 0;
}

/* Writes the Stokes parameters that at least one window can make, like "IQ", or "". */
static void stokes_text(const tess_info *info, char text[5])
{
    int count = 0;
    for (tess_corr stokes = 1; stokes <= 4; ++stokes)
        for (int k = 0; k < info->num_spw; ++k)
            if (makes(&info->spw[k], stokes)) {
                text[count++] = tess_corr_name(stokes)[0];
                break;
            }
    text[count] = '\0';
}

/* The field with the most usable samples, or, if samples were not counted, with the
 * most rows. It is -1 if there is only one field. */
static int main_field(const tess_vis_meta *meta, const tess_info *info)
{
    int best = -1, count = 0;
    int64_t most = -1;
    for (int field = 0; field < meta->num_fields; ++field) {
        int64_t usable = info->num_cells ? 0 : meta->field[field].num_rows;
        if (meta->field[field].num_rows == 0) continue;
        for (int k = 0; k < info->num_cells; ++k)
            if (info->cell[k].field == field)
                usable += info->cell[k].samples.all -
                          tess_info_unusable(&info->cell[k].samples);
        if (usable > most) best = field;
        if (usable > most) most = usable;
        ++count;
    }
    return count > 1 ? best : -1;
}

/* Prints a word, in quotes if a shell needs them. */
static void print_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+:,./";
    if (*word && *word != '-' && strspn(word, plain) == strlen(word)) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (const char *c = word; *c; ++c)
        if (*c == '\'')
            fputs("'\\''", out);
        else
            fputc(*c, out);
    fputc('\'', out);
}

/* Prints --field with the name of a field, or with its number if the name is not
 * unique. */
static void print_field(FILE *out, const tess_vis_meta *meta, int field)
{
    char copy[SHOWN_BYTES];
    const char *name = meta->field[field].name;
    bool unique = *name && strcmp(shown(name, copy), name) == 0;
    for (int k = 0; k < meta->num_fields; ++k)
        if (k != field && strcasecmp(meta->field[k].name, name) == 0) unique = false;
    fputs(" --field ", out);
    if (unique)
        print_word(out, name);
    else
        fprintf(out, "%d", meta->field[field].id);
}

/* Prints the command for a first image, or nothing if no sample is usable. */
static void print_command(FILE *out, const tess_vis_meta *meta, const tess_info *info)
{
    char scale[32], stokes[5], copy[SHOWN_BYTES];
    const int field = main_field(meta, info);
    if (!(info->scale_rad > 0) || !has_usable(info)) return;
    tess_text_angle(info->scale_rad, scale, sizeof scale);
    stokes_text(info, stokes);
    fputs("tessera image ", out);
    print_word(out, shown(meta->path, copy));
    fprintf(out, " -o NAME --size %lld --scale %s --stokes %s", (long long)info->size,
            scale,
            stokes[0] ? (char[]){stokes[0], '\0'}
                      : tess_corr_name(info->spw[0].corr[0]));
    if (field >= 0) print_field(out, meta, field);
}

static void print_suggestion(FILE *out, const tess_vis_meta *meta,
                             const tess_info *info)
{
    char beam[32], stokes[5], corr[32];
    if (!(info->scale_rad > 0) || !has_usable(info)) return;
    tess_text_angle(1 / info->max_uv_lambda, beam, sizeof beam);
    stokes_text(info, stokes);
    corr_text(&info->spw[0], ",", corr, sizeof corr);
    fprintf(out, "\nThe finest detail is about %s. ", beam);
    if (stokes[0])
        fprintf(out, "--stokes %s can be imaged. To begin with, try\n  ", stokes);
    else
        fprintf(out,
                "--stokes %s can be imaged, but no Stokes parameter. To begin with, "
                "try\n  ",
                corr);
    print_command(out, meta, info);
    fputc('\n', out);
    if (main_field(meta, info) >= 0) fputs("or another of the fields above\n", out);
}

void tess_info_print(FILE *out, const tess_vis_meta *meta, const tess_info *info,
                     bool antennas)
{
    print_line(out, "Observation", meta->path);
    print_line(out, "Format", meta->format);
    print_line(out, "Telescope", meta->telescope);
    print_line(out, "Observer", meta->observer);
    print_line(out, "Project", meta->project);
    print_line(out, "Object", meta->object);
    print_times(out, meta, info);
    print_fields(out, meta);
    print_windows(out, info);
    print_flags(out, meta, info);
    if (antennas) print_antennas(out, meta);
    print_rows(out, meta, info);
    print_suggestion(out, meta, info);
}

/* ---- JSON ---- */

/* A JSON string of a name from a file. It has '?' for bytes that are not UTF-8. */
static json_t *json_text(const char *text)
{
    json_t *value = json_string(text);
    if (value) return value;
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", text);
    for (char *c = copy; *c; ++c)
        if ((unsigned char)*c >= 0x80) *c = '?';
    return json_string(copy);
}

static json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void put(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, json_number(value));
}

static void put_count(json_t *object, const char *key, int64_t value)
{
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

static void put_text(json_t *object, const char *key, const char *text)
{
    json_object_set_new(object, key, json_text(text));
}

static json_t *json_fields(const tess_vis_meta *meta)
{
    json_t *list = json_array();
    for (int k = 0; k < meta->num_fields; ++k) {
        json_t *field = json_object();
        put_count(field, "id", meta->field[k].id);
        put_text(field, "name", meta->field[k].name);
        put(field, "ra_deg", tess_fits_longitude(meta->field[k].ra_rad));
        put(field, "dec_deg", tess_fits_degrees(meta->field[k].dec_rad));
        put_text(field, "frame", meta->field[k].frame);
        put_count(field, "rows", meta->field[k].num_rows);
        json_array_append_new(list, field);
    }
    return list;
}

static json_t *json_windows(const tess_info *info)
{
    json_t *list = json_array();
    for (int k = 0; k < info->num_spw; ++k) {
        const tess_info_spw *spw = &info->spw[k];
        json_t *window = json_object(), *corr = json_array();
        for (int c = 0; c < spw->num_corr; ++c)
            json_array_append_new(corr, json_text(tess_corr_name(spw->corr[c])));
        put_count(window, "spw", spw->spw);
        put_count(window, "channels", spw->num_chan);
        put(window, "first_channel_hz", spw->first_hz);
        put(window, "channel_width_hz", spw->chan_width_hz);
        put(window, "freq_min_hz", spw->freq_min_hz);
        put(window, "freq_max_hz", spw->freq_max_hz);
        put_count(window, "rows", spw->num_rows);
        json_object_set_new(window, "correlations", corr);
        json_array_append_new(list, window);
    }
    return list;
}

static void put_samples(json_t *object, const tess_info_samples *samples)
{
    put_count(object, "samples", samples->all);
    put_count(object, "flagged", samples->flagged);
    put_count(object, "weight_not_positive", samples->weight_not_positive);
    put_count(object, "not_finite", samples->not_finite);
}

static json_t *json_flags(const tess_vis_meta *meta, const tess_info *info)
{
    json_t *list = json_array();
    for (int k = 0; k < info->num_cells; ++k) {
        const tess_info_cell *cell = &info->cell[k];
        json_t *entry = json_object();
        put_count(entry, "field", meta->field[cell->field].id);
        put_text(entry, "name", meta->field[cell->field].name);
        put_count(entry, "spw", info->spw[cell->spw].spw);
        put_samples(entry, &cell->samples);
        put(entry, "flagged_share",
            percent(cell->samples.flagged, cell->samples.all) / 100);
        json_array_append_new(list, entry);
    }
    return list;
}

static void put_suggestion(json_t *root, const tess_vis_meta *meta,
                           const tess_info *info)
{
    char stokes[5], *command = NULL;
    size_t size = 0;
    stokes_text(info, stokes);
    put_text(root, "stokes", stokes);
    if (!(info->scale_rad > 0)) return;
    put(root, "suggested_scale_asec", info->scale_rad / TESS_RAD_PER_ASEC);
    put_count(root, "suggested_size", info->size);
    FILE *text = open_memstream(&command, &size);
    if (!text) return; /* without memory, the description has no command */
    print_command(text, meta, info);
    if (fclose(text) == 0 && *command) put_text(root, "suggested_command", command);
    free(command);
}

static json_t *json_antennas(const tess_vis_meta *meta)
{
    json_t *list = json_array();
    for (int k = 0; k < meta->num_antennas; ++k) {
        const tess_vis_antenna *a = &meta->antenna[k];
        json_t *antenna = json_object(), *xyz = json_array();
        for (int c = 0; c < 3; ++c)
            json_array_append_new(xyz, json_number(a->xyz_m[c]));
        put_text(antenna, "name", a->name);
        json_object_set_new(antenna, "xyz_m", xyz);
        put(antenna, "diameter_m", a->diameter_m);
        json_array_append_new(list, antenna);
    }
    return list;
}

static void put_header(json_t *root, const tess_vis_meta *meta, const tess_info *info)
{
    put_text(root, "path", meta->path);
    put_text(root, "format", meta->format);
    put_text(root, "telescope", meta->telescope);
    put_text(root, "observer", meta->observer);
    put_text(root, "project", meta->project);
    put_text(root, "object", meta->object);
    put(root, "equinox", meta->equinox);
    put(root, "time_start_mjd", info->time_start_mjd_s / TESS_SECONDS_PER_DAY);
    put(root, "time_end_mjd", info->time_end_mjd_s / TESS_SECONDS_PER_DAY);
    put_count(root, "integrations", info->num_times);
    put(root, "integration_s", meta->integration_s);
}

static void put_rows(json_t *root, const tess_info *info)
{
    put_count(root, "rows", info->num_rows);
    put_count(root, "rows_in_file", info->num_rows_total);
    put_count(root, "autocorrelation_rows", info->num_auto);
    put(root, "min_baseline_m", info->min_baseline_m);
    put(root, "max_baseline_m", info->max_baseline_m);
    put(root, "max_uv_lambda", info->max_uv_lambda);
    put(root, "max_w_lambda", info->max_w_lambda);
    if (info->has_flags) put_samples(root, &info->samples);
}

tess_status tess_info_print_json(FILE *out, const tess_vis_meta *meta,
                                 const tess_info *info)
{
    tess_status status = TESS_OK;
    json_t *root = json_object();
    if (!root) TESS_FAIL(TESS_ERR_ALLOC, "%s: description", meta->path);
    put_header(root, meta, info);
    json_object_set_new(root, "fields", json_fields(meta));
    json_object_set_new(root, "spectral_windows", json_windows(info));
    json_object_set_new(root, "antennas", json_antennas(meta));
    if (info->num_cells > 0) json_object_set_new(root, "flags", json_flags(meta, info));
    put_rows(root, info);
    put_suggestion(root, meta, info);
    /* ASCII only, because terminals obey some control characters beyond ASCII. */
    if (json_dumpf(root, out, JSON_INDENT(2) | JSON_ENSURE_ASCII) != 0 ||
        fputc('\n', out) == EOF)
        TESS_FAIL(TESS_ERR_IO, "the description cannot be written");
cleanup:
    json_decref(root);
    return status;
}
