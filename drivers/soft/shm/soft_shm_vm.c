/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Requests to a peer's memory that has no file, such as memory of malloc(), without packets. The
 * peer publishes the address of the memory in its process, and the requester lets the kernel copy
 * the payload (process_vm_readv(2)). Nothing is mapped. If the kernel refuses, the request goes as
 * packets.
 *
 * A request costs two system calls, but the target's process need not run. Short requests go as
 * packets, because the kernel promises no order of the bytes that it copies (soft_mem_access.c says
 * what the device promises). Atomics go as packets, too.
 */
#define _GNU_SOURCE /* process_vm_readv() */
#include <errno.h>
#include <sys/uio.h>

#include "soft_fast.h"
#include "soft_shm.h"

#define MIN_LEN   4096u /* A shorter payload goes as packets. Bytes. */
#define MAX_PARTS 64u   /* A message of more fragments goes as packets. */

/*
 * Looks up the peer's memory [addr, addr + len). Returns its address in the peer's process, or 0 if
 * the memory has a file, or the request must go as packets. The peer may publish any address,
 * because the kernel accesses only the peer's own memory there.
 */
static uint64_t
vm_find(struct soft_wire *w, uint32_t key, uint64_t addr, uint64_t len, uint32_t right)
{
	const struct soft_shm_direct *d = &soft_shm_wire(w)->direct;
	const struct soft_shm_tx *tx = w->shm_tx;
	const uint32_t idx = key >> 8;
	struct soft_shm_key k;

	if (len < MIN_LEN || __atomic_load_n(&tx->vm_refused, __ATOMIC_RELAXED) ||
	    idx >= 1u << SOFT_LOG_MAX_MKEY || !soft_shm_read(&k, &tx->dir->keys[idx], sizeof(k)))
		return 0;
	if (k.seg != SOFT_SHM_NO_FILE || k.key != key || k.pdn != d->pdn ||
	    (k.rights & d->rights & right) == 0)
		return 0;
	if (addr < k.start || len > k.len || addr - k.start > k.len - len ||
	    k.off > UINT64_MAX - k.len)
		return 0;
	return k.off + (addr - k.start);
}

bool
soft_shm_vm_has(struct soft_wire *w, const uint8_t *wqe, uint32_t key, uint64_t addr)
{
	const uint32_t right = wqe[3] == BB_WQE_RDMA_WRITE  ? SOFT_SHM_WRITE
			       : wqe[3] == BB_WQE_RDMA_READ ? SOFT_SHM_READ
							    : 0;
	/* Length of the first SGE; the whole request may be longer. */
	const uint32_t len = bb_be32(soft_ring32(wqe + 32));

	return (len & BB_WQE_INLINE) == 0 && !w->qp->dev->opts.shuffle &&
	       vm_find(w, key, addr, len, right) != 0;
}

/*
 * Returns the pid of the peer's process, or 0 if the process has ended or has closed its socket. A
 * child of fork() may hold the socket longer, and the memory of the child is not the peer's.
 * Another process can get the pid only after poll() has reported the end of this process. Linux
 * gives out all other pids first, so the caller may use the pid in its next system call.
 */
static pid_t
process_of(struct soft_shm_tx *tx)
{
	pid_t pid = 0;

	rte_ticketlock_lock(&tx->lock);
	if (tx->state == SOFT_SHM_UP && tx->pidfd >= 0 && soft_shm_peer_lives(tx->sock, tx->pidfd))
		pid = tx->pid;
	rte_ticketlock_unlock(&tx->lock);
	return pid;
}

/*
 * Stops accesses to a process that the kernel does not permit, and logs that once. Other errors,
 * such as a shortage of memory, may be over at the next request. A process without memory (ESRCH)
 * is ending, so that is not logged.
 */
static void
refuse(const struct soft_engine *e, struct soft_shm_tx *tx, pid_t pid, int err)
{
	if (err != EPERM && err != ENOSYS && err != ESRCH)
		return;
	if (__atomic_exchange_n(&tx->vm_refused, true, __ATOMIC_RELAXED) || err == ESRCH)
		return;
	SOFT_LOG(NOTICE,
		 "%s: cannot access memory of process %d that has no file: %s, so requests to that "
		 "memory use packets, which cost the peer CPU time: set kernel.yama.ptrace_scope "
		 "to 0, or allocate the memory from EAL's heap, and start EAL with --in-memory "
		 "--single-file-segments (or --no-huge) and without --legacy-mem",
		 e->dev->name, (int)pid, strerror(err));
}

bool
soft_shm_vm(struct soft_engine *e, struct soft_wire *w, const struct soft_req *r)
{
	const bool write = r->d.opcode == BB_WQE_RDMA_WRITE;
	struct soft_shm_tx *tx = w->shm_tx;
	struct iovec here[MAX_PARTS], there[2];
	uint64_t at, len = 0;
	ssize_t done;
	uint32_t i;
	pid_t pid;

	at = vm_find(w, r->rkey, r->raddr, r->d.len, write ? SOFT_SHM_WRITE : SOFT_SHM_READ);
	if (at == 0 || r->n > MAX_PARTS || e->dev->opts.shuffle)
		return false;
	pid = process_of(tx);
	if (pid == 0)
		return false;
	for (i = 0; i < r->n; i++) {
		here[i] = (struct iovec){r->frag[i].p, r->frag[i].len};
		len += r->frag[i].len;
	}
	/*
	 * A program may wait for the last byte of a payload. So the last cache line is an entry of
	 * its own, which the kernel copies after the other entry.
	 */
	there[0] = (struct iovec){(void *)(uintptr_t)at, len - SOFT_SHM_LINE};
	there[1] = (struct iovec){(void *)(uintptr_t)(at + len - SOFT_SHM_LINE), SOFT_SHM_LINE};
	done = write ? process_vm_writev(pid, here, r->n, there, 2, 0)
		     : process_vm_readv(pid, here, r->n, there, 2, 0);
	if (done < 0)
		refuse(e, tx, pid, errno);
	/* If the kernel copied only a part, packets carry the whole payload again. */
	if (done < 0 || (uint64_t)done != len)
		return false;
	/* The peer must not see the next message's payload before this payload. */
	bb_dma_wmb();
	return true;
}
