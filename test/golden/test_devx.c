/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Mailboxes of a proven DEVX user (UCX rc_mlx5), read by our field positions. The values must be
 * consistent. Written back with the same fields they must give the recorded bytes, so that no bit
 * set by UCX is missed.
 */
#include "golden.h"

#include "bb_prm.h"

#define VECTORS 57u
#define MAX_LEN 0x1010u

static const char *const known[] = {
	"id",    "run",    "step",    "cmd",     "opcode",  "name",
	"errno", "in_hex", "out_hex", "type",    "page_id", "out_same_as",
	"addr",  "len",    "access",  "umem_id", NULL,
};

struct umem {
	uint64_t id, len;
};

/* One process of ucx_perftest. */
struct run {
	char name[32];
	bool eth;
	struct umem umem[8];
	unsigned int umems;
	uint64_t bf_page[4];
	unsigned int bf_pages;
	uint32_t rmpn, qpn;
	unsigned int state; /* enum bb_prm_qp_state */
	unsigned int qps;   /* in all runs, moved to RTS and to ERR */
	struct tally done, open;
};

static void
expect(const struct vec *v, const char *what, uint64_t got, uint64_t want)
{
	if (got != want)
		vec_fail(v, "%s is 0x%llx, not 0x%llx", what, (unsigned long long)got,
			 (unsigned long long)want);
}

static const struct umem *
find_umem(const struct vec *v, const struct run *r, uint64_t id)
{
	for (unsigned int i = 0; i < r->umems; i++) {
		if (r->umem[i].id == id)
			return &r->umem[i];
	}
	vec_fail(v, "no umem %llu in this run", (unsigned long long)id);
	return NULL;
}

/* Fails unless @in contains only these fields. */
static void
expect_all(const struct vec *v, const uint8_t *in, size_t len, const struct bb_prm_field *fields,
	   unsigned int n, const struct bb_prm_field *ads, unsigned int n_ads)
{
	uint8_t copy[MAX_LEN] = {0};
	void *qpc = bb_prm_sub(copy, BB_PRM_CREATE_QP_QPC);
	const void *qpc_in = bb_prm_csub(in, BB_PRM_CREATE_QP_QPC);

	/* The first four fields are the command's own, the others are in the QP context. */
	for (unsigned int i = 0; i < n; i++) {
		void *to = i < 4 ? (void *)copy : qpc;
		const void *from = i < 4 ? (const void *)in : qpc_in;

		if (fields[i].width == 64)
			bb_prm_set64(to, fields[i], bb_prm_get64(from, fields[i]));
		else
			bb_prm_set(to, fields[i], bb_prm_get(from, fields[i]));
	}
	for (unsigned int i = 0; i < n_ads; i++)
		bb_prm_set(bb_prm_sub(qpc, BB_PRM_QPC_ADS), ads[i],
			   bb_prm_get(bb_prm_csub(qpc_in, BB_PRM_QPC_ADS), ads[i]));
	if (n_ads != 0) {
		struct bb_prm_field gid = BB_PRM_ADS_RGID_RIP;

		memcpy((uint8_t *)bb_prm_sub(qpc, BB_PRM_QPC_ADS) + gid.byte,
		       (const uint8_t *)bb_prm_csub(qpc_in, BB_PRM_QPC_ADS) + gid.byte, 16);
	}
	vec_compare(v, "mailbox", copy, in, NULL, len);
}

