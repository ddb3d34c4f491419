/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A hostile guest with an Ethernet port: mailboxes of queues and flow tables, WQEs and doorbell
 * records of any content, and frames of any content from the other port. An input is a list of
 * steps. Each command must get a status, and a reset must free all.
 */
#include <rte_log.h>

#include "eth.h"
#include "eth_port.h"
#include "fuzz.h"

#define MAX_STEPS 64u

enum step {
	COMMAND,
	STORE,
	RING,
	FRAME,
	RESET,
	STEPS
};

static const uint16_t ops[] = {
	BB_PRM_OP_CREATE_SQ,
	BB_PRM_OP_MODIFY_SQ,
	BB_PRM_OP_QUERY_SQ,
	BB_PRM_OP_DESTROY_SQ,
	BB_PRM_OP_CREATE_RQ,
	BB_PRM_OP_MODIFY_RQ,
	BB_PRM_OP_QUERY_RQ,
	BB_PRM_OP_DESTROY_RQ,
	BB_PRM_OP_CREATE_TIS,
	BB_PRM_OP_DESTROY_TIS,
	BB_PRM_OP_CREATE_TIR,
	BB_PRM_OP_DESTROY_TIR,
	BB_PRM_OP_CREATE_RQT,
	BB_PRM_OP_MODIFY_RQT,
	BB_PRM_OP_DESTROY_RQT,
	BB_PRM_OP_CREATE_FLOW_TABLE,
	BB_PRM_OP_MODIFY_FLOW_TABLE,
	BB_PRM_OP_DESTROY_FLOW_TABLE,
	BB_PRM_OP_CREATE_FLOW_GROUP,
	BB_PRM_OP_DESTROY_FLOW_GROUP,
	BB_PRM_OP_SET_FLOW_TABLE_ENTRY,
	BB_PRM_OP_DELETE_FLOW_TABLE_ENTRY,
	BB_PRM_OP_SET_FLOW_TABLE_ROOT,
	BB_PRM_OP_DESTROY_CQ,
};

/* Copies up to @len bytes of the input to @to, at a place that the input chooses. */
static void
patch(struct fuzz_in *in, uint8_t *to, uint32_t len)
{
	uint32_t at = (uint32_t)fuzz_u8(in) << 8 | fuzz_u8(in), n = fuzz_u8(in);

	for (at %= len; n > 0 && at < len; n--)
		to[at++] = fuzz_u8(in);
}

/* A mailbox of the port's own making, changed in up to three places. */
static void
command(struct port *p, struct fuzz_in *in)
{
	uint16_t op = ops[fuzz_u8(in) % (sizeof(ops) / sizeof(ops[0]))];
	uint32_t i, n = fuzz_u8(in) % 4, status;

	if (op == BB_PRM_OP_CREATE_SQ || op == BB_PRM_OP_CREATE_RQ)
		queue_box(p, op, p->rcq.cqn, &p->rq_ring, p->rq_dbr,
			  op == BB_PRM_OP_CREATE_SQ ? LOG_SQ : LOG_RQ,
			  op == BB_PRM_OP_CREATE_SQ ? 6 : LOG_STRIDE);
	else if (op == BB_PRM_OP_SET_FLOW_TABLE_ENTRY)
		entry_box(p, p->table, p->group, 1, 4, 2, p->tirn);
	else if (op == BB_PRM_OP_CREATE_FLOW_GROUP)
		group_box(p, p->table, 2, 0, 0);
	else
		box(&p->g, op, 0, 16u << fuzz_u8(in) % 8);
	for (i = 0; i < n; i++)
		patch(in, p->g.in + 8, p->g.in_len - 8);
	bb_prm_set(p->g.in, BB_PRM_CMD_OPCODE, op);
	status = run(&p->g);
	fuzz_check(status == 0 || bb_prm_get(p->g.out, BB_PRM_CMD_SYNDROME) != 0);
}

static void
store(struct port *p, struct fuzz_in *in)
{
	const struct pages *const to[] = {&p->sq.ring, &p->rq_ring, &p->data, &p->buffers};

	if (fuzz_u8(in) & 1)
		patch(in, g_ram(&p->g, p->sq.dbr), 16);
	else
		patch(in, g_ram(&p->g, to[fuzz_u8(in) % 4]->pa[0]), PAGE);
}

/* Posts a WQE that is right but for the input's bytes, and rings. */
static void
ring(struct port *p, struct fuzz_in *in)
{
	uint8_t w[256] = {0}, ds = fuzz_u8(in) % 16;

	wqe_head(&p->sq, w, fuzz_u8(in) & 1 ? OP_SEND : OP_LSO, ds, G_CQE_UPDATE);
	bb_put32(w + 32, 64);
	bb_put32(w + 36, p->key);
	bb_put64(w + 40, p->data.pa[0]);
	patch(in, w + 8, sizeof(w) - 8);
	g_post(&p->g, &p->sq, w, RTE_ALIGN_CEIL(RTE_MAX(ds * 16u, 64u), 64u));
	g_ring(&p->g, &p->sq, w, 8);
	if (fuzz_u8(in) & 1)
		(void)modify_queue(p, BB_PRM_OP_MODIFY_SQ, p->sqn, ERR, RST);
}

static void
frame(struct port *from, struct fuzz_in *in)
{
	uint8_t f[256] = {0};
	uint32_t len = 60 + fuzz_u8(in) % 196;

	tcp_frame(f, len, 0);
	patch(in, f, len);
	eth_link_send(from->g.f->eth, f, len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, len};
	uint32_t i;

	rte_log_set_global_level(RTE_LOG_EMERG);
	ports_open(NULL);
	for (i = 0; i < MAX_STEPS && in.left > 0; i++)
		switch ((enum step)(fuzz_u8(&in) % STEPS)) {
		case COMMAND:
			command(ports[0], &in);
			break;
		case STORE:
			store(ports[0], &in);
			break;
		case RING:
			ring(ports[0], &in);
			break;
		case FRAME:
			frame(ports[1], &in);
			break;
		default:
			front_reset(ports[0]->g.f);
			fuzz_check(ports[0]->g.windows == 0);
		}
	ports_close(NULL);
	return 0;
}
