/* The pass of a plane's transform along u, with the w-screen, on the cpu backend. */
#include <string.h>

#include "planes_cpu.h"
#include "tess_mem.h"
#include "tess_omp.h"

/* A group of columns is prefetched from the line that is this many lines ahead, because
 * each line lies far from the one before. */
enum { LINES_AHEAD = 12 };

typedef struct column_work {
    char *lines;         /* threads × (group + 1) × line_length values */
    char *screens;       /* threads × group × screen bytes */
    int64_t line_length; /* nu, padded to keep lines aligned */
    int64_t group;
    int64_t screen; /* bytes of a screen */
} column_work;

static tess_status column_work_create(tess_planes *planes, column_work *work)
{
    tess_status status = TESS_OK;
    /* If the length were a multiple of a page, the lines of a group would fall into the
     * same sets of a cache. */
    work->line_length = (planes->opts.nu + 7) / 8 * 8 + 8;
    work->group = PLANES_CPU_GROUP / planes->value_bytes;
    work->screen =
        screen_bytes(planes->opts.nx, planes->opts.l0, planes->opts.is_double);
    const int64_t lines = planes->opts.threads * (work->group + 1);
    work->lines = planes_cpu_work(planes, WORK_COLUMNS,
                                  lines * work->line_length * planes->value_bytes);
    work->screens = planes_cpu_work(planes, WORK_SCREENS,
                                    planes->opts.threads * work->group * work->screen);
    if (!work->lines || !work->screens) TESS_FAIL(TESS_ERR_ALLOC, "column buffers");
cleanup:
    return status;
}

/* The part of the lines, and of the screens, that is the calling thread's. */
static char *thread_lines(const tess_planes *planes, const column_work *work)
{
    const int64_t values = (work->group + 1) * work->line_length;
    return work->lines + tess_omp_thread() * values * planes->value_bytes;
}

static char *thread_screens(const column_work *work)
{
    return work->screens + tess_omp_thread() * work->group * work->screen;
}

/* Prefetches the group of columns that begins at `first` from a line that is some lines
 * ahead. */
static inline void fetch_ahead(const line_set *set, const slab_lines *slab,
                               int64_t line, int64_t first, int64_t bytes, int write)
{
    if (line + LINES_AHEAD >= slab->num_lines) return;
    const char *ahead =
        slab->data + ((line + LINES_AHEAD) * set->stride + first) * bytes;
    for (int64_t b = 0; b < PLANES_CPU_GROUP; b += 63) {
        if (write)
            __builtin_prefetch(ahead + b, 1);
        else
            __builtin_prefetch(ahead + b);
    }
}

/* Copies the columns [first, first + count) of the lines into contiguous buffers. Both
 * precisions use this source, which moves values as pairs of 4- or 8-byte words. */
static void gather_columns(const tess_planes *planes, const line_set *set,
                           int64_t first, int64_t count, char *lines,
                           int64_t line_length)
{
    const int64_t bytes = planes->value_bytes;
    const int32_t *number = set->line;
    for (int64_t g = 0; g < count; ++g)
        memset(lines + g * line_length * bytes, 0, (size_t)(planes->opts.nu * bytes));
    for (const slab_lines *slab = set->slab; slab < set->slab + set->num_slabs; ++slab)
        for (int64_t k = 0; k < slab->num_lines; ++k) {
            const char *from = slab->data + (k * set->stride + first) * bytes;
            char *to = lines + (*number++ - set->line_first) * bytes;
            fetch_ahead(set, slab, k, first, bytes, false);
            if (bytes == 8)
                for (int64_t g = 0; g < count; ++g)
                    memcpy(to + g * line_length * 8, from + g * 8, 8);
            else
                for (int64_t g = 0; g < count; ++g)
                    memcpy(to + g * line_length * 16, from + g * 16, 16);
        }
}

static void scatter_columns(const tess_planes *planes, const line_set *set,
                            int64_t first, int64_t count, const char *lines,
                            int64_t line_length)
{
    const int64_t bytes = planes->value_bytes;
    const int32_t *number = set->line;
    for (const slab_lines *slab = set->slab; slab < set->slab + set->num_slabs; ++slab)
        for (int64_t k = 0; k < slab->num_lines; ++k) {
            char *to = slab->data + (k * set->stride + first) * bytes;
            const char *from = lines + (*number++ - set->line_first) * bytes;
            fetch_ahead(set, slab, k, first, bytes, true);
            if (bytes == 8)
                for (int64_t g = 0; g < count; ++g)
                    memcpy(to + g * 8, from + g * line_length * 8, 8);
            else
                for (int64_t g = 0; g < count; ++g)
                    memcpy(to + g * 16, from + g * line_length * 16, 16);
        }
}

