/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Functions that bluebell.py calls with ctypes. ctypes does not read the headers, so bluebell.py
 * repeats the names and arguments of these functions. They have arguments of basic types and only
 * the two structs below. bluebell.py calls pybb_version() to detect a library of another version.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include <bluebell.h>
#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>

/* bluebell.py repeats these values. The text of an assertion names the place in bluebell.py. */
static_assert(BB_ACCESS_LOCAL_WRITE == 1 && BB_ACCESS_REMOTE_WRITE == 2 &&
		      BB_ACCESS_REMOTE_READ == 4 && BB_ACCESS_REMOTE_ATOMIC == 8,
	      "class Access");
static_assert(BB_QPT_RC == 0 && BB_QPT_UC == 1, "class QpType");
static_assert(BB_WR_RDMA_WRITE == 0 && BB_WR_RDMA_WRITE_WITH_IMM == 1 && BB_WR_SEND == 2 &&
		      BB_WR_SEND_WITH_IMM == 3 && BB_WR_RDMA_READ == 4 &&
		      BB_WR_ATOMIC_CMP_AND_SWP == 5 && BB_WR_ATOMIC_FETCH_AND_ADD == 6,
	      "class Op");
static_assert(BB_SEND_FENCE == 1 << 7 && BB_SEND_SOLICITED == 1 << 1 &&
		      BB_SEND_SIGNALED == 1 << 3 && BB_SEND_INLINE == 1 << 8,
	      "class Flags");
static_assert(BB_WC_SEND == 0 && BB_WC_RDMA_WRITE == 1 && BB_WC_RDMA_READ == 2 &&
		      BB_WC_CMP_SWAP == 3 && BB_WC_FETCH_ADD == 4 && BB_WC_NOP == 5 &&
		      BB_WC_RECV == 6 && BB_WC_RECV_RDMA_IMM == 7,
	      "class WcOp");
static_assert(BB_WC_SUCCESS == 0 && BB_WC_REM_ACCESS_ERR == 9 && BB_WC_GENERAL_ERR == 14,
	      "class Status");
static_assert(BB_DEV_NAME_MAX == 64 && BB_QP_ADDR_PACKED == 28 && BB_WC_WITH_IMM == 1,
	      "devices(), ADDR_LEN, poll()");

#define EXPORT __attribute__((visibility("default")))

/* Fields of a device that Python reads by name. */
#define FIELD(name)                                                                                \
	{                                                                                          \
#name, offsetof(struct bb_dev_attr, name), sizeof(((struct bb_dev_attr *)0)->name) \
	}
static const struct {
	const char *name;
	size_t offset, size;
} fields[] = {FIELD(ports),        FIELD(max_qp),         FIELD(max_cq),
	      FIELD(max_cqe),      FIELD(max_qp_wr),      FIELD(max_sge),
	      FIELD(max_recv_sge), FIELD(max_inline),     FIELD(max_mr_size),
	      FIELD(max_mr),       FIELD(max_msg_size),   FIELD(max_rd_atomic),
	      FIELD(max_dm_size),  FIELD(max_srq),        FIELD(atomics),
	      FIELD(odp),          FIELD(memory_windows), FIELD(masked_atomics),
	      FIELD(software),     FIELD(iwarp),          FIELD(target_progress)};

/* A completion; bluebell.py has the same fields. */
struct pybb_wc {
	uint64_t wr_id;
	uint32_t qpn, byte_len, imm, src_qp;
	uint8_t status, opcode, flags, vendor_err;
};

/* A send request; bluebell.py has the same fields. */
struct pybb_wr {
	uint64_t wr_id, addr, raddr, compare_add, swap;
	uint32_t opcode, flags, len, lkey, rkey, imm;
};

EXPORT const char *
pybb_version(void)
{
	return bb_version();
}

EXPORT int
pybb_eal_init(int argc, char **argv)
{
	return rte_eal_init(argc, argv) < 0 ? -rte_errno : 0;
}

EXPORT int
pybb_dev_list(char (*names)[BB_DEV_NAME_MAX], unsigned int n)
{
	struct bb_dev_info info[64];
	int found = bb_dev_list(info, RTE_DIM(info));

	for (int i = 0; i < found && i < (int)RTE_MIN(n, RTE_DIM(info)); i++)
		memcpy(names[i], info[i].name, BB_DEV_NAME_MAX);
	return found;
}

/* Returns 1 and the name and value of field @index, 0 after the last field, or a negative errno. */
EXPORT int
pybb_dev_field(struct bb_dev *dev, unsigned int index, const char **name, uint64_t *value)
{
	struct bb_dev_attr attr;
	int ret;

	if (index >= RTE_DIM(fields))
		return 0;
	ret = bb_dev_query(dev, &attr);
	if (ret != 0)
		return ret;
	*name = fields[index].name;
	*value = 0;
	memcpy(value, (char *)&attr + fields[index].offset, fields[index].size);
	return 1;
}

EXPORT int
pybb_port(struct bb_dev *dev, uint32_t port, uint32_t *active, uint32_t *mtu, uint32_t *gids)
{
	struct bb_port_attr attr;
	int ret = bb_port_query(dev, port, &attr);

	if (ret != 0)
		return ret;
	*active = attr.state == BB_PORT_ACTIVE;
	*mtu = attr.active_mtu;
	*gids = attr.gids;
	return 0;
}

