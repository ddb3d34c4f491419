/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The option "capture": writes a device's RoCEv2 packets to a pcapng file. See soft_capture.c. */
#ifndef SOFT_CAPTURE_H
#define SOFT_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#define SOFT_CAPTURE_MIB     256        /* Default limit of the file, MiB. */
#define SOFT_CAPTURE_MAX_MIB (1u << 20) /* Largest limit, MiB. */
/* Longest wait of a packet in the buffer while the device is polled, ns. */
#define SOFT_CAPTURE_IDLE_NS 20000000ull

/* The two low bits of epb_flags. */
enum soft_capture_dir {
	SOFT_CAPTURE_IN = 1,
	SOFT_CAPTURE_OUT = 2,
};

struct soft_dev;
struct soft_capture;

/*
 * Creates @path, or truncates it, for packets of @dev, up to @mib MiB. Returns 0 or a negative
 * errno, logged: the directory, its rights, no space, -EINVAL if @path is not a plain file, -EBUSY
 * if another capture writes it.
 */
int soft_capture_open(const struct soft_dev *dev, const char *path, uint32_t mib,
		      struct soft_capture **out);
/*
 * Record a packet from IP header to ICRC. @note is a comment, NULL for none. Any thread.
 * soft_capture_begin() locks the capture until soft_capture_end(), so a thread makes no other call
 * between them. With @keep false soft_capture_end() removes the packet. A failure is logged once
 * and ends the capture, not the caller's work.
 */
void soft_capture_begin(struct soft_capture *c, enum soft_capture_dir dir, const uint8_t *ip,
			uint32_t len, const char *note);
void soft_capture_end(struct soft_capture *c, bool keep);
/* Writes the buffer after SOFT_CAPTURE_IDLE_NS. Returns true while packets wait. Any thread. */
bool soft_capture_run(struct soft_capture *c);
/* Writes the rest and closes the file; no other thread uses the capture. @c may be NULL. */
void soft_capture_close(struct soft_capture *c);

#endif
