/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_ether.h>

#include "soft.h"
#include "soft_port_opts.h"

static const char *const keys[] = {"port",  "ip",  "vlan",    "mtu",         "framesz",
				   "neigh", "shm", "shm_uid", "shm_packets", "host"};

bool
soft_port_opt_known(const char *key)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(keys); i++)
		if (strcmp(key, keys[i]) == 0)
			return true;
	return false;
}

const char *
soft_port_opt_syntax(const char *known, const char *key, char *buf, size_t size)
{
	size_t len = strlen(key);
	const char *at = known;

	while (strncmp(at, key, len) != 0 || strchr("=,", at[len]) == NULL) {
		at = strstr(at, ", ");
		if (at == NULL)
			return known;
		at += 2;
	}
	snprintf(buf, size, at[len] == '=' ? "%.*s" : "%.*s=0|1", (int)strcspn(at, ","), at);
	return buf;
}

uint32_t
soft_port_mtu_of(uint32_t l3)
{
	uint32_t mtu;

	for (mtu = SOFT_PORT_MAX_MTU; mtu >= SOFT_PORT_MIN_MTU; mtu /= 2)
		if (mtu + SOFT_PORT_L3_OVERHEAD <= l3)
			return mtu;
	return 0;
}

void
soft_port_link_local(const uint8_t mac[6], uint8_t ip[16])
{
	const uint8_t raw[16] = {0xfe,       0x80,   0,      0,    0,    0,      0,      0,
				 mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};

	memcpy(ip, raw, 16);
}

bool
soft_ip_is_host(const uint8_t ip[16])
{
	static const uint8_t zero[16];

	if (soft_ip_is_v4(ip))
		return ip[12] != 0 && ip[12] != 127 && ip[12] < 224;
	/*
	 * Also rejects the deprecated IPv4-compatible addresses, ::1 among them (RFC 4291,
	 * 2.5.5.1).
	 */
	return ip[0] != 0xff && memcmp(ip, zero, 12) != 0;
}

bool
soft_ip_in_prefix(const uint8_t ip[16], const uint8_t net[16], uint32_t bits)
{
	uint32_t bytes = bits / 8;

	if (memcmp(ip, net, bytes) != 0)
		return false;
	return bits % 8 == 0 || ((ip[bytes] ^ net[bytes]) & (uint8_t)(0xff00u >> bits % 8)) == 0;
}

static int
parse_addr(const char *text, uint8_t ip[16])
{
	uint8_t raw[16];

	if (inet_pton(AF_INET, text, raw) == 1) {
		soft_ip_map_v4(ip, raw);
		return 0;
	}
	if (inet_pton(AF_INET6, text, raw) != 1 || soft_ip_is_v4(raw))
		return -EINVAL;
	memcpy(ip, raw, 16);
	return 0;
}

static int
parse_number(const char *value, uint32_t min, uint32_t max, uint32_t *number)
{
	unsigned long v;
	char *end;

	if (value[0] < '0' || value[0] > '9')
		return -EINVAL;
	errno = 0;
	v = strtoul(value, &end, 10);
	if (errno != 0 || *end != '\0' || v < min || v > max)
		return -EINVAL;
	*number = (uint32_t)v;
	return 0;
}

/*
 * Copies the text before @sep to @head and sets *rest to the text after it. Returns -EINVAL if
 * @value has no @sep.
 */
static int
split(const char *value, char sep, char *head, size_t size, const char **rest)
{
	const char *at = strchr(value, sep);

	if (at == NULL || (size_t)(at - value) >= size)
		return -EINVAL;
	memcpy(head, value, (size_t)(at - value));
	head[at - value] = '\0';
	*rest = at + 1;
	return 0;
}

