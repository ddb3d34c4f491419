/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <string.h>

#include "bb_cqring.h"
#include "bb_queue_log.h"

#define CQ_MAX_LOG_SIZE 22u /* consumer index has 24 bits; a lap more must be told apart */

int
bb_cqring_init(struct bb_cqring *cq, void *buf, uint32_t log_size, uint32_t *dbrec)
{
	struct bb_cqe *cqe = buf;
	uint32_t i;

	if (log_size > CQ_MAX_LOG_SIZE) {
		BB_QUEUE_LOG(ERR, "CQ of 2^%u CQEs: at most 2^%u", log_size, CQ_MAX_LOG_SIZE);
		return -EINVAL;
	}
	if (buf == NULL || dbrec == NULL || ((uintptr_t)buf & (sizeof(*cqe) - 1)) != 0 ||
	    ((uintptr_t)dbrec & 7) != 0) {
		BB_QUEUE_LOG(ERR,
			     "CQ: ring %p and doorbell record %p must be given, aligned to 64 and "
			     "8 bytes",
			     buf, (void *)dbrec);
		return -EINVAL;
	}
	memset(cq, 0, sizeof(*cq));
	cq->buf = buf;
	cq->dbrec = dbrec;
	cq->mask = (1u << log_size) - 1;
	cq->size = 1u << log_size;
	cq->log_size = (uint8_t)log_size;
	memset(buf, 0, sizeof(*cqe) << log_size);
	for (i = 0; i <= cq->mask; i++)
		bb_cqe_own_store(&cqe[i].op_own, BB_CQE_OP_OWN_INIT);
	bb_dbrec_store(&dbrec[0], 0);
	bb_dbrec_store(&dbrec[1], 0);
	return 0;
}

uint32_t
bb_cqring_purge(struct bb_cqring *cq, uint32_t user_index)
{
	struct bb_cqring walk = *cq;
	uint32_t i, found = 0;

	for (i = 0; i <= cq->mask; i++, walk.ci++) {
		struct bb_cqe *cqe = bb_cqring_peek(&walk);

		if (cqe == NULL)
			break;
		if ((bb_be32(cqe->srqn_uidx) & 0xffffff) != user_index)
			continue;
		cqe->srqn_uidx = bb_be32(BB_CQE_NO_USER);
		found++;
	}
	return found;
}
