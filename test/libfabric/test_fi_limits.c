/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Limits of the device, and attributes that the provider refuses: each refusal logs its reason. */
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define MANY 70000u /* more endpoints than a device has queue pairs */

static const struct want plain;

static void __attribute__((constructor)) prepare(void)
{
	log_reasons();
	/* Little memory, so that the endpoints soon use it up. */
	setenv("FI_BLUEBELL_EAL", "--no-huge -m 64 --no-shconf --no-pci", 1);
}

/* Checks the result of a call, and that the provider has logged a reason. */
#define REFUSED(call_, want_)                                                                      \
	do {                                                                                       \
		const char *text_;                                                                 \
		int ret_;                                                                          \
                                                                                                   \
		log_begin();                                                                       \
		ret_ = (int)(call_);                                                               \
		text_ = log_end();                                                                 \
		assert_int_equal(ret_, want_);                                                     \
		if (strstr(text_, "::bluebell:") == NULL)                                          \
			fail_msg("no reason is logged: %s: %s", #call_, text_);                    \
	} while (0)

TEST(test_refusals_log_their_reason)
{
	struct fi_cq_attr bad_format = {.format = 99};
	struct fi_cq_attr bad_wait = {.wait_obj = FI_WAIT_MUTEX_COND};
	struct fi_eq_attr bad_eq = {.wait_obj = FI_WAIT_SET};
	struct iovec two[2];
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_mr *mr;
	struct pair p;
	char data[300];

	pair_open(&p, &(struct want){.counters = true});
	two[0] = two[1] = (struct iovec){p.a.mem, 64};
	p.info->ep_attr->type = FI_EP_RDM;
	REFUSED(fi_endpoint(p.domain, p.info, &ep, NULL), -FI_EINVAL);
	p.info->ep_attr->type = FI_EP_MSG;
	OK(fi_endpoint(p.domain, p.info, &ep, NULL));
	REFUSED(fi_ep_bind(ep, &p.a.cq->fid, FI_REMOTE_WRITE), -FI_EBADFLAGS);
	REFUSED(fi_ep_bind(ep, &p.a.sent->fid, FI_REMOTE_WRITE), -FI_EBADFLAGS);
	REFUSED(fi_enable(ep), -FI_ENOCQ);
	REFUSED(fi_connect(ep, p.info->src_addr, data, sizeof(data)), -FI_EINVAL);
	OK(fi_close(&ep->fid));
	REFUSED(fi_cq_open(p.domain, &bad_format, &cq, NULL), -FI_EINVAL);
	REFUSED(fi_cq_open(p.domain, &bad_wait, &cq, NULL), -FI_ENOSYS);
	REFUSED(fi_eq_open(p.fabric, &bad_eq, &eq, NULL), -FI_ENOSYS);
	REFUSED(fi_mr_reg(p.domain, p.a.mem, 64, 0, 1, 0, 0, &mr, NULL), -FI_EINVAL);
	REFUSED(fi_mr_regv(p.domain, two, 2, 0, 0, 0, 0, &mr, NULL), -FI_EINVAL);
	pair_close(&p);
}

/* An endpoint that the device cannot have is refused; the others work, and room returns. */
TEST(test_more_endpoints_than_the_device_has)
{
	struct fid_ep **eps = calloc(MANY, sizeof(*eps));
	struct pair p;
	uint32_t n;
	int ret = 0;

	assert_non_null(eps);
	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	for (n = 0; n < MANY; n++) {
		OK(fi_endpoint(p.domain, p.info, &eps[n], NULL));
		OK(fi_ep_bind(eps[n], &p.a.cq->fid, FI_TRANSMIT | FI_RECV));
		log_begin();
		ret = fi_enable(eps[n]);
		if (ret == 0) {
			(void)log_end();
			continue;
		}
		if (strstr(log_end(), "::bluebell:") == NULL)
			fail_msg("no reason is logged for endpoint %u", n);
		break;
	}
	assert_true(ret == -FI_ENOMEM || ret == -FI_ENOSPC || ret == -FI_EAGAIN);
	assert_true(n > 16 && n < MANY);
	/* The connected pair is not disturbed. */
	OK(fi_recv(p.b.ep, p.b.mem, 64, p.b.desc, 0, NULL));
	OK(fi_send(p.a.ep, p.a.mem, 64, p.a.desc, 0, NULL));
	done(&p.a);
	done(&p.b);
	assert_int_equal(fi_send(eps[n], p.a.mem, 64, p.a.desc, 0, NULL), -FI_EOPBADSTATE);
	OK(fi_close(&eps[0]->fid));
	OK(fi_enable(eps[n]));
	for (; n > 0; n--)
		OK(fi_close(&eps[n]->fid));
	pair_close(&p);
	free(eps);
}

/* Endpoints with one CQ for their sends and another one for their receives. */
TEST(test_an_endpoint_joins_a_cq_whose_other_endpoint_has_posted_all_its_receives)
{
	struct fid_ep *eps[2];
	struct pair p;

	pair_open(&p, &plain);
	for (uint32_t i = 0; i < 2; i++) {
		OK(fi_endpoint(p.domain, p.info, &eps[i], NULL));
		OK(fi_ep_bind(eps[i], &p.a.cq->fid, FI_TRANSMIT));
		OK(fi_ep_bind(eps[i], &p.b.cq->fid, FI_RECV));
		OK(fi_enable(eps[i]));
		for (size_t n = 0; n < p.info->rx_attr->size; n++)
			OK(fi_recv(eps[i], p.b.mem, 64, p.b.desc, 0, NULL));
	}
	for (uint32_t i = 0; i < 2; i++)
		OK(fi_close(&eps[i]->fid));
	pair_close(&p);
}

#define DEEP   4096u /* receives of the shared context */
#define ROUNDS 400u  /* more rounds than memory has room for, if no room returns */

static struct fid_ep *
shared_endpoint(struct pair *p, struct fid_ep *srx, struct fid_cq *cq)
{
	struct fid_ep *ep;

	OK(fi_endpoint(p->domain, p->info, &ep, NULL));
	OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_ep_bind(ep, &srx->fid, 0));
	OK(fi_enable(ep));
	return ep;
}

/* A server that replaces its endpoints spreads them over two CQs. */
TEST(test_room_for_a_shared_receive_context_returns_with_its_last_endpoint)
{
	struct fi_rx_attr rx = {.size = DEEP};
	struct fid_cq *cqs[2];
	struct fid_ep *srx, *ep, *other;
	struct pair p;
	uint32_t i;

	pair_open(&p, &plain);
	OK(fi_srx_context(p.domain, &rx, &srx, NULL));
	cqs[0] = p.a.cq;
	cqs[1] = p.b.cq;
	for (i = 0; i < ROUNDS; i++) {
		ep = shared_endpoint(&p, srx, cqs[i & 1]);
		if (i % 16 == 0) {
			/* The room stays while another endpoint uses it. */
			other = shared_endpoint(&p, srx, cqs[i & 1]);
			OK(fi_close(&ep->fid));
			ep = shared_endpoint(&p, srx, cqs[i & 1]);
			OK(fi_close(&other->fid));
		}
		OK(fi_close(&ep->fid));
	}
	OK(fi_close(&srx->fid));
	pair_close(&p);
}

TEST_MAIN(0)
