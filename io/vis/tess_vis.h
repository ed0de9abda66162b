/** @file tess_vis.h
 *  Visibility sets, read and written in blocks of rows. One interface for every format;
 *  vis_uvfits.c and vis_ms.cc implement it behind the table of vis_format.h.
 *
 *  A set is a list of *segments*: rows that share one channel table and one list of
 *  correlations (a spectral window of an MS; the whole of a UVFITS file, whose IFs are
 *  then consecutive channels, or one FREQID of it). Row numbers count within a segment,
 *  in file order. Everything in a block is in the conventions of README: uvw in metres
 *  as a MeasurementSet stores them (c·UU of UVFITS), never recomputed. In a file of
 *  another frame than J2000, v points to the North of that frame (MeasurementSet
 *  definition 2.0, UVW); such uvw are turned to the North of J2000.
 */
#ifndef TESS_VIS_H
#define TESS_VIS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TESS_MAX_CORR = 4 };

/** Weight of a flagged sample in a block. Other weights are as in the file, so that
 *  callers can tell a flag from a weight that is zero, negative or not finite. UVFITS
 *  has no other flag than a weight <= 0; those become this. */
#define TESS_WEIGHT_FLAGGED (-INFINITY)

/** Correlation and Stokes codes of FITS: I Q U V = 1..4, RR LL RL LR = -1..-4,
 *  XX YY XY YX = -5..-8. */
typedef int tess_corr;

/** "XX" for -5, "I" for 1, "?" when unknown; and back (0 when unknown). Local. */
const char *tess_corr_name(tess_corr corr);
tess_corr tess_corr_parse(const char *name);

/** Rows of a new set that follow one another and are of one field. */
typedef struct tess_vis_scan {
    int64_t num_rows;
    int field; /**< index into field[] */
} tess_vis_scan;

typedef struct tess_vis_segment {
    int64_t num_rows;
    int64_t num_chan;
    double *freq_hz;       /**< [num_chan] centre frequencies */
    double *chan_width_hz; /**< [num_chan], positive */
    int32_t *chan_spw;     /**< [num_chan] spectral window (IF) number in the file */
    int64_t chan_first;    /**< number in its window, in the file, of the first one */
    int num_corr;
    tess_corr corr[TESS_MAX_CORR]; /**< in the order of the block's correlation axis */
    int64_t num_scans;             /**< of a new set with several fields, else 0 */
    const tess_vis_scan *scan;     /**< [num_scans], which have all rows; borrowed */
} tess_vis_segment;

typedef struct tess_vis_field {
    char name[64];
    int id;                 /**< SOURCE (UVFITS) or FIELD_ID (MS) */
    double ra_rad, dec_rad; /**< phase centre, J2000, whatever frame the file has */
    double north_rad; /**< position angle in J2000 of the North of the file's frame
                           at the phase centre: where v of the file points to */
    char frame[16];   /**< of the file: "J2000", "B1950", "GALACTIC" */
    double pointing_rad[2]; /**< right ascension and declination that antennas point to:
                                 REFERENCE_DIR (MS), else the phase centre */
    double rest_hz;         /**< of UVFITS files: RESTFREQ of the source; 0: unknown */
    int64_t num_rows;
} tess_vis_field;

typedef struct tess_vis_antenna {
    char name[32];
    double xyz_m[3];   /**< geocentric (ITRF) */
    double diameter_m; /**< 0 when unknown */
} tess_vis_antenna;

/** What a set tells of lines. */
typedef struct tess_vis_line {
    double rest_hz; /**< of that which the selected field is observed in; 0: unknown */
    char freq_frame[16]; /**< of frequencies: "LSRK" ...; "": they are topocentric */
} tess_vis_line;

/** What a set holds after selection. Owned by the reader. */
typedef struct tess_vis_meta {
    char path[1024];
    char format[16]; /**< for people: "UVFITS", "MS" */
    char telescope[64], observer[64], object[64], project[64];
    double equinox;         /**< 2000.0: other directions are converted to J2000 */
    double ra_rad, dec_rad; /**< phase centre of the selected field */
    double time_start_mjd_s, time_end_mjd_s; /**< UTC, of the selected rows */
    double integration_s;                    /**< median; 0 when unknown */
    double min_uvw_m, max_uvw_m; /**< baseline lengths; 0 when not scanned */
    int num_segments;
    tess_vis_segment *segment;
    int num_fields;
    tess_vis_field *field; /**< all fields of the file */
    int field_selected;    /**< index into field[] */
    int num_antennas;
    tess_vis_antenna *antenna;
    int64_t num_rows_total; /**< rows in the file before selection */
    char data_column[64];   /**< of an MS, that visibilities are read from; else "" */
    tess_vis_line line;     /**< of an MS if the selection wants lines */
    int64_t min_spw_chan; /**< channels in the file of the selected spectral window that
                               has the fewest; 0: unknown */
} tess_vis_meta;

