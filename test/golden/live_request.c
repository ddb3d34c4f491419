/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "live_request.h"

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	const char *imm; /* name in the vector of the field in the immediate's position */
	uint64_t op;
} opcodes[] = {
	{"SEND", IBV_WR_SEND, NULL, IBV_QP_EX_WITH_SEND},
	{"SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM, "imm", IBV_QP_EX_WITH_SEND_WITH_IMM},
	{"SEND_WITH_INV", IBV_WR_SEND_WITH_INV, "invalidate_rkey", IBV_QP_EX_WITH_SEND_WITH_INV},
	{"RDMA_WRITE", IBV_WR_RDMA_WRITE, NULL, IBV_QP_EX_WITH_RDMA_WRITE},
	{"RDMA_WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, "imm",
	 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM},
	{"RDMA_READ", IBV_WR_RDMA_READ, NULL, IBV_QP_EX_WITH_RDMA_READ},
	{"ATOMIC_CMP_AND_SWP", IBV_WR_ATOMIC_CMP_AND_SWP, NULL, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP},
	{"ATOMIC_FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, NULL,
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD},
	{"LOCAL_INV", IBV_WR_LOCAL_INV, "invalidate_rkey", IBV_QP_EX_WITH_LOCAL_INV},
	{"BIND_MW", IBV_WR_BIND_MW, NULL, IBV_QP_EX_WITH_BIND_MW},
};

enum ibv_qp_type
live_qp_type(const struct vec *v)
{
	const char *type = vec_str(v, "qp_type");

	return strcmp(type, "RC") == 0   ? IBV_QPT_RC
	       : strcmp(type, "UC") == 0 ? IBV_QPT_UC
					 : IBV_QPT_UD;
}

uint64_t
live_send_ops(enum ibv_qp_type type)
{
	uint64_t ops = 0;

	for (unsigned int i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		const bool rc_only = opcodes[i].opcode == IBV_WR_RDMA_READ ||
				     opcodes[i].opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
				     opcodes[i].opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
		const bool ud = opcodes[i].opcode == IBV_WR_SEND ||
				opcodes[i].opcode == IBV_WR_SEND_WITH_IMM;

		if (type == IBV_QPT_RC || (type == IBV_QPT_UC && !rc_only) || ud)
			ops |= opcodes[i].op;
	}
	return ops;
}

const char *
live_opcode(unsigned int i)
{
	return i < sizeof(opcodes) / sizeof(opcodes[0]) ? opcodes[i].name : NULL;
}

struct ibv_ah *
live_ah(const struct vec *v, struct ibv_pd *pd)
{
	struct vec a = vec_sub(v, "ah");
	struct ibv_ah_attr attr = {
		.port_num = (uint8_t)vec_num(&a, "port_num"),
		.is_global = vec_flag(&a, "is_global"),
		.sl = (uint8_t)vec_num(&a, "sl"),
		.static_rate = (uint8_t)vec_num(&a, "static_rate"),
		.dlid = (uint16_t)vec_num(&a, "dlid"),
		.src_path_bits = (uint8_t)vec_num(&a, "src_path_bits"),
	};
	struct ibv_ah *ah;

	if (attr.is_global) {
		assert_int_equal(vec_bytes(&a, "dgid", attr.grh.dgid.raw, 16), 16);
		attr.grh.sgid_index = (uint8_t)vec_num(&a, "sgid_index");
		attr.grh.hop_limit = (uint8_t)vec_num(&a, "hop_limit");
		attr.grh.traffic_class = (uint8_t)vec_num(&a, "traffic_class");
		attr.grh.flow_label = (uint32_t)vec_hex(&a, "flow_label");
	}
	if (vec_has(&a, "dmac")) {
		assert_int_equal(vec_bytes(&a, "dmac", live.dmac, sizeof(live.dmac)), 6);
		live_gid_type(attr.grh.sgid_index, strcmp(vec_str(&a, "sgid_type"), "RoCEv2") == 0
							   ? "RoCE v2\n"
							   : "IB/RoCE v1\n");
	}
	ah = ibv_create_ah(pd, &attr);
	if (ah == NULL)
		vec_fail(v, "ibv_create_ah()");
	return ah;
}

static void
parse_bind(const struct vec *v, struct ibv_pd *pd, struct ibv_send_wr *wr)
{
	static uint8_t memory[64];
	struct vec mw = vec_sub(v, "mw");
	struct ibv_mw *window;
	struct ibv_mr *mr;

	live.key = (uint32_t)vec_hex(&mw, "rkey");
	window = ibv_alloc_mw(pd, vec_num(&mw, "type") == 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	live.key = (uint32_t)vec_hex(&mw, "mr_lkey");
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	if (window == NULL || mr == NULL)
		vec_fail(v, "no window or no region");
	wr->bind_mw.mw = window;
	wr->bind_mw.rkey = (uint32_t)vec_hex(&mw, "new_rkey");
	wr->bind_mw.bind_info.mr = mr;
	wr->bind_mw.bind_info.addr = vec_hex(&mw, "addr");
	wr->bind_mw.bind_info.length = vec_hex(&mw, "length");
	wr->bind_mw.bind_info.mw_access_flags = (unsigned int)vec_hex(&mw, "access");
}

static void
parse_data(const struct vec *v, struct live_request *r)
{
	size_t i, n, at = 0;

	r->is_inline = vec_lists(v, "flags", "INLINE");
	if (!r->is_inline) {
		n = vec_array_len(v, "sge");
		assert_true(n <= LIVE_MAX_SGE);
		for (i = 0; i < n; i++) {
			struct vec s = vec_at(v, "sge", i);

			r->sge[i].addr = vec_hex(&s, "addr");
			r->sge[i].length = (uint32_t)vec_num(&s, "length");
			r->sge[i].lkey = (uint32_t)vec_hex(&s, "lkey");
		}
	} else {
		json_t *parts = json_object_get(v->obj, "inline_parts");

		(void)vec_bytes(v, "inline_hex", r->data, sizeof(r->data));
		n = vec_array_len(v, "inline_parts");
		assert_true(n <= LIVE_MAX_SGE);
		for (i = 0; i < n; i++) {
			const size_t len = (size_t)json_integer_value(json_array_get(parts, i));

			r->part[i] = (struct ibv_data_buf){r->data + at, len};
			r->sge[i].addr = (uintptr_t)r->data + at;
			r->sge[i].length = (uint32_t)len;
			at += len;
		}
	}
	r->wr.sg_list = r->sge;
	r->wr.num_sge = (int)n;
}

void
live_parse(const struct vec *v, struct ibv_pd *pd, struct live_request *r)
{
	const char *op = vec_str(v, "opcode");
	struct ibv_send_wr *wr = &r->wr;
	unsigned int i = 0;

	memset(r, 0, sizeof(*r));
	while (i < sizeof(opcodes) / sizeof(opcodes[0]) && strcmp(op, opcodes[i].name) != 0)
		i++;
	if (i == sizeof(opcodes) / sizeof(opcodes[0]))
		vec_fail(v, "opcode %s", op);
	wr->opcode = opcodes[i].opcode;
	if (opcodes[i].imm != NULL && strcmp(opcodes[i].imm, "imm") == 0)
		wr->imm_data = htobe32((uint32_t)vec_hex(v, "imm"));
	else if (opcodes[i].imm != NULL)
		wr->invalidate_rkey = (uint32_t)vec_hex(v, "invalidate_rkey");
	wr->send_flags = (vec_lists(v, "flags", "SIGNALED") ? IBV_SEND_SIGNALED : 0u) |
			 (vec_lists(v, "flags", "SOLICITED") ? IBV_SEND_SOLICITED : 0u) |
			 (vec_lists(v, "flags", "FENCE") ? IBV_SEND_FENCE : 0u) |
			 (vec_lists(v, "flags", "INLINE") ? IBV_SEND_INLINE : 0u);
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
		wr->wr.rdma.remote_addr = vec_hex(v, "remote_addr");
		wr->wr.rdma.rkey = (uint32_t)vec_hex(v, "rkey");
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		wr->wr.atomic.swap = vec_hex(v, "swap");
		/* fallthrough */
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr->wr.atomic.compare_add = vec_hex(v, "compare_add");
		wr->wr.atomic.remote_addr = vec_hex(v, "remote_addr");
		wr->wr.atomic.rkey = (uint32_t)vec_hex(v, "rkey");
		break;
	case IBV_WR_BIND_MW:
		parse_bind(v, pd, wr);
		break;
	default:
		break;
	}
	if (vec_has(v, "ah")) {
		struct vec a = vec_sub(v, "ah");

		r->ud = true;
		wr->wr.ud.ah = live_ah(v, pd);
		wr->wr.ud.remote_qpn = (uint32_t)vec_hex(&a, "remote_qpn");
		wr->wr.ud.remote_qkey = (uint32_t)vec_hex(&a, "remote_qkey");
	}
	parse_data(v, r);
}

void
live_build(struct ibv_qp_ex *ex, const struct live_request *r)
{
	const struct ibv_send_wr *wr = &r->wr;
	const size_t n = (size_t)wr->num_sge;

	ex->wr_id = 1;
	ex->wr_flags = wr->send_flags;
	switch (wr->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(ex);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(ex, wr->imm_data);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(ex, wr->invalidate_rkey);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(ex, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
				      wr->wr.atomic.compare_add, wr->wr.atomic.swap);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(ex, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
					wr->wr.atomic.compare_add);
		break;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(ex, wr->invalidate_rkey);
		return;
	default:
		ibv_wr_bind_mw(ex, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		return;
	}
	if (r->ud)
		ibv_wr_set_ud_addr(ex, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	if (r->is_inline && n == 1)
		ibv_wr_set_inline_data(ex, r->part[0].addr, r->part[0].length);
	else if (r->is_inline)
		ibv_wr_set_inline_data_list(ex, n, r->part);
	else if (n == 1)
		ibv_wr_set_sge(ex, r->sge[0].lkey, r->sge[0].addr, r->sge[0].length);
	else
		ibv_wr_set_sge_list(ex, n, r->sge);
}
