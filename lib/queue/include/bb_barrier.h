/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * All memory fences of the library. They order memory accesses between software and device, and
 * between lcores. The data path uses them in these orders:
 *
 * Posting:  WQE stores → bb_dma_wmb() → doorbell record → bb_db_wmb() →
 *           UAR store → bb_wc_flush().
 * Polling:  owner bit → bb_dma_rmb() → rest of the CQE → bb_dma_rmb() →
 *           consumer record. Where software has changed CQEs: CQE stores → bb_dma_wmb() →
 *           consumer record.
 *
 * The device reads and writes rings, doorbell records and UAR registers at any time. So software
 * must access them through the functions of this file, or between its fences. The software device
 * uses the same functions for its own accesses. In builds with ThreadSanitizer, the functions that
 * load and store use __atomic acquire and release, because ThreadSanitizer does not model fences.
 */
#ifndef BB_BARRIER_H
#define BB_BARRIER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__SANITIZE_THREAD__)
#define BB_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BB_TSAN 1
#endif
#endif

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "order of stores to a device is written down for x86-64 and 64-bit Arm only"
#endif

/** 1 if other cores see stores to write-back memory in program order, else 0. */
#if defined(__x86_64__)
#define BB_STORES_IN_ORDER 1
#else
#define BB_STORES_IN_ORDER 0
#endif

/**
 * Orders stores to memory that the device reads: the device sees all stores before this fence
 * before it sees any store after the fence. Prevents this race: the device reads a doorbell record
 * that covers a WQE whose bytes are not visible yet. x86: only a compiler barrier, because the CPU
 * does not reorder stores to write-back memory. Arm: dmb oshst.
 */
static inline void
bb_dma_wmb(void)
{
#if defined(__aarch64__)
	__asm__ volatile("dmb oshst" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

/**
 * Orders loads of memory that the device writes: all loads before this fence happen before any
 * load or store after the fence.
 * Prevents two races. In the first, software reads the body of a CQE before its owner bit. In the
 * second, software releases a CQE that it still reads, and the device overwrites the CQE. x86:
 * only a compiler barrier, because the CPU does not reorder loads with later loads or stores. Arm:
 * dmb oshld.
 */
static inline void
bb_dma_rmb(void)
{
#if defined(__aarch64__)
	__asm__ volatile("dmb oshld" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

/**
 * Makes the doorbell record visible before the UAR store that follows this fence. Prevents this
 * race: the register wakes the device, and the device reads the old record and goes back to sleep.
 * The register page may be write-combining, so with a weaker fence the store to it could become
 * visible before the record. x86: sfence; Arm: dsb st.
 */
static inline void
bb_db_wmb(void)
{
#if defined(__aarch64__)
	__asm__ volatile("dsb st" ::: "memory");
#else
	__asm__ volatile("sfence" ::: "memory");
#endif
}

/**
 * Flushes the preceding UAR store from the CPU's write-combining buffer. Without the flush the
 * doorbell may be delayed, and the next doorbell to the same register may merge with it. On Arm, a
 * missing flush is a known cause of corrupt BlueFlame packets. x86: sfence; Arm: dsb st.
 */
static inline void
bb_wc_flush(void)
{
	bb_db_wmb();
}

/**
 * Orders earlier loads before later loads of device memory. Prevents this race: software sees a
 * CQE but not yet the data that the CQE announces. Device memory is mapped write-combining, and
 * x86 may load from such memory early. x86: lfence; Arm: dmb oshld.
 */
static inline void
bb_dm_rmb(void)
{
#if defined(__aarch64__)
	__asm__ volatile("dmb oshld" ::: "memory");
#else
	__asm__ volatile("lfence" ::: "memory");
#endif
}

/**
 * Orders earlier loads before a later read of the time counter. The caller must have branched on
 * the loaded value. Prevents this race: software reads the time early, before another core's data
 * was visible, and takes it as the time of that data. Earlier stores may still be pending.
 * x86: lfence; Arm: isb, because dmb orders only accesses to memory, and the counter is a register.
 */
static inline void
bb_tsc_rmb(void)
{
#if defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#else
	__asm__ volatile("lfence" ::: "memory");
#endif
}

/**
 * Orders stores for other cores: a core that sees a store after this fence also sees the stores
 * before the fence. Prevents this race: a relaxed store marks a send as complete before the
 * failure of that send is visible. x86: a compiler barrier; Arm: dmb ish.
 */
static inline void
bb_smp_wmb(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/**
 * Orders loads of memory that other cores write: loads before this fence happen before any load or
 * store after the fence. Prevents two races. In the first, a reader of two increasing counters
 * reads them in the wrong order. In the second, the sequence number that validates a copy is read
 * before the copy is complete. x86: a compiler barrier; Arm: dmb ishld.
 */
static inline void
bb_smp_rmb(void)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

/**
 * Makes earlier stores visible to every core before later loads. Prevents this race: each of two
 * cores announces an action and then checks for the announcement of the other core, and neither
 * sees it. x86: mfence, or a locked instruction; Arm: dmb ish.
 */
static inline void
bb_smp_mb(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/**
 * Makes earlier stores visible to every core before the load of a sequentially consistent atomic
 * that follows. Prevents the race of bb_smp_mb(). x86: a compiler barrier, because the atomic is a
 * full fence; Arm: dmb ish.
 */
static inline void
bb_smp_mb_before_atomic(void)
{
#if defined(__aarch64__)
	bb_smp_mb();
#else
	__asm__ volatile("" ::: "memory");
#endif
}

/** Stores @p be, which is already big endian, to a doorbell record. */
static inline void
bb_dbrec_store(uint32_t *rec, uint32_t be)
{
#ifdef BB_TSAN
	__atomic_store_n(rec, be, __ATOMIC_RELEASE);
#else
	__atomic_store_n(rec, be, __ATOMIC_RELAXED);
#endif
}

/**
 * Loads a doorbell record. After the call the caller may read the WQEs or CQEs that the record
 * covers.
 */
static inline uint32_t
bb_dbrec_load(const uint32_t *rec)
{
	return __atomic_load_n(rec, __ATOMIC_ACQUIRE);
}

/** Stores 8 bytes to a register with one store instruction. */
static inline void
bb_uar_store64(volatile uint64_t *reg, uint64_t v)
{
#ifdef BB_TSAN
	__atomic_store_n(reg, v, __ATOMIC_RELEASE);
#else
	__atomic_store_n(reg, v, __ATOMIC_RELAXED);
#endif
}

/** Loads the op_own byte of a CQE. Call bb_dma_rmb() before reading the other bytes of the CQE. */
static inline uint8_t
bb_cqe_own_load(const uint8_t *op_own)
{
#ifdef BB_TSAN
	return __atomic_load_n(op_own, __ATOMIC_ACQUIRE);
#else
	return __atomic_load_n(op_own, __ATOMIC_RELAXED);
#endif
}

/**
 * Stores the op_own byte of a CQE, which passes the CQE to software. Store all other bytes before.
 */
static inline void
bb_cqe_own_store(uint8_t *op_own, uint8_t v)
{
	__atomic_store_n(op_own, v, __ATOMIC_RELEASE);
}

#ifdef __cplusplus
}
#endif

#endif
