/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A host, a transport and two subsystems for tests of the NVMe-oF engine (examples/nvmf). Transfers
 * and responses wait in a list until nvmf_host_run() executes them.
 */
#ifndef NVMF_HOST_H
#define NVMF_HOST_H

#include "nvmf.h"

#define HOST_MEM    65536u /* bytes of the host's memory, at HOST_ADDR */
#define HOST_ADDR   0x123456780000ull
#define HOST_KEY    0x00c0ffeeu
#define HOST_NQN    "nqn.2026-01.org.example:host"
#define HOST_OTHER  "nqn.2026-01.org.example:other"
#define SUBSYS_OPEN "nqn.2026-01.org.example:open" /* for any host: NSID 1, 2 and 4 of 5 */
#define SUBSYS_OWN  "nqn.2026-01.org.example:own"  /* for HOST_NQN only */
#define MAX_IO      8192u
#define IN_CAPSULE  4096u
#define IO_DEPTH    8u
#define IO_QUEUES   3u
#define NS_BLOCKS   64u /* of NSID 1, 512 bytes each */
#define RESPONSES   64u

struct nvmf_host_response {
	struct nvmf_queue *q;
	uint8_t cqe[NVMF_CQE];
	uint32_t capsule, key;
	bool invalidate;
};

/* A transfer or a response that the engine asked for. */
struct nvmf_host_event {
	struct nvmf_req *r; /* NULL: none */
	bool respond;
	void *to;
	uint32_t offset, len;
};

struct nvmf_host {
	struct nvmf_target *t;
	struct nvmf_subsys subsys[2];
	struct nvmf_ns disk;    /* NSID 1 of SUBSYS_OPEN, of @storage */
	struct nvmf_ns nothing; /* NSID 2: null, read-only, 4096 bytes a block */
	struct nvmf_ns slow;    /* NSID 4: @storage, too; see hold and fail */
	struct nvmf_ns *ns[5];
	uint8_t storage[NS_BLOCKS * 512];
	uint8_t mem[HOST_MEM];
	struct nvmf_host_event event[256];
	uint32_t events;
	struct nvmf_host_response response[RESPONSES]; /* the last ones */
	uint32_t responses;
	uint32_t closes, closes_told; /* calls of close(), and those with a reason */
	struct nvmf_req *attaching;   /* Connect of a target without controllers */
	uint32_t discarded;           /* commands that ended without a response */
	uint16_t cid;
	bool hold_sent;  /* the transport does not learn that a response was delivered */
	bool fail_pull;  /* transfers fail */
	bool hold_turns; /* nvmf_host_run() does not call nvmf_target_turn() */
	bool hold;       /* requests to NSID 4 wait for nvmf_host_finish() */
	int fail;        /* errno of requests to NSID 4 */
	struct {
		struct nvmf_req *r;
		struct nvmf_io io;
	} held[64];
	uint32_t nheld;
	uint32_t ops[5]; /* requests to NSID 4 by enum nvmf_io_op */
	uint32_t fuas;
	const void *buf; /* of the last request to NSID 4 */
	/* of the last command executed by nvmf_host_exec() */
	uint64_t result;
	uint8_t capsule[64][NVMF_SQE + IN_CAPSULE];
	uint32_t next_capsule;
};

/* Creates the target and its subsystems. The host's memory has a pattern. */
void nvmf_host_open(struct nvmf_host *h);
void nvmf_host_close(struct nvmf_host *h);
struct nvmf_queue *nvmf_host_queue(struct nvmf_host *h, uint16_t qid, uint32_t depth);
/* Closes and frees a queue, and forgets its events. */
void nvmf_host_drop(struct nvmf_host *h, struct nvmf_queue *q);
/* Executes all waiting transfers and responses. */
void nvmf_host_run(struct nvmf_host *h);
/* Ends the held requests to NSID 4, executed unless @res is an error. */
void nvmf_host_finish(struct nvmf_host *h, int res);

/* Builds a command with a new id, and an SGL descriptor of @len bytes of the host's memory. */
void nvmf_host_cmd(struct nvmf_host *h, uint8_t *cmd, uint8_t op, uint32_t nsid, uint32_t len);
/* Builds a command of @n blocks at @slba. */
void nvmf_host_rw(struct nvmf_host *h, uint8_t *cmd, uint8_t op, uint32_t nsid, uint64_t slba,
		  uint32_t n, uint32_t len);
/* Changes the SGL descriptor: @len bytes at @offset of the data in the capsule. */
void nvmf_host_in_capsule(uint8_t *cmd, uint64_t offset, uint32_t len);
/* Sends a command without waiting. @data of @len bytes follows it in the capsule. */
void nvmf_host_send(struct nvmf_host *h, struct nvmf_queue *q, const uint8_t *cmd, const void *data,
		    uint32_t len);
/* Sends a command and returns its status; UINT32_MAX if there is no response. */
uint32_t nvmf_host_exec(struct nvmf_host *h, struct nvmf_queue *q, const uint8_t *cmd);
/* Status of response @i of all. */
uint32_t nvmf_host_status(const struct nvmf_host *h, uint32_t i);
/* Builds Connect, and its data in the host's memory. */
void nvmf_host_connect_cmd(struct nvmf_host *h, uint8_t *cmd, const char *subnqn, uint16_t qid,
			   uint16_t cntlid, uint32_t depth);
/* Connects an admin queue and enables the controller; returns the queue. */
struct nvmf_queue *nvmf_host_admin(struct nvmf_host *h, const char *subnqn);
/* Connects an I/O queue to the controller of @admin. */
struct nvmf_queue *nvmf_host_io(struct nvmf_host *h, struct nvmf_queue *admin, uint16_t qid);
uint32_t nvmf_host_property(struct nvmf_host *h, struct nvmf_queue *q, uint32_t offset,
			    uint8_t attrib);
uint32_t nvmf_host_set_cc(struct nvmf_host *h, struct nvmf_queue *q, uint32_t cc);

#endif
