/** @file tess_outbox.h
 *  Messages that ranks exchange repeatedly. It works as tess_comm_alltoallv(), but
 *  inside a node nothing is copied: a rank reads a message in the memory of its sender.
 */
#ifndef TESS_OUTBOX_H
#define TESS_OUTBOX_H

#include "tess_comm.h"

typedef struct tess_outbox tess_outbox;

/** Make an outbox, which has no memory yet. Local. */
tess_status tess_outbox_create(tess_comm *comm, tess_outbox **box);

/** NULL is fine. Collective. */
void tess_outbox_free(tess_outbox *box);

/** Get room for the next messages of this rank, with undefined contents; the box owns
 *  it. The earlier messages of all ranks are dropped and must not be used any more. The
 *  ranks agree on `status` with the same message. If one rank has no memory, the call
 *  fails on all ranks. Collective. */
tess_status tess_outbox_room(tess_outbox *box, tess_status status, int64_t bytes,
                             void **room);

/** As tess_outbox_room, if all ranks ask for the same number of bytes, and have met
 *  since they read the earlier messages. No message is sent if the box has the room.
 *  Collective. */
tess_status tess_outbox_same_room(tess_outbox *box, int64_t bytes, void **room);

/** Send the messages in the room: send_bytes[k] bytes for rank k, in the order of
 *  ranks. Afterwards part[k] points to the recv_bytes[k] bytes from rank k (both arrays
 *  have an element for each rank). They are valid until the next tess_outbox_room() and
 *  must only be read, because they may lie in the memory of rank k. If `status` is bad
 *  on any rank, nothing is sent, and the call fails on all ranks as tess_comm_agree
 *  does; the arrays may be NULL on that rank. Collective. */
tess_status tess_outbox_send(tess_outbox *box, tess_status status,
                             const int64_t *send_bytes, int64_t *recv_bytes,
                             void **part);

/** This rank has read its messages: free the memory of the messages. Local. */
void tess_outbox_drop(tess_outbox *box);

/** Whether every rank can read the current rooms of all other ranks. The result is the
 *  same on all ranks. Local. */
bool tess_outbox_is_shared(const tess_outbox *box);

/** The room of a rank of a shared box, which must only be read. The caller sees what
 *  that rank wrote before both of them called tess_outbox_meet(). Local. */
void *tess_outbox_of(const tess_outbox *box, int rank);

/** Wait for all ranks of a shared box, which agree on `status`. They read `bytes` in
 * the room of this rank. Collective. */
tess_status tess_outbox_meet(const tess_outbox *box, tess_status status, int64_t bytes);

/** Free the memory if there is much of it, because no room is asked for in a while.
 *  Collective. */
void tess_outbox_rest(tess_outbox *box);

/** Free all memory until the next tess_outbox_room(). Collective. */
void tess_outbox_empty(tess_outbox *box);

#endif
