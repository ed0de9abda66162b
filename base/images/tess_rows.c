/* Rows of images in host memory or on a device. Pixels are converted, mixed and summed
 * where they lie; all else is computed on the host. */
#include "tess_rows.h"

#include <math.h>
#include <string.h>

#include "tess_mem.h"

tess_rows tess_rows_borrow(const tess_rows *like, const void *value)
{
    tess_rows rows = tess_rows_like(like, like->type);
    rows.is_borrowed = true;
    /* pixels of rows are not const, and rows of const ones are only read */
    memcpy(&rows.value, &value, sizeof value);
    return rows;
}

tess_status tess_rows_check_whole(const tess_rows *rows, const char *what)
{
    tess_status status = TESS_OK;
    if (!tess_rows_are_whole(rows))
        TESS_FAIL(TESS_ERR_INTERNAL,
                  "%s: columns %lld to %lld are a part of the image's %lld", what,
                  (long long)rows->col_first,
                  (long long)(rows->col_first + rows->num_cols) - 1,
                  (long long)rows->nx);
cleanup:
    return status;
}

/* ---- memory ---- */

static tess_status allocate(tess_rows *rows, bool zero)
{
    tess_status status = TESS_OK;
    const int64_t bytes = tess_rows_bytes(rows);
    void *made = NULL;
    if (!rows->place) {
        const size_t size = (size_t)tess_pixel_bytes(rows->type);
        made = zero ? tess_alloc_zero(tess_rows_count(rows), size)
                    : tess_alloc(tess_rows_count(rows), size);
        if (!made) TESS_FAIL(TESS_ERR_ALLOC, "no memory for rows of an image");
    } else {
        TESS_TRY(rows->place->alloc(bytes > 0 ? bytes : 1, "rows of an image", &made));
        if (zero && bytes > 0) TESS_TRY(rows->place->zero(made, bytes));
    }
    rows->value = made;
    rows->is_borrowed = false;
    made = NULL;
cleanup:
    if (made) rows->place->free(made);
    return status;
}

tess_status tess_rows_alloc(tess_rows *rows)
{
    return allocate(rows, false);
}

tess_status tess_rows_alloc_zero(tess_rows *rows)
{
    return allocate(rows, true);
}

void tess_rows_free(tess_rows *rows)
{
    if (!rows->is_borrowed && rows->value) {
        if (rows->place)
            rows->place->free(rows->value);
        else
            tess_free(rows->value);
    }
    *rows = (tess_rows){0};
}

/* Rows of their own, in this place, with the pixels of a view. */
static tess_status copy_of_view(const tess_rows *view, const tess_place *place,
                                tess_rows *to)
{
    tess_status status = TESS_OK;
    const int64_t bytes = tess_rows_bytes(view);
    tess_rows made = tess_rows_like(view, view->type);
    made.place = place;
    TESS_TRY(tess_rows_alloc(&made));
    if (bytes > 0 && place) TESS_TRY(place->upload(made.value, view->value, bytes));
    if (bytes > 0 && !place) memcpy(made.value, view->value, (size_t)bytes);
    *to = made;
    made = (tess_rows){0};
cleanup:
    tess_rows_free(&made);
    return status;
}

tess_status tess_rows_copy(const tess_rows *from, tess_rows *to)
{
    tess_status status = TESS_OK;
    const int64_t row = from->num_cols * tess_pixel_bytes(from->type);
    tess_rows made = tess_rows_like(from, from->type);
    if (!from->place) return copy_of_view(from, NULL, to);
    made.place = from->place;
    TESS_TRY(tess_rows_alloc(&made));
    if (tess_rows_count(from) > 0)
        TESS_TRY(from->place->copy_rows(made.value, row, from->value, row, row,
                                        from->num_rows));
    *to = made;
    made = (tess_rows){0};
cleanup:
    tess_rows_free(&made);
    return status;
}

