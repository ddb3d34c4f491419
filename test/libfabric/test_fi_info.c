/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* fi_getinfo(): which hints the provider accepts, and what it reports. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include <stdlib.h>
#include <string.h>

#include "pair.h"

/* FI_MR_BASIC and FI_LOCAL_MR, which newer headers of libfabric lack. */
#define MR_BASIC 1
#define LOCAL_MR (1ULL << 55)

static void __attribute__((constructor)) start_log(void)
{
	log_reasons();
}

/* Asks for the hints and returns the first entry, NULL if the provider refuses them. */
static struct fi_info *
ask(struct fi_info *hints, const char *node, const char *service, uint64_t flags)
{
	struct fi_info *info = NULL;
	int ret = fi_getinfo(VERSION, node, service, flags, hints, &info);

	assert_true(ret == 0 || ret == -FI_ENODATA);
	assert_true((ret == 0) == (info != NULL));
	return info;
}

/* Checks that the provider refuses the hints, and logs the reason. */
static void
refused(struct fi_info *hints, const char *what)
{
	struct fi_info *info;
	const char *text;

	log_begin();
	info = ask(hints, NULL, NULL, 0);
	text = log_end();
	if (info != NULL)
		fail_msg("accepted: %s", what);
	if (strstr(text, "::bluebell:core:check") == NULL)
		fail_msg("no reason is logged for %s: %s", what, text);
}

