/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Devices: drivers, list, spec strings, open, close, queries, events. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "../core/core_fixture.h"

/* Overrides EAL's own function, so that a test can act as a secondary process. */
static bool be_secondary;

enum rte_proc_type_t
rte_eal_process_type(void)
{
	enum rte_proc_type_t (*real)(void);

	if (be_secondary)
		return RTE_PROC_SECONDARY;
	*(void **)(&real) = dlsym(RTLD_NEXT, "rte_eal_process_type");
	return real();
}

/* Runs before rte_eal_init(); see main(). */
static void
before_eal(void)
{
	struct bb_dev *dev = (void *)1;

	fake_reset();
	if (bb_dev_open("fake0", &dev) != -EINVAL || dev != (void *)1 || fake.devs != 0) {
		fprintf(stderr, "a device opens before rte_eal_init()\n");
		exit(1);
	}
}

static int
setup(void **state)
{
	(void)state;
	fake_reset();
	return 0;
}

TEST_WITH(setup, NULL, test_missing_hugepages_are_logged)
{
	struct bb_dev *dev;

	assert_logged(bb_dev_open("fake0", &dev), 0, "without hugepages");
	assert_int_equal(bb_dev_close(dev), 0);
	/* The name is listed once. */
	assert_logged(bb_dev_open("fake0", &dev), 0, NULL);
	assert_int_equal(bb_dev_close(dev), 0);
}

TEST_WITH(setup, NULL, test_list_has_every_device_of_every_driver)
{
	struct bb_dev_info info[4];

	assert_int_equal(bb_dev_list(NULL, 0), 2);
	assert_int_equal(bb_dev_list(NULL, 3), -EINVAL);
	memset(info, 0x5a, sizeof(info));
	assert_int_equal(bb_dev_list(info, 1), 2);
	assert_string_equal(info[0].name, "fake0");
	assert_string_equal(info[0].bus, "0000:3b:00.0");
	assert_int_equal(info[1].name[0], 0x5a);
	assert_int_equal(bb_dev_list(info, 4), 2);
	assert_string_equal(info[1].name, "fake1");
	assert_string_equal(info[1].driver, "fake");
}

TEST_WITH(setup, NULL, test_open_finds_by_name_or_bus_with_arguments)
{
	struct bb_dev *a = NULL, *b = NULL;

	assert_int_equal(bb_dev_open("fake0", &a), 0);
	assert_string_equal(bb_dev_name(a), "fake0");
	assert_string_equal(fake.args, "");
	assert_int_equal(bb_dev_open("0000:3b:00.0,x=1,y=a:b", &b), 0);
	assert_string_equal(bb_dev_name(b), "0000:3b:00.0");
	assert_string_equal(fake.args, "x=1,y=a:b");
	assert_int_equal(fake.devs, 2);
	assert_int_equal(bb_dev_close(a), 0);
	assert_int_equal(bb_dev_close(b), 0);
	assert_int_equal(fake.devs, 0);
	assert_int_equal(bb_dev_close(NULL), -EINVAL);
}

TEST_WITH(setup, NULL, test_bad_device_name_is_refused)
{
	char name[BB_DEV_NAME_MAX + 1];
	struct bb_dev *dev = (void *)1;

	assert_int_equal(bb_dev_open(NULL, &dev), -EINVAL);
	assert_int_equal(bb_dev_open("fake0", NULL), -EINVAL);
	assert_logged(bb_dev_open("", &dev), -EINVAL, "the name is empty");
	assert_int_equal(bb_dev_open(",x=1", &dev), -EINVAL);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_logged(bb_dev_open(name, &dev), -EINVAL, "the name is too long");
	/* A name one byte shorter fits and is just unknown. */
	name[BB_DEV_NAME_MAX - 1] = '\0';
	assert_int_equal(bb_dev_open(name, &dev), -ENODEV);
	assert_ptr_equal(dev, (void *)1);
}

TEST_WITH(setup, NULL, test_unknown_device_logs_those_there_are)
{
	struct bb_dev *dev = (void *)1;

	assert_logged(bb_dev_open("mlx5_7", &dev), -ENODEV,
		      "no device is named \"mlx5_7\"; devices of this host: fake0 (fake "
		      "0000:3b:00.0), fake1 (fake)");
	assert_ptr_equal(dev, (void *)1);
}

/* An error of a driver that knows the name is returned without a second log line. */
TEST_WITH(setup, NULL, test_error_of_the_driver_is_returned_unlogged)
{
	struct bb_dev *dev = (void *)1;

	fake_fail(FAKE_OPEN, -EPERM);
	assert_logged(bb_dev_open("fake0", &dev), -EPERM, NULL);
	assert_ptr_equal(dev, (void *)1);
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(bb_dev_open("fake0", &dev), 0);
	fake_fail(FAKE_CLOSE, -EIO);
	assert_int_equal(bb_dev_close(dev), -EIO);
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(bb_dev_close(dev), 0);
}

