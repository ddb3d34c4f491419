/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The target: workers, clients and slots.
 *
 * A worker is an lcore with its own device, listening port, CQ and io_uring. Workers share only the
 * backing, the file that the target serves. A client is a connection with its own PD. It has as
 * many slots as the depth that the target granted. The command with id N uses slot N, which has a
 * buffer of max_io bytes. These are the states of a slot for each operation:
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
#define CAPSULE                                                                                    \
	64u /* bytes of a receive: more than a command, so that longer ones are detected           \
	     */

/* Deliberate defects, which the checks of storage_client must find. */
enum defect {
	DEFECT_NONE,
	DEFECT_ACK_ONLY,   /* acknowledges writes without executing them */
	DEFECT_FLIP_READ,  /* flips a bit of the data read, after the checksum was computed */
	DEFECT_FLIP_WRITE, /* flips a bit of the data to write, after the checksum was checked */
};

struct options {
	const char *device[MAX_WORKERS];
	uint32_t devices;
	const char *listen;
	struct backing_attr file;
	uint32_t depth, max_io, clients;
	uint32_t idle_s; /* a client that sends no command for this many seconds may be disconnected
			    to make room for another one */
	uint32_t per_address; /* maximum number of clients per address; 0: no limit */
	bool uring;
	enum defect defect;
};

enum slot_state {
	SLOT_FREE,
	SLOT_PULLING, /* an RDMA READ gets the data of a write from the client */
	SLOT_IO,      /* the kernel executes the request */
	SLOT_SENDING, /* the target sends the completion, and the data of a read before it */
};

struct slot {
	struct blk_command cmd;
	/* valid if has_next: a command that arrived before the CQE of the last completion's SEND */
	struct blk_command next;
	uint8_t state;
	bool has_next;
};

struct client {
	struct worker *w;
	uint32_t index;
	struct bb_conn *conn; /* connection, NULL if there is none; without a connection the entry
				 is free if under_way is 0 */
	struct bb_qp *qp;
	struct bb_pd *pd;
	struct bb_mr *mr, *capsule_mr;
	uint8_t *mem; /* part of worker.mem: max_io bytes for each slot */
	uint8_t *capsules;
	struct slot *slots;
	uint32_t depth;
	uint32_t under_way; /* number of outstanding requests to the backing */
	bool ending, ring_send, ring_recv;
	bool active;   /* the client has sent a command */
	uint64_t last; /* TSC of the last command, or of the connection if there was none */
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
	bool ring; /* a client may have new requests whose doorbell was not rung */
	uint8_t *mem;
	size_t slice; /* bytes of mem for each client */
	uint64_t reads, writes, flushes, fuas, refused, served;
	int rc;
};

extern int target_failed; /* 1 if a worker cannot continue. Accessed with __atomic */

/* target_options.c */
int target_options_parse(void *o, int argc, char **argv);
void target_help(FILE *out);

/* target_client.c: connections */
int clients_open(struct worker *w);
void clients_close(struct worker *w);
void clients_watch(struct worker *w);
/*
 * Disconnects a client that violated the protocol or was idle too long. Sends the reason to the
 * client, and prints it.
 */
void client_drop(struct client *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*
 * Frees the queues and memory of a client without a connection. If the kernel still uses the
 * memory, frees only the QP; worker_done() then calls the function again.
 */
void client_release(struct client *c);
int client_post_receive(struct client *c, uint32_t i);

/* target_io.c: commands */
void worker_wc(struct worker *w, const struct bb_wc *wc);
void worker_done(struct worker *w, const struct io_done *done);

#endif
