/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* NVMe-oF engine: commands of I/O queues, SGL descriptors, capsules. */
#include <errno.h>
#include <string.h>

#include "bb_test.h"
#include "nvmf_host.h"

static struct nvmf_host host;
static struct nvmf_queue *admin, *q;

static int
setup(void **state)
{
	*state = &host;
	nvmf_host_open(&host);
	admin = nvmf_host_admin(&host, SUBSYS_OPEN);
	q = nvmf_host_io(&host, admin, 1);
	return 0;
}

static int
teardown(void **state)
{
	nvmf_host_drop(*state, q);
	nvmf_host_drop(*state, admin);
	nvmf_host_close(*state);
	return 0;
}

static uint32_t
rw(uint8_t op, uint32_t nsid, uint64_t slba, uint32_t n, uint32_t len)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_rw(&host, cmd, op, nsid, slba, n, len);
	return nvmf_host_exec(&host, q, cmd);
}

/* Executes a one-block command after byte @at was set to @value. */
static uint32_t
changed(uint8_t op, int at, uint8_t value)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_rw(&host, cmd, op, 1, 0, 1, 512);
	cmd[at] = value;
	return nvmf_host_exec(&host, q, cmd);
}

/* ---- Read and Write */

TEST_WITH(setup, teardown, test_read_and_write_move_the_data_of_the_range)
{
	uint8_t before[sizeof(host.storage)], data[MAX_IO];

	memcpy(before, host.storage, sizeof(before));
	memcpy(data, host.mem, MAX_IO);
	assert_int_equal(rw(NVM_WRITE, 1, 5, 16, MAX_IO), SC_OK);
	assert_memory_equal(host.storage, before, 5 * 512);
	assert_memory_equal(host.storage + 5 * 512, data, MAX_IO);
	assert_memory_equal(host.storage + 21 * 512, before + 21 * 512, 43 * 512);
	assert_int_equal(rw(NVM_READ, 1, 4, 2, 1024), SC_OK);
	assert_memory_equal(host.mem, before + 4 * 512, 512);
	assert_memory_equal(host.mem + 512, data, 512);
	assert_memory_equal(host.mem + 1024, data + 1024, MAX_IO - 1024);
}

TEST_WITH(setup, teardown, test_range_outside_of_the_namespace_is_refused)
{
	const uint8_t ops[] = {NVM_READ, NVM_WRITE, NVM_COMPARE, NVM_WRITE_ZEROES};
	uint8_t before[sizeof(host.storage)];

	memcpy(before, host.storage, sizeof(before));
	for (uint32_t i = 0; i < sizeof(ops); i++) {
		bool data = ops[i] != NVM_WRITE_ZEROES;

		assert_int_equal(rw(ops[i], 1, NS_BLOCKS, 1, data ? 512 : 0),
				 SC_LBA_RANGE | SC_DNR);
		assert_int_equal(rw(ops[i], 1, NS_BLOCKS - 1, 2, data ? 1024 : 0),
				 SC_LBA_RANGE | SC_DNR);
		assert_int_equal(rw(ops[i], 1, UINT64_MAX, 1, data ? 512 : 0),
				 SC_LBA_RANGE | SC_DNR);
		assert_int_equal(rw(ops[i], 1, UINT64_MAX - 1, 2, data ? 1024 : 0),
				 SC_LBA_RANGE | SC_DNR);
		/* Shifted by the block size, this block number would become 0. */
		assert_int_equal(rw(ops[i], 1, 1ull << 55, 1, data ? 512 : 0),
				 SC_LBA_RANGE | SC_DNR);
		assert_int_equal(rw(ops[i], 1, 0, 65536, data ? 512 : 0), SC_LBA_RANGE | SC_DNR);
	}
	assert_memory_equal(host.storage, before, sizeof(before));
	assert_int_equal(rw(NVM_READ, 1, NS_BLOCKS - 1, 1, 512), SC_OK);
}

