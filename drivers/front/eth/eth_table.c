/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Commands of flow tables, groups and entries: those of received frames (NIC receive). A match may
 * have the fields of the outer headers that eth_match_of() fills. Other fields, and actions beyond
 * drop and forward, are refused.
 */
#include <stdlib.h>
#include <string.h>

#include "eth_flow.h"

#define FRONT_SYNDROME 0xbbe30000u

#define NUMBER       BB_PRM_F(0x008, 8, 24)
#define NIC_RECEIVE  0u /* table_type */
#define MATCH_OUTER  1u /* match_criteria_enable: MLX5_MATCH_OUTER_HEADERS */
#define MISS_DEFAULT 0u /* table_miss_action */
#define MISS_TABLE   1u
#define MODIFY_MISS  1u /* modify_field_select: MLX5_MODIFY_FLOW_TABLE_MISS_TABLE_ID */
#define ROOT_SET     0u /* op_mod of SET_FLOW_TABLE_ROOT */
#define ROOT_RESET   1u
#define ENTRY_ADD    0u /* op_mod of SET_FLOW_TABLE_ENTRY */
#define ENTRY_MODIFY 1u
#define DEST_TABLE   1u /* MLX5_IFC_FLOW_DESTINATION_TYPE_FLOW_TABLE, _TIR */
#define DEST_TIR     2u
#define DEST_BYTES   8u
#define MATCH_PARAM  512u /* bytes of fte_match_param */

/* Returns true, after refusing the command, if it names tables of another kind or vport. */
static bool
foreign(struct front_cmd *cmd)
{
	if (bb_prm_get(cmd->in, BB_PRM_FLOW_TABLE_TYPE) == NIC_RECEIVE &&
	    !bb_prm_get(cmd->in, BB_PRM_FLOW_OTHER_VPORT))
		return false;
	FRONT_REFUSE(cmd, BAD_PARAM);
	return true;
}

/* Returns the table of a command, or refuses the command and returns NULL. */
static struct eth_table *
table_of(struct front_cmd *cmd)
{
	struct front_obj *o;

	if (foreign(cmd))
		return NULL;
	o = eth_named(cmd, FRONT_FLOW_TABLE, bb_prm_get(cmd->in, BB_PRM_FLOW_TABLE_ID));
	return o != NULL ? o->eth : NULL;
}

static void
drop_dests(struct eth_entry *e)
{
	while (e->n_dests > 0)
		eth_release(e->dests[--e->n_dests].tir);
}

static void
free_entry(struct eth_table *t, struct eth_entry *e)
{
	drop_dests(e);
	LIST_REMOVE(e, next);
	e->group->entries--;
	t->eth->n_entries--;
	free(e);
}

static void
free_group(struct eth_table *t, struct eth_group *g)
{
	LIST_REMOVE(g, next);
	t->eth->n_groups--;
	free(g);
}

static void
table_fini(struct front_obj *o)
{
	struct eth_table *t = o->eth;

	while (!LIST_EMPTY(&t->entries))
		free_entry(t, LIST_FIRST(&t->entries));
	while (!LIST_EMPTY(&t->groups))
		free_group(t, LIST_FIRST(&t->groups));
	if (t->eth->root == o->id)
		t->eth->root = 0;
	free(t);
}

/* Reads where frames go that match no entry. Returns false after refusing the command. */
static bool
read_miss(struct front_cmd *cmd, const uint8_t *ctx, uint32_t *miss)
{
	uint32_t action = bb_prm_get(ctx, BB_PRM_FTC_MISS_ACTION);

	*miss = action == MISS_TABLE ? bb_prm_get(ctx, BB_PRM_FTC_MISS_ID) : 0;
	if (action == MISS_DEFAULT)
		return true;
	if (action == MISS_TABLE)
		return eth_named(cmd, FRONT_FLOW_TABLE, *miss) != NULL;
	FRONT_REFUSE(cmd, BAD_PARAM);
	return false;
}

