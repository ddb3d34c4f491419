/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "capture_read.h"
#include "bb_test.h"

#include <string.h>
#include <unistd.h>

#define LINKTYPE_RAW 101u

void
capture_path(char *path, size_t size)
{
	int fd;

	assert_true(snprintf(path, size, "/tmp/bluebell-capture-XXXXXX") < (int)size);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	unlink(path);
}

static uint32_t
get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t
get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/*
 * Returns the value of option @code in [p, end), and its length in *len. The options must end
 * exactly at @end.
 */
static const uint8_t *
option(const uint8_t *p, const uint8_t *end, uint32_t code, uint32_t *len)
{
	const uint8_t *found = NULL;

	*len = 0;
	for (;;) {
		uint32_t c, l;

		assert_true(end - p >= 4);
		c = get16(p);
		l = get16(p + 2);
		p += 4;
		if (c == 0) {
			assert_int_equal(l, 0);
			assert_ptr_equal(p, end);
			return found;
		}
		assert_true(((l + 3) & ~3u) <= (size_t)(end - p));
		if (c == code) {
			assert_null(found);
			found = p;
			*len = l;
		}
		p += (l + 3) & ~3u;
	}
}

static void
read_roce(struct capture_pkt *k)
{
	bool ip4 = k->ip[0] >> 4 == 4;
	uint32_t ip_len = ip4 ? 20 : 40, len;
	const uint8_t *udp = k->ip + ip_len, *bth = udp + 8;
	uint8_t icrc[BB_ROCE_ICRC_LEN];

	/* A damaged packet may have another version. */
	if (k->len < ip_len + 8 + BB_ROCE_BTH_LEN + BB_ROCE_ICRC_LEN)
		return;
	k->tclass = ip4 ? k->ip[1] : (uint8_t)(k->ip[0] << 4 | k->ip[1] >> 4);
	len = k->len - ip_len - 8 - BB_ROCE_ICRC_LEN;
	bb_roce_icrc_end(bb_roce_icrc_begin(k->ip, ip_len, udp, bth, len), icrc);
	k->icrc_ok = memcmp(icrc, bth + len, sizeof(icrc)) == 0;
	if (!k->icrc_ok)
		return;
	assert_int_equal(bb_roce_parse(&k->pkt, bth, len), BB_ROCE_OK);
	k->payload = k->pkt.payload;
}

static void
read_packet(struct capture *c, const uint8_t *body, const uint8_t *end)
{
	struct capture_pkt *k;
	const uint8_t *value;
	uint32_t len;

	c->pkt = realloc(c->pkt, (c->n + 1) * sizeof(*c->pkt));
	assert_non_null(c->pkt);
	k = &c->pkt[c->n++];
	memset(k, 0, sizeof(*k));
	assert_true(end - body >= 20);
	assert_int_equal(get32(body), 0);
	k->ns = (uint64_t)get32(body + 4) << 32 | get32(body + 8);
	k->len = get32(body + 12);
	assert_int_equal(get32(body + 16), k->len);
	k->ip = (uint8_t *)(uintptr_t)body + 20;
	assert_true(((k->len + 3) & ~3u) <= (size_t)(end - k->ip));
	body = k->ip + ((k->len + 3) & ~3u);
	value = option(body, end, 2, &len);
	assert_non_null(value);
	assert_int_equal(len, 4);
	k->dir = get32(value);
	assert_true(k->dir == CAPTURE_IN || k->dir == CAPTURE_OUT);
	value = option(body, end, 1, &len);
	if (value != NULL) {
		assert_true(len < sizeof(k->note));
		memcpy(k->note, value, len);
	}
	read_roce(k);
}

static void
read_interface(struct capture *c, const uint8_t *body, const uint8_t *end)
{
	const uint8_t *value;
	uint32_t len;

	assert_string_equal(c->interface, "");
	assert_true(end - body >= 8);
	assert_int_equal(get16(body), LINKTYPE_RAW);
	assert_int_equal(get32(body + 4), 0);
	value = option(body + 8, end, 2, &len);
	assert_non_null(value);
	assert_in_range(len, 1, sizeof(c->interface) - 1);
	memcpy(c->interface, value, len);
	value = option(body + 8, end, 9, &len);
	assert_non_null(value);
	assert_int_equal(len, 1);
	assert_int_equal(value[0], 9);
}

void
capture_read(struct capture *c, const char *path)
{
	FILE *f = fopen(path, "rb");
	const uint8_t *p, *end;
	uint32_t blocks = 0;

	memset(c, 0, sizeof(*c));
	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	c->size = (size_t)ftell(f);
	rewind(f);
	c->file = malloc(c->size + 1);
	assert_non_null(c->file);
	assert_int_equal(fread(c->file, 1, c->size, f), c->size);
	fclose(f);
	for (p = c->file, end = p + c->size; p < end; blocks++) {
		uint32_t type, len;

		assert_true(end - p >= 12);
		type = get32(p);
		len = get32(p + 4);
		assert_true(len >= 12 && len % 4 == 0 && len <= (size_t)(end - p));
		assert_int_equal(get32(p + len - 4), len);
		if (blocks == 0) {
			assert_int_equal(type, 0x0a0d0d0a);
			assert_int_equal(get32(p + 8), 0x1a2b3c4d);
			assert_int_equal(get32(p + 12), 1);
		} else if (blocks == 1) {
			assert_int_equal(type, 1);
			read_interface(c, p + 8, p + len - 4);
		} else {
			assert_int_equal(type, 6);
			read_packet(c, p + 8, p + len - 4);
		}
		p += len;
	}
	assert_true(blocks >= 2);
}

void
capture_free(struct capture *c)
{
	free(c->pkt);
	free(c->file);
	memset(c, 0, sizeof(*c));
}
