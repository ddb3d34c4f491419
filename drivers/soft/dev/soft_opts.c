/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_kvargs.h>
#include <rte_lcore.h>

#include "soft_capture.h"
#include "soft_ctl.h"

void
soft_opts_default(struct soft_opts *opts)
{
	*opts = (struct soft_opts){
		.progress = SOFT_PROGRESS_INLINE,
		.lcore = LCORE_ID_ANY,
		.nap = SOFT_NAP_US,
		.scan = 16,
		.seed = 1,
		.log_max_msg = 30,
		.dm = 128 << 10,
		.log_max_mkey = SOFT_LOG_MAX_MKEY,
		.capture_mib = SOFT_CAPTURE_MIB,
		.window = SOFT_WINDOW,
	};
}

static const char *const keys[] = {"progress",
				   "lcore",
				   "nap",
				   "mmap",
				   "shuffle",
				   "scan",
				   "seed",
				   "link",
				   "grh_required",
				   "log_max_msg",
				   "uar_share",
				   "no_atomic",
				   "no_ext_atomic",
				   "no_bf",
				   "bf_copy",
				   "no_counters",
				   "no_devx",
				   "defect",
				   "fault",
				   "dm",
				   "no_dm",
				   "dmabuf",
				   "no_dmabuf",
				   "no_srq",
				   "no_mkey",
				   "no_ksm",
				   "no_umr",
				   "no_umr_atomic",
				   "no_interleaved",
				   "no_mw",
				   "no_odp",
				   "no_relaxed",
				   "log_max_mkey",
				   "no_clock",
				   "no_compress",
				   "no_cq_moderation",
				   "no_cq_resize",
				   "port",
				   "ip",
				   "vlan",
				   "mtu",
				   "framesz",
				   "neigh",
				   "shm",
				   "shm_uid",
				   "shm_packets",
				   "host",
				   "wire",
				   "tx_drop",
				   "tx_dup",
				   "tx_reorder",
				   "tx_corrupt",
				   "tx_ecn",
				   "tx_stall",
				   "tx_delay",
				   "tx_full",
				   "rx_drop",
				   "rx_dup",
				   "rx_reorder",
				   "rx_corrupt",
				   "rx_ecn",
				   "rx_stall",
				   "rx_delay",
				   "rx_full",
				   "capture",
				   "capture_max",
				   "virtual_time",
				   "window",
				   "no_keep",
				   "flap",
				   NULL};
#define FAULTS(dir_)                                                                               \
	dir_ "_drop=PERCENT, " dir_ "_dup=PERCENT, " dir_ "_reorder=PERCENT, " dir_                \
	     "_corrupt=PERCENT, " dir_ "_ecn=PERCENT, " dir_ "_stall=PERCENT:MS, " dir_            \
	     "_delay=MICROSECONDS, " dir_ "_full=PACKETS[:MS], "
/* All options, in the form that soft_port_opt_syntax() reads. */
#define KNOWN                                                                                      \
	"progress=inline|lcore|thread, lcore=N, nap=50..100000, mmap, shuffle, "                   \
	"scan=1..65536, seed=N, link=eth|ib, "                                                     \
	"grh_required, log_max_msg=0..31, uar_share, no_atomic, no_ext_atomic, no_bf, "            \
	"no_counters, no_devx, bf_copy=none|plain|neon|avx2|avx512|movdir64b, no_dm, no_dmabuf, "  \
	"no_srq, no_mkey, no_ksm, no_umr, no_umr_atomic, no_interleaved, no_mw, "                  \
	"dm=BYTES (a multiple of 4096 up to 16 MiB), dmabuf=memfd, no_clock, no_compress, "        \
	"no_cq_moderation, no_cq_resize, wire, no_odp, no_relaxed, "                               \
	"log_max_mkey=5..20, " SOFT_DEFECT_KNOWN                                                   \
	"fault=port_down|dev_fatal|cq_error|qp_fatal:REQUEST (not with wire or port or shm), "     \
	"capture=FILE, capture_max=MIB, virtual_time, window=1..65536, no_keep, "                  \
	"flap=UP_MS:DOWN_MS, " FAULTS("tx") FAULTS("rx") SOFT_PORT_OPTS_KNOWN

/* Parses a flag: "key" and "key=1" are true, "key=0" is false. */
static int
parse_flag(const char *value, bool *flag)
{
	if (value == NULL || value[0] == '\0' || strcmp(value, "1") == 0)
		*flag = true;
	else if (strcmp(value, "0") == 0)
		*flag = false;
	else
		return -EINVAL;
	return 0;
}

