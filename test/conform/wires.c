/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Ethdevs for devices with a port, by their names in the specs: two ends of one wire. */
#include <unistd.h>

#include <rte_errno.h>
#include <rte_eth_ring.h>

#include "conform.h"

#define RING 1024

static const char *const memif[WIRE_ARGS] = {"net_memif0", "net_memif1"};
static bool in_eal;
static const char *const ring[] = {"wire0", "wire1"};

static bool
named(const char *const *spec, unsigned int n, const char *what)
{
	for (unsigned int i = 0; i < n; i++)
		if (strstr(spec[i], what) != NULL)
			return true;
	return false;
}

unsigned int
wires_eal(const char *const *spec, unsigned int n, char *argv[WIRE_ARGS])
{
	static char arg[WIRE_ARGS][128];

	if (!named(spec, n, "port=net_memif"))
		return 0;
	for (unsigned int i = 0; i < WIRE_ARGS; i++) {
		/* An abstract socket of this process: it leaves no file. */
		snprintf(arg[i], sizeof(arg[i]), "--vdev=%s,role=%s,socket=@conform%d,%s", memif[i],
			 i == 0 ? "server" : "client", getpid(), "socket-abstract=yes,bsize=4224");
		argv[i] = arg[i];
	}
	in_eal = true;
	return WIRE_ARGS;
}

bool
wires_in_eal(void)
{
	return in_eal;
}

int
wires_make(const char *const *spec, unsigned int n)
{
	struct rte_ring *there, *back;

	if (!named(spec, n, "port=net_ring"))
		return 0;
	there = rte_ring_create("wire_there", RING, 0, 0);
	back = rte_ring_create("wire_back", RING, 0, 0);
	if (there == NULL || back == NULL ||
	    rte_eth_from_rings(ring[0], &back, 1, &there, 1, 0) < 0 ||
	    rte_eth_from_rings(ring[1], &there, 1, &back, 1, 0) < 0) {
		fprintf(stderr, "conform: no net_ring pair: %s\n", rte_strerror(rte_errno));
		return -1;
	}
	return 0;
}
