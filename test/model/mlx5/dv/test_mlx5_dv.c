/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* An exchange of data through mlx5_cmd_dv.c: without faults, and with each call failing in turn. */
#include "mlx5_dv_env.h"

#define MAX_CALLS 500

T(test_device_by_mlx5dv_transfers_data)
{
	struct bb_dev_attr attr;
	struct ex x;

	assert_int_equal(exchange(&x, SUBST_NAME ",cq_resize"), 0);
	OK(bb_dev_query(x.dev, &attr));
	assert_false(attr.software);
	assert_true(attr.refusal_events);
	assert_string_equal(bb_dev_name(x.dev), SUBST_NAME);
	/* The device runs without help from the library. */
	assert_null(x.cq->progress);
	assert_int_equal(x.a->sq.bf_size, 256);
	assert_int_equal(subst.pgsz_bitmap, 4096);
	/* One umem covers all pages. */
	assert_int_equal(subst.umem_reg, 1);
	assert_int_equal(finish(&x), 0);
}

T(test_device_opens_by_its_pci_address)
{
	struct ex x;

	assert_int_equal(exchange(&x, SUBST_BUS ",cq_resize"), 0);
	assert_int_equal(finish(&x), 0);
}

/* Returns the number of pieces in use in EAL's heap, which ASan does not check. */
static unsigned int
heap_pieces(void)
{
	struct rte_malloc_socket_stats stats;

	assert_int_equal(rte_malloc_get_socket_stats(0, &stats), 0);
	return stats.alloc_count;
}

static void
each_call_fails(int err)
{
	unsigned int pieces = heap_pieces();
	unsigned int refused = 0, degraded = 0;
	uint32_t k;

	for (k = 1; k < MAX_CALLS; k++) {
		struct ex x;
		int ret, late;

		subst_reset();
		forget_log();
		subst.fail_at = k;
		subst.fail_errno = err;
		ret = exchange(&x, SUBST_NAME ",cq_resize");
		late = finish(&x);
		if (ret == 0)
			ret = late;
		if (subst.handles != 0)
			fail_msg("call %u (%s): %u handles are left", k, subst.failed_call,
				 subst.handles);
		if (heap_pieces() != pieces)
			fail_msg("call %u (%s) leaks EAL memory", k, subst.failed_call);
		if (!subst.failed)
			break;
		/* The call failed and the log says why, or the library worked without it. */
		if (ret != 0) {
			assert_true(ret < 0);
			refused++;
		} else {
			degraded++;
		}
		if (ret != 0 && !said(SUBST_NAME))
			fail_msg("call %u (%s) gives %d and no line in the log", k,
				 subst.failed_call, ret);
	}
	assert_true(k < MAX_CALLS);
	assert_true(refused > 30);
	print_message("%s: %u calls failed in turn, %u of them could be done without\n",
		      strerror(err), k - 1, degraded);
	/*
	 * The library works without the BlueFlame UAR, the counter set, congestion control and
	 * the query for dma-bufs. With EOPNOTSUPP it also works without the page size bitmap and
	 * without events. All other calls are needed.
	 */
	assert_in_range(degraded, 5, err == EOPNOTSUPP ? 13 : 7);
}

T(each_call_fails_enomem)
{
	each_call_fails(ENOMEM);
}

T(each_call_fails_eperm)
{
	each_call_fails(EPERM);
}

T(each_call_fails_einval)
{
	each_call_fails(EINVAL);
}

T(each_call_fails_eopnotsupp)
{
	each_call_fails(EOPNOTSUPP);
}

T(each_call_fails_eremoteio)
{
	each_call_fails(EREMOTEIO);
}

/* Kernels without page size bitmaps and kernels without events. */
T(test_older_kernels_are_enough)
{
	struct bb_event ev;
	struct ex x;

	subst.no_bitmap = true;
	subst.no_dmabuf = true;
	subst.no_channel = true;
	subst.old_kernel = true;
	assert_int_equal(exchange(&x, SUBST_NAME ",cq_resize"), 0);
	/* The library asks once; then each ring has its own umem. */
	assert_int_equal(subst.umem_reg_ex, 1);
	assert_true(subst.umem_reg > 4);
	assert_true(said("no asynchronous events"));
	assert_false(x.dev->attr.refusal_events);
	/* Port events are still delivered. */
	subst_async(IBV_EVENT_PORT_ERR, 1);
	OK(bb_event_get(x.dev, &ev));
	assert_int_equal(ev.type, BB_EVENT_PORT_DOWN);
	assert_int_equal(finish(&x), 0);
}

/* After a queue is destroyed, its umem stays for later queues. Each of these needs a umem's start.
 */
T(test_umem_of_a_destroyed_queue_takes_one_ring_on_older_kernels)
{
	struct bb_qp_init_attr init;
	struct bb_cq_attr attr;
	struct bb_dev *dev;
	struct bb_cq *cq;
	struct bb_pd *pd;
	struct bb_qp *qp;

	subst.no_bitmap = true;
	OK(bb_dev_open(SUBST_NAME, &dev));
	OK(bb_pd_alloc(dev, &pd));
	bb_cq_attr_init(&attr);
	attr.depth = 1024;
	OK(bb_cq_create(dev, &attr, &cq));
	OK(bb_cq_destroy(cq));
	attr.depth = 64;
	OK(bb_cq_create(dev, &attr, &cq));
	bb_qp_init_attr_init(&init);
	init.send_cq = cq;
	init.recv_cq = cq;
	init.sq_depth = 16;
	init.rq_depth = 16;
	OK(bb_qp_create(pd, &init, &qp));
	OK(bb_qp_destroy(qp));
	OK(bb_cq_destroy(cq));
	OK(bb_pd_free(pd));
	OK(bb_dev_close(dev));
}

int
main(void)
{
	return run_group("mlx5_dv");
}
