/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The part of device memory, umems and dma-buf MRs in core: what it checks, counts and passes to
 * the driver.
 */
#include "../core/core_fixture.h"

#define LW BB_ACCESS_LOCAL_WRITE

/* Asserts that @call fails with @err, logs @text and leaves @out alone. */
#define REFUSE(err, call, out, text)                                                               \
	do {                                                                                       \
		log_begin();                                                                       \
		assert_int_equal(call, err);                                                       \
		log_expect(text);                                                                  \
		assert_ptr_equal(out, (void *)1);                                                  \
	} while (0)

T(test_dm_alloc_refuses_size_and_alignment_out_of_range)
{
	struct bb_dm *dm = (void *)1;

	assert_int_equal(bb_dm_alloc(NULL, 64, 0, &dm), -EINVAL);
	assert_int_equal(bb_dm_alloc(f->dev, 64, 0, NULL), -EINVAL);
	/* Limits of libmlx5's alloc_dm_memic() and the kernel's mlx5_cmd_alloc_memic(). */
	REFUSE(-EINVAL, bb_dm_alloc(f->dev, 0, 0, &dm), dm, "length is 0");
	REFUSE(-EINVAL, bb_dm_alloc(f->dev, FAKE_DM + 1, 0, &dm), dm, "max_dm_size");
	REFUSE(-EINVAL, bb_dm_alloc(f->dev, UINT64_MAX, 0, &dm), dm, "max_dm_size");
	REFUSE(-EINVAL, bb_dm_alloc(f->dev, 64, 13, &dm), dm, "max_dm_log_align");
	fake_fail(FAKE_DM_ALLOC, -ENOMEM);
	assert_int_equal(bb_dm_alloc(f->dev, 64, 0, &dm), -ENOMEM);
	fake_fail(FAKE_NONE, 0);
	assert_ptr_equal(dm, (void *)1);
	assert_int_equal(f->dev->dms, 0);
	f->dev->attr.max_dm_size = 0;
	REFUSE(-ENOTSUP, bb_dm_alloc(f->dev, 64, 0, &dm), dm, "max_dm_size is 0");
	f->dev->attr.max_dm_size = FAKE_DM;

	assert_int_equal(bb_dm_alloc(f->dev, FAKE_DM, 12, &dm), 0);
	assert_ptr_equal(dm->dev, f->dev);
	assert_fields(*dm, len, FAKE_DM, log_align, 12);
	fake_fail(FAKE_DM_FREE, -EIO);
	assert_int_equal(bb_dm_free(dm), -EIO);
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(f->dev->dms, 1);
	assert_int_equal(bb_dm_free(dm), 0);
	assert_int_equal(bb_dm_free(NULL), -EINVAL);
	assert_int_equal(fake.dms, 0);
}

T(test_dm_copies_are_bounded_and_exact)
{
	uint8_t in[64], out[65];
	struct bb_dm *dm;

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 3 + 1);
	assert_int_equal(bb_dm_alloc(f->dev, 64, 0, &dm), 0);
	assert_int_equal(bb_dm_write(dm, 0, in, 64), 0);
	assert_int_equal(bb_dm_write(dm, 60, in, 4), 0);
	memset(out, 0, sizeof(out));
	assert_int_equal(bb_dm_read(dm, out + 1, 0, 64), 0);
	assert_memory_equal(out + 1, in, 60);
	assert_memory_equal(out + 61, in, 4);
	assert_int_equal(fake.copies, 3);
	/* As mlx5_access_dm(): the range is checked first, then the alignment. */
	static const struct {
		uint64_t off;
		size_t len;
		int ret;
		const char *text;
	} bad[] = {
		{0, 68, -EFAULT, "exceeds the"},
		{64, 4, -EFAULT, "exceeds the"},
		{65, 0, -EFAULT, "exceeds the"},
		{UINT64_MAX - 3, 4, -EFAULT, "exceeds the"},
		{4, SIZE_MAX - 3, -EFAULT, "exceeds the"},
		{66, 1, -EFAULT, "exceeds the"},
		{2, 4, -EINVAL, "multiples of 4"},
		{0, 6, -EINVAL, "multiples of 4"},
		{1, 3, -EINVAL, "multiples of 4"},
	};
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		assert_logged(bb_dm_write(dm, bad[i].off, in, bad[i].len), bad[i].ret, bad[i].text);
		assert_logged(bb_dm_read(dm, out, bad[i].off, bad[i].len), bad[i].ret, bad[i].text);
	}
	assert_int_equal(bb_dm_write(dm, 64, NULL, 0), 0);
	assert_int_equal(bb_dm_read(dm, NULL, 0, 0), 0);
	assert_int_equal(bb_dm_write(dm, 0, NULL, 4), -EINVAL);
	assert_int_equal(bb_dm_read(dm, NULL, 0, 4), -EINVAL);
	assert_int_equal(bb_dm_write(NULL, 0, in, 4), -EINVAL);
	assert_int_equal(bb_dm_read(NULL, out, 0, 4), -EINVAL);
	assert_int_equal(fake.copies, 3);
	fake_fail(FAKE_DM_COPY, -EIO);
	assert_int_equal(bb_dm_write(dm, 0, in, 4), -EIO);
	assert_int_equal(bb_dm_read(dm, out, 0, 4), -EIO);
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(bb_dm_free(dm), 0);
}

