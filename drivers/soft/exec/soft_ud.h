/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Datagrams: shared by the sender (soft_req_ud.c) and the receiver (soft_resp_ud.c). */
#ifndef SOFT_UD_H
#define SOFT_UD_H

#include "bb_roce_qp.h"
#include "soft_data.h"

#define SOFT_GRH 40u /* bytes before the data of every UD receive */
/*
 * Datagrams that may be pending at an engine that does not run. Further ones are dropped, as by a
 * full card.
 */
#define SOFT_MAX_DGRAMS 4096u

/* Header fields of a datagram's packet. */
struct soft_dgram {
	uint32_t src_qpn;
	uint32_t qkey;
	uint32_t imm; /* in network order */
	uint64_t len;
	uint8_t opcode; /* opcode of the WQE: SEND or SEND_IMM */
	bool solicited;
	bool grh;   /* head is valid */
	uint8_t sl; /* InfiniBand: SL; Ethernet: enum bb_cqe_l3 */
	uint16_t slid;
	uint8_t head[SOFT_GRH];
};

/* A copy in flight to another engine; the sender needs it no longer. */
struct soft_dgram_msg {
	struct soft_msg msg;
	struct soft_dgram dgram;
	uint8_t data[];
};

/* ---- soft_req_ud.c */
/*
 * Checks whether a packet can be built from the address vector of the WQE in @r. Returns 0 or a
 * syndrome.
 */
uint8_t soft_ud_check(struct soft_req *r, const struct soft_qp *qp);
/* Fills in the packet's network fields from the address vector. */
void soft_ud_net(const struct soft_qp *qp, const struct bb_wqe_av *av, struct bb_roce_net *net);
/* Writes the bytes that precede the data at the receiver, and the fields for its CQE. */
void soft_ud_head(struct soft_dgram *d, const struct bb_roce_net *net, enum bb_gid_type type);
/* Sends the datagram. There is no answer. */
void soft_ud_send(struct soft_engine *e, struct soft_qp *qp, const struct soft_req *r);

/* ---- soft_resp_ud.c */
/* Writes a datagram to the next receive of @p. Called on the engine of @p. */
void soft_ud_receive(struct soft_engine *e, struct soft_qp *p, const struct soft_dgram *d,
		     const struct soft_piece *piece, uint32_t n);
/* Writes the CQE of a datagram after its data and head. Returns false if the CQ overran. */
bool soft_ud_complete(struct soft_engine *e, struct soft_qp *p, const struct soft_dgram *d);

/* ---- soft_msg.c */
/*
 * Passes a copy to the engine of @p. Returns false if too many are pending there, or there is no
 * memory.
 */
bool soft_dgram_post(const struct soft_qp *p, const struct soft_dgram *d,
		     const struct soft_piece *piece, uint32_t n);

#endif
