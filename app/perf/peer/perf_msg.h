/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Encodes and decodes the messages over TCP of rdma-core's ibv_*_pingpong and of perftest. The
 * programs exchange them before, between and after their RDMA. These functions have no state, read
 * nothing past the given length and trust no byte of a peer.
 *
 * Sources: rdma-core 44, libibverbs/examples/{rc,uc,ud}_pingpong.c and pingpong.c; perftest
 * 4.5-0.17 (it calls itself 6.06), src/perftest_communication.{c,h}.
 *
 * A decoder returns NULL, or the error as a part of a sentence ("QPN is not a hexadecimal number").
 * On an error it writes nothing.
 */
#ifndef PERF_MSG_H
#define PERF_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Address of a QP, as all peer programs send it. */
struct msg_addr {
	uint16_t lid;
	uint32_t qpn, psn; /* 24 bits each */
	uint8_t gid[16];   /* all 0 if the peer sent no GID */
};

/* pingpong: bytes of "LID:QPN:PSN:GID" in hexadecimal and a NUL. */
#define MSG_PINGPONG 52u
#define MSG_DONE     5u /* bytes of "done" and a NUL; perftest ends with this message too */

void msg_pingpong_encode(uint8_t out[MSG_PINGPONG], const struct msg_addr *a);
const char *msg_pingpong_decode(const uint8_t *msg, size_t len, struct msg_addr *a);
const char *msg_done_decode(const uint8_t *msg, size_t len);

/* perftest: the version as text with two decimals, padded with NULs to 16 bytes. */
#define MSG_VERSION     16u
#define MSG_VERSION_OWN 606u /* version that bb_perf sends, in hundredths: 6.06 */
/*
 * Smallest version of a peer that bb_perf supports, in hundredths: 5.70, which perftest 4.4 sends.
 * perftest 6.06 rejects older peers as well.
 */
#define MSG_VERSION_MIN 570u

void msg_version_encode(uint8_t out[MSG_VERSION], uint32_t hundredths);
const char *msg_version_decode(const uint8_t *msg, size_t len, uint32_t *hundredths);

/*
 * perftest: the page size ("cycle buffer"), then the cache line size. Each is 32 bits in network
 * byte order. Both processes use the larger of their two values.
 */
#define MSG_U32       4u
#define MSG_MAX_CYCLE (1u << 20)
#define MSG_MAX_LINE  4096u

void msg_u32_encode(uint8_t out[MSG_U32], uint32_t v);
const char *msg_cycle_decode(const uint8_t *msg, size_t len, uint32_t *cycle);
const char *msg_line_decode(const uint8_t *msg, size_t len, uint32_t *line);

/*
 * perftest: the code of the MTU (1 for 256 to 5 for 4096) as a digit and a NUL. Both processes use
 * the smaller MTU.
 */
#define MSG_MTU 2u

void msg_mtu_encode(uint8_t out[MSG_MTU], uint32_t mtu);
const char *msg_mtu_decode(const uint8_t *msg, size_t len, uint32_t *mtu);

/* perftest: a QP, and the memory that its peer may access. */
struct msg_keys {
	struct msg_addr addr;
	uint16_t out_reads; /* number of READs and atomics that the peer may have outstanding */
	uint32_t rkey;
	uint64_t vaddr;
	uint32_t srqn; /* number of the XRC SRQ; 0 without XRC */
};
#define MSG_KEYS     59u  /* bytes of a message of keys without a GID */
#define MSG_KEYS_GID 108u /* bytes of a message of keys with a GID, as on RoCE */
#define MSG_KEYS_CM  56u  /* bytes of a binary message of keys, as with perftest -R */

/* @len is MSG_KEYS, MSG_KEYS_GID or MSG_KEYS_CM. */
void msg_keys_encode(uint8_t *out, size_t len, const struct msg_keys *k);
const char *msg_keys_decode(const uint8_t *msg, size_t len, struct msg_keys *k);

/*
 * perftest's bandwidth report: five messages of 8 bytes in network byte order. A server of perftest
 * sends uninitialized memory, so the decoder accepts any bits. msg_report_usable() returns true if
 * the values are plausible.
 */
#define MSG_REPORT_PART  8u
#define MSG_REPORT_PARTS 5u

struct msg_report {
	uint64_t size, iters;
	double peak, average; /* MiB/s, or another unit if the peer's user chose one */
	double rate;          /* 10^6 messages/s */
};

void msg_report_encode(uint8_t out[MSG_REPORT_PARTS * MSG_REPORT_PART], const struct msg_report *r);
const char *msg_report_decode(const uint8_t *msg, size_t len, struct msg_report *r);
bool msg_report_usable(const struct msg_report *r);

/*
 * Position of message n in perftest's bandwidth tests. If at least two messages fit into the cycle
 * buffer, the buffer is divided into slots, and the messages use the slots in turn. A slot is a
 * whole number of cache lines long.
 */
struct msg_cycle {
	uint32_t step;  /* bytes from slot to slot; 0 if all messages start at 0 */
	uint32_t slots; /* number of slots, at least 1 */
};

void msg_cycle_of(struct msg_cycle *c, uint32_t size, uint32_t cycle, uint32_t line);

static inline uint32_t
msg_slot_offset(const struct msg_cycle *c, uint64_t n)
{
	return (uint32_t)(n % c->slots) * c->step;
}

#endif
