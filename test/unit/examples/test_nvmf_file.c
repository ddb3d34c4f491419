/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* examples/nvmf: a namespace on a file, by io_uring and by plain calls. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <liburing.h>

#include "bb_test.h"
#include "nvmf_host.h"
#include "nvmf_program.h"

#define BLOCKS 256u
#define SIZE   (BLOCKS * 512u)
#define NSID   3u

static struct nvmf_host host;
static struct nvmf_queue *admin, *q;
static struct nvmf_file file;
static struct nvmf_ns ns;
static char path[] = "/tmp/nvmf_file.XXXXXX";

static bool refuse; /* the kernel takes no requests */

/* In place of liburing's function, which would call the kernel with the ring's file. */
int
io_uring_submit(struct io_uring *ring)
{
	int fd = ring->ring_fd, enter_fd = ring->enter_ring_fd, rc;

	if (refuse)
		ring->ring_fd = ring->enter_ring_fd = -1;
	rc = io_uring_submit_and_wait(ring, 0);
	ring->ring_fd = fd;
	ring->enter_ring_fd = enter_fd;
	return rc;
}

static bool
uring_works(void)
{
	struct io_queue *probe;
	struct backing b = {.fd = 0};

	if (io_queue_create(&b, true, 1, NULL, 0, &probe) != 0)
		return false;
	io_queue_destroy(probe);
	return true;
}

static const struct backing_attr attr = {
	.path = path, .size = SIZE, .block = 512, .buffered = true};

static int
create_file(void)
{
	int fd;

	memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
	fd = mkstemp(path);
	memset(&file, 0, sizeof(file));
	return fd < 0 ? -1 : close(fd);
}

static int
open_file(bool uring)
{
	if (create_file() != 0)
		return -1;
	nvmf_host_open(&host);
	OK(nvmf_file_open(&file, &attr, &ns));
	/* The memory of the requests is not registered: the host makes it later. */
	OK(nvmf_file_start(&file, &file, uring, 64, NULL, 0));
	OK(nvmf_ns_add(&host.subsys[0], NSID, &ns));
	admin = nvmf_host_admin(&host, SUBSYS_OPEN);
	q = nvmf_host_io(&host, admin, 1);
	return 0;
}

static int
setup(void **state)
{
	(void)state;
	return open_file(false);
}

static int
teardown(void **state)
{
	(void)state;
	nvmf_host_drop(&host, q);
	nvmf_host_drop(&host, admin);
	nvmf_host_close(&host);
	nvmf_file_close(&file);
	return unlink(path);
}

/* Executes a command and returns its status. */
static uint32_t
execute(const uint8_t *cmd)
{
	uint32_t before = host.responses;
	int rc;

	nvmf_host_send(&host, q, cmd, NULL, 0);
	while (host.responses == before) {
		nvmf_host_run(&host);
		(void)nvmf_file_poll(&file, &rc);
		assert_int_equal(rc, 0);
	}
	return nvmf_host_status(&host, before);
}

static uint32_t
rw(uint8_t op, uint64_t slba, uint32_t n, uint32_t cdw12)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_rw(&host, cmd, op, NSID, slba, n, op == NVM_WRITE_ZEROES ? 0 : n * 512);
	put32(cmd + AT_CDW12, (n - 1) | cdw12);
	return execute(cmd);
}

/* Executes Dataset Management for one range. */
static uint32_t
deallocate(uint64_t slba, uint32_t n)
{
	uint8_t cmd[NVMF_SQE];

	memset(host.mem, 0, DSM_RANGE);
	put32(host.mem + 4, n);
	put64(host.mem + 8, slba);
	nvmf_host_cmd(&host, cmd, NVM_DSM, NSID, DSM_RANGE);
	put32(cmd + AT_CDW11, DSM_AD);
	return execute(cmd);
}

static void
read_file(uint8_t *to)
{
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, to, SIZE), SIZE);
	close(fd);
}

static void
check_commands(void)
{
	static uint8_t want[SIZE], have[SIZE];
	uint8_t cmd[NVMF_SQE];
	struct stat st;
	uint32_t i;

	for (i = 0; i < BLOCKS; i += 16) {
		memset(host.mem, (int)i + 1, MAX_IO);
		memset(want + i * 512, (int)i + 1, MAX_IO);
		assert_int_equal(rw(NVM_WRITE, i, 16, i & 16 ? CDW12_FUA : 0), SC_OK);
	}
	assert_int_equal(rw(NVM_WRITE_ZEROES, 5, 3, 0), SC_OK);
	assert_int_equal(rw(NVM_WRITE_ZEROES, 100, 100, CDW12_FUA), SC_OK);
	memset(want + 5 * 512, 0, 3 * 512);
	memset(want + 100 * 512, 0, 100 * 512);
	assert_int_equal(deallocate(240, 16), SC_OK);
	assert_int_equal(deallocate(0, 0), SC_OK);
	memset(want + 240 * 512, 0, 16 * 512);
	nvmf_host_cmd(&host, cmd, NVM_FLUSH, NSID, 0);
	assert_int_equal(execute(cmd), SC_OK);
	read_file(have);
	assert_memory_equal(have, want, SIZE);
	/* The file keeps its size, although its end was deallocated. */
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, SIZE);
	assert_int_equal(rw(NVM_READ, 3, 16, CDW12_FUA), SC_OK);
	assert_memory_equal(host.mem, want + 3 * 512, MAX_IO);
	assert_int_equal(rw(NVM_COMPARE, 3, 16, 0), SC_OK);
	host.mem[MAX_IO - 1] ^= 1;
	assert_int_equal(rw(NVM_COMPARE, 3, 16, 0), SC_COMPARE_FAILED | SC_DNR);
	assert_int_equal(rw(NVM_READ, BLOCKS, 1, 0), SC_LBA_RANGE | SC_DNR);
}

