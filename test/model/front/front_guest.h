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
#include <time.h>

#include "bb_bytes.h"
#include "bb_prm_kernel.h"
#include "bb_test_on.h"
#include "front.h"

#define RAM_PAGES 1024u
#define PAGE      4096u
#define EQN       5u
#define G_WAIT_S  30u

#define G_WRITE      0x08
#define G_CQE_UPDATE 0x08 /* fm_ce_se: MLX5_WQE_CTRL_CQ_UPDATE */
/* Memory of struct g_owner: addresses at both ends, and the bytes of each. */
#define G_VA_FROM UINT64_C(0x7f0000000123)
#define G_VA_TO   UINT64_C(0x7e0000000801)
#define G_BYTES   9000u

/* Address of the peer of a QP. Without it the peer has LID 1. */
struct g_path {
	uint16_t lid;   /* 0 on an Ethernet port */
	uint32_t index; /* of the own GID */
	uint8_t gid[16], mac[6];
};

/* Another path to the front than its functions, such as the command queue of bb_hca. */
struct g_via {
	void (*command)(void *arg, const void *in, uint32_t inlen, void *out, uint32_t outlen);
	void (*doorbell)(void *arg, uint32_t uar, uint32_t off, const void *data, uint32_t len);
	void (*poll)(void *arg);
};

struct g_guest {
	struct front *f;
	struct front_host host;
	int fd;
	uint8_t *ram;
	uint32_t next;           /* next page that pages() gives */
	const struct g_via *via; /* NULL: the functions of front.h */
	void *via_arg;
	const struct g_path *path;
	uint32_t eqn; /* event queue of the CQs */
	uint32_t fatals;
	uint32_t windows;
	uint32_t bell;   /* offset of the register that g_ring() stores to */
	uint8_t *shared; /* register pages from number 0 on, to which g_ring() stores itself; NULL:
			    it calls front_doorbell() */
	/* The last completion entry and the last other entry, and their numbers. */
	uint32_t comps, events;
	uint32_t max_events; /* entries that the queue of other events has room for */
	uint32_t comp_eqn, comp_cqn;
	uint8_t event_type, event_sub, event[28];
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

/* A user with a queue pair that is connected to itself, and with memory at both ends. */
struct g_owner {
	uint16_t uid;
	uint32_t uar, pd, from_key, to_key;
	struct pages from, to;
	struct g_cq cq;
	struct g_qp qp;
};

void g_open(struct g_guest *g, const char *device);
void g_close(struct g_guest *g);
struct pages g_pages(struct g_guest *g, uint32_t n);
/* Returns the byte @off of an object in @p. */
uint8_t *g_at(struct g_guest *g, const struct pages *p, uint64_t off);
uint8_t *g_ram(struct g_guest *g, uint64_t pa);

/* Begins a mailbox of @len bytes in g->in. */
uint8_t *box(struct g_guest *g, uint16_t op, uint16_t uid, uint32_t len);
/* Appends pages to the mailbox, with @flags in their low bits. */
void box_list(struct g_guest *g, const struct pages *p, uint64_t flags);
/* Executes the mailbox. Returns its status. */
uint32_t run(struct g_guest *g);
/* Executes a command that names an object by the usual field. Returns its status. */
uint32_t run_on(struct g_guest *g, uint16_t op, uint16_t uid, uint32_t number);
/* Executes an allocation without arguments. Returns the number. */
uint32_t g_alloc(struct g_guest *g, uint16_t op, uint16_t uid);
uint16_t g_user(struct g_guest *g);
uint32_t g_mkey_box(struct g_guest *g, uint16_t uid, uint32_t pd, uint64_t va, uint64_t len,
		    const struct pages *p);
/* Registers memory at @va; returns the key, whose low byte is 0x5a. */
uint32_t g_mkey(struct g_guest *g, uint32_t pd, uint64_t va, uint64_t len, const struct pages *p);
void g_cq_box(struct g_guest *g, struct g_cq *cq, uint16_t uid, uint32_t uar);
void g_cq(struct g_guest *g, struct g_cq *cq, uint16_t uid, uint32_t uar);
void g_qp_box(struct g_guest *g, struct g_qp *qp, uint16_t uid, uint32_t pd, uint32_t uar,
	      uint32_t cqn);
void g_qp(struct g_guest *g, struct g_qp *qp, uint16_t uid, uint32_t st, uint32_t pd, uint32_t uar,
	  uint32_t cqn);
/* Builds the mailbox of a transition, with the attributes that mlx5_ib repeats. */
uint8_t *g_qp_modify_box(struct g_guest *g, const struct g_qp *qp, uint16_t uid, uint16_t op,
			 uint32_t pd, uint32_t cqn);
/* Moves a QP to RTS. @remote: QP of the same device. */
void g_qp_up(struct g_guest *g, const struct g_qp *qp, uint16_t uid, uint32_t pd, uint32_t cqn,
	     uint32_t remote);
/* Writes a WQE of whole blocks to the ring, and the doorbell record. */
void g_post(struct g_guest *g, struct g_qp *qp, const uint8_t *wqe, uint32_t len);
void g_ring(struct g_guest *g, struct g_qp *qp, const uint8_t *wqe, uint32_t len);
/* Waits for a CQE. Returns it, valid until the ring wraps. */
const uint8_t *g_cqe(struct g_guest *g, struct g_cq *cq);
void g_poll(struct g_guest *g);
/* Returns the time in seconds. A wait for the device ends after G_WAIT_S. */
static inline uint64_t
g_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}
/* Makes all of an owner, with its QP in RTS. */
void g_owner_open(struct g_guest *g, struct g_owner *u);
void g_owner_close(struct g_guest *g, struct g_owner *u);
/* Posts a write of G_BYTES, which moves the owner's memory, and rings the doorbell. */
void g_post_write(struct g_guest *g, struct g_owner *u);
/* Fills the head of a WQE of @ds segments. */
void wqe_head(const struct g_qp *qp, uint8_t *w, uint8_t opcode, uint32_t ds, uint8_t flags);

#define assert_status(g, expected) assert_int_equal(run(g), BB_PRM_STAT_##expected)

/*
 * For TEST_MAIN(): skips tests of UMRs and of memory on demand if process_vm_readv() is not
 * available, as in QEMU's emulation of a process. The device has neither then.
 */
int g_needs_paging(void);

#endif
