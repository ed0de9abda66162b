/* Makes factors of samples from the Jones matrices of a facet. Rows come in the order
 * of time, so that the matrices of an antenna serve all rows of an integration. */
#include "facet_gains.h"

#include <math.h>
#include <string.h>

#include "tess_mem.h"
#include "tess_omp.h"
#include "tess_tracks.h"

/* Jones matrices of an antenna in one facet and interval of time. */
typedef struct gain_slot {
    int target, interval;
    jones_matrix *jones; /* [num_chan], or NULL */
    bool *is_known;      /* [num_chan] */
} gain_slot;

/* What a thread keeps of the rows before. */
typedef struct gain_cache {
    gain_slot *slot; /* [num_antennas] */
} gain_cache;

/* ---- how images and correlations make up each other ---- */

/* The feeds of a correlation, whose FITS code is −1 to −4 for circular feeds, and −5 to
 * −8 for linear ones: RR, LL, RL, LR. */
static void set_feeds(tess_corr code, int feed[2])
{
    static const int of_code[4][2] = {{0, 0}, {1, 1}, {0, 1}, {1, 0}};
    memcpy(feed, of_code[(-(int)code - 1) % 4], 2 * sizeof *feed);
}

static bool are_same(const tess_pol *pol, int num_pol, const tess_pol *corr,
                     int num_corr)
{
    bool same = num_pol == num_corr;
    for (int k = 0; same && k < num_pol; ++k)
        same = pol[k].code == corr[k].code && pol[k].imaginary == corr[k].imaginary &&
               pol[k].both == corr[k].both;
    return same;
}

/* Samples hold the polarisations of images as they are. */
static void set_plain(facet_gains *gains)
{
    for (int k = 0; k < gains->num_pol; ++k)
        gains->taken[k][k] = gains->made[k][k] = 1;
}

static tess_status set_mixes(const tess_pol *pol, const tess_pol *corr,
                             facet_gains *gains)
{
    tess_status status = TESS_OK;
    tess_corr code[TESS_MAX_POL];
    for (int q = 0; q < gains->num_corr; ++q) {
        double complex stokes[4];
        code[q] = corr[q].code;
        set_feeds(code[q], gains->feed[q]);
        tess_pol_from_stokes(code[q], stokes);
        for (int p = 0; p < gains->num_pol; ++p)
            gains->made[q][p] = stokes[pol[p].code - 1];
    }
    for (int p = 0; p < gains->num_pol && !gains->predicts; ++p) {
        const tess_pol_mix mix = tess_pol_mix_of(&pol[p], code, gains->num_corr);
        if (mix.num == 0)
            TESS_FAIL(TESS_ERR_INTERNAL, "an image of other correlations");
        for (int k = 0; k < mix.num; ++k)
            gains->taken[p][mix.index[k]] = mix.coefficient[k];
    }
cleanup:
    return status;
}

/* Predictions go over rows in the order of time, which need no table. */
static tess_status create_table(facet_gains *gains)
{
    const facet_table_source source = {.gains = gains->sources,
                                       .origins = gains->origins,
                                       .freq_hz = gains->freq_hz,
                                       .num_chan = gains->num_chan,
                                       .is_linear = gains->is_linear,
                                       .most_held = gains->num_targets,
                                       .threads = gains->num_threads};
    return gains->predicts ? TESS_OK : facet_table_create(&source, &gains->table);
}

tess_status facet_gains_create(const tess_pol *pol, int num_pol, const tess_pol *corr,
                               int num_corr, facet_gains *gains)
{
    tess_status status = TESS_OK;
    gains->num_pol = num_pol;
    gains->num_corr = num_corr;
    if (are_same(pol, num_pol, corr, num_corr))
        set_plain(gains);
    else
        TESS_TRY(set_mixes(pol, corr, gains));
    for (int p = 0; p < num_pol; ++p)
        for (int q = 0; q < num_corr; ++q)
            gains->share[p][q] = creal(gains->taken[p][q] * gains->made[q][p]);
    if (!gains->sources) return TESS_OK;
    TESS_TRY(create_table(gains));
    gains->cache = tess_alloc_zero(gains->num_threads, sizeof *gains->cache);
    if (!gains->cache) TESS_FAIL(TESS_ERR_ALLOC, "gains of facets");
    for (int k = 0; k < gains->num_threads; ++k) {
        gains->cache[k].slot =
            tess_alloc_zero(gains->num_antennas, sizeof *gains->cache[k].slot);
        if (!gains->cache[k].slot) TESS_FAIL(TESS_ERR_ALLOC, "gains of facets");
    }
cleanup:
    return status;
}

