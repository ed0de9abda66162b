/* The work of tessera facets: facets of a region file, or around the sources of a list,
 * their table, their region file, and a picture of them over an image. */
#define _GNU_SOURCE
#include "facets_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tess_const.h"
#include "tess_facets.h"
#include "tess_fits.h"
#include "tess_held_files.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"
#include "tess_text.h"
#include "tess_words.h"

/* The facets of an image, and the image itself if there is one. */
typedef struct facets_job {
    tess_comm *comm;
    const facets_args *args;
    const char *source; /* the file that facets come from */
    tess_facet_image image;
    tess_fits_model pixels; /* of --like */
    tess_image_meta meta;
    tess_region_list regions;
    tess_facets facets;
    tess_gains *gains; /* NULL: no solutions are asked for */
    tess_held_files held;
} facets_job;

/* ---- the image ---- */

/* Local. */
static tess_status take_image(facets_job *job)
{
    tess_status status = TESS_OK;
    const facets_args *args = job->args;
    job->meta = (tess_image_meta){.nx = args->nx,
                                  .ny = args->ny,
                                  .scale_rad = args->scale_rad,
                                  .ra_rad = args->ra_rad,
                                  .dec_rad = args->dec_rad};
    if (args->like) {
        TESS_TRY(tess_fits_meta_read(args->like, &job->pixels, &job->meta));
        TESS_TRY(tess_fits_check_j2000(&job->pixels));
    }
    job->image = tess_facet_image_of(&job->meta);
cleanup:
    return status;
}

/* ---- facets ---- */

/* Facets around the brightest sources of a list. Local. */
static tess_status tessellate(facets_job *job, const tess_source_list *list)
{
    tess_status status = TESS_OK;
    const facets_args *args = job->args;
    tess_region *direction = NULL;
    int64_t num = 0;
    double separation_rad = args->separation_rad;
    if (!(separation_rad > 0) && args->number > 0)
        separation_rad = tess_facets_separation(&job->image.geom, args->number);
    TESS_TRY(tess_facets_brightest(&job->image, list, args->number, separation_rad,
                                   &direction, &num));
    if (num == 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: no source of this list is in the image",
                  args->input);
    if (num < args->number && tess_comm_rank(job->comm) == 0)
        tess_log_warn("%s: only %lld of its sources are in the image and as far from "
                      "brighter ones as --separation asks",
                      args->input, (long long)num);
    TESS_TRY(tess_facets_tessellate(job->source, &job->image, direction, num,
                                    &job->regions));
cleanup:
    tess_free(direction);
    return status;
}

/* Facets around the directions of solutions. Collective. */
static tess_status take_solved(facets_job *job)
{
    tess_status status = TESS_OK;
    tess_region *direction = NULL;
    int64_t num = 0;
    TESS_TRY(tess_facets_solved(job->comm, job->source, &direction, &num));
    TESS_TRY(tess_comm_agree(job->comm,
                             tess_facets_tessellate(job->source, &job->image, direction,
                                                    num, &job->regions)));
cleanup:
    tess_free(direction);
    return status;
}

/* Collective. */
static tess_status take_regions(facets_job *job)
{
    tess_status status = TESS_OK;
    const facets_args *args = job->args;
    tess_source_list list = {0};
    bool is_list = false;
    if (args->input) TESS_TRY(tess_source_list_is(job->comm, args->input, &is_list));
    if (!args->input) {
        TESS_TRY(take_solved(job));
    } else if (is_list) {
        TESS_TRY(tess_source_list_read(job->comm, args->input, &list));
        TESS_TRY(tess_comm_agree(job->comm, tessellate(job, &list)));
    } else {
        if (args->number > 0 || args->separation_rad > 0)
            TESS_FAIL(TESS_ERR_USAGE,
                      "%s is no list of sources, of which %s takes some", args->input,
                      args->number > 0 ? "--number" : "--separation");
        TESS_TRY(tess_region_file_read(job->comm, args->input, &job->regions));
    }
    TESS_TRY(tess_comm_agree(job->comm,
                             tess_facets_create(job->source, &job->regions, &job->image,
                                                args->feather, &job->facets)));
cleanup:
    tess_source_list_free(&list);
    return status;
}

