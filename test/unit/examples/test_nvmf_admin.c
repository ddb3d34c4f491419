/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* NVMe-oF engine: Identify, features, log pages, asynchronous events, Abort. */
#include <errno.h>
#include <string.h>

#include "bb_test.h"
#include "nvmf_host.h"

static struct nvmf_host host;
static struct nvmf_queue *q;

static int
setup(void **state)
{
	*state = &host;
	nvmf_host_open(&host);
	q = nvmf_host_admin(&host, SUBSYS_OPEN);
	return 0;
}

static int
teardown(void **state)
{
	nvmf_host_drop(*state, q);
	nvmf_host_close(*state);
	return 0;
}

static uint32_t
admin(uint8_t op, uint32_t nsid, uint32_t len, uint32_t cdw10, uint32_t cdw11)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_cmd(&host, cmd, op, nsid, len);
	put32(cmd + AT_CDW10, cdw10);
	put32(cmd + AT_CDW11, cdw11);
	return nvmf_host_exec(&host, q, cmd);
}

#define identify(cns, nsid)    admin(ADM_IDENTIFY, nsid, NVMF_PAGE, cns, 0)
#define set_feature(id, value) admin(ADM_SET_FEATURES, 0, 0, id, value)
#define get_feature(id)        admin(ADM_GET_FEATURES, 0, 0, id, 0)
#define INVALID                (SC_INVALID_FIELD | SC_DNR)

/* ---- Identify */

TEST_WITH(setup, teardown, test_identify_controller_has_what_linux_requires)
{
	const uint8_t *d = host.mem;

	assert_int_equal(identify(CNS_CONTROLLER, 0), SC_OK);
	assert_memory_equal(d + 4, "S1                  ", 20);
	assert_int_equal(d[77], 1); /* MDTS: 8192 is two pages */
	assert_int_equal(get16(d + 78), q->ctrl->cntlid);
	assert_int_equal(get32(d + 80), 0x10300);
	assert_int_equal(d[111], 1);
	assert_true(get16(d + 320) != 0); /* KAS is mandatory over Fabrics */
	assert_true(get16(d + 514) != 0); /* MAXCMD, too */
	assert_int_equal(d[512], 0x66);
	assert_int_equal(d[513], 0x44);
	assert_int_equal(get32(d + 516), 5);
	assert_int_equal(get16(d + 520), 0xd);      /* Compare, DSM, Write Zeroes */
	assert_int_equal(get32(d + 536), 0x100005); /* SGLs: keyed, in-capsule */
	assert_string_equal(d + 768, SUBSYS_OPEN);
	assert_int_equal(get32(d + 1792), (64 + IN_CAPSULE) / 16);
	assert_int_equal(get32(d + 1796), 1);
	assert_int_equal(get16(d + 1800), 0); /* ICDOFF */
}

TEST_WITH(setup, teardown, test_identify_namespace)
{
	const uint8_t *d = host.mem;
	uint8_t zero[NVMF_PAGE] = {0};

	assert_int_equal(identify(CNS_NAMESPACE, 2), SC_OK);
	assert_int_equal(get64(d), 256);
	assert_int_equal(d[130], 12);
	assert_int_equal(d[99], 1); /* write protected */
	assert_memory_equal(d + 104, host.nothing.id, 16);
	assert_int_equal(identify(CNS_NAMESPACE, 1), SC_OK);
	assert_int_equal(get64(d), NS_BLOCKS);
	assert_int_equal(d[130], 9);
	assert_int_equal(d[99], 0);
	/* Inactive: zeros. Outside of the range: an error. */
	assert_int_equal(identify(CNS_NAMESPACE, 3), SC_OK);
	assert_memory_equal(d, zero, NVMF_PAGE);
	assert_int_equal(identify(CNS_NAMESPACE, 0), SC_INVALID_NAMESPACE | SC_DNR);
	assert_int_equal(identify(CNS_NAMESPACE, 6), SC_INVALID_NAMESPACE | SC_DNR);
	assert_int_equal(identify(CNS_NAMESPACE, NVMF_NSID_ALL), SC_INVALID_NAMESPACE | SC_DNR);
}

