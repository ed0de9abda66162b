/** @file tess_outbox.h
 *  What ranks leave for each other again and again: tess_comm_alltoallv() without its
 *  copies inside a node, where the others read it where it lies.
 */
#ifndef TESS_OUTBOX_H
#define TESS_OUTBOX_H

#include "tess_comm.h"

typedef struct tess_outbox tess_outbox;

/** Without any memory yet. Local. */
tess_status tess_outbox_create(tess_comm *comm, tess_outbox **box);

/** NULL is fine. Collective. */
void tess_outbox_free(tess_outbox *box);

/** Room for what this rank leaves next, with undefined contents; owned by the box. What
 *  was left before, by any rank, is given up: it must not be used any more.
 *  Fails on all ranks when one has no memory. Collective. */
tess_status tess_outbox_room(tess_outbox *box, int64_t bytes, void **room);

/** Send what has been put into the room: send_bytes[k] bytes for rank k, those for one
 *  rank after those for another. part[k] are then the recv_bytes[k] bytes (both [size])
 *  from rank k, until there is room anew: to be read only, as they may be its own.
 *  Collective. */
tess_status tess_outbox_send(tess_outbox *box, const int64_t *send_bytes,
                             int64_t *recv_bytes, void **part);

/** What has been sent to this rank has been read: memory of messages is given up.
 *  Local. */
void tess_outbox_drop(tess_outbox *box);

/** Whether every rank can read all others' rooms, as they are since the last room; the
 *  same on all ranks. Local. */
bool tess_outbox_is_shared(const tess_outbox *box);

/** The room of a rank of a shared box, to be read only. What it has put there before
 *  both called tess_outbox_meet is seen. Local. */
void *tess_outbox_of(const tess_outbox *box, int rank);

/** Wait for all ranks of a shared box, which read `bytes` in this rank's room.
 *  Collective. */
tess_status tess_outbox_meet(const tess_outbox *box, int64_t bytes);

/** Give up all memory, until there is room again. Collective. */
void tess_outbox_empty(tess_outbox *box);

#endif
