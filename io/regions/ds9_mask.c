/* Reads regions of ds9 for masks. */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>
#include <strings.h>

#include "mask_reader.h"
#include "tess_const.h"
#include "tess_parse.h"
#include "tess_text.h"

/* Numbers of a shape but for a polygon: a centre, up to two lengths and an angle. */
enum { MOST_NUMBERS = 6 };

static const struct {
    const char *word;
    mask_system system;
} systems[] = {
    {"fk5", MASK_J2000},       {"j2000", MASK_J2000},      {"fk4", MASK_B1950},
    {"b1950", MASK_B1950},     {"icrs", MASK_ICRS},        {"galactic", MASK_GALACTIC},
    {"image", MASK_PIXELS},    {"physical", MASK_UNREAD},  {"ecliptic", MASK_UNREAD},
    {"detector", MASK_UNREAD}, {"amplifier", MASK_UNREAD}, {"linear", MASK_UNREAD},
    {"wcs", MASK_UNREAD}};

static const struct {
    const char *word;
    tess_mask_shape shape;
    int least, most;   /* numbers behind the centre */
    double half;       /* its lengths count so many times */
    bool is_annotated; /* it has no area, and is skipped */
} shapes[] = {{"circle", TESS_MASK_ELLIPSE, 1, 1, 1, false},
              {"ellipse", TESS_MASK_ELLIPSE, 2, 3, 1, false},
              {"box", TESS_MASK_BOX, 2, 3, 0.5, false},
              {"rotbox", TESS_MASK_BOX, 2, 3, 0.5, false},
              {"annulus", TESS_MASK_ANNULUS, 2, 2, 1, false},
              {"polygon", TESS_MASK_POLYGON, 0, 0, 1, false},
              {"point", 0, 0, 0, 0, true},
              {"line", 0, 0, 0, 0, true},
              {"vector", 0, 0, 0, 0, true},
              {"text", 0, 0, 0, 0, true},
              {"ruler", 0, 0, 0, 0, true},
              {"compass", 0, 0, 0, 0, true},
              {"projection", 0, 0, 0, 0, true},
              {"segment", 0, 0, 0, 0, true},
              {"global", 0, 0, 0, 0, true},
              {"tile", 0, 0, 0, 0, true}};

enum { NUM_SHAPES = sizeof shapes / sizeof *shapes };

/* Takes a word that names coordinates. */
static bool take_system(mask_reader *reader, const char *word, size_t length)
{
    for (size_t k = 0; k < sizeof systems / sizeof *systems; ++k)
        if (strlen(systems[k].word) == length &&
            strncasecmp(systems[k].word, word, length) == 0) {
            reader->system = systems[k].system;
            return true;
        }
    return false;
}

/* A coordinate; pixels count from 1. */
static tess_status read_coordinate(const mask_reader *reader, char *text, int axis,
                                   double *value)
{
    tess_status status = TESS_OK;
    const size_t length = strlen(text);
    const bool in_pixels = reader->system == MASK_PIXELS;
    if (length > 1 && strspn(text, "+-.0123456789eE") == length - 1 &&
        strchr("dD", text[length - 1]))
        text[length - 1] = '\0';
    if (in_pixels) {
        status = tess_parse_number(text, -1e9, 1e9, value);
        *value -= 1;
    } else if (axis == 0 && reader->system == MASK_GALACTIC)
        status = mask_angle(text, value) ? TESS_OK : TESS_ERR_INPUT;
    else
        status = axis == 0 ? tess_parse_ra(text, value) : tess_parse_dec(text, value);
    if (status != TESS_OK) {
        tess_error_clear();
        TESS_TRY(mask_refuse(reader, "has the coordinate", text, ", which is none"));
    }
cleanup:
    return status;
}

/* A length: with a unit, or a plain number in degrees or pixels. */
static tess_status read_length(const mask_reader *reader, char *text,
                               tess_mask_region *region, int k)
{
    tess_status status = TESS_OK;
    const size_t length = strlen(text);
    const char last = length > 0 ? text[length - 1] : (char)0;
    const bool in_pixels = last == 'p' || (reader->system == MASK_PIXELS &&
                                           last != 'd' && !strchr("\"'", last));
    double value;
    if (k > 0 && in_pixels != region->half_in_pixels)
        TESS_TRY(mask_refuse(reader, "has the length", text,
                             ", which mixes pixels and angles"));
    if (last && strchr("dp", last) && length > 1) text[length - 1] = '\0';
    region->half_in_pixels = in_pixels;
    status = in_pixels
                 ? tess_parse_number(text, 0, 1e9, &value)
                 : (mask_angle(text, &value) && value >= 0 ? TESS_OK : TESS_ERR_INPUT);
    if (status != TESS_OK) {
        tess_error_clear();
        TESS_TRY(mask_refuse(reader, "has the length", text, ", which is none"));
    }
    region->half[k] = value;
cleanup:
    return status;
}

