/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Commands of an I/O queue, and the namespaces that need no file. */
#include <errno.h>
#include <string.h>

#include "nvmf_priv.h"

/* Ends a command with the status for the errno that a namespace has returned. */
static void
finish(struct nvmf_req *r, int res)
{
	uint8_t op = r->cmd[AT_OPCODE];

	switch (res) {
	case 0:
		nvmf_end(r, SC_OK, 0);
		break;
	case -ENOSPC:
	case -EDQUOT:
	case -EFBIG:
		nvmf_refuse(r, SC_CAPACITY);
		break;
	case -EOPNOTSUPP:
		nvmf_refuse(r, SC_INVALID_OPCODE);
		break;
	default:
		nvmf_end(r, op == NVM_READ || op == NVM_COMPARE ? SC_READ_ERROR : SC_WRITE_FAULT,
			 0);
		break;
	}
}

/* Returns whether the namespace has @n blocks from block @first on. */
static bool
in_range(const struct nvmf_ns *ns, uint64_t first, uint64_t n)
{
	return n <= ns->blocks && first <= ns->blocks - n;
}

static uint64_t
bytes_at(const struct nvmf_req *r)
{
	return get64(r->cmd + AT_SLBA) << r->ns->shift;
}

static uint64_t
blocks_of(const struct nvmf_req *r)
{
	return (uint64_t)get16(r->cmd + AT_NLB) + 1;
}

static bool
fua_of(const struct nvmf_req *r)
{
	return (get32(r->cmd + AT_CDW12) & CDW12_FUA) != 0;
}

/* ---- Read, Write, Write Zeroes */

static void
read_done(struct nvmf_req *r, int res)
{
	if (res == 0) {
		r->push = r->len;
		COUNT(r->ns->reads, 1);
		COUNT(r->ns->bytes_read, r->len);
		r->q->stats.bytes_read += r->len;
	}
	finish(r, res);
}

static void
write_done(struct nvmf_req *r, int res)
{
	if (res == 0) {
		COUNT(r->ns->writes, 1);
		COUNT(r->ns->bytes_written, r->len);
		r->q->stats.bytes_written += r->len;
	}
	finish(r, res);
}

static void
write_data(struct nvmf_req *r)
{
	struct nvmf_io io = {
		.op = NVMF_IO_WRITE, .fua = fua_of(r), .offset = bytes_at(r), .len = r->len};

	/* Data in a capsule may begin at any byte; O_DIRECT needs the alignment of a block. */
	if (r->in_capsule && ((uintptr_t)r->data & ((1u << r->ns->shift) - 1)) != 0) {
		memcpy(r->mem, r->data, r->len);
		r->data = r->mem;
	}
	io.buf = (void *)(uintptr_t)r->data;
	nvmf_start(r, &io, write_done);
}

static void
read_data(struct nvmf_req *r, int res)
{
	struct nvmf_io io = {
		.op = NVMF_IO_READ, .buf = r->mem, .offset = bytes_at(r), .len = r->len};

	if (res != 0)
		finish(r, res);
	else
		nvmf_start(r, &io, read_done);
}

static void
start_read(struct nvmf_req *r)
{
	const struct nvmf_io flush = {.op = NVMF_IO_FLUSH};

	/* FUA: the data that is read must be on the medium, so flush first. */
	if (fua_of(r))
		nvmf_start(r, &flush, read_data);
	else
		read_data(r, 0);
}

static void
start_zeroes(struct nvmf_req *r)
{
	struct nvmf_io io = {.op = NVMF_IO_ZERO,
			     .fua = fua_of(r),
			     .offset = bytes_at(r),
			     .len = blocks_of(r) << r->ns->shift};

	nvmf_start(r, &io, write_done);
}

/* ---- Compare, in parts: half of the request's memory holds data of the host, half the namespace's
 */

static void compare_data(struct nvmf_req *r);

static void
compare_next(struct nvmf_req *r)
{
	uint32_t half = r->q->t->attr.max_io / 2, left = r->len - r->step;

	r->part = left < half ? left : half;
	nvmf_pull(r, r->part, compare_data);
}

static void
compare_done(struct nvmf_req *r, int res)
{
	const uint8_t *host = r->in_capsule ? r->data + r->step : r->mem;
	const uint8_t *own = r->mem + r->q->t->attr.max_io / 2;

	if (res != 0) {
		finish(r, res);
		return;
	}
	if (memcmp(host, own, r->part) != 0) {
		nvmf_refuse(r, SC_COMPARE_FAILED);
		return;
	}
	r->step += r->part;
	if (r->step == r->len)
		nvmf_end(r, SC_OK, 0);
	else
		compare_next(r);
}

