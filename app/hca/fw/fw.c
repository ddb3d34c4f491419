/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "fw.h"
#include "hca_log.h"

#define MIN_BOX   8u /* minimum bytes of a mailbox: opcode and op_mod, or status and syndrome */
#define ISSI_MASK 3u /* one bit for each supported interface version (ISSI): 0 and 1 */

/* States of the function in which a command is accepted. */
enum {
	ALWAYS,
	ENABLED,     /* after ENABLE_HCA and before DISABLE_HCA */
	INITIALIZED, /* after INIT_HCA and before TEARDOWN_HCA */
};

int
fw_ok(struct fw_cmd *c)
{
	(void)c;
	return BB_PRM_STAT_OK;
}

static void
destroy_objects(struct hca *h)
{
	uint32_t i;

	front_reset(h->front);
	for (i = 0; i < HCA_EQS; i++)
		hca_eq_free(&h->eqs[i]);
}

/*
 * If the function is already enabled, the kernel that enabled it has crashed, and a kernel for its
 * dump has started (kdump). Such a kernel begins without TEARDOWN_HCA, and needs no reset on a card
 * [A]. So the function starts anew.
 */
static int
enable_hca(struct fw_cmd *c)
{
	if (bb_prm_get(c->in, BB_PRM_ENABLE_HCA_FUNCTION_ID) != 0)
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "function %u: only function 0 exists",
				 bb_prm_get(c->in, BB_PRM_ENABLE_HCA_FUNCTION_ID));
	if (c->h->fw.enabled) {
		HCA_LOG(NOTICE, "ENABLE_HCA without DISABLE_HCA, as after a crash of the guest's "
				"kernel: the function starts anew");
		destroy_objects(c->h);
		fw_reset(c->h);
	}
	c->h->fw.enabled = true;
	return BB_PRM_STAT_OK;
}

static int
disable_hca(struct fw_cmd *c)
{
	if (c->h->fw.initialized)
		return fw_refuse(c, BB_PRM_STAT_BAD_SYS_STATE,
				 "DISABLE_HCA must come after TEARDOWN_HCA");
	c->h->fw.enabled = false;
	return BB_PRM_STAT_OK;
}

static int
init_hca(struct fw_cmd *c)
{
	struct hca_fw *fw = &c->h->fw;

	if (fw->initialized)
		return fw_refuse(c, BB_PRM_STAT_BAD_SYS_STATE, "INIT_HCA was executed already");
	if (fw->n_pages < FW_BOOT_PAGES + FW_INIT_PAGES)
		return fw_refuse(c, BB_PRM_STAT_BAD_SYS_STATE,
				 "INIT_HCA with %u pages (MANAGE_PAGES must give %u)", fw->n_pages,
				 FW_BOOT_PAGES + FW_INIT_PAGES);
	fw->initialized = true;
	fw->page_request = false;
	fw->declined = 0;
	return BB_PRM_STAT_OK;
}

static int
teardown_hca(struct fw_cmd *c)
{
	uint32_t profile = bb_prm_get(c->in, BB_PRM_TEARDOWN_HCA_PROFILE);

	if (profile != 0)
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "TEARDOWN_HCA profile %u: it must be 0",
				 profile);
	destroy_objects(c->h);
	c->h->fw.initialized = false;
	return BB_PRM_STAT_OK;
}

static int
query_issi(struct fw_cmd *c)
{
	if (fw_need(c, 16, BB_PRM_SZ_QUERY_ISSI_OUT) != 0)
		return BB_PRM_STAT_BAD_OUTP_LEN;
	bb_prm_set(c->out, BB_PRM_QUERY_ISSI_OUT_CURRENT_ISSI, c->h->fw.issi);
	bb_prm_set(c->out, BB_PRM_QUERY_ISSI_OUT_SUPPORTED_ISSI_DW0, ISSI_MASK);
	return BB_PRM_STAT_OK;
}

