/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The states in which the device stops: no bus master, and the fatal state. */
#include "hca.h"
#include "hca_log.h"

#define COMMAND_MASTER 0x04u

bool
hca_is_master(const struct hca *h)
{
	return (h->config[HCA_PCI_COMMAND] & COMMAND_MASTER) != 0;
}

/*
 * A function that is not a bus master issues no memory requests (PCI Express Base 3.0, 7.5.1.1).
 * Linux clears the bus master bit before kexec starts another kernel (pci-driver.c,
 * pci_device_shutdown()).
 */
void
hca_update_dma(struct hca *h)
{
	bool stop = h->health != HCA_HEALTH_OK || !hca_is_master(h);

	guest_block(&h->guest, stop);
	front_stop(h->front, stop);
}

void
hca_fatal(struct hca *h, enum hca_health why)
{
	if (h->health != HCA_HEALTH_OK)
		return;
	h->health = why;
	hca_update_dma(h);
	hca_count(&h->stats.fatal_errors);
	/*
	 * Linux's driver begins its recovery when it reads this state (health.c,
	 * mlx5_health_check_fatal_sensors()): it unloads, and then loads as after a reset.
	 */
	h->nic_state = HCA_NIC_DISABLED;
	HCA_LOG(ERR, "fatal state 0x%x: nothing is executed until the driver resets the device",
		why);
}