TEST_WITH(setup, teardown, test_identify_lists_active_namespaces_above_the_given_one)
{
	const uint8_t *d = host.mem;

	assert_int_equal(identify(CNS_ACTIVE_LIST, 0), SC_OK);
	assert_int_equal(get32(d), 1);
	assert_int_equal(get32(d + 4), 2);
	assert_int_equal(get32(d + 8), 4);
	assert_int_equal(get32(d + 12), 0);
	assert_int_equal(identify(CNS_ACTIVE_LIST, 2), SC_OK);
	assert_int_equal(get32(d), 4);
	assert_int_equal(identify(CNS_ACTIVE_LIST, 4), SC_OK);
	assert_int_equal(get32(d), 0);
	assert_int_equal(identify(CNS_ACTIVE_LIST, 5000), SC_OK);
	assert_int_equal(get32(d), 0);
	assert_int_equal(identify(CNS_ACTIVE_LIST, 0xfffffffe), SC_INVALID_NAMESPACE | SC_DNR);
	assert_int_equal(identify(CNS_ACTIVE_LIST, NVMF_NSID_ALL), SC_INVALID_NAMESPACE | SC_DNR);
}

TEST_WITH(setup, teardown, test_identifiers_differ_between_namespaces_and_survive_a_restart)
{
	const uint8_t *d = host.mem;
	uint8_t first[16];

	assert_int_equal(identify(CNS_DESCRIPTORS, 1), SC_OK);
	assert_int_equal(d[0], 2);
	assert_int_equal(d[20], 3);
	assert_int_equal(d[40], 0); /* the end of the list */
	memcpy(first, d + 24, 16);
	assert_int_equal(identify(CNS_DESCRIPTORS, 2), SC_OK);
	assert_memory_not_equal(d + 24, first, 16);
	assert_int_equal(identify(CNS_DESCRIPTORS, 3), SC_INVALID_NAMESPACE | SC_DNR);
	nvmf_host_drop(&host, q);
	nvmf_host_close(&host);
	nvmf_host_open(&host);
	q = nvmf_host_admin(&host, SUBSYS_OPEN);
	assert_int_equal(identify(CNS_DESCRIPTORS, 1), SC_OK);
	assert_memory_equal(d + 24, first, 16);
}

TEST_WITH(setup, teardown, test_identify_with_unknown_cns_or_wrong_length_is_refused)
{
	assert_int_equal(identify(0x10, 1), INVALID);
	assert_int_equal(identify(4, 1), INVALID);
	assert_int_equal(admin(ADM_IDENTIFY, 0, 4095, CNS_CONTROLLER, 0), SC_SGL_LENGTH | SC_DNR);
	assert_int_equal(admin(ADM_IDENTIFY, 0, 4097, CNS_CONTROLLER, 0), SC_SGL_LENGTH | SC_DNR);
	assert_int_equal(admin(ADM_IDENTIFY, 0, 0, CNS_CONTROLLER, 0), SC_SGL_LENGTH | SC_DNR);
	assert_int_equal(admin(0x80, 1, 0, 0, 0), SC_INVALID_OPCODE | SC_DNR);
	assert_int_equal(admin(0x01, 1, 0, 0, 0), SC_INVALID_OPCODE | SC_DNR);
}

TEST_WITH(setup, teardown, test_namespaces_outside_of_the_limits_are_not_added)
{
	struct nvmf_ns ns;

	nvmf_ns_null(&ns, 1 << 20, 9);
	assert_int_equal(nvmf_ns_add(&host.subsys[0], 0, &ns), -EINVAL);
	assert_int_equal(nvmf_ns_add(&host.subsys[0], 6, &ns), -EINVAL);
	assert_int_equal(nvmf_ns_add(&host.subsys[0], 1, &ns), -EBUSY);
	ns.blocks = UINT64_MAX >> 9;
	assert_int_equal(nvmf_ns_add(&host.subsys[0], 3, &ns), -EINVAL);
	nvmf_ns_null(&ns, 1 << 20, 8);
	assert_int_equal(nvmf_ns_add(&host.subsys[0], 3, &ns), -EINVAL);
	nvmf_ns_null(&ns, 1 << 20, 13);
	assert_int_equal(nvmf_ns_add(&host.subsys[0], 3, &ns), -EINVAL);
}

/* ---- Features */