/** Geocentric position of the array: the middle of the antennas whose positions are
 *  known; 0 where there are none. Local. */
void tess_vis_site(const tess_vis_meta *meta, double site_m[3]);

/** The number of fields that have rows. Local. */
int tess_vis_fields_with_rows(const tess_vis_meta *meta);

/** Rows and channels as CASA selects them: expressions of casacore's MSSelection (CASA
 *  memo "Measurement Set selection syntax"), all of which hold. NULL: all. Sets of
 * other formats know antennas and times in a plainer form (vis_pick.h). */
typedef struct tess_vis_expressions {
    const char *field, *spw, *scan, *time, *uvrange, *antenna, *intent, *taql;
} tess_vis_expressions;

/** Whether any is given. Local. */
bool tess_vis_expresses(const tess_vis_expressions *by);

/** What to read. Zeroed means everything (and the only field). */
typedef struct tess_vis_select {
    const char *data_column;     /**< MS: NULL for CORRECTED_DATA if there, else DATA */
    const char *subtract_column; /**< MS: visibilities are less those of this column;
                                      NULL: they are as they are */
    const char *field;           /**< name or number; NULL when the set has one */
    const int *spw;              /**< spectral windows (IFs, 0-based), NULL for all */
    int num_spw;
    int64_t chan_first, chan_end; /**< channels [first, end) of each spw; end 0 = all */
    bool model_only;              /**< data column may be absent; vis of blocks are 0 */
    bool uvw_only;    /**< MS: of rows, uvw_m alone is read and worth something: times
                           and antennas are 0, vis and weight undefined */
    bool wants_lines; /**< MS: rest frequencies and the frame of frequencies are read */
    tess_vis_expressions by;
    bool all_channels; /**< of the windows of `by`, not only those that it names */
    bool any_field;    /**< without `field`: never refused for having several;
                            rows of all (MS) or of the first (UVFITS) */
} tess_vis_select;

/** A block of rows of one segment. Arrays are owned by the block, grow as needed and
 *  are reused from read to read. */
typedef struct tess_vis_block {
    int segment;
    int64_t row_first, num_rows; /**< within the segment */
    int64_t num_chan;
    int num_corr;
    double *uvw_m;                /**< [num_rows][3] */
    double *time_mjd_s;           /**< [num_rows] centre of the integration, UTC */
    double *integration_s;        /**< [num_rows] */
    int32_t *antenna1, *antenna2; /**< [num_rows] indices into meta->antenna */
    float *vis;                   /**< [num_rows][num_chan][num_corr][2] re, im [Jy] */
    float *weight;                /**< [num_rows][num_chan][num_corr] */
    int64_t capacity_rows, capacity_vis; /**< private to tess_vis.c */
} tess_vis_block;

enum { TESS_VIS_MAX_TERMS = 4 };

/** A parameter of a row: zero + Σ value[index]·scale. */
typedef struct tess_vis_param {
    int num_terms;                     /**< 0: the file has no such parameter */
    int64_t index[TESS_VIS_MAX_TERMS]; /**< in values from the start of the row */
    double scale[TESS_VIS_MAX_TERMS];
    double zero;
} tess_vis_param;

/** Antenna numbers of a subarray: index[number] is an index into meta->antenna, or
 *  -1. */
typedef struct tess_vis_numbers {
    int64_t num_numbers;
    int32_t *index;
} tess_vis_numbers;

/** How the rows of a segment lie in its file, for those who decode them elsewhere than
 *  in memory of this process: values are big-endian and single precision, a sample is
 *  the triplet (re, im, weight) at chan_offset[chan] + 3 corr, a weight <= 0 is a flag.
 *  The numbers of antennas are parameters, or both are in `baseline`:
 * app/imager/samples/raw_sample.h. Arrays belong to the reader. */
typedef struct tess_vis_raw {
    int64_t row_bytes;
    tess_vis_param u_s, v_s, w_s; /**< seconds of light */
    tess_vis_param baseline, antenna1, antenna2, subarray;
    tess_vis_param date;        /**< MJD [days] */
    double utc_offset_s;        /**< seconds by which `date` is ahead of UTC */
    const int64_t *chan_offset; /**< [num_chan] in values */
    int num_subarrays;
    const tess_vis_numbers
        *subarrays; /**< [num_subarrays], from number 1; others are as 1 */
} tess_vis_raw;

typedef struct tess_vis_reader tess_vis_reader;
typedef struct tess_vis_writer tess_vis_writer;

