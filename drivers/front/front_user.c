/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Opens and closes users. Each uid has a context of the device. */
#include <errno.h>

#include "front_priv.h"
#include "soft_hooks.h"

int
front_user_open(struct front *f, struct front_user *u, uint16_t uid)
{
	enum soft_role role = uid == 0                  ? SOFT_ROLE_KERNEL
			      : uid == FRONT_UID_SHARED ? SOFT_ROLE_SHARED
							: SOFT_ROLE_USER;
	int ret = soft_open_host(f->device, f->opts, &f->memory, role, &u->ctx);

	if (ret != 0)
		return ret;
	ret = f->cmd->channel_create(u->ctx, &u->ch);
	if (ret != 0) {
		(void)f->cmd->close(u->ctx);
		u->ctx = NULL;
		return ret;
	}
	u->uid = uid;
	STAILQ_INIT(&u->events);
	soft_event_sink(u->ctx, front_event_add, u);
	return 0;
}

int
front_user_close(struct front *f, struct front_user *u)
{
	int ret;

	if (u->objs != 0)
		return -EBUSY;
	(void)f->cmd->channel_destroy(u->ctx, u->ch);
	ret = f->cmd->close(u->ctx);
	if (ret != 0)
		return ret;
	front_event_drop_all(u);
	*u = (struct front_user){0};
	return 0;
}

struct front_user *
front_user_of(struct front *f, uint16_t uid)
{
	if (uid == FRONT_UID_SHARED)
		return f->shared.ctx != NULL ? &f->shared : NULL;
	return uid < FRONT_MAX_UIDS && f->users[uid].ctx != NULL ? &f->users[uid] : NULL;
}

bool
front_user_may(const struct front *f, const struct front_user *u, const struct front_user *owner)
{
	return u == owner || u == &f->users[0] || owner == &f->shared;
}

struct mlx5_ctx *
front_ctx(struct front *f)
{
	return f->users[0].ctx;
}
