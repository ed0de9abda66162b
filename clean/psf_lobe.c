/* Fits a Gaussian to the main lobe of a PSF, as CASA's tclean has its beam: by least
 * squares to the pixels around the centre that are above a share of it. The pixels of
 * the lobe, some dozens, go to all ranks, which do the same. */
#include <math.h>
#include <string.h>

#include "clean_small.h"
#include "mask_regions.h"
#include "tess_mem.h"
#include "tess_multithresh.h"

/* The share of the centre's value, psfcutoff of tclean. */
static const double CUT = 0.35;

enum { STEPS = 20, LEAST_PIXELS = 5, TERMS = 3 };

typedef struct lobe_pixel {
    double x, y, value; /* from the centre; over the centre's value */
} lobe_pixel;

/* This rank's rows and pixels of the lobe. */
typedef struct lobe {
    tess_rows psf; /* a view */
    double centre;
    uint8_t *mask, *within;
    lobe_pixel *pixel;
    int64_t num, capacity;
} lobe;

static void mark(const lobe *l)
{
    const tess_rows *psf = &l->psf;
    const int64_t row = psf->ny / 2 - psf->row_first;
    for (int64_t k = 0; k < tess_rows_count(psf); ++k)
        l->within[k] = tess_rows_pixel(psf, k) >= CUT * l->centre;
    if (row >= 0 && row < psf->num_rows) l->mask[row * psf->nx + psf->nx / 2] = 1;
}

static tess_status list_pixels(lobe *l)
{
    tess_status status = TESS_OK;
    const tess_rows *psf = &l->psf;
    for (int64_t k = 0; k < tess_rows_count(psf); ++k) {
        void *array = l->pixel;
        if (!l->mask[k]) continue;
        if (tess_grow(&array, &l->capacity, l->num + 1, sizeof *l->pixel))
            TESS_FAIL(TESS_ERR_ALLOC, "main lobe of a PSF");
        l->pixel = array;
        l->pixel[l->num++] =
            (lobe_pixel){(double)(k % psf->nx - psf->nx / 2),
                         (double)(psf->row_first + k / psf->nx - psf->ny / 2),
                         tess_rows_pixel(psf, k) / l->centre};
    }
cleanup:
    return status;
}

/* Finds this rank's pixels of the lobe. Collective. */
static tess_status find_lobe(tess_comm *comm, lobe *l)
{
    tess_status status = TESS_OK;
    const tess_rows *psf = &l->psf;
    const int64_t count = tess_rows_count(psf);
    const int64_t row = psf->ny / 2 - psf->row_first;
    l->centre = -INFINITY;
    if (row >= 0 && row < psf->num_rows)
        l->centre = tess_rows_pixel(psf, row * psf->nx + psf->nx / 2);
    TESS_TRY(tess_comm_allreduce_f64(comm, &l->centre, 1, TESS_MAX));
    l->mask = tess_alloc_zero(count, 1);
    l->within = tess_alloc_zero(count, 1);
    TESS_TRY(tess_comm_agree(comm, l->mask && l->within ? TESS_OK : TESS_ERR_ALLOC));
    mark(l);
    const mask_rows rows = {psf->nx, psf->num_rows, l->mask};
    TESS_TRY(mask_grow(comm, &rows, l->within, psf->nx * psf->ny));
    TESS_TRY(tess_comm_agree(comm, list_pixels(l)));
cleanup:
    return status;
}

/* A step of Gauss and Newton for value = exp(−(e0 x² + e1 y² + e2 x y)), or, to begin
 * with, of the logarithms, weighted by the squared values. False: there is no solution.
 */
static bool step(const lobe_pixel *pixel, int64_t num, bool is_first, double e[TERMS])
{
    double matrix[TESS_CLEAN_MOST_TERMS][TESS_CLEAN_MOST_TERMS] = {{0}};
    double change[TERMS] = {0};
    for (int64_t k = 0; k < num; ++k) {
        const lobe_pixel *p = &pixel[k];
        const double term[TERMS] = {p->x * p->x, p->y * p->y, p->x * p->y};
        const double model = exp(-(e[0] * term[0] + e[1] * term[1] + e[2] * term[2]));
        const double slope = is_first ? p->value : -model;
        const double rest = is_first ? -p->value * log(p->value) : p->value - model;
        for (int i = 0; i < TERMS; ++i) {
            change[i] += slope * term[i] * rest;
            for (int j = 0; j < TERMS; ++j)
                matrix[i][j] += slope * term[i] * slope * term[j];
        }
    }
    if (!(matrix[2][2] > 0)) matrix[2][2] = 1; /* no pixel tells of a turn */
    if (!clean_solve(matrix, change, TERMS)) return false;
    for (int i = 0; i < TERMS; ++i)
        e[i] = (is_first ? 0 : e[i]) + change[i];
    return isfinite(e[0] + e[1] + e[2]);
}

/* The beam of such an exponent; x grows to the West. False: it is no ellipse. */
static bool beam_of(const double e[TERMS], tess_clean_beam *beam)
{
    const double middle = 0.5 * (e[0] + e[1]);
    const double apart = hypot(0.5 * (e[0] - e[1]), 0.5 * e[2]);
    const double slow = middle - apart, fast = middle + apart;
    if (!(slow > 0) || !isfinite(fast)) return false;
    beam->major_px = 2 * sqrt(log(2) / slow);
    beam->minor_px = 2 * sqrt(log(2) / fast);
    /* the minor axis is so far from x, which grows to the West, towards y, and the
     * major one as far from North through East */
    beam->angle_rad = 0.5 * atan2(e[2], e[0] - e[1]);
    return true;
}

static bool fit(const lobe_pixel *pixel, int64_t num, tess_clean_beam *beam)
{
    double e[TERMS] = {0};
    if (num < LEAST_PIXELS) return false;
    for (int k = 0; k <= STEPS; ++k)
        if (!step(pixel, num, k == 0, e)) return false;
    return beam_of(e, beam);
}

tess_status tess_psf_lobe(tess_comm *comm, const tess_rows *psf, tess_clean_beam *beam)
{
    tess_status status = TESS_OK;
    lobe l = {.num = 0};
    void *all = NULL;
    int64_t total = 0, *bytes = tess_alloc_zero(tess_comm_size(comm), sizeof *bytes);
    tess_clean_beam found;
    status = bytes ? tess_rows_view(psf, &l.psf) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(find_lobe(comm, &l));
    TESS_TRY(tess_comm_allgatherv(comm, l.pixel, l.num * (int64_t)sizeof *l.pixel, &all,
                                  bytes));
    for (int r = 0; r < tess_comm_size(comm); ++r)
        total += bytes[r] / (int64_t)sizeof *l.pixel;
    if (fit(all, total, &found)) *beam = found;
cleanup:
    tess_rows_free(&l.psf);
    tess_free(l.mask);
    tess_free(l.within);
    tess_free(l.pixel);
    tess_free(all);
    tess_free(bytes);
    return status;
}
