/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The target in another process.
 *
 * Who connects has the initiators, and runs the rows. Who listens gives memory, and a QP for each
 * connection, and does nothing else: all operations are one-sided. What is checked of the target's
 * memory is checked in a copy that the initiator writes there before, and reads back behind.
 */
#ifndef REMOTE_H
#define REMOTE_H

#include "testrdma.h"

#define REMOTE_MAGIC     UINT32_C(0x74726d61)
#define REMOTE_VERSION   1
#define REMOTE_REGION    "target"
#define REMOTE_MAX_BYTES (UINT64_C(1) << 32)

/* What comes with a request to connect. Big endian. */
struct remote_hello {
	uint32_t magic, version;
	uint64_t token; /* connections with the same one share the memory */
	uint64_t bytes; /* of it */
};

/* ---- remote.c: who connects */

/* Connect the QPs of all pairs, and learn where the target's memory is. @return 0, or said, -errno.
 */
int remote_connect(struct test *t);

/* Disconnect and free; QPs stay. */
void remote_close(struct test *t);

/* The copy of the target's memory to the target, or from it. Nothing in the same process. */
void remote_push(struct test *t);
void remote_pull(struct test *t);

/* ---- serve.c: who listens */

/*
 * Serve until everybody who came has gone, or it is stopped.
 * @return 0, or said, an exit status.
 */
int serve(struct test *t);

#endif
