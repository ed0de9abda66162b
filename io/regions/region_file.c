/* Reads region files of ds9, the outlines of facets, and writes them. */
#define _GNU_SOURCE
#include "tess_region_file.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sky_frame.h"
#include "tess_const.h"
#include "tess_fits_array.h"
#include "tess_mem.h"
#include "tess_parse.h"
#include "tess_text.h"
#include "tess_text_file.h"

static const char KIND[] = "a region file of ds9";

/* Words of ds9 that begin a line and name no coordinates that are read. */
static const char *const other_words[] = {"global",   "image",  "physical", "amplifier",
                                          "detector", "linear", "galactic", "ecliptic",
                                          "wcs",      "tile",   NULL};

static const char *const shapes[] = {
    "circle",  "ellipse",    "box",     "line",  "vector", "text",   "ruler",
    "compass", "projection", "annulus", "panda", "epanda", "bpanda", "cpanda",
    "segment", "composite",  "rotbox",  "pie",   "field",  "rotpie", NULL};

/* The line that is being read. */
typedef struct region_reader {
    const char *path;
    int64_t line;       /* from 1 */
    sky_frame frame;    /* of coordinates */
    char refused[32];   /* coordinates that cannot be read; "": they can */
    int64_t with_label; /* the region that a label of the line belongs to, or −1 */
    tess_region_list list;
} region_reader;

/* ---- the list ---- */

tess_status tess_region_list_add(tess_region_list *list, const tess_region *region)
{
    tess_status status = TESS_OK;
    void *array = list->region;
    if (tess_grow(&array, &list->capacity, list->num_regions + 1, sizeof *region))
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld regions",
                  (long long)list->num_regions + 1);
    list->region = array;
    list->region[list->num_regions] = *region;
    list->region[list->num_regions].first_vertex = list->num_vertices;
    list->region[list->num_regions++].num_vertices = 0;
cleanup:
    return status;
}

tess_status tess_region_list_add_vertex(tess_region_list *list, double ra_rad,
                                        double dec_rad)
{
    tess_status status = TESS_OK;
    void *array = list->vertex;
    if (tess_grow(&array, &list->capacity_vertices, list->num_vertices + 1,
                  sizeof *list->vertex))
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld vertices",
                  (long long)list->num_vertices + 1);
    list->vertex = array;
    list->vertex[list->num_vertices][0] = ra_rad;
    list->vertex[list->num_vertices++][1] = dec_rad;
    list->region[list->num_regions - 1].num_vertices++;
cleanup:
    return status;
}

void tess_region_list_free(tess_region_list *list)
{
    tess_free(list->region);
    tess_free(list->vertex);
    *list = (tess_region_list){0};
}

/* ---- words ---- */

/* Where the number of a word is in a list of words that NULL ends, or −1. */
static int find_word(const char *const *words, const char *text, size_t length)
{
    for (int k = 0; words[k]; ++k)
        if (strlen(words[k]) == length && strncasecmp(words[k], text, length) == 0)
            return k;
    return -1;
}

/* Takes a line that names coordinates. Returns false if it is another word. */
static bool take_system(region_reader *reader, const char *text, size_t length)
{
    static const char *const names[] = {"fk5", "j2000", "icrs", "fk4", "b1950", NULL};
    static const sky_frame frames[] = {{SKY_FK5, 2000},
                                       {SKY_FK5, 2000},
                                       {SKY_ICRS, 2000},
                                       {SKY_FK4, 1950},
                                       {SKY_FK4, 1950}};
    const int known = find_word(names, text, length);
    const int other = find_word(other_words, text, length);
    if (known < 0 && other < 0) return false;
    if (known >= 0) {
        reader->frame = frames[known];
        reader->refused[0] = '\0';
    } else if (strcmp(other_words[other], "global") != 0 &&
               strcmp(other_words[other], "tile") != 0) {
        snprintf(reader->refused, sizeof reader->refused, "%s", other_words[other]);
    }
    return true;
}

/* The label of a region: what follows "text=" among its properties. */
static void take_label(const region_reader *reader, const char *properties)
{
    const char *at = strcasestr(properties, "text");
    while (at && (isalnum((unsigned char)at[4]) ||
                  (at > properties && isalnum((unsigned char)at[-1]))))
        at = strcasestr(at + 1, "text");
    if (!at || reader->with_label < 0) return;
    at += 4 + strspn(at + 4, " \t");
    if (*at != '=') return;
    at += 1 + strspn(at + 1, " \t");
    const char *ends = " \t\r";
    if (*at == '{') ends = "}";
    if (*at == '"') ends = "\"";
    if (*at == '\'') ends = "'";
    at += strchr("}\"'", *ends) ? 1 : 0;
    char *name = reader->list.region[reader->with_label].name;
    snprintf(name, TESS_REGION_NAME, "%.*s", (int)strcspn(at, ends), at);
    tess_text_clean(name);
    for (char *brace = strchr(name, '}'); brace; brace = strchr(brace, '}'))
        *brace = '?'; /* would end it in a file that is written */
}

