/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Describes a device byte for byte as JSON. The report has the capabilities, and the command
 * mailboxes of one connected pair of queue pairs. For each kind of request it has the WQE and
 * CQEs. devtools/hw-check runs it on a card and on the software device and reports the
 * differences.
 */
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include "bb_driver.h"
#include "bluebell.h"
#include "record.h"
#include "replay.h"

#define BUF    8192u
#define REMOTE 4096u /* offset of the target's part of the buffer */
#define WAIT_S 5

struct end {
	struct bb_cq *cq;
	struct bb_qp *qp;
};

struct rig {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_mr *mr;
	uint8_t *buf;
	struct end a, b;
};

/* One kind of request and its post on @a. */
struct op {
	const char *name;
	int (*post)(struct rig *r);
	bool recv;   /* consumes a receive of b */
	bool atomic; /* needs atomics */
};

static struct bb_sge
local(const struct rig *r, uint32_t off, uint32_t len)
{
	return (struct bb_sge){(uintptr_t)r->buf + off, len, r->mr->lkey};
}

static uint64_t
remote(const struct rig *r)
{
	return (uintptr_t)r->buf + REMOTE;
}

#define S BB_SEND_SIGNALED

#define OP(name_, expr_)                                                                           \
	static int post_##name_(struct rig *r)                                                     \
	{                                                                                          \
		struct bb_sge sge[2] = {local(r, 0, 48), local(r, 256, 16)};                       \
		struct bb_qp *qp = r->a.qp;                                                        \
                                                                                                   \
		(void)sge;                                                                         \
		return expr_;                                                                      \
	}

OP(nop, bb_post_nop(qp, 1, S))
OP(write, bb_post_write(qp, 1, sge, 1, remote(r), r->mr->rkey, S))
OP(write_2_sge, bb_post_write(qp, 1, sge, 2, remote(r), r->mr->rkey, S))
OP(write_empty, bb_post_write(qp, 1, sge, 0, remote(r), r->mr->rkey, S))
OP(write_inline, bb_post_write_inline(qp, 1, r->buf, 20, remote(r), r->mr->rkey, S))
OP(write_imm, bb_post_write_imm(qp, 1, sge, 1, remote(r), r->mr->rkey, 0x11223344, S))
OP(send, bb_post_send(qp, 1, sge, 1, S))
OP(send_solicited, bb_post_send(qp, 1, sge, 1, S | BB_SEND_SOLICITED))
OP(send_imm, bb_post_send_imm(qp, 1, sge, 1, 0x11223344, S))
OP(send_inline, bb_post_send_inline(qp, 1, r->buf, 20, S))
OP(read, bb_post_read(qp, 1, sge, 1, remote(r), r->mr->rkey, S))
OP(read_fence, bb_post_read(qp, 1, sge, 1, remote(r), r->mr->rkey, S | BB_SEND_FENCE))
OP(wrong_rkey, bb_post_write(qp, 1, sge, 1, remote(r), r->mr->rkey ^ 0xffff00, S))
OP(wrong_lkey, (sge[0].lkey ^= 0xffff00, bb_post_write(qp, 1, sge, 1, remote(r), r->mr->rkey, S)))

static int
post_cmp_swap(struct rig *r)
{
	struct bb_sge sge = local(r, 0, 8);

	return bb_post_cmp_swap(r->a.qp, 1, &sge, remote(r), r->mr->rkey, 5, 6, S);
}

static int
post_fetch_add(struct rig *r)
{
	struct bb_sge sge = local(r, 0, 8);

	return bb_post_fetch_add(r->a.qp, 1, &sge, remote(r), r->mr->rkey, 7, S);
}

static const struct op ops[] = {
	{"nop", post_nop, false, false},
	{"write", post_write, false, false},
	{"write_2_sge", post_write_2_sge, false, false},
	{"write_empty", post_write_empty, false, false},
	{"write_inline", post_write_inline, false, false},
	{"write_imm", post_write_imm, true, false},
	{"send", post_send, true, false},
	{"send_solicited", post_send_solicited, true, false},
	{"send_imm", post_send_imm, true, false},
	{"send_inline", post_send_inline, true, false},
	{"read", post_read, false, false},
	{"read_fence", post_read_fence, false, false},
	{"cmp_swap", post_cmp_swap, false, true},
	{"fetch_add", post_fetch_add, false, true},
	{"wrong_rkey", post_wrong_rkey, false, false},
	{"wrong_lkey", post_wrong_lkey, false, false},
};

static int
end_create(struct rig *r, struct end *e)
{
	struct bb_qp_init_attr init;
	struct bb_cq_attr attr;
	int ret;

	memset(e, 0, sizeof(*e));
	bb_cq_attr_init(&attr);
	attr.depth = 64;
	ret = bb_cq_create(r->dev, &attr, &e->cq);
	if (ret != 0)
		return ret;
	bb_qp_init_attr_init(&init);
	init.send_cq = e->cq;
	init.recv_cq = e->cq;
	init.sq_depth = 16;
	init.rq_depth = 16;
	init.max_sge = 2;
	return bb_qp_create(r->pd, &init, &e->qp);
}

