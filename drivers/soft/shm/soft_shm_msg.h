/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * What processes of one host say to each other over a socket before they share memory. A device
 * listens at an abstract AF_UNIX address for each of its GIDs; who has packets for a GID connects
 * to it, says HELLO and hands over the ring they will be in. It gets a WELCOME, then SEGMENT
 * messages as memory is registered. A connection carries packets one way: the other side connects
 * for its own. All messages have one size, so that one read gets all of one.
 *
 * File descriptors go with messages; what a descriptor must be is in soft_shm_mem.c.
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
#define SOFT_SHM_VERSION 2u
#define SOFT_SHM_NAME    SOFT_PORT_FABRIC
#define SOFT_SHM_GIDS    (1 + SOFT_PORT_IPS) /* link-local, and the ip options */
#define SOFT_SHM_SEGS    64                  /* pieces of memory that a device hands over */
#define SOFT_SHM_MAX_FDS 2

enum soft_shm_type {
	SOFT_SHM_HELLO = 1, /* with the sender's directory and its ring */
	SOFT_SHM_WELCOME,   /* with the listener's directory */
	SOFT_SHM_REFUSED,
	SOFT_SHM_SEGMENT, /* with its memory */
	SOFT_SHM_BYE,     /* of either side: it closes its device */
	SOFT_SHM_TYPES
};

enum soft_shm_refusal {
	SOFT_SHM_REFUSED_USER = 1,
	SOFT_SHM_REFUSED_FULL,
	SOFT_SHM_REFUSED_VERSION,
	SOFT_SHM_REFUSALS
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
			uint32_t slot; /* the word of the directory that says how far it reads */
		} welcome;
		struct {
			uint32_t why;
		} refused;
		struct {
			uint32_t slot, gen;
			uint64_t off, len; /* of the file */
		} segment;
		uint8_t room[248];
	} u;
};

/* An address that a fabric's name and a GID make; its length. */
socklen_t soft_shm_address(const char *fabric, const uint8_t gid[16], struct sockaddr_un *sun);

/*
 * Is what has come one of our messages: @len bytes with @n_fds descriptors? @from_listener: by
 * whom. NULL: yes; else why not.
 */
const char *soft_shm_msg_check(const struct soft_shm_msg *m, size_t len, uint32_t n_fds,
			       bool from_listener);

void soft_shm_msg_init(struct soft_shm_msg *m, enum soft_shm_type type);
/* 0; -EAGAIN; -errno. Never waits. */
int soft_shm_send(int sock, const struct soft_shm_msg *m, const int *fds, uint32_t n);
/*
 * The next message, checked; its descriptors are the caller's then. 1; 0: none now; -ECONNRESET:
 * the other side is gone; -EPROTO: it is none, *why says why; -errno.
 */
int soft_shm_recv(int sock, bool from_listener, struct soft_shm_msg *m, int fds[SOFT_SHM_MAX_FDS],
		  const char **why);

/* Listen at a GID's address. -EADDRINUSE: *pid has it, 0 if that cannot be told. */
int soft_shm_listen(const char *fabric, const uint8_t gid[16], int *sock, pid_t *pid);
/* Connect to it. -ECONNREFUSED: nobody is there; -EAGAIN: it has too many that wait. */
int soft_shm_connect(const char *fabric, const uint8_t gid[16], int *sock);
/* 0 if there is one more, else -EAGAIN or -errno. */
int soft_shm_accept(int listener, int *sock);
int soft_shm_peer(int sock, pid_t *pid, uid_t *uid);

#endif
