/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A peer of the conversations on libibverbs, which runs in the guest. See peer_line.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer_line.h"

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mrs[LINE_TABLE];
static struct ibv_mw *mws[LINE_TABLE];
static struct ibv_qp *qps[LINE_TABLE];

static void
cmd_port(void)
{
	struct ibv_port_attr attr;
	int rc = ibv_query_port(context, 1, &attr);

	if (rc != 0)
		line_fail(rc, "ibv_query_port");
	else
		line_ok("state=%s", attr.state == IBV_PORT_ACTIVE ? "ACTIVE" : "DOWN");
}

static void
cmd_gid(void)
{
	char name[INET6_ADDRSTRLEN];
	union ibv_gid gid;

	if (ibv_query_gid(context, 1, line_number("index", 1), &gid) != 0)
		line_fail(errno, "ibv_query_gid");
	else
		line_ok("gid=%s", inet_ntop(AF_INET6, gid.raw, name, sizeof(name)));
}

static void
cmd_mr(void)
{
	uint64_t size = line_number("size", 4096);
	struct ibv_mr **mr = &mrs[line_index("n")];
	void *mem;

	if (size > LINE_MAX_MR || *mr != NULL) {
		line_fail(EINVAL, "mr");
		return;
	}
	mem = aligned_alloc(4096, (size + 4095) & ~UINT64_C(4095));
	if (mem == NULL) {
		line_fail(ENOMEM, "mr");
		return;
	}
	memset(mem, 0, size);
	*mr = ibv_reg_mr(pd, mem, size, line_access(line_text("access", "lwra")));
	if (*mr == NULL) {
		line_fail(errno, "ibv_reg_mr");
		free(mem);
		return;
	}
	line_mem_set(line_index("n"), mem, size);
	line_ok("addr=0x%" PRIx64 " lkey=0x%x rkey=0x%x", (uint64_t)(uintptr_t)mem, (*mr)->lkey,
		(*mr)->rkey);
}

static void
cmd_mw(void)
{
	struct ibv_mw **mw = &mws[line_index("n")];

	*mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	if (*mw == NULL)
		line_fail(errno, "ibv_alloc_mw");
	else
		line_ok("rkey=0x%x", (*mw)->rkey);
}

static void
cmd_qp(void)
{
	const char *type = line_text("type", "rc");
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = line_number("sq", 64),
			.max_recv_wr = line_number("rq", 64),
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = strcmp(type, "ud") == 0   ? IBV_QPT_UD
			   : strcmp(type, "uc") == 0 ? IBV_QPT_UC
						     : IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = LINE_QKEY,
		.qp_access_flags = line_access(line_text("access", "wra")),
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	struct ibv_qp **qp = &qps[line_index("n")];
	int rc;

	*qp = ibv_create_qp(pd, &init);
	if (*qp == NULL) {
		line_fail(errno, "ibv_create_qp");
		return;
	}
	mask |= init.qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	rc = ibv_modify_qp(*qp, &attr, mask);
	if (rc != 0)
		line_fail(rc, "INIT");
	else
		line_ok("qpn=0x%x", (*qp)->qp_num);
}

/* gid=, sgid=: destination of packets of a QP or an address handle. */
static int
address(struct ibv_ah_attr *ah)
{
	memset(ah, 0, sizeof(*ah));
	ah->is_global = 1;
	ah->port_num = 1;
	ah->grh.sgid_index = line_number("sgid", 1);
	ah->grh.hop_limit = 64;
	return inet_pton(AF_INET6, line_text("gid", ""), ah->grh.dgid.raw) == 1 ? 0 : EINVAL;
}

static void
cmd_rtr(void)
{
	struct ibv_qp *qp = qps[line_index("n")];
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = line_number("dqpn", 0),
		.rq_psn = line_number("psn", 0),
		.max_dest_rd_atomic = line_number("depth", 8),
		.min_rnr_timer = line_number("rnr", 12),
	};
	int mask = IBV_QP_STATE;
	int rc;

	if (qp == NULL) {
		line_fail(ENOENT, "qp");
		return;
	}
	if (qp->qp_type != IBV_QPT_UD) {
		for (unsigned int mtu = line_number("mtu", 1024); mtu > 256; mtu /= 2)
			attr.path_mtu++;
		if (address(&attr.ah_attr) != 0) {
			line_fail(EINVAL, "gid");
			return;
		}
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	}
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	rc = ibv_modify_qp(qp, &attr, mask);
	line_done(rc, "RTR");
}

