/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Every recorded send request of libmlx5, posted with our builders: WQE, doorbell record and
 * register bytes must be the same. See data/README.md for the fields.
 */
#include "golden.h"

#include "bb_bf_copy.h"
#include "bb_sq_atomic.h"
#include "bb_sq_ud.h"
#include "bb_sq_umr.h"
#include "mlx5.h"

#define VECTORS    2169u
#define MAX_WQE    1024u
#define MAX_BLOCKS 512u
#define MAX_SGE    32u
#define BF_HALF    256u
#define FILL       0xee

/* One ibv_post_send list, or one single request. */
struct post {
	struct bb_sq sq;
	uint8_t ring[MAX_BLOCKS * BB_WQE_BB] __attribute__((aligned(64)));
	struct bb_sq_wqe wqes[MAX_BLOCKS];
	uint32_t dbrec;
	uint64_t reg[2 * BF_HALF / 8] __attribute__((aligned(BB_WQE_BB)));
	uint16_t half;     /* half of the register to use next */
	unsigned int next; /* position of the next request in the list; 0: no list is open */
	uint8_t want[MAX_WQE], mask[MAX_WQE]; /* the last WQE, with known defects corrected */
	struct tally done, open, differs;
};

struct request {
	uint8_t opcode;
	bool raddr_seg;
	bool atomic;
	struct bb_sge sge[MAX_SGE];
	uint32_t nsge;
	bool is_inline;
	uint8_t data[MAX_WQE];
	uint32_t inline_len;
	uint32_t flags;
	uint64_t raddr;
	uint32_t rkey;
	uint32_t imm;
	uint64_t compare_add, swap;
	bool umr; /* LOCAL_INV, BIND_MW */
	struct bb_bind bind;
	uint32_t mw_type, old_key, new_key;
	bool ud;
	struct bb_wqe_av av;
	uint32_t dest_qpn, qkey;
};

static const char *const known[] = {
	"id",          "kind",       "qp_type",      "api",         "opcode",
	"flags",       "sge",        "qpn",          "wqe_index",   "sq_size_bb",
	"ds",          "wqe_hex",    "unwritten",    "next_index",  "dbrec_after",
	"reg_bytes",   "reg_offset", "doorbell_hex", "imm",         "invalidate_rkey",
	"remote_addr", "rkey",       "wrap",         "compare_add", "swap",
	"after_umr",   "mw",         "inline_parts", "inline_hex",  "post",
	"list",        "sq_sig_all", "ah",           "link",        "bell_mode",
	NULL,
};

static const struct {
	const char *name;
	uint8_t opcode;
	bool raddr, atomic;
	const char *imm; /* name in the vector of the field in the immediate's position */
} opcodes[] = {
	{"SEND", BB_WQE_SEND, false, false, NULL},
	{"SEND_WITH_IMM", BB_WQE_SEND_IMM, false, false, "imm"},
	{"SEND_WITH_INV", BB_WQE_SEND_INV, false, false, "invalidate_rkey"},
	{"RDMA_WRITE", BB_WQE_RDMA_WRITE, true, false, NULL},
	{"RDMA_WRITE_WITH_IMM", BB_WQE_RDMA_WRITE_IMM, true, false, "imm"},
	{"RDMA_READ", BB_WQE_RDMA_READ, true, false, NULL},
	{"ATOMIC_CMP_AND_SWP", BB_WQE_ATOMIC_CS, true, true, NULL},
	{"ATOMIC_FETCH_AND_ADD", BB_WQE_ATOMIC_FA, true, true, NULL},
	{"LOCAL_INV", BB_WQE_UMR, false, false, "invalidate_rkey"},
	{"BIND_MW", BB_WQE_UMR, false, false, NULL},
};

/* Returns false for a request that Bluebell lacks, and counts it. */
static bool
covered(const struct vec *v, struct tally *t)
{
	const char *op = vec_str(v, "opcode");
	unsigned int i;

	for (i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		if (strcmp(op, opcodes[i].name) == 0)
			break;
	}
	if (i == sizeof(opcodes) / sizeof(opcodes[0])) {
		tally_add(t, "RC %s", op);
		return false;
	}
	if (opcodes[i].atomic && vec_array_len(v, "sge") != 1) {
		tally_add(t, "RC atomic with several pieces");
		return false;
	}
	return true;
}