static void
create_qp(const struct vec *v, struct run *r, const uint8_t *in, size_t len, const uint8_t *out)
{
	static const struct bb_prm_field fields[] = {
		BB_PRM_CMD_OPCODE,
		BB_PRM_CREATE_QP_WQ_UMEM_ID,
		BB_PRM_CREATE_QP_WQ_UMEM_OFFSET,
		BB_PRM_CMD_OP_MOD,
		BB_PRM_QPC_ST,
		BB_PRM_QPC_PM_STATE,
		BB_PRM_QPC_PD,
		BB_PRM_QPC_LOG_SQ_SIZE,
		BB_PRM_QPC_UAR_PAGE,
		BB_PRM_QPC_USER_INDEX,
		BB_PRM_QPC_CQN_SND,
		BB_PRM_QPC_CQN_RCV,
		BB_PRM_QPC_DBR_ADDR,
		BB_PRM_QPC_RQ_TYPE,
		BB_PRM_QPC_SRQN_RMPN_XRQN,
		BB_PRM_QPC_CS_REQ,
		BB_PRM_QPC_CS_RES,
		BB_PRM_QPC_DBR_UMEM_ID,
	};
	const void *qpc = bb_prm_csub(in, BB_PRM_CREATE_QP_QPC);
	const struct umem *wq, *dbr;
	uint64_t dbr_addr = bb_prm_get64(qpc, BB_PRM_QPC_DBR_ADDR);
	bool page = false;

	expect(v, "length", len, BB_PRM_SZ_CREATE_QP_IN);
	expect_all(v, in, len, fields, sizeof(fields) / sizeof(fields[0]), NULL, 0);
	expect(v, "service type", bb_prm_get(qpc, BB_PRM_QPC_ST), BB_PRM_QP_ST_RC);
	expect(v, "pm_state", bb_prm_get(qpc, BB_PRM_QPC_PM_STATE), BB_PRM_QP_PM_MIGRATED);
	for (unsigned int i = 0; i < r->bf_pages; i++)
		page = page || r->bf_page[i] == bb_prm_get(qpc, BB_PRM_QPC_UAR_PAGE);
	if (!page)
		vec_fail(v, "no UAR page 0x%x in this run", bb_prm_get(qpc, BB_PRM_QPC_UAR_PAGE));
	/* The send queue fills its umem; the record is in the other one. */
	wq = find_umem(v, r, bb_prm_get(in, BB_PRM_CREATE_QP_WQ_UMEM_ID));
	expect(v, "offset of the ring", bb_prm_get64(in, BB_PRM_CREATE_QP_WQ_UMEM_OFFSET), 0);
	expect(v, "bytes of the ring", 64ull << bb_prm_get(qpc, BB_PRM_QPC_LOG_SQ_SIZE), wq->len);
	dbr = find_umem(v, r, bb_prm_get(qpc, BB_PRM_QPC_DBR_UMEM_ID));
	if (dbr == wq || dbr_addr % 8 != 0 || dbr_addr > dbr->len - 8)
		vec_fail(v, "doorbell record at 0x%llx", (unsigned long long)dbr_addr);
	expect(v, "rq_type", bb_prm_get(qpc, BB_PRM_QPC_RQ_TYPE), BB_PRM_RQ_TYPE_SRQ);
	expect(v, "RMP", bb_prm_get(qpc, BB_PRM_QPC_SRQN_RMPN_XRQN), r->rmpn);
	expect(v, "scatter to CQE", bb_prm_get(qpc, BB_PRM_QPC_CS_REQ), 0x22);
	expect(v, "scatter to CQE", bb_prm_get(qpc, BB_PRM_QPC_CS_RES), 0x2);
	assert_true(bb_prm_get(qpc, BB_PRM_QPC_PD) != 0);
	assert_true(bb_prm_get(qpc, BB_PRM_QPC_CQN_SND) != 0);
	assert_true(bb_prm_get(qpc, BB_PRM_QPC_CQN_RCV) != 0);
	r->qpn = bb_prm_get(out, BB_PRM_CREATE_QP_OUT_QPN);
	assert_true(r->qpn != 0);
	r->state = BB_PRM_QP_RST;
}

