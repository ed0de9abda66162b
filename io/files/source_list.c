/* Reads lists of sources in the text format of DP3 and WSClean. */
#define _GNU_SOURCE
#include "tess_source_list.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "tess_const.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_parse.h"
#include "tess_text.h"
#include "tess_text_file.h"

/* Bytes in which the header must begin. */
enum { HEAD_BYTES = 1 << 16 };

enum { MOST_FIELDS = 64 };

typedef enum list_column {
    NAME,
    TYPE,
    PATCH,
    RA,
    DEC,
    STOKES_I,
    STOKES_Q,
    STOKES_U,
    STOKES_V,
    TERMS,
    IS_LOG,
    REF_FREQ,
    MAJOR,
    MINOR,
    ANGLE,
    NUM_COLUMNS,
    OTHER = NUM_COLUMNS
} list_column;

static const char *const column_name[NUM_COLUMNS] = {"Name",
                                                     "Type",
                                                     "Patch",
                                                     "Ra",
                                                     "Dec",
                                                     "I",
                                                     "Q",
                                                     "U",
                                                     "V",
                                                     "SpectralIndex",
                                                     "LogarithmicSI",
                                                     "ReferenceFrequency",
                                                     "MajorAxis",
                                                     "MinorAxis",
                                                     "Orientation"};

/* The header, and the line that is being read. Texts are within a copy of the file. */
typedef struct list_reader {
    const char *path;
    int64_t line; /* from 1 */
    int num_fields;
    list_column column[MOST_FIELDS];
    const char *fallback[NUM_COLUMNS]; /* of empty cells */
    const char *cell[NUM_COLUMNS];     /* of the line */
} list_reader;

/* ---- lines and fields ---- */

/* Returns the text without the quotes around it. */
static char *unquote(char *text)
{
    const size_t length = strlen(text);
    if (length < 2 || (*text != '\'' && *text != '"') || text[length - 1] != *text)
        return text;
    text[length - 1] = '\0';
    return tess_text_trim(text + 1);
}

/* Cuts a line at commas, but not within quotes or brackets. Returns the number of
 * fields, of which MOST_FIELDS are stored. */
static int cut(char *line, char *field[MOST_FIELDS])
{
    int count = 0, depth = 0;
    char quote = '\0';
    char *start = line;
    for (char *c = line;; ++c) {
        const bool ends = *c == '\0';
        if (ends || (*c == ',' && depth == 0 && !quote)) {
            *c = '\0';
            if (count < MOST_FIELDS) field[count] = tess_text_trim(start);
            ++count;
            start = c + 1;
        } else if (quote) {
            if (*c == quote) quote = '\0';
        } else if (*c == '\'' || *c == '"') {
            quote = *c;
        } else {
            depth += *c == '[' ? 1 : *c == ']' ? -1 : 0;
        }
        if (ends) return count;
    }
}

/* Returns what follows a word in any case and an equals sign, or NULL. */
static char *behind_word(char *text, const char *word)
{
    const size_t length = strlen(word);
    if (strncasecmp(text, word, length) != 0) return NULL;
    text += length;
    while (*text == ' ' || *text == '\t')
        ++text;
    return *text == '=' ? text + 1 : NULL;
}

/* Returns the columns that a trimmed line names if it is a header, else NULL. */
static char *header_columns(char *line)
{
    char *columns = behind_word(line, "format"), *end;
    if (columns || *line != '#') return columns;
    columns = tess_text_trim(line + 1);
    end = strrchr(columns, ')');
    if (*columns != '(' || !end) return NULL;
    char *rest = tess_text_trim(end + 1);
    if (*rest != '=' || strcasecmp(tess_text_trim(rest + 1), "format") != 0)
        return NULL;
    *end = '\0';
    return columns + 1;
}

/* ---- the header ---- */

static list_column column_of(const char *name)
{
    int k = 0;
    while (k < NUM_COLUMNS && strcasecmp(name, column_name[k]) != 0)
        ++k;
    return (list_column)k;
}

