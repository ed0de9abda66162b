/* planes_device.h in host memory; see device_emulated.c. Plain loops, by its contracts
 * alone. */
#include "planes_device.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#include "device_emulated.h"
#include "tess_const.h"
#include "tess_fft.h"
#include "tess_geom.h"
#include "tess_mem.h"

struct plane_fft {
    int64_t length;
    bool is_double;
    tess_fft *way[2];
};

tess_status plane_fft_create(int64_t length, int64_t most_lines, bool is_double,
                             bool repeatable, plane_fft **fft_out)
{
    tess_status status = TESS_OK;
    plane_fft *fft = tess_alloc_zero(1, sizeof *fft);
    (void)most_lines;
    (void)repeatable;
    if (!fft) TESS_FAIL(TESS_ERR_ALLOC, "FFT");
    fft->length = length;
    fft->is_double = is_double;
    for (int k = 0; k < 2; ++k)
        TESS_TRY(tess_fft_create(length, k, is_double, 1, &fft->way[k]));
    *fft_out = fft;
    fft = NULL;
cleanup:
    plane_fft_destroy(fft);
    return status;
}

void plane_fft_destroy(plane_fft *fft)
{
    if (!fft) return;
    for (int k = 0; k < 2; ++k)
        tess_fft_destroy(fft->way[k]);
    tess_free(fft);
}

tess_status plane_fft_execute(plane_fft *fft, void *lines, int64_t count, bool forward)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    const int64_t bytes = fft->length * (fft->is_double ? 16 : 8);
    void *line = tess_alloc(bytes, 1),
         *out = tess_alloc(bytes, 1); /* aligned for FFTW */
    if (!line || !out) TESS_FAIL(TESS_ERR_ALLOC, "FFT");
    for (int64_t k = 0; k < count; ++k) {
        memcpy(line, (char *)lines + k * bytes, (size_t)bytes);
        tess_fft_execute(fft->way[forward], line, out);
        memcpy((char *)lines + k * bytes, out, (size_t)bytes);
    }
cleanup:
    tess_free(line);
    tess_free(out);
    return status;
}

static double complex get(const plane_shape *shape, const void *array, int64_t at)
{
    if (shape->is_double) return ((const double complex *)array)[at];
    const float *value = (const float *)array + 2 * at;
    return CMPLX((double)value[0], (double)value[1]);
}

static void put(const plane_shape *shape, void *array, int64_t at, double complex value)
{
    if (shape->is_double)
        ((double complex *)array)[at] = value;
    else
        ((float complex *)array)[at] = (float complex)value;
}

tess_status plane_add_pieces(const plane_shape *shape, const tess_piece *piece,
                             int64_t num_pieces, const int32_t *slot_of_line,
                             int64_t slot_first, int64_t num_slots, void *lines)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    for (int64_t p = 0; p < num_pieces; ++p)
        for (int32_t a = 0; a < piece[p].num_lines; ++a)
            for (int32_t b = 0; b < piece[p].num_cells; ++b) {
                const int64_t slot = slot_of_line[piece[p].line + a] - slot_first;
                if (slot < 0 || slot >= num_slots) continue;
                const int64_t at = slot * shape->nv + (piece[p].cell + b) % shape->nv;
                put(shape, lines, at,
                    get(shape, lines, at) +
                        get(shape, piece[p].data, a * piece[p].stride + b));
            }
    return TESS_OK;
}

tess_status plane_sum_pieces(const plane_shape *shape, const tess_piece *piece,
                             const plane_line *line, int64_t num_lines, void *lines)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    memset(lines, 0, (size_t)(num_lines * shape->nv * (shape->is_double ? 16 : 8)));
    for (int64_t k = 0; k < num_lines; ++k)
        for (const tess_piece *p = piece + line[k].begin; p < piece + line[k].stop;
             ++p) {
            const int32_t from = line[k].line - p->line;
            if (from < 0 || from >= p->num_lines) continue;
            for (int32_t b = 0; b < p->num_cells; ++b) {
                const int64_t at = k * shape->nv + (p->cell + b) % shape->nv;
                put(shape, lines, at,
                    get(shape, lines, at) + get(shape, p->data, from * p->stride + b));
            }
        }
    return TESS_OK;
}

tess_status plane_take_pieces(const plane_shape *shape, const tess_piece *piece,
                              int64_t num_pieces, const int32_t *slot_of_line,
                              int64_t slot_first, int64_t num_slots, const void *lines)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    for (int64_t p = 0; p < num_pieces; ++p)
        for (int32_t a = 0; a < piece[p].num_lines; ++a)
            for (int32_t b = 0; b < piece[p].num_cells; ++b) {
                const int64_t slot = slot_of_line[piece[p].line + a] - slot_first;
                if (slot < 0 || slot >= num_slots) continue;
                put(shape, piece[p].data, a * piece[p].stride + b,
                    get(shape, lines,
                        slot * shape->nv + (piece[p].cell + b) % shape->nv));
            }
    return TESS_OK;
}

static int64_t cell_of_row(const plane_shape *shape, int64_t row)
{
    return (row - shape->ny / 2 + shape->nv) % shape->nv;
}

