/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The text of bb_qp_error_text() for one error of each kind: status and cause, the WQE, the key
 * that it named and what is wrong with the key.
 */
#include "../mlx5_env.h"

static struct env e;
static char text[BB_ERROR_TEXT_MAX];

static void
start(void)
{
	env_open(&e);
	env_up(&e);
	assert_int_equal(bb_qp_error_text(e.a.qp, text, sizeof(text)), -ENOENT);
}

/* Expects that A's only request fails with @status and that the text contains all of @want. */
static void
says(struct side *s, enum bb_wc_status status, const char *const *want)
{
	struct bb_wc wc;
	int len;

	bb_qp_ring(e.a.qp);
	env_poll(&e, s, &wc, 1);
	assert_int_equal(wc.status, status);
	len = bb_qp_error_text(s->qp, text, sizeof(text));
	assert_int_equal(len, strlen(text));
	if (status != BB_WC_WR_FLUSH_ERR) {
		assert_non_null(strstr(text, bb_wc_status_name(status)));
		assert_non_null(strstr(text, bb_wc_status_cause(status, wc.vendor_err)));
	}
	for (; *want != NULL; want++) {
		if (strstr(text, *want) == NULL)
			print_error("\"%s\" is not in:\n%s", *want, text);
		assert_non_null(strstr(text, *want));
	}
}
#define SAYS(side, status, ...) says(side, status, (const char *const[]){__VA_ARGS__, NULL})

static void
write_of(struct bb_sge *sge, uint64_t raddr, uint32_t rkey)
{
	OK(bb_post_write(e.a.qp, 1, sge, 1, raddr, rkey, BB_SEND_SIGNALED));
}

#define T(name) TEST_BETWEEN(start(), env_stop(&e), name)

T(test_unknown_lkey_is_named)
{
	struct bb_sge sge;
	size_t len;

	sge = sge_of(&e.a, 0, 64);
	sge.lkey = 0x12345600;
	write_of(&sge, raddr_of(&e.b, 0), e.b.mr->rkey);
	SAYS(&e.a, BB_WC_LOC_PROT_ERR, "RDMA_WRITE", "lkey 0x12345600: no registration");
	/* The text is held until the reset: flushed WQEs that follow do not replace it. */
	OK(bb_post_nop(e.a.qp, 2, BB_SEND_SIGNALED));
	SAYS(&e.a, BB_WC_WR_FLUSH_ERR, "lkey 0x12345600");
	len = strlen(text);
	assert_int_equal(bb_qp_error_text(e.a.qp, NULL, 0), len);
	assert_int_equal(bb_qp_error_text(e.a.qp, text, 20), len);
	assert_int_equal(strlen(text), 19);
	e.attr.state = BB_QP_RESET;
	OK(bb_qp_modify(e.a.qp, &e.attr, BB_QP_STATE));
	assert_int_equal(bb_qp_error_text(e.a.qp, text, sizeof(text)), -ENOENT);
	assert_int_equal(bb_qp_error_text(NULL, text, sizeof(text)), -EINVAL);
	assert_int_equal(bb_qp_error_text(e.a.qp, NULL, 1), -EINVAL);
}

/*
 * Requests that are posted and not reported: the text describes the oldest of them until its
 * completion is polled.
 */
T(test_oldest_pending_request_is_named)
{
	struct bb_sge sge;
	struct bb_wc wc;
	char want[96];
	int len, i;

	sge = sge_of(&e.a, 0, 64);
	assert_int_equal(bb_qp_pending_text(e.a.qp, text, sizeof(text)), -ENOENT);
	for (i = 0; i < 3; i++)
		OK(bb_post_write(e.a.qp, 0x70 + (uint64_t)i, &sge, 1, raddr_of(&e.b, 0),
				 e.b.mr->rkey, BB_SEND_SIGNALED));
	len = bb_qp_pending_text(e.a.qp, text, sizeof(text));
	assert_int_equal(len, strlen(text));
	assert_non_null(
		strstr(text, "3 requests without a completion; the oldest, wr_id 0x70, was not"));
	bb_qp_ring(e.a.qp);
	for (i = 0; i < 3; i++) {
		len = bb_qp_pending_text(e.a.qp, text, sizeof(text));
		snprintf(
			want, sizeof(want),
			": %d request%s without a completion; the oldest, wr_id 0x%x, was announced",
			3 - i, i == 2 ? "" : "s", 0x70u + (unsigned int)i);
		assert_non_null(strstr(text, want));
		snprintf(want, sizeof(want), "WQE %d: RDMA_WRITE", i);
		assert_non_null(strstr(text, want));
		snprintf(want, sizeof(want), "lkey 0x%x: ", e.a.mr->lkey);
		assert_non_null(strstr(text, want));
		env_poll(&e, &e.a, &wc, 1);
		assert_int_equal(wc.status, BB_WC_SUCCESS);
	}
	assert_int_equal(bb_qp_pending_text(e.a.qp, text, sizeof(text)), -ENOENT);
	assert_int_equal(bb_qp_pending_text(NULL, text, sizeof(text)), -EINVAL);
	assert_int_equal(bb_qp_pending_text(e.a.qp, NULL, 1), -EINVAL);
}