TEST_WITH(setup, teardown, test_number_of_queues_is_granted_before_io_queues_exist)
{
	struct nvmf_queue *io;

	assert_int_equal(set_feature(FEAT_QUEUES, 0x003f003f), SC_OK);
	assert_int_equal(host.result, (IO_QUEUES - 1) * 0x10001u);
	assert_int_equal(get_feature(FEAT_QUEUES), SC_OK);
	assert_int_equal(host.result, (IO_QUEUES - 1) * 0x10001u);
	assert_int_equal(set_feature(FEAT_QUEUES, 0x0000ffff), INVALID);
	assert_int_equal(set_feature(FEAT_QUEUES, 0xffff0000), INVALID);
	io = nvmf_host_io(&host, q, 1);
	assert_int_equal(set_feature(FEAT_QUEUES, 0), SC_COMMAND_SEQUENCE | SC_DNR);
	nvmf_host_drop(&host, io);
}

TEST_WITH(setup, teardown, test_features_keep_their_values)
{
	assert_int_equal(set_feature(FEAT_KATO, 4001), SC_OK);
	assert_int_equal(get_feature(FEAT_KATO), SC_OK);
	assert_int_equal(host.result, 5000);
	assert_int_equal(set_feature(FEAT_KATO, UINT32_MAX), SC_OK);
	assert_int_equal(get_feature(FEAT_KATO), SC_OK);
	assert_int_equal(host.result, UINT32_MAX);
	assert_int_equal(set_feature(FEAT_ARBITRATION, 7), SC_OK);
	assert_int_equal(get_feature(FEAT_ARBITRATION), SC_OK);
	assert_int_equal(host.result, 7);
	assert_int_equal(get_feature(FEAT_CACHE), SC_OK);
	assert_int_equal(host.result, 1);
	assert_int_equal(set_feature(FEAT_CACHE, 0), SC_NOT_CHANGEABLE | SC_DNR);
	assert_int_equal(set_feature(FEAT_ASYNC, ASYNC_NS_ATTR), SC_OK);
	assert_int_equal(get_feature(FEAT_ASYNC), SC_OK);
	assert_int_equal(host.result, ASYNC_NS_ATTR);
	assert_int_equal(set_feature(FEAT_ASYNC, 0x800), INVALID);
}

TEST_WITH(setup, teardown, test_features_that_do_not_exist_are_refused)
{
	assert_int_equal(get_feature(0), INVALID);
	assert_int_equal(set_feature(0x08, 0), INVALID);
	assert_int_equal(set_feature(0xc0, 0), INVALID);
	assert_int_equal(set_feature(FEAT_SAVE | FEAT_KATO, 0), SC_NOT_SAVEABLE | SC_DNR);
	assert_int_equal(get_feature(0x100 | FEAT_KATO), INVALID);
	assert_int_equal(admin(ADM_SET_FEATURES, 0, 16, FEAT_KATO, 0), SC_SGL_LENGTH | SC_DNR);
	assert_int_equal(admin(ADM_GET_FEATURES, 0, 16, FEAT_KATO, 0), SC_SGL_LENGTH | SC_DNR);
}

TEST_WITH(setup, teardown, test_host_id_is_that_of_connect_and_stays)
{
	uint8_t id[16];

	memset(id, 0xa5, sizeof(id));
	assert_int_equal(admin(ADM_GET_FEATURES, 0, 16, FEAT_HOST_ID, 1), SC_OK);
	assert_memory_equal(host.mem, id, sizeof(id));
	assert_int_equal(admin(ADM_GET_FEATURES, 0, 16, FEAT_HOST_ID, 0), INVALID);
	assert_int_equal(admin(ADM_GET_FEATURES, 0, 8, FEAT_HOST_ID, 1), SC_SGL_LENGTH | SC_DNR);
	assert_int_equal(admin(ADM_SET_FEATURES, 0, 16, FEAT_HOST_ID, 1),
			 SC_COMMAND_SEQUENCE | SC_DNR);
}

/* ---- Log pages */

