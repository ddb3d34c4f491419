/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The frames of an Ethernet port: the queues of a netdev and the steering of received frames. The
 * software device has no such queues; it has their CQs, and executes everything that is RDMA.
 *
 * A doorbell of an SQ executes its WQEs (eth_sq.c). Each frame goes to the link (eth_link.c), which
 * passes it to the other functions of this process, or to the port= of the device (eth_port.c). At
 * its destination the flow tables (eth_flow.c) choose a TIR, the TIR an RQ, and the frame is
 * written to the RQ's next WQE (eth_rq.c).
 *
 * Only the guest's kernel (uid 0) may create such queues. Their WQEs name memory by keys over
 * physical addresses. The device has only the offloads that mlx5e uses without a look at the
 * capabilities: checksums, VLAN tags, and the segmentation of TCP and UDP messages.
 *
 * The guest may change its memory at any time. So each WQE is copied before it is read, and each
 * address is looked up at its use.
 */
#ifndef ETH_H
#define ETH_H

#include "bb_prm_eth.h"
#include "eth_packet.h"
#include "front_priv.h"

/*
 * Smallest number of an SQ or RQ. Doorbells name SQs and QPs by numbers of one range, and those of
 * the software device's QPs are smaller.
 */
#define ETH_FIRST_QUEUE 0x800000u
#define ETH_MAX_QUEUE   0xfffffeu

/*
 * Maximum time, in ns, that a port's SQs run between two polls. Without this limit one guest could
 * stop the devices of all guests.
 */
#define ETH_TURN_NS 1000000u

#define ETH_WQEBB   64u
#define ETH_MAX_WQE 1024u /* maximum bytes of a send WQE, a multiple of the block size */
/* Maximum bytes of a frame: MTU 9978, Ethernet header, two VLAN tags, and 18 spare bytes. */
#define ETH_MAX_FRAME 10018u
/*
 * Log2 of the maximum bytes of a WQE's message. Linux's driver sends up to GSO_MAX_SIZE, 524280
 * bytes (BIG TCP), whatever max_lso_cap is (en_main.c, mlx5e_build_nic_netdev()).
 */
#define ETH_LOG_LSO  19u
#define ETH_MAX_SEND ((1u << ETH_LOG_LSO) + 256u)

#define ETH_LOG_MAX_WQ     15u /* log2 of the blocks of an SQ, or WQEs of an RQ */
#define ETH_LOG_MAX_STRIDE 11u /* log2 of the bytes of a receive WQE */
#define ETH_LOG_MAX_RQT    8u  /* log2 of the entries of an RQT */
#define ETH_LOG_MAX_TABLE  20u /* log2 of the indices of a flow table */
/* Linux 6.12 creates a table at level 66 without checking the reported maximum level. */
#define ETH_MAX_LEVEL   127u
#define ETH_MAX_PAGES   (1u << 18) /* pages of the rings of all queues */
#define ETH_MAX_ENTRIES 4096u      /* entries of all flow tables */
#define ETH_MAX_GROUPS  1024u      /* groups of all flow tables */
#define ETH_MAX_DESTS   8u         /* destinations of an entry */
/* Maximum number of RQs that get one frame. Otherwise each of 127 tables could add 8 RQs. */
#define ETH_MAX_DELIVERIES 16u

/* States of SQs and RQs (Linux include/linux/mlx5/mlx5_ifc.h: MLX5_SQC_STATE_*). */
enum eth_state {
	ETH_RST = 0,
	ETH_RDY = 1,
	ETH_ERR = 3,
};

#define ETH_CTX_BYTES 0xf0u /* bytes of an SQ's or RQ's context without its page list */

/* An SQ or RQ. */
struct eth_queue {
	struct front_eth *eth;
	uint32_t number;
	enum eth_state state;
	uint32_t uar; /* register page of the doorbells; valid for an SQ */
	uint32_t pdn, user_index;
	uint32_t log_size, log_stride, log_page;
	uint64_t dbr; /* guest address of the doorbell record */
	uint16_t ci;  /* index of the next block or WQE */
	struct front_obj *cq;
	struct front_obj *tis; /* valid for an SQ */
	/*
	 * Number of frames of the WQE at ci that the SQ has already sent; 0 if none. Greater than 0
	 * only for a message that LSO cuts into several frames.
	 */
	uint32_t segment;
	bool pending; /* true if the SQ is in the port's list front_eth.pending */
	TAILQ_ENTRY(eth_queue) wait;
	uint8_t ctx[ETH_CTX_BYTES];
	uint32_t n_pages;
	uint64_t pages[]; /* guest addresses of the ring's pages */
};

/* An RQT (receive queue table): RQs. */
struct eth_rqt {
	uint32_t n;
	struct front_obj *rqs[1u << ETH_LOG_MAX_RQT];
};

struct eth_tir {
	struct front_obj *to; /* an RQ or an RQT */
};

struct front_eth {
	struct front *f;
	LIST_ENTRY(front_eth) link; /* in the list of ports of eth_link.c */
	uint32_t root;              /* number of the first flow table, 0 if none */
	uint32_t n_entries, n_groups;
	uint32_t n_pages;     /* number of pages of the rings of all queues */
	uint32_t next_queue;  /* counter from which SQs and RQs get their numbers */
	uint32_t next_number; /* counter from which other objects get their numbers */
	/*
	 * SQs whose WQEs wait for a turn, in the order of their turns. A turn lasts from one
	 * eth_poll() to the next.
	 */
	TAILQ_HEAD(, eth_queue) pending;
	uint64_t spent; /* ns that SQs ran since the last eth_poll(), doorbells included */
	bool on_port;   /* frames pass through the port= of the device; constant */
	struct front_frames stats;
	uint8_t message[ETH_MAX_SEND];  /* message of the WQE in execution, or a received frame */
	uint8_t segment[ETH_MAX_FRAME]; /* frame of that message */
};

