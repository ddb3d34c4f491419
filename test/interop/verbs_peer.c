/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Verbs by the line: runs in the guest, reads commands from stdin and answers each with one line,
 * "ok ..." or "error ERRNO what". Objects have numbers that the commands choose. A command is a
 * word and NAME=VALUE pairs; numbers as strtoull reads them, addresses of GIDs as inet_pton does.
 *
 *   gid index=                              -> gid=ADDRESS
 *   mr n= size= access=                     -> addr= lkey= rkey=   access: letters of lwrab
 *   mw n=                                   -> rkey=               type 2
 *   fill mr= off= len= seed=                bytes seed, seed + 1, ... modulo 251
 *   verify mr= off= len= seed=              -> differs=OFFSET or differs=no
 *   peek mr= off=  /  poke mr= off= value=  8 bytes in host order
 *   qp n= type=rc|uc|ud sq= rq= access=     -> qpn=; in INIT; access: letters of wra
 *   rtr n= gid= dqpn= psn= mtu= sgid= rnr= depth=
 *   rts n= psn= timeout= retry= rnr= depth=
 *   state n=                                -> state=
 *   recv qp= id= mr= off= len=
 *   send qp= id= op= mr= off= len= flags= raddr= rkey= imm= compare= swap= gid= dqpn= qkey= sgid=
 *        mw=     op: send send_imm send_inv write write_imm read fetch_add cmp_swap local_inv
 *        bind; flags: letters s (solicited) f (fence); rkey: also of send_inv, local_inv, bind
 *   poll ms=                                -> id= status= op= len= imm= inv= flags= qpn= src=,
 * none reset n=                                destroys the QP
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_OBJECTS 64
#define MAX_ARGS    24
#define QKEY        0x11111111
#define PATTERN     251

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mrs[MAX_OBJECTS];
static struct ibv_mw *mws[MAX_OBJECTS];
static struct ibv_qp *qps[MAX_OBJECTS];

/* The current command's arguments. */
static struct {
	char *name;
	char *value;
} args[MAX_ARGS];
static int nb_args;

static void
ok(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("ok ");
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
}

static void
fail(int err, const char *what)
{
	printf("error %d %s: %s\n", err, what, strerror(err));
}

static const char *
text(const char *name, const char *otherwise)
{
	int i;

	for (i = 0; i < nb_args; i++)
		if (strcmp(args[i].name, name) == 0)
			return args[i].value;
	return otherwise;
}

static uint64_t
number(const char *name, uint64_t otherwise)
{
	const char *s = text(name, NULL);

	return s == NULL ? otherwise : strtoull(s, NULL, 0);
}

static unsigned int
index_of(const char *name)
{
	uint64_t n = number(name, 0);

	return n < MAX_OBJECTS ? n : 0;
}

static int
access_flags(const char *letters)
{
	int flags = 0;

	for (; *letters != '\0'; letters++)
		flags |= *letters == 'l'   ? IBV_ACCESS_LOCAL_WRITE
			 : *letters == 'w' ? IBV_ACCESS_REMOTE_WRITE
			 : *letters == 'r' ? IBV_ACCESS_REMOTE_READ
			 : *letters == 'a' ? IBV_ACCESS_REMOTE_ATOMIC
			 : *letters == 'b' ? IBV_ACCESS_MW_BIND
					   : 0;
	return flags;
}

/* The place that mr=, off= and len= (or `len`) name; NULL, answered, unless it is in the MR. */
static uint8_t *
place(uint64_t len)
{
	struct ibv_mr *mr = mrs[index_of("mr")];
	uint64_t off = number("off", 0);

	if (mr == NULL || len > mr->length || off > mr->length - len) {
		fail(ERANGE, "mr");
		return NULL;
	}
	return (uint8_t *)mr->addr + off;
}

static void
cmd_gid(void)
{
	char name[INET6_ADDRSTRLEN];
	union ibv_gid gid;

	if (ibv_query_gid(context, 1, number("index", 1), &gid) != 0)
		fail(errno, "ibv_query_gid");
	else
		ok("gid=%s", inet_ntop(AF_INET6, gid.raw, name, sizeof(name)));
}