static void
compare_data(struct nvmf_req *r)
{
	struct nvmf_io io = {.op = NVMF_IO_READ,
			     .buf = r->mem + r->q->t->attr.max_io / 2,
			     .offset = bytes_at(r) + r->step,
			     .len = r->part};

	nvmf_start(r, &io, compare_done);
}

/* ---- Dataset Management: one request for each range that is to be deallocated */

static void dsm_done(struct nvmf_req *r, int res);

static void
dsm_next(struct nvmf_req *r)
{
	const uint8_t *range = r->data + r->step * DSM_RANGE;
	struct nvmf_io io = {.op = NVMF_IO_DISCARD,
			     .offset = get64(range + 8) << r->ns->shift,
			     .len = (uint64_t)get32(range + 4) << r->ns->shift};

	nvmf_start(r, &io, dsm_done);
}

static void
dsm_done(struct nvmf_req *r, int res)
{
	/* Deallocation is a hint, so it is no error if the file system does not support it. */
	if (res != 0 && res != -EOPNOTSUPP)
		finish(r, res);
	else if (++r->step > r->cmd[AT_CDW10])
		nvmf_end(r, SC_OK, 0);
	else
		dsm_next(r);
}

static void
dsm_data(struct nvmf_req *r)
{
	uint32_t i, n = (uint32_t)r->cmd[AT_CDW10] + 1;

	/* All ranges are checked before the first one is changed. */
	for (i = 0; i < n; i++) {
		const uint8_t *range = r->data + i * DSM_RANGE;

		if (!in_range(r->ns, get64(range + 8), get32(range + 4))) {
			nvmf_refuse(r, SC_LBA_RANGE);
			return;
		}
	}
	if ((get32(r->cmd + AT_CDW11) & DSM_AD) == 0)
		nvmf_end(r, SC_OK, 0);
	else
		dsm_next(r);
}

static void
start_dsm(struct nvmf_req *r)
{
	uint32_t want = ((uint32_t)r->cmd[AT_CDW10] + 1) * DSM_RANGE;

	/* Linux always sends a buffer for all 256 ranges (drivers/nvme/host/core.c). */
	if (r->len < want || r->len > DSM_RANGES * DSM_RANGE)
		nvmf_refuse(r, SC_SGL_LENGTH);
	else
		nvmf_pull(r, want, dsm_data);
}

/* ---- Flush, of one namespace or of all */

static void
flush_next(struct nvmf_req *r, int res)
{
	const struct nvmf_io io = {.op = NVMF_IO_FLUSH};
	uint32_t nsid = get32(r->cmd + AT_NSID);

	if (nsid == NVMF_NSID_ALL && res == 0 && r->q->ctrl != NULL) {
		const struct nvmf_subsys *s = r->q->ctrl->subsys;

		while (r->step < s->max_ns && s->ns[r->step] == NULL)
			r->step++;
		if (r->step < s->max_ns) {
			nvmf_req_ns(r, s->ns[r->step++]);
			nvmf_start(r, &io, flush_next);
			return;
		}
	}
	finish(r, res);
}

static void
start_flush(struct nvmf_req *r)
{
	const struct nvmf_io io = {.op = NVMF_IO_FLUSH};

	if (!nvmf_exact(r, 0))
		return;
	if (r->ns != NULL)
		nvmf_start(r, &io, finish);
	else
		flush_next(r, 0);
}

/* ---- Checks, and dispatch of a command */

/* Checks range and lengths of Read, Write, Compare and Write Zeroes, and starts the command. */
static void
start_range(struct nvmf_req *r, uint8_t op)
{
	uint64_t n = blocks_of(r), len = op == NVM_WRITE_ZEROES ? 0 : n << r->ns->shift;

	if ((get32(r->cmd + AT_CDW12) & CDW12_DTYPE) != 0 && op == NVM_WRITE)
		nvmf_refuse(r, SC_INVALID_FIELD);
	else if (!in_range(r->ns, get64(r->cmd + AT_SLBA), n))
		nvmf_refuse(r, SC_LBA_RANGE);
	else if (len > r->q->t->attr.max_io)
		nvmf_refuse(r, SC_INVALID_FIELD);
	else if (!nvmf_exact(r, (uint32_t)len))
		return;
	else if (op == NVM_READ)
		start_read(r);
	else if (op == NVM_WRITE)
		nvmf_pull(r, r->len, write_data);
	else if (op == NVM_COMPARE)
		compare_next(r);
	else
		start_zeroes(r);
}