static void
create_rmp(const struct vec *v, struct run *r, const uint8_t *in, size_t len, const uint8_t *out)
{
	static const struct bb_prm_field fields[] = {
		BB_PRM_WQ_TYPE,        BB_PRM_WQ_PD,          BB_PRM_WQ_DBR_ADDR,
		BB_PRM_WQ_LOG_STRIDE,  BB_PRM_WQ_LOG_SZ,      BB_PRM_WQ_DBR_UMEM_VALID,
		BB_PRM_WQ_UMEM_VALID,  BB_PRM_WQ_DBR_UMEM_ID, BB_PRM_WQ_UMEM_ID,
		BB_PRM_WQ_UMEM_OFFSET, BB_PRM_WQ_LWM,
	};
	const void *ctx = bb_prm_csub(in, BB_PRM_CREATE_RMP_CTX);
	const void *wq = bb_prm_csub(ctx, BB_PRM_RMPC_WQ);
	uint64_t bytes =
		1ull << (bb_prm_get(wq, BB_PRM_WQ_LOG_SZ) + bb_prm_get(wq, BB_PRM_WQ_LOG_STRIDE));
	uint64_t dbr_addr = bb_prm_get64(wq, BB_PRM_WQ_DBR_ADDR);
	uint8_t copy[BB_PRM_SZ_RMP] = {0};
	void *copy_ctx = bb_prm_sub(copy, BB_PRM_CREATE_RMP_CTX);
	void *copy_wq = bb_prm_sub(copy_ctx, BB_PRM_RMPC_WQ);
	const struct umem *ring, *dbr;

	expect(v, "length", len, BB_PRM_SZ_RMP);
	bb_prm_set(copy, BB_PRM_CMD_OPCODE, bb_prm_get(in, BB_PRM_CMD_OPCODE));
	bb_prm_set(copy_ctx, BB_PRM_RMPC_STATE, bb_prm_get(ctx, BB_PRM_RMPC_STATE));
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (fields[i].width == 64)
			bb_prm_set64(copy_wq, fields[i], bb_prm_get64(wq, fields[i]));
		else
			bb_prm_set(copy_wq, fields[i], bb_prm_get(wq, fields[i]));
	}
	vec_compare(v, "mailbox", copy, in, NULL, len);
	expect(v, "state", bb_prm_get(ctx, BB_PRM_RMPC_STATE), BB_PRM_RMPC_RDY);
	expect(v, "wq_type", bb_prm_get(wq, BB_PRM_WQ_TYPE), BB_PRM_WQ_TYPE_CYCLIC);
	/* A head of 16 bytes, as basic_cyclic_rcv_wqe is 0, and one piece. */
	expect(v, "stride", bb_prm_get(wq, BB_PRM_WQ_LOG_STRIDE), 5);
	expect(v, "WQEs", bb_prm_get(wq, BB_PRM_WQ_LOG_SZ), 12);
	assert_true(bb_prm_get(wq, BB_PRM_WQ_PD) != 0);
	/* The ring fills its umem; the record is in the other one. */
	ring = find_umem(v, r, bb_prm_get(wq, BB_PRM_WQ_UMEM_ID));
	expect(v, "offset of the ring", bb_prm_get64(wq, BB_PRM_WQ_UMEM_OFFSET), 0);
	expect(v, "bytes of the ring", bytes, ring->len);
	dbr = find_umem(v, r, bb_prm_get(wq, BB_PRM_WQ_DBR_UMEM_ID));
	if (dbr == ring || dbr_addr % 8 != 0 || dbr_addr > dbr->len - 8)
		vec_fail(v, "doorbell record at 0x%llx", (unsigned long long)dbr_addr);
	r->rmpn = bb_prm_get(out, BB_PRM_CREATE_RMP_OUT_RMPN);
	assert_true(r->rmpn != 0);
}

