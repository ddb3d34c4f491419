/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A peer of the conversations on Bluebell, as verbs_peer.c is on libibverbs. See peer_line.h.
 *
 *   bb_peer -l 0 --no-huge -m 256 --no-pci -- DEVICE [DEVICE]
 *
 * Between commands it runs its devices, so it is a target even while it waits.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h> /* only for the numbers of struct ibv_wc */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bluebell.h>
#include <rte_common.h>
#include <rte_eal.h>
#include <rte_malloc.h>

#include "peer_line.h"

#define CQ_DEPTH 4096
/* Runs of the devices between two checks of stdin, each of which sleeps 1 ms. */
#define TURNS 64

struct side {
	const char *name;
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;
};

static struct side sides[LINE_SIDES];
static unsigned int nb_sides;
static struct bb_mr *mrs[LINE_TABLE];
static struct bb_mw *mws[LINE_TABLE];
static struct bb_qp *qps[LINE_TABLE];
static enum bb_qp_type types[LINE_TABLE];

static const struct side *
side(void)
{
	return &sides[line_side() < nb_sides ? line_side() : 0];
}

static void
run_devices(void)
{
	for (unsigned int i = 0; i < TURNS; i++)
		for (unsigned int k = 0; k < nb_sides; k++)
			bb_dev_progress(sides[k].dev);
}

static void
cmd_port(void)
{
	struct bb_port_attr attr;
	int rc = bb_port_query(side()->dev, 1, &attr);

	if (rc != 0)
		line_fail(-rc, "bb_port_query");
	else
		line_ok("state=%s", attr.state == BB_PORT_ACTIVE ? "ACTIVE" : "DOWN");
}

static void
cmd_gid(void)
{
	char name[INET6_ADDRSTRLEN];
	struct bb_gid gid;
	int rc = bb_gid_query(side()->dev, 1, (uint32_t)line_number("index", 1), &gid);

	if (rc != 0)
		line_fail(-rc, "bb_gid_query");
	else
		line_ok("gid=%s", inet_ntop(AF_INET6, gid.raw, name, sizeof(name)));
}

static void
cmd_mr(void)
{
	uint64_t size = line_number("size", 4096);
	struct bb_mr **mr = &mrs[line_index("n")];
	void *mem;
	int rc;

	if (size > LINE_MAX_MR || *mr != NULL) {
		line_fail(EINVAL, "mr");
		return;
	}
	mem = rte_zmalloc("mr", size, 4096);
	if (mem == NULL) {
		line_fail(ENOMEM, "mr");
		return;
	}
	rc = bb_mr_reg(side()->pd, mem, size, line_access(line_text("access", "lwra")), mr);
	if (rc != 0) {
		line_fail(-rc, "bb_mr_reg");
		rte_free(mem);
		return;
	}
	line_mem_set(line_index("n"), mem, size);
	line_ok("addr=0x%" PRIx64 " lkey=0x%x rkey=0x%x", (uint64_t)(uintptr_t)mem, (*mr)->lkey,
		(*mr)->rkey);
}

static void
cmd_mw(void)
{
	struct bb_mw **mw = &mws[line_index("n")];
	int rc = bb_mw_alloc(side()->pd, BB_MW_TYPE_2, mw);

	if (rc != 0)
		line_fail(-rc, "bb_mw_alloc");
	else
		line_ok("rkey=0x%x", (*mw)->rkey);
}

