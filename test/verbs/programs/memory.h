/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Parts of the test of shared memory: a target, the program itself, and a peer, a process that it
 * starts. The target orders the peer to access its memory.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <infiniband/verbs.h>

#define CHECK(condition_)                                                                          \
	do {                                                                                       \
		if (!(condition_)) {                                                               \
			printf("%s line %d: %s (%s)\n", __FILE__, __LINE__, #condition_,           \
			       strerror(errno));                                                   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define ALL_RIGHTS                                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* Orders for the peer. A WRITE or a READ has 8 bytes. */
enum op {
	OP_WRITE,
	OP_READ,
	OP_WAIT,  /* waits until it has mapped the file of the target that value names */
	OP_SEND,  /* SENDs a message of addr bytes, each with the value */
	OP_FLOOD, /* replies, then WRITEs until it is killed */
};

struct order {
	enum op op;
	bool stopped; /* stops the target with SIGSTOP meanwhile: only direct access can succeed */
	uint32_t rkey;
	uint64_t addr, value;
};

struct reply {
	enum ibv_wc_status status;
	uint64_t value;
};

/* ---- The target's connection */
extern struct ibv_context *ctx;
extern struct ibv_pd *pd;
extern pid_t peer;

/* Starts the peer and connects to it. Without @to_rts the target's QP stays in RTR. */
void start(bool to_rts);
/* Orders the peer to do something. Returns the status of its completion; *value is what it read. */
enum ibv_wc_status order(enum op op, bool stopped, const struct ibv_mr *mr, const void *addr,
			 uint64_t *value);
/* WRITEs and READs of the peer succeed, while the target is stopped. */
void check_direct(const struct ibv_mr *mr, void *addr, uint64_t value);
/* WRITEs and READs of the peer succeed, by packets. */
void check_access(const struct ibv_mr *mr, void *addr, uint64_t value);

/* Posts a receive of @len bytes on the target's QP. */
void post_receive(const struct ibv_mr *mr, void *addr, uint32_t len);
/* Waits for a message. Returns its length. */
uint32_t wait_message(void);

/* Posts a WRITE from own memory. Returns the status of its completion; the rkey is invalid. */
enum ibv_wc_status post_from(const struct ibv_mr *mr, void *addr, uint32_t len);
/* Posts a WRITE without payload on the target's QP and waits for its completion. */
enum ibv_wc_status post_empty(void);

/* Returns the inode of bb_verbs' file at @addr, 0 if the memory is private. */
unsigned long shared_file(const void *addr);
bool is_shared(const void *addr);
/* Returns true if a file in memory is mapped in [addr, addr + len). */
bool has_file(const void *addr, size_t len);
/* Maps private pages, filled with @byte. */
uint8_t *pages(unsigned int n, int byte);
struct ibv_mr *reg(void *addr, size_t len);

/* Returns true if nothing is mapped at @p. */
bool is_gone(const void *p);

/* Registers a large block of malloc() by @reg_as. */
struct ibv_mr *reg_block(struct ibv_mr *(*reg_as)(void *addr, size_t len));
/*
 * Frees the block, which free() unmaps by a call inside libc that no library sees. Returns an
 * address inside.
 */
uint8_t *free_block(const struct ibv_mr *mr);

/* Waits until a child has ended: with exit status 0, or by the signal @want. */
void wait_for(pid_t pid, int want);

/* ---- memory_gone.c */
void unmapped(void);
void unmapped_receive(void);
void unmapped_fork(void);
void unmapped_while_forking(void);
void unmapped_flood(void);
void unmapped_rights(void);
void freed(void);
void block(void);

/* ---- memory_map.c */
void remapped(void);
void advised(void);
void descriptors(void);
void descriptors_gone(void);
void descriptor_of_part(void);

/* ---- memory_private.c */
void handler_before_device(int sig);
void local_unmapped(void);
void local_moved(void);
void local_freed(void);
void local_shrunk(void);
void stack_unmapped(void);
void own_mappings(void);
void truncated(void);
void handled(void);
void masked(void);
void crashes(void);
void crashes_truncated(void);

/* Runs as the peer, between descriptors 0 and 1. */
int run_peer(void);

#define PAGE 4096u

#endif
