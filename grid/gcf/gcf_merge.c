/* Compresses visibilities: those that fall on the same offset of the same cell, plane
 * and sign of w meet the same taps. So their sum is gridded in their place, or the
 * value that is read off is that of all. Studies of tiled gridding compress their input
 * in this way before they count visibilities. */
#include <string.h>

#include "gcf_merge.h"
#include "gcf_order.h"
#include "tess_mem.h"

/* The values that points must share to be merged. */
typedef struct merge_key {
    int32_t u, v;
    uint16_t plane;
    uint8_t offset_u, offset_v, flips;
} merge_key;

static merge_key key_of(const gcf_place *place)
{
    return (merge_key){
        .u = place->u,
        .v = place->v,
        .plane = place->plane,
        .offset_u = place->offset_u,
        .offset_v = place->offset_v,
        .flips = (uint8_t)(place->flip_u | place->flip_v << 1 | place->conjugate << 2)};
}

static bool same(const merge_key *a, const merge_key *b)
{
    return a->u == b->u && a->v == b->v && a->plane == b->plane &&
           a->offset_u == b->offset_u && a->offset_v == b->offset_v &&
           a->flips == b->flips;
}

/* Mixes bits by the finaliser of MurmurHash3 (Steele, Lea & Flood 2014,
 * doi:10.1145/2660193.2660195), so that neighbours in u and v end far apart. */
static uint64_t hash_of(const merge_key *key)
{
    uint64_t h = (uint64_t)(uint32_t)key->u << 32 | (uint32_t)key->v;
    h ^= ((uint64_t)key->plane << 24 | (uint64_t)key->offset_u << 16 |
          (uint64_t)key->offset_v << 8 | key->flips) *
         UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ h >> 33;
}

/* A table of groups by key. It is at most half full, and closed by linear probing. */
typedef struct group_table {
    merge_key *key; /* [groups] */
    int64_t *slot;  /* [mask + 1] group, or −1 */
    uint64_t mask;
    int64_t count;
} group_table;

static int64_t group_of(group_table *table, const merge_key *key)
{
    for (uint64_t at = hash_of(key) & table->mask;; at = (at + 1) & table->mask) {
        const int64_t group = table->slot[at];
        if (group >= 0 && !same(&table->key[group], key)) continue;
        if (group >= 0) return group;
        table->slot[at] = table->count;
        table->key[table->count] = *key;
        return table->count++;
    }
}

void gcf_merged_free(gcf_merged *merged)
{
    tess_free(merged->group);
    tess_free(merged->coordinates);
    tess_free(merged->points.vis);
    *merged = (gcf_merged){0};
}

/* Adds the values of a point, times one or zero, to those of its group. */
static void add_values(const gcf_merged *merged, bool is_double, const void *vis,
                       int64_t point, int64_t group)
{
    const int64_t values = 2 * merged->points.num_pol;
    for (int64_t k = 0; k < values; ++k)
        if (is_double)
            ((double *)merged->points.vis)[group * values + k] +=
                ((const double *)vis)[point * values + k];
        else
            ((float *)merged->points.vis)[group * values + k] +=
                ((const float *)vis)[point * values + k];
}

/* Puts points into groups, in the order in which the groups are met; −1: a point is
 * left out. */
static tess_status find_groups(const tess_gcf *gcf, const tess_gcf_points *points,
                               const tess_gcf_cells *cells, gcf_merged *merged)
{
    tess_status status = TESS_OK;
    group_table table = {0};
    uint64_t slots = 16;
    while (slots < 2 * (uint64_t)points->count)
        slots *= 2;
    table.mask = slots - 1;
    table.slot = tess_alloc((int64_t)slots, sizeof *table.slot);
    table.key = tess_alloc(points->count, sizeof *table.key);
    if (!table.slot || !table.key)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to merge %lld points",
                  (long long)points->count);
    memset(table.slot, 0xff, (size_t)slots * sizeof *table.slot);
    for (int64_t k = 0; k < points->count; ++k) {
        gcf_place place;
        merged->group[k] = -1;
        if (!gcf_place_point(gcf, points, k, cells->nu, cells->nv, &place)) {
            ++merged->left_out;
            continue;
        }
        const int64_t support = gcf->plane[place.plane].support;
        merged->all_cells += support * support;
        const merge_key key = key_of(&place);
        const int64_t known = table.count, group = group_of(&table, &key);
        merged->group[k] = group;
        if (table.count == known) continue;
        merged->coordinates[3 * group] = points->u[k];
        merged->coordinates[3 * group + 1] = points->v[k];
        merged->coordinates[3 * group + 2] = points->w ? points->w[k] : 0;
    }
    merged->points.count = table.count;
cleanup:
    tess_free(table.slot);
    tess_free(table.key);
    return status;
}

/* Takes the coordinates apart into arrays, as points have them. */
static tess_status split_coordinates(gcf_merged *merged)
{
    tess_status status = TESS_OK;
    const int64_t count = merged->points.count;
    double *apart = tess_alloc(3 * count, sizeof *apart);
    if (!apart) TESS_FAIL(TESS_ERR_ALLOC, "no memory to merge points");
    for (int64_t k = 0; k < 3 * count; ++k)
        apart[k % 3 * count + k / 3] = merged->coordinates[k];
    tess_free(merged->coordinates);
    merged->coordinates = apart;
    merged->points.u = apart;
    merged->points.v = apart + count;
    merged->points.w = apart + 2 * count;
cleanup:
    return status;
}

tess_status gcf_merge(const tess_gcf *gcf, const tess_gcf_points *points,
                      const tess_gcf_cells *cells, bool degrid, gcf_merged *merged)
{
    tess_status status = TESS_OK;
    *merged = (gcf_merged){.points = {.num_pol = points->num_pol}};
    merged->group = tess_alloc(points->count, sizeof *merged->group);
    merged->coordinates = tess_alloc(3 * points->count, sizeof *merged->coordinates);
    if (!merged->group || !merged->coordinates)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to merge %lld points",
                  (long long)points->count);
    TESS_TRY(find_groups(gcf, points, cells, merged));
    TESS_TRY(split_coordinates(merged));
    merged->points.vis =
        tess_alloc_zero(merged->points.count * points->num_pol, gcf_value_bytes(gcf));
    if (!merged->points.vis) TESS_FAIL(TESS_ERR_ALLOC, "no memory to merge points");
    for (int64_t k = 0; k < points->count && !degrid; ++k)
        if (merged->group[k] >= 0)
            add_values(merged, gcf->layout.is_double, points->vis, k, merged->group[k]);
cleanup:
    if (status != TESS_OK) gcf_merged_free(merged);
    return status;
}

void gcf_unmerge(const tess_gcf *gcf, const gcf_merged *merged, int64_t count,
                 void *vis)
{
    const size_t bytes = gcf_value_bytes(gcf) * (size_t)merged->points.num_pol;
    for (int64_t k = 0; k < count; ++k) {
        char *to = (char *)vis + (size_t)k * bytes;
        if (merged->group[k] < 0)
            memset(to, 0, bytes);
        else
            memcpy(to,
                   (const char *)merged->points.vis + (size_t)merged->group[k] * bytes,
                   bytes);
    }
}
