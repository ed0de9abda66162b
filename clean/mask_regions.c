/* Finds the regions of a mask over ranks. A rank joins runs of pixels to regions of its
 * rows, as others do with labels (Rosenfeld & Pfaltz 1966, J. ACM 13, 471). Regions
 * that touch its first or last row may go on at its neighbours: all ranks get the runs
 * of these rows, and join them in the same way. */
#include "mask_regions.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tess_mem.h"

/* A part of a region. `parent` is the number of another part of the same region, or of
 * the part itself, which has the region's number of pixels then. */
typedef struct part {
    int64_t parent, pixels;
} part;

/* Pixels [begin, end) of a row. */
typedef struct run {
    part part; /* the first member, as parts_of() expects */
    int64_t row, begin, end;
    bool crosses; /* of the region's first run: it touches a border */
} run;

/* A run of a first or last row, as it is sent. */
typedef struct edge_run {
    int64_t begin, end, region, pixels; /* region: a number on its rank */
} edge_run;

/* How many runs of first and last row a rank sends. */
typedef struct edge_head {
    int64_t num_rows, num_first, num_last;
} edge_head;

/* The same run among those of all ranks. */
typedef struct edge {
    part part; /* the first member; pixels of the rank's part of the region, then of all
                  of it */
    int64_t rank;
    edge_run run;
} edge;

typedef struct regions {
    tess_comm *comm;
    const mask_rows *mask;
    run *runs;
    int64_t num_runs, capacity;
    edge *edges; /* first and last rows of the ranks, one rank after the other */
    int64_t num_edges;
    int64_t own_edge;    /* this rank's first */
    int64_t num_crossed; /* regions with edges, and those of them that are too small */
    int64_t num_small;
} regions;

/* ---- parts that join ---- */

/* An array of structures that begin with a part. */
typedef struct parts {
    void *first;
    size_t stride; /* bytes */
} parts;

static part *part_at(parts of, int64_t k)
{
    return (part *)(void *)((char *)of.first + (size_t)k * of.stride);
}

static int64_t root_of(parts of, int64_t k)
{
    while (part_at(of, k)->parent != k)
        k = part_at(of, k)->parent = part_at(of, part_at(of, k)->parent)->parent;
    return k;
}

static void join(parts of, int64_t a, int64_t b)
{
    a = root_of(of, a);
    b = root_of(of, b);
    if (a == b) return;
    const int64_t low = a < b ? a : b, high = a < b ? b : a;
    part_at(of, high)->parent = low;
    part_at(of, low)->pixels += part_at(of, high)->pixels;
}

static parts runs_of(const regions *all)
{
    return (parts){all->runs, sizeof *all->runs};
}

static parts edges_of(const regions *all)
{
    return (parts){all->edges, sizeof *all->edges};
}

/* ---- this rank's rows ---- */

static tess_status add_run(regions *all, int64_t row, int64_t begin, int64_t end)
{
    tess_status status = TESS_OK;
    void *array = all->runs;
    const int64_t k = all->num_runs;
    if (tess_grow(&array, &all->capacity, k + 1, sizeof *all->runs))
        TESS_FAIL(TESS_ERR_ALLOC, "regions of a mask");
    all->runs = array;
    all->runs[all->num_runs++] = (run){{k, end - begin}, row, begin, end, false};
cleanup:
    return status;
}

static tess_status find_runs(regions *all)
{
    tess_status status = TESS_OK;
    const int64_t nx = all->mask->nx;
    for (int64_t row = 0; row < all->mask->num_rows; ++row) {
        const uint8_t *pixel = all->mask->pixel + row * nx;
        for (int64_t x = 0; x < nx; ++x) {
            if (!pixel[x]) continue;
            const int64_t begin = x;
            while (x < nx && pixel[x])
                ++x;
            TESS_TRY(add_run(all, row, begin, x));
        }
    }
cleanup:
    return status;
}

static void join_rows(regions *all)
{
    int64_t above = 0;
    for (int64_t k = 0; k < all->num_runs; ++k) {
        run *runs = all->runs;
        while (runs[above].row < runs[k].row - 1 ||
               (runs[above].row == runs[k].row - 1 && runs[above].end <= runs[k].begin))
            ++above;
        for (int64_t a = above;
             runs[a].row == runs[k].row - 1 && runs[a].begin < runs[k].end; ++a)
            join(runs_of(all), a, k);
    }
}

/* ---- rows at borders ---- */

/* Copies the runs of a row; returns their number. `to` may be NULL. */
static int64_t copy_row(regions *all, int64_t row, edge_run *to)
{
    int64_t count = 0;
    for (int64_t k = 0; k < all->num_runs; ++k) {
        const run *r = &all->runs[k];
        if (r->row != row) continue;
        const int64_t root = root_of(runs_of(all), k);
        if (to)
            to[count] = (edge_run){r->begin, r->end, root, all->runs[root].part.pixels};
        ++count;
    }
    return count;
}