/* Adds a name to a list of names, if there is room. */
static void list_ignored(const char *name, char *ignored, size_t size)
{
    const size_t used = ignored ? strlen(ignored) : 0;
    if (ignored && used + 1 < size)
        snprintf(ignored + used, size - used, "%s%.40s", used > 0 ? ", " : "", name);
}

static tess_status read_header(list_reader *reader, char *columns, char *ignored,
                               size_t size)
{
    tess_status status = TESS_OK;
    char *field[MOST_FIELDS];
    bool named[NUM_COLUMNS + 1] = {false};
    reader->num_fields = cut(columns, field);
    if (reader->num_fields > MOST_FIELDS)
        TESS_FAIL(TESS_ERR_INPUT, "%s: line %lld has %d columns, at most %d are read",
                  reader->path, (long long)reader->line, reader->num_fields,
                  MOST_FIELDS);
    for (int k = 0; k < reader->num_fields; ++k) {
        char *value = strchr(field[k], '=');
        if (value) *value++ = '\0';
        const char *name = tess_text_trim(field[k]);
        const list_column column = column_of(name);
        reader->column[k] = column;
        if (column == OTHER) {
            list_ignored(name, ignored, size);
            continue;
        }
        if (named[column])
            TESS_FAIL(TESS_ERR_INPUT, "%s: line %lld names column '%s' twice",
                      reader->path, (long long)reader->line, column_name[column]);
        named[column] = true;
        if (value) reader->fallback[column] = unquote(tess_text_trim(value));
    }
    if (!named[RA] || !named[DEC] || !named[STOKES_I])
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: line %lld, the header, must name the columns Ra, Dec and I",
                  reader->path, (long long)reader->line);
cleanup:
    return status;
}

/* ---- cells ---- */

/* Returns the text of a cell, or what stands for an empty one. */
static const char *text_of(const list_reader *reader, list_column column)
{
    return *reader->cell[column] ? reader->cell[column] : reader->fallback[column];
}

static tess_status refuse(const list_reader *reader, list_column column,
                          const char *reason)
{
    tess_status status = TESS_OK;
    TESS_FAIL(TESS_ERR_INPUT, "%s: line %lld, column '%s': '%.40s' %s", reader->path,
              (long long)reader->line, column_name[column], text_of(reader, column),
              reason);
cleanup:
    return status;
}

/* Reads the number that a text is. Whatever follows the number must end the text. */
static bool is_number(const char *text, double *value)
{
    char *end = NULL;
    *value = strtod(text, &end);
    while (isspace((unsigned char)*end))
        ++end;
    return end != text && *end == '\0' && isfinite(*value);
}

static tess_status read_number(const list_reader *reader, list_column column,
                               double fallback, double *value)
{
    tess_status status = TESS_OK;
    double number = fallback;
    if (*text_of(reader, column) && !is_number(text_of(reader, column), &number))
        TESS_TRY(refuse(reader, column, "is not a finite number"));
    *value = number;
cleanup:
    return status;
}

static tess_status read_not_negative(const list_reader *reader, list_column column,
                                     double fallback, double *value)
{
    tess_status status = TESS_OK;
    TESS_TRY(read_number(reader, column, fallback, value));
    if (*value < 0) TESS_TRY(refuse(reader, column, "is negative"));
cleanup:
    return status;
}

/* Reads dd.mm.ss or dd.mm.ss.s with a sign. */
static bool is_dotted(const char *text, double *rad)
{
    static const double most[] = {360, 59, 60};
    const double sign = *text == '-' ? -1 : 1;
    const char *rest = text + (*text == '-' || *text == '+');
    double part[3];
    for (int k = 0; k < 3; ++k) {
        char *end = NULL;
        if (!isdigit((unsigned char)*rest)) return false;
        part[k] = k < 2 ? (double)strtol(rest, &end, 10) : strtod(rest, &end);
        if (!(part[k] <= most[k]) || *end != (k < 2 ? '.' : '\0')) return false;
        rest = end + 1;
    }
    if (part[2] >= most[2]) return false;
    *rad = sign * (3600 * part[0] + 60 * part[1] + part[2]) * TESS_RAD_PER_ASEC;
    return true;
}