/* ---- coordinates ---- */

/* "FILE: line 3 begins with 'x', and more". `quoted` NULL: nothing is quoted. */
static tess_status refuse(const region_reader *reader, const char *before,
                          const char *quoted, const char *after)
{
    tess_status status = TESS_OK;
    char shown[64] = "";
    if (quoted) snprintf(shown, sizeof shown, " '%.56s'", quoted);
    TESS_FAIL(TESS_ERR_INPUT, "%s: line %lld %s%s%s", reader->path,
              (long long)reader->line, before, tess_text_clean(shown), after);
cleanup:
    return status;
}

/* Parses a coordinate, which may end in ds9's letter for degrees. */
static tess_status read_angle(const region_reader *reader, char *text, bool is_ra,
                              double *rad)
{
    tess_status status = TESS_OK;
    const size_t length = strlen(text);
    if (length > 1 && strspn(text, "+-.0123456789eE") == length - 1 &&
        (text[length - 1] == 'd' || text[length - 1] == 'D'))
        text[length - 1] = '\0';
    status = is_ra ? tess_parse_ra(text, rad) : tess_parse_dec(text, rad);
    if (status != TESS_OK) {
        tess_error_clear();
        TESS_TRY(refuse(reader, is_ra ? "has a right ascension" : "has a declination",
                        text, " that cannot be read"));
    }
cleanup:
    return status;
}

/* Takes the next coordinates of a shape, in J2000. `*at` is NULL after the last. */
static tess_status read_place(const region_reader *reader, char **at, double place[2])
{
    tess_status status = TESS_OK;
    static const char blanks[] = ", \t\r";
    char *ra = strtok_r(NULL, blanks, at);
    char *dec = ra ? strtok_r(NULL, blanks, at) : NULL;
    place[0] = NAN;
    if (!ra) goto cleanup;
    if (!dec)
        TESS_TRY(refuse(reader, "has a right ascension", ra, " without a declination"));
    double read[2];
    TESS_TRY(read_angle(reader, ra, true, &read[0]));
    TESS_TRY(read_angle(reader, dec, false, &read[1]));
    sky_frame_to_j2000(&reader->frame, 0, read);
    place[0] = read[0];
    place[1] = read[1];
cleanup:
    return status;
}

/* ---- shapes ---- */

static tess_status take_polygon(region_reader *reader, char *numbers, bool is_hole)
{
    tess_status status = TESS_OK;
    tess_region region = {.is_hole = is_hole, .line = reader->line};
    double place[2];
    if (is_hole && reader->list.num_regions == 0)
        TESS_TRY(refuse(reader, "excludes a polygon from", NULL, " none before it"));
    TESS_TRY(tess_region_list_add(&reader->list, &region));
    TESS_TRY(read_place(reader, &numbers, place));
    while (!isnan(place[0])) {
        TESS_TRY(tess_region_list_add_vertex(&reader->list, place[0], place[1]));
        TESS_TRY(read_place(reader, &numbers, place));
    }
    if (reader->list.region[reader->list.num_regions - 1].num_vertices < 3)
        TESS_TRY(refuse(reader, "has a polygon of less than three vertices", NULL, ""));
    if (!is_hole) reader->with_label = reader->list.num_regions - 1;
cleanup:
    return status;
}

/* A point is the direction of the last polygon that is no hole. */
static tess_status take_point(region_reader *reader, char *numbers)
{
    tess_status status = TESS_OK;
    tess_region_list *list = &reader->list;
    int64_t k = list->num_regions - 1;
    double place[2];
    while (k >= 0 && list->region[k].is_hole)
        --k;
    if (k < 0) {
        list->num_skipped++;
        goto cleanup;
    }
    TESS_TRY(read_place(reader, &numbers, place));
    if (isnan(place[0]))
        TESS_TRY(refuse(reader, "has a point without coordinates", NULL, ""));
    list->region[k].has_point = true;
    list->region[k].ra_rad = place[0];
    list->region[k].dec_rad = place[1];
    reader->with_label = k;
cleanup:
    return status;
}