T(test_piece_past_the_end_is_described)
{
	struct bb_sge sge;
	struct bb_mr *mr;

	OK(bb_mr_reg(e.a.pd, e.a.buf, 4096, 0, &mr));
	sge = (struct bb_sge){(uintptr_t)e.a.buf + 4090, 16, mr->lkey};
	write_of(&sge, raddr_of(&e.b, 0), e.b.mr->rkey);
	SAYS(&e.a, BB_WC_LOC_PROT_ERR, "4096 bytes at 0x", "rights none",
	     "the SGE ends 10 bytes past the end of this memory");
	OK(bb_mr_dereg(mr));
}

T(test_piece_before_the_start_is_described)
{
	struct bb_sge sge;
	struct bb_mr *mr;

	OK(bb_mr_reg(e.a.pd, e.a.buf + 4096, 4096, 0, &mr));
	sge = (struct bb_sge){(uintptr_t)e.a.buf, 16, mr->lkey};
	write_of(&sge, raddr_of(&e.b, 0), e.b.mr->rkey);
	SAYS(&e.a, BB_WC_LOC_PROT_ERR, "the SGE begins outside this memory");
	OK(bb_mr_dereg(mr));
}

T(test_key_of_another_pd_is_described)
{
	struct bb_sge sge;
	struct bb_pd *pd;
	struct bb_mr *mr;

	OK(bb_pd_alloc(e.a.dev, &pd));
	OK(bb_mr_reg(pd, e.a.buf, 4096, 0, &mr));
	sge = (struct bb_sge){(uintptr_t)e.a.buf, 16, mr->lkey};
	write_of(&sge, raddr_of(&e.b, 0), e.b.mr->rkey);
	SAYS(&e.a, BB_WC_LOC_PROT_ERR, "its PD is not the PD of the QP");
	OK(bb_mr_dereg(mr));
	OK(bb_pd_free(pd));
}

T(test_missing_local_write_is_described)
{
	struct bb_sge sge;
	struct bb_mr *mr;

	OK(bb_mr_reg(e.a.pd, e.a.buf, 4096, BB_ACCESS_REMOTE_READ, &mr));
	sge = (struct bb_sge){(uintptr_t)e.a.buf, 16, mr->lkey};
	OK(bb_post_read(e.a.qp, 1, &sge, 1, raddr_of(&e.b, 0), e.b.mr->rkey, BB_SEND_SIGNALED));
	SAYS(&e.a, BB_WC_LOC_PROT_ERR, "RDMA_READ", "rights remote_read", "LOCAL_WRITE is missing");
	OK(bb_mr_dereg(mr));
}

T(test_unknown_rkey_is_named)
{
	struct bb_sge sge;

	sge = sge_of(&e.a, 0, 64);
	write_of(&sge, raddr_of(&e.b, 0), 0x7654ff00);
	SAYS(&e.a, BB_WC_REM_ACCESS_ERR, "the peer's rkey 0x7654ff00: not a key of this device",
	     "rights local_write|remote_write|remote_read|remote_atomic");
}

T(test_rkey_without_the_right_is_described)
{
	struct bb_sge sge;
	struct bb_mr *mr;

	sge = sge_of(&e.a, 0, 64);
	OK(bb_mr_reg(e.b.pd, e.b.buf, 4096, BB_ACCESS_REMOTE_READ, &mr));
	write_of(&sge, raddr_of(&e.b, 0), mr->rkey);
	if (env_two_uars())
		SAYS(&e.a, BB_WC_REM_ACCESS_ERR, "the peer's rkey");
	else
		SAYS(&e.a, BB_WC_REM_ACCESS_ERR,
		     "this device also has an MR with that rkey: 4096 bytes",
		     "rights remote_read\n");
	OK(bb_mr_dereg(mr));
}

