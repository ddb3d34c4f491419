/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Telemetry: messages of the communication manager that were dropped, by reason. */
#include <rte_common.h>

#include "bb_dev_priv.h"
#include "bb_qp1.h"
#include "bb_tel.h"

static int
cm_drops(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct bb_qp1_stats stats;
	struct bb_ibcm_stats cm;
	struct bb_tel_args args;
	struct bb_dev *dev;
	const char *name;
	bool found;
	int i;

	(void)cmd;
	name = bb_tel_args_init(&args, params) ? bb_tel_arg(&args) : NULL;
	if (name == NULL || args.next != NULL)
		return bb_tel_refuse(d, "wrong parameters (one, the name of a device: see "
					"/bluebell/device/list)");
	bb_open_devs_lock();
	dev = bb_open_devs_find(name);
	found = dev != NULL && bb_qp1_counters(dev, &stats, &cm);
	bb_open_devs_unlock();
	if (!found)
		return bb_tel_refuse(
			d, dev == NULL ? "no open device of that name: see /bluebell/device/list"
				       : "the device has no connections by CM messages (BB_CM_IB)");
	rte_tel_data_start_dict(d);
	for (i = 0; i < BB_IBCM_DROPS; i++)
		bb_tel_dict_uint(d, bb_ibcm_drop_name((enum bb_ibcm_drop)i), cm.drop[i]);
	bb_tel_dict_uint(d, "malformed", stats.malformed);
	bb_tel_dict_uint(d, "no_room", stats.no_room);
	bb_tel_dict_uint(d, "no_address", stats.no_address);
	return 0;
}

RTE_INIT(bb_qp1_tel_init)
{
	rte_telemetry_register_cmd("/bluebell/cm/drops", cm_drops,
				   "Messages of the communication manager that were dropped, by "
				   "reason. Parameters: device");
}
