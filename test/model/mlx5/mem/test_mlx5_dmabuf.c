/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * dma-bufs and umems through the public API. With UDMABUF the tests use dma-bufs that the kernel
 * makes of a memfd. Otherwise they use the memfd itself, with the software device's option
 * dmabuf=memfd; a real kernel does not accept a memfd as a dma-buf.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create() */
#endif
#include "../mlx5_env.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/udmabuf.h>

#include "mlx5.h"

#ifdef UDMABUF
#define SPEC "soft0"
#else
#define SPEC "soft0,dmabuf=memfd"
#endif

#define PAGE 4096u
#define LEN  (8 * PAGE)

struct buf_env {
	struct env e; /* must be first */
	uint8_t *mem; /* The process's own mapping of the dma-buf. */
	int fd;       /* File descriptor of the dma-buf. */
};

/* Returns a dma-buf of @memfd, or -1 if the machine has no udmabuf. */
static int
dmabuf_of(int memfd)
{
	struct udmabuf_create create = {
		.memfd = (uint32_t)memfd, .flags = UDMABUF_FLAGS_CLOEXEC, .offset = 0, .size = LEN};
	int dev, fd;

#ifndef UDMABUF
	return dup(memfd);
#endif
	dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (dev < 0)
		return -1;
	fd = ioctl(dev, UDMABUF_CREATE, &create);
	close(dev);
	return fd;
}

