/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Loops whose instructions devtools/instructions counts with callgrind. The functions count_post
 * and count_poll contain only the work of the application and none of the null device. So callgrind
 * can count the instructions inside these functions. The loops use no EAL and no clock.
 *
 * The loops for the software device call soft_write8() on soft0, and callgrind counts the
 * instructions inside soft_engine_progress() and its variants. If the queue pairs exchange RoCEv2
 * packets, this count contains the work of the requester and of the responder.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "baseline_net.h"
#include "bench.h"
#include "rig.h"
#include "ring.h"
#include "soft.h"

#ifdef __clang__
/* clang needs no noclone, because it makes no clones of functions */
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

enum op {
	WRITE8,    /* WRITE of 8 bytes inline */
	WRITE64,   /* WRITE of 64 bytes with one SGE */
	RECV64,    /* receive with one SGE of 64 bytes; there is no baseline */
	READ64,    /* READ of 64 bytes; needs a device */
	SEND8,     /* SEND of 8 bytes inline, with a receive; needs a device */
	RING48,    /* message of 48 bytes through an rdma_ring; needs a device */
	SEND64,    /* SEND of 64 bytes with one SGE, with a receive; needs a device */
	PINGPONG8, /* SEND8 of both ends in turn; one message is in flight */
};

struct kernel {
	const char *name;
	uint32_t batch;
	enum baseline_signal sig;
	enum op op;
	bool blueflame;     /* the queue copies single WQEs to its register */
	const char *device; /* device specification; NULL if the loop has no device */
	const char *other;  /* specification of the peer's device; NULL if the peer is on the same
			       device */
	uint32_t qps; /* number of QPs; batch of them ring the doorbell in each round. 0 if the loop
			 has only one pair of QPs */
	bool others; /* true if each round uses other QPs than the round before; false if all rounds
			use the same QPs */
};

/*
 * Specification of a device on one end of a net_memif, with the MAC of the other end as a
 * neighbour.
 */
#define PORT(us, them)                                                                             \
	"soft" us ",port=net_memif" us ",framesz=4198,ip=192.0.2.1" us "/24,neigh=192.0.2.1" them  \
	"@02:bb:00:00:00:0" them

/*
 * Specification of one of two devices on a shared-memory fabric. The fabric's name contains this
 * process's pid.
 */
#define SHM(us) "soft" us ",shm=bench-count-%d,ip=192.0.2.1" us "/24"

#define UNCOUNTED 64 /* requests before the counted ones; a multiple of each batch */

#define ALL  BASELINE_SIGNAL_ALL
#define LAST BASELINE_SIGNAL_LAST

static const struct kernel kernels[] = {
	{"inline8/batch1/all", 1, ALL, WRITE8, false, NULL, NULL, 0, false},
	{"inline8/blueflame/batch1/all", 1, ALL, WRITE8, true, NULL, NULL, 0, false},
	{"inline8/batch16/all", 16, ALL, WRITE8, false, NULL, NULL, 0, false},
	{"inline8/batch16/last", 16, LAST, WRITE8, false, NULL, NULL, 0, false},
	{"inline8/batch32/all", 32, ALL, WRITE8, false, NULL, NULL, 0, false},
	{"sge64/batch1/all", 1, ALL, WRITE64, false, NULL, NULL, 0, false},
	{"sge64/blueflame/batch1/all", 1, ALL, WRITE64, true, NULL, NULL, 0, false},
	{"sge64/batch16/all", 16, ALL, WRITE64, false, NULL, NULL, 0, false},
	{"sge64/batch32/all", 32, ALL, WRITE64, false, NULL, NULL, 0, false},
	{"sge64/batch32/last", 32, LAST, WRITE64, false, NULL, NULL, 0, false},
	{"recv64/batch1/all", 1, ALL, RECV64, false, NULL, NULL, 0, false},
	{"recv64/batch16/all", 16, ALL, RECV64, false, NULL, NULL, 0, false},
	{"recv64/batch32/all", 32, ALL, RECV64, false, NULL, NULL, 0, false},
	{"device/batch1/all", 1, ALL, WRITE8, false, "soft0", NULL, 0, false},
	{"device/batch32/all", 32, ALL, WRITE8, false, "soft0", NULL, 0, false},
	{"device/batch32/last", 32, LAST, WRITE8, false, "soft0", NULL, 0, false},
	{"device/read64/batch32/last", 32, LAST, READ64, false, "soft0", NULL, 0, false},
	{"device/send64/batch32/last", 32, LAST, SEND64, false, "soft0", NULL, 0, false},
	{"device/10000qps/batch10/same", 10, ALL, WRITE8, false, "soft0", NULL, 10000, false},
	{"device/10000qps/batch10/others", 10, ALL, WRITE8, false, "soft0", NULL, 10000, true},
	{"wire/batch1/all", 1, ALL, WRITE8, false, "soft0,wire=1", NULL, 0, false},
	{"wire/batch32/last", 32, LAST, WRITE8, false, "soft0,wire=1", NULL, 0, false},
	{"shm/batch1/all", 1, ALL, WRITE8, false, SHM("0"), SHM("1"), 0, false},
	{"shm/batch32/last", 32, LAST, WRITE8, false, SHM("0"), SHM("1"), 0, false},
	{"shm/send/batch1/all", 1, ALL, SEND8, false, SHM("0"), SHM("1"), 0, false},
	{"shm/send/batch32/last", 32, LAST, SEND8, false, SHM("0"), SHM("1"), 0, false},
	{"shm/pingpong/batch1/last", 1, LAST, PINGPONG8, false, SHM("0"), SHM("1"), 0, false},
	{"ring/batch1/all", 1, ALL, RING48, false, SHM("0"), SHM("1"), 0, false},
	{"ring/batch32/all", 32, ALL, RING48, false, SHM("0"), SHM("1"), 0, false},
	{"port/batch1/all", 1, ALL, WRITE8, false, PORT("0", "1"), PORT("1", "0"), 0, false},
	{"port/batch32/last", 32, LAST, WRITE8, false, PORT("0", "1"), PORT("1", "0"), 0, false},
};