/* ---- reading ---- */

/** Default of tess_vis_set_lock_timeout() [s]: programs of casacore that are at work
 * let a lock go within some seconds after they have been asked to. */
#define TESS_VIS_LOCK_TIMEOUT_S 60.0

/** Set how long this process waits for a program that has a MeasurementSet locked,
 * before it reads or changes that set. 0: it does not wait. This holds for all sets of
 * the process. Local. */
void tess_vis_set_lock_timeout(double seconds);

/** Check that the library behind a format can open and read these sets without ending
 *  the process. It waits for programs that are writing one of them; TESS_ERR_IO when
 * they do not end in time. Another process tries to read the sets, which takes tens of
 * milliseconds. Paths that cannot be opened are left to tess_vis_open. TESS_ERR_INPUT
 * when a set is damaged; the message names the set and the damaged part. Local: one
 * rank calls it before any rank opens the sets. */
tess_status tess_vis_check(const char *const *paths, int num_paths,
                           const tess_vis_select *select);

/** Open a set; the first format that recognises the path reads it (an MS is a folder
 *  with table.dat).
 *  Local: every rank opens for itself. Errors: TESS_ERR_IO (missing, unreadable),
 *  TESS_ERR_INPUT (not FITS, truncated, no groups, zero rows, bad frequency; the
 * message names file and remedy), TESS_ERR_USAGE (a selection of what the set does not
 * hold: a field, window, channel or column; or none where it needs one),
 * TESS_ERR_RESOURCE (an MS without TESS_MS). */
tess_status tess_vis_open(const char *path, const tess_vis_select *select,
                          tess_vis_reader **reader);

/** What the opened set holds. Local. */
const tess_vis_meta *tess_vis_reader_meta(const tess_vis_reader *reader);

/** Whether data columns can be added to the set and replaced in place; whether
 *  tess_vis_create_like copies all of it. Local. */
bool tess_vis_has_columns(const tess_vis_reader *reader);
bool tess_vis_is_copied(const tess_vis_reader *reader);

/** Whether there is a set at this path, and its format has no data columns. The set is
 *  recognised, and not opened. Local. */
bool tess_vis_is_without_columns(const char *path);

/** Read rows [row_first, row_first + num_rows) of a segment. Uses up to `num_threads`
 *  threads. Local; one call at a time per reader, but a thread other than the one that
 *  opened it may call. */
tess_status tess_vis_read(tess_vis_reader *reader, int segment, int64_t row_first,
                          int64_t num_rows, int num_threads, tess_vis_block *block);

/** Free what the reader holds for reading (files that several threads opened, and their
 *  caches) until the next read. Local; not during a call that reads. */
void tess_vis_rest(tess_vis_reader *reader);

/** Whether the rows of a segment can be read without decoding; `*raw` then describes
 *  them. Local. */
bool tess_vis_raw_rows(const tess_vis_reader *reader, int segment, tess_vis_raw *raw);

/** Read the bytes of rows that tess_vis_raw_rows has described. Local; several threads
 *  may call at a time. */
tess_status tess_vis_read_raw(const tess_vis_reader *reader, int segment,
                              int64_t row_first, int64_t num_rows, void *to);

/** Close; NULL is fine. Local. */
void tess_vis_close(tess_vis_reader *reader);

/** Make room for num_rows × num_chan × num_corr; contents undefined. Local. */
tess_status tess_vis_block_resize(tess_vis_block *block, int64_t num_rows,
                                  int64_t num_chan, int num_corr);

/** Free a block's arrays and zero it. Local. */
void tess_vis_block_free(tess_vis_block *block);

/* ---- writing ----
 * A writer works under a temporary name beside the target and renames in finish;
 * destroying it without finish removes what it wrote. */

/** Put the correlations into the order in which a new set of this name stores them, so
 *  that writing moves no values. Local. */
void tess_vis_order_corr(const char *path, tess_vis_segment *segment);

/** Begin a new set described by `meta` (one segment; its num_rows is what will be
 *  written). A path ending in ".ms" makes an MS, else UVFITS. With scans, all fields
 * are written; else one, which is called `object`. TESS_ERR_IO when the target exists
 * and not `overwrite`, or cannot be written; TESS_ERR_USAGE: scans in a format that has
 * no fields. Collective. */
tess_status tess_vis_create(tess_comm *comm, const char *path,
                            const tess_vis_meta *meta, bool overwrite,
                            tess_vis_writer **writer);

/** The origin of visibilities that replace others; all may be NULL. It goes into the
 *  HISTORY cards of a UVFITS file, or a row of the HISTORY table of an MS. */
