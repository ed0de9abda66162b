/** @file tess_tile.h
 *  The innermost loops on a processor: visibilities of one brick to and from its tile
 *  buffer, and how the work is cut into pieces that threads share. The gridder and the
 *  degridder call the same loops. They are compiled from one source (tile_isa.c) for
 * each instruction set; tile_table_best() picks one at run time.
 */
#ifndef TESS_TILE_H
#define TESS_TILE_H

#include "tess_grid.h"

enum { TILE_HALF_DEGREE = TESS_MAX_DEGREE / 2 + 1 };

/** The kernel's tap polynomials as the loops want them, in y = 2 × fraction − 1. With
 *  j < (W + 1)/2, tap j is E_j(y²) + y O_j(y²) and tap W − 1 − j is E_j(y²) − y
 *  O_j(y²); `pairs` holds every tap twice, for (re, im). */
typedef struct tile_taps {
    int degree, half_terms; /**< half_terms: coefficients of E, and of O */
    struct {
        _Alignas(64) float even[TILE_HALF_DEGREE][TESS_MAX_SUPPORT / 2];
        float odd[TILE_HALF_DEGREE][TESS_MAX_SUPPORT / 2];
        float pairs[TESS_MAX_DEGREE + 1][2 * TESS_MAX_SUPPORT];
    } single;
    struct {
        _Alignas(64) double even[TILE_HALF_DEGREE][TESS_MAX_SUPPORT / 2];
        double odd[TILE_HALF_DEGREE][TESS_MAX_SUPPORT / 2];
        double pairs[TESS_MAX_DEGREE + 1][2 * TESS_MAX_SUPPORT];
    } full;
} tile_taps;

/** What the loops read of tess_samples, whose other members they do not know: they are
 *  compiled for each instruction set, which takes long. */
typedef struct tile_samples {
    bool is_double;
    int num_pol, num_weight;
    const double *uvw_m, *inv_lambda;
    const void *vis, *weight;
} tile_samples;

/** Those of these samples. */
tile_samples tile_samples_of(const tess_samples *samples);

/** Part of a brick's visibilities and the buffer they go to or come from. */
typedef struct tile_job {
    const tess_grid_plan *plan;
    tile_samples samples;
    const tile_taps *taps;  /**< [2] along u and v, and along w */
    const tess_run *run;    /**< first run of the part */
    int64_t skip;           /**< samples of it that belong to an earlier part */
    int64_t count;          /**< samples of the part */
    int64_t cell_u, cell_v; /**< grid cell of the buffer's first line and cell */
    int32_t plane_first;    /**< first w-plane that the samples touch */
    int32_t num_planes;     /**< planes that they touch */
    int32_t kept_first;     /**< of those, first one of the buffer */
    int32_t kept_planes;    /**< planes of the buffer */
    int num_pol;            /**< of the buffer */
    bool psf;               /**< grid: pols after the samples' own get the weights */
    void *data;             /**< [num_pol][kept_planes][lines][stride] complex */
    void *vis_out;          /**< degrid: [samples][num_pol][2], indexed like samples */
    bool add;               /**< degrid: to what is there */
    const void *next;       /**< what this thread works on next, or NULL: next_bytes of
                                 it are fetched meanwhile */
    int64_t next_bytes;
    int64_t *merged; /**< samples that shared another's work are added, or NULL */
    void *work;      /**< tile_work_bytes(), aligned to 64 bytes and used by one
                          thread at a time; NULL: fewer samples are sorted
                          together, which takes longer */
} tile_job;

typedef void tile_function(const tile_job *job);

/** Functions of one instruction set, by [is_double][support]. */
typedef struct tile_table {
    tile_function *grid[2][TESS_MAX_SUPPORT + 1];
    tile_function *degrid[2][TESS_MAX_SUPPORT + 1];
} tile_table;

/** The table for this processor, see tess_isa_best(). */
const tile_table *tile_table_best(void);

/** Taps along u and v, and along w. */
void tile_taps_fill(const tess_grid_plan *plan, tile_taps taps[2]);

/** Bytes of work memory of one thread, a multiple of 64. */
int64_t tile_work_bytes(const tess_grid_plan *plan);

/** Work of a step cut into pieces of whole chunks. Piece boundaries depend on the chunk
 *  length alone. */
typedef struct tile_piece {
    int64_t brick; /**< index in the brick list */
    int64_t chunk_first, num_chunks;
    int64_t run, skip; /**< where its samples begin */
    int64_t count;
    int64_t extra; /**< > 0: number of its own buffer, added up later */
} tile_piece;

/** Cut the bricks [first, end) into pieces, the largest first. `*pieces` is allocated;
 *  `*num_extra` counts the pieces beyond the first of their brick. */
tess_status tile_pieces_make(const tess_grid_plan *plan, const tess_brick_list *bricks,
                             int64_t first, int64_t end, tile_piece **pieces,
                             int64_t *num_pieces, int64_t *num_extra);

/** Pieces, the largest first, that threads take one after the other. */
typedef struct tile_queue {
    const tile_piece *piece;
    int64_t num_pieces, num_taken;
    int threads;
} tile_queue;

/** The next piece that no thread has taken; num_pieces or more: there is none. */
int64_t tile_queue_take(tile_queue *queue);

/** The same while piece `now` is to be worked on, so that the next one's buffer can be
 *  fetched meanwhile; -1: better taken later, or there is none. */
int64_t tile_queue_take_ahead(tile_queue *queue, int64_t now);

/** Fill everything of a job but skip, count and run from a brick sum. */
void tile_job_for(const tess_grid_plan *plan, const tess_samples *samples,
                  const tile_taps *taps, const tess_brick_sum *sum, int num_pol,
                  void *data, tile_job *job);

/** Have the buffer `data` of the piece that follows fetched while this job is done,
 * unless it is large, or its samples are so few that they touch little of it. */
void tile_job_fetch(const tess_grid_plan *plan, const tess_brick_sum *sum,
                    const tile_piece *piece, const void *data, tile_job *job);

#endif