T(test_mr_of_device_memory_is_zero_based_and_bounded)
{
	const struct fake_mr *drv;
	struct bb_lkey_cache cache;
	struct bb_mr *mr = (void *)1, *other;
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_dm *dm;

	assert_int_equal(bb_dm_alloc(f->dev, 100, 0, &dm), 0);
	assert_int_equal(bb_mr_reg_dm(NULL, dm, 0, 64, LW, &mr), -EINVAL);
	assert_int_equal(bb_mr_reg_dm(f->pd, NULL, 0, 64, LW, &mr), -EINVAL);
	assert_int_equal(bb_mr_reg_dm(f->pd, dm, 0, 64, LW, NULL), -EINVAL);
	/* Limits of UVERBS_METHOD_DM_MR_REG and libmlx5's mlx5_reg_dm_mr(). */
	REFUSE(-EINVAL, bb_mr_reg_dm(f->pd, dm, 0, 0, LW, &mr), mr, "length is 0");
	REFUSE(-EINVAL, bb_mr_reg_dm(f->pd, dm, 0, 101, LW, &mr), mr, "exceeds the");
	REFUSE(-EINVAL, bb_mr_reg_dm(f->pd, dm, 100, 1, LW, &mr), mr, "exceeds the");
	REFUSE(-EINVAL, bb_mr_reg_dm(f->pd, dm, UINT64_MAX, 2, LW, &mr), mr, "exceeds the");
	REFUSE(-EINVAL, bb_mr_reg_dm(f->pd, dm, 1, SIZE_MAX, LW, &mr), mr, "exceeds the");
	REFUSE(-EINVAL, bb_mr_reg_dm(f->pd, dm, 0, 64, LW | BB_ACCESS_MW_BIND, &mr), mr,
	       "allows only");
	REFUSE(-EINVAL, bb_mr_reg_dm(f->pd, dm, 0, 64, BB_ACCESS_ON_DEMAND, &mr), mr,
	       "allows only");
	REFUSE(-EINVAL, bb_mr_reg_dm(f->pd, dm, 0, 64, 1u << 31, &mr), mr, "allows only");
	REFUSE(-EINVAL, bb_mr_reg_dm(f->pd, dm, 0, 64, BB_ACCESS_REMOTE_WRITE, &mr), mr,
	       "LOCAL_WRITE");
	assert_int_equal(bb_dev_open("fake1", &dev), 0);
	assert_int_equal(bb_pd_alloc(dev, &pd), 0);
	REFUSE(-EINVAL, bb_mr_reg_dm(pd, dm, 0, 64, LW, &mr), mr, "different devices");
	assert_int_equal(bb_pd_free(pd), 0);
	assert_int_equal(bb_dev_close(dev), 0);
	fake_fail(FAKE_MR_REG, -ENOMEM);
	assert_int_equal(bb_mr_reg_dm(f->pd, dm, 0, 64, LW, &mr), -ENOMEM);
	fake_fail(FAKE_NONE, 0);
	assert_ptr_equal(mr, (void *)1);
	assert_int_equal(f->pd->mrs, 0);

	assert_int_equal(bb_mr_reg_dm(f->pd, dm, 36, 64, LW | BB_ACCESS_REMOTE_ATOMIC, &mr), 0);
	drv = fake_mr_of(mr->lkey);
	assert_int_equal(drv->attr.kind, BB_DRV_MR_DM);
	assert_ptr_equal(&drv->attr.dm->pub, dm);
	assert_fields(drv->attr, offset, 36, len, 64, iova, 0);
	/* ZERO_BASED must be set (man ibv_alloc_dm). */
	assert_int_equal(drv->attr.access, LW | BB_ACCESS_REMOTE_ATOMIC | BB_ACCESS_ZERO_BASED);
	assert_null(mr->addr);
	assert_fields(*mr, iova, 0, len, 64, rkey, drv->pub.rkey);
	/* Device memory has no address of the process. */
	bb_lkey_cache_init(&cache, f->pd);
	assert_int_equal(bb_mem_lkey(&cache, NULL, 64), BB_LKEY_NONE);
	REFUSE(-EINVAL, bb_mr_rereg(mr, BB_MR_REREG_ACCESS, NULL, NULL, 0, LW), (void *)1,
	       "cannot be re-registered");

	assert_int_equal(bb_mr_reg_dm(f->pd, dm, 0, 100, BB_ACCESS_ZERO_BASED, &other), 0);
	assert_logged(bb_dm_free(dm), -EBUSY, "2 MRs");
	assert_int_equal(bb_mr_dereg(mr), 0);
	fake_fail(FAKE_MR_DEREG, -EIO);
	assert_int_equal(bb_mr_dereg(other), -EIO);
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(bb_dm_free(dm), -EBUSY);
	assert_int_equal(bb_mr_dereg(other), 0);
	assert_int_equal(bb_dm_free(dm), 0);
}

