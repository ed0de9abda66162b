/* Transforms real images between rows and columns, by passes of one-dimensional
 * transforms with an exchange between them. The caller says what is done with columns.
 */
#include "tess_convolve.h"

#include <string.h>

#include "tess_fft.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_omp.h"
#include "tess_outbox.h"

/* This many lines are transposed together: single-precision values of so many lines
 * fill a cache line. */
enum { BATCH = 8 };

typedef struct rank_rows {
    int64_t first, count;
} rank_rows;

struct tess_convolve {
    tess_comm *comm;
    tess_convolve_opts opts;
    int rank, size;
    int64_t lx, ly, half;           /* half: lx/2 + 1 columns of a spectrum */
    int64_t columns;                /* of a spectrum of a plan that is not coarser */
    size_t real_bytes, value_bytes; /* of a real and of a complex value */
    tess_fft *fft[4];               /* row and column forward, column and row back */
    tess_outbox *box;
    rank_rows *rows;                  /* [size] of images */
    rank_rows *wanted;                /* [size] of an inverse transform */
    int64_t *col_first;               /* [size + 1] */
    int64_t *send_bytes, *recv_bytes; /* [size] */
    void **part;                      /* [size] what each rank has sent */
    char *work;                       /* [threads][work_bytes] */
    int64_t work_bytes;
    double transforms, seconds;
};

enum { ROW_FORWARD, COLUMN_FORWARD, COLUMN_BACK, ROW_BACK };

/* One transform under way. */
typedef struct pass {
    tess_convolve *plan;
    bool centred;
    tess_convolve_part part;
    tess_convolve_give *give;
    tess_convolve_take *take;
    void *context;
    char *room;
} pass;

/* Divides `*rest` by `factor` as often as that is possible, and returns how often. */
static int times_divided(int64_t *rest, int factor)
{
    int count = 0;
    for (; *rest % factor == 0; *rest /= factor)
        ++count;
    return count;
}

/* Estimates what a transform of a length costs; 0 if the length has a prime factor
 * above 7. FFTW's vector code wants factors of 2: without them a value takes three
 * times as long (measured at 700 to 7000 values, FFTW 3.3.10, AVX2). */
static double cost_of(int64_t length)
{
    enum { VECTOR_TWOS = 6 };
    int64_t rest = length;
    const int twos = times_divided(&rest, 2), threes = times_divided(&rest, 3);
    const int fives = times_divided(&rest, 5), sevens = times_divided(&rest, 7);
    const int lacking = twos < VECTOR_TWOS ? VECTOR_TWOS - twos : 0;
    if (rest > 1) return 0;
    return (double)length *
           (1 + 0.4 * lacking + 0.06 * (threes + fives) + 0.2 * sevens);
}

int64_t tess_convolve_length(int64_t least)
{
    const int64_t first = tess_max_i64(least, 1);
    int64_t best = 0;
    for (int64_t length = first; best == 0 || length <= first + first / 16; ++length) {
        const double cost = cost_of(length);
        if (cost > 0 && (best == 0 || cost < cost_of(best))) best = length;
    }
    return best;
}

void tess_convolve_lengths(const tess_convolve_opts *opts, int64_t *lx, int64_t *ly)
{
    const int64_t cell = tess_max_i64(opts->coarser, 1);
    *lx = tess_convolve_length(opts->nx + opts->nx / 2 + opts->reach) / cell;
    *ly = tess_convolve_length(opts->ny + opts->ny / 2 + opts->reach) / cell;
}

