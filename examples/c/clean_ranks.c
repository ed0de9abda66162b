/* A CLEAN in major cycles on the ranks of an MPI program. A session keeps the
 * visibilities; each rank holds rows of the residual image and of the model. Rank 0
 * prints the components that were found.
 *
 * usage: mpirun -n 4 clean_ranks OBS SIZE SCALE, for example obs.uvfits 1024 1.5asec */
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tessera/tessera.h>

enum { MAJORS = 5, MINORS = 100 };
static const double GAIN = 0.1, DEEPEST = 0.2; /* of the peak where a cycle begins */

/* An image, shared by rows, and the PSF, which every rank has as a whole. */
typedef struct field {
    int64_t nx, ny, row_first, num_rows;
    double *residual, *model; /* [num_rows][nx] */
    double *psf;              /* [ny][nx] */
} field;

typedef struct peak {
    double value;
    int64_t x, y;
} peak;

/* The largest absolute value of this rank's rows, the first of several. */
static peak own_peak(const field *f)
{
    peak best = {0, -1, -1};
    for (int64_t k = 0; k < f->num_rows * f->nx; ++k)
        if (fabs(f->residual[k]) > fabs(best.value))
            best = (peak){f->residual[k], k % f->nx, f->row_first + k / f->nx};
    return best;
}

/* That of all ranks; all of them choose the same one. */
static peak find_peak(const field *f)
{
    const peak mine = own_peak(f);
    struct {
        double size;
        int rank;
    } best = {fabs(mine.value), 0};
    peak found = mine;
    MPI_Comm_rank(MPI_COMM_WORLD, &best.rank);
    MPI_Allreduce(MPI_IN_PLACE, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    MPI_Bcast(&found, sizeof found, MPI_BYTE, best.rank, MPI_COMM_WORLD);
    return found;
}

/* Move flux from the residual at (x, y) into the model. */
static void subtract(field *f, int64_t x, int64_t y, double flux)
{
    const int64_t dx = f->nx / 2 - x, dy = f->ny / 2 - y;
    for (int64_t j = 0; j < f->num_rows; ++j) {
        const int64_t row = f->row_first + j + dy; /* of the PSF */
        if (row < 0 || row >= f->ny) continue;
        for (int64_t i = 0; i < f->nx; ++i)
            if (i + dx >= 0 && i + dx < f->nx)
                f->residual[j * f->nx + i] -= flux * f->psf[row * f->nx + i + dx];
    }
    if (y >= f->row_first && y < f->row_first + f->num_rows)
        f->model[(y - f->row_first) * f->nx + x] += flux;
}

/* Minor cycles down to a share of the first peak. Returns the components. */
static int minor_cycles(field *f)
{
    const double first = fabs(find_peak(f).value);
    for (int k = 0; k < MINORS; ++k) {
        const peak at = find_peak(f);
        if (fabs(at.value) <= DEEPEST * first) return k;
        subtract(f, at.x, at.y, GAIN * at.value);
    }
    return MINORS;
}

/* Rows of all ranks to their places in an image of all rows, which is 0 before. */
static void join_rows(const field *f, const double *rows, double *all)
{
    for (int64_t k = 0; k < f->num_rows * f->nx; ++k)
        all[f->row_first * f->nx + k] = rows[k];
    MPI_Allreduce(MPI_IN_PLACE, all, (int)(f->nx * f->ny), MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);
}

static tess_status clean(tess_session *session, field *f)
{
    tess_status status = tess_session_image(session, 0, 0, NULL, f->residual, f->model);
    if (status != TESS_OK) return status;
    join_rows(f, f->model, f->psf);
    for (int64_t k = 0; k < f->num_rows * f->nx; ++k)
        f->model[k] = 0;
    for (int k = 0; k < MAJORS && status == TESS_OK; ++k) {
        minor_cycles(f);
        status = tess_session_image(session, 0, 0, f->model, f->residual, NULL);
    }
    return status;
}

/* On rank 0; the others take part. */
static void print_components(const field *f)
{
    int rank;
    double *all = calloc((size_t)(f->nx * f->ny), sizeof *all);
    if (!all) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    join_rows(f, f->model, all);
    for (int64_t k = 0; k < f->nx * f->ny && rank == 0; ++k)
        if (all[k] != 0)
            printf("%.6e Jy at pixel (%" PRId64 ", %" PRId64 ")\n", all[k], k % f->nx,
                   k / f->nx);
    free(all);
}

static tess_status open_session(char **argv, tess_session **session)
{
    tess_status status = tess_session_create_mpi(MPI_Comm_c2f(MPI_COMM_WORLD), session);
    if (status == TESS_OK) status = tess_session_set(*session, "obs", argv[1]);
    if (status == TESS_OK) status = tess_session_set(*session, "size", argv[2]);
    if (status == TESS_OK) status = tess_session_set(*session, "scale", argv[3]);
    if (status == TESS_OK) status = tess_session_set(*session, "reproducible", NULL);
    return status == TESS_OK ? tess_session_open(*session) : status;
}

/* Images of this rank's rows; a rank may have none. */
static void make_field(const tess_session_info *info, field *f)
{
    const size_t count = (size_t)(info->num_rows * info->nx);
    *f = (field){info->nx, info->ny, info->row_first, info->num_rows, NULL, NULL, NULL};
    f->residual = calloc(count + 1, sizeof *f->residual);
    f->model = calloc(count + 1, sizeof *f->model);
    f->psf = calloc((size_t)(info->nx * info->ny), sizeof *f->psf);
    if (!f->residual || !f->model || !f->psf) MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
    int provided;
    tess_session *session = NULL;
    tess_status status = TESS_ERR_USAGE;
    field f = {0};
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    if (argc == 4)
        status = open_session(argv, &session);
    else
        fprintf(stderr, "usage: %s OBS SIZE SCALE\n", argv[0]);
    if (status == TESS_OK) {
        make_field(tess_session_info_of(session), &f);
        status = clean(session, &f);
    }
    if (status == TESS_OK)
        print_components(&f);
    else if (argc == 4 && status != TESS_ERR_PEER)
        fprintf(stderr, "%s\n", tess_last_error());
    tess_session_destroy(session); /* before MPI ends */
    free(f.residual);
    free(f.model);
    free(f.psf);
    MPI_Finalize();
    return status == TESS_OK ? 0 : 1;
}
