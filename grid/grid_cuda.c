/* Samples and brick sums of the cuda backend. tess_tile_cuda.h has the work itself. */
#include "tess_grid_cuda.h"

#include <math.h>
#include <string.h>

#include "correct_cuda.h"
#include "subtract_cuda.h"
#include "take_cuda.h"
#include "tess_device.h"
#include "tess_mem.h"
#include "tess_projection_cuda.h"
#include "tess_samples.h"

/* Samples may take this share of the device memory that images and planes leave. The
 * rest is for brick sums. */
static const double SAMPLES_SHARE = 0.6;

/* Rows that are on the device together. */
typedef struct sample_set {
    int64_t row_first, num_rows, vis_first, num_vis;
    bool there;
    tess_device_samples samples;
    tile_cuda_list list;
} sample_set;

/* What tess_brick_list.own points to. */
typedef struct cuda_samples {
    const tess_samples *host;
    bool with_data;     /* visibilities and weights are uploaded (imaging) */
    double *inv_lambda; /* device */
    int64_t num_sets;
    sample_set *set;
    bool borrowed;                     /* samples belong to someone else */
    bool derived;                      /* so does all but the visibilities; one set */
    int32_t *plane_first, *num_planes; /* [num_bricks] of the list: planes touched */
} cuda_samples;

/* ---- memory ---- */

static int64_t value_bytes(const tess_grid_plan *plan)
{
    return plan->is_double ? 16 : 8;
}

/* Computes the device bytes of samples while they are sorted. W-projection sorts as
 * many at a time as there is room for. */
static double bytes_of(const tess_grid_plan *plan, const tess_samples *samples,
                       int64_t num_rows, int64_t num_vis)
{
    const double sorted =
        plan->projection ? 0 : (double)tess_device_sort_bytes(num_rows, num_vis);
    return (samples->origin ? 44.0 : 40.0) * (double)num_rows +
           (double)num_vis * (double)tess_samples_vis_bytes(samples) + sorted;
}

/* Computes the device bytes that samples may take. Images, the rows of a plane and the
 * batches of its transform come first. */
static double samples_budget(const tess_grid_plan *plan)
{
    const double value = (double)value_bytes(plan);
    const double pixels = (double)plan->target.geom.nx * (double)plan->target.geom.ny;
    const double rows = (double)plan->nu * (double)plan->target.geom.ny;
    const double planes = plan->opts.num_pol * pixels * value / 2 + rows * value + 1e9;
    const double room = (double)tess_device_room() - planes;
    const double least = 0.1 * (double)tess_device_room();
    return SAMPLES_SHARE * (room > least ? room : least);
}

static void drop_set(sample_set *set)
{
    tess_device_samples *s = &set->samples;
    const void *const array[] = {s->uvw_m,  s->chan_base, s->num_chan, s->vis_first,
                                 s->origin, s->vis,       s->weight};
    tile_cuda_list_free(&set->list);
    for (size_t k = 0; k < sizeof array / sizeof *array; ++k) {
        void *memory;
        memcpy(&memory, &array[k], sizeof memory); /* const for the kernels alone */
        tess_device_free(memory);
    }
    *s = (tess_device_samples){0};
    set->list = (tile_cuda_list){0};
    set->there = false;
}

static void free_own(void *own)
{
    cuda_samples *samples = own;
    if (!samples) return;
    if (samples->derived && samples->set) {
        tess_device_free(samples->set->samples.vis);
        samples->set->samples = (tess_device_samples){0};
        samples->set->list = (tile_cuda_list){0};
    }
    for (int64_t k = 0; samples->set && k < samples->num_sets; ++k) {
        if (samples->borrowed) samples->set[k].samples = (tess_device_samples){0};
        drop_set(&samples->set[k]);
    }
    tess_device_free(samples->inv_lambda);
    tess_free(samples->set);
    tess_free(samples->plane_first);
    tess_free(samples->num_planes);
    tess_free(samples);
}

/* ---- upload ---- */

/* Computes the indices of the first samples of rows, counted from the first sample of
 * the set. */
