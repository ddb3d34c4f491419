/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Objects of the Ethernet port: their numbers and references. */
#include "eth.h"

#define FRONT_SYNDROME 0xbbe40000u

#define NUMBER     BB_PRM_F(0x008, 8, 24) /* number of an object in most commands */
#define MAX_NUMBER 0xfffffeu

struct front_obj *
eth_hold(struct front_obj *o)
{
	o->refs++;
	return o;
}

void
eth_release(struct front_obj *o)
{
	if (o != NULL)
		o->refs--;
}

struct front_obj *
eth_named(struct front_cmd *cmd, enum front_kind kind, uint32_t id)
{
	struct front_obj *o = front_obj_find(cmd->f, kind, id);

	if (o != NULL && o->user == cmd->user)
		return o;
	FRONT_LOG(ERR, "command refused: the kernel has no object 0x%x of kind %d\n", id, kind);
	FRONT_REFUSE(cmd, BAD_RES);
	return NULL;
}

struct front_obj *
eth_new(struct front_cmd *cmd, enum front_kind kind)
{
	uint32_t log_max =
		kind == FRONT_FLOW_TABLE ? FRONT_LOG_MAX_TABLES : FRONT_LOG_MAX_ETH_QUEUES;
	struct front_obj *o;

	if (cmd->f->n_of_kind[kind] >= 1u << log_max) {
		FRONT_REFUSE(cmd, LIM_ERR);
		return NULL;
	}
	o = front_obj_new(cmd->f, kind, cmd->user);
	if (o == NULL)
		FRONT_REFUSE(cmd, NO_RES);
	return o;
}

void
eth_publish(struct front_cmd *cmd, struct front_obj *o)
{
	uint32_t *next = &cmd->f->eth->next_number, id;

	do {
		id = 1 + (*next)++ % MAX_NUMBER;
	} while (front_obj_find(cmd->f, o->kind, id) != NULL);
	front_obj_publish(cmd->f, o, id);
	bb_prm_set(cmd->out, NUMBER, id);
}