static int
set_issi(struct fw_cmd *c)
{
	uint32_t issi = bb_prm_get(c->in, BB_PRM_SET_ISSI_CURRENT_ISSI);

	if (issi > 31 || !(ISSI_MASK >> issi & 1))
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "ISSI %u (0 or 1)", issi);
	c->h->fw.issi = issi;
	return BB_PRM_STAT_OK;
}

static int
query_adapter(struct fw_cmd *c)
{
	static const char psid[16] = "BB_0000000001";
	uint8_t *a = bb_prm_sub(c->out, BB_PRM_QUERY_ADAPTER_OUT_QUERY_ADAPTER_STRUCT);

	if (fw_need(c, 16, BB_PRM_SZ_QUERY_ADAPTER_OUT) != 0)
		return BB_PRM_STAT_BAD_OUTP_LEN;
	bb_prm_set(a, BB_PRM_ADAPTER_IEEE_VENDOR_ID, 0x2c9); /* Mellanox's OUI */
	memcpy(bb_prm_sub(a, BB_PRM_ADAPTER_VSD_CONTD_PSID), psid, sizeof(psid));
	return BB_PRM_STAT_OK;
}

struct entry {
	uint16_t op;
	uint8_t phase;
	bool eth; /* accepted only by a function with an Ethernet port */
	const char *name;
	int (*run)(struct fw_cmd *c);
};

#define OP(phase_, name_, run_)                                                                    \
	{                                                                                          \
		BB_PRM_OP_##name_, phase_, false, #name_, run_                                     \
	}
#define ETH(phase_, name_, run_)                                                                   \
	{                                                                                          \
		BB_PRM_OP_##name_, phase_, true, #name_, run_                                      \
	}

static const struct entry entries[] = {
	OP(ALWAYS, ENABLE_HCA, enable_hca),
	OP(ALWAYS, DISABLE_HCA, disable_hca),
	OP(ALWAYS, QUERY_ISSI, query_issi),
	OP(ALWAYS, SET_ISSI, set_issi),
	OP(ENABLED, INIT_HCA, init_hca),
	OP(ENABLED, TEARDOWN_HCA, teardown_hca),
	OP(ENABLED, QUERY_PAGES, fw_query_pages),
	OP(ENABLED, MANAGE_PAGES, fw_manage_pages),
	OP(ENABLED, QUERY_HCA_CAP, fw_query_hca_cap),
	OP(ENABLED, SET_HCA_CAP, fw_set_hca_cap),
	OP(ENABLED, QUERY_ADAPTER, query_adapter),
	OP(ENABLED, ACCESS_REG, fw_access_reg),
	OP(ENABLED, SET_DRIVER_VERSION, fw_ok),
	OP(INITIALIZED, CREATE_EQ, fw_create_eq),
	OP(INITIALIZED, DESTROY_EQ, fw_destroy_eq),
	OP(INITIALIZED, QUERY_EQ, fw_query_eq),
	OP(INITIALIZED, QUERY_HCA_VPORT_CONTEXT, fw_query_hca_vport_context),
	OP(INITIALIZED, MODIFY_HCA_VPORT_CONTEXT, fw_modify_hca_vport_context),
	OP(INITIALIZED, QUERY_HCA_VPORT_GID, fw_query_hca_vport_gid),
	OP(INITIALIZED, QUERY_HCA_VPORT_PKEY, fw_query_hca_vport_pkey),
	OP(INITIALIZED, MAD_IFC, fw_mad_ifc),
	OP(INITIALIZED, QUERY_VPORT_STATE, fw_query_vport_state),
	OP(INITIALIZED, MODIFY_VPORT_STATE, fw_ok),
	OP(INITIALIZED, QUERY_VPORT_COUNTER, fw_query_vport_counter),
	OP(INITIALIZED, QUERY_NIC_VPORT_CONTEXT, fw_query_nic_vport_context),
	OP(INITIALIZED, MODIFY_NIC_VPORT_CONTEXT, fw_modify_nic_vport_context),
	ETH(INITIALIZED, SET_ROCE_ADDRESS, fw_set_roce_address),
	ETH(INITIALIZED, QUERY_ROCE_ADDRESS, fw_query_roce_address),
};