void
eth_create_table(struct front_cmd *cmd)
{
	const uint8_t *ctx = bb_prm_csub(cmd->in, BB_PRM_CREATE_FT_CTX);
	uint32_t log_size = bb_prm_get(ctx, BB_PRM_FTC_LOG_SIZE), miss;
	uint32_t level = bb_prm_get(ctx, BB_PRM_FTC_LEVEL);
	struct front_obj *o;
	struct eth_table *t;

	if (foreign(cmd) || !read_miss(cmd, ctx, &miss))
		return;
	if (log_size > ETH_LOG_MAX_TABLE || level > ETH_MAX_LEVEL) {
		FRONT_REFUSE(cmd, BAD_PARAM);
		return;
	}
	t = calloc(1, sizeof(*t));
	if (t == NULL) {
		FRONT_REFUSE(cmd, NO_RES);
		return;
	}
	o = eth_new(cmd, FRONT_FLOW_TABLE);
	if (o == NULL) {
		free(t);
		return;
	}
	t->eth = cmd->f->eth;
	t->log_size = log_size;
	t->miss = miss;
	t->next_group = 1;
	o->eth = t;
	o->fini = table_fini;
	eth_publish(cmd, o);
}

void
eth_modify_table(struct front_cmd *cmd)
{
	struct eth_table *t = table_of(cmd);
	uint32_t miss;

	if (t == NULL)
		return;
	if (bb_prm_get(cmd->in, BB_PRM_MODIFY_FT_SELECT) != MODIFY_MISS)
		FRONT_REFUSE(cmd, BAD_PARAM);
	else if (read_miss(cmd, bb_prm_csub(cmd->in, BB_PRM_MODIFY_FT_CTX), &miss))
		t->miss = miss;
}

void
eth_set_root(struct front_cmd *cmd)
{
	uint32_t op_mod = bb_prm_get(cmd->in, BB_PRM_CMD_OP_MOD);

	if (op_mod == ROOT_RESET && !foreign(cmd))
		cmd->f->eth->root = 0;
	else if (op_mod != ROOT_SET && op_mod != ROOT_RESET)
		FRONT_REFUSE(cmd, BAD_PARAM);
	else if (op_mod == ROOT_SET && table_of(cmd) != NULL)
		cmd->f->eth->root = bb_prm_get(cmd->in, BB_PRM_FLOW_TABLE_ID);
}

/* Sets each bit of @mask that a match may have. */
static void
all_fields(uint8_t mask[ETH_MATCH_BYTES])
{
	static const struct bb_prm_field fields[] = {
		BB_PRM_MATCH_SMAC_HIGH, BB_PRM_MATCH_SMAC_LOW,  BB_PRM_MATCH_ETHERTYPE,
		BB_PRM_MATCH_DMAC_HIGH, BB_PRM_MATCH_DMAC_LOW,  BB_PRM_MATCH_FIRST_PRIO,
		BB_PRM_MATCH_FIRST_CFI, BB_PRM_MATCH_FIRST_VID, BB_PRM_MATCH_IP_PROTOCOL,
		BB_PRM_MATCH_IP_DSCP,   BB_PRM_MATCH_IP_ECN,    BB_PRM_MATCH_CVLAN_TAG,
		BB_PRM_MATCH_SVLAN_TAG, BB_PRM_MATCH_FRAG,      BB_PRM_MATCH_IP_VERSION,
		BB_PRM_MATCH_TCP_FLAGS, BB_PRM_MATCH_TCP_SPORT, BB_PRM_MATCH_TCP_DPORT,
		BB_PRM_MATCH_TTL,       BB_PRM_MATCH_UDP_SPORT, BB_PRM_MATCH_UDP_DPORT,
	};
	unsigned int i;

	memset(mask, 0, ETH_MATCH_BYTES);
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		bb_prm_set(mask, fields[i], UINT32_MAX);
	memset(mask + BB_PRM_MATCH_SRC_IP.byte, 0xff, 32);
}

