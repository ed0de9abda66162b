/* Reads small CSV tables that the user wrote, with one header line and comments. */
#define _GNU_SOURCE
#include "sim_csv.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tess_mem.h"
#include "tess_text.h"
#include "tess_text_file.h"

/* Cut one line at its commas; returns the number of fields, of which at most
 * TESS_CSV_MAX_COLUMNS are stored. */
static int split_fields(char *line, const char *field[TESS_CSV_MAX_COLUMNS])
{
    int count = 0;
    for (char *start = line; start;) {
        char *comma = strchr(start, ',');
        if (comma) *comma = '\0';
        if (count < TESS_CSV_MAX_COLUMNS) field[count] = tess_text_trim(start);
        ++count;
        start = comma ? comma + 1 : NULL;
    }
    return count;
}

static tess_status take_header(tess_csv *csv, char *line, int64_t number)
{
    tess_status status = TESS_OK;
    for (char *c = line; *c; ++c)
        *c = (char)tolower((unsigned char)*c);
    const int count = split_fields(line, csv->column);
    if (count > TESS_CSV_MAX_COLUMNS)
        TESS_FAIL(TESS_ERR_INPUT, "%s: line %lld has %d columns, at most %d are read",
                  csv->path, (long long)number, count, TESS_CSV_MAX_COLUMNS);
    csv->num_columns = count;
    for (int i = 1; i < count; ++i)
        for (int j = 0; j < i; ++j)
            if (csv->column[i][0] && strcmp(csv->column[i], csv->column[j]) == 0)
                TESS_FAIL(TESS_ERR_INPUT, "%s: line %lld names column '%s' twice",
                          csv->path, (long long)number, csv->column[i]);
cleanup:
    return status;
}

static tess_status take_row(tess_csv *csv, char *line, int64_t number)
{
    tess_status status = TESS_OK;
    const char *field[TESS_CSV_MAX_COLUMNS];
    const int count = split_fields(line, field);
    if (count != csv->num_columns)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: line %lld has %d columns, its header line has %d", csv->path,
                  (long long)number, count, csv->num_columns);
    const int64_t at = csv->num_rows * csv->num_columns;
    void *cells = csv->cell, *lines = csv->line;
    const int failed =
        tess_grow(&cells, &csv->capacity_cells, at + count, sizeof *csv->cell) ||
        tess_grow(&lines, &csv->capacity_rows, csv->num_rows + 1, sizeof *csv->line);
    csv->cell = cells;
    csv->line = lines;
    if (failed) TESS_FAIL(TESS_ERR_ALLOC, "%s: table", csv->path);
    memcpy(csv->cell + at, field, (size_t)count * sizeof *field);
    csv->line[csv->num_rows++] = number;
cleanup:
    return status;
}

static void keep_comment(tess_csv *csv, const char *line)
{
    strcat(csv->comments, line); /* as long as the file: it always fits */
    strcat(csv->comments, "\n");
}

/* Parse text (terminated by NUL) that was read from `path`. Local. */
static tess_status parse(const char *path, const char *text, tess_csv *csv)
{
    tess_status status = TESS_OK;
    tess_csv table = {0};
    snprintf(table.path, sizeof table.path, "%s", path);
    table.text = tess_strdup(text);
    table.comments = tess_alloc_zero((int64_t)strlen(text) + 2, 1);
    if (!table.text || !table.comments) TESS_FAIL(TESS_ERR_ALLOC, "%s: table", path);
    int64_t number = 0;
    int64_t comment_bytes = 0;
    /* Spreadsheets put a byte order mark in front. */
    const int mark = strncmp(table.text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    for (char *start = table.text + mark; start;) {
        char *end = strchr(start, '\n');
        if (end) *end = '\0';
        ++number;
        char *line = tess_text_trim(start);
        /* "#name,ra,..." is how some tools write the header, but a comment here. */
        if (*line == '#') {
            if (comment_bytes < 4096) keep_comment(&table, line);
            comment_bytes += (int64_t)strlen(line);
        } else if (*line && table.num_columns == 0) {
            TESS_TRY(take_header(&table, line, number));
        } else if (*line) {
            TESS_TRY(take_row(&table, line, number));
        }
        start = end ? end + 1 : NULL;
    }
    if (table.num_rows == 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: no rows below a header line; give column names in the first "
                  "line and one row for each entry",
                  path);
    *csv = table;
    memset(&table, 0, sizeof table);
cleanup:
    tess_csv_free(&table);
    return status;
}

tess_status tess_csv_read(tess_comm *comm, const char *path, tess_csv *csv)
{
    tess_status status = TESS_OK;
    char *text = NULL;
    TESS_TRY(tess_text_file_read(comm, path, "a text file of comma separated values",
                                 &text));
    TESS_TRY(parse(path, text, csv));
cleanup:
    tess_free(text);
    return status;
}

int tess_csv_column(const tess_csv *csv, const char *name)
{
    for (int i = 0; i < csv->num_columns; ++i)
        if (strcmp(csv->column[i], name) == 0) return i;
    return -1;
}

const char *tess_csv_text(const tess_csv *csv, int64_t row, int column)
{
    return column < 0 ? "" : csv->cell[row * csv->num_columns + column];
}

tess_status tess_csv_number(const tess_csv *csv, int64_t row, int column,
                            double fallback, double *value)
{
    tess_status status = TESS_OK;
    const char *text = tess_csv_text(csv, row, column);
    double number = fallback;
    if (*text) {
        char *end = NULL;
        number = strtod(text, &end);
        if (*end != '\0' || !isfinite(number))
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: line %lld, column '%s': '%s' is not a finite number",
                      csv->path, (long long)csv->line[row], csv->column[column], text);
    }
    *value = number;
cleanup:
    return status;
}

tess_status tess_csv_blame(const tess_csv *csv, int64_t row, int column,
                           tess_status status)
{
    if (status == TESS_OK) return status;
    char reason[512];
    snprintf(reason, sizeof reason, "%s", tess_error_message());
    tess_error_clear();
    TESS_FAIL(TESS_ERR_INPUT, "%s: line %lld, column '%s': %s", csv->path,
              (long long)csv->line[row], csv->column[column], reason);
cleanup:
    return status;
}

void tess_csv_free(tess_csv *csv)
{
    if (!csv) return;
    tess_free(csv->text);
    tess_free(csv->comments);
    tess_free(csv->cell);
    tess_free(csv->line);
    memset(csv, 0, sizeof *csv);
}