/* A key over another key, with the same memory 0x76 bytes higher: KSM with one entry. */
static void
create_mkey(const struct vec *v, const uint8_t *in, size_t len, const uint8_t *out)
{
	static const struct bb_prm_field fields[] = {
		BB_PRM_MKC_A,
		BB_PRM_MKC_RW,
		BB_PRM_MKC_RR,
		BB_PRM_MKC_LW,
		BB_PRM_MKC_LR,
		BB_PRM_MKC_ACCESS_MODE,
		BB_PRM_MKC_QPN,
		BB_PRM_MKC_MKEY_7_0,
		BB_PRM_MKC_PD,
		BB_PRM_MKC_START_ADDR,
		BB_PRM_MKC_LEN,
		BB_PRM_MKC_XLT_OCTWORD_SIZE,
		BB_PRM_MKC_LOG_PAGE_SIZE,
	};
	const void *mkc = bb_prm_csub(in, BB_PRM_CREATE_MKEY_MKC);
	const uint8_t *entry = in + BB_PRM_SZ_CREATE_MKEY_IN;
	uint64_t start = bb_prm_get64(mkc, BB_PRM_MKC_START_ADDR);
	uint64_t addr = (uint64_t)bb_prm_dword(entry, 8) << 32 | bb_prm_dword(entry, 12);
	uint8_t copy[BB_PRM_SZ_CREATE_MKEY_IN + 16] = {0};

	expect(v, "length", len, sizeof(copy));
	bb_prm_set(copy, BB_PRM_CMD_OPCODE, bb_prm_get(in, BB_PRM_CMD_OPCODE));
	bb_prm_set(copy, BB_PRM_CREATE_MKEY_XLT_ACTUAL, 1);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		void *to = bb_prm_sub(copy, BB_PRM_CREATE_MKEY_MKC);

		if (fields[i].width == 64)
			bb_prm_set64(to, fields[i], bb_prm_get64(mkc, fields[i]));
		else
			bb_prm_set(to, fields[i], bb_prm_get(mkc, fields[i]));
	}
	memcpy(copy + BB_PRM_SZ_CREATE_MKEY_IN, entry, 16);
	vec_compare(v, "mailbox", copy, in, NULL, len);
	expect(v, "access mode", bb_prm_get(mkc, BB_PRM_MKC_ACCESS_MODE), BB_PRM_MKC_MODE_KSM);
	expect(v, "qpn", bb_prm_get(mkc, BB_PRM_MKC_QPN), 0xffffff);
	expect(v, "rights",
	       bb_prm_get(mkc, BB_PRM_MKC_A) + bb_prm_get(mkc, BB_PRM_MKC_RW) +
		       bb_prm_get(mkc, BB_PRM_MKC_RR) + bb_prm_get(mkc, BB_PRM_MKC_LW) +
		       bb_prm_get(mkc, BB_PRM_MKC_LR),
	       5);
	expect(v, "entries", bb_prm_get(mkc, BB_PRM_MKC_XLT_OCTWORD_SIZE), 1);
	expect(v, "size of a piece", bb_prm_get(mkc, BB_PRM_MKC_LOG_PAGE_SIZE), 31);
	expect(v, "KSM entry's byte count", bb_prm_dword(entry, 0), 0);
	assert_true(bb_prm_dword(entry, 4) != 0);
	assert_true(bb_prm_get(mkc, BB_PRM_MKC_PD) != 0);
	/* UCX shifts the keys of atomics by an offset of its choice below a page. */
	assert_in_range(start - addr, 0, 4095);
	assert_in_range(bb_prm_get64(mkc, BB_PRM_MKC_LEN), 1, 1ull << 31);
	assert_true(bb_prm_get(out, BB_PRM_CREATE_MKEY_OUT_INDEX) != 0);
}

/* Checks the step from state @from to @to of the created QP. */
static void
step(const struct vec *v, struct run *r, const uint8_t *in, size_t len, unsigned int from,
     unsigned int to)
{
	expect(v, "length", len, BB_PRM_SZ_MODIFY_QP_IN);
	expect(v, "QP number", bb_prm_get(in, BB_PRM_MODIFY_QP_QPN), r->qpn);
	expect(v, "state", r->state, from);
	r->state = to;
}