TEST_WITH(setup, NULL, test_secondary_process_is_refused)
{
	struct bb_dev *dev = (void *)1;
	int ret;

	log_begin();
	be_secondary = true;
	ret = bb_dev_open("fake0", &dev);
	be_secondary = false;
	assert_int_equal(ret, -ENOTSUP);
	log_expect("secondary");
	assert_ptr_equal(dev, (void *)1);
	assert_int_equal(fake.devs, 0);
}

TEST_WITH(setup, NULL, test_close_with_children_logs_their_number)
{
	struct bb_qp_init_attr attr = DEFAULTS(qp_init_attr);
	struct bb_pd *pd, *pd2;
	struct bb_dev *dev;
	struct bb_cq *cq;
	struct bb_qp *qp;

	assert_int_equal(bb_dev_open("fake0", &dev), 0);
	assert_int_equal(bb_pd_alloc(dev, &pd), 0);
	assert_logged(bb_dev_close(dev), -EBUSY, "1 PD, 0 CQs and 0 QPs live");
	assert_int_equal(bb_pd_alloc(dev, &pd2), 0);
	cq = fixture_cq(dev, 256);
	attr.send_cq = cq;
	attr.recv_cq = cq;
	assert_int_equal(bb_qp_create(pd, &attr, &qp), 0);
	assert_logged(bb_dev_close(dev), -EBUSY, "2 PDs, 1 CQ and 1 QP live");
	assert_int_equal(bb_qp_destroy(qp), 0);
	assert_int_equal(bb_cq_destroy(cq), 0);
	assert_int_equal(bb_pd_free(pd), 0);
	assert_int_equal(bb_dev_close(dev), -EBUSY);
	assert_int_equal(bb_pd_free(pd2), 0);
	assert_int_equal(bb_dev_close(dev), 0);
	assert_int_equal(fake.devs, 0);
}

TEST_WITH(fixture_setup, fixture_teardown, test_query_checks_arguments_and_keeps_output_on_failure)
{
	struct fixture *f = *state;
	struct bb_port_attr port, before;
	struct bb_dev_stats stats;
	struct bb_dev_attr attr;
	struct bb_gid gid;
	uint16_t pkey;

	assert_int_equal(bb_dev_query(f->dev, &attr), 0);
	assert_int_equal(attr.max_cqe, 65536);
	assert_int_equal(bb_dev_query(NULL, &attr), -EINVAL);
	assert_int_equal(bb_dev_query(f->dev, NULL), -EINVAL);

	memset(&port, 0x5a, sizeof(port));
	port.size = sizeof(port); /* set by the caller, also for a call that fails */
	before = port;
	assert_logged(bb_port_query(f->dev, 0, &port), -EINVAL, "invalid port 0: give 1 to 2");
	assert_int_equal(bb_port_query(f->dev, FAKE_PORTS + 1, &port), -EINVAL);
	fake_fail(FAKE_PORT_QUERY, -EIO);
	assert_int_equal(bb_port_query(f->dev, 1, &port), -EIO);
	fake_fail(FAKE_NONE, 0);
	assert_memory_equal(&port, &before, sizeof(port));
	assert_int_equal(bb_port_query(f->dev, FAKE_PORTS, &port), 0);
	assert_int_equal(port.active_mtu, 2048);
	assert_int_equal(bb_port_query(f->dev, 1, NULL), -EINVAL);
	assert_int_equal(bb_port_query(NULL, 1, &port), -EINVAL);

	assert_int_equal(bb_gid_query(f->dev, 2, 1, &gid), 0);
	assert_int_equal(gid.raw[14], 2);
	assert_int_equal(bb_gid_query(f->dev, 1, 2, &gid), -ENOENT);
	assert_int_equal(bb_gid_query(f->dev, 1, FAKE_GIDS, &gid), -EINVAL);
	assert_int_equal(bb_gid_query(f->dev, 3, 0, &gid), -EINVAL);
	assert_int_equal(bb_gid_query(f->dev, 1, 0, NULL), -EINVAL);
	assert_int_equal(port.pkeys, FAKE_PKEYS);
	assert_int_equal(bb_pkey_query(f->dev, 2, FAKE_PKEYS - 1, &pkey), 0);
	assert_int_equal(pkey, 0x8202);
	assert_logged(bb_pkey_query(f->dev, 2, FAKE_PKEYS, &pkey), -EINVAL, "P_Key index 3");
	assert_int_equal(bb_pkey_query(f->dev, 3, 0, &pkey), -EINVAL);
	assert_int_equal(bb_pkey_query(f->dev, 1, 0, NULL), -EINVAL);
	assert_int_equal(bb_pkey_query(NULL, 1, 0, &pkey), -EINVAL);

	assert_int_equal(bb_dev_stats(f->dev, &stats), 0);
	assert_fields(stats, flushed, 17, rx_write, 0);
	assert_int_equal(bb_dev_stats(f->dev, NULL), -EINVAL);

	bb_dev_progress(f->dev);
	assert_int_equal(fake.progressed, 1);
}

