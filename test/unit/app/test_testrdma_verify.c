/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * testrdma --verify on plain memory. memcpy does the operations here, correctly or with one kind
 * of damage, and verification must find every damage.
 */

#include "bb_test.h"
#include "testrdma.h"

#define SLOTS 6
#define PAIRS 2

volatile sig_atomic_t stop_signal;

static struct tester t;
static struct test test;
static struct pair pairs[PAIRS], *flows[PAIRS] = {&pairs[0], &pairs[1]};
static uint64_t failures;

void
report_fail(struct tester *tester, const char *fmt, ...)
{
	(void)fmt;
	failures++;
	tester->test->res.errors++;
}

enum damage {
	NONE,
	FLIP_FIRST, /* one bit of the result flipped */
	FLIP_LAST,
	LOST,
	BEHIND, /* result written 8 bytes too high */
	BEFORE,
	SHORT,  /* last byte missing */
	LONG,   /* one byte too many */
	SOURCE, /* one bit of the source changed */
	OTHER,  /* result of the previous operation */
	DAMAGES,
};

static void
side_init(struct side *s, const char *name)
{
	s->name = name;
	s->len = 2 * EDGE + (size_t)PAIRS * SLOTS * s->lay.stride;
	s->mem = malloc(s->len);
	s->image = malloc(s->lay.stride);
	assert_non_null(s->mem);
	assert_non_null(s->image);
}

static void
setup(const struct engine *e, uint32_t size, uint32_t sgl, uint32_t offset)
{
	memset(&t, 0, sizeof(t));
	memset(&test, 0, sizeof(test));
	failures = 0;
	t.o.seed = 42;
	t.o.mix[MIX_WRITE] = t.o.mix[MIX_READ] = 1;
	t.o.verify = true;
	t.pairs = pairs;
	t.npairs = PAIRS;
	t.flows = flows;
	t.nflows = PAIRS;
	t.test = &test;
	t.scratch = malloc(size);
	test.e = e;
	test.size = size;
	test.slots = SLOTS;
	layout_make(&t.local.lay, size, e->atomic ? 1 : sgl, offset);
	layout_make(&t.remote.lay, size, e->recv_data ? sgl : 1, offset);
	side_init(&t.local, "local");
	side_init(&t.remote, "remote");
	test_fill(&t);
	for (uint32_t i = 0; i < PAIRS; i++) {
		struct pair *p = &pairs[i];

		memset(p, 0, sizeof(*p));
		p->t = &t;
		p->index = i;
		/* Where both ends initiate, the second pair runs in the reverse direction. */
		p->reverse = e->two_way && i == 1;
		p->initiator = p->reverse ? &t.remote : &t.local;
		p->target = p->reverse ? &t.local : &t.remote;
		p->local = p->initiator->mem + EDGE + (size_t)i * SLOTS * p->initiator->lay.stride;
		p->remote = p->target->mem + EDGE + (size_t)i * SLOTS * p->target->lay.stride;
		if (e->start != NULL)
			e->start(p);
	}
}

static void
teardown(void)
{
	free(t.local.mem);
	free(t.local.image);
	free(t.remote.mem);
	free(t.remote.image);
	free(t.scratch);
}

/*
 * Copies a message from, or to, the pieces of a slot. @shift moves the pieces written, in bytes.
 */
static void
gather(uint8_t *buf, const struct layout *lay, const uint8_t *base, uint64_t op)
{
	const uint8_t *slot = base + op % SLOTS * lay->stride;

	for (uint32_t i = 0; i < lay->n; buf += lay->len[i++])
		memcpy(buf, slot + lay->off[i], lay->len[i]);
}

static void
scatter(const struct layout *lay, uint8_t *base, uint64_t op, const uint8_t *buf, int shift,
	uint32_t skip_last)
{
	uint8_t *slot = base + op % SLOTS * lay->stride;

	for (uint32_t i = 0; i < lay->n; buf += lay->len[i++])
		memcpy(slot + lay->off[i] + shift, buf,
		       lay->len[i] - (i + 1 == lay->n ? skip_last : 0));
}

