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

/** 1 if other cores see plain stores to write-back memory in program order, 0 if not. */
#if defined(__x86_64__)
#define BB_STORES_IN_ORDER 1
#else
#define BB_STORES_IN_ORDER 0
#endif

/**
 * Orders stores to memory that the device reads. The device sees the stores before this fence
 * before it sees the stores after it. Prevents this race: the device reads a doorbell record that
 * covers a WQE whose bytes are not visible yet. x86: only a compiler barrier, because the CPU does
 * not reorder stores to write-back memory. Arm: dmb oshst.
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
 * Orders loads of memory that the device writes: those before this fence happen before the loads
 * and stores after it. Prevents two races. The body of a CQE is read before its owner bit. Or the
 * consumer record releases a CQE that software still reads, and the device overwrites the CQE. x86:
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
 * Makes the doorbell record visible before the UAR store after this fence. Prevents this race: the
 * register wakes the device, which reads the old record and goes back to sleep. The register page
 * may be write-combining, so a weaker fence would let its store pass the record. x86: sfence; Arm:
 * dsb st.
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
 * Flushes the write-combining buffer of the UAR store before it. Otherwise the doorbell may be
 * delayed, and the next one to the same register may merge into it. On Arm this is a known cause of
 * corrupt BlueFlame packets. x86: sfence; Arm: dsb st.
 */
static inline void
bb_wc_flush(void)
{
	bb_db_wmb();
}

/**
 * Orders earlier loads before later loads of device memory. Prevents this race: a CQE is seen, but
 * not the data that it announces. Device memory is mapped write-combining, and x86 may load from it
 * early. x86: lfence; Arm: dmb oshld.
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
 * Orders earlier loads before a later read of the time counter. Prevents this race: data posted by
 * another core gets a time at which it was not visible yet. Earlier stores may still be pending.
 * x86: lfence; Arm: dmb osh, as in rte_rdtsc_precise().
 */
static inline void
bb_tsc_rmb(void)
{
#if defined(__aarch64__)
	__asm__ volatile("dmb osh" ::: "memory");
#else
	__asm__ volatile("lfence" ::: "memory");
#endif
}

/**
 * Orders stores between cores: a core that sees a store after this fence sees those before it.
 * Prevents this race: a send counts as complete, by a relaxed store, before its failure is visible.
 * x86: a compiler barrier; Arm: dmb ish.
 */
static inline void
bb_smp_wmb(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/**
 * Orders earlier loads of memory that other cores write before later loads and stores. Prevents two
 * races: a reader of two increasing counters takes the later value for the earlier one; or a copy
 * counts as complete because of a number that was read before the copy. x86: a compiler barrier;
 * Arm: dmb ishld.
 */
static inline void
bb_smp_rmb(void)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

/**
 * Makes earlier stores visible to every core before later loads. Prevents this race: two cores each
 * announce an action, each checks for the announcement of the other, and neither sees it. x86:
 * mfence, or a locked instruction; Arm: dmb ish.
 */
static inline void
bb_smp_mb(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/** Stores a doorbell record; @p be is already big endian. */
static inline void
bb_dbrec_store(uint32_t *rec, uint32_t be)
{
#ifdef BB_TSAN
	__atomic_store_n(rec, be, __ATOMIC_RELEASE);
#else
	__atomic_store_n(rec, be, __ATOMIC_RELAXED);
#endif
}

/** Loads a doorbell record. Memory that the record covers may be read afterwards. */
static inline uint32_t
bb_dbrec_load(const uint32_t *rec)
{
	return __atomic_load_n(rec, __ATOMIC_ACQUIRE);
}

/** Stores 8 bytes to a register in a single store. */
static inline void
bb_uar_store64(volatile uint64_t *reg, uint64_t v)
{
#ifdef BB_TSAN
	__atomic_store_n(reg, v, __ATOMIC_RELEASE);
#else
	__atomic_store_n(reg, v, __ATOMIC_RELAXED);
#endif
}

/** Loads the op_own byte of a CQE. The CQE may be read after bb_dma_rmb(). */
static inline uint8_t
bb_cqe_own_load(const uint8_t *op_own)
{
#ifdef BB_TSAN
	return __atomic_load_n(op_own, __ATOMIC_ACQUIRE);
#else
	return __atomic_load_n(op_own, __ATOMIC_RELAXED);
#endif
}

/** Stores the op_own byte of a CQE as the last byte: passes the CQE to software. */
static inline void
bb_cqe_own_store(uint8_t *op_own, uint8_t v)
{
	__atomic_store_n(op_own, v, __ATOMIC_RELEASE);
}

#ifdef __cplusplus
}
#endif

#endif
