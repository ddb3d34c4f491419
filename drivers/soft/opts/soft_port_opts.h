/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Options that make a DPDK ethdev the port of a device and set its addresses. */
#ifndef SOFT_PORT_OPTS_H
#define SOFT_PORT_OPTS_H

#include <stdbool.h>
#include <stdint.h>

#define SOFT_PORT_NAME   64 /* as RTE_ETH_NAME_MAX_LEN */
#define SOFT_PORT_FABRIC 32 /* bytes of a name, including the final zero */
#define SOFT_PORT_IPS    8
#define SOFT_PORT_NEIGHS 16

#define SOFT_PORT_MIN_MTU 256u
#define SOFT_PORT_MAX_MTU 4096u
/*
 * Bytes of headers and ICRC in the longest packet: IPv6, UDP, BTH + RETH + ImmDt, ICRC. No other
 * packet with a full payload has longer headers.
 */
#define SOFT_PORT_L3_OVERHEAD (40u + 8u + 32u + 4u)
#define SOFT_PORT_L2_OVERHEAD (14u + 4u) /* Ethernet header and one VLAN tag, without the CRC */
#define SOFT_PORT_MIN_FRAME   (SOFT_PORT_MIN_MTU + SOFT_PORT_L3_OVERHEAD + SOFT_PORT_L2_OVERHEAD)
#define SOFT_PORT_MAX_FRAME   9728u

/*
 * An address in the form of GIDs (IPv4 is ::ffff:a.b.c.d), and the number of its leading bits (of
 * 128) that name the network.
 */
struct soft_port_ip {
	uint8_t addr[16];
	uint8_t prefix;
};

/* Bytes of the headers of Ethernet with a tag, IPv6 and UDP; rounded up to whole words. */
#define SOFT_PORT_HEAD 72u

/*
 * Cached headers of the last packet to a destination, without lengths and checksum. Valid for one
 * port and one struct bb_roce_net; the owner zeroes the cache when either changes.
 */
struct soft_port_path {
	/* soft_neigh.gen when the headers were cached; they are stale if it has changed since */
	uint32_t gen;
	uint32_t sum;  /* IPv4: sum of the header's words without length and checksum */
	uint16_t hint; /* hint for soft_neigh_find() */
	uint8_t l2_len, l3_len;
	uint8_t len; /* length of the headers, 0 if not yet cached */
	uint8_t head[SOFT_PORT_HEAD];
};

/*
 * Bytes of the BTH, after the cached headers, that depend on the packet's opcode but not on its
 * PSN.
 */
#define SOFT_PORT_BTH 8u

/*
 * Cached first bytes, up to the PSN, of the last packet with one opcode on a path. Valid for the
 * path with the same generation; zeroed when the path changes.
 */
struct soft_port_begin {
	uint32_t gen;
	uint32_t crc; /* ICRC state after the cached bytes */
	uint32_t len; /* bytes from the BTH to the padding; 0: nothing is cached */
	uint64_t ol_flags, tx_offload;
	uint8_t head[SOFT_PORT_HEAD + SOFT_PORT_BTH];
	uint16_t frame_len; /* bytes of the frame without the ICRC */
};

struct soft_port_opts {
	char name[SOFT_PORT_NAME]; /* name of the ethdev, "" for no port */
	struct soft_port_ip ip[SOFT_PORT_IPS];
	uint32_t n_ip;
	uint32_t vlan;    /* 0 for untagged */
	uint32_t mtu;     /* MTU of RoCE in bytes; 0: the largest that fits */
	uint32_t framesz; /* bytes; 0: as the PMD reports */
	struct {
		uint8_t ip[16], mac[6];
	} neigh[SOFT_PORT_NEIGHS];
	uint32_t n_neigh;
	char shm[SOFT_PORT_FABRIC]; /* fabric (devices that share memory) to join, "" for none */
	uint32_t shm_uid;           /* another trusted uid, besides the process's own */
	bool shm_uid_given;
	/* name of the host, whose processes share their addresses (option host); "" for none */
	char host[SOFT_PORT_FABRIC];
	bool shm_packets; /* requests always go as packets, never by access to peers' memory */
};

#define SOFT_PORT_OPTS_KNOWN                                                                       \
	"port=ETHDEV, ip=ADDRESS/PREFIX (again for more), vlan=1..4094, "                          \
	"mtu=256|512|1024|2048|4096, framesz=358..9728, neigh=ADDRESS@MAC (again for more), "      \
	"shm=FABRIC, shm_uid=UID, shm_packets, host=NAME"

/* Returns true if @key names an option of SOFT_PORT_OPTS_KNOWN. */
bool soft_port_opt_known(const char *key);
/*
 * Finds option @key in @known, a list of KEY=SYNTAX or, for a flag, KEY, separated by ", ". Writes
 * KEY=SYNTAX to @buf of @size bytes and returns @buf. Returns @known if @key is not in the list.
 */
const char *soft_port_opt_syntax(const char *known, const char *key, char *buf, size_t size);
/* Parses one option of device @dev. Returns 0, or -EINVAL (logged). */
int soft_port_opt(const char *dev, const char *key, const char *value, struct soft_port_opts *o);
/* Checks options that depend on each other. Returns 0, or -EINVAL (logged). */
int soft_port_opts_check(const char *dev, const struct soft_port_opts *o);
bool soft_port_opts_equal(const struct soft_port_opts *a, const struct soft_port_opts *b);

/* Returns the RoCE MTU that fits IP packets of @l3 bytes, or 0 if not even MTU 256 fits. */
uint32_t soft_port_mtu_of(uint32_t l3);

/* Writes the link-local address: fe80::/64 with the MAC as EUI-64 (RFC 4291, appendix A). */
void soft_port_link_local(const uint8_t mac[6], uint8_t ip[16]);

/* Returns true if @ip is an IPv4-mapped IPv6 address. */
static inline bool
soft_ip_is_v4(const uint8_t ip[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return __builtin_memcmp(ip, mapped, sizeof(mapped)) == 0;
}

static inline void
soft_ip_map_v4(uint8_t ip[16], const uint8_t v4[4])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	__builtin_memcpy(ip, mapped, sizeof(mapped));
	__builtin_memcpy(ip + 12, v4, 4);
}

/*
 * Returns true if a host may have this address. Multicast, loopback, unspecified and IPv4 broadcast
 * addresses belong to no host.
 */
bool soft_ip_is_host(const uint8_t ip[16]);

static inline bool
soft_ip_is_link_local(const uint8_t ip[16])
{
	return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

bool soft_ip_in_prefix(const uint8_t ip[16], const uint8_t net[16], uint32_t bits);

#endif
