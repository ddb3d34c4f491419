/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Telemetry: the counters of each function. EAL's telemetry thread executes the commands. */
#include <stddef.h>

#include "bb_tel.h"
#include "options.h"

static const struct hca *hcas;
static const struct function *functions;
static unsigned int n_functions;

struct counter {
	const char *name;
	size_t at; /* offset in struct hca_stats */
};

static const struct counter counters[] = {
	{"clients", offsetof(struct hca_stats, clients)},
	{"commands", offsetof(struct hca_stats, commands)},
	{"command_errors", offsetof(struct hca_stats, command_errors)},
	{"doorbells", offsetof(struct hca_stats, doorbells)},
	{"shared_stores", offsetof(struct hca_stats, shared_stores)},
	{"events", offsetof(struct hca_stats, events)},
	{"interrupts", offsetof(struct hca_stats, interrupts)},
	{"resets", offsetof(struct hca_stats, resets)},
	{"fatal_errors", offsetof(struct hca_stats, fatal_errors)},
	{"page_requests", offsetof(struct hca_stats, page_requests)},
	{"pages", offsetof(struct hca_stats, pages)},
};

/* Of a function with an Ethernet port. */
static const struct counter frames[] = {
	{"tx_frames", offsetof(struct hca_stats, frames.tx_frames)},
	{"tx_bytes", offsetof(struct hca_stats, frames.tx_bytes)},
	{"rx_frames", offsetof(struct hca_stats, frames.rx_frames)},
	{"rx_bytes", offsetof(struct hca_stats, frames.rx_bytes)},
	{"rx_dropped_steering", offsetof(struct hca_stats, frames.dropped_steering)},
	{"rx_dropped_no_wqe", offsetof(struct hca_stats, frames.dropped_no_wqe)},
	{"rx_dropped_too_long", offsetof(struct hca_stats, frames.dropped_too_long)},
	{"rx_dropped_error", offsetof(struct hca_stats, frames.dropped_error)},
};

static int
list(const char *cmd, const char *params, struct rte_tel_data *d)
{
	unsigned int i;

	(void)cmd;
	(void)params;
	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	for (i = 0; i < n_functions; i++)
		rte_tel_data_add_array_string(d, functions[i].name);
	return 0;
}

static void
add(struct rte_tel_data *d, const struct counter *c, size_t n, const struct hca_stats *s)
{
	const char *at = (const void *)s;
	size_t i;

	for (i = 0; i < n; i++)
		bb_tel_dict_uint(d, c[i].name,
				 __atomic_load_n((const uint64_t *)(const void *)(at + c[i].at),
						 __ATOMIC_RELAXED));
}

static int
stats(const char *cmd, const char *params, struct rte_tel_data *d)
{
	const struct hca *h = NULL;
	struct bb_tel_args args;
	const char *name;
	unsigned int i;

	(void)cmd;
	name = bb_tel_args_init(&args, params) ? bb_tel_arg(&args) : NULL;
	if (name == NULL || args.next != NULL)
		return bb_tel_refuse(d, "wrong parameters (one, the device of a function: soft0)");
	for (i = 0; i < n_functions; i++)
		if (strcmp(functions[i].name, name) == 0)
			h = &hcas[i];
	if (h == NULL)
		return bb_tel_refuse(d, "no function has a device of this name");
	rte_tel_data_start_dict(d);
	add(d, counters, sizeof(counters) / sizeof(counters[0]), &h->stats);
	if (h->o.eth)
		add(d, frames, sizeof(frames) / sizeof(frames[0]), &h->stats);
	return 0;
}

void
hca_telemetry(const struct hca *h, const struct function *f, unsigned int n)
{
	hcas = h;
	functions = f;
	n_functions = n;
	rte_telemetry_register_cmd(
		"/bluebell/hca/list", list,
		"Functions of bb_hca, by the names of their devices. Takes no parameters");
	rte_telemetry_register_cmd("/bluebell/hca/stats", stats,
				   "Counters of a function of bb_hca. Parameters: software device");
}
