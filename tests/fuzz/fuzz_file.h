/** @file fuzz_file.h  (private to tests/fuzz/)
 *  Input of a fuzzer as a file that readers can open, and what each of them promises.
 */
#ifndef FUZZ_FILE_H
#define FUZZ_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_status.h"

/* libFuzzer calls these. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/** The communicator of this rank alone, the same one in each call. */
tess_comm *fuzz_comm(void);

/** Name of a file with these bytes. It lies in memory and is overwritten by the next
 *  call. */
const char *fuzz_file(const uint8_t *data, size_t size);

/** End the program if this status breaks a promise: bad input is no internal error,
 *  and every failure has a message. Forgets the message. */
void fuzz_check(tess_status status);

/** End the program if `holds` is 0, as a promise of the code is then broken. */
void fuzz_assert(int holds, const char *promise);

#endif
