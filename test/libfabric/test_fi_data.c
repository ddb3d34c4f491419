/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Messages, remote memory access and atomics, their completions and counters. */
#include "pair.h"

static const struct want plain;

/* Fills @len bytes with a pattern that depends on @seed. */
static void
fill(unsigned char *to, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		to[i] = (unsigned char)(seed + i * 7 + i / 256);
}

static void
expect(const unsigned char *mem, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (mem[i] != (unsigned char)(seed + i * 7 + i / 256))
			fail_msg("byte %zu of %zu is 0x%x", i, len, mem[i]);
}

TEST(test_messages_of_every_size)
{
	static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 70000, MEM};
	struct fi_cq_data_entry e;
	struct pair p;
	unsigned int i;
	int tx, rx;

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		fill(p.a.mem, sizes[i], i);
		OK(fi_recv(p.b.ep, p.b.mem, MEM, p.b.desc, 0, &rx));
		OK(fi_send(p.a.ep, p.a.mem, sizes[i], p.a.desc, 0, &tx));
		e = done(&p.b);
		assert_fields(e, op_context, &rx, flags, FI_MSG | FI_RECV, len, sizes[i]);
		e = done(&p.a);
		assert_fields(e, op_context, &tx, flags, FI_MSG | FI_SEND);
		expect(p.b.mem, sizes[i], i);
	}
	pair_close(&p);
}

TEST(test_gather_scatter_and_data)
{
	struct pair p;
	struct fi_cq_data_entry e;

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	{
		struct iovec out[4] = {{p.a.mem, 100},
				       {p.a.mem + 100, 0},
				       {p.a.mem + 100, 3},
				       {p.a.mem + 103, 900}};
		struct iovec in[2] = {{p.b.mem, 500}, {p.b.mem + 500, 600}};
		void *od[4] = {p.a.desc, p.a.desc, p.a.desc, p.a.desc};
		void *id[2] = {p.b.desc, p.b.desc};
		struct fi_msg m = {.msg_iov = out, .desc = od, .iov_count = 4, .data = 0x12345678};

		fill(p.a.mem, 1003, 3);
		OK(fi_recvv(p.b.ep, in, id, 2, 0, NULL));
		OK(fi_sendmsg(p.a.ep, &m, FI_REMOTE_CQ_DATA));
		e = done(&p.b);
		assert_fields(e, len, 1003, flags, FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA, data,
			      0x12345678);
		expect(p.b.mem, 1003, 3);
		done(&p.a);
		/* A short list is gathered into the request itself; no descriptor is needed. */
		out[3].iov_len = 10;
		out[0].iov_len = 40;
		m.desc = NULL;
		OK(fi_recvv(p.b.ep, in, id, 2, 0, NULL));
		OK(fi_sendmsg(p.a.ep, &m, FI_INJECT));
		assert_int_equal(done(&p.b).len, 53);
		assert_memory_equal(p.b.mem, p.a.mem, 40);
		assert_memory_equal(p.b.mem + 40, p.a.mem + 100, 3);
		done(&p.a);
		/* Five parts are too many. */
		m.iov_count = 5;
		assert_int_equal(fi_sendmsg(p.a.ep, &m, 0), -FI_EINVAL);
	}
	none(&p);
	pair_close(&p);
}

TEST(test_inject_reports_nothing_and_reads_the_buffer_at_once)
{
	struct pair p;
	char text[64];
	struct fi_cq_data_entry e;

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	memset(text, 'x', sizeof(text));
	OK(fi_recv(p.b.ep, p.b.mem, 64, p.b.desc, 0, NULL));
	OK(fi_recv(p.b.ep, p.b.mem + 64, 64, p.b.desc, 0, NULL));
	OK(fi_inject(p.a.ep, text, sizeof(text), 0));
	memset(text, 'y', sizeof(text));
	OK(fi_injectdata(p.a.ep, text, 3, 0xabcd, 0));
	assert_int_equal(fi_inject(p.a.ep, p.a.mem, 65, 0), -FI_EMSGSIZE);
	assert_int_equal(done(&p.b).len, 64);
	e = done(&p.b);
	assert_fields(e, len, 3, data, 0xabcd);
	assert_int_equal(p.b.mem[63], 'x');
	assert_int_equal(p.b.mem[64], 'y');
	none(&p);
	pair_close(&p);
}

