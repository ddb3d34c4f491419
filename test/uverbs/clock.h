/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef CLOCK_H
#define CLOCK_H

/*
 * Returns the page that is mapped for the device's clock, NULL if this machine cannot emulate it.
 */
void *clock_page(void);
/* Returns that page if clock_page() has made it, else NULL. */
void *clock_page_mapped(void);

#endif
