/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A program outside the tree, built from the installed bluebell.pc or bluebell-soft.pc. It lists
 * the software device and opens it.
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
	struct bb_dev *dev;
	int n, i, ret;

	if (rte_eal_init(argc, argv) < 0)
		return 1;
	n = bb_dev_list(info, 16);
	for (i = 0; i < n && i < 16; i++) {
		printf("%s %s\n", info[i].name, info[i].driver);
		found |= strcmp(info[i].name, "soft0") == 0;
	}
	ret = bb_dev_open("soft0", &dev);
	if (found != (ret == 0))
		fprintf(stderr, "soft0 is %slisted, opening it gives %d\n", found ? "" : "not ",
			ret);
	if (ret == 0)
		ret = bb_dev_close(dev);
	rte_eal_cleanup();
	return found && ret == 0 ? 0 : 1;
}
