/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A client of nvmf_target outside the tree, built from the installed bluebell_nvmf.pc.
 * usage: nvmf EAL_OPTION... -- DEVICE [ADDR:PORT of a target]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bb_nvmf.h>
#include <bluebell.h>
#include <rte_eal.h>
#include <rte_malloc.h>

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "line %d: not so: %s (%s)\n", __LINE__, #what, why);       \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* Runs one request to its end. */
static int
run(struct bb_nvmf *nvmf, struct bb_mr *mr, enum bb_nvmf_op op, void *mem, uint32_t len,
    uint64_t at)
{
	struct bb_nvmf_request req = {
		.op = op, .length = len, .offset = at, .mem = mem, .mr = mr, .user = mem};
	struct bb_nvmf_done done;
	int rc = bb_nvmf_submit(nvmf, &req);

	if (rc != 0)
		return rc;
	bb_nvmf_ring(nvmf);
	while (bb_nvmf_poll(nvmf, &done, 1) == 0)
		;
	return done.user == mem ? done.error : -EPROTO;
}

int
main(int argc, char **argv)
{
	struct bb_nvmf_attr attr;
	int n = rte_eal_init(argc, argv);
	char why[160] = "", *mem;
	struct bb_dev *dev;
	struct bb_nvmf *nvmf;
	struct bb_mr *mr;
	uint32_t block;

	CHECK(n > 0 && argc > n + 1 && bb_dev_open(argv[n + 1], &dev) == 0);
	bb_nvmf_attr_init(&attr);
	CHECK(bb_nvmf_open(dev, &attr, &nvmf, why, sizeof(why)) == -EINVAL);
	CHECK(strstr(why, "no qualified name") != NULL);
	attr.subnqn = "nqn.2026-01.org.example:disk";
	if (argc > n + 2) {
		attr.addr = argv[n + 2];
		attr.depth = 4;
		CHECK(bb_nvmf_open(dev, &attr, &nvmf, why, sizeof(why)) == 0);
		CHECK(bb_nvmf_shape(nvmf)->depth == 4);
		block = bb_nvmf_shape(nvmf)->block;
		mem = rte_zmalloc("data", 2 * (size_t)block, 4096);
		CHECK(mem != NULL && bb_nvmf_reg(nvmf, mem, 2 * (size_t)block, &mr) == 0);
		memset(mem, 0x5a, block);
		CHECK(run(nvmf, mr, BB_NVMF_WRITE, mem, block, block) == 0);
		CHECK(run(nvmf, NULL, BB_NVMF_FLUSH, NULL, 0, 0) == 0);
		CHECK(run(nvmf, mr, BB_NVMF_READ, mem + block, block, block) == 0);
		CHECK(memcmp(mem, mem + block, block) == 0);
		CHECK(run(nvmf, mr, BB_NVMF_READ, mem, block, bb_nvmf_shape(nvmf)->capacity) ==
		      -ERANGE);
		CHECK(bb_nvmf_close(nvmf) == -EBUSY && bb_nvmf_broken(nvmf) != NULL);
		CHECK(bb_nvmf_dereg(nvmf, mr) == 0 && bb_nvmf_close(nvmf) == 0);
		rte_free(mem);
		printf("a block of %u bytes written, flushed and read\n", block);
	}
	CHECK(bb_dev_close(dev) == 0);
	return rte_eal_cleanup();
}