/* Both sides have an error; the receiver's text describes its receive. */
T(test_short_receive_is_described_on_both_sides)
{
	struct bb_sge sge;

	sge = sge_of(&e.b, 0, 16);
	OK(bb_post_recv(e.b.qp, 1, &sge, 1));
	bb_qp_ring_recv(e.b.qp);
	sge = sge_of(&e.a, 0, 64);
	OK(bb_post_send(e.a.qp, 1, &sge, 1, BB_SEND_SIGNALED));
	SAYS(&e.a, BB_WC_REM_INV_REQ_ERR, "the request: WQE", "SEND");
	SAYS(&e.b, BB_WC_LOC_LEN_ERR, "the receive: receive WQE", "16 bytes at 0x",
	     "rights local_write|");
}

TEST(test_missing_receive_is_described)
{
	struct bb_sge sge;

	env_open(&e);
	env_qps(&e);
	e.attr.rnr_retry = 1;
	connect_pair(e.a.qp, e.b.qp, &e.attr);
	sge = sge_of(&e.a, 0, 64);
	OK(bb_post_send(e.a.qp, 1, &sge, 1, BB_SEND_SIGNALED));
	SAYS(&e.a, BB_WC_RNR_RETRY_EXC_ERR, "SEND", "64 bytes at 0x");
	env_stop(&e);
}

TEST(test_silent_peer_is_described)
{
	struct bb_qp_attr attr;
	struct bb_sge sge;

	env_open(&e);
	env_qps(&e);
	e.attr.timeout = 1;
	e.attr.retry_cnt = 1;
	connect_pair(e.a.qp, e.b.qp, &e.attr);
	bb_qp_attr_init(&attr);
	attr.state = BB_QP_ERR;
	OK(bb_qp_modify(e.b.qp, &attr, BB_QP_STATE));
	sge = sge_of(&e.a, 0, 64);
	write_of(&sge, raddr_of(&e.b, 0), e.b.mr->rkey);
	SAYS(&e.a, BB_WC_RETRY_EXC_ERR, "RDMA_WRITE");
	/*
	 * B was moved to ERR by the user: its WQEs are flushed, and there is no error to
	 * describe.
	 */
	assert_int_equal(bb_qp_error_text(e.b.qp, text, sizeof(text)), -ENOENT);
	env_stop(&e);
}

TEST(test_missing_right_of_the_qp_is_described)
{
	struct bb_sge sge;

	env_open(&e);
	env_qps(&e);
	e.attr.access = 0;
	connect_pair(e.a.qp, e.b.qp, &e.attr);
	sge = sge_of(&e.a, 0, 8);
	OK(bb_post_fetch_add(e.a.qp, 1, &sge, raddr_of(&e.b, 0), e.b.mr->rkey, 1,
			     BB_SEND_SIGNALED));
	SAYS(&e.a, BB_WC_REM_INV_REQ_ERR, "FETCH_ADD", "8 bytes at 0x");
	env_stop(&e);
}

/* A key of the heap that the PD follows belongs to no bb_mr. */
T(test_key_of_the_heap_is_described)
{
	struct bb_lkey_cache cache;
	struct bb_sge sge;
	void *p;

	p = rte_malloc("heap_key", 64, 64);
	assert_non_null(p);
	assert_int_equal(bb_mem_follow_heap(e.a.pd), 0);
	bb_lkey_cache_init(&cache, e.a.pd);
	sge = (struct bb_sge){8, 16, bb_mem_lkey(&cache, p, 64)};
	assert_int_not_equal(sge.lkey, BB_LKEY_NONE);
	write_of(&sge, raddr_of(&e.b, 0), e.b.mr->rkey);
	SAYS(&e.a, BB_WC_LOC_PROT_ERR, "of the heap", "the SGE begins outside this memory");
	rte_free(p);
}

int
main(void)
{
	int ret = env_eal_init("error_text");

	if (ret != 0)
		return ret;
	ret = bb_test_run(__FILE__, NULL, NULL);
	rte_eal_cleanup();
	return ret;
}
