/** @file h5parm_sample.h  (private to tests/)
 *  Writes h5parm files of all kinds by HDF5 itself, good ones and such as no program
 *  should write. Axes are in the order dir, ant, time, freq, pol.
 */
#ifndef H5PARM_SAMPLE_H
#define H5PARM_SAMPLE_H

#include <hdf5.h>
#include <stdbool.h>

enum { SAMPLE_AXES = 5, SAMPLE_MOST = 8 };

/** How texts are stored. */
typedef enum sample_text {
    SAMPLE_PADDED,   /**< of fixed length, filled up with NUL */
    SAMPLE_FULL,     /**< of the length of the longest, without a NUL behind it */
    SAMPLE_BLANKS,   /**< filled up with blanks */
    SAMPLE_VARIABLE, /**< of variable length, as Unicode */
    NUM_SAMPLE_TEXTS
} sample_text;

/** A solution table; NULL and 0 in what a program should write are left out of it. */
typedef struct sample_table {
    const char *name, *title, *axes; /**< "time,freq,ant,dir,pol" */
    int stored_axes; /**< dimensions of the values; 0: as many as `axes` has */
    int length[SAMPLE_AXES];
    const char *const *text[SAMPLE_AXES]; /**< names of dir, ant and pol */
    const double *number[SAMPLE_AXES];    /**< of time and freq */
    int missing;    /**< axis whose data set is left out, from 1 */
    hid_t type;     /**< of values; 0: double */
    bool no_values; /**< left out: their data set ... */
    bool no_weight; /**< ... that of weights */
    double (*value)(const int index[SAMPLE_AXES]);
    double (*weight)(const int index[SAMPLE_AXES]); /**< NULL: 1 */
} sample_table;

typedef struct sample_file {
    const char *group; /**< NULL: "sol000" */
    const char *kind;  /**< attribute KIND of the group; NULL: none */
    sample_text texts;
    int num_sources;
    const char *const *source;
    const double (*direction)[2]; /**< NULL: no table of directions */
    int num_tables;
    const sample_table *table;
} sample_file;

/** Write a file; aborts if HDF5 cannot. */
void sample_write(const char *path, const sample_file *file);

#endif