static void
rst2init(const struct vec *v, struct run *r, const uint8_t *in, size_t len)
{
	static const struct bb_prm_field fields[] = {
		BB_PRM_CMD_OPCODE, BB_PRM_MODIFY_QP_QPN, BB_PRM_MODIFY_QP_OPT_PARAM_MASK,
		BB_PRM_CMD_OP_MOD, BB_PRM_QPC_PM_STATE,  BB_PRM_QPC_RRE,
		BB_PRM_QPC_RWE,    BB_PRM_QPC_RAE,
	};
	static const struct bb_prm_field path[] = {BB_PRM_ADS_VHCA_PORT_NUM, BB_PRM_ADS_PKEY_INDEX};
	const void *qpc = bb_prm_csub(in, BB_PRM_MODIFY_QP_QPC);
	const void *ads = bb_prm_csub(qpc, BB_PRM_QPC_ADS);

	step(v, r, in, len, BB_PRM_QP_RST, BB_PRM_QP_INIT);
	expect_all(v, in, len, fields, 8, path, 2);
	expect(v, "port", bb_prm_get(ads, BB_PRM_ADS_VHCA_PORT_NUM), 1);
	expect(v, "opt_param_mask", bb_prm_get(in, BB_PRM_MODIFY_QP_OPT_PARAM_MASK), 0);
	expect(v, "pm_state", bb_prm_get(qpc, BB_PRM_QPC_PM_STATE), BB_PRM_QP_PM_MIGRATED);
	expect(v, "remote write", bb_prm_get(qpc, BB_PRM_QPC_RWE), 1);
}

static void
init2rtr(const struct vec *v, struct run *r, const uint8_t *in, size_t len)
{
	static const struct bb_prm_field fields[] = {
		BB_PRM_CMD_OPCODE,       BB_PRM_MODIFY_QP_QPN,   BB_PRM_MODIFY_QP_OPT_PARAM_MASK,
		BB_PRM_CMD_OP_MOD,       BB_PRM_QPC_MTU,         BB_PRM_QPC_LOG_MSG_MAX,
		BB_PRM_QPC_REMOTE_QPN,   BB_PRM_QPC_LOG_RRA_MAX, BB_PRM_QPC_MIN_RNR_NAK,
		BB_PRM_QPC_NEXT_RCV_PSN, BB_PRM_QPC_RRE,         BB_PRM_QPC_RWE,
		BB_PRM_QPC_RAE,          BB_PRM_QPC_ATOMIC_MODE,
	};
	static const struct bb_prm_field path[] = {
		BB_PRM_ADS_VHCA_PORT_NUM, BB_PRM_ADS_SRC_ADDR_INDEX, BB_PRM_ADS_HOP_LIMIT,
		BB_PRM_ADS_UDP_SPORT,     BB_PRM_ADS_DSCP,           BB_PRM_ADS_RMAC_47_32,
		BB_PRM_ADS_RMAC_31_0,     BB_PRM_ADS_RLID,
	};
	static const uint8_t gid[16] = {[10] = 0xff, 0xff, 192, 168, 77, 1}, none[16];
	const void *qpc = bb_prm_csub(in, BB_PRM_MODIFY_QP_QPC);
	const void *ads = bb_prm_csub(qpc, BB_PRM_QPC_ADS);

	step(v, r, in, len, BB_PRM_QP_INIT, BB_PRM_QP_RTR);
	expect_all(v, in, len, fields, 14, path, 8);
	expect(v, "opt_param_mask", bb_prm_get(in, BB_PRM_MODIFY_QP_OPT_PARAM_MASK),
	       BB_PRM_OPTPAR_RRE | BB_PRM_OPTPAR_RAE | BB_PRM_OPTPAR_RWE);
	expect(v, "rights",
	       bb_prm_get(qpc, BB_PRM_QPC_RRE) + bb_prm_get(qpc, BB_PRM_QPC_RWE) +
		       bb_prm_get(qpc, BB_PRM_QPC_RAE),
	       3);
	expect(v, "mtu", bb_prm_get(qpc, BB_PRM_QPC_MTU), r->eth ? 3 : 5); /* 1024, 4096 */
	expect(v, "log_msg_max", bb_prm_get(qpc, BB_PRM_QPC_LOG_MSG_MAX), 30);
	expect(v, "log_rra_max", bb_prm_get(qpc, BB_PRM_QPC_LOG_RRA_MAX), 4);
	/* Both ends are QPs of one device with adjacent numbers. */
	if (bb_prm_get(qpc, BB_PRM_QPC_REMOTE_QPN) != (r->qpn ^ 1))
		vec_fail(v, "remote QP 0x%x of QP 0x%x", bb_prm_get(qpc, BB_PRM_QPC_REMOTE_QPN),
			 r->qpn);
	if (r->eth) {
		expect(v, "MAC",
		       (uint64_t)bb_prm_get(ads, BB_PRM_ADS_RMAC_47_32) << 32 |
			       bb_prm_get(ads, BB_PRM_ADS_RMAC_31_0),
		       0x0c42a1000001);
		vec_compare(v, "GID", bb_prm_csub(ads, BB_PRM_ADS_RGID_RIP), gid, NULL, 16);
		expect(v, "hop limit", bb_prm_get(ads, BB_PRM_ADS_HOP_LIMIT), 255);
		expect(v, "DSCP", bb_prm_get(ads, BB_PRM_ADS_DSCP), 26); /* traffic class 106 */
		if (bb_prm_get(ads, BB_PRM_ADS_UDP_SPORT) < 0xc000)
			vec_fail(v, "UDP port 0x%x", bb_prm_get(ads, BB_PRM_ADS_UDP_SPORT));
		expect(v, "LID", bb_prm_get(ads, BB_PRM_ADS_RLID), 0);
	} else {
		expect(v, "LID", bb_prm_get(ads, BB_PRM_ADS_RLID), 7);
		expect(v, "MAC", bb_prm_get(ads, BB_PRM_ADS_RMAC_31_0), 0);
		vec_compare(v, "GID", bb_prm_csub(ads, BB_PRM_ADS_RGID_RIP), none, NULL, 16);
		expect(v, "GRH", bb_prm_get(ads, BB_PRM_ADS_GRH), 0);
	}
}

