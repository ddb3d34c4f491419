/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Verbs by the line, shared by every peer of the conversations. Reads commands from stdin and
 * answers each with one line, "ok ..." or "error ERRNO what". Objects have numbers that the
 * commands choose. A command is a word and NAME=VALUE pairs; numbers as strtoull reads them,
 * addresses of GIDs as inet_pton does. A peer that opened two devices executes a command on the
 * second one, with objects of its own, for on=1.
 *
 *   port                                    -> state=ACTIVE or state=DOWN
 *   gid index=                              -> gid=ADDRESS
 *   mr n= size= access=                     -> addr= lkey= rkey=   access: letters of lwrab
 *   mw n=                                   -> rkey=               type 2
 *   fill mr= off= len= seed=                bytes seed, seed + 1, ... modulo 251
 *   verify mr= off= len= seed=              -> differs=OFFSET or differs=no
 *   peek mr= off=  /  poke mr= off= value=  8 bytes in host order
 *   qp n= type=rc|uc|ud sq= rq= access=     -> qpn=; in INIT; access: letters of wra
 *   rtr n= gid= dqpn= psn= mtu= sgid= rnr= depth=
 *   rts n= psn= timeout= retry= rnr= depth=
 *   state n=                                -> state=; Bluebell: sq_psn= rq_psn=
 *   stats                                   -> counters of the device; Bluebell only
 *   recv qp= id= mr= off= len=
 *   send qp= id= op= mr= off= len= flags= raddr= rkey= imm= compare= swap= gid= dqpn= qkey= sgid=
 *        mw=     op: send send_imm send_inv write write_imm read fetch_add cmp_swap local_inv
 *        bind; flags: letters s (solicited) f (fence); rkey: also of send_inv, local_inv, bind
 *   poll ms=                                -> id= status= op= len= imm= inv= flags= qpn= src=
 *        in the numbers of struct ibv_wc; "ok none" if there is no completion within ms
 *   reset n=                                destroys the QP
 */
#ifndef PEER_LINE_H
#define PEER_LINE_H

#include <stdint.h>

#define LINE_SIDES   2
#define LINE_OBJECTS 64 /* of a kind and side */
#define LINE_TABLE   (LINE_SIDES * LINE_OBJECTS)
#define LINE_MAX_MR  (64u << 20)
#define LINE_QKEY    0x11111111 /* of every UD queue pair */

/* Rights with the values of IBV_ACCESS_* and BB_ACCESS_*. */
enum line_access {
	LINE_ACCESS_LOCAL_WRITE = 1 << 0,
	LINE_ACCESS_REMOTE_WRITE = 1 << 1,
	LINE_ACCESS_REMOTE_READ = 1 << 2,
	LINE_ACCESS_REMOTE_ATOMIC = 1 << 3,
	LINE_ACCESS_MW_BIND = 1 << 4,
};

/* op= of "send". */
enum line_op {
	LINE_SEND,
	LINE_SEND_IMM,
	LINE_SEND_INV,
	LINE_WRITE,
	LINE_WRITE_IMM,
	LINE_READ,
	LINE_FETCH_ADD,
	LINE_CMP_SWAP,
	LINE_LOCAL_INV,
	LINE_BIND,
	LINE_OPS,
};

struct line_command {
	const char *name;
	void (*run)(void);
};

/* Print the answer; one per command. */
void line_ok(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void line_fail(int err, const char *what);
/* Prints "ok", or an error if @rc is not 0. */
void line_done(int rc, const char *what);

/* Return the current command's arguments. */
const char *line_text(const char *name, const char *otherwise);
uint64_t line_number(const char *name, uint64_t otherwise);
/* Returns on=: 0 or 1. */
unsigned int line_side(void);
/* Returns an object's index in a table of LINE_TABLE, from its number and on=. */
unsigned int line_index(const char *name);
/* Converts letters of lwrab to enum line_access. */
unsigned int line_access(const char *letters);
/* Returns op=; LINE_OPS if it is unknown. */
enum line_op line_op(void);

/* Sets the memory of the MR at that index. */
void line_mem_set(unsigned int mr, void *mem, uint64_t size);
/*
 * Returns the address of mr=, off= and @len. Returns NULL after printing an error if it is not in
 * the MR.
 */
uint8_t *line_place(uint64_t len);

int64_t line_now_ms(void);

/* Executes a line: one of @commands, or fill, verify, peek, poke. */
void line_run(char *line, const struct line_command *commands, unsigned int n);

#endif
