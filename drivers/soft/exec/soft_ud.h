/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Datagrams: between the sender's half (soft_req_ud.c) and the receiver's (soft_resp_ud.c). */
#ifndef SOFT_UD_H
#define SOFT_UD_H

#include "bb_roce_qp.h"
#include "soft_data.h"

#define SOFT_GRH 40u /* bytes in front of the data of every UD receive */
/* Datagrams that wait at an engine that does not run: more are dropped, as by a full card. */
#define SOFT_MAX_DGRAMS 4096u

/* What the packet of a datagram says. */
struct soft_dgram {
	uint32_t src_qpn;
	uint32_t qkey;
	uint32_t imm; /* as it travels */
	uint64_t len;
	uint8_t opcode; /* of the WQE: SEND or SEND_IMM */
	bool solicited;
	bool grh;   /* head is there */
	uint8_t sl; /* InfiniBand: SL; Ethernet: enum bb_cqe_l3 */
	uint16_t slid;
	uint8_t head[SOFT_GRH];
};

/* A copy on its way to another engine: its sender is done with it. */
struct soft_dgram_msg {
	struct soft_msg msg;
	struct soft_dgram dgram;
	uint8_t data[];
};

/* ---- soft_req_ud.c */
/* Is the address vector of the WQE in @r one that a packet can be made with? 0, or a syndrome. */
uint8_t soft_ud_check(struct soft_req *r, const struct soft_qp *qp);
/* What the address vector says of the packet. */
void soft_ud_net(const struct soft_qp *qp, const struct bb_wqe_av *av, struct bb_roce_net *net);
/* What stands in front of the data at the receiver, and where the CQE says what it is. */
void soft_ud_head(struct soft_dgram *d, const struct bb_roce_net *net, enum bb_gid_type type);
/* Send it. Nobody answers. */
void soft_ud_send(struct soft_engine *e, struct soft_qp *qp, const struct soft_req *r);

/* ---- soft_resp_ud.c */
/* On the engine of @p: put a datagram into its next receive. */
void soft_ud_receive(struct soft_engine *e, struct soft_qp *p, const struct soft_dgram *d,
		     const struct soft_piece *piece, uint32_t n);
/* Its CQE, data and head being in place. False: the CQ overran. */
bool soft_ud_complete(struct soft_engine *e, struct soft_qp *p, const struct soft_dgram *d);

/* ---- soft_msg.c */
/* Hand a copy to the engine of @p. False: it has too many, or there is no memory. */
bool soft_dgram_post(const struct soft_qp *p, const struct soft_dgram *d,
		     const struct soft_piece *piece, uint32_t n);

#endif