static void
cmd_qp(void)
{
	const char *type = line_text("type", "rc");
	unsigned int n = line_index("n");
	struct bb_qp_init_attr init;
	struct bb_qp_attr attr;
	int rc;

	bb_qp_init_attr_init(&init);
	init.type = strcmp(type, "ud") == 0   ? BB_QPT_UD
		    : strcmp(type, "uc") == 0 ? BB_QPT_UC
					      : BB_QPT_RC;
	init.send_cq = side()->cq;
	init.recv_cq = side()->cq;
	init.sq_depth = (uint32_t)line_number("sq", 64);
	init.rq_depth = (uint32_t)line_number("rq", 64);
	init.signal_all = true;
	rc = bb_qp_create(side()->pd, &init, &qps[n]);
	if (rc != 0) {
		line_fail(-rc, "bb_qp_create");
		return;
	}
	types[n] = init.type;
	bb_qp_attr_init(&attr);
	attr.state = BB_QP_INIT;
	attr.path.port = 1;
	attr.qkey = LINE_QKEY;
	attr.access = line_access(line_text("access", "wra"));
	rc = bb_qp_modify(qps[n], &attr,
			  BB_QP_STATE | BB_QP_PKEY_INDEX | BB_QP_PORT |
				  (init.type == BB_QPT_UD ? BB_QP_QKEY : BB_QP_ACCESS));
	if (rc != 0)
		line_fail(-rc, "INIT");
	else
		line_ok("qpn=0x%x", qps[n]->qpn);
}

/* gid=, sgid=: destination of packets of a QP or an address handle. */
static int
address(struct bb_path *path)
{
	memset(path, 0, sizeof(*path));
	path->is_global = 1;
	path->port = 1;
	path->sgid_index = (uint8_t)line_number("sgid", 1);
	path->hop_limit = 64;
	return inet_pton(AF_INET6, line_text("gid", ""), path->dgid) == 1 ? 0 : -EINVAL;
}

static void
cmd_rtr(void)
{
	unsigned int n = line_index("n");
	uint32_t mask = BB_QP_STATE;
	struct bb_qp_attr attr;

	if (qps[n] == NULL) {
		line_fail(ENOENT, "qp");
		return;
	}
	bb_qp_attr_init(&attr);
	attr.state = BB_QP_RTR;
	attr.path_mtu = (uint32_t)line_number("mtu", 1024);
	attr.dest_qpn = (uint32_t)line_number("dqpn", 0);
	attr.rq_psn = (uint32_t)line_number("psn", 0);
	attr.max_dest_rd_atomic = (uint8_t)line_number("depth", 8);
	attr.min_rnr_timer = (uint8_t)line_number("rnr", 12);
	if (types[n] != BB_QPT_UD) {
		if (address(&attr.path) != 0) {
			line_fail(EINVAL, "gid");
			return;
		}
		mask |= BB_QP_PATH | BB_QP_PATH_MTU | BB_QP_DEST_QPN | BB_QP_RQ_PSN;
	}
	if (types[n] == BB_QPT_RC)
		mask |= BB_QP_MAX_DEST_RD_ATOMIC | BB_QP_MIN_RNR_TIMER;
	line_done(-bb_qp_modify(qps[n], &attr, mask), "RTR");
}

static void
cmd_rts(void)
{
	unsigned int n = line_index("n");
	uint32_t mask = BB_QP_STATE | BB_QP_SQ_PSN;
	struct bb_qp_attr attr;

	if (qps[n] == NULL) {
		line_fail(ENOENT, "qp");
		return;
	}
	bb_qp_attr_init(&attr);
	attr.state = BB_QP_RTS;
	attr.sq_psn = (uint32_t)line_number("psn", 0);
	attr.timeout = (uint8_t)line_number("timeout", 18);
	attr.retry_cnt = (uint8_t)line_number("retry", 7);
	attr.rnr_retry = (uint8_t)line_number("rnr", 7);
	attr.max_rd_atomic = (uint8_t)line_number("depth", 8);
	if (types[n] == BB_QPT_RC)
		mask |= BB_QP_TIMEOUT | BB_QP_RETRY_CNT | BB_QP_RNR_RETRY | BB_QP_MAX_RD_ATOMIC;
	line_done(-bb_qp_modify(qps[n], &attr, mask), "RTS");
}

