/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Options of a device that say which DPDK ethdev is its port, and who it is there. */
#ifndef SOFT_PORT_OPTS_H
#define SOFT_PORT_OPTS_H

#include <stdbool.h>
#include <stdint.h>

#define SOFT_PORT_NAME   64 /* RTE_ETH_NAME_MAX_LEN */
#define SOFT_PORT_FABRIC 32 /* of a name, with the NUL */
#define SOFT_PORT_IPS    8
#define SOFT_PORT_NEIGHS 16

#define SOFT_PORT_MIN_MTU 256u
#define SOFT_PORT_MAX_MTU 4096u
/*
 * Bytes of the longest packet around its payload: IPv6, UDP, BTH + RETH + ImmDt (no other
 * packet with a full payload has more), ICRC.
 */
#define SOFT_PORT_L3_OVERHEAD (40u + 8u + 32u + 4u)
#define SOFT_PORT_L2_OVERHEAD (14u + 4u) /* Ethernet and one VLAN tag, the CRC not counted */
#define SOFT_PORT_MIN_FRAME   (SOFT_PORT_MIN_MTU + SOFT_PORT_L3_OVERHEAD + SOFT_PORT_L2_OVERHEAD)
#define SOFT_PORT_MAX_FRAME   9728u

/* An address as in GIDs, IPv4 as ::ffff:a.b.c.d, and how many of its 128 bits are the network. */
struct soft_port_ip {
	uint8_t addr[16];
	uint8_t prefix;
};

/* Ethernet with a tag, IPv6, UDP; whole words. */
#define SOFT_PORT_HEAD 72u

/*
 * What a port remembers of a destination: headers as they were sent to it last, all but lengths
 * and checksum. Of one port and one struct bb_roce_net; all 0 when that is another.
 */
struct soft_port_path {
	uint32_t gen;  /* soft_neigh.gen of then: no neighbour has another MAC or state since */
	uint32_t sum;  /* IPv4: of its header's other words */
	uint16_t hint; /* soft_neigh_find() */
	uint8_t l2_len, l3_len;
	uint8_t len; /* of the headers; 0: there are none yet */
	uint8_t head[SOFT_PORT_HEAD];
};

/* Behind those headers as much of the BTH as says what the packet is, and not which one. */
#define SOFT_PORT_BTH 8u

/*
 * What the last packet of a kind began with on a path, up to its PSN. Of the path with that
 * generation; all 0 when that is another.
 */
struct soft_port_begin {
	uint32_t gen;
	uint32_t udp_len; /* 0: there was none */
	uint32_t crc;     /* of all that, the state of its ICRC */
	uint32_t bth;     /* its first word, in host order */
	uint64_t ol_flags, tx_offload;
	uint8_t head[SOFT_PORT_HEAD + SOFT_PORT_BTH];
	uint16_t frame_len; /* to the ICRC */
};

struct soft_port_opts {
	char name[SOFT_PORT_NAME]; /* "": no port */
	struct soft_port_ip ip[SOFT_PORT_IPS];
	uint32_t n_ip;
	uint32_t vlan;    /* 0: untagged */
	uint32_t mtu;     /* of RoCE; 0: the largest that fits */
	uint32_t framesz; /* 0: what the PMD says */
	struct {
		uint8_t ip[16], mac[6];
	} neigh[SOFT_PORT_NEIGHS];
	uint32_t n_neigh;
	char shm[SOFT_PORT_FABRIC]; /* "": none */
	uint32_t shm_uid;           /* who is trusted beside our own user */
	bool shm_uid_given;
	bool shm_packets; /* nothing is done in the memory of peers */
};

#define SOFT_PORT_OPTS_KNOWN                                                                       \
	"port=ETHDEV, ip=ADDRESS/PREFIX (again for more), vlan=1..4094, "                          \
	"mtu=256|512|1024|2048|4096, framesz=358..9728, neigh=ADDRESS@MAC (again for more), "      \
	"shm=FABRIC, shm_uid=UID, shm_packets"

/* Is @key one of these? */
bool soft_port_opt_known(const char *key);
/* Take one option of device @dev. -EINVAL with a line in the log. */
int soft_port_opt(const char *dev, const char *key, const char *value, struct soft_port_opts *o);
/* What belongs together. -EINVAL with a line in the log. */
int soft_port_opts_check(const char *dev, const struct soft_port_opts *o);
bool soft_port_opts_equal(const struct soft_port_opts *a, const struct soft_port_opts *b);

/* The RoCE MTU for IP packets of @l3 bytes; 0: not even 256. */
uint32_t soft_port_mtu_of(uint32_t l3);

/* fe80::/64 and the MAC as EUI-64 (RFC 4291, appendix A). */
void soft_port_link_local(const uint8_t mac[6], uint8_t ip[16]);

/* Is an address IPv4 in the form of IPv6? */
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

/* May a host have this address: not multicast, loopback, unspecified, or a v4 broadcast. */
bool soft_ip_is_host(const uint8_t ip[16]);

static inline bool
soft_ip_is_link_local(const uint8_t ip[16])
{
	return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

bool soft_ip_in_prefix(const uint8_t ip[16], const uint8_t net[16], uint32_t bits);

#endif
