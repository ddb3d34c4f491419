/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * RoCEv2 over PMDs that exchange frames with the kernel, compared with raw packets over the same
 * PMD. The PMDs are af_packet and af_xdp on a veth pair, and tap, whose interface the second
 * process opens with af_packet. The case runs in a separate network namespace, in which raw packets
 * and devices have different interfaces.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link.h"
#include "pairs.h"
#include "raw.h"

#define WINDOW 256 /* number of packets that fit into the kernel's queues of every PMD */

struct pmd {
	const char *name;
	/*
	 * last character of the names of two ethdevs: raw for the one that carries raw packets, dev
	 * for the one that the RDMA device uses. Each PMD uses other characters, because the
	 * ethdevs of the previous PMD still exist
	 */
	char raw, dev;
	bool makes_if; /* true if the PMD creates its interface */
};

/* Interface names. Interface 0 is for this process, interface 1 for the second one. */
#define RAW  "bbraw"
#define SOFT "bbsoft"

static int
shell(const char *cmd)
{
	char all[512];

	snprintf(all, sizeof(all), "{ %s; } >/dev/null 2>&1", cmd);
	return system(all) == 0 ? 0 : -ENODEV;
}

static int
make_wire(const struct pmd *pmd, const char *iface)
{
	char cmd[400];

	if (pmd->makes_if)
		return 0;
	snprintf(cmd, sizeof(cmd),
		 "ip link add %s0 type veth peer name %s1 && ip link set %s0 up && "
		 "ip link set %s1 up",
		 iface, iface, iface, iface);
	return shell(cmd);
}

static void
drop_wires(void)
{
	(void)shell("ip link del " RAW "0; ip link del " SOFT "0");
}

static const char *
pmd_available(const struct pmd *pmd)
{
	return pmd->makes_if ? "af_packet" : pmd->name;
}

static void
texts(char *here, char *there, const struct pmd *pmd, char end, const char *iface)
{
	snprintf(here, REMOTE_TEXT, "net_%s%c,iface=%s0", pmd->name, end, iface);
	snprintf(there, REMOTE_TEXT, "net_%s%c,iface=%s%d", pmd_available(pmd), end, iface,
		 pmd->makes_if ? 0 : 1);
}

/* Measures Bluebell on @s over the PMD, compared with raw packets on @raw. */
static void
compare(const struct pmd *pmd, struct soft *s, struct raw *raw)
{
	struct raw_run stream = {raw, opts.quick ? 2000 : 50000, BASELINE_NET_WRITE8, WINDOW};
	struct link_run bluebell = {.s = s, .n = opts.quick ? 2048 : 20480};
	struct row row = {
		.unit = "M/s; baseline: raw packets + CRC",
		.goal = GOAL_AT_LEAST,
		.target = 0.5,
	};

	snprintf(row.name, sizeof(row.name), "kernel/%s/write8/rate", pmd->name);
	measure_pair_cross(raw_rate, &stream, link_write_rate, &bluebell, &row.p);
	report_row(&row);
}

/*
 * Creates the second process's ethdev. If the PMD is tap, first changes the MAC of the interface: a
 * tap port gives its own MAC to the interface, and both ends of the link need different MACs.
 */
static int
make_peer_port(const void *arg)
{
	const struct pmd *pmd = arg;
	struct remote_msg msg = {.op = REMOTE_VDEV};
	char here[REMOTE_TEXT];

	texts(here, msg.text, pmd, pmd->dev, SOFT);
	if (pmd->makes_if && shell("ip link set " SOFT "0 address 02:00:00:00:77:01 up") != 0)
		return -ENODEV;
	return remote_call(&msg);
}

/* Opens both devices. Their vdevs stay until the namespace and the processes end. */
static int
open_device(const struct pmd *pmd, struct soft *s)
{
	char here[REMOTE_TEXT], there[REMOTE_TEXT];
	int rc;

	texts(here, there, pmd, pmd->dev, SOFT);
	rc = vdev_make(here);
	if (rc != 0)
		return rc;
	snprintf(here, sizeof(here), "soft0,port=net_%s%c,ip=192.0.2.1/24", pmd->name, pmd->dev);
	snprintf(there, sizeof(there), "soft0,port=net_%s%c,ip=192.0.2.2/24", pmd_available(pmd),
		 pmd->dev);
	return link_open_with(s, here, there, make_peer_port, pmd);
}

/* Measures over a PMD. Returns NULL, or the reason why it cannot be measured. */
static const char *
measure_pmd(const struct pmd *pmd)
{
	char here[REMOTE_TEXT], there[REMOTE_TEXT];
	const char *why = NULL;
	struct soft s;
	struct raw raw;

	if (make_wire(pmd, RAW) != 0 || make_wire(pmd, SOFT) != 0)
		return "no veth pair can be created: is ip (iproute2) installed?";
	texts(here, there, pmd, pmd->raw, RAW);
	if (raw_open(&raw, 0, here, there) != 0)
		return "the PMD does not start on this host";
	if (open_device(pmd, &s) != 0) {
		why = "the software device cannot be opened on this PMD";
	} else {
		compare(pmd, &s, &raw);
		link_close(&s);
	}
	raw_close(&raw);
	return why;
}

static int
run(void)
{
	static const struct pmd pmds[] = {{"af_packet", '1', '2', false},
					  {"tap", '3', '4', true},
					  {"af_xdp", '5', '6', false}};
	char name[48];
	unsigned int i;
	int rc;

	/*
	 * Requires that EAL is not started yet, because PMDs use EAL's threads, which must be in
	 * the namespace too.
	 */
	if (eal_started()) {
		report_skip("kernel", "EAL already runs: give --case kernel alone or first");
		return 0;
	}
	if (unshare(CLONE_NEWNET) != 0) {
		report_skip("kernel", "no network namespace can be created: run bench as root");
		return 0;
	}
	/*
	 * Disables IPv6, because the kernel's frames on a new interface would disturb the raw
	 * packets.
	 */
	(void)shell("echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; ip link set lo up");
	rc = eal_start();
	if (rc != 0)
		return rc;
	if (!have_peer_cpu()) {
		report_skip("kernel", "needs two CPUs");
		return 0;
	}
	rc = remote_start();
	if (rc != 0)
		return rc;
	for (i = 0; i < sizeof(pmds) / sizeof(pmds[0]); i++) {
		const char *why = measure_pmd(&pmds[i]);

		snprintf(name, sizeof(name), "kernel/%s", pmds[i].name);
		if (why != NULL)
			report_skip(name, why);
		drop_wires();
	}
	return 0;
}

const struct bench_case case_kernel = {
	.name = "kernel",
	.what = "RoCEv2 over af_packet, tap and af_xdp, beside raw packets over the same",
	.run = run,
};