tess_status plane_crop(const plane_shape *shape, const void *lines, int64_t num_slots,
                       void *rows, int64_t row_stride, int64_t slot_first)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    for (int64_t row = 0; row < shape->ny; ++row)
        for (int64_t slot = 0; slot < num_slots; ++slot)
            put(shape, rows, row * row_stride + slot_first + slot,
                get(shape, lines, slot * shape->nv + cell_of_row(shape, row)));
    return TESS_OK;
}

tess_status plane_pad(const plane_shape *shape, const void *rows, int64_t row_stride,
                      int64_t slot_first, int64_t num_slots, void *lines)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    memset(lines, 0, (size_t)(num_slots * shape->nv * (shape->is_double ? 16 : 8)));
    for (int64_t row = 0; row < shape->ny; ++row)
        for (int64_t slot = 0; slot < num_slots; ++slot)
            put(shape, lines, slot * shape->nv + cell_of_row(shape, row),
                get(shape, rows, row * row_stride + slot_first + slot));
    return TESS_OK;
}

tess_status plane_spread(const plane_shape *shape, const void *rows, int64_t row_stride,
                         int64_t count, const int32_t *slot_of_line, void *columns)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    for (int64_t k = 0; k < count; ++k)
        for (int64_t line = 0; line < shape->nu; ++line) {
            const int32_t slot = slot_of_line[line];
            put(shape, columns, k * shape->nu + line,
                slot < 0 ? 0 : get(shape, rows, k * row_stride + slot));
        }
    return TESS_OK;
}

tess_status plane_gather(const plane_shape *shape, const void *columns, int64_t count,
                         const int32_t *line_of_slot, int64_t num_slots, void *rows,
                         int64_t row_stride)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    for (int64_t k = 0; k < count; ++k)
        for (int64_t slot = 0; slot < num_slots; ++slot)
            put(shape, rows, k * row_stride + slot,
                get(shape, columns, k * shape->nu + line_of_slot[slot]));
    return TESS_OK;
}

static double complex screen_at(const plane_shape *shape, double w_lambda, int64_t row,
                                int64_t pixel)
{
    const tess_geom geom = {.nx = shape->nx,
                            .ny = shape->ny,
                            .scale_rad = shape->scale_rad,
                            .scale_m_rad = shape->scale_m_rad,
                            .l0 = shape->l0,
                            .m0 = shape->m0};
    const double l = tess_geom_l(&geom, pixel), m = tess_geom_m(&geom, row);
    if (!shape->do_w) return 1;
    return cexp(CMPLX(0, TESS_TWO_PI * w_lambda) *
                (tess_geom_nm1(l * l + m * m) - shape->nm1_center));
}

tess_status plane_accumulate(const plane_shape *shape, double w_lambda,
                             const void *columns, int64_t first_row, int64_t count,
                             void *image)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    for (int64_t k = 0; k < count; ++k)
        for (int64_t i = 0; i < shape->nx; ++i) {
            const int64_t line = (i - shape->nx / 2 + shape->nu) % shape->nu;
            const double value =
                creal(get(shape, columns, k * shape->nu + line) *
                      conj(screen_at(shape, w_lambda, first_row + k, i)));
            if (shape->is_double)
                ((double *)image)[k * shape->nx + i] += value;
            else
                ((float *)image)[k * shape->nx + i] += (float)value;
        }
    return TESS_OK;
}

tess_status plane_unscreen(const plane_shape *shape, double w_lambda, const void *image,
                           int64_t first_row, int64_t count, void *columns)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    memset(columns, 0, (size_t)(count * shape->nu * (shape->is_double ? 16 : 8)));
    for (int64_t k = 0; k < count; ++k)
        for (int64_t i = 0; i < shape->nx; ++i) {
            const int64_t at = k * shape->nx + i;
            const double value = shape->is_double ? ((const double *)image)[at]
                                                  : (double)((const float *)image)[at];
            put(shape, columns,
                k * shape->nu + (i - shape->nx / 2 + shape->nu) % shape->nu,
                value * screen_at(shape, w_lambda, first_row + k, i));
        }
    return TESS_OK;
}

static void move_parts(const plane_shape *shape, const plane_part *part, int64_t count,
                       void *values, bool packing)
{
    for (int64_t p = 0; p < count; ++p) {
        const tess_piece *piece = &part[p].piece;
        int64_t at = part[p].offset;
        for (int32_t a = 0; a < piece->num_lines; ++a)
            for (int32_t b = 0; b < piece->num_cells; ++b, ++at) {
                const int64_t cell = a * piece->stride + b;
                if (packing)
                    put(shape, values, at, get(shape, piece->data, cell));
                else
                    put(shape, piece->data, cell, get(shape, values, at));
            }
    }
}

tess_status plane_pack(const plane_shape *shape, const plane_part *part, int64_t count,
                       void *values)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    move_parts(shape, part, count, values, true);
    return TESS_OK;
}

tess_status plane_unpack(const plane_shape *shape, const plane_part *part,
                         int64_t count, const void *values)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status)) return status;
    move_parts(shape, part, count, (void *)(uintptr_t)values, false);
    return TESS_OK;
}
