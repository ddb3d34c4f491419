/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * PCI configuration space (PCI Local Bus 3.0, PCI Express Base 3.0; linux/pci_regs.h has the
 * names). QEMU emulates the BARs and MSI-X. It reads the types of the BARs and the position of the
 * MSI-X table from this configuration space.
 */
#include <string.h>

#include "hca_log.h"
#include "hca_pci.h"

#define VENDOR_MELLANOX 0x15b3u
#define DEVICE_CX6      0x101bu /* Linux main.c, mlx5_core_pci_table: ConnectX-6 */
#define DEVICE_CX6_VF   0x101cu /* ConnectX-6 VF */
#define SUBSYSTEM       0x0008u
#define CLASS_IB        0x0207u
#define CLASS_ETHERNET  0x0200u

/* Offsets of the PCI capabilities in configuration space. */
#define CAP_PM   0x40
#define CAP_PCIE 0x60
#define CAP_MSIX 0x9c

#define COMMAND            HCA_PCI_COMMAND
#define COMMAND_WRITABLE   0x0447u /* I/O, memory, bus master, parity, SERR, INTx: writable */
#define PCIE_DEVCTL        (CAP_PCIE + 0x08)
#define PCIE_DEVCTL_FLR    0x8000u
#define PCIE_DEVCAP_FLR    (1u << 28)
#define PCIE_DEVCAP_OTHERS 0x8fe2u /* 512 bytes of payload, extended tags, role-based errors */
#define LINK_16GT_X16      (4u | 16u << 4)

static void
le16(struct hca *h, unsigned int off, uint32_t v)
{
	h->config[off] = (uint8_t)v;
	h->config[off + 1] = (uint8_t)(v >> 8);
}

static void
le32(struct hca *h, unsigned int off, uint32_t v)
{
	le16(h, off, v);
	le16(h, off + 2, v >> 16);
}

static uint32_t
get16(const struct hca *h, unsigned int off)
{
	return h->config[off] | (uint32_t)h->config[off + 1] << 8;
}

void
hca_config_init(struct hca *h)
{
	memset(h->config, 0, sizeof(h->config));
	le16(h, 0x00, VENDOR_MELLANOX);
	le16(h, 0x02, h->o.vf ? DEVICE_CX6_VF : DEVICE_CX6);
	le16(h, 0x06, 0x0010); /* status register: there is a list of capabilities */
	le16(h, 0x0a, h->o.eth ? CLASS_ETHERNET : CLASS_IB);
	le32(h, 0x10, 0xc); /* BAR 0: memory of 64 bits, prefetchable */
	le16(h, 0x2c, VENDOR_MELLANOX);
	le16(h, 0x2e, SUBSYSTEM);
	h->config[0x34] = CAP_PM;

	h->config[CAP_PM] = 0x01;
	h->config[CAP_PM + 1] = CAP_PCIE;
	le16(h, CAP_PM + 2, 0x0003); /* version 1.2 */
	le16(h, CAP_PM + 4, 0x0008); /* no reset from D3hot to D0 */

	h->config[CAP_PCIE] = 0x10;
	h->config[CAP_PCIE + 1] = CAP_MSIX;
	le16(h, CAP_PCIE + 0x02, 0x0002); /* version 2, endpoint */
	le32(h, CAP_PCIE + 0x04, PCIE_DEVCAP_OTHERS | PCIE_DEVCAP_FLR);
	le16(h, CAP_PCIE + 0x08, 0x2810);
	le32(h, CAP_PCIE + 0x0c, LINK_16GT_X16);
	le16(h, CAP_PCIE + 0x12, LINK_16GT_X16);
	le32(h, CAP_PCIE + 0x24, 0x0012); /* supported ranges of completion timeouts */
	le32(h, CAP_PCIE + 0x2c, 0x001e); /* link speeds up to 16 GT/s */
	le16(h, CAP_PCIE + 0x30, 0x0004);

	h->config[CAP_MSIX] = 0x11;
	le16(h, CAP_MSIX + 2, HCA_N_MSIX - 1);
	le32(h, CAP_MSIX + 4, HCA_MSIX_TABLE);
	le32(h, CAP_MSIX + 8, HCA_MSIX_PBA);
	hca_update_dma(h);
}

/*
 * Accepts writes to the command register and to the device control register of the PCI Express
 * capability. Ignores all others: QEMU handles those registers, or they are read-only.
 */
void
hca_config_write(struct hca *h, uint64_t off, const uint8_t *buf, uint32_t len)
{
	uint8_t old[sizeof(h->config)];
	uint32_t command, control;

	memcpy(old, h->config, sizeof(old));
	memcpy(h->config + off, buf, len);
	command = get16(h, COMMAND) & COMMAND_WRITABLE;
	control = get16(h, PCIE_DEVCTL);
	memcpy(h->config, old, sizeof(old));
	le16(h, COMMAND, command);
	hca_update_dma(h);
	(void)hca_cmdq_resume(h);
	le16(h, PCIE_DEVCTL, control & ~PCIE_DEVCTL_FLR);
	if (control & PCIE_DEVCTL_FLR) {
		HCA_LOG(INFO, "function-level reset");
		le16(h, COMMAND, 0);
		hca_reset(h);
	}
}
