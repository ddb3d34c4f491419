/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Two Ethernet ports, with queues and flow tables as Linux's mlx5e makes them (en_main.c, en_tx.c,
 * en_rx.c, fs_cmd.c of Linux 6.1).
 */
#ifndef ETH_PORT_H
#define ETH_PORT_H

#include "bb_cqe.h"
#include "bb_prm_eth.h"
#include "front_guest.h"

#define LOG_SQ     6u
#define LOG_RQ     3u
#define LOG_STRIDE 5u /* two segments */
#define FRAME_MAX  2048u
#define HEADERS    54u /* Ethernet, IPv4 and TCP */
#define OP_SEND    0x0a
#define OP_LSO     0x0e
#define CS_ALL     0xc0
#define RST        0u
#define RDY        1u
#define ERR        3u
#define TAG        0x1234u

struct port {
	struct g_guest g;
	uint32_t uar, pd, key, sqn, rqn, tirn, table, group;
	struct g_cq scq, rcq;
	struct g_qp sq; /* only the fields of the ring */
	struct pages rq_ring, data, buffers;
	uint64_t rq_dbr;
	uint32_t rq_pi;
};

extern struct port *ports[2];
extern const char *port_devices[2]; /* the device of each port and its options */

/* Begins CREATE_SQ or CREATE_RQ. Returns the context in the mailbox. */
uint8_t *queue_box(struct port *p, uint16_t op, uint32_t cqn, const struct pages *ring,
		   uint64_t dbr, uint32_t log_size, uint32_t log_stride);
/* Executes a mailbox that creates an object. Returns its number. */
uint32_t made_number(struct port *p);
/* Executes MODIFY_SQ or MODIFY_RQ. Returns the status. */
uint32_t modify_queue(struct port *p, uint16_t op, uint32_t queue, uint32_t from, uint32_t to);
/* Makes a flow table. Frames that match no entry go to table @miss; 0: they are dropped. */
uint32_t make_table(struct port *p, uint32_t miss);
/* Makes a group of two entries from index @start on, with a mask of @enable and one byte. */
void group_box(struct port *p, uint32_t table, uint32_t start, uint32_t mask_at, uint8_t mask);
/* Begins SET_FLOW_TABLE_ENTRY with one destination. Returns the flow context in the mailbox. */
uint8_t *entry_box(struct port *p, uint32_t table, uint32_t group, uint32_t index, uint32_t action,
		   uint32_t type, uint32_t id);
void set_root(struct port *p, uint32_t table);
/* Posts a receive of two buffers, 64 and FRAME_MAX bytes. */
void post_receive(struct port *p);
/* Reads received frame @i of @len bytes from its buffers. */
void read_frame(struct port *p, uint32_t i, uint8_t *to, uint32_t len);
/* Setup and teardown of a test: both ports, with queues, receives, and a table for all frames. */
int ports_open(void **state);
int ports_close(void **state);
/*
 * Rings the doorbell of the SQ, at the start of a turn: at least one WQE is executed at once,
 * however slow the machine is.
 */
void ring_sq(struct port *p, const uint8_t *wqe, uint32_t len);
/*
 * Posts a WQE with @inl bytes of headers inline and the rest in one segment, and rings as ring_sq()
 * does.
 */
void post_frame(struct port *p, uint8_t opcode, const uint8_t *frame, uint32_t len, uint32_t inl,
		uint8_t flags, uint32_t mss);
/* Does the same without the poll, at any time of a turn. */
void post_frame_late(struct port *p, uint8_t opcode, const uint8_t *frame, uint32_t len,
		     uint32_t inl, uint8_t flags, uint32_t mss);
/* Fills a TCP frame from port @from to the other one, with checksums of 0. */
void tcp_frame(uint8_t *f, uint32_t len, uint32_t from);
/* Sums of 16-bit words, written apart from those of the sources. */
uint32_t word_sum(const uint8_t *p, uint32_t len, uint32_t s);
void assert_checksums(const uint8_t *f);
/* Wait for a CQE, and check it. */
const uint8_t *assert_received(struct port *p, uint32_t len);
void assert_sent(struct port *p, uint32_t syndrome);
/* True if the next CQE of a CQ is not written yet. */
bool no_cqe(struct port *p, const struct g_cq *cq);

#endif
