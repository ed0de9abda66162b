/* Restores an image on the device: two transforms to spectra, their product, and one
 * transform back. Nothing of it stays, because images are restored once. */
#include "cuda_restore.h"

#include "clean_opts.h"
#include "cuda_rows.h"
#include "tess_device.h"
#include "tess_mem.h"

typedef struct restoring {
    clean_setup setup; /* its communicator and links alone */
    clean_work work;   /* of that setup: ranks and sizes alone */
    clean_exponent beam;
    cuda_view model, residual, image;
    void *plane, *kernel, *product;
    tess_device_fft *fft;
} restoring;

static void find_sizes(const tess_rows *rows, const tess_clean_opts *opts,
                       cuda_shape *shape)
{
    tess_convolve_opts padded = clean_transforms_of(rows, opts, 1);
    padded.row_first = 0;
    padded.num_rows = rows->ny; /* one device has them all */
    *shape = (cuda_shape){.nx = rows->nx, .ny = rows->ny, .is_double = opts->is_double};
    tess_convolve_lengths(&padded, &shape->lx, &shape->ly);
    shape->half = shape->lx / 2 + 1;
}

static int64_t spectrum_bytes(const cuda_shape *shape)
{
    return shape->half * shape->ly * (shape->is_double ? 16 : 8);
}

static int64_t plane_bytes(const cuda_shape *shape)
{
    return shape->lx * shape->ly * (shape->is_double ? 8 : 4);
}

/* Whether the device that restores has room for it. Collective. */
static tess_status find_room(const clean_work *work, const tess_rows *image, bool *fits)
{
    const cuda_shape *shape = &work->shape;
    const double pixels = (double)image->nx * (double)image->ny;
    const double bytes =
        2.0 * (double)spectrum_bytes(shape) + (double)plane_bytes(shape) +
        tess_device_fft_bytes(shape->lx, shape->ly, shape->is_double) + 24 * pixels;
    int64_t here = !work->ranks.leads || bytes < (double)tess_device_room();
    const tess_status status =
        tess_comm_allreduce_i64(work->setup->comm, &here, 1, TESS_MIN);
    *fits = here != 0;
    return status;
}

/* Tables of ranks and their rows. Collective. */
static tess_status begin(tess_comm *comm, const tess_rows *image, restoring *job)
{
    tess_status status = TESS_OK;
    clean_work *work = &job->work;
    job->setup.comm = comm;
    work->setup = &job->setup;
    work->ranks.num = tess_comm_size(comm);
    work->ranks.leads = work->ranks.holds = tess_comm_rank(comm) == 0;
    work->ranks.rows_of = tess_alloc_zero(work->ranks.num, sizeof *work->ranks.rows_of);
    TESS_TRY(tess_comm_agree(comm, work->ranks.rows_of ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_allgather(comm, &image->num_rows, sizeof image->num_rows,
                                 work->ranks.rows_of));
cleanup:
    return status;
}

static tess_status take_memory(restoring *job)
{
    tess_status status = TESS_OK;
    const cuda_shape *shape = &job->work.shape;
    const int64_t bytes = spectrum_bytes(shape);
    TESS_TRY(tess_device_fft_create(shape->lx, shape->ly, shape->is_double, &job->fft));
    TESS_TRY(tess_device_alloc(plane_bytes(shape), "restored images", &job->plane));
    TESS_TRY(tess_device_alloc(bytes, "restored images", &job->kernel));
    TESS_TRY(tess_device_alloc(bytes, "restored images", &job->product));
cleanup:
    return status;
}

/* image := model ∗ beam + residual. Local. */
static tess_status convolve(restoring *job)
{
    tess_status status = TESS_OK;
    const cuda_shape *shape = &job->work.shape;
    cuda_factors by = {.scale = 1 / ((double)shape->lx * (double)shape->ly)};
    TESS_TRY(take_memory(job));
    by.psf = job->kernel;
    TESS_TRY(cuda_pad_beam(shape, job->beam.along_x, job->beam.along_y,
                           job->beam.across, job->plane));
    TESS_TRY(tess_device_fft_forward(job->fft, job->plane, job->kernel));
    TESS_TRY(cuda_pad_pixels(shape, &job->model.pixels, job->plane));
    TESS_TRY(tess_device_fft_forward(job->fft, job->plane, job->product));
    TESS_TRY(cuda_multiply(shape, job->product, &by, job->product));
    TESS_TRY(tess_device_fft_back(job->fft, job->product, job->plane));
    TESS_TRY(
        cuda_add_plane(shape, job->plane, &job->residual.pixels, &job->image.pixels));
cleanup:
    return status;
}

static void free_all(restoring *job)
{
    cuda_rows_free(&job->model);
    cuda_rows_free(&job->residual);
    cuda_rows_free(&job->image);
    tess_device_free(job->plane);
    tess_device_free(job->kernel);
    tess_device_free(job->product);
    tess_device_fft_destroy(job->fft);
    tess_free(job->work.ranks.rows_of);
}

tess_status cuda_restore(tess_comm *comm, const tess_clean_opts *opts,
                         const clean_exponent *beam, const tess_rows *model,
                         const tess_rows *residual, const tess_rows *image, bool *done)
{
    tess_status status = TESS_OK;
    restoring job = {.beam = *beam, .setup.opts.method.links = opts->method.links};
    TESS_TRY(begin(comm, image, &job));
    find_sizes(image, opts, &job.work.shape);
    TESS_TRY(find_room(&job.work, image, done));
    if (!*done) goto cleanup;
    TESS_TRY(cuda_rows_gather(&job.work, model, &job.model));
    TESS_TRY(cuda_rows_gather(&job.work, residual, &job.residual));
    TESS_TRY(cuda_rows_gather(&job.work, image, &job.image));
    if (job.work.ranks.leads) status = convolve(&job);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(cuda_rows_scatter(&job.work, &job.image, image));
cleanup:
    free_all(&job);
    return status;
}
