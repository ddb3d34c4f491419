/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The part of DEVX in core: what it checks, counts and passes to the driver. */
#include "../core/core_fixture.h"

static struct {
	int objs, uars, calls;
	size_t inlen, outlen; /* lengths of the last call */
	bool modify;
	int fail;
} devx;

static int
fake_devx_general(struct bb_dev *dev, const void *in, size_t inlen, void *out, size_t outlen)
{
	devx.calls++;
	devx.inlen = inlen;
	devx.outlen = outlen;
	return devx.fail;
}

static int
fake_devx_obj_create(struct bb_dev *dev, const void *in, size_t inlen, void *out, size_t outlen,
		     void **obj)
{
	int ret = fake_devx_general(dev, in, inlen, out, outlen);

	if (ret != 0)
		return ret;
	devx.objs++;
	*obj = &devx;
	return 0;
}

static int
fake_devx_obj_cmd(struct bb_dev *dev, void *obj, bool modify, const void *in, size_t inlen,
		  void *out, size_t outlen)
{
	assert_ptr_equal(obj, &devx);
	devx.modify = modify;
	return fake_devx_general(dev, in, inlen, out, outlen);
}

static int
fake_devx_obj_destroy(struct bb_dev *dev, void *obj)
{
	assert_ptr_equal(obj, &devx);
	if (devx.fail != 0)
		return devx.fail;
	devx.objs--;
	return 0;
}

static int
fake_devx_query_eqn(struct bb_dev *dev, uint32_t vector, uint32_t *eqn)
{
	*eqn = vector + 7;
	return 0;
}

static uint32_t
fake_devx_pd_number(const struct bb_pd *pd)
{
	return 0x1234;
}

static int
fake_devx_uar_alloc(struct bb_devx_uar *uar)
{
	if (devx.fail != 0)
		return devx.fail;
	uar->page_id = 9;
	devx.uars++;
	return 0;
}

static void
fake_devx_uar_free(struct bb_devx_uar *uar)
{
	assert_int_equal(uar->page_id, 9);
	devx.uars--;
}

static const struct bb_devx_ops fake_devx = {
	.general = fake_devx_general,
	.obj_create = fake_devx_obj_create,
	.obj_cmd = fake_devx_obj_cmd,
	.obj_destroy = fake_devx_obj_destroy,
	.query_eqn = fake_devx_query_eqn,
	.pd_number = fake_devx_pd_number,
	.uar_alloc = fake_devx_uar_alloc,
	.uar_free = fake_devx_uar_free,
};

static struct bb_driver with_devx;

/* Gives the fixture's device a driver with DEVX. */
static void
devx_on(struct bb_dev *dev)
{
	memset(&devx, 0, sizeof(devx));
	with_devx = *dev->drv;
	with_devx.devx = &fake_devx;
	dev->drv = &with_devx;
}

T(test_device_without_devx_refuses_every_call)
{
	struct bb_devx_obj *obj = NULL;
	struct bb_devx_uar *uar = NULL;
	uint8_t in[16] = {0}, out[16];
	uint32_t number = 0;

	assert_logged(bb_devx_general_cmd(f->dev, in, 16, out, 16), -ENOTSUP, "fake");
	assert_int_equal(bb_devx_obj_create(f->dev, in, 16, out, 16, &obj), -ENOTSUP);
	assert_int_equal(bb_devx_query_eqn(f->dev, 0, &number), -ENOTSUP);
	assert_int_equal(bb_devx_pd_number(f->pd, &number), -ENOTSUP);
	assert_int_equal(bb_devx_uar_alloc(f->dev, 0, &uar), -ENOTSUP);
	assert_null(obj);
	assert_null(uar);
	assert_int_equal(number, 0);
}

