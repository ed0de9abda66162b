/** @file sim_csv.h  (private to app/simulate/)
 *  Small tables of the user: comma separated, one header line, '#' comments.
 */
#ifndef TESS_SIM_CSV_H
#define TESS_SIM_CSV_H

#include <stdint.h>

#include "tess_comm.h"
#include "tess_status.h"

enum { TESS_CSV_MAX_COLUMNS = 64 };

/** Zeroed is empty. */
typedef struct tess_csv {
    char path[1024];
    char *text;     /**< the file, cut at its separators */
    char *comments; /**< text of the comment lines */
    int num_columns;
    const char *column[TESS_CSV_MAX_COLUMNS]; /**< names, lower case, trimmed */
    int64_t num_rows;
    const char **cell;                     /**< [num_rows][num_columns], trimmed */
    int64_t *line;                         /**< [num_rows] line numbers, from 1 */
    int64_t capacity_cells, capacity_rows; /**< private */
} tess_csv;

/** Read on rank 0, parse everywhere. TESS_ERR_IO when it cannot be read,
 *  TESS_ERR_INPUT for a row of another number of columns, a column named twice, or no
 *  rows. Collective. */
tess_status tess_csv_read(tess_comm *comm, const char *path, tess_csv *csv);

/** Index of a column, -1 when there is none. Local. */
int tess_csv_column(const tess_csv *csv, const char *name);

/** Finite number of a cell; an empty cell, or column -1, gives `fallback`.
 *  TESS_ERR_INPUT naming file, line and column. Local. */
tess_status tess_csv_number(const tess_csv *csv, int64_t row, int column,
                            double fallback, double *value);

/** Cell as text, "" for column -1. Local. */
const char *tess_csv_text(const tess_csv *csv, int64_t row, int column);

/** Turn the failure of a value's parser into TESS_ERR_INPUT that names file, line and
 *  column before what the parser said; TESS_OK stays. Local. */
tess_status tess_csv_blame(const tess_csv *csv, int64_t row, int column,
                           tess_status status);

void tess_csv_free(tess_csv *csv);

#endif
