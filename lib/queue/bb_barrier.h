/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Order of stores between software and device, and between lcores: all fences.
 *
 * Posting:  WQE stores → bb_dma_wmb() → doorbell record → bb_db_wmb() →
 *           UAR store → bb_wc_flush().
 * Polling:  owner bit → bb_dma_rmb() → rest of the CQE → bb_dma_rmb() →
 *           consumer record.
 *
 * Memory that the device reads or writes on its own (rings, records) and the
 * registers of the UAR page are only touched through the functions below or
 * between their fences. The software device uses the same functions from the
 * other side. Under ThreadSanitizer they are __atomic release and acquire, as
 * a fence alone is invisible to it.
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

/** 1: another core sees plain stores to write-back memory in the order of the program. */
#if defined(__x86_64__)
#define BB_STORES_IN_ORDER 1
#else
#define BB_STORES_IN_ORDER 0
#endif

/**
 * Stores to device-read memory before it are seen by the device before stores
 * behind it. Stops the race in which the device reads a doorbell record that
 * covers a WQE whose bytes are still in flight. x86: stores to write-back
 * memory are not reordered, only the compiler is held; Arm: dmb oshst.
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
 * Reads and stores behind it happen after the reads of device-written memory
 * before it. Stops two races: the body of a CQE is read before its owner bit;
 * a CQE is given back by the consumer record, and overwritten, while it is
 * still being read. x86: loads are not reordered with loads or later stores;
 * Arm: dmb oshld.
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
 * The doorbell record is visible before the UAR store behind it. Stops the race
 * in which the device, woken by the register, reads the old record and goes
 * back to sleep. The register page may be write-combining: a weaker fence
 * would let its store pass the record. x86: sfence; Arm: dsb st.
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
 * Empties the write-combining buffer of the UAR store before it. Without it the
 * doorbell may linger, and the next one to the same register may merge into
 * it: on Arm a known cause of corrupt BlueFlame packets. x86: sfence; Arm:
 * dsb st.
 */
static inline void
bb_wc_flush(void)
{
	bb_db_wmb();
}

/**
 * Loads of device memory behind it happen after the loads before it. Stops the race in which
 * a CQE is seen but not what it announces: device memory is mapped write-combining, where
 * x86 loads early. x86: lfence; Arm: dmb oshld.
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
 * The counter of time behind it is read after the loads before it. Stops the race in which
 * what another core posted was found at a time at which it was not there. Stores may still
 * be on their way. x86: lfence; Arm: dmb osh, as rte_rdtsc_precise() has.
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
 * Another core that sees a store behind it sees those before it, too. Stops the race in
 * which a send counts as complete, by a relaxed store, before it is known to have failed.
 * x86: the compiler alone is held; Arm: dmb ish.
 */
static inline void
bb_smp_wmb(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/**
 * Loads and stores behind it happen after the loads before it, of memory that other cores
 * write. Stops the races in which a reader of counts that go on takes the one that follows
 * another for the older, and in which a copy is called whole by a number that was read
 * before it. x86: the compiler alone is held; Arm: dmb ishld.
 */
static inline void
bb_smp_rmb(void)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

/**
 * Loads behind it happen after the stores before it are seen by every core. Stops the race in
 * which two cores say what they are about to do, each looks whether the other does, and
 * neither sees it. x86: mfence, or a locked instruction; Arm: dmb ish.
 */
static inline void
bb_smp_mb(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/** Store a doorbell record (its value already big endian). */
static inline void
bb_dbrec_store(uint32_t *rec, uint32_t be)
{
#ifdef BB_TSAN
	__atomic_store_n(rec, be, __ATOMIC_RELEASE);
#else
	__atomic_store_n(rec, be, __ATOMIC_RELAXED);
#endif
}

/** Load a doorbell record; what it covers may be read afterwards. */
static inline uint32_t
bb_dbrec_load(const uint32_t *rec)
{
	return __atomic_load_n(rec, __ATOMIC_ACQUIRE);
}

/** Store 8 bytes to a register, as one store. */
static inline void
bb_uar_store64(volatile uint64_t *reg, uint64_t v)
{
#ifdef BB_TSAN
	__atomic_store_n(reg, v, __ATOMIC_RELEASE);
#else
	__atomic_store_n(reg, v, __ATOMIC_RELAXED);
#endif
}

/** Load the op_own byte of a CQE; the CQE may be read after bb_dma_rmb(). */
static inline uint8_t
bb_cqe_own_load(const uint8_t *op_own)
{
#ifdef BB_TSAN
	return __atomic_load_n(op_own, __ATOMIC_ACQUIRE);
#else
	return __atomic_load_n(op_own, __ATOMIC_RELAXED);
#endif
}

/** Store the op_own byte of a CQE, last: hands the CQE to software. */
static inline void
bb_cqe_own_store(uint8_t *op_own, uint8_t v)
{
	__atomic_store_n(op_own, v, __ATOMIC_RELEASE);
}

#ifdef __cplusplus
}
#endif

#endif