static void
do_data(struct pair *p, uint64_t op, enum damage damage)
{
	bool out = op_engine(p, op)->to_target;
	struct layout *from = out ? &p->initiator->lay : &p->target->lay;
	struct layout *to = out ? &p->target->lay : &p->initiator->lay;
	uint8_t *src = out ? p->local : p->remote, *dst = out ? p->remote : p->local;
	uint8_t *buf = malloc(test.size + 1), *end;

	gather(buf, from, src, damage == OTHER ? op - 1 : op);
	buf[0] ^= damage == FLIP_FIRST ? 0x80 : 0;
	buf[test.size - 1] ^= damage == FLIP_LAST ? 1 : 0;
	if (damage != LOST)
		scatter(to, dst, op, buf,
			damage == BEHIND   ? 8
			: damage == BEFORE ? -8
					   : 0,
			damage == SHORT);
	if (damage == LONG) {
		end = dst + op % SLOTS * to->stride + to->off[to->n - 1] + to->len[to->n - 1];
		*end = (uint8_t) ~*end;
	}
	if (damage == SOURCE)
		src[op % SLOTS * from->stride + from->off[0]] ^= 4;
	free(buf);
}

/* Runs one round of all slots on both pairs; one operation of the second pair has @damage. */
static void
data_round(enum damage damage)
{
	for (uint32_t i = 0; i < PAIRS; i++)
		test.e->prepare(&pairs[i], pairs[i].posted, SLOTS);
	for (uint32_t i = 0; i < PAIRS; i++) {
		for (uint32_t n = 0; n < SLOTS; n++) {
			uint64_t op = pairs[i].posted + n;

			assert_true(test.size == 1 ||
				    !op_engine(&pairs[i], op)->arrived(&pairs[i], op));
			do_data(&pairs[i], op, i == 1 && n == 4 ? damage : NONE);
		}
		pairs[i].posted += SLOTS;
		pairs[i].done = pairs[i].posted;
	}
	for (uint32_t n = 0; n < SLOTS && damage == NONE; n++)
		assert_true(op_engine(&pairs[0], pairs[0].done - 1 - n)
				    ->arrived(&pairs[0], pairs[0].done - 1 - n));
	round_verify(&t, PAIRS, SLOTS);
}

static void
check_data(const struct engine *e)
{
	static const uint32_t sizes[] = {1, 7, 8, 64, 100, 4096};

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (unsigned int sgl = 1; sgl <= 3; sgl += 2) {
			for (unsigned int offset = 0; offset < 64; offset += 21) {
				for (unsigned int damage = NONE; damage < DAMAGES; damage++) {
					setup(e, sizes[i], sgl, offset);
					data_round(NONE);
					assert_int_equal(failures, 0);
					assert_int_equal(test.res.bytes, PAIRS * SLOTS * sizes[i]);
					data_round((enum damage)damage);
					assert_int_equal(failures != 0, damage != NONE);
					teardown();
				}
			}
		}
	}
}

TEST(test_every_data_engine_detects_wrong_data)
{
	static const char *const names[] = {"write",    "read",     "send",  "write_imm",
					    "send_imm", "pingpong", "mixed", "bidirectional"};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		check_data(engine_find(names[i], strlen(names[i])));
}

/* Changes every byte of a region in turn; each change must be detected. */
TEST(test_change_of_any_byte_is_detected)
{
	const struct engine *e = engine_find("read", 4);
	struct side *side;

	setup(e, 24, 2, 3);
	data_round(NONE);
	for (side = &t.local;; side = &t.remote) {
		for (size_t i = 0; i < side->len; i++) {
			failures = 0;
			side->mem[i] ^= (uint8_t)(1 << i % 8);
			round_verify(&t, PAIRS, SLOTS);
			assert_int_equal(failures, 1);
			side->mem[i] ^= (uint8_t)(1 << i % 8);
		}
		if (side == &t.remote)
			break;
	}
	teardown();
}

