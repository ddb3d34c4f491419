/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Telemetry: devices and their RoCE counters.
 *
 * DPDK runs the endpoints on one thread per client. An endpoint takes the locks of the control
 * path, so no object is destroyed while it is read. From a queue an endpoint reads only the
 * counters that bb_count.h allows other threads to read while the owner posts and polls.
 */
#include <stdio.h>

#include <rte_common.h>

#include "bb_tel_dev.h"

struct bb_dev *
bb_tel_begin(struct bb_tel_args *a, const char *params, struct rte_tel_data *d)
{
	struct bb_dev *dev = NULL;
	const char *name;

	if (!bb_tel_args_init(a, params)) {
		bb_tel_refuse(d, "the parameters are too long");
		return NULL;
	}
	name = bb_tel_arg(a);
	if (name == NULL) {
		bb_tel_refuse(d, "the device name is missing or empty: see /bluebell/device/list");
		return NULL;
	}
	bb_open_devs_lock();
	dev = bb_open_devs_find(name);
	if (dev == NULL) {
		bb_open_devs_unlock();
		bb_tel_refuse(d, "no open device of that name: see /bluebell/device/list");
		return NULL;
	}
	pthread_mutex_lock(&dev->lock);
	return dev;
}

void
bb_tel_end(struct bb_dev *dev)
{
	pthread_mutex_unlock(&dev->lock);
	bb_open_devs_unlock();
}

int
bb_tel_list(const struct bb_tel_kind *kind, const char *params, struct rte_tel_data *d)
{
	struct bb_tel_args args;
	struct bb_tel_page page;
	struct bb_dev *dev = bb_tel_begin(&args, params, d);

	if (dev == NULL)
		return 0;
	if (bb_tel_page_begin(&page, &args, d)) {
		kind->each(dev, &page);
		bb_tel_page_end(&page, kind->list, d);
	}
	bb_tel_end(dev);
	return 0;
}

int
bb_tel_info(const struct bb_tel_kind *kind, const char *params, struct rte_tel_data *d)
{
	struct bb_tel_args args;
	struct bb_dev *dev = bb_tel_begin(&args, params, d);
	const void *object;
	uint64_t number;

	if (dev == NULL)
		return 0;
	if (!bb_tel_arg_uint(&args, UINT32_MAX, &number) || args.next != NULL) {
		bb_tel_refuse(d,
			      "the last parameter must be a number, decimal or 0x and hexadecimal");
		goto end;
	}
	object = kind->find(dev, (uint32_t)number);
	if (object == NULL) {
		bb_tel_refuse(d, kind->none);
		goto end;
	}
	rte_tel_data_start_dict(d);
	kind->add(d, object);
end:
	bb_tel_end(dev);
	return 0;
}

static int
device_list(const char *cmd, const char *params, struct rte_tel_data *d)
{
	char name[BB_OPEN_NAME_MAX];
	struct bb_dev *dev = NULL;

	(void)cmd;
	(void)params;
	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	bb_open_devs_lock();
	while ((dev = bb_open_devs_next(dev)) != NULL) {
		bb_open_name(dev, name);
		rte_tel_data_add_array_string(d, name);
	}
	bb_open_devs_unlock();
	return 0;
}

/* Adds the attributes. Booleans are 0 or 1, because DPDK's telemetry has no boolean type. */
static void
add_attr(struct rte_tel_data *d, const struct bb_dev_attr *a)
{
	bb_tel_dict_uint(d, "software", a->software);
	bb_tel_dict_uint(d, "target_progress", a->target_progress);
	bb_tel_dict_uint(d, "ports", a->ports);
	bb_tel_dict_uint(d, "max_qp", a->max_qp);
	bb_tel_dict_uint(d, "max_qp_wr", a->max_qp_wr);
	bb_tel_dict_uint(d, "max_cq", a->max_cq);
	bb_tel_dict_uint(d, "max_cqe", a->max_cqe);
	bb_tel_dict_uint(d, "max_mr", a->max_mr);
	/* Values are limited to 2^63 - 1, because many JSON readers reject larger ones. */
	bb_tel_dict_uint(d, "max_mr_size", RTE_MIN(a->max_mr_size, (uint64_t)INT64_MAX));
	bb_tel_dict_uint(d, "max_msg_size", a->max_msg_size);
	bb_tel_dict_uint(d, "max_rd_atomic", a->max_rd_atomic);
	bb_tel_dict_uint(d, "max_dest_rd_atomic", a->max_dest_rd_atomic);
	bb_tel_dict_uint(d, "bf_size", a->bf_size);
	bb_tel_dict_uint(d, "clock_hz", a->clock_hz);
	bb_tel_dict_uint(d, "counters", a->counters);
}

