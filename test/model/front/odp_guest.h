/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A guest with a kernel's queue for UMRs, and a program with memory on demand: WQEs and mailboxes
 * as Linux's mlx5_ib writes them (umr.c and odp.c of Linux 6.1).
 */
#ifndef ODP_GUEST_H
#define ODP_GUEST_H

#include "front_guest.h"

#define UMR 0x25

/* The device of the tests that a build of their file uses. */
#ifndef ODP_DEVICE
#define ODP_DEVICE "soft0,link=ib"
#endif

#define READ_PAGE  UINT64_C(1)
#define WRITE_PAGE UINT64_C(3)

#define CHECK_FREE (1 << 5) /* fail if the key is in use */
#define CHECK_USED (2 << 5) /* fail if the key is free */
#define OFFSET     (1 << 4)

#define MASK_PD   (UINT64_C(1) << 7)
#define MASK_FREE (UINT64_C(1) << 29)
/* get_umr_enable_mr_mask(), _access_mask(), _pd_mask() and _translation_mask() of umr.c */
#define MASK_ENABLE                                                                                \
	(UINT64_C(1) << 13 | MASK_FREE | UINT64_C(0xf) << 17 | MASK_PD | UINT64_C(1) |             \
	 UINT64_C(1) << 1 | UINT64_C(1) << 6)
#define RIGHTS 0x3c /* lr, lw, rr, rw */

#define VA    UINT64_C(0x7d0000000000)
#define PAGES 16u

#define PF_TYPE 0xc
#define PF_WQE  0
#define PF_RDMA 1

struct odp {
	struct g_guest g;
	uint32_t uar, pd, phys;
	struct g_cq cq;
	struct g_qp qp;    /* of UMRs */
	struct pages list; /* one page, in which the kernel builds translations */
	struct g_owner u;
	struct pages mem;   /* PAGES pages of a program, some of which are present */
	struct g_path path; /* valid on an Ethernet port */
};

/* A UMR. */
struct odp_umr {
	uint32_t key;
	uint8_t flags, access, variant;
	uint64_t mask;
	uint32_t n;      /* size of the translations, in units of 16 bytes */
	uint64_t offset; /* the same units */
	bool free, len64;
	uint32_t pd, log_page;
	uint64_t start, len;
	uint32_t ds, bytes, lkey; /* 0: as n says, or the key of physical addresses */
	uint64_t addr;            /* 0: o->list */
};

void odp_open(struct odp *o, const char *device);
void odp_close(struct odp *o);
/* Moves the queue for UMRs to RTS. */
void odp_queue_up(struct odp *o);
/* Resets that queue after a failed UMR, and moves it to RTS again. */
void odp_queue_reset(struct odp *o);
/* Builds CREATE_MKEY of a free key, as create_cache_mkey() does. @size: units of 16 bytes. */
void odp_free_key_box(struct odp *o, uint32_t mode, uint32_t size);
uint32_t odp_free_key(struct odp *o, uint32_t mode, uint32_t size);
/* Posts a UMR. Returns the opcode of its CQE: 0, or 0xd if it failed. */
uint8_t odp_umr(struct odp *o, struct odp_umr a);
/* Writes pages @first to @first + @n - 1 of the program to o->list; @bits 0: they are missing. */
void odp_list(struct odp *o, uint32_t first, uint32_t n, uint64_t bits);
/* Returns the UMR that makes a key usable, with the translations in o->list. */
struct odp_umr odp_enable(const struct odp *o, uint32_t key, uint32_t n);
/* Makes a key of the owner over the program's pages, at address VA. */
uint32_t odp_key(struct odp *o, uint64_t bits);
/* Replaces 8 pages of the key from page @first on, as mlx5r_umr_update_xlt() does. */
void odp_update(struct odp *o, uint32_t key, uint32_t first, uint64_t bits);
/* Posts an RDMA request of the owner's QP. */
void odp_post(struct odp *o, uint8_t opcode, uint32_t rkey, uint64_t raddr, uint32_t lkey,
	      uint64_t addr, uint32_t len);
/* Posts a WRITE of @len bytes from the owner's memory to the key. */
void odp_write(struct odp *o, uint32_t key, uint64_t va, uint32_t len);
void odp_assert_arrived(struct odp *o, uint64_t va, uint32_t len);
/* Waits for a page fault, the next event after @seen events. */
void odp_wait_fault(struct odp *o, uint32_t seen);
/* Polls for several repetitions of a waiting request. Nothing may complete, nor be reported. */
void odp_assert_waits(struct odp *o);
/* Answers a page fault. Returns the status. */
uint32_t odp_resume(struct odp *o, uint16_t uid, uint32_t type, uint32_t wq, uint32_t token,
		    bool error);

#endif