/* Reads a position. Numbers without a unit mean other things to other programs. */
static tess_status read_angle(const list_reader *reader, list_column column,
                              tess_status (*parse)(const char *, double *),
                              double most_rad, double *rad)
{
    tess_status status = TESS_OK;
    const char *text = text_of(reader, column);
    double value = 0;
    if (!*text) TESS_TRY(refuse(reader, column, "is empty"));
    if (is_number(text, &value))
        TESS_TRY(refuse(reader, column,
                        "has no unit; write it like 05:33:38.3 (Ra), -30.43.16.5 (Dec) "
                        "or 83.6deg"));
    if (!is_dotted(text, &value) && parse(text, &value) != TESS_OK) {
        tess_error_clear();
        TESS_TRY(refuse(reader, column,
                        "is not an angle like 05:33:38.3 (Ra), -30.43.16.5 (Dec) or "
                        "83.6deg"));
    }
    /* "90deg" may round to just above pi/2 */
    if (!(fabs(value) <= most_rad * (1 + 1e-15)))
        TESS_TRY(refuse(reader, column, "is not within the sphere"));
    *rad = value;
cleanup:
    return status;
}

/* ---- a source ---- */

static tess_status read_position(const list_reader *reader, tess_listed_source *source)
{
    tess_status status = TESS_OK;
    TESS_TRY(read_angle(reader, RA, tess_parse_ra, TESS_TWO_PI, &source->ra_rad));
    TESS_TRY(read_angle(reader, DEC, tess_parse_dec, TESS_PI / 2, &source->dec_rad));
cleanup:
    return status;
}

static tess_status read_fluxes(const list_reader *reader, tess_listed_source *source)
{
    tess_status status = TESS_OK;
    if (!*text_of(reader, STOKES_I)) TESS_TRY(refuse(reader, STOKES_I, "is empty"));
    for (int s = 0; s < 4; ++s)
        TESS_TRY(
            read_number(reader, (list_column)(STOKES_I + s), 0, &source->flux_jy[s]));
cleanup:
    return status;
}

/* Reads the shape. The axes of a point do not count. A Gaussian that is given by its
 * major axis alone is round. */
static tess_status read_shape(const list_reader *reader, tess_listed_source *source)
{
    tess_status status = TESS_OK;
    const char *type = text_of(reader, TYPE);
    double major, minor, angle;
    const bool is_gaussian = strcasecmp(type, "GAUSSIAN") == 0;
    if (*type && !is_gaussian && strcasecmp(type, "POINT") != 0)
        TESS_TRY(refuse(reader, TYPE, "is neither POINT nor GAUSSIAN"));
    if (!is_gaussian) return TESS_OK;
    TESS_TRY(read_not_negative(reader, MAJOR, 0, &major));
    TESS_TRY(read_not_negative(reader, MINOR, major, &minor));
    TESS_TRY(read_number(reader, ANGLE, 0, &angle));
    source->is_gaussian = major > 0 || minor > 0;
    source->major_rad = major * TESS_RAD_PER_ASEC;
    source->minor_rad = minor * TESS_RAD_PER_ASEC;
    source->pa_rad = angle * TESS_RAD_PER_DEG;
cleanup:
    return status;
}

/* Reads a number, or numbers within brackets. Zeros at the end are no terms. */
static tess_status read_terms(const list_reader *reader, double *term, int *num_terms)
{
    tess_status status = TESS_OK;
    const char *text = text_of(reader, TERMS);
    char copy[1024];
    int count = 0;
    const size_t length = strlen(text);
    if (length >= sizeof copy) return refuse(reader, TERMS, "is too long");
    memcpy(copy, text, length + 1);
    if (*copy == '[') {
        if (length < 2 || copy[length - 1] != ']')
            TESS_TRY(refuse(reader, TERMS, "has no closing bracket"));
        copy[length - 1] = '\0';
        *copy = ' ';
    }
    for (char *rest = *tess_text_trim(copy) ? copy : NULL, *word;
         (word = strsep(&rest, ","));) {
        if (count == TESS_SOURCE_LIST_TERMS)
            TESS_TRY(refuse(reader, TERMS, "has more terms than are read"));
        if (!is_number(word, &term[count]))
            TESS_TRY(refuse(reader, TERMS, "is not a list of finite numbers"));
        ++count;
    }
    while (count > 0 && fpclassify(term[count - 1]) == FP_ZERO)
        --count;
    *num_terms = count;
cleanup:
    return status;
}

