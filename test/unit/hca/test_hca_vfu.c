/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The server's side of vfio-user, with what QEMU does, and with clients that break the protocol.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hca_rig.h"

enum {
	VERSION = 1,
	DMA_MAP,
	DMA_UNMAP,
	GET_INFO,
	REGION_INFO,
	REGION_IO_FDS,
	IRQ_INFO,
	SET_IRQS,
	REGION_READ,
	REGION_WRITE,
	RESET = 13,
};

struct region_info {
	uint32_t argsz, flags, index, cap_offset;
	uint64_t size, offset;
};

struct map_info {
	struct region_info region;
	uint16_t cap, version;
	uint32_t next, n_areas, reserved;
	uint64_t off, size;
};

struct map {
	uint32_t argsz, flags;
	uint64_t offset, addr, size;
};

struct access {
	uint64_t off;
	uint32_t region, count;
	uint8_t data[16];
};

static unsigned int
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

#define BARE(name_) TEST_AS(rig_setup_bare, rig_teardown, NULL, struct rig, r, name_)
#define LIVE(name_) TEST_AS(rig_setup, rig_teardown, NULL, struct rig, r, name_)

BARE(test_version_answers_with_limits)
{
	assert_int_equal(rig_version(r), 0);
	assert_int_equal(r->reply[0], 0);
	assert_non_null(strstr((char *)r->reply + 4, "\"max_msg_fds\":8"));
	assert_int_equal(r->reply[r->reply_len - 1], 0);
}

BARE(test_first_message_other_than_version_ends_the_connection)
{
	assert_int_equal(rig_call(r, GET_INFO, "", 0, NULL, 0), -2);
}

BARE(test_version_1_ends_the_connection)
{
	assert_int_equal(rig_call(r, VERSION, "\1\0\0\0{}", 7, NULL, 0), -2);
}

LIVE(test_device_has_nine_regions_five_interrupts_and_a_reset)
{
	uint32_t want[4] = {16, 3, VFU_REGIONS, VFU_IRQS}, got[4];

	assert_int_equal(rig_call(r, GET_INFO, want, sizeof(want), NULL, 0), 0);
	memcpy(got, r->reply, sizeof(got));
	assert_memory_equal(got, want, sizeof(got));
}

LIVE(test_regions_are_bar_0_and_configuration_space)
{
	struct region_info q = {.argsz = sizeof(q)}, i;

	for (q.index = 0; q.index < VFU_REGIONS; q.index++) {
		assert_int_equal(rig_call(r, REGION_INFO, &q, sizeof(q), NULL, 0), 0);
		memcpy(&i, r->reply, sizeof(i));
		assert_int_equal(i.size, q.index == VFU_BAR0     ? HCA_BAR0_SIZE
					 : q.index == VFU_CONFIG ? 4096
								 : 0);
		assert_int_equal(i.flags, i.size != 0 ? 3 : 0);
	}
	assert_int_equal(rig_call(r, REGION_INFO, &q, sizeof(q), NULL, 0), EINVAL);
}

/* Asks for BAR 0 with room for @room bytes. Returns the descriptor of the reply, -1 if it has none.
 */