static tess_status upload_vis_first(const tess_samples *samples, sample_set *set)
{
    tess_status status = TESS_OK;
    int64_t *first = tess_alloc(set->num_rows, sizeof *first);
    if (!first) TESS_FAIL(TESS_ERR_ALLOC, "rows");
    for (int64_t k = 0; k < set->num_rows; ++k)
        first[k] = samples->vis_first[set->row_first + k] - set->vis_first;
    TESS_TRY(tess_device_copy_of(first, set->num_rows * (int64_t)sizeof *first,
                                 "visibilities",
                                 (const void **)&set->samples.vis_first));
cleanup:
    tess_free(first);
    return status;
}

static tess_status upload_values(const cuda_samples *own, sample_set *set)
{
    tess_status status = TESS_OK;
    const tess_samples *host = own->host;
    const int64_t element = host->is_double ? 8 : 4;
    const int64_t vis = 2 * element * host->num_pol,
                  weight = element * host->num_weight;
    TESS_TRY(tess_device_alloc(set->num_vis * vis, "visibilities", &set->samples.vis));
    /* samples are predicted in several sets: each set leaves the values of the others
     * as they are */
    if (own->with_data || own->num_sets > 1)
        TESS_TRY(tess_device_upload(set->samples.vis,
                                    (const char *)host->vis + set->vis_first * vis,
                                    set->num_vis * vis));
    if (own->with_data)
        TESS_TRY(tess_device_copy_of(
            (const char *)host->weight + set->vis_first * weight, set->num_vis * weight,
            "visibilities", &set->samples.weight));
cleanup:
    return status;
}

static int32_t most_channels(const tess_samples *samples, const sample_set *set)
{
    int32_t most = 1;
    for (int64_t k = 0; k < set->num_rows; ++k) {
        const int32_t here = samples->num_chan[set->row_first + k];
        if (here > most) most = here;
    }
    return most;
}

/* Returns the bricks of a set. */
static tess_status sort_set(const tess_grid_plan *plan, bool skip_ignored,
                            sample_set *set)
{
    return plan->projection
               ? projection_cuda_list(plan, &set->samples, skip_ignored, &set->list)
               : tile_cuda_sort(plan, &set->samples, skip_ignored, tess_device_stream(),
                                &set->list);
}

/* Uploads a set and sorts it. */
static tess_status fetch_set(const tess_grid_plan *plan, const cuda_samples *own,
                             sample_set *set)
{
    tess_status status = TESS_OK;
    const tess_samples *host = own->host;
    const int64_t rows = set->num_rows, first = set->row_first;
    if (set->there) return TESS_OK;
    set->samples = (tess_device_samples){.is_double = host->is_double,
                                         .num_pol = host->num_pol,
                                         .num_weight = host->num_weight,
                                         .max_chan = most_channels(host, set),
                                         .num_rows = rows,
                                         .num_vis = set->num_vis,
                                         .inv_lambda = own->inv_lambda};
    TESS_TRY(tess_device_copy_of(host->uvw_m + 3 * first,
                                 rows * 3 * (int64_t)sizeof(double), "visibilities",
                                 (const void **)&set->samples.uvw_m));
    TESS_TRY(tess_device_copy_of(host->chan_base + first,
                                 rows * (int64_t)sizeof(int32_t), "visibilities",
                                 (const void **)&set->samples.chan_base));
    TESS_TRY(tess_device_copy_of(host->num_chan + first,
                                 rows * (int64_t)sizeof(int32_t), "visibilities",
                                 (const void **)&set->samples.num_chan));
    if (host->origin)
        TESS_TRY(tess_device_copy_of(host->origin + first,
                                     rows * (int64_t)sizeof(int32_t), "visibilities",
                                     (const void **)&set->samples.origin));
    TESS_TRY(upload_vis_first(host, set));
    TESS_TRY(upload_values(own, set));
    TESS_TRY(sort_set(plan, own->with_data, set));
    set->there = true;
cleanup:
    if (status != TESS_OK) drop_set(set);
    return status;
}

/* ---- load ---- */

