/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The connection of the target and the peer. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"

#define GID 1

struct side {
	union ibv_gid gid;
	uint32_t qpn;
	pid_t pid;
};

struct ibv_context *ctx;
struct ibv_pd *pd;
pid_t peer;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static int to_peer, from_peer;

static void
send_all(int fd, const void *p, size_t len)
{
	CHECK(write(fd, p, len) == (ssize_t)len);
}

static bool
receive(int fd, void *p, size_t len)
{
	return read(fd, p, len) == (ssize_t)len;
}

static void
open_qp(struct side *me)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
	};

	CHECK(list != NULL && list[0] != NULL);
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	CHECK(ctx != NULL);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	CHECK(pd != NULL && cq != NULL);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	CHECK(qp != NULL && ibv_query_gid(ctx, 1, GID, &me->gid) == 0);
	me->qpn = qp->qp_num;
	me->pid = getpid();
}

static void
connect_qp(const struct side *to, bool to_rts)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL_RIGHTS};

	CHECK(ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
	      0);
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to->qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = to->gid, .sgid_index = GID, .hop_limit = 1}},
	};
	CHECK(ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER) == 0);
	if (!to_rts)
		return;
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	CHECK(ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

/* ---- The target */

void
start(bool to_rts)
{
	char program[] = "verbs_memory", option[] = "--peer";
	char *argv[] = {program, option, NULL};
	posix_spawn_file_actions_t files;
	struct side me, it;
	int in[2], out[2];

	CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	CHECK(posix_spawn_file_actions_init(&files) == 0);
	CHECK(posix_spawn_file_actions_adddup2(&files, in[0], 0) == 0);
	CHECK(posix_spawn_file_actions_adddup2(&files, out[1], 1) == 0);
	CHECK(posix_spawn(&peer, "/proc/self/exe", &files, NULL, argv, environ) == 0);
	close(in[0]);
	close(out[1]);
	to_peer = in[1];
	from_peer = out[0];
	open_qp(&me);
	send_all(to_peer, &me, sizeof(me));
	CHECK(receive(from_peer, &it, sizeof(it)));
	connect_qp(&it, to_rts);
	send_all(to_peer, "", 1);
}

enum ibv_wc_status
order(enum op op, bool stopped, const struct ibv_mr *mr, const void *addr, uint64_t *value)
{
	struct order o = {.op = op,
			  .stopped = stopped,
			  .rkey = mr != NULL ? mr->rkey : 0,
			  .addr = (uintptr_t)addr,
			  .value = *value};
	struct reply r;

	send_all(to_peer, &o, sizeof(o));
	CHECK(receive(from_peer, &r, sizeof(r)));
	*value = r.value;
	return r.status;
}

static void
check(bool stopped, const struct ibv_mr *mr, void *addr, uint64_t value)
{
	uint64_t v = value;

	CHECK(order(OP_WRITE, stopped, mr, addr, &v) == IBV_WC_SUCCESS);
	CHECK(*(volatile uint64_t *)addr == value);
	*(volatile uint64_t *)addr = value + 1;
	CHECK(order(OP_READ, stopped, mr, addr, &v) == IBV_WC_SUCCESS);
	CHECK(v == value + 1);
}

void
check_direct(const struct ibv_mr *mr, void *addr, uint64_t value)
{
	uint64_t v = shared_file(addr);

	CHECK(v != 0);
	CHECK(order(OP_WAIT, false, mr, addr, &v) == IBV_WC_SUCCESS);
	check(true, mr, addr, value);
}

void
check_access(const struct ibv_mr *mr, void *addr, uint64_t value)
{
	check(false, mr, addr, value);
}

/*
 * Returns the inode of the shared file of bb_verbs that /proc/self/maps names at @addr, or for NULL
 * whether it names the file @ino at all; 0 if not.
 */
static unsigned long
find_file(const void *addr, unsigned long ino)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, end, is, found = 0;
	char line[512];

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strstr(line, "/memfd:bb-verbs") != NULL &&
		    sscanf(line, "%lx-%lx %*s %*s %*s %lu", &from, &end, &is) == 3 &&
		    (addr != NULL ? (uintptr_t)addr >= from && (uintptr_t)addr < end : is == ino))
			found = is;
	fclose(f);
	return found;
}