/* ---- eth.c */
/*
 * Executes a command of a queue or of steering. Returns false if the opcode is none of them.
 */
bool eth_command(struct front_cmd *cmd);
/*
 * Executes the new WQEs of the SQ that a doorbell of @len bytes names, 8 or more. Returns false if
 * it names no SQ.
 */
bool eth_doorbell(struct front_eth *e, uint32_t uar, const uint8_t *store, uint32_t len);
/*
 * Receives frames of a port=, and executes WQEs that wait, for a limited time. Returns 0 if there
 * were any frames or WQEs, because more may wait, or a port that was polled before this one may
 * have events now. Otherwise returns FRONT_POLL_MS if the device has a port=, else -1.
 */
int eth_poll(struct front_eth *e);

/* ---- eth_guest.c */
/* Copies @len bytes of the guest's memory at @pa. Returns false if the range is not RAM. */
bool eth_read(struct front_eth *e, uint64_t pa, void *to, uint32_t len);
/*
 * Returns the memory that a segment of a WQE names, NULL if the key does not allow the access.
 * Valid until the next message of the monitor.
 */
uint8_t *eth_memory(struct front_eth *e, uint32_t pdn, uint32_t key, uint64_t addr, uint32_t len,
		    bool write);
/* Reads the counter in word @word of a doorbell record. Returns false if the word is not RAM. */
bool eth_record(struct eth_queue *q, unsigned int word, uint16_t *counter);
/* Writes a CQE for @q. Moves @q to ERR if the CQ has overrun. */
bool eth_cqe(struct eth_queue *q, uint8_t cqe[64]);
/* ---- eth_obj.c */
/* Adds a reference to @o and returns @o. */
struct front_obj *eth_hold(struct front_obj *o);
/* Drops a reference to @o. @o may be NULL. */
void eth_release(struct front_obj *o);
/* Finds an object of uid 0, or refuses the command and returns NULL. */
struct front_obj *eth_named(struct front_cmd *cmd, enum front_kind kind, uint32_t id);
/* Makes an object without a number, or refuses the command and returns NULL. */
struct front_obj *eth_new(struct front_cmd *cmd, enum front_kind kind);
/* Gives a new object its number, 1 or more. Numbers are reused as late as possible. */
void eth_publish(struct front_cmd *cmd, struct front_obj *o);

/* ---- eth_queue.c */
void eth_create_queue(struct front_cmd *cmd);
void eth_modify_queue(struct front_cmd *cmd);
void eth_query_queue(struct front_cmd *cmd);
/* ---- eth_steer.c */
void eth_create_tis(struct front_cmd *cmd);
void eth_create_tir(struct front_cmd *cmd);
void eth_create_rqt(struct front_cmd *cmd);
void eth_modify_rqt(struct front_cmd *cmd);
/* ---- eth_table.c */
void eth_create_table(struct front_cmd *cmd);
void eth_modify_table(struct front_cmd *cmd);
void eth_set_root(struct front_cmd *cmd);
void eth_create_group(struct front_cmd *cmd);
void eth_destroy_group(struct front_cmd *cmd);
void eth_set_entry(struct front_cmd *cmd);
void eth_delete_entry(struct front_cmd *cmd);

/* ---- eth_flow.c: passes a frame from the link through the flow tables to RQs. */
void eth_receive(struct front_eth *e, const uint8_t *frame, uint32_t len);
/* ---- eth_rq.c */
void eth_rq_put(struct eth_queue *q, const uint8_t *frame, uint32_t len, uint32_t tag);
/* ---- eth_sq.c */
/*
 * Executes the new WQEs of an SQ, or flushes them if it is in ERR. When the port's time until the
 * next eth_poll() is used up, the SQ waits for that call with the rest of its WQEs. @store: the
 * @len bytes of the doorbell, not used for WQEs that wait.
 */
void eth_sq_run(struct eth_queue *q, const uint8_t *store, uint32_t len);
/* Removes an SQ from front_eth.pending. Does nothing if the SQ is not in that list. */
void eth_sq_dequeue(struct eth_queue *q);
/* ---- eth_link.c: the link between the functions of this process, a learning bridge. */
void eth_link_add(struct front_eth *e);
void eth_link_remove(struct front_eth *e);
void eth_link_send(struct front_eth *from, const uint8_t *frame, uint32_t len);
/* ---- eth_port.c: the port= of the device */
/*
 * Passes the frames through the port= of the device from now on. Returns 0; -ENODEV if the device
 * has no port=; or another negative errno.
 */
int eth_port_open(struct front_eth *e);
/*
 * Receives frames for at most ETH_TURN_NS. Returns true if there were any. The next call receives
 * the frames that are left. While the port is stopped, frames are dropped.
 */
bool eth_port_receive(struct front_eth *e);
/* Returns false if frames must wait, because the port has no room. */
bool eth_port_ready(struct front_eth *e);
void eth_port_send(struct front_eth *e, const uint8_t *frame, uint32_t len);
/* Passes sent frames to the PMD. Does nothing without a port=. */
void eth_port_flush(struct front_eth *e);

#endif