void
nvmf_nvm(struct nvmf_req *r)
{
	uint32_t nsid = get32(r->cmd + AT_NSID);
	uint8_t op = r->cmd[AT_OPCODE];
	bool changes = op == NVM_WRITE || op == NVM_WRITE_ZEROES || op == NVM_DSM;

	nvmf_req_ns(r, nvmf_ctrl_ns(r->q->ctrl, nsid));
	if (op != NVM_FLUSH && op != NVM_READ && op != NVM_COMPARE && !changes)
		nvmf_refuse(r, SC_INVALID_OPCODE);
	else if (r->ns == NULL && (op != NVM_FLUSH || nsid != NVMF_NSID_ALL))
		nvmf_refuse(r, SC_INVALID_NAMESPACE);
	else if (changes && r->ns->read_only)
		nvmf_refuse(r, SC_WRITE_PROTECTED);
	else if (op == NVM_FLUSH)
		start_flush(r);
	else if (op == NVM_DSM)
		start_dsm(r);
	else
		start_range(r, op);
}

/* ---- Namespaces without a file: the memory of the process, and null */

/*
 * Starts to set @len bytes at @at to zero. nvmf_target_turn() continues in parts, because a host
 * may ask for 256 MiB at once.
 */
static int
start_zeroing(struct nvmf_req *r, uint8_t *at, uint64_t len)
{
	struct nvmf_target *t = r->q->t;

	r->zero_at = at;
	r->zero_left = len;
	r->next_zeroing = NULL;
	if (t->zeroing == NULL)
		t->zeroing = r;
	else
		t->last_zeroing->next_zeroing = r;
	t->last_zeroing = r;
	return -EINPROGRESS;
}

uint32_t
nvmf_target_turn(struct nvmf_target *t)
{
	struct nvmf_req *r = t->zeroing;
	uint64_t len;

	if (r == NULL)
		return 0;
	len = r->q->closed ? 0 : r->zero_left < NVMF_ZERO_PART ? r->zero_left : NVMF_ZERO_PART;
	memset(r->zero_at, 0, len);
	r->zero_at += len;
	r->zero_left -= len;
	t->zeroing = r->next_zeroing;
	/* The next turn continues with another command, so that a long one delays no short one. */
	if (r->zero_left != 0 && !r->q->closed)
		(void)start_zeroing(r, r->zero_at, r->zero_left);
	else
		nvmf_req_done(r, 0);
	return 1;
}

static int
memory_start(struct nvmf_ns *ns, struct nvmf_req *r, const struct nvmf_io *io)
{
	uint8_t *at = (uint8_t *)ns->ctx + io->offset;

	switch (io->op) {
	case NVMF_IO_READ:
		memcpy(io->buf, at, io->len);
		break;
	case NVMF_IO_WRITE:
		memcpy(at, io->buf, io->len);
		break;
	case NVMF_IO_ZERO:
		return start_zeroing(r, at, io->len);
	case NVMF_IO_DISCARD: /* a hint, which may have no effect */
	case NVMF_IO_FLUSH:
		break;
	}
	return 0;
}

static int
null_start(struct nvmf_ns *ns, struct nvmf_req *r, const struct nvmf_io *io)
{
	(void)ns;
	if (io->op != NVMF_IO_READ)
		return 0;
	/* Reads return zeros: the buffer may still hold data of another host. */
	if (io->buf == r->mem && r->q->t->zeros != NULL)
		r->data = r->q->t->zeros;
	else
		memset(io->buf, 0, io->len);
	return 0;
}

static const struct nvmf_ns_ops memory_ops = {.start = memory_start};
static const struct nvmf_ns_ops null_ops = {.start = null_start};

void
nvmf_ns_memory(struct nvmf_ns *ns, void *mem, uint64_t len, uint8_t shift)
{
	*ns = (struct nvmf_ns){
		.ops = &memory_ops, .ctx = mem, .blocks = len >> shift, .shift = shift};
}

void
nvmf_ns_null(struct nvmf_ns *ns, uint64_t len, uint8_t shift)
{
	*ns = (struct nvmf_ns){.ops = &null_ops, .blocks = len >> shift, .shift = shift};
}
