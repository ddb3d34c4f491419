/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A program outside the tree, built from the installed bluebell.pc. It needs the
 * software device's driver, which registers by a constructor that nothing refers to.
 */
#include <stdio.h>
#include <string.h>

#include <bluebell.h>
#include <rte_eal.h>

int
main(int argc, char **argv)
{
	struct bb_dev_info info[16];
	bool found = false;
	int n, i;

	if (rte_eal_init(argc, argv) < 0)
		return 1;
	n = bb_dev_list(info, 16);
	for (i = 0; i < n && i < 16; i++) {
		printf("%s %s\n", info[i].name, info[i].driver);
		found |= strcmp(info[i].name, "soft0") == 0;
	}
	rte_eal_cleanup();
	if (!found)
		fprintf(stderr, "no device soft0 among %d\n", n);
	return found ? 0 : 1;
}
