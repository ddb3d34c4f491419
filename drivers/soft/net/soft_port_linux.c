/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The MTU and the filters of an ethdev. Some PMDs set those of an interface of Linux, which other
 * programs use, too. So they are changed only if the port needs that.
 */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "soft.h"
#include "soft_port_priv.h"

/* Reads the name and MTU of an interface of Linux. Returns 0 if that is not possible. */
static uint32_t
read_mtu(unsigned int if_index, char name[IF_NAMESIZE])
{
	struct ifreq ifr = {0};
	int fd, ret;

	if (if_index == 0 || if_indextoname(if_index, name) == NULL)
		return 0;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ret = ioctl(fd, SIOCGIFMTU, &ifr);
	close(fd);
	return ret == 0 && ifr.ifr_mtu > 0 ? (uint32_t)ifr.ifr_mtu : 0;
}

int
soft_port_set_mtu(const char *dev, const struct soft_port_opts *o, const struct soft_port_eth *eth,
		  unsigned int if_index)
{
	const uint32_t l3 = eth->frame - SOFT_PORT_L2_OVERHEAD;
	char name[IF_NAMESIZE];
	uint32_t mtu = read_mtu(if_index, name);
	int ret;

	if (mtu >= l3)
		return 0;
	ret = rte_eth_dev_set_mtu(eth->id, (uint16_t)l3);
	if (ret == 0 || ret == -ENOTSUP)
		return 0;
	/* The PMD does not return the cause that Linux gave. */
	if (mtu != 0)
		SOFT_LOG(
			ERR,
			"%s: port=%s: %s cannot change the MTU of %s from %u to %u: set it by \"ip "
			"link set %s mtu %u\", or give a smaller mtu=",
			dev, o->name, eth->driver, name, mtu, l3, name, l3);
	else
		SOFT_LOG(ERR, "%s: port=%s: %s rejected the MTU %u: %s; give a smaller mtu=", dev,
			 o->name, eth->driver, l3, rte_strerror(-ret));
	return ret;
}

int
soft_port_set_filters(const char *dev, const struct soft_port_opts *o,
		      const struct soft_port_eth *eth, bool no_restart)
{
	int ret = rte_eth_allmulticast_enable(eth->id);

	if (ret != 0)
		ret = rte_eth_promiscuous_enable(eth->id);
	/* If the PMD has no filter to change, it receives all frames anyway. */
	if (ret == 0 || ret == -ENOTSUP)
		return 0;
	/* rte_eth_dev_start() sets the filters, too. If it fails, it stops the PMD for ever. */
	if (no_restart) {
		SOFT_LOG(
			ERR,
			"%s: port=%s: %s cannot set its interface to promiscuous mode: %s: run the "
			"program with CAP_NET_ADMIN",
			dev, o->name, eth->driver, rte_strerror(-ret));
		return ret;
	}
	SOFT_LOG(WARNING,
		 "%s: port=%s: %s cannot receive all multicast frames: %s: hosts with IPv6 may not "
		 "find this port; give them a static neighbour entry for it",
		 dev, o->name, eth->driver, rte_strerror(-ret));
	return 0;
}