/* Takes one command of a line: coordinates, a shape, or words of ds9. */
static tess_status take_command(region_reader *reader, char *text)
{
    tess_status status = TESS_OK;
    text = tess_text_trim(text);
    const bool excluded = *text == '-';
    char *word = text + strspn(text, "+- \t");
    const size_t length = strcspn(word, " \t(=");
    char *numbers = word + length + strspn(word + length, " \t(");
    if (!*text || take_system(reader, word, length)) goto cleanup;
    const bool is_polygon = strncasecmp(word, "polygon", 7) == 0 && length == 7;
    const bool is_point = strncasecmp(word, "point", 5) == 0 && length == 5;
    if (!is_polygon && !is_point) {
        if (find_word(shapes, word, length) < 0)
            TESS_TRY(refuse(reader, "begins with", text, ", which is no region"));
        reader->list.num_skipped++;
        goto cleanup;
    }
    if (*reader->refused)
        TESS_TRY(refuse(reader, "is in coordinates of", reader->refused,
                        "; fk5, icrs and fk4 are read"));
    numbers[strcspn(numbers, ")|")] = '\0';
    TESS_TRY(is_polygon ? take_polygon(reader, numbers, excluded)
                        : take_point(reader, numbers));
cleanup:
    return status;
}

/* Takes the commands of a line, which semicolons separate, and what is behind '#'. */
static tess_status take_line(region_reader *reader, char *line)
{
    tess_status status = TESS_OK;
    char *properties = strchr(line, '#'), *next = line;
    if (properties) *properties++ = '\0';
    reader->with_label = -1;
    while (next) {
        char *command = strsep(&next, ";");
        TESS_TRY(take_command(reader, command));
    }
    if (properties) take_label(reader, properties);
cleanup:
    return status;
}

tess_status tess_region_file_parse(const char *path, const char *text,
                                   tess_region_list *list)
{
    tess_status status = TESS_OK;
    region_reader reader = {.path = path, .frame = {SKY_FK5, 2000}};
    char *copy = tess_strdup(text), *next = copy;
    if (!copy) TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory for the regions", path);
    if (strncmp(next, "\xef\xbb\xbf", 3) == 0) next += 3;
    while (next) {
        char *line = strsep(&next, "\n");
        reader.line++;
        TESS_TRY(take_line(&reader, line));
    }
    if (reader.list.num_regions == 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: has no polygon in its %lld lines; facets are polygons of %s",
                  path, (long long)reader.line, KIND);
    *list = reader.list;
    reader.list = (tess_region_list){0};
cleanup:
    tess_free(copy);
    tess_region_list_free(&reader.list);
    return status;
}

tess_status tess_region_file_read(tess_comm *comm, const char *path,
                                  tess_region_list *list)
{
    tess_status status = TESS_OK;
    char *text = NULL;
    TESS_TRY(tess_text_file_read(comm, path, KIND, &text));
    TESS_TRY(tess_comm_agree(comm, tess_region_file_parse(path, text, list)));
cleanup:
    tess_free(text);
    return status;
}

/* ---- writing ---- */

static void write_region(FILE *out, const tess_region_list *list,
                         const tess_region *region)
{
    fputs(region->is_hole ? "-polygon(" : "polygon(", out);
    for (int64_t k = 0; k < region->num_vertices; ++k) {
        const double *place = list->vertex[region->first_vertex + k];
        fprintf(out, "%s%.10f,%.10f", k > 0 ? "," : "", tess_fits_longitude(place[0]),
                tess_fits_degrees(place[1]));
    }
    fputc(')', out);
    if (*region->name) fprintf(out, " # text={%s}", region->name);
    fputc('\n', out);
    if (region->has_point)
        fprintf(out, "point(%.10f,%.10f)\n", tess_fits_longitude(region->ra_rad),
                tess_fits_degrees(region->dec_rad));
}

tess_status tess_region_file_text(const tess_region_list *list, char **text_out)
{
    tess_status status = TESS_OK;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) TESS_FAIL(TESS_ERR_ALLOC, "no memory for a region file");
    fputs("# Region file format: DS9 version 4.1\nglobal color=green\nfk5\n", out);
    for (int64_t k = 0; k < list->num_regions; ++k)
        write_region(out, list, &list->region[k]);
    const bool failed = fclose(out) != 0;
    char *copy = failed ? NULL : tess_strdup(text);
    if (!copy) TESS_FAIL(TESS_ERR_ALLOC, "no memory for a region file");
    *text_out = copy;
cleanup:
    free(text);
    return status;
}