static void
end_destroy(struct end *e)
{
	if (e->qp != NULL)
		(void)bb_qp_destroy(e->qp);
	if (e->cq != NULL)
		(void)bb_cq_destroy(e->cq);
}

static int
pair_open(struct rig *r)
{
	struct bb_qp_addr a, b;
	struct bb_qp_attr attr;
	int ret;

	ret = end_create(r, &r->a);
	if (ret == 0)
		ret = end_create(r, &r->b);
	if (ret != 0)
		return ret;
	bb_qp_attr_init(&attr);
	attr.access = BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ;
	if (r->dev->attr.atomics)
		attr.access |= BB_ACCESS_REMOTE_ATOMIC;
	ret = bb_qp_addr(r->a.qp, 1, attr.path.sgid_index, &a);
	if (ret == 0)
		ret = bb_qp_addr(r->b.qp, 1, attr.path.sgid_index, &b);
	/* Each report uses the same PSNs. */
	a.psn = 0x100;
	b.psn = 0x200;
	if (ret == 0)
		ret = bb_qp_connect(r->a.qp, &a, &b, &attr);
	if (ret == 0)
		ret = bb_qp_connect(r->b.qp, &b, &a, &attr);
	return ret;
}

static void
pair_close(struct rig *r)
{
	end_destroy(&r->a);
	end_destroy(&r->b);
	memset(&r->a, 0, sizeof(r->a));
	memset(&r->b, 0, sizeof(r->b));
}

/*
 * Takes the next CQE of @cq, raw under "cqe" and as text, with the status that the library
 * derives.
 */
static json_t *
take_cqe(struct rig *r, struct bb_cq *cq)
{
	uint64_t end = rte_get_timer_cycles() + WAIT_S * rte_get_timer_hz();
	const struct bb_cqe *cqe;
	struct bb_cqe copy;
	char text[512] = "";
	struct bb_wc wc;

	while ((cqe = bb_cqring_peek(&cq->ring)) == NULL) {
		if (rte_get_timer_cycles() > end)
			return json_string("none in time");
		bb_dev_progress(r->dev);
	}
	memcpy(&copy, cqe, sizeof(copy));
	if (bb_cq_poll(cq, &wc, 1) != 1)
		return json_string("not polled");
	bb_cqe_dump(text, sizeof(text), &copy);
	return json_pack("{s:o, s:s, s:s}", "cqe", record_hex(&copy, sizeof(copy)), "text", text,
			 "status", bb_wc_status_name(wc.status));
}

static json_t *
run_op(struct rig *r, const struct op *op)
{
	struct bb_sge sge = local(r, REMOTE, 64);
	char text[1024] = "";
	json_t *out = json_object();
	const struct bb_wqe_ctrl *ctrl;
	int ret = pair_open(r);

	json_object_set_new(out, "name", json_string(op->name));
	if (ret == 0 && op->recv) {
		ret = bb_post_recv(r->b.qp, 2, &sge, 1) == 0 ? 0 : -EIO;
		bb_qp_ring_recv(r->b.qp);
	}
	memset(r->buf, 0x5a, BUF);
	if (ret == 0 && op->post(r) != 0)
		ret = -EIO;
	if (ret != 0) {
		json_object_set_new(out, "error", json_string(rte_strerror(-ret)));
		goto close;
	}
	bb_wqe_dump(text, sizeof(text), r->a.qp->sq.buf, r->a.qp->sq.mask + 1, 0, false);
	ctrl = (const struct bb_wqe_ctrl *)(const void *)r->a.qp->sq.buf;
	json_object_set_new(out, "wqe", record_hex(ctrl, (bb_be32(ctrl->qpn_ds) & 0x3f) * 16));
	json_object_set_new(out, "text", json_string(text));
	bb_qp_ring(r->a.qp);
	json_object_set_new(out, "sender", take_cqe(r, r->a.cq));
	if (op->recv)
		json_object_set_new(out, "receiver", take_cqe(r, r->b.cq));
	json_object_set_new(out, "qpns", json_pack("[i, i]", r->a.qp->qpn, r->b.qp->qpn));
close:
	pair_close(r);
	return out;
}

#define NUM(field_) json_object_set_new(o, #field_, json_integer((json_int_t)a->field_))