TEST_WITH(setup, teardown, test_namespace_that_does_not_exist_is_refused)
{
	assert_int_equal(rw(NVM_READ, 0, 0, 1, 512), SC_INVALID_NAMESPACE | SC_DNR);
	assert_int_equal(rw(NVM_READ, 3, 0, 1, 512), SC_INVALID_NAMESPACE | SC_DNR);
	assert_int_equal(rw(NVM_READ, 6, 0, 1, 512), SC_INVALID_NAMESPACE | SC_DNR);
	assert_int_equal(rw(NVM_WRITE, NVMF_NSID_ALL, 0, 1, 512), SC_INVALID_NAMESPACE | SC_DNR);
	assert_int_equal(rw(NVM_FLUSH, 3, 0, 1, 0), SC_INVALID_NAMESPACE | SC_DNR);
	assert_int_equal(rw(0x04, 1, 0, 1, 0), SC_INVALID_OPCODE | SC_DNR);
	assert_int_equal(rw(ADM_KEEP_ALIVE, 1, 0, 1, 0), SC_INVALID_OPCODE | SC_DNR);
	assert_int_equal(rw(OPC_FABRICS, FC_PROPERTY_GET, 0, 1, 0), SC_INVALID_OPCODE | SC_DNR);
}

TEST_WITH(setup, teardown, test_length_must_be_that_of_the_blocks_and_at_most_mdts)
{
	assert_int_equal(rw(NVM_READ, 1, 0, 2, 512), SC_SGL_LENGTH | SC_DNR);
	assert_int_equal(rw(NVM_READ, 1, 0, 1, 1024), SC_SGL_LENGTH | SC_DNR);
	assert_int_equal(rw(NVM_WRITE, 1, 0, 1, 0), SC_SGL_LENGTH | SC_DNR);
	assert_int_equal(rw(NVM_READ, 1, 0, 17, MAX_IO + 512), SC_INVALID_FIELD | SC_DNR);
	assert_int_equal(rw(NVM_COMPARE, 1, 0, 17, MAX_IO + 512), SC_INVALID_FIELD | SC_DNR);
	assert_int_equal(rw(NVM_FLUSH, 1, 0, 1, 512), SC_SGL_LENGTH | SC_DNR);
	assert_int_equal(rw(NVM_WRITE_ZEROES, 1, 0, 1, 512), SC_SGL_LENGTH | SC_DNR);
	/* Write Zeroes has no data: MDTS does not limit it. */
	assert_int_equal(rw(NVM_WRITE_ZEROES, 1, 0, NS_BLOCKS, 0), SC_OK);
}

TEST_WITH(setup, teardown, test_read_only_namespace_refuses_changes)
{
	assert_int_equal(rw(NVM_WRITE, 2, 0, 1, 4096), SC_WRITE_PROTECTED | SC_DNR);
	assert_int_equal(rw(NVM_WRITE_ZEROES, 2, 0, 1, 0), SC_WRITE_PROTECTED | SC_DNR);
	assert_int_equal(rw(NVM_DSM, 2, 0, 1, 16), SC_WRITE_PROTECTED | SC_DNR);
	assert_int_equal(rw(NVM_READ, 2, 0, 1, 4096), SC_OK);
	assert_int_equal(rw(NVM_FLUSH, 2, 0, 1, 0), SC_OK);
}

TEST_WITH(setup, teardown, test_null_namespace_does_not_show_old_memory)
{
	static const uint8_t zero[MAX_IO];

	assert_int_equal(rw(NVM_READ, 2, 255, 1, 4096), SC_OK);
	assert_memory_equal(host.mem, zero, 4096);
	/* A transport that has zeros sends these. */
	memset(host.mem, 0x55, 4096);
	host.t->zeros = zero;
	assert_int_equal(rw(NVM_READ, 2, 255, 1, 4096), SC_OK);
	assert_memory_equal(host.mem, zero, 4096);
	/* Compare needs them in the request's memory. */
	assert_int_equal(rw(NVM_COMPARE, 2, 255, 1, 4096), SC_OK);
	host.mem[4095] = 1;
	assert_int_equal(rw(NVM_COMPARE, 2, 255, 1, 4096), SC_COMPARE_FAILED | SC_DNR);
	/* Other namespaces send their own data. */
	assert_int_equal(rw(NVM_READ, 1, 0, 1, 512), SC_OK);
	assert_memory_equal(host.mem, host.storage, 512);
}

