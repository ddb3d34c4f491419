/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A device of mlx5_cmd_dv.c without a card: test/fakes/rdma_core/ibv_subst.c replaces libibverbs
 * and libmlx5, and the software device is the firmware. Includes an exchange of data through this
 * device.
 */
#ifndef MLX5_DV_ENV_H
#define MLX5_DV_ENV_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create() */
#endif
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_malloc.h>

#include "../../../fakes/bare_eal.h"
#include "bb_driver.h"
#include "bb_test.h"
#include "bluebell.h"
#include "ibv_subst.h"
#include "mlx5.h"

#define BUF   4096
#define POLLS 100000

static char *log_text;
static size_t log_len;
static FILE *log_file;
static uint8_t *buf;

/* Memory that is not the process's own: device memory and dma-bufs. */
struct ex_mem {
	struct bb_dm *dm;
	struct bb_mr *dm_mr, *dmabuf_mr;
	struct bb_mw *mw;
	struct bb_mkey *mkey;
	struct bb_umem *umem, *dmabuf_umem;
};

struct ex {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_channel *ch; /* NULL if the kernel has no event channels */
	struct bb_cq *cq;
	struct bb_srq *srq; /* b's SRQ */
	struct bb_qp *a, *b;
	struct bb_mr *mr;
	struct ex_mem mem;
};

static inline int
setup(void **state)
{
	(void)state;
	subst_reset();
	rewind(log_file);
	memset(buf, 0, BUF);
	return 0;
}

static inline int
teardown(void **state)
{
	(void)state;
	if (subst.handles != 0)
		fprintf(stderr, "%u handles of the substitute are left; the log says:\n%s",
			subst.handles, log_text);
	return subst.handles == 0 ? 0 : -1;
}

/* Returns true if @text was logged since the test began. */
static inline bool
said(const char *text)
{
	fflush(log_file);
	return strstr(log_text, text) != NULL;
}

static inline void
forget_log(void)
{
	rewind(log_file);
	fflush(log_file);
	log_text[0] = '\0';
}

/* Polls the next completion and checks that it is a success of @wr_id. */
static inline int
complete(struct ex *x, uint64_t wr_id)
{
	struct bb_wc wc;
	unsigned int i;

	for (i = 0; i < POLLS; i++) {
		subst_progress();
		if (bb_cq_poll(x->cq, &wc, 1) == 0)
			continue;
		assert_int_equal(wc.status, BB_WC_SUCCESS);
		assert_int_equal(wc.wr_id, wr_id);
		return 0;
	}
	fail_msg("request %llu does not complete", (unsigned long long)wr_id);
	return -EIO;
}

/* Runs WRITE, READ, FETCH_ADD and SEND between two QPs and checks every byte. */
static inline int
traffic(struct ex *x)
{
	struct bb_sge sge = {(uintptr_t)buf, 8, x->mr->lkey};
	uint64_t *word = (uint64_t *)(void *)buf, raddr = (uintptr_t)(buf + 1024);

	memset(buf, 0, BUF);
	word[0] = 0x1234;
	OK(bb_post_write(x->a, 1, &sge, 1, raddr, x->mr->rkey, BB_SEND_SIGNALED));
	bb_qp_ring(x->a);
	complete(x, 1);
	assert_int_equal(word[128], 0x1234);

	sge.addr = (uintptr_t)(buf + 64);
	OK(bb_post_read(x->a, 2, &sge, 1, raddr, x->mr->rkey, BB_SEND_SIGNALED));
	bb_qp_ring(x->a);
	complete(x, 2);
	assert_int_equal(word[8], 0x1234);

	OK(bb_post_fetch_add(x->a, 3, &sge, raddr, x->mr->rkey, 2, BB_SEND_SIGNALED));
	bb_qp_ring(x->a);
	complete(x, 3);
	assert_int_equal(word[8], 0x1234);
	assert_int_equal(word[128], 0x1236);

	sge.addr = (uintptr_t)(buf + 2048);
	OK(bb_post_srq_recv(x->srq, 4, &sge, 1));
	bb_srq_ring(x->srq);
	OK(bb_post_send_inline(x->a, 5, "bluebell", 8, 0));
	bb_qp_ring(x->a);
	complete(x, 4);
	assert_memory_equal(buf + 2048, "bluebell", 8);
	return 0;
}

/* Checks that a completion of an armed CQ raises one event. */
static inline int
notify(struct ex *x)
{
	struct bb_cq *cq = NULL;
	int ret;

	if (x->ch == NULL)
		return 0;
	OK(bb_cq_arm(x->cq, false));
	OK(bb_post_nop(x->a, 6, BB_SEND_SIGNALED));
	bb_qp_ring(x->a);
	complete(x, 6);
	ret = bb_channel_get(x->ch, &cq);
	if (ret != 0)
		return ret;
	assert_ptr_equal(cq, x->cq);
	ret = bb_channel_get(x->ch, &cq);
	return ret == -EAGAIN ? 0 : ret;
}