/* This rank's message. */
static tess_status pack_edges(regions *all, char **message, int64_t *bytes)
{
    tess_status status = TESS_OK;
    const int64_t last = all->mask->num_rows - 1;
    const edge_head head = {all->mask->num_rows, copy_row(all, 0, NULL),
                            copy_row(all, last, NULL)};
    *bytes = (int64_t)sizeof head +
             (head.num_first + head.num_last) * (int64_t)sizeof(edge_run);
    *message = tess_alloc(*bytes, 1);
    if (!*message) TESS_FAIL(TESS_ERR_ALLOC, "regions of a mask");
    memcpy(*message, &head, sizeof head);
    edge_run *to = (edge_run *)(void *)(*message + sizeof head);
    copy_row(all, 0, to);
    copy_row(all, last, to + head.num_first);
cleanup:
    return status;
}

/* Joins runs [a, a_end) of a row with those [b, b_end) of the row below. */
static void join_neighbours(const regions *all, int64_t a, int64_t a_end, int64_t b,
                            int64_t b_end)
{
    while (a < a_end && b < b_end) {
        const edge_run *x = &all->edges[a].run, *y = &all->edges[b].run;
        if (x->begin < y->end && y->begin < x->end) join(edges_of(all), a, b);
        if (x->end < y->end)
            ++a;
        else
            ++b;
    }
}

static int compare_edges(const void *a, const void *b)
{
    const edge *x = *(edge *const *)a, *y = *(edge *const *)b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    if (x->run.region != y->run.region) return x->run.region < y->run.region ? -1 : 1;
    return (x > y) - (x < y);
}

/* Joins the edges of each rank that are of one region there, whose pixels count once.
 */
static tess_status join_own(regions *all)
{
    tess_status status = TESS_OK;
    edge **sorted = tess_alloc(all->num_edges, sizeof *sorted);
    if (!sorted) TESS_FAIL(TESS_ERR_ALLOC, "regions of a mask");
    for (int64_t k = 0; k < all->num_edges; ++k)
        sorted[k] = &all->edges[k];
    qsort((void *)sorted, (size_t)all->num_edges, sizeof *sorted, compare_edges);
    for (int64_t k = 0; k < all->num_edges; ++k) {
        const edge *before = k > 0 ? sorted[k - 1] : NULL;
        edge *now = sorted[k];
        const bool same = before && before->rank == now->rank &&
                          before->run.region == now->run.region;
        now->part.pixels = same ? 0 : now->run.pixels;
    }
    for (int64_t k = 1; k < all->num_edges; ++k)
        if (sorted[k - 1]->rank == sorted[k]->rank &&
            sorted[k - 1]->run.region == sorted[k]->run.region)
            join(edges_of(all), sorted[k - 1] - all->edges, sorted[k] - all->edges);
cleanup:
    tess_free((void *)sorted);
    return status;
}

/* Reads the messages of all ranks: the heads, then the edges. */
static tess_status unpack_edges(regions *all, const char *from, const int64_t *bytes,
                                edge_head *heads)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(all->comm);
    int64_t count = 0, at = 0;
    for (int r = 0; r < size; at += bytes[r], ++r) {
        memcpy(&heads[r], from + at, sizeof *heads);
        count += heads[r].num_first + heads[r].num_last;
    }
    all->edges = tess_alloc_zero(count, sizeof *all->edges);
    if (!all->edges) TESS_FAIL(TESS_ERR_ALLOC, "regions of a mask");
    for (int r = 0; r < size; from += bytes[r], ++r) {
        const char *runs = from + sizeof *heads;
        if (r == tess_comm_rank(all->comm)) all->own_edge = all->num_edges;
        for (int64_t k = 0; k < heads[r].num_first + heads[r].num_last; ++k) {
            edge *to = &all->edges[all->num_edges];
            to->rank = r;
            to->part.parent = all->num_edges++;
            memcpy(&to->run, runs + k * (int64_t)sizeof to->run, sizeof to->run);
        }
    }
cleanup:
    return status;
}

/* Joins the last row of each rank with the first row of the next rank that has one. */
static void join_ranks(regions *all, const edge_head *heads)
{
    int64_t at = 0, last = 0, num_last = 0;
    for (int r = 0; r < tess_comm_size(all->comm); ++r) {
        if (heads[r].num_rows == 0) continue;
        join_neighbours(all, last, last + num_last, at, at + heads[r].num_first);
        last = at + heads[r].num_first;
        num_last = heads[r].num_last;
        at = last + num_last;
    }
}

