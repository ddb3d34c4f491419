/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A command interface for unit tests of the mlx5 driver: device "stub0". It records the
 * mailboxes, answers each with success or as the test wants, and counts live objects. It does not
 * interpret the mailboxes.
 */
#ifndef CMD_STUB_H
#define CMD_STUB_H

#include <stdbool.h>

#include "bb_prm.h"
#include "mlx5_cmd.h"

#define STUB_BOXES    512
#define STUB_BOX_SIZE 0x180
#define STUB_CAPS     0x1000
#define STUB_EVENTS   256
#define STUB_GIDS     4
#define STUB_EQN      0x2a
#define STUB_EQS      3 /* completion vectors */
#define STUB_PDN      0x123456
#define STUB_FIRST_ID 0x1000 /* of CQs, QPs and counter sets (their low 8 bits) */

struct stub_box {
	uint16_t op;
	size_t len;
	uint8_t in[STUB_BOX_SIZE];
};

struct stub {
	/* Capabilities that it reports; a test changes them before open. */
	uint8_t general[STUB_CAPS], atomic[STUB_CAPS], roce[STUB_CAPS], dev_mem[STUB_CAPS];
	uint8_t odp[STUB_CAPS], dev_event[STUB_CAPS], port_selection[STUB_CAPS];
	uint8_t lag[BB_PRM_SZ_SHORT]; /* output of QUERY_LAG */
	struct mlx5_port port;
	struct bb_gid gids[STUB_GIDS];
	uint8_t dmac[6];
	bool inline_progress;
	uint8_t query_qpc[BB_PRM_SZ_QUERY_QP_OUT];
	uint8_t counters[BB_PRM_SZ_QUERY_Q_COUNTER_OUT];

	/*
	 * Commands of this opcode fail with a status or, without one, an errno. Other calls fail
	 * by name.
	 */
	uint16_t fail_op;
	uint8_t fail_status;
	int fail_errno;
	bool no_bf, no_nc, no_uar;
	int umem_errno, mr_errno, pd_errno, eqn_errno, subscribe_errno, av_errno, port_errno;
	int close_errno;

	/* Mailboxes received. */
	struct stub_box boxes[STUB_BOXES];
	unsigned int n_boxes;
	uint64_t umem_pgsz;
	uint8_t *umem_addr;
	size_t umem_len;
	uint32_t umem_access, mr_access;
	uint64_t cookie, types; /* of the last subscription to an object; 1 << type */
	uint32_t progressed;

	/* Pending events. */
	struct mlx5_cmd_event events[STUB_EVENTS];
	unsigned int n_events, next_event;

	/* Live objects. */
	unsigned int ctxs, objs, umems, uars, pds, mrs;
	uint32_t next_id, next_umem;
};

extern struct stub stub;

/* Resets to a device that supports everything and refuses nothing. */
void stub_reset(void);
unsigned int stub_alive(void);
/* Returns the last mailbox of an opcode, NULL if there is none. */
const uint8_t *stub_box(uint16_t op);
/* Returns the bytes of that mailbox, 0 if there is none. */
size_t stub_box_len(uint16_t op);
unsigned int stub_count(uint16_t op);
void stub_event(uint16_t type, uint64_t cookie, uint32_t port);

/* Starts EAL without hugepages and devices. Returns 0, or 77 after printing the reason. */
int stub_eal_init(const char *program);

#endif