/* Checks that the provider refuses hints of FI_MSG after @change. */
#define REFUSED(change_)                                                                           \
	do {                                                                                       \
		struct fi_info *h = hints_of(FI_MSG);                                              \
                                                                                                   \
		change_;                                                                           \
		refused(h, #change_);                                                              \
		fi_freeinfo(h);                                                                    \
	} while (0)

TEST(test_reports_what_the_hints_ask_for)
{
	struct fi_info *h = hints_of(FI_MSG | FI_RMA), *i;

	h->tx_attr->size = 33;
	i = ask(h, "127.0.0.1", "4711", 0);
	assert_non_null(i);
	assert_string_equal(i->fabric_attr->prov_name, "bluebell");
	assert_string_equal(i->domain_attr->name, "bluebell");
	assert_int_equal(i->ep_attr->type, FI_EP_MSG);
	assert_int_equal(i->caps & (FI_MSG | FI_RMA | FI_ATOMIC), FI_MSG | FI_RMA);
	assert_int_equal(i->caps & (FI_SEND | FI_RECV | FI_READ | FI_REMOTE_WRITE),
			 FI_SEND | FI_RECV | FI_READ | FI_REMOTE_WRITE);
	assert_int_equal(i->tx_attr->size, 33);
	assert_int_equal(i->addr_format, FI_SOCKADDR_IN);
	assert_int_equal(ntohs(((struct sockaddr_in *)i->dest_addr)->sin_port), 4711);
	/* The source is the address from which the host reaches the destination. */
	assert_int_equal(((struct sockaddr_in *)i->src_addr)->sin_addr.s_addr,
			 htonl(INADDR_LOOPBACK));
	fi_freeinfo(i);
	fi_freeinfo(h);
}

TEST(test_messages_alone_need_only_local_keys)
{
	struct fi_info *h = hints_of(FI_MSG), *i;

	h->domain_attr->mr_mode = FI_MR_LOCAL;
	i = ask(h, NULL, NULL, 0);
	assert_non_null(i);
	assert_int_equal(i->domain_attr->mr_mode, FI_MR_LOCAL);
	fi_freeinfo(i);
	h->caps |= FI_RMA;
	assert_null(ask(h, NULL, NULL, 0));
	fi_freeinfo(h);
}

/* fi_rma_bw of fabtests posts receives for the data of WRITEs if the mode says so. */
TEST(test_data_of_a_write_needs_a_mode_of_the_application)
{
	struct fi_info *h = hints_of(FI_MSG | FI_RMA), *i = ask(h, NULL, NULL, 0);

	assert_non_null(i);
	assert_fields(*i, mode, FI_RX_CQ_DATA, rx_attr->mode, FI_RX_CQ_DATA);
	assert_int_equal(i->domain_attr->cq_data_size, 4);
	fi_freeinfo(i);
	h->mode = 0;
	i = ask(h, NULL, NULL, 0);
	assert_non_null(i);
	assert_fields(*i, mode, 0, rx_attr->mode, 0, domain_attr->cq_data_size, 0);
	fi_freeinfo(i);
	/* The application may support the mode for its receives only. */
	h->rx_attr->mode = FI_RX_CQ_DATA;
	i = ask(h, NULL, NULL, 0);
	assert_non_null(i);
	assert_fields(*i, mode, 0, rx_attr->mode, FI_RX_CQ_DATA, domain_attr->cq_data_size, 4);
	fi_freeinfo(i);
	h->rx_attr->mode = 0;
	h->domain_attr->cq_data_size = 4;
	assert_null(ask(h, NULL, NULL, 0));
	/* A message consumes a receive in any case. */
	h->caps = FI_MSG;
	i = ask(h, NULL, NULL, 0);
	assert_non_null(i);
	assert_fields(*i, mode, 0, domain_attr->cq_data_size, 4);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

TEST(test_manual_progress_and_old_memory_modes_are_what_the_hints_say)
{
	struct fi_info *h = hints_of(FI_MSG | FI_RMA), *i;

	h->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->mr_mode = MR_BASIC;
	refused(h, "FI_MR_BASIC without FI_LOCAL_MR");
	h->mode |= LOCAL_MR;
	i = ask(h, NULL, NULL, 0);
	assert_non_null(i);
	assert_int_equal(i->mode, LOCAL_MR | FI_RX_CQ_DATA);
	assert_int_equal(i->domain_attr->control_progress, FI_PROGRESS_MANUAL);
	assert_int_equal(i->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	assert_int_equal(i->domain_attr->mr_mode, MR_BASIC);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

TEST(test_source_of_a_service_is_the_wildcard_address)
{
	struct fi_info *h = hints_of(FI_MSG), *i = ask(h, NULL, "4711", FI_SOURCE);
	struct sockaddr_in *a;

	assert_non_null(i);
	a = i->src_addr;
	assert_int_equal(a->sin_addr.s_addr, htonl(INADDR_ANY));
	assert_int_equal(ntohs(a->sin_port), 4711);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

TEST(test_without_addresses_there_is_one_entry_with_an_address_of_the_host)
{
	struct fi_info *h = hints_of(FI_MSG), *i = ask(h, NULL, NULL, 0);

	assert_non_null(i);
	assert_non_null(i->src_addr);
	assert_null(i->next);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

TEST(test_ipv6)
{
	struct fi_info *h = hints_of(FI_MSG), *i = ask(h, "::1", "1", FI_SOURCE);

	assert_non_null(i);
	assert_int_equal(i->addr_format, FI_SOCKADDR_IN6);
	assert_int_equal(i->src_addrlen, sizeof(struct sockaddr_in6));
	fi_freeinfo(i);
	h->addr_format = FI_SOCKADDR_IN;
	assert_null(ask(h, "::1", "1", FI_SOURCE));
	fi_freeinfo(h);
}

/* ---- Messages of librdmacm: addresses of the device */

static void
is_source(struct fi_info *i, const char *ip, uint32_t protocol)
{
	char text[INET6_ADDRSTRLEN];

	assert_non_null(i);
	if (i->addr_format == FI_SOCKADDR_IN)
		inet_ntop(AF_INET, &((struct sockaddr_in *)i->src_addr)->sin_addr, text,
			  sizeof(text));
	else
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)i->src_addr)->sin6_addr, text,
			  sizeof(text));
	assert_string_equal(text, ip);
	if (protocol != 0)
		assert_int_equal(i->ep_attr->protocol, protocol);
	fi_freeinfo(i);
}

TEST(test_a_device_with_an_address_reports_it)
{
	struct fi_info *h = hints_of(FI_MSG);

	setenv("FI_BLUEBELL_DEVICE", "soft0,shm=x,ip=10.7.0.1/24,ip=2001:db8::7/64", 1);
	is_source(ask(h, NULL, NULL, 0), "10.7.0.1", FI_PROTO_RDMA_CM_IB_RC);
	is_source(ask(h, "10.7.0.9", "1", 0), "10.7.0.1", FI_PROTO_RDMA_CM_IB_RC);
	is_source(ask(h, "2001:db8::9", "1", 0), "2001:db8::7", FI_PROTO_RDMA_CM_IB_RC);
	h->addr_format = FI_SOCKADDR_IN6;
	is_source(ask(h, NULL, NULL, 0), "2001:db8::7", FI_PROTO_RDMA_CM_IB_RC);
	h->addr_format = FI_FORMAT_UNSPEC;
	h->ep_attr->protocol = FI_PROTO_RDMA_CM_IB_RC;
	is_source(ask(h, NULL, NULL, 0), "10.7.0.1", FI_PROTO_RDMA_CM_IB_RC);
	/* TCP uses addresses of the host. */
	setenv("FI_BLUEBELL_CM", "tcp", 1);
	assert_null(ask(h, "127.0.0.1", "1", 0));
	h->ep_attr->protocol = FI_PROTO_UNSPEC;
	is_source(ask(h, "127.0.0.1", "1", 0), "127.0.0.1", 0);
	/* An address that the provider chooses is unknown before the device is open. */
	setenv("FI_BLUEBELL_CM", "rdma", 1);
	setenv("FI_BLUEBELL_DEVICE", "soft0,shm=x", 1);
	assert_null(ask(h, "127.0.0.1", "1", 0));
	setenv("FI_BLUEBELL_DEVICE", "soft0,shm=x,ip=10.7.0.1/24,ip=bad", 1);
	assert_null(ask(h, "2001:db8::9", "1", 0));
	setenv("FI_BLUEBELL_CM", "infiniband", 1);
	assert_null(ask(h, NULL, NULL, 0));
	unsetenv("FI_BLUEBELL_CM");
	unsetenv("FI_BLUEBELL_DEVICE");
	fi_freeinfo(h);
}

/* FI_ORDER_STRICT and FI_ORDER_DATA; newer headers deprecate the names. */
#define POSTS_IN_ORDER 0x1ffu
#define BYTES_IN_ORDER 0x10000u

TEST(test_completions_in_order_can_be_asked_for)
{
	struct fi_info *h = hints_of(FI_MSG), *i;

	h->tx_attr->comp_order = h->rx_attr->comp_order = POSTS_IN_ORDER;
	i = ask(h, NULL, NULL, 0);
	assert_non_null(i);
	assert_int_equal(i->tx_attr->comp_order, POSTS_IN_ORDER);
	assert_int_equal(i->rx_attr->comp_order, POSTS_IN_ORDER);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

TEST(test_refuses_what_it_does_not_have)
{
	REFUSED(h->caps |= FI_TAGGED);
	REFUSED(h->caps |= FI_RMA_EVENT);
	REFUSED(h->ep_attr->type = FI_EP_DGRAM);
	REFUSED(h->ep_attr->protocol = FI_PROTO_IB_UD);
	REFUSED(h->ep_attr->max_msg_size = (1u << 30) + 1);
	REFUSED(h->ep_attr->tx_ctx_cnt = 2);
	REFUSED(h->ep_attr->rx_ctx_cnt = 2);
	REFUSED(h->tx_attr->inject_size = 65);
	REFUSED(h->tx_attr->size = 4097);
	REFUSED(h->tx_attr->iov_limit = 5);
	REFUSED(h->tx_attr->rma_iov_limit = 2);
	REFUSED(h->tx_attr->op_flags = FI_DELIVERY_COMPLETE);
	REFUSED(h->tx_attr->msg_order = FI_ORDER_WAR);
	REFUSED(h->tx_attr->comp_order = BYTES_IN_ORDER);
	REFUSED(h->rx_attr->size = 4097);
	REFUSED(h->rx_attr->iov_limit = 5);
	REFUSED(h->rx_attr->total_buffered_recv = 1);
	REFUSED(h->rx_attr->op_flags = FI_MULTI_RECV);
	REFUSED(h->rx_attr->comp_order = BYTES_IN_ORDER);
	REFUSED(h->domain_attr->mr_mode = FI_MR_VIRT_ADDR);
	REFUSED(h->domain_attr->mr_mode = 0);
	REFUSED(h->domain_attr->mr_key_size = 2);
	REFUSED(h->domain_attr->caps = FI_SHARED_AV);
	REFUSED(h->domain_attr->cq_data_size = 8);
	REFUSED(h->domain_attr->mr_iov_limit = 2);
	REFUSED(h->domain_attr->control_progress = FI_PROGRESS_MANUAL + 1);
	REFUSED(h->domain_attr->data_progress = FI_PROGRESS_MANUAL + 1);
	REFUSED(h->domain_attr->name = strdup("mlx5_0"));
	REFUSED(h->fabric_attr->name = strdup("other"));
	REFUSED(h->addr_format = FI_SOCKADDR_IB);
}

TEST(test_refuses_an_old_api)
{
	struct fi_info *h = hints_of(FI_MSG), *i = NULL;

	assert_int_equal(fi_getinfo(FI_VERSION(1, 4), NULL, NULL, 0, h, &i), -FI_ENODATA);
	fi_freeinfo(h);
}

TEST(test_refuses_names_that_do_not_resolve)
{
	struct fi_info *h = hints_of(FI_MSG);

	assert_null(ask(h, "not a host", "1", FI_NUMERICHOST));
	assert_null(ask(h, "127.0.0.1", "no service", 0));
	fi_freeinfo(h);
}

TEST_MAIN(0)