static int
parse_ip(const char *dev, const char *value, struct soft_port_opts *o)
{
	struct soft_port_ip ip = {0};
	char addr[INET6_ADDRSTRLEN];
	const char *bits;
	uint32_t i, prefix;

	if (split(value, '/', addr, sizeof(addr), &bits) != 0 || parse_addr(addr, ip.addr) != 0 ||
	    parse_number(bits, 1, soft_ip_is_v4(ip.addr) ? 32 : 128, &prefix) != 0) {
		SOFT_LOG(ERR,
			 "%s: invalid ip=%s (an address and the prefix length of its network, for "
			 "example 192.0.2.1/24 or 2001:db8::1/64)",
			 dev, value);
		return -EINVAL;
	}
	ip.prefix = (uint8_t)(prefix + (soft_ip_is_v4(ip.addr) ? 96 : 0));
	if (!soft_ip_is_host(ip.addr)) {
		SOFT_LOG(ERR, "%s: invalid ip=%s: the address is not that of a host", dev, value);
		return -EINVAL;
	}
	if (soft_ip_is_link_local(ip.addr)) {
		SOFT_LOG(ERR,
			 "%s: invalid ip=%s: the device derives its link-local address from the "
			 "MAC, leave it out",
			 dev, value);
		return -EINVAL;
	}
	for (i = 0; i < o->n_ip; i++) {
		if (memcmp(o->ip[i].addr, ip.addr, 16) == 0) {
			SOFT_LOG(ERR, "%s: invalid ip=%s: the address is given twice", dev, value);
			return -EINVAL;
		}
	}
	if (o->n_ip == SOFT_PORT_IPS) {
		SOFT_LOG(ERR, "%s: too many ip= options at ip=%s (at most %d)", dev, value,
			 SOFT_PORT_IPS);
		return -EINVAL;
	}
	o->ip[o->n_ip++] = ip;
	return 0;
}

static int
parse_neigh(const char *dev, const char *value, struct soft_port_opts *o)
{
	char addr[INET6_ADDRSTRLEN];
	struct rte_ether_addr mac;
	uint8_t ip[16];
	const char *text;

	if (split(value, '@', addr, sizeof(addr), &text) != 0 || parse_addr(addr, ip) != 0 ||
	    !soft_ip_is_host(ip) || rte_ether_unformat_addr(text, &mac) != 0 ||
	    !rte_is_valid_assigned_ether_addr(&mac)) {
		SOFT_LOG(ERR,
			 "%s: invalid neigh=%s (the address of a host and its MAC, for example "
			 "192.0.2.2@02:00:00:00:00:02)",
			 dev, value);
		return -EINVAL;
	}
	if (o->n_neigh == SOFT_PORT_NEIGHS) {
		SOFT_LOG(ERR, "%s: too many neigh= options at neigh=%s (at most %d)", dev, value,
			 SOFT_PORT_NEIGHS);
		return -EINVAL;
	}
	memcpy(o->neigh[o->n_neigh].ip, ip, 16);
	memcpy(o->neigh[o->n_neigh].mac, mac.addr_bytes, 6);
	o->n_neigh++;
	return 0;
}

/* Parses a fabric's name, which becomes part of a socket's address. */
static int
parse_fabric(const char *value, char name[SOFT_PORT_FABRIC])
{
	size_t i;

	for (i = 0; value[i] != '\0'; i++)
		if (!isalnum((unsigned char)value[i]) && strchr("_-.", value[i]) == NULL)
			return -EINVAL;
	if (i >= SOFT_PORT_FABRIC)
		return -EINVAL;
	memcpy(name, value, i + 1);
	return 0;
}

