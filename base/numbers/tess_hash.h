/** @file tess_hash.h
 *  A hash by which lists are told apart (FNV-1a, 64 bits).
 */
#ifndef TESS_HASH_H
#define TESS_HASH_H

#include <stddef.h>
#include <stdint.h>

#define TESS_HASH_START UINT64_C(0xcbf29ce484222325)

/** Extend the hash of all bytes before by these bytes. Local. */
static inline uint64_t tess_hash(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t k = 0; k < bytes; ++k)
        hash = (hash ^ at[k]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
