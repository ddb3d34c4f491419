/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Memory shared by processes of one host: the directory that a device publishes, and the checks of
 * memory from peers.
 *
 * No two processes write the same memory. Seals on a directory and a ring let only their creator's
 * mapping write (F_SEAL_FUTURE_WRITE). Seals also fix their size, so that no access to a peer's
 * memory can fault. Shared application memory has no seals, because EAL owns it. A peer is trusted
 * not to truncate that memory, see doc/guides/software-device.rst.
 */
#ifndef SOFT_SHM_MEM_H
#define SOFT_SHM_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bb_barrier.h"
#include "soft.h"

#define SOFT_SHM_PEERS   256 /* Connections of a device in each direction. */
#define SOFT_SHM_ENGINES 256 /* Engines that may access peers' memory. */
#define SOFT_SHM_LINE    64

/*
 * A number that peers watch, in a cache line of its own. An engine's epoch: odd while the engine is
 * inside, which means that it may access the memory of peers. A received connection's head:
 * position up to which its ring is read.
 */
struct soft_shm_word {
	uint64_t v;
	uint8_t pad[SOFT_SHM_LINE - 8];
};

enum {
	SOFT_SHM_READ = 1 << 0,
	SOFT_SHM_WRITE = 1 << 1,
	SOFT_SHM_ATOMIC = 1 << 2,
	SOFT_SHM_RC = 1 << 3, /* Right of a QP. */
};

/* A key over shared memory. Read entries by soft_shm_read(). */
struct soft_shm_key {
	uint32_t seq; /* Even if the entry is invalid. */
	uint32_t key;
	uint32_t pdn;
	uint32_t rights; /* SOFT_SHM_* flags. */
	uint64_t start;  /* Address of the first byte, as requests name it. */
	uint64_t len;
	uint32_t seg, gen; /* Slot and generation of the segment. */
	uint64_t off;      /* Offset in the file. */
	uint8_t pad[16];
};

/* A published QP, in RTS. */
struct soft_shm_qp {
	uint32_t seq; /* Even if the entry is invalid. */
	uint32_t remote_qpn;
	uint32_t pdn;
	uint32_t rights;
	uint32_t mtu;
	uint32_t max_rd_atomic;
	uint8_t dgid[16]; /* GID of the QP's peer. */
	uint8_t pad[24];
};

/*
 * Direct accesses of a QP's requester since its connection; the peer counts them as served.
 * __atomic
 */
struct soft_shm_count {
	uint64_t writes, reads, atomics;
	uint64_t since; /* Time of the connection, TSC; identifies the connection. */
};

struct soft_shm_dir {
	uint32_t magic, version;
	uint32_t engines; /* Engines in use: 0 to engines - 1. */
	uint32_t fences;  /* 1 if soft_shm_fence() of this process fences other processes, too. */
	uint8_t pad[SOFT_SHM_LINE - 16];
	struct soft_shm_word engine[SOFT_SHM_ENGINES];
	struct soft_shm_word head[SOFT_SHM_PEERS];
	struct soft_shm_key keys[1u << SOFT_LOG_MAX_MKEY];
	struct soft_shm_qp qps[1u << SOFT_LOG_MAX_QP];
	/* Indexed by QPN, too. Separate from qps, which do not change with each request. */
	uint32_t epsn[1u << SOFT_LOG_MAX_QP]; /* PSN that the responder expects. __atomic */
	struct soft_shm_count count[1u << SOFT_LOG_MAX_QP];
};

/* A cached key of a peer, and the address of its memory in this process. */
struct soft_shm_near {
	uint32_t key, seq, rights;
	uint64_t start, len;
	uint8_t *base;
	const uint32_t *now; /* Address of seq in the peer's entry. */
};

/* Creates memory of @len bytes that only this mapping can write. Returns 0 or a negative errno. */
int soft_shm_create(const char *name, size_t len, int *fd, void **map);

/*
 * Reserves address space for memory that engines read without a lock while peers come and go. Reads
 * as zeros, which mean "no entry", while nothing is mapped. Stays reserved while the device is
 * open. Returns NULL without memory.
 */
const void *soft_shm_reserve(size_t len);
/*
 * Maps memory that a peer made by soft_shm_create() read-only at @at. Returns 0, or a negative
 * errno if its seals or size are wrong.
 */
int soft_shm_map(int fd, size_t len, const void *at);
/* Replaces a mapping by zeros. Returns 0 or a negative errno. */
int soft_shm_unmap(size_t len, const void *at);
/*
 * Maps [off, off + len) of a file of application memory for reading and writing. Returns 0, or a
 * negative errno if the range is outside the file or the mapping fails.
 */
int soft_shm_map_segment(int fd, uint64_t off, uint64_t len, void **map);

/*
 * An engine that enters and a process that retires an entry must each see the other's store. Both
 * need a full fence between a store and a load. Retiring is rare, so the retiring process can fence
 * for both: membarrier(2) makes each CPU that runs a process of the fabric execute a barrier.
 *
 * Returns true if this process takes part in such barriers: from the first call on, or never. Any
 * thread.
 */
bool soft_shm_fenced(void);
/*
 * Executes a full fence on this CPU and, if membarrier(2) works, on the CPUs of all processes that
 * take part.
 */
void soft_shm_fence(void);

/*
 * Withdraws an entry; soft_shm_publish() makes it valid again after a change. A peer that reads the
 * entry afterwards sees the change. The fence extends that to every peer whose engine's epoch reads
 * as even afterwards.
 */
static inline void
soft_shm_retire(uint32_t *seq)
{
	/* An invalid entry was retired, with a fence, before. */
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
 * Copies a peer's entry, whose first word is its seq. Returns false if the entry is invalid or
 * changes meanwhile. The peer may have written any content.
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
	/* Users compare this seq later. */
	memcpy(to, &before, sizeof(before));
	return __atomic_load_n(seq, __ATOMIC_RELAXED) == before;
}

#endif