tess_status tess_rows_move(tess_rows *rows, const tess_place *place)
{
    tess_status status = TESS_OK;
    tess_rows view = {0}, made = {0};
    if (rows->place == place) return TESS_OK;
    TESS_TRY(tess_rows_view(rows, &view));
    if (place) {
        TESS_TRY(copy_of_view(&view, place, &made));
    } else {
        made = view; /* a copy already, because the rows are on a device */
        view = (tess_rows){0};
    }
    tess_rows_free(rows);
    *rows = made;
cleanup:
    tess_rows_free(&view);
    return status;
}

/* ---- views ---- */

tess_status tess_rows_view_some(const tess_rows *rows, int64_t first, int64_t count,
                                tess_rows *view)
{
    tess_status status = TESS_OK;
    tess_rows made = tess_rows_like(rows, rows->type);
    const int64_t skipped = first * rows->num_cols;
    made.row_first += first;
    made.num_rows = count;
    if (!rows->place) {
        made.is_borrowed = true;
        made.value = count > 0 ? tess_rows_at(rows, skipped) : rows->value;
    } else {
        const int64_t bytes = tess_rows_bytes(&made);
        TESS_TRY(tess_rows_alloc(&made));
        if (bytes > 0)
            TESS_TRY(
                rows->place->download(made.value, tess_rows_at(rows, skipped), bytes));
    }
    *view = made;
    made = (tess_rows){0};
cleanup:
    tess_rows_free(&made);
    return status;
}

tess_status tess_rows_view(const tess_rows *rows, tess_rows *view)
{
    return tess_rows_view_some(rows, 0, rows->num_rows, view);
}

tess_status tess_rows_edit(const tess_rows *rows, bool keeps, tess_rows *view)
{
    tess_status status = TESS_OK;
    tess_rows made = tess_rows_like(rows, rows->type);
    if (keeps || !rows->place) return tess_rows_view(rows, view);
    TESS_TRY(tess_rows_alloc(&made));
    *view = made;
cleanup:
    return status;
}

tess_status tess_rows_put_back(const tess_rows *rows, tess_rows *view)
{
    tess_status status = TESS_OK;
    const int64_t bytes = tess_rows_bytes(rows);
    if (rows->place && view->value && bytes > 0)
        TESS_TRY(rows->place->upload(rows->value, view->value, bytes));
cleanup:
    tess_rows_free(view);
    return status;
}

/* ---- pixels ---- */

/* Loops for each pair of types, since a choice at every pixel keeps loops from vectors.
 */
#define LINES(FROM, TO, NAME)                                                          \
    static void convert_##NAME(const void *from, int64_t count, void *to)              \
    {                                                                                  \
        const FROM *restrict in = from;                                                \
        TO *restrict out = to;                                                         \
        for (int64_t k = 0; k < count; ++k)                                            \
            out[k] = (TO)in[k];                                                        \
    }                                                                                  \
    static void add_##NAME(const void *from, double weight, int64_t count, void *to)   \
    {                                                                                  \
        const FROM *restrict in = from;                                                \
        TO *restrict out = to;                                                         \
        for (int64_t k = 0; k < count; ++k)                                            \
            out[k] = (TO)((double)out[k] + weight * (double)in[k]);                    \
    }
LINES(float, float, single_single)
LINES(float, double, single_double)
LINES(double, float, double_single)
LINES(double, double, double_double)
LINES(uint8_t, float, mask_single)
LINES(uint8_t, double, mask_double)

typedef void (*line_converter)(const void *from, int64_t count, void *to);
typedef void (*line_adder)(const void *from, double weight, int64_t count, void *to);

/* By the types of the pixels from which, and to which. */
static const line_converter convert_line[TESS_PIXEL_TYPES][2] = {
    {convert_single_single, convert_single_double},
    {convert_double_single, convert_double_double},
    {convert_mask_single, convert_mask_double}};
static const line_adder add_line[TESS_PIXEL_TYPES][2] = {
    {add_single_single, add_single_double},
    {add_double_single, add_double_double},
    {add_mask_single, add_mask_double}};

