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

/* Load big endian integers without loops over bytes, because this is on the data path. */
static inline uint32_t
get2(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static inline uint32_t
get4(const uint8_t *p)
{
	return get2(p) << 16 | get2(p + 2);
}

static inline uint64_t
get6(const uint8_t *p)
{
	return (uint64_t)get2(p) << 32 | get4(p + 2);
}

static inline uint64_t
get8(const uint8_t *p)
{
	return (uint64_t)get4(p) << 32 | get4(p + 4);
}

/* Uses a table instead of branches, because no branch predictor can predict the next type. */
uint32_t
itch_len(uint8_t type)
{
	static const uint8_t len[256] = {
		[ITCH_SYSTEM] = 12, [ITCH_ADD] = 36,    [ITCH_EXECUTE] = 31,
		[ITCH_CANCEL] = 23, [ITCH_DELETE] = 19, [ITCH_REPLACE] = 35,
	};

	return len[type];
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
	uint32_t want = len == 0 ? 0 : itch_len(in[0]);

	if (want == 0)
		return "has an unknown type";
	if (len != want)
		return "has a wrong length for its type";
	memset(m, 0, sizeof(*m));
	m->type = in[0];
	m->locate = (uint16_t)get2(in + 1);
	m->tracking = (uint16_t)get2(in + 3);
	m->ns = get6(in + 5);
	if (m->type == ITCH_SYSTEM) {
		m->side = (char)in[11];
		return NULL;
	}
	m->ref = get8(in + 11);
	switch (m->type) {
	case ITCH_ADD:
		m->side = (char)in[19];
		m->shares = get4(in + 20);
		memcpy(m->stock, in + 24, 8);
		m->price = get4(in + 32);
		if (m->side != 'B' && m->side != 'S')
			return "is neither buy nor sell";
		break;
	case ITCH_EXECUTE:
		m->shares = get4(in + 19);
		m->new_ref = get8(in + 23);
		break;
	case ITCH_CANCEL:
		m->shares = get4(in + 19);
		break;
	case ITCH_DELETE:
		return NULL;
	case ITCH_REPLACE:
		m->new_ref = get8(in + 19);
		m->shares = get4(in + 27);
		m->price = get4(in + 31);
		break;
	}
	if (m->shares == 0)
		return "has no shares";
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
		return "is not a market data file of hft_pipeline";
	if (len < ITCH_HEADER)
		return "ends inside the header";
	if (get4(in + 44) != itch_crc(0, in, 44) || get4(in + 40) != 0)
		return "has a damaged header";
	h->bytes = get8(in + 8);
	h->seed = get8(in + 16);
	h->messages = get4(in + 24);
	h->symbols = get4(in + 28);
	h->max_open = get4(in + 32);
	h->crc = get4(in + 36);
	if (h->symbols == 0 || h->symbols > ITCH_SYMBOLS)
		return "has a number of symbols out of range";
	if (h->messages > h->bytes / (2 + ITCH_MIN))
		return "has fewer bytes than its messages need";
	if (h->max_open > h->messages)
		return "has more open orders than messages";
	return NULL;
}