/* Returns true if a mask has only fields that a match may have. */
static bool
mask_known(const uint8_t *mask, uint32_t enable)
{
	uint8_t known[ETH_MATCH_BYTES], odd = 0;
	unsigned int i;

	all_fields(known);
	for (i = 0; i < MATCH_PARAM; i++)
		odd |= mask[i] & (i < ETH_MATCH_BYTES ? (uint8_t)~known[i] : 0xff);
	return odd == 0 && (enable & ~MATCH_OUTER) == 0;
}

void
eth_create_group(struct front_cmd *cmd)
{
	const uint8_t *mask = bb_prm_csub(cmd->in, BB_PRM_CREATE_FG_MATCH);
	uint32_t start = bb_prm_get(cmd->in, BB_PRM_CREATE_FG_START);
	uint32_t end = bb_prm_get(cmd->in, BB_PRM_CREATE_FG_END);
	struct eth_table *t = table_of(cmd);
	struct eth_group *g;

	if (t == NULL)
		return;
	LIST_FOREACH(g, &t->groups, next)
		if (start <= g->end && g->start <= end)
			break;
	if (g != NULL || start > end || end >= 1u << t->log_size ||
	    !mask_known(mask, bb_prm_get(cmd->in, BB_PRM_CREATE_FG_ENABLE))) {
		FRONT_REFUSE(cmd, BAD_PARAM);
		return;
	}
	g = t->eth->n_groups < ETH_MAX_GROUPS ? calloc(1, sizeof(*g)) : NULL;
	if (g == NULL) {
		FRONT_REFUSE(cmd, NO_RES);
		return;
	}
	g->id = t->next_group++;
	g->start = start;
	g->end = end;
	memcpy(g->mask, mask, sizeof(g->mask));
	LIST_INSERT_HEAD(&t->groups, g, next);
	t->eth->n_groups++;
	bb_prm_set(cmd->out, NUMBER, g->id);
}

static struct eth_group *
group_of(struct front_cmd *cmd, struct eth_table *t, uint32_t id)
{
	struct eth_group *g;

	LIST_FOREACH(g, &t->groups, next)
		if (g->id == id)
			return g;
	FRONT_REFUSE(cmd, BAD_RES);
	return NULL;
}

void
eth_destroy_group(struct front_cmd *cmd)
{
	struct eth_table *t = table_of(cmd);
	struct eth_group *g =
		t != NULL ? group_of(cmd, t, bb_prm_get(cmd->in, BB_PRM_DESTROY_FG_ID)) : NULL;

	if (g == NULL)
		return;
	if (g->entries != 0)
		FRONT_REFUSE(cmd, RES_BUSY);
	else
		free_group(t, g);
}

/* Reads action and destinations into @e. Returns false after refusing the command. */
static bool
read_action(struct front_cmd *cmd, const uint8_t *flow, struct eth_entry *e)
{
	uint32_t n = bb_prm_get(flow, BB_PRM_FLOWC_DESTS), type, id;
	const uint8_t *list = flow + BB_PRM_FLOWC_DESTINATION;
	struct front_obj *o;

	e->action = bb_prm_get(flow, BB_PRM_FLOWC_ACTION);
	e->tag = bb_prm_get(flow, BB_PRM_FLOWC_TAG);
	e->n_dests = 0;
	if ((e->action & ~(ETH_ACTION_ALLOW | ETH_ACTION_DROP | ETH_ACTION_FWD)) != 0 ||
	    bb_prm_get(flow, BB_PRM_FLOWC_EXTENDED) || n > ETH_MAX_DESTS ||
	    ((e->action & ETH_ACTION_FWD) != 0) != (n != 0)) {
		FRONT_REFUSE(cmd, BAD_PARAM);
		return false;
	}
	if (n > (cmd->inlen - (uint32_t)(list - cmd->in)) / DEST_BYTES) {
		FRONT_REFUSE(cmd, BAD_INP_LEN);
		return false;
	}
	for (; e->n_dests < n; list += DEST_BYTES) {
		type = bb_prm_get(list, BB_PRM_DEST_TYPE);
		id = bb_prm_get(list, BB_PRM_DEST_ID);
		o = NULL;
		if (type == DEST_TABLE || type == DEST_TIR)
			o = eth_named(cmd, type == DEST_TIR ? FRONT_TIR : FRONT_FLOW_TABLE, id);
		else
			FRONT_REFUSE(cmd, BAD_PARAM);
		if (o == NULL) {
			drop_dests(e);
			return false;
		}
		e->dests[e->n_dests++] = type == DEST_TIR ? (struct eth_dest){0, eth_hold(o)}
							  : (struct eth_dest){id, NULL};
	}
	return true;
}

