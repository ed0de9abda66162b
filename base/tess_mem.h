/** @file tess_mem.h
 *  Allocation with overflow-checked count × size, 64-byte alignment (one cache line,
 *  one AVX-512 register), and what the process may and does use.
 */
#ifndef TESS_MEM_H
#define TESS_MEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** `count` elements of `size` bytes, uninitialised, 64-byte aligned; NULL when the
 *  product overflows or memory is short. Zero elements give a valid pointer. Free
 *  with tess_free(). */
void *tess_alloc(int64_t count, size_t size);

/** As tess_alloc(), for what a run reads and writes most: from high-bandwidth memory
 *  where there is some (TESS_MEMKIND) and the array is of megabytes. */
void *tess_alloc_fast(int64_t count, size_t size);

/** Where that memory comes from, in words for people. */
const char *tess_fast_memory_text(void);

/** As tess_alloc(), zeroed. */
void *tess_alloc_zero(int64_t count, size_t size);

/** Copy of a string; NULL when memory is short or `text` is NULL. */
char *tess_strdup(const char *text);

/** Grow `*array` (from tess_alloc, or NULL) of capacity `*capacity` elements to hold
 *  at least `needed`, doubling. Returns 0, or -1 with both untouched. */
int tess_grow(void **array, int64_t *capacity, int64_t needed, size_t size);

/** Free memory of this header; NULL is fine. */
void tess_free(void *pointer);

/** From here on, arrays of 8 MiB or more go back to the system when they are freed, so
 *  that no more is held than is in use. Else glibc comes to keep those of up to 32 MiB,
 *  in places where the next ones, of other sizes, do not fit. For a program, not a
 *  library, to call. */
void tess_mem_keep_no_arrays(void);

/** Give the pages of freed small arrays back to the system: a stage that takes much
 *  memory follows. Takes some milliseconds. */
void tess_mem_trim(void);

/** Largest resident size of this program so far [bytes], without what the process held
 *  before it became this program (exec); 0 when unknown. */
int64_t tess_mem_peak_bytes(void);

/** Memory that this node's share of the batch allocation may use [bytes]: the smallest
 *  of physical memory, limits of the control group and of those it is in (version 1 and
 *  2), and what Slurm says: SLURM_MEM_PER_NODE, or _PER_CPU or _PER_GPU times their
 *  number on this node. */
int64_t tess_mem_node_limit_bytes(void);

/** The part of control groups in that, INT64_MAX when they set no limit. `root` goes
 *  before /proc and /sys: "" but in tests. */
int64_t tess_mem_cgroup_limit_bytes(const char *root);

/** "1.5 GiB"-like text in one of a few rotating static buffers per thread. */
const char *tess_mem_text(double bytes);

#ifdef __cplusplus
}
#endif
#endif
