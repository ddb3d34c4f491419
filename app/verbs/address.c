/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_log.h>

#include "address.h"
#include "soft_host.h"

#define TRIES 4096u

/*
 * Opens the device. With @quiet nothing is logged: if the address is in use, the caller tries
 * another one.
 */
static int
try_open(const char *name, const char *args, const char *more, bool quiet, struct mlx5_ctx **ctx)
{
	const uint32_t level = rte_log_get_global_level();
	char all[1400];
	int ret;

	snprintf(all, sizeof(all), "%s%s%s", more, args[0] != '\0' ? "," : "", args);
	if (quiet)
		rte_log_set_global_level(RTE_LOG_EMERG);
	ret = soft_cmd_if.open(name, all, ctx);
	rte_log_set_global_level(level);
	return ret;
}

int
address_open(const char *spec, bool choose, const char *more, char *name, char *args, size_t size,
	     struct mlx5_ctx **ctx)
{
	const char *comma = strchr(spec, ',');
	const size_t len = comma != NULL ? (size_t)(comma - spec) : strlen(spec);
	const char *given = comma != NULL ? comma + 1 : "";
	unsigned int i, host;
	int ret = -EADDRINUSE, given_len = (int)strlen(given);
	const char *ip = strstr(given, "ip=");

	if (len >= BB_DEV_NAME_MAX || strlen(given) + 40 >= size)
		return -ENAMETOOLONG;
	memcpy(name, spec, len);
	name[len] = '\0';
	strcpy(args, given);
	if (!choose)
		return try_open(name, args, more, false, ctx);
	/* First tries the address at the end of the options, which bb_verbs has chosen. */
	if (ip != NULL) {
		ret = try_open(name, args, more, true, ctx);
		given_len = ip > given ? (int)(ip - given) - 1 : 0;
	}
	for (i = 0; i < TRIES && ret == -EADDRINUSE; i++) {
		host = ((unsigned int)getpid() + i) % ADDRESS_HOSTS + 1;
		snprintf(args, size, "%.*s%sip=" ADDRESS_NET ".%u.%u/%d", given_len, given,
			 given_len != 0 ? "," : "", host >> 8, host & 255, ADDRESS_BITS);
		ret = try_open(name, args, more, true, ctx);
	}
	/*
	 * If the open failed for another reason than an address in use, opens the device once more
	 * without @quiet. The device then logs what is wrong with its options.
	 */
	return ret == 0 || ret == -EADDRINUSE ? ret : try_open(name, args, more, false, ctx);
}
