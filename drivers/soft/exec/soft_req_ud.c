/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The requester of UD queue pairs: builds the packet from the WQE's address vector.
 *
 * Layout of the address vector: rdma-core's mlx5dv.h (struct mlx5_wqe_av) and what libmlx5 writes.
 * If the top bit of the WQE's Q_Key is set, the packet has the Q_Key of the QP instead (IBTA vol.
 * 1, 10.2.5). At the receiver a GRH precedes the data (IBTA vol. 1, 8.3). On RoCE v2 the IP header
 * takes the place of the GRH; an IPv4 header is in the last 20 of the 40 bytes (annex A17, and
 * Linux's rxe).
 */
#include <netinet/in.h>

#include "soft_mcg.h"
#include "soft_port_stack.h"
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

/* Returns true if the packet has a GRH. On Ethernet every RoCE packet has one. */
static bool
soft_ud_has_grh(const struct soft_qp *qp, const struct bb_wqe_av *av)
{
	return !qp->dev->opts.link_ib || (bb_be32(av->grh_gid_fl) & BB_WQE_AV_GRH) != 0;
}

/*
 * Checks the address vector. Returns 0 or an error syndrome. A card may make other checks and
 * report other syndromes (so the behaviour here is an assumption, [A]).
 */
uint8_t
soft_ud_check(struct soft_req *r, const struct soft_qp *qp)
{
	const struct bb_wqe_av *av = soft_ud_av(r);
	uint32_t sgid = soft_ud_sgid(av);

	if ((bb_be32(av->dest_qpn) & BB_WQE_EXT_AV) == 0) {
		r->why = "the address vector is not marked as 48 bytes long: set bit 31 of dqp_dct";
		return BB_SYN_LOCAL_QP_OP;
	}
	if (qp->dev->opts.grh_required && !soft_ud_has_grh(qp, av)) {
		r->why = "the port requires a GRH, but the address vector has none: set bit 30 of "
			 "grh_gid_fl and the peer's GID";
		return BB_SYN_LOCAL_QP_OP;
	}
	/*
	 * On Ethernet the address vector has no flag for the GRH. But rgid is zero if software gave
	 * no GRH.
	 */
	if (soft_ud_has_grh(qp, av) && soft_gid_empty(av->rgid)) {
		r->why = "the address vector has no GID of the peer (rgid is zero)";
		return BB_SYN_LOCAL_QP_OP;
	}
	if (soft_ud_has_grh(qp, av) && (sgid >= SOFT_MAX_GIDS || !qp->dev->gid_valid[sgid])) {
		r->why = "the address vector's source GID index names an empty GID";
		return BB_SYN_LOCAL_QP_OP;
	}
	return 0;
}

/*
 * Returns the device with the destination address of @av. Returns NULL if no device has the
 * address, or if the device with the address has another MAC.
 */
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

/*
 * Returns true if @p can get a datagram of @qp. The options of the destination can be read without
 * a lock: its QP keeps the device open, and the options of an open device do not change.
 */
static bool
soft_ud_takes(const struct soft_qp *qp, const struct soft_qp *p)
{
	uint32_t state;

	if (p->st != BB_PRM_QP_ST_UD || p->wire != NULL ||
	    p->dev->opts.link_ib != qp->dev->opts.link_ib)
		return false;
	state = soft_qp_state(p);
	return (state == BB_PRM_QP_RTS || state == BB_PRM_QP_RTR) &&
	       !__atomic_load_n(&qp->dev->port_down, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&p->dev->port_down, __ATOMIC_RELAXED);
}

static struct soft_qp *
soft_ud_target(const struct soft_qp *qp, const struct bb_wqe_av *av)
{
	struct soft_dev *dest = soft_ud_dest(qp, av);
	struct soft_qp *p;

	if (dest == NULL)
		return NULL;
	p = soft_qp_dest(dest, bb_be32(av->dest_qpn) & ~BB_WQE_EXT_AV);
	return p != NULL && soft_ud_takes(qp, p) ? p : NULL;
}

/* Writes a GRH for @net. It has the layout of an IPv6 header. */
static void
soft_ud_grh(uint8_t *head, const struct bb_roce_net *net, uint8_t next_header, uint32_t bytes)
{
	bb_put32(head, 6u << 28 | (uint32_t)net->tclass << 20 | net->flow_label);
	bb_put16(head + 4, bytes);
	head[6] = next_header;
	head[7] = net->hop_limit;
	memcpy(head + 8, net->src, 16);
	memcpy(head + 24, net->dst, 16);
}

void
soft_ud_head(struct soft_dgram *d, const struct bb_roce_net *net, enum bb_gid_type type)
{
	uint32_t bytes = BTH + DETH + (d->opcode == BB_WQE_SEND_IMM ? IMM : 0) +
			 (uint32_t)RTE_ALIGN(d->len, 4) + ICRC;

	memset(d->head, 0, sizeof(d->head));
	if (type != BB_GID_ROCE_V2) {
		soft_ud_grh(d->head, net, 0x1b, bytes);
	} else if (soft_ip_is_v4(net->src) && soft_ip_is_v4(net->dst)) {
		d->sl = BB_CQE_L3_IPV4;
		soft_port_put_ip(d->head + SOFT_GRH - IPV4, net, IPPROTO_UDP, UDP + bytes);
	} else {
		d->sl = BB_CQE_L3_IPV6;
		soft_ud_grh(d->head, net, IPPROTO_UDP, UDP + bytes);
	}
}

void
soft_ud_net(const struct soft_qp *qp, const struct bb_wqe_av *av, struct bb_roce_net *net)
{
	memcpy(net->src, qp->dev->gids[soft_ud_sgid(av)].raw, sizeof(net->src));
	memcpy(net->dst, av->rgid, sizeof(net->dst));
	net->tclass = av->tclass;
	net->hop_limit = av->hop_limit;
	net->flow_label = bb_be32(av->grh_gid_fl) & 0xfffff;
	/*
	 * RoCE has no LID. libmlx5 stores the UDP source port in the field rlid (mlx5_create_ah()).
	 */
	net->sport = bb_be16(av->rlid);
}

/*
 * Gives a copy of the datagram to @p: at once if this engine runs @p, else through the inbox of the
 * engine of @p.
 */
static void
soft_ud_give(struct soft_engine *e, struct soft_qp *p, const struct soft_dgram *d,
	     const struct soft_req *r)
{
	if (p->engine == e)
		soft_ud_receive(e, p, d, r->frag, r->n);
	else if (!soft_dgram_post(p, d, r->frag, r->n))
		SOFT_COUNT(p, out_of_buffer);
}

/*
 * Returns true if the address vector names a multicast group: by its GID and, on InfiniBand, by a
 * LID from 0xc000 on (IBTA vol. 1, 4.1.3). On Ethernet returns false if the MAC is not that of the
 * GID, because no member would accept the frame.
 */
static bool
soft_ud_group(const struct soft_qp *qp, const struct bb_wqe_av *av)
{
	uint8_t mac[6];

	if (!soft_ud_has_grh(qp, av) || !bb_roce_is_mcast(av->rgid))
		return false;
	if (qp->dev->opts.link_ib)
		return bb_be16(av->rlid) >= 0xc000 && bb_be16(av->rlid) != 0xffff;
	soft_mcast_mac(av->rgid, mac);
	return av->hop_limit != 0 && memcmp(av->rmac, mac, sizeof(mac)) == 0;
}

/*
 * Sends the datagram to the members of its group on all devices of the process. Members on the
 * sender's device also get copies, even the sending QP itself (Linux: IPoIB drops its own copies,
 * which the card has made). At most SOFT_MAX_DEVS * SOFT_MAX_QP_MCG copies are made.
 */
static void
soft_ud_cast(struct soft_engine *e, const struct soft_qp *qp, const struct soft_dgram *d,
	     const struct soft_req *r)
{
	const struct bb_wqe_av *av = soft_ud_av(r);
	const struct soft_mcg *g;
	struct soft_dev *dest;
	uint32_t i, k;

	for (i = 0; i < SOFT_MAX_DEVS; i++) {
		dest = soft_dev_peek(i);
		g = dest != NULL ? soft_mcg_find(dest, av->rgid) : NULL;
		if (g != NULL)
			e->packets_left -= g->n;
		for (k = 0; g != NULL && k < g->n; k++)
			if (soft_ud_takes(qp, g->qp[k]))
				soft_ud_give(e, g->qp[k], d, r);
	}
}

void
soft_ud_send(struct soft_engine *e, struct soft_qp *qp, const struct soft_req *r)
{
	const struct bb_wqe_av *av = soft_ud_av(r);
	const uint32_t dqpn = bb_be32(av->dest_qpn) & ~BB_WQE_EXT_AV;
	const bool cast = dqpn == BB_ROCE_MCAST_QPN && soft_ud_group(qp, av);
	struct soft_qp *p = cast ? NULL : soft_ud_target(qp, av);
	uint32_t qkey = bb_be32(av->qkey);
	struct soft_dgram d = {
		.src_qpn = qp->sqpn,
		.qkey = (qkey & 0x80000000u) != 0 ? qp->q_key : qkey,
		.imm = r->imm,
		.len = r->d.len,
		.opcode = r->d.opcode,
		.solicited = (r->d.fm_ce_se & BB_WQE_SE) != 0,
		.grh = soft_ud_has_grh(qp, av),
	};
	struct bb_roce_net net;

	if (p == NULL && !cast) {
		SOFT_LOG(NOTICE,
			 "%s QP 0x%x: dropped a datagram for QP 0x%x: the destination has no UD QP "
			 "of that number in RTR or RTS",
			 e->dev->name, qp->qpn, dqpn);
		return;
	}
	if (qp->dev->opts.link_ib) {
		d.sl = av->rate_sl & 0xf;
		d.slid = qp->dev->lid;
	}
	if (d.grh) {
		soft_ud_net(qp, av, &net);
		soft_ud_head(&d, &net, qp->dev->gids[soft_ud_sgid(av)].type);
	}
	if (cast)
		soft_ud_cast(e, qp, &d, r);
	else
		soft_ud_give(e, p, &d, r);
}