static void
parse_bind(const struct vec *v, struct request *r)
{
	static const char *const mw_keys[] = {"type", "rkey",   "new_rkey", "mr_lkey",
					      "addr", "length", "access",   NULL};
	struct vec mw = vec_sub(v, "mw");

	vec_only(&mw, mw_keys);
	r->mw_type = (uint32_t)vec_num(&mw, "type");
	r->old_key = (uint32_t)vec_hex(&mw, "rkey");
	r->new_key = (uint32_t)vec_hex(&mw, "new_rkey");
	r->bind.lkey = (uint32_t)vec_hex(&mw, "mr_lkey");
	r->bind.addr = vec_hex(&mw, "addr");
	r->bind.len = vec_hex(&mw, "length");
	r->bind.access = (uint32_t)vec_hex(&mw, "access");
	r->bind.zero_based = (r->bind.access & 0x20) != 0; /* IBV_ACCESS_ZERO_BASED */
}

/*
 * Parses a datagram's destination: the attributes of its address handle, and the resolved
 * address.
 */
static void
parse_ah(const struct vec *v, struct request *r)
{
	static const char *const ah_keys[] = {"link",        "port_num",    "is_global",
					      "sl",          "static_rate", "dlid",
					      "dgid",        "sgid_index",  "src_path_bits",
					      "sgid_type",   "hop_limit",   "traffic_class",
					      "flow_label",  "dmac",        "udp_sport",
					      "remote_qkey", "remote_qpn",  NULL};
	struct vec ah = vec_sub(v, "ah");
	const bool eth = strcmp(vec_str(&ah, "link"), "eth") == 0;
	struct mlx5_av_eth resolved = {0};
	struct bb_path path = {0};

	vec_only(&ah, ah_keys);
	path.port = (uint8_t)vec_num(&ah, "port_num");
	path.is_global = vec_flag(&ah, "is_global");
	path.sl = (uint8_t)vec_num(&ah, "sl");
	path.static_rate = (uint8_t)vec_num(&ah, "static_rate");
	path.dlid = (uint16_t)vec_num(&ah, "dlid");
	path.src_path_bits = (uint8_t)vec_num(&ah, "src_path_bits");
	if (path.is_global) {
		assert_int_equal(vec_bytes(&ah, "dgid", path.dgid, sizeof(path.dgid)), 16);
		path.sgid_index = (uint8_t)vec_num(&ah, "sgid_index");
		path.hop_limit = (uint8_t)vec_num(&ah, "hop_limit");
		path.traffic_class = (uint8_t)vec_num(&ah, "traffic_class");
		path.flow_label = (uint32_t)vec_hex(&ah, "flow_label");
	}
	if (eth) {
		assert_int_equal(vec_bytes(&ah, "dmac", resolved.dmac, sizeof(resolved.dmac)), 6);
		resolved.udp_sport = (uint16_t)vec_num(&ah, "udp_sport");
	}
	mlx5_av_fill(&path, eth ? &resolved : NULL, &r->av);
	/* 0 is useless: Bluebell treats it as not given. */
	if (path.is_global && path.hop_limit == 0)
		r->av.hop_limit = 0;
	r->dest_qpn = (uint32_t)vec_hex(&ah, "remote_qpn");
	r->qkey = (uint32_t)vec_hex(&ah, "remote_qkey");
}

static void
parse(const struct vec *v, struct request *r)
{
	const char *op = vec_str(v, "opcode");
	unsigned int i = 0;

	memset(r, 0, sizeof(*r));
	while (strcmp(op, opcodes[i].name) != 0)
		i++;
	r->opcode = opcodes[i].opcode;
	r->raddr_seg = opcodes[i].raddr;
	r->atomic = opcodes[i].atomic;
	if (opcodes[i].imm != NULL)
		r->imm = bb_be32((uint32_t)vec_hex(v, opcodes[i].imm));
	r->umr = r->opcode == BB_WQE_UMR;
	if (vec_has(v, "mw") != (strcmp(op, "BIND_MW") == 0))
		vec_fail(v, "\"mw\" belongs to BIND_MW");
	if (vec_has(v, "mw"))
		parse_bind(v, r);
	r->ud = strcmp(vec_str(v, "qp_type"), "UD") == 0;
	if (vec_has(v, "ah") != r->ud)
		vec_fail(v, "\"ah\" belongs to UD");
	if (r->ud)
		parse_ah(v, r);
	if (r->raddr_seg) {
		r->raddr = vec_hex(v, "remote_addr");
		r->rkey = (uint32_t)vec_hex(v, "rkey");
	}
	if (r->atomic)
		r->compare_add = vec_hex(v, "compare_add");
	if (r->opcode == BB_WQE_ATOMIC_CS)
		r->swap = vec_hex(v, "swap");
	r->nsge = (uint32_t)vec_array_len(v, "sge");
	assert_true(r->nsge <= MAX_SGE);
	for (i = 0; i < r->nsge; i++) {
		struct vec s = vec_at(v, "sge", i);

		r->sge[i].addr = vec_hex(&s, "addr");
		r->sge[i].len = (uint32_t)vec_num(&s, "length");
		r->sge[i].lkey = (uint32_t)vec_hex(&s, "lkey");
	}
	r->is_inline = vec_lists(v, "flags", "INLINE");
	if (r->is_inline)
		r->inline_len = (uint32_t)vec_bytes(v, "inline_hex", r->data, sizeof(r->data));
	if (vec_lists(v, "flags", "SIGNALED") || vec_flag(v, "sq_sig_all"))
		r->flags |= BB_SEND_SIGNALED;
	if (vec_lists(v, "flags", "SOLICITED"))
		r->flags |= BB_SEND_SOLICITED;
	if (vec_lists(v, "flags", "FENCE"))
		r->flags |= BB_SEND_FENCE;
}

