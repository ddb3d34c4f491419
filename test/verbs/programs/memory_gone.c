/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Cases of memory.c: memory that the program unmaps or frees before it deregisters it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"

#define LONG 2000u /* bytes of a message of several packets */

/* Memory that is unmapped while it is registered: what replaces it is not the peer's. */
void
unmapped(void)
{
	uint8_t *p = pages(2, 1);
	struct ibv_mr *mr = reg(p, 2 * PAGE);
	uint64_t v = 7;

	check_direct(mr, p, 7);
	CHECK(munmap(p, 2 * PAGE) == 0);
	CHECK(mmap(p, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		   0) == p);
	CHECK(order(OP_WRITE, true, mr, p, &v) == IBV_WC_SUCCESS);
	CHECK(p[0] == 0);
	CHECK(ibv_dereg_mr(mr) == 0);
	/* The new memory is shared anew. */
	mr = reg(p, 2 * PAGE);
	check_direct(mr, p, 9);
	CHECK(ibv_dereg_mr(mr) == 0);
}

bool
is_gone(const void *p)
{
	unsigned char in_core;

	return mincore((void *)((uintptr_t)p & ~(uintptr_t)(PAGE - 1)), PAGE, &in_core) != 0 &&
	       errno == ENOMEM;
}

/* The device accesses @p, which the program has unmapped: for a receive and for a request of the
 * target. */
static void
check_gone(struct ibv_mr *mr, uint8_t *p)
{
	uint64_t v = 7;

	post_receive(mr, p, LONG);
	CHECK(order(OP_SEND, false, NULL, (void *)(uintptr_t)LONG, &v) == IBV_WC_SUCCESS);
	CHECK(wait_message() == LONG);
	v = 7;
	CHECK(order(OP_WRITE, false, mr, p, &v) == IBV_WC_SUCCESS);
	v = 0;
	CHECK(order(OP_READ, false, mr, p, &v) == IBV_WC_SUCCESS && v == 7);
	CHECK(post_from(mr, p, LONG) == IBV_WC_REM_ACCESS_ERR);
}

/* The device still has the pages of a region that is unmapped, as a card has. */
void
unmapped_receive(void)
{
	uint8_t *p = pages(2, 1);
	struct ibv_mr *mr = reg(p, 2 * PAGE);

	CHECK(munmap(p, 2 * PAGE) == 0 && is_gone(p));
	check_gone(mr, p);
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* The rights of a region change after the program has unmapped it: the pages stay the region. */
void
unmapped_rights(void)
{
	uint8_t *p = pages(2, 1);
	struct ibv_mr *mr = reg(p, 2 * PAGE);
	uint64_t v = 7;

	CHECK(order(OP_WRITE, false, mr, p, &v) == IBV_WC_SUCCESS);
	CHECK(munmap(p, 2 * PAGE) == 0 && is_gone(p));
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ) == 0);
	v = 0;
	CHECK(order(OP_READ, false, mr, p, &v) == IBV_WC_SUCCESS && v == 7);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_RIGHTS) == 0);
	v = 9;
	CHECK(order(OP_WRITE, false, mr, p, &v) == IBV_WC_SUCCESS);
	CHECK(order(OP_READ, false, mr, p, &v) == IBV_WC_SUCCESS && v == 9);
	CHECK(ibv_dereg_mr(mr) == 0);
}

struct ibv_mr *
reg_block(struct ibv_mr *(*reg_as)(void *addr, size_t len))
{
	const size_t len = (size_t)1 << 20;
	uint8_t *p = malloc(len);

	CHECK(p != NULL);
	memset(p, 1, len);
	return reg_as(p, len);
}

/* A block of malloc() that is freed after its deregistration. */
void
block(void)
{
	struct ibv_mr *mr = reg_block(reg);
	void *p = mr->addr;

	check_direct(mr, p, 7);
	CHECK(ibv_dereg_mr(mr) == 0);
	free(p);
}

uint8_t *
free_block(const struct ibv_mr *mr)
{
	const uintptr_t inside = (uintptr_t)mr->addr + PAGE;

	free(mr->addr);
	CHECK(is_gone((uint8_t *)inside));
	return (uint8_t *)inside;
}

void
freed(void)
{
	struct ibv_mr *mr = reg_block(reg);

	check_direct(mr, mr->addr, 7);
	check_gone(mr, free_block(mr));
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* A child is made while a region is unmapped. The other region stays that of the program. */
void
unmapped_fork(void)
{
	uint8_t *p = pages(2, 1), *kept = pages(2, 1);
	struct ibv_mr *mr = reg(p, 2 * PAGE), *second = reg(kept, 2 * PAGE);
	uint64_t v = 5;
	pid_t pid;

	CHECK(munmap(p, 2 * PAGE) == 0);
	pid = fork();
	if (pid == 0)
		_exit(kept[0] != 1);
	wait_for(pid, 0);
	post_receive(second, kept, LONG);
	CHECK(order(OP_SEND, false, NULL, (void *)(uintptr_t)LONG, &v) == IBV_WC_SUCCESS);
	CHECK(wait_message() == LONG && kept[LONG - 1] == 5 && kept[LONG] == 1);
	check_direct(second, kept, 9);
	check_gone(mr, p);
	CHECK(ibv_dereg_mr(mr) == 0 && ibv_dereg_mr(second) == 0);
}

#define REGIONS 8
#define BYTES   (256 * PAGE)

static uint8_t *volatile regions[REGIONS];

static void *
unmap_regions(void *arg)
{
	unsigned int i;

	(void)arg;
	for (i = 0; i < REGIONS; i++)
		CHECK(munmap(regions[i], BYTES) == 0);
	return NULL;
}

/* Another thread unmaps regions while fork() makes them private and shared again. */
void
unmapped_while_forking(void)
{
	struct ibv_mr *mr[REGIONS];
	unsigned int round, i;
	pthread_t thread;
	uint8_t *p;
	pid_t pid;

	for (round = 0; round < 10; round++) {
		for (i = 0; i < REGIONS; i++) {
			regions[i] = pages(BYTES / PAGE, 1);
			mr[i] = reg(regions[i], BYTES);
		}
		CHECK(pthread_create(&thread, NULL, unmap_regions, NULL) == 0);
		pid = fork();
		if (pid == 0)
			_exit(0);
		wait_for(pid, 0);
		CHECK(pthread_join(thread, NULL) == 0);
		for (i = 0; i < REGIONS; i++)
			CHECK(ibv_dereg_mr(mr[i]) == 0);
	}
	p = pages(2, 1);
	mr[0] = reg(p, 2 * PAGE);
	check_direct(mr[0], p, 7);
	CHECK(ibv_dereg_mr(mr[0]) == 0);
}

/* The peer writes all the time, also while the region is unmapped and deregistered. */
void
unmapped_flood(void)
{
	uint8_t *p = pages(2, 1);
	struct ibv_mr *mr = reg(p, 2 * PAGE);
	uint64_t v = 7;

	check_direct(mr, p, 7);
	p[0] = 0;
	CHECK(order(OP_FLOOD, false, mr, p, &v) == IBV_WC_SUCCESS);
	while (*(volatile uint64_t *)(void *)p == 0)
		;
	CHECK(munmap(p, 2 * PAGE) == 0);
	CHECK(is_gone(p) && post_empty() == IBV_WC_SUCCESS);
	CHECK(ibv_dereg_mr(mr) == 0);
	wait_for(peer, 0);
}