static void
cmd_mr(void)
{
	uint64_t size = number("size", 4096);
	struct ibv_mr **mr = &mrs[index_of("n")];
	void *mem;

	if (size > (64 << 20) || *mr != NULL) {
		fail(EINVAL, "mr");
		return;
	}
	mem = aligned_alloc(4096, (size + 4095) & ~UINT64_C(4095));
	if (mem == NULL) {
		fail(ENOMEM, "mr");
		return;
	}
	memset(mem, 0, size);
	*mr = ibv_reg_mr(pd, mem, size, access_flags(text("access", "lwra")));
	if (*mr == NULL) {
		fail(errno, "ibv_reg_mr");
		free(mem);
		return;
	}
	ok("addr=0x%" PRIx64 " lkey=0x%x rkey=0x%x", (uint64_t)(uintptr_t)mem, (*mr)->lkey,
	   (*mr)->rkey);
}

static void
cmd_mw(void)
{
	struct ibv_mw **mw = &mws[index_of("n")];

	*mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	if (*mw == NULL)
		fail(errno, "ibv_alloc_mw");
	else
		ok("rkey=0x%x", (*mw)->rkey);
}

static void
cmd_fill(void)
{
	uint64_t i, len = number("len", 0), seed = number("seed", 0);
	uint8_t *p = place(len);

	if (p == NULL)
		return;
	for (i = 0; i < len; i++)
		p[i] = (seed + i) % PATTERN;
	ok("%s", "");
}

static void
cmd_verify(void)
{
	uint64_t i, len = number("len", 0), seed = number("seed", 0);
	uint8_t *p = place(len);

	if (p == NULL)
		return;
	for (i = 0; i < len && p[i] == (seed + i) % PATTERN; i++)
		;
	if (i < len)
		ok("differs=%" PRIu64, i);
	else
		ok("differs=no");
}

static void
cmd_peek(void)
{
	uint8_t *p = place(sizeof(uint64_t));
	uint64_t value;

	if (p == NULL)
		return;
	memcpy(&value, p, sizeof(value));
	ok("value=0x%" PRIx64, value);
}

static void
cmd_poke(void)
{
	uint8_t *p = place(sizeof(uint64_t));
	uint64_t value = number("value", 0);

	if (p == NULL)
		return;
	memcpy(p, &value, sizeof(value));
	ok("%s", "");
}

static void
cmd_qp(void)
{
	const char *type = text("type", "rc");
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = number("sq", 64),
			.max_recv_wr = number("rq", 64),
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
		.qkey = QKEY,
		.qp_access_flags = access_flags(text("access", "wra")),
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	struct ibv_qp **qp = &qps[index_of("n")];
	int rc;

	*qp = ibv_create_qp(pd, &init);
	if (*qp == NULL) {
		fail(errno, "ibv_create_qp");
		return;
	}
	mask |= init.qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	rc = ibv_modify_qp(*qp, &attr, mask);
	if (rc != 0)
		fail(rc, "INIT");
	else
		ok("qpn=0x%x", (*qp)->qp_num);
}

/* gid=, sgid=: where packets of a QP or an address handle go. */
static int
address(struct ibv_ah_attr *ah)
{
	memset(ah, 0, sizeof(*ah));
	ah->is_global = 1;
	ah->port_num = 1;
	ah->grh.sgid_index = number("sgid", 1);
	ah->grh.hop_limit = 64;
	return inet_pton(AF_INET6, text("gid", ""), ah->grh.dgid.raw) == 1 ? 0 : EINVAL;
}

static void
cmd_rtr(void)
{
	struct ibv_qp *qp = qps[index_of("n")];
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = number("dqpn", 0),
		.rq_psn = number("psn", 0),
		.max_dest_rd_atomic = number("depth", 8),
		.min_rnr_timer = number("rnr", 12),
	};
	int mask = IBV_QP_STATE;
	unsigned int mtu;
	int rc;

	if (qp == NULL) {
		fail(ENOENT, "qp");
		return;
	}
	if (qp->qp_type != IBV_QPT_UD) {
		for (mtu = number("mtu", 1024); mtu > 256; mtu /= 2)
			attr.path_mtu++;
		if (address(&attr.ah_attr) != 0) {
			fail(EINVAL, "gid");
			return;
		}
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	}
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	rc = ibv_modify_qp(qp, &attr, mask);
	if (rc != 0)
		fail(rc, "RTR");
	else
		ok("%s", "");
}

