/** @file vis_uvfits.h  (private to io/)
 *  How the random groups of one UVFITS file are laid out, and the parts of the reader.
 *  Headers and tables go through CFITSIO; groups are read by pread and decoded here.
 *
 *  A group is num_params parameters followed by the data array, all of one BITPIX. The
 *  layout is described in AIPS Memo 117 (Greisen 2012).
 */
#ifndef TESS_VIS_UVFITS_H
#define TESS_VIS_UVFITS_H

#include <fitsio.h>
#include <stdbool.h>
#include <stdint.h>

#include "sky_frame.h"
#include "vis_format.h"

enum { UVFITS_MAX_TERMS = TESS_VIS_MAX_TERMS, UVFITS_MAX_PATH = 1024 };

/** A random parameter: PSCAL, and the sum of PZERO. Parameters of one name add, as the
 *  two DATEs do. */
typedef tess_vis_param uvfits_param;

/** A regular axis of the data array. */
typedef struct uvfits_axis {
    int64_t length, stride; /**< stride in values; length 1 when absent */
    bool present;
    double crval, crpix, cdelt;
} uvfits_axis;

/** The random parameters of a group. */
typedef struct uvfits_params {
    uvfits_param uu, vv, ww, date, baseline, antenna1, antenna2, subarray, source,
        freqsel, inttim;
} uvfits_params;

typedef struct uvfits_layout {
    int bitpix;
    int64_t value_bytes, num_params, num_groups, group_bytes, data_offset, file_bytes;
    double bscale, bzero;
    bool has_blank;
    int64_t blank; /**< integer that means "no value" */
    uvfits_axis complex, stokes, freq, chan_if, ra, dec;
    uvfits_params param;
} uvfits_layout;

/** Antenna numbers of one AN table. */
typedef tess_vis_numbers uvfits_subarray;

/** One row of the FQ table. */
typedef struct uvfits_setup {
    int id;                       /**< FRQSEL */
    double *if_freq_hz, *step_hz; /**< [num_if] offset; signed channel increment */
} uvfits_setup;

/** Neighbouring channels whose (re, im, weight) triplets follow each other. */
typedef struct uvfits_run {
    int64_t offset;       /**< in values from the start of the group */
    int64_t first, count; /**< in (channel, correlation) of a block's row */
} uvfits_run;

/** Where the rows and channels of a segment are in the file. */
typedef struct uvfits_rows {
    int64_t *group;       /**< [num_rows], NULL when row k is group k */
    int64_t *chan_offset; /**< [num_chan] values from the start of a group */
    int64_t num_runs;     /**< 0: the fast path does not apply */
    uvfits_run *run;
} uvfits_rows;

typedef struct uvfits_state {
    int refs; /**< reader, and writers of copies */
    int fd;
    const struct decode_table *decode; /**< for this processor */
    char path[UVFITS_MAX_PATH];
    uvfits_layout layout;
    int64_t antenna_capacity;
    int num_subarrays;
    uvfits_subarray *subarray; /**< entry k is AN table version k + 1 */
    int num_setups;
    uvfits_setup *setup; /**< ordered by id */
    int num_segments;
    uvfits_rows *rows;      /**< [num_segments] */
    double utc_offset_s;    /**< file time minus UTC */
    double integration_s;   /**< for rows whose INTTIM is absent or absurd */
    bool sources_listed;    /**< there is an SU table */
    sky_frame frame;        /**< of the header's position */
    sky_frame *field_frame; /**< [num_fields] of the sources' positions */
    int64_t frame_capacity;
} uvfits_state;

/* ---- vis_uvfits_header.c ---- */

/** Read the primary header into state->layout and the keywords of `meta`; state->fd is
 *  open. TESS_ERR_INPUT for anything that is not random groups that can be read. */
tess_status uvfits_read_header(fitsfile *fits, uvfits_state *state,
                               tess_vis_meta *meta);

/** A number or text of a header, or what stands for it. */
double uvfits_key_number(fitsfile *fits, const char *name, double fallback);
void uvfits_key_text(fitsfile *fits, const char *name, char *text, size_t bytes);

/** Cut trailing blanks; returns `text`. */
char *uvfits_trim(char *text);

/* ---- vis_uvfits_tables.c ---- */

/** Read all AN, FQ and SU tables, in any order. Afterwards meta->antenna and
 *  meta->field (one at least) are filled, field rows not yet counted. */
tess_status uvfits_read_tables(fitsfile *fits, uvfits_state *state,
                               tess_vis_meta *meta);