void tess_rows_doubles(const tess_rows *rows, int64_t first, int64_t count, double *out)
{
    convert_line[rows->type][TESS_PIXEL_DOUBLE](tess_rows_at(rows, first), count, out);
}

tess_pixels tess_rows_pixels(const tess_rows *rows)
{
    return (tess_pixels){rows->value, rows->type, rows->num_rows, rows->num_cols,
                         rows->num_cols};
}

/* A device converts pixels before they are copied, which may halve what is copied. */
static tess_status view_converted(const tess_rows *rows, tess_pixel type,
                                  tess_rows *view)
{
    tess_status status = TESS_OK;
    const tess_mixture as_they_are = {.weight = 1};
    tess_rows made = tess_rows_like(rows, type);
    made.place = rows->place;
    TESS_TRY(tess_rows_alloc(&made));
    const tess_pixels from = tess_rows_pixels(rows), to = tess_rows_pixels(&made);
    TESS_TRY(rows->place->mix(&as_they_are, &from, &to));
    TESS_TRY(tess_rows_view(&made, view));
cleanup:
    tess_rows_free(&made);
    return status;
}

tess_status tess_rows_view_as(const tess_rows *rows, tess_pixel type, int threads,
                              tess_rows *view)
{
    tess_status status = TESS_OK;
    tess_rows here = {0}, made = tess_rows_like(rows, type);
    const int64_t columns = rows->num_cols;
    if (rows->type == type) return tess_rows_view(rows, view);
    if (type == TESS_PIXEL_MASK)
        TESS_FAIL(TESS_ERR_INTERNAL, "pixels are not those of a mask");
    if (rows->place) return view_converted(rows, type, view);
    TESS_TRY(tess_rows_view(rows, &here));
    TESS_TRY(tess_rows_alloc(&made));
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t j = 0; j < rows->num_rows; ++j)
        convert_line[rows->type][type](tess_rows_at(&here, j * columns), columns,
                                       tess_rows_at(&made, j * columns));
    *view = made;
cleanup:
    tess_rows_free(&here);
    return status;
}

/* ---- arithmetic ---- */

tess_status tess_rows_blank(const tess_rows *rows)
{
    tess_status status = TESS_OK;
    const int64_t pixels = tess_rows_count(rows);
    const tess_mixture blank = {.constant =
                                    rows->type == TESS_PIXEL_MASK ? 0 : (double)NAN};
    const tess_pixels there = tess_rows_pixels(rows);
    tess_rows view;
    if (rows->place) return rows->place->mix(&blank, NULL, &there);
    TESS_TRY(tess_rows_view(rows, &view));
    for (int64_t k = 0; k < pixels; ++k)
        if (view.type == TESS_PIXEL_DOUBLE)
            ((double *)view.value)[k] = (double)NAN;
        else if (view.type == TESS_PIXEL_SINGLE)
            ((float *)view.value)[k] = NAN;
        else
            ((uint8_t *)view.value)[k] = 0;
    tess_rows_free(&view);
cleanup:
    return status;
}

tess_status tess_rows_scale(const tess_rows *rows, double factor, int threads)
{
    tess_status status = TESS_OK;
    const int64_t pixels = tess_rows_count(rows);
    const tess_mixture scale = {.own = factor};
    const tess_pixels there = tess_rows_pixels(rows);
    tess_rows view;
    if (rows->place) return rows->place->mix(&scale, NULL, &there);
    TESS_TRY(tess_rows_view(rows, &view));
    double *const full = view.type == TESS_PIXEL_DOUBLE ? view.value : NULL;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t k = 0; k < pixels; ++k)
        if (full)
            full[k] *= factor;
        else
            tess_rows_set(&view, k, factor * tess_rows_pixel(&view, k));
    tess_rows_free(&view);
cleanup:
    return status;
}

/* The range [*first, *end) that two ranges have in common. */
static void common(const int64_t a[2], const int64_t b[2], int64_t *first, int64_t *end)
{
    *first = a[0] > b[0] ? a[0] : b[0];
    *end = a[0] + a[1] < b[0] + b[1] ? a[0] + a[1] : b[0] + b[1];
    if (*end < *first) *end = *first;
}