typedef struct tess_vis_origin {
    const char *command_line;
    const char *message; /**< "visibilities predicted from ..." */
} tess_vis_origin;

/** Begin a copy of an opened set, complete with its tables and unselected data; only
 *  the visibilities later written replace the old ones (their weights and uvw stay as
 *  they are). For a source that is not copied (tess_vis_is_copied(): an MS) the file is
 * a new UVFITS of the selected rows, made from its meta. `origin` (NULL: the header
 * stays as it is) is borrowed until the writer is destroyed. Collective. */
tess_status tess_vis_create_like(tess_comm *comm, const char *path,
                                 tess_vis_reader *source, const tess_vis_origin *origin,
                                 bool overwrite, tess_vis_writer **writer);

/** As tess_vis_create_like, of a copied set whose rows can be read as they are, when
 *  all selected rows are going to be written by tess_vis_write_raw: they need not be
 *  copied. Collective. */
tess_status tess_vis_create_rows(tess_comm *comm, const char *path,
                                 tess_vis_reader *source, const tess_vis_origin *origin,
                                 bool overwrite, tess_vis_writer **writer);

/** Check now that a column of an opened set can be written later, as
 * tess_vis_create_column with `overwrite` or tess_vis_create_weights does.
 * TESS_ERR_USAGE (a set without columns, no name of a column, a column of other data),
 * TESS_ERR_IO.
 * Local. */
tess_status tess_vis_check_column(const tess_vis_reader *source, const char *column,
                                  bool of_weights);

/** Add a data column to an opened MS, in place; one that exists is replaced when
 *  `overwrite`, else TESS_ERR_IO. A HISTORY table that cannot be written to is a
 * warning. Collective. */
tess_status tess_vis_create_column(tess_comm *comm, tess_vis_reader *source,
                                   const char *column, const tess_vis_origin *origin,
                                   bool overwrite, tess_vis_writer **writer);

/** The same for several columns with different names, which all appear in the set when
 *  the writer finishes, or none of them. `column` is borrowed during the call.
 *  Collective. */
tess_status tess_vis_create_columns(tess_comm *comm, tess_vis_reader *source,
                                    const char *const *column, int num_columns,
                                    const tess_vis_origin *origin, bool overwrite,
                                    tess_vis_writer **writer);

/** Add a column of weights, float cells of DATA's shape, to an opened MS, in place, or
 *  write into one that exists. A weight of NAN leaves what the column has, which is 0
 *  in a new one. Collective. */
tess_status tess_vis_create_weights(tess_comm *comm, tess_vis_reader *source,
                                    const char *column, const tess_vis_origin *origin,
                                    tess_vis_writer **writer);

/** Write a block at block->segment, block->row_first. Every rank calls equally often;
 *  a block with num_rows = 0 takes part. UVFITS: each rank writes at its own offset.
 *  MS: rank 0 writes what the others send. Only `vis` is used
 *  for create_column, and for create_like of a UVFITS source, and only `weight` for
 *  create_weights. Collective. */
tess_status tess_vis_write(tess_vis_writer *writer, const tess_vis_block *block);

/** The same for one of several columns. Collective. */
tess_status tess_vis_write_column(tess_vis_writer *writer, int column,
                                  const tess_vis_block *block);

/** Whether one rank holds the blocks of all while it writes them. Local. */
bool tess_vis_gathers(const tess_vis_writer *writer);

/** With how many of `threads` tess_vis_write_raw is fastest: all in memory (tmpfs), few
 *  on a disk. Local. */
int tess_vis_raw_writers(const tess_vis_writer *writer, int threads);

/** Write rows that tess_vis_read_raw has read, with other visibilities, to a copy.
 *  Local; several threads may call at a time. */
tess_status tess_vis_write_raw(tess_vis_writer *writer, int segment, int64_t row_first,
                               int64_t num_rows, const void *from);

/** The coordinate that is read back when this one is written: UVFITS, for one, stores
 *  single-precision seconds of light. Simulated visibilities are computed for the
 *  coordinate that is read back. Local. */
double tess_vis_stored_uvw(const tess_vis_writer *writer, double uvw_m);

/** Complete tables, flush, rename to the final name. Collective. */
tess_status tess_vis_finish(tess_vis_writer *writer);

/** Free; removes an unfinished file. NULL is fine. Collective. */
void tess_vis_writer_destroy(tess_vis_writer *writer);

/** From now on, where casacore would abort the process because it cannot write the
 *  small files of a MeasurementSet that it closes, the process ends with a line and as
 *  TESS_ERR_IO does, and its unfinished files go. For programs, at their start. Local.
 */
void tess_vis_end_clearly(void);

#ifdef __cplusplus
}
#endif
#endif
