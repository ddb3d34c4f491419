/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A verbs program that starts EAL itself. A child that it forks then cannot open the device of a
 * port, but ends. The program itself can open it.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include <rte_common.h>
#include <rte_eal.h>

static struct ibv_context *
open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list != NULL && list[0] != NULL ? ibv_open_device(list[0]) : NULL;

	if (list != NULL)
		ibv_free_device_list(list);
	return ctx;
}

#define PMD(name_) "-d", RTE_EAL_PMD_PATH "/librte_" name_ ".so"

int
main(void)
{
	static const char *const args[] = {"own_eal",
					   "--no-huge",
					   "-m",
					   "128",
					   "--no-pci",
					   "--no-shconf",
					   "--no-telemetry",
#ifdef RTE_EAL_PMD_PATH
					   PMD("bus_vdev"),
					   PMD("mempool_ring"),
					   PMD("net_memif")
#endif
	};
	char *copies[RTE_DIM(args)];
	unsigned int i;
	int status = 0;
	pid_t pid;

	for (i = 0; i < RTE_DIM(args); i++)
		copies[i] = strdup(args[i]);
	if (rte_eal_init(RTE_DIM(args), copies) < 0)
		return 77;
	pid = fork();
	if (pid == 0) {
		alarm(60);
		_exit(open_device() != NULL);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
		printf("child: status 0x%x\n", status);
		return 1;
	}
	if (open_device() == NULL)
		return 1;
	puts("own_eal: right");
	return 0;
}
