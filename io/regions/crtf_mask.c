/* Reads regions of CASA (CRTF, version 0) for masks. */
#define _GNU_SOURCE
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "mask_reader.h"
#include "tess_const.h"
#include "tess_parse.h"
#include "tess_text.h"

enum { MOST_WORD = 64 };

static const struct {
    const char *word;
    mask_system system;
} systems[] = {{"j2000", MASK_J2000}, {"fk5", MASK_J2000}, {"b1950", MASK_B1950},
               {"fk4", MASK_B1950},   {"icrs", MASK_ICRS}, {"galactic", MASK_GALACTIC}};

static const struct {
    const char *word;
    tess_mask_shape shape;
    int numbers; /* in brackets; 0: a polygon */
} shapes[] = {{"centerbox", TESS_MASK_BOX, 4},   {"rotbox", TESS_MASK_BOX, 5},
              {"box", TESS_MASK_CORNERS, 4},     {"circle", TESS_MASK_ELLIPSE, 3},
              {"ellipse", TESS_MASK_ELLIPSE, 5}, {"annulus", TESS_MASK_ANNULUS, 4},
              {"poly", TESS_MASK_POLYGON, 0}};

enum { NUM_SHAPES = sizeof shapes / sizeof *shapes, MOST_NUMBERS = 5 };

static const char *const annotations[] = {"ann", "line", "vector", "text", "symbol"};

static bool begins_with(const char *text, const char *word)
{
    const size_t length = strlen(word);
    return strncasecmp(text, word, length) == 0 &&
           !isalpha((unsigned char)text[length]);
}

/* ---- values ---- */

/* "-23.11.00.5" is -23:11:00.5 in CASA. */
static void write_colons(char *text)
{
    char *first = strchr(text, '.'), *second = first ? strchr(first + 1, '.') : NULL;
    if (second && strspn(text, "+-.0123456789") == strlen(text)) *first = *second = ':';
}

static bool is_pixels(const char *text, double *value)
{
    int used = 0;
    return sscanf(text, "%lf%n", value, &used) == 1 &&
           (strcasecmp(text + used, "pix") == 0 ||
            strcasecmp(text + used, "pixel") == 0);
}

/* A coordinate of a region; pixels if its text says so. */
static tess_status read_coordinate(const mask_reader *reader, mask_system system,
                                   char *text, int axis, double *value, bool *in_pixels)
{
    tess_status status = TESS_OK;
    double rad = 0;
    *in_pixels = is_pixels(text, value);
    if (*in_pixels) return TESS_OK;
    write_colons(text);
    if (tess_parse_angle(text, &rad) == TESS_OK)
        *value = rad;
    else if (axis == 0 && system != MASK_GALACTIC)
        status = tess_parse_ra(text, value);
    else
        status = tess_parse_dec(text, value);
    tess_error_clear();
    if (status != TESS_OK)
        TESS_TRY(mask_refuse(reader, "has the coordinate", text,
                             ", which is none; write it like 4h0m0s, -30d0m0s, 60.0deg "
                             "or 12pix"));
cleanup:
    return status;
}

static tess_status read_length(const mask_reader *reader, const char *text,
                               double *value, bool *in_pixels)
{
    tess_status status = TESS_OK;
    *in_pixels = is_pixels(text, value);
    if (*in_pixels) return TESS_OK;
    status = tess_parse_angle(text, value);
    tess_error_clear();
    if (status != TESS_OK || !(*value >= 0))
        TESS_TRY(mask_refuse(reader, "has the length", text,
                             ", which is none; write it like 20arcsec or 8pix"));
cleanup:
    return status;
}

/* ---- what is in brackets ---- */

/* The next word within brackets; false at the bracket that closes the shape. `*at` is
 * behind it. */
static bool next_word(const char **at, int *depth, char word[MOST_WORD])
{
    size_t length = 0;
    for (; **at && *depth > 0; ++*at) {
        const char c = **at;
        if (c == '[') {
            ++*depth;
        } else if (c == ']') {
            --*depth;
            if (length > 0) break;
        } else if (c == ',') {
            if (length > 0) break;
        } else if (!isspace((unsigned char)c) && length < MOST_WORD - 1)
            word[length++] = c;
    }
    word[length] = '\0';
    if (length > 0 && **at) ++*at;
    return length > 0;
}

