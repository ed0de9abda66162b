/* Makes the PSF of a scale, which is convolved with the scale's kernel twice, and puts
 * its rows where all ranks of a node can read them. Each of the n ranks of a node keeps
 * about 1/n of the rows. The PSFs between layers that are sums lie side by side, pixel
 * by pixel, because a loop needs all of them at each candidate, and candidates are
 * scattered over the image. */
#include "cpu_window.h"

#include <string.h>

#include "cpu_columns.h"
#include "cpu_layers.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_real.h"

/* The place of a rank among the ranks of its node. */
typedef struct place {
    int32_t rank, size;
} place;

struct cpu_window {
    tess_comm *node; /* the ranks of this rank's node */
    tess_window *shared;
    place *place;  /* [ranks] */
    int *neighbor; /* [ranks of the node] their numbers among all ranks */
    bool one_node;
    size_t real_bytes;
    int width, num;   /* number of PSFs that lie side by side, and of windows of them */
    const void **row; /* [num][most rows] */
    int64_t most_rows;
    /* The members below belong to the current scale. */
    int scale; /* −1: none */
    int64_t half_x, half_y, stride;
    /* The members below belong to the PSF that is being put into a window. */
    const clean_work *work;
    int psf, side; /* its number, and its place among those side by side */
    char *to;      /* this rank's rows, in order */
    /* [scales][num] this rank's rows of the scales so far, in order */
    char **made;
    int num_made;
};

/* The number of values from one row to the next. */
static int64_t stride_of(int64_t half_x)
{
    return (2 * half_x + 1 + 15) / 16 * 16;
}

static int64_t share(int64_t rows, int64_t size)
{
    return (rows + size - 1) / size;
}

/* The most bytes that one rank keeps if `size` ranks share the rows. */
static int64_t part_bytes(const clean_setup *setup, int64_t size, int64_t *most_rows)
{
    int64_t bytes = 64;
    *most_rows = 1;
    for (int s = 0; s < setup->num_scales; ++s) {
        int64_t half_x, half_y;
        clean_window_half(setup, s, &half_x, &half_y);
        const int64_t rows = 2 * half_y + 1;
        bytes = tess_max_i64(bytes, share(rows, size) * stride_of(half_x) *
                                        clean_layers_psfs(setup) *
                                        (setup->opts.is_double ? 8 : 4));
        *most_rows = tess_max_i64(*most_rows, rows);
    }
    return bytes;
}

double cpu_window_kept_bytes(const clean_setup *setup)
{
    double bytes = 0;
    for (int s = 0; s < setup->num_scales; ++s) {
        int64_t half_x, half_y;
        clean_window_half(setup, s, &half_x, &half_y);
        bytes += (double)((2 * half_y + 1) * stride_of(half_x)) *
                 clean_layers_psfs(setup) * (setup->opts.is_double ? 8 : 4);
    }
    return bytes;
}

double cpu_window_bytes(const clean_setup *setup)
{
    int64_t rows;
    return (double)part_bytes(setup, 1, &rows);
}

/* Finds the place of each rank, and the ranks of this rank's node. Collective. */
static tess_status find_places(cpu_window *window, tess_comm *comm)
{
    tess_status status = TESS_OK;
    const int rank = tess_comm_rank(comm), size = tess_comm_size(comm);
    const place own = {tess_comm_rank(window->node), tess_comm_size(window->node)};
    window->place = tess_alloc_zero(size, sizeof *window->place);
    window->neighbor = tess_alloc_zero(own.size, sizeof *window->neighbor);
    TESS_TRY(tess_comm_agree(comm, window->place && window->neighbor ? TESS_OK
                                                                     : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_allgather(comm, &own, sizeof own, window->place));
    TESS_TRY(tess_comm_allgather(window->node, &rank, sizeof rank, window->neighbor));
    window->one_node = own.size == size;
cleanup:
    return status;
}

static tess_status is_readable(const cpu_window *window)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < tess_comm_size(window->node); ++k)
        if (!tess_window_of(window->shared, window->neighbor[k]))
            TESS_FAIL(
                TESS_ERR_RESOURCE,
                "the ranks of a node cannot share memory for the PSF (is /dev/shm "
                "too small?); use fewer ranks with more threads");
cleanup:
    return status;
}