T(test_mailbox_outside_its_limits_never_reaches_the_driver)
{
	static uint8_t in[BB_DEVX_MAILBOX_MAX + 1], out[BB_DEVX_MAILBOX_MAX + 1];
	static const size_t bad[] = {0, 1, 15, BB_DEVX_MAILBOX_MAX + 1, SIZE_MAX};
	struct bb_devx_obj *obj, *none = NULL;

	devx_on(f->dev);
	assert_int_equal(bb_devx_obj_create(f->dev, in, 16, out, BB_DEVX_MAILBOX_MAX, &obj), 0);
	assert_int_equal(devx.outlen, BB_DEVX_MAILBOX_MAX);
	devx.calls = 0;
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		assert_logged(bb_devx_general_cmd(f->dev, in, bad[i], out, 16), -EINVAL,
			      "mailboxes");
		assert_int_equal(bb_devx_general_cmd(f->dev, in, 16, out, bad[i]), -EINVAL);
		assert_int_equal(bb_devx_obj_create(f->dev, in, bad[i], out, 16, &none), -EINVAL);
		assert_int_equal(bb_devx_obj_modify(obj, in, bad[i], out, 16), -EINVAL);
		assert_int_equal(bb_devx_obj_query(obj, in, 16, out, bad[i]), -EINVAL);
	}
	assert_int_equal(bb_devx_general_cmd(f->dev, NULL, 16, out, 16), -EINVAL);
	assert_int_equal(bb_devx_general_cmd(f->dev, in, 16, NULL, 16), -EINVAL);
	assert_int_equal(bb_devx_general_cmd(NULL, in, 16, out, 16), -EINVAL);
	assert_int_equal(bb_devx_obj_create(f->dev, in, 16, out, 16, NULL), -EINVAL);
	assert_int_equal(bb_devx_obj_modify(NULL, in, 16, out, 16), -EINVAL);
	assert_int_equal(bb_devx_obj_destroy(NULL), -EINVAL);
	assert_null(none);
	assert_int_equal(devx.calls, 0);
	assert_int_equal(bb_devx_obj_modify(obj, in, 64, out, 32), 0);
	assert_true(devx.modify);
	assert_int_equal(devx.inlen, 64);
	assert_int_equal(bb_devx_obj_query(obj, in, 64, out, 32), 0);
	assert_false(devx.modify);
	assert_int_equal(bb_devx_obj_destroy(obj), 0);
}

T(test_close_is_refused_while_an_object_or_a_uar_lives)
{
	uint8_t in[16] = {0}, out[16];
	struct bb_devx_obj *obj, *none = NULL;
	struct bb_devx_uar *uar;
	struct bb_dev *dev;

	assert_int_equal(bb_dev_open("fake1", &dev), 0);
	devx_on(dev);
	assert_int_equal(bb_devx_uar_alloc(dev, 0, &uar), 0);
	assert_int_equal(bb_devx_obj_create(dev, in, 16, out, 16, &obj), 0);
	assert_logged(bb_dev_close(dev), -EBUSY, "1 DEVX object and 1 reference to UARs");
	assert_logged(bb_devx_uar_free(uar), -EBUSY, "0x9");
	/* A failed call changes nothing. */
	devx.fail = -EREMOTEIO;
	assert_int_equal(bb_devx_obj_create(dev, in, 16, out, 16, &none), -EREMOTEIO);
	assert_null(none);
	assert_int_equal(bb_devx_obj_destroy(obj), -EREMOTEIO);
	devx.fail = 0;
	assert_int_equal(bb_devx_obj_destroy(obj), 0);
	assert_logged(bb_dev_close(dev), -EBUSY, "0 DEVX objects and 1 reference");
	assert_int_equal(bb_devx_uar_free(uar), 0);
	assert_int_equal(bb_dev_close(dev), 0);
	assert_fields(devx, objs, 0, uars, 0);
}

/* The refusal comes before the PD's automatic registrations go. */
T(test_pd_whose_number_was_read_is_kept_while_an_object_lives)
{
	static uint8_t mem[4096] __attribute__((aligned(4096)));
	uint8_t in[16] = {0}, out[16];
	struct bb_devx_obj *obj;
	struct bb_pd *named, *other;
	uint32_t number;
	int mrs;

	devx_on(f->dev);
	assert_int_equal(bb_pd_alloc(f->dev, &named), 0);
	assert_int_equal(bb_pd_alloc(f->dev, &other), 0);
	assert_int_equal(bb_mem_add_heap(named, mem, sizeof(mem)), 0);
	mrs = fake.mrs;
	assert_int_not_equal(mrs, 0);
	assert_int_equal(bb_devx_pd_number(named, &number), 0);
	assert_int_equal(number, 0x1234);
	assert_int_equal(bb_devx_obj_create(f->dev, in, 16, out, 16, &obj), 0);
	assert_logged(bb_pd_free(named), -EBUSY, "1 DEVX object may use its number");
	assert_int_equal(fake.mrs, mrs);
	/* No object can name this PD. */
	assert_int_equal(bb_pd_free(other), 0);
	assert_int_equal(bb_devx_obj_destroy(obj), 0);
	assert_int_equal(bb_pd_free(named), 0);
}

TEST_MAIN(fake_eal_init())