TEST_WITH(fixture_setup, fixture_teardown, test_event_of_a_live_object_is_reported)
{
	struct fixture *f = *state;
	struct bb_qp_init_attr attr = DEFAULTS(qp_init_attr);
	struct bb_event ev;
	struct bb_qp *qp;

	assert_int_equal(bb_event_get(f->dev, &ev), -EAGAIN);
	assert_int_equal(bb_event_get(f->dev, NULL), -EINVAL);
	assert_int_equal(bb_event_get(NULL, &ev), -EINVAL);

	attr.send_cq = f->cq;
	attr.recv_cq = f->cq;
	assert_int_equal(bb_qp_create(f->pd, &attr, &qp), 0);
	qp->state = BB_QP_RTS;
	fake.has_event = true;
	fake.event.type = BB_EVENT_QP_ACCESS;
	fake.event.qp = qp;
	assert_logged(bb_event_get(f->dev, &ev), 0, "peer's access refused");
	assert_ptr_equal(ev.qp, qp);
	assert_int_equal(qp->state, BB_QP_ERR);
	assert_int_equal(bb_event_get(f->dev, &ev), -EAGAIN);
	assert_int_equal(bb_qp_destroy(qp), 0);

	fake.has_event = true;
	fake.event.type = BB_EVENT_DEV_FATAL;
	assert_int_equal(bb_event_get(f->dev, &ev), 0);
	assert_int_equal(ev.type, BB_EVENT_DEV_FATAL);
	for (int t = BB_EVENT_CQ_ERROR; t <= BB_EVENT_DEV_FATAL; t++)
		assert_string_not_equal(bb_event_name((enum bb_event_type)t), "?");
	assert_string_equal(bb_event_name((enum bb_event_type)99), "?");
}

static int
bare_open(const char *name, const char *args, struct bb_dev *dev)
{
	return strcmp(name, "bare0") == 0 ? fake_open("fake0", args, dev) : -ENODEV;
}

/* A driver without optional operations works; one without a required operation is rejected. */
TEST_WITH(setup, NULL, test_driver_without_required_operation_is_refused)
{
	struct bb_driver bare = fake_driver, bad = fake_driver;
	struct bb_port_attr port;
	struct bb_dev_stats stats;
	struct bb_qp_attr qattr;
	struct bb_event ev;
	struct bb_dev *dev;
	struct bb_gid gid;
	int n = bb_dev_list(NULL, 0);

	bad.qp_modify = NULL;
	log_begin();
	bb_driver_register(&bad);
	log_expect("an operation is missing");
	assert_int_equal(bb_dev_list(NULL, 0), n);

	bare.name = "bare";
	bare.open = bare_open;
	bare.list = NULL;
	bare.port_query = NULL;
	bare.gid_query = NULL;
	bare.event_get = NULL;
	bare.stats = NULL;
	bare.progress = NULL;
	bare.qp_query = NULL;
	bb_driver_register(&bare);
	assert_int_equal(bb_dev_list(NULL, 0), n);

	assert_int_equal(bb_dev_open("bare0", &dev), 0);
	assert_int_equal(bb_port_query(dev, 1, &port), -ENOTSUP);
	assert_int_equal(bb_gid_query(dev, 1, 0, &gid), -ENOTSUP);
	assert_int_equal(bb_event_get(dev, &ev), -EAGAIN);
	assert_int_equal(bb_dev_stats(dev, &stats), -ENOTSUP);
	assert_int_equal(bb_dev_drops(dev, NULL, 0), -ENOTSUP);
	assert_int_equal(bb_dev_drops(NULL, NULL, 0), -EINVAL);
	bb_dev_progress(dev);
	assert_int_equal(dev->drv->qp_query(NULL, &qattr), 0);
	assert_int_equal(bb_dev_close(dev), 0);
}

int
main(void)
{
	before_eal();
	fake_eal_init();
	return bb_test_run(__FILE__, NULL, NULL);
}