/*
 * Posts one batch and rings its doorbell. Callgrind counts this function. Returns the number of
 * refused posts.
 */
static NOINLINE unsigned int
count_post(struct rig *r, uint64_t i, uint32_t batch, uint32_t flags)
{
	const struct rig_data data = rig_data(r);
	unsigned int bad = 0;
	uint32_t k;

	for (k = 0; k < batch; k++)
		bad += rig_post_inline8(&r->qp, data, i + k,
					k + 1 == batch ? BB_SEND_SIGNALED : flags) != 0;
	bb_qp_ring(&r->qp);
	return bad;
}

static NOINLINE unsigned int
count_post_sge(struct rig *r, uint64_t i, uint32_t batch)
{
	const struct rig_data data = rig_data(r);
	unsigned int bad = 0;
	uint32_t k;

	for (k = 0; k < batch; k++)
		bad += rig_post_sge64(&r->qp, data, i + k, BB_SEND_SIGNALED) != 0;
	bb_qp_ring(&r->qp);
	return bad;
}

static NOINLINE unsigned int
count_post_sge_last(struct rig *r, uint64_t i, uint32_t batch)
{
	const struct rig_data data = rig_data(r);
	unsigned int bad = 0;
	uint32_t k;

	for (k = 0; k < batch; k++)
		bad += rig_post_sge64(&r->qp, data, i + k, k + 1 == batch ? BB_SEND_SIGNALED : 0) !=
		       0;
	bb_qp_ring(&r->qp);
	return bad;
}

/* Posts one batch of receives and rings their doorbell record. Callgrind counts this function. */
static NOINLINE unsigned int
count_post_recv(struct rig *r, uint64_t i, uint32_t batch)
{
	const struct rig_data data = rig_data(r);
	unsigned int bad = 0;
	uint32_t k;

	for (k = 0; k < batch; k++) {
		const struct bb_sge sge = {
			.addr = data.dst + ((i + k) & BASELINE_SPREAD) * 8,
			.len = 64,
			.lkey = 0x1100,
		};

		bad += bb_post_recv(&r->qp, i + k, &sge, 1) != 0;
	}
	bb_qp_ring_recv(&r->qp);
	return bad;
}

/* Polls the CQ once. Callgrind counts this function. */
static NOINLINE uint32_t
count_poll(struct rig *r, struct bb_wc *wc, unsigned int n)
{
	return bb_cq_poll(&r->cq, wc, n);
}

/* The baselines' post and poll. Callgrind counts both functions. */
static NOINLINE void
count_baseline_post(struct rig *r, uint64_t i, const struct kernel *k)
{
	if (k->op == WRITE64)
		baseline_post_sge64(&r->baseline, k->batch, k->batch, k->sig);
	else
		baseline_post_batch(&r->baseline, i, k->batch, k->sig);
}

static NOINLINE uint32_t
count_baseline_poll(struct rig *r)
{
	return baseline_poll(&r->baseline);
}

