/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Opens, polls and closes the Ethernet port, and dispatches its commands and doorbells. */
#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>

#include "eth.h"

#define FRONT_SYNDROME 0xbbe00000u

#define NUMBER BB_PRM_F(0x008, 8, 24) /* number of an object in most commands */

/*
 * Opens the device's port= again after the device was reopened. The device has the port= if
 * e->on_port is true. After a failure the next reset calls this function again.
 */
static int
reopen(struct front_eth *e)
{
	return e->on_port ? eth_port_open(e) : 0;
}

/* Closes the port; nothing of it is used any more. */
static void
close_port(struct front_eth *e)
{
	if (!e->on_port)
		eth_link_remove(e);
	e->f->eth = NULL;
	free(e);
}

const struct front_frames *
front_frames(const struct front *f)
{
	return f->eth != NULL ? &f->eth->stats : NULL;
}

int
front_ethernet(struct front *f)
{
	struct front_eth *e = calloc(1, sizeof(*e));
	int ret;

	if (e == NULL)
		return -ENOMEM;
	e->f = f;
	ret = eth_port_open(e);
	if (ret != 0 && ret != -ENODEV) {
		free(e);
		return ret;
	}
	e->on_port = ret == 0;
	TAILQ_INIT(&e->pending);
	f->eth = e;
	f->eth_command = eth_command;
	f->eth_doorbell = eth_doorbell;
	f->eth_poll = eth_poll;
	f->eth_reopen = reopen;
	f->eth_close = close_port;
	if (!e->on_port)
		eth_link_add(e);
	return 0;
}

bool
eth_doorbell(struct front_eth *e, uint32_t uar, const uint8_t *store, uint32_t len)
{
	uint32_t number = bb_prm_dword(store, 4) >> 8;
	struct front_obj *o = front_obj_find(e->f, FRONT_SQ, number);
	struct eth_queue *q;

	if (o == NULL)
		return false;
	q = o->eth;
	if (q->uar != uar) {
		FRONT_LOG(DEBUG,
			  "SQ 0x%x: ignored a doorbell on UAR page 0x%x: the SQ uses page 0x%x\n",
			  number, uar, q->uar);
		return true;
	}
	eth_sq_run(q, store, len);
	return true;
}

int
eth_poll(struct front_eth *e)
{
	bool any = e->on_port && eth_port_receive(e);
	struct eth_queue *q;

	e->spent = 0;
	any |= !e->f->stopped && !TAILQ_EMPTY(&e->pending);
	while (!e->f->stopped && (q = TAILQ_FIRST(&e->pending)) != NULL && e->spent < ETH_TURN_NS &&
	       eth_port_ready(e))
		eth_sq_run(q, NULL, 0);
	return any ? 0 : e->on_port ? FRONT_POLL_MS : -1;
}

static void
destroy(struct front_cmd *cmd, enum front_kind kind, struct bb_prm_field number)
{
	struct front_obj *o = eth_named(cmd, kind, bb_prm_get(cmd->in, number));

	if (o != NULL && front_obj_destroy(cmd->f, o) != 0)
		FRONT_REFUSE(cmd, RES_BUSY);
}

/* Changes of a TIR that the driver makes need no action: LRO and self-loopback are never on. */
static void
modify_tir(struct front_cmd *cmd)
{
	(void)eth_named(cmd, FRONT_TIR, bb_prm_get(cmd->in, NUMBER));
}

static void
modify_tis(struct front_cmd *cmd)
{
	(void)eth_named(cmd, FRONT_TIS, bb_prm_get(cmd->in, NUMBER));
}

static void
destroy_sq(struct front_cmd *cmd)
{
	destroy(cmd, FRONT_SQ, NUMBER);
}

static void
destroy_rq(struct front_cmd *cmd)
{
	destroy(cmd, FRONT_RQ, NUMBER);
}

static void
destroy_tis(struct front_cmd *cmd)
{
	destroy(cmd, FRONT_TIS, NUMBER);
}

static void
destroy_tir(struct front_cmd *cmd)
{
	destroy(cmd, FRONT_TIR, NUMBER);
}

static void
destroy_rqt(struct front_cmd *cmd)
{
	destroy(cmd, FRONT_RQT, NUMBER);
}

static void
destroy_table(struct front_cmd *cmd)
{
	destroy(cmd, FRONT_FLOW_TABLE, BB_PRM_FLOW_TABLE_ID);
}