/* Counts the regions that have edges. */
static void count_crossed(regions *all, double least)
{
    for (int64_t k = 0; k < all->num_edges; ++k)
        if (all->edges[k].part.parent == k) {
            ++all->num_crossed;
            all->num_small += (double)all->edges[k].part.pixels < least;
        }
}

/* Finds the regions of the rows at borders. Collective. */
static tess_status cross_borders(regions *all, double least, int64_t *num_own)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(all->comm);
    char *message = NULL;
    void *received = NULL;
    int64_t bytes = 0, *each = tess_alloc_zero(size, sizeof *each);
    edge_head *heads = tess_alloc_zero(size, sizeof *heads);
    status = each && heads ? pack_edges(all, &message, &bytes) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(all->comm, status));
    TESS_TRY(tess_comm_allgatherv(all->comm, message, bytes, &received, each));
    status = unpack_edges(all, received, each, heads);
    if (status == TESS_OK) status = join_own(all);
    TESS_TRY(tess_comm_agree(all->comm, status));
    join_ranks(all, heads);
    const edge_head *own = &heads[tess_comm_rank(all->comm)];
    *num_own = own->num_first + own->num_last;
    count_crossed(all, least);
cleanup:
    tess_free(message);
    tess_free(received);
    tess_free(each);
    tess_free(heads);
    return status;
}

/* ---- pruning ---- */

/* Gives the regions of this rank that go on elsewhere all of their pixels. */
static void take_crossed(regions *all, int64_t num_own)
{
    for (int64_t k = all->own_edge; k < all->own_edge + num_own; ++k) {
        run *root = &all->runs[all->edges[k].run.region];
        root->part.pixels = all->edges[root_of(edges_of(all), k)].part.pixels;
        root->crosses = true;
    }
}

/* Clears what is too small; counts[] are this rank's regions that no other has, and
 * those of them that are too small. */
static void clear_small(regions *all, double least, int64_t counts[2])
{
    const mask_rows *mask = all->mask;
    for (int64_t k = 0; k < all->num_runs; ++k) {
        const run *r = &all->runs[k], *root = &all->runs[root_of(runs_of(all), k)];
        const bool is_small = (double)root->part.pixels < least;
        if (is_small)
            memset(mask->pixel + r->row * mask->nx + r->begin, 0,
                   (size_t)(r->end - r->begin));
        counts[0] += r == root && !root->crosses;
        counts[1] += r == root && !root->crosses && is_small;
    }
}

tess_status mask_prune(tess_comm *comm, const mask_rows *mask, double least,
                       int64_t *num_regions, int64_t *pruned)
{
    tess_status status = TESS_OK;
    regions all = {.comm = comm, .mask = mask};
    int64_t counts[2] = {0, 0}, num_own = 0;
    status = find_runs(&all);
    TESS_TRY(tess_comm_agree(comm, status));
    join_rows(&all);
    TESS_TRY(cross_borders(&all, least, &num_own));
    take_crossed(&all, num_own);
    clear_small(&all, least, counts);
    TESS_TRY(tess_comm_allreduce_i64(comm, counts, 2, TESS_SUM));
    *num_regions = counts[0] + all.num_crossed;
    *pruned = counts[1] + all.num_small;
cleanup:
    tess_free(all.runs);
    tess_free(all.edges);
    return status;
}

/* ---- growing ---- */

/* Pixels that were added last, and columns that go to the rank before and behind. */
typedef struct front {
    int64_t *pixel, num, capacity;
} front;

typedef struct growing {
    tess_comm *comm;
    const mask_rows *mask;
    const uint8_t *within;
    front now, next, up, down; /* up: to the rank of the rows before */
    int before, behind;        /* these ranks; -1: none */
    int64_t *send, *receive;   /* [ranks] bytes */
} growing;

static tess_status push(front *to, int64_t pixel)
{
    tess_status status = TESS_OK;
    void *array = to->pixel;
    if (tess_grow(&array, &to->capacity, to->num + 1, sizeof *to->pixel))
        TESS_FAIL(TESS_ERR_ALLOC, "pixels of a mask");
    to->pixel = array;
    to->pixel[to->num++] = pixel;
cleanup:
    return status;
}

/* Adds a pixel, if it may be in the mask and is not. */
static tess_status reach(growing *g, int64_t pixel)
{
    if (g->mask->pixel[pixel] || !g->within[pixel]) return TESS_OK;
    g->mask->pixel[pixel] = 1;
    return push(&g->next, pixel);
}

