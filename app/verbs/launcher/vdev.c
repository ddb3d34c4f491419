/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "vdev.h"

#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_ether.h>

#include "preload.h"

/* Copies the value of option @key, such as "mac=". Returns false if there is none. */
static bool
option(const char *vdev, const char *key, char *value, size_t size)
{
	const char *at = strchr(vdev, ',');

	for (; at != NULL; at = strchr(at + 1, ','))
		if (strncmp(at + 1, key, strlen(key)) == 0)
			break;
	if (at == NULL)
		return false;
	at += 1 + strlen(key);
	snprintf(value, size, "%.*s", (int)strcspn(at, ","), at);
	return true;
}

/* Reads the MAC of the network interface of a vdev. */
static int
interface_mac(const char *vdev, const char *driver, struct rte_ether_addr *mac)
{
	struct ifreq r = {0};
	int fd, ret;

	if (!option(vdev, "iface=", r.ifr_name, sizeof(r.ifr_name)) || r.ifr_name[0] == '\0') {
		fprintf(stderr, "bb_verbs: --vdev %s: give the interface: %s0,iface=INTERFACE\n",
			vdev, driver);
		return -EINVAL;
	}
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ret = ioctl(fd, SIOCGIFHWADDR, &r);
	if (fd >= 0)
		close(fd);
	memcpy(mac->addr_bytes, r.ifr_hwaddr.sa_data, sizeof(mac->addr_bytes));
	if (ret == 0 && r.ifr_hwaddr.sa_family == ARPHRD_ETHER)
		return 0;
	fprintf(stderr,
		"bb_verbs: --vdev %s: there is no Ethernet interface %s: \"ip link\" lists the "
		"interfaces\n",
		vdev, r.ifr_name);
	return -EINVAL;
}

/* Finds the MAC that the vdev will have, and completes its options so that it has it. */
static int
find_mac(const char *given, const char *driver, const struct soft_plan *plan, char *vdev,
	 size_t size, struct rte_ether_addr *mac)
{
	char text[RTE_ETHER_ADDR_FMT_SIZE];

	if (strcmp(driver, "net_af_packet") == 0 || strcmp(driver, "net_af_xdp") == 0)
		return interface_mac(given, driver, mac);
	if (option(given, "mac=", text, sizeof(text))) {
		if (rte_ether_unformat_addr(text, mac) == 0 &&
		    rte_is_valid_assigned_ether_addr(mac))
			return 0;
		fprintf(stderr,
			"bb_verbs: --vdev %s: mac=%s is no MAC of a host: give one such as "
			"02:00:00:00:00:01, or leave out mac=\n",
			given, text);
		return -EINVAL;
	}
	memcpy(mac->addr_bytes, plan->mac, 6);
	rte_ether_format_addr(text, sizeof(text), mac);
	if (snprintf(vdev, size, "%s,mac=%s", given, text) < (int)size)
		return 0;
	fprintf(stderr, "bb_verbs: --vdev is too long (at most %zu bytes)\n", size - 25);
	return -EINVAL;
}

/* Writes the link-local address of a MAC: fe80::/64 with the EUI-64 (RFC 4291, appendix A). */
static void
link_local(const uint8_t mac[6], uint8_t ip[16])
{
	const uint8_t raw[16] = {0xfe,       0x80,   0,      0,    0,    0,      0,      0,
				 mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};

	memcpy(ip, raw, sizeof(raw));
}

int
vdev_port(const char *given, const struct soft_plan *plan, char *vdev, size_t size,
	  struct tree_port *port)
{
	const char *driver = port_driver(given);
	const size_t len = strcspn(given, ",");
	struct rte_ether_addr mac;
	uint32_t i;

	if (driver == NULL) {
		fprintf(stderr,
			"bb_verbs: --vdev %s: the PMD is not supported: give net_memif, "
			"net_af_packet or net_af_xdp\n",
			given);
		return -EINVAL;
	}
	if (strlen(plan->port) != len || strncmp(plan->port, given, len) != 0) {
		fprintf(stderr, "bb_verbs: --vdev %s: --device has port=%s: give port=%.*s\n",
			given, plan->port, (int)len, given);
		return -EINVAL;
	}
	if (snprintf(vdev, size, "%s", given) >= (int)size) {
		fprintf(stderr, "bb_verbs: --vdev is too long (at most %zu bytes)\n", size - 25);
		return -EINVAL;
	}
	if (plan->n_ip == 0) {
		fprintf(stderr,
			"bb_verbs: port=%s needs an address that no other host of the network has: "
			"--address IP/BITS, for example --address 192.0.2.1/24\n",
			plan->port);
		return -EINVAL;
	}
	if (find_mac(given, driver, plan, vdev, size, &mac) != 0)
		return -EINVAL;
	*port = (struct tree_port){.ib = false};
	link_local(mac.addr_bytes, port->gid[0].raw);
	for (i = 0; i < plan->n_ip; i++)
		memcpy(port->gid[1 + i].raw, plan->ip[i], 16);
	for (i = 0; i <= plan->n_ip; i++) {
		port->gid[i].type = BB_GID_ROCE_V2;
		port->valid[i] = true;
	}
	return 0;
}