/* Gets @len bytes of a page at @offset. */
static uint32_t
get_log(uint8_t id, uint32_t nsid, uint64_t offset, uint32_t len)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_cmd(&host, cmd, ADM_GET_LOG_PAGE, nsid, len);
	put32(cmd + AT_CDW10, id | (len / 4 - 1) << 16);
	put32(cmd + AT_CDW11, (len / 4 - 1) >> 16);
	put64(cmd + AT_CDW12, offset);
	return nvmf_host_exec(&host, q, cmd);
}

TEST_WITH(setup, teardown, test_error_log_has_the_newest_error_first)
{
	assert_int_equal(identify(0x10, 7), INVALID);
	assert_int_equal(get_feature(0), INVALID);
	assert_int_equal(get_log(LOG_ERROR, 0, 0, 192), SC_OK);
	assert_int_equal(get64(host.mem), 2);
	assert_int_equal(get16(host.mem + 12), INVALID << 1 & 0xffff);
	assert_int_equal(get64(host.mem + 64), 1);
	assert_int_equal(get32(host.mem + 64 + 24), 7);
	assert_int_equal(get16(host.mem + 64 + 8), 0);
	assert_int_equal(get64(host.mem + 128), 0);
	for (uint32_t i = 0; i < NVMF_ERRORS; i++)
		assert_int_equal(get_feature(0), INVALID);
	assert_int_equal(get_log(LOG_ERROR, 0, 64 * (NVMF_ERRORS - 1), 128), SC_OK);
	assert_int_equal(get64(host.mem), 3);
	assert_int_equal(get64(host.mem + 64), 0); /* after the end of the page: zeros */
}

TEST_WITH(setup, teardown, test_smart_log_counts_commands_and_data)
{
	struct nvmf_queue *io = nvmf_host_io(&host, q, 1);
	uint8_t cmd[NVMF_SQE];

	for (uint32_t i = 0; i < 3; i++) {
		nvmf_host_rw(&host, cmd, NVM_READ, 1, i, 2, 1024);
		assert_int_equal(nvmf_host_exec(&host, io, cmd), SC_OK);
	}
	nvmf_host_rw(&host, cmd, NVM_WRITE, 4, 0, 1, 512);
	assert_int_equal(nvmf_host_exec(&host, io, cmd), SC_OK);
	assert_int_equal(get_log(LOG_SMART, NVMF_NSID_ALL, 0, 512), SC_OK);
	assert_int_equal(get64(host.mem + 32), 1);
	assert_int_equal(get64(host.mem + 64), 3);
	assert_int_equal(get64(host.mem + 80), 1);
	assert_int_equal(get_log(LOG_SMART, 4, 0, 512), SC_OK);
	assert_int_equal(get64(host.mem + 32), 0);
	assert_int_equal(get64(host.mem + 64), 0);
	assert_int_equal(get64(host.mem + 80), 1);
	assert_int_equal(get_log(LOG_SMART, 3, 0, 512), SC_INVALID_NAMESPACE | SC_DNR);
	nvmf_host_drop(&host, io);
}

TEST_WITH(setup, teardown, test_pages_are_read_by_parts)
{
	uint8_t whole[512];

	assert_int_equal(get_log(LOG_FIRMWARE, 0, 0, 512), SC_OK);
	memcpy(whole, host.mem, 512);
	assert_int_equal(whole[0], 1);
	assert_int_equal(get_log(LOG_FIRMWARE, 0, 8, 12), SC_OK);
	assert_memory_equal(host.mem, whole + 8, 12);
	assert_int_equal(get_log(LOG_EFFECTS, 0, 0, 4096), SC_OK);
	assert_int_equal(get32(host.mem + 4 * ADM_KEEP_ALIVE), 1);
	assert_int_equal(get32(host.mem + 1024 + 4 * NVM_WRITE), 3);
	assert_int_equal(get32(host.mem + 1024 + 4 * NVM_READ), 1);
	assert_int_equal(get32(host.mem + 1024 + 4 * 0x0d), 0);
	assert_int_equal(get_log(LOG_EFFECTS, 0, 4096, 4), SC_OK);
	assert_int_equal(get_log(LOG_EFFECTS, 0, 4100, 4), INVALID);
	assert_int_equal(get_log(LOG_EFFECTS, 0, 2, 4), INVALID);
	assert_int_equal(get_log(LOG_EFFECTS, 0, UINT64_MAX - 3, 4), INVALID);
	assert_int_equal(get_log(LOG_EFFECTS, 0, 0, MAX_IO + 4), INVALID);
	assert_int_equal(get_log(LOG_DISCOVERY, 0, 0, 4), SC_INVALID_LOG_PAGE | SC_DNR);
	assert_int_equal(get_log(0x0c, 0, 0, 4), SC_INVALID_LOG_PAGE | SC_DNR);
	assert_int_equal(admin(ADM_GET_LOG_PAGE, 0, 8, LOG_SMART | 127 << 16, 0),
			 SC_SGL_LENGTH | SC_DNR);
	/* 2^32 dwords: NUMD is 32 bits, and 0's based. */
	assert_int_equal(admin(ADM_GET_LOG_PAGE, 0, 0, LOG_SMART | 0xffff0000, 0xffff), INVALID);
}