/* Returns the number of samples that certainly fit into so many bytes. A row has at
 * least one sample. */
static int64_t most_of(const tess_grid_plan *plan, const tess_samples *like,
                       double bytes)
{
    return (int64_t)(bytes / bytes_of(plan, like, 1, 1));
}

static int64_t most_vis(const tess_grid_plan *plan, const tess_samples *like)
{
    return most_of(plan, like, samples_budget(plan));
}

/* Other needs are estimated. They leave at least this share of the memory to samples.
 */
static const double LEAST_SAMPLES_SHARE = 0.25;

static int64_t most_beside(const tess_grid_plan *plan, const tess_samples *like,
                           double bytes)
{
    const double room = (double)tess_device_room();
    return most_of(
        plan, like,
        fmax(fmin(SAMPLES_SHARE * room, room - bytes), LEAST_SAMPLES_SHARE * room));
}

/* Computes the number of sets into which the samples are cut, so that they fit into
 * memory. The sums of a brick that has samples in several sets depend on where the sets
 * are cut. Samples in the order of the data (exchange.h) may lie in another order than
 * their rows, and then no set has them side by side. */
static tess_status count_sets(const tess_grid_plan *plan, cuda_samples *own)
{
    tess_status status = TESS_OK;
    const tess_samples *host = own->host;
    const double bytes = bytes_of(plan, host, host->num_rows, host->num_vis);
    const double sets = bytes / samples_budget(plan);
    const bool whole = plan->opts.repeatable;
    own->num_sets = whole || sets <= 1 ? 1 : sets > 1e4 ? 10000 : (int64_t)sets + 1;
    if (own->num_sets > host->num_rows)
        own->num_sets = host->num_rows > 0 ? host->num_rows : 1;
    if (whole && bytes > (double)tess_device_room())
        TESS_FAIL(TESS_ERR_ALLOC,
                  "reproducible sums want the visibilities of a pass on the GPU at "
                  "once: %s, for which %s are left; use more ranks",
                  tess_mem_text(bytes), tess_mem_text((double)tess_device_room()));
cleanup:
    return status;
}

/* Cuts the rows into sets. */
static tess_status make_sets(const tess_grid_plan *plan, cuda_samples *own)
{
    tess_status status = TESS_OK;
    const tess_samples *host = own->host;
    TESS_TRY(count_sets(plan, own));
    own->set = tess_alloc_zero(own->num_sets, sizeof *own->set);
    if (!own->set) TESS_FAIL(TESS_ERR_ALLOC, "visibilities");
    if (own->num_sets == 1) { /* the samples may lie in another order than the rows */
        own->set->num_rows = host->num_rows;
        own->set->num_vis = host->num_vis;
        return TESS_OK;
    }
    for (int64_t k = 0; k < own->num_sets; ++k) {
        sample_set *set = &own->set[k];
        const int64_t end = host->num_rows * (k + 1) / own->num_sets;
        set->row_first = host->num_rows * k / own->num_sets;
        set->num_rows = end - set->row_first;
        if (set->num_rows == 0) continue;
        set->vis_first = host->vis_first[set->row_first];
        set->num_vis =
            host->vis_first[end - 1] + host->num_chan[end - 1] - set->vis_first;
    }
cleanup:
    return status;
}

static tess_status upload_channels(cuda_samples *own)
{
    tess_status status = TESS_OK;
    const tess_samples *host = own->host;
    int64_t channels = 1;
    for (int64_t k = 0; k < host->num_rows; ++k) {
        const int64_t end = host->chan_base[k] + host->num_chan[k];
        if (end > channels) channels = end;
    }
    if (host->num_rows == 0) return TESS_OK;
    TESS_TRY(tess_device_copy_of(host->inv_lambda, channels * (int64_t)sizeof(double),
                                 "visibilities", (const void **)&own->inv_lambda));
cleanup:
    return status;
}

/* The bricks of the sets that were looked at so far, and the planes that these bricks
 * touch. */
typedef struct brick_table {
    int64_t count;
    int64_t *key, *num_vis;
    int32_t *plane_first, *num_planes;
} brick_table;