/* A pair of coordinates, in J2000 or pixels. */
static tess_status read_place(const mask_reader *reader, mask_system system,
                              char words[2][MOST_WORD], double place[2],
                              bool *in_pixels)
{
    tess_status status = TESS_OK;
    bool other;
    TESS_TRY(read_coordinate(reader, system, words[0], 0, &place[0], in_pixels));
    TESS_TRY(read_coordinate(reader, system, words[1], 1, &place[1], &other));
    if (other != *in_pixels)
        TESS_TRY(mask_refuse(reader, "mixes pixels with", words[0], ""));
    if (!*in_pixels) mask_to_j2000(system, place);
cleanup:
    return status;
}

/* The vertices of a polygon, or the corners of a box. */
static tess_status read_vertices(mask_reader *reader, mask_system system,
                                 tess_mask_region *region, const char *at)
{
    tess_status status = TESS_OK;
    char words[2][MOST_WORD];
    int depth = 1;
    bool in_pixels = false, is_first = true;
    TESS_TRY(mask_add_region(reader, region));
    while (next_word(&at, &depth, words[0])) {
        double place[2];
        if (!next_word(&at, &depth, words[1]))
            TESS_TRY(
                mask_refuse(reader, "has", words[0], " without a second coordinate"));
        TESS_TRY(read_place(reader, system, words, place, &in_pixels));
        tess_mask_region *last = &reader->regions.region[reader->regions.num - 1];
        if (!is_first && last->at_pixels != in_pixels)
            TESS_TRY(mask_refuse(reader, "mixes pixels with", words[0], ""));
        last->at_pixels = in_pixels;
        is_first = false;
        TESS_TRY(mask_add_vertex(reader, place));
    }
    const int64_t num = reader->regions.region[reader->regions.num - 1].num_vertices;
    if (region->shape == TESS_MASK_CORNERS ? num != 2 : num < 3)
        TESS_TRY(mask_refuse(reader, "has a",
                             region->shape == TESS_MASK_CORNERS ? "box" : "poly",
                             " of another number of corners"));
cleanup:
    return status;
}

/* Lengths and the angle behind a centre. */
static tess_status read_sizes(mask_reader *reader, int kind, tess_mask_region *region,
                              char words[MOST_NUMBERS][MOST_WORD])
{
    tess_status status = TESS_OK;
    bool other = false;
    const bool is_round = shapes[kind].numbers == 3,
               is_box = region->shape == TESS_MASK_BOX;
    TESS_TRY(read_length(reader, words[2], &region->half[0], &region->half_in_pixels));
    other = region->half_in_pixels;
    region->half[1] = region->half[0];
    if (!is_round) TESS_TRY(read_length(reader, words[3], &region->half[1], &other));
    if (other != region->half_in_pixels)
        TESS_TRY(mask_refuse(reader, "mixes pixels with", words[2], ""));
    if (is_box) {
        region->half[0] /= 2;
        region->half[1] /= 2;
    }
    if (region->shape == TESS_MASK_ELLIPSE && !is_round) { /* the first to the North */
        const double along = region->half[0];
        region->half[0] = region->half[1];
        region->half[1] = along;
    }
    if (shapes[kind].numbers == 5 &&
        tess_parse_angle(words[4], &region->turn_rad) != TESS_OK) {
        tess_error_clear();
        TESS_TRY(mask_refuse(reader, "has the angle", words[4],
                             ", which is none; write it like 30deg"));
    }
cleanup:
    return status;
}

static tess_status read_shape(mask_reader *reader, int kind, mask_system system,
                              tess_mask_region *region, const char *at)
{
    tess_status status = TESS_OK;
    char words[MOST_NUMBERS][MOST_WORD];
    int depth = 1, num = 0;
    char more[MOST_WORD];
    if (region->shape == TESS_MASK_POLYGON || region->shape == TESS_MASK_CORNERS)
        return read_vertices(reader, system, region, at);
    while (num < shapes[kind].numbers && next_word(&at, &depth, words[num]))
        ++num;
    if (num < shapes[kind].numbers || next_word(&at, &depth, more))
        TESS_TRY(mask_refuse(reader, "has a", shapes[kind].word,
                             " of another number of values"));
    TESS_TRY(read_place(reader, system, words, region->centre, &region->at_pixels));
    TESS_TRY(read_sizes(reader, kind, region, words));
    TESS_TRY(mask_add_region(reader, region));
cleanup:
    return status;
}

/* ---- keywords ---- */

/* The value of "name=value" in a line; false if it is not there. */
static bool value_of(const char *text, const char *name, char value[MOST_WORD])
{
    const size_t length = strlen(name);
    for (const char *at = strcasestr(text, name); at; at = strcasestr(at + 1, name)) {
        const char *from = at + length + strspn(at + length, " \t");
        if (*from != '=' || (at > text && isalnum((unsigned char)at[-1]))) continue;
        from += 1 + strspn(from + 1, " \t");
        const char *ends = *from == '[' ? "]" : ", \t\r";
        snprintf(value, MOST_WORD, "%.*s", (int)strcspn(from, ends), from);
        return true;
    }
    return false;
}

