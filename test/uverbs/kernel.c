/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The mlx5 part of the kernel's verbs over the software ConnectX. Each ioctl() and write() of
 * libmlx5 becomes a call of the software device's command interface. So the driver's rdma-core
 * calls run through the installed rdma-core, with the strict checks of the software device.
 *
 * Methods and attributes: <rdma/mlx5_user_ioctl_cmds.h>, <rdma/ib_user_ioctl_cmds.h>; commands:
 * <rdma/ib_user_verbs.h>, <rdma/mlx5-abi.h>. Other calls are refused as by a kernel that does not
 * know them. UVERBS_TRACE in the environment lists the calls.
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* it would rename calls of libc */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/rdma_user_ioctl.h>

#include "kernel.h"
#include "peer_sysfs.h"

#define MAX_HANDLES 65536
#define MAX_PAGES   4096
/* Bits 8 to 15 of the page number: MLX5_IB_MMAP_CORE_CLOCK, MLX5_IB_MMAP_DEVICE_MEM. */
#define MAP_CLOCK  5
#define MAP_DM     8
#define MAX_EVENTS 1024
#define EQE_TYPE   1 /* byte of an EQE */
#define EQE_BYTES  64

struct mlx5_ctx *kernel_soft;

static struct kernel_handle handles[MAX_HANDLES];
static unsigned int used = 1;
/* Recursive: code under this lock opens and closes files. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

uint32_t
kernel_keep(enum kernel_kind kind, void *p)
{
	unsigned int i;

	for (i = 1; i < MAX_HANDLES; i++) {
		const unsigned int at = (used + i) % MAX_HANDLES;

		if (at == 0 || handles[at].kind != FREE)
			continue;
		handles[at] = (struct kernel_handle){.kind = kind, .p = p, .fd = -1};
		used = at;
		return at;
	}
	return 0;
}

void *
kernel_get(enum kernel_kind kind, uint64_t handle)
{
	if (handle == 0 || handle >= MAX_HANDLES || handles[handle].kind != kind)
		return NULL;
	return handles[handle].p;
}

struct kernel_handle *
kernel_handle(uint64_t handle)
{
	return handle != 0 && handle < MAX_HANDLES ? &handles[handle] : NULL;
}

int
kernel_destroy(enum kernel_kind kind, uint64_t handle)
{
	void *p = kernel_get(kind, handle);
	int ret;

	if (p == NULL)
		return EINVAL;
	switch (kind) {
	case PD:
		ret = kernel_soft->cmd->pd_free(kernel_soft, p);
		break;
	case OBJ:
		ret = kernel_soft->cmd->obj_destroy(p);
		break;
	case UMEM:
		ret = kernel_soft->cmd->umem_dereg(kernel_soft, p);
		break;
	case UAR:
		ret = kernel_soft->cmd->uar_free(kernel_soft, p);
		break;
	case DM:
		ret = kernel_soft->cmd->dm_free(kernel_soft, p);
		break;
	case MR:
		ret = kernel_soft->cmd->mr_dereg(kernel_soft, p);
		break;
	case MW:
		ret = kernel_soft->cmd->mw_free(kernel_soft, p);
		break;
	case CQ:
	case QP:
	case SRQ:
		ret = -kernel_end_queue(p);
		break;
	default:
		ret = 0;
		break;
	}
	if (ret == 0)
		handles[handle].kind = FREE;
	return -ret;
}

int
kernel_channel(enum kernel_kind kind)
{
	struct mlx5_channel *ch = NULL;
	uint32_t handle;
	int fd, ret;

	/* Other kinds need only the descriptor, from which the caller reads events. */
	if (kind == CHANNEL || kind == COMP) {
		ret = kernel_soft->cmd->channel_create(kernel_soft, &ch);
		if (ret != 0)
			return ret;
	}
	fd = ch != NULL ? dup(ch->fd) : eventfd(0, EFD_CLOEXEC);
	handle = fd >= 0 ? kernel_keep(kind, ch) : 0;
	if (handle == 0)
		return -EMFILE;
	handles[handle].fd = fd;
	return fd;
}

struct kernel_handle *
kernel_by_fd(int fd)
{
	unsigned int i;

	for (i = 1; i < MAX_HANDLES; i++)
		if (handles[i].kind >= ASYNC && handles[i].fd == fd)
			return &handles[i];
	return NULL;
}

static void *
page_of(void *addr)
{
	return (void *)((uintptr_t)addr & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1));
}

/* Returns the first page of the object of @h, NULL if the object is not mapped. */
static void *
mapped(const struct kernel_handle *h)
{
	if (h->kind == UAR)
		return ((struct mlx5_uar *)h->p)->base_addr;
	return h->kind == DM ? page_of(((struct soft_dm *)h->p)->base) : NULL;
}

/*
 * Pages that were ever mapped belong to the software device, which retains them. libmlx5 unmaps
 * some of them before, some after the end of the object.
 */
static void *page_list[MAX_PAGES];
static unsigned int pages;

static void *
map(off_t offset)
{
	const uint64_t page = (uint64_t)(offset / sysconf(_SC_PAGESIZE));
	uint64_t handle = 0;
	unsigned int i;
	void *at;

	if (((uint64_t)offset & KERNEL_MAP_UAR) != 0)
		handle = ((uint64_t)offset & ~KERNEL_MAP_UAR) >> KERNEL_MAP_SHIFT;
	else if ((page >> 8 & 0xff) == MAP_DM)
		handle = (page & 0xff) | page >> 16 << 8;
	if (page == MAP_CLOCK << 8)
		at = kernel_clock_page();
	else
		at = handle < MAX_HANDLES ? mapped(&handles[handle]) : NULL;
	if (at == NULL)
		return NULL;
	for (i = 0; i < pages && page_list[i] != at; i++)
		;
	if (i == MAX_PAGES)
		return NULL;
	page_list[i] = at;
	if (i == pages)
		pages++;
	return at;
}

