/* A-terms on all ranks: rank 0 takes them from images and sends them; and the Jones
 * matrices that are made of them. */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "aterms.h"
#include "tess_const.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_text_file.h"

struct tess_aterms {
    int num;
    aterm_values *term; /* [num] */
};

/* ---- reading ---- */

/* Rank 0. Local. */
static tess_status take_all(const tess_aterms_opts *opts, const aterm_config *config,
                            tess_aterms *to)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < config->num_terms; ++k) {
        const aterm_term *term = &config->term[k];
        to->term[k].kind = term->kind;
        for (int j = 0; j < term->num_images; ++j)
            TESS_TRY(aterm_image_take(term->image[j], opts, &to->term[k]));
    }
cleanup:
    return status;
}

/* Sends an array of rank 0 to the others, which allocate it. Collective. */
static tess_status share(tess_comm *comm, double **array, int64_t count)
{
    tess_status status = TESS_OK;
    if (tess_comm_rank(comm) != 0) *array = tess_alloc(count, sizeof **array);
    if (!*array)
        status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                   "no memory for a-terms");
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_bcast(comm, *array, count * (int64_t)sizeof **array, 0));
cleanup:
    return status;
}

/* Collective. */
static tess_status share_term(tess_comm *comm, aterm_values *term)
{
    tess_status status = TESS_OK;
    const aterm_values own = *term;
    TESS_TRY(tess_comm_bcast(comm, term, sizeof *term, 0));
    term->time_mjd_s = own.time_mjd_s;
    term->freq_hz = own.freq_hz;
    term->value = own.value;
    TESS_TRY(share(comm, &term->time_mjd_s, term->num_times));
    TESS_TRY(share(comm, &term->freq_hz, term->num_freqs));
    TESS_TRY(share(comm, &term->value, aterm_count(term)));
cleanup:
    return status;
}

tess_status tess_aterms_read(tess_comm *comm, const tess_aterms_opts *opts,
                             tess_aterms **out)
{
    tess_status status = TESS_OK;
    const bool first = tess_comm_rank(comm) == 0;
    char *text = NULL;
    aterm_config config = {0};
    tess_aterms *aterms = tess_alloc_zero(1, sizeof *aterms);
    TESS_TRY(tess_comm_agree(comm, aterms ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(
        tess_text_file_read(comm, opts->path, "a configuration of a-terms", &text));
    status = aterm_config_parse(opts->path, text, &config);
    if (status == TESS_OK) {
        aterms->term = tess_alloc_zero(config.num_terms, sizeof *aterms->term);
        if (!aterms->term) status = TESS_ERR_ALLOC;
    }
    if (status == TESS_OK) aterms->num = config.num_terms;
    if (status == TESS_OK && first) status = take_all(opts, &config, aterms);
    TESS_TRY(tess_comm_agree(comm, status));
    for (int k = 0; k < aterms->num; ++k)
        TESS_TRY(share_term(comm, &aterms->term[k]));
    *out = aterms;
    aterms = NULL;
cleanup:
    aterm_config_free(&config);
    tess_free(text);
    tess_aterms_free(aterms);
    return status;
}

void tess_aterms_free(tess_aterms *aterms)
{
    if (!aterms) return;
    for (int k = 0; k < aterms->num; ++k)
        aterm_values_free(&aterms->term[k]);
    tess_free(aterms->term);
    tess_free(aterms);
}

/* ---- matrices ---- */

tess_gain_shape tess_aterms_shape(const tess_aterms *aterms)
{
    tess_gain_shape shape = TESS_GAIN_SCALAR;
    for (int k = 0; k < aterms->num; ++k)
        if (aterms->term[k].kind == ATERM_DIAGONAL) shape = TESS_GAIN_DIAGONAL;
    return shape;
}

int tess_aterms_num(const tess_aterms *aterms)
{
    return aterms->num;
}

const double *tess_aterms_times(const tess_aterms *aterms, int term, int64_t *num)
{
    *num = aterms->term[term].num_times;
    return aterms->term[term].time_mjd_s;
}

/* The index of the nearest value of an ascending axis, the lower of two. */
static int64_t nearest(const double *axis, int64_t num, double at)
{
    int64_t low = 0, high = num - 1;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (axis[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return at - axis[low] <= axis[high] - at ? low : high;
}

/* The values of a term at the nearest time and frequency. */
static const double *values_at(const aterm_values *of, int64_t antenna,
                               int64_t direction, double time_mjd_s, double freq_hz)
{
    const int64_t time = nearest(of->time_mjd_s, of->num_times, time_mjd_s);
    const int64_t freq = nearest(of->freq_hz, of->num_freqs, freq_hz);
    const int64_t row = (time * of->num_freqs + freq) * of->num_antennas + antenna;
    return of->value + (row * of->num_directions + direction) * aterm_parts(of->kind);
}

bool tess_aterms_jones(const tess_aterms *aterms, int64_t antenna, int64_t direction,
                       double time_mjd_s, double freq_hz, double jones[4][2])
{
    double complex feed[2] = {1, 1};
    memset(jones, 0, 4 * sizeof *jones);
    for (int k = 0; k < aterms->num; ++k) {
        const aterm_values *of = &aterms->term[k];
        if (of->kind == ATERM_DLDM) continue;
        const double *value = values_at(of, antenna, direction, time_mjd_s, freq_hz);
        const double turn = TESS_RAD_HZ_PER_TECU * value[0] / freq_hz;
        for (int j = 0; j < 2; ++j)
            feed[j] *= of->kind == ATERM_TEC ? CMPLX(cos(turn), sin(turn))
                                             : CMPLX(value[2 * j], value[2 * j + 1]);
    }
    const double sum =
        creal(feed[0]) + cimag(feed[0]) + creal(feed[1]) + cimag(feed[1]);
    if (!isfinite(sum)) return false;
    for (int j = 0; j < 2; ++j) {
        jones[3 * j][0] = creal(feed[j]);
        jones[3 * j][1] = cimag(feed[j]);
    }
    return true;
}

bool tess_aterms_have_shifts(const tess_aterms *aterms)
{
    for (int k = 0; k < aterms->num; ++k)
        if (aterms->term[k].kind == ATERM_DLDM) return true;
    return false;
}

bool tess_aterms_shift(const tess_aterms *aterms, int64_t direction, double time_mjd_s,
                       double freq_hz, double shift[2])
{
    shift[0] = shift[1] = 0;
    for (int k = 0; k < aterms->num; ++k) {
        const aterm_values *of = &aterms->term[k];
        if (of->kind != ATERM_DLDM) continue;
        const double *value = values_at(of, 0, direction, time_mjd_s, freq_hz);
        shift[0] += value[0];
        shift[1] += value[1];
    }
    return isfinite(shift[0]) && isfinite(shift[1]);
}
