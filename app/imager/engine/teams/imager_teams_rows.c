/* Sends rows of images between teams and all ranks. Both sides know where rows lie, so
 * a message has nothing but pixels. */
#include "imager_teams.h"

#include <string.h>

#include "tess_mem.h"

typedef struct span {
    int64_t first, count;
} span;

/* The rows that a rank has of its team's image. */
static span team_span(const imager_teams *teams, const imager_job *job, int rank)
{
    span rows;
    tess_planes_final_rows(job->geom.ny, job->ranks.fft_ranks, rank % teams->members,
                           teams->members, &rows.first, &rows.count);
    return rows;
}

/* The rows that a rank has of every image. */
static span slab_span(const imager_teams *teams, const imager_job *job, int rank)
{
    span rows;
    imager_teams_mean_rows(teams, rank, job->geom.ny, &rows.first, &rows.count);
    return rows;
}

static span common(span a, span b)
{
    const int64_t first = a.first > b.first ? a.first : b.first;
    const int64_t end_a = a.first + a.count, end_b = b.first + b.count;
    const int64_t count = (end_a < end_b ? end_a : end_b) - first;
    return (span){first, count > 0 ? count : 0};
}

static int64_t row_bytes(const imager_job *job, bool is_double)
{
    return job->geom.nx *
           (is_double ? (int64_t)sizeof(double) : (int64_t)sizeof(float));
}

/* Address of a row. */
static char *row_at(const imager_rows *rows, int64_t row, int64_t bytes)
{
    return (char *)rows->value + (row - rows->row_first) * bytes;
}

/* Makes room for this rank's rows of several images, and for the counts of an exchange.
 */
static tess_status make_slabs(const imager_teams *teams, const imager_job *job, int num,
                              imager_rows *const *rows)
{
    tess_status status = TESS_OK;
    const bool is_double = job->plan->is_double;
    const span slab = slab_span(teams, job, tess_comm_rank(teams->all));
    for (int g = 0; g < num; ++g) {
        *rows[g] = (imager_rows){slab.first, slab.count, job->geom.nx, is_double, NULL};
        rows[g]->value = tess_alloc(slab.count, (size_t)row_bytes(job, is_double));
        if (!rows[g]->value) TESS_FAIL(TESS_ERR_ALLOC, "rows of %d images", num);
    }
cleanup:
    return status;
}

/* Puts the rows that came from each rank into its team's image. */
static void place_slabs(const imager_teams *teams, const imager_job *job, int num,
                        const char *from, imager_rows *const *rows)
{
    const int64_t bytes = row_bytes(job, job->plan->is_double);
    const span slab = slab_span(teams, job, tess_comm_rank(teams->all));
    for (int k = 0; k < num * teams->members; ++k) {
        const span sent = common(team_span(teams, job, k), slab);
        if (sent.count == 0) continue;
        memcpy(row_at(rows[k / teams->members], sent.first, bytes), from,
               (size_t)(sent.count * bytes));
        from += sent.count * bytes;
    }
}

tess_status imager_teams_spread(const imager_teams *teams, const imager_job *job,
                                int num, const imager_rows *own,
                                imager_rows *const *rows)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(teams->all), rank = tess_comm_rank(teams->all);
    const int64_t bytes = row_bytes(job, job->plan->is_double);
    const span here = team_span(teams, job, rank);
    void *arrived = NULL;
    int64_t *counts = tess_alloc_zero(2 * (int64_t)ranks, sizeof *counts);
    status = counts ? make_slabs(teams, job, num, rows) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(teams->all, status));
    /* slabs are in the order of ranks, so that rows are sent from where they lie */
    for (int k = 0; own && k < ranks; ++k)
        counts[k] = common(here, slab_span(teams, job, k)).count * bytes;
    TESS_TRY(tess_comm_alltoallv(teams->all, own ? own->value : NULL, counts, &arrived,
                                 counts + ranks));
    place_slabs(teams, job, num, arrived, rows);
cleanup:
    tess_free(arrived);
    tess_free(counts);
    return status;
}

/* Collects the rows that each member of each team needs of this rank's, one member
 * after the other; counts bytes. Local. */
static tess_status pack_slabs(const imager_teams *teams, const imager_job *job, int num,
                              imager_rows *const *rows, int64_t bytes, int64_t *counts,
                              void **packed)
{
    tess_status status = TESS_OK;
    const span slab = slab_span(teams, job, tess_comm_rank(teams->all));
    char *to = *packed = tess_alloc(num * slab.count, (size_t)bytes);
    if (!to) TESS_FAIL(TESS_ERR_ALLOC, "rows for %d teams", num);
    for (int k = 0; k < num * teams->members; ++k) {
        const span sent = common(team_span(teams, job, k), slab);
        counts[k] = sent.count * bytes;
        if (sent.count == 0) continue;
        memcpy(to, row_at(rows[k / teams->members], sent.first, bytes),
               (size_t)counts[k]);
        to += counts[k];
    }
cleanup:
    return status;
}

tess_status imager_teams_bring(const imager_teams *teams, const imager_job *job,
                               int num, imager_rows *const *rows, imager_rows *own)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(teams->all);
    const bool is_double = rows[0]->is_double;
    const span here = team_span(teams, job, tess_comm_rank(teams->all));
    void *packed = NULL, *arrived = NULL;
    int64_t *counts = tess_alloc_zero(2 * (int64_t)ranks, sizeof *counts);
    status = counts ? pack_slabs(teams, job, num, rows, row_bytes(job, is_double),
                                 counts, &packed)
                    : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(teams->all, status));
    TESS_TRY(tess_comm_alltoallv(teams->all, packed, counts, &arrived, counts + ranks));
    if (teams->own >= num) goto cleanup;
    /* slabs come in the order of ranks, which is that of rows */
    *own = (imager_rows){here.first, here.count, job->geom.nx, is_double, arrived};
    arrived = NULL;
cleanup:
    tess_free(packed);
    tess_free(arrived);
    tess_free(counts);
    return status;
}
