/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* State of an engine for a register page: its doorbell records and its CQs. See soft_doorbell.c. */
#ifndef SOFT_WATCH_H
#define SOFT_WATCH_H

#include <stdint.h>

struct soft_cq;
struct soft_qp;
struct soft_uar_page;

/*
 * A QP whose doorbell was lost lately: a store of another QP to the same register overwrote it
 * before the device read it (soft_doorbell.c).
 */
struct soft_hidden {
	const uint32_t *rec;
	uint32_t slot;      /* index of the record in the scan */
	uint32_t unchanged; /* reads in a row that found the record unchanged */
};

/* A register page and the doorbell records of its QPs, packed for the scan. */
struct soft_watch {
	struct soft_uar_page *uar;
	uint32_t n, cap;
	uint32_t pos;        /* index of the next doorbell record to scan */
	uint32_t left;       /* doorbell records still to scan since the last store to a register */
	uint32_t hot;        /* index of the QP rung last; may be past the end of the table */
	uint32_t bf;         /* state of the registers' halves: soft_bf.h */
	uint32_t rung_at[2]; /* number of entries read of each list of rung QPs: bb_rung.h */
	/*
	 * QPs whose stores are often hidden. Their records are read first after a store. There is
	 * room for every QP of the page.
	 */
	struct soft_hidden *hidden;
	uint32_t n_hidden;
	uint32_t hidden_pos;  /* index in hidden[] of the next record to read */
	uint32_t hidden_left; /* entries of hidden[] still to read after the last store */
	const uint32_t **rec;
	uint32_t *last; /* last value read of each doorbell record, big endian */
	struct soft_qp **qp;
	/*
	 * CQs that are armed through the page: number of entries in cq[], number allocated, next
	 * entry to scan, entries still to scan.
	 */
	uint32_t n_cq, cap_cq, cq_pos, cq_left;
	struct soft_cq **cq;
};

#endif
