/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Loops for test_count.py, which counts their instructions: each posts COUNT requests, by a call of
 * libfabric (fi_NAME), or by the calls of Bluebell that do the same (bb_NAME). Nothing is polled
 * meanwhile, so a loop contains posts only.
 */
#include <bluebell.h>
#include <rte_eal.h>

#include "pair.h"

#define COUNT  100u /* as in test_count.py */
#define ROUNDS 3u
#define LONG   4096u
#define LOOP   void __attribute__((noinline, noclone))

static struct pair p;
static unsigned char *mem;
static void *desc;
static uint64_t key;
static struct fid_ep *ep;
static struct bb_qp *qp;
static struct bb_mr *mr;

/* Not static, so that the profile has their names. */
LOOP fi_send64(void);
LOOP bb_send64(void);
LOOP fi_send4096(void);
LOOP bb_send4096(void);
LOOP fi_inject64(void);
LOOP bb_inject64(void);
LOOP fi_recv64(void);
LOOP bb_recv64(void);
LOOP fi_write4096(void);
LOOP bb_write4096(void);
LOOP fi_read4096(void);
LOOP bb_read4096(void);
LOOP count_round(void);

static ssize_t bad;

#define EACH(call)                                                                                 \
	do {                                                                                       \
		unsigned int i_;                                                                   \
                                                                                                   \
		for (i_ = 0; i_ < COUNT; i_++)                                                     \
			bad |= (call);                                                             \
	} while (0)

static inline int
rung(int ret)
{
	bb_qp_ring(qp);
	return ret;
}

static inline int
rung_recv(int ret)
{
	bb_qp_ring_recv(qp);
	return ret;
}

static inline struct bb_sge
sge(uint32_t len)
{
	return (struct bb_sge){(uintptr_t)mem, len, mr->lkey};
}

LOOP
fi_send64(void)
{
	EACH(fi_send(ep, mem, 64, desc, 0, mem));
}

LOOP
bb_send64(void)
{
	EACH(rung(bb_post_send_inline(qp, (uintptr_t)mem, mem, 64, BB_SEND_SIGNALED)));
}

LOOP
fi_inject64(void)
{
	EACH(fi_inject(ep, mem, 64, 0));
}

LOOP
bb_inject64(void)
{
	EACH(rung(bb_post_send_inline(qp, (uintptr_t)mem, mem, 64, 0)));
}

LOOP
fi_send4096(void)
{
	EACH(fi_send(ep, mem, LONG, desc, 0, mem));
}

LOOP
bb_send4096(void)
{
	const struct bb_sge s = sge(LONG);

	EACH(rung(bb_post_send(qp, (uintptr_t)mem, &s, 1, BB_SEND_SIGNALED)));
}

LOOP
fi_recv64(void)
{
	EACH(fi_recv(ep, mem, 64, desc, 0, mem));
}

LOOP
bb_recv64(void)
{
	const struct bb_sge s = sge(64);

	EACH(rung_recv(bb_post_recv(qp, (uintptr_t)mem, &s, 1)));
}

LOOP
fi_write4096(void)
{
	EACH(fi_write(ep, mem, LONG, desc, 0, (uintptr_t)mem, key, mem));
}

LOOP
bb_write4096(void)
{
	const struct bb_sge s = sge(LONG);

	EACH(rung(bb_post_write(qp, (uintptr_t)mem, &s, 1, (uintptr_t)mem, mr->rkey,
				BB_SEND_SIGNALED)));
}

LOOP
fi_read4096(void)
{
	EACH(fi_read(ep, mem, LONG, desc, 0, (uintptr_t)mem, key, mem));
}

LOOP
bb_read4096(void)
{
	const struct bb_sge s = sge(LONG);

	EACH(rung(bb_post_read(qp, (uintptr_t)mem, &s, 1, (uintptr_t)mem, mr->rkey,
			       BB_SEND_SIGNALED)));
}

/* A queue pair like the provider's, connected to itself. */
static void
qp_open(void)
{
	struct bb_qp_init_attr init;
	struct bb_qp_attr attr;
	struct bb_qp_addr addr;
	struct bb_cq_attr cq_attr;
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;

	assert_int_equal(bb_dev_open("soft1", &dev), 0);
	assert_int_equal(bb_pd_alloc(dev, &pd), 0);
	assert_int_equal(
		bb_mr_reg(pd, mem, MEM,
			  BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ,
			  &mr),
		0);
	bb_cq_attr_init(&cq_attr);
	cq_attr.depth = 4096;
	assert_int_equal(bb_cq_create(dev, &cq_attr, &cq), 0);
	bb_qp_init_attr_init(&init);
	init.type = BB_QPT_RC;
	init.send_cq = init.recv_cq = cq;
	init.sq_depth = init.rq_depth = 2048;
	init.max_sge = init.max_recv_sge = 4;
	init.max_inline = 64;
	assert_int_equal(bb_qp_create(pd, &init, &qp), 0);
	assert_int_equal(bb_qp_addr(qp, 1, 0, &addr), 0);
	bb_qp_attr_init(&attr);
	assert_int_equal(bb_qp_connect(qp, &addr, &addr, &attr), 0);
}

/* callgrind writes a profile when this function returns. */
LOOP
count_round(void)
{
	__asm__ volatile("");
}

TEST(test_loops)
{
	const struct want w = {.depth = 2048};
	unsigned int i;

	pair_open(&p, &w);
	pair_connect(&p, &w);
	mem = p.a.mem;
	desc = p.a.desc;
	key = p.b.key;
	ep = p.a.ep;
	qp_open();
	for (i = 0; i < ROUNDS; i++) {
		fi_recv64();
		bb_recv64();
		fi_send64();
		bb_send64();
		fi_inject64();
		bb_inject64();
		fi_send4096();
		bb_send4096();
		fi_write4096();
		bb_write4096();
		fi_read4096();
		bb_read4096();
		count_round();
	}
	assert_int_equal(bad, 0);
}

static int
eal(void)
{
	static char name[] = "fi_count", huge[] = "--no-huge", m[] = "-m", mb[] = "256",
		    conf[] = "--no-shconf", pci[] = "--no-pci", tel[] = "--no-telemetry",
		    level[] = "--log-level=error";
	char *args[] = {name, huge, m, mb, conf, pci, tel, level};

	return rte_eal_init(8, args) < 0;
}

TEST_MAIN(eal())
