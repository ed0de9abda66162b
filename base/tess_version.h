/** @file tess_version.h
 *  What was built: version, git revision, compiler, libraries.
 */
#ifndef TESS_VERSION_H
#define TESS_VERSION_H

#include "tessera/tess_api.h" /* tess_version(), tess_version_full() */

/** "GNU 12.2.0, Release, OpenMP". */
const char *tess_version_compiler(void);

/** "MPI 3.1 (Open MPI 4.1.4), FFTW 3.3.10, CFITSIO 4.2.0, ...". */
const char *tess_version_libraries(void);

/** OpenMP's version; the GPUs that code was compiled for; what reads MeasurementSets.
 *  "none (built without ...)" where a part is left out. */
const char *tess_version_openmp(void);
const char *tess_version_gpu(void);
const char *tess_version_ms(void);

#endif
