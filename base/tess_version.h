/** @file tess_version.h
 *  Facts of the build: version, git revision, compiler, libraries.
 */
#ifndef TESS_VERSION_H
#define TESS_VERSION_H

#include "tessera/tess_api.h" /* tess_version(), tess_version_full() */

/** Compiler and build type, like "GNU 12.2.0, Release, OpenMP". */
const char *tess_version_compiler(void);

/** Libraries, like "MPI 3.1 (Open MPI 4.1.4), FFTW 3.3.10, CFITSIO 4.2.0, ...". */
const char *tess_version_libraries(void);

/** The version of OpenMP; the GPUs for which code was compiled; the library that reads
 * MeasurementSets, and that of solutions. A part that is left out is "none (built
 * without ...)". */
const char *tess_version_openmp(void);
const char *tess_version_gpu(void);
const char *tess_version_ms(void);
const char *tess_version_hdf5(void);

#endif