/* Collective. */
static tess_status take_solutions(facets_job *job)
{
    const facets_args *args = job->args;
    const tess_gains_opts opts = {.solutions = {.path = args->solutions.name,
                                                .num_files = args->solutions.num,
                                                .table = args->tables.name,
                                                .num_tables = args->tables.num}};
    return tess_gains_create(job->comm, &job->facets, &opts, &job->gains);
}

/* ---- the table ---- */

static void print_head(const facets_job *job, int width)
{
    const tess_geom *geom = &job->image.geom;
    const long long num = job->facets.num_facets;
    char path[256], scale[48];
    snprintf(path, sizeof path, "%s", job->source);
    tess_text_angle(geom->scale_rad, scale, sizeof scale);
    printf("%s: %lld facet%s in %lld x %lld pixels of %s\n", tess_text_clean(path), num,
           num == 1 ? "" : "s", (long long)geom->nx, (long long)geom->ny, scale);
    printf("  %-*s  %-26s %12s  %s\n", width, "facet", "direction", "pixels",
           "columns and rows");
}

static void print_facet(const facets_job *job, const tess_facet *facet, int width)
{
    const tess_facet_box box = tess_facets_padded(facet, job->args->padding);
    char ra[48], dec[48];
    tess_words_ra(facet->ra_rad, 2, ra, sizeof ra);
    tess_words_dec(facet->dec_rad, 1, dec, sizeof dec);
    printf("  %-*s  %s %-13s %12lld  %lld:%lld, %lld:%lld, %lld x %lld\n", width,
           facet->name, ra, dec, (long long)facet->num_pixels, (long long)box.x0,
           (long long)box.x1, (long long)box.y0, (long long)box.y1,
           (long long)(box.x1 - box.x0), (long long)(box.y1 - box.y0));
}

static void print_rest(const facets_job *job)
{
    const tess_geom *geom = &job->image.geom;
    const double all = (double)geom->nx * (double)geom->ny;
    int64_t rest = geom->nx * geom->ny;
    for (int64_t k = 0; k < job->facets.num_facets; ++k)
        rest -= job->facets.facet[k].num_pixels;
    if (rest > 0)
        printf("  %lld pixels (%.3g %%) are in no facet\n", (long long)rest,
               100 * (double)rest / all);
    if (job->facets.num_outside > 0)
        printf("  left out: %lld without a pixel in the image\n",
               (long long)job->facets.num_outside);
    if (job->regions.num_skipped > 0)
        printf("  left out: %lld shapes that are no polygons of facets\n",
               (long long)job->regions.num_skipped);
}

static void print_table(const facets_job *job)
{
    int width = 5;
    for (int64_t k = 0; k < job->facets.num_facets; ++k) {
        const int length = (int)strlen(job->facets.facet[k].name);
        width = length > width ? length : width;
    }
    print_head(job, width);
    for (int64_t k = 0; k < job->facets.num_facets; ++k)
        print_facet(job, &job->facets.facet[k], width);
    print_rest(job);
}

/* ---- files ---- */

/* Pixels of the directions of facets and of their edges. Free both arrays. Local. */
static tess_status mark_facets(const facets_job *job, tess_preview_marks *marks)
{
    tess_status status = TESS_OK;
    const tess_facets *facets = &job->facets;
    const int64_t num = facets->num_facets;
    const int64_t num_edges = facets->facet[num - 1].end_edge;
    tess_preview_line *line = tess_alloc(num_edges, sizeof *line);
    tess_preview_point *point = tess_alloc(num, sizeof *point);
    *marks = (tess_preview_marks){num_edges, num, line, point};
    if (!line || !point) TESS_FAIL(TESS_ERR_ALLOC, "no memory for a picture of facets");
    for (int64_t k = 0; k < num_edges; ++k) {
        memcpy(line[k].from, facets->edge[k].low, sizeof line[k].from);
        memcpy(line[k].to, facets->edge[k].high, sizeof line[k].to);
    }
    for (int64_t k = 0; k < num; ++k) {
        tess_facets_place(facets, k, point[k].at);
        point[k].text = facets->facet[k].name;
    }
cleanup:
    return status;
}