TEST(test_long_messages_need_a_descriptor)
{
	struct pair p;

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	assert_int_equal(fi_send(p.a.ep, p.a.mem, 65, NULL, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_send(p.a.ep, p.a.mem, (1u << 30) + 1, p.a.desc, 0, NULL), -FI_EMSGSIZE);
	none(&p);
	pair_close(&p);
}

/* fi_shared_ctx of fabtests posts such receives, and gets empty messages. */
TEST(test_a_receive_without_a_descriptor_takes_an_empty_message_only)
{
	const struct want shared = {.shared = true}, *const wants[] = {&plain, &shared};
	struct fi_cq_err_entry err;
	struct fid_ep *rx;
	struct pair p;
	int i, context[2];

	for (i = 0; i < 2; i++) {
		pair_open(&p, wants[i]);
		pair_connect(&p, wants[i]);
		rx = p.srx != NULL ? p.srx : p.b.ep;
		OK(fi_recv(rx, NULL, 1024, NULL, 0, &context[0]));
		OK(fi_recv(rx, NULL, 1024, NULL, 0, &context[1]));
		OK(fi_send(p.a.ep, NULL, 0, NULL, 0, NULL));
		done(&p.a);
		assert_ptr_equal(done(&p.b).op_context, &context[0]);
		OK(fi_send(p.a.ep, p.a.mem, 8, NULL, 0, NULL));
		err = failed(&p.b);
		assert_int_equal(err.err, FI_EFAULT);
		assert_ptr_equal(err.op_context, &context[1]);
		pair_close(&p);
	}
}

TEST(test_write_read_and_data_of_a_write)
{
	struct fi_cq_data_entry e;
	struct pair p;
	const uint64_t at = 0;
	uint64_t there;

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	there = (uintptr_t)p.b.mem + at;
	fill(p.a.mem, 5000, 9);
	OK(fi_write(p.a.ep, p.a.mem, 5000, p.a.desc, 0, there, p.b.key, NULL));
	assert_int_equal(done(&p.a).flags, FI_RMA | FI_WRITE);
	expect(p.b.mem, 5000, 9);
	OK(fi_read(p.a.ep, p.a.mem + 8192, 5000, p.a.desc, 0, there, p.b.key, NULL));
	assert_int_equal(done(&p.a).flags, FI_RMA | FI_READ);
	expect(p.a.mem + 8192, 5000, 9);
	OK(fi_inject_write(p.a.ep, "short", 5, 0, there, p.b.key));
	OK(fi_recv(p.b.ep, NULL, 0, NULL, 0, &p));
	OK(fi_writedata(p.a.ep, p.a.mem, 100, p.a.desc, 77, 0, there + 100, p.b.key, NULL));
	e = done(&p.b);
	assert_fields(e, op_context, &p, flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, data,
		      77, len, 100);
	assert_memory_equal(p.b.mem, "short", 5);
	expect(p.b.mem + 100, 100, 9);
	done(&p.a);
	pair_close(&p);
}

TEST(test_rma_lists_have_one_remote_range)
{
	struct pair p;

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	{
		struct iovec iov[2] = {{p.a.mem, 1000}, {p.a.mem + 2000, 1000}};
		void *desc[2] = {p.a.desc, p.a.desc};
		struct fi_rma_iov to[2] = {{(uintptr_t)p.b.mem, 2000, p.b.key}, {0, 0, 0}};
		struct fi_msg_rma m = {.msg_iov = iov,
				       .desc = desc,
				       .iov_count = 2,
				       .rma_iov = to,
				       .rma_iov_count = 1};

		fill(p.a.mem, 1000, 1);
		fill(p.a.mem + 2000, 1000, 2);
		OK(fi_writemsg(p.a.ep, &m, FI_FENCE));
		done(&p.a);
		expect(p.b.mem, 1000, 1);
		expect(p.b.mem + 1000, 1000, 2);
		memset(p.a.mem, 0, 4000);
		OK(fi_readmsg(p.a.ep, &m, 0));
		done(&p.a);
		expect(p.a.mem, 1000, 1);
		expect(p.a.mem + 2000, 1000, 2);
		to[0].len = 1999;
		assert_int_equal(fi_writemsg(p.a.ep, &m, 0), -FI_EINVAL);
		m.rma_iov_count = 2;
		assert_int_equal(fi_readmsg(p.a.ep, &m, 0), -FI_EINVAL);
	}
	none(&p);
	pair_close(&p);
}

TEST(test_atomics)
{
	struct pair p;
	uint64_t *word, *result, there, operand = 5, compare;
	size_t count = 0;

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	word = (uint64_t *)(void *)p.b.mem;
	result = (uint64_t *)(void *)p.a.mem;
	there = (uintptr_t)word;
	*word = 100;
	OK(fi_fetch_atomic(p.a.ep, &operand, 1, NULL, result, p.a.desc, 0, there, p.b.key,
			   FI_UINT64, FI_SUM, NULL));
	done(&p.a);
	assert_int_equal(*result, 100);
	assert_int_equal(*word, 105);
	compare = 105;
	operand = 7;
	OK(fi_compare_atomic(p.a.ep, &operand, 1, NULL, &compare, NULL, result, p.a.desc, 0, there,
			     p.b.key, FI_UINT64, FI_CSWAP, NULL));
	done(&p.a);
	assert_int_equal(*result, 105);
	assert_int_equal(*word, 7);
	OK(fi_compare_atomic(p.a.ep, &operand, 1, NULL, &compare, NULL, result, p.a.desc, 0, there,
			     p.b.key, FI_UINT64, FI_CSWAP, NULL));
	done(&p.a);
	assert_int_equal(*result, 7);
	operand = 1234;
	OK(fi_atomic(p.a.ep, &operand, 1, NULL, 0, there, p.b.key, FI_UINT64, FI_ATOMIC_WRITE,
		     NULL));
	done(&p.a);
	OK(fi_fetch_atomic(p.a.ep, NULL, 1, NULL, result, p.a.desc, 0, there, p.b.key, FI_INT64,
			   FI_ATOMIC_READ, NULL));
	done(&p.a);
	assert_int_equal(*result, 1234);
	OK(fi_fetch_atomicvalid(p.a.ep, FI_UINT64, FI_SUM, &count));
	assert_int_equal(count, 1);
	assert_int_equal(fi_fetch_atomicvalid(p.a.ep, FI_UINT32, FI_SUM, &count), -FI_EOPNOTSUPP);
	assert_int_equal(fi_atomicvalid(p.a.ep, FI_UINT64, FI_SUM, &count), -FI_EOPNOTSUPP);
	assert_int_equal(fi_compare_atomicvalid(p.a.ep, FI_UINT64, FI_MSWAP, &count),
			 -FI_EOPNOTSUPP);
	assert_int_equal(fi_fetch_atomic(p.a.ep, &operand, 1, NULL, result, p.a.desc, 0, there + 4,
					 p.b.key, FI_UINT64, FI_SUM, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_fetch_atomic(p.a.ep, &operand, 2, NULL, result, p.a.desc, 0, there,
					 p.b.key, FI_UINT64, FI_SUM, NULL),
			 -FI_EINVAL);
	none(&p);
	pair_close(&p);
}

TEST(test_a_wrong_key_fails_the_write_and_ends_the_connection)
{
	struct fi_cq_err_entry err;
	struct pair p;
	int context;

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	OK(fi_write(p.a.ep, p.a.mem, 100, p.a.desc, 0, (uintptr_t)p.b.mem, p.b.key ^ 0x55,
		    &context));
	err = failed(&p.a);
	assert_fields(err, err, FI_EACCES, op_context, &context, flags, FI_RMA | FI_WRITE);
	assert_non_null(fi_cq_strerror(p.a.cq, err.prov_errno, NULL, NULL, 0));
	pair_close(&p);
}

TEST(test_a_region_without_remote_rights_refuses_peers)
{
	static const uint64_t rights[] = {FI_SEND | FI_RECV, FI_SEND, 0};
	struct fid_mr *local;
	struct pair p;

	for (unsigned int i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
		pair_open(&p, &plain);
		OK(fi_mr_reg(p.domain, p.b.mem, 4096, rights[i], 0, 0, 0, &local, NULL));
		pair_connect(&p, &plain);
		OK(fi_write(p.a.ep, p.a.mem, 100, p.a.desc, 0, (uintptr_t)p.b.mem, fi_mr_key(local),
			    NULL));
		assert_int_equal(failed(&p.a).err, FI_EACCES);
		OK(fi_close(&local->fid));
		pair_close(&p);
	}
}

/* An application without FI_HMEM need not set the interface. */
TEST(test_the_memory_interface_of_a_region_is_ignored)
{
	struct fi_mr_attr attr = {.iface = FI_HMEM_CUDA, .iov_count = 1, .access = FI_RECV};
	struct iovec iov;
	struct fid_mr *mr;
	struct pair p;

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	iov = (struct iovec){p.b.mem, 100};
	attr.mr_iov = &iov;
	OK(fi_mr_regattr(p.domain, &attr, 0, &mr));
	OK(fi_recv(p.b.ep, p.b.mem, 100, fi_mr_desc(mr), 0, NULL));
	OK(fi_inject(p.a.ep, "text", 4, 0));
	assert_int_equal(done(&p.b).len, 4);
	OK(fi_close(&mr->fid));
	pair_close(&p);
}

TEST(test_selective_completion)
{
	const struct want w = {.selective = FI_SELECTIVE_COMPLETION};
	struct pair p;
	int wanted, i;
	ssize_t ret;

	pair_open(&p, &w);
	pair_connect(&p, &w);
	{
		struct iovec out = {p.a.mem, 100}, in = {p.b.mem, 100};
		struct fi_msg s = {
			.msg_iov = &out, .desc = &p.a.desc, .iov_count = 1, .context = &wanted};
		struct fi_msg r = {
			.msg_iov = &in, .desc = &p.b.desc, .iov_count = 1, .context = &wanted};

		/* More than the send queue holds: requests without completions make room, too. */
		for (i = 0; i < 1000; i++) {
			while ((ret = fi_recvmsg(p.b.ep, &r, i == 999 ? FI_COMPLETION : 0)) ==
			       -FI_EAGAIN)
				none(&p);
			OK(ret);
			while ((ret = fi_sendmsg(p.a.ep, &s, i == 999 ? FI_COMPLETION : 0)) ==
			       -FI_EAGAIN)
				none(&p);
			OK(ret);
		}
	}
	assert_ptr_equal(done(&p.a).op_context, &wanted);
	assert_ptr_equal(done(&p.b).op_context, &wanted);
	none(&p);
	pair_close(&p);
}

TEST(test_data_of_a_write_completes_at_the_target_despite_a_silent_receive)
{
	const struct want w = {.selective = FI_SELECTIVE_COMPLETION};
	struct fi_cq_data_entry e;
	struct pair p;
	int context;

	pair_open(&p, &w);
	pair_connect(&p, &w);
	OK(fi_recv(p.b.ep, p.b.mem, 64, p.b.desc, 0, &context));
	OK(fi_recv(p.b.ep, p.b.mem, 64, p.b.desc, 0, &context));
	OK(fi_senddata(p.a.ep, p.a.mem, 8, p.a.desc, 76, 0, NULL));
	OK(fi_writedata(p.a.ep, p.a.mem, 100, p.a.desc, 77, 0, (uintptr_t)p.b.mem, p.b.key, NULL));
	e = done(&p.b);
	assert_fields(e, op_context, NULL, flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		      data, 77, len, 100);
	none(&p);
	pair_close(&p);
}

TEST(test_counters_count_what_no_completion_reports)
{
	const struct want w = {.counters = true, .selective = FI_SELECTIVE_COMPLETION};
	struct pair p;
	int i;

	pair_open(&p, &w);
	pair_connect(&p, &w);
	for (i = 0; i < 10; i++) {
		OK(fi_recv(p.b.ep, p.b.mem, 100, p.b.desc, 0, NULL));
		OK(i % 2 == 0 ? fi_inject(p.a.ep, "x", 1, 0)
			      : fi_send(p.a.ep, p.a.mem, 100, p.a.desc, 0, NULL));
	}
	OK(fi_cntr_wait(p.a.sent, 10, 60000));
	OK(fi_cntr_wait(p.b.received, 10, 60000));
	OK(fi_write(p.a.ep, p.a.mem, 100, p.a.desc, 0, (uintptr_t)p.b.mem, p.b.key, NULL));
	OK(fi_read(p.a.ep, p.a.mem, 100, p.a.desc, 0, (uintptr_t)p.b.mem, p.b.key, NULL));
	OK(fi_cntr_wait(p.a.written, 1, 60000));
	OK(fi_cntr_wait(p.a.read, 1, 60000));
	assert_int_equal(fi_cntr_read(p.a.received), 0);
	assert_int_equal(fi_cntr_wait(p.a.sent, 11, 1), -FI_ETIMEDOUT);
	OK(fi_cntr_add(p.a.sent, 5));
	assert_int_equal(fi_cntr_read(p.a.sent), 15);
	OK(fi_cntr_set(p.a.sent, 1));
	assert_int_equal(fi_cntr_read(p.a.sent), 1);
	OK(fi_write(p.a.ep, p.a.mem, 100, p.a.desc, 0, (uintptr_t)p.b.mem, p.b.key ^ 1, NULL));
	assert_int_equal(fi_cntr_wait(p.a.written, 2, 60000), -FI_EAVAIL);
	assert_int_equal(fi_cntr_readerr(p.a.written), 1);
	pair_close(&p);
}

/* FI_RECV counts messages. A peer's WRITE would count for FI_REMOTE_WRITE, which is refused. */
TEST(test_data_of_a_write_does_not_count_as_a_received_message)
{
	const struct want w = {.counters = true};
	struct pair p;

	pair_open(&p, &w);
	pair_connect(&p, &w);
	OK(fi_recv(p.b.ep, NULL, 0, NULL, 0, NULL));
	OK(fi_recv(p.b.ep, p.b.mem, 8, p.b.desc, 0, NULL));
	OK(fi_writedata(p.a.ep, p.a.mem, 8, p.a.desc, 77, 0, (uintptr_t)p.b.mem, p.b.key, NULL));
	OK(fi_send(p.a.ep, p.a.mem, 8, p.a.desc, 0, NULL));
	assert_int_equal(done(&p.b).data, 77);
	assert_int_equal(done(&p.b).flags, FI_MSG | FI_RECV);
	assert_int_equal(fi_cntr_read(p.b.received), 1);
	pair_close(&p);
}

TEST(test_shared_receive_context)
{
	const struct want w = {.shared = true};
	struct fi_cq_data_entry e;
	struct pair p;
	int context[3], i;

	pair_open(&p, &w);
	pair_connect(&p, &w);
	for (i = 0; i < 3; i++)
		OK(fi_recv(p.srx, p.b.mem + i * 100, 100, p.b.desc, 0, &context[i]));
	OK(fi_inject(p.a.ep, "one", 3, 0));
	e = done(&p.b);
	assert_fields(e, op_context, &context[0], len, 3);
	/* The same receives serve the other endpoint. */
	OK(fi_inject(p.b.ep, "three", 5, 0));
	e = done(&p.a);
	assert_fields(e, op_context, &context[1], len, 5);
	assert_memory_equal(p.b.mem + 100, "three", 5);
	pair_close(&p);
}

TEST(test_more_waits_for_the_last_post_of_a_batch)
{
	struct pair p;
	int i;

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	{
		struct iovec out = {p.a.mem, 100};
		struct fi_msg s = {.msg_iov = &out, .desc = &p.a.desc, .iov_count = 1};

		for (i = 0; i < 4; i++)
			OK(fi_recv(p.b.ep, p.b.mem, 100, p.b.desc, 0, NULL));
		for (i = 0; i < 3; i++)
			OK(fi_sendmsg(p.a.ep, &s, FI_MORE));
		none(&p);
		OK(fi_sendmsg(p.a.ep, &s, 0));
	}
	for (i = 0; i < 4; i++) {
		done(&p.a);
		done(&p.b);
	}
	pair_close(&p);
}

TEST(test_a_full_queue_asks_to_try_again)
{
	const struct want w = {.depth = 8};
	struct pair p;
	int sent = 0, i;

	pair_open(&p, &w);
	pair_connect(&p, &w);
	while (fi_write(p.a.ep, p.a.mem, 8, p.a.desc, 0, (uintptr_t)p.b.mem, p.b.key, NULL) == 0)
		sent++;
	assert_in_range(sent, 8, 64);
	for (i = 0; i < sent; i++)
		done(&p.a);
	OK(fi_write(p.a.ep, p.a.mem, 8, p.a.desc, 0, (uintptr_t)p.b.mem, p.b.key, NULL));
	done(&p.a);
	pair_close(&p);
}

TEST(test_formats_of_completions)
{
	static const size_t sizes[] = {
		[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
		[FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
		[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
		[FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
	};
	enum fi_cq_format f;

	for (f = FI_CQ_FORMAT_CONTEXT; f <= FI_CQ_FORMAT_TAGGED; f++) {
		const struct want w = {.format = f};
		struct fi_cq_tagged_entry e[3];
		struct pair p;
		int context[2];
		ssize_t n = 0, got;

		memset(e, 0xee, sizeof(e));
		pair_open(&p, &w);
		pair_connect(&p, &w);
		for (int i = 0; i < 2; i++) {
			OK(fi_recv(p.b.ep, p.b.mem, 100, p.b.desc, 0, &context[i]));
			OK(fi_inject(p.a.ep, "abc", 3, 0));
		}
		while (n < 2) {
			got = fi_cq_read(p.b.cq, (char *)e + (size_t)n * sizes[f], 2);
			assert_true(got > 0 || got == -FI_EAGAIN);
			n += got > 0 ? got : 0;
		}
		for (int i = 0; i < 2; i++) {
			const struct fi_cq_tagged_entry *at =
				(void *)((char *)e + (size_t)i * sizes[f]);

			assert_ptr_equal(at->op_context, &context[i]);
			if (f >= FI_CQ_FORMAT_MSG)
				assert_int_equal(at->len, 3);
			if (f == FI_CQ_FORMAT_TAGGED)
				assert_int_equal(at->tag, 0);
		}
		/* Nothing is written after the entries. */
		assert_int_equal(((unsigned char *)e)[2 * sizes[f]], 0xee);
		pair_close(&p);
	}
}

TEST_MAIN(0)