static int
build(struct bb_sq *sq, const struct request *r)
{
	if (r->atomic) {
		bool cs = r->opcode == BB_WQE_ATOMIC_CS;

		return bb_sq_post_atomic(sq, r->opcode, 1, &r->sge[0], r->raddr, r->rkey,
					 cs ? r->swap : r->compare_add, cs ? r->compare_add : 0,
					 r->flags);
	}
	if (r->umr && r->mw_type == 0)
		return bb_sq_post_local_inv(sq, 1, bb_be32(r->imm), r->flags);
	if (r->umr)
		return bb_sq_post_bind(sq, 1, r->mw_type == 2, r->old_key, r->new_key, &r->bind,
				       r->flags);
	if (r->ud && r->is_inline)
		return bb_sq_post_ud_inline(sq, r->opcode, 1, &r->av, r->dest_qpn, r->qkey, r->data,
					    r->inline_len, r->imm, r->flags);
	if (r->ud)
		return bb_sq_post_ud(sq, r->opcode, 1, &r->av, r->dest_qpn, r->qkey, r->sge,
				     r->nsge, r->imm, r->flags);
	if (r->is_inline)
		return bb_sq_post_inline(sq, r->opcode, r->raddr_seg, 1, r->data, r->inline_len,
					 r->raddr, r->rkey, r->imm, r->flags);
	return bb_sq_post_sgl(sq, r->opcode, r->raddr_seg, 1, r->sge, r->nsge, r->raddr, r->rkey,
			      r->imm, r->flags);
}

/* Puts a queue into the state of libmlx5's queue before the first request of the post. */
static void
open_post(struct post *p, const struct vec *v)
{
	struct bb_sq_conf conf = {
		.buf = p->ring,
		.wqes = p->wqes,
		.blocks = (uint32_t)vec_num(v, "sq_size_bb"),
		.qpn = (uint32_t)vec_hex(v, "qpn"),
		.dbrec = &p->dbrec,
		.reg = p->reg,
		.bf_size = BF_HALF,
		.bf_offset = &p->half,
		.db_mode = BB_DB_BLUEFLAME,
		.sig_every = 1,
		.owner = UINT32_MAX,
	};
	const char *type = vec_str(v, "qp_type");
	const char *mode = vec_has(v, "bell_mode") ? vec_str(v, "bell_mode") : "default";

	assert_true(conf.blocks <= MAX_BLOCKS);
	conf.depth = conf.blocks;
	conf.type = strcmp(type, "RC") == 0   ? BB_QPT_RC
		    : strcmp(type, "UC") == 0 ? BB_QPT_UC
					      : BB_QPT_UD;
	if (strcmp(mode, "nc") == 0) {
		conf.bf_size = 0;
		conf.db_mode = BB_DB_DOORBELL;
	} else if (strcmp(mode, "nobf") == 0) {
		conf.db_mode = BB_DB_DOORBELL;
	} else {
		assert_string_equal(mode, "default");
	}
	memset(p->ring, FILL, sizeof(p->ring));
	memset(p->reg, FILL, sizeof(p->reg));
	p->dbrec = UINT32_MAX;
	assert_int_equal(bb_sq_init(&p->sq, &conf), 0);
	bb_sq_enable(&p->sq, true);
	/* libmlx5 never adds a signal; its limits are not recorded. */
	p->sq.sig_seq = UINT32_MAX;
	p->sq.sig_every = UINT16_MAX;
	p->sq.max_sge = MAX_SGE;
	p->sq.max_inline = MAX_WQE;
	p->sq.slot_blocks = MAX_WQE / BB_WQE_BB;
	/* The previous request on this queue belonged to another post. */
	if (vec_flag(v, "after_umr"))
		bb_sq_fence_next(&p->sq);
	p->sq.pi = (uint16_t)vec_num(v, "wqe_index");
}