int
soft_port_opt(const char *dev, const char *key, const char *value, struct soft_port_opts *o)
{
	char syntax[128];
	int ret;

	if (strcmp(key, "shm_packets") == 0 &&
	    (value == NULL || value[0] == '\0' || strcmp(value, "1") == 0)) {
		o->shm_packets = true;
		return 0;
	}
	if (value == NULL || value[0] == '\0') {
		SOFT_LOG(ERR, "%s: option %s needs a value (valid: %s)", dev, key,
			 soft_port_opt_syntax(SOFT_PORT_OPTS_KNOWN, key, syntax, sizeof(syntax)));
		return -EINVAL;
	}
	if (strcmp(key, "ip") == 0)
		return parse_ip(dev, value, o);
	if (strcmp(key, "neigh") == 0)
		return parse_neigh(dev, value, o);
	if (strcmp(key, "port") == 0) {
		ret = snprintf(o->name, sizeof(o->name), "%s", value) < (int)sizeof(o->name)
			      ? 0
			      : -EINVAL;
	} else if (strcmp(key, "vlan") == 0) {
		ret = parse_number(value, 1, 4094, &o->vlan);
	} else if (strcmp(key, "shm") == 0) {
		ret = parse_fabric(value, o->shm);
	} else if (strcmp(key, "host") == 0) {
		ret = parse_fabric(value, o->host);
	} else if (strcmp(key, "shm_uid") == 0) {
		ret = parse_number(value, 0, UINT32_MAX - 1, &o->shm_uid);
		o->shm_uid_given = true;
	} else if (strcmp(key, "shm_packets") == 0) {
		o->shm_packets = false;
		ret = strcmp(value, "0") == 0 ? 0 : -EINVAL;
	} else if (strcmp(key, "framesz") == 0) {
		ret = parse_number(value, SOFT_PORT_MIN_FRAME, SOFT_PORT_MAX_FRAME, &o->framesz);
	} else {
		ret = parse_number(value, SOFT_PORT_MIN_MTU, SOFT_PORT_MAX_MTU, &o->mtu);
		if (ret == 0 && (o->mtu & (o->mtu - 1)) != 0)
			ret = -EINVAL;
	}
	if (ret != 0)
		SOFT_LOG(ERR, "%s: invalid value \"%s\" of option %s (valid: %s)", dev, value, key,
			 soft_port_opt_syntax(SOFT_PORT_OPTS_KNOWN, key, syntax, sizeof(syntax)));
	return ret;
}

int
soft_port_opts_check(const char *dev, const struct soft_port_opts *o)
{
	uint32_t l3;

	if (o->shm[0] == '\0' && (o->shm_uid_given || o->shm_packets || o->host[0] != '\0')) {
		SOFT_LOG(ERR, "%s: shm_uid, shm_packets and host need the option shm=FABRIC", dev);
		return -EINVAL;
	}
	if (o->shm[0] != '\0') {
		if (o->name[0] == '\0' && o->n_ip != 0 && o->n_neigh == 0 && o->vlan == 0 &&
		    o->mtu == 0 && o->framesz == 0)
			return 0;
		SOFT_LOG(ERR,
			 "%s: shm=%s needs at least one ip=ADDRESS/PREFIX, and excludes port, "
			 "vlan, mtu, framesz and neigh",
			 dev, o->shm);
		return -EINVAL;
	}
	if (o->name[0] == '\0') {
		if (o->n_ip == 0 && o->n_neigh == 0 && o->vlan == 0 && o->mtu == 0 &&
		    o->framesz == 0)
			return 0;
		SOFT_LOG(ERR,
			 "%s: ip, vlan, mtu, framesz and neigh need the option port=ETHDEV; ip "
			 "alone works with shm=FABRIC too",
			 dev);
		return -EINVAL;
	}
	l3 = o->framesz == 0 ? UINT32_MAX : o->framesz - SOFT_PORT_L2_OVERHEAD;
	if (o->mtu != 0 && o->mtu + SOFT_PORT_L3_OVERHEAD > l3) {
		SOFT_LOG(ERR,
			 "%s: mtu=%u does not fit into frames of framesz=%u: give framesz=%u or "
			 "more",
			 dev, o->mtu, o->framesz,
			 o->mtu + SOFT_PORT_L3_OVERHEAD + SOFT_PORT_L2_OVERHEAD);
		return -EINVAL;
	}
	return 0;
}

bool
soft_port_opts_equal(const struct soft_port_opts *a, const struct soft_port_opts *b)
{
	uint32_t i;

	if (strcmp(a->name, b->name) != 0 || strcmp(a->shm, b->shm) != 0 ||
	    strcmp(a->host, b->host) != 0 || a->shm_packets != b->shm_packets ||
	    a->shm_uid_given != b->shm_uid_given || a->shm_uid != b->shm_uid ||
	    a->n_ip != b->n_ip || a->vlan != b->vlan || a->mtu != b->mtu ||
	    a->framesz != b->framesz || a->n_neigh != b->n_neigh)
		return false;
	for (i = 0; i < a->n_ip; i++)
		if (memcmp(a->ip[i].addr, b->ip[i].addr, 16) != 0 ||
		    a->ip[i].prefix != b->ip[i].prefix)
			return false;
	for (i = 0; i < a->n_neigh; i++)
		if (memcmp(&a->neigh[i], &b->neigh[i], sizeof(a->neigh[i])) != 0)
			return false;
	return true;
}
