/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The owner of an indirect key chooses how many parts its memory has, down to single bytes. Limits
 * of the work and of the memory that the device spends on a message through such a key.
 */
#include <malloc.h>
#include <sys/mman.h>

#include "../../../fakes/process.h"
#include "soft_ctl.h"
#include "soft_umr_env.h"
#include "soft_wire.h"

#define MAX_STEPS (1u << 22) /* SOFT_MAX_STEPS */
#define PROT      MLX5_CQE_SYNDROME_LOCAL_PROT_ERR
#define ACCESS    MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR

/* The indirect key's memory, and memory of the same size to copy from or to. */
struct bytes {
	struct keys *k;
	struct rig_mem part, whole;
};

static void
bytes_open(struct bytes *b, const char *args, uint32_t len)
{
	b->k = keys_open_args(args, false);
	rig_mem_open(&b->part, &b->k->p.d, NULL, len, ALL_MW);
	rig_mem_open(&b->whole, &b->k->p.d, NULL, len, ALL_MW);
	memset(b->part.p, 0x5a, len);
	memset(b->whole.p, 0, len);
}

static void
bytes_close(struct bytes *b)
{
	rig_mem_close(&b->part);
	rig_mem_close(&b->whole);
	keys_close(b->k);
}

/* Gives the indirect key the pattern of one byte of each of @n keys, @repeat times. */
static void
pattern_set(struct bytes *b, const uint32_t *key, const uint64_t *va, uint16_t n, uint16_t stride,
	    uint32_t repeat)
{
	struct umr w = pattern_make(b->k);
	struct mlx5_wqe_umr_repeat_block_seg *rb = (void *)w.x;
	struct mlx5_wqe_umr_repeat_ent_seg *e = (void *)(w.x + 16);
	uint16_t i;

	rb->byte_count = htobe32(n);
	rb->repeat_count = htobe32(repeat);
	rb->num_ent = htobe16(n);
	for (i = 0; i < n; i++) {
		e[i].stride = htobe16(stride);
		e[i].byte_count = htobe16(1);
		e[i].memkey = htobe32(key[i]);
		e[i].va = htobe64(va[i]);
	}
	w.m.len = htobe64((uint64_t)n * repeat);
	umr_ok(&b->k->p.b, &w);
}

/* Sets the pattern of one byte of each @stride bytes of the memory. */
static void
bytes_set(struct bytes *b, uint16_t stride)
{
	const uint64_t va = (uintptr_t)b->part.p;

	pattern_set(b, &b->part.mr->lkey, &va, 1, stride, (uint32_t)(b->part.len / stride));
}

/* Posts a request of @len bytes of the indirect key and of the whole memory. */
static void
post(struct bytes *b, uint8_t opcode, uint32_t len)
{
	struct rig_qp *q = &b->k->p.b;

	rig_raddr(q, (uintptr_t)b->whole.p, b->whole.mr->rkey);
	mlx5dv_set_data_seg(rig_seg(q, q->pi, 2), len, b->k->key, 0);
	rig_wqe(q, opcode, RIG_CQE, 3, 0);
}

/* Posts a WRITE of @len bytes of the indirect key to the whole memory. */
static void
post_from(struct bytes *b, uint32_t len)
{
	post(b, MLX5_OPCODE_RDMA_WRITE, len);
}

/* Posts a WRITE of @len bytes of the whole memory to the indirect key, by the peer. */
static void
post_to(struct bytes *b, uint32_t len)
{
	struct rig_qp *q = &b->k->p.a;

	rig_raddr(q, 0, b->k->key);
	rig_data(q, 2, &b->whole, 0, len);
	rig_wqe(q, MLX5_OPCODE_RDMA_WRITE, RIG_CQE, 3, 0);
}

