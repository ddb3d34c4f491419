/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Reads a device's capture strictly: every length, option and number of the file is checked. */
#ifndef CAPTURE_READ_H
#define CAPTURE_READ_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bb_roce_pkt.h"

#define CAPTURE_IN  1u
#define CAPTURE_OUT 2u

struct capture_pkt {
	uint64_t ns;
	uint32_t dir;
	char note[80];
	uint32_t len;
	uint8_t *ip; /* points into the file's memory */
	uint8_t tclass;
	bool icrc_ok;
	struct bb_roce_pkt pkt; /* valid if icrc_ok */
	const uint8_t *payload;
};

struct capture {
	uint8_t *file;
	size_t size;
	char interface[16];
	uint32_t n;
	struct capture_pkt *pkt;
};

/* Returns a file name for a capture; no such file exists. */
void capture_path(char *path, size_t size);
/* Fails the test if the file is not a capture of IP packets, complete to its last byte. */
void capture_read(struct capture *c, const char *path);
void capture_free(struct capture *c);

#endif
