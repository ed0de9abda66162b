/* Sends the samples of a round to the teams that make its outputs. */
#include <string.h>

#include "imager_teams.h"
#include "tess_mem.h"

tess_status team_parcel_create(const imager_teams *teams, const tess_samples *like,
                               int64_t num_rows, int64_t num_vis, team_parcel *parcel)
{
    tess_status status = TESS_OK;
    parcel->samples = tess_samples_like(like);
    parcel->row = tess_alloc_zero(teams->num + 1, sizeof *parcel->row);
    parcel->vis = tess_alloc_zero(teams->num + 1, sizeof *parcel->vis);
    if (!parcel->row || !parcel->vis)
        TESS_FAIL(TESS_ERR_ALLOC, "samples of %d teams", teams->num);
    TESS_TRY(tess_samples_reserve(&parcel->samples, num_rows, num_vis));
cleanup:
    return status;
}

tess_status team_parcel_add(team_parcel *parcel, const tess_samples *from)
{
    tess_status status = TESS_OK;
    tess_samples *to = &parcel->samples;
    const size_t element = from->is_double ? 8 : 4;
    const size_t vis = 2 * element * (size_t)from->num_pol;
    const size_t weight = element * (size_t)from->num_weight;
    const size_t rows = (size_t)from->num_rows, count = (size_t)from->num_vis;
    if (rows == 0 || count == 0) return TESS_OK;
    TESS_TRY(tess_samples_reserve(to, to->num_rows + from->num_rows,
                                  to->num_vis + from->num_vis));
    memcpy(to->uvw_m + 3 * to->num_rows, from->uvw_m, rows * 3 * sizeof *to->uvw_m);
    memcpy(to->chan_base + to->num_rows, from->chan_base, rows * sizeof *to->chan_base);
    memcpy(to->num_chan + to->num_rows, from->num_chan, rows * sizeof *to->num_chan);
    if (from->origins)
        memcpy(to->origin + to->num_rows, from->origin, rows * sizeof *to->origin);
    memcpy((char *)to->vis + (size_t)to->num_vis * vis, from->vis, count * vis);
    memcpy((char *)to->weight + (size_t)to->num_vis * weight, from->weight,
           count * weight);
    to->num_rows += from->num_rows;
    to->num_vis += from->num_vis;
cleanup:
    return status;
}

void team_parcel_end_team(team_parcel *parcel)
{
    ++parcel->num;
    parcel->row[parcel->num] = parcel->samples.num_rows;
    parcel->vis[parcel->num] = parcel->samples.num_vis;
}

void team_parcel_free(team_parcel *parcel)
{
    tess_samples_free(&parcel->samples);
    tess_free(parcel->row);
    tess_free(parcel->vis);
    *parcel = (team_parcel){0};
}

/* Sends one array of the samples to their ranks; `first` of teams in elements of `size`
 * bytes. What arrives is allocated. bytes[2 × ranks] is work memory. Collective. */
static tess_status send_array(const imager_teams *teams, const void *values,
                              const int64_t *first, int64_t size, int64_t *bytes,
                              void **arrived, int64_t *count)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(teams->all);
    /* ranks of equal number / num, which hold neighbouring rows, send to one member, so
     * that the members hold rows in their order on any number of ranks */
    const int member = tess_comm_rank(teams->all) / teams->num;
    memset(bytes, 0, (size_t)ranks * sizeof *bytes);
    for (int g = 0; g < teams->num; ++g)
        bytes[g * teams->members + member] = (first[g + 1] - first[g]) * size;
    TESS_TRY(tess_comm_alltoallv(teams->all, values, bytes, arrived, bytes + ranks));
    *count = 0;
    for (int k = 0; k < ranks; ++k)
        *count += bytes[ranks + k] / size;
cleanup:
    return status;
}

static tess_status index_rows(tess_samples *samples)
{
    tess_status status = TESS_OK;
    int64_t at = 0;
    TESS_TRY(tess_samples_check_rows(samples->num_rows));
    samples->vis_first = tess_alloc(samples->num_rows, sizeof *samples->vis_first);
    if (!samples->vis_first) TESS_FAIL(TESS_ERR_ALLOC, "rows of a team's samples");
    for (int64_t row = 0; row < samples->num_rows; ++row) {
        samples->vis_first[row] = at;
        at += samples->num_chan[row];
    }
    samples->capacity_rows = samples->num_rows;
    samples->capacity_vis = samples->num_vis;
cleanup:
    return status;
}

/* Sends a parcel's samples to the teams; those of this rank's team arrive in `to`.
 * Collective. */
static tess_status send(const imager_teams *teams, const team_parcel *own,
                        tess_samples *to)
{
    tess_status status = TESS_OK;
    const tess_samples *from = &own->samples;
    void *uvw = NULL, *base = NULL, *chan = NULL, *origin = NULL;
    const int64_t element = from->is_double ? 8 : 4;
    const int64_t vis = 2 * element * from->num_pol,
                  weight = element * from->num_weight;
    int64_t rows;
    int64_t *bytes = tess_alloc(2 * (int64_t)tess_comm_size(teams->all), sizeof *bytes);
    *to = tess_samples_like(from);
    TESS_TRY(tess_comm_agree(teams->all, bytes ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(send_array(teams, from->uvw_m, own->row, 3 * sizeof(double), bytes, &uvw,
                        &to->num_rows));
    to->uvw_m = uvw;
    TESS_TRY(send_array(teams, from->chan_base, own->row, sizeof(int32_t), bytes, &base,
                        &rows));
    to->chan_base = base;
    TESS_TRY(send_array(teams, from->num_chan, own->row, sizeof(int32_t), bytes, &chan,
                        &rows));
    to->num_chan = chan;
    if (from->origins)
        TESS_TRY(send_array(teams, from->origin, own->row, sizeof(int32_t), bytes,
                            &origin, &rows));
    to->origin = origin;
    TESS_TRY(
        send_array(teams, from->vis, own->vis, vis, bytes, &to->vis, &to->num_vis));
    TESS_TRY(send_array(teams, from->weight, own->vis, weight, bytes, &to->weight,
                        &to->num_vis));
    TESS_TRY(tess_comm_agree(teams->all, index_rows(to)));
cleanup:
    tess_free(bytes);
    return status;
}

tess_status imager_teams_send(const imager_teams *teams, team_parcel *parcel,
                              tess_samples *to)
{
    tess_status status = TESS_OK;
    while (parcel->num < teams->num)
        team_parcel_end_team(parcel);
    TESS_TRY(send(teams, parcel, to));
cleanup:
    if (status != TESS_OK) tess_samples_free(to);
    return status;
}