static void
cmd_state(void)
{
	struct bb_qp *qp = qps[line_index("n")];
	struct bb_qp_attr attr;

	if (qp == NULL || bb_qp_query(qp, &attr) != 0)
		line_fail(EINVAL, "bb_qp_query");
	else
		line_ok("state=%s sq_psn=0x%x rq_psn=0x%x", bb_qp_state_name(attr.state),
			attr.sq_psn, attr.rq_psn);
}

static void
cmd_stats(void)
{
	struct bb_dev_stats s;
	int rc = bb_dev_stats(side()->dev, &s);

	if (rc != 0) {
		line_fail(-rc, "bb_dev_stats");
		return;
	}
	line_ok("rx_write=%" PRIu64 " rx_read=%" PRIu64 " rx_atomic=%" PRIu64
		" out_of_buffer=%" PRIu64 " out_of_sequence=%" PRIu64 " duplicate=%" PRIu64
		" rnr_nak_retry=%" PRIu64 " ack_timeout=%" PRIu64 " remote_errors=%" PRIu64
		" retry_exceeded=%" PRIu64 " local_errors=%" PRIu64 " flushed=%" PRIu64,
		s.rx_write, s.rx_read, s.rx_atomic, s.out_of_buffer, s.out_of_sequence, s.duplicate,
		s.rnr_nak_retry, s.ack_timeout,
		s.remote_access_err + s.remote_op_err + s.remote_invalid_req,
		s.retry_exceeded + s.rnr_retry_exceeded,
		s.local_protection_err + s.local_length_err, s.flushed);
}

static void
cmd_recv(void)
{
	struct bb_qp *qp = qps[line_index("qp")];
	uint32_t len = (uint32_t)line_number("len", 0);
	uint8_t *p = line_place(len);
	struct bb_sge sge = {.addr = (uintptr_t)p, .len = len};
	struct bb_recv_wr wr = {.wr_id = line_number("id", 0), .sge = &sge, .nsge = 1};
	int rc = 0;

	if (p == NULL)
		return;
	if (qp == NULL) {
		line_fail(ENOENT, "qp");
		return;
	}
	sge.lkey = mrs[line_index("mr")]->lkey;
	if (bb_qp_post_recv_list(qp, &wr, 1, &rc) != 1 && rc == 0)
		rc = -ENOMEM;
	bb_qp_ring_recv(qp);
	line_done(-rc, "recv");
}

static const enum bb_wr_opcode opcodes[LINE_OPS] = {
	[LINE_SEND] = BB_WR_SEND,
	[LINE_SEND_IMM] = BB_WR_SEND_WITH_IMM,
	[LINE_SEND_INV] = BB_WR_SEND_WITH_INV,
	[LINE_WRITE] = BB_WR_RDMA_WRITE,
	[LINE_WRITE_IMM] = BB_WR_RDMA_WRITE_WITH_IMM,
	[LINE_READ] = BB_WR_RDMA_READ,
	[LINE_FETCH_ADD] = BB_WR_ATOMIC_FETCH_AND_ADD,
	[LINE_CMP_SWAP] = BB_WR_ATOMIC_CMP_AND_SWP,
	[LINE_LOCAL_INV] = BB_WR_LOCAL_INV,
	[LINE_BIND] = BB_WR_BIND_MW,
};