static struct eth_entry *
entry_at(struct eth_table *t, uint32_t index)
{
	struct eth_entry *e;

	LIST_FOREACH(e, &t->entries, next)
		if (e->index == index)
			return e;
	return NULL;
}

static void
insert(struct eth_table *t, struct eth_entry *e)
{
	struct eth_entry *at = LIST_FIRST(&t->entries), *before = NULL;

	for (; at != NULL && at->index < e->index; at = LIST_NEXT(at, next))
		before = at;
	if (before == NULL)
		LIST_INSERT_HEAD(&t->entries, e, next);
	else
		LIST_INSERT_AFTER(before, e, next);
	e->group->entries++;
	t->eth->n_entries++;
}

static void
modify_entry(struct front_cmd *cmd, struct eth_entry *e, const uint8_t *flow)
{
	struct eth_entry next = *e;

	if (!read_action(cmd, flow, &next))
		return;
	drop_dests(e);
	e->action = next.action;
	e->tag = next.tag;
	e->n_dests = next.n_dests;
	memcpy(e->dests, next.dests, sizeof(e->dests));
}

void
eth_set_entry(struct front_cmd *cmd)
{
	const uint8_t *flow = bb_prm_csub(cmd->in, BB_PRM_SET_FTE_CTX);
	const uint8_t *value = bb_prm_csub(flow, BB_PRM_FLOWC_VALUE);
	uint32_t index = bb_prm_get(cmd->in, BB_PRM_SET_FTE_INDEX), i;
	uint32_t mode = bb_prm_get(cmd->in, BB_PRM_CMD_OP_MOD);
	struct eth_table *t = table_of(cmd);
	struct eth_group *g;
	struct eth_entry *e;

	g = t != NULL ? group_of(cmd, t, bb_prm_get(flow, BB_PRM_FLOWC_GROUP_ID)) : NULL;
	if (g == NULL)
		return;
	e = entry_at(t, index);
	if (index < g->start || index > g->end || mode > ENTRY_MODIFY ||
	    (e != NULL) != (mode == ENTRY_MODIFY)) {
		FRONT_REFUSE(cmd, BAD_PARAM);
		return;
	}
	if (e != NULL) {
		modify_entry(cmd, e, flow);
		return;
	}
	e = t->eth->n_entries < ETH_MAX_ENTRIES ? calloc(1, sizeof(*e)) : NULL;
	if (e == NULL) {
		FRONT_REFUSE(cmd, NO_RES);
		return;
	}
	if (!read_action(cmd, flow, e)) {
		free(e);
		return;
	}
	e->index = index;
	e->group = g;
	for (i = 0; i < ETH_MATCH_BYTES; i++)
		e->value[i] = value[i] & g->mask[i];
	insert(t, e);
}

void
eth_delete_entry(struct front_cmd *cmd)
{
	struct eth_table *t = table_of(cmd);
	struct eth_entry *e =
		t != NULL ? entry_at(t, bb_prm_get(cmd->in, BB_PRM_DELETE_FTE_INDEX)) : NULL;

	if (t != NULL && e == NULL)
		FRONT_REFUSE(cmd, BAD_RES);
	else if (e != NULL)
		free_entry(t, e);
}
