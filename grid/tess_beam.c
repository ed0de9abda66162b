/* Fits an elliptical Gaussian, the restoring beam, to the centre of the PSF. */
#include "tess_beam.h"

#include <cminpack.h>
#include <limits.h>
#include <math.h>

#include "tess_const.h"
#include "tess_mem.h"

/* WSClean stops after this many steps, whether the fit has converged or not, and takes
 * the beam that it then has. */
enum { MAX_ITERATIONS = 500 };

/* If WSClean's fit collapses to a line, a narrower start most often does not collapse.
 */
enum { MAX_RESTARTS = 3 };

static const double TOLERANCE = 1e-7; /* of a step, absolute and relative */
static const double MIN_AXIS = 0.5;   /* pixels */

/* FWHM = √(8 ln 2) σ */
static double fwhm_per_sigma(void)
{
    return sqrt(8.0 * log(2.0));
}

int64_t tess_beam_box(double beam, double beams, int64_t limit)
{
    const int64_t least = beams < 10 ? 2 : 10;
    int64_t side = (int64_t)ceil(fmin(beam * beams, (double)limit));
    if (side < least) side = least;
    side += side % 2;
    return side < limit ? side : limit;
}

bool tess_beam_box_is_small(double beam, double beams, int64_t side)
{
    return 0.8 * beam * beams > (double)side;
}

/* The fit determines σx, σy and β of exp(−x²/(2σx²) + β x y/(σx σy) − y²/(2σy²)).
 * Lengths are in units of the box. */
enum { SIGMA_X, SIGMA_Y, BETA, NUM_PARAM };

typedef struct beam_problem {
    const double *psf;      /* first pixel of the quadrant */
    int64_t stride, nx, ny; /* pixels from row to row; size of the quadrant */
    double pixel;           /* of the box */
    double elsewhere;       /* residual of the rest of the box, where the model is 0 */
    double last[NUM_PARAM]; /* parameters after the last step */
    int iterations;
} beam_problem;

/* Computes the residuals of the pixels of the quadrant, then one value that stands for
 * the other three. There, WSClean's offsets are near 2⁶⁴, and its model is 0 or, for a
 * large β, infinite. The norm of the residuals is then not a number, and the next step
 * is shortened by less than after a norm that is merely large. */
static void residuals(const beam_problem *problem, const double *param,
                      double *residual)
{
    const double p = 0.5 / (param[SIGMA_X] * param[SIGMA_X]);
    const double q = param[BETA] / (param[SIGMA_X] * param[SIGMA_Y]);
    const double r = 0.5 / (param[SIGMA_Y] * param[SIGMA_Y]);
    for (int64_t j = 0; j < problem->ny; ++j)
        for (int64_t i = 0; i < problem->nx; ++i) {
            const double x = (double)i * problem->pixel, y = (double)j * problem->pixel;
            const double value = problem->psf[j * problem->stride + i];
            /* a pixel beyond the horizon says nothing */
            residual[j * problem->nx + i] =
                isfinite(value) ? exp(q * x * y - p * x * x - r * y * y) - value : 0;
        }
    residual[problem->ny * problem->nx] = q > p + r ? (double)NAN : problem->elsewhere;
}

/* Computes WSClean's derivatives. The cross term of those by σx and σy should be
 * subtracted. This makes the steps worse, and on elongated beams they often run out.
 * The model is the sum of `residual` and PSF. */
static void slopes(const beam_problem *problem, const double *param,
                   const double *residual, double *slope, int64_t column)
{
    const double sx = param[SIGMA_X], sy = param[SIGMA_Y], beta = param[BETA];
    for (int64_t j = 0; j < problem->ny; ++j)
        for (int64_t i = 0; i < problem->nx; ++i) {
            const double x = (double)i * problem->pixel, y = (double)j * problem->pixel;
            const double value = problem->psf[j * problem->stride + i];
            const int64_t k = j * problem->nx + i;
            const double model = isfinite(value) ? residual[k] + value : 0;
            const double cross = x * y / (sx * sy);
            const double shift = beta * cross;
            slope[k + SIGMA_X * column] = model * (x * x / (sx * sx) + shift) / sx;
            slope[k + SIGMA_Y * column] = model * (y * y / (sy * sy) + shift) / sy;
            slope[k + BETA * column] = model * cross;
        }
    for (int k = 0; k < NUM_PARAM; ++k)
        slope[(k + 1) * column - 1] = 0;
}

/* Asks after each step whether it is time to stop. */
static bool is_finished(beam_problem *problem, const double *param)
{
    bool settled = true;
    for (int k = 0; k < NUM_PARAM; ++k) {
        const double step = fabs(param[k] - problem->last[k]);
        settled = settled && step < TOLERANCE + TOLERANCE * fabs(param[k]);
        problem->last[k] = param[k];
    }
    return (problem->iterations > 0 && settled) ||
           problem->iterations++ == MAX_ITERATIONS;
}