/* Draws the facets over the first plane of --like. Collective. */
static tess_status draw_picture(facets_job *job)
{
    tess_status status = TESS_OK;
    const int64_t rank = tess_comm_rank(job->comm), size = tess_comm_size(job->comm);
    const int64_t nx = job->meta.nx, ny = job->meta.ny;
    const int64_t first = ny * rank / size, end = ny * (rank + 1) / size;
    tess_preview_marks marks = {0};
    double *pixel = tess_alloc((end - first) * nx, sizeof *pixel);
    const tess_fits_rows rows = {first, end - first, true, pixel};
    if (!pixel)
        status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                   "%s: no memory for its pixels", job->args->like);
    if (status == TESS_OK)
        status = tess_fits_read(&job->pixels, 0, 0, first, end - first,
                                TESS_PIXEL_DOUBLE, pixel);
    if (status == TESS_OK) status = mark_facets(job, &marks);
    TESS_TRY(tess_comm_agree(job->comm, status));
    job->meta.caption = "facets";
    TESS_TRY(tess_preview_hold_marked(job->comm, job->args->picture, &job->held,
                                      &job->meta, &rows, &marks));
cleanup:
    tess_free(pixel);
    tess_free(marks.line);
    tess_free(marks.point);
    return status;
}

/* Local: rank 0. */
static tess_status write_regions(facets_job *job)
{
    tess_status status = TESS_OK;
    char *text = NULL;
    TESS_TRY(tess_region_file_text(&job->regions, &text));
    TESS_TRY(tess_held_text(&job->held, job->args->output, text));
cleanup:
    tess_free(text);
    return status;
}

/* Before anything is read: what is written can be, and is not what is read. Local. */
static tess_status check_outputs(const facets_args *args)
{
    tess_status status = TESS_OK;
    const char *const path[] = {args->output, args->picture};
    for (int k = 0; k < 2; ++k) {
        if (!path[k]) continue;
        TESS_TRY(tess_out_check_target(path[k], args->overwrite));
        TESS_TRY(tess_out_check_other(path[k], args->input));
        TESS_TRY(tess_out_check_other(path[k], args->like));
        for (int j = 0; j < args->solutions.num; ++j)
            TESS_TRY(tess_out_check_other(path[k], args->solutions.name[j]));
    }
    TESS_TRY(tess_out_check_distinct(args->output, args->picture));
cleanup:
    return status;
}

tess_status facets_report(tess_comm *comm, const facets_args *args)
{
    tess_status status = TESS_OK;
    const bool first = tess_comm_rank(comm) == 0;
    facets_job job = {.comm = comm,
                      .args = args,
                      .source = args->input ? args->input : args->solutions.name[0],
                      .held = {.overwrite = args->overwrite}};
    TESS_TRY(tess_comm_agree(comm, first ? check_outputs(args) : TESS_OK));
    TESS_TRY(tess_comm_agree(comm, take_image(&job)));
    TESS_TRY(take_regions(&job));
    if (args->solutions.num > 0) TESS_TRY(take_solutions(&job));
    if (args->output)
        TESS_TRY(tess_comm_agree(comm, first ? write_regions(&job) : TESS_OK));
    if (args->picture) TESS_TRY(draw_picture(&job));
    TESS_TRY(tess_held_publish(comm, &job.held));
    if (first) print_table(&job);
    if (first && job.gains)
        TESS_TRY(facets_print_gains(args, &job.facets, job.gains, job.meta.freq_hz));
cleanup:
    tess_held_free(&job.held);
    tess_gains_destroy(job.gains);
    tess_facets_free(&job.facets);
    tess_region_list_free(&job.regions);
    return status;
}
