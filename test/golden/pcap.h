/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Reads recordings of packets: classic pcap, microseconds, little-endian, Ethernet. */
#ifndef PCAP_H
#define PCAP_H

#include "bb_test.h"

#define PCAP_ETH_LEN 14u

struct pcap {
	uint8_t *bytes; /* the caller frees them */
	size_t len, at;
	const char *name;
};

static inline uint32_t
pcap_le32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void
pcap_open(struct pcap *r, const char *name)
{
	char path[512];
	long len;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", GOLDEN_DATA, name);
	f = fopen(path, "rb");
	if (f == NULL)
		fail_msg("cannot open %s", path);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	len = ftell(f);
	assert_true(len > 24);
	rewind(f);
	r->name = name;
	r->len = (size_t)len;
	r->at = 24;
	r->bytes = malloc(r->len);
	assert_non_null(r->bytes);
	assert_int_equal(fread(r->bytes, 1, r->len, f), r->len);
	fclose(f);
	assert_int_equal(pcap_le32(r->bytes), 0xa1b2c3d4);
	assert_int_equal(pcap_le32(r->bytes + 20), 1);
}

/* Reads the next Ethernet frame. Returns false at the end; a truncated frame fails the test. */
static inline bool
pcap_next(struct pcap *r, const uint8_t **p, size_t *len)
{
	uint32_t n;

	if (r->at == r->len)
		return false;
	assert_true(r->len - r->at >= 16);
	n = pcap_le32(r->bytes + r->at + 8);
	assert_int_equal(n, pcap_le32(r->bytes + r->at + 12));
	r->at += 16;
	assert_true(n <= r->len - r->at);
	*p = r->bytes + r->at;
	*len = n;
	r->at += n;
	return true;
}

#endif