static int64_t aligned(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Returns a thread's memory: one line, and a batch of lines. */
static int64_t line_bytes(int64_t lx, int64_t ly, size_t value_bytes)
{
    return aligned(tess_max_i64(lx / 2 + 1, ly) * (int64_t)value_bytes);
}

void tess_convolve_bytes(const tess_convolve_opts *opts, double *plan_bytes,
                         double *spectrum_bytes)
{
    const size_t value_bytes = opts->is_double ? 16 : 8;
    int64_t lx, ly;
    tess_convolve_lengths(opts, &lx, &ly);
    const double half = (double)(lx / 2 + 1);
    const double work = (double)line_bytes(lx, ly, value_bytes) * (BATCH + 1);
    *plan_bytes =
        half * (double)opts->num_rows * (double)value_bytes + work * opts->threads;
    *spectrum_bytes = half * (double)ly * (double)value_bytes;
}

/* ---- making a plan ---- */

static tess_status check_rows(const tess_convolve *plan)
{
    tess_status status = TESS_OK;
    int64_t next = 0;
    for (int k = 0; k < plan->size; ++k) {
        if (plan->rows[k].count < 0 ||
            (plan->rows[k].count > 0 && plan->rows[k].first != next))
            TESS_FAIL(TESS_ERR_USAGE, "rows of ranks do not follow one another");
        next += plan->rows[k].count;
    }
    if (next != plan->opts.ny)
        TESS_FAIL(TESS_ERR_USAGE, "ranks have %lld rows of %lld", (long long)next,
                  (long long)plan->opts.ny);
cleanup:
    return status;
}

static tess_status make_transforms(tess_convolve *plan)
{
    tess_status status = TESS_OK;
    const tess_convolve_opts *opts = &plan->opts;
    const bool is_double = opts->is_double;
    const int64_t uses = opts->repeatable ? 0 : tess_max_i64(opts->uses, 1);
    const int64_t rows = uses * opts->ny, columns = uses * plan->half;
    TESS_TRY(
        tess_fft_create(plan->ly, false, is_double, columns, &plan->fft[COLUMN_BACK]));
    TESS_TRY(
        tess_fft_create_real(plan->lx, false, is_double, rows, &plan->fft[ROW_BACK]));
    if (opts->coarser > 1) return TESS_OK;
    TESS_TRY(
        tess_fft_create_real(plan->lx, true, is_double, rows, &plan->fft[ROW_FORWARD]));
    TESS_TRY(tess_fft_create(plan->ly, true, is_double, columns,
                             &plan->fft[COLUMN_FORWARD]));
cleanup:
    return status;
}

static tess_status allocate(tess_convolve *plan)
{
    tess_status status = TESS_OK;
    const int64_t size = plan->size;
    plan->work_bytes = (BATCH + 1) * line_bytes(plan->lx, plan->ly, plan->value_bytes);
    plan->rows = tess_alloc_zero(size, sizeof *plan->rows);
    plan->wanted = tess_alloc_zero(size, sizeof *plan->wanted);
    plan->col_first = tess_alloc_zero(size + 1, sizeof *plan->col_first);
    plan->send_bytes = tess_alloc_zero(size, sizeof *plan->send_bytes);
    plan->recv_bytes = tess_alloc_zero(size, sizeof *plan->recv_bytes);
    plan->part = tess_alloc_zero(size, sizeof *plan->part);
    plan->work = tess_alloc_zero(plan->opts.threads, (size_t)plan->work_bytes);
    if (!plan->rows || !plan->wanted || !plan->col_first || !plan->send_bytes ||
        !plan->recv_bytes || !plan->part || !plan->work)
        TESS_FAIL(TESS_ERR_ALLOC, "transforms of %lld × %lld", (long long)plan->lx,
                  (long long)plan->ly);
    for (int64_t k = 0; k <= size; ++k)
        plan->col_first[k] = tess_min_i64(plan->half, plan->columns * k / size);
    TESS_TRY(tess_outbox_create(plan->comm, &plan->box));
    TESS_TRY(make_transforms(plan));
cleanup:
    return status;
}

tess_status tess_convolve_create(tess_comm *comm, const tess_convolve_opts *opts,
                                 tess_convolve **plan_out)
{
    tess_status status = TESS_OK;
    tess_convolve *plan = tess_alloc_zero(1, sizeof *plan);
    const rank_rows own = {opts->row_first, opts->num_rows};
    if (plan) {
        plan->comm = comm;
        plan->opts = *opts;
        plan->rank = tess_comm_rank(comm);
        plan->size = tess_comm_size(comm);
        plan->real_bytes = opts->is_double ? 8 : 4;
        plan->value_bytes = 2 * plan->real_bytes;
        tess_convolve_lengths(opts, &plan->lx, &plan->ly);
        plan->half = plan->lx / 2 + 1;
        plan->columns = plan->lx * tess_max_i64(opts->coarser, 1) / 2 + 1;
    }
    TESS_TRY(tess_comm_agree(comm, plan ? allocate(plan) : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_allgather(comm, &own, sizeof own, plan->rows));
    TESS_TRY(check_rows(plan));
    *plan_out = plan;
    plan = NULL;
cleanup:
    tess_convolve_destroy(plan);
    return status;
}

void tess_convolve_destroy(tess_convolve *plan)
{
    if (!plan) return;
    tess_outbox_free(plan->box);
    for (int k = 0; k < 4; ++k)
        tess_fft_destroy(plan->fft[k]);
    tess_free(plan->rows);
    tess_free(plan->wanted);
    tess_free(plan->col_first);
    tess_free(plan->send_bytes);
    tess_free(plan->recv_bytes);
    tess_free(plan->part);
    tess_free(plan->work);
    tess_free(plan);
}

void tess_convolve_columns(const tess_convolve *plan, int64_t *first, int64_t *count,
                           int64_t *length)
{
    *first = plan->col_first[plan->rank];
    *count = plan->col_first[plan->rank + 1] - *first;
    *length = plan->ly;
}

void tess_convolve_rest(tess_convolve *plan)
{
    tess_outbox_empty(plan->box);
}

void tess_convolve_spent(const tess_convolve *plan, double *transforms, double *seconds)
{
    *transforms = plan->transforms;
    *seconds = plan->seconds;
}

/* ---- lines and their transposition ---- */

static char *line_of_thread(const tess_convolve *plan)
{
    return plan->work + tess_omp_thread() * plan->work_bytes;
}

static char *batch_of_thread(const tess_convolve *plan, int64_t number)
{
    const int64_t bytes = line_bytes(plan->lx, plan->ly, plan->value_bytes);
    return line_of_thread(plan) + (1 + number) * bytes;
}

typedef struct single_value {
    float re, im;
} single_value;
typedef struct double_value {
    double re, im;
} double_value;

/* Sets to[k·stride + b] to value `at` + k of the b-th of `lines` lines. */
#define TRANSPOSE(VALUE, SUFFIX)                                                       \
    static void transpose_##SUFFIX(const tess_convolve *plan, int64_t lines,           \
                                   int64_t at, int64_t count, char *to,                \
                                   int64_t stride)                                     \
    {                                                                                  \
        const VALUE *from[BATCH];                                                      \
        for (int64_t b = 0; b < lines; ++b)                                            \
            from[b] = (const VALUE *)(void *)batch_of_thread(plan, b) + at;            \
        for (int64_t k = 0; k < count; ++k) {                                          \
            VALUE *out = (VALUE *)(void *)to + k * stride;                             \
            for (int64_t b = 0; b < lines; ++b)                                        \
                out[b] = from[b][k];                                                   \
        }                                                                              \
    }
TRANSPOSE(single_value, single)
TRANSPOSE(double_value, double)

static void transpose(const tess_convolve *plan, int64_t lines, int64_t at,
                      int64_t count, char *to, int64_t stride)
{
    (plan->opts.is_double ? transpose_double : transpose_single)(plan, lines, at, count,
                                                                 to, stride);
}

static int64_t wrapped(int64_t k, int64_t length)
{
    const int64_t rest = k % length;
    return rest < 0 ? rest + length : rest;
}

/* Copies `count` elements between a line of `length` that is periodic, from its element
 * `at` on, and a line that is not periodic. */
static void copy_into_ring(char *ring, int64_t length, int64_t at, const char *from,
                           int64_t count, size_t bytes)
{
    const int64_t start = wrapped(at, length),
                  end = tess_min_i64(count, length - start);
    memcpy(ring + (size_t)start * bytes, from, (size_t)end * bytes);
    memcpy(ring, from + (size_t)end * bytes, (size_t)(count - end) * bytes);
}

/* ---- forward ---- */

/* Transforms a row. A row that the caller does not have becomes zero. */
static void transform_row(const pass *job, int64_t row, char *out)
{
    const tess_convolve *plan = job->plan;
    const int64_t nx = plan->opts.nx;
    char *line = line_of_thread(plan);
    /* `out` holds the row of the image first, because the memory of both lines is long
     * enough for any of them */
    if (!job->give(job->context, row, out)) {
        memset(out, 0, (size_t)plan->half * plan->value_bytes);
        return;
    }
    memset(line, 0, (size_t)plan->lx * plan->real_bytes);
    copy_into_ring(line, plan->lx, job->centred ? -(nx / 2) : 0, out, nx,
                   plan->real_bytes);
    tess_fft_execute(plan->fft[ROW_FORWARD], line, out);
}

/* Transforms all rows. The columns of rank k, of [num_rows] values each, go to the room
 * for rank k. */
static void transform_rows(const pass *job)
{
    const tess_convolve *plan = job->plan;
    const int64_t rows = plan->opts.num_rows, batches = (rows + BATCH - 1) / BATCH;
#pragma omp parallel for schedule(dynamic) num_threads(plan->opts.threads)
    for (int64_t batch = 0; batch < batches; ++batch) {
        const int64_t first = batch * BATCH, lines = tess_min_i64(BATCH, rows - first);
        for (int64_t b = 0; b < lines; ++b)
            transform_row(job, first + b, batch_of_thread(plan, b));
        transpose(plan, lines, 0, plan->half,
                  job->room + (size_t)first * plan->value_bytes, rows);
    }
}

static void transform_column(const pass *job, int64_t column)
{
    const tess_convolve *plan = job->plan;
    char *line = line_of_thread(plan), *out = batch_of_thread(plan, 0);
    const int64_t shift = job->centred ? -(plan->opts.ny / 2) : 0;
    memset(line, 0, (size_t)plan->ly * plan->value_bytes);
    for (int k = 0; k < plan->size; ++k) {
        const rank_rows *rows = &plan->rows[k];
        if (rows->count == 0) continue;
        copy_into_ring(line, plan->ly, rows->first + shift,
                       (const char *)plan->part[k] +
                           (size_t)(column * rows->count) * plan->value_bytes,
                       rows->count, plan->value_bytes);
    }
    tess_fft_execute(plan->fft[COLUMN_FORWARD], line, out);
    job->take(job->context, column, out);
}

static int64_t columns_of(const tess_convolve *plan, int rank)
{
    return plan->col_first[rank + 1] - plan->col_first[rank];
}

tess_status tess_convolve_forward(tess_convolve *plan, bool centred,
                                  tess_convolve_give *give, tess_convolve_take *take,
                                  void *context)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    pass job = {.plan = plan,
                .centred = centred,
                .give = give,
                .take = take,
                .context = context};
    const int64_t rows = plan->opts.num_rows, columns = columns_of(plan, plan->rank);
    void *room = NULL;
    TESS_TRY(tess_outbox_room(plan->box, TESS_OK,
                              rows * plan->half * (int64_t)plan->value_bytes, &room));
    job.room = room;
    transform_rows(&job);
    for (int k = 0; k < plan->size; ++k)
        plan->send_bytes[k] = rows * columns_of(plan, k) * (int64_t)plan->value_bytes;
    TESS_TRY(tess_outbox_send(plan->box, TESS_OK, plan->send_bytes, plan->recv_bytes,
                              plan->part));
#pragma omp parallel for schedule(dynamic, BATCH) num_threads(plan->opts.threads)
    for (int64_t column = 0; column < columns; ++column)
        transform_column(&job, column);
    tess_outbox_drop(plan->box);
    plan->transforms += 1;
    plan->seconds += tess_time_now() - start;
cleanup:
    return status;
}

