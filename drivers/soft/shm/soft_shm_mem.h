/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Memory that processes of one host share: what a device publishes of itself (its directory), and
 * the checks of what others hand over.
 *
 * Nothing of this is writable by two: a directory and a ring are sealed so that only the mapping
 * of who made them can write (F_SEAL_FUTURE_WRITE), and that they keep their size, so that no
 * access to a peer's can fault. The memory of applications that is handed over has no seals: it is
 * EAL's. A peer is trusted not to cut that short, see doc/guides/software-device.rst.
 */
#ifndef SOFT_SHM_MEM_H
#define SOFT_SHM_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bb_barrier.h"
#include "soft.h"

#define SOFT_SHM_PEERS   256 /* connections of a device in each direction */
#define SOFT_SHM_ENGINES 256 /* that may access peers' memory */
#define SOFT_SHM_LINE    64

/*
 * One number that others watch, alone in its line. Of an engine: odd while it may be accessing
 * the memory of peers. Of a connection that came in: how far its ring is read.
 */
struct soft_shm_word {
	uint64_t v;
	uint8_t pad[SOFT_SHM_LINE - 8];
};

enum {
	SOFT_SHM_READ = 1 << 0,
	SOFT_SHM_WRITE = 1 << 1,
	SOFT_SHM_ATOMIC = 1 << 2,
	SOFT_SHM_RC = 1 << 3, /* of a QP */
};

/* A key over memory that is handed over. Entries are read as soft_shm_read() says. */
struct soft_shm_key {
	uint32_t seq; /* even: there is none */
	uint32_t key;
	uint32_t pdn;
	uint32_t rights; /* SOFT_SHM_* */
	uint64_t start;  /* address of the first byte */
	uint64_t len;
	uint32_t seg, gen; /* where it is */
	uint64_t off;      /* in the file */
	uint8_t pad[16];
};

/* A QP in RTS. */
struct soft_shm_qp {
	uint32_t seq; /* even: there is none */
	uint32_t remote_qpn;
	uint32_t pdn;
	uint32_t rights;
	uint32_t mtu;
	uint32_t max_rd_atomic;
	uint8_t dgid[16]; /* of its peer */
	uint8_t pad[24];
};

/*
 * What a QP's requester has done by itself since it was connected; the peer counts it as served.
 * __atomic
 */
struct soft_shm_count {
	uint64_t writes, reads, atomics;
	uint64_t since; /* when that was (TSC): another one with each connection */
};

struct soft_shm_dir {
	uint32_t magic, version;
	uint32_t engines; /* in use, from 0 on */
	uint32_t fences;  /* 1: soft_shm_fence() of this process is one for others, too */
	uint8_t pad[SOFT_SHM_LINE - 16];
	struct soft_shm_word engine[SOFT_SHM_ENGINES];
	struct soft_shm_word head[SOFT_SHM_PEERS];
	struct soft_shm_key keys[1u << SOFT_LOG_MAX_MKEY];
	struct soft_shm_qp qps[1u << SOFT_LOG_MAX_QP];
	/* By QP, too, apart from what does not change with each request. */
	uint32_t epsn[1u << SOFT_LOG_MAX_QP]; /* that its responder expects; __atomic */
	struct soft_shm_count count[1u << SOFT_LOG_MAX_QP];
};

/* A peer's key as last looked up, and where its memory is mapped here. */
struct soft_shm_near {
	uint32_t key, seq, rights;
	uint64_t start, len;
	uint8_t *base;
	const uint32_t *now; /* seq of the peer's entry */
};

/* Make memory of @len bytes that only this mapping can write. -errno. */
int soft_shm_create(const char *name, size_t len, int *fd, void **map);

/*
 * What is read without a lock while it comes and goes has one address as long as the device: zeros
 * where nothing is mapped, which say that there is nothing.
 */
const void *soft_shm_reserve(size_t len);
/* Map there what somebody else made by soft_shm_create(), to read. -errno: it is not such. */
int soft_shm_map(int fd, size_t len, const void *at);
/* Zeros again. */
int soft_shm_unmap(size_t len, const void *at);
/*
 * Map [off, off + len) of a file of application memory, to read and write. -errno: it is no part
 * of it, or it cannot be mapped.
 */
int soft_shm_map_segment(int fd, uint64_t off, uint64_t len, void **map);

/*
 * An engine that goes inside and who retires an entry must each see the other's store: both need a
 * full fence between a store and a load. The one who retires, which is rare, can do it for both:
 * the kernel lets every CPU that runs a process of a fabric pass a barrier (membarrier(2)).
 *
 * Can this process be made to pass one? From the first call on, if ever. Any thread.
 */
bool soft_shm_fenced(void);
/* A full fence here and, where membarrier(2) can, on the CPUs of all such processes. */
void soft_shm_fence(void);

/*
 * Change an entry: between these it is none. Who reads it after soft_shm_retire() finds out, and
 * the fence behind it makes that so for everybody whose engine's word is seen even afterwards.
 */
static inline void
soft_shm_retire(uint32_t *seq)
{
	/* What is none already was retired with all this. */
	if ((*seq & 1) == 0)
		return;
	__atomic_store_n(seq, *seq + 1, __ATOMIC_RELAXED);
	soft_shm_fence();
}

static inline void
soft_shm_publish(uint32_t *seq)
{
	__atomic_store_n(seq, *seq + 1, __ATOMIC_RELEASE);
}

typedef uint64_t soft_shm_word64 __attribute__((may_alias));

/*
 * Copy a peer's entry whose first word is its seq. False: there is none, or it is changing. The
 * peer may have written anything into it.
 */
static inline bool
soft_shm_read(void *to, const void *entry, size_t len)
{
	const uint32_t *seq = (const uint32_t *)entry;
	uint32_t before = __atomic_load_n(seq, __ATOMIC_ACQUIRE);
	const soft_shm_word64 *from = (const soft_shm_word64 *)entry;
	size_t i;

	if ((before & 1) == 0)
		return false;
	for (i = 0; i < len / sizeof(*from); i++) {
		uint64_t v = __atomic_load_n(&from[i], __ATOMIC_RELAXED);

		memcpy((uint8_t *)to + i * sizeof(v), &v, sizeof(v));
	}
	bb_smp_rmb();
	/* The seq in the copy is the one that users compare with later. */
	memcpy(to, &before, sizeof(before));
	return __atomic_load_n(seq, __ATOMIC_RELAXED) == before;
}

#endif
