/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Register pages in shared memory, to which a guest stores without a call of this process. The
 * pages of users are shared. Pages of the kernel are not: the doorbells of event queues and of the
 * netdev's queues have no register that the device polls.
 *
 * A page is polled while a CQ or QP uses it, and is zeroed when it is allocated. So stores to other
 * pages of the file have no effect, and a new user finds no stores of the last one.
 */
#define _GNU_SOURCE /* memfd_create(), F_ADD_SEALS */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>

#include "front_priv.h"

#define PAGE   4096u
#define SHARED ((size_t)(FRONT_UAR_END - FRONT_UAR_SHARED) * PAGE)

/*
 * Registers that the device polls: the arm register of CQs, and two doorbell registers with two
 * halves each (drivers/soft/core/soft.h: SOFT_ARM_OFFSET, SOFT_BF_OFFSET, SOFT_BF_HALF).
 */
static const uint16_t registers[] = {0x20, 0x800, 0x900, 0xa00, 0xb00};

void
front_shared_close(struct front *f)
{
	if (f->shared_fd < 0)
		return;
	(void)munmap(f->memory.uar_pages, SHARED);
	close(f->shared_fd);
	f->shared_fd = -1;
}

int
front_share_doorbells(struct front *f)
{
	void *pages = MAP_FAILED;
	int ret, fd;

	if (f->n_of_kind[FRONT_UAR] != 0) {
		FRONT_LOG(ERR, "%s: register pages are allocated: reset the device first\n",
			  f->device);
		return -EBUSY;
	}
	fd = memfd_create("bluebell-doorbells", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* Without the seals, a client that truncates the file would end this process by SIGBUS. */
	if (fd >= 0 && ftruncate(fd, (off_t)FRONT_UAR_END * PAGE) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		pages = mmap(NULL, SHARED, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			     (off_t)FRONT_UAR_SHARED * PAGE);
	if (pages != MAP_FAILED) {
		front_shared_close(f);
		f->shared_fd = fd;
		f->memory.uar_pages = pages;
		f->memory.uar_first = FRONT_UAR_SHARED;
		return fd;
	}
	ret = -errno;
	FRONT_LOG(ERR, "%s: cannot create the file of shared register pages: %s\n", f->device,
		  strerror(-ret));
	if (fd >= 0)
		close(fd);
	return ret;
}

uint64_t
front_shared_stores(const struct front *f)
{
	return __atomic_load_n(&f->shared_stores, __ATOMIC_RELAXED);
}

bool
front_shared_rung(struct front *f, const struct front_obj *uar)
{
	const uint8_t *page = uar->uar->base_addr;
	uint64_t any = 0;
	uint32_t i;

	if (uar->id < FRONT_UAR_SHARED || f->shared_fd < 0)
		return false;
	for (i = 0; i < RTE_DIM(registers); i++)
		any |= __atomic_load_n((const uint64_t *)(const void *)(page + registers[i]),
				       __ATOMIC_RELAXED);
	if (any == 0)
		return false;
	__atomic_store_n(&f->shared_stores, f->shared_stores + 1, __ATOMIC_RELAXED);
	return true;
}
