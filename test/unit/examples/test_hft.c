/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* examples/hft_pipeline without transport: format, file, books, strategy, risk, replay. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bb_test.h"
#include "generate.h"
#include "pauses.h"
#include "replay.h"

static const struct params params = {
	.symbols = 8,
	.max_orders = GENERATE_MAX_OPEN,
	.imbalance = 3,
	.shares = 100,
	.max_shares = 300,
	.max_position = 2000,
	.max_rate = 1000,
	.collar = 1000,
};

static uint64_t rng = 1;

static uint32_t
rnd(uint32_t n)
{
	rng = rng * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(rng >> 33) % n;
}

static void
make(uint32_t messages, uint64_t seed, uint8_t **image, size_t *size)
{
	struct generate g = {seed, messages, 8};

	assert_int_equal(generate(&g, image, size), 0);
}

static void
load(struct itch_file *f, uint32_t messages, uint64_t seed)
{
	struct itch_fault fault;
	uint8_t *image;
	size_t size;

	make(messages, seed, &image, &size);
	assert_int_equal(itch_file_open(f, image, size, &fault), 0);
	assert_fields(f->h, messages, messages, seed, seed);
}

/* Bytes written by hand from the tables of the specification. */
TEST(test_image_has_the_bytes_of_the_specification)
{
	static const uint8_t add[36] = {
		'A',  0,   7,   0,   9,   0x1f, 0x1a, 0xce, 0xd9, 0xf0, 0, /* type to time */
		0,    0,   0,   0,   0,   0,    1,    2,    'S',  0,    0,    1,
		0x2c, /* reference, side, shares */
		'B',  'B', ' ', ' ', ' ', ' ',  ' ',  ' ',  0,    0x0f, 0x42, 0x40,
	};
	static const uint8_t types[] = {'S', 'A', 'E', 'X', 'D', 'U'};
	static const uint32_t lens[] = {12, 36, 31, 23, 19, 35};
	struct itch_msg m, again;
	uint8_t bytes[ITCH_MAX];

	assert_null(itch_decode(add, sizeof(add), &m));
	assert_fields(m, locate, 7, tracking, 9, ns, UINT64_C(34200000000000), ref, 258, side, 'S');
	assert_int_equal(m.shares, 300);
	assert_memory_equal(m.stock, "BB      ", 8);
	assert_int_equal(m.price, 1000000);
	assert_int_equal(itch_encode(&m, bytes), 36);
	assert_memory_equal(bytes, add, 36);
	for (unsigned int i = 0; i < sizeof(types); i++) {
		memset(bytes, 'B', sizeof(bytes));
		bytes[0] = types[i];
		assert_int_equal(itch_len(types[i]), lens[i]);
		assert_null(itch_decode(bytes, lens[i], &m));
		assert_non_null(itch_decode(bytes, lens[i] - 1, &m));
		assert_non_null(itch_decode(bytes, lens[i] + 1, &m));
		assert_null(itch_decode(bytes, lens[i], &m));
		memset(bytes, 0, sizeof(bytes));
		assert_int_equal(itch_encode(&m, bytes), lens[i]);
		assert_null(itch_decode(bytes, lens[i], &again));
		assert_memory_equal(&m, &again, sizeof(m));
	}
	assert_non_null(itch_decode(bytes, 0, &m));
	m.type = 'z';
	assert_int_equal(itch_encode(&m, bytes), 0);
	m = (struct itch_msg){.type = ITCH_ADD, .side = 'Q', .shares = 1, .price = 1};
	itch_encode(&m, bytes);
	assert_non_null(itch_decode(bytes, 36, &again));
	m.side = 'B';
	m.shares = 0;
	itch_encode(&m, bytes);
	assert_non_null(itch_decode(bytes, 36, &again));
}

static int
try_open(const uint8_t *image, size_t size, struct itch_fault *fault)
{
	uint8_t *copy = malloc(size + 1);
	struct itch_file f;
	int rc;

	assert_non_null(copy);
	memcpy(copy, image, size);
	rc = itch_file_open(&f, copy, size, fault);
	itch_file_free(&f);
	return rc;
}

