/* Cleans raw arrays, for tests that compare with other programs and with numpy:
 *
 *   clean_arrays FOLDER NX NY [NAME=VALUE...]
 *
 * reads FOLDER/dirty and FOLDER/psf (double [ny][nx]), FOLDER/mask (uint8) and
 * FOLDER/model (double) where there are, runs minor loops on the residual, and writes
 * FOLDER/residual, FOLDER/found-model (double) and FOLDER/components (scale, pixel and
 * flux of each, in their order). Prints the reports. Runs on any number of ranks. With
 * images=K all but the mask are arrays [K][ny][nx], of channels of pols=P images each,
 * and a component has a flux of each image that is cleaned. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clean_ops.h"
#include "slabs.h"
#include "tess_clean.h"
#include "tess_comm.h"
#include "tess_mem.h"

enum { MOST = 128 }; /* images, and ranks */

typedef struct clean_job {
    tess_comm *comm;
    const char *folder;
    tess_clean_images images;
    tess_clean_opts opts;
    double scales[TESS_CLEAN_MOST_SCALES];
    double weight[MOST], freq_hz[MOST];
    bool linked[MOST];
    int slabs, loops;
    double *residual[MOST], *model[MOST], *psf[MOST];
    uint8_t *mask;
} clean_job;

static FILE *components; /* of rank 0 */

static const tess_clean_ops *tested; /* of the backend that TESS_TEST_BACKEND names */
static tess_clean_ops told_ops;

/* The tested backend's sub-minor loop, whose components are written down. */
static tess_status told_loop(clean_work *work, clean_loop *loop,
                             clean_components *found)
{
    const int64_t before = found->count;
    const tess_status status = tested->loop(work, loop, found);
    for (int64_t k = before; status == TESS_OK && components && k < found->count; ++k) {
        const double record[2] = {loop->scale, (double)found->index[k]};
        fwrite(record, sizeof record, 1, components);
        fwrite(found->flux + k * found->num_images, sizeof(double),
               (size_t)found->num_images, components);
    }
    return status;
}

/* Takes the functions of a backend. */
static void test(const tess_clean_ops *ops)
{
    tested = ops;
    told_ops = *ops;
    told_ops.loop = told_loop;
}

/* What the tested backend can't do is tested on processors, as the library does it. */
static bool told_lacks(const clean_setup *setup, char *text, int size)
{
    if (tested->lacks && tested->lacks(setup, text, size)) {
        fprintf(stderr, "on processors: %s\n", text);
        test(&tess_clean_ops_cpu);
    }
    return false;
}

static tess_status find_backend(const clean_job *job)
{
    tess_status status = TESS_OK;
    int no_node[MOST];
    const char *name = getenv("TESS_TEST_BACKEND");
    const tess_backend *backend;
    for (int k = 0; k < MOST; ++k)
        no_node[k] = -1;
    TESS_TRY(tess_backend_find(name ? name : "cpu", &backend));
    if (backend->start)
        TESS_TRY(backend->start(no_node, tess_comm_rank(job->comm),
                                tess_comm_size(job->comm)));
    test(backend->clean ? backend->clean : &tess_clean_ops_cpu);
    told_ops.lacks = told_lacks;
cleanup:
    return status;
}

static FILE *file_of(const clean_job *job, const char *name, const char *mode)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", job->folder, name);
    return fopen(path, mode);
}

/* This rank's rows of an image of a file; NULL where there is none. */
static void *read_rows(const clean_job *job, const char *name, int image, size_t bytes)
{
    const tess_clean_images *images = &job->images;
    void *rows = tess_alloc_zero(images->num_rows * images->nx, bytes);
    const size_t count = (size_t)(images->num_rows * images->nx);
    FILE *file = file_of(job, name, "rb");
    if (file)
        fseek(file,
              (long)((size_t)((image * images->ny + images->row_first) * images->nx) *
                     bytes),
              SEEK_SET);
    if (!file || fread(rows, bytes, count, file) != count) {
        tess_free(rows);
        rows = NULL;
    }
    if (file) fclose(file);
    return rows;
}

static void write_rows(const clean_job *job, const char *name, int image,
                       const void *rows)
{
    int64_t *counts = tess_alloc_zero(tess_comm_size(job->comm), sizeof *counts);
    void *all = NULL;
    const int64_t bytes = job->images.num_rows * job->images.nx * 8;
    if (tess_comm_gatherv(job->comm, rows, bytes, 0, &all, counts) != TESS_OK) exit(1);
    if (tess_comm_rank(job->comm) == 0) {
        FILE *file = file_of(job, name, image == 0 ? "wb" : "ab");
        if (!file || fwrite(all, 8, (size_t)(job->images.nx * job->images.ny), file) !=
                         (size_t)(job->images.nx * job->images.ny))
            exit(1);
        fclose(file);
    }
    tess_free(all);
    tess_free(counts);
}