/* Place of a pixel of the image among those of the rows. */
static int64_t place_of(const tess_rows *rows, int64_t row, int64_t column)
{
    return (row - rows->row_first) * rows->num_cols + column - rows->col_first;
}

/* The pixels that two rows have in common. */
typedef struct overlap {
    int64_t row, row_end, column, column_end;
} overlap;

static overlap overlap_of(const tess_rows *a, const tess_rows *b)
{
    overlap both;
    common((int64_t[]){a->row_first, a->num_rows},
           (int64_t[]){b->row_first, b->num_rows}, &both.row, &both.row_end);
    common((int64_t[]){a->col_first, a->num_cols},
           (int64_t[]){b->col_first, b->num_cols}, &both.column, &both.column_end);
    return both;
}

static void add_view(const tess_rows *from, double weight, int threads,
                     const tess_rows *to)
{
    const line_adder add = add_line[from->type][to->type];
    const overlap both = overlap_of(from, to);
    if (both.column == both.column_end) return;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t j = both.row; j < both.row_end; ++j)
        add(tess_rows_at(from, place_of(from, j, both.column)), weight,
            both.column_end - both.column,
            tess_rows_at(to, place_of(to, j, both.column)));
}

/* Rows on a device get what they have in common with others, in that device's memory
 * or in the host's. */
static tess_status add_there(const tess_rows *from, double weight, const tess_rows *to)
{
    tess_status status = TESS_OK;
    const overlap both = overlap_of(from, to);
    const tess_mixture sum = {.own = 1, .weight = weight};
    tess_rows copy = {0};
    const tess_rows *other = from;
    if (both.row == both.row_end || both.column == both.column_end) return TESS_OK;
    if (from->place != to->place) {
        TESS_TRY(tess_rows_view(from, &copy));
        TESS_TRY(tess_rows_move(&copy, to->place));
        other = &copy;
    }
    tess_pixels in = tess_rows_pixels(other), out = tess_rows_pixels(to);
    in.value = tess_rows_at(other, place_of(other, both.row, both.column));
    out.value = tess_rows_at(to, place_of(to, both.row, both.column));
    in.num_rows = out.num_rows = both.row_end - both.row;
    in.num_cols = out.num_cols = both.column_end - both.column;
    TESS_TRY(to->place->mix(&sum, &in, &out));
cleanup:
    tess_rows_free(&copy);
    return status;
}

tess_status tess_rows_add(const tess_rows *from, double weight, int threads,
                          const tess_rows *to)
{
    tess_status status = TESS_OK;
    tess_rows here = {0};
    if (from->nx != to->nx || from->ny != to->ny)
        TESS_FAIL(TESS_ERR_INTERNAL,
                  "rows of an image of %lld × %lld pixels are added to one of %lld × "
                  "%lld",
                  (long long)from->nx, (long long)from->ny, (long long)to->nx,
                  (long long)to->ny);
    if (to->type == TESS_PIXEL_MASK)
        TESS_FAIL(TESS_ERR_INTERNAL, "rows are added to a mask");
    if (to->place) return add_there(from, weight, to);
    TESS_TRY(tess_rows_view(from, &here));
    add_view(&here, weight, threads, to);
cleanup:
    tess_rows_free(&here);
    return status;
}

tess_status tess_rows_sum(const tess_rows *rows, tess_pixel_sums *sums)
{
    const tess_pixels there = tess_rows_pixels(rows);
    if (rows->place) return rows->place->sum(&there, sums);
    *sums = (tess_pixel_sums){0, 0};
    for (int64_t k = 0; k < tess_rows_count(rows); ++k) {
        const double value = tess_rows_pixel(rows, k);
        sums->sum += value;
        if (isfinite(value)) sums->largest = fmax(sums->largest, fabs(value));
    }
    return TESS_OK;
}
