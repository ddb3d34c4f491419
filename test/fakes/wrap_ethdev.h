/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Functions that a test puts before ethdev's by the linker's --wrap. */
#ifndef WRAP_ETHDEV_H
#define WRAP_ETHDEV_H

#include <rte_ethdev.h>

int __real_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *info);
int __real_rte_eth_dev_configure(uint16_t id, uint16_t rx, uint16_t tx,
				 const struct rte_eth_conf *conf);
int __wrap_rte_eth_dev_configure(uint16_t id, uint16_t rx, uint16_t tx,
				 const struct rte_eth_conf *conf);

#endif