static tess_status read_is_log(const list_reader *reader, bool *is_log)
{
    tess_status status = TESS_OK;
    static const char *const words[] = {"true", "1", "yes", "false", "0", "no"};
    enum { NUM_TRUE = 3, NUM_WORDS = 6 };
    const char *text = text_of(reader, IS_LOG);
    int k = 0;
    while (*text && k < NUM_WORDS && strcasecmp(text, words[k]) != 0)
        ++k;
    if (k == NUM_WORDS) TESS_TRY(refuse(reader, IS_LOG, "is neither true nor false"));
    *is_log = k < NUM_TRUE;
cleanup:
    return status;
}

static tess_status read_spectrum(const list_reader *reader, tess_listed_source *source,
                                 double *term)
{
    tess_status status = TESS_OK;
    TESS_TRY(read_terms(reader, term, &source->num_terms));
    TESS_TRY(read_is_log(reader, &source->is_log));
    TESS_TRY(read_not_negative(reader, REF_FREQ, 0, &source->ref_hz));
    if (source->num_terms > 0 && !(source->ref_hz > 0))
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: line %lld: spectral terms need a reference frequency: the column "
            "ReferenceFrequency, or ReferenceFrequency='1.5e8' in the header",
            reader->path, (long long)reader->line);
cleanup:
    return status;
}

/* ---- lines ---- */

/* Finds the cells of a line. Those that it lacks are empty, and further ones have to be
 * empty. */
static tess_status take_cells(list_reader *reader, char *line)
{
    tess_status status = TESS_OK;
    char *field[MOST_FIELDS];
    const int count = cut(line, field);
    for (int k = 0; k < NUM_COLUMNS; ++k)
        reader->cell[k] = "";
    for (int k = 0; k < count; ++k) {
        if (k >= reader->num_fields) {
            if (k < MOST_FIELDS && !*field[k]) continue;
            TESS_FAIL(TESS_ERR_INPUT, "%s: line %lld has %d columns, its header has %d",
                      reader->path, (long long)reader->line, count, reader->num_fields);
        }
        if (reader->column[k] != OTHER)
            reader->cell[reader->column[k]] = unquote(field[k]);
    }
cleanup:
    return status;
}

/* Whether a line is of a patch. If there are columns of name and type, a line without
 * either is. */
static bool is_patch(const list_reader *reader)
{
    bool has_patches = false;
    for (int k = 0; k < reader->num_fields; ++k)
        has_patches = has_patches || reader->column[k] == PATCH;
    return has_patches && !*reader->cell[NAME] && !*reader->cell[TYPE];
}

static tess_status take_source(list_reader *reader, char *line, tess_source_list *list)
{
    tess_status status = TESS_OK;
    tess_listed_source source = {.line = reader->line};
    double term[TESS_SOURCE_LIST_TERMS];
    TESS_TRY(take_cells(reader, line));
    if (is_patch(reader)) return TESS_OK;
    TESS_TRY(read_position(reader, &source));
    TESS_TRY(read_fluxes(reader, &source));
    TESS_TRY(read_shape(reader, &source));
    TESS_TRY(read_spectrum(reader, &source, term));
    TESS_TRY(tess_source_list_add(list, &source, term));
cleanup:
    return status;
}

/* Takes a trimmed line: the header until there was one, then sources. */
static tess_status take_line(list_reader *reader, char *line, tess_source_list *list,
                             char *ignored, size_t size)
{
    tess_status status = TESS_OK;
    if (!*line) return TESS_OK;
    if (reader->num_fields == 0) {
        const bool is_comment = *line == '#';
        char *columns = header_columns(line);
        if (columns)
            TESS_TRY(read_header(reader, columns, ignored, size));
        else if (!is_comment)
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: line %lld is no header of a list of sources, like 'Format = "
                      "Name, Type, Ra, Dec, I'",
                      reader->path, (long long)reader->line);
    } else if (*line != '#') {
        TESS_TRY(take_source(reader, line, list));
    }