/* ---- inverse ---- */

static void back_column(const pass *job, int64_t column, char *out)
{
    const tess_convolve *plan = job->plan;
    char *line = line_of_thread(plan);
    if (job->give(job->context, column, line))
        tess_fft_execute(plan->fft[COLUMN_BACK], line, out);
    else
        memset(out, 0, (size_t)plan->ly * plan->value_bytes);
}

/* Packs the rows that rank k wants of the columns of a batch. These rows are periodic,
 * so they are copied in runs. */
static void send_batch(const pass *job, int64_t column, int64_t lines)
{
    const tess_convolve *plan = job->plan;
    const int64_t stride = columns_of(plan, plan->rank);
    char *to = job->room + (size_t)column * plan->value_bytes;
    for (int k = 0; k < plan->size; ++k)
        for (int64_t row = 0; row < plan->wanted[k].count;) {
            const int64_t at = wrapped(plan->wanted[k].first + row, plan->ly);
            const int64_t run =
                tess_min_i64(plan->wanted[k].count - row, plan->ly - at);
            transpose(plan, lines, at, run, to, stride);
            to += (size_t)(run * stride) * plan->value_bytes;
            row += run;
        }
}

/* Transforms all columns back. The rows of rank k, of this rank's columns, go to the
 * room for rank k. */