TEST(test_message_of_too_many_steps_is_refused)
{
	struct bytes b;

	bytes_open(&b, NULL, MAX_STEPS + 4096);
	bytes_set(&b, 1);
	post_from(&b, MAX_STEPS);
	rig_done(&b.k->p.b, MLX5_OPCODE_RDMA_WRITE, (uint16_t)(b.k->p.b.pi - 1));
	assert_memory_equal(b.whole.p, b.part.p, MAX_STEPS);
	assert_int_equal(b.whole.p[MAX_STEPS], 0);
	post_from(&b, MAX_STEPS + 1);
	rig_ring(&b.k->p.b);
	rig_expect_error(&b.k->p.b, (uint16_t)(b.k->p.b.pi - 1), PROT);
	assert_int_equal(b.whole.p[MAX_STEPS], 0);
	bytes_close(&b);

	bytes_open(&b, NULL, MAX_STEPS + 4096);
	bytes_set(&b, 1);
	post_to(&b, MAX_STEPS);
	rig_done(&b.k->p.a, MLX5_OPCODE_RDMA_WRITE, (uint16_t)(b.k->p.a.pi - 1));
	assert_memory_equal(b.part.p, b.whole.p, MAX_STEPS);
	assert_int_equal(b.part.p[MAX_STEPS], 0x5a);
	post_to(&b, MAX_STEPS + 1);
	rig_ring(&b.k->p.a);
	rig_expect_error(&b.k->p.a, (uint16_t)(b.k->p.a.pi - 1), ACCESS);
	bytes_close(&b);
}

/* 16 messages of 64 packets each are less than the packets of a turn, but have 2^20 parts. */
TEST(test_turn_counts_the_steps_of_indirect_keys)
{
	const uint32_t requests = 16, len = 65536;
	struct bytes b;
	uint32_t side;

	bytes_open(&b, NULL, 2 * len);
	bytes_set(&b, 2);
	for (side = 0; side < 2; side++) {
		struct rig_qp *q = side == 0 ? &b.k->p.b : &b.k->p.a;
		struct rig_cq *c = side == 0 ? &b.k->p.cb : &b.k->p.ca;
		uint32_t i, n, done;

		for (i = 0; i < requests; i++) {
			if (side == 0)
				post_from(&b, len);
			else
				post_to(&b, len);
		}
		rig_ring(q);
		for (done = 0; done < requests; done += n) {
			rig_poll(&b.k->p.ua);
			n = rig_completed(c);
			assert_in_range(n, 1, 3);
		}
		assert_int_equal(done, requests);
	}
	bytes_close(&b);
}

/* ---- Over packets */

/* Returns the packets that the last turn of the engine has used up. */
static int64_t
turn_packets(const struct rig_qp *q)
{
	return SOFT_TURN_PACKETS - rig_soft_qp(q)->engine->packets_left;
}

TEST(test_turn_over_packets_counts_the_steps_of_indirect_keys)
{
	const uint32_t requests = 16, len = 65536;
	uint32_t i, head, done, polls;
	struct bytes b;

	bytes_open(&b, "wire=1", 2 * len);
	bytes_set(&b, 2);
	for (i = 0; i < requests; i++)
		post_from(&b, len);
	rig_ring(&b.k->p.b);
	for (done = 0, polls = 0; done < requests; polls++) {
		const struct bb_roce_req *r = &rig_soft_qp(&b.k->p.b)->wire->roce.req;

		assert_true(polls < 100000);
		head = r->head;
		rig_poll(&b.k->p.ua);
		assert_in_range(r->head - head, 0, 3);
		done += rig_completed(&b.k->p.cb);
	}
	assert_memory_equal(b.whole.p, b.part.p, len);
	bytes_close(&b);
}

/* A turn sends some packets of a long message. Only their bytes are translated again. */
TEST(test_packet_translates_its_own_bytes_only)
{
	const uint32_t len = 1u << 20;
	uint32_t i, done, polls;
	struct bytes b;

	bytes_open(&b, "wire=1", len);
	bytes_set(&b, 1);
	for (i = 0; i < 2; i++) {
		memset(b.part.p, 1, len);
		memset(b.whole.p, 2, len);
		post(&b, i == 0 ? MLX5_OPCODE_RDMA_WRITE : MLX5_OPCODE_RDMA_READ, len);
		rig_ring(&b.k->p.b);
		rig_poll(&b.k->p.ua);
		assert_in_range(turn_packets(&b.k->p.b), len / SOFT_PACKET_STEPS,
				2 * len / SOFT_PACKET_STEPS);
		for (done = 0, polls = 0; done == 0; polls++) {
			assert_true(polls < 100000);
			rig_poll(&b.k->p.ua);
			/* The packets of a turn have a byte per step. */
			assert_in_range(turn_packets(&b.k->p.b), 0,
					SOFT_RUN_WQES * rig_soft_qp(&b.k->p.b)->mtu /
						SOFT_PACKET_STEPS * 3 / 2);
			done = rig_completed(&b.k->p.cb);
		}
		assert_memory_equal(b.whole.p, b.part.p, len);
	}
	bytes_close(&b);
}