cleanup:
    return status;
}

tess_status tess_source_list_parse(const char *path, const char *text,
                                   tess_source_list *list_out, char *ignored,
                                   size_t size)
{
    tess_status status = TESS_OK;
    list_reader reader = {.path = path};
    tess_source_list list = {0};
    char *copy = tess_strdup(text), *rest = copy;
    if (!copy) TESS_FAIL(TESS_ERR_ALLOC, "%s: list of sources", path);
    if (ignored && size > 0) *ignored = '\0';
    for (int k = 0; k < NUM_COLUMNS; ++k)
        reader.fallback[k] = "";
    if (strncmp(rest, "\xEF\xBB\xBF", 3) == 0) rest += 3; /* a byte order mark */
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        ++reader.line;
        TESS_TRY(take_line(&reader, tess_text_trim(line), &list, ignored, size));
    }
    if (reader.num_fields == 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: a list of sources without a header", path);
    *list_out = list;
    list = (tess_source_list){0};
cleanup:
    tess_free(copy);
    tess_source_list_free(&list);
    return status;
}

/* ---- files ---- */

/* Whether a text begins with a header. */
static bool begins_as_list(char *text)
{
    char *rest = strncmp(text, "\xEF\xBB\xBF", 3) == 0 ? text + 3 : text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        line = tess_text_trim(line);
        const bool is_comment = *line == '#' || *line == '\0';
        if (header_columns(line)) return true;
        if (!is_comment) return false;
    }
    return false;
}

/* Local. */
static bool file_is_list(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false;
    FILE *file = fopen(path, "rb");
    char *head = file ? tess_alloc_zero(HEAD_BYTES + 1, 1) : NULL;
    bool is = false;
    if (head) {
        const size_t got = fread(head, 1, HEAD_BYTES, file);
        is = got > 0 && begins_as_list(head);
    }
    if (file) fclose(file);
    tess_free(head);
    return is;
}

tess_status tess_source_list_is(tess_comm *comm, const char *path, bool *is)
{
    tess_status status = TESS_OK;
    int32_t found = 0;
    if (tess_comm_rank(comm) == 0) found = file_is_list(path);
    TESS_TRY(tess_comm_bcast(comm, &found, sizeof found, 0));
    *is = found != 0;
cleanup:
    return status;
}

tess_status tess_source_list_read(tess_comm *comm, const char *path,
                                  tess_source_list *list)
{
    tess_status status = TESS_OK;
    char *text = NULL, ignored[256] = "";
    TESS_TRY(tess_text_file_read(comm, path, "a text file of sources", &text));
    TESS_TRY(tess_source_list_parse(path, text, list, ignored, sizeof ignored));
    if (*ignored && tess_comm_rank(comm) == 0)
        tess_log_warn("%s: columns that have no meaning here: %s", path, ignored);
cleanup:
    tess_free(text);
    return status;
}

/* ---- lists ---- */

tess_status tess_source_list_add(tess_source_list *list,
                                 const tess_listed_source *source, const double *term)
{
    tess_status status = TESS_OK;
    void *sources = list->source, *terms = list->term;
    const int failed =
        tess_grow(&sources, &list->capacity, list->num_sources + 1,
                  sizeof *list->source) ||
        tess_grow(&terms, &list->capacity_terms, list->num_terms + source->num_terms,
                  sizeof *list->term);
    list->source = sources;
    list->term = terms;
    if (failed)
        TESS_FAIL(TESS_ERR_ALLOC, "%lld sources", (long long)list->num_sources + 1);
    list->source[list->num_sources] = *source;
    list->source[list->num_sources++].first_term = list->num_terms;
    for (int k = 0; k < source->num_terms; ++k)
        list->term[list->num_terms++] = term[k];
cleanup:
    return status;
}

void tess_source_list_free(tess_source_list *list)
{
    tess_free(list->source);
    tess_free(list->term);
    *list = (tess_source_list){0};
}