static int
ask_bar(struct rig *r, uint32_t room, struct map_info *i)
{
	struct {
		struct vfu_hdr h;
		struct region_info q;
	} ask = {{7, REGION_INFO, sizeof(ask), 0, 0}, {.argsz = room}};
	union {
		char buf[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct vfu_hdr h;
	struct iovec iov[2] = {{&h, sizeof(h)}, {i, sizeof(*i)}};
	struct msghdr mh;
	struct cmsghdr *c;
	int fd = -1;

	memset(i, 0, sizeof(*i));
	assert_int_equal(rig_raw(r, &ask, sizeof(ask)), 0);
	mh = (struct msghdr){.msg_iov = iov,
			     .msg_iovlen = 2,
			     .msg_control = control.buf,
			     .msg_controllen = sizeof(control.buf)};
	assert_true(recvmsg(r->fd, &mh, MSG_DONTWAIT) >= (ssize_t)sizeof(h));
	assert_int_equal(h.error, 0);
	r->reply_len = h.size - (uint32_t)sizeof(h);
	c = CMSG_FIRSTHDR(&mh);
	if (c != NULL) {
		assert_int_equal(c->cmsg_len, CMSG_LEN(sizeof(int)));
		memcpy(&fd, CMSG_DATA(c), sizeof(int));
	}
	return fd;
}

static int
setup_shared(void **state)
{
	static struct rig rig;

	*state = &rig;
	return rig_open(&rig, "soft0,shared") == 0 && rig_version(&rig) == 0 ? 0 : -1;
}

TEST_AS(setup_shared, rig_teardown, NULL, struct rig, r,
	test_shared_register_pages_come_with_a_file)
{
	struct map_info i;
	struct stat st;
	int fd;

	/* QEMU first asks without room for the capability (hw/vfio/device.c). */
	assert_int_equal(ask_bar(r, sizeof(i.region), &i), -1);
	assert_int_equal(r->reply_len, sizeof(i.region));
	assert_int_equal(i.region.argsz, sizeof(i));
	assert_int_equal(i.region.flags, 0xf);
	fd = ask_bar(r, sizeof(i), &i);
	assert_true(fd >= 0);
	assert_int_equal(r->reply_len, sizeof(i));
	assert_int_equal(i.region.flags, 0xf);
	assert_int_equal(i.region.cap_offset, sizeof(i.region));
	assert_int_equal(i.region.size, HCA_BAR0_SIZE);
	assert_int_equal(i.region.offset, 0);
	assert_int_equal(i.cap, 1);
	assert_int_equal(i.version, 1);
	assert_int_equal(i.next, 0);
	assert_int_equal(i.n_areas, 1);
	assert_int_equal(i.off, FRONT_UAR_SHARED * HCA_PAGE);
	assert_int_equal(i.size, (FRONT_UAR_END - FRONT_UAR_SHARED) * HCA_PAGE);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true((uint64_t)st.st_size >= i.off + i.size);
	close(fd);
}

/* A client that has left may still have its file mapped. */
TEST_AS(setup_shared, rig_teardown, NULL, struct rig, r,
	test_each_client_gets_a_new_file_of_register_pages)
{
	struct stat st[2];
	struct map_info i;
	uint64_t word = 1;
	int fd[2];

	fd[0] = ask_bar(r, sizeof(i), &i);
	rig_next_client(r);
	assert_int_equal(rig_version(r), 0);
	fd[1] = ask_bar(r, sizeof(i), &i);
	assert_int_equal(fstat(fd[0], &st[0]), 0);
	assert_int_equal(fstat(fd[1], &st[1]), 0);
	assert_int_not_equal(st[0].st_ino, st[1].st_ino);
	assert_int_equal(pwrite(fd[0], &word, sizeof(word), (off_t)i.off), sizeof(word));
	assert_int_equal(pread(fd[1], &word, sizeof(word), (off_t)i.off), sizeof(word));
	assert_int_equal(word, 0);
	close(fd[0]);
	close(fd[1]);
}

/* As by ETOOMANYREFS, which a privileged test cannot cause. */
TEST_AS(setup_shared, rig_teardown, NULL, struct rig, r,
	test_descriptor_that_cannot_be_sent_is_an_error_reply)
{
	struct region_info q = {.argsz = sizeof(struct map_info)};
	const int good = r->h.vfu.dev.map_fd;
	struct map_info i;
	int fd;

	r->h.vfu.dev.map_fd = INT_MAX;
	assert_int_equal(rig_call(r, REGION_INFO, &q, sizeof(q), NULL, 0), EBADF);
	assert_int_equal(r->reply_len, 0);
	assert_int_equal(rig_call(r, GET_INFO, "", 0, NULL, 0), 0);
	r->h.vfu.dev.map_fd = good;
	fd = ask_bar(r, sizeof(i), &i);
	assert_true(fd >= 0);
	close(fd);
}

/* A client that does not map the pages, such as QEMU with x-no-mmap=on. */
TEST_AS(setup_shared, rig_teardown, NULL, struct rig, r,
	test_message_to_a_shared_page_is_a_doorbell)
{
	rig_master(r);
	rig_store(r, (uint64_t)FRONT_UAR_SHARED * HCA_PAGE + 0x20, "12345678", 8);
	assert_int_equal(fake_front.bells, 1);
	assert_int_equal(fake_front.bell[0].uar, FRONT_UAR_SHARED);
}

LIVE(test_configuration_space_is_a_connectx_6)
{
	uint32_t cap = rig_read32(r, VFU_CONFIG, 0x34) & 0xff, seen = 0, w;

	assert_int_equal(rig_read32(r, VFU_CONFIG, 0), 0x101b15b3);
	assert_int_equal(rig_read32(r, VFU_CONFIG, 8) >> 16, 0x0207);
	assert_int_equal(rig_read32(r, VFU_CONFIG, 0x10), 0xc);
	for (; cap != 0; cap = w >> 8 & 0xff) {
		assert_true(cap >= 0x40 && ++seen < 16);
		w = rig_read32(r, VFU_CONFIG, cap);
		if ((w & 0xff) == 0x11)
			assert_int_equal(w >> 16, HCA_N_MSIX - 1);
	}
	assert_int_equal(seen, 3);
}

LIVE(test_configuration_writes_change_the_command_word_only)
{
	rig_write32(r, VFU_CONFIG, 0, 0xffffffff);
	assert_int_equal(rig_read32(r, VFU_CONFIG, 0), 0x101b15b3);
	assert_true(fake_front.stopped);
	rig_write32(r, VFU_CONFIG, 4, 6);
	assert_int_equal(rig_read32(r, VFU_CONFIG, 4) & 0xffff, 6);
	assert_false(fake_front.stopped); /* the bus master bit is set */
	rig_write32(r, VFU_CONFIG, 4, 2);
	assert_int_equal(rig_read32(r, VFU_CONFIG, 4) & 0xffff, 2);
	assert_true(fake_front.stopped);
	rig_write32(r, VFU_CONFIG, 4, 6);
	assert_int_equal(rig_read32(r, VFU_CONFIG, 4) & 0xffff, 6);
	assert_int_equal(fake_front.resets, 0);
	rig_write32(r, VFU_CONFIG, 0x68, 0xa810); /* device control: function-level reset */
	assert_int_equal(fake_front.resets, 1);
	assert_int_equal(rig_read32(r, VFU_CONFIG, 0x68) & 0xffff, 0x2810);
}

/* Accesses with a range outside the region, and too long ones. */
LIVE(test_access_outside_a_region_is_rejected)
{
	static const struct {
		uint64_t off;
		uint32_t region, count;
	} bad[] = {
		{4096, VFU_CONFIG, 1},
		{4093, VFU_CONFIG, 4},
		{UINT64_MAX, VFU_CONFIG, 4},
		{UINT64_MAX - 3, VFU_BAR0, 8},
		{HCA_BAR0_SIZE, VFU_BAR0, 0},
		{HCA_BAR0_SIZE, VFU_BAR0, 4},
		{HCA_BAR0_SIZE - 2, VFU_BAR0, 4},
		{0, VFU_BAR0, VFU_MAX_DATA + 1},
		{0, VFU_BAR0, UINT32_MAX},
		{0, 1, 4},
		{0, 8, 4},
		{0, UINT32_MAX, 4},
	};
	struct access a;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		a = (struct access){bad[i].off, bad[i].region, bad[i].count, {0}};
		assert_int_equal(rig_call(r, REGION_READ, &a, 16, NULL, 0), EINVAL);
		assert_int_equal(rig_call(r, REGION_WRITE, &a, sizeof(a), NULL, 0), EINVAL);
	}
	/* A write with less data than it says. */
	a = (struct access){0, VFU_BAR0, 16, {0}};
	assert_int_equal(rig_call(r, REGION_WRITE, &a, 16 + 15, NULL, 0), EINVAL);
	assert_int_equal(rig_call(r, REGION_READ, &a, 15, NULL, 0), EINVAL);
}

LIVE(test_maps_that_make_no_sense_are_rejected)
{
	static const struct {
		uint64_t addr, size, offset;
		int error;
	} bad[] = {
		{0x10000000, 0, 0, EINVAL},
		{0x10000000, 100, 0, EINVAL},
		{0x10000001, 4096, 0, EINVAL},
		{0x10000000, 4096, 1, EINVAL},
		{0x10000000, 4096, RAM_SIZE, EINVAL}, /* beyond the file */
		{0x10000000, RAM_SIZE + 4096, 0, EINVAL},
		{UINT64_MAX - 4095, 8192, 0, EINVAL},
		{0x10000000, UINT64_C(1) << 63, 0, EINVAL},
		{0x10000000, 4096, UINT64_C(1) << 63, EINVAL},
		{RAM_ADDR, 4096, 0, EEXIST},
		{RAM_ADDR + RAM_SIZE - 4096, 8192, 0, EEXIST},
		{RAM_ADDR - 4096, 8192, 0, EEXIST},
	};
	struct map short_one = {0};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(rig_map(r, bad[i].addr, bad[i].size, bad[i].offset), bad[i].error);
	assert_int_equal(rig_call(r, DMA_MAP, &short_one, 31, NULL, 0), EINVAL);
	assert_int_equal(r->h.guest.n_maps, 1);
	for (i = 0; i < GUEST_MAX_MAPS - 1; i++)
		assert_int_equal(rig_map(r, 0x10000000 + i * 4096, 4096, 0), 0);
	assert_int_equal(rig_map(r, 0x20000000, 4096, 0), ENOSPC);
}

LIVE(test_unmap_needs_whole_mappings)
{
	rig_master(r);
	assert_int_equal(rig_unmap(r, RAM_ADDR, 4096), EINVAL);
	assert_int_equal(rig_unmap(r, RAM_ADDR + 4096, RAM_SIZE), EINVAL);
	assert_int_equal(rig_unmap(r, 0, 4096), EINVAL);
	assert_non_null(guest_at(&r->h.guest, RAM_ADDR, 4096, true));
	assert_int_equal(rig_unmap(r, 0, UINT64_C(1) << 40), 0);
	assert_null(guest_at(&r->h.guest, RAM_ADDR, 1, false));
}

LIVE(test_interrupts_reach_their_eventfd)
{
	uint32_t off[5] = {sizeof(off), 1 << 0 | 1 << 5, VFU_MSIX, 0, 0};

	rig_irqs(r);
	assert_true(vfu_irq(&r->h.vfu, 1));
	assert_int_equal(rig_raised(r, 1), 1);
	assert_int_equal(rig_raised(r, 0), 0);
	assert_int_equal(rig_call(r, SET_IRQS, off, sizeof(off), NULL, 0), 0);
	assert_false(vfu_irq(&r->h.vfu, 1));
	/* QEMU replaces all eventfds when the guest uses one more vector. */
	rig_irqs(r);
	assert_int_equal(rig_raised(r, 1), 1);
	assert_int_equal(rig_raised(r, 0), 0);
	assert_int_equal(rig_call(r, SET_IRQS, off, sizeof(off), NULL, 0), 0);
	rig_irqs(r);
	assert_int_equal(rig_raised(r, 1), 0);
}

LIVE(test_reset_drops_interrupts_that_are_pending)
{
	assert_false(vfu_irq(&r->h.vfu, 1));
	assert_int_equal(rig_call(r, RESET, "", 0, NULL, 0), 0);
	rig_irqs(r);
	assert_int_equal(rig_raised(r, 1), 0);
}

LIVE(test_function_level_reset_drops_interrupts_that_are_pending)
{
	assert_false(vfu_irq(&r->h.vfu, 1));
	rig_write32(r, VFU_CONFIG, 0x68, 0xa810); /* device control: function-level reset */
	rig_irqs(r);
	assert_int_equal(rig_raised(r, 1), 0);
}

LIVE(test_interrupt_settings_that_make_no_sense_are_rejected)
{
	static const struct {
		uint32_t flags, index, start, count;
		int error;
	} cases[] = {
		{1 << 2 | 1 << 5, VFU_MSIX, HCA_N_MSIX, 1, EINVAL},
		{1 << 2 | 1 << 5, VFU_MSIX, 0, HCA_N_MSIX + 1, EINVAL},
		{1 << 2 | 1 << 5, VFU_MSIX, UINT32_MAX, 2, EINVAL},
		{1 << 2 | 1 << 5, VFU_MSIX, 1, UINT32_MAX, EINVAL},
		{1 << 2 | 1 << 5, VFU_MSIX, 0, HCA_N_MSIX, 0}, /* removes all */
		{1 << 1 | 1 << 5, VFU_MSIX, 0, 2, EINVAL},     /* two values are missing */
		{1 << 0 | 1 << 3, VFU_MSIX, 0, 1, EINVAL},     /* mask */
		{1 << 2 | 1 << 5, 1, 0, 1, EINVAL},            /* MSI */
		{1 << 0 | 1 << 5, 0, 0, 0, 0},
		{1 << 2 | 1 << 5, VFU_IRQS, 0, 0, EINVAL},
	};
	uint32_t set[5];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(set,
		       (uint32_t[]){20, cases[i].flags, cases[i].index, cases[i].start,
				    cases[i].count},
		       sizeof(set));
		assert_int_equal(rig_call(r, SET_IRQS, set, sizeof(set), NULL, 0), cases[i].error);
	}
	/* Two descriptors for one vector. */
	memcpy(set, (uint32_t[]){20, 1 << 2 | 1 << 5, VFU_MSIX, 0, 1}, sizeof(set));
	assert_int_equal(rig_call(r, SET_IRQS, set, sizeof(set), (int[]){r->ram_fd, r->ram_fd}, 2),
			 EINVAL);
}

