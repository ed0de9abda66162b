/* Moves rows of UVFITS files to a device, and back, through pinned buffers. */
#include "device_rows.h"

#include <math.h>
#include <string.h>

#include "tess_device.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_samples.h"

/* Threads read and write rows in parts of at least this size. */
static const int64_t PART_BYTES = 256 << 10;

/* ---- memory ---- */

static tess_status allocate(int64_t bytes, const void **out)
{
    tess_status status = TESS_OK;
    void *made = NULL;
    TESS_TRY(tess_device_alloc(bytes, "visibilities", &made));
    *out = made;
cleanup:
    return status;
}

static void device_free(const void *memory)
{
    void *made;
    memcpy(&made, &memory, sizeof made); /* const for the kernels alone */
    tess_device_free(made);
}

double device_samples_bytes(const tess_samples *like, int64_t num_rows, int64_t num_vis,
                            bool weighted)
{
    const int64_t element = like->is_double ? 8 : 4;
    const int64_t sample = element * (2 * like->num_pol + weighted * like->num_weight);
    return (like->origins ? 44.0 : 40.0) * (double)num_rows +
           (double)num_vis * (double)sample +
           (double)tess_device_sort_bytes(num_rows, num_vis);
}

tess_status device_samples_make(const tess_source_info *info, const tess_samples *like,
                                int64_t num_rows, int64_t num_vis, bool weighted,
                                tess_device_samples *out)
{
    tess_status status = TESS_OK;
    const int64_t element = like->is_double ? 8 : 4;
    *out = (tess_device_samples){.is_double = like->is_double,
                                 .num_pol = like->num_pol,
                                 .num_weight = like->num_weight,
                                 .num_rows = num_rows,
                                 .num_vis = num_vis};
    TESS_TRY(tess_samples_check_rows(num_rows));
    TESS_TRY(allocate(num_rows * 3 * 8, (const void **)&out->uvw_m));
    TESS_TRY(allocate(num_rows * 4, (const void **)&out->chan_base));
    TESS_TRY(allocate(num_rows * 4, (const void **)&out->num_chan));
    TESS_TRY(allocate(num_rows * 8, (const void **)&out->vis_first));
    if (like->origins) TESS_TRY(allocate(num_rows * 4, (const void **)&out->origin));
    TESS_TRY(tess_device_alloc(num_vis * 2 * element * like->num_pol, "visibilities",
                               &out->vis));
    if (weighted)
        TESS_TRY(allocate(num_vis * element * like->num_weight, &out->weight));
    TESS_TRY(tess_device_copy_of(info->inv_lambda,
                                 info->num_chan * (int64_t)sizeof *info->inv_lambda,
                                 "rows of a file", (const void **)&out->inv_lambda));
cleanup:
    if (status != TESS_OK) device_samples_free(out);
    return status;
}

void device_samples_free(tess_device_samples *samples)
{
    device_free(samples->uvw_m);
    device_free(samples->chan_base);
    device_free(samples->num_chan);
    device_free(samples->vis_first);
    device_free(samples->origin);
    device_free(samples->vis);
    device_free(samples->weight);
    device_free(samples->inv_lambda);
    *samples = (tess_device_samples){0};
}

/* Values of every `step`-th row. */
static tess_status fetch_rows(void *to, const void *from, int64_t bytes, int64_t step,
                              int64_t count)
{
    return tess_device_download_rows(to, bytes, from, step * bytes, bytes, count);
}

/* The weight of a sample's first polarisation. */
static tess_status fetch_weight(const tess_device_samples *samples, int64_t sample,
                                void *to)
{
    const int64_t element = samples->is_double ? 8 : 4;
    return tess_device_download(
        to, (const char *)samples->weight + sample * samples->num_weight * element,
        element);
}