/* The function that lmder() calls. A negative result ends lmder(). */
static int evaluate(void *context, int num_pixels, int num_param, const double *param,
                    double *residual, double *slope, int column, int what)
{
    beam_problem *problem = context;
    (void)num_pixels;
    (void)num_param;
    if (what == 0) return is_finished(problem, param) ? -1 : 0;
    if (what == 1)
        residuals(problem, param, residual);
    else
        slopes(problem, param, residual, slope, column);
    return 0;
}

/* Computes the axes of the ellipse a x² + 2 b x y + c y². x runs to the West, so the
 * position angle, from North through East, is that of (−x, y). Returns false if this is
 * no ellipse, or one that is narrower than a PSF of samples with |u|, |v| < 1/(2
 * pixels) can be. */
static bool to_beam(const double param[NUM_PARAM], double box, tess_beam *beam)
{
    const double a = 1 / (param[SIGMA_X] * param[SIGMA_X]);
    const double b = -param[BETA] / (param[SIGMA_X] * param[SIGMA_Y]);
    const double c = 1 / (param[SIGMA_Y] * param[SIGMA_Y]);
    const double mean = 0.5 * (a + c), spread = hypot(0.5 * (a - c), b);
    const double smallest = mean - spread, largest = mean + spread;
    if (!(smallest > 0) || !isfinite(largest)) return false;
    beam->major = box * fwhm_per_sigma() / sqrt(smallest);
    beam->minor = box * fwhm_per_sigma() / sqrt(largest);
    if (beam->minor < MIN_AXIS) return false;
    /* the direction of the major axis is the eigenvector of the smallest eigenvalue */
    double x = b, y = smallest - a;
    if (fabs(x) + fabs(y) < 1e-12 * mean) {
        x = a <= c ? 1 : 0;
        y = a <= c ? 0 : 1;
    }
    double angle = atan2(-x, y);
    if (angle < 0) angle += TESS_PI;
    if (angle >= TESS_PI) angle -= TESS_PI;
    beam->angle = angle;
    return true;
}

/* Computes the root of the sum of squares of the PSF, within the quadrant or outside of
 * it. */
static double norm(const double *psf, int64_t nx, int64_t ny, bool in_quadrant)
{
    double sum = 0;
    for (int64_t j = 0; j < ny; ++j)
        for (int64_t i = 0; i < nx; ++i) {
            const double value = psf[j * nx + i];
            if ((i >= nx / 2 && j >= ny / 2) == in_quadrant && isfinite(value))
                sum += value * value;
        }
    return sqrt(sum);
}

/* Makes one fit. Returns false if it does not end in a beam. `memory` is for NUM_PARAM
 * + 2 times the residuals. */
static bool fit(beam_problem *problem, double start, double *memory, tess_beam *beam)
{
    /* lmder()'s own tests are off; its scaling and its first step are as MINPACK
     * recommends them */
    enum { NO_TEST = 0, SCALE_ITSELF = 1, FIRST_STEP = 100, REPORT_ALL = 1 };
    enum { MAX_EVALUATIONS = 20 * MAX_ITERATIONS };
    const int64_t count = problem->nx * problem->ny + 1;
    const double box = 1 / problem->pixel, sigma = start / fwhm_per_sigma() / box;
    double param[NUM_PARAM] = {sigma, sigma, 0};
    double scale[NUM_PARAM], rotated[NUM_PARAM], work[3][NUM_PARAM];
    int pivot[NUM_PARAM], num_residuals, num_slopes;
    problem->iterations = 0;
    /* the result only says that evaluate() has ended it, or that rounding has */
    lmder(evaluate, problem, (int)count, NUM_PARAM, param, memory, memory + 2 * count,
          (int)count, NO_TEST, NO_TEST, NO_TEST, MAX_EVALUATIONS, scale, SCALE_ITSELF,
          FIRST_STEP, REPORT_ALL, &num_residuals, &num_slopes, pivot, rotated, work[0],
          work[1], work[2], memory + count);
    return to_beam(param, box, beam);
}

/* Counts the pixels from the peak on in one direction to the first pixel that is less
 * than half of it, or not finite. `*falls` is false if the edge comes before. */
static int64_t lobe(const double *psf, int64_t nx, int64_t ny, int step_x, int step_y,
                    bool *falls)
{
    int64_t i = nx / 2, j = ny / 2, count = 0;
    const double half = 0.5 * psf[j * nx + i];
    *falls = true;
    for (;; ++count) {
        i += step_x;
        j += step_y;
        if (i < 0 || j < 0 || i >= nx || j >= ny) break;
        if (!(psf[j * nx + i] >= half)) return count;
    }
    *falls = false;
    return count;
}

/* Finds the reason why the fit has failed. The end of the fit says little, because it
 * may collapse to a line on a wide lobe. */