TEST(test_damaged_or_cut_file_is_refused_with_a_reason)
{
	struct itch_fault fault;
	uint8_t *image, *more;
	size_t size;

	make(150, 3, &image, &size);
	assert_int_equal(try_open(image, size, &fault), 0);
	for (size_t i = 0; i < size; i++) {
		const uint8_t whole = image[i];

		image[i] ^= (uint8_t)(1 + rnd(255));
		fault.what = NULL;
		assert_int_equal(try_open(image, size, &fault), -EBADMSG);
		/* The error may be reported at the next message. */
		assert_non_null(fault.what);
		assert_true(fault.offset < size);
		image[i] = whole;
	}
	for (size_t i = 0; i < size; i++) {
		fault.what = NULL;
		assert_int_equal(try_open(image, i, &fault), -EBADMSG);
		assert_non_null(fault.what);
		assert_true(fault.offset <= i);
	}
	more = calloc(1, size + 1);
	memcpy(more, image, size);
	assert_int_equal(try_open(more, size + 1, &fault), -EBADMSG);
	free(more);
	free(image);
}

TEST(test_invalid_contents_with_right_checksums_are_refused)
{
	struct itch_fault fault;
	struct itch_header h;
	uint8_t *image;
	size_t size;

	for (unsigned int i = 0; i < 8; i++) {
		make(50, 3, &image, &size);
		assert_null(itch_header_decode(image, size, &h));
		switch (i) {
		case 0:
			h.messages = 51;
			break;
		case 1:
			h.messages = 49;
			break;
		case 2:
			h.messages = UINT32_MAX;
			h.bytes = UINT64_MAX;
			break;
		case 3:
			h.symbols = 1;
			break;
		case 4:
			h.symbols = ITCH_SYMBOLS + 1;
			break;
		case 5:
			h.max_open = 51;
			break;
		case 6: /* time goes back */
			image[ITCH_HEADER + 2 + 5] = 0xff;
			h.crc = itch_crc(0, image + ITCH_HEADER, size - ITCH_HEADER);
			break;
		case 7:
			h.symbols = 0;
			break;
		}
		itch_header_encode(&h, image);
		assert_int_equal(try_open(image, size, &fault), -EBADMSG);
		free(image);
	}
}

TEST(test_file_reads_back_and_an_empty_one_is_refused)
{
	char path[] = "/tmp/hft.XXXXXX";
	int fd = mkstemp(path);
	struct itch_fault fault;
	struct itch_file f;
	uint8_t *image;
	size_t size;

	assert_true(fd >= 0);
	make(1000, 5, &image, &size);
	assert_int_equal(write(fd, image, size), size);
	assert_int_equal(itch_file_read(&f, path, &fault), 0);
	assert_int_equal(f.size, size);
	assert_memory_equal(f.image, image, size);
	itch_file_free(&f);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(itch_file_read(&f, path, &fault), -EBADMSG);
	itch_file_free(&f);
	close(fd);
	unlink(path);
	assert_int_equal(itch_file_read(&f, path, &fault), -ENOENT);
	assert_int_equal(itch_file_read(&f, "/", &fault), -EISDIR);
	free(image);
}

/* Reference books: look at all orders every time. */
#define PLAIN 64
static struct {
	uint64_t ref;
	uint32_t shares, price;
	uint16_t locate;
	char side;
} plain[PLAIN];

static struct book_top
plain_top(uint16_t locate)
{
	struct book_top t = {0, 0, 0, 0};

	for (unsigned int i = 0; i < PLAIN; i++) {
		if (plain[i].ref == 0 || plain[i].locate != locate)
			continue;
		if (plain[i].side == 'B') {
			if (plain[i].price > t.bid) {
				t.bid = plain[i].price;
				t.bid_shares = 0;
			}
			t.bid_shares += plain[i].price == t.bid ? plain[i].shares : 0;
		} else {
			if (t.ask == 0 || plain[i].price < t.ask) {
				t.ask = plain[i].price;
				t.ask_shares = 0;
			}
			t.ask_shares += plain[i].price == t.ask ? plain[i].shares : 0;
		}
	}
	return t;
}