static int parse_list(const char *text, double *list)
{
    int count = 0;
    for (char *end; *text; text = *end ? end + 1 : end)
        list[count++] = strtod(text, &end);
    return count;
}

/* Options of several images. */
static void parse_join(clean_job *job, const char *name, const char *text)
{
    tess_clean_images *images = &job->images;
    tess_clean_join *join = &images->join;
    if (strcmp(name, "images") == 0) images->num_images = atoi(text);
    if (strcmp(name, "pols") == 0) join->num_pol = atoi(text);
    if (strcmp(name, "pol_share") == 0) join->pol_share = strtod(text, NULL);
    if (strcmp(name, "squared") == 0) join->squared = atoi(text) != 0;
    if (strcmp(name, "spectrum") == 0) join->spectrum = (tess_clean_spectrum)atoi(text);
    if (strcmp(name, "terms") == 0) join->num_terms = atoi(text);
    if (strcmp(name, "cleaned") == 0) join->num_cleaned = atoi(text);
    if (strcmp(name, "weights") == 0) {
        parse_list(text, job->weight);
        images->weight = job->weight;
    }
    if (strcmp(name, "freqs") == 0) {
        parse_list(text, job->freq_hz);
        join->freq_hz = job->freq_hz;
    }
    if (strcmp(name, "linked") == 0) { /* like 1000 */
        for (int p = 0; text[p]; ++p)
            job->linked[p] = text[p] == '1';
        join->linked = job->linked;
    }
}

static void parse(clean_job *job, const char *name, const char *text)
{
    tess_clean_opts *o = &job->opts;
    const struct {
        const char *name;
        double *number;
    } numbers[] = {{"gain", &o->gain},
                   {"mgain", &o->mgain},
                   {"first_mgain", &o->first_mgain},
                   {"threshold", &o->threshold_jy},
                   {"auto_threshold", &o->auto_threshold},
                   {"auto_mask", &o->auto_mask},
                   {"border", &o->border_percent},
                   {"beam", &o->beam.major_px},
                   {"beam_minor", &o->beam.minor_px},
                   {"beam_angle", &o->beam.angle_rad},
                   {"bias", &o->scale_bias},
                   {"scale_gain", &o->scale_gain},
                   {"window", &o->local.window_beams},
                   {"strength", &o->local.strength}};
    const double value = strtod(text, NULL);
    if (strcmp(name, "scales") == 0) {
        o->scale_px = job->scales;
        o->num_scales = parse_list(text, job->scales);
    }
    parse_join(job, name, text);
    if (strcmp(name, "niter") == 0) o->niter = (int64_t)value;
    if (strcmp(name, "multiscale") == 0) o->multiscale = value != 0;
    if (strcmp(name, "fit_scales") == 0) o->method.scale_rule = TESS_CLEAN_BY_FIT;
    if (strcmp(name, "gaussian") == 0) o->shape = TESS_CLEAN_GAUSSIAN;
    if (strcmp(name, "no_negative") == 0) o->no_negative = value != 0;
    if (strcmp(name, "stop_negative") == 0) o->stop_negative = value != 0;
    if (strcmp(name, "local_rms") == 0) o->local.kind = (tess_clean_local_rms)value;
    if (strcmp(name, "double") == 0) o->is_double = value != 0;
    if (strcmp(name, "repeatable") == 0) o->repeatable = value != 0;
    if (strcmp(name, "threads") == 0) o->threads = (int)value;
    if (strcmp(name, "grids") == 0) o->method.grids = (tess_clean_grids)atoi(text);
    if (strcmp(name, "slabs") == 0) job->slabs = (int)value;
    if (strcmp(name, "loops") == 0) job->loops = (int)value;
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; ++k)
        if (strcmp(name, numbers[k].name) == 0) *numbers[k].number = value;
}

