/* Solutions for the facets of an image: a direction for each, which is not far away. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tess_facets.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_text.h"

tess_status tess_facets_solved(tess_comm *comm, const char *path,
                               tess_region **direction_out, int64_t *num_out)
{
    tess_status status = TESS_OK;
    tess_solution_source *source = NULL;
    tess_region *direction = NULL;
    int64_t num = 0;
    TESS_TRY(tess_solutions_sources(comm, path, &source, &num));
    direction = tess_alloc_zero(num, sizeof *direction);
    if (!direction)
        status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                   "no memory for %lld directions", (long long)num);
    TESS_TRY(tess_comm_agree(comm, status));
    for (int64_t k = 0; k < num; ++k) {
        direction[k].has_point = true;
        direction[k].ra_rad = source[k].ra_rad;
        direction[k].dec_rad = source[k].dec_rad;
        snprintf(direction[k].name, sizeof direction[k].name, "%.127s", source[k].name);
    }
    *direction_out = direction;
    *num_out = num;
    direction = NULL;
cleanup:
    tess_free(source);
    tess_free(direction);
    return status;
}

/* A direction of a file that is farther from a facet than half of it is not the
 * facet's. A file with one direction holds for all. Local. */
static tess_status check_separation(const tess_facets *facets,
                                    const tess_solutions_opts *opts,
                                    const tess_solutions *solutions, int file,
                                    int64_t k, bool warns)
{
    tess_status status = TESS_OK;
    const tess_facet *facet = &facets->facet[k];
    const tess_solution_match *match = tess_solutions_match(solutions, file, k);
    const double half_rad =
        0.5 * sqrt((double)facet->num_pixels) * facets->image.geom.scale_rad;
    char away[48];
    if (match->is_only || match->separation_rad <= half_rad) goto cleanup;
    tess_text_angle(match->separation_rad, away, sizeof away);
    if (opts->any_direction) {
        if (warns)
            tess_log_warn("%s: its direction '%s', the nearest to facet '%s', is %s "
                          "from it",
                          opts->path[file], match->name, facet->name, away);
        goto cleanup;
    }
    TESS_FAIL(TESS_ERR_INPUT,
              "%s: its direction '%s', the nearest to facet '%s', is %s from it, more "
              "than half of the facet; images and predictions take it with "
              "--any-solution-direction",
              opts->path[file], match->name, facet->name, away);
cleanup:
    return status;
}

tess_status tess_facets_solutions(tess_comm *comm, const tess_facets *facets,
                                  const tess_solutions_opts *asked,
                                  tess_solutions **out)
{
    tess_status status = TESS_OK;
    tess_solutions_opts opts = *asked;
    tess_solutions *solutions = NULL;
    double(*direction)[2] = tess_alloc(facets->num_facets, sizeof *direction);
    if (!direction)
        status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                   "no memory for directions of facets");
    TESS_TRY(tess_comm_agree(comm, status));
    for (int64_t k = 0; k < facets->num_facets; ++k) {
        direction[k][0] = facets->facet[k].ra_rad;
        direction[k][1] = facets->facet[k].dec_rad;
    }
    opts.direction = (const double(*)[2])direction;
    opts.num_directions = facets->num_facets;
    TESS_TRY(tess_solutions_read(comm, &opts, &solutions));
    for (int file = 0; file < opts.num_files; ++file)
        for (int64_t k = 0; k < facets->num_facets; ++k)
            TESS_TRY(check_separation(facets, &opts, solutions, file, k,
                                      tess_comm_rank(comm) == 0));
    *out = solutions;
    solutions = NULL;
cleanup:
    tess_free(direction);
    tess_solutions_free(solutions);
    return status;
}