static void table_free(brick_table *table)
{
    tess_free(table->key);
    tess_free(table->num_vis);
    tess_free(table->plane_first);
    tess_free(table->num_planes);
}

static tess_status table_create(int64_t most, brick_table *table)
{
    tess_status status = TESS_OK;
    *table = (brick_table){.key = tess_alloc(most, sizeof(int64_t)),
                           .num_vis = tess_alloc(most, sizeof(int64_t)),
                           .plane_first = tess_alloc(most, sizeof(int32_t)),
                           .num_planes = tess_alloc(most, sizeof(int32_t))};
    if (!table->key || !table->num_vis || !table->plane_first || !table->num_planes)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld bricks", (long long)most);
cleanup:
    return status;
}

/* Adds the bricks of one more set. */
static tess_status add_bricks(const tile_cuda_list *list, brick_table *table)
{
    tess_status status = TESS_OK;
    brick_table merged = {0};
    int64_t a = 0, b = 0, n = 0;
    TESS_TRY(table_create(table->count + list->num_bricks, &merged));
    while (a < table->count || b < list->num_bricks) {
        const int64_t ka = a < table->count ? table->key[a] : INT64_MAX;
        const int64_t kb = b < list->num_bricks ? list->key[b] : INT64_MAX;
        int32_t low = INT32_MAX, high = 0;
        merged.key[n] = ka < kb ? ka : kb;
        merged.num_vis[n] = 0;
        if (ka == merged.key[n]) {
            merged.num_vis[n] += table->num_vis[a];
            low = table->plane_first[a];
            high = low + table->num_planes[a++];
        }
        if (kb == merged.key[n]) {
            merged.num_vis[n] += list->brick_vis[b];
            if (list->plane_first[b] < low) low = list->plane_first[b];
            if (list->plane_first[b] + list->num_planes[b] > high)
                high = list->plane_first[b] + list->num_planes[b];
            ++b;
        }
        merged.plane_first[n] = low;
        merged.num_planes[n++] = high - low;
    }
    table_free(table);
    merged.count = n;
    *table = merged;
    merged = (brick_table){0};
cleanup:
    table_free(&merged);
    return status;
}

/* Looks at every set once. A single set stays on the device. */
static tess_status find_bricks(const tess_grid_plan *plan, cuda_samples *own,
                               brick_table *table)
{
    tess_status status = TESS_OK;
    TESS_TRY(table_create(0, table));
    for (int64_t k = 0; k < own->num_sets; ++k) {
        sample_set *set = &own->set[k];
        if (set->num_vis == 0) continue;
        TESS_TRY(fetch_set(plan, own, set));
        TESS_TRY(add_bricks(&set->list, table));
        if (own->num_sets > 1) drop_set(set);
    }
cleanup:
    return status;
}

/* Takes samples that are on the device already. They are one set, which is only sorted.
 */
static tess_status sort_resident(const tess_grid_plan *plan, cuda_samples *own)
{
    tess_status status = TESS_OK;
    own->borrowed = true;
    own->num_sets = 1;
    own->set = tess_alloc_zero(1, sizeof *own->set);
    if (!own->set) TESS_FAIL(TESS_ERR_ALLOC, "visibilities");
    own->set->samples = *(const tess_device_samples *)own->host->resident->samples;
    own->set->num_rows = own->set->samples.num_rows;
    own->set->num_vis = own->set->samples.num_vis;
    if (own->set->num_vis == 0) return TESS_OK;
    TESS_TRY(sort_set(plan, own->with_data, own->set));
    own->set->there = true;
cleanup:
    return status;
}

