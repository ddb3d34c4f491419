/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Device memory (man ibv_alloc_dm). */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "verbs_drv.h"

int
verbs_dm_alloc(struct bb_dm_ctrl *dm)
{
	struct ibv_alloc_dm_attr attr = {.length = dm->pub.len, .log_align_req = dm->pub.log_align};
	struct ibv_dm *m;
	int ret;

	errno = 0;
	m = ibv_alloc_dm(verbs_dev_of(dm->pub.dev)->ctx, &attr);
	if (m == NULL) {
		ret = bb_ibv_errno();
		BB_LOG(ERR,
		       "%s: cannot allocate %" PRIu64 " bytes of device memory aligned to 2^%u: "
		       "%s%s",
		       dm->pub.dev->name, dm->pub.len, dm->pub.log_align, strerror(-ret),
		       ret == -ENOMEM
			       ? ": the free device memory is too small (all processes share the "
				 "device memory): free some"
			       : "");
		return ret;
	}
	dm->priv = m;
	return 0;
}

int
verbs_dm_free(struct bb_dm_ctrl *dm)
{
	int err = verbs_gone(verbs_dev_of(dm->pub.dev), ibv_free_dm(dm->priv));

	if (err != 0)
		BB_LOG(ERR, "%s: cannot free %" PRIu64 " bytes of device memory: %s",
		       dm->pub.dev->name, dm->pub.len, strerror(err));
	return -err;
}

static int
copied(const struct bb_dm_ctrl *dm, uint64_t off, size_t len, int err)
{
	if (err != 0)
		BB_LOG(ERR, "%s: cannot copy %zu bytes at offset %" PRIu64 " of device memory: %s",
		       dm->pub.dev->name, len, off, strerror(err));
	return -err;
}

int
verbs_dm_write(struct bb_dm_ctrl *dm, uint64_t off, const void *src, size_t len)
{
	return copied(dm, off, len, ibv_memcpy_to_dm(dm->priv, off, src, len));
}

int
verbs_dm_read(struct bb_dm_ctrl *dm, void *dst, uint64_t off, size_t len)
{
	return copied(dm, off, len, ibv_memcpy_from_dm(dst, dm->priv, off, len));
}
