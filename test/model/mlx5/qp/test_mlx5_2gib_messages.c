/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Messages of 2 GiB, the maximum (IBTA vol. 1, 9.7.1). One memfd of 2 MiB is mapped repeatedly,
 * so that the messages need little memory. Data moves from the even MiB of the file to the odd
 * MiB and is checked there. The rows long of the conformance suite cover each operation; this test
 * is for sanitizers, which would take too long for them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/mman.h>
#include <unistd.h>

#include "../mlx5_env.h"

#define FILE_BYTES (2ull << 20)
#define LONG       (2ull << 30)

/*
 * Maps @bytes that repeat the @part bytes of the file at @from. Returns NULL if the address space
 * is too small.
 */
static uint8_t *
map(int fd, uint64_t bytes, uint64_t from, uint64_t part)
{
	uint8_t *p =
		mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t at;

	if (p == MAP_FAILED)
		return NULL;
	for (at = 0; at < bytes; at += part) {
		if (mmap(p + at, part, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			 (off_t)from) == MAP_FAILED)
			return NULL;
	}
	return p;
}

struct rig {
	struct env e;
	int fd;
	uint8_t *src, *dst;
	struct bb_mr *src_mr, *dst_mr;
};

static void
rig_open(struct rig *r)
{
	const uint64_t part = FILE_BYTES / 2;

	memset(r, 0, sizeof(*r));
	r->fd = memfd_create("bb_long", 0);
	if (r->fd < 0 || ftruncate(r->fd, (off_t)FILE_BYTES) != 0)
		fail_msg("no memfd: %s", strerror(errno));
	r->src = map(r->fd, LONG, 0, part);
	r->dst = map(r->fd, LONG, part, part);
	assert_non_null(r->src);
	assert_non_null(r->dst);
	env_open_spec(&r->e, "soft0,log_max_msg=31");
	env_qps(&r->e);
	r->e.attr.path_mtu = 4096;
	connect_pair(r->e.a.qp, r->e.b.qp, &r->e.attr);
	OK(bb_mr_reg(r->e.a.pd, r->src, LONG, BB_ACCESS_LOCAL_WRITE, &r->src_mr));
	OK(bb_mr_reg(r->e.b.pd, r->dst, LONG, ENV_ALL, &r->dst_mr));
	fill(r->src, FILE_BYTES / 2, 5);
	memset(r->dst, 0xee, FILE_BYTES / 2);
}

static void
rig_close(struct rig *r)
{
	OK(bb_mr_dereg(r->src_mr));
	OK(bb_mr_dereg(r->dst_mr));
	env_stop(&r->e);
	munmap(r->src, LONG);
	munmap(r->dst, LONG);
	close(r->fd);
}

static void
done(struct rig *r, uint64_t wr_id, enum bb_wc_status status)
{
	struct bb_wc wc;

	bb_qp_ring(r->e.a.qp);
	env_poll(&r->e, &r->e.a, &wc, 1);
	expect(&wc, r->e.a.qp, wr_id, status);
}

/* 2 GiB in several pieces; one byte more is refused by every device. */
TEST(test_one_byte_over_2_gib_is_refused)
{
	struct bb_sge sge[4];
	struct rig r;

	rig_open(&r);
	sge[0] = (struct bb_sge){(uintptr_t)r.src, 1, r.src_mr->lkey};
	sge[1] = (struct bb_sge){(uintptr_t)r.src + 1, LONG - 4096, r.src_mr->lkey};
	sge[2] = (struct bb_sge){(uintptr_t)r.src + 1 + LONG - 4096, 4095, r.src_mr->lkey};
	OK(bb_post_write(r.e.a.qp, 1, sge, 3, (uintptr_t)r.dst, r.dst_mr->rkey, BB_SEND_SIGNALED));
	done(&r, 1, BB_WC_SUCCESS);
	assert_memory_equal(r.src, r.dst, FILE_BYTES / 2);
	sge[3] = sge[0];
	OK(bb_post_write(r.e.a.qp, 2, sge, 4, (uintptr_t)r.dst, r.dst_mr->rkey, 0));
	done(&r, 2, BB_WC_LOC_LEN_ERR);
	sge[0].len = LONG + 1;
	assert_int_equal(bb_post_write(r.e.a.qp, 2, sge, 1, (uintptr_t)r.dst, r.dst_mr->rkey, 0),
			 -EINVAL);
	rig_close(&r);
}

TEST_MAIN(env_eal_init("mlx5_2gib_messages"))
