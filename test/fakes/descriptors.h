/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Returns the number of open file descriptors of this process; a leak shows in it. */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include <fcntl.h>

static inline int
descriptors(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

#endif