/* A completion seen before its result counts as late if memory is right in the end. */
TEST(test_result_after_its_completion_counts_as_late)
{
	setup(engine_find("write", 5), 64, 1, 0);
	test.res.late = 3;
	data_round(NONE);
	assert_int_equal(failures, 1);
	assert_int_equal(test.res.late, 0);
	teardown();
}

/* Checks completions of an operation whose data has not moved yet. */
static void
check_no_result_yet(const char *name)
{
	const struct engine *e = engine_find(name, strlen(name));
	static struct bb_qp qp;
	struct pair *p = &pairs[0];
	struct bb_wc wc;

	setup(e, 64, 1, 0);
	test.signal_every = 1;
	test.e->prepare(p, 0, SLOTS);
	qp.user = p;
	p->qp = p->peer = &qp;
	p->in = p;
	p->posted = p->recv_posted = p->end = 1;
	e = op_engine(p, 0);
	wc = (struct bb_wc){.qp = &qp, .opcode = e->wc_opcode, .byte_len = test.size};
	send_completed(&t, &wc);
	assert_int_equal(p->done, 1);
	/* The sender's completion does not prove that the data of a SEND arrived. */
	assert_int_equal(test.res.late, !e->recv_data);
	if (e->recv) {
		wc.wr_id = WR_RECV;
		wc.opcode = e->recv_opcode;
		wc.flags = e->imm ? BB_WC_WITH_IMM : 0;
		wc.imm = op_imm(p, 0);
		test.res.late = 0;
		recv_completed(&t, &wc);
		assert_int_equal(p->recv_done, 1);
		assert_int_equal(test.res.late, 1);
	}
	assert_int_equal(failures, 0);
	teardown();
}

TEST(test_late_data_of_a_send_show_at_its_receive_alone)
{
	static const char *const names[] = {"write",    "read",     "send",  "write_imm",
					    "send_imm", "pingpong", "mixed", "bidirectional"};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		check_no_result_yet(names[i]);
}

enum word_damage {
	WORD_NONE,
	ADD_LOST,    /* old value right, memory not changed */
	ADD_TWICE,   /* memory changed twice by the same operation */
	OLD_LOST,    /* memory right, no old value */
	OLD_NEW,     /* new value returned instead of the old one */
	OLD_BIT,     /* one bit of the old value flipped */
	OLD_BEHIND,  /* old value written 8 bytes too high */
	WORD_BIT,    /* memory changes after the operation */
	NEIGHBOUR,   /* the following word changed */
	UNNAMED,     /* the word of another slot changed */
	SWAP_ALWAYS, /* swapped without comparison */
	SWAP_NEVER,
	WORD_DAMAGES,
};

/* Executes an atomic WQE as the device would, with @damage. */
static void
do_atomic(const uint8_t *wqe, enum word_damage damage)
{
	const struct bb_wqe_raddr *raddr = (const void *)(wqe + 16);
	const struct bb_wqe_atomic *a = (const void *)(wqe + 32);
	const struct bb_wqe_data *data = (const void *)(wqe + 48);
	uint64_t *word = (uint64_t *)(uintptr_t)bb_be64(raddr->raddr);
	uint8_t *result = (uint8_t *)(uintptr_t)bb_be64(data->addr);
	uint64_t old = *word, add = bb_be64(a->swap_add), back;
	bool add_op = wqe[3] == BB_WQE_ATOMIC_FA, hit = old == bb_be64(a->compare);

	if (damage == SWAP_ALWAYS)
		hit = true;
	if (damage == SWAP_NEVER)
		hit = false;
	if (add_op && damage != ADD_LOST)
		*word = old + add * (damage == ADD_TWICE ? 2 : 1);
	else if (!add_op && hit && damage != ADD_LOST)
		*word = add;
	back = damage == OLD_NEW ? *word : damage == OLD_BIT ? old ^ 1u << 20 : old;
	if (damage != OLD_LOST)
		memcpy(result + (damage == OLD_BEHIND ? 8 : 0), &back, 8);
	if (damage == WORD_BIT)
		*word ^= 1;
	if (damage == NEIGHBOUR)
		word[1]++;
	if (damage == UNNAMED)
		word[t.remote.lay.stride / 8]++;
}