static tess_beam_failure diagnose(const double *psf, int64_t nx, int64_t ny)
{
    static const int step[4][2] = {{1, 0}, {0, 1}, {1, 1}, {-1, 1}};
    int64_t least = INT64_MAX;
    for (int k = 0; k < 4; ++k) {
        bool falls;
        const int64_t pixels = lobe(psf, nx, ny, step[k][0], step[k][1], &falls);
        if (!falls) return TESS_BEAM_ENDLESS;
        if (pixels < least) least = pixels;
    }
    return least < 1 ? TESS_BEAM_NARROW : TESS_BEAM_COLLAPSED;
}

tess_status tess_beam_fit(const double *psf, int64_t nx, int64_t ny, double start,
                          tess_beam *beam, tess_beam_failure *failure)
{
    tess_status status = TESS_OK;
    tess_beam_failure why = TESS_BEAM_FEW_PIXELS;
    beam_problem problem = {.psf = psf + ny / 2 * nx + nx / 2,
                            .stride = nx,
                            .nx = nx - nx / 2,
                            .ny = ny - ny / 2,
                            .pixel = 2 / (double)(nx + ny),
                            .elsewhere = norm(psf, nx, ny, false)};
    const int64_t count = problem.nx * problem.ny + 1;
    tess_beam found = {0};
    double *memory = NULL;
    const bool usable = count > NUM_PARAM && count <= INT_MAX / NUM_PARAM;
    if (usable && norm(psf, nx, ny, true) > 0) {
        memory = tess_alloc(count, (NUM_PARAM + 2) * sizeof *memory);
        if (!memory) TESS_FAIL(TESS_ERR_ALLOC, "no memory for the fit of the beam");
        bool success = fit(&problem, start, memory, &found);
        for (int k = 0; !success && k < MAX_RESTARTS; ++k)
            success = fit(&problem, start *= 0.5, memory, &found);
        if (!success) found = (tess_beam){0};
        why = success ? TESS_BEAM_FOUND : diagnose(psf, nx, ny);
    }
    *beam = found;
    *failure = why;
cleanup:
    tess_free(memory);
    return status;
}

/* ---- circular beams ---- */

/* Computes Σ r² of the residuals r = exp(−ρ²/(2σ²)) − psf over the quadrant, and the
 * step of σ by Gauss and Newton, −Σ r r' / Σ r'² with r' = dr/dσ. */
static double circle_cost(const beam_problem *problem, double sigma, double *step)
{
    double cost = 0, slope = 0, square = 0;
    for (int64_t j = 0; j < problem->ny; ++j)
        for (int64_t i = 0; i < problem->nx; ++i) {
            const double value = problem->psf[j * problem->stride + i];
            const double rho2 = (double)(i * i + j * j);
            const double model = exp(-rho2 / (2 * sigma * sigma));
            const double change = model * rho2 / (sigma * sigma * sigma);
            if (!isfinite(value)) continue;
            cost += (model - value) * (model - value);
            slope += (model - value) * change;
            square += change * change;
        }
    *step = square > 0 ? -slope / square : 0;
    return cost;
}

/* Finds the σ of least cost near `sigma`. */
static double fit_circle(const beam_problem *problem, double sigma)
{
    enum { MOST_HALVINGS = 40 };
    double step, next_step;
    double cost = circle_cost(problem, sigma, &step);
    for (int k = 0; k < MAX_ITERATIONS && fabs(step) > TOLERANCE * sigma; ++k) {
        int halvings = 0;
        double next = 0;
        for (; halvings < MOST_HALVINGS; ++halvings, step *= 0.5)
            if (sigma + step > 0 &&
                (next = circle_cost(problem, sigma + step, &next_step)) < cost)
                break;
        if (halvings == MOST_HALVINGS) break;
        sigma += step;
        cost = next;
        step = next_step;
    }
    return sigma;
}

void tess_beam_fit_circle(const double *psf, int64_t nx, int64_t ny, double start,
                          tess_beam *beam, tess_beam_failure *failure)
{
    const beam_problem problem = {.psf = psf + ny / 2 * nx + nx / 2,
                                  .stride = nx,
                                  .nx = nx - nx / 2,
                                  .ny = ny - ny / 2};
    *beam = (tess_beam){0};
    *failure = TESS_BEAM_FEW_PIXELS;
    if (problem.nx * problem.ny < 2 || !(norm(psf, nx, ny, true) > 0)) return;
    const double fwhm =
        fwhm_per_sigma() * fit_circle(&problem, start / fwhm_per_sigma());
    const bool found = fwhm >= MIN_AXIS && fwhm <= (double)(nx + ny);
    if (found) *beam = (tess_beam){fwhm, fwhm, 0};
    *failure = found ? TESS_BEAM_FOUND : diagnose(psf, nx, ny);
}
