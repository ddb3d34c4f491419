/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The requester of UD queue pairs: from address vector to packet.
 *
 * Layout of the address vector: rdma-core's mlx5dv.h (struct mlx5_wqe_av) and what libmlx5
 * writes there. Q_Keys: IBTA vol. 1, 10.2.5, a Q_Key whose top bit is set is replaced by
 * the QP's own. What stands in front of the data at the receiver: a GRH (IBTA vol. 1, 8.3);
 * on RoCE v2 the IP header, IPv4 in the last 20 of the 40 bytes (annex A17, and Linux's rxe).
 */
#include "soft_ud.h"

#define BTH  12u
#define DETH 8u
#define IMM  4u
#define ICRC 4u
#define UDP  8u
#define IPV4 20u

static const struct bb_wqe_av *
soft_ud_av(const struct soft_req *r)
{
	return (const struct bb_wqe_av *)(const void *)(r->wqe + BB_WQE_SEG);
}

static uint32_t
soft_ud_sgid(const struct bb_wqe_av *av)
{
	return bb_be32(av->grh_gid_fl) >> 20 & 0xff;
}

/* Does the packet have a GRH? On Ethernet every one has. */
static bool
soft_ud_has_grh(const struct soft_qp *qp, const struct bb_wqe_av *av)
{
	return !qp->dev->opts.link_ib || (bb_be32(av->grh_gid_fl) & BB_WQE_AV_GRH) != 0;
}

/* Which of these a card checks, and with which syndrome, is [A]. */
uint8_t
soft_ud_check(struct soft_req *r, const struct soft_qp *qp)
{
	const struct bb_wqe_av *av = soft_ud_av(r);
	uint32_t sgid = soft_ud_sgid(av);

	if ((bb_be32(av->dest_qpn) & BB_WQE_EXT_AV) == 0) {
		r->why = "the address vector is not marked as one of 48 bytes (bit 31 of dqp_dct)";
		return BB_SYN_LOCAL_QP_OP;
	}
	if (soft_ud_has_grh(qp, av) && (sgid >= SOFT_MAX_GIDS || !qp->dev->gid_valid[sgid])) {
		r->why = "the address vector's source GID is empty";
		return BB_SYN_LOCAL_QP_OP;
	}
	return 0;
}

/* Who has the address. NULL: nobody, or not with that MAC. */
static struct soft_dev *
soft_ud_dest(const struct soft_qp *qp, const struct bb_wqe_av *av)
{
	struct soft_dev *dest;

	if (qp->dev->opts.link_ib)
		return soft_dev_peek_lid(bb_be16(av->rlid));
	dest = soft_dev_peek_gid(av->rgid);
	if (dest == NULL || av->hop_limit == 0 || memcmp(av->rmac, dest->mac, 6) != 0)
		return NULL;
	return dest;
}

static struct soft_qp *
soft_ud_target(const struct soft_qp *qp, const struct bb_wqe_av *av)
{
	struct soft_dev *dest = soft_ud_dest(qp, av);
	struct soft_qp *p;
	uint32_t state;

	if (dest == NULL)
		return NULL;
	p = soft_qp_find(dest, bb_be32(av->dest_qpn) & ~BB_WQE_EXT_AV);
	/* With a QP the device is open, and what it was opened with stays. */
	if (p == NULL || p->st != BB_PRM_QP_ST_UD || dest->opts.link_ib != qp->dev->opts.link_ib)
		return NULL;
	state = soft_qp_state(p);
	if (state != BB_PRM_QP_RTS && state != BB_PRM_QP_RTR)
		return NULL;
	if (__atomic_load_n(&qp->dev->port_down, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&dest->port_down, __ATOMIC_RELAXED))
		return NULL;
	return p;
}

static void
put16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static void
put32(uint8_t *at, uint32_t v)
{
	put16(at, v >> 16);
	put16(at + 2, v);
}

/* RFC 791: the complement of the ones' complement sum. */
static uint32_t
ipv4_checksum(const uint8_t *header)
{
	uint32_t sum = 0, i;

	for (i = 0; i < IPV4; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	return ~sum & 0xffff;
}

/* @bytes: of the InfiniBand packet from BTH to ICRC. */
static void
soft_ud_ipv4(uint8_t *head, const struct bb_wqe_av *av, const uint8_t *sgid, uint32_t bytes)
{
	uint8_t *ip = head + SOFT_GRH - IPV4;

	ip[0] = 0x45;
	ip[1] = av->tclass;
	put16(ip + 2, IPV4 + UDP + bytes);
	put16(ip + 6, 0x4000); /* do not fragment */
	ip[8] = av->hop_limit;
	ip[9] = 17; /* UDP */
	memcpy(ip + 12, sgid + 12, 4);
	memcpy(ip + 16, av->rgid + 12, 4);
	put16(ip + 10, ipv4_checksum(ip));
}

/* A GRH has the layout of an IPv6 header. */
static void
soft_ud_grh(uint8_t *head, const struct bb_wqe_av *av, const uint8_t *sgid, uint8_t next_header,
	    uint32_t bytes)
{
	put32(head, 6u << 28 | (uint32_t)av->tclass << 20 | (bb_be32(av->grh_gid_fl) & 0xfffff));
	put16(head + 4, bytes);
	head[6] = next_header;
	head[7] = av->hop_limit;
	memcpy(head + 8, sgid, 16);
	memcpy(head + 24, av->rgid, 16);
}

static void
soft_ud_head(const struct soft_qp *qp, const struct bb_wqe_av *av, struct soft_dgram *d)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const struct bb_gid *gid = &qp->dev->gids[soft_ud_sgid(av)];
	uint32_t bytes = BTH + DETH + (d->opcode == BB_WQE_SEND_IMM ? IMM : 0) +
			 (uint32_t)RTE_ALIGN(d->len, 4) + ICRC;

	memset(d->head, 0, sizeof(d->head));
	if (gid->type != BB_GID_ROCE_V2) {
		soft_ud_grh(d->head, av, gid->raw, 0x1b, bytes);
	} else if (memcmp(gid->raw, mapped, sizeof(mapped)) == 0) {
		d->sl = BB_CQE_L3_IPV4;
		soft_ud_ipv4(d->head, av, gid->raw, bytes);
	} else {
		d->sl = BB_CQE_L3_IPV6;
		soft_ud_grh(d->head, av, gid->raw, 17, UDP + bytes);
	}
}

void
soft_ud_send(struct soft_engine *e, struct soft_qp *qp, const struct soft_req *r)
{
	const struct bb_wqe_av *av = soft_ud_av(r);
	struct soft_qp *p = soft_ud_target(qp, av);
	uint32_t qkey = bb_be32(av->qkey);
	struct soft_dgram d = {
		.src_qpn = qp->qpn,
		.qkey = (qkey & 0x80000000u) != 0 ? qp->q_key : qkey,
		.imm = r->imm,
		.len = r->d.len,
		.opcode = r->d.opcode,
		.solicited = (r->d.fm_ce_se & BB_WQE_SE) != 0,
		.grh = soft_ud_has_grh(qp, av),
	};

	if (p == NULL) {
		SOFT_LOG(NOTICE,
			 "%s QP 0x%x: a datagram for QP 0x%x is lost: no UD QP of that number in "
			 "RTR or RTS at its address",
			 e->dev->name, qp->qpn, bb_be32(av->dest_qpn) & ~BB_WQE_EXT_AV);
		return;
	}
	if (qp->dev->opts.link_ib) {
		d.sl = av->rate_sl & 0xf;
		d.slid = qp->dev->lid;
	}
	if (d.grh)
		soft_ud_head(qp, av, &d);
	if (p->engine == e)
		soft_ud_receive(e, p, &d, r->piece, r->n);
	else if (!soft_dgram_post(p, &d, r->piece, r->n))
		SOFT_COUNT(p, out_of_buffer);
}
