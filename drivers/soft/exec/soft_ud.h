/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * UD datagrams: declarations shared by the sender (soft_req_ud.c) and the receiver
 * (soft_resp_ud.c).
 */
#ifndef SOFT_UD_H
#define SOFT_UD_H

#include "bb_roce_qp.h"
#include "soft_data.h"

#define SOFT_GRH 40u /* bytes reserved for the GRH before the data of every UD receive */
/*
 * Largest number of datagrams that may be pending at an engine that does not poll. Further
 * datagrams are dropped, as by a card whose buffer is full.
 */
#define SOFT_MAX_DGRAMS 4096u

/* Packet header fields of a datagram. */
struct soft_dgram {
	uint32_t src_qpn;
	uint32_t qkey;
	uint32_t imm; /* immediate data in network byte order */
	uint64_t len;
	uint8_t opcode; /* opcode of the sender's WQE: SEND or SEND_IMM */
	bool solicited;
	bool grh;   /* true if head has a valid GRH */
	uint8_t sl; /* on InfiniBand the service level, on Ethernet an enum bb_cqe_l3 */
	uint16_t slid;
	uint8_t head[SOFT_GRH];
};

/*
 * A copy of a datagram, in flight to another engine. The sender may complete its WQE before the
 * copy is delivered.
 */
struct soft_dgram_msg {
	struct soft_msg msg;
	struct soft_dgram dgram;
	uint8_t data[];
};

/* ---- soft_req_ud.c */
/*
 * Checks whether a packet can be built from the address vector of the WQE in @r. Returns 0 or an
 * error syndrome for the CQE.
 */
uint8_t soft_ud_check(struct soft_req *r, const struct soft_qp *qp);
/*
 * Sets the network fields of the packet (addresses, UDP source port, traffic class) from the
 * address vector.
 */
void soft_ud_net(const struct soft_qp *qp, const struct bb_wqe_av *av, struct bb_roce_net *net);
/*
 * Writes the bytes that precede the data at the receiver (@d->head), and the fields for the
 * receiver's CQE.
 */
void soft_ud_head(struct soft_dgram *d, const struct bb_roce_net *net, enum bb_gid_type type);
/*
 * Gives a copy of the datagram to the QP, or to the members of the group, that the WQE's address
 * vector names. Sends no packet. The receiver sends no acknowledgement, so the sender does not
 * learn whether the datagram was dropped.
 */
void soft_ud_send(struct soft_engine *e, struct soft_qp *qp, const struct soft_req *r);

/* ---- soft_resp_ud.c */
/* Writes a datagram to the next receive of @p. Call it only on the engine of @p. */
void soft_ud_receive(struct soft_engine *e, struct soft_qp *p, const struct soft_dgram *d,
		     const struct soft_frag *frag, uint32_t n);
/*
 * Writes the CQE of a datagram whose header and data are already written. Returns false if the CQ
 * overran.
 */
bool soft_ud_complete(struct soft_engine *e, struct soft_qp *p, const struct soft_dgram *d);

/* ---- soft_msg.c */
/*
 * Passes a copy of a datagram to the engine of @p. Returns false if too many datagrams are pending
 * there, or if there is no memory.
 */
bool soft_dgram_post(const struct soft_qp *p, const struct soft_dgram *d,
		     const struct soft_frag *frag, uint32_t n);

#endif
