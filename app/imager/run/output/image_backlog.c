/* Writes the files of an output while the next output is made. */
#include "image_backlog.h"

#include "tess_mem.h"
#include "tess_omp.h"

/* Images of fewer bytes are written in less time than it takes to wake a thread for it
 * and to wait for that thread. */
static const double LEAST_BYTES = 1 << 19;

tess_status image_backlog_create(int threads, double bytes, image_backlog **backlog)
{
    tess_status status = TESS_OK;
    image_backlog *made = tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "files that are written later");
    made->threads = threads;
    made->has_worker = bytes >= LEAST_BYTES;
    *backlog = made;
cleanup:
    return status;
}

void image_backlog_add(image_backlog *backlog, tess_fits_writing *file)
{
    backlog->file[backlog->num_files++] = file;
}

void image_backlog_keep(image_backlog *backlog, tess_rows *rows)
{
    if (rows->value && !rows->is_borrowed)
        backlog->array[backlog->num_arrays++] = *rows;
    *rows = (tess_rows){0};
}

void image_backlog_keep_products(image_backlog *backlog, imager_product *product,
                                 int count)
{
    for (int k = 0; k < count; ++k) {
        if (backlog && backlog->is_started)
            image_backlog_keep(backlog, &product[k].rows);
        else
            tess_rows_free(&product[k].rows);
    }
}

/* Writes the pixels of all files. Each file has threads of its own: a file system may
 * let one thread at a time write to a file. */
static void put_all(void *argument)
{
    const image_backlog *backlog = argument;
    const int num = backlog->num_files;
    const int at_once = num < backlog->threads ? num : backlog->threads;
    if (num == 0) return;
    const int each = backlog->threads / at_once;
    const int levels = tess_omp_nest(2); /* of files, and of threads of a file */
#pragma omp parallel for num_threads(at_once) schedule(dynamic)
    for (int k = 0; k < num; ++k)
        tess_fits_put(backlog->file[k], each);
    tess_omp_nest(levels);
}

void image_backlog_start(image_backlog *backlog, tess_held_files *held)
{
    backlog->held = *held;
    *held = (tess_held_files){.overwrite = held->overwrite, .threads = held->threads};
    backlog->is_started = true;
    if (!backlog->worker && backlog->has_worker) backlog->worker = tess_worker_create();
    if (backlog->worker) tess_worker_start(backlog->worker, put_all, backlog);
}

tess_status image_backlog_finish(tess_comm *comm, image_backlog *backlog)
{
    tess_status status = TESS_OK;
    if (!backlog || !backlog->is_started) return TESS_OK;
    if (backlog->worker)
        tess_worker_wait(backlog->worker);
    else
        put_all(backlog);
    for (int k = 0; k < backlog->num_files; ++k)
        TESS_TRY(tess_fits_end(comm, backlog->file[k], &backlog->held));
    TESS_TRY(tess_held_publish(comm, &backlog->held));
cleanup:
    image_backlog_drop(tess_comm_rank(comm) == 0, backlog);
    return status;
}

void image_backlog_drop(bool root, image_backlog *backlog)
{
    if (backlog->worker) tess_worker_wait(backlog->worker);
    for (int k = 0; k < backlog->num_files; ++k)
        tess_fits_leave(root, backlog->file[k]);
    for (int k = 0; k < backlog->num_arrays; ++k)
        tess_rows_free(&backlog->array[k]);
    tess_held_free(&backlog->held);
    backlog->num_files = backlog->num_arrays = 0;
    backlog->is_started = false;
}

void image_backlog_destroy(bool root, image_backlog *backlog)
{
    if (!backlog) return;
    image_backlog_drop(root, backlog);
    tess_worker_destroy(backlog->worker);
    tess_free(backlog);
}
