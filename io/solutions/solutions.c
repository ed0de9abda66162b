/* Solutions on all ranks: rank 0 reads them from files and sends them. */
#include "solutions.h"

#include <math.h>
#include <string.h>

#include "tess_mem.h"
#include "tess_minmax.h"

static void free_values(solution_values *table)
{
    tess_free(table->time_mjd_s);
    tess_free(table->freq_hz);
    tess_free(table->held);
    tess_free(table->value);
}

void tess_solutions_free(tess_solutions *solutions)
{
    if (!solutions) return;
    for (int k = 0; k < solutions->num_tables; ++k)
        free_values(&solutions->table[k]);
    tess_free(solutions->table);
    tess_free(solutions->factor);
    tess_free(solutions->match);
    tess_free(solutions->antenna);
    tess_free(solutions);
}

/* Sends an array of rank 0, which may be NULL, to the other ranks, which allocate it.
 * Collective. */
static tess_status share(tess_comm *comm, void **array, int64_t count, size_t size)
{
    tess_status status = TESS_OK;
    int there = *array != NULL;
    TESS_TRY(tess_comm_bcast(comm, &there, sizeof there, 0));
    if (!there) {
        *array = NULL;
        goto cleanup;
    }
    if (tess_comm_rank(comm) != 0) {
        *array = tess_alloc(count, size);
        if (!*array)
            status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                       "no memory for solutions");
    }
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_bcast(comm, *array, count * (int64_t)size, 0));
cleanup:
    return status;
}

/* Sends what a table points to. The other ranks' copies point nowhere before. */
static tess_status share_values(tess_comm *comm, int64_t num_directions,
                                solution_values *table)
{
    tess_status status = TESS_OK;
    void *array[] = {table->time_mjd_s, table->freq_hz, table->held, table->value};
    const int64_t count[] = {table->num[H5PARM_TIME], table->num[H5PARM_FREQ],
                             num_directions, solution_values_count(table)};
    for (int k = 0; k < 4; ++k)
        TESS_TRY(share(comm, &array[k], count[k],
                       k == 2 ? sizeof *table->held : sizeof *table->value));
cleanup:
    table->time_mjd_s = array[0];
    table->freq_hz = array[1];
    table->held = array[2];
    table->value = array[3];
    return status;
}

/* Collective. */
static tess_status share_tables(tess_comm *comm, tess_solutions *solutions)
{
    tess_status status = TESS_OK;
    const bool first = tess_comm_rank(comm) == 0;
    const int num = solutions->num_tables;
    void *tables = solutions->table, *factors = solutions->factor;
    solutions->num_tables = first ? num : 0; /* none to be freed so far */
    status = share(comm, &tables, num, sizeof *solutions->table);
    solutions->table = tables;
    TESS_TRY(status);
    for (int k = 0; k < num && !first; ++k) {
        solution_values *table = &solutions->table[k];
        table->time_mjd_s = table->freq_hz = table->value = NULL;
        table->held = NULL;
    }
    solutions->num_tables = num;
    for (int k = 0; k < num; ++k)
        TESS_TRY(share_values(comm, solutions->num_directions, &solutions->table[k]));
    status = share(comm, &factors, num, sizeof *solutions->factor);
    solutions->factor = factors;
cleanup:
    return status;
}

tess_status tess_solutions_read(tess_comm *comm, const tess_solutions_opts *opts,
                                tess_solutions **out)
{
    tess_status status = TESS_OK;
    const bool first = tess_comm_rank(comm) == 0;
    tess_solutions *solutions = tess_alloc_zero(1, sizeof *solutions);
    if (!solutions)
        status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                   "no memory for solutions");
    else if (opts->num_directions < 1 || opts->num_files < 1)
        status = tess_error_record(TESS_ERR_INTERNAL, __FILE__, __LINE__, __func__,
                                   "no direction or file of solutions");
    else if (first)
        status = solutions_gather(opts, solutions);
    TESS_TRY(tess_comm_agree(comm, status));
    tess_solutions own = *solutions;
    TESS_TRY(tess_comm_bcast(comm, solutions, sizeof *solutions, 0));
    solutions->table = own.table;
    solutions->factor = own.factor;
    solutions->match = own.match;
    solutions->antenna = own.antenna;
    solutions->is_linear = opts->is_linear;
    solutions->is_circular = opts->is_circular;
    void *match = solutions->match;
    const int num_tables = solutions->num_tables;
    solutions->num_tables = first ? num_tables : 0;
    status = share(comm, &match, opts->num_files * opts->num_directions,
                   sizeof *solutions->match);
    solutions->match = match;
    TESS_TRY(status);
    void *antenna = solutions->antenna;
    status = share(comm, &antenna, solutions->num_antennas, sizeof *solutions->antenna);
    solutions->antenna = antenna;
    TESS_TRY(status);
    solutions->num_tables = num_tables;
    TESS_TRY(share_tables(comm, solutions));
    *out = solutions;
    solutions = NULL;