TEST_WITH(setup, teardown, test_commands_change_the_file)
{
	check_commands();
}

TEST(test_commands_change_the_file_by_io_uring)
{
	if (!uring_works())
		skip();
	assert_int_equal(open_file(true), 0);
	check_commands();
	assert_int_equal(teardown(NULL), 0);
}

TEST_WITH(setup, teardown, test_read_of_a_file_that_became_shorter_is_an_error)
{
	assert_int_equal(truncate(path, 512), 0);
	assert_int_equal(rw(NVM_READ, 0, 1, 0), SC_OK);
	assert_int_equal(rw(NVM_READ, 0, 2, 0), SC_READ_ERROR);
	assert_int_equal(rw(NVM_COMPARE, 4, 1, 0), SC_READ_ERROR);
}

TEST_WITH(setup, teardown, test_flush_after_a_failed_one_fails)
{
	uint8_t cmd[NVMF_SQE];

	file.b.sync_failed = 1;
	nvmf_host_cmd(&host, cmd, NVM_FLUSH, NSID, 0);
	assert_int_equal(execute(cmd), SC_WRITE_FAULT);
	assert_int_equal(rw(NVM_WRITE, 0, 1, CDW12_FUA), SC_WRITE_FAULT);
	assert_int_equal(rw(NVM_WRITE_ZEROES, 0, 1, CDW12_FUA), SC_WRITE_FAULT);
	assert_int_equal(rw(NVM_READ, 0, 1, CDW12_FUA), SC_READ_ERROR);
	assert_int_equal(rw(NVM_WRITE, 0, 1, 0), SC_OK);
}

TEST_WITH(setup, teardown, test_fua_write_with_invalid_parameters_loses_no_data)
{
	struct io_done done = {0};

	/* No file has such an offset: the kernel rejects the write before it changes anything. */
	io_start(file.q, IO_WRITE_SYNC, 7, host.mem, 512, UINT64_C(1) << 63);
	assert_int_equal(io_reap(file.q, &done, 1), 1);
	assert_int_equal(done.tag, 7);
	assert_int_equal(done.res, -EINVAL);
	assert_int_equal(file.b.sync_failed, 0);
	assert_int_equal(rw(NVM_WRITE, 0, 1, CDW12_FUA), SC_OK);
}

TEST(test_requests_that_io_uring_does_not_take_end_with_an_error)
{
	uint8_t cmd[NVMF_SQE];
	uint32_t before, i;
	int rc;

	if (!uring_works())
		skip();
	assert_int_equal(open_file(true), 0);
	assert_int_equal(rw(NVM_WRITE, 0, 1, 0), SC_OK);
	before = host.responses;
	refuse = true;
	for (i = 0; i < 3; i++) {
		nvmf_host_rw(&host, cmd, NVM_WRITE, NSID, i, 1, 512);
		put32(cmd + AT_CDW12, i == 0 ? CDW12_FUA : 0);
		nvmf_host_send(&host, q, cmd, NULL, 0);
	}
	nvmf_host_run(&host);
	(void)nvmf_file_poll(&file, &rc);
	refuse = false;
	assert_true(rc < 0);
	assert_int_equal(nvmf_file_poll(&file, &rc), 3);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before + 3);
	for (i = 0; i < 3; i++)
		assert_int_equal(nvmf_host_status(&host, before + i), SC_WRITE_FAULT);
	/* Nothing was written, so no data is lost, and the ring works. */
	assert_int_equal(file.b.sync_failed, 0);
	for (i = 0; i < 80; i++)
		assert_int_equal(rw(NVM_WRITE, i, 1, i == 40 ? CDW12_FUA : 0), SC_OK);
	assert_int_equal(teardown(NULL), 0);
}

TEST(test_file_is_locked_while_open_and_unlocked_when_its_close_returns)
{
	static uint8_t data[512];
	struct nvmf_file second = {0};
	struct io_done done;
	struct nvmf_ns other;
	uint32_t i;

	if (!uring_works())
		skip();
	assert_int_equal(create_file(), 0);
	for (i = 0; i < 50; i++) {
		OK(nvmf_file_open(&file, &attr, &ns));
		OK(nvmf_file_start(&file, &file, true, 4, NULL, 0));
		io_start(file.q, IO_WRITE, 1, data, sizeof(data), 0);
		OK(io_submit(file.q));
		while (io_reap(file.q, &done, 1) == 0)
			;
		assert_int_equal(done.res, 0);
		assert_int_equal(nvmf_file_open(&second, &attr, &other), -EBUSY);
		nvmf_file_close(&file);
		OK(nvmf_file_open(&second, &attr, &other));
		nvmf_file_close(&second);
	}
	unlink(path);
}

TEST_MAIN(0)
