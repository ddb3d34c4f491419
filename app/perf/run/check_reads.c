/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* --check of READs: reads all slots again after the timed part. */
#include <string.h>

#include "perf.h"

/*
 * Reads each slot twice, over different old contents of the local buffer. So a byte that is not
 * written differs at least once.
 */
static int
check_reads_of(struct perf *p, struct perf_qp *q)
{
	uint32_t i, pass;
	uint64_t n;

	for (pass = 0; pass < 2; pass++) {
		memset(q->out, pass == 0 ? 0xa5 : 0x5a, p->half_size);
		for (i = 0; i < p->layout.slots; i++) {
			n = q->posted;
			if (perf_post(p, q, true) != 0)
				return -1;
			bb_qp_ring(q->qp);
			if (perf_wait(p, p->posted, 0) != 0 ||
			    check_message(p, q, n, q->out + msg_slot_offset(&p->layout, n)) != 0)
				return -1;
		}
		if (check_gap(p, q->out, p->layout.slots, pass == 0 ? 0xa5 : 0x5a) != 0)
			return -1;
	}
	return 0;
}

int
check_reads(struct perf *p)
{
	uint32_t i;

	for (i = 0; i < p->o.qps; i++)
		if (check_reads_of(p, &p->qps[i]) != 0)
			return -1;
	return 0;
}