void facet_gains_free(facet_gains *gains)
{
    for (int t = 0; gains->cache && t < gains->num_threads; ++t) {
        for (int k = 0; gains->cache[t].slot && k < gains->num_antennas; ++k) {
            tess_free(gains->cache[t].slot[k].jones);
            tess_free(gains->cache[t].slot[k].is_known);
        }
        tess_free(gains->cache[t].slot);
    }
    tess_free(gains->cache);
    facet_table_destroy(gains->table);
    *gains = (facet_gains){0};
}

double facet_gains_bytes(const facet_gains *gains)
{
    if (!gains->sources) return 0;
    return (double)gains->num_threads * gains->num_antennas * (double)gains->num_chan *
               (sizeof(jones_matrix) + sizeof(bool)) +
           facet_table_bytes(gains->table);
}

void facet_gains_prepare(const void *context, int target)
{
    const facet_gains *gains = context;
    if (gains->table) facet_table_fill(gains->table, target);
}

int facet_gains_num_prepared(const facet_gains *gains)
{
    if (!gains->sources) return TESS_TRACKS_IMAGES; /* nothing is prepared */
    return gains->table ? facet_table_held(gains->table) : 0;
}

bool facet_gains_give(const void *context, int target, tess_take *take)
{
    const facet_gains *gains = context;
    *take = (tess_take){.num_pol = gains->num_pol,
                        .num_corr = gains->num_corr,
                        .is_scalar = gains->is_scalar};
    if (gains->num_pol > TESS_TAKE_MOST || gains->num_corr > TESS_TAKE_MOST)
        return false;
    memcpy(take->feed, gains->feed, sizeof take->feed);
    for (int p = 0; p < gains->num_pol; ++p)
        for (int q = 0; q < gains->num_corr; ++q) {
            take->taken[p][q][0] = creal(gains->taken[p][q]);
            take->taken[p][q][1] = cimag(gains->taken[p][q]);
        }
    return !gains->sources || facet_table_give(gains->table, target, take);
}

/* ---- groups of rows ---- */

int64_t facet_gains_num_groups(const facet_gains *gains)
{
    if (!gains->sources) return 1;
    if (!gains->table) return 0;
    return facet_table_num_times(gains->table) * gains->num_antennas *
           gains->num_antennas;
}

int64_t facet_gains_group(const void *context, int32_t origin)
{
    const facet_gains *gains = context;
    if (!gains->sources) return 0;
    const tess_origin of = tess_origin_of(gains->origins, origin);
    return (facet_table_time(gains->table, of.interval) * gains->num_antennas +
            of.antenna1) *
               gains->num_antennas +
           of.antenna2;
}

/* ---- Jones matrices ---- */

/* The slot of an antenna, which then is that of this facet and interval; NULL: there is
 * no memory for one. */
static gain_slot *slot_for(const facet_gains *gains, int target, int32_t antenna,
                           int32_t interval)
{
    gain_slot *slot =
        &gains->cache[tess_omp_thread() % gains->num_threads].slot[antenna];
    if (!slot->jones) {
        slot->jones = tess_alloc(gains->num_chan, sizeof *slot->jones);
        slot->is_known = tess_alloc_zero(gains->num_chan, sizeof *slot->is_known);
        if (!slot->jones || !slot->is_known) {
            tess_free(slot->jones);
            tess_free(slot->is_known);
            *slot = (gain_slot){0};
            return NULL;
        }
    } else if (slot->target != target || slot->interval != interval) {
        memset(slot->is_known, 0, (size_t)gains->num_chan * sizeof *slot->is_known);
    }
    slot->target = target;
    slot->interval = interval;
    return slot;
}

/* A row of samples, where it comes from, and the matrices of its antennas. */
typedef struct gain_row {
    const facet_gains *gains;
    int target;
    tess_origin origin;
    double time_mjd_s; /* the middle of its interval */
    int64_t chan_base;
    const jones_matrix *jones[2]; /* [num_chan], or NULL: find_jones() makes them */
} gain_row;