static void back_columns(const pass *job)
{
    const tess_convolve *plan = job->plan;
    const int64_t columns = columns_of(plan, plan->rank);
    const int64_t batches = (columns + BATCH - 1) / BATCH;
#pragma omp parallel for schedule(dynamic) num_threads(plan->opts.threads)
    for (int64_t batch = 0; batch < batches; ++batch) {
        const int64_t first = batch * BATCH,
                      lines = tess_min_i64(BATCH, columns - first);
        for (int64_t b = 0; b < lines; ++b)
            back_column(job, first + b, batch_of_thread(plan, b));
        send_batch(job, first, lines);
    }
}

#define NORMALISE(REAL, SUFFIX)                                                        \
    static void normalise_##SUFFIX(const void *line, int64_t length, int64_t at,       \
                                   int64_t count, double factor, void *out)            \
    {                                                                                  \
        const REAL *from = line, by = (REAL)factor;                                    \
        REAL *to = out;                                                                \
        for (int64_t k = 0; k < count;) {                                              \
            const int64_t start = wrapped(at + k, length);                             \
            const int64_t run = tess_min_i64(count - k, length - start);               \
            for (int64_t j = 0; j < run; ++j)                                          \
                to[k + j] = from[start + j] * by;                                      \
            k += run;                                                                  \
        }                                                                              \
    }
