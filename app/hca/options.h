/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef HCA_OPTIONS_H
#define HCA_OPTIONS_H

#include "hca.h"
#include "program.h"

#define HCA_MAX_FUNCTIONS 8

/* One PCI function: its socket and its device. */
struct function {
	const char *socket;
	const char *spec; /* the device given by the user; NULL: soft0, soft1 and so on */
	char name[32];    /* name of the device without its options, such as "soft0" */
	/* the device given by the user, with the option for the link layer appended */
	char device[1024];
	bool odp; /* the guest may register memory on demand */
	struct hca_opts hca;
};

struct options {
	struct function functions[HCA_MAX_FUNCTIONS];
	unsigned int n_functions;
	bool verbose;
};

extern const struct program hca_program;

/*
 * Listens at the socket of each of @n functions, and serves one client after the other at each
 * until a signal stops the program. Then removes the sockets. Returns 0 or -1 after printing the
 * error.
 */
int hca_serve(struct hca *h, const struct function *f, unsigned int n);

/*
 * Registers the telemetry commands. All arguments must stay valid until the program ends. Call it
 * once.
 */
void hca_telemetry(const struct hca *h, const struct function *f, unsigned int n);

#endif
