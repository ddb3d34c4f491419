/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Two processes of one host, each with its own EAL and device. An action of a process is a
 * command, which the test executes itself or sends to the other process. While a command waits,
 * its process runs the device; so does the process that waits for the answer.
 */
#ifndef SHM_ACTOR_H
#define SHM_ACTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bluebell.h"

#define ACTOR_BUF    (8u << 20)
#define ACTOR_WAIT_S 60
#define ACTOR_QKEY   0x1234u
#define ACTOR_DATA   8192
#define ACTOR_MRS    4 /* at most, by ACTOR_MR_MORE */

enum actor_op {
	ACTOR_OPEN, /* text: device */
	ACTOR_QP,   /* a: type; addr: the QP's own address */
	/*
	 * addr: of the peer, b: rights that it does not get, y: max. outstanding READs, 0 for the
	 * default
	 */
	ACTOR_CONNECT,
	ACTOR_RESET,   /* resets the QP */
	ACTOR_MR,      /* x: offset, y: length, a: rights; raddr, rkey */
	ACTOR_MR_MORE, /* same for a further MR; b: 1 for another PD */
	ACTOR_DEREG,
	ACTOR_FILL,  /* x: offset, y: length, a: seed */
	ACTOR_SET,   /* x: offset, y: length, a: byte */
	ACTOR_READ,  /* x: offset, y: length; returns data */
	ACTOR_POST,  /* a: enum actor_verb, x: offset, y: length, raddr, rkey, imm */
	ACTOR_RECV,  /* x: offset, y: length */
	ACTOR_POLL,  /* returns a: status, b: opcode, x: byte_len, y: wr_id, imm */
	ACTOR_STATE, /* returns a: state of the QP */
	ACTOR_EVENT, /* returns a: type */
	ACTOR_STORM, /* writes to raddr, rkey without end, x: offset, y: length; no answer */
	ACTOR_RUN,   /* a: number of polls */
	ACTOR_QUIET, /* after DEREG: returns a: 1 if bytes of [x, x + y) change */
	ACTOR_QP_DESTROY,
	ACTOR_CLOSE,
	/*
	 * The process ends, and a child of clone(2), which holds copies of all descriptors, goes on
	 * in its place; returns x: PID of the child
	 */
	ACTOR_CLONE,
	ACTOR_EXIT,
};

enum actor_verb {
	ACTOR_WRITE,
	ACTOR_WRITE_TWO, /* two pieces */
	ACTOR_WRITE_IMM,
	ACTOR_READ_VERB,
	ACTOR_SEND,
	ACTOR_SEND_IMM,
	ACTOR_CMP_SWAP, /* z: compare, w: swap */
	ACTOR_FETCH_ADD,
};

struct actor_msg {
	uint32_t op;
	int ret;
	uint32_t a, b;
	uint64_t x, y, z, w;
	uint64_t raddr;
	uint32_t rkey, imm;
	struct bb_qp_addr addr;
	char text[128];
	uint8_t data[ACTOR_DATA];
};

struct actor {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_qp *qp;
	struct bb_mr *mr;
	struct bb_pd *other;
	struct bb_mr *more[ACTOR_MRS];
	uint32_t n_more;
	struct bb_ah *ah;
	uint32_t dest_qpn;
	enum bb_qp_type type;
	uint8_t timeout, retry_cnt; /* 0 for the defaults */
	struct bb_qp_addr addr;
	uint8_t *buf;
	bool heap;
	/* The process; pid is 0 if the actor is this process. */
	pid_t pid;
	int sock;
};

/* Starts EAL with @more options after the usual ones (NULL: none). Returns 0, or 77 to skip. */
int actor_eal(const char *name, const char *const *more, unsigned int n);
/* Executes a command in this process; *m becomes the answer. */
void actor_do(struct actor *s, struct actor_msg *m);
/* Main function of a process that executes the commands from descriptor 3. */
int actor_main(int argc, char **argv);

/* Starts a process that runs this program as `peer`, with more options of EAL. */
void actor_spawn(struct actor *s, const char *const *more, unsigned int n);
/* Sends a command to @s and waits for its answer; @us runs its device meanwhile. */
void actor_ask(struct actor *us, struct actor *s, struct actor_msg *m);
/* Sends a command to @s without waiting for its answer. */
void actor_tell(struct actor *s, const struct actor_msg *m);
void actor_kill(struct actor *s);
void actor_run(struct actor *s);

/* Returns byte @i of memory filled from @seed. */
static inline uint8_t
actor_byte(uint32_t seed, uint64_t i)
{
	return (uint8_t)(seed * 131 + i * 7 + (i >> 8));
}

#endif