static tess_status cuda_load(const tess_grid_plan *plan, const tess_samples *samples,
                             bool skip_ignored, tess_brick_list *list)
{
    tess_status status = TESS_OK;
    brick_table table = {0};
    cuda_samples *own = tess_alloc_zero(1, sizeof *own);
    if (!own) TESS_FAIL(TESS_ERR_ALLOC, "visibilities");
    own->host = samples;
    own->with_data = skip_ignored;
    if (samples->resident) {
        TESS_TRY(sort_resident(plan, own));
    } else {
        TESS_TRY(upload_channels(own));
        TESS_TRY(make_sets(plan, own));
    }
    TESS_TRY(find_bricks(plan, own, &table));
    own->plane_first = table.plane_first;
    own->num_planes = table.num_planes;
    *list = (tess_brick_list){.num_bricks = table.count,
                              .key = table.key,
                              .num_vis = table.num_vis,
                              .own = own,
                              .release = free_own};
    own = NULL;
    table = (brick_table){0};
cleanup:
    table_free(&table);
    free_own(own);
    return status;
}

/* ---- samples that stay ---- */

static bool cuda_holds(const tess_brick_list *list)
{
    const cuda_samples *own = list->own;
    return own && own->num_sets == 1;
}

static tess_status copy_array(const void *from, int64_t bytes, void **to)
{
    tess_status status = TESS_OK;
    *to = tess_alloc(bytes, 1);
    if (!*to) TESS_FAIL(TESS_ERR_ALLOC, "list of bricks");
    if (bytes > 0) memcpy(*to, from, (size_t)bytes);
cleanup:
    return status;
}

static tess_status copy_bricks(const tess_brick_list *of, cuda_samples *own,
                               tess_brick_list *list)
{
    tess_status status = TESS_OK;
    const cuda_samples *from = of->own;
    const int64_t count = of->num_bricks;
    const int64_t wide = count * (int64_t)sizeof(int64_t);
    const int64_t narrow = count * (int64_t)sizeof(int32_t);
    list->num_bricks = count;
    TESS_TRY(copy_array(of->key, wide, (void **)&list->key));
    TESS_TRY(copy_array(of->num_vis, wide, (void **)&list->num_vis));
    TESS_TRY(copy_array(from->plane_first, narrow, (void **)&own->plane_first));
    TESS_TRY(copy_array(from->num_planes, narrow, (void **)&own->num_planes));
cleanup:
    return status;
}

static int64_t vis_bytes(const tess_device_samples *samples)
{
    return samples->num_vis * samples->num_pol * (samples->is_double ? 16 : 8);
}

static tess_status cuda_derive(const tess_brick_list *of, int num_pol,
                               tess_brick_list *derived)
{
    tess_status status = TESS_OK;
    const cuda_samples *from = of->own;
    tess_brick_list list = {.release = free_own};
    cuda_samples *own = tess_alloc_zero(1, sizeof *own);
    list.own = own;
    if (!own) TESS_FAIL(TESS_ERR_ALLOC, "visibilities");
    own->host = from->host;
    own->with_data = from->with_data;
    own->derived = true;
    own->num_sets = 1;
    own->set = tess_alloc_zero(1, sizeof *own->set);
    if (!own->set) TESS_FAIL(TESS_ERR_ALLOC, "visibilities");
    own->set[0] = from->set[0];
    own->set->samples.num_pol = num_pol;
    own->set->samples.vis = NULL;
    TESS_TRY(tess_device_alloc(vis_bytes(&own->set->samples), "visibilities",
                               &own->set->samples.vis));
    TESS_TRY(copy_bricks(of, own, &list));
    *derived = list;
    list = (tess_brick_list){0};
cleanup:
    tess_brick_list_free(&list);
    return status;
}

static tess_status cuda_subtract(const tess_subtraction *what,
                                 const tess_brick_list *from,
                                 const tess_brick_list *predicted,
                                 tess_brick_list *residual)
{
    const cuda_samples *a = from->own, *b = predicted->own, *c = residual->own;
    if (a->set->num_vis == 0) return TESS_OK;
    return subtract_cuda(what, &a->set->samples, &b->set->samples, &c->set->samples);
}

static tess_status cuda_take(const tess_take *what, const tess_brick_list *from,
                             tess_brick_list *to)
{
    const cuda_samples *a = from->own, *b = to->own;
    return take_cuda(what, &a->set->samples, &b->set->samples);
}

static tess_status cuda_set_source(const tess_geom_phase *phase, tess_brick_list *to)
{
    const cuda_samples *own = to->own;
    return source_cuda(phase, &own->set->samples);
}

