/* Sends rows of images between teams and all ranks. Both sides know where rows lie, so
 * a message has nothing but pixels. Rows that live on devices go from device to device
 * where these are connected. */
#include "imager_teams.h"

#include <string.h>

#include "tess_device_comm.h"
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

static int64_t row_bytes(const imager_job *job, tess_pixel type)
{
    return job->geom.nx * tess_pixel_bytes(type);
}

/* Address of a row of the image. */
static void *row_at(const tess_rows *rows, int64_t row)
{
    return tess_rows_at(rows, (row - rows->row_first) * rows->nx);
}

/* Rows of an image, without memory. */
static tess_rows rows_of(const imager_job *job, span rows, tess_pixel type)
{
    return tess_rows_of(job->geom.nx, job->geom.ny, rows.first, rows.count, type);
}

/* Makes room for this rank's rows of several images. */
static tess_status make_slabs(const imager_teams *teams, const imager_job *job,
                              const tess_place *place, int num, tess_rows *const *rows)
{
    tess_status status = TESS_OK;
    const span slab = slab_span(teams, job, tess_comm_rank(teams->all));
    for (int g = 0; g < num; ++g) {
        *rows[g] = rows_of(job, slab, tess_pixel_of(job->plan->is_double));
        rows[g]->place = place;
        TESS_TRY(tess_rows_alloc(rows[g]));
    }
cleanup:
    return status;
}

/* ---- from device to device ---- */

/* Whether rows go from device to device. */
static bool are_linked(const imager_job *job)
{
    return imager_rows_place(job) && tess_device_comm_moves(job->ranks.devices);
}

static tess_device_span array_of(const tess_rows *rows, span part)
{
    if (part.count == 0) return (tess_device_span){0};
    return (tess_device_span){row_at(rows, part.first),
                              part.count * rows->nx * tess_pixel_bytes(rows->type)};
}

/* Moves the rows of a team's image `own`, NULL for teams without one, to those of all
 * ranks, or from there. Collective over all ranks. */
static tess_status move_linked(const imager_teams *teams, const imager_job *job,
                               int num, const tess_rows *own, tess_rows *const *rows,
                               bool spreads)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(teams->all), rank = tess_comm_rank(teams->all);
    const span here = team_span(teams, job, rank), slab = slab_span(teams, job, rank);
    tess_device_span *of_team = tess_alloc_zero(2 * (int64_t)ranks, sizeof *of_team);
    tess_device_span *of_slabs = of_team + ranks;
    TESS_TRY(tess_comm_agree(teams->all, of_team ? TESS_OK : TESS_ERR_ALLOC));
    for (int k = 0; k < ranks && own; ++k)
        of_team[k] = array_of(own, common(here, slab_span(teams, job, k)));
    for (int k = 0; k < num * teams->members; ++k)
        of_slabs[k] =
            array_of(rows[k / teams->members], common(team_span(teams, job, k), slab));
    TESS_TRY(tess_device_comm_move(job->ranks.devices, imager_rows_place(job),
                                   spreads ? of_team : of_slabs,
                                   spreads ? of_slabs : of_team));
cleanup:
    tess_free(of_team);
    return status;
}

static tess_status spread_linked(const imager_teams *teams, const imager_job *job,
                                 int num, const tess_rows *own, tess_rows *const *rows)
{
    tess_status status = make_slabs(teams, job, imager_rows_place(job), num, rows);
    TESS_TRY(tess_comm_agree(teams->all, status));
    TESS_TRY(move_linked(teams, job, num, own, rows, true));
cleanup:
    return status;
}

static tess_status bring_linked(const imager_teams *teams, const imager_job *job,
                                int num, tess_rows *const *rows, tess_rows *own)
{
    tess_status status = TESS_OK;
    const bool has_own = teams->own < num;
    if (has_own) {
        *own = rows_of(job, team_span(teams, job, tess_comm_rank(teams->all)),
                       rows[0]->type);
        own->place = rows[0]->place;
        status = tess_rows_alloc(own);
    }
    TESS_TRY(tess_comm_agree(teams->all, status));
    TESS_TRY(move_linked(teams, job, num, has_own ? own : NULL, rows, false));
cleanup:
    return status;
}

/* ---- through host memory ---- */

/* Puts the rows that came from each rank into its team's image. */
static void place_slabs(const imager_teams *teams, const imager_job *job, int num,
                        const char *from, tess_rows *const *rows)
{
    const int64_t bytes = row_bytes(job, tess_pixel_of(job->plan->is_double));
    const span slab = slab_span(teams, job, tess_comm_rank(teams->all));
    for (int k = 0; k < num * teams->members; ++k) {
        const span sent = common(team_span(teams, job, k), slab);
        if (sent.count == 0) continue;
        memcpy(row_at(rows[k / teams->members], sent.first), from,
               (size_t)(sent.count * bytes));
        from += sent.count * bytes;
    }
}