static const struct {
	uint16_t op, inlen, outlen;
	void (*run)(struct front_cmd *cmd);
} commands[] = {
	{BB_PRM_OP_CREATE_SQ, BB_PRM_SZ_CREATE_SQ_IN, FRONT_BOX, eth_create_queue},
	{BB_PRM_OP_MODIFY_SQ, BB_PRM_SZ_MODIFY_SQ_IN, FRONT_BOX, eth_modify_queue},
	{BB_PRM_OP_QUERY_SQ, FRONT_BOX, BB_PRM_SZ_QUERY_SQ_OUT, eth_query_queue},
	{BB_PRM_OP_DESTROY_SQ, FRONT_BOX, FRONT_BOX, destroy_sq},
	{BB_PRM_OP_CREATE_RQ, BB_PRM_SZ_CREATE_SQ_IN, FRONT_BOX, eth_create_queue},
	{BB_PRM_OP_MODIFY_RQ, BB_PRM_SZ_MODIFY_SQ_IN, FRONT_BOX, eth_modify_queue},
	{BB_PRM_OP_QUERY_RQ, FRONT_BOX, BB_PRM_SZ_QUERY_SQ_OUT, eth_query_queue},
	{BB_PRM_OP_DESTROY_RQ, FRONT_BOX, FRONT_BOX, destroy_rq},
	{BB_PRM_OP_CREATE_TIS, BB_PRM_SZ_CREATE_TIS_IN, FRONT_BOX, eth_create_tis},
	{BB_PRM_OP_MODIFY_TIS, FRONT_BOX, FRONT_BOX, modify_tis},
	{BB_PRM_OP_DESTROY_TIS, FRONT_BOX, FRONT_BOX, destroy_tis},
	{BB_PRM_OP_CREATE_TIR, BB_PRM_SZ_CREATE_TIR_IN, FRONT_BOX, eth_create_tir},
	{BB_PRM_OP_MODIFY_TIR, BB_PRM_SZ_CREATE_TIR_IN, FRONT_BOX, modify_tir},
	{BB_PRM_OP_DESTROY_TIR, FRONT_BOX, FRONT_BOX, destroy_tir},
	{BB_PRM_OP_CREATE_RQT, BB_PRM_SZ_CREATE_RQT_IN, FRONT_BOX, eth_create_rqt},
	{BB_PRM_OP_MODIFY_RQT, BB_PRM_SZ_CREATE_RQT_IN, FRONT_BOX, eth_modify_rqt},
	{BB_PRM_OP_DESTROY_RQT, FRONT_BOX, FRONT_BOX, destroy_rqt},
	{BB_PRM_OP_CREATE_FLOW_TABLE, BB_PRM_SZ_CREATE_FLOW_TABLE_IN, FRONT_BOX, eth_create_table},
	{BB_PRM_OP_MODIFY_FLOW_TABLE, BB_PRM_SZ_FLOW_TABLE_IN, FRONT_BOX, eth_modify_table},
	{BB_PRM_OP_DESTROY_FLOW_TABLE, BB_PRM_SZ_FLOW_TABLE_IN, FRONT_BOX, destroy_table},
	{BB_PRM_OP_SET_FLOW_TABLE_ROOT, BB_PRM_SZ_FLOW_TABLE_IN, FRONT_BOX, eth_set_root},
	{BB_PRM_OP_CREATE_FLOW_GROUP, BB_PRM_SZ_CREATE_FLOW_GROUP_IN, FRONT_BOX, eth_create_group},
	{BB_PRM_OP_DESTROY_FLOW_GROUP, BB_PRM_SZ_FLOW_TABLE_IN, FRONT_BOX, eth_destroy_group},
	{BB_PRM_OP_SET_FLOW_TABLE_ENTRY, BB_PRM_SZ_SET_FTE_IN, FRONT_BOX, eth_set_entry},
	{BB_PRM_OP_DELETE_FLOW_TABLE_ENTRY, BB_PRM_SZ_FLOW_TABLE_IN, FRONT_BOX, eth_delete_entry},
};

bool
eth_command(struct front_cmd *cmd)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(commands) && commands[i].op != cmd->op; i++)
		;
	if (i == RTE_DIM(commands))
		return false;
	/* Users of the kernel, uid 1 and up, have no Ethernet queues. */
	if (cmd->user != &cmd->f->users[0])
		FRONT_REFUSE(cmd, BAD_RES);
	else if (cmd->inlen < commands[i].inlen)
		FRONT_REFUSE(cmd, BAD_INP_LEN);
	else if (cmd->outlen < commands[i].outlen)
		FRONT_REFUSE(cmd, BAD_OUTP_LEN);
	else
		commands[i].run(cmd);
	return true;
}