/* A write to a pipe without a reader raises SIGPIPE. */
LIVE(test_interrupts_need_eventfds)
{
	const uint32_t set[5] = {sizeof(set), 1 << 2 | 1 << 5, VFU_MSIX, 0, 1};
	int pipe_fds[2], sockets[2];

	rig_irqs(r);
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	assert_int_equal(rig_call(r, SET_IRQS, set, sizeof(set), &pipe_fds[1], 1), EINVAL);
	assert_int_equal(rig_call(r, SET_IRQS, set, sizeof(set), &sockets[1], 1), EINVAL);
	assert_int_equal(rig_call(r, SET_IRQS, set, sizeof(set), &r->ram_fd, 1), EINVAL);
	assert_true(vfu_irq(&r->h.vfu, 0));
	assert_int_equal(rig_raised(r, 0), 1);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	close(sockets[0]);
	close(sockets[1]);
}

LIVE(test_descriptors_that_no_message_takes_are_closed)
{
	unsigned int before = open_fds(), i;
	int fds[8];

	for (i = 0; i < 8; i++)
		fds[i] = r->ram_fd;
	for (i = 0; i < 100; i++) {
		assert_int_equal(rig_call(r, GET_INFO, "", 0, fds, 8), 0);
		assert_int_equal(rig_call(r, DMA_MAP, "", 0, fds, 8), EINVAL);
	}
	assert_int_equal(open_fds(), before);
}

