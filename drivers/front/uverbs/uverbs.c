/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Opens and closes the device node, and passes on its calls. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/rdma_user_ioctl.h>

#include "uverbs_priv.h"

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
uverbs_close(struct uverbs_file *f)
{
	pthread_mutex_lock(&f->lock);
	uverbs_events_stop(f);
	/*
	 * Closes the context if all its objects are destroyed. uverbs_destroy_all() fails only if
	 * its order of destruction is wrong; the context then stays open.
	 */
	if (uverbs_destroy_all(f))
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