TEST_WITH(setup, teardown, test_fua_reaches_the_namespace)
{
	uint8_t cmd[NVMF_SQE];

	assert_int_equal(rw(NVM_WRITE, 4, 0, 1, 512), SC_OK);
	assert_int_equal(host.fuas, 0);
	nvmf_host_rw(&host, cmd, NVM_WRITE, 4, 0, 1, 512);
	put32(cmd + AT_CDW12, CDW12_FUA);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_OK);
	assert_int_equal(host.fuas, 1);
	nvmf_host_rw(&host, cmd, NVM_WRITE_ZEROES, 4, 0, 1, 0);
	put32(cmd + AT_CDW12, CDW12_FUA);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_OK);
	assert_int_equal(host.fuas, 2);
	/* A read with FUA flushes first. */
	nvmf_host_rw(&host, cmd, NVM_READ, 4, 0, 1, 512);
	put32(cmd + AT_CDW12, CDW12_FUA);
	assert_int_equal(host.ops[NVMF_IO_FLUSH], 0);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_OK);
	assert_int_equal(host.ops[NVMF_IO_FLUSH], 1);
	assert_int_equal(host.ops[NVMF_IO_READ], 1);
}

TEST_WITH(setup, teardown, test_errors_of_the_namespace_have_their_status)
{
	host.fail = -EIO;
	assert_int_equal(rw(NVM_READ, 4, 0, 1, 512), SC_READ_ERROR);
	assert_int_equal(rw(NVM_WRITE, 4, 0, 1, 512), SC_WRITE_FAULT);
	assert_int_equal(rw(NVM_FLUSH, 4, 0, 1, 0), SC_WRITE_FAULT);
	assert_int_equal(rw(NVM_FLUSH, NVMF_NSID_ALL, 0, 1, 0), SC_WRITE_FAULT);
	assert_int_equal(rw(NVM_COMPARE, 4, 0, 1, 512), SC_READ_ERROR);
	host.fail = -ENOSPC;
	assert_int_equal(rw(NVM_WRITE, 4, 0, 1, 512), SC_CAPACITY | SC_DNR);
	host.fail = -EOPNOTSUPP;
	assert_int_equal(rw(NVM_WRITE_ZEROES, 4, 0, 1, 0), SC_INVALID_OPCODE | SC_DNR);
	assert_int_equal(host.slow.writes, 0);
}

TEST_WITH(setup, teardown, test_commands_end_in_the_order_of_their_namespace)
{
	uint8_t cmd[NVMF_SQE];
	uint32_t before = host.responses;

	host.hold = true;
	nvmf_host_rw(&host, cmd, NVM_READ, 4, 0, 1, 512);
	nvmf_host_send(&host, q, cmd, NULL, 0);
	nvmf_host_rw(&host, cmd, NVM_FLUSH, NVMF_NSID_ALL, 0, 1, 0);
	nvmf_host_send(&host, q, cmd, NULL, 0);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before);
	assert_int_equal(rw(NVM_READ, 1, 0, 1, 512), SC_OK);
	nvmf_host_finish(&host, 0);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before + 3);
	assert_int_equal(nvmf_host_status(&host, before + 1), SC_OK);
	assert_int_equal(nvmf_host_status(&host, before + 2), SC_OK);
}

/* ---- Compare, Write Zeroes, Dataset Management */

TEST_WITH(setup, teardown, test_compare_finds_a_difference_in_each_part)
{
	memcpy(host.mem, host.storage + 512, MAX_IO);
	assert_int_equal(rw(NVM_COMPARE, 1, 1, 16, MAX_IO), SC_OK);
	for (uint32_t at = 0; at < MAX_IO; at += MAX_IO / 2 - 1) {
		host.mem[at] ^= 1;
		assert_int_equal(rw(NVM_COMPARE, 1, 1, 16, MAX_IO), SC_COMPARE_FAILED | SC_DNR);
		host.mem[at] ^= 1;
	}
	host.mem[MAX_IO - 1] ^= 1;
	assert_int_equal(rw(NVM_COMPARE, 1, 1, 16, MAX_IO), SC_COMPARE_FAILED | SC_DNR);
	/* Data after the end of the command is not compared. */
	assert_int_equal(rw(NVM_COMPARE, 1, 1, 15, MAX_IO - 512), SC_OK);
}

