/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The provider of libfabric, its parameters, stubs of operations, and timers. */
#include <errno.h>
#include <stdio.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "fab.h"

/* fi_prov_ini() adds the functions. */
struct fi_provider fab_provider = {
	.version = FI_VERSION(0, 1),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "bluebell",
};

const char *
fab_param(const char *name)
{
	char *value = NULL;

	return fi_param_get_str(&fab_provider, name, &value) == 0 && value != NULL &&
			       value[0] != '\0'
		       ? value
		       : NULL;
}

const char *
fab_error_text(const char *text, char *buf, size_t len)
{
	if (buf != NULL && len != 0)
		snprintf(buf, len, "%s", text);
	return text;
}

int
fab_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid, (void)bfid, (void)flags;
	return -FI_ENOSYS;
}

int
fab_no_control(struct fid *fid, int command, void *arg)
{
	(void)fid, (void)command, (void)arg;
	return -FI_ENOSYS;
}

int
fab_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	(void)fid, (void)name, (void)flags, (void)ops, (void)context;
	return -FI_ENOSYS;
}

int
fab_timer_open(void)
{
	const struct timespec nap = {.tv_nsec = FAB_NAP_MS * 1000000L};
	const struct itimerspec every = {nap, nap};
	const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (timer >= 0)
		(void)timerfd_settime(timer, 0, &every, NULL); /* fails for bad values only */
	return timer >= 0 ? timer : -errno;
}

void
fab_timer_clear(int timer)
{
	uint64_t n;

	if (timer >= 0)
		(void)!read(timer, &n, sizeof(n));
}
