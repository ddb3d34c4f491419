/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Opens and closes the device node, and holds the handles of the objects of each open file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_user_ioctl.h>

#include "uverbs_queue.h"

#define FIRST_HANDLES 64u
#define MAX_HANDLES   (1u << 20)

/* ---- Handles */

static bool
grow(struct uverbs_file *f)
{
	const uint32_t n = f->n_handles == 0 ? FIRST_HANDLES : 2 * f->n_handles;
	struct uverbs_handle *to;

	if (n > MAX_HANDLES)
		return false;
	to = realloc(f->handles, n * sizeof(*to));
	if (to == NULL)
		return false;
	memset(to + f->n_handles, 0, (n - f->n_handles) * sizeof(*to));
	f->handles = to;
	f->last = f->n_handles != 0 ? f->n_handles - 1 : 0;
	f->n_handles = n;
	return true;
}

/*
 * Searches for a free entry, beginning after the entry that was used last. Returns 0 if there is
 * none.
 */
static uint32_t
free_entry(const struct uverbs_file *f)
{
	uint32_t i, at;

	for (i = 1; i <= f->n_handles; i++) {
		at = (f->last + i) & (f->n_handles - 1);
		if (at != 0 && f->handles[at].kind == UV_FREE)
			return at;
	}
	return 0;
}

uint32_t
uverbs_keep(struct uverbs_file *f, enum uverbs_kind kind, void *p)
{
	uint32_t at = free_entry(f);

	if (at == 0 && grow(f))
		at = free_entry(f);
	if (at == 0)
		return 0;
	f->handles[at] = (struct uverbs_handle){.kind = kind, .p = p};
	f->last = at;
	return at;
}

void *
uverbs_find(const struct uverbs_file *f, enum uverbs_kind kind, uint64_t handle)
{
	return handle < f->n_handles && f->handles[handle].kind == kind ? f->handles[handle].p
									: NULL;
}

void
uverbs_forget(struct uverbs_file *f, uint64_t handle)
{
	if (handle < f->n_handles)
		f->handles[handle].kind = UV_FREE;
}

int
uverbs_end(struct uverbs_file *f, enum uverbs_kind kind, void *p)
{
	int ret;

	switch (kind) {
	case UV_PD:
		return -f->soft->cmd->pd_free(f->soft, p);
	case UV_OBJ:
		ret = f->soft->cmd->obj_destroy(p);
		if (ret == 0)
			uverbs_unsubscribe(f, p);
		return -ret;
	case UV_UMEM:
		return -f->soft->cmd->umem_dereg(f->soft, p);
	case UV_UAR:
	case UV_ORPHAN_UAR:
		return -f->soft->cmd->uar_free(f->soft, p);
	case UV_DM:
		return -f->soft->cmd->dm_free(f->soft, p);
	case UV_MR:
		return -f->soft->cmd->mr_dereg(f->soft, p);
	case UV_MW:
		return -f->soft->cmd->mw_free(f->soft, p);
	case UV_CQ:
	case UV_QP:
	case UV_SRQ:
		return uverbs_queue_end(f, p);
	default: /* an address handle has no object */
		return 0;
	}
}

int
uverbs_destroy(struct uverbs_file *f, enum uverbs_kind kind, uint64_t handle)
{
	void *p = uverbs_find(f, kind, handle);
	int rc = p != NULL ? uverbs_end(f, kind, p) : EINVAL;

	if (rc == 0)
		uverbs_forget(f, handle);
	return rc;
}

/*
 * Destroys all objects. DEVX objects may refer to one another in any way, and an object in use
 * cannot be destroyed. So the function tries all objects again until a pass destroys none, as
 * uverbs_destroy_ufile_hw() of Linux drivers/infiniband/core/rdma_core.c.
 */
static bool
destroy_all(struct uverbs_file *f)
{
	unsigned int done, left, kind;
	uint32_t i;

	uverbs_mcast_end(f);
	do {
		done = left = 0;
		for (kind = UV_FREE + 1; kind < UV_KINDS; kind++)
			for (i = 1; i < f->n_handles; i++) {
				if (f->handles[i].kind != (enum uverbs_kind)kind)
					continue;
				if (uverbs_destroy(f, (enum uverbs_kind)kind, i) == 0)
					done++;
				else
					left++;
			}
	} while (left != 0 && done != 0);
	return left == 0;
}

/* ---- Open files of the node */

int
uverbs_open(const struct uverbs_attr *attr, struct uverbs_file **file, int *fd)
{
	struct uverbs_file *f = calloc(1, sizeof(*f));
	char args[1024];
	int ret;

	if (f == NULL)
		return -ENOMEM;
	f->refs = 1;
	f->attr = *attr;
	pthread_mutex_init(&f->lock, NULL);
	pthread_mutex_init(&f->event_lock, NULL);
	ret = snprintf(args, sizeof(args), "progress=thread,mmap%s%s%s",
		       attr->clock ? "" : ",no_clock", attr->args[0] != '\0' ? "," : "",
		       attr->args) < (int)sizeof(args)
		      ? soft_cmd_if.open(attr->dev, args, &f->soft)
		      : -ENAMETOOLONG;
	if (ret != 0)
		goto put;
	*fd = fcntl(soft_node_fd(f->soft), F_DUPFD_CLOEXEC, 0);
	if (*fd < 0) {
		ret = -errno;
		goto close_device;
	}
	uverbs_events_start(f);
	*file = f;
	return 0;

close_device:
	(void)f->soft->cmd->close(f->soft);
	f->soft = NULL;
put:
	uverbs_put(f);
	return ret;
}

void
uverbs_get(struct uverbs_file *f)
{
	__atomic_fetch_add(&f->refs, 1, __ATOMIC_RELAXED);
}

void
uverbs_put(struct uverbs_file *f)
{
	if (__atomic_fetch_sub(&f->refs, 1, __ATOMIC_ACQ_REL) != 1)
		return;
	pthread_mutex_destroy(&f->lock);
	pthread_mutex_destroy(&f->event_lock);
	free(f->handles);
	free(f->subs);
	free(f);
}

void
uverbs_close(struct uverbs_file *f)
{
	pthread_mutex_lock(&f->lock);
	uverbs_events_stop(f);
	/*
	 * Closes the context if all its objects are destroyed. destroy_all() fails only if its
	 * order of destruction is wrong; the context then stays open.
	 */
	if (destroy_all(f))
		(void)f->soft->cmd->close(f->soft);
	f->soft = NULL;
	pthread_mutex_unlock(&f->lock);
	uverbs_put(f);
}

/* ---- Calls */

int
uverbs_write(struct uverbs_file *f, const void *buf, size_t len)
{
	struct uverbs_cmd c;
	int rc = uverbs_cmd_parse(&c, buf, len);

	if (rc != 0)
		return rc;
	pthread_mutex_lock(&f->lock);
	rc = f->soft != NULL ? uverbs_command(f, &c) : EIO;
	pthread_mutex_unlock(&f->lock);
	return rc;
}

/* Checks the header as ib_uverbs_ioctl() of Linux drivers/infiniband/core/uverbs_ioctl.c does. */
int
uverbs_ioctl(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	int rc;

	if (h == NULL)
		return EFAULT;
	if (h->length > 4096 || h->length != sizeof(*h) + h->num_attrs * sizeof(h->attrs[0]))
		return EINVAL;
	if (h->reserved1 != 0 || h->reserved2 != 0)
		return EPROTONOSUPPORT;
	pthread_mutex_lock(&f->lock);
	rc = f->soft != NULL ? uverbs_method(f, h) : EIO;
	pthread_mutex_unlock(&f->lock);
	return rc;
}