static int
parse_number(const char *value, uint64_t min, uint64_t max, uint64_t *number)
{
	char *end;
	uint64_t v;

	if (value == NULL || value[0] < '0' || value[0] > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(value, &end, 0);
	if (errno != 0 || *end != '\0' || v < min || v > max)
		return -EINVAL;
	*number = v;
	return 0;
}

static int
parse_u32(const char *value, uint32_t min, uint32_t max, uint32_t *number)
{
	uint64_t v;
	int ret = parse_number(value, min, max, &v);

	if (ret == 0)
		*number = (uint32_t)v;
	return ret;
}

static int
parse_choice(const char *value, const char *const *choices, unsigned int n, unsigned int *choice)
{
	unsigned int i;

	for (i = 0; value != NULL && i < n; i++) {
		if (strcmp(value, choices[i]) == 0) {
			*choice = i;
			return 0;
		}
	}
	return -EINVAL;
}

/* Parses "kind:request" of the option fault. Returns 0 or a negative errno. */
static int
parse_fault(const char *value, struct soft_opts *opts)
{
	/* Names in the order of enum soft_fault_kind, without its first value (no fault). */
	static const char *const kinds[SOFT_FAULTS - 1] = {"port_down", "dev_fatal", "cq_error",
							   "qp_fatal"};
	const char *colon = value != NULL ? strchr(value, ':') : NULL;
	char kind[16];
	unsigned int choice;

	if (colon == NULL || (size_t)(colon - value) >= sizeof(kind))
		return -EINVAL;
	memcpy(kind, value, (size_t)(colon - value));
	kind[colon - value] = '\0';
	if (parse_choice(kind, kinds, RTE_DIM(kinds), &choice) != 0)
		return -EINVAL;
	opts->fault = choice + 1;
	return parse_u32(colon + 1, 1, 1u << 30, &opts->fault_at);
}

static int
parse_capture(const char *value, struct soft_opts *opts)
{
	if (value == NULL || value[0] == '\0' || strlen(value) >= sizeof(opts->capture))
		return -EINVAL;
	strcpy(opts->capture, value);
	return 0;
}

static int
parse_bf_copy(const char *value, struct soft_opts *opts)
{
	if (value == NULL || value[0] == '\0' || strlen(value) >= sizeof(opts->bf_copy))
		return -EINVAL;
	strcpy(opts->bf_copy, value);
	return 0;
}

static int
parse_one(const char *key, const char *value, struct soft_opts *opts)
{
	/* Names in the order of enum soft_progress. */
	static const char *const progress[] = {"inline", "lcore", "thread"};
	static const char *const link[] = {"eth", "ib"};
	unsigned int choice;
	int ret;

	if (strcmp(key, "progress") == 0) {
		ret = parse_choice(value, progress, RTE_DIM(progress), &choice);
		if (ret == 0)
			opts->progress = (enum soft_progress)choice;
		return ret;
	}
	if (strcmp(key, "link") == 0) {
		ret = parse_choice(value, link, RTE_DIM(link), &choice);
		if (ret == 0)
			opts->link_ib = choice == 1;
		return ret;
	}
	if (strcmp(key, "grh_required") == 0)
		return parse_flag(value, &opts->grh_required);
	if (strcmp(key, "lcore") == 0)
		return parse_u32(value, 0, UINT32_MAX - 1, &opts->lcore);
	if (strcmp(key, "nap") == 0)
		return parse_u32(value, SOFT_NAP_US, 100000, &opts->nap);
	if (strcmp(key, "mmap") == 0)
		return parse_flag(value, &opts->mmap);
	if (strcmp(key, "scan") == 0)
		return parse_u32(value, 1, 65536, &opts->scan);
	if (strcmp(key, "log_max_msg") == 0)
		return parse_u32(value, 0, 31, &opts->log_max_msg);
	if (strcmp(key, "defect") == 0)
		return soft_defect_opt(value, opts);
	if (strcmp(key, "fault") == 0)
		return parse_fault(value, opts);
	if (strncmp(key, "tx_", 3) == 0 || strncmp(key, "rx_", 3) == 0)
		return soft_net_fault_opt(key, value, opts);
	if (strcmp(key, "virtual_time") == 0)
		return parse_flag(value, &opts->virtual_time);
	if (strcmp(key, "flap") == 0)
		return soft_flap_opt(value, opts);
	if (strcmp(key, "window") == 0)
		return parse_u32(value, 1, SOFT_MAX_WINDOW, &opts->window);
	if (strcmp(key, "capture") == 0)
		return parse_capture(value, opts);
	if (strcmp(key, "capture_max") == 0)
		return parse_u32(value, 1, SOFT_CAPTURE_MAX_MIB, &opts->capture_mib);
	if (strcmp(key, "dm") == 0) {
		ret = parse_u32(value, 4096, 16 << 20, &opts->dm);
		return ret == 0 && opts->dm % 4096 != 0 ? -EINVAL : ret;
	}
	if (strcmp(key, "dmabuf") == 0) {
		opts->dmabuf_memfd = value != NULL && strcmp(value, "memfd") == 0;
		return opts->dmabuf_memfd ? 0 : -EINVAL;
	}
	if (strcmp(key, "no_dm") == 0)
		return parse_flag(value, &opts->no_dm);
	if (strcmp(key, "no_mkey") == 0)
		return parse_flag(value, &opts->no_mkey);
	if (strcmp(key, "no_ksm") == 0)
		return parse_flag(value, &opts->no_ksm);
	if (strcmp(key, "no_umr") == 0)
		return parse_flag(value, &opts->no_umr);
	if (strcmp(key, "no_umr_atomic") == 0)
		return parse_flag(value, &opts->no_umr_atomic);
	if (strcmp(key, "no_interleaved") == 0)
		return parse_flag(value, &opts->no_interleaved);
	if (strcmp(key, "no_mw") == 0)
		return parse_flag(value, &opts->no_mw);
	if (strcmp(key, "no_dmabuf") == 0)
		return parse_flag(value, &opts->no_dmabuf);
	if (strcmp(key, "seed") == 0) {
		opts->seeded = true;
		return parse_number(value, 0, UINT64_MAX, &opts->seed);
	}
	if (strcmp(key, "shuffle") == 0)
		return parse_flag(value, &opts->shuffle);
	if (strcmp(key, "uar_share") == 0)
		return parse_flag(value, &opts->uar_share);
	if (strcmp(key, "no_atomic") == 0)
		return parse_flag(value, &opts->no_atomic);
	if (strcmp(key, "no_ext_atomic") == 0)
		return parse_flag(value, &opts->no_ext_atomic);
	if (strcmp(key, "no_bf") == 0)
		return parse_flag(value, &opts->no_bf);
	if (strcmp(key, "bf_copy") == 0)
		return parse_bf_copy(value, opts);
	if (strcmp(key, "no_counters") == 0)
		return parse_flag(value, &opts->no_counters);
	if (strcmp(key, "no_clock") == 0)
		return parse_flag(value, &opts->no_clock);
	if (strcmp(key, "no_compress") == 0)
		return parse_flag(value, &opts->no_compress);
	if (strcmp(key, "no_cq_moderation") == 0)
		return parse_flag(value, &opts->no_cq_moderation);
	if (strcmp(key, "wire") == 0)
		return parse_flag(value, &opts->wire);
	if (strcmp(key, "no_keep") == 0)
		return parse_flag(value, &opts->no_keep);
	if (strcmp(key, "no_cq_resize") == 0)
		return parse_flag(value, &opts->no_cq_resize);
	if (strcmp(key, "no_srq") == 0)
		return parse_flag(value, &opts->no_srq);
	if (strcmp(key, "no_odp") == 0)
		return parse_flag(value, &opts->no_odp);
	if (strcmp(key, "no_relaxed") == 0)
		return parse_flag(value, &opts->no_relaxed);
	if (strcmp(key, "log_max_mkey") == 0)
		return parse_u32(value, 5, SOFT_LOG_MAX_MKEY, &opts->log_max_mkey);
	return parse_flag(value, &opts->no_devx);
}

/*
 * Parses the options of the port. If the device string names the option ip or neigh, the list of
 * that option starts empty, even if the device is already open. So a string that names the option
 * must name all values that the open device has.
 */
static int
parse_port(const char *name, const struct rte_kvargs *list, struct soft_port_opts *port)
{
	unsigned int i;
	int ret;

	if (rte_kvargs_count(list, "ip") != 0)
		port->n_ip = 0;
	if (rte_kvargs_count(list, "neigh") != 0)
		port->n_neigh = 0;
	for (i = 0; i < list->count; i++) {
		if (!soft_port_opt_known(list->pairs[i].key))
			continue;
		ret = soft_port_opt(name, list->pairs[i].key, list->pairs[i].value, port);
		if (ret != 0)
			return ret;
	}
	return soft_port_opts_check(name, port);
}

int
soft_opts_parse(const char *name, const char *args, struct soft_opts *opts)
{
	struct soft_opts parsed = *opts;
	struct rte_kvargs *list;
	char syntax[128];
	unsigned int i;
	int ret;

	if (args == NULL || args[0] == '\0')
		return 0;
	list = rte_kvargs_parse(args, keys);
	if (list == NULL) {
		SOFT_LOG(ERR,
			 "%s: unknown option or bad syntax in \"%s\" (KEY=VALUE,...); the options "
			 "are: %s",
			 name, args, KNOWN);
		return -EINVAL;
	}
	if (parse_port(name, list, &parsed.port) != 0) {
		rte_kvargs_free(list);
		return -EINVAL;
	}
	for (i = 0; i < list->count; i++) {
		const char *key = list->pairs[i].key, *value = list->pairs[i].value;

		ret = soft_port_opt_known(key) ? 0 : parse_one(key, value, &parsed);
		if (ret == 0)
			continue;
		if (ret == -ENOTSUP)
			SOFT_LOG(ERR,
				 "%s: %s=%s: this build has no seeded defects: configure it with "
				 "-Ddefects=true",
				 name, key, value);
		else
			SOFT_LOG(ERR, "%s: invalid value \"%s\" of option %s (valid: %s)", name,
				 value == NULL ? "" : value, key,
				 soft_port_opt_syntax(KNOWN, key, syntax, sizeof(syntax)));
		rte_kvargs_free(list);
		return ret;
	}
	rte_kvargs_free(list);
	if ((parsed.progress == SOFT_PROGRESS_LCORE) != (parsed.lcore != LCORE_ID_ANY)) {
		SOFT_LOG(ERR,
			 "%s: \"%s\": progress=lcore needs lcore=N, and lcore=N needs "
			 "progress=lcore",
			 name, args);
		return -EINVAL;
	}
	if (parsed.port.name[0] != '\0' && parsed.link_ib) {
		SOFT_LOG(ERR,
			 "%s: port=%s and link=ib exclude each other: an ethdev carries RoCE v2 "
			 "only",
			 name, parsed.port.name);
		return -EINVAL;
	}
	if (parsed.port.shm[0] != '\0' && parsed.link_ib) {
		SOFT_LOG(ERR,
			 "%s: shm=%s and link=ib exclude each other: shared memory carries RoCE v2 "
			 "only",
			 name, parsed.port.shm);
		return -EINVAL;
	}
	if (parsed.grh_required && !parsed.link_ib) {
		SOFT_LOG(ERR, "%s: grh_required needs link=ib: every RoCE packet has a GRH", name);
		return -EINVAL;
	}
	parsed.wire |= parsed.port.shm[0] != '\0' || parsed.port.name[0] != '\0';
	if (parsed.wire && parsed.link_ib) {
		SOFT_LOG(ERR, "%s: wire=1 and link=ib exclude each other: packets are RoCE v2 only",
			 name);
		return -EINVAL;
	}
	if (parsed.wire && soft_defect_of_loop(&parsed) != NULL) {
		SOFT_LOG(ERR,
			 "%s: defect=%s does not apply to packets: leave out wire=, port= and shm=",
			 name, soft_defect_of_loop(&parsed));
		return -EINVAL;
	}
	/*
	 * The option fault counts requests. With packets the order of requests is not fixed, so a
	 * request number would mean nothing.
	 */
	if (parsed.wire && parsed.fault != SOFT_FAULT_NONE) {
		SOFT_LOG(ERR,
			 "%s: fault= excludes wire=, port= and shm=: with packets give "
			 "flap=UP_MS:DOWN_MS, tx_drop=PERCENT, rx_stall=PERCENT:MS or other faults "
			 "of packets instead",
			 name);
		return -EINVAL;
	}
	if (!parsed.wire &&
	    (soft_net_faulty(&parsed.tx_fault) || soft_net_faulty(&parsed.rx_fault))) {
		SOFT_LOG(ERR,
			 "%s: the tx_ and rx_ options act on packets: give wire=1 or port= too",
			 name);
		return -EINVAL;
	}
	if (!parsed.wire && parsed.capture[0] != '\0') {
		SOFT_LOG(ERR, "%s: capture= records packets: give wire=1 or port= too", name);
		return -EINVAL;
	}
	if (parsed.virtual_time && parsed.port.name[0] != '\0') {
		SOFT_LOG(ERR,
			 "%s: virtual_time and port=%s exclude each other: peers on a port run in "
			 "real time",
			 name, parsed.port.name);
		return -EINVAL;
	}
	if (parsed.virtual_time && (!parsed.wire || parsed.progress != SOFT_PROGRESS_INLINE)) {
		SOFT_LOG(ERR,
			 "%s: virtual_time needs wire=1 and progress=inline, because polls advance "
			 "the time",
			 name);
		return -EINVAL;
	}
	if (parsed.virtual_time && parsed.port.shm[0] != '\0') {
		SOFT_LOG(ERR,
			 "%s: virtual_time and shm=%s exclude each other: peers in other processes "
			 "run in real time",
			 name, parsed.port.shm);
		return -EINVAL;
	}
	if (parsed.flap_up != 0 && parsed.fault == SOFT_FAULT_PORT_DOWN) {
		SOFT_LOG(ERR, "%s: flap= and fault=port_down exclude each other: leave one out",
			 name);
		return -EINVAL;
	}
	/* RoCE has no packets for masked atomics, so a device with packets does not offer them. */
	parsed.no_ext_atomic |= parsed.wire;
	*opts = parsed;
	return 0;
}