static void tell(const tess_clean_report *report)
{
    printf("end %d again %d phase %d iterations %lld total %lld loops %d\n",
           report->end, report->again, report->phase, (long long)report->iterations,
           (long long)report->total_iterations, report->loops);
    printf("peak_start %.9g peak_end %.9g sigma %.9g rms %.9g threshold %.9g final "
           "%.9g flux %.9g\n",
           report->peak_start, report->peak_end, report->sigma, report->rms,
           report->threshold, report->final_threshold, report->flux_jy);
    printf("transforms %g transform_s %g list_s %g total_s %g\n", report->transforms,
           report->transform_s, report->list_s, report->total_s);
    for (int s = 0; s < report->num_scales; ++s)
        printf("scale %g %lld %.9g\n", report->scale_px[s],
               (long long)report->scale_iterations[s], report->scale_flux_jy[s]);
}

/* This rank's rows of an image, in an array of the job. */
static tess_rows rows_of(const clean_job *job, tess_pixel type, const void *array)
{
    const tess_clean_images *images = &job->images;
    const tess_rows like =
        tess_rows_of(images->nx, images->ny, images->row_first, images->num_rows, type);
    return tess_rows_borrow(&like, array);
}

static tess_status clean_all(clean_job *job)
{
    tess_status status = TESS_OK;
    tess_clean *clean = NULL;
    tess_clean_report report;
    tess_rows residual[MOST], model[MOST];
    const tess_rows mask = rows_of(job, TESS_PIXEL_MASK, job->mask);
    for (int i = 0; i < job->images.num_images; ++i) {
        residual[i] = rows_of(job, TESS_PIXEL_DOUBLE, job->residual[i]);
        model[i] = rows_of(job, TESS_PIXEL_DOUBLE, job->model[i]);
    }
    TESS_TRY(tess_clean_create(job->comm, &job->images, &job->opts, &clean));
    for (int i = 0; i < job->images.num_images; ++i) {
        const tess_rows psf = rows_of(job, TESS_PIXEL_DOUBLE, job->psf[i]);
        TESS_TRY(tess_clean_set_psf(clean, i, &psf));
    }
    TESS_TRY(tess_clean_set_mask(clean, job->mask ? &mask : NULL));
    TESS_TRY(tess_clean_mark_model(clean, model));
    for (int k = 0; k < job->loops; ++k) {
        TESS_TRY(tess_clean_minor(clean, residual, model, &report));
        if (tess_comm_rank(job->comm) == 0) tell(&report);
        if (!report.again) break;
    }
cleanup:
    tess_clean_destroy(clean);
    return status;
}

int main(int argc, char **argv)
{
    clean_job job = {.loops = 1};
    if (tess_comm_start(&argc, &argv, &job.comm) != TESS_OK || argc < 4) return 2;
    const int rank = tess_comm_rank(job.comm), size = tess_comm_size(job.comm);
    tess_clean_opts_default(&job.opts);
    if (size > MOST || find_backend(&job) != TESS_OK) return 2;
    job.opts.method.ops = &told_ops;
    job.folder = argv[1];
    job.images = (tess_clean_images){.nx = atoll(argv[2]),
                                     .ny = atoll(argv[3]),
                                     .num_images = 1,
                                     .averages_are_double = true};
    for (int k = 4; k < argc; ++k) {
        char *value = strchr(argv[k], '=');
        if (!value) return 2;
        *value++ = '\0';
        parse(&job, argv[k], value);
    }
    slab_of(job.slabs, job.images.ny, rank, size, &job.images.row_first,
            &job.images.num_rows);
    job.mask = read_rows(&job, "mask", 0, 1);
    for (int i = 0; i < job.images.num_images; ++i) {
        job.residual[i] = read_rows(&job, "dirty", i, 8);
        job.psf[i] = read_rows(&job, "psf", i, 8);
        job.model[i] = read_rows(&job, "model", i, 8);
        if (!job.model[i])
            job.model[i] = tess_alloc_zero(job.images.num_rows * job.images.nx, 8);
    }
    if (rank == 0) components = file_of(&job, "components", "wb");
    const tess_status status = clean_all(&job);
    if (status != TESS_OK && rank == 0)
        fprintf(stderr, "%s (%s)\n", tess_error_message(), tess_error_origin());
    if (components) fclose(components);
    for (int i = 0; status == TESS_OK && i < job.images.num_images; ++i) {
        write_rows(&job, "residual", i, job.residual[i]);
        write_rows(&job, "found-model", i, job.model[i]);
    }
    for (int i = 0; i < job.images.num_images; ++i) {
        tess_free(job.residual[i]);
        tess_free(job.psf[i]);
        tess_free(job.model[i]);
    }
    tess_free(job.mask);
    tess_comm_finish(job.comm);
    return tess_status_exit(status);
}