/* Resizes the CQ, moderates its events and reads the clock. */
static inline int
reshape(struct ex *x)
{
	uint64_t before, after;
	int ret;

	ret = bb_cq_resize(x->cq, 128);
	if (ret == 0)
		ret = bb_cq_moderate(x->cq, 16, 100);
	if (ret == 0)
		ret = bb_dev_clock(x->dev, NULL, &before);
	if (ret != 0)
		return ret;
	assert_int_equal(bb_cq_depth(x->cq), 128);
	OK(bb_post_nop(x->a, 7, BB_SEND_SIGNALED));
	bb_qp_ring(x->a);
	complete(x, 7);
	ret = bb_dev_clock(x->dev, NULL, &after);
	if (ret == 0)
		assert_true(before < after);
	return ret;
}

static inline int
make(struct ex *x)
{
	struct bb_qp_init_attr init;
	struct bb_srq_attr srq;
	struct bb_cq_attr cq;
	int ret;

	ret = bb_pd_alloc(x->dev, &x->pd);
	if (ret != 0)
		return ret;
	ret = bb_mr_reg(x->pd, buf, BUF,
			BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ |
				BB_ACCESS_REMOTE_ATOMIC,
			&x->mr);
	if (ret != 0)
		return ret;
	bb_cq_attr_init(&cq);
	cq.depth = 64;
	if (!subst.no_channel) {
		ret = bb_channel_create(x->dev, &x->ch);
		if (ret != 0)
			return ret;
		cq.channel = x->ch;
	}
	ret = bb_cq_create(x->dev, &cq, &x->cq);
	if (ret != 0)
		return ret;
	bb_qp_init_attr_init(&init);
	init.sq_depth = 16;
	init.rq_depth = 8;
	init.send_cq = x->cq;
	init.recv_cq = x->cq;
	ret = bb_qp_create(x->pd, &init, &x->a);
	if (ret != 0)
		return ret;
	bb_srq_attr_init(&srq);
	srq.depth = 8;
	srq.limit = 1;
	ret = bb_srq_create(x->pd, &srq, &x->srq);
	if (ret != 0)
		return ret;
	init.srq = x->srq;
	init.scatter_to_cqe = true;
	return bb_qp_create(x->pd, &init, &x->b);
}

/* Creates a memory window and an indirect key. */
static inline int
make_keys(struct ex *x)
{
	struct bb_sge sge = {(uintptr_t)buf, 64, x->mr->lkey};
	struct bb_mkey_attr attr;
	int ret;

	ret = bb_mw_alloc(x->pd, BB_MW_TYPE_1, &x->mem.mw);
	if (ret != 0)
		return ret;
	bb_mkey_attr_init(&attr);
	attr.pieces = &sge;
	attr.n = 1;
	return bb_mkey_create(x->pd, &attr, &x->mem.mkey);
}