/* A rejected request waits for those before it, and is not translated at each turn meanwhile. */
TEST(test_rejected_request_waits_without_work)
{
	struct rig_link l = rig_link_default();
	uint32_t i, idle = 0;
	struct bytes b;

	bytes_open(&b, "wire=1", MAX_STEPS + 4096);
	bytes_set(&b, 1);
	rig_qp_reset(&b.k->p.a);
	rig_qp_reset(&b.k->p.b);
	l.min_rnr = 0; /* 655 ms, the longest */
	l.timeout = 0;
	rig_connect(&b.k->p.b, &b.k->p.a, &l);
	rig_send(&b.k->p.b, &b.whole, 0, 8, 0);
	post_from(&b, MAX_STEPS + 1);
	rig_ring(&b.k->p.b);
	for (i = 0; i < 20; i++) {
		rig_poll(&b.k->p.ua);
		idle += rig_soft_qp(&b.k->p.b)->queued != SOFT_Q_RUN;
	}
	assert_in_range(idle, 1, 20);
	rig_recv(&b.k->p.a, &b.whole, 64, 64);
	rig_expect_error(&b.k->p.b, 1, PROT);
	rig_completed(&b.k->p.ca);
	assert_int_equal(b.whole.p[4096], 0);
	bytes_close(&b);
}

/* Pages of ON_DEMAND memory are made present for the packets that arrive, not for the message. */
TEST(test_response_makes_its_own_on_demand_pages_present)
{
	const uint32_t len = 1u << 20, page = 4096;
	struct rig_mem to, from;
	uint8_t *last, present;
	struct rig_pair p;
	uint32_t polls;

	NEED_KERNEL_COPIES();
	rig_pair_open(&p, "wire=1,mmap", false, NULL);
	rig_mem_open(&to, &p.d, NULL, len, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_ON_DEMAND);
	rig_mem_open(&from, &p.d, NULL, len, RIG_ALL);
	memset(from.p, 7, len);
	rig_read(&p.a, &to, 0, len, &from, 0, RIG_CQE);
	rig_ring(&p.a);
	rig_poll(&p.ua);
	last = (uint8_t *)((uintptr_t)(to.p + len - page) & ~(uintptr_t)(page - 1));
	assert_int_equal(madvise(last, page, MADV_DONTNEED), 0);
	for (polls = 0; __atomic_load_n(to.p, __ATOMIC_RELAXED) == 0; polls++) {
		assert_true(polls < 1000);
		rig_poll(&p.ua);
	}
	assert_int_equal(mincore(last, page, &present), 0);
	assert_int_equal(present & 1, 0);
	rig_expect_ok(&p.a, MLX5_OPCODE_RDMA_READ, 0);
	assert_memory_equal(to.p, from.p, len);
	rig_mem_close(&to);
	rig_mem_close(&from);
	rig_pair_close(&p);
}

TEST(test_turn_over_packets_counts_requests_without_packets)
{
	const struct rig_qp_attr attr = {.log_sq = 13, .log_rq = 4, .log_stride = 4};
	struct rig_link l = rig_link_default();
	struct rig_cq c[2];
	struct rig_qp q[2];
	struct rig_dev d;
	struct rig_uar u;
	uint32_t i, done;
	struct rig_cqe e;

	rig_dev_open(&d, "soft0", "wire=1");
	rig_uar_open(&u, &d, MLX5_UAR_BF);
	for (i = 0; i < 2; i++) {
		rig_cq_open(&c[i], &u, 4);
		rig_qp_open(&q[i], &u, &c[i], &c[i], &attr);
	}
	rig_connect(&q[0], &q[1], &l);
	for (i = 1; i < 1u << attr.log_sq; i++)
		rig_nop(&q[0], 0);
	rig_nop(&q[0], RIG_CQE);
	rig_ring(&q[0]);
	for (done = 0; !rig_cqe(&c[0], &e); done = rig_soft_qp(&q[0])->sq_ci) {
		rig_poll(&u);
		assert_in_range((uint16_t)(rig_soft_qp(&q[0])->sq_ci - done), 1, SOFT_TURN_PACKETS);
	}
	assert_int_equal(e.opcode, 0);
	for (i = 0; i < 2; i++) {
		rig_qp_close(&q[i]);
		rig_cq_close(&c[i]);
	}
	rig_uar_close(&u);
	rig_dev_close(&d);
}

