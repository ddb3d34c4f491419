/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The target: workers, clients and slots.
 *
 * A worker is an lcore with a device, a port it listens at, a CQ and an io_uring of its own; it
 * shares nothing with others but the backing. A client of it is a connection with a PD of its own,
 * and as many slots as the depth it was granted: command N of the client is in slot N, with a
 * piece of memory of max_io bytes.
 *
 *   free --read--> IO ----------> SENDING (WRITE + SEND) --> free
 *   free --write-> PULLING -> IO -> SENDING (SEND) --------> free
 *   free --flush-> IO ----------> SENDING
 */
#ifndef TARGET_H
#define TARGET_H

#include <bluebell.h>

#include "backing.h"
#include "blk_proto.h"
#include "program.h"

#define EXIT_FAILED 1
#define EXIT_USAGE  2

#define MAX_WORKERS 16u
#define CAPSULE     64u /* bytes of a receive: longer than a command, to see longer ones */

/* What a target does wrong, for tests of tests. */
enum defect {
	DEFECT_NONE,
	DEFECT_ACK_ONLY,   /* acknowledges writes and does not do them */
	DEFECT_FLIP_READ,  /* flips a bit of what was read, behind its checksum */
	DEFECT_FLIP_WRITE, /* flips a bit of what is written, behind the check */
};

struct options {
	const char *device[MAX_WORKERS];
	uint32_t devices;
	const char *listen;
	struct backing_attr file;
	uint32_t depth, max_io, clients;
	uint32_t idle_s, per_address; /* per_address 0: no limit */
	bool uring;
	enum defect defect;
};

enum slot_state {
	SLOT_FREE,
	SLOT_PULLING, /* RDMA READ of the data of a write */
	SLOT_IO,
	SLOT_SENDING, /* the completion, and the data of a read before it */
};

struct slot {
	struct blk_command cmd;
	struct blk_command next; /* has_next: came while our SEND's completion was on its way */
	uint8_t state;
	bool has_next;
};

struct client {
	struct worker *w;
	uint32_t index;
	struct bb_conn *conn; /* NULL: free, once nothing of it is under way */
	struct bb_qp *qp;
	struct bb_pd *pd;
	struct bb_mr *mr, *capsule_mr;
	uint8_t *mem; /* slots times max_io, in the worker's */
	uint8_t *capsules;
	struct slot *slots;
	uint32_t depth;
	uint32_t under_way; /* requests to the backing */
	bool ending, ring_send, ring_recv;
	bool active;   /* it has sent a command */
	uint64_t last; /* TSC of its last command, or of when it came */
	char name[64];
	uint64_t reads, writes, flushes, fuas, refused;
};

struct worker {
	const struct options *o;
	struct backing *b;
	uint32_t index, lcore, workers;
	struct bb_dev *dev;
	struct bb_cm *cm;
	struct bb_cq *cq;
	struct bb_listener *listener;
	struct io_queue *io;
	struct bb_blk_shape shape;
	struct client *clients;
	uint8_t *mem;
	size_t slice; /* bytes of a client */
	uint64_t reads, writes, flushes, fuas, refused, served;
	int rc;
};

extern int target_failed; /* a worker cannot go on; __atomic */

/* target_options.c */
int target_options_parse(void *o, int argc, char **argv);
void target_help(FILE *out);

/* target_client.c: connections */
int clients_open(struct worker *w);
void clients_close(struct worker *w);
void clients_watch(struct worker *w);
/* It did what it must not: end its connection, and tell it and the log why. */
void client_drop(struct client *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What of it is under way has ended. */
void client_release(struct client *c);
int client_post_receive(struct client *c, uint32_t i);

/* target_io.c: commands */
void worker_wc(struct worker *w, const struct bb_wc *wc);
void worker_done(struct worker *w, const struct io_done *done);

#endif
