/** @file core_backend.h  (tests)
 *  Tests of the computing core run on the backend that TESS_TEST_BACKEND names in the
 *  environment, "cpu" without it. A program linked with this ends at once with status
 *  77 (skipped) when that backend has no device here.
 */
#ifndef TESS_CORE_BACKEND_H
#define TESS_CORE_BACKEND_H

/** Name of the backend to test. */
const char *test_backend(void);

#endif