/* ---- brick sums ---- */

/* Sums may take this share of the free memory. The rest is for lists of bricks, points
 * of w-projection, pieces of other ranks, and for what a pool rounds up. */
static const double SUMS_SHARE = 0.8;

/* Counts the complex values of one plane of a brick, of all polarisations. */
static int64_t layer_values(const tess_grid_plan *plan, int num_pol)
{
    return (int64_t)num_pol * tess_grid_brick_lines(plan) *
           tess_grid_brick_stride(plan);
}

int64_t cuda_sums_bytes(const tess_grid_plan *plan, const tess_brick_list *bricks,
                        int64_t first, int64_t end, int num_pol)
{
    const cuda_samples *own = bricks->own;
    int64_t layers = 0;
    for (int64_t b = first; b < end; ++b)
        layers += own->num_planes[b];
    return layers * layer_values(plan, num_pol) * value_bytes(plan);
}

int64_t cuda_sums_room(const tess_grid_plan *plan, const tess_brick_list *bricks)
{
    const cuda_samples *own = bricks->own;
    double set_bytes = 0; /* of what comes and goes */
    for (int64_t k = 0; own->num_sets > 1 && k < own->num_sets; ++k)
        set_bytes = fmax(set_bytes, bytes_of(plan, own->host, own->set[k].num_rows,
                                             own->set[k].num_vis));
    return (int64_t)(SUMS_SHARE * ((double)tess_device_room() - set_bytes));
}

tess_status cuda_lay_out(const tess_grid_plan *plan, const tess_brick_list *bricks,
                         int64_t first, int64_t end, bool zeroed, tess_brick_sums *sums)
{
    tess_status status = TESS_OK;
    const cuda_samples *own = bricks->own;
    const int64_t values = layer_values(plan, sums->num_pol);
    sums->release = tess_device_free;
    sums->num_bricks = end - first;
    sums->brick = tess_alloc_zero(sums->num_bricks, sizeof *sums->brick);
    if (!sums->brick)
        TESS_FAIL(TESS_ERR_ALLOC, "list of %lld bricks", (long long)sums->num_bricks);
    sums->num_values = 0;
    for (int64_t b = first; b < end; ++b) {
        sums->brick[b - first] = (tess_brick_sum){.key = bricks->key[b],
                                                  .plane_first = own->plane_first[b],
                                                  .num_planes = own->num_planes[b],
                                                  .touched_first = own->plane_first[b],
                                                  .touched_planes = own->num_planes[b],
                                                  .offset = sums->num_values};
        sums->num_values += own->num_planes[b] * values;
    }
    const int64_t bytes = sums->num_values * value_bytes(plan);
    TESS_TRY(tess_device_alloc(bytes, "brick sums", &sums->data));
    if (zeroed) TESS_TRY(tess_device_zero(sums->data, bytes));
cleanup:
    return status;
}

