/** @file tess_bench_gcf_sets.h
 *  The data sets of a published study of tiled gridding, simulated: NAG's port of
 *  OSKAR's w-projection to a P100, Xeon and Xeon Phi
 * (github.com/OxfordSKA/GPU-gridding, README). Published are numbers of visibilities,
 * planes of w and the largest half-support; oversampling, frequency of the SKA1-Low
 * sets and single precision go with them. The rest follows from rules of OSKAR's imager
 * (oskar_imager_init_wproj.c, from CASA's WPConvFunc.cc), and is said where it is used.
 */
#ifndef TESS_BENCH_GCF_SETS_H
#define TESS_BENCH_GCF_SETS_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_gcf.h"
#include "tess_status.h"

/** A data set as it is described. */
typedef struct tess_bench_gcf_set {
    const char *name, *title;
    int num_stations, num_times;
    double first_deg,
        last_deg;  /**< elevations; a lower last one is past the meridian */
    double disc_m; /**< radius of the disc that stations are anywhere in; 0: they are
                        SKA1-Low's */
    double wavelength_m;
    double image_deg; /**< field of the image: kernels are then as wide as published */
    int num_planes, half_support; /**< as published */
    int64_t size;                 /**< of the grid [cells along each axis] */
} tess_bench_gcf_set;

enum { TESS_BENCH_GCF_NUM_SETS = 4 };

extern const tess_bench_gcf_set tess_bench_gcf_sets[TESS_BENCH_GCF_NUM_SETS];

/** What a set is made of. */
typedef struct tess_bench_gcf_points {
    int64_t count, size;
    double *u, *v, *w; /**< [count] cells, cells, wavelengths; in order of time */
    int num_planes, half_support;
    int *support;          /**< [num_planes] of the kernels [cells] */
    double field;          /**< of the grid [direction cosines] */
    double w_scale_lambda; /**< w of the last plane: 1.05 times the largest |w| */
    double study_updates;  /**< Σ (2h + 1)² over the visibilities, h being the study's
                                half-support, … */
    double updates; /**< … and Σ S² with the supports here, at least as many */
} tess_bench_gcf_points;

/** The least factor that arrays can be shrunk by. */
#define TESS_BENCH_GCF_LEAST_SHRINK 0.01

/** Simulate it: at most about `most` visibilities, of fewer times and then fewer
 *  stations; from an array `shrink` times as large (≤ 1), with so many times fewer
 * cells and planes. End with tess_bench_gcf_points_free(). TESS_ERR_ALLOC. Local. */
tess_status tess_bench_gcf_set_make(const tess_bench_gcf_set *set, int64_t most,
                                    double shrink, int threads,
                                    tess_bench_gcf_points *points);

void tess_bench_gcf_points_free(tess_bench_gcf_points *points);

/** The kernels for it, oversampled by 4 as the study's are. Errors as of
 *  tess_gcf_create(). Local. */
tess_status tess_bench_gcf_set_kernels(const tess_bench_gcf_points *points,
                                       bool is_double, int threads, tess_gcf **gcf);

#endif
