/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Namespaces without a file: the process's memory, and null. */
#include <string.h>

#include "nvmf_priv.h"

static int
memory_start(struct nvmf_ns *ns, struct nvmf_req *r, const struct nvmf_io *io)
{
	uint8_t *at = (uint8_t *)ns->ctx + io->offset;

	(void)r;
	switch (io->op) {
	case NVMF_IO_READ:
		memcpy(io->buf, at, io->len);
		break;
	case NVMF_IO_WRITE:
		memcpy(at, io->buf, io->len);
		break;
	case NVMF_IO_ZERO:
	case NVMF_IO_DISCARD:
		memset(at, 0, io->len);
		break;
	case NVMF_IO_FLUSH:
		break;
	}
	return 0;
}

static int
null_start(struct nvmf_ns *ns, struct nvmf_req *r, const struct nvmf_io *io)
{
	(void)ns;
	(void)r;
	/* The buffer may hold data of another host. */
	if (io->op == NVMF_IO_READ)
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