T(test_umem_refuses_bad_ranges_and_rights)
{
	struct bb_umem *umem = (void *)1;
	static char buf[8192];
	struct bb_umem_attr attr = DEFAULTS(umem_attr);

	assert_fields(attr, size, sizeof(attr), dmabuf_fd, -1);
	assert_int_equal(bb_umem_reg(NULL, buf, 64, LW, &umem), -EINVAL);
	assert_int_equal(bb_umem_reg(f->dev, buf, 64, LW, NULL), -EINVAL);
	assert_int_equal(bb_umem_reg_ex(f->dev, NULL, &umem), -EINVAL);
	/* Limits of devx_umem_get(). */
	REFUSE(-EINVAL, bb_umem_reg(f->dev, buf, 0, LW, &umem), umem, "length is 0");
	REFUSE(-EINVAL, bb_umem_reg(f->dev, buf, SIZE_MAX, LW, &umem), umem, "exceeds the");
	REFUSE(-EINVAL, bb_umem_reg(f->dev, buf, 64, LW | BB_ACCESS_REMOTE_ATOMIC, &umem), umem,
	       "a umem allows only");
	REFUSE(-EINVAL, bb_umem_reg(f->dev, buf, 64, BB_ACCESS_REMOTE_WRITE, &umem), umem,
	       "LOCAL_WRITE");
	attr.addr = buf;
	attr.len = sizeof(buf);
	attr.pgsz_bitmap = 0xfff;
	REFUSE(-EINVAL, bb_umem_reg_ex(f->dev, &attr, &umem), umem, "page size");
	attr.pgsz_bitmap = 4096;
	attr.size = 8;
	REFUSE(-EINVAL, bb_umem_reg_ex(f->dev, &attr, &umem), umem, "bb_umem_attr_init");
	attr.size = sizeof(attr);
	f->dev->attr.max_umem = 0;
	REFUSE(-ENOTSUP, bb_umem_reg_ex(f->dev, &attr, &umem), umem, "max_umem is 0");
	f->dev->attr.max_umem = 1000;
	attr.dmabuf_fd = 5;
	f->dev->attr.dmabuf = false;
	REFUSE(-ENOTSUP, bb_umem_reg_ex(f->dev, &attr, &umem), umem, "dma-buf");
	f->dev->attr.dmabuf = true;
	fake_fail(FAKE_UMEM_REG, -EBADF);
	assert_int_equal(bb_umem_reg_ex(f->dev, &attr, &umem), -EBADF);
	fake_fail(FAKE_NONE, 0);
	assert_ptr_equal(umem, (void *)1);
	assert_int_equal(f->dev->umems, 0);

	attr.access = LW | BB_ACCESS_REMOTE_READ;
	assert_int_equal(bb_umem_reg_ex(f->dev, &attr, &umem), 0);
	assert_fields(fake.umem, pgsz_bitmap, 4096, access, attr.access, dmabuf_fd, 5);
	assert_int_equal(umem->id, 0x1234);
	assert_ptr_equal(umem->addr, buf);
	assert_fields(*umem, len, sizeof(buf), access, attr.access);
	fake_fail(FAKE_UMEM_DEREG, -EBUSY);
	assert_int_equal(bb_umem_dereg(umem), -EBUSY);
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(f->dev->umems, 1);
	assert_int_equal(bb_umem_dereg(umem), 0);
	assert_int_equal(bb_umem_reg(f->dev, buf, 100, 0, &umem), 0);
	assert_true(fake.umem.pgsz_bitmap == BB_UMEM_ANY_PAGE);
	assert_int_equal(fake.umem.dmabuf_fd, -1);
	assert_int_equal(bb_umem_dereg(umem), 0);
	assert_int_equal(bb_umem_dereg(NULL), -EINVAL);
	assert_int_equal(fake.umems, 0);
}

