/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Memory shared by processes of one host: the directory that a device publishes, and the checks of
 * memory from peers.
 *
 * Each page has one writing process. Seals let only the creator's mapping write a directory or a
 * ring (F_SEAL_FUTURE_WRITE). Seals also fix the size, so that no access to a peer's memory can
 * fault. Application memory that is shared has no seals, because EAL owns it. This process trusts
 * the peer not to truncate that memory, see doc/guides/devices/software-device.rst.
 */
#ifndef SOFT_SHM_MEM_H
#define SOFT_SHM_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bb_barrier.h"
#include "soft.h"

#define SOFT_SHM_PEERS   256 /* Largest number of connections of a device, per direction. */
#define SOFT_SHM_ENGINES 256 /* Largest number of engines that access peers' memory. */
#define SOFT_SHM_LINE    64

/*
 * A counter that peers watch, in a cache line of its own. Used for an engine's epoch, which is odd
 * while the engine may access the memory of peers. Also used for the head of a received
 * connection: the position up to which its ring was read.
 */
struct soft_shm_padded {
	uint64_t v;
	uint8_t pad[SOFT_SHM_LINE - 8];
};

enum {
	SOFT_SHM_READ = 1 << 0,
	SOFT_SHM_WRITE = 1 << 1,
	SOFT_SHM_ATOMIC = 1 << 2,
};

/* Value of soft_shm_key.seg for memory without a file: soft_shm_vm.c. */
#define SOFT_SHM_NO_FILE UINT32_MAX

/* A published key over shared memory. Peers read it by soft_shm_read(). */
struct soft_shm_key {
	uint32_t seq; /* Sequence number; even while the entry is invalid. */
	uint32_t key;
	uint32_t pdn;
	uint32_t rights; /* Access rights, SOFT_SHM_* flags. */
	uint64_t start;  /* The address by which requests name the first byte. */
	uint64_t len;
	/* Index and generation of the segment that contains the memory; SOFT_SHM_NO_FILE: none. */
	uint32_t seg, gen;
	/*
	 * Offset of the first byte in the segment's file; without a file, its address in the
	 * process.
	 */
	uint64_t off;
	uint8_t pad[16];
};

/*
 * A QP in RTS, or in RTR after its first packet, as this device publishes it to peers in shared
 * memory.
 */
struct soft_shm_qp {
	uint32_t seq; /* Sequence number; even while the entry is invalid. */
	uint32_t remote_qpn;
	uint32_t pdn;
	uint32_t rights;
	uint32_t mtu;
	uint32_t max_rd_atomic;
	uint8_t dgid[16]; /* GID of the peer to which the QP is connected. */
	uint8_t pad[24];
};

/*
 * Requests of a QP that were executed in the peer's memory since the connection was made. The peer
 * reads these counts and adds them to its counters of served requests. __atomic
 */
struct soft_shm_count {
	uint64_t writes, reads, atomics;
	uint64_t since; /* Time at which the QP was connected, TSC; identifies the connection. */
};

struct soft_shm_dir {
	uint32_t engines; /* Number of engine[] entries that were ever used. */
	uint32_t fences;  /* 1 if soft_shm_fence() of this process also fences other processes. */
	/*
	 * Odd while nothing polls the rings of this device: a peer must send WAKE after a packet.
	 * __atomic
	 */
	uint32_t asleep;
	uint32_t zero;
	/*
	 * Time at which the device was opened, TSC. So it differs after the device is closed and
	 * opened again.
	 */
	uint64_t opening;
	uint8_t pad[SOFT_SHM_LINE - 24];
	struct soft_shm_padded engine[SOFT_SHM_ENGINES];
	struct soft_shm_padded head[SOFT_SHM_PEERS];
	struct soft_shm_key keys[1u << SOFT_LOG_MAX_MKEY];
	struct soft_shm_qp qps[1u << SOFT_LOG_MAX_QP];
	/*
	 * Indexed by QPN, like qps. These values change with each request. They are not members of
	 * struct soft_shm_qp, because an entry of qps changes only when a QP is published or
	 * withdrawn.
	 */
	uint32_t epsn[1u << SOFT_LOG_MAX_QP]; /* PSN that the responder expects. __atomic */
	struct soft_shm_count count[1u << SOFT_LOG_MAX_QP];
};

/* A cached key of a peer, and the address of its memory in this process. */
struct soft_shm_cached_key {
	uint32_t key, seq, rights;
	uint64_t start, len;
	uint8_t *base;
	/*
	 * Address of the peer's sequence number. This copy is stale if the value there is not seq.
	 */
	const uint32_t *now;
};

/*
 * The functions with a device map memory as soft_own_map() does.
 *
 * Creates memory of @len bytes that only this mapping can write. Returns 0 or a negative errno.
 */
int soft_shm_create(struct soft_dev *dev, const char *name, size_t len, int *fd, void **map);

/*
 * Reserves address space for memory that engines read without a lock while peers connect and
 * disconnect. While nothing is mapped there, reads return zeros, which mean "no entry". The space
 * stays reserved while the device is open. Returns NULL if out of memory.
 */
const void *soft_shm_reserve(struct soft_dev *dev, size_t len);
/*
 * Maps a peer's memory read-only at @at. The peer created the memory by soft_shm_create(). Returns
 * 0, or a negative errno if the seals or the size are wrong.
 */
int soft_shm_map(int fd, size_t len, const void *at);
/* Replaces the mapping at @at by zeros. Returns 0 or a negative errno. */
int soft_shm_unmap(size_t len, const void *at);
/*
 * Maps [off, off + len) of a file of application memory for reading and writing. Returns 0, or a
 * negative errno if the range is outside the file or the mapping fails.
 */
int soft_shm_map_segment(struct soft_dev *dev, int fd, uint64_t off, uint64_t len, void **map);

/*
 * Two stores race. An engine sets its epoch, and then reads a peer's entry. The peer withdraws the
 * entry, and then reads the epoch. At least one of them must see the store of the other, so each
 * needs a full fence between its store and its load. Withdrawing an entry is rare, so the process
 * that withdraws can fence for both: membarrier(2) makes each CPU that runs a process of the fabric
 * execute a barrier.
 *
 * Returns true if this process takes part in such barriers. The result of the first call holds for
 * all later calls. Any thread.
 */
bool soft_shm_fenced(void);
/*
 * Executes a full fence on this CPU and, if membarrier(2) works, on the CPUs of all processes that
 * take part.
 */
void soft_shm_fence(void);

/*
 * Withdraws an entry; after a change, soft_shm_publish() makes it valid again. A peer that reads
 * the entry later finds that it is invalid or has changed. An engine of a peer that had read the
 * entry before may still use it after the fence, but only if the engine's epoch is odd then.
 */
static inline void
soft_shm_retire(uint32_t *seq)
{
	/* If the entry is already withdrawn, soft_shm_fence() was called when it was withdrawn. */
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
 * Copies a peer's entry, whose first word is its sequence number. Returns false if the entry is
 * invalid or changes during the copy. The peer may have written any content.
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
	/*
	 * Users of the copy compare this sequence number later, to detect that the entry has
	 * changed.
	 */
	memcpy(to, &before, sizeof(before));
	return __atomic_load_n(seq, __ATOMIC_RELAXED) == before;
}

#endif