static void
atomic_round(struct bb_qp *qp, enum word_damage damage, uint32_t victim)
{
	struct pair *p = &pairs[1];
	uint64_t first = p->posted;

	p->qp = qp;
	test.e->prepare(p, first, SLOTS);
	assert_int_equal(test.e->post(p, SLOTS), SLOTS);
	for (uint32_t n = 0; n < SLOTS; n++) {
		assert_false(test.e->arrived(p, first + n));
		do_atomic(qp->sq.buf + (first + n) % 64 * 64, n == victim ? damage : WORD_NONE);
		if (damage == WORD_NONE)
			assert_true(test.e->arrived(p, first + n));
	}
	p->done = p->posted;
	p->qp->sq.done = p->qp->sq.seq;
	test.e->verify(p, first, SLOTS);
	guards_verify(&t, PAIRS);
}

static void
queue_init(struct bb_qp *qp)
{
	static uint8_t buf[64 * 64] __attribute__((aligned(64)));
	static struct bb_sq_wqe wqes[64];
	static uint32_t dbrec[2];
	static uint64_t reg[32];
	const struct bb_sq_conf conf = {
		.buf = buf,
		.wqes = wqes,
		.blocks = 64,
		.qpn = 1,
		.depth = 64,
		.max_sge = 1,
		.sig_every = 1,
		.dbrec = dbrec,
		.reg = reg,
		.owner = UINT32_MAX,
	};

	memset(qp, 0, sizeof(*qp));
	assert_int_equal(bb_sq_init(&qp->sq, &conf), 0);
	bb_sq_enable(&qp->sq, true);
}

/* Damage at every slot of the round. A failed CMP_SWAP hides damage that only a swap shows. */
static void
check_atomic(const char *name)
{
	const struct engine *e = engine_find(name, strlen(name));
	bool swap = strcmp(name, "cmp_swap") == 0;
	static struct bb_mr lmr, rmr;
	static struct bb_qp qp;

	for (unsigned int damage = WORD_NONE; damage < WORD_DAMAGES; damage++) {
		for (uint32_t victim = 0; victim < SLOTS; victim++) {
			bool refused = swap && victim % 3 == 2, hidden;

			hidden = damage == WORD_NONE ||
				 (refused && (damage == ADD_LOST || damage == OLD_NEW ||
					      damage == SWAP_NEVER)) ||
				 (swap && damage == ADD_TWICE) ||
				 (!refused && damage == SWAP_ALWAYS) ||
				 (!swap && damage == SWAP_NEVER);
			setup(e, 8, 1, 0);
			t.local.mr = &lmr;
			t.remote.mr = &rmr;
			pairs[1].target_rkey = rmr.rkey;
			queue_init(&qp);
			pairs[1].end = pairs[1].sig_at = UINT64_MAX;
			atomic_round(&qp, WORD_NONE, 0);
			assert_int_equal(failures, 0);
			atomic_round(&qp, (enum word_damage)damage, victim);
			assert_int_equal(failures != 0, !hidden);
			teardown();
		}
	}
}

TEST(test_wrong_fetch_add_is_detected)
{
	check_atomic("fetch_add");
}

TEST(test_wrong_cmp_swap_is_detected)
{
	check_atomic("cmp_swap");
}

TEST_MAIN(0)