static const struct entry *
find(const struct hca *h, uint16_t op)
{
	uint32_t i;

	for (i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (entries[i].op == op)
			return entries[i].eth && !h->o.eth ? NULL : &entries[i];
	return NULL;
}

/* Logs the non-zero lines of a mailbox. */
static void
dump(const char *what, const uint8_t *p, uint32_t len)
{
	uint32_t i;

	for (i = 0; i + 16 <= len && i < 0x120; i += 16)
		if (bb_prm_dword(p, (uint16_t)i) | bb_prm_dword(p, (uint16_t)(i + 4)) |
		    bb_prm_dword(p, (uint16_t)(i + 8)) | bb_prm_dword(p, (uint16_t)(i + 12)))
			HCA_LOG(DEBUG, "  %s %03x: %08x %08x %08x %08x", what, i,
				bb_prm_dword(p, (uint16_t)i), bb_prm_dword(p, (uint16_t)(i + 4)),
				bb_prm_dword(p, (uint16_t)(i + 8)),
				bb_prm_dword(p, (uint16_t)(i + 12)));
}

static void
run(struct fw_cmd *c, const struct entry *e)
{
	const struct hca_fw *fw = &c->h->fw;

	if ((e->phase == ENABLED && !fw->enabled) || (e->phase == INITIALIZED && !fw->initialized))
		(void)fw_refuse(c, BB_PRM_STAT_BAD_SYS_STATE, "%s before %s_HCA", e->name,
				e->phase == ENABLED ? "ENABLE" : "INIT");
	else
		(void)e->run(c);
}

void
fw_command(struct hca *h, const uint8_t *in, uint32_t inlen, uint8_t *out, uint32_t outlen)
{
	struct fw_cmd c = {
		.h = h,
		.in = in,
		.out = out,
		.inlen = inlen,
		.outlen = outlen,
		.op = (uint16_t)bb_prm_get(in, BB_PRM_CMD_OPCODE),
		.op_mod = (uint16_t)bb_prm_get(in, BB_PRM_CMD_OP_MOD),
	};
	const struct entry *e = find(h, c.op);

	if (hca_log_debug()) {
		HCA_LOG(DEBUG, "command 0x%x %s, op_mod 0x%x, uid %u, %u bytes in, %u out", c.op,
			e != NULL ? e->name : "", c.op_mod, bb_prm_get(in, BB_PRM_CMD_UID), inlen,
			outlen);
		dump("in", in, inlen);
	}
	if (inlen < MIN_BOX || outlen < MIN_BOX)
		(void)fw_need(&c, MIN_BOX, MIN_BOX);
	else if (e != NULL)
		run(&c, e);
	else if (!h->fw.initialized)
		(void)fw_refuse(&c, BB_PRM_STAT_BAD_SYS_STATE, "before INIT_HCA");
	else if (!front_command(h->front, in, inlen, out, outlen))
		(void)fw_refuse(&c, BB_PRM_STAT_BAD_OP, "the device does not know this opcode");
	fw_update_pages(h);
	if (hca_log_debug())
		dump("out", out, outlen);
}

void
fw_reset(struct hca *h)
{
	h->fw.enabled = false;
	h->fw.initialized = false;
	h->fw.issi = 0;
	h->fw.n_pages = 0;
	fw_update_pages(h);
	fw_cap_reset(h);
	fw_nic_reset(h);
	fw_port_reset(h);
}

void
fw_fini(struct hca *h)
{
	free(h->fw.pages);
	h->fw.pages = NULL;
}
