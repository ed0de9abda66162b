/** @file source_private.h  (private to app/imager/samples/)
 *  The object behind source.h: source.c opens it, source_parts.c says what is made of
 * its rows, source_read.c reads them.
 */
#ifndef TESS_SOURCE_PRIVATE_H
#define TESS_SOURCE_PRIVATE_H

#include "continuum.h"
#include "source.h"
#include "source_continuum.h"
#include "source_regrid.h"
#include "tess_worker.h"

/** How a model and the continuum of a part's rows are subtracted; zeros: they stay. */
typedef struct part_lines {
    continuum fit;    /* of whole rows, with all channels of their windows */
    int segment;      /* of the reader of whole rows, which have */
    int64_t num_chan; /* channels */
    int64_t *chan;    /* places of the part's channels in whole rows; NULL: its
                         rows are whole */
} part_lines;

/** The rows of one segment of an observation, and what is made of them. */
typedef struct part {
    int obs, segment;
    int64_t num_rows, num_chan;
    int64_t chan_base;
    tess_recipe recipe;
    part_lines lines;
    bool usable;      /* makes some of the images asked for */
    bool single_hand; /* Stokes I is made of one parallel hand, here as in all parts */
} part;

/** A block of a part that this rank reads. */
typedef struct span {
    int part;
    int64_t row_first, num_rows;
    double time_first, time_last; /* of its rows, known once it has been read */
    int64_t num_unfit; /* rows and windows whose continuum could not be fitted, then */
} span;

/** The block that is read ahead. */
typedef struct source_reading {
    tess_vis_block block[2]; /* the reading thread fills block[turn] */
    int turn;
    tess_worker *worker;   /* the reading thread, once there is something to read */
    bool at_start;         /* rewound, and nothing taken or changed since */
    bool in_turn;          /* blocks are read when they are asked for */
    int obs_read;          /* reader that the last block came from */
    int part;              /* of the block that was handed out last */
    int only_reader;       /* whose blocks are wanted, or -1: all */
    tess_status status;    /* of the block that was read last */
    source_regrid *regrid; /* brings samples into the channels of an axis, or NULL */
} source_reading;

/** Visibilities that are subtracted from whole rows (source_continuum.h). */
typedef struct source_model {
    bool opened, ended;
    int fd;
    char *remove; /* its name, on the rank that removes it; else NULL */
} source_model;

/** Readers of the same rows with all channels. */
typedef struct whole_readers {
    int num; /* 0: nobody needs them; else num_obs */
    int64_t capacity;
    tess_vis_reader **reader; /* [num] NULL: that of the source has all channels */
    source_model model;
} whole_readers;

/** Where rows come from, in numbers that all observations share. */
typedef struct source_origins {
    tess_origins all;  /* without antennas: rows do not keep their origins */
    int32_t **antenna; /* [num_obs] numbers of the antennas of each reader */
    int32_t *field;    /* [num_obs] */
    int32_t *stretch;  /* [num_obs] of time, which has all rows of each reader */
    int64_t capacity_sets;
    int *set; /* [num_obs] which of the sets that were named a reader is of */
    bool splits_antennas; /* each set has antennas of its own */
} source_origins;

struct tess_source {
    tess_comm *comm;
    tess_selection selection;
    int num_obs;
    int64_t capacity_obs;
    tess_vis_reader **reader; /* [num_obs] files, or fields of them */
    whole_readers whole;
    tess_source_info info;
    double *freq_hz, *width_hz, *inv_lambda;
    int num_parts;
    part *parts;
    int num_pol, num_weight, threads;
    bool is_double;
    int64_t block_bytes;
    int64_t num_spans, next_span; /* this rank's blocks */
    span *spans;
    source_origins origins;
    tess_steps steps; /* with --even-timesteps and --odd-timesteps */
    source_reading reading;
    int64_t bytes_read; /* of the blocks handed out */
    tess_trace *trace;
};

/** Whether rows keep their origins; and what those of reader `obs` need for that.
 * Local. */
bool source_keeps_origins(const tess_source *source);
tess_row_origins source_origins_of(const tess_source *source, int obs);
void source_origins_free(tess_source *source); /* Not the sets of readers. Local. */

/* ---- source_continuum.c ---- */

/** Whether a model or the continuum is subtracted from whole rows. Local. */
bool source_subtracts(const tess_source *source);

/** Open the rows of the last reader with all channels, if something is subtracted from
 *  whole rows and some channels are not selected. Errors of tess_vis_open. Local. */
tess_status source_open_whole(tess_source *source, const char *path,
                              const tess_vis_select *select);

/** Find whole rows, and the channels that the continuum is fitted to. TESS_ERR_USAGE:
 * there are too few, or no channel that is said to have a line. TESS_ERR_ALLOC. Local.
 */
tess_status source_find_lines(tess_source *source);
void source_free_lines(tess_source *source); /* Local. */

/** Channels that are read of a row of the part. Local. */
int64_t source_read_chan(const part *p);

/** Read the rows of a span, and subtract a model and their continuum. Errors of
 * tess_vis_read and continuum_subtract. Local. */
tess_status source_read_rows(const tess_source *source, span *s, tess_vis_block *block);

/** Free what reader `obs` holds for reading. Local. */
void source_rest_reader(const tess_source *source, int obs);

/** This rank's slice of all usable rows, cut into blocks. TESS_ERR_ALLOC. Local. */
tess_status source_make_spans(tess_source *source);

#endif
