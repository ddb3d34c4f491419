/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <string.h>

#include <isa-l/crc.h>

#include "itch.h"

static const uint8_t magic[8] = {'B', 'B', 'I', 'T', 'C', 'H', '1', '\n'};

static void
put(uint8_t *p, uint64_t v, unsigned int bytes)
{
	while (bytes-- > 0) {
		p[bytes] = (uint8_t)v;
		v >>= 8;
	}
}

static uint64_t
get(const uint8_t *p, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes-- > 0)
		v = v << 8 | *p++;
	return v;
}

uint32_t
itch_len(uint8_t type)
{
	switch (type) {
	case ITCH_SYSTEM:
		return 12;
	case ITCH_ADD:
		return 36;
	case ITCH_EXECUTE:
		return 31;
	case ITCH_CANCEL:
		return 23;
	case ITCH_DELETE:
		return 19;
	case ITCH_REPLACE:
		return 35;
	default:
		return 0;
	}
}

uint32_t
itch_encode(const struct itch_msg *m, uint8_t out[ITCH_MAX])
{
	uint32_t len = itch_len(m->type);

	if (len == 0)
		return 0;
	out[0] = m->type;
	put(out + 1, m->locate, 2);
	put(out + 3, m->tracking, 2);
	put(out + 5, m->ns, 6);
	if (m->type == ITCH_SYSTEM) {
		out[11] = (uint8_t)m->side;
		return len;
	}
	put(out + 11, m->ref, 8);
	switch (m->type) {
	case ITCH_ADD:
		out[19] = (uint8_t)m->side;
		put(out + 20, m->shares, 4);
		memcpy(out + 24, m->stock, 8);
		put(out + 32, m->price, 4);
		break;
	case ITCH_EXECUTE:
		put(out + 19, m->shares, 4);
		put(out + 23, m->new_ref, 8);
		break;
	case ITCH_CANCEL:
		put(out + 19, m->shares, 4);
		break;
	case ITCH_REPLACE:
		put(out + 19, m->new_ref, 8);
		put(out + 27, m->shares, 4);
		put(out + 31, m->price, 4);
		break;
	}
	return len;
}

const char *
itch_decode(const uint8_t *in, uint32_t len, struct itch_msg *m)
{
	if (len == 0 || itch_len(in[0]) == 0)
		return "is of an unknown type";
	if (len != itch_len(in[0]))
		return "has not the length of its type";
	memset(m, 0, sizeof(*m));
	m->type = in[0];
	m->locate = (uint16_t)get(in + 1, 2);
	m->tracking = (uint16_t)get(in + 3, 2);
	m->ns = get(in + 5, 6);
	if (m->type == ITCH_SYSTEM) {
		m->side = (char)in[11];
		return NULL;
	}
	m->ref = get(in + 11, 8);
	switch (m->type) {
	case ITCH_ADD:
		m->side = (char)in[19];
		m->shares = (uint32_t)get(in + 20, 4);
		memcpy(m->stock, in + 24, 8);
		m->price = (uint32_t)get(in + 32, 4);
		if (m->side != 'B' && m->side != 'S')
			return "is on neither side";
		break;
	case ITCH_EXECUTE:
		m->shares = (uint32_t)get(in + 19, 4);
		m->new_ref = get(in + 23, 8);
		break;
	case ITCH_CANCEL:
		m->shares = (uint32_t)get(in + 19, 4);
		break;
	case ITCH_DELETE:
		return NULL;
	case ITCH_REPLACE:
		m->new_ref = get(in + 19, 8);
		m->shares = (uint32_t)get(in + 27, 4);
		m->price = (uint32_t)get(in + 31, 4);
		break;
	}
	if (m->shares == 0)
		return "is about no shares";
	if (m->price == 0 && (m->type == ITCH_ADD || m->type == ITCH_REPLACE))
		return "has no price";
	return NULL;
}

uint32_t
itch_crc(uint32_t crc, const uint8_t *p, size_t len)
{
	return len == 0 ? crc : crc32_gzip_refl(crc, p, len);
}

void
itch_header_encode(const struct itch_header *h, uint8_t out[ITCH_HEADER])
{
	memcpy(out, magic, sizeof(magic));
	put(out + 8, h->bytes, 8);
	put(out + 16, h->seed, 8);
	put(out + 24, h->messages, 4);
	put(out + 28, h->symbols, 4);
	put(out + 32, h->max_open, 4);
	put(out + 36, h->crc, 4);
	put(out + 40, 0, 4);
	put(out + 44, itch_crc(0, out, 44), 4);
}

const char *
itch_header_decode(const uint8_t *in, size_t len, struct itch_header *h)
{
	if (len < sizeof(magic) || memcmp(in, magic, sizeof(magic)) != 0)
		return "does not begin as a market data file of hft_pipeline";
	if (len < ITCH_HEADER)
		return "ends inside the header";
	if (get(in + 44, 4) != itch_crc(0, in, 44) || get(in + 40, 4) != 0)
		return "has a damaged header";
	h->bytes = get(in + 8, 8);
	h->seed = get(in + 16, 8);
	h->messages = (uint32_t)get(in + 24, 4);
	h->symbols = (uint32_t)get(in + 28, 4);
	h->max_open = (uint32_t)get(in + 32, 4);
	h->crc = (uint32_t)get(in + 36, 4);
	if (h->symbols == 0 || h->symbols > ITCH_SYMBOLS)
		return "has an impossible number of symbols";
	if (h->messages > h->bytes / (2 + ITCH_MIN))
		return "has more messages than bytes for them";
	if (h->max_open > h->messages)
		return "has more open orders than messages";
	return NULL;
}