static void
rtr2rts(const struct vec *v, struct run *r, const uint8_t *in, size_t len)
{
	static const struct bb_prm_field fields[] = {
		BB_PRM_CMD_OPCODE,    BB_PRM_MODIFY_QP_QPN,     BB_PRM_MODIFY_QP_OPT_PARAM_MASK,
		BB_PRM_CMD_OP_MOD,    BB_PRM_QPC_LOG_SRA_MAX,   BB_PRM_QPC_RETRY_COUNT,
		BB_PRM_QPC_RNR_RETRY, BB_PRM_QPC_NEXT_SEND_PSN,
	};
	static const struct bb_prm_field path[] = {BB_PRM_ADS_ACK_TIMEOUT};
	const void *qpc = bb_prm_csub(in, BB_PRM_MODIFY_QP_QPC);

	step(v, r, in, len, BB_PRM_QP_RTR, BB_PRM_QP_RTS);
	expect_all(v, in, len, fields, 8, path, 1);
	expect(v, "retry_count", bb_prm_get(qpc, BB_PRM_QPC_RETRY_COUNT), 7);
	expect(v, "rnr_retry", bb_prm_get(qpc, BB_PRM_QPC_RNR_RETRY), 7);
	expect(v, "log_sra_max", bb_prm_get(qpc, BB_PRM_QPC_LOG_SRA_MAX), 4);
	expect(v, "ack timeout",
	       bb_prm_get(bb_prm_csub(qpc, BB_PRM_QPC_ADS), BB_PRM_ADS_ACK_TIMEOUT), 18);
}