int
count_list(void)
{
	size_t i;

	for (i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		printf("%s\n", kernels[i].name);
	return 0;
}

static int
run_bluebell(struct rig *r, const struct kernel *k, uint64_t n)
{
	const uint32_t flags = k->sig == ALL ? BB_SEND_SIGNALED : 0;
	const uint32_t want = k->sig == ALL ? k->batch : 1;
	struct bb_wc wc[32];
	uint64_t i;

	for (i = 0; i < n; i += k->batch) {
		unsigned int bad;

		if (k->op == RECV64)
			bad = count_post_recv(r, i, k->batch);
		else if (k->op == WRITE8)
			bad = count_post(r, i, k->batch, flags);
		else if (k->sig == ALL)
			bad = count_post_sge(r, i, k->batch);
		else
			bad = count_post_sge_last(r, i, k->batch);
		if (bad != 0)
			return -EIO;
		if (k->op == RECV64)
			baseline_null_recv(&r->dev);
		else
			baseline_null_run(&r->dev);
		if (count_poll(r, wc, 32) != want)
			return -EIO;
	}
	return 0;
}

static int
run_baseline(struct rig *r, const struct kernel *k, uint64_t n)
{
	const uint32_t want = k->sig == ALL ? k->batch : 1;
	uint64_t i;

	for (i = 0; i < n; i += k->batch) {
		count_baseline_post(r, i, k);
		baseline_null_run(&r->dev);
		if (count_baseline_poll(r) != want)
			return -EIO;
	}
	return 0;
}

/* Creates both ends of a net_memif. */
static int
make_vdevs(void)
{
	char vdev[200];
	unsigned int i;
	int rc = 0;

	for (i = 0; i < 2 && rc == 0; i++) {
		snprintf(vdev, sizeof(vdev),
			 "net_memif%u,role=%s,id=0,bsize=4608,mac=02:bb:00:00:00:0%u,"
			 "socket=@bluebell-count-%d,socket-abstract=yes",
			 i, i == 0 ? "server" : "client", i, getpid());
		rc = vdev_make(vdev);
	}
	return rc;
}

/* Opens the two devices @a and @b, each with a QP. */
static int
open_two(const struct kernel *k, struct soft *a, struct soft *b)
{
	struct bb_qp_addr addr_a, addr_b;
	char spec[2][128];
	int rc = eal_start();

	if (rc == 0 && strstr(k->device, "port=") != NULL)
		rc = make_vdevs();
	if (rc != 0)
		return rc;
	/* The fabric name contains the pid, to separate concurrent processes. */
	snprintf(spec[0], sizeof(spec[0]), k->device, getpid());
	snprintf(spec[1], sizeof(spec[1]), k->other, getpid());
	rc = soft_open_one(a, spec[0], 128, RING_BYTES);
	if (rc != 0)
		return rc;
	rc = soft_open_one(b, spec[1], 128, RING_BYTES);
	if (rc != 0) {
		soft_close(a);
		return rc;
	}
	a->raddr = (uintptr_t)b->to;
	a->rkey = b->dst->rkey;
	b->raddr = (uintptr_t)a->to;
	b->rkey = a->dst->rkey;
	rc = soft_addr(a, a->qps[0], &addr_a);
	if (rc == 0)
		rc = soft_addr(b, b->qps[0], &addr_b);
	if (rc == 0)
		rc = soft_wait_link(a);
	if (rc == 0)
		rc = soft_wait_link(b);
	if (rc == 0)
		rc = soft_connect(a, a->qps[0], &addr_a, &addr_b);
	if (rc == 0)
		rc = soft_connect(b, b->qps[0], &addr_b, &addr_a);
	if (rc != 0) {
		soft_close(b);
		soft_close(a);
	}
	return rc;
}

/* The two queue pairs of a loop, and their devices. */
struct ends {
	struct soft *from, *to; /* the same device if there is only one */
	struct bb_qp *qp, *peer;
};

/* Posts one receive, if the loop's requests are SENDs, and one request. */
static int
post_op(const struct kernel *k, const struct ends *e, uint64_t wr_id, uint32_t flags)
{
	const uint32_t len = k->op == SEND64 || k->op == READ64 ? 64 : 8;
	const struct bb_sge local = {(uintptr_t)e->from->from, len, e->from->src->lkey};
	const struct bb_sge recv = {(uintptr_t)e->to->to, len, e->to->dst->lkey};

	if (k->op == READ64)
		return bb_post_read(e->qp, wr_id, &local, 1, e->from->raddr, e->from->rkey, flags);
	if (bb_post_recv(e->peer, wr_id, &recv, 1) != 0)
		return -EIO;
	bb_qp_ring_recv(e->peer);
	return k->op == SEND64 ? bb_post_send(e->qp, wr_id, &local, 1, flags)
			       : bb_post_send_inline(e->qp, wr_id, e->from->from, len, flags);
}

/* Executes @n READs or SENDs. Each SEND has a receive. */
static int
run_ops(const struct kernel *k, const struct ends *e, uint64_t n)
{
	const uint32_t flags = k->sig == ALL ? BB_SEND_SIGNALED : 0;
	const uint32_t want = (k->sig == ALL ? k->batch : 1) + (k->op == READ64 ? 0 : k->batch);
	uint32_t i, done, idle;
	struct bb_wc wc[64];
	uint64_t at;

	for (at = 0; at < n; at += k->batch) {
		for (i = 1; i <= k->batch; i++)
			if (post_op(k, e, i, i == k->batch ? BB_SEND_SIGNALED : flags) != 0)
				return -EIO;
		bb_qp_ring(e->qp);
		done = 0;
		for (idle = 0; done != want; idle++) {
			if (idle > 100000000)
				return -EIO;
			done += bb_cq_poll(e->from->cq, wc, RTE_DIM(wc));
			if (e->to != e->from)
				done += bb_cq_poll(e->to->cq, wc, RTE_DIM(wc));
		}
	}
	return 0;
}

/*
 * Exchanges @n messages. Each end polls until the peer's message has arrived, then sends the next
 * message. So the traffic is a conversation, in which an ACK leaves after the reply.
 */
static int
run_pingpong(const struct kernel *k, const struct ends *ends, uint64_t n)
{
	const struct ends turns[2] = {*ends, {ends->to, ends->from, ends->peer, ends->qp}};
	struct bb_wc wc = {0};
	uint64_t i, idle;

	for (i = 0; i < n; i++) {
		const struct ends *e = &turns[i & 1];

		if (post_op(k, e, i, 0) != 0)
			return -EIO;
		bb_qp_ring(e->qp);
		for (idle = 0;; idle++) {
			if (idle > 100000000 || bb_cq_poll(e->from->cq, &wc, 1) != 0)
				return -EIO;
			if (bb_cq_poll(e->to->cq, &wc, 1) == 1)
				break;
		}
		if (wc.status != BB_WC_SUCCESS || wc.opcode != BB_WC_RECV)
			return -EIO;
	}
	return 0;
}

/*
 * Pushes @n messages to the ring, then flushes the ring, which sends the messages to the peer. A
 * separate function, so that callgrind can count its instructions.
 */
static NOINLINE int
count_push(struct rdma_ring_tx *tx, const struct ring_msg *m, uint32_t n)
{
	int rc = 0;
	uint32_t i;

	for (i = 0; i < n && rc == 0; i++)
		rc = rdma_ring_push(tx, m);
	rdma_ring_tx_flush(tx);
	return rc;
}

/* Pops messages until the ring is empty. Callgrind counts this function. */
static NOINLINE uint32_t
count_pop(struct rdma_ring_rx *rx, struct ring_msg *m)
{
	uint32_t n = 0;

	while (rdma_ring_pop(rx, m) == 1)
		n++;
	rdma_ring_rx_flush(rx);
	return n;
}

/* Passes @n messages from @a to @b. Each side polls after it has posted. */
static int
run_ring(const struct kernel *k, struct soft *a, struct soft *b, uint64_t n)
{
	struct rdma_ring_tx tx, unused_tx;
	struct rdma_ring_rx rx, unused_rx;
	struct ring_msg m;
	struct bb_wc wc;
	uint64_t i, credits = 0;
	uint32_t done, idle;
	int rc = ring_init(a, &tx, &unused_rx);

	if (rc == 0)
		rc = ring_init(b, &unused_tx, &rx);
	for (i = 0; i < n && rc == 0; i += k->batch) {
		ring_fill(&m, i);
		rc = count_push(&tx, &m, k->batch);
		/* A poll of @b makes its device process the packet with the first message. */
		for (done = 0, idle = 0; done < k->batch && rc == 0; idle++) {
			if (bb_cq_poll(a->cq, &wc, 1) != 0 || idle > 1000000)
				return -EIO;
			done += count_pop(&rx, &m);
			if ((done < k->batch || rx.credits != credits) &&
			    bb_cq_poll(b->cq, &wc, 1) != 0)
				return -EIO;
			credits = rx.credits;
		}
	}
	return rc;
}

/* Written so that the compiler does not merge count_begin() and count_done(). */
static volatile bool counting;

/* Begins the counts of one loop: callgrind drops the counts before this call. */
static NOINLINE void
count_begin(void)
{
	counting = true;
}

/* Executes @n requests from @a to @b. */
static int
run_requests(const struct kernel *k, struct soft *a, struct soft *b, uint64_t n)
{
	struct soft_run run = {a, n, k->batch, k->batch, k->sig == ALL, b};
	const struct ends ends = {a, b, a->qps[0], b->qps[0]};

	if (k->op == SEND8)
		return run_ops(k, &ends, n);
	if (k->op == PINGPONG8)
		return run_pingpong(k, &ends, n);
	return soft_write8(&run) < 0 ? -EIO : 0;
}

static int
run_two(const struct kernel *k, uint64_t n)
{
	struct soft a, b;
	int rc;

	cpus_choose();
	soft_inline = k->op == RING48 ? RDMA_RING_INLINE : SOFT_INLINE;
	rc = open_two(k, &a, &b);
	if (rc != 0)
		return rc;
	if (k->op == RING48) {
		rc = run_ring(k, &a, &b, n);
	} else {
		/* Not counted: the polls of the connect, and packets without a cached header. */
		rc = run_requests(k, &a, &b, UNCOUNTED);
		count_begin();
		if (rc == 0)
			rc = run_requests(k, &a, &b, n);
	}
	soft_close(&b);
	soft_close(&a);
	return rc;
}

/* Runs @n requests on the software device. WRITEs are posted as in run_bluebell(). */
static int
run_device(const struct kernel *k, uint64_t n)
{
	struct soft s;
	struct soft_run run = {&s, n, k->batch, k->batch, k->sig == ALL, NULL};
	struct soft_rounds rounds = {&s, n / k->batch, k->batch, k->others};
	int rc;

	cpus_choose();
	soft_recvs = k->op == SEND64 ? 64 : 0;
	rc = soft_open(&s, k->device, k->qps == 0 ? 1 : k->qps / 2, k->qps == 0 ? 128 : 16, 8192);
	if (rc != 0)
		return rc;
	if (k->qps != 0)
		rc = soft_together(&rounds) < 0 ? -EIO : 0;
	else if (k->op != WRITE8)
		rc = run_ops(k, &(struct ends){&s, &s, s.qps[0], s.qps[1]}, n);
	else
		rc = soft_write8(&run) < 0 ? -EIO : 0;
	soft_close(&s);
	return rc;
}

static int
run_one(const char *name, const char *side, uint64_t n)
{
	bool bluebell = strcmp(side, "ours") == 0;
	const struct kernel *k = NULL;
	struct rig *r;
	size_t i;
	int rc;

	for (i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		if (strcmp(kernels[i].name, name) == 0)
			k = &kernels[i];
	if (k == NULL ||
	    (!bluebell && (strcmp(side, "floor") != 0 || k->device != NULL || k->op == RECV64))) {
		fprintf(stderr, "bench: no kernel %s of side %s: see --list-kernels\n", name, side);
		return -EINVAL;
	}
	/*
	 * Disables the ack timer. Under valgrind round-trip times vary with the machine, so the
	 * requester would sometimes repeat packets too early. That would add up to 5 % to the count
	 * of instructions. Inside one process no packet is lost, so no timer is needed.
	 */
	soft_timeout = SOFT_TIMEOUT_NONE;
	if (k->other != NULL)
		return run_two(k, n);
	if (k->device != NULL)
		return run_device(k, n);
	r = k->blueflame && bluebell ? rig_new_blueflame() : rig_new(bluebell);
	if (r == NULL)
		return -ENOMEM;
	rc = bluebell ? run_bluebell(r, k, n) : run_baseline(r, k, n);
	if (rc != 0)
		fprintf(stderr,
			"bench: kernel %s failed: its requests did not complete as "
			"expected\n",
			name);
	rig_free(r);
	return rc;
}

/* Ends the counts of one loop: callgrind writes them when this function returns. */
static NOINLINE void
count_done(void)
{
	counting = false;
}

int
count_run(const char *names, const char *side, uint64_t n)
{
	char *list = strdup(names), *rest = NULL, *name;
	int rc = list != NULL ? 0 : -ENOMEM;

	for (name = strtok_r(list, ",", &rest); rc == 0 && name != NULL;
	     name = strtok_r(NULL, ",", &rest)) {
		rc = run_one(name, side, n);
		count_done();
	}
	free(list);
	return rc;
}