LIVE(test_too_many_descriptors_end_the_connection)
{
	unsigned int before = open_fds(), i;
	int fds[20];

	for (i = 0; i < 20; i++)
		fds[i] = r->ram_fd;
	assert_int_equal(rig_call(r, GET_INFO, "", 0, fds, 20), -2);
	vfu_detach(&r->h.vfu);
	assert_true(open_fds() < before);
}

LIVE(test_message_in_single_bytes_is_executed_once_complete)
{
	struct vfu_hdr h = {.id = 7, .cmd = GET_INFO, .size = sizeof(h)};
	uint8_t reply[64];
	size_t i;

	for (i = 0; i < sizeof(h); i++) {
		assert_int_equal(recv(r->fd, reply, sizeof(reply), MSG_DONTWAIT), -1);
		assert_int_equal(rig_raw(r, (uint8_t *)&h + i, 1), 0);
	}
	assert_int_equal(recv(r->fd, reply, sizeof(reply), MSG_DONTWAIT), sizeof(h) + 16);
}

LIVE(test_several_messages_in_one_packet_are_all_executed)
{
	struct vfu_hdr h[8];
	uint8_t reply[1024];
	int i;

	for (i = 0; i < 8; i++)
		h[i] = (struct vfu_hdr){.id = (uint16_t)i, .cmd = GET_INFO, .size = sizeof(h[0])};
	assert_int_equal(rig_raw(r, h, sizeof(h)), 0);
	assert_int_equal(recv(r->fd, reply, sizeof(reply), MSG_DONTWAIT), 8 * (sizeof(h[0]) + 16));
}

