/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef HCA_LOG_H
#define HCA_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_log.h>

/*
 * Logs one line of type bluebell.hca. @level: ERR, WARNING, NOTICE, INFO or DEBUG. A guest can
 * cause most of these lines, so at most HCA_LOG_BURST of them appear in a second. A further line
 * says how many lines were dropped. DEBUG lines have no limit.
 */
#define HCA_LOG(level, ...) hca_log(RTE_LOG_##level, __VA_ARGS__)
#define HCA_LOG_BURST       20

void hca_log(uint32_t level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Sets the lowest level that is logged; default NOTICE. */
void hca_log_level(uint32_t level);
/*
 * Sets the name of the function that the next lines concern. It appears in each line. NULL, the
 * default: no name. The caller keeps the string.
 */
void hca_log_function(const char *name);
/* Returns whether DEBUG lines are logged. */
bool hca_log_debug(void);

#endif
