/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Messages between processes of one host, over a socket, before they share memory. A device listens
 * at an abstract AF_UNIX address for each of its GIDs. A sender connects to a GID's address and
 * sends HELLO with the ring for its packets. The listener replies with WELCOME, then sends a
 * SEGMENT message for each registered part of memory. A connection carries packets in one
 * direction. For the reverse direction the listener connects to the sender. All messages have one
 * size, so that one read gets a whole message.
 *
 * Messages carry file descriptors; soft_shm_mem.c checks them.
 */
#ifndef SOFT_SHM_MSG_H
#define SOFT_SHM_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "soft_port_opts.h"

#define SOFT_SHM_MAGIC   0x62627368u /* "bbsh" */
#define SOFT_SHM_VERSION 7u
#define SOFT_SHM_NAME    SOFT_PORT_FABRIC
#define SOFT_SHM_GIDS    (1 + SOFT_PORT_IPS) /* The link-local GID, and one per ip option. */
#define SOFT_SHM_SEGS    256 /* Largest number of memory segments that a device shares. */
#define SOFT_SHM_MAX_FDS 2

enum soft_shm_type {
	SOFT_SHM_HELLO = 1, /* Carries the descriptors of the sender's directory and ring. */
	SOFT_SHM_WELCOME,   /* Carries the descriptor of the listener's directory. */
	SOFT_SHM_REFUSED,
	SOFT_SHM_SEGMENT, /* Carries the descriptor of the segment's file. */
	SOFT_SHM_BYE,     /* Sent by a device before it closes, in either direction. */
	SOFT_SHM_WAKE, /* Sent after a packet to a listener that is asleep (soft_shm_dir.asleep). */
	SOFT_SHM_TYPES
};

enum soft_shm_refusal {
	SOFT_SHM_REFUSED_USER = 1,
	SOFT_SHM_REFUSED_FULL,
	SOFT_SHM_REFUSED_VERSION
};

struct soft_shm_msg {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	union {
		struct {
			uint32_t n_gids;
			uint32_t zero;
			uint8_t gids[SOFT_SHM_GIDS][16];
		} hello;
		struct {
			uint32_t slot; /* Index of the connection's head counter in the listener's
					* directory. */
		} welcome;
		struct {
			uint32_t why;
		} refused;
		struct {
			uint32_t slot, gen;
			uint64_t off, len; /* Range of the file that the segment covers, bytes. */
		} segment;
		uint8_t room[248];
	} u;
};

/* Bytes of the suffix of a socket address, including the final zero. */
#define SOFT_SHM_SUFFIX 32

/*
 * Builds a socket address: that of a GID on a fabric, followed by @suffix. Returns its length. See
 * soft_shm_slot.h for the suffixes.
 */
socklen_t soft_shm_address(const char *fabric, const uint8_t gid[16], const char *suffix,
			   struct sockaddr_un *sun);

/*
 * Checks a received message of @len bytes with @n_fds descriptors. @from_listener: the listener
 * sent the message. Returns NULL if the message is valid, otherwise the reason.
 */
const char *soft_shm_msg_check(const struct soft_shm_msg *m, size_t len, uint32_t n_fds,
			       bool from_listener);

void soft_shm_msg_init(struct soft_shm_msg *m, enum soft_shm_type type);
/*
 * Sends a message with @n descriptors; never waits. Returns 0, -EAGAIN or another negative errno.
 */
int soft_shm_send(int sock, const struct soft_shm_msg *m, const int *fds, uint32_t n);
/*
 * Receives and checks the next message. The caller owns its descriptors. Returns 1 if a message was
 * received; 0 if no message is waiting; -ECONNRESET if the peer is gone; -EPROTO if the message is
 * invalid, with the reason in *why; or another negative errno.
 */
int soft_shm_recv(int sock, bool from_listener, struct soft_shm_msg *m, int fds[SOFT_SHM_MAX_FDS],
		  const char **why);

/*
 * Listens at a GID's address for the QPNs of a slot. Returns 0 or a negative errno. -EADDRINUSE:
 * another process owns the address. *pid identifies that process, 0 if unknown. If @pid is NULL,
 * the call does not connect to the owner to find that out.
 */
int soft_shm_listen(const char *fabric, const uint8_t gid[16], uint32_t slot, int *sock,
		    pid_t *pid);
/*
 * Connects to a GID's address, to the device with the QPNs of a slot. Returns 0 or a negative
 * errno. -ECONNREFUSED: the address has no owner; -EAGAIN: the owner's queue is full.
 */
int soft_shm_connect(const char *fabric, const uint8_t gid[16], uint32_t slot, int *sock);
/* Accepts a connection. Returns 0, -EAGAIN if no peer connects, or another negative errno. */
int soft_shm_accept(int listener, int *sock);
/*
 * Returns the process that connected, or that called listen() for the other end, and its user. The
 * process may have ended since, while a child of fork() holds the socket. *pid is 0 if the process
 * is in another PID namespace.
 */
int soft_shm_peer(int sock, pid_t *pid, uid_t *uid);
/*
 * Returns a descriptor of the process @pid that is connected to @sock. poll() reports the
 * descriptor as readable when the process has ended. Returns -ESRCH if it has already ended, or
 * another negative errno.
 */
int soft_shm_peer_fd(int sock, pid_t pid);
/*
 * Returns true if the process of @pidfd lives, the connection @sock is open, and no message of the
 * peer waits.
 */
bool soft_shm_peer_lives(int sock, int pidfd);

#endif
