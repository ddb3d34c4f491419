/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The table of command interfaces of the process. Interfaces in this library register before
 * main(). The interface of the software device registers when mlx5_soft_load() loads its library.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mlx5.h"

/* maximum number of command interfaces: mlx5dv and the software device; tests may add more */
#define MAX_CMD_IFS 4

/*
 * Table of interfaces. An entry is written before the count is increased to include it. Entries are
 * never removed.
 */
static const struct mlx5_cmd_if *cmd_ifs[MAX_CMD_IFS];
static unsigned int n_cmd_ifs; /* __atomic */

unsigned int
mlx5_cmd_count(void)
{
	return __atomic_load_n(&n_cmd_ifs, __ATOMIC_ACQUIRE);
}

void
mlx5_cmd_register(const struct mlx5_cmd_if *cmd)
{
	unsigned int n = mlx5_cmd_count();

	if (n == MAX_CMD_IFS)
		return;
	cmd_ifs[n] = cmd;
	__atomic_store_n(&n_cmd_ifs, n + 1, __ATOMIC_RELEASE);
}

bool
mlx5_cmd_is_registered(const char *name)
{
	unsigned int i, n = mlx5_cmd_count();

	for (i = 0; i < n; i++) {
		if (strcmp(cmd_ifs[i]->name, name) == 0)
			return true;
	}
	return false;
}

int
mlx5_list(struct bb_dev_info *info, unsigned int n)
{
	unsigned int i, ifs = mlx5_cmd_count(), total = 0;
	int ret;

	for (i = 0; i < ifs; i++) {
		ret = total < n ? cmd_ifs[i]->list(info + total, n - total)
				: cmd_ifs[i]->list(NULL, 0);
		if (ret < 0)
			return ret;
		total += (unsigned int)ret;
	}
	/*
	 * This function must not load libbluebell-soft. If that library is installed but not
	 * loaded, it cannot list its device. So this function adds soft0 to the list.
	 */
	if (!mlx5_cmd_is_registered(MLX5_SOFT) && mlx5_soft_is_installed()) {
		if (total < n) {
			memset(&info[total], 0, sizeof(info[total]));
			snprintf(info[total].name, sizeof(info[total].name), "%s0", MLX5_SOFT);
			strcpy(info[total].driver, "mlx5");
		}
		total++;
	}
	return (int)total;
}

/*
 * Returns true for soft0, soft1 and so on. Other names may be those of verbs devices, which the
 * administrator chooses.
 */
static bool
is_soft_name(const char *name)
{
	size_t len = strlen(MLX5_SOFT);

	return strncmp(name, MLX5_SOFT, len) == 0 && name[len] >= '0' && name[len] <= '9';
}

int
mlx5_ctx_open(const char *name, const char *args, struct mlx5_ctx **ctx)
{
	unsigned int i;
	int ret;

	if (is_soft_name(name) && !mlx5_cmd_is_registered(MLX5_SOFT)) {
		ret = mlx5_soft_load(name);
		if (ret != 0)
			return ret;
	}
	for (i = 0; i < mlx5_cmd_count(); i++) {
		ret = cmd_ifs[i]->open(name, args, ctx);
		if (ret != -ENODEV)
			return ret;
	}
	return -ENODEV;
}
