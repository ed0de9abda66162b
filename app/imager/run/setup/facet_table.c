/* Holds the Jones matrices of a facet in a table. */
#include "facet_table.h"

#include "tess_mem.h"

/* A larger table would be slower than matrices that are found again. */
static const double MOST_BYTES = 256 * 1024.0 * 1024.0;

struct facet_table {
    facet_table_source from;
    int facet; /* −1: none */
    int64_t num_times;
    int32_t *time;       /* [intervals of the origins] */
    double *middle;      /* [num_times] (MJD) [s] */
    jones_matrix *jones; /* [num_times][num_antennas][num_chan] */
};

double facet_table_middle(const tess_origins *origins, int32_t interval)
{
    return origins->num_intervals > 1
               ? origins->time_first_s + (interval + 0.5) * origins->interval_s
               : origins->time_first_s;
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

static int64_t num_matrices(const facet_table *table)
{
    return table->num_times * table->from.origins->num_antennas * table->from.num_chan;
}

tess_status facet_table_create(const facet_table_source *source, facet_table **out)
{
    tess_status status = TESS_OK;
    const int32_t intervals = source->origins->num_intervals;
    facet_table *table = tess_alloc_zero(1, sizeof *table);
    if (!table) TESS_FAIL(TESS_ERR_ALLOC, "gains of facets");
    table->from = *source;
    table->facet = -1;
    table->time = tess_alloc(intervals, sizeof *table->time);
    table->middle = tess_alloc(intervals, sizeof *table->middle);
    if (!table->time || !table->middle) TESS_FAIL(TESS_ERR_ALLOC, "gains of facets");
    number_times(table);
    *out = NULL;
    if (facet_table_bytes(table) > MOST_BYTES) goto cleanup;
    table->jones = tess_alloc(num_matrices(table), sizeof *table->jones);
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
    return table ? (double)num_matrices(table) * (double)sizeof *table->jones : 0;
}

void facet_table_fill(facet_table *table, int facet)
{
    const facet_table_source *from = &table->from;
    const int64_t antennas = from->origins->num_antennas, chans = from->num_chan;
    if (table->facet == facet) return;
#pragma omp parallel for num_threads(from->threads) schedule(static)
    for (int64_t k = 0; k < table->num_times * antennas; ++k)
        for (int64_t c = 0; c < chans; ++c) {
            double jones[4][2];
            tess_gains_jones_at(from->gains, table->middle[k / antennas], k % antennas,
                                facet, from->freq_hz[c], jones);
            for (int j = 0; j < 4; ++j)
                table->jones[k * chans + c].entry[j] = CMPLX(jones[j][0], jones[j][1]);
        }
    table->facet = facet;
}

const jones_matrix *facet_table_find(const facet_table *table, int facet,
                                     int32_t antenna, int32_t interval)
{
    if (!table || table->facet != facet) return NULL;
    const int64_t antennas = table->from.origins->num_antennas;
    return table->jones +
           (table->time[interval] * antennas + antenna) * table->from.num_chan;
}

bool facet_table_give(const facet_table *table, int facet, tess_take *take)
{
    if (!table || table->facet != facet) return false;
    take->jones = (const double *)table->jones[0].entry;
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