static void
check_wqe(struct post *p, const struct vec *v, const struct request *r)
{
	uint8_t *want = p->want, *mask = p->mask, got[MAX_WQE];
	size_t len = vec_bytes(v, "wqe_hex", want, sizeof(p->want)), i, at;
	size_t ring = ((size_t)p->sq.mask + 1) * BB_WQE_BB;

	if (len != vec_num(v, "ds") * BB_WQE_SEG)
		vec_fail(v, "%zu bytes are not ds segments", len);
	vec_unwritten(v, mask, len);
	at = (vec_num(v, "wqe_index") & p->sq.mask) * BB_WQE_BB;
	for (i = 0; i < len; i++)
		got[i] = p->ring[(at + i) % ring];
	/* The flag is set exactly if the WQE wraps at the ring's end. */
	if (vec_flag(v, "wrap") != (at + len > ring))
		vec_fail(v, "\"wrap\" is wrong");
	/* A known defect of libmlx5: a length of 2^31 bytes reads as an inline segment. */
	for (i = 0, at = (r->ud ? 4 : 1 + (size_t)r->raddr_seg) * BB_WQE_SEG;
	     i < r->nsge && !r->atomic; i++) {
		if (r->sge[i].len == 0)
			continue;
		if (r->sge[i].len == 0x80000000u) {
			if (want[at] != 0x80 || got[at] != 0)
				vec_fail(v, "piece of 2^31 bytes: 0x%02x, ours 0x%02x", want[at],
					 got[at]);
			want[at] = 0;
			tally_add(&p->differs, "piece of 2^31 bytes, written as 0");
		}
		at += BB_WQE_SEG;
	}
	vec_compare(v, "WQE", got, want, mask, len);
	if (p->sq.pi != vec_num(v, "next_index"))
		vec_fail(v, "next index is %u", p->sq.pi);
	/* Bytes that libmlx5 leaves stale are 0 in our WQE, except for inline padding. */
	for (i = 0; i < len; i++) {
		if (mask[i] != 0 && got[i] != 0 && !(r->is_inline && got[i] == FILL))
			vec_fail(v, "byte %zu, unwritten by libmlx5, is 0x%02x", i, got[i]);
	}
}

static void
check_doorbell(struct post *p, const struct vec *v, const struct request *r, bool alone)
{
	size_t ring = ((size_t)p->sq.mask + 1) * BB_WQE_BB, bytes = vec_num(v, "reg_bytes"), i;
	size_t half = vec_num(v, "reg_offset"), at = (size_t)(p->sq.last - p->ring);
	const uint8_t *reg = (const uint8_t *)p->reg;
	uint8_t sent[64], wqe[MAX_WQE];
	size_t shown = vec_bytes(v, "doorbell_hex", sent, sizeof(sent));
	size_t ds_bytes = vec_num(v, "ds") * BB_WQE_SEG;

	if (vec_has(v, "bell_mode") && strcmp(vec_str(v, "bell_mode"), "nobf") == 0 && alone &&
	    r->is_inline &&
	    (strcmp(vec_str(v, "api"), "ibv_wr") == 0 || vec_array_len(v, "inline_parts") > 0))
		p->sq.ring = bb_bf_ring(BB_BF_COPY_PLAIN); /* only for inline data */
	if (p->sq.bf_size == 0)
		assert_int_equal(half, 0);
	/* libmlx5 alternates the halves without copies, too. */
	if (p->sq.ring != NULL)
		*p->sq.bf_offset = (uint16_t)half;
	else
		p->sq.reg = (uint8_t *)p->reg + half;

	bb_sq_ring(&p->sq);
	if (bb_be32(p->dbrec) != vec_hex(v, "dbrec_after"))
		vec_fail(v, "doorbell record is 0x%x", bb_be32(p->dbrec));
	if (shown != (bytes < 64 ? bytes : 64))
		vec_fail(v, "%zu register bytes shown", shown);
	if (*p->sq.bf_offset != (p->sq.ring != NULL ? half ^ p->sq.bf_size : 0))
		vec_fail(v, "next half is %u", *p->sq.bf_offset);
	/* The recorded number of bytes, in the recorded half, equals the ring's. */
	for (i = 0; i < sizeof(p->reg); i++) {
		uint8_t byte =
			i >= half && i < half + bytes ? p->ring[(at + i - half) % ring] : FILL;

		if (reg[i] != byte)
			vec_fail(v, "register byte %zu is 0x%02x, not 0x%02x", i, reg[i], byte);
	}
	/* libmlx5 copied the WQE that it had written; our copy must be the same. */
	if (vec_bytes(v, "wqe_hex", wqe, sizeof(wqe)) < shown)
		shown = ds_bytes;
	vec_compare(v, "recorded register", sent, wqe, NULL, shown);
	vec_compare(v, "register", reg + half, p->want, p->mask, shown);
}