static inline int
make_mem(struct ex *x)
{
	const uint64_t start = 40;
	struct bb_umem_attr attr;
	int fd, ret;

	ret = bb_umem_reg(x->dev, buf, BUF, BB_ACCESS_LOCAL_WRITE, &x->mem.umem);
	if (ret == 0)
		ret = bb_dm_alloc(x->dev, 64, 6, &x->mem.dm);
	if (ret == 0)
		ret = bb_dm_write(x->mem.dm, 8, &start, sizeof(start));
	if (ret == 0)
		ret = bb_mr_reg_dm(x->pd, x->mem.dm, 8, 56,
				   BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_ATOMIC, &x->mem.dm_mr);
	/* The device has no dma-bufs, as the open found out. */
	if (ret != 0 || !x->dev->attr.dmabuf)
		return ret;
	/* The software device accepts this memfd as a dma-buf. */
	fd = memfd_create("bb_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, BUF) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
		return -errno;
	ret = bb_mr_reg_dmabuf(x->pd, 64, 128, 4096 + 64, fd, BB_ACCESS_LOCAL_WRITE,
			       &x->mem.dmabuf_mr);
	bb_umem_attr_init(&attr);
	attr.len = BUF;
	attr.pgsz_bitmap = 4096;
	attr.dmabuf_fd = fd;
	if (ret == 0)
		ret = bb_umem_reg_ex(x->dev, &attr, &x->mem.dmabuf_umem);
	close(fd);
	return ret;
}

/* Adds to device memory; the result goes to the dma-buf. */
static inline int
mem_traffic(struct ex *x)
{
	struct bb_sge sge = {4096 + 64, 8, 0};
	uint64_t v = 0;
	int ret;

	if (x->mem.dmabuf_mr == NULL)
		sge = (struct bb_sge){(uintptr_t)buf, 8, x->mr->lkey};
	else
		sge.lkey = x->mem.dmabuf_mr->lkey;
	OK(bb_post_fetch_add(x->a, 6, &sge, 0, x->mem.dm_mr->rkey, 2, BB_SEND_SIGNALED));
	bb_qp_ring(x->a);
	complete(x, 6);
	ret = bb_dm_read(x->mem.dm, &v, 8, sizeof(v));
	if (ret == 0)
		assert_int_equal(v, 42);
	return ret;
}

static inline int
connect_both(struct ex *x)
{
	struct bb_qp_addr a, b;
	struct bb_qp_attr attr;
	int ret;

	bb_qp_attr_init(&attr);
	attr.access = BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ | BB_ACCESS_REMOTE_ATOMIC;
	ret = bb_qp_addr(x->a, 1, 0, &a);
	if (ret == 0)
		ret = bb_qp_addr(x->b, 1, 0, &b);
	if (ret == 0)
		ret = bb_qp_connect(x->a, &a, &b, &attr);
	if (ret == 0)
		ret = bb_qp_connect(x->b, &b, &a, &attr);
	return ret;
}

static inline int
ask(struct ex *x)
{
	struct bb_dev_stats stats;
	struct bb_srq_attr srq;
	struct bb_qp_attr attr;
	struct bb_event ev;
	int ret;

	ret = bb_dev_stats(x->dev, &stats);
	if (ret == 0)
		ret = bb_qp_query(x->a, &attr);
	if (ret == 0) {
		assert_int_equal(attr.state, BB_QP_RTS);
		ret = bb_srq_query(x->srq, &srq);
	}
	if (ret == 0) {
		/* The only receive was consumed, so the limit event was raised. */
		assert_int_equal(srq.limit, 0);
		ret = bb_event_get(x->dev, &ev);
	}
	if (ret == 0) {
		assert_int_equal(ev.type, BB_EVENT_SRQ_LIMIT);
		assert_ptr_equal(ev.srq, x->srq);
		ret = bb_event_get(x->dev, &ev);
	}
	return ret == -EAGAIN ? 0 : ret;
}

static inline int
exchange(struct ex *x, const char *spec)
{
	int ret;

	memset(x, 0, sizeof(*x));
	ret = bb_dev_open(spec, &x->dev);
	if (ret == 0)
		ret = make(x);
	if (ret == 0)
		ret = make_mem(x);
	if (ret == 0)
		ret = make_keys(x);
	if (ret == 0)
		ret = connect_both(x);
	if (ret == 0)
		ret = traffic(x);
	if (ret == 0)
		ret = mem_traffic(x);
	if (ret == 0)
		ret = notify(x);
	if (ret == 0)
		ret = reshape(x);
	if (ret == 0)
		ret = ask(x);
	fflush(log_file);
	return ret;
}

/* Destroys an object; a call that fails once is repeated. */
#define DESTROY(call)                                                                              \
	do {                                                                                       \
		int ret_ = call;                                                                   \
                                                                                                   \
		if (ret_ != 0) {                                                                   \
			if (first == 0)                                                            \
				first = ret_;                                                      \
			assert_int_equal(call, 0);                                                 \
		}                                                                                  \
	} while (0)

static inline int
finish(struct ex *x)
{
	int first = 0;

	if (x->a != NULL)
		DESTROY(bb_qp_destroy(x->a));
	if (x->b != NULL)
		DESTROY(bb_qp_destroy(x->b));
	if (x->srq != NULL)
		DESTROY(bb_srq_destroy(x->srq));
	if (x->cq != NULL)
		DESTROY(bb_cq_destroy(x->cq));
	if (x->ch != NULL)
		DESTROY(bb_channel_destroy(x->ch));
	if (x->mem.dmabuf_umem != NULL)
		DESTROY(bb_umem_dereg(x->mem.dmabuf_umem));
	if (x->mem.umem != NULL)
		DESTROY(bb_umem_dereg(x->mem.umem));
	if (x->mem.dmabuf_mr != NULL)
		DESTROY(bb_mr_dereg(x->mem.dmabuf_mr));
	if (x->mem.mkey != NULL)
		DESTROY(bb_mkey_destroy(x->mem.mkey));
	if (x->mem.mw != NULL)
		DESTROY(bb_mw_free(x->mem.mw));
	if (x->mem.dm_mr != NULL)
		DESTROY(bb_mr_dereg(x->mem.dm_mr));
	if (x->mem.dm != NULL)
		DESTROY(bb_dm_free(x->mem.dm));
	if (x->mr != NULL)
		DESTROY(bb_mr_dereg(x->mr));
	if (x->pd != NULL)
		DESTROY(bb_pd_free(x->pd));
	if (x->dev != NULL)
		DESTROY(bb_dev_close(x->dev));
	return first;
}

static inline struct mlx5_ctx *
ctx_of(const struct ex *x)
{
	return mlx5_dev_of(x->dev)->ctx;
}

/* Runs a program's tests with EAL initialised and its log in log_text. */
static inline int
run_group(const char *name)
{
	int ret = eal_start_or_skip(name, "0", EAL_OPTIONS(EAL_BARE("64")));

	if (ret != 0)
		return ret;
	log_file = open_memstream(&log_text, &log_len);
	buf = rte_zmalloc("test", BUF, 4096);
	if (log_file == NULL || buf == NULL || rte_openlog_stream(log_file) != 0)
		return 1;
	fflush(log_file);
	ret = bb_test_run(name, NULL, NULL);
	rte_openlog_stream(NULL);
	fclose(log_file);
	free(log_text);
	rte_free(buf);
	return ret;
}

#define T(name) TEST_WITH(setup, teardown, name)

#endif
