/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The device node /dev/infiniband/rdma_cm: what the kernel's rdma_ucm and rdma_cm do for librdmacm.
 * Executes the commands of <rdma/rdma_user_cm.h>, ABI version 4, over the CM engine of lib/ibcm.
 * The program that hosts the node passes commands, received MADs and the time to it, and gives it
 * functions to send MADs and to reach the program's memory.
 *
 * Only IPv4 and IPv6 addresses are valid. A bind to an AF_IB address fails, after which librdmacm
 * uses the commands for IP addresses.
 *
 * Thread rule: one thread at a time calls the functions of a struct ucma and of its files. The
 * functions never wait. Times are in ns from any origin and never go back.
 */
#ifndef UCMA_H
#define UCMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bb_ibcm.h"

struct bb_gid;

/* All IDs of a host, and its CM engine. */
struct ucma;
/* An open file of the node: an event channel of librdmacm. */
struct ucma_file;

/* Functions of the program that hosts the node. They must not call the node. */
struct ucma_ops {
	/* Sends a MAD to QP1 of @net->dst. A MAD that cannot be sent may be dropped. */
	void (*tx)(void *ctx, const struct bb_ibcm_net *net, const uint8_t mad[BB_IBCM_MAD]);
	/* Reads entry @index of the port's GID table. Returns 0 or a negative errno. */
	int (*gid)(void *ctx, uint32_t index, struct bb_gid *gid);
	/*
	 * Checks whether a GID can be reached, and the process that has @qpn there if @qpn is not
	 * 0. Returns 0; -EAGAIN if the answer is not known yet; -EHOSTUNREACH if no host has the
	 * GID, or no process has the QPN; or another negative errno. On success sets *opening to a
	 * number that identifies the peer: it changes when another host or process takes the GID or
	 * QPN, or when the peer restarts. *opening is 0 if the link has no such number, or if @qpn
	 * is 0 and several processes have the GID.
	 */
	int (*reach)(void *ctx, uint32_t sgid_index, const uint8_t dgid[16], uint32_t qpn,
		     uint64_t *opening);
	/* Reports that the event queue of a file got its first event, or lost its last one. */
	void (*readable)(void *ctx, void *file_arg, bool readable);
	/* Copy from and to memory of the program. Return 0 or -EFAULT. */
	int (*copy_in)(void *ctx, void *to, uint64_t from, size_t len);
	int (*copy_out)(void *ctx, uint64_t to, const void *from, size_t len);
	/*
	 * Finds the file of the program's descriptor @fd. Returns 0; -ENOENT if the descriptor is
	 * not open; -EINVAL if it is not a file of the node.
	 */
	int (*file)(void *ctx, uint32_t fd, struct ucma_file **f);
	/*
	 * Reserves a port for this process at @n GIDs of the host, which other processes also use.
	 * @any: these are all GIDs of the host. @service_id: port space and port. Returns 0,
	 * -EADDRINUSE, -EADDRNOTAVAIL, or another negative errno. Sets *port, which may be NULL, to
	 * the argument for port_give(), which releases the port. Both function pointers are NULL if
	 * this process shares its GIDs with no other.
	 */
	int (*port_take)(void *ctx, const uint8_t (*gid)[16], uint32_t n, bool any,
			 uint32_t service_id, void **port);
	void (*port_give)(void *ctx, void *port);
};

struct ucma_attr {
	const struct ucma_ops *ops;
	void *ctx;
	uint64_t node_guid; /* in host order; librdmacm finds the device by it */
	uint32_t gids;      /* entries of the port's GID table */
	uint8_t mtu;        /* code of the port's MTU: 1 for 256 bytes to 5 for 4096 */
	uint8_t ack_delay; /* code of the device's ACK delay (ibv_device_attr.local_ca_ack_delay) */
	uint64_t seed;     /* secret random number from which communication IDs, PSNs and ports are
			      derived */
	uint8_t id_prefix; /* as in struct bb_ibcm_attr */
	/*
	 * log2 of the number of QPNs that each process of a peer's host has; 24 if one process has
	 * all
	 */
	uint8_t log_qpns;
	uint32_t max_ids; /* 1 to 65535, the largest number that librdmacm accepts as an ID */
};

/* Returns 0, -EINVAL for an attribute out of range, or -ENOMEM. */
int ucma_create(const struct ucma_attr *attr, struct ucma **u);
/* Frees the node. Close all files first. */
void ucma_destroy(struct ucma *u);

/* Opens the node. @arg: argument of ucma_ops.readable(). Returns 0 or -ENOMEM. */
int ucma_open(struct ucma *u, void *arg, struct ucma_file **f);
/*
 * Closes an open file of the node. Destroys the IDs of the file, so that peers learn of the end,
 * and its events.
 */
void ucma_close(struct ucma_file *f, uint64_t now);

/*
 * Executes a command that the program has written. Returns 0 or a negative errno. -EAGAIN: the
 * command reads an event and none is pending; call again after ucma_ops.readable().
 */
int ucma_write(struct ucma_file *f, const void *buf, size_t len, uint64_t now);

/* Handles a MAD that QP1 received. */
void ucma_rx(struct ucma *u, const struct bb_ibcm_gmp *gmp, const uint8_t *mad, size_t len,
	     uint64_t now);
/* Handles timeouts that have expired. */
void ucma_tick(struct ucma *u, uint64_t now);
/* Returns the time of the next timeout, BB_IBCM_NEVER if there is none. */
uint64_t ucma_deadline(const struct ucma *u);

/* For a process that is about to exit, after it has closed all files: see bb_ibcm_finish(). */
uint32_t ucma_finish(struct ucma *u, uint64_t interval, uint64_t now);

/* Returns the number of IDs, and the number of connections that the CM engine holds. */
uint32_t ucma_ids(const struct ucma *u);
uint32_t ucma_connections(const struct ucma *u);
/* Returns the counters of the CM engine. */
const struct bb_ibcm_stats *ucma_stats(const struct ucma *u);

#endif
