/* Visibilities and grid of a call in device memory: as structs or planes of them, the
 * whole grid or the box that is met, in memory that is copied to or that moves. */
#include "study_cuda.cuh"

#include <cstring>

#include "tess_log.h"
#include "tess_mem.h"

namespace
{

enum { THREADS = 256 };

/* A value a thread: number k of [count][pols] to or from [pols][count]. */
template <typename C>
__global__ void turn_kernel(int64_t count, int pols, bool back, const C *from, C *to)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k >= count * pols) return;
    const int64_t other = k % pols * count + k / pols;
    if (back)
        to[k] = from[other];
    else
        to[other] = from[k];
}

tess_status turn(const gcf_cuda_job &job, bool back, const void *from, void *to)
{
    tess_status status = TESS_OK;
    const int64_t values = job.num_vis * job.num_pol;
    const int64_t blocks = (values + THREADS - 1) / THREADS;
    if (job.is_double)
        tess_launch(turn_kernel<double2>, blocks, THREADS, 0, job.num_vis, job.num_pol,
                   back, (const double2 *)from, (double2 *)to);
    else
        tess_launch(turn_kernel<float2>, blocks, THREADS, 0, job.num_vis, job.num_pol,
                   back, (const float2 *)from, (float2 *)to);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

int64_t value_bytes(const gcf_cuda_job &job)
{
    return job.is_double ? 16 : 8;
}

tess_status take(int64_t bytes, const char *what, bool managed, void **memory)
{
    tess_status status = TESS_OK;
    if (managed)
        TESS_CUDA(cudaMallocManaged(memory, (size_t)bytes));
    else
        TESS_TRY(tess_device_alloc(bytes, what, memory));
cleanup:
    return status;
}

/* Copies rows to or from the device. No other code uses the managed memory meanwhile.
 */
tess_status copy_rows(bool up, bool managed, char *there, char *here, int64_t stride,
                      int64_t bytes, int64_t count)
{
    if (!managed)
        return up ? tess_device_upload_rows(there, stride, here, stride, bytes, count)
                  : tess_device_download_rows(here, stride, there, stride, bytes,
                                              count);
    for (int64_t k = 0; k < count; ++k)
        memcpy((up ? there : here) + k * stride, (up ? here : there) + k * stride,
               (size_t)bytes);
    return TESS_OK;
}

} // namespace

bool tess_study_lock(void *memory, int64_t bytes)
{
    if (cudaHostRegister(memory, (size_t)bytes, cudaHostRegisterDefault) == cudaSuccess)
        return true;
    (void)cudaGetLastError();
    return false;
}

void tess_study_unlock(void *memory)
{
    if (cudaHostUnregister(memory) != cudaSuccess) (void)cudaGetLastError();
}

tess_status study_memory_take(const gcf_cuda_job &job, study_memory *memory)
{
    tess_status status = TESS_OK;
    const int64_t value = value_bytes(job) * job.num_pol;
    const int64_t vis = job.num_vis * value, cells = job.pol_stride * value;
    memory->managed = study_probes_of(job)->managed;
    if (memory->managed && vis + cells > tess_device_room() / 2)
        TESS_FAIL(TESS_ERR_RESOURCE,
                  "managed memory: visibilities and grid need %lld MiB, more than half "
                  "of the %lld MiB that are free",
                  (long long)((vis + cells) >> 20),
                  (long long)(tess_device_room() >> 20));
    TESS_TRY(take(vis, "visibilities", memory->managed, &memory->vis));
    TESS_TRY(take(cells, "a grid", memory->managed, &memory->cells));
cleanup:
    return status;
}

void study_memory_free(study_memory *memory)
{
    if (memory->managed) {
        (void)cudaFree(memory->vis);
        (void)cudaFree(memory->cells);
    } else {
        tess_device_free(memory->vis);
        tess_device_free(memory->cells);
    }
}

tess_status study_copy_vis(const gcf_cuda_job &job, bool up, void *here,
                           const study_memory *memory)
{
    tess_status status = TESS_OK;
    const int64_t bytes = job.num_vis * job.num_pol * value_bytes(job);
    void *structs = NULL;
    char *there = (char *)memory->vis;
    if (job.planar) {
        TESS_TRY(tess_device_alloc(bytes, "visibilities", &structs));
        there = (char *)structs;
    }
    if (job.planar && !up) TESS_TRY(turn(job, true, memory->vis, there));
    if (!up) TESS_TRY(tess_device_wait());
    TESS_TRY(copy_rows(up, memory->managed && !job.planar, there, (char *)here, bytes,
                       bytes, 1));
    if (job.planar && up) TESS_TRY(turn(job, false, there, memory->vis));
cleanup:
    tess_device_free(structs);
    return status;
}

tess_status study_copy_cells(const gcf_cuda_job &job, bool up, void *here,
                             const tess_study_box *box, const study_memory *memory)
{
    tess_status status = TESS_OK;
    const int64_t value = value_bytes(job), stride = job.nv * value;
    if (!up) TESS_TRY(tess_device_wait());
    for (int p = 0; p < job.num_pol && box->lines > 0; ++p) {
        const int64_t first = (p * job.pol_stride + box->u * job.nv + box->v) * value;
        TESS_TRY(copy_rows(up, memory->managed, (char *)memory->cells + first,
                           (char *)here + first, stride, box->cells * value,
                           box->lines));
    }
cleanup:
    return status;
}
