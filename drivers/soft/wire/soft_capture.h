/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The device option "capture": writes the RoCEv2 packets of a device to a pcapng file.
 * soft_capture.c describes the file.
 */
#ifndef SOFT_CAPTURE_H
#define SOFT_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#define SOFT_CAPTURE_MIB 256 /* Default limit of the file's size, MiB. */
/* Largest limit of the file's size that the user can set, MiB. */
#define SOFT_CAPTURE_MAX_MIB (1u << 20)
/* Longest time that a packet stays in the buffer while the device is polled, ns. */
#define SOFT_CAPTURE_IDLE_NS 20000000ull

/* Direction of a packet: the two low bits of epb_flags in pcapng. */
enum soft_capture_dir {
	SOFT_CAPTURE_IN = 1,
	SOFT_CAPTURE_OUT = 2,
};

struct soft_dev;
struct soft_capture;

/*
 * Creates or truncates the file @path for packets of @dev, up to @mib MiB. Returns 0 or a negative
 * errno, which is logged. -EINVAL if @path is not a regular file, -EBUSY if another capture writes
 * the file, otherwise the error of open(2) or write(2), for example -ENOENT, -EACCES or -ENOSPC.
 */
int soft_capture_open(const struct soft_dev *dev, const char *path, uint32_t mib,
		      struct soft_capture **out);
/*
 * soft_capture_begin() records a packet, from the IP header to the ICRC, and locks the capture
 * until soft_capture_end(). So a thread must not call other functions of the capture between the
 * two. @note is a comment for the packet, or NULL. If @keep is false, soft_capture_end() removes
 * the packet again. A write error is logged once and ends the capture; the caller continues. Any
 * thread may call both functions.
 */
void soft_capture_begin(struct soft_capture *c, enum soft_capture_dir dir, const uint8_t *ip,
			uint32_t len, const char *note);
void soft_capture_end(struct soft_capture *c, bool keep);
/*
 * Writes the buffer if its oldest packet has waited SOFT_CAPTURE_IDLE_NS. Returns true while
 * packets remain in the buffer. Any thread may call it.
 */
bool soft_capture_run(struct soft_capture *c);
/* Writes the buffer. Any thread may call it. @c may be NULL. */
void soft_capture_flush(struct soft_capture *c);
/*
 * Writes the remaining packets and closes the file. Call it when no other thread uses the capture
 * any more. @c may be NULL.
 */
void soft_capture_close(struct soft_capture *c);

#endif