static void
cmd_rts(void)
{
	struct ibv_qp *qp = qps[line_index("n")];
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = line_number("psn", 0),
		.timeout = line_number("timeout", 18),
		.retry_cnt = line_number("retry", 7),
		.rnr_retry = line_number("rnr", 7),
		.max_rd_atomic = line_number("depth", 8),
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	int rc;

	if (qp == NULL) {
		line_fail(ENOENT, "qp");
		return;
	}
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	rc = ibv_modify_qp(qp, &attr, mask);
	line_done(rc, "RTS");
}

static void
cmd_state(void)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
	struct ibv_qp *qp = qps[line_index("n")];
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (qp == NULL || ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) != 0)
		line_fail(EINVAL, "ibv_query_qp");
	else
		line_ok("state=%s", attr.qp_state <= IBV_QPS_ERR ? names[attr.qp_state] : "?");
}

static void
cmd_recv(void)
{
	struct ibv_qp *qp = qps[line_index("qp")];
	uint32_t len = line_number("len", 0);
	uint8_t *p = line_place(len);
	struct ibv_sge sge = {.addr = (uintptr_t)p, .length = len};
	struct ibv_recv_wr wr = {.wr_id = line_number("id", 0), .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;
	int rc;

	if (p == NULL)
		return;
	sge.lkey = mrs[line_index("mr")]->lkey;
	rc = qp == NULL ? ENOENT : ibv_post_recv(qp, &wr, &bad);
	line_done(rc, "ibv_post_recv");
}

static const enum ibv_wr_opcode opcodes[LINE_OPS] = {
	[LINE_SEND] = IBV_WR_SEND,
	[LINE_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
	[LINE_SEND_INV] = IBV_WR_SEND_WITH_INV,
	[LINE_WRITE] = IBV_WR_RDMA_WRITE,
	[LINE_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[LINE_READ] = IBV_WR_RDMA_READ,
	[LINE_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[LINE_CMP_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	[LINE_LOCAL_INV] = IBV_WR_LOCAL_INV,
	[LINE_BIND] = IBV_WR_BIND_MW,
};

/* Fills the fields that depend on the opcode. Returns 0 or an errno. */
static int
fill_request(struct ibv_send_wr *wr)
{
	struct ibv_mw *mw = mws[line_index("mw")];

	switch (wr->opcode) {
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		wr->wr.atomic.remote_addr = line_number("raddr", 0);
		wr->wr.atomic.rkey = line_number("rkey", 0);
		wr->wr.atomic.compare_add = line_number("compare", 0);
		wr->wr.atomic.swap = line_number("swap", 0);
		return 0;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		wr->invalidate_rkey = line_number("rkey", 0);
		return 0;
	case IBV_WR_BIND_MW:
		if (mw == NULL)
			return ENOENT;
		wr->bind_mw.mw = mw;
		wr->bind_mw.rkey = line_number("rkey", 0);
		wr->bind_mw.bind_info.mr = mrs[line_index("mr")];
		wr->bind_mw.bind_info.addr = wr->sg_list->addr;
		wr->bind_mw.bind_info.length = wr->sg_list->length;
		wr->bind_mw.bind_info.mw_access_flags = line_access(line_text("access", "wr"));
		wr->num_sge = 0;
		return 0;
	default:
		wr->wr.rdma.remote_addr = line_number("raddr", 0);
		wr->wr.rdma.rkey = line_number("rkey", 0);
		wr->imm_data = htonl(line_number("imm", 0));
		return 0;
	}
}

static void
cmd_send(void)
{
	struct ibv_qp *qp = qps[line_index("qp")];
	uint32_t len = line_number("len", 0);
	uint8_t *p = line_place(len);
	struct ibv_sge sge = {.addr = (uintptr_t)p, .length = len};
	struct ibv_send_wr wr = {.wr_id = line_number("id", 0), .sg_list = &sge, .num_sge = 1};
	struct ibv_send_wr *bad;
	struct ibv_ah_attr attr;
	enum line_op op = line_op();
	int rc;

	if (p == NULL)
		return;
	if (qp == NULL || op == LINE_OPS) {
		line_fail(EINVAL, "qp or op");
		return;
	}
	wr.opcode = opcodes[op];
	sge.lkey = mrs[line_index("mr")]->lkey;
	wr.send_flags = (strchr(line_text("flags", ""), 's') ? IBV_SEND_SOLICITED : 0) |
			(strchr(line_text("flags", ""), 'f') ? IBV_SEND_FENCE : 0);
	rc = fill_request(&wr);
	if (rc == 0 && qp->qp_type == IBV_QPT_UD) {
		wr.wr.ud.remote_qpn = line_number("dqpn", 0);
		wr.wr.ud.remote_qkey = line_number("qkey", LINE_QKEY);
		rc = address(&attr);
		/* The handle stays until the program ends: the request refers to it. */
		wr.wr.ud.ah = rc == 0 ? ibv_create_ah(pd, &attr) : NULL;
		if (rc == 0 && wr.wr.ud.ah == NULL)
			rc = errno;
	}
	if (rc == 0)
		rc = ibv_post_send(qp, &wr, &bad);
	line_done(rc, "ibv_post_send");
}

static void
cmd_poll(void)
{
	int64_t end = line_now_ms() + (int64_t)line_number("ms", 0);
	struct ibv_wc wc;
	int n;

	for (;;) {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n != 0 || line_now_ms() >= end)
			break;
		poll(NULL, 0, 1);
	}
	if (n < 0) {
		line_fail(EIO, "ibv_poll_cq");
		return;
	}
	if (n == 0) {
		line_ok("none");
		return;
	}
	line_ok("id=%" PRIu64
		" status=%d op=%d len=%u imm=0x%x inv=0x%x flags=%u qpn=0x%x src=0x%x",
		wc.wr_id, wc.status, wc.opcode, wc.byte_len,
		wc.wc_flags & IBV_WC_WITH_IMM ? ntohl(wc.imm_data) : 0,
		wc.wc_flags & IBV_WC_WITH_INV ? wc.invalidated_rkey : 0, wc.wc_flags, wc.qp_num,
		wc.src_qp);
}

static void
cmd_reset(void)
{
	struct ibv_qp **qp = &qps[line_index("n")];
	int rc = *qp == NULL ? ENOENT : ibv_destroy_qp(*qp);

	if (rc != 0) {
		line_fail(rc, "ibv_destroy_qp");
		return;
	}
	*qp = NULL;
	line_ok("%s", "");
}

static const struct line_command commands[] = {
	{"port", cmd_port}, {"gid", cmd_gid},   {"mr", cmd_mr},     {"mw", cmd_mw},
	{"qp", cmd_qp},     {"rtr", cmd_rtr},   {"rts", cmd_rts},   {"state", cmd_state},
	{"recv", cmd_recv}, {"send", cmd_send}, {"poll", cmd_poll}, {"reset", cmd_reset},
};

_Static_assert((int)LINE_ACCESS_LOCAL_WRITE == (int)IBV_ACCESS_LOCAL_WRITE &&
		       (int)LINE_ACCESS_REMOTE_WRITE == (int)IBV_ACCESS_REMOTE_WRITE &&
		       (int)LINE_ACCESS_REMOTE_READ == (int)IBV_ACCESS_REMOTE_READ &&
		       (int)LINE_ACCESS_REMOTE_ATOMIC == (int)IBV_ACCESS_REMOTE_ATOMIC &&
		       (int)LINE_ACCESS_MW_BIND == (int)IBV_ACCESS_MW_BIND,
	       "passed on as they are");

int
main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "rxe0";
	struct ibv_device **list = ibv_get_device_list(NULL);
	char line[1024];

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; list != NULL && list[i] != NULL; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			context = ibv_open_device(list[i]);
	if (context != NULL)
		pd = ibv_alloc_pd(context);
	if (pd != NULL)
		cq = ibv_create_cq(context, 1024, NULL, NULL, 0);
	if (cq == NULL) {
		line_fail(ENODEV, name);
		return 1;
	}
	line_ok("%s", name);
	while (fgets(line, sizeof(line), stdin) != NULL)
		line_run(line, commands, sizeof(commands) / sizeof(commands[0]));
	return 0;
}