bool
has_file(const void *addr, size_t len)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, end;
	bool found = false;
	char line[512];

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strstr(line, "/memfd:") != NULL && sscanf(line, "%lx-%lx", &from, &end) == 2 &&
		    from < (uintptr_t)addr + len && end > (uintptr_t)addr)
			found = true;
	fclose(f);
	return found;
}

unsigned long
shared_file(const void *addr)
{
	return find_file(addr, 0);
}

bool
is_shared(const void *addr)
{
	return shared_file(addr) != 0;
}

uint8_t *
pages(unsigned int n, int byte)
{
	uint8_t *p =
		mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	memset(p, byte, n * PAGE);
	return p;
}

struct ibv_mr *
reg(void *addr, size_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, addr, len, ALL_RIGHTS);

	CHECK(mr != NULL);
	return mr;
}

/* ---- The peer */

static void
post(const struct order *o, const struct ibv_mr *mr)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, o->op == OP_SEND ? (uint32_t)o->addr : 8,
			      mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = o->op == OP_READ   ? IBV_WR_RDMA_READ
			  : o->op == OP_SEND ? IBV_WR_SEND
					     : IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = o->addr, .rkey = o->rkey},
	};
	struct ibv_send_wr *bad;

	CHECK(ibv_post_send(qp, &wr, &bad) == 0);
}

static enum ibv_wc_status
completion(void)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	CHECK(n == 1);
	return wc.status;
}

static enum ibv_wc_status
access_memory(const struct order *o, const struct ibv_mr *mr)
{
	post(o, mr);
	return completion();
}

/* Waits until the device has mapped a file of the target. */
static void
wait_mapped(unsigned long ino)
{
	struct ibv_wc wc;

	while (find_file(NULL, ino) == 0)
		(void)ibv_poll_cq(cq, 1, &wc);
}

/* Stops the target and waits until all its threads are stopped. */
static void
stop(pid_t pid)
{
	char path[64], state = 0;
	FILE *f;

	CHECK(kill(pid, SIGSTOP) == 0);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (state != 'T') {
		f = fopen(path, "r");
		CHECK(f != NULL && fscanf(f, "%*d (%*[^)]) %c", &state) == 1);
		fclose(f);
	}
}

enum ibv_wc_status
post_from(const struct ibv_mr *mr, void *addr, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)addr, len, mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	CHECK(ibv_post_send(qp, &wr, &bad) == 0);
	return completion();
}

enum ibv_wc_status
post_empty(void)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	CHECK(ibv_post_send(qp, &wr, &bad) == 0);
	return completion();
}

void
post_receive(const struct ibv_mr *mr, void *addr, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)addr, len, mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(ibv_post_recv(qp, &wr, &bad) == 0);
}

uint32_t
wait_message(void)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
	return wc.byte_len;
}

static void
serve(const struct side *target, const struct ibv_mr *mr, const struct order *o)
{
	struct reply r = {.status = IBV_WC_SUCCESS};

	if (o->op == OP_WAIT) {
		wait_mapped(o->value);
	} else if (o->op == OP_SEND) {
		memset(mr->addr, (int)o->value, o->addr);
		r.status = access_memory(o, mr);
	} else if (o->op == OP_FLOOD) {
		send_all(1, &r, sizeof(r));
		while (access_memory(o, mr) == IBV_WC_SUCCESS)
			;
		fprintf(stderr, "peer: the flood has ended\n");
		exit(0);
	} else {
		*(uint64_t *)mr->addr = o->value;
		if (o->stopped)
			stop(target->pid);
		r.status = access_memory(o, mr);
		if (o->stopped)
			CHECK(kill(target->pid, SIGCONT) == 0);
		r.value = *(uint64_t *)mr->addr;
	}
	send_all(1, &r, sizeof(r));
}

int
run_peer(void)
{
	struct side me, it;
	struct ibv_mr *mr;
	struct order o;
	char go;

	open_qp(&me);
	CHECK(receive(0, &it, sizeof(it)));
	send_all(1, &me, sizeof(me));
	connect_qp(&it, true);
	/* No remote rights: the peer shares nothing itself. */
	mr = ibv_reg_mr(pd, pages(1, 0), PAGE, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr != NULL && receive(0, &go, 1));
	while (receive(0, &o, sizeof(o)))
		serve(&it, mr, &o);
	return 0;
}