/** Add a field, whose position is in `frame`, or an antenna. */
tess_status uvfits_add_field(uvfits_state *state, tess_vis_meta *meta, const char *name,
                             int id, const double place_rad[2], const sky_frame *frame);
tess_status uvfits_add_antenna(uvfits_state *state, tess_vis_meta *meta, int subarray,
                               int64_t number, const tess_vis_antenna *antenna);

/** Convert the positions of all fields to J2000 for the time of the selected rows. */
void uvfits_place_fields(const uvfits_state *state, tess_vis_meta *meta);

/* ---- vis_uvfits_scan.c ---- */

/** Look at the groups' parameters: count rows per field, choose field and frequency
 *  set-ups, build segments with their row lists and channel tables, time range. */
tess_status uvfits_scan(uvfits_state *state, const tess_vis_select *select,
                        tess_vis_meta *meta);

/* ---- vis_uvfits_group.c ---- */

/** The value number `index` of a group, of this BITPIX, before it is scaled. */
double uvfits_value(const unsigned char *group, int64_t index, int bitpix);

/** Value of a parameter of the group at `group`. */
double uvfits_param_value(const uvfits_layout *layout, const uvfits_param *param,
                          const unsigned char *group);

/** The parameter that is the date of a group, as MJD [days]. */
uvfits_param uvfits_mjd_of(const uvfits_layout *layout);

/** Time of a group [MJD s UTC]. */
double uvfits_group_time(const uvfits_state *state, const unsigned char *group);

/** Antenna and subarray numbers of a group, as in the AN tables (subarray from 1). */
void uvfits_group_antennas(const uvfits_layout *layout, const unsigned char *group,
                           int64_t *antenna1, int64_t *antenna2, int64_t *subarray);

/** Index into meta->antenna of a number, or -1. */
int32_t uvfits_antenna_index(const uvfits_state *state, int64_t subarray,
                             int64_t number);

/** How many of `num_rows` rows from `first` on have groups that follow each other, from
 *  `*group` on. */
int64_t uvfits_neighbours(const uvfits_rows *rows, int64_t first, int64_t num_rows,
                          int64_t *group);

/** Drop one reference; the last one closes the file and frees. NULL is fine. */
void uvfits_release(uvfits_state *state);

/* ---- vis_uvfits_make.c ---- */

/** How a new file is laid out; the same on every rank. */
typedef struct uvfits_plan {
    int64_t num_rows, num_chan, num_if; /**< channels of all IFs together */
    int num_corr;
    int corr_at[TESS_MAX_CORR]; /**< axis position -> correlation of a block */
    double stokes_first, stokes_step;
    double freq_step_hz; /**< CDELT, the step within the first IF */
    int64_t zero_mjd;    /**< day that dates are counted from */
    bool wide_baselines; /**< 2048 a + b + 65536 */
    int64_t group_bytes;
} uvfits_plan;

enum { UVFITS_NEW_PARAMS = 7 }; /**< UU VV WW BASELINE DATE DATE INTTIM */

/** Find the layout of a new file. TESS_ERR_USAGE when channels, correlations or
 * antennas do not fit into UVFITS. */
tess_status uvfits_plan_new(const char *path, const tess_vis_meta *meta,
                            uvfits_plan *plan);

/** All of a new file but the groups: the primary header fills bytes [0, header_bytes)
 * of
 *  `*bytes`, the tables the rest up to total_bytes. Freed with free(). */
tess_status uvfits_make(const char *path, const tess_vis_meta *meta,
                        const uvfits_plan *plan, void **bytes, int64_t *header_bytes,
                        int64_t *total_bytes);

/* ---- vis_uvfits_write.c: the writing half of the format's table ---- */

tess_status uvfits_create(tess_comm *comm, const char *path, const tess_vis_meta *meta,
                          tess_vis_reader *like, const char *column, bool overwrite,
                          tess_vis_writer *writer);
tess_status uvfits_write(tess_vis_writer *writer, const tess_vis_block *block);
tess_status uvfits_write_raw(tess_vis_writer *writer, int segment, int64_t row_first,
                             int64_t num_rows, const void *from);
tess_status uvfits_finish(tess_vis_writer *writer);
void uvfits_destroy(tess_vis_writer *writer);

/** As they count along the axis: Stokes parameters up, correlations down. */
void uvfits_order_corr(int num_corr, tess_corr *corr);

/** What single-precision seconds of light keep of a coordinate. */
double uvfits_stored_uvw(double uvw_m);

#endif
