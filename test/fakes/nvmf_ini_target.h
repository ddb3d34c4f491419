/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A target without RDMA for tests of the NVMe-oF initiator's engine (examples/nvmf/host). It
 * records all commands, and answers those that connect; tests change its values to make it lie.
 */
#ifndef NVMF_INI_TARGET_H
#define NVMF_INI_TARGET_H

#include "nvmf_ini.h"

#define TARGET_NQN    "nqn.2026-01.org.example:disk"
#define TARGET_KEY    0x00abcdefu
#define TARGET_ADDR   0x7000000000ull
#define TARGET_CNTLID 7u
#define TARGET_BLOCKS 1024u /* of 512 bytes */
#define TARGET_MAX_IO 16384u
#define TARGET_TIME   1000u /* ms at the start */

struct nvmf_ini_target_command {
	uint16_t qid;
	uint8_t cmd[NVMF_SQE];
};

struct nvmf_ini_target {
	struct nvmf_ini *e;
	uint8_t shared[INI_PAGE + BB_NVMF_MAX_DEPTH * INI_RANGE];
	uint64_t now;
	/* Commands that wait for an answer, in the order of their arrival. */
	struct nvmf_ini_target_command sent[512];
	uint32_t nsent;
	uint32_t connects[2], disconnects, grants, revokes;
	uint32_t sizes[2]; /* entries of the queues */
	uint8_t req[2][NVMF_CM_REQ];
	bool connecting[2], open[2];
	uint32_t revoking[BB_NVMF_MAX_DEPTH], nrevoking; /* indexes */
	uint32_t keys;                                   /* windows that were bound so far */
	int fail_connect, fail_send, fail_grant, fail_revoke;
	/* Values of the target. */
	uint8_t rep[NVMF_CM_REP];
	uint64_t cap, result; /* result of both Connect commands */
	uint32_t csts,
		status; /* status of the command whose opcode, or type with bit 8, is @refuse */
	uint32_t refuse;
	uint8_t controller[NVMF_PAGE], space[NVMF_PAGE];
	bool no_data; /* Identify succeeds without data */
	bool hostile; /* @sent may have commands that the engine regards as answered */
};

/* Creates the engine. @attr may be NULL for depth 8 and the defaults. */
void nvmf_ini_target_open(struct nvmf_ini_target *t, const struct bb_nvmf_attr *attr);
void nvmf_ini_target_close(struct nvmf_ini_target *t);
/* Accepts connections, and answers all commands that wait, except for those that move data. */
void nvmf_ini_target_run(struct nvmf_ini_target *t);
/* Moves the time on by @ms, in steps of 10 ms. */
void nvmf_ini_target_time(struct nvmf_ini_target *t, uint32_t ms);
/* Moves the time on by @ms in one step. */
void nvmf_ini_target_jump(struct nvmf_ini_target *t, uint32_t ms);
/* Runs until the engine is live or over. Returns whether it is live. */
bool nvmf_ini_target_live(struct nvmf_ini_target *t);
/* Sends a response to command @i of those that wait. */
void nvmf_ini_target_answer(struct nvmf_ini_target *t, uint32_t i, uint32_t status,
			    uint64_t result);
/* Sends the bytes of a response. */
void nvmf_ini_target_cqe(struct nvmf_ini_target *t, uint16_t qid, const uint8_t *cqe, uint32_t len);
/* Builds a response to command @i. */
void nvmf_ini_target_build(const struct nvmf_ini_target *t, uint32_t i, uint32_t status,
			   uint64_t result, uint8_t cqe[NVMF_CQE]);
/* Removes command @i from those that wait. */
void nvmf_ini_target_drop(struct nvmf_ini_target *t, uint32_t i);
/* Connection @qid ends. */
void nvmf_ini_target_break(struct nvmf_ini_target *t);

#endif