/* Finds the first of the ascending keys that is not below `key`. */
static int64_t lower_bound(const int64_t *keys, int64_t count, int64_t key)
{
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Lays out the sums of the bricks [first, end) of a set as the device needs them. */
static tess_status upload_bricks(const tile_cuda_list *list, int64_t first, int64_t end,
                                 const tess_brick_sums *sums,
                                 const tess_brick_sum **out)
{
    tess_status status = TESS_OK;
    tess_brick_sum *brick = tess_alloc(end - first, sizeof *brick);
    if (!brick) TESS_FAIL(TESS_ERR_ALLOC, "list of bricks");
    for (int64_t b = first, k = 0; b < end; ++b) {
        while (sums->brick[k].key < list->key[b])
            ++k;
        brick[b - first] = sums->brick[k];
    }
    TESS_TRY(tess_device_copy_of(brick, (end - first) * (int64_t)sizeof *brick,
                                 "visibilities", (const void **)out));
cleanup:
    tess_free(brick);
    return status;
}

static tess_status visit_set(const tess_grid_plan *plan, const sample_set *set,
                             const tess_brick_sums *sums, bool psf,
                             cuda_part_function *function)
{
    tess_status status = TESS_OK;
    const tile_cuda_list *list = &set->list;
    tile_cuda_sums target = {
        .data = sums->data, .num_pol = sums->num_pol, .num_values = sums->num_values};
    cuda_part part = {.samples = &set->samples, .list = list, .sums = &target};
    void *bricks = NULL;
    part.first = lower_bound(list->key, list->num_bricks, sums->brick[0].key);
    part.end = lower_bound(list->key, list->num_bricks,
                           sums->brick[sums->num_bricks - 1].key + 1);
    if (part.first == part.end) return TESS_OK;
    TESS_TRY(upload_bricks(list, part.first, part.end, sums, &target.brick));
    memcpy(&bricks, &target.brick, sizeof bricks);
    TESS_TRY(function(plan, &part, psf));
cleanup:
    tess_device_free(bricks);
    return status;
}

static tess_status download_vis(const tess_samples *samples, const sample_set *set)
{
    const int64_t vis = (samples->is_double ? 16 : 8) * samples->num_pol;
    return tess_device_download((char *)samples->vis + set->vis_first * vis,
                                set->samples.vis, set->num_vis * vis);
}

tess_status cuda_each_set(const tess_grid_plan *plan, const tess_samples *samples,
                          const tess_brick_list *bricks, const tess_brick_sums *sums,
                          bool psf, bool predicts, cuda_part_function *function)
{
    tess_status status = TESS_OK;
    const cuda_samples *own = bricks->own;
    for (int64_t k = 0; k < own->num_sets && sums->num_bricks > 0; ++k) {
        sample_set *set = &own->set[k];
        if (set->num_vis == 0) continue;
        TESS_TRY(fetch_set(plan, own, set));
        TESS_TRY(visit_set(plan, set, sums, psf, function));
        if (own->num_sets == 1) continue;
        if (predicts) TESS_TRY(download_vis(samples, set));
        drop_set(set);
    }
    TESS_TRY(tess_device_wait());
cleanup:
    return status;
}

tess_status cuda_fetch_vis(tess_samples *samples, const tess_brick_list *bricks)
{
    const cuda_samples *own = bricks->own;
    if (samples->resident || own->derived || own->num_sets > 1 || !own->set[0].there)
        return TESS_OK;
    return download_vis(samples, &own->set[0]);
}

/* ---- the table ---- */

static tess_status cuda_begin(const tess_grid_plan *plan, const tess_samples *samples,
                              const tess_brick_list *bricks, int64_t first, int64_t end,
                              tess_brick_sums *sums)
{
    (void)samples;
    return cuda_lay_out(plan, bricks, first, end, true, sums);
}

static tess_status grid_part(const tess_grid_plan *plan, const cuda_part *part,
                             bool psf)
{
    if (plan->projection) return projection_cuda_grid(plan, part, psf);
    return tile_cuda_grid(plan, part, psf, tess_device_stream());
}

static tess_status cuda_grid(const tess_grid_plan *plan, const tess_samples *samples,
                             const tess_brick_list *bricks, int64_t first, bool psf,
                             tess_brick_sums *sums, tess_grid_report *report)
{
    tess_status status = TESS_OK;
    double num_vis = 0;
    report->busy_share = 1;
    TESS_TRY(cuda_each_set(plan, samples, bricks, sums, psf, false, grid_part));
    for (int64_t b = 0; b < sums->num_bricks; ++b)
        num_vis += (double)bricks->num_vis[first + b];
    if (report->progress) tess_progress_add(report->progress, num_vis);
cleanup:
    return status;
}

const tess_grid_ops tess_grid_ops_cuda = {.load = cuda_load,
                                          .most_vis = most_vis,
                                          .most_beside = most_beside,
                                          .holds = cuda_holds,
                                          .derive = cuda_derive,
                                          .subtract = cuda_subtract,
                                          .take = cuda_take,
                                          .set_source = cuda_set_source,
                                          .begin = cuda_begin,
                                          .grid = cuda_grid,
                                          .correct = correct_cuda};