/* A channel of every row, and its place in the table of channels. */
static tess_status pick_channels(const tess_device_samples *samples, tess_samples *out)
{
    tess_status status = TESS_OK;
    int64_t channels = 0;
    double *inv_lambda = NULL;
    for (int64_t k = 0; k < out->num_rows; ++k)
        if (out->chan_base[k] + out->num_chan[k] > channels)
            channels = out->chan_base[k] + out->num_chan[k];
    inv_lambda = tess_alloc(channels, sizeof *inv_lambda);
    if (!inv_lambda) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    TESS_TRY(tess_device_download(inv_lambda, samples->inv_lambda,
                                  channels * (int64_t)sizeof *inv_lambda));
    for (int64_t k = 0; k < out->num_rows; ++k) {
        if (out->num_chan[k] == 0) continue;
        const int64_t chan = (k * 7919) % out->num_chan[k];
        for (int axis = 0; axis < 3; ++axis)
            out->uvw_m[3 * k + axis] *= inv_lambda[out->chan_base[k] + chan];
        if (samples->weight)
            TESS_TRY(fetch_weight(samples, out->vis_first[k] + chan,
                                  (char *)out->weight + k * (out->is_double ? 8 : 4)));
        else if (out->is_double)
            ((double *)out->weight)[k] = 1;
        else
            ((float *)out->weight)[k] = 1;
        out->num_chan[k] = 1;
    }
cleanup:
    tess_free(inv_lambda);
    return status;
}

tess_status device_samples_excerpt(const tess_device_samples *samples, int most,
                                   tess_samples *out)
{
    tess_status status = TESS_OK;
    static const double one = 1;
    const int64_t rows = samples->num_rows, step = rows > most ? rows / most : 1;
    const int64_t count = rows < most ? rows : most;
    *out = (tess_samples){.is_double = samples->is_double,
                          .num_pol = 1,
                          .num_weight = 1,
                          .inv_lambda = &one};
    TESS_TRY(tess_samples_reserve(out, count, count));
    out->num_rows = out->num_vis = count;
    TESS_TRY(fetch_rows(out->uvw_m, samples->uvw_m, 24, step, count));
    TESS_TRY(fetch_rows(out->chan_base, samples->chan_base, 4, step, count));
    TESS_TRY(fetch_rows(out->num_chan, samples->num_chan, 4, step, count));
    TESS_TRY(fetch_rows(out->vis_first, samples->vis_first, 8, step, count));
    TESS_TRY(pick_channels(samples, out));
    for (int64_t k = 0; k < count; ++k) {
        out->chan_base[k] = 0;
        out->vis_first[k] = k;
    }
cleanup:
    return status;
}

tess_status device_samples_download(const tess_device_samples *samples,
                                    tess_samples *out)
{
    tess_status status = TESS_OK;
    const int64_t rows = samples->num_rows, vis = samples->num_vis;
    const int64_t element = samples->is_double ? 8 : 4;
    TESS_TRY(tess_samples_reserve(out, rows, vis));
    TESS_TRY(tess_device_download(out->uvw_m, samples->uvw_m, rows * 3 * 8));
    TESS_TRY(tess_device_download(out->chan_base, samples->chan_base, rows * 4));
    TESS_TRY(tess_device_download(out->num_chan, samples->num_chan, rows * 4));
    TESS_TRY(tess_device_download(out->vis_first, samples->vis_first, rows * 8));
    if (samples->origin)
        TESS_TRY(tess_device_download(out->origin, samples->origin, rows * 4));
    TESS_TRY(
        tess_device_download(out->vis, samples->vis, vis * 2 * element * out->num_pol));
    TESS_TRY(tess_device_download(out->weight, samples->weight,
                                  vis * element * samples->num_weight));
    out->num_rows = rows;
    out->num_vis = vis;
cleanup:
    return status;
}

void device_weights_replace(tess_device_samples *samples, void *weight)
{
    device_free(samples->weight);
    samples->weight = weight;
}

tess_status device_sums_make(raw_sums **sums)
{
    const raw_sums none = {.w_min_bits = ~0ull, .bad_row = ~0ull};
    return tess_device_copy_of(&none, sizeof none, "sums", (const void **)sums);
}