static json_t *
attr_json(const struct bb_dev_attr *a)
{
	json_t *o = json_object();

	json_object_set_new(o, "driver", json_string(a->driver));
	/* JSON's integers are signed. */
	json_object_set_new(o, "max_mr_size",
			    json_integer((json_int_t)RTE_MIN(a->max_mr_size, (uint64_t)INT64_MAX)));
	NUM(ports), NUM(max_qp), NUM(max_cq), NUM(max_cqe), NUM(max_qp_wr), NUM(max_sge);
	NUM(max_recv_sge), NUM(max_inline), NUM(max_mr), NUM(max_msg_size);
	NUM(max_rd_atomic), NUM(max_dest_rd_atomic), NUM(bf_size), NUM(max_dm_size);
	NUM(max_dm_log_align), NUM(max_umem), NUM(dmabuf), NUM(max_srq), NUM(max_srq_wr);
	NUM(max_srq_sge), NUM(atomics), NUM(odp), NUM(odp_write), NUM(odp_read), NUM(odp_atomic);
	NUM(odp_implicit), NUM(relaxed_ordering), NUM(memory_windows), NUM(memory_window_atomics);
	NUM(max_mkey_pieces), NUM(mkey_atomic_align);
	NUM(mkey_layout), NUM(mkey_interleaved), NUM(counters), NUM(software);
	NUM(target_progress), NUM(cq_resize), NUM(cq_moderation), NUM(cqe_compression);
	NUM(clock_hz), NUM(masked_atomics), NUM(masked_atomics_be);
	return o;
}

static int
fail(const char *what, int ret)
{
	fprintf(stderr, "hw_report: %s: %s\n", what, rte_strerror(-ret));
	return 1;
}

/* Runs the driver on a recording of another device. */
static int
replay(struct bb_dev *dev, const json_t *recorded, json_t *root)
{
	struct bb_dev_attr attr;
	int ret = replay_attr(dev, recorded, &attr);

	if (ret == 0)
		json_object_set_new(root, "replayed",
				    json_pack("{s:o, s:o}", "attr", attr_json(&attr), "cqes",
					      replay_cqes(recorded)));
	return ret;
}

static int
report(const char *spec, const json_t *recorded, json_t *root)
{
	uint32_t access = BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ;
	json_t *list = json_array(), *commands;
	struct rig r = {.dev = NULL};
	size_t i;
	int ret = bb_dev_open(spec, &r.dev);

	if (ret != 0)
		return fail(spec, ret);
	json_object_set_new(root, "device", json_string(spec));
	json_object_set_new(root, "attr", attr_json(&r.dev->attr));
	json_object_set_new(root, "ops", list);
	commands = record_start(r.dev);
	if (commands == NULL) {
		fprintf(stderr, "hw_report: %s: bytes are of the mlx5 driver only, this is %s\n",
			spec, r.dev->attr.driver);
		return bb_dev_close(r.dev) != 0;
	}
	json_object_set_new(root, "commands", commands);
	if (recorded != NULL)
		ret = replay(r.dev, recorded, root);
	if (ret != 0)
		return fail("the recording", ret);
	ret = bb_pd_alloc(r.dev, &r.pd);
	if (ret != 0)
		return fail("PD", ret);
	r.buf = rte_zmalloc("hw_report", BUF, 4096);
	if (r.dev->attr.atomics)
		access |= BB_ACCESS_REMOTE_ATOMIC;
	ret = r.buf == NULL ? -ENOMEM : bb_mr_reg(r.pd, r.buf, BUF, access, &r.mr);
	if (ret != 0)
		return fail("memory", ret);
	json_object_set_new(root, "values",
			    json_pack("{s:I, s:I, s:I}", "buffer", (json_int_t)(uintptr_t)r.buf,
				      "lkey", (json_int_t)r.mr->lkey, "rkey",
				      (json_int_t)r.mr->rkey));
	ret = pair_open(&r);
	if (ret != 0)
		return fail("a pair of queue pairs", ret);
	pair_close(&r);
	record_stop();
	for (i = 0; i < RTE_DIM(ops); i++)
		if (r.dev->attr.atomics || !ops[i].atomic)
			json_array_append_new(list, run_op(&r, &ops[i]));
	ret = bb_mr_dereg(r.mr);
	if (ret == 0)
		ret = bb_pd_free(r.pd);
	if (ret == 0)
		ret = bb_dev_close(r.dev);
	rte_free(r.buf);
	return ret != 0 ? fail("closing", ret) : 0;
}

int
main(int argc, char **argv)
{
	json_t *root = json_object(), *recorded = NULL;
	int n = rte_eal_init(argc, argv), rc;

	if (n < 0)
		return fail("EAL", -rte_errno);
	if (argc - n == 4)
		recorded = json_load_file(argv[n + 3], 0, NULL);
	if (argc - n != 3 && recorded == NULL) {
		fprintf(stderr, "usage: hw_report [EAL options] -- DEVICE FILE [RECORDED]\n"
				"See devtools/hw-check and hw-golden, which run it.\n");
		return 2;
	}
	rc = report(argv[n + 1], recorded, root);
	if (rc == 0 && json_dump_file(root, argv[n + 2], JSON_INDENT(1) | JSON_SORT_KEYS) != 0) {
		fprintf(stderr, "hw_report: cannot write %s\n", argv[n + 2]);
		rc = 1;
	}
	json_decref(root);
	json_decref(recorded);
	rte_eal_cleanup();
	return rc;
}