static tess_status take_system(const mask_reader *reader, const char *text,
                               mask_system *system)
{
    tess_status status = TESS_OK;
    char word[MOST_WORD];
    if (!value_of(text, "coord", word)) return TESS_OK;
    for (size_t k = 0; k < sizeof systems / sizeof *systems; ++k)
        if (strcasecmp(systems[k].word, word) == 0) {
            *system = systems[k].system;
            return TESS_OK;
        }
    TESS_TRY(mask_refuse(reader, "has coordinates of", word,
                         "; J2000, B1950, ICRS and GALACTIC are read"));
cleanup:
    return status;
}

/* One end of a range: a channel or a frequency. */
static tess_status read_end(const mask_reader *reader, char *text, double *value,
                            bool *by_freq)
{
    tess_status status = TESS_OK;
    char *unit = strcasestr(text, "chan");
    *by_freq = unit == NULL;
    if (unit) *unit = '\0';
    status = unit ? tess_parse_number(text, 0, 1e9, value)
                  : tess_parse_frequency(text, value);
    tess_error_clear();
    if (status != TESS_OK)
        TESS_TRY(mask_refuse(reader, "has the range", text,
                             ", which is none; channels like 5chan and frequencies "
                             "like 1.42GHz are read"));
cleanup:
    return status;
}

/* "[1.41GHz, 1.42GHz" */
static tess_status take_range(const mask_reader *reader, const char *text,
                              tess_mask_region *region)
{
    tess_status status = TESS_OK;
    char word[MOST_WORD], ends[2][MOST_WORD];
    const char *at = word + 1;
    int depth = 1;
    bool by_freq;
    if (!value_of(text, "range", word)) return TESS_OK;
    if (word[0] != '[' || !next_word(&at, &depth, ends[0]) ||
        !next_word(&at, &depth, ends[1]))
        return mask_refuse(reader, "has the range", word,
                           ", which is none; write it like [1.41GHz, 1.42GHz]");
    TESS_TRY(read_end(reader, ends[0], &region->from, &region->by_freq));
    TESS_TRY(read_end(reader, ends[1], &region->to, &by_freq));
    if (by_freq != region->by_freq)
        TESS_TRY(mask_refuse(reader, "has the range", word, " of two units"));
    if (region->from > region->to) {
        const double from = region->from;
        region->from = region->to;
        region->to = from;
    }
cleanup:
    return status;
}

/* ---- lines ---- */

/* What follows the bracket that closes the first one; NULL: none does. */
static const char *behind_brackets(const char *at)
{
    int depth = 0;
    for (; *at; ++at) {
        depth += (*at == '[') - (*at == ']');
        if (depth == 0) return at + 1;
    }
    return NULL;
}

static tess_status take_line(mask_reader *reader, char *line)
{
    tess_status status = TESS_OK;
    char *text = tess_text_trim(line), *word = text + strspn(text, "+- \t");
    mask_system system = reader->system;
    tess_mask_region region = {.leaves = *text == '-', .from = 1};
    int kind = 0;
    if (!*text || *text == '#') return TESS_OK;
    if (begins_with(word, "global")) return take_system(reader, word, &reader->system);
    for (size_t k = 0; k < sizeof annotations / sizeof *annotations; ++k)
        if (begins_with(word, annotations[k])) return TESS_OK;
    while (kind < NUM_SHAPES && !begins_with(word, shapes[kind].word))
        ++kind;
    if (kind == NUM_SHAPES)
        TESS_TRY(mask_refuse(reader, "begins with", text, ", which masks cannot be"));
    region.shape = shapes[kind].shape;
    const char *open = strchr(word, '['), *keys = open ? behind_brackets(open) : NULL;
    if (!keys)
        return mask_refuse(reader, "has the region", text,
                           ", whose brackets are not closed");
    TESS_TRY(take_system(reader, keys, &system));
    TESS_TRY(take_range(reader, keys, &region));
    TESS_TRY(read_shape(reader, kind, system, &region, open + 1));
cleanup:
    return status;
}

tess_status mask_read_crtf(mask_reader *reader, char *text)
{
    tess_status status = TESS_OK;
    reader->system = MASK_J2000;
    while (text) {
        char *line = strsep(&text, "\n");
        ++reader->line;
        TESS_TRY(take_line(reader, line));
    }
cleanup:
    return status;
}