static int
locked_write(uint32_t command, const struct uverbs_cmd *c)
{
	int rc;

	pthread_mutex_lock(&lock);
	rc = kernel_write(command, c);
	pthread_mutex_unlock(&lock);
	return rc;
}

static const struct uverbs_kernel kernel = {.write = locked_write, .map = map};

static void __attribute__((constructor)) start(void)
{
	if (uverbs_start(&kernel) != 0) {
		fprintf(stderr, "no /sys for libibverbs: TMPDIR, /tmp?\n");
		_exit(77);
	}
}

static void __attribute__((destructor)) stop(void)
{
	peer_sysfs_end();
}

/* ---- libc */

int
ioctl(int fd, unsigned long request, ...)
{
	struct ib_uverbs_ioctl_hdr *h;
	va_list ap;
	void *arg;
	int rc;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (fd < 0 || fd != uverbs_fd() || request != RDMA_VERBS_IOCTL)
		return (int)syscall(SYS_ioctl, fd, request, arg);
	h = arg;
	pthread_mutex_lock(&lock);
	rc = kernel_ioctl(h);
	pthread_mutex_unlock(&lock);
	if (getenv("UVERBS_TRACE") != NULL)
		fprintf(stderr, "uverbs: object 0x%x method 0x%x: %s\n", h->object_id, h->method_id,
			strerror(rc));
	if (rc == 0)
		return 0;
	errno = rc;
	return -1;
}

/* Events read while looking for one of the other kind: for DEVX channels, or for ASYNC. */
static struct {
	struct mlx5_cmd_event e[MAX_EVENTS];
	unsigned int first, n;
} waiting[2];

/* Reads the next event for ASYNC, or for the other channels. */
static int
next_event(bool async, struct mlx5_cmd_event *event)
{
	bool other;
	int ret;

	if (waiting[async].n > 0) {
		*event = waiting[async].e[waiting[async].first++ % MAX_EVENTS];
		waiting[async].n--;
		return 0;
	}
	for (;;) {
		ret = kernel_soft->cmd->event_get(kernel_soft, event);
		if (ret != 0)
			return ret;
		other = (event->cookie & KERNEL_COOKIE) != 0;
		if (other == async)
			return 0;
		if (waiting[other].n == MAX_EVENTS)
			return -EOVERFLOW;
		waiting[other].e[(waiting[other].first + waiting[other].n++) % MAX_EVENTS] = *event;
	}
}

/* Reads an event: for a completion channel the cookie, otherwise followed by an EQE. */
static ssize_t
read_event(const struct kernel_handle *to, void *buf, size_t len)
{
	struct ib_uverbs_async_event_desc async;
	struct ib_uverbs_comp_event_desc comp;
	struct mlx5_cmd_event event;
	uint8_t eqe[8 + EQE_BYTES] = {0};
	uint64_t cookie;
	int ret;

	if (to->kind == CHANNEL || to->kind == COMP) {
		ret = kernel_soft->cmd->channel_get(to->p, &cookie);
		if (ret == 0 && to->kind == COMP && !kernel_comp_event(cookie, &comp))
			ret = -EAGAIN;
		errno = -ret;
		if (ret != 0)
			return -1;
		memcpy(buf, to->kind == COMP ? (void *)&comp : (void *)&cookie, sizeof(cookie));
		return sizeof(cookie);
	}
	do {
		ret = next_event(to->kind == ASYNC, &event);
		errno = -ret;
		if (ret != 0)
			return -1;
	} while (to->kind == ASYNC && !kernel_async_event(&event, &async));
	if (to->kind == ASYNC) {
		memcpy(buf, &async, len < sizeof(async) ? len : sizeof(async));
		return sizeof(async);
	}
	memcpy(eqe, &event.cookie, sizeof(event.cookie));
	eqe[8 + EQE_TYPE] = (uint8_t)event.type;
	if (len > sizeof(eqe))
		len = sizeof(eqe);
	memcpy(buf, eqe, len);
	return (ssize_t)len;
}

ssize_t
read(int fd, void *buf, size_t len)
{
	const struct kernel_handle *to;
	ssize_t rc = 0;

	pthread_mutex_lock(&lock);
	to = kernel_soft != NULL && fd >= 0 ? kernel_by_fd(fd) : NULL;
	if (to != NULL)
		rc = read_event(to, buf, len);
	pthread_mutex_unlock(&lock);
	return to != NULL ? rc : syscall(SYS_read, fd, buf, len);
}

int
munmap(void *addr, size_t len)
{
	unsigned int i;

	for (i = 0; i < pages; i++)
		if (page_list[i] == addr)
			return 0;
	return (int)syscall(SYS_munmap, addr, len);
}

int
close(int fd)
{
	struct mlx5_channel *ch = NULL;
	struct kernel_handle *to;

	pthread_mutex_lock(&lock);
	to = kernel_soft != NULL && fd >= 0 ? kernel_by_fd(fd) : NULL;
	if (to != NULL) {
		ch = to->p;
		to->kind = FREE;
	}
	pthread_mutex_unlock(&lock);
	/* channel_destroy() calls this function. */
	if (ch != NULL)
		(void)kernel_soft->cmd->channel_destroy(kernel_soft, ch);
	return (int)syscall(SYS_close, fd);
}
