/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Telemetry: packets that a device dropped, by reason. A card does not tell, so it is no
 * command of the device. Devices live as long as the process: nothing is locked.
 */
#include <rte_common.h>

#include "bb_tel.h"
#include "soft_ctl.h"
#include "soft_wire.h"

static const struct soft_dev *
soft_telemetry_dev(const char *name)
{
	const struct soft_dev *dev;
	uint32_t i;

	for (i = 0; i < SOFT_MAX_DEVS; i++) {
		dev = soft_dev_peek(i);
		if (dev != NULL && strcmp(dev->name, name) == 0)
			return dev;
	}
	return NULL;
}

static int
soft_telemetry_drops(const char *cmd, const char *params, struct rte_tel_data *d)
{
	const struct soft_dev *dev;
	struct bb_tel_args args;
	const char *name, *reason;
	uint32_t i;

	(void)cmd;
	name = bb_tel_args_init(&args, params) ? bb_tel_arg(&args) : NULL;
	if (name == NULL || args.next != NULL)
		return bb_tel_refuse(d, "the one parameter is a software device: soft0");
	dev = soft_telemetry_dev(name);
	if (dev == NULL)
		return bb_tel_refuse(d, "no software device of that name was ever opened");
	/* What was found since is with the engines. */
	soft_quiesce();
	rte_tel_data_start_dict(d);
	for (i = 0; i < SOFT_LOSTS; i++) {
		reason = soft_wire_lost_name(i);
		if (reason != NULL)
			bb_tel_dict_uint(d, reason,
					 __atomic_load_n(&dev->lost[i], __ATOMIC_RELAXED));
	}
	return 0;
}

RTE_INIT(soft_telemetry_init)
{
	rte_telemetry_register_cmd("/bluebell/roce/drops", soft_telemetry_drops,
				   "Packets a software device dropped, by reason. "
				   "Parameters: software device");
}
