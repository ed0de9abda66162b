/** @file tess_mem.h
 *  Allocates memory with an overflow-checked count × size and an alignment of 64 bytes
 *  (one cache line, one AVX-512 register), and finds out how much memory the process
 *  may use and does use.
 */
#ifndef TESS_MEM_H
#define TESS_MEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Allocate `count` elements of `size` bytes, uninitialised and aligned to 64 bytes.
 * Returns NULL if the product overflows or memory is short. For zero elements the
 * pointer is valid, too. Large arrays are in huge pages, and their memory is kept for
 * other arrays when they are freed (tess_keep.h). Free it with tess_free(). */
void *tess_alloc(int64_t count, size_t size);

/** As tess_alloc(), for arrays that a run reads and writes most. Arrays of megabytes
 * are in high-bandwidth memory if the machine has some and TESS_MEMKIND is on. */
void *tess_alloc_fast(int64_t count, size_t size);

/** Where tess_alloc_fast() takes memory from, in words for people. */
const char *tess_fast_memory_text(void);

/** As tess_alloc(), with all bytes zero. */
void *tess_alloc_zero(int64_t count, size_t size);

/** Copy a string. Returns NULL if memory is short or `text` is NULL. */
char *tess_strdup(const char *text);

/** Grow `*array`, which tess_alloc made or which is NULL, to at least `needed`
 * elements. `*capacity` is the number of elements that it has room for, which at least
 * doubles. Returns 0; or −1, and neither is changed, if memory is short. */
int tess_grow(void **array, int64_t *capacity, int64_t needed, size_t size);

/** Free memory that a function of this header has allocated. NULL is fine. */
void tess_free(void *pointer);

/** From now on, give the arrays of 2 MiB or more that other libraries allocate back to
 * the system when they are freed. Otherwise glibc keeps freed arrays of up to 32 MiB,
 * in places into which later arrays of other sizes do not fit, so that the process
 * holds more than it uses. Smaller arrays stay with the heap, so that the system need
 * not clear their pages again for each output: up to 24 MiB, or a 32nd part of `bytes`,
 * which the process may use, if that is less. For programs to call, not for
 * libraries. */
void tess_mem_keep_no_arrays(int64_t bytes);

/** Give the pages of freed small arrays back to the system, before a stage that takes
 * much memory. The call takes some milliseconds. */
void tess_mem_trim(void);

/** Largest resident size of this program so far [bytes], or 0 if it is unknown. Memory
 * that the process held before it became this program by exec() does not count. */
int64_t tess_mem_peak_bytes(void);

/** Resident size of this program now [bytes], or 0 if it is unknown. */
int64_t tess_mem_resident_bytes(void);

/** Memory that this node's share of the batch allocation may use [bytes]. It is the
 * smallest of the physical memory, the limits of the control group and of the groups
 * that contain it (versions 1 and 2), and the limit of Slurm: SLURM_MEM_PER_NODE, or
 * SLURM_MEM_PER_CPU or _PER_GPU times the number of CPUs or GPUs on this node. */
int64_t tess_mem_node_limit_bytes(void);

/** The limit that control groups set to it; INT64_MAX if they set none. `root` is put
 * before /proc and /sys: "", or a folder in tests. */
int64_t tess_mem_cgroup_limit_bytes(const char *root);

/** A text like "1.5 GiB", in one of a few static buffers of this thread that are used
 * in turn. */
const char *tess_mem_text(double bytes);

#ifdef __cplusplus
}
#endif
#endif
