/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Queue memory on hugepages: whole pages are registered with their size. */
#include <rte_eal.h>
#include <rte_malloc.h>

#include "mlx5_fixture.h"

#define PAGE (2u << 20)
/* Page sizes for a umem: rings start on 4 KiB and a umem page has 64 possible start offsets. */
#define UMEM_PAGES (2 * 64 * 4096 - 4096)

/* Returns the number of free hugepages of 2 MiB. */
static long
hugepages_free(void)
{
	FILE *f = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "r");
	long n = 0;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%ld", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

T_QP(test_slab_takes_whole_hugepages)
{
	assert_int_equal(stub.umem_len, PAGE);
	assert_int_equal((uintptr_t)stub.umem_addr % PAGE, 0);
	/* 4 to 256 KiB: the kernel uses the largest size that fits. */
	assert_int_equal(stub.umem_pgsz, UMEM_PAGES);
	/* Rings still start on 4 KiB, so the device gets pages of that size. */
	assert_int_equal(bb_prm_get(stub_box(BB_PRM_OP_CREATE_QP) + BB_PRM_CREATE_QP_QPC.byte,
				    BB_PRM_QPC_LOG_PAGE_SIZE),
			 0);
}

T_DEV(test_ring_larger_than_a_hugepage_is_contiguous)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);

	attr.depth = 1 << 16; /* 4 MiB; the slab of the doorbell record follows it */
	assert_int_equal(bb_cq_create(f->dev, &attr, &f->cq), 0);
	assert_int_equal((uintptr_t)f->cq->ring.buf % PAGE, 0);
	assert_fields(stub, umems, 2, umem_pgsz, UMEM_PAGES);
}

/* Without a whole free hugepage a ring uses the memory there is, in pages of at least 4 KiB. */
T_DEV(test_ring_without_a_free_hugepage_uses_smaller_pages)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	void *hog[64];
	unsigned int i, n = 0;

	while (n < RTE_DIM(hog) && (hog[n] = rte_malloc(NULL, PAGE - 256 * 1024, 0)) != NULL)
		n++;
	assert_true(n < RTE_DIM(hog));
	attr.depth = 64;
	assert_int_equal(bb_cq_create(f->dev, &attr, &f->cq), 0);
	assert_int_equal(stub.umem_len % 4096, 0);
	assert_true(stub.umem_len < PAGE);
	assert_int_equal(stub.umem_pgsz & 4096, 4096);
	for (i = 0; i < n; i++)
		rte_free(hog[i]);
}

int
main(void)
{
	static char args[][24] = {"mlx5_hugepages",
				  "--in-memory",
				  "--no-pci",
				  "-m",
				  "64",
				  "--socket-limit=64",
				  "-l",
				  "0",
				  "--no-telemetry",
				  "--log-level=5"};
	char *argv[RTE_DIM(args) + 1] = {0};
	unsigned int i;

	for (i = 0; i < RTE_DIM(args); i++)
		argv[i] = args[i];
	if (hugepages_free() < 64) {
		printf("SKIP: needs 64 free hugepages of 2 MiB: sysctl vm.nr_hugepages=64\n");
		return 77;
	}
	if (rte_eal_init((int)i, argv) < 0) {
		printf("SKIP: EAL does not start on hugepages\n");
		return 77;
	}
	return bb_test_run(__FILE__, NULL, NULL);
}