/* Fills the fields that depend on the opcode. Returns 0 or a negative errno. */
static int
fill_request(struct bb_send_wr *wr)
{
	struct bb_mw *mw = mws[line_index("mw")];
	uint32_t rkey = (uint32_t)line_number("rkey", 0);

	switch (wr->opcode) {
	case BB_WR_ATOMIC_FETCH_AND_ADD:
	case BB_WR_ATOMIC_CMP_AND_SWP:
		wr->atomic.raddr = line_number("raddr", 0);
		wr->atomic.rkey = rkey;
		wr->atomic.compare_add = line_number("compare", 0);
		wr->atomic.swap = line_number("swap", 0);
		return 0;
	case BB_WR_SEND_WITH_INV:
	case BB_WR_LOCAL_INV:
		wr->imm_or_inv = rkey;
		wr->nsge = wr->opcode == BB_WR_LOCAL_INV ? 0 : wr->nsge;
		return 0;
	case BB_WR_BIND_MW:
		if (mw == NULL)
			return -ENOENT;
		wr->bind_mw.mw = mw;
		wr->bind_mw.rkey = rkey;
		wr->bind_mw.mr = mrs[line_index("mr")];
		wr->bind_mw.addr = wr->sge->addr;
		wr->bind_mw.len = wr->sge->len;
		wr->bind_mw.access = line_access(line_text("access", "wr"));
		wr->nsge = 0;
		return 0;
	default:
		wr->rdma.raddr = line_number("raddr", 0);
		wr->rdma.rkey = rkey;
		wr->imm_or_inv = htonl((uint32_t)line_number("imm", 0));
		return 0;
	}
}

/* Fills a datagram's destination. */
static int
fill_dgram(struct bb_send_wr *wr, struct bb_ah **ah)
{
	struct bb_path path;
	int rc = address(&path);

	if (rc == 0)
		rc = bb_ah_create(side()->pd, &path, ah);
	wr->ud.ah = *ah;
	wr->ud.qpn = (uint32_t)line_number("dqpn", 0);
	wr->ud.qkey = (uint32_t)line_number("qkey", LINE_QKEY);
	return rc;
}

static void
cmd_send(void)
{
	unsigned int n = line_index("qp");
	uint32_t len = (uint32_t)line_number("len", 0);
	uint8_t *p = line_place(len);
	struct bb_sge sge = {.addr = (uintptr_t)p, .len = len};
	struct bb_send_wr wr = {.wr_id = line_number("id", 0), .sge = &sge, .nsge = 1};
	const char *flags = line_text("flags", "");
	enum line_op op = line_op();
	struct bb_ah *ah = NULL;
	int rc;

	if (p == NULL)
		return;
	if (qps[n] == NULL || op == LINE_OPS) {
		line_fail(EINVAL, "qp or op");
		return;
	}
	wr.opcode = opcodes[op];
	sge.lkey = mrs[line_index("mr")]->lkey;
	wr.flags = (strchr(flags, 's') ? BB_SEND_SOLICITED : 0) |
		   (strchr(flags, 'f') ? BB_SEND_FENCE : 0);
	rc = fill_request(&wr);
	if (rc == 0 && types[n] == BB_QPT_UD)
		rc = fill_dgram(&wr, &ah);
	if (rc == 0 && bb_qp_post_list(qps[n], &wr, 1, &rc) != 1 && rc == 0)
		rc = -ENOMEM;
	if (rc == 0)
		bb_qp_ring(qps[n]);
	if (ah != NULL)
		bb_ah_destroy(ah);
	line_done(-rc, "send");
}