static screen_row screen_row_of(const tess_planes *planes, int64_t row, double w_lambda)
{
    const tess_planes_opts *opts = &planes->opts;
    const double scale_m = opts->scale_m_rad > 0 ? opts->scale_m_rad : opts->scale_rad;
    const double m = opts->m0 + (double)(row - opts->ny / 2) * scale_m;
    return (screen_row){.nx = planes->opts.nx,
                        .nu = planes->opts.nu,
                        .scale_rad = planes->opts.scale_rad,
                        .l0 = planes->opts.l0,
                        .m2 = m * m,
                        .nm1_center = planes->opts.nm1_center,
                        .w_lambda = w_lambda,
                        .do_w = planes->opts.do_w};
}

/* Makes the screens of a group of rows. */
static void make_screens(const tess_planes *planes, const column_work *work,
                         const row_group *rows, double w_lambda)
{
    char *screens = thread_screens(work);
    for (int64_t g = 0; planes->opts.do_w && g < rows->count; ++g) {
        const screen_row row =
            screen_row_of(planes, planes->row_first + rows->first + g, w_lambda);
        planes->cpu->screen->make[planes->opts.is_double](&row,
                                                          screens + g * work->screen);
    }
}

/* Transforms the rows of a group, or their mirror rows, into the image or out of it.
 * Screens are in the order of the rows, which is the reverse order of the mirror rows.
 * The line behind the lines of the group holds the image's side of the transform. */
static void transform_group(tess_planes *planes, const line_set *set,
                            const tess_plane_job *job, const column_work *work,
                            const row_group *rows, bool mirrored)
{
    const int precision = planes->opts.is_double;
    const int64_t bytes = planes->value_bytes;
    const int64_t first = mirrored ? rows->mirror : rows->first, count = rows->count;
    char *lines = thread_lines(planes, work);
    const char *screens = thread_screens(work);
    char *image_line = lines + work->group * work->line_length * bytes;
    if (planes->opts.forward)
        gather_columns(planes, set, first, count, lines, work->line_length);
    for (int64_t g = 0; g < count; ++g) {
        const screen_row row =
            screen_row_of(planes, planes->row_first + first + g, job->w_lambda);
        const char *screen = screens + (mirrored ? count - 1 - g : g) * work->screen;
        char *line = lines + g * work->line_length * bytes;
        char *image = (char *)planes->cpu->image[job->image] +
                      (first + g) * planes->opts.nx * bytes / 2;
        if (planes->opts.forward) {
            tess_fft_execute(planes->cpu->fft_u, line, image_line);
            planes->cpu->screen->accumulate[precision](&row, image_line, screen, image);
        } else {
            planes->cpu->screen->spread[precision](&row, image, screen, image_line);
            tess_fft_execute(planes->cpu->fft_u, image_line, line);
        }
    }
    if (!planes->opts.forward)
        scatter_columns(planes, set, first, count, lines, work->line_length);
}

/* Transforms the columns of one plane. */
static void plane_columns(tess_planes *planes, const line_set *set,
                          const tess_plane_job *job, const column_work *work)
{
#pragma omp parallel for num_threads(planes->opts.threads) schedule(dynamic, 1)
    for (int64_t k = 0; k < planes->cpu->num_row_groups; ++k) {
        const row_group *rows = &planes->cpu->group_of_rows[k];
        make_screens(planes, work, rows, job->w_lambda);
        transform_group(planes, set, job, work, rows, false);
        if (rows->mirror >= 0) transform_group(planes, set, job, work, rows, true);
    }
}

/* Turns the lines of the plane before into those of a plane. */
static void next_plane(const tess_planes *planes, const line_set *all, int plane,
                       line_set *one)
{
    const int64_t *counts = all->counts + (int64_t)plane * all->num_slabs;
    one->line += one->num_lines;
    one->line_first = plane * planes->opts.nu;
    one->num_lines = 0;
    for (int f = 0; f < all->num_slabs; ++f) {
        slab_lines *slab = &one->slab[f];
        if (slab->num_lines > 0)
            slab->data += slab->num_lines * all->stride * planes->value_bytes;
        slab->num_lines = counts[f];
        one->num_lines += counts[f];
    }
}

tess_status planes_cpu_columns(tess_planes *planes, const line_set *set,
                               const tess_plane_job *job)
{
    tess_status status = TESS_OK;
    column_work work = {0};
    line_set one = *set;
    one.num_lines = 0;
    one.slab = tess_alloc_zero(set->num_slabs, sizeof *one.slab);
    if (!one.slab) TESS_FAIL(TESS_ERR_ALLOC, "lines of w-planes");
    for (int f = 0; f < set->num_slabs; ++f)
        one.slab[f].data = set->slab[f].data;
    TESS_TRY(column_work_create(planes, &work));
    for (int p = 0; p < planes->batch; ++p) {
        const tess_plane_job *mine = &job[p * planes->num_groups + planes->group_index];
        if (!mine->active) break;
        next_plane(planes, set, p, &one);
        plane_columns(planes, &one, mine, &work);
    }
cleanup:
    tess_free(one.slab);
    return status;
}
