/** @file imager_estimate.h  (private to app/imager/)
 *  The time and the memory that a run will need, for `plan` and for the choice of
 *  teams.
 */
#ifndef TESS_IMAGER_ESTIMATE_H
#define TESS_IMAGER_ESTIMATE_H

#include "imager_job.h"
#include "output_table.h"
#include "tess_costs.h"
#include "tess_samples.h"

/** What a rank reads and keeps, for estimates. */
typedef struct imager_workload {
    int64_t num_vis;  /* samples of its slice, with those that are ignored */
    int64_t num_runs; /* runs of these samples, see tess_samples.h */
    int64_t num_rows; /* rows of an output's samples */
    int64_t num_outputs;
    int num_reads;                 /* number of times that its slice is read */
    double file_bytes, read_bytes; /* bytes of its slice in the file, and of a block */
    double block_bytes;            /* bytes of the samples of a set of blocks */
    double sample_bytes; /* bytes of the samples of its slice, when they are kept */
    double owned_bytes;  /* bytes of the samples that it grids at a time */
    double vis_bytes;    /* bytes of a sample */
    tess_samples kind;   /* an empty array of samples of the same kind */
    bool makes_sources;  /* the PSF is the image of a source in a patch */
    bool cached;         /* samples are kept */
    bool scratch; /* samples that are not kept are in a scratch file when they are read
                     again */
    double copy_bytes;   /* bytes of one output's samples if there are several outputs:
                            its team has received them, or they are copied */
    double adding_bytes; /* bytes of an output's images, and of what teams send of them
                            to all ranks when means are made */
    double deal_s;       /* time to send these samples, and means over channels [s] */
    int num_densities; /* densities by which samples are weighted; 0: natural weights */
    tess_costs costs;  /* costs by which the run is planned; those of the plan are the
                          machine's */
} imager_workload;

/** What a run will need. Times are those of idle cores like those on which the rates in
 * imager_estimate.c were measured. */
typedef struct imager_estimate {
    double seconds[TESS_NUM_STAGES], total_s;
    double reading, samples, sums,
        planes;  /* bytes on a rank of file buffers, of samples and runs, of brick sums,
                    and of planes with images */
    double peak; /* largest sum of these at a time, with the program */
    int num_reads; /* of imager_workload */
} imager_estimate;

/** Estimate a partitioned job with this rank's bricks; the largest needs of all ranks
 * are returned. Collective. */
tess_status imager_estimate_make(const imager_job *job, const imager_workload *work,
                                 const tess_brick_list *bricks,
                                 imager_estimate *estimate);

/** Time that an output of `num_vis` samples, of vis_bytes each, would take on a team of
 *  `ranks` ranks [s]. Local. */
double imager_estimate_output(const imager_job *job, int ranks, int64_t num_vis,
                              double vis_bytes);

/** Time that dealing samples to such teams adds to the run [s]. Local. */
double imager_estimate_deal(const imager_job *job, const output_table *outputs,
                            int ranks, double vis_bytes);

/** Time of sending a model and a residual image of every output between teams and all
 * ranks once [s]. Local. */
double imager_estimate_rows(const imager_job *job, const output_table *outputs,
                            int ranks);

#endif
