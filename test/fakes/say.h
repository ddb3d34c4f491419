/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef SAY_H
#define SAY_H

extern char said[256]; /* the last line of say() */

#endif
