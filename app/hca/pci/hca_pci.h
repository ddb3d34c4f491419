/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The PCI function: its life, its registers and its command queue. */
#ifndef HCA_PCI_H
#define HCA_PCI_H

#include "hca.h"

/*
 * Opens the software device of @o. Returns 0 or a negative errno (logged). The caller has zeroed
 * @h.
 */
int hca_open(struct hca *h, const struct hca_opts *o);
void hca_close(struct hca *h);
/*
 * Serves the monitor that has connected as @fd, and takes the descriptor. Call it while the
 * function has no client. Returns 0 or a negative errno (logged).
 */
int hca_attach(struct hca *h, int fd);
/*
 * Runs the device between two messages of the monitor. Returns the milliseconds until the next call
 * must follow, -1 if none is needed before the next message.
 */
int hca_poll(struct hca *h);

/* reset.c: resets the PCI function: objects, queues, registers. The guest's memory stays mapped. */
void hca_reset(struct hca *h);

/* pci.c: configuration space. */
void hca_config_init(struct hca *h);
void hca_config_write(struct hca *h, uint64_t off, const uint8_t *buf, uint32_t len);

/* bar.c: registers of BAR 0. */
void hca_bar_read(struct hca *h, uint64_t off, uint8_t *buf, uint32_t len);
void hca_bar_write(struct hca *h, uint64_t off, const uint8_t *buf, uint32_t len);
/* Executes a pending BlueFlame copy, as far as its stores have arrived. */
void hca_bf_flush(struct hca *h);

/*
 * cmdq.c: executes the entries in the bit mask @vector. After commands with much input and output,
 * the other entries wait for hca_cmdq_resume().
 */
void hca_cmdq_doorbell(struct hca *h, uint32_t vector);
/*
 * Executes entries whose doorbells waited, unless the device still must not access memory. Returns
 * true if it executed any: others may wait.
 */
bool hca_cmdq_resume(struct hca *h);
void hca_cmdq_fini(struct hca *h);

#endif
