/** @file memory_mover.h  (tests)
 *  A mover that keeps values in memory, and gives them back.
 */
#ifndef MEMORY_MOVER_H
#define MEMORY_MOVER_H

#include <stdlib.h>
#include <string.h>

#include "tess_mover.h"

typedef struct memory_mover {
    tess_mover mover;
    char *data;
    int64_t bytes, at;
} memory_mover;

static inline tess_status memory_move(tess_mover *mover, void *data, int64_t bytes)
{
    memory_mover *memory = (memory_mover *)mover;
    if (mover->reads) {
        if (memory->at + bytes > memory->bytes) return TESS_ERR_INPUT;
        memcpy(data, memory->data + memory->at, (size_t)bytes);
        memory->at += bytes;
        return TESS_OK;
    }
    char *grown = realloc(memory->data, (size_t)(memory->bytes + bytes));
    if (!grown) return TESS_ERR_ALLOC;
    memory->data = grown;
    memcpy(memory->data + memory->bytes, data, (size_t)bytes);
    memory->bytes += bytes;
    return TESS_OK;
}

/** Empty: what is moved is written to it. */
static inline memory_mover memory_mover_new(void)
{
    return (memory_mover){.mover = {.reads = false, .move = memory_move}};
}

/** From here on it is read. */
static inline void memory_mover_rewind(memory_mover *memory)
{
    memory->mover.reads = true;
    memory->at = 0;
}

static inline void memory_mover_free(memory_mover *memory)
{
    free(memory->data);
    memory->data = NULL;
}

#endif