TEST_WITH(setup, teardown, test_compare_takes_data_in_the_capsule)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_rw(&host, cmd, NVM_COMPARE, 1, 2, 8, IN_CAPSULE);
	nvmf_host_in_capsule(cmd, 0, IN_CAPSULE);
	nvmf_host_send(&host, q, cmd, host.storage + 1024, IN_CAPSULE);
	nvmf_host_run(&host);
	assert_int_equal(nvmf_host_status(&host, host.responses - 1), SC_OK);
	host.storage[1024 + IN_CAPSULE - 1] ^= 1;
	memcpy(host.capsule[63] + NVMF_SQE, host.storage + 1024, IN_CAPSULE);
	host.capsule[63][NVMF_SQE + IN_CAPSULE - 1] ^= 1;
	memcpy(host.capsule[63], cmd, NVMF_SQE);
	nvmf_capsule(q, host.capsule[63], NVMF_SQE + IN_CAPSULE, 63);
	nvmf_host_run(&host);
	assert_int_equal(nvmf_host_status(&host, host.responses - 1), SC_COMPARE_FAILED | SC_DNR);
}

TEST_WITH(setup, teardown, test_write_zeroes_changes_only_its_range)
{
	uint8_t before[sizeof(host.storage)], zero[1024] = {0};

	memcpy(before, host.storage, sizeof(before));
	assert_int_equal(rw(NVM_WRITE_ZEROES, 1, 3, 2, 0), SC_OK);
	assert_memory_equal(host.storage, before, 3 * 512);
	assert_memory_equal(host.storage + 3 * 512, zero, 1024);
	assert_memory_equal(host.storage + 5 * 512, before + 5 * 512, 59 * 512);
}

static uint32_t
dsm(uint32_t n, uint32_t len, uint32_t attributes)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_cmd(&host, cmd, NVM_DSM, 4, len);
	put32(cmd + AT_CDW10, n - 1);
	put32(cmd + AT_CDW11, attributes);
	return nvmf_host_exec(&host, q, cmd);
}

TEST_WITH(setup, teardown, test_dsm_deallocates_all_ranges_or_none)
{
	memset(host.mem, 0, 4096);
	for (uint32_t i = 0; i < 256; i++) {
		put32(host.mem + 16 * i + 4, 1);
		put64(host.mem + 16 * i + 8, i % NS_BLOCKS);
	}
	assert_int_equal(dsm(2, 32, 0), SC_OK); /* without the attribute nothing happens */
	assert_int_equal(host.ops[NVMF_IO_DISCARD], 0);
	assert_int_equal(dsm(2, 32, DSM_AD), SC_OK);
	assert_int_equal(host.ops[NVMF_IO_DISCARD], 2);
	assert_int_equal(dsm(2, 4096, DSM_AD), SC_OK); /* Linux: always 256 ranges of memory */
	assert_int_equal(host.ops[NVMF_IO_DISCARD], 4);
	assert_int_equal(dsm(256, 4096, DSM_AD), SC_OK);
	assert_int_equal(host.ops[NVMF_IO_DISCARD], 260);
	assert_int_equal(dsm(2, 31, DSM_AD), SC_SGL_LENGTH | SC_DNR);
	assert_int_equal(dsm(1, 4112, DSM_AD), SC_SGL_LENGTH | SC_DNR);
	put32(host.mem + 16 * 2 + 4, NS_BLOCKS + 1);
	assert_int_equal(dsm(3, 48, DSM_AD), SC_LBA_RANGE | SC_DNR);
	put32(host.mem + 16 * 2 + 4, 2);
	put64(host.mem + 16 * 2 + 8, UINT64_MAX);
	assert_int_equal(dsm(3, 48, DSM_AD), SC_LBA_RANGE | SC_DNR);
	assert_int_equal(host.ops[NVMF_IO_DISCARD], 260);
	/* A hint that the namespace cannot take is no error. */
	host.fail = -EOPNOTSUPP;
	assert_int_equal(dsm(2, 32, DSM_AD), SC_OK);
	host.fail = -EIO;
	assert_int_equal(dsm(2, 32, DSM_AD), SC_WRITE_FAULT);
}

TEST_WITH(setup, teardown, test_closed_queue_starts_no_more_ranges)
{
	uint8_t cmd[NVMF_SQE];

	memset(host.mem, 0, 48);
	for (uint32_t i = 0; i < 3; i++)
		put32(host.mem + 16 * i + 4, 1);
	host.hold = true;
	nvmf_host_cmd(&host, cmd, NVM_DSM, 4, 48);
	put32(cmd + AT_CDW10, 2);
	put32(cmd + AT_CDW11, DSM_AD);
	nvmf_host_send(&host, q, cmd, NULL, 0);
	nvmf_host_run(&host);
	assert_int_equal(host.nheld, 1);
	nvmf_queue_close(q);
	nvmf_host_finish(&host, 0);
	assert_int_equal(host.ops[NVMF_IO_DISCARD], 0);
	assert_true(nvmf_queue_idle(q));
}

