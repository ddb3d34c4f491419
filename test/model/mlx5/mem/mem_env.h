/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Helpers of the tests of memory regions. Side a's operations access b's memory. */
#ifndef MEM_ENV_H
#define MEM_ENV_H

#include <sys/mman.h>

#include "../mlx5_env.h"

#define LW   BB_ACCESS_LOCAL_WRITE
#define RW   BB_ACCESS_REMOTE_WRITE
#define RR   BB_ACCESS_REMOTE_READ
#define RA   BB_ACCESS_REMOTE_ATOMIC
#define PAGE 4096u

enum op {
	OP_WRITE,
	OP_READ,
	OP_ATOMIC
};

static inline void
again(struct env *e)
{
	struct bb_event ev;

	OK(bb_qp_destroy(e->a.qp));
	OK(bb_qp_destroy(e->b.qp));
	while (bb_event_get(e->a.dev, &ev) == 0 || bb_event_get(e->b.dev, &ev) == 0)
		;
	env_up(e);
}

/* Runs one operation of @len bytes between a's memory and @raddr of b; returns its status. */
static inline enum bb_wc_status
run(struct env *e, enum op op, struct bb_sge sge, uint64_t raddr, uint32_t rkey)
{
	struct bb_qp *qp = e->a.qp;
	struct bb_wc wc;
	int ret;

	switch (op) {
	case OP_WRITE:
		ret = bb_post_write(qp, 1, &sge, 1, raddr, rkey, BB_SEND_SIGNALED);
		break;
	case OP_READ:
		ret = bb_post_read(qp, 1, &sge, 1, raddr, rkey, BB_SEND_SIGNALED);
		break;
	default:
		sge.len = 8;
		ret = bb_post_fetch_add(qp, 1, &sge, raddr, rkey, 1, BB_SEND_SIGNALED);
	}
	assert_int_equal(ret, 0);
	bb_qp_ring(qp);
	env_poll(e, &e->a, &wc, 1);
	assert_int_equal(wc.wr_id, 1);
	if (wc.status != BB_WC_SUCCESS)
		again(e);
	return wc.status;
}

static inline void
check(struct env *e, enum op op, uint64_t raddr, uint32_t rkey, enum bb_wc_status want)
{
	enum bb_wc_status got = run(e, op, sge_of(&e->a, 0, 64), raddr, rkey);

	if (got != want)
		fail_msg("operation %d: %s, not %s", op, bb_wc_status_name(got),
			 bb_wc_status_name(want));
}

/* Checks that WRITE and READ of 64 bytes at @raddr access @mem. */
static inline void
reaches(struct env *e, uint64_t raddr, uint32_t rkey, uint8_t *mem, uint32_t seed)
{
	fill(e->a.buf, 64, seed);
	check(e, OP_WRITE, raddr, rkey, BB_WC_SUCCESS);
	assert_memory_equal(mem, e->a.buf, 64);
	memset(e->a.buf, 0, 64);
	check(e, OP_READ, raddr, rkey, BB_WC_SUCCESS);
	assert_memory_equal(e->a.buf, mem, 64);
}

static inline uint8_t *
map(size_t len, int prot)
{
	void *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

#endif
