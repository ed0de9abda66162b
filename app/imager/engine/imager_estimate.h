/** @file imager_estimate.h  (private to app/imager/)
 *  The time and the memory that a run will need, for `plan` and for the
 *  choice of teams.
 */
#ifndef TESS_IMAGER_ESTIMATE_H
#define TESS_IMAGER_ESTIMATE_H

#include "imager_job.h"
#include "output_table.h"
#include "tess_costs.h"
#include "tess_samples.h"

/** What a rank reads and keeps, for estimates. */
typedef struct imager_workload {
    int64_t num_vis;  /* of its slice, ignored ones too */
    int64_t num_runs; /* they form, see tess_samples.h */
    int64_t num_outputs;
    int num_reads;                 /* of its slice */
    double file_bytes, read_bytes; /* of its slice, and of a block, as read */
    double block_bytes;            /* of the samples of a set of blocks */
    double sample_bytes;           /* of its slice when it is kept */
    double owned_bytes;            /* of the samples that it grids at a time */
    double vis_bytes;              /* of a sample */
    tess_samples kind;             /* such samples, none of them */
    bool cached;                   /* samples are kept */
    bool scratch;                  /* or else are in a file when read again */
    double copy_bytes; /* of several outputs: of the samples of one, which its team
                          has been sent, or which are copied */
    double deal_s;     /* for sending those and, with output channels, means */
    int num_densities; /* by which samples are weighted; 0: naturally */
    tess_costs costs;  /* that the run goes by; the plan's are its machine's */
} imager_workload;

/** What a run will need. Seconds are for idle cores of the kind that the rates in
 *  imager_estimate.c are from. */
typedef struct imager_estimate {
    double seconds[TESS_NUM_STAGES], total_s;
    double reading, samples, sums, planes; /* bytes of a rank: file buffers, samples and
                                  runs, brick sums, planes with images */
    double peak;                           /* most of it at a time, with the program */
} imager_estimate;

/** Of a partitioned job with this rank's bricks; the largest of all ranks.
 *  Collective. */
tess_status imager_estimate_make(const imager_job *job, const imager_workload *work,
                                 const tess_brick_list *bricks,
                                 imager_estimate *estimate);

/** Seconds that an output of so many samples, of vis_bytes each, would take on a team
 * of this many ranks, and what having several teams adds in all. Local. */
double imager_estimate_output(const imager_job *job, int ranks, int64_t num_vis,
                              double vis_bytes);
double imager_estimate_deal(const imager_job *job, const output_table *outputs,
                            int ranks, double vis_bytes);

/** Seconds for a model and a residual of every output to go between teams and all ranks
 *  once. Local. */
double imager_estimate_rows(const imager_job *job, const output_table *outputs,
                            int ranks);

#endif