/* ---- SGL descriptors */

TEST_WITH(setup, teardown, test_sgl_types_that_the_transport_does_not_have_are_refused)
{
	for (uint32_t type = 0; type < 256; type++) {
		uint32_t want = SC_SGL_TYPE | SC_DNR;

		if (type == SGL_KEYED || type == SGL_KEYED_INV)
			want = SC_OK;
		if (type == SGL_IN_CAPSULE) /* no data in this capsule */
			want = SC_SGL_OFFSET | SC_DNR;
		assert_int_equal(changed(NVM_WRITE, AT_SGL + AT_SGL_TYPE, (uint8_t)type), want);
	}
}

TEST_WITH(setup, teardown, test_fused_commands_and_prps_are_refused)
{
	assert_int_equal(changed(NVM_READ, AT_FLAGS, PSDT_SGL | 1), SC_INVALID_FIELD | SC_DNR);
	assert_int_equal(changed(NVM_READ, AT_FLAGS, PSDT_SGL | 2), SC_INVALID_FIELD | SC_DNR);
	assert_int_equal(changed(NVM_READ, AT_FLAGS, 0), SC_INVALID_FIELD | SC_DNR);
	assert_int_equal(changed(NVM_READ, AT_FLAGS, 0x80), SC_INVALID_FIELD | SC_DNR);
	assert_int_equal(changed(NVM_READ, AT_FLAGS, 0xc0), SC_INVALID_FIELD | SC_DNR);
	assert_int_equal(changed(NVM_WRITE, AT_CDW12 + 2, 0x10), SC_INVALID_FIELD | SC_DNR);
}

TEST_WITH(setup, teardown, test_key_is_invalidated_only_where_the_host_asks)
{
	assert_int_equal(changed(NVM_READ, AT_SGL + AT_SGL_TYPE, SGL_KEYED), SC_OK);
	assert_false(host.response[(host.responses - 1) % RESPONSES].invalidate);
	assert_int_equal(changed(NVM_READ, AT_SGL + AT_SGL_TYPE, SGL_KEYED_INV), SC_OK);
	assert_true(host.response[(host.responses - 1) % RESPONSES].invalidate);
	assert_int_equal(host.response[(host.responses - 1) % RESPONSES].key, HOST_KEY);
	/* A command that fails invalidates it, too. */
	assert_int_equal(changed(0x7e, AT_SGL + AT_SGL_TYPE, SGL_KEYED_INV),
			 SC_INVALID_OPCODE | SC_DNR);
	assert_true(host.response[(host.responses - 1) % RESPONSES].invalidate);
}

static uint32_t
in_capsule(uint8_t op, uint64_t offset, uint32_t len, uint32_t have)
{
	uint8_t cmd[NVMF_SQE];
	uint32_t before = host.responses;

	nvmf_host_rw(&host, cmd, op, 1, 0, len / 512, len);
	nvmf_host_in_capsule(cmd, offset, len);
	nvmf_host_send(&host, q, cmd, host.mem, have);
	nvmf_host_run(&host);
	return host.responses == before + 1 ? nvmf_host_status(&host, before) : UINT32_MAX;
}

/* Returns whether @buf is the memory of a request, which the transport has aligned. */
static bool
in_memory(const void *buf)
{
	uint32_t i;

	for (i = 0; i < IO_DEPTH; i++)
		if (buf == q->req[i].mem)
			return true;
	return false;
}

TEST_WITH(setup, teardown, test_data_in_the_capsule_is_written)
{
	assert_int_equal(in_capsule(NVM_WRITE, 512, 1024, 2048), SC_OK);
	assert_memory_equal(host.storage, host.mem + 512, 1024);
	assert_int_equal(in_capsule(NVM_WRITE, 0, IN_CAPSULE, IN_CAPSULE), SC_OK);
	assert_memory_equal(host.storage, host.mem, IN_CAPSULE);
}

