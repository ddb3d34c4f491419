/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Preloaded into testrdma: connects every queue pair without the requested rights, so that the
 * first operation ends in a completion error.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include <bluebell.h>

typedef int (*connect_fn)(struct bb_qp *, const struct bb_qp_addr *, const struct bb_qp_addr *,
			  const struct bb_qp_attr *);

int
bb_qp_connect(struct bb_qp *qp, const struct bb_qp_addr *local, const struct bb_qp_addr *remote,
	      const struct bb_qp_attr *attr)
{
	connect_fn real = (connect_fn)dlsym(RTLD_NEXT, "bb_qp_connect");
	struct bb_qp_attr without = *attr;

	if (real == NULL)
		abort();
	without.access = 0;
	return real(qp, local, remote, &without);
}