/*
 * Few prices, so that orders share them; more than the first search covers; and both ends of the
 * range.
 */
static uint32_t
any_price(void)
{
	uint32_t n = rnd(32);

	return n < 30 ? 1 + n : UINT32_MAX - (n - 30);
}

TEST(test_book_equals_a_plain_model)
{
	struct book *b = book_new(2, PLAIN);
	uint64_t ref = 0, before;
	struct book_top top;
	uint32_t i, k;

	memset(plain, 0, sizeof(plain));
	for (uint32_t step = 0; step < 60000; step++) {
		struct itch_msg m = {.locate = 0};

		i = rnd(PLAIN);
		m.locate = plain[i].locate;
		m.ref = plain[i].ref;
		if (plain[i].ref == 0) {
			m = (struct itch_msg){.type = ITCH_ADD,
					      .locate = (uint16_t)(1 + rnd(2)),
					      .side = rnd(2) ? 'B' : 'S',
					      .ref = ++ref,
					      .shares = 1 + rnd(50),
					      .price = any_price()};
			plain[i].ref = m.ref;
			plain[i].locate = m.locate;
			plain[i].side = m.side;
			plain[i].shares = m.shares;
			plain[i].price = m.price;
		} else if ((k = rnd(8)) < 4) {
			m.type = k < 2 ? ITCH_EXECUTE : ITCH_CANCEL;
			m.shares = 1 + rnd(plain[i].shares);
			plain[i].shares -= m.shares;
			if (plain[i].shares == 0)
				plain[i].ref = 0;
		} else if (k < 6) {
			m.type = ITCH_REPLACE;
			m.new_ref = ++ref;
			m.shares = 1 + rnd(50);
			m.price = any_price();
			plain[i].ref = m.new_ref;
			plain[i].shares = m.shares;
			plain[i].price = m.price;
		} else {
			m.type = ITCH_DELETE;
			plain[i].ref = 0;
		}
		assert_null(book_apply(b, &m));
		top = plain_top(m.locate);
		assert_int_equal(book_top_of(b, m.locate).bid, top.bid);
		assert_int_equal(book_top_of(b, m.locate).bid_shares, top.bid_shares);
		assert_int_equal(book_top_of(b, m.locate).ask, top.ask);
		assert_int_equal(book_top_of(b, m.locate).ask_shares, top.ask_shares);
	}
	/* Turns without a message touch the whole book, repeatedly, and change nothing. */
	before = book_digest(b);
	for (i = 0; i < 100000; i++)
		book_warm(b);
	assert_int_equal(book_digest(b), before);
	/* A message that does not fit the book is rejected and changes nothing. */
	for (i = 0; plain[i].ref == 0; i++)
		;
	{
		struct itch_msg bad[] = {
			{.type = ITCH_ADD,
			 .locate = 1,
			 .ref = plain[i].ref,
			 .side = 'B',
			 .shares = 1,
			 .price = 1},
			{.type = ITCH_ADD,
			 .locate = 1,
			 .ref = 0,
			 .side = 'B',
			 .shares = 1,
			 .price = 1},
			{.type = ITCH_ADD,
			 .locate = 3,
			 .ref = ref + 1,
			 .side = 'B',
			 .shares = 1,
			 .price = 1},
			{.type = ITCH_DELETE, .locate = 1, .ref = ref + 1},
			{.type = ITCH_DELETE, .locate = 0, .ref = plain[i].ref},
			{.type = ITCH_DELETE,
			 .locate = (uint16_t)(3 - plain[i].locate),
			 .ref = plain[i].ref},
			{.type = ITCH_CANCEL,
			 .locate = plain[i].locate,
			 .ref = plain[i].ref,
			 .shares = plain[i].shares + 1},
			{.type = ITCH_REPLACE,
			 .locate = plain[i].locate,
			 .ref = plain[i].ref,
			 .new_ref = plain[i].ref,
			 .shares = 1,
			 .price = 1},
			{.type = 'z', .locate = plain[i].locate, .ref = plain[i].ref},
		};

		before = book_digest(b);
		for (k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
			assert_non_null(book_apply(b, &bad[k]));
		assert_int_equal(book_digest(b), before);
	}
	for (i = 0; i < PLAIN; i++) {
		struct itch_msg m = {.type = ITCH_DELETE};

		m.ref = plain[i].ref;
		m.locate = plain[i].locate;
		if (m.ref != 0)
			assert_null(book_apply(b, &m));
	}
	assert_int_equal(book_open(b), 0);
	book_free(b);
}

TEST(test_full_book_refuses_one_more_level)
{
	struct itch_msg m = {.type = ITCH_ADD, .locate = 1, .side = 'S', .shares = 1};
	struct book *b = book_new(1, 2 * BOOK_LEVELS);
	uint64_t digest;

	for (m.ref = 1; m.ref <= BOOK_LEVELS; m.ref++) {
		m.price = (uint32_t)(m.ref * 7919 % 100003);
		assert_null(book_apply(b, &m));
	}
	digest = book_digest(b);
	m.price = 200000;
	assert_non_null(book_apply(b, &m));
	m.type = ITCH_REPLACE;
	m.new_ref = m.ref;
	m.ref = 5;
	/* The price level is freed, so another one fits. */
	assert_null(book_apply(b, &m));
	assert_int_not_equal(book_digest(b), digest);
	book_free(b);
	b = book_new(1, 1);
	m = (struct itch_msg){
		.type = ITCH_ADD, .locate = 1, .side = 'B', .shares = 1, .price = 5, .ref = 1};
	assert_null(book_apply(b, &m));
	m.ref = 2;
	assert_non_null(book_apply(b, &m));
	book_free(b);
}

TEST(test_replay_detects_missing_and_replaced_messages)
{
	struct replay all, again, less;
	struct params few = params;
	struct itch_file f, g;
	uint32_t i, same = 0;
	const uint8_t *was;

	load(&f, 20000, 1);
	load(&g, 20000, 1);
	assert_int_equal(f.size, g.size);
	assert_memory_equal(f.image, g.image, f.size);
	itch_file_free(&g);
	load(&g, 20000, 2);
	assert_int_equal(replay(&all, &f, f.h.messages, &params), 0);
	assert_int_equal(all.wrong, 0);
	assert_true(all.norders > 100);
	assert_true(all.quotes > 1000);
	for (i = RISK_KILLED + 1; i < RISK_REASONS; i++)
		if (i != RISK_COLLAR && i != RISK_RATE)
			assert_true(all.stopped[i] > 0);
	assert_int_equal(all.stopped[RISK_KILLED], 0);
	assert_int_equal(replay(&again, &f, f.h.messages, &params), 0);
	assert_fields(again, digest, all.digest, norders, all.norders);
	assert_memory_equal(again.orders, all.orders, all.norders * sizeof(*all.orders));
	replay_free(&again);
	assert_int_equal(replay(&again, &g, g.h.messages, &params), 0);
	assert_int_not_equal(again.digest, all.digest);
	replay_free(&again);
	/* A message is repeated in place of the next one. */
	few.max_orders = 2048; /* more than 1200 messages open */
	assert_int_equal(replay(&again, &f, 1200, &few), 0);
	for (i = 100; i < 1100; i++) {
		was = f.msg[i];
		f.msg[i] = f.msg[i - 1];
		assert_int_equal(replay(&less, &f, 1200, &few), 0);
		f.msg[i] = was;
		same += less.digest == again.digest && less.wrong == 0;
		replay_free(&less);
	}
	replay_free(&again);
	assert_int_equal(same, 0);
	replay_free(&all);
	itch_file_free(&f);
	itch_file_free(&g);
}

static union hft_msg
order(char side, uint32_t shares, uint64_t ns)
{
	union hft_msg m = {.bytes = {0}};

	m.kind = MSG_ORDER;
	m.order.side = side;
	m.order.locate = 1;
	m.order.shares = shares;
	m.order.bid = 99900;
	m.order.ask = 100100;
	m.order.price = side == 'B' ? m.order.ask : m.order.bid;
	m.order.ns = ns;
	return m;
}

TEST(test_risk_stage_stops_orders_over_its_limits)
{
	union hft_msg m, out[STAGE_OUT];
	struct params p = params;
	struct risk_stage s;
	uint64_t kill = 0;

	p.max_rate = 3;
	p.max_position = 500;
	assert_int_equal(risk_stage_open(&s, &p, &kill), 0);
	m = order('B', 301, 1);
	assert_int_equal(risk_stage(&s, &m, out), 0);
	assert_int_equal(s.stopped[RISK_SHARES], 1);
	m = order('B', 300, 1);
	assert_int_equal(risk_stage(&s, &m, out), 1);
	assert_int_equal(out->order.seq, 0);
	/* Warm-up orders pass, whatever they contain, and change nothing. */
	for (uint32_t i = 0; i < 10; i++) {
		m = order('S', i % 2 == 0 ? 300 : 301, i % 3 == 0 ? 1 : 5000000000);
		m.kind = MSG_WARM;
		m.order.seq = i;
		assert_int_equal(risk_stage(&s, &m, out), 1);
		assert_int_equal(out->kind, MSG_WARM);
	}
	m = order('B', 300, 1);
	assert_int_equal(risk_stage(&s, &m, out), 0);
	assert_fields(s, stopped[RISK_SHARES], 1, stopped[RISK_POSITION], 1);
	m = order('S', 300, 1);
	assert_int_equal(risk_stage(&s, &m, out), 1);
	assert_int_equal(risk_stage(&s, &m, out), 1);
	assert_int_equal(out->order.seq, 2);
	m = order('B', 100, 999999999);
	assert_int_equal(risk_stage(&s, &m, out), 0);
	assert_int_equal(s.stopped[RISK_RATE], 1);
	m = order('B', 100, 1000000000);
	assert_int_equal(risk_stage(&s, &m, out), 1);
	m.order.bid = m.order.price - 2 * p.collar - 2;
	assert_int_equal(risk_stage(&s, &m, out), 0);
	assert_int_equal(s.stopped[RISK_COLLAR], 1);
	kill = 1;
	m = order('B', 100, 3000000000);
	assert_int_equal(risk_stage(&s, &m, out), 0);
	assert_int_equal(s.stopped[RISK_KILLED], 1);
	m.order.locate = 0;
	assert_int_equal(risk_stage(&s, &m, out), 0);
	m.order.locate = (uint16_t)(p.symbols + 1);
	assert_int_equal(risk_stage(&s, &m, out), 0);
	risk_stage_close(&s);
}

TEST(test_order_check_counts_lost_and_repeated)
{
	struct order_check c = {0, 0, 0};
	static const uint32_t come[] = {0, 1, 1, 3, 2, 4, 7};

	for (unsigned int i = 0; i < 7; i++)
		order_check(&c, come[i]);
	assert_fields(c, next, 8, lost, 3, twice, 2);
}

TEST(test_pause_over_the_limit_is_counted)
{
	struct pauses s = {.last_check = 1000, .limit = 100};

	pauses_look(&s, 1100);
	assert_int_equal(s.n, 0);
	assert_false(s.delayed);
	pauses_look(&s, 1300);
	assert_true(s.delayed);
	s.delayed = false;
	pauses_look(&s, 1400);
	assert_false(s.delayed);
	pauses_look(&s, 1501);
	assert_true(s.delayed);
	assert_fields(s, n, 2, total, 301, longest, 200, end, 1501);
}

TEST_MAIN(0)