double device_sum(unsigned long long bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- recipes ---- */

bool device_rows_fit(const tess_source *source, int64_t span, tess_source_rows *rows)
{
    if (!tess_source_rows_of(source, span, rows)) return false;
    const tess_recipe *recipe = rows->recipe;
    return recipe->num_pol <= RAW_MAX_POL && !recipe->chan_wanted &&
           isinf(recipe->time_first) && isinf(recipe->time_end) && !recipe->steps &&
           !recipe->turns && rows->raw.row_bytes <= tess_device_stage_bytes();
}

/* All subarrays' tables of antenna numbers in one. */
static tess_status upload_antennas(const tess_vis_raw *raw, raw_recipe *recipe)
{
    tess_status status = TESS_OK;
    int64_t total = 0, *first = tess_alloc_zero(raw->num_subarrays + 1, sizeof *first);
    int32_t *map = NULL;
    if (!first) TESS_FAIL(TESS_ERR_ALLOC, "antennas");
    for (int k = 0; k < raw->num_subarrays; ++k) {
        total += raw->subarrays[k].num_numbers;
        first[k + 1] = total;
    }
    map = tess_alloc(total, sizeof *map);
    if (!map) TESS_FAIL(TESS_ERR_ALLOC, "antennas");
    for (int k = 0; k < raw->num_subarrays; ++k)
        if (raw->subarrays[k].num_numbers > 0)
            memcpy(map + first[k], raw->subarrays[k].index,
                   (size_t)raw->subarrays[k].num_numbers * sizeof *map);
    TESS_TRY(tess_device_copy_of(first,
                                 (raw->num_subarrays + 1) * (int64_t)sizeof *first,
                                 "rows of a file", (const void **)&recipe->map_first));
    TESS_TRY(tess_device_copy_of(map, total * (int64_t)sizeof *map, "rows of a file",
                                 (const void **)&recipe->map));
    recipe->num_subarrays = raw->num_subarrays;
cleanup:
    tess_free(first);
    tess_free(map);
    return status;
}

/* The numbers that antennas of the observation have in origins of rows. */
static tess_status upload_origins(const tess_row_origins *of, raw_recipe *recipe)
{
    if (!of->origins) return TESS_OK;
    recipe->origins =
        (raw_origins){.all = *of->origins, .field = of->field, .stretch = of->stretch};
    return tess_device_copy_of(
        of->antenna, of->num_antennas * (int64_t)sizeof *of->antenna, "rows of a file",
        (const void **)&recipe->origins.antenna);
}

static void fill_recipe(const tess_source_rows *rows, raw_recipe *to)
{
    const tess_vis_raw *raw = &rows->raw;
    const tess_recipe *from = rows->recipe;
    *to = (raw_recipe){.row_bytes = raw->row_bytes,
                       .num_chan = rows->num_chan,
                       .u_s = raw->u_s,
                       .v_s = raw->v_s,
                       .w_s = raw->w_s,
                       .baseline = raw->baseline,
                       .antenna1 = raw->antenna1,
                       .antenna2 = raw->antenna2,
                       .subarray = raw->subarray,
                       .date = raw->date,
                       .utc_offset_s = raw->utc_offset_s,
                       .num_pol = from->num_pol,
                       .chan_base = from->chan_base,
                       .range = from->range,
                       .rotate = from->rotate};
    memcpy(to->rotation, from->rotation, sizeof to->rotation);
    for (int p = 0; p < from->num_pol; ++p) {
        const tess_pol_mix *mix = &from->mix[p];
        to->mix[p].num = mix->num;
        for (int k = 0; k < mix->num; ++k) {
            to->mix[p].index[k] = mix->index[k];
            to->mix[p].re[k] = creal(mix->coefficient[k]);
            to->mix[p].im[k] = cimag(mix->coefficient[k]);
        }
        to->mix[p].num_hands = mix->num_hands;
        for (int k = 0; k < mix->num_hands; ++k)
            to->mix[p].hand[k] = mix->hand[k];
    }
}

tess_status device_recipe_for(const tess_source_rows *rows, const double *inv_lambda,
                              device_recipe *recipe)
{
    tess_status status = TESS_OK;
    raw_recipe *to = &recipe->raw;
    if (recipe->of == rows->recipe) return TESS_OK;
    device_recipe_free(recipe);
    fill_recipe(rows, to);
    to->inv_lambda = inv_lambda + rows->recipe->chan_base;
    TESS_TRY(tess_device_copy_of(
        rows->raw.chan_offset, rows->num_chan * (int64_t)sizeof *rows->raw.chan_offset,
        "rows of a file", (const void **)&to->chan_offset));
    TESS_TRY(upload_antennas(&rows->raw, to));
    TESS_TRY(upload_origins(&rows->recipe->origins, to));
    recipe->of = rows->recipe;
cleanup:
    return status;
}

void device_recipe_free(device_recipe *recipe)
{
    device_free(recipe->raw.chan_offset);
    device_free(recipe->raw.map_first);
    device_free(recipe->raw.map);
    device_free(recipe->raw.origins.antenna);
    *recipe = (device_recipe){0};
}

/* ---- rows ---- */

/* Rows of a file to a buffer, or from it when there is a writer, by as many threads
 * as the link needs. */
static tess_status move_rows(const tess_source_rows *rows, int64_t first, int64_t count,
                             int threads, tess_vis_writer *writer, char *buffer)
{
    tess_status status = TESS_OK;
    const int64_t bytes = rows->raw.row_bytes;
    const int movers = tess_device_movers(threads);
    const int most = writer ? tess_vis_raw_writers(writer, movers) : movers;
    int64_t parts = count * bytes / PART_BYTES;
    if (parts > most) parts = most;
    if (parts < 1) parts = 1;
#pragma omp parallel for num_threads((int)parts) schedule(static, 1)
    for (int64_t t = 0; t < parts; ++t) {
        const int64_t begin = count * t / parts, end = count * (t + 1) / parts;
        const int64_t row = rows->row_first + first + begin;
        const tess_status mine =
            writer ? tess_vis_write_raw(writer, rows->segment, row, end - begin,
                                        buffer + begin * bytes)
                   : tess_vis_read_raw(rows->reader, rows->segment, row, end - begin,
                                       buffer + begin * bytes);
        if (mine != TESS_OK) {
#pragma omp critical(tess_device_rows)
            status = mine;
        }
    }
    return status;
}

tess_status device_rows_upload(const tess_source_rows *rows, int64_t first,
                               int64_t *count, int threads, void *to, double *busy_s)
{
    tess_status status = TESS_OK;
    const int64_t most = tess_device_stage_bytes() / rows->raw.row_bytes;
    void *buffer;
    if (*count > most) *count = most;
    TESS_TRY(tess_device_stage(&buffer));
    const double start = tess_time_now();
    status = move_rows(rows, first, *count, threads, NULL, buffer);
    *busy_s += tess_time_now() - start;
    TESS_TRY(status);
    TESS_TRY(tess_device_upload_staged(to, buffer, *count * rows->raw.row_bytes));
cleanup:
    return status;
}

tess_status device_rows_write(const tess_source_rows *rows, const void *from,
                              int threads, tess_vis_writer *writer, double *busy_s)
{
    tess_status status = TESS_OK;
    const int64_t bytes = rows->raw.row_bytes;
    const int64_t at_once = tess_device_stage_bytes() / bytes;
    /* one buffer is filled by the link while the one before is written */
    for (int64_t first = -at_once; first < rows->num_rows; first += at_once) {
        const int64_t next = first + at_once, left = rows->num_rows - next;
        const int64_t here =
            rows->num_rows - first < at_once ? rows->num_rows - first : at_once;
        if (left > 0)
            TESS_TRY(tess_device_fetch((const char *)from + next * bytes,
                                       (left < at_once ? left : at_once) * bytes));
        if (first < 0) continue;
        void *buffer;
        TESS_TRY(tess_device_fetched(&buffer));
        const double start = tess_time_now();
        status = move_rows(rows, first, here, threads, writer, buffer);
        *busy_s += tess_time_now() - start;
        TESS_TRY(status);
    }
cleanup:
    return status;
}

tess_status device_rows_refuse(const tess_source *source, int64_t first_span,
                               int64_t row)
{
    tess_status status = TESS_OK;
    tess_vis_block block = {0};
    tess_source_rows rows;
    for (int64_t k = first_span; k < tess_source_num_spans(source); ++k) {
        tess_source_rows_of(source, k, &rows);
        if (row < rows.num_rows) {
            TESS_TRY(tess_vis_read(rows.reader, rows.segment, rows.row_first + row, 1,
                                   1, &block));
            break;
        }
        row -= rows.num_rows;
    }
    TESS_FAIL(TESS_ERR_INTERNAL, "a row decoded on the device has an unknown antenna");
cleanup:
    tess_vis_block_free(&block);
    return status;
}