NORMALISE(float, single)
NORMALISE(double, double)

static void back_row(const pass *job, int64_t row)
{
    const tess_convolve *plan = job->plan;
    char *line = batch_of_thread(plan, 0), *out = batch_of_thread(plan, 1);
    for (int k = 0; k < plan->size; ++k) {
        const size_t bytes = (size_t)columns_of(plan, k) * plan->value_bytes;
        if (bytes == 0) continue; /* a rank without columns sends no array */
        memcpy(line + (size_t)plan->col_first[k] * plan->value_bytes,
               (const char *)plan->part[k] + (size_t)row * bytes, bytes);
    }
    tess_fft_execute(plan->fft[ROW_BACK], line, out);
    (plan->opts.is_double ? normalise_double : normalise_single)(
        out, plan->lx, job->part.x_first, job->part.num_x,
        1.0 / ((double)plan->lx * (double)plan->ly), line);
    job->take(job->context, row, line);
}

tess_status tess_convolve_inverse(tess_convolve *plan, const tess_convolve_part *part,
                                  tess_convolve_give *give, tess_convolve_take *take,
                                  void *context)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    const tess_convolve_part image = {0, plan->opts.nx, plan->opts.row_first,
                                      plan->opts.num_rows};
    pass job = {.plan = plan,
                .part = part ? *part : image,
                .give = give,
                .take = take,
                .context = context};
    const rank_rows own = {job.part.y_first, job.part.num_y};
    int64_t rows = 0;
    void *room = NULL;
    TESS_TRY(tess_comm_allgather(plan->comm, &own, sizeof own, plan->wanted));
    for (int k = 0; k < plan->size; ++k) {
        plan->send_bytes[k] = plan->wanted[k].count * columns_of(plan, plan->rank) *
                              (int64_t)plan->value_bytes;
        rows += plan->wanted[k].count;
    }
    TESS_TRY(tess_outbox_room(
        plan->box, TESS_OK,
        rows * columns_of(plan, plan->rank) * (int64_t)plan->value_bytes, &room));
    job.room = room;
    back_columns(&job);
    TESS_TRY(tess_outbox_send(plan->box, TESS_OK, plan->send_bytes, plan->recv_bytes,
                              plan->part));
#pragma omp parallel for schedule(dynamic, BATCH) num_threads(plan->opts.threads)
    for (int64_t row = 0; row < own.count; ++row)
        back_row(&job, row);
    tess_outbox_drop(plan->box);
    plan->transforms += 1;
    plan->seconds += tess_time_now() - start;
cleanup:
    return status;
}