static unsigned int slow_writes;

/* A write that takes longer than a turn of vfu_receive(). */
static void
slow_write(void *arg, uint32_t region, uint64_t off, const void *buf, uint32_t len)
{
	(void)arg;
	(void)region;
	(void)off;
	(void)buf;
	(void)len;
	usleep(6000);
	slow_writes++;
}

/* Other functions must get their turns. */
LIVE(test_slow_message_ends_the_turn)
{
	struct {
		struct vfu_hdr h;
		uint64_t off;
		uint32_t region, count, v;
	} __attribute__((packed)) m[3];
	unsigned int i;

	slow_writes = 0;
	r->h.vfu.dev.write = slow_write;
	memset(m, 0, sizeof(m));
	for (i = 0; i < 3; i++) {
		m[i].h = (struct vfu_hdr){
			.cmd = REGION_WRITE, .size = sizeof(m[0]), .flags = VFU_NO_REPLY};
		m[i].region = VFU_BAR0;
		m[i].count = 4;
	}
	assert_int_equal(send(r->fd, m, sizeof(m), 0), sizeof(m));
	for (i = 1; i <= 3; i++) {
		assert_int_equal(vfu_receive(&r->h.vfu), 0);
		assert_int_equal(slow_writes, i);
	}
}

LIVE(test_no_reply_is_sent_if_the_client_wants_none)
{
	struct vfu_hdr h = {.cmd = GET_INFO, .size = sizeof(h), .flags = VFU_NO_REPLY};
	uint8_t reply[64];

	assert_int_equal(rig_raw(r, &h, sizeof(h)), 0);
	assert_int_equal(recv(r->fd, reply, sizeof(reply), MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

LIVE(test_unknown_message_is_not_supported)
{
	assert_int_equal(rig_call(r, REGION_IO_FDS, "", 0, NULL, 0), ENOTSUP);
	assert_int_equal(rig_call(r, 99, "", 0, NULL, 0), ENOTSUP);
}

LIVE(test_sizes_outside_the_limits_end_the_connection)
{
	struct vfu_hdr h = {.cmd = GET_INFO, .size = sizeof(h) - 1};

	assert_int_equal(rig_raw(r, &h, sizeof(h)), -EPROTO);
	r->h.vfu.len = 0;
	h.size = VFU_MAX_MSG + 1;
	assert_int_equal(rig_raw(r, &h, sizeof(h)), -EPROTO);
}

LIVE(test_client_that_reads_no_reply_loses_the_connection)
{
	struct vfu_hdr h = {.cmd = GET_INFO, .size = sizeof(h)};
	int i, rc = 0;

	for (i = 0; i < 100000 && rc == 0; i++)
		rc = rig_raw(r, &h, sizeof(h));
	assert_int_equal(rc, -ENOBUFS);
}

LIVE(test_after_a_client_left_another_finds_a_reset_device)
{
	unsigned int before, resets = fake_front.resets;

	rig_irqs(r);
	rig_start(r);
	before = open_fds();
	rig_next_client(r);
	assert_true(fake_front.resets > resets);
	assert_null(guest_at(&r->h.guest, RAM_ADDR, 1, false));
	assert_false(vfu_irq(&r->h.vfu, 0));
	assert_int_equal(rig_call(r, GET_INFO, "", 0, NULL, 0), -2); /* VERSION comes first again */
	rig_next_client(r);
	assert_int_equal(rig_version(r), 0);
	assert_int_equal(rig_reg(r, 0x14) & 0xfffff000, 0);
	assert_true(open_fds() < before);
}

LIVE(test_reset_message_resets_the_device)
{
	rig_start(r);
	assert_int_equal(rig_call(r, RESET, "", 0, NULL, 0), 0);
	assert_int_equal(fake_front.resets, 1);
	assert_int_equal(rig_reg(r, 0x14), 0x56);
	assert_null(guest_at(&r->h.guest, RAM_ADDR, 1, false));
	rig_master(r);
	assert_non_null(guest_at(&r->h.guest, RAM_ADDR, 1, false));
}

TEST_MAIN(0)
