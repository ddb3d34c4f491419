/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <stdio.h>
#include <string.h>

#include "perf_msg.h"

static int
hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Parses a field of @digits hexadecimal digits, at most 16, into *@v. */
static bool
hex_field(const uint8_t *at, uint32_t digits, uint64_t *v)
{
	uint64_t value = 0;
	uint32_t i;
	int d;

	for (i = 0; i < digits; i++) {
		d = hex_digit(at[i]);
		if (d < 0)
			return false;
		value = value << 4 | (uint32_t)d;
	}
	*v = value;
	return true;
}

static bool
hex_bytes(const uint8_t *at, uint8_t *out, uint32_t n, uint32_t stride)
{
	uint64_t v;
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (!hex_field(at + i * stride, 2, &v))
			return false;
		out[i] = (uint8_t)v;
	}
	return true;
}

void
msg_pingpong_encode(uint8_t out[MSG_PINGPONG], const struct msg_addr *a)
{
	char text[MSG_PINGPONG];
	int n, i;

	n = snprintf(text, sizeof(text), "%04x:%06x:%06x:", a->lid, a->qpn & 0xffffff,
		     a->psn & 0xffffff);
	for (i = 0; i < 16; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%02x", a->gid[i]);
	memcpy(out, text, MSG_PINGPONG);
}

const char *
msg_pingpong_decode(const uint8_t *msg, size_t len, struct msg_addr *a)
{
	struct msg_addr got;
	uint64_t lid, qpn, psn;

	if (len != MSG_PINGPONG)
		return "is cut short";
	if (msg[4] != ':' || msg[11] != ':' || msg[18] != ':' || msg[51] != '\0')
		return "is not of the form LID:QPN:PSN:GID";
	if (!hex_field(msg, 4, &lid))
		return "has a LID that is not hexadecimal";
	if (!hex_field(msg + 5, 6, &qpn))
		return "has a QPN that is not hexadecimal";
	if (!hex_field(msg + 12, 6, &psn))
		return "has a PSN that is not hexadecimal";
	if (!hex_bytes(msg + 19, got.gid, 16, 2))
		return "has a GID that is not hexadecimal";
	got.lid = (uint16_t)lid;
	got.qpn = (uint32_t)qpn;
	got.psn = (uint32_t)psn;
	*a = got;
	return NULL;
}

const char *
msg_done_decode(const uint8_t *msg, size_t len)
{
	if (len != MSG_DONE)
		return "is cut short";
	return memcmp(msg, "done", MSG_DONE) == 0 ? NULL : "is not \"done\"";
}

void
msg_version_encode(uint8_t out[MSG_VERSION], uint32_t hundredths)
{
	memset(out, 0, MSG_VERSION);
	snprintf((char *)out, MSG_VERSION, "%u.%02u", hundredths / 100, hundredths % 100);
}

const char *
msg_version_decode(const uint8_t *msg, size_t len, uint32_t *hundredths)
{
	uint32_t i, whole = 0, part = 0, digits = 0;

	if (len != MSG_VERSION)
		return "is cut short";
	for (i = 0; i < 4 && msg[i] >= '0' && msg[i] <= '9'; i++)
		whole = whole * 10 + (uint32_t)(msg[i] - '0');
	if (i == 0 || msg[i] != '.')
		return "is not a version like 6.06";
	for (i++; i < MSG_VERSION && msg[i] >= '0' && msg[i] <= '9'; i++)
		if (digits < 2) {
			part = part * 10 + (uint32_t)(msg[i] - '0');
			digits++;
		}
	if (digits == 0 || i == MSG_VERSION || msg[i] != '\0')
		return "is not a version like 6.06";
	*hundredths = whole * 100 + (digits == 1 ? part * 10 : part);
	return NULL;
}

static uint64_t
get_be(const uint8_t *at, uint32_t n)
{
	uint64_t v = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		v = v << 8 | at[i];
	return v;
}

static void
put_be(uint8_t *at, uint32_t n, uint64_t v)
{
	while (n-- > 0) {
		at[n] = (uint8_t)v;
		v >>= 8;
	}
}

void
msg_u32_encode(uint8_t out[MSG_U32], uint32_t v)
{
	put_be(out, MSG_U32, v);
}

/*
 * Decodes a size of the peer. An extreme size must not reach an allocation or a division, so it
 * must not exceed @max.
 */
static const char *
size_decode(const uint8_t *msg, size_t len, uint32_t max, uint32_t *v)
{
	uint32_t got;

	if (len != MSG_U32)
		return "is cut short";
	got = (uint32_t)get_be(msg, MSG_U32);
	/*
	 * A peer sends 0 or -1 if its sysconf() does not know the size. Then the local value stays.
	 */
	if (got == 0 || got == UINT32_MAX) {
		*v = 0;
		return NULL;
	}
	if (got > max || (got & (got - 1)) != 0)
		return "is not a power of two in the valid range";
	*v = got;
	return NULL;
}

const char *
msg_cycle_decode(const uint8_t *msg, size_t len, uint32_t *cycle)
{
	return size_decode(msg, len, MSG_MAX_CYCLE, cycle);
}

const char *
msg_line_decode(const uint8_t *msg, size_t len, uint32_t *line)
{
	return size_decode(msg, len, MSG_MAX_LINE, line);
}

void
msg_mtu_encode(uint8_t out[MSG_MTU], uint32_t mtu)
{
	uint8_t code = '1';

	while (mtu > 256 && code < '5') {
		mtu >>= 1;
		code++;
	}
	out[0] = code;
	out[1] = '\0';
}

const char *
msg_mtu_decode(const uint8_t *msg, size_t len, uint32_t *mtu)
{
	if (len != MSG_MTU)
		return "is cut short";
	if (msg[0] < '1' || msg[0] > '5' || msg[1] != '\0')
		return "is not one of the codes 1 to 5";
	*mtu = 256u << (msg[0] - '1');
	return NULL;
}

/*
 * Offsets of the fields. The message without a GID ends with the SRQ number. The message with a GID
 * has the GID before the SRQ number.
 */
#define KEYS_LID   0
#define KEYS_READS 5
#define KEYS_QPN   10
#define KEYS_PSN   17
#define KEYS_RKEY  24
#define KEYS_VADDR 33
#define KEYS_GID   50
#define KEYS_SRQN  98 /* offset of the SRQ number in the message of struct msg_keys with a GID */

/*
 * Offsets of the fields of the binary message (struct pingpong_dest of perftest): 32 bits each in
 * network byte order, except the address (64 bits) and the GID. The last field is the index of the
 * GID.
 */
#define CM_LID   0
#define CM_READS 4
#define CM_QPN   8
#define CM_PSN   12
#define CM_RKEY  16
#define CM_VADDR 24
#define CM_GID   32
#define CM_SRQN  48

static void
keys_encode_cm(uint8_t *out, const struct msg_keys *k)
{
	memset(out, 0, MSG_KEYS_CM);
	put_be(out + CM_LID, 4, k->addr.lid);
	put_be(out + CM_READS, 4, k->out_reads);
	put_be(out + CM_QPN, 4, k->addr.qpn & 0xffffff);
	put_be(out + CM_PSN, 4, k->addr.psn & 0xffffff);
	put_be(out + CM_RKEY, 4, k->rkey);
	put_be(out + CM_VADDR, 8, k->vaddr);
	memcpy(out + CM_GID, k->addr.gid, sizeof(k->addr.gid));
	put_be(out + CM_SRQN, 4, k->srqn);
}

static const char *
keys_decode_cm(const uint8_t *msg, struct msg_keys *k)
{
	uint64_t lid = get_be(msg + CM_LID, 4), reads = get_be(msg + CM_READS, 4),
		 qpn = get_be(msg + CM_QPN, 4), psn = get_be(msg + CM_PSN, 4);

	if (lid > 0xffff)
		return "has a LID of more than 16 bits";
	if (reads > 0xffff)
		return "has a number of READs of more than 16 bits";
	if (qpn > 0xffffff || psn > 0xffffff)
		return "has a QPN or PSN of more than 24 bits";
	k->addr.lid = (uint16_t)lid;
	k->addr.qpn = (uint32_t)qpn;
	k->addr.psn = (uint32_t)psn;
	k->out_reads = (uint16_t)reads;
	k->rkey = (uint32_t)get_be(msg + CM_RKEY, 4);
	k->vaddr = get_be(msg + CM_VADDR, 8);
	memcpy(k->addr.gid, msg + CM_GID, sizeof(k->addr.gid));
	k->srqn = (uint32_t)get_be(msg + CM_SRQN, 4);
	return NULL;
}

void
msg_keys_encode(uint8_t *out, size_t len, const struct msg_keys *k)
{
	char text[MSG_KEYS_GID + 1];
	int n, i;

	if (len == MSG_KEYS_CM) {
		keys_encode_cm(out, k);
		return;
	}
	n = snprintf(text, sizeof(text), "%04x:%04x:%06x:%06x:%08x:%016llx:", k->addr.lid,
		     k->out_reads, k->addr.qpn & 0xffffff, k->addr.psn & 0xffffff, k->rkey,
		     (unsigned long long)k->vaddr);
	for (i = 0; i < 16 && len == MSG_KEYS_GID; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%02x:", k->addr.gid[i]);
	snprintf(text + n, sizeof(text) - (size_t)n, len == MSG_KEYS_GID ? "%08x:" : "%08x",
		 k->srqn);
	memcpy(out, text, len);
}

const char *
msg_keys_decode(const uint8_t *msg, size_t len, struct msg_keys *k)
{
	static const uint8_t colons[] = {4, 9, 16, 23, 32, 49};
	uint64_t lid, reads, qpn, psn, rkey, vaddr, srqn;
	uint32_t srqn_at = len == MSG_KEYS_GID ? KEYS_SRQN : KEYS_GID;
	struct msg_keys got;
	uint32_t i;

	if (len == MSG_KEYS_CM)
		return keys_decode_cm(msg, k);
	if (len != MSG_KEYS && len != MSG_KEYS_GID)
		return "is cut short";
	for (i = 0; i < sizeof(colons); i++)
		if (msg[colons[i]] != ':')
			return "is not of the form LID:READS:QPN:PSN:RKEY:VADDR:...";
	if (msg[len - 1] != '\0')
		return "is not terminated";
	if (!hex_field(msg + KEYS_LID, 4, &lid))
		return "has a LID that is not hexadecimal";
	if (!hex_field(msg + KEYS_READS, 4, &reads))
		return "has a number of READs that is not hexadecimal";
	if (!hex_field(msg + KEYS_QPN, 6, &qpn))
		return "has a QPN that is not hexadecimal";
	if (!hex_field(msg + KEYS_PSN, 6, &psn))
		return "has a PSN that is not hexadecimal";
	if (!hex_field(msg + KEYS_RKEY, 8, &rkey))
		return "has an RKey that is not hexadecimal";
	if (!hex_field(msg + KEYS_VADDR, 16, &vaddr))
		return "has an address that is not hexadecimal";
	memset(got.addr.gid, 0, sizeof(got.addr.gid));
	if (len == MSG_KEYS_GID) {
		if (!hex_bytes(msg + KEYS_GID, got.addr.gid, 16, 3))
			return "has a GID that is not hexadecimal";
		for (i = 0; i < 16; i++)
			if (msg[KEYS_GID + 3 * i + 2] != ':')
				return "has a GID without colons";
		if (msg[KEYS_SRQN + 8] != ':')
			return "is not terminated";
	}
	if (!hex_field(msg + srqn_at, 8, &srqn))
		return "has an SRQ number that is not hexadecimal";
	got.addr.lid = (uint16_t)lid;
	got.addr.qpn = (uint32_t)qpn;
	got.addr.psn = (uint32_t)psn;
	got.out_reads = (uint16_t)reads;
	got.rkey = (uint32_t)rkey;
	got.vaddr = vaddr;
	got.srqn = (uint32_t)srqn;
	*k = got;
	return NULL;
}

static void
put_double(uint8_t *at, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	put_be(at, sizeof(bits), bits);
}

static double
get_double(const uint8_t *at)
{
	uint64_t bits = get_be(at, 8);
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

void
msg_report_encode(uint8_t out[MSG_REPORT_PARTS * MSG_REPORT_PART], const struct msg_report *r)
{
	put_be(out, 8, r->size);
	put_be(out + 8, 8, r->iters);
	put_double(out + 16, r->peak);
	put_double(out + 24, r->average);
	put_double(out + 32, r->rate);
}

const char *
msg_report_decode(const uint8_t *msg, size_t len, struct msg_report *r)
{
	if (len != MSG_REPORT_PARTS * MSG_REPORT_PART)
		return "is cut short";
	r->size = get_be(msg, 8);
	r->iters = get_be(msg + 8, 8);
	r->peak = get_double(msg + 16);
	r->average = get_double(msg + 24);
	r->rate = get_double(msg + 32);
	return NULL;
}

bool
msg_report_usable(const struct msg_report *r)
{
	const double most = 1e12;

	return r->size > 0 && r->iters > 0 && r->peak >= 0 && r->peak < most && r->average >= 0 &&
	       r->average < most && r->rate >= 0 && r->rate < most;
}

void
msg_cycle_of(struct msg_cycle *c, uint32_t size, uint32_t cycle, uint32_t line)
{
	c->step = 0;
	c->slots = 1;
	if (size > cycle / 2)
		return;
	c->step = size > line ? (size + line - 1) / line * line : line;
	c->slots = cycle / c->step;
	if (c->slots == 0)
		c->slots = 1;
}
