/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Memory that another process of the host can write. It has handshake messages, the ring with its
 * packets, its read index in our ring, and its tables of keys and QPs.
 *
 * Invariants: no access outside the ring. Packets and memory that are found lie in the ring or in
 * a window. Every step ends.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "soft_shm.h"

#define MAX_STEPS 256
#define WINDOW    65536u

enum step {
	STEP_WRITE,   /* writes bytes to its ring, near our read position or anywhere */
	STEP_RECEIVE, /* receives packets */
	STEP_HEAD,    /* writes the index up to which it has read our ring */
	STEP_SEND,    /* sends packets to it */
	STEP_MESSAGE, /* a handshake message */
	STEP_KEY,     /* writes an entry and looks it up */
	STEPS,
};

struct world {
	struct fuzz_in in;
	uint8_t *theirs, *ours; /* rings */
	uint64_t our_head, their_head;
	struct soft_ring_rx rx;
	struct soft_ring_tx tx;
};

/* Allocated with the exact size, so that a sanitizer detects accesses outside it. */
static uint8_t *
ring(void)
{
	void *p;

	check(posix_memalign(&p, 64, SOFT_RING_SIZE) == 0, "memory");
	return memset(p, 0, SOFT_RING_SIZE);
}

static void
step_write(struct world *w)
{
	uint8_t where = fuzz_u8(&w->in), n = fuzz_u8(&w->in);
	uint64_t at = where < 128 ? w->rx.head + where : (uint64_t)fuzz_u32(&w->in);

	while (n-- != 0)
		w->theirs[at++ % SOFT_RING_SIZE] = fuzz_u8(&w->in);
}

static void
step_receive(struct world *w)
{
	struct soft_ring_rec rec;
	const uint8_t *p;
	uint32_t i, sum = 0, n;

	for (n = 0; n < 32 && (p = soft_ring_peek(&w->rx, &rec)) != NULL; n++) {
		check(rec.len != 0 && rec.len <= SOFT_RING_MAX && p >= w->theirs &&
			      p + rec.len <= w->theirs + SOFT_RING_SIZE,
		      "a packet outside the ring");
		for (i = 0; i < rec.len; i++)
			sum += p[i];
		soft_ring_pop(&w->rx);
	}
	soft_ring_release(&w->rx);
	w->their_head += sum & 0;
}

static void
step_send(struct world *w)
{
	uint32_t n = fuzz_u8(&w->in), len = fuzz_u16(&w->in) % (SOFT_RING_MAX + 16);

	while (n-- != 0) {
		struct soft_ring_rec *rec = soft_ring_reserve(&w->tx, len);

		if (rec == NULL)
			return;
		check((uint8_t *)rec >= w->ours &&
			      (uint8_t *)(rec + 1) + len <= w->ours + SOFT_RING_SIZE,
		      "room outside the ring");
		memset(rec + 1, 0xff, len);
		soft_ring_publish(&w->tx, rec, len);
	}
}

static void
step_message(struct world *w)
{
	struct soft_shm_msg m;
	uint8_t *p = (uint8_t *)&m;
	uint8_t flags = fuzz_u8(&w->in);

	soft_shm_msg_init(&m, (enum soft_shm_type)(flags % SOFT_SHM_TYPES));
	for (size_t i = flags & 0x80 ? 0 : 8; i < 64; i++)
		p[i] = fuzz_u8(&w->in);
	if (soft_shm_msg_check(&m, sizeof(m) - (flags >> 6 & 1), flags >> 4 & 3,
			       (flags & 8) != 0) != NULL)
		return;
	check(m.type != SOFT_SHM_HELLO || m.u.hello.n_gids <= SOFT_SHM_GIDS, "too many addresses");
	check(m.type != SOFT_SHM_SEGMENT || m.u.segment.slot < SOFT_SHM_SEGS, "no such segment");
}

static struct soft_shm_dir dir;
static uint8_t memory[WINDOW];

static void
step_key(struct world *w)
{
	static struct soft_shm_window win = {.base = memory, .off = 4096, .len = WINDOW, .gen = 3};
	static struct soft_shm_tx tx = {.dir = &dir};
	uint32_t key = fuzz_u32(&w->in) & 0xffffff, i;
	struct soft_shm_key *k = &dir.keys[key >> 8];
	struct soft_shm_cached_key n = {0};
	uint8_t *p = (uint8_t *)k, flags = fuzz_u8(&w->in);

	tx.win[5] = &win;
	for (i = 0; i < sizeof(*k); i++)
		p[i] = fuzz_u8(&w->in);
	if ((flags & 1) != 0) {
		k->seq |= 1;
		k->key = key;
		k->pdn = 7;
		k->seg = flags & 2 ? 5 : k->seg;
		k->gen = 3;
	}
	if ((flags & 4) != 0) {
		k->off = 4096 + (k->off & 0x1ffff);
		k->len &= 0x1ffff;
	}
	if (soft_shm_key_find(&tx, 7, SOFT_SHM_READ, key, &n)) {
		check(n.base >= memory && n.len <= WINDOW && n.base + n.len <= memory + WINDOW,
		      "memory outside the window");
		check(n.start + n.len >= n.start, "addresses that wrap");
		check((n.rights & ~(uint32_t)SOFT_SHM_READ) == 0, "more rights than the QP has");
	}
	memset(k, 0, sizeof(*k));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct world w = {.in = {data, len}};

	w.theirs = ring();
	w.ours = ring();
	soft_ring_rx_init(&w.rx, w.theirs, &w.our_head);
	soft_ring_tx_init(&w.tx, w.ours, &w.their_head);
	for (uint32_t i = 0; i < MAX_STEPS && w.in.left != 0; i++) {
		switch (fuzz_u8(&w.in) % STEPS) {
		case STEP_WRITE:
			step_write(&w);
			break;
		case STEP_RECEIVE:
			step_receive(&w);
			break;
		case STEP_HEAD:
			w.their_head =
				fuzz_u8(&w.in) & 1 ? fuzz_u64(&w.in) : w.tx.tail - fuzz_u16(&w.in);
			break;
		case STEP_SEND:
			step_send(&w);
			break;
		case STEP_MESSAGE:
			step_message(&w);
			break;
		default:
			step_key(&w);
			break;
		}
	}
	free(w.theirs);
	free(w.ours);
	return 0;
}