static tess_status reach_neighbours(growing *g, int64_t pixel)
{
    tess_status status = TESS_OK;
    const int64_t nx = g->mask->nx, row = pixel / nx, x = pixel % nx;
    if (x > 0) TESS_TRY(reach(g, pixel - 1));
    if (x + 1 < nx) TESS_TRY(reach(g, pixel + 1));
    TESS_TRY(row > 0 ? reach(g, pixel - nx) : push(&g->up, x));
    TESS_TRY(row + 1 < g->mask->num_rows ? reach(g, pixel + nx) : push(&g->down, x));
cleanup:
    return status;
}

/* Sends columns to neighbours, and reaches those that come. Collective. */
static tess_status exchange(growing *g)
{
    tess_status status = TESS_OK;
    const int64_t up = g->before < 0 ? 0 : g->up.num,
                  down = g->behind < 0 ? 0 : g->down.num;
    void *received = NULL;
    int64_t *columns = tess_alloc(up + down, sizeof *columns);
    TESS_TRY(tess_comm_agree(g->comm, columns ? TESS_OK : TESS_ERR_ALLOC));
    if (up > 0) memcpy(columns, g->up.pixel, (size_t)up * sizeof *columns);
    if (down > 0) memcpy(columns + up, g->down.pixel, (size_t)down * sizeof *columns);
    if (g->before >= 0) g->send[g->before] = up * (int64_t)sizeof *columns;
    if (g->behind >= 0) g->send[g->behind] = down * (int64_t)sizeof *columns;
    TESS_TRY(tess_comm_alltoallv(g->comm, columns, g->send, &received, g->receive));
    const int64_t *from = received, last = (g->mask->num_rows - 1) * g->mask->nx;
    for (int r = 0; r < tess_comm_size(g->comm) && status == TESS_OK; ++r)
        for (int64_t k = g->receive[r] / (int64_t)sizeof *from; k > 0; --k)
            if (status == TESS_OK)
                status = reach(g, r == g->before ? *from++ : last + *from++);
cleanup:
    tess_free(columns);
    tess_free(received);
    return status;
}

/* One step; `*any`: some rank has added pixels. Collective. */
static tess_status grow_once(growing *g, bool *any)
{
    tess_status status = TESS_OK;
    g->next.num = g->up.num = g->down.num = 0;
    for (int64_t k = 0; k < g->now.num && status == TESS_OK; ++k)
        status = reach_neighbours(g, g->now.pixel[k]);
    TESS_TRY(tess_comm_agree(g->comm, status));
    if (tess_comm_size(g->comm) > 1) status = exchange(g);
    TESS_TRY(tess_comm_agree(g->comm, status));
    const front now = g->now;
    g->now = g->next;
    g->next = now;
    int64_t added = g->now.num;
    TESS_TRY(tess_comm_allreduce_i64(g->comm, &added, 1, TESS_MAX));
    *any = added > 0;
cleanup:
    return status;
}

/* Finds the ranks of the rows before and behind. Collective. */
static tess_status find_neighbours(growing *g)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(g->comm), rank = tess_comm_rank(g->comm);
    int64_t *rows = tess_alloc(size, sizeof *rows);
    g->send = tess_alloc_zero(size, sizeof *g->send);
    g->receive = tess_alloc_zero(size, sizeof *g->receive);
    TESS_TRY(tess_comm_agree(g->comm,
                             rows && g->send && g->receive ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_allgather(g->comm, &g->mask->num_rows, sizeof *rows, rows));
    g->before = g->behind = -1;
    for (int r = 0; r < rank; ++r)
        if (rows[r] > 0) g->before = r;
    for (int r = size - 1; r > rank; --r)
        if (rows[r] > 0) g->behind = r;
cleanup:
    tess_free(rows);
    return status;
}

/* The first pixels: those of the mask that may stay. */
static tess_status begin(growing *g)
{
    tess_status status = TESS_OK;
    const int64_t count = g->mask->num_rows * g->mask->nx;
    for (int64_t k = 0; k < count; ++k) {
        g->mask->pixel[k] = g->mask->pixel[k] && g->within[k];
        if (g->mask->pixel[k]) TESS_TRY(push(&g->now, k));
    }
cleanup:
    return status;
}

tess_status mask_grow(tess_comm *comm, const mask_rows *mask, const uint8_t *within,
                      int64_t steps)
{
    tess_status status = TESS_OK;
    growing g = {.comm = comm, .mask = mask, .within = within};
    bool any = true;
    TESS_TRY(find_neighbours(&g));
    TESS_TRY(tess_comm_agree(comm, begin(&g)));
    for (int64_t k = 0; k < steps && any; ++k)
        TESS_TRY(grow_once(&g, &any));
cleanup:
    tess_free(g.now.pixel);
    tess_free(g.next.pixel);
    tess_free(g.up.pixel);
    tess_free(g.down.pixel);
    tess_free(g.send);
    tess_free(g.receive);
    return status;
}
