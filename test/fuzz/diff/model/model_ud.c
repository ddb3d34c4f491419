/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Datagrams: which are received and which are lost silently (IBTA vol. 1, 9.8.3), and the 40
 * bytes before the data (vol. 1, 8.3; on RoCE v2 an IP header, annex A17 and RFC 791).
 */
#include <string.h>

#include "diff.h"

#define HEAD 40u

static void
put(uint8_t *at, uint32_t bytes, uint32_t v)
{
	while (bytes-- != 0) {
		at[bytes] = (uint8_t)v;
		v >>= 8;
	}
}

/* RFC 1071. */
static uint32_t
checksum(const uint8_t *p, uint32_t len)
{
	uint32_t sum = 0, i;

	for (i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i % 2 == 0 ? 8 : 0);
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	return 0xffff - sum;
}

static void
head_of(const struct model *m, const struct m_qp *qp, const struct m_wqe *w, uint8_t head[HEAD])
{
	static const uint8_t ipv4[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *from = m->world->gid[qp->pd % m->devs][w->ah.gid].raw;
	const uint8_t *to = m->world->gid[w->ah.dev][w->ah.gid].raw;
	bool v2 = m->world->gid[qp->pd % m->devs][w->ah.gid].type == BB_GID_ROCE_V2;
	/* BTH, DETH, immediate, data padded to words, ICRC. */
	uint32_t bytes = 12 + 8 + (model_has_imm(w->op) ? 4 : 0) + (w->len + 3) / 4 * 4 + 4;
	uint32_t hops = w->ah.hops != 0 ? w->ah.hops : 64;

	memset(head, 0, HEAD);
	if (v2 && memcmp(from, ipv4, sizeof(ipv4)) == 0) {
		uint8_t *ip = head + 20;

		put(ip, 2, 0x4500 | w->ah.tclass);
		put(ip + 2, 2, 20 + 8 + bytes);
		put(ip + 6, 2, 0x4000); /* never in fragments */
		put(ip + 8, 2, hops << 8 | 17);
		memcpy(ip + 12, from + 12, 4);
		memcpy(ip + 16, to + 12, 4);
		put(ip + 10, 2, checksum(ip, 20));
		return;
	}
	put(head, 4, 6u << 28 | w->ah.tclass << 20 | w->ah.flow);
	put(head + 4, 2, v2 ? 8 + bytes : bytes);
	put(head + 6, 2, (v2 ? 17u : 0x1bu) << 8 | hops);
	memcpy(head + 8, from, 16);
	memcpy(head + 24, to, 16);
}

/* Returns the receiver: a UD queue pair of the device that the address names. */
static struct m_qp *
receiver(struct model *m, const struct m_qp *qp, const struct m_wqe *w)
{
	struct m_qp *p = &m->qp[w->dest];
	/* The top bit selects the sender's own Q_Key (10.2.5). */
	uint32_t qkey = w->qkey >> 31 != 0 ? qp->qkey : w->qkey;

	if (!p->live || p->gen != w->dest_gen || p->type != BB_QPT_UD ||
	    p->pd % m->devs != w->ah.dev || (p->state != BB_QP_RTR && p->state != BB_QP_RTS) ||
	    p->qkey != qkey)
		return NULL;
	return p;
}

void
model_ud_send(struct model *m, struct m_qp *qp, const struct m_wqe *w, const struct m_places *own)
{
	static uint8_t data[HEAD + MAX_SGE * BUF_LEN];
	struct m_wc wc = {.opcode = BB_WC_RECV, .has_len = true, .len = w->len + HEAD};
	struct m_qp *p = receiver(m, qp, w);
	struct m_places to;
	uint8_t status;
	const struct m_wqe *r = p == NULL ? NULL : model_recv_next(m, p);

	if (r == NULL)
		return;
	status = model_recv_map(m, p, r, w->len + HEAD, &to);
	if (status == BB_WC_LOC_LEN_ERR)
		return;
	if (status != BB_WC_SUCCESS) {
		wc.status = status;
		model_recv_due(m, p, &wc);
		model_fail_qp(m, p);
		return;
	}
	model_clash(m, own, &to);
	/* On InfiniBand the handles have no GRH, and its 40 bytes are not written. */
	if (m->world->ib)
		model_get(m, &to, data);
	else
		head_of(m, qp, w, data);
	if (w->is_inline)
		memcpy(data + HEAD, w->data, w->len);
	else
		model_get(m, own, data + HEAD);
	model_put(m, &to, data);
	wc.flags = m->world->ib ? 0 : BB_WC_GRH;
	wc.from = (uint32_t)(qp - m->qp) + 1;
	if (model_has_imm(w->op)) {
		wc.flags |= BB_WC_WITH_IMM;
		wc.imm = w->imm;
	}
	if (w->flags & BB_SEND_SOLICITED)
		wc.flags |= BB_WC_SOLICITED;
	/* Two devices write at the same time, perhaps to the same memory. */
	m->receivers |= 1u << w->dest;
	m->blur |= m->devs > 1 && (m->receivers & (m->receivers - 1)) != 0;
	model_recv_due(m, p, &wc);
}