tess_status cpu_window_create(clean_work *work, cpu_window **window_out)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = work->setup;
    tess_comm *comm = setup->comm;
    cpu_window *window = tess_alloc_zero(1, sizeof *window);
    TESS_TRY(tess_comm_agree(comm, window ? TESS_OK : TESS_ERR_ALLOC));
    window->real_bytes = work->real_bytes;
    window->width = clean_layers_are_sums(setup) ? clean_layers_psfs(setup) : 1;
    window->num = clean_layers_psfs(setup) / window->width;
    window->scale = -1;
    TESS_TRY(tess_comm_node(comm, &window->node));
    TESS_TRY(find_places(window, comm));
    int64_t bytes = part_bytes(setup, tess_comm_size(window->node), &window->most_rows);
    window->row = tess_alloc_zero(window->most_rows * window->num, sizeof *window->row);
    window->made =
        tess_alloc_zero((int64_t)setup->num_scales * window->num, sizeof *window->made);
    TESS_TRY(
        tess_comm_agree(comm, window->row && window->made ? TESS_OK : TESS_ERR_ALLOC));
    window->num_made = setup->num_scales * window->num;
    TESS_TRY(tess_comm_allreduce_i64(comm, &bytes, 1, TESS_MAX));
    TESS_TRY(tess_window_create(comm, bytes, &window->shared));
    TESS_TRY(tess_comm_agree(comm, is_readable(window)));
    *window_out = window;
    window = NULL;
cleanup:
    cpu_window_free(window);
    return status;
}

void cpu_window_forget(cpu_window *window)
{
    if (!window) return;
    window->scale = -1;
    for (int k = 0; k < window->num_made; ++k) {
        tess_free(window->made[k]);
        window->made[k] = NULL;
    }
}

void cpu_window_free(cpu_window *window)
{
    if (!window) return;
    cpu_window_forget(window);
    tess_free(window->made);
    tess_window_free(window->shared);
    tess_comm_free(window->node);
    tess_free(window->place);
    tess_free(window->neighbor);
    tess_free(window->row);
    tess_free(window);
}

cpu_psf cpu_window_psf(const cpu_window *window, int number)
{
    return (cpu_psf){window->row + number * window->most_rows, window->half_x,
                     window->half_y};
}

double cpu_window_centre(const clean_work *work, int number)
{
    const cpu_window *window = work->window;
    const cpu_psf psf = cpu_window_psf(window, number);
    return tess_real_at(psf.row[psf.half_y], work->is_double,
                        psf.half_x * window->width);
}

static size_t row_bytes(const cpu_window *window)
{
    return (size_t)(window->stride * window->width) * window->real_bytes;
}

/* Finds where the rows of a window lie in the memory of the node's ranks. */
static void find_rows(cpu_window *window, int number)
{
    const int64_t rows = 2 * window->half_y + 1;
    const int64_t each = share(rows, tess_comm_size(window->node));
    for (int64_t r = 0; r < rows; ++r) {
        const char *part = tess_window_of(window->shared, window->neighbor[r / each]);
        window->row[number * window->most_rows + r] =
            part + (size_t)(number * each + r % each) * row_bytes(window);
    }
}

static bool give_column(void *context, int64_t column, void *line)
{
    const cpu_window *window = context;
    const clean_work *work = window->work;
    void *const *psf = work->layers.basis ? work->layers.psf : work->psf;
    cpu_times_kernel(work, psf[window->psf],
                     work->kernel ? work->kernel[window->scale] : NULL, 2, column,
                     line);
    return true;
}

static void take_row(void *context, int64_t row, void *line)
{
    const cpu_window *window = context;
    const int64_t count = 2 * window->half_x + 1;
    const bool is_double = window->work->is_double;
    char *to = window->to + (size_t)row * row_bytes(window);
    if (window->width == 1)
        memcpy(to, line, (size_t)count * window->real_bytes);
    else if (is_double)
        for (int64_t x = 0; x < count; ++x)
            ((double *)to)[x * window->width + window->side] = ((double *)line)[x];
    else
        for (int64_t x = 0; x < count; ++x)
            ((float *)to)[x * window->width + window->side] = ((float *)line)[x];
}

/* Computes which of `rows` rows belong to the k-th of `size` shares: [first, end). */
static void share_range(int64_t rows, int64_t size, int64_t k, int64_t *first,
                        int64_t *end)
{
    *first = tess_min_i64(rows, k * share(rows, size));
    *end = tess_min_i64(rows, *first + share(rows, size));
}

/* Sends the rows [first, end), which this rank has made, to the ranks of each node that
 * keep them. Collective. */
