/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Attributes of an ioctl(). */
#ifndef UVERBS_ATTR_H
#define UVERBS_ATTR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rdma/rdma_user_ioctl_cmds.h>

static inline struct ib_uverbs_attr *
attr(struct ib_uverbs_ioctl_hdr *h, uint16_t id)
{
	unsigned int i;

	for (i = 0; i < h->num_attrs; i++)
		if (h->attrs[i].attr_id == id)
			return &h->attrs[i];
	return NULL;
}

/* A value of up to 8 bytes is in the attribute itself. */
static inline const void *
in(struct ib_uverbs_ioctl_hdr *h, uint16_t id, size_t *len)
{
	struct ib_uverbs_attr *a = attr(h, id);

	*len = a != NULL ? a->len : 0;
	if (a == NULL)
		return NULL;
	return a->len <= sizeof(a->data) ? (void *)&a->data : (void *)(uintptr_t)a->data;
}

static inline uint64_t
in_u64(struct ib_uverbs_ioctl_hdr *h, uint16_t id)
{
	uint64_t v = 0;
	size_t len;
	const void *p = in(h, id, &len);

	if (p != NULL)
		memcpy(&v, p, len < sizeof(v) ? len : sizeof(v));
	return v;
}

static inline uint64_t
in_handle(struct ib_uverbs_ioctl_hdr *h, uint16_t id)
{
	struct ib_uverbs_attr *a = attr(h, id);

	return a != NULL ? a->data : 0;
}

static inline void *
out(struct ib_uverbs_ioctl_hdr *h, uint16_t id, size_t *len)
{
	struct ib_uverbs_attr *a = attr(h, id);

	*len = a != NULL ? a->len : 0;
	if (a == NULL)
		return NULL;
	a->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
	return (void *)(uintptr_t)a->data;
}

static inline void
out_num(struct ib_uverbs_ioctl_hdr *h, uint16_t id, uint64_t v)
{
	size_t len;
	void *p = out(h, id, &len);

	if (p != NULL)
		memcpy(p, &v, len < sizeof(v) ? len : sizeof(v));
}

#endif
