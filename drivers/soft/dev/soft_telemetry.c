/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Number of dropped packets of a device, by reason, and retries of each QP: for telemetry and for
 * the application. A card does not report these numbers, so there is no device command for them.
 * Devices exist until the process ends, so reading a device takes no lock. A port is freed when its
 * device is closed (soft_netif.c), so reading a port takes a lock.
 */
#include <rte_common.h>

#include "bb_tel.h"
#include "soft_ctl.h"
#include "soft_netif.h"
#include "soft_wire.h"

/* Upper bound of the number of drop reasons. */
#define ALL_DROPS (SOFT_LOSTS + SOFT_DROPS)

/* Appends an entry to @drops. If the array is full, only counts the entry. */
static void
drop_add(struct bb_dev_drop *drops, unsigned int n, unsigned int *at, enum bb_drop_layer layer,
	 const char *reason, uint64_t count)
{
	if (*at < n)
		drops[*at] = (struct bb_dev_drop){.layer = layer, .reason = reason, .count = count};
	(*at)++;
}

/*
 * Lists the dropped packets of a device, by reason. @return the number of reasons, which may be
 * more than @n.
 */
static unsigned int
drops_of(const struct soft_dev *dev, struct bb_dev_drop *drops, unsigned int n)
{
	uint64_t frames[SOFT_DROPS];
	unsigned int at = 0;
	const char *reason;
	uint32_t i;

	/* Makes all engines add the drops that they have counted but not yet reported. */
	soft_quiesce();
	if (soft_netif_drops(dev, frames))
		for (i = SOFT_DROP_NONE + 1; i < SOFT_DROPS; i++)
			drop_add(drops, n, &at, BB_DROP_PORT, soft_port_drop_str(i), frames[i]);
	for (i = 0; i < SOFT_LOSTS; i++) {
		reason = soft_wire_lost_name(i);
		if (reason != NULL)
			drop_add(drops, n, &at, BB_DROP_ROCE, reason,
				 __atomic_load_n(&dev->lost[i], __ATOMIC_RELAXED));
	}
	return at;
}

int
soft_drops(struct mlx5_ctx *ctx, struct bb_dev_drop *drops, unsigned int n)
{
	return (int)drops_of(soft_ctx(ctx)->dev, drops, n);
}

int
soft_qp_retries(struct mlx5_ctx *ctx, uint32_t qpn, uint64_t *retries, uint64_t *rnr_retries)
{
	struct soft_dev *dev = soft_ctx(ctx)->dev;
	struct soft_qp *qp;

	pthread_mutex_lock(&dev->lock);
	qp = soft_qp_find(dev, qpn);
	if (qp != NULL) {
		soft_engine_lock(qp->engine);
		if (qp->wire != NULL)
			soft_wire_count(qp->wire);
		*retries = qp->retries;
		*rnr_retries = qp->rnr_retries;
		soft_engine_unlock(qp->engine);
	}
	pthread_mutex_unlock(&dev->lock);
	return qp != NULL ? 0 : -ENOENT;
}

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

/*
 * Fills the reply to a telemetry command with the dropped packets of one layer. The parameter of
 * the command names the device.
 */
static int
soft_telemetry_layer(const char *params, enum bb_drop_layer layer, const char *none,
		     struct rte_tel_data *d)
{
	struct bb_dev_drop drops[ALL_DROPS];
	const struct soft_dev *dev;
	struct bb_tel_args args;
	unsigned int i, n, told = 0;
	const char *name;

	name = bb_tel_args_init(&args, params) ? bb_tel_arg(&args) : NULL;
	if (name == NULL || args.next != NULL)
		return bb_tel_refuse(
			d, "wrong parameters (one, the name of a software device: soft0)");
	dev = soft_telemetry_dev(name);
	if (dev == NULL)
		return bb_tel_refuse(d,
				     "the process has never opened a software device of this name");
	n = drops_of(dev, drops, ALL_DROPS);
	rte_tel_data_start_dict(d);
	for (i = 0; i < n; i++) {
		if (drops[i].layer != layer)
			continue;
		bb_tel_dict_uint(d, drops[i].reason, drops[i].count);
		told++;
	}
	return told != 0 ? 0 : bb_tel_refuse(d, none);
}

static int
soft_telemetry_roce(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return soft_telemetry_layer(params, BB_DROP_ROCE, "there are no drop reasons", d);
}

static int
soft_telemetry_port(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return soft_telemetry_layer(params, BB_DROP_PORT,
				    "the device has no ethdev: open it with the option port=ETHDEV",
				    d);
}

RTE_INIT(soft_telemetry_init)
{
	rte_telemetry_register_cmd("/bluebell/roce/drops", soft_telemetry_roce,
				   "Packets a software device dropped, by reason. "
				   "Parameters: software device");
	rte_telemetry_register_cmd("/bluebell/port/drops", soft_telemetry_port,
				   "Frames a software device dropped at its port, by reason. "
				   "Parameters: software device");
}