static int
sealed_memfd(void)
{
	int fd = memfd_create("bb_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, LEN) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
		return -1;
	return fd;
}

static int
setup(void **state)
{
	struct buf_env *b = calloc(1, sizeof(*b));
	int memfd = sealed_memfd();

	*state = b;
	if (b == NULL || memfd < 0)
		return -1;
	env_open_spec(&b->e, SPEC);
	env_qps(&b->e);
	connect_pair(b->e.a.qp, b->e.b.qp, &b->e.attr);
	b->mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	assert_ptr_not_equal(b->mem, MAP_FAILED);
	b->fd = dmabuf_of(memfd);
	assert_true(b->fd >= 0);
	close(memfd);
	return 0;
}

static int
teardown(void **state)
{
	struct buf_env *b = *state;

	if (b->fd >= 0)
		close(b->fd);
	munmap(b->mem, LEN);
	env_stop(&b->e);
	free(b);
	return 0;
}

/* Posts from b and expects one completion with @status. */
static void
from_b(struct env *e, uint64_t wr_id, enum bb_wc_status status)
{
	env_done(e, &e->b, wr_id, status);
}

#define T(name) TEST_AS(setup, teardown, NULL, struct buf_env, b, name)

T(test_peer_uses_a_dmabuf_after_its_descriptor_closed)
{
	const uint64_t iova = UINT64_C(0x7000000000) + 72;
	struct env *e = &b->e;
	struct bb_sge sge = sge_of(&e->b, 0, 5000);
	struct bb_mr *mr;
	uint64_t v = 5;

	OK(bb_mr_reg_dmabuf(e->a.pd, PAGE + 72, 6 * PAGE, iova, b->fd, ENV_ALL, &mr));
	close(b->fd);
	b->fd = -1;
	assert_int_equal(mr->iova, iova);
	assert_int_equal(mr->len, 6 * PAGE);
	fill(e->b.buf, 5000, 3);
	OK(bb_post_write(e->b.qp, 1, &sge, 1, iova + 100, mr->rkey, BB_SEND_SIGNALED));
	from_b(e, 1, BB_WC_SUCCESS);
	assert_memory_equal(b->mem + PAGE + 172, e->b.buf, 5000);
	assert_int_equal(b->mem[PAGE + 171], 0);
	assert_int_equal(b->mem[PAGE + 172 + 5000], 0);

	memcpy(b->mem + 7 * PAGE + 72 - 8, &v, 8);
	sge.len = 8;
	OK(bb_post_fetch_add(e->b.qp, 2, &sge, iova + 6 * PAGE - 8, mr->rkey, 37,
			     BB_SEND_SIGNALED));
	from_b(e, 2, BB_WC_SUCCESS);
	memcpy(&v, b->mem + 7 * PAGE + 72 - 8, 8);
	assert_int_equal(v, 42);
	fill(b->mem + PAGE + 72, 64, 9);
	sge.len = 64;
	OK(bb_post_read(e->b.qp, 3, &sge, 1, iova, mr->rkey, BB_SEND_SIGNALED));
	from_b(e, 3, BB_WC_SUCCESS);
	assert_memory_equal(e->b.buf, b->mem + PAGE + 72, 64);
	/* The MR ends here, although the dma-buf is longer. */
	OK(bb_post_write(e->b.qp, 4, &sge, 1, iova + 6 * PAGE - 63, mr->rkey, BB_SEND_SIGNALED));
	from_b(e, 4, BB_WC_REM_ACCESS_ERR);
	assert_int_equal(b->mem[7 * PAGE + 73], 0);
	OK(bb_mr_dereg(mr));
}

/* A dma-buf as local memory, with the access rights that the caller asked for. */
T(test_local_requests_obey_the_rights_of_a_dmabuf)
{
	struct env *e = &b->e;
	struct bb_sge sge;
	struct bb_mr *mr, *ro;

	OK(bb_mr_reg_dmabuf(e->a.pd, 0, LEN, PAGE, b->fd, BB_ACCESS_LOCAL_WRITE, &mr));
	assert_int_equal(mr->rkey, 0);
	OK(bb_mr_reg_dmabuf(e->a.pd, 0, PAGE, 0, b->fd, 0, &ro));
	fill(b->mem, 300, 7);
	sge = (struct bb_sge){0, 300, ro->lkey};
	OK(bb_post_write(e->a.qp, 1, &sge, 1, raddr_of(&e->b, 0), e->b.mr->rkey, BB_SEND_SIGNALED));
	env_done(e, &e->a, 1, BB_WC_SUCCESS);
	assert_memory_equal(e->b.buf, b->mem, 300);
	fill(e->b.buf, 300, 8);
	sge = (struct bb_sge){PAGE + 1000, 300, mr->lkey};
	OK(bb_post_read(e->a.qp, 2, &sge, 1, raddr_of(&e->b, 0), e->b.mr->rkey, BB_SEND_SIGNALED));
	env_done(e, &e->a, 2, BB_WC_SUCCESS);
	assert_memory_equal(b->mem + 1000, e->b.buf, 300);
	/* Without LOCAL_WRITE the device scatters nothing into it. */
	sge = (struct bb_sge){0, 8, ro->lkey};
	OK(bb_post_read(e->a.qp, 3, &sge, 1, raddr_of(&e->b, 0), e->b.mr->rkey, BB_SEND_SIGNALED));
	env_done(e, &e->a, 3, BB_WC_LOC_PROT_ERR);
	OK(bb_mr_dereg(ro));
	OK(bb_mr_dereg(mr));
}

T(test_bad_descriptors_and_ranges_are_refused)
{
	struct bb_mr *mr = NULL;
	struct bb_pd *pd = b->e.a.pd;
	struct bb_umem_attr attr;
	struct bb_umem *umem = NULL;
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	/* dma_buf_get(), ib_umem_dmabuf_get() */
	assert_int_equal(bb_mr_reg_dmabuf(pd, 0, PAGE, 0, -1, 0, &mr), -EBADF);
	assert_int_equal(bb_mr_reg_dmabuf(pd, 0, PAGE, 0, 12345, 0, &mr), -EBADF);
	assert_int_equal(bb_mr_reg_dmabuf(pd, 0, PAGE, 0, pipes[0], 0, &mr), -EINVAL);
	assert_int_equal(bb_mr_reg_dmabuf(pd, 0, LEN + 1, 0, b->fd, 0, &mr), -EINVAL);
	assert_int_equal(bb_mr_reg_dmabuf(pd, LEN, 1, 0, b->fd, 0, &mr), -EINVAL);
	assert_int_equal(bb_mr_reg_dmabuf(pd, 0, LEN, 8, b->fd, 0, &mr), -EINVAL);
	assert_null(mr);
	bb_umem_attr_init(&attr);
	attr.len = LEN;
	attr.dmabuf_fd = pipes[1];
	assert_int_equal(bb_umem_reg_ex(b->e.a.dev, &attr, &umem), -EINVAL);
	attr.dmabuf_fd = b->fd;
	attr.addr = (void *)8;
	assert_int_equal(bb_umem_reg_ex(b->e.a.dev, &attr, &umem), -EINVAL);
	attr.dmabuf_fd = 12345;
	attr.addr = NULL;
	assert_int_equal(bb_umem_reg_ex(b->e.a.dev, &attr, &umem), -EBADF);
	assert_null(umem);
	close(pipes[0]);
	close(pipes[1]);
}

/* A CQ made by DEVX commands, with its ring and doorbell record in @umem. */
struct raw_cq {
	struct mlx5_uar *uar;
	struct mlx5_obj *obj;
};

static void
raw_cq(struct mlx5_dev *d, const struct bb_umem *umem, uint64_t ring, uint64_t record,
       struct raw_cq *cq)
{
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN] = {0}, out[BB_PRM_SZ_SHORT];
	uint8_t *cqc = bb_prm_sub(in, BB_PRM_CREATE_CQ_CQC);
	uint32_t eqn;

	assert_int_equal(d->cmd->query_eqn(d->ctx, 0, &eqn), 0);
	assert_int_equal(d->cmd->uar_alloc(d->ctx, MLX5_UAR_NC, &cq->uar), 0);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_CREATE_CQ);
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, umem->id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, ring);
	bb_prm_set(cqc, BB_PRM_CQC_DBR_UMEM_ID, umem->id);
	bb_prm_set64(cqc, BB_PRM_CQC_DBR_ADDR, record);
	bb_prm_set(cqc, BB_PRM_CQC_LOG_CQ_SIZE, 4);
	bb_prm_set(cqc, BB_PRM_CQC_UAR_PAGE, cq->uar->page_id);
	bb_prm_set(cqc, BB_PRM_CQC_C_EQN, eqn);
	assert_int_equal(d->cmd->obj_create(d->ctx, in, sizeof(in), out, sizeof(out), &cq->obj), 0);
}