/* The matrix of an antenna in a channel; zeros: there is no solution. */
static void find_jones(const gain_row *row, int32_t antenna, int64_t chan,
                       jones_matrix *out)
{
    double jones[4][2];
    tess_gains_jones_at(row->gains->sources, row->time_mjd_s, antenna, row->target,
                        row->gains->freq_hz[chan], jones);
    for (int k = 0; k < 4; ++k)
        out->entry[k] = CMPLX(jones[k][0], jones[k][1]);
}

/* The matrices of an antenna in the channels of a row. */
static const jones_matrix *matrices_of(const gain_row *row, int32_t antenna,
                                       int32_t num_chan)
{
    const jones_matrix *known =
        facet_table_find(row->gains->table, row->target, antenna, row->origin.interval);
    if (known) return known + row->chan_base;
    gain_slot *slot = slot_for(row->gains, row->target, antenna, row->origin.interval);
    if (!slot) return NULL;
    for (int64_t c = row->chan_base; c < row->chan_base + num_chan; ++c) {
        if (slot->is_known[c]) continue;
        find_jones(row, antenna, c, &slot->jones[c]);
        slot->is_known[c] = true;
    }
    return slot->jones + row->chan_base;
}

static gain_row row_of(const facet_gains *gains, int target,
                       const tess_samples *samples, int64_t row)
{
    const tess_origins *origins = samples->origins;
    gain_row out = {.gains = gains, .chan_base = samples->chan_base[row]};
    if (!gains->sources) return out;
    out.target = target;
    out.origin = tess_origin_of(origins, samples->origin[row]);
    out.time_mjd_s = facet_table_middle(origins, out.origin.interval);
    const int32_t num_chan = samples->num_chan[row];
    out.jones[0] = matrices_of(&out, out.origin.antenna1, num_chan);
    out.jones[1] = matrices_of(&out, out.origin.antenna2, num_chan);
    return out;
}

/* Both matrices in a channel of the row. */
static void pair_of_matrices(const gain_row *row, int32_t chan, jones_matrix *first,
                             jones_matrix *second)
{
    if (row->jones[0])
        *first = row->jones[0][chan];
    else
        find_jones(row, row->origin.antenna1, row->chan_base + chan, first);
    if (row->jones[1])
        *second = row->jones[1][chan];
    else
        find_jones(row, row->origin.antenna2, row->chan_base + chan, second);
}

/* ---- factors ---- */

/* Without the treatment of infinite parts that C's product has. */
static inline double complex times(double complex a, double complex b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b),
                 creal(a) * cimag(b) + cimag(a) * creal(b));
}

/* Gains that mix no correlations: own[num_corr] of each correlation of a channel. */
static inline void set_own(const gain_row *row, int32_t chan, double complex *own)
{
    const facet_gains *gains = row->gains;
    jones_matrix first, second;
    for (int q = 0; q < gains->num_corr; ++q)
        own[q] = 1;
    if (!gains->sources) return;
    pair_of_matrices(row, chan, &first, &second);
    const double complex mean = gains->is_scalar
                                    ? (times(first.entry[0], conj(second.entry[0])) +
                                       times(first.entry[3], conj(second.entry[3]))) /
                                          2
                                    : 0;
    for (int q = 0; q < gains->num_corr; ++q)
        own[q] = gains->is_scalar ? mean
                                  : times(first.entry[3 * gains->feed[q][0]],
                                          conj(second.entry[3 * gains->feed[q][1]]));
}

/* Sets pair[to][from], how much of a correlation `from` of a source is in a correlation
 * `to` of the sample: an entry of the Kronecker product of the matrix of antenna 1 and
 * the conjugate of that of antenna 2. */
static void set_pairs(const gain_row *row, int32_t chan,
                      double complex pair[TESS_MAX_POL][TESS_MAX_POL])
{
    const facet_gains *gains = row->gains;
    jones_matrix first, second;
    pair_of_matrices(row, chan, &first, &second);
    for (int to = 0; to < gains->num_corr; ++to)
        for (int from = 0; from < gains->num_corr; ++from) {
            const int *a = gains->feed[to], *b = gains->feed[from];
            pair[to][from] = times(first.entry[2 * a[0] + b[0]],
                                   conj(second.entry[2 * a[1] + b[1]]));
        }
}