EXPORT int
pybb_mr_keys(const struct bb_mr *mr, uint64_t *addr, uint32_t *lkey, uint32_t *rkey)
{
	*addr = mr->iova;
	*lkey = mr->lkey;
	*rkey = mr->rkey;
	return 0;
}

EXPORT int
pybb_cq_create(struct bb_dev *dev, uint32_t depth, struct bb_cq **cq)
{
	struct bb_cq_attr attr;

	bb_cq_attr_init(&attr);
	attr.depth = depth;
	return bb_cq_create(dev, &attr, cq);
}

EXPORT int
pybb_qp_create(struct bb_pd *pd, uint32_t type, struct bb_cq *send_cq, struct bb_cq *recv_cq,
	       uint32_t sq_depth, uint32_t rq_depth, uint32_t max_inline, struct bb_qp **qp)
{
	struct bb_qp_init_attr attr;

	bb_qp_init_attr_init(&attr);
	attr.type = (enum bb_qp_type)type;
	attr.send_cq = send_cq;
	attr.recv_cq = recv_cq;
	attr.sq_depth = sq_depth;
	attr.rq_depth = rq_depth;
	attr.max_inline = max_inline;
	return bb_qp_create(pd, &attr, qp);
}

EXPORT int
pybb_gid(struct bb_dev *dev, uint32_t port)
{
	uint8_t index;
	int ret = bb_gid_choose(dev, port, NULL, &index);

	return ret != 0 ? ret : index;
}

EXPORT int
pybb_qp_addr(struct bb_qp *qp, uint8_t port, uint8_t gid, uint8_t *out, uint32_t len)
{
	struct bb_qp_addr addr;
	int ret = bb_qp_addr(qp, port, gid, &addr);

	return ret != 0 ? ret : bb_qp_addr_pack(&addr, out, len);
}

/*
 * @local is the packed address that was sent to the peer. It cannot be computed again, because each
 * call of bb_qp_addr() chooses a new PSN.
 */
EXPORT int
pybb_qp_connect(struct bb_qp *qp, uint8_t port, uint8_t gid, uint32_t access, const uint8_t *local,
		const uint8_t *peer, uint32_t len)
{
	struct bb_qp_addr own, remote;
	struct bb_qp_attr attr;
	int ret;

	bb_qp_attr_init(&attr);
	attr.path.port = port;
	attr.path.sgid_index = gid;
	attr.access = access;
	ret = bb_qp_addr_unpack(local, BB_QP_ADDR_PACKED, &own);
	if (ret == 0)
		ret = bb_qp_addr_unpack(peer, len, &remote);
	return ret != 0 ? ret : bb_qp_connect(qp, &own, &remote, &attr);
}

EXPORT int
pybb_post(struct bb_qp *qp, const struct pybb_wr *r)
{
	struct bb_sge sge = {.addr = r->addr, .len = r->len, .lkey = r->lkey};
	struct bb_send_wr wr = {.wr_id = r->wr_id,
				.opcode = (enum bb_wr_opcode)r->opcode,
				.flags = r->flags,
				.sge = &sge,
				.nsge = 1,
				.imm_or_inv = r->imm};
	int err;

	if (wr.opcode == BB_WR_ATOMIC_CMP_AND_SWP || wr.opcode == BB_WR_ATOMIC_FETCH_AND_ADD) {
		wr.atomic.raddr = r->raddr;
		wr.atomic.rkey = r->rkey;
		wr.atomic.compare_add = r->compare_add;
		wr.atomic.swap = r->swap;
	} else {
		wr.rdma.raddr = r->raddr;
		wr.rdma.rkey = r->rkey;
	}
	return bb_qp_post_list(qp, &wr, 1, &err) == 1 ? 0 : err != 0 ? err : -EAGAIN;
}

EXPORT int
pybb_post_recv(struct bb_qp *qp, uint64_t wr_id, uint64_t addr, uint32_t len, uint32_t lkey)
{
	struct bb_sge sge = {.addr = addr, .len = len, .lkey = lkey};

	return bb_post_recv(qp, wr_id, &sge, 1);
}

EXPORT void
pybb_ring(struct bb_qp *qp)
{
	bb_qp_ring_recv(qp);
	bb_qp_ring(qp);
}

EXPORT uint32_t
pybb_qpn(const struct bb_qp *qp)
{
	return qp->qpn;
}

EXPORT int
pybb_poll(struct bb_cq *cq, struct pybb_wc *out, uint32_t n)
{
	struct bb_wc wc[64] = {{0}}; /* a poll writes only the fields that are valid */

	n = bb_cq_poll(cq, wc, RTE_MIN(n, (uint32_t)RTE_DIM(wc)));
	for (uint32_t i = 0; i < n; i++)
		out[i] = (struct pybb_wc){.wr_id = wc[i].wr_id,
					  .qpn = wc[i].qp->qpn,
					  .byte_len = wc[i].byte_len,
					  .imm = wc[i].imm,
					  .src_qp = wc[i].src_qp,
					  .status = wc[i].status,
					  .opcode = wc[i].opcode,
					  .flags = wc[i].flags,
					  .vendor_err = wc[i].vendor_err};
	return (int)n;
}

EXPORT const char *
pybb_cause(uint8_t status, uint8_t vendor_err)
{
	return bb_wc_status_cause((enum bb_wc_status)status, vendor_err);
}