TEST_WITH(setup, teardown, test_data_at_an_odd_byte_of_the_capsule_reaches_the_namespace_aligned)
{
	static uint8_t capsule[NVMF_SQE + IN_CAPSULE + 512];
	uint8_t *page = (uint8_t *)(((uintptr_t)capsule + NVMF_SQE + 511) & ~(uintptr_t)511);
	uint8_t cmd[NVMF_SQE];
	uint32_t at;

	memcpy(page, host.mem, IN_CAPSULE);
	for (at = 0; at < 1024; at += at < 2 ? 1 : 255) {
		nvmf_host_rw(&host, cmd, NVM_WRITE, 4, 0, 2, 1024);
		put32(cmd + AT_CDW12, 1 | CDW12_FUA);
		nvmf_host_in_capsule(cmd, at, 1024);
		memcpy(page - NVMF_SQE, cmd, NVMF_SQE);
		nvmf_capsule(q, page - NVMF_SQE, NVMF_SQE + IN_CAPSULE, 0);
		nvmf_host_run(&host);
		assert_int_equal(nvmf_host_status(&host, host.responses - 1), SC_OK);
		assert_memory_equal(host.storage, page + at, 1024);
		/* Only data at an unaligned byte moves to the memory of the request. */
		if (at % 512 == 0)
			assert_ptr_equal(host.buf, page + at);
		else
			assert_true(in_memory(host.buf));
	}
}

TEST_WITH(setup, teardown, test_data_outside_of_the_capsule_is_refused)
{
	assert_int_equal(in_capsule(NVM_WRITE, 0, 1024, 1023), SC_SGL_OFFSET | SC_DNR);
	assert_int_equal(in_capsule(NVM_WRITE, 1, 1024, 1024), SC_SGL_OFFSET | SC_DNR);
	assert_int_equal(in_capsule(NVM_WRITE, UINT64_MAX, 1024, 1024), SC_SGL_OFFSET | SC_DNR);
	assert_int_equal(in_capsule(NVM_WRITE, UINT64_MAX - 1023, 1024, 1024),
			 SC_SGL_OFFSET | SC_DNR);
	assert_int_equal(in_capsule(NVM_WRITE, 0, 512, 0), SC_SGL_OFFSET | SC_DNR);
	assert_int_equal(in_capsule(NVM_WRITE, 0, 0xfffffe00, 512), SC_SGL_OFFSET | SC_DNR);
	/* Data that goes to the host cannot be in a capsule. */
	assert_int_equal(in_capsule(NVM_READ, 0, 512, 512), SC_SGL_TYPE | SC_DNR);
}

TEST_WITH(setup, teardown, test_admin_queue_has_no_data_in_capsules)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_cmd(&host, cmd, ADM_SET_FEATURES, 0, 16);
	nvmf_host_in_capsule(cmd, 0, 16);
	assert_int_equal(nvmf_host_exec(&host, admin, cmd), SC_SGL_TYPE | SC_DNR);
	nvmf_host_send(&host, admin, cmd, host.mem, 16);
	assert_int_equal(host.closes, 1);
}

TEST_WITH(setup, teardown, test_failed_transfer_ends_the_command)
{
	uint8_t before[512];

	memcpy(before, host.storage, 512);
	host.fail_pull = true;
	assert_int_equal(rw(NVM_WRITE, 1, 0, 1, 512), SC_DATA_TRANSFER);
	host.fail_pull = false;
	assert_int_equal(changed(NVM_WRITE, AT_SGL + AT_SGL_KEY, 1), SC_DATA_TRANSFER);
	assert_memory_equal(host.storage, before, 512);
}

/* ---- Capsules */

TEST_WITH(setup, teardown, test_capsules_of_wrong_length_close_the_queue)
{
	uint8_t cmd[NVMF_SQE];
	uint32_t before = host.responses;

	nvmf_host_rw(&host, cmd, NVM_READ, 1, 0, 1, 512);
	nvmf_capsule(q, cmd, 0, 0);
	nvmf_capsule(q, cmd, NVMF_SQE - 1, 0);
	nvmf_capsule(q, cmd, NVMF_SQE + IN_CAPSULE + 1, 0);
	nvmf_host_run(&host);
	assert_int_equal(host.closes, 3);
	assert_int_equal(host.responses, before);
}

