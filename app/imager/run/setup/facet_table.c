/* Holds the Jones matrices of facets in a table. */
#include "facet_table.h"

#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_tracks.h"

/* A larger table would be slower than matrices that are found again. */
static const double MOST_BYTES = 256 * 1024.0 * 1024.0;

struct facet_table {
    facet_table_source from;
    int num_held;
    int facet[TESS_TRACKS_IMAGES];     /* [num_held] −1: none */
    int64_t asked[TESS_TRACKS_IMAGES]; /* [num_held] when they were asked for last */
    int64_t num_asked;
    int64_t num_times;
    int32_t *time;       /* [intervals of the origins] */
    double *middle;      /* [num_times] (MJD) [s] */
    jones_matrix *jones; /* [num_held][num_times][num_antennas][num_chan] */
};

double facet_table_middle(const tess_origins *origins, int32_t interval)
{
    const double begin_s = tess_origins_begin_s(origins, interval);
    return origins->num_intervals > 1 ? begin_s + 0.5 * origins->interval_s : begin_s;
}

/* Numbers the times at which matrices differ. */
static void number_times(facet_table *table)
{
    const facet_table_source *from = &table->from;
    int64_t last = -1;
    for (int32_t k = 0; k < from->origins->num_intervals; ++k) {
        const double middle = facet_table_middle(from->origins, k);
        const int64_t interval =
            from->is_linear ? k : tess_gains_interval(from->gains, middle);
        if (k == 0 || interval != last) table->middle[table->num_times++] = middle;
        table->time[k] = (int32_t)(table->num_times - 1);
        last = interval;
    }
}

/* Of a facet. */
static int64_t num_matrices(const facet_table *table)
{
    return table->num_times * table->from.origins->num_antennas * table->from.num_chan;
}

/* Chooses how many facets the table holds: those that take samples together. */
static void choose_held(facet_table *table)
{
    const double each = (double)num_matrices(table) * sizeof *table->jones;
    const int64_t most = tess_min_i64(table->from.most_held, TESS_TRACKS_IMAGES);
    table->num_held =
        (int)tess_clamp_i64((int64_t)(MOST_BYTES / each), 0, tess_max_i64(most, 1));
    for (int k = 0; k < table->num_held; ++k)
        table->facet[k] = -1;
}

tess_status facet_table_create(const facet_table_source *source, facet_table **out)
{
    tess_status status = TESS_OK;
    const int32_t intervals = source->origins->num_intervals;
    facet_table *table = tess_alloc_zero(1, sizeof *table);
    if (!table) TESS_FAIL(TESS_ERR_ALLOC, "gains of facets");
    table->from = *source;
    table->time = tess_alloc(intervals, sizeof *table->time);
    table->middle = tess_alloc(intervals, sizeof *table->middle);
    if (!table->time || !table->middle) TESS_FAIL(TESS_ERR_ALLOC, "gains of facets");
    number_times(table);
    choose_held(table);
    *out = NULL;
    if (table->num_held == 0) goto cleanup;
    table->jones =
        tess_alloc(table->num_held * num_matrices(table), sizeof *table->jones);
    if (!table->jones) TESS_FAIL(TESS_ERR_ALLOC, "gains of facets");
    *out = table;
    table = NULL;
cleanup:
    facet_table_destroy(table);
    return status;
}

void facet_table_destroy(facet_table *table)
{
    if (!table) return;
    tess_free(table->time);
    tess_free(table->middle);
    tess_free(table->jones);
    tess_free(table);
}

double facet_table_bytes(const facet_table *table)
{
    return table ? (double)num_matrices(table) * (double)sizeof *table->jones *
                       table->num_held
                 : 0;
}

int facet_table_held(const facet_table *table)
{
    return table->num_held;
}

/* The place of a facet; −1: the table does not hold it. */
static int place_of(const facet_table *table, int facet)
{
    for (int k = 0; k < table->num_held; ++k)
        if (table->facet[k] == facet) return k;
    return -1;
}

/* The place of the facet that has not been asked for longest. */
static int oldest_place(const facet_table *table)
{
    int oldest = 0;
    for (int k = 1; k < table->num_held; ++k)
        if (table->asked[k] < table->asked[oldest]) oldest = k;
    return oldest;
}

/* The matrices of a facet, or NULL. */
static const jones_matrix *matrices_of(const facet_table *table, int facet)
{
    const int place = table ? place_of(table, facet) : -1;
    return place < 0 ? NULL : table->jones + place * num_matrices(table);
}

void facet_table_fill(facet_table *table, int facet)
{
    const facet_table_source *from = &table->from;
    const int64_t antennas = from->origins->num_antennas, chans = from->num_chan;
    const int held = place_of(table, facet);
    const int place = held < 0 ? oldest_place(table) : held;
    jones_matrix *jones = table->jones + place * num_matrices(table);
    table->asked[place] = ++table->num_asked;
    if (held >= 0) return;
#pragma omp parallel for num_threads(from->threads) schedule(static)
    for (int64_t k = 0; k < table->num_times * antennas; ++k)
        for (int64_t c = 0; c < chans; ++c) {
            double own[4][2];
            tess_gains_jones_at(from->gains, table->middle[k / antennas], k % antennas,
                                facet, from->freq_hz[c], own);
            for (int j = 0; j < 4; ++j)
                jones[k * chans + c].entry[j] = CMPLX(own[j][0], own[j][1]);
        }
    table->facet[place] = facet;
}

const jones_matrix *facet_table_find(const facet_table *table, int facet,
                                     int32_t antenna, int32_t interval)
{
    const jones_matrix *of = matrices_of(table, facet);
    if (!of) return NULL;
    const int64_t antennas = table->from.origins->num_antennas;
    return of + (table->time[interval] * antennas + antenna) * table->from.num_chan;
}

bool facet_table_give(const facet_table *table, int facet, tess_take *take)
{
    const jones_matrix *of = matrices_of(table, facet);
    if (!of) return false;
    take->jones = (const double *)of[0].entry;
    take->num_times = table->num_times;
    take->num_chan = table->from.num_chan;
    take->time = table->time;
    take->origins = table->from.origins;
    return true;
}

int64_t facet_table_num_times(const facet_table *table)
{
    return table->num_times;
}

int64_t facet_table_time(const facet_table *table, int32_t interval)
{
    return table->time[interval];
}