/* ---- Memory of the lists */

/* Returns the bytes of the heap that are in use. ASan's heap reports 0. */
static size_t
heap_used(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

TEST(test_engine_frees_the_lists_of_a_message_of_many_parts)
{
	const uint32_t len = 1u << 18;
	struct mlx5_obj *obj[2];
	uint32_t key[2], i;
	const uint64_t va[2] = {0, 0};
	struct bytes b;
	size_t before;

	/* Lists of fragments, of the payload and of the target. */
	bytes_open(&b, NULL, 2 * len);
	bytes_set(&b, 2);
	post_from(&b, 8);
	rig_done(&b.k->p.b, MLX5_OPCODE_RDMA_WRITE, (uint16_t)(b.k->p.b.pi - 1));
	before = heap_used();
	post_from(&b, len);
	rig_done(&b.k->p.b, MLX5_OPCODE_RDMA_WRITE, (uint16_t)(b.k->p.b.pi - 1));
	post_to(&b, len);
	rig_done(&b.k->p.a, MLX5_OPCODE_RDMA_WRITE, (uint16_t)(b.k->p.a.pi - 1));
	assert_in_range(heap_used(), 0, before + 65536);
	/* The short lists work. */
	memset(b.whole.p, 0, len);
	post_from(&b, 64);
	rig_done(&b.k->p.b, MLX5_OPCODE_RDMA_WRITE, (uint16_t)(b.k->p.b.pi - 1));
	assert_memory_equal(b.whole.p, b.part.p, 64);
	assert_int_equal(b.whole.p[64], 0);

	/* References to keys: two keys that take turns. */
	for (i = 0; i < 2; i++)
		obj[i] = used_key(b.k, b.k->p.d.pd, true, false, &key[i]);
	pattern_set(&b, key, va, 2, 1, 4096);
	before = heap_used();
	post_from(&b, 8192);
	rig_done(&b.k->p.b, MLX5_OPCODE_RDMA_WRITE, (uint16_t)(b.k->p.b.pi - 1));
	assert_in_range(heap_used(), 0, before + 65536);
	for (i = 0; i < 2; i++)
		OK(soft_cmd_if.obj_destroy(obj[i]));
	bytes_close(&b);
}

/* Packets of a turn use the lists before the engine frees them, and later packets new lists. */
TEST(test_message_of_many_parts_over_packets_is_complete)
{
	const uint32_t len = 1u << 17;
	struct bytes b;
	uint32_t i;

	bytes_open(&b, "wire=1", 2 * len);
	bytes_set(&b, 2);
	for (i = 0; i < 2 * len; i++)
		b.part.p[i] = (uint8_t)(i * 7 + (i >> 8) + 1);
	post_from(&b, len);
	rig_done(&b.k->p.b, MLX5_OPCODE_RDMA_WRITE, (uint16_t)(b.k->p.b.pi - 1));
	for (i = 0; i < len; i++)
		assert_int_equal(b.whole.p[i], b.part.p[2 * i]);
	memset(b.part.p, 0, 2 * len);
	post_to(&b, len);
	rig_done(&b.k->p.a, MLX5_OPCODE_RDMA_WRITE, (uint16_t)(b.k->p.a.pi - 1));
	for (i = 0; i < 2 * len; i++)
		assert_int_equal(b.part.p[i], i % 2 == 0 ? b.whole.p[i / 2] : 0);
	bytes_close(&b);
}

TEST_MAIN(0)
