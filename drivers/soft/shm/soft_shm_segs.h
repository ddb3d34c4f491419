/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Segments: the parts of files that hold the memory of keys. Peers map them. */
#ifndef SOFT_SHM_SEGS_H
#define SOFT_SHM_SEGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct soft_dev;
struct soft_mkey;
struct soft_shm;
struct soft_shm_rx;

/* A part of a file of application memory that a device shares. */
struct soft_shm_seg {
	int fd; /* The program may close it, and open another file with the number. */
	dev_t dev;
	ino_t ino;
	uint64_t off, end; /* Range in the file, bytes; whole pages. */
	uint32_t gen;      /* Generation; changes when this entry of seg[] gets another file. */
	uint32_t rev;      /* Revision; a peer that has an older revision gets the segment again. */
	uint32_t refs;     /* Number of keys whose memory is in the segment. */
};

/* The range of a file that backs a key's memory, or a part of it. */
struct soft_shm_part {
	int fd;
	dev_t dev;
	ino_t ino;
	uint64_t page;       /* size of the file's pages, bytes */
	uint64_t off;        /* start of the range in the file */
	uint64_t start, len; /* the part of the key's memory: an address of the key, and bytes */
};

/*
 * Finds the file behind the memory of @m: by soft_dev.memory(), if the program has set it, else by
 * EAL. Returns false if no single file backs it, or if the program has closed the file's
 * descriptor. Under soft_dev.lock.
 */
bool soft_shm_part_find(const struct soft_dev *dev, const struct soft_mkey *m,
			struct soft_shm_part *p);
/*
 * Adds a part to the segment of its file. The segment grows until it holds all parts of the file.
 * Returns the index of the segment in seg[], or -1 on failure. Under soft_shm.lock.
 */
int soft_shm_seg_take(struct soft_shm *shm, const struct soft_shm_part *p);
/* Releases what soft_shm_seg_take() took. Under soft_shm.lock. */
void soft_shm_seg_put(struct soft_shm *shm, uint32_t slot);
/* Closes the files of all segments. No key is published any more. */
void soft_shm_segs_close(struct soft_shm *shm);
/*
 * Sends a peer the segments (shared parts of files) that it does not have in their current
 * revision. Sends none for a group. Under soft_shm.lock.
 */
void soft_shm_segs_send(struct soft_shm *shm, struct soft_shm_rx *rx);

#endif