static tess_status spread(cpu_window *window, tess_comm *comm, int64_t first,
                          int64_t end, char *to)
{
    tess_status status = TESS_OK;
    const int64_t rows = 2 * window->half_y + 1;
    const int size = tess_comm_size(comm);
    int64_t total = 0;
    char *send = NULL;
    void *recv = NULL;
    int64_t *bytes = tess_alloc_zero(2 * (int64_t)size, sizeof *bytes);
    for (int pass = 0; bytes && pass < 2; ++pass) {
        if (pass == 1) send = tess_alloc(total, 1);
        if (pass == 1 && !send) break;
        total = 0;
        for (int k = 0; k < size; ++k) {
            int64_t begin, stop;
            share_range(rows, window->place[k].size, window->place[k].rank, &begin,
                        &stop);
            begin = tess_max_i64(begin, first);
            stop = tess_max_i64(begin, tess_min_i64(stop, end));
            bytes[k] = (stop - begin) * (int64_t)row_bytes(window);
            if (send && bytes[k] > 0)
                memcpy(send + total,
                       window->to + (size_t)(begin - first) * row_bytes(window),
                       (size_t)bytes[k]);
            total += bytes[k];
        }
    }
    TESS_TRY(tess_comm_agree(comm, bytes && send ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_alltoallv(comm, send, bytes, &recv, bytes + size));
    total = 0;
    for (int k = 0; k < size; ++k)
        total += bytes[size + k];
    memcpy(to, recv, (size_t)total); /* rows of successive ranks follow one another */
cleanup:
    tess_free(bytes);
    tess_free(send);
    tess_free(recv);
    return status;
}

/* Makes this rank's rows of a window at the current scale, unless they were made
 * before. They take a transform for each PSF, and 1/P of a window's memory for each
 * scale while they are kept. Collective. */
static tess_status make_rows(clean_work *work, cpu_window *window, int number,
                             int64_t first, int64_t end)
{
    tess_status status = TESS_OK;
    char **kept = &window->made[window->scale * window->num + number];
    const tess_convolve_part part = {-window->half_x, 2 * window->half_x + 1,
                                     first - window->half_y, end - first};
    char *made = NULL;
    window->to = *kept;
    if (*kept) return TESS_OK;
    made = tess_alloc(end - first, row_bytes(window));
    TESS_TRY(tess_comm_agree(work->setup->comm, made ? TESS_OK : TESS_ERR_ALLOC));
    window->work = work;
    window->to = made;
    for (int side = 0; side < window->width; ++side) {
        window->side = side;
        window->psf = number * window->width + side;
        TESS_TRY(
            tess_convolve_inverse(work->plan, &part, give_column, take_row, window));
    }
    *kept = made;
    made = NULL;
cleanup:
    tess_free(made);
    return status;
}

/* Puts the rows of a window where the node's ranks read them. Collective. */
static tess_status fill_rows(clean_work *work, cpu_window *window, int number)
{
    tess_status status = TESS_OK;
    tess_comm *comm = work->setup->comm;
    const int64_t rows = 2 * window->half_y + 1;
    const int64_t each = share(rows, tess_comm_size(window->node));
    char *own = (char *)tess_window_own(window->shared) +
                (size_t)(number * each) * row_bytes(window);
    int64_t first, end;
    share_range(rows, tess_comm_size(comm), tess_comm_rank(comm), &first, &end);
    TESS_TRY(make_rows(work, window, number, first, end));
    if (window->one_node)
        memcpy(own, window->to, (size_t)(end - first) * row_bytes(window));
    else
        TESS_TRY(spread(window, comm, first, end, own));
    find_rows(window, number);
cleanup:
    return status;
}

tess_status cpu_window_fill(clean_work *work, int scale)
{
    tess_status status = TESS_OK;
    cpu_window *window = work->window;
    int64_t bytes = 0;
    if (window->scale == scale) return TESS_OK;
    /* no rank may still be reading the rows that are overwritten next */
    TESS_TRY(tess_window_meet(window->shared, TESS_OK, 0));
    window->scale = scale;
    clean_window_half(work->setup, scale, &window->half_x, &window->half_y);
    window->stride = stride_of(window->half_x);
    for (int k = 0; k < window->num; ++k) {
        TESS_TRY(fill_rows(work, window, k));
        bytes += (2 * window->half_y + 1) * (int64_t)row_bytes(window);
    }
    TESS_TRY(tess_window_meet(window->shared, TESS_OK, bytes));
cleanup:
    if (status != TESS_OK) window->scale = -1;
    return status;
}
