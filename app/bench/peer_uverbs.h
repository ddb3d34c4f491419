/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef PEER_UVERBS_H
#define PEER_UVERBS_H

#include <stdint.h>

/* From here on libibverbs sees one device, mlx5_0. @root: a template of mkdtemp(). 0 or -errno. */
int uverbs_start(char *root);
/* Remove what is under @root. */
void uverbs_end(const char *root);

/* What the provider has said of the last QP. */
struct uverbs_seen {
	uint32_t uidx; /* in its CQEs */
};
const struct uverbs_seen *uverbs_seen(void);

#endif
