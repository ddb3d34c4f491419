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

static const struct counter {
	const char *name;
	size_t at; /* offset in struct hca_stats */
} counters[] = {
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

static int
stats(const char *cmd, const char *params, struct rte_tel_data *d)
{
	const struct hca_stats *s = NULL;
	struct bb_tel_args args;
	const char *name;
	unsigned int i;

	(void)cmd;
	name = bb_tel_args_init(&args, params) ? bb_tel_arg(&args) : NULL;
	if (name == NULL || args.next != NULL)
		return bb_tel_refuse(d, "wrong parameters (one, the device of a function: soft0)");
	for (i = 0; i < n_functions; i++)
		if (strcmp(functions[i].name, name) == 0)
			s = &hcas[i].stats;
	if (s == NULL)
		return bb_tel_refuse(d, "no function has a device of this name");
	rte_tel_data_start_dict(d);
	for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		bb_tel_dict_uint(d, counters[i].name,
				 __atomic_load_n((const uint64_t *)(const void *)((const char *)s +
										  counters[i].at),
						 __ATOMIC_RELAXED));
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