static void
command(const struct vec *v, struct run *r)
{
	static const struct bb_prm_field header[] = {BB_PRM_CMD_OPCODE, BB_PRM_CMD_OP_MOD,
						     BB_PRM_MODIFY_QP_QPN};
	static uint8_t in[MAX_LEN], out[MAX_LEN];
	size_t len = vec_bytes(v, "in_hex", in, sizeof(in)), out_len = 0;
	uint32_t opcode = bb_prm_get(in, BB_PRM_CMD_OPCODE);

	expect(v, "opcode", opcode, vec_hex(v, "opcode"));
	expect(v, "errno", vec_num(v, "errno"), 0);
	expect(v, "uid", bb_prm_get(in, BB_PRM_CMD_UID), 0);
	if (vec_has(v, "out_hex")) {
		out_len = vec_bytes(v, "out_hex", out, sizeof(out));
		expect(v, "output length", out_len,
		       opcode == BB_PRM_OP_QUERY_HCA_CAP ? BB_PRM_SZ_QUERY_HCA_CAP_OUT
							 : BB_PRM_SZ_SHORT);
		expect(v, "status", bb_prm_get(out, BB_PRM_CMD_STATUS), BB_PRM_STAT_OK);
	}
	switch (opcode) {
	case BB_PRM_OP_QUERY_HCA_CAP:
		expect(v, "length", len, BB_PRM_SZ_QUERY_HCA_CAP_IN);
		expect_all(v, in, len, header, 2, NULL, 0);
		break;
	case BB_PRM_OP_CREATE_QP:
		create_qp(v, r, in, len, out);
		break;
	case BB_PRM_OP_RST2INIT_QP:
		rst2init(v, r, in, len);
		break;
	case BB_PRM_OP_INIT2RTR_QP:
		init2rtr(v, r, in, len);
		break;
	case BB_PRM_OP_RTR2RTS_QP:
		rtr2rts(v, r, in, len);
		break;
	case BB_PRM_OP_2ERR_QP:
		expect(v, "length", len, BB_PRM_SZ_SHORT);
		expect_all(v, in, len, header, 3, NULL, 0);
		expect(v, "QP number", bb_prm_get(in, BB_PRM_MODIFY_QP_QPN), r->qpn);
		expect(v, "state", r->state, BB_PRM_QP_RTS);
		r->state = BB_PRM_QP_ERR;
		r->qps++;
		break;
	case BB_PRM_OP_CREATE_MKEY:
		create_mkey(v, in, len, out);
		break;
	case BB_PRM_OP_CREATE_RMP:
		create_rmp(v, r, in, len, out);
		break;
	default:
		tally_add(&r->open, "%s", vec_str(v, "name"));
		return;
	}
	tally_add(&r->done, "%s", vec_str(v, "name"));
}

static void
one(const struct vec *v, void *arg)
{
	struct run *r = arg;

	vec_only(v, known);
	if (strcmp(vec_str(v, "run"), r->name) != 0) {
		const char *name = vec_str(v, "run");

		assert_true(strlen(name) < sizeof(r->name));
		strcpy(r->name, name);
		r->eth = strncmp(r->name, "eth", 3) == 0;
		r->umems = 0;
		r->bf_pages = 0;
		r->qpn = 0;
	}
	if (strcmp(vec_str(v, "cmd"), "UMEM_REG") == 0) {
		assert_true(r->umems < sizeof(r->umem) / sizeof(r->umem[0]));
		r->umem[r->umems].id = vec_num(v, "umem_id");
		r->umem[r->umems++].len = vec_hex(v, "len");
		tally_add(&r->done, "UMEM_REG");
	} else if (strcmp(vec_str(v, "cmd"), "UAR_ALLOC") == 0) {
		assert_true(r->bf_pages < sizeof(r->bf_page) / sizeof(r->bf_page[0]));
		if (strcmp(vec_str(v, "type"), "BF") == 0)
			r->bf_page[r->bf_pages++] = vec_hex(v, "page_id");
		tally_add(&r->done, "UAR_ALLOC");
	} else {
		command(v, r);
	}
}

TEST(test_every_recorded_mailbox_is_compared_or_counted)
{
	static struct run r;
	unsigned int i, n = 0;

	golden_each("devx_ucx.jsonl", VECTORS, one, &r);
	tally_print(&r.done, "compared");
	tally_print(&r.open, "not covered");
	assert_int_equal(r.qps, 3);
	for (i = 0; i < r.done.rows; i++)
		n += r.done.row[i].n;
	for (i = 0; i < r.open.rows; i++)
		n += r.open.row[i].n;
	assert_int_equal(n, VECTORS);
}

TEST_MAIN(0)
