/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The option "capture": RoCEv2 packets of a device into a pcapng file. See soft_capture.c. */
#ifndef SOFT_CAPTURE_H
#define SOFT_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#define SOFT_CAPTURE_MIB     256         /* what a file may take where nothing is said */
#define SOFT_CAPTURE_MAX_MIB (1u << 20)  /* what can be said */
#define SOFT_CAPTURE_IDLE_NS 20000000ull /* nothing waits longer while the device is polled */

/* The two low bits of epb_flags. */
enum soft_capture_dir {
	SOFT_CAPTURE_IN = 1,
	SOFT_CAPTURE_OUT = 2,
};

struct soft_dev;
struct soft_capture;

/*
 * Make @path, or empty it, for packets of @dev: at most @mib MiB. 0, or -errno,
 * logged: the directory, its rights, no space, not a plain file (-EINVAL), being written
 * already (-EBUSY).
 */
int soft_capture_open(const struct soft_dev *dev, const char *path, uint32_t mib,
		      struct soft_capture **out);
/*
 * A packet from its IP header to its ICRC. @note is a comment, NULL: none. Any thread: between the
 * two calls no other takes its turn, and none but soft_capture_end() may be made. @keep false: take
 * it back. What fails is logged once and ends the capture, not the caller's work.
 */
void soft_capture_begin(struct soft_capture *c, enum soft_capture_dir dir, const uint8_t *ip,
			uint32_t len, const char *note);
void soft_capture_end(struct soft_capture *c, bool keep);
/* Write what has waited for SOFT_CAPTURE_IDLE_NS. True: something waits still. Any thread. */
bool soft_capture_run(struct soft_capture *c);
/* Write the rest. Nobody uses it any more. NULL: nothing. */
void soft_capture_close(struct soft_capture *c);

#endif