static void
add_port(struct bb_dev *dev, uint32_t port, struct rte_tel_data *d)
{
	struct bb_port_attr attr;
	char name[40];

	if (dev->drv->port_query(dev, port, &attr) != 0)
		return;
	snprintf(name, sizeof(name), "port%u_state", port);
	rte_tel_data_add_dict_string(d, name, attr.state == BB_PORT_ACTIVE ? "ACTIVE" : "DOWN");
	snprintf(name, sizeof(name), "port%u_link_layer", port);
	rte_tel_data_add_dict_string(
		d, name, attr.link_layer == BB_LINK_ETHERNET ? "Ethernet" : "InfiniBand");
	snprintf(name, sizeof(name), "port%u_active_mtu", port);
	bb_tel_dict_uint(d, name, attr.active_mtu);
}

static int
device_info(const char *cmd, const char *params, struct rte_tel_data *d)
{
	char name[BB_OPEN_NAME_MAX];
	struct bb_tel_args args;
	const struct bb_pd *pd;
	uint64_t mrs = 0;
	struct bb_dev *dev;
	uint32_t port;

	(void)cmd;
	dev = bb_tel_begin(&args, params, d);
	if (dev == NULL)
		return 0;
	rte_tel_data_start_dict(d);
	bb_open_name(dev, name);
	rte_tel_data_add_dict_string(d, "name", name);
	rte_tel_data_add_dict_string(d, "driver", dev->attr.driver);
	LIST_FOREACH(pd, &dev->pd_list, link)
		mrs += pd->mrs;
	bb_tel_dict_uint(d, "pds", dev->pds);
	bb_tel_dict_uint(d, "cqs", dev->cqs);
	bb_tel_dict_uint(d, "qps", dev->qps_used);
	bb_tel_dict_uint(d, "mrs", mrs);
	bb_tel_dict_uint(d, "device_memories", dev->dms);
	bb_tel_dict_uint(d, "umems", dev->umems);
	bb_tel_dict_uint(d, "channels", dev->channels);
	add_attr(d, &dev->attr);
	/* Each port adds three fields, so the number of ports is limited to fit the reply. */
	for (port = 1; port <= RTE_MIN(dev->attr.ports, 32u); port++)
		add_port(dev, port, d);
	bb_tel_end(dev);
	return 0;
}

static int
roce_counters(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct bb_dev_stats s = {0};
	struct bb_tel_args args;
	struct bb_dev *dev;
	int ret;

	(void)cmd;
	dev = bb_tel_begin(&args, params, d);
	if (dev == NULL)
		return 0;
	ret = dev->drv->stats(dev, &s);
	bb_tel_end(dev);
	if (ret == -ENOTSUP)
		return bb_tel_refuse(d, "the device has no counters that can be read");
	if (ret != 0)
		return bb_tel_refuse(d, "the device did not return its counters: see the log");
	rte_tel_data_start_dict(d);
#define ADD(field) bb_tel_dict_uint(d, #field, s.field)
	ADD(rx_write);
	ADD(rx_read);
	ADD(rx_atomic);
	ADD(out_of_buffer);
	ADD(out_of_sequence);
	ADD(duplicate);
	ADD(rnr_nak_retry);
	ADD(ack_timeout);
	ADD(retry_exceeded);
	ADD(rnr_retry_exceeded);
	ADD(remote_access_err);
	ADD(remote_op_err);
	ADD(remote_invalid_req);
	ADD(local_protection_err);
	ADD(local_length_err);
	ADD(cq_overflow);
	ADD(flushed);
	ADD(ecn_marked);
	ADD(cnp_sent);
	ADD(cnp_handled);
#undef ADD
	return 0;
}

RTE_INIT(bb_tel_dev_init)
{
	rte_telemetry_register_cmd("/bluebell/device/list", device_list,
				   "Names of the open devices. Takes no parameters");
	rte_telemetry_register_cmd("/bluebell/device/info", device_info,
				   "Limits, ports and objects. Parameters: device");
	rte_telemetry_register_cmd("/bluebell/roce/counters", roce_counters,
				   "Requests served, retries and errors by reason, congestion. "
				   "Parameters: device");
}
