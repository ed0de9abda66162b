/** @file facets_report.h  (private to app/cli/)
 *  What `tessera facets` does once its options are parsed.
 */
#ifndef FACETS_REPORT_H
#define FACETS_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_facets.h"
#include "tess_gains.h"
#include "tess_status.h"

/** Names that commas separate in the value of an option. */
typedef struct facets_names {
    char *text; /**< owned */
    int num;
    const char *name[16]; /**< in `text` */
} facets_names;

/** Options of `tessera facets`; what is not given is 0 or NULL. */
typedef struct facets_args {
    const char *input; /**< a region file, or a list of sources; NULL: facets around
                            the directions of the first file of solutions */
    int64_t number;    /**< of sources of a list; 0: all */
    double separation_rad;
    const char *like; /**< an image, or NULL for the pixels below */
    int64_t nx, ny;
    double scale_rad, ra_rad, dec_rad;
    bool has_ra, has_dec;
    double feather, padding;
    facets_names solutions, tables;
    const char *output, *picture;
    bool overwrite;
} facets_args;

/** Read or make facets, print a table of them on rank 0, and write the region file and
 *  the picture. Errors of the files. Collective. */
tess_status facets_report(tess_comm *comm, const facets_args *args);

/** Print which directions facets take from files of solutions, which values these have,
 *  and how much gains change within facets: at the solutions' frequencies, or else at
 *  this one, 0: none is known. TESS_ERR_ALLOC. Local. */
tess_status facets_print_gains(const facets_args *args, const tess_facets *facets,
                               const tess_gains *gains, double freq_hz);

#endif
