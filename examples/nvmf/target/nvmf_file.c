/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Namespaces on files and block devices. */
#include <errno.h>

#include "nvmf_program.h"

/*
 * Bit of a request's tag: IO_SYNC must follow the request, as for Write Zeroes with FUA. The other
 * bits of the tag are the address of the engine's request, whose lowest bits are 0.
 */
#define TAG_SYNC 1u
#define BURST    32u

static int
start(struct nvmf_ns *ns, struct nvmf_req *r, const struct nvmf_io *io)
{
	struct nvmf_file *f = ns->ctx;
	uint64_t tag = (uintptr_t)r;

	switch (io->op) {
	case NVMF_IO_READ:
		io_start(f->q, IO_READ, tag, io->buf, io->len, io->offset);
		break;
	case NVMF_IO_WRITE:
		io_start(f->q, io->fua ? IO_WRITE_SYNC : IO_WRITE, tag, io->buf, io->len,
			 io->offset);
		break;
	case NVMF_IO_FLUSH:
		io_start(f->q, IO_SYNC, tag, NULL, 0, 0);
		break;
	case NVMF_IO_ZERO:
		io_start(f->q, IO_ZERO, io->fua ? tag | TAG_SYNC : tag, NULL, io->len, io->offset);
		break;
	case NVMF_IO_DISCARD:
		/* Linux refuses a range of 0 bytes, which a host may ask for. */
		if (io->len == 0)
			return 0;
		io_start(f->q, IO_DISCARD, tag, NULL, io->len, io->offset);
		break;
	}
	return -EINPROGRESS;
}

static const struct nvmf_ns_ops ops = {.start = start};

int
nvmf_file_open(struct nvmf_file *f, const struct backing_attr *attr, struct nvmf_ns *ns)
{
	int rc = backing_open(&f->b, attr);

	if (rc != 0)
		return rc;
	*ns = (struct nvmf_ns){
		.ops = &ops,
		.ctx = f,
		.shift = (uint8_t)__builtin_ctz(attr->block),
		.read_only = attr->read_only,
	};
	ns->blocks = f->b.capacity >> ns->shift;
	f->open = true;
	return 0;
}

int
nvmf_file_start(struct nvmf_file *f, struct nvmf_file *of, bool uring, uint32_t depth, void *mem,
		size_t len)
{
	return io_queue_create(&of->b, uring, depth, mem, len, &f->q);
}

unsigned int
nvmf_file_poll(struct nvmf_file *f, int *rc)
{
	struct io_done done[BURST];
	uint32_t i, n = io_reap(f->q, done, BURST);

	for (i = 0; i < n; i++) {
		struct nvmf_req *r =
			(struct nvmf_req *)(uintptr_t)(done[i].tag & ~(uint64_t)TAG_SYNC);

		if ((done[i].tag & TAG_SYNC) != 0 && done[i].res == 0)
			io_start(f->q, IO_SYNC, (uintptr_t)r, NULL, 0, 0);
		else
			nvmf_req_done(r, done[i].res);
	}
	*rc = io_submit(f->q);
	return n;
}

void
nvmf_file_close(struct nvmf_file *f)
{
	if (f->q != NULL)
		io_queue_destroy(f->q);
	if (f->open)
		backing_close(&f->b);
	f->q = NULL;
	f->open = false;
}