cleanup:
    tess_solutions_free(solutions);
    return status;
}

/* Local. */
static tess_status read_sources(const char *path, tess_solution_source **source,
                                int64_t *num)
{
    tess_status status = TESS_OK;
    h5parm *file = NULL;
    TESS_TRY(h5parm_open(path, &file));
    TESS_TRY(h5parm_sources(file, source, num));
cleanup:
    h5parm_close(file);
    return status;
}

tess_status tess_solutions_sources(tess_comm *comm, const char *path,
                                   tess_solution_source **out, int64_t *num)
{
    tess_status status = TESS_OK;
    tess_solution_source *source = NULL;
    void *array = NULL;
    int64_t count = 0;
    if (tess_comm_rank(comm) == 0) status = read_sources(path, &source, &count);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_bcast(comm, &count, sizeof count, 0));
    array = source;
    TESS_TRY(share(comm, &array, count, sizeof *source));
    *out = array;
    *num = count;
    array = NULL;
cleanup:
    tess_free(array);
    return status;
}

/* ---- what is there ---- */

const tess_solution_match *tess_solutions_match(const tess_solutions *solutions,
                                                int file, int64_t direction)
{
    return &solutions->match[file * solutions->num_directions + direction];
}

static tess_gain_shape shape_of(const tess_solutions *solutions,
                                const solution_values *table)
{
    const bool rotates = table->kind >= SOLUTION_ROTATION;
    if (rotates && solutions->is_circular) return TESS_GAIN_DIAGONAL;
    if (rotates || table->num[H5PARM_POL] == 4) return TESS_GAIN_FULL;
    return table->num[H5PARM_POL] == 2 ? TESS_GAIN_DIAGONAL : TESS_GAIN_SCALAR;
}

tess_gain_shape tess_solutions_shape(const tess_solutions *solutions)
{
    tess_gain_shape shape = TESS_GAIN_SCALAR;
    for (int k = 0; k < solutions->num_tables; ++k) {
        const tess_gain_shape own = shape_of(solutions, &solutions->table[k]);
        shape = own > shape ? own : shape;
    }
    return shape;
}

int64_t tess_solutions_num_antennas(const tess_solutions *solutions)
{
    int64_t most = 0;
    for (int k = 0; k < solutions->num_tables; ++k)
        most = tess_max_i64(most, solutions->table[k].num[H5PARM_ANT]);
    return most > 1 ? most : 0;
}

const double *tess_solutions_times(const tess_solutions *solutions, int table,
                                   int64_t *num)
{
    *num = solutions->table[table].num[H5PARM_TIME];
    return solutions->table[table].time_mjd_s;
}

const double *tess_solutions_freqs(const tess_solutions *solutions, int table,
                                   int64_t *num)
{
    *num = solutions->table[table].num[H5PARM_FREQ];
    return solutions->table[table].freq_hz;
}

int tess_solutions_num_tables(const tess_solutions *solutions)
{
    return solutions->num_tables;
}

tess_solution_range tess_solutions_range(const tess_solutions *solutions, int table,
                                         int64_t direction)
{
    static const char *const units[NUM_SOLUTION_KINDS] = {"",  "rad", "TECU",
                                                          "s", "rad", "rad/m2"};
    const solution_values *of = &solutions->table[table];
    const int64_t each = solution_values_count(of) / of->num[H5PARM_DIR];
    const double *value = of->value + of->held[direction] * each;
    tess_solution_range range = {.file = of->file,
                                 .table = of->name,
                                 .unit = units[of->kind],
                                 .least = INFINITY,
                                 .most = -INFINITY,
                                 .num_values = each};
    for (int64_t k = 0; k < each; ++k) {
        range.num_bad += isnan(value[k]);
        range.least = fmin(range.least, value[k]);
        range.most = fmax(range.most, value[k]);
    }
    return range;
}