static void
cmd_rts(void)
{
	struct ibv_qp *qp = qps[index_of("n")];
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = number("psn", 0),
		.timeout = number("timeout", 18),
		.retry_cnt = number("retry", 7),
		.rnr_retry = number("rnr", 7),
		.max_rd_atomic = number("depth", 8),
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	int rc;

	if (qp == NULL) {
		fail(ENOENT, "qp");
		return;
	}
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	rc = ibv_modify_qp(qp, &attr, mask);
	if (rc != 0)
		fail(rc, "RTS");
	else
		ok("%s", "");
}

static void
cmd_state(void)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
	struct ibv_qp *qp = qps[index_of("n")];
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (qp == NULL || ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) != 0)
		fail(EINVAL, "ibv_query_qp");
	else
		ok("state=%s", attr.qp_state <= IBV_QPS_ERR ? names[attr.qp_state] : "?");
}

static void
cmd_recv(void)
{
	struct ibv_qp *qp = qps[index_of("qp")];
	uint32_t len = number("len", 0);
	uint8_t *p = place(len);
	struct ibv_sge sge = {.addr = (uintptr_t)p, .length = len};
	struct ibv_recv_wr wr = {.wr_id = number("id", 0), .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;
	int rc;

	if (p == NULL)
		return;
	sge.lkey = mrs[index_of("mr")]->lkey;
	rc = qp == NULL ? ENOENT : ibv_post_recv(qp, &wr, &bad);
	if (rc != 0)
		fail(rc, "ibv_post_recv");
	else
		ok("%s", "");
}

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
} opcodes[] = {
	{"send", IBV_WR_SEND},
	{"send_imm", IBV_WR_SEND_WITH_IMM},
	{"send_inv", IBV_WR_SEND_WITH_INV},
	{"write", IBV_WR_RDMA_WRITE},
	{"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM},
	{"read", IBV_WR_RDMA_READ},
	{"fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD},
	{"cmp_swap", IBV_WR_ATOMIC_CMP_AND_SWP},
	{"local_inv", IBV_WR_LOCAL_INV},
	{"bind", IBV_WR_BIND_MW},
};

/* What depends on the opcode; 0 or an errno. */
static int
fill_request(struct ibv_send_wr *wr)
{
	struct ibv_mw *mw = mws[index_of("mw")];

	switch (wr->opcode) {
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		wr->wr.atomic.remote_addr = number("raddr", 0);
		wr->wr.atomic.rkey = number("rkey", 0);
		wr->wr.atomic.compare_add = number("compare", 0);
		wr->wr.atomic.swap = number("swap", 0);
		return 0;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		wr->invalidate_rkey = number("rkey", 0);
		return 0;
	case IBV_WR_BIND_MW:
		if (mw == NULL)
			return ENOENT;
		wr->bind_mw.mw = mw;
		wr->bind_mw.rkey = number("rkey", 0);
		wr->bind_mw.bind_info.mr = mrs[index_of("mr")];
		wr->bind_mw.bind_info.addr = wr->sg_list->addr;
		wr->bind_mw.bind_info.length = wr->sg_list->length;
		wr->bind_mw.bind_info.mw_access_flags = access_flags(text("access", "wr"));
		wr->num_sge = 0;
		return 0;
	default:
		wr->wr.rdma.remote_addr = number("raddr", 0);
		wr->wr.rdma.rkey = number("rkey", 0);
		wr->imm_data = htonl(number("imm", 0));
		return 0;
	}
}

static void
cmd_send(void)
{
	struct ibv_qp *qp = qps[index_of("qp")];
	uint32_t len = number("len", 0);
	uint8_t *p = place(len);
	struct ibv_sge sge = {.addr = (uintptr_t)p, .length = len};
	struct ibv_send_wr wr = {.wr_id = number("id", 0), .sg_list = &sge, .num_sge = 1};
	struct ibv_send_wr *bad;
	struct ibv_ah_attr attr;
	unsigned int i;
	int rc;

	if (p == NULL)
		return;
	for (i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++)
		if (strcmp(opcodes[i].name, text("op", "")) == 0)
			break;
	if (qp == NULL || i == sizeof(opcodes) / sizeof(opcodes[0])) {
		fail(EINVAL, "qp or op");
		return;
	}
	wr.opcode = opcodes[i].opcode;
	sge.lkey = mrs[index_of("mr")]->lkey;
	wr.send_flags = (strchr(text("flags", ""), 's') ? IBV_SEND_SOLICITED : 0) |
			(strchr(text("flags", ""), 'f') ? IBV_SEND_FENCE : 0);
	rc = fill_request(&wr);
	if (rc == 0 && qp->qp_type == IBV_QPT_UD) {
		wr.wr.ud.remote_qpn = number("dqpn", 0);
		wr.wr.ud.remote_qkey = number("qkey", QKEY);
		rc = address(&attr);
		/* It stays until the program ends: the request refers to it. */
		wr.wr.ud.ah = rc == 0 ? ibv_create_ah(pd, &attr) : NULL;
		if (rc == 0 && wr.wr.ud.ah == NULL)
			rc = errno;
	}
	if (rc == 0)
		rc = ibv_post_send(qp, &wr, &bad);
	if (rc != 0)
		fail(rc, "ibv_post_send");
	else
		ok("%s", "");
}

static int64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static void
cmd_poll(void)
{
	int64_t end = now_ms() + (int64_t)number("ms", 0);
	struct ibv_wc wc;
	int n;

	for (;;) {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n != 0 || now_ms() >= end)
			break;
		poll(NULL, 0, 1);
	}
	if (n < 0) {
		fail(EIO, "ibv_poll_cq");
		return;
	}
	if (n == 0) {
		ok("none");
		return;
	}
	ok("id=%" PRIu64 " status=%d op=%d len=%u imm=0x%x inv=0x%x flags=%u qpn=0x%x src=0x%x",
	   wc.wr_id, wc.status, wc.opcode, wc.byte_len,
	   wc.wc_flags & IBV_WC_WITH_IMM ? ntohl(wc.imm_data) : 0,
	   wc.wc_flags & IBV_WC_WITH_INV ? wc.invalidated_rkey : 0, wc.wc_flags, wc.qp_num,
	   wc.src_qp);
}

static void
cmd_reset(void)
{
	struct ibv_qp **qp = &qps[index_of("n")];
	int rc = *qp == NULL ? ENOENT : ibv_destroy_qp(*qp);

	if (rc != 0) {
		fail(rc, "ibv_destroy_qp");
		return;
	}
	*qp = NULL;
	ok("%s", "");
}

static const struct {
	const char *name;
	void (*run)(void);
} commands[] = {
	{"gid", cmd_gid},   {"mr", cmd_mr},       {"mw", cmd_mw},         {"fill", cmd_fill},
	{"peek", cmd_peek}, {"poke", cmd_poke},   {"qp", cmd_qp},         {"rtr", cmd_rtr},
	{"rts", cmd_rts},   {"state", cmd_state}, {"recv", cmd_recv},     {"send", cmd_send},
	{"poll", cmd_poll}, {"reset", cmd_reset}, {"verify", cmd_verify},
};

static void
run_line(char *line)
{
	char *save, *word = strtok_r(line, " \n", &save), *pair, *value;
	unsigned int i;

	if (word == NULL)
		return;
	for (nb_args = 0; nb_args < MAX_ARGS; nb_args++) {
		pair = strtok_r(NULL, " \n", &save);
		value = pair == NULL ? NULL : strchr(pair, '=');
		if (value == NULL)
			break;
		*value = '\0';
		args[nb_args].name = pair;
		args[nb_args].value = value + 1;
	}
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, word) == 0) {
			commands[i].run();
			return;
		}
	fail(EINVAL, word);
}

int
main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "rxe0";
	struct ibv_device **list = ibv_get_device_list(NULL);
	char line[1024];
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; list != NULL && list[i] != NULL; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			context = ibv_open_device(list[i]);
	if (context != NULL)
		pd = ibv_alloc_pd(context);
	if (pd != NULL)
		cq = ibv_create_cq(context, 1024, NULL, NULL, 0);
	if (cq == NULL) {
		fail(ENODEV, name);
		return 1;
	}
	ok("%s", name);
	while (fgets(line, sizeof(line), stdin) != NULL)
		run_line(line);
	return 0;
}