/* The factors of a channel: what is taken of correlations. */
static void take_channel(const gain_row *row, int32_t chan, double complex *factor)
{
    const facet_gains *gains = row->gains;
    double complex pair[TESS_MAX_POL][TESS_MAX_POL];
    set_pairs(row, chan, pair);
    for (int p = 0; p < gains->num_pol; ++p)
        for (int q = 0; q < gains->num_corr; ++q, ++factor) {
            *factor = 0;
            for (int k = 0; k < gains->num_corr; ++k)
                *factor += times(gains->taken[p][k], conj(pair[q][k]));
        }
}

/* And correlations of images. */
static void make_channel(const gain_row *row, int32_t chan, double complex *factor)
{
    const facet_gains *gains = row->gains;
    double complex pair[TESS_MAX_POL][TESS_MAX_POL];
    set_pairs(row, chan, pair);
    for (int q = 0; q < gains->num_corr; ++q)
        for (int p = 0; p < gains->num_pol; ++p, ++factor) {
            *factor = 0;
            for (int k = 0; k < gains->num_corr; ++k)
                *factor += times(pair[q][k], gains->made[k][p]);
        }
}

void facet_gains_take(const void *context, int target, const tess_samples *samples,
                      int64_t row, double complex *factor)
{
    const facet_gains *gains = context;
    const gain_row of = row_of(gains, target, samples, row);
    const int values = gains->num_pol * gains->num_corr;
    double complex own[TESS_MAX_POL];
    for (int32_t c = 0; c < samples->num_chan[row]; ++c, factor += values) {
        if (!gains->is_diagonal) {
            take_channel(&of, c, factor);
            continue;
        }
        set_own(&of, c, own);
        for (int p = 0; p < gains->num_pol; ++p)
            for (int q = 0; q < gains->num_corr; ++q)
                factor[p * gains->num_corr + q] =
                    times(gains->taken[p][q], conj(own[q]));
    }
}

void facet_gains_make(const void *context, int target, const tess_samples *samples,
                      int64_t row, double complex *factor)
{
    const facet_gains *gains = context;
    const gain_row of = row_of(gains, target, samples, row);
    const int values = gains->num_pol * gains->num_corr;
    double complex own[TESS_MAX_POL];
    for (int32_t c = 0; c < samples->num_chan[row]; ++c, factor += values) {
        if (!gains->is_diagonal) {
            make_channel(&of, c, factor);
            continue;
        }
        set_own(&of, c, own);
        for (int q = 0; q < gains->num_corr; ++q)
            for (int p = 0; p < gains->num_pol; ++p)
                factor[q * gains->num_pol + p] = times(own[q], gains->made[q][p]);
    }
}

/* The response of a channel with gains that mix correlations. */
static void power_of_channel(const gain_row *row, int32_t chan, double *power)
{
    const facet_gains *gains = row->gains;
    const int pols = gains->num_pol, corrs = gains->num_corr;
    double complex taken[TESS_MAX_POL * TESS_MAX_POL];
    double complex made[TESS_MAX_POL * TESS_MAX_POL];
    double any = 0;
    take_channel(row, chan, taken);
    make_channel(row, chan, made);
    for (int p = 0; p < pols; ++p) {
        power[p] = 0;
        for (int q = 0; q < corrs; ++q) {
            power[p] += creal(times(taken[p * corrs + q], made[q * pols + p]));
            any += fabs(creal(made[q * pols + p])) + fabs(cimag(made[q * pols + p]));
        }
    }
    for (int p = 0; p < pols && !(any > 0); ++p)
        power[p] = (double)NAN;
}

void facet_gains_power(const void *context, int target, const tess_samples *samples,
                       int64_t row, double *power)
{
    const facet_gains *gains = context;
    const gain_row of = row_of(gains, target, samples, row);
    double complex own[TESS_MAX_POL];
    for (int32_t c = 0; c < samples->num_chan[row]; ++c, power += gains->num_pol) {
        double any = 0;
        if (!gains->is_diagonal) {
            power_of_channel(&of, c, power);
            continue;
        }
        set_own(&of, c, own);
        for (int q = 0; q < gains->num_corr; ++q)
            any += creal(own[q]) * creal(own[q]) + cimag(own[q]) * cimag(own[q]);
        for (int p = 0; p < gains->num_pol; ++p) {
            double sum = 0;
            for (int q = 0; q < gains->num_corr; ++q)
                sum += gains->share[p][q] *
                       (creal(own[q]) * creal(own[q]) + cimag(own[q]) * cimag(own[q]));
            power[p] = any > 0 ? sum : (double)NAN;
        }
    }
}