static tess_status take_polygon(mask_reader *reader, tess_mask_region *region,
                                char **numbers)
{
    tess_status status = TESS_OK;
    TESS_TRY(mask_add_region(reader, region));
    for (char *x; (x = strtok_r(NULL, ", \t\r", numbers)) != NULL;) {
        char *y = strtok_r(NULL, ", \t\r", numbers);
        double place[2];
        if (!y) TESS_TRY(mask_refuse(reader, "has", x, " without a second coordinate"));
        TESS_TRY(read_coordinate(reader, x, 0, &place[0]));
        TESS_TRY(read_coordinate(reader, y, 1, &place[1]));
        mask_to_j2000(reader->system, place);
        TESS_TRY(mask_add_vertex(reader, place));
    }
    if (reader->regions.region[reader->regions.num - 1].num_vertices < 3)
        TESS_TRY(
            mask_refuse(reader, "has a", "polygon", " of less than three vertices"));
cleanup:
    return status;
}

static tess_status take_shape(mask_reader *reader, int kind, bool leaves, char *text)
{
    tess_status status = TESS_OK;
    tess_mask_region region = {.shape = shapes[kind].shape,
                               .leaves = leaves,
                               .at_pixels = reader->system == MASK_PIXELS,
                               .from = 1};
    char *number[MOST_NUMBERS], *rest = text;
    int num = 0;
    if (region.shape == TESS_MASK_POLYGON) return take_polygon(reader, &region, &rest);
    for (char *word; (word = strtok_r(NULL, ", \t\r", &rest)) != NULL; ++num)
        if (num < MOST_NUMBERS) number[num] = word;
    if (num < 2 + shapes[kind].least || num > 2 + shapes[kind].most)
        TESS_TRY(mask_refuse(reader, "has a", shapes[kind].word,
                             " of another number of values"));
    for (int k = 0; k < 2; ++k)
        TESS_TRY(read_coordinate(reader, number[k], k, &region.centre[k]));
    mask_to_j2000(reader->system, region.centre);
    for (int k = 0; k < 2; ++k) {
        const bool is_round = shapes[kind].most == 1;
        if (k == 0 || !is_round)
            TESS_TRY(read_length(reader, number[2 + k], &region, k));
        else
            region.half[1] = region.half[0];
        if (k == 0 || !is_round) region.half[k] *= shapes[kind].half;
    }
    if (num == 5 && !mask_angle(number[4], &region.turn_rad))
        TESS_TRY(mask_refuse(reader, "has the angle", number[4], ", which is none"));
    TESS_TRY(mask_add_region(reader, &region));
cleanup:
    return status;
}

static tess_status take_command(mask_reader *reader, char *text)
{
    tess_status status = TESS_OK;
    text = tess_text_trim(text);
    char *word = text + strspn(text, "+- \t");
    const size_t length = strcspn(word, " \t(=");
    int kind = 0;
    if (!*text || take_system(reader, word, length)) return TESS_OK;
    while (kind < NUM_SHAPES && (strlen(shapes[kind].word) != length ||
                                 strncasecmp(shapes[kind].word, word, length) != 0))
        ++kind;
    if (kind == NUM_SHAPES)
        TESS_TRY(mask_refuse(reader, "begins with", text, ", which masks cannot be"));
    if (shapes[kind].is_annotated) return TESS_OK;
    if (reader->system == MASK_UNREAD)
        TESS_TRY(mask_refuse(reader, "has the region", text,
                             "; fk5, fk4, icrs, galactic and image coordinates are "
                             "read"));
    char *numbers = word + length + strspn(word + length, " \t(");
    numbers[strcspn(numbers, ")|")] = '\0';
    TESS_TRY(take_shape(reader, kind, *text == '-', numbers));
cleanup:
    return status;
}

tess_status mask_read_ds9(mask_reader *reader, char *text)
{
    tess_status status = TESS_OK;
    reader->system = MASK_PIXELS; /* of a file that does not name any */
    while (text) {
        char *line = strsep(&text, "\n");
        ++reader->line;
        line[strcspn(line, "#")] = '\0';
        while (line) {
            char *command = strsep(&line, ";");
            TESS_TRY(take_command(reader, command));
        }
    }
cleanup:
    return status;
}