/* ---- Asynchronous events */

static void
send_async(uint16_t cid)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_cmd(&host, cmd, ADM_ASYNC_EVENT, 0, 0);
	put16(cmd + AT_CID, cid);
	nvmf_host_send(&host, q, cmd, NULL, 0);
	nvmf_host_run(&host);
}

TEST_WITH(setup, teardown, test_changed_namespace_is_reported_once_until_its_log_is_read)
{
	uint32_t before = host.responses;

	assert_int_equal(set_feature(FEAT_ASYNC, ASYNC_NS_ATTR), SC_OK);
	send_async(500);
	send_async(501);
	assert_int_equal(host.responses, before + 1);
	nvmf_ns_changed(host.t, &host.subsys[0], 4);
	nvmf_ns_changed(host.t, &host.subsys[0], 1);
	nvmf_ns_changed(host.t, &host.subsys[0], 4);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before + 2);
	assert_int_equal(get64(host.response[before + 1].cqe), EVENT_NS_ATTR);
	/* RAE keeps the list and the mask. */
	assert_int_equal(admin(ADM_GET_LOG_PAGE, 0, 4, LOG_CHANGED_NS | LOG_RETAIN, 0), SC_OK);
	nvmf_ns_changed(host.t, &host.subsys[0], 2);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before + 3);
	assert_int_equal(get_log(LOG_CHANGED_NS, 0, 0, 4096), SC_OK);
	assert_int_equal(get32(host.mem), 1);
	assert_int_equal(get32(host.mem + 4), 2);
	assert_int_equal(get32(host.mem + 8), 4);
	assert_int_equal(get32(host.mem + 12), 0);
	nvmf_ns_changed(host.t, &host.subsys[0], 2);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before + 5);
}

TEST_WITH(setup, teardown, test_events_that_are_not_enabled_wait)
{
	uint32_t before = host.responses;

	send_async(500);
	nvmf_ns_changed(host.t, &host.subsys[0], 1);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before);
	assert_int_equal(set_feature(FEAT_ASYNC, ASYNC_NS_ATTR), UINT32_MAX); /* two responses */
	assert_int_equal(host.responses, before + 2);
}

TEST_WITH(setup, teardown, test_more_changed_namespaces_than_fit_read_as_all)
{
	static struct nvmf_subsys *s = &host.subsys[0];

	for (uint32_t i = 1; i <= NVMF_CHANGED + 1; i++)
		nvmf_ns_changed(host.t, s, i);
	assert_int_equal(get_log(LOG_CHANGED_NS, 0, 0, 4096), SC_OK);
	assert_int_equal(get32(host.mem), NVMF_NSID_ALL);
	assert_int_equal(get32(host.mem + 4), 0);
}

TEST_WITH(setup, teardown, test_fifth_event_request_is_refused_and_abort_ends_one)
{
	uint32_t before = host.responses;

	for (uint16_t i = 0; i < NVMF_ASYNC + 1; i++)
		send_async((uint16_t)(600 + i));
	assert_int_equal(host.responses, before + 1);
	assert_int_equal(nvmf_host_status(&host, before), SC_ASYNC_LIMIT | SC_DNR);
	/* An id of no command, and one of another queue. */
	assert_int_equal(admin(ADM_ABORT, 0, 0, 700 << 16, 0), SC_OK);
	assert_int_equal(host.result, 1);
	assert_int_equal(admin(ADM_ABORT, 0, 0, 601 << 16 | 1, 0), SC_OK);
	assert_int_equal(host.result, 1);
	before = host.responses;
	assert_int_equal(admin(ADM_ABORT, 0, 0, 601 << 16, 0), UINT32_MAX);
	assert_int_equal(host.responses, before + 2);
	assert_int_equal(nvmf_host_status(&host, before), SC_ABORT_REQUESTED);
	assert_int_equal(get16(host.response[before].cqe + AT_CQE_CID), 601);
	assert_int_equal(get64(host.response[before + 1].cqe), 0);
}