static void
one(const struct vec *v, void *arg)
{
	struct post *p = arg;
	struct request r;
	unsigned int pos = 0, count = 1;

	vec_only(v, known);
	if (vec_has(v, "list")) {
		json_t *list = json_object_get(v->obj, "list");

		pos = (unsigned int)json_integer_value(json_array_get(list, 0));
		count = (unsigned int)json_integer_value(json_array_get(list, 1));
		if (json_array_size(list) != 2 || count < 2 || pos >= count)
			vec_fail(v, "\"list\" is not [position, count]");
	}
	if (pos != p->next)
		vec_fail(v, "position %u of a list, not %u", pos, p->next);
	p->next = pos + 1 == count ? 0 : pos + 1;
	if (pos == 0)
		open_post(p, v);
	if (vec_num(v, "wqe_index") != p->sq.pi)
		vec_fail(v, "index %u does not follow", p->sq.pi);

	if (!covered(v, &p->open)) {
		/* Skips it: other requests of its list are covered. */
		p->sq.last = p->ring + (size_t)(p->sq.pi & p->sq.mask) * BB_WQE_BB;
		p->sq.pi = (uint16_t)vec_num(v, "next_index");
		p->sq.seq++;
		p->sq.fence = 0;
		p->sq.limit = p->sq.depth;
		return;
	}
	parse(v, &r);
	if (vec_flag(v, "after_umr") != (p->sq.fence != 0))
		vec_fail(v, "the queue says that it is %sbehind a UMR", p->sq.fence ? "" : "not ");
	if (r.atomic && r.sge[0].len != 8) {
		if (build(&p->sq, &r) != -EINVAL)
			vec_fail(v, "an atomic of %u bytes is not refused", r.sge[0].len);
		tally_add(&p->differs, "atomic with a piece that is not 8 bytes, refused");
		return;
	}
	if (build(&p->sq, &r) != 0)
		vec_fail(v, "not posted");
	check_wqe(p, v, &r);
	if (vec_flag(v, "after_umr"))
		tally_add(&p->done, "requests behind a UMR");
	tally_add(&p->done, "%s %s", vec_str(v, "qp_type"), vec_str(v, "opcode"));
	if (vec_has(v, "reg_bytes")) {
		check_doorbell(p, v, &r, count == 1);
		tally_add(&p->done, "doorbells of %u bytes", (unsigned int)vec_num(v, "reg_bytes"));
	}
}

TEST(test_every_recorded_send_wqe_is_compared_or_counted)
{
	static struct post p;
	static const char *const types[] = {"RC", "UC", "UD"};
	unsigned int i, k, n = 0;

	golden_each("send_wqe.jsonl", VECTORS, one, &p);
	assert_int_equal(p.next, 0);
	tally_print(&p.done, "compared");
	tally_print(&p.differs, "different on purpose");
	tally_print(&p.open, "not covered");
	/* Every vector is counted in exactly one kind. */
	for (i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		for (k = 0; k < 3; k++) {
			char name[64];

			snprintf(name, sizeof(name), "%s %s", types[k], opcodes[i].name);
			/* RC has all of them. */
			assert_true(k != 0 || tally_get(&p.done, name) > 0);
			n += tally_get(&p.done, name);
		}
	}
	n += tally_get(&p.differs, "atomic with a piece that is not 8 bytes, refused");
	for (i = 0; i < p.open.rows; i++)
		n += p.open.row[i].n;
	assert_int_equal(n, VECTORS);
}

TEST_MAIN(0)