T(test_mr_of_a_dmabuf_needs_matching_offsets)
{
	const uint32_t rights = LW | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ;
	struct bb_mr *mr = (void *)1;
	struct bb_lkey_cache cache;
	const struct fake_mr *drv;

	assert_int_equal(bb_mr_reg_dmabuf(NULL, 0, 64, 0, 3, LW, &mr), -EINVAL);
	assert_int_equal(bb_mr_reg_dmabuf(f->pd, 0, 64, 0, 3, LW, NULL), -EINVAL);
	/* Limits of UVERBS_METHOD_REG_DMABUF_MR and ib_umem_dmabuf_get(). */
	REFUSE(-EINVAL, bb_mr_reg_dmabuf(f->pd, 0, 0, 0, 3, LW, &mr), mr, "length is 0");
	REFUSE(-EINVAL, bb_mr_reg_dmabuf(f->pd, 0, 64, 0x10001, 3, LW, &mr), mr, "page");
	REFUSE(-EINVAL, bb_mr_reg_dmabuf(f->pd, 8, 64, 0x10800, 3, LW, &mr), mr, "page");
	REFUSE(-EINVAL, bb_mr_reg_dmabuf(f->pd, UINT64_MAX, 2, UINT64_MAX, 3, LW, &mr), mr, "2^64");
	REFUSE(-EINVAL, bb_mr_reg_dmabuf(f->pd, 0xfff, 2, UINT64_MAX, 3, LW, &mr), mr, "2^64");
	REFUSE(-EINVAL, bb_mr_reg_dmabuf(f->pd, 0, 64, 0, 3, LW | BB_ACCESS_MW_BIND, &mr), mr,
	       "allows only");
	REFUSE(-EINVAL, bb_mr_reg_dmabuf(f->pd, 0, 64, 0, 3, BB_ACCESS_ZERO_BASED, &mr), mr,
	       "allows only");
	REFUSE(-EINVAL, bb_mr_reg_dmabuf(f->pd, 0, 64, 0, 3, BB_ACCESS_REMOTE_WRITE, &mr), mr,
	       "LOCAL_WRITE");
	f->dev->attr.max_mr_size = 63;
	REFUSE(-EINVAL, bb_mr_reg_dmabuf(f->pd, 0, 64, 0, 3, LW, &mr), mr, "max_mr_size");
	f->dev->attr.max_mr_size = UINT64_MAX;
	f->dev->attr.dmabuf = false;
	REFUSE(-ENOTSUP, bb_mr_reg_dmabuf(f->pd, 0, 64, 0, 3, LW, &mr), mr, "no MRs of dma-bufs");
	f->dev->attr.dmabuf = true;
	fake_fail(FAKE_MR_REG, -EBADF);
	assert_int_equal(bb_mr_reg_dmabuf(f->pd, 0, 64, 0, -1, LW, &mr), -EBADF);
	fake_fail(FAKE_NONE, 0);
	assert_ptr_equal(mr, (void *)1);

	assert_int_equal(bb_mr_reg_dmabuf(f->pd, 0x2010, 64, 0x777010, 3,
					  rights | BB_ACCESS_RELAXED_ORDERING, &mr),
			 0);
	drv = fake_mr_of(mr->lkey);
	assert_fields(drv->attr, kind, BB_DRV_MR_DMABUF, fd, 3, offset, 0x2010, iova, 0x777010);
	assert_int_equal(drv->attr.access & ~(uint32_t)BB_ACCESS_RELAXED_ORDERING, rights);
	assert_int_equal(mr->iova, 0x777010);
	assert_ptr_equal(mr->addr, (void *)0x2010);
	/* Neither the offset nor the iova is an address of the process. */
	bb_lkey_cache_init(&cache, f->pd);
	assert_int_equal(bb_mem_lkey(&cache, (void *)0x2010, 64), BB_LKEY_NONE);
	assert_int_equal(bb_mem_lkey(&cache, (void *)0x777010, 64), BB_LKEY_NONE);
	assert_int_equal(bb_mr_dereg(mr), 0);
}

T(test_close_with_live_objects_is_refused)
{
	static char buf[64];
	struct bb_umem *umem;
	struct bb_dev *dev;
	struct bb_dm *dm;

	(void)f;
	assert_int_equal(bb_dev_open("fake1", &dev), 0);
	assert_int_equal(bb_umem_reg(dev, buf, sizeof(buf), 0, &umem), 0);
	assert_logged(bb_dev_close(dev), -EBUSY, "1 umem live");
	assert_int_equal(bb_umem_dereg(umem), 0);
	assert_int_equal(bb_dm_alloc(dev, 64, 0, &dm), 0);
	assert_logged(bb_dev_close(dev), -EBUSY, "1 allocation of device memory");
	assert_int_equal(bb_dm_free(dm), 0);
	assert_int_equal(bb_dev_close(dev), 0);
}

TEST_MAIN(fake_eal_init())