/* ---- Discovery */

TEST_WITH(setup, teardown, test_discovery_lists_the_subsystems_of_the_host)
{
	struct nvmf_queue *nvm = q;
	const uint8_t *d = host.mem;

	q = nvmf_host_admin(&host, NVMF_DISCOVERY);
	assert_int_equal(identify(CNS_CONTROLLER, 0), SC_OK);
	assert_int_equal(d[111], 2);
	assert_string_equal(d + 768, NVMF_DISCOVERY);
	assert_int_equal(identify(CNS_NAMESPACE, 1), INVALID);
	assert_int_equal(set_feature(FEAT_QUEUES, 0), INVALID);
	assert_int_equal(admin(ADM_ABORT, 0, 0, 0, 0), SC_INVALID_OPCODE | SC_DNR);
	assert_int_equal(get_log(LOG_SMART, 0, 0, 512), SC_INVALID_LOG_PAGE | SC_DNR);
	assert_int_equal(get_log(LOG_DISCOVERY, 0, 0, 1024), SC_OK);
	assert_int_equal(get64(d), 0);
	assert_int_equal(get64(d + 8), 4);
	assert_int_equal(get_log(LOG_DISCOVERY, 0, 0, 5120), SC_OK);
	d += 1024;
	assert_int_equal(d[0], 1);
	assert_int_equal(d[1], 1);
	assert_int_equal(d[2], 2);
	assert_int_equal(get16(d + 6), 0xffff);
	assert_int_equal(get16(d + 8), 32);
	assert_string_equal(d + 32, "4420");
	assert_string_equal(d + 256, SUBSYS_OPEN);
	assert_string_equal(d + 512, "192.0.2.1");
	assert_int_equal(d[770], 1);
	/* The second listener. */
	d += 1024;
	assert_int_equal(d[1], 2);
	assert_int_equal(get16(d + 4), 2);
	assert_string_equal(d + 32, "4421");
	assert_string_equal(d + 256, SUBSYS_OPEN);
	assert_string_equal(d + 512, "2001:db8::1");
	assert_string_equal(d + 1024 + 256, SUBSYS_OWN);
	assert_string_equal(d + 2048 + 256, SUBSYS_OWN);
	/* A host that is not in the list of SUBSYS_OWN does not see it. */
	strcpy(q->ctrl->hostnqn, HOST_OTHER);
	assert_int_equal(get_log(LOG_DISCOVERY, 0, 0, 4096), SC_OK);
	assert_int_equal(get64(host.mem + 8), 2);
	assert_string_equal(host.mem + 2048 + 256, SUBSYS_OPEN);
	assert_int_equal(host.mem[3072], 0);
	nvmf_host_drop(&host, q);
	q = nvm;
}

TEST_WITH(setup, teardown, test_discovery_reports_a_changed_log)
{
	struct nvmf_queue *nvm = q;
	uint32_t before;

	q = nvmf_host_admin(&host, NVMF_DISCOVERY);
	assert_int_equal(set_feature(FEAT_ASYNC, ASYNC_NS_ATTR), INVALID);
	assert_int_equal(set_feature(FEAT_ASYNC, ASYNC_DISCOVERY), SC_OK);
	send_async(500);
	before = host.responses;
	nvmf_access_changed(host.t, &host.subsys[0]);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before + 1);
	assert_int_equal(get64(host.response[before].cqe), EVENT_DISCOVERY);
	assert_int_equal(get_log(LOG_DISCOVERY, 0, 0, 1024), SC_OK);
	assert_int_equal(get64(host.mem), 1);
	nvmf_host_drop(&host, q);
	q = nvm;
}

TEST_MAIN(0)