tess_status imager_teams_spread(const imager_teams *teams, const imager_job *job,
                                int num, const tess_rows *own, tess_rows *const *rows)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(teams->all), rank = tess_comm_rank(teams->all);
    const int64_t bytes = row_bytes(job, tess_pixel_of(job->plan->is_double));
    const span here = team_span(teams, job, rank);
    void *arrived = NULL;
    tess_rows view = {0};
    int64_t *counts = NULL;
    if (are_linked(job)) return spread_linked(teams, job, num, own, rows);
    counts = tess_alloc_zero(2 * (int64_t)ranks, sizeof *counts);
    status = counts ? make_slabs(teams, job, NULL, num, rows) : TESS_ERR_ALLOC;
    if (status == TESS_OK && own) status = tess_rows_view(own, &view);
    TESS_TRY(tess_comm_agree(teams->all, status));
    /* slabs are in the order of ranks, so that rows are sent from where they lie */
    for (int k = 0; own && k < ranks; ++k)
        counts[k] = common(here, slab_span(teams, job, k)).count * bytes;
    TESS_TRY(
        tess_comm_alltoallv(teams->all, view.value, counts, &arrived, counts + ranks));
    place_slabs(teams, job, num, arrived, rows);
    for (int g = 0; g < num && status == TESS_OK; ++g)
        status = tess_rows_move(rows[g], imager_rows_place(job));
    TESS_TRY(tess_comm_agree(teams->all, status));
cleanup:
    tess_rows_free(&view);
    tess_free(arrived);
    tess_free(counts);
    return status;
}

/* Copies the rows that each member of a team needs of this rank's to `to`, one member
 * after the other; counts[members] bytes. Returns where the next team's begin. */
static char *pack_team(const imager_teams *teams, const imager_job *job, int team,
                       const tess_rows *rows, int64_t *counts, char *to)
{
    const span slab = slab_span(teams, job, tess_comm_rank(teams->all));
    for (int k = 0; k < teams->members; ++k) {
        const span sent =
            common(team_span(teams, job, team * teams->members + k), slab);
        counts[k] = sent.count * row_bytes(job, rows->type);
        if (sent.count == 0) continue;
        memcpy(to, row_at(rows, sent.first), (size_t)counts[k]);
        to += counts[k];
    }
    return to;
}

/* Collects the rows of all teams, one after the other; counts bytes. Local. */
static tess_status pack_slabs(const imager_teams *teams, const imager_job *job, int num,
                              tess_rows *const *rows, int64_t *counts, void **packed)
{
    tess_status status = TESS_OK;
    const span slab = slab_span(teams, job, tess_comm_rank(teams->all));
    char *to = *packed =
        tess_alloc(num * slab.count, (size_t)row_bytes(job, rows[0]->type));
    if (!to) TESS_FAIL(TESS_ERR_ALLOC, "rows for %d teams", num);
    for (int g = 0; g < num; ++g) {
        tess_rows view;
        TESS_TRY(tess_rows_view(rows[g], &view));
        to = pack_team(teams, job, g, &view, counts + g * teams->members, to);
        tess_rows_free(&view);
    }
cleanup:
    return status;
}

tess_status imager_teams_bring(const imager_teams *teams, const imager_job *job,
                               int num, tess_rows *const *rows, tess_rows *own)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(teams->all);
    const span here = team_span(teams, job, tess_comm_rank(teams->all));
    void *packed = NULL, *arrived = NULL;
    int64_t *counts = NULL;
    if (are_linked(job)) return bring_linked(teams, job, num, rows, own);
    counts = tess_alloc_zero(2 * (int64_t)ranks, sizeof *counts);
    status =
        counts ? pack_slabs(teams, job, num, rows, counts, &packed) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(teams->all, status));
    TESS_TRY(tess_comm_alltoallv(teams->all, packed, counts, &arrived, counts + ranks));
    if (teams->own < num) {
        /* slabs come in the order of ranks, which is that of rows */
        *own = rows_of(job, here, rows[0]->type);
        own->value = arrived;
        arrived = NULL;
        status = tess_rows_move(own, imager_rows_place(job));
    }
    TESS_TRY(tess_comm_agree(teams->all, status));
cleanup:
    tess_free(packed);
    tess_free(arrived);
    tess_free(counts);
    return status;
}