static void
print_wc(const struct bb_wc *wc)
{
	static const enum ibv_wc_status statuses[] = {
		[BB_WC_SUCCESS] = IBV_WC_SUCCESS,
		[BB_WC_LOC_LEN_ERR] = IBV_WC_LOC_LEN_ERR,
		[BB_WC_LOC_QP_OP_ERR] = IBV_WC_LOC_QP_OP_ERR,
		[BB_WC_LOC_PROT_ERR] = IBV_WC_LOC_PROT_ERR,
		[BB_WC_WR_FLUSH_ERR] = IBV_WC_WR_FLUSH_ERR,
		[BB_WC_MW_BIND_ERR] = IBV_WC_MW_BIND_ERR,
		[BB_WC_BAD_RESP_ERR] = IBV_WC_BAD_RESP_ERR,
		[BB_WC_LOC_ACCESS_ERR] = IBV_WC_LOC_ACCESS_ERR,
		[BB_WC_REM_INV_REQ_ERR] = IBV_WC_REM_INV_REQ_ERR,
		[BB_WC_REM_ACCESS_ERR] = IBV_WC_REM_ACCESS_ERR,
		[BB_WC_REM_OP_ERR] = IBV_WC_REM_OP_ERR,
		[BB_WC_RETRY_EXC_ERR] = IBV_WC_RETRY_EXC_ERR,
		[BB_WC_RNR_RETRY_EXC_ERR] = IBV_WC_RNR_RETRY_EXC_ERR,
		[BB_WC_REM_ABORT_ERR] = IBV_WC_REM_ABORT_ERR,
		[BB_WC_GENERAL_ERR] = IBV_WC_GENERAL_ERR,
	};
	static const enum ibv_wc_opcode wc_opcodes[] = {
		[BB_WC_SEND] = IBV_WC_SEND,
		[BB_WC_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[BB_WC_RDMA_READ] = IBV_WC_RDMA_READ,
		[BB_WC_CMP_SWAP] = IBV_WC_COMP_SWAP,
		[BB_WC_FETCH_ADD] = IBV_WC_FETCH_ADD,
		[BB_WC_RECV] = IBV_WC_RECV,
		[BB_WC_RECV_RDMA_IMM] = IBV_WC_RECV_RDMA_WITH_IMM,
		[BB_WC_LOCAL_INV] = IBV_WC_LOCAL_INV,
		[BB_WC_BIND_MW] = IBV_WC_BIND_MW,
	};
	bool good = wc->status == BB_WC_SUCCESS;
	uint8_t flags = good ? wc->flags : 0;

	line_ok("id=%" PRIu64 " status=%d op=%d len=%u imm=0x%x inv=0x%x flags=%d qpn=0x%x "
		"src=0x%x",
		wc->wr_id, wc->status < RTE_DIM(statuses) ? statuses[wc->status] : IBV_WC_FATAL_ERR,
		good && wc->opcode < RTE_DIM(wc_opcodes) ? wc_opcodes[wc->opcode] : 0,
		good ? wc->byte_len : 0, flags & BB_WC_WITH_IMM ? ntohl(wc->imm) : 0,
		flags & BB_WC_WITH_INV ? wc->imm : 0,
		(flags & BB_WC_GRH ? IBV_WC_GRH : 0) |
			(flags & BB_WC_WITH_IMM ? IBV_WC_WITH_IMM : 0) |
			(flags & BB_WC_WITH_INV ? IBV_WC_WITH_INV : 0),
		wc->qp->qpn, good ? wc->src_qp : 0);
}

static void
cmd_poll(void)
{
	int64_t end = line_now_ms() + (int64_t)line_number("ms", 0);
	struct bb_wc wc;

	for (;;) {
		run_devices();
		if (bb_cq_poll(side()->cq, &wc, 1) == 1) {
			print_wc(&wc);
			return;
		}
		if (line_now_ms() >= end)
			break;
		poll(NULL, 0, 1);
	}
	line_ok("none");
}

static void
cmd_reset(void)
{
	struct bb_qp **qp = &qps[line_index("n")];
	int rc = *qp == NULL ? -ENOENT : bb_qp_destroy(*qp);

	if (rc == 0)
		*qp = NULL;
	line_done(-rc, "bb_qp_destroy");
}

static const struct line_command commands[] = {
	{"port", cmd_port},   {"gid", cmd_gid},   {"mr", cmd_mr},     {"mw", cmd_mw},
	{"qp", cmd_qp},       {"rtr", cmd_rtr},   {"rts", cmd_rts},   {"state", cmd_state},
	{"recv", cmd_recv},   {"send", cmd_send}, {"poll", cmd_poll}, {"reset", cmd_reset},
	{"stats", cmd_stats},
};

BB_STATIC_ASSERT((int)LINE_ACCESS_LOCAL_WRITE == (int)BB_ACCESS_LOCAL_WRITE &&
			 (int)LINE_ACCESS_REMOTE_WRITE == (int)BB_ACCESS_REMOTE_WRITE &&
			 (int)LINE_ACCESS_REMOTE_READ == (int)BB_ACCESS_REMOTE_READ &&
			 (int)LINE_ACCESS_REMOTE_ATOMIC == (int)BB_ACCESS_REMOTE_ATOMIC &&
			 (int)LINE_ACCESS_MW_BIND == (int)BB_ACCESS_MW_BIND,
		 "passed on as they are");

/* Reads whole lines of stdin up to its end. */
static void
serve(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char text[4096], *end;
	size_t have = 0;
	ssize_t n;

	for (;;) {
		run_devices();
		if (poll(&in, 1, 1) <= 0)
			continue;
		n = read(in.fd, text + have, sizeof(text) - 1 - have);
		if (n <= 0)
			return;
		have += (size_t)n;
		text[have] = '\0';
		while ((end = strchr(text, '\n')) != NULL) {
			*end = '\0';
			line_run(text, commands, RTE_DIM(commands));
			have -= (size_t)(end + 1 - text);
			memmove(text, end + 1, have + 1);
		}
	}
}

static int
open_side(struct side *s, const char *name)
{
	struct bb_cq_attr attr;
	int rc;

	s->name = name;
	rc = bb_dev_open(name, &s->dev);
	if (rc == 0)
		rc = bb_pd_alloc(s->dev, &s->pd);
	bb_cq_attr_init(&attr);
	attr.depth = CQ_DEPTH;
	if (rc == 0)
		rc = bb_cq_create(s->dev, &attr, &s->cq);
	if (rc != 0)
		line_fail(-rc, name);
	return rc;
}

static void
close_all(void)
{
	for (unsigned int i = 0; i < LINE_TABLE; i++)
		if (qps[i] != NULL)
			bb_qp_destroy(qps[i]);
	for (unsigned int i = 0; i < LINE_TABLE; i++)
		if (mws[i] != NULL)
			bb_mw_free(mws[i]);
	for (unsigned int i = 0; i < LINE_TABLE; i++) {
		void *mem = mrs[i] != NULL ? mrs[i]->addr : NULL;

		if (mrs[i] != NULL && bb_mr_dereg(mrs[i]) == 0)
			rte_free(mem);
	}
	for (unsigned int i = 0; i < nb_sides; i++) {
		if (sides[i].cq != NULL)
			bb_cq_destroy(sides[i].cq);
		if (sides[i].pd != NULL)
			bb_pd_free(sides[i].pd);
		if (sides[i].dev != NULL)
			bb_dev_close(sides[i].dev);
	}
}

/*
 * Objects of libxdp and libbpf in net_af_xdp stay, as the ethdev is not closed (below). Only
 * EAL's memory refers to them, which LeakSanitizer does not scan.
 */
const char *__lsan_default_suppressions(void);

const char *
__lsan_default_suppressions(void)
{
	return "leak:libxdp.so\nleak:libbpf.so\n";
}

int
main(int argc, char **argv)
{
	int used = rte_eal_init(argc, argv), i, rc = 0;

	if (used < 0)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc - used - 1 < 1 || argc - used - 1 > LINE_SIDES) {
		fprintf(stderr, "usage: bb_peer EAL-OPTIONS -- DEVICE [DEVICE]\n");
		return 2;
	}
	for (i = used + 1; i < argc && rc == 0; i++)
		rc = open_side(&sides[nb_sides++], argv[i]);
	if (rc == 0) {
		line_ok("%s", sides[0].name);
		serve();
	}
	close_all();
	/*
	 * No rte_eal_cleanup(): that of DPDK 22.11 unmaps memory that EAL's interrupt thread
	 * still uses for net_memif.
	 */
	return rc == 0 ? 0 : 1;
}
