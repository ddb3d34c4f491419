/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef HCA_OPTIONS_H
#define HCA_OPTIONS_H

#include "hca.h"
#include "program.h"

struct options {
	const char *socket;
	/* the name given by the user, with the option for the link layer appended */
	char device[1024];
	struct hca_opts hca;
	bool verbose;
};

extern const struct program hca_program;

/*
 * Listens at @path, and serves one client after the other until a signal stops the program. Then
 * removes the socket. Returns 0 or -1 after printing the error.
 */
int hca_serve(struct hca *h, const char *path);

#endif