static void
raw_cq_destroy(struct mlx5_dev *d, struct raw_cq *cq)
{
	assert_int_equal(d->cmd->obj_destroy(cq->obj), 0);
	assert_int_equal(d->cmd->uar_free(d->ctx, cq->uar), 0);
}

T(test_raw_cq_works_in_a_umem)
{
	struct env *e = &b->e;
	struct mlx5_dev *d = mlx5_dev_of(e->a.dev);
	struct bb_umem_attr attr;
	struct bb_umem *umem;
	struct raw_cq cq;

	bb_umem_attr_init(&attr);
	attr.access = BB_ACCESS_LOCAL_WRITE;
	attr.addr = (void *)(uintptr_t)PAGE;
	attr.len = 2 * PAGE;
	attr.pgsz_bitmap = PAGE;
	attr.dmabuf_fd = b->fd;
	OK(bb_umem_reg_ex(e->a.dev, &attr, &umem));
	assert_ptr_equal(umem->addr, (void *)(uintptr_t)PAGE);
	assert_int_equal(umem->len, 2 * PAGE);
	raw_cq(d, umem, PAGE, 64, &cq);
	assert_int_equal(bb_umem_dereg(umem), -EBUSY);
	raw_cq_destroy(d, &cq);
	OK(bb_umem_dereg(umem));

	OK(bb_umem_reg(e->a.dev, e->a.buf, 2 * PAGE, BB_ACCESS_LOCAL_WRITE, &umem));
	raw_cq(d, umem, 0, PAGE, &cq);
	assert_int_equal(bb_umem_dereg(umem), -EBUSY);
	assert_int_equal(bb_dev_close(e->a.dev), -EBUSY);
	raw_cq_destroy(d, &cq);
	OK(bb_umem_dereg(umem));

	/*
	 * Memory of 4 KiB pages cannot be mapped with larger pages, and no memory with a page
	 * size that it does not have.
	 */
	attr.dmabuf_fd = -1;
	attr.addr = e->a.buf;
	attr.len = 4 * PAGE;
	umem = NULL;
	attr.pgsz_bitmap = 2 * PAGE;
	assert_int_equal(bb_umem_reg_ex(e->a.dev, &attr, &umem), -EINVAL);
	attr.pgsz_bitmap = UINT64_C(1) << 21;
	assert_int_equal(bb_umem_reg_ex(e->a.dev, &attr, &umem), -EINVAL);
	assert_null(umem);
	attr.pgsz_bitmap |= PAGE;
	OK(bb_umem_reg_ex(e->a.dev, &attr, &umem));
	OK(bb_umem_dereg(umem));
}

#ifndef UDMABUF
/* Default options: a memfd is refused as a dma-buf. Also a kernel without dma-bufs. */
TEST(test_memfd_is_refused_by_default)
{
	struct bb_umem_attr attr;
	struct bb_umem *umem = NULL;
	struct bb_mr *mr = NULL;
	struct bb_dev_attr da;
	struct bb_dev *dev;
	struct bb_pd *pd;
	int fd = sealed_memfd(), i;

	assert_true(fd >= 0);
	bb_umem_attr_init(&attr);
	attr.len = PAGE;
	attr.dmabuf_fd = fd;
	for (i = 0; i < 2; i++) {
		OK(bb_dev_open(i == 0 ? "soft5" : "soft5,no_dmabuf,dmabuf=memfd", &dev));
		OK(bb_pd_alloc(dev, &pd));
		OK(bb_dev_query(dev, &da));
		assert_int_equal(da.dmabuf, i == 0);
		assert_int_equal(bb_mr_reg_dmabuf(pd, 0, PAGE, 0, fd, 0, &mr),
				 i == 0 ? -EINVAL : -ENOTSUP);
		assert_int_equal(bb_umem_reg_ex(dev, &attr, &umem), i == 0 ? -EINVAL : -ENOTSUP);
		assert_null(mr);
		assert_null(umem);
		OK(bb_pd_free(pd));
		OK(bb_dev_close(dev));
	}
	close(fd);
}
#endif

int
main(void)
{
	int memfd = sealed_memfd(), fd = dmabuf_of(memfd), ret;

	if (fd < 0) {
		fprintf(stderr,
			"skipped: no udmabuf: /dev/udmabuf: %s (CONFIG_UDMABUF, group kvm)\n",
			strerror(errno));
		return 77;
	}
	close(memfd);
	close(fd);
	ret = env_eal_init("mlx5_dmabuf");
	return ret != 0 ? ret : bb_test_run(__FILE__, NULL, NULL);
}
