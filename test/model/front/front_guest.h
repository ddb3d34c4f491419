/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A guest without a kernel: RAM in a memfd, and mailboxes as Linux's mlx5_ib writes them (qp.c,
 * cq.c, mr.c, devx.c of Linux 6.1). Pages of one object are never neighbours in RAM.
 */
#ifndef FRONT_GUEST_H
#define FRONT_GUEST_H

#include <string.h>

#include "bb_prm_kernel.h"
#include "bb_test_on.h"
#include "front.h"

#define RAM_PAGES 1024u
#define PAGE      4096u
#define EQN       5u

struct guest {
	struct front *f;
	struct front_host host;
	int fd;
	uint8_t *ram;
	uint32_t next; /* next page that pages() gives */
	uint32_t windows;
	uint32_t bell; /* offset of the register that g_ring() stores to */
	/* The last completion entry and the last other entry, and their numbers. */
	uint32_t comps, events;
	uint32_t comp_eqn, comp_cqn;
	uint8_t event_type, event[28];
	uint8_t in[65536], out[4352];
	uint32_t in_len;
};

/* @n pages of RAM, by their addresses in the guest. */
struct pages {
	uint64_t pa[64];
	uint32_t n;
};

struct g_cq {
	uint32_t cqn, log, ci, offset;
	struct pages ring;
	uint64_t dbr;
};

struct g_qp {
	uint32_t qpn, st, log_sq, offset, uar;
	uint16_t pi;
	struct pages ring;
	uint64_t dbr;
};

void guest_open(struct guest *g, const char *device);
void guest_close(struct guest *g);
struct pages guest_pages(struct guest *g, uint32_t n);
/* Returns the byte @off of an object in @p. */
uint8_t *guest_at(struct guest *g, const struct pages *p, uint64_t off);
uint8_t *guest_ram(struct guest *g, uint64_t pa);

/* Begins a mailbox of @len bytes in g->in. */
uint8_t *box(struct guest *g, uint16_t op, uint16_t uid, uint32_t len);
/* Appends pages to the mailbox, with @flags in their low bits. */
void box_list(struct guest *g, const struct pages *p, uint64_t flags);
/* Executes the mailbox. Returns its status. */
uint32_t run(struct guest *g);
/* Executes a command that names an object by the usual field. Returns its status. */
uint32_t run_on(struct guest *g, uint16_t op, uint16_t uid, uint32_t number);
/* Executes an allocation without arguments. Returns the number. */
uint32_t g_alloc(struct guest *g, uint16_t op, uint16_t uid);
uint16_t g_user(struct guest *g);
uint32_t g_mkey_box(struct guest *g, uint16_t uid, uint32_t pd, uint64_t va, uint64_t len,
		    const struct pages *p);
/* Registers memory at @va; returns the key, whose low byte is 0x5a. */
uint32_t g_mkey(struct guest *g, uint32_t pd, uint64_t va, uint64_t len, const struct pages *p);
void g_cq_box(struct guest *g, struct g_cq *cq, uint16_t uid, uint32_t uar);
void g_cq(struct guest *g, struct g_cq *cq, uint16_t uid, uint32_t uar);
void g_qp_box(struct guest *g, struct g_qp *qp, uint16_t uid, uint32_t pd, uint32_t uar,
	      uint32_t cqn);
void g_qp(struct guest *g, struct g_qp *qp, uint16_t uid, uint32_t st, uint32_t pd, uint32_t uar,
	  uint32_t cqn);
/* Builds the mailbox of a transition, with the attributes that mlx5_ib repeats. */
uint8_t *g_qp_modify_box(struct guest *g, const struct g_qp *qp, uint16_t uid, uint16_t op,
			 uint32_t pd, uint32_t cqn);
/* Moves a QP to RTS. @remote: QP of the same device. */
void g_qp_up(struct guest *g, const struct g_qp *qp, uint16_t uid, uint32_t pd, uint32_t cqn,
	     uint32_t remote);
/* Writes a WQE of whole blocks to the ring, and the doorbell record. */
void g_post(struct guest *g, struct g_qp *qp, const uint8_t *wqe, uint32_t len);
void g_ring(struct guest *g, struct g_qp *qp, const uint8_t *wqe, uint32_t len);
/* Waits for a CQE. Returns it, valid until the ring wraps. */
const uint8_t *g_cqe(struct guest *g, struct g_cq *cq);
/* Fills the head of a WQE of @ds segments. */
void wqe_head(const struct g_qp *qp, uint8_t *w, uint8_t opcode, uint32_t ds, uint8_t flags);
void put32(uint8_t *at, uint32_t v);
void put64(uint8_t *at, uint64_t v);

#define assert_status(g, expected) assert_int_equal(run(g), BB_PRM_STAT_##expected)

#endif