TEST_WITH(setup, teardown, test_id_of_an_outstanding_command_is_a_conflict)
{
	uint8_t cmd[NVMF_SQE];
	uint32_t before;

	host.hold = true;
	nvmf_host_rw(&host, cmd, NVM_WRITE, 4, 0, 1, 512);
	nvmf_host_send(&host, q, cmd, NULL, 0);
	nvmf_host_run(&host);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_CID_CONFLICT | SC_DNR);
	/* The refusal did not free the id. */
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_CID_CONFLICT | SC_DNR);
	before = host.responses;
	nvmf_host_finish(&host, 0);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before + 1);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_OK);
}

TEST_WITH(setup, teardown, test_command_waits_for_a_request_until_a_response_is_delivered)
{
	uint8_t cmd[NVMF_SQE];
	uint32_t before = host.responses, i;

	/* The host has all responses, but the transport does not know that yet. */
	host.hold_sent = true;
	for (i = 0; i < IO_DEPTH; i++)
		assert_int_equal(rw(NVM_READ, 1, 0, 1, 512), SC_OK);
	for (i = 0; i < IO_DEPTH; i++) {
		nvmf_host_rw(&host, cmd, NVM_WRITE, 1, i, 1, 512);
		put16(cmd + AT_CID, 1000 + i);
		nvmf_host_send(&host, q, cmd, NULL, 0);
	}
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before + IO_DEPTH);
	nvmf_host_send(&host, q, cmd, NULL, 0);
	assert_int_equal(host.closes, 1); /* more commands than entries */
	host.hold_sent = false;
	for (i = 0; i < IO_DEPTH; i++)
		nvmf_req_sent(&q->req[i]);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before + 2 * IO_DEPTH);
	for (i = 0; i < IO_DEPTH; i++) {
		const uint8_t *cqe = host.response[(before + IO_DEPTH + i) % RESPONSES].cqe;

		assert_int_equal(get16(cqe + AT_CQE_CID), 1000 + i);
		assert_int_equal(get16(cqe + AT_CQE_STATUS), 0);
	}
}

TEST_WITH(setup, teardown, test_response_has_the_head_of_the_submission_queue)
{
	uint8_t cmd[NVMF_SQE];
	uint32_t want = 1, i;
	struct nvmf_queue *free_flow;

	for (i = 0; i < 2 * IO_DEPTH; i++) {
		assert_int_equal(rw(NVM_READ, 1, 0, 1, 512), SC_OK);
		want = want + 1 < IO_DEPTH ? want + 1 : 0;
		assert_int_equal(get16(host.response[(host.responses - 1) % RESPONSES].cqe + 8),
				 want);
		assert_int_equal(get16(host.response[(host.responses - 1) % RESPONSES].cqe + 10),
				 1);
	}
	/* Without flow control the field is 0xffff. */
	free_flow = nvmf_host_queue(&host, 2, IO_DEPTH);
	nvmf_host_connect_cmd(&host, cmd, SUBSYS_OPEN, 2, admin->ctrl->cntlid, IO_DEPTH);
	cmd[AT_CON_CATTR] = CATTR_NO_FLOW;
	assert_int_equal(nvmf_host_exec(&host, free_flow, cmd), SC_OK);
	assert_int_equal(get16(host.response[(host.responses - 1) % RESPONSES].cqe + 8), 0xffff);
	nvmf_host_drop(&host, free_flow);
}

TEST_WITH(setup, teardown, test_connect_of_an_io_queue_takes_data_in_the_capsule)
{
	struct nvmf_queue *io = nvmf_host_queue(&host, 2, IO_DEPTH);
	uint8_t cmd[NVMF_SQE];

	/* As Linux sends it: drivers/nvme/host/rdma.c, nvme_rdma_map_sg_inline(). */
	nvmf_host_connect_cmd(&host, cmd, SUBSYS_OPEN, 2, admin->ctrl->cntlid, IO_DEPTH);
	nvmf_host_in_capsule(cmd, 0, NVMF_CONNECT_DATA);
	nvmf_host_send(&host, io, cmd, host.mem, NVMF_CONNECT_DATA);
	nvmf_host_run(&host);
	assert_int_equal(nvmf_host_status(&host, host.responses - 1), SC_OK);
	assert_ptr_equal(io->ctrl, admin->ctrl);
	nvmf_host_drop(&host, io);
}

TEST_MAIN(0)
