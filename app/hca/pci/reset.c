/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "fw.h"
#include "hca_pci.h"

void
hca_reset(struct hca *h)
{
	uint32_t i;

	hca_count(&h->stats.resets);
	h->bf.len = 0;
	vfu_irq_reset(&h->vfu);
	front_reset(h->front);
	for (i = 0; i < HCA_EQS; i++)
		hca_eq_free(&h->eqs[i]);
	h->cmdq.addr = 0;
	h->cmdq.high = 0;
	h->cmdq.waiting = 0;
	h->nic_state = HCA_NIC_FULL;
	h->health = HCA_HEALTH_OK;
	hca_update_dma(h);
	fw_reset(h);
}
