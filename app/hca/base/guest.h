/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Memory of the guest, as the virtual machine monitor maps it with DMA_MAP and DMA_UNMAP.
 *
 * A mapping is a range of guest addresses and a piece of a file (a memfd). A window is a list of
 * guest pages that appear as one range of this process. The monitor may unmap RAM and map it again
 * at any time. Addresses are therefore looked up at each access, and the pages of windows follow
 * the mappings: a page without RAM reads as zeros, and writes to it are lost (guest_drop_writes()).
 *
 * If the monitor truncates a file, an access raises SIGBUS. guest_catch_sigbus() installs a handler
 * that puts a page of zeros at the address, so that the program goes on.
 *
 * Thread rule: one thread.
 */
#ifndef HCA_GUEST_H
#define HCA_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

#define GUEST_MAX_MAPS     256
#define GUEST_WINDOW_LISTS 1024 /* power of two */

struct guest_map {
	uint64_t addr, size; /* guest addresses */
	uint64_t offset;     /* offset of the first byte in the file */
	int fd;              /* -1 if the monitor gave no file; the range is then not accessible */
	bool writable;
	uint8_t *mem; /* mapping of the file in this process; NULL if fd is -1 */
};

struct guest_window {
	struct guest_window *next;
	uint8_t *at;
	uint32_t n, log_sz; /* n: number of pages; log_sz: log2 of the bytes of a page */
	uint32_t runs;      /* number of mappings of this process that are reserved for the pages:
			       one for each contiguous part, at the time with the most parts */
	bool holes;         /* a page has no RAM; the window is then in guest.with_holes */
	TAILQ_ENTRY(guest_window) hole;
	uint64_t pa[]; /* guest address of each page */
};

struct guest {
	struct guest_map maps[GUEST_MAX_MAPS];
	uint32_t n_maps;
	uint32_t last; /* index of the mapping of the last access */
	struct guest_window *windows[GUEST_WINDOW_LISTS];
	TAILQ_HEAD(, guest_window) with_holes;
	uint32_t n_with_holes;
	uint32_t runs, max_runs; /* runs: number of mappings of this process that are reserved for
				    all windows (ranges of guest pages); max_runs: its limit. The
				    guests have equal parts of the limit of the process. */
	/*
	 * Guest pages of all windows, and the bytes of all windows, with their limits. A guest may
	 * register the same memory many times, which takes memory and addresses of this process.
	 */
	uint64_t pages, max_pages, bytes, max_bytes;
	bool blocked;       /* set by guest_block() */
	struct guest *next; /* next in the list for the SIGBUS handler */
};

/* Initializes @g without mappings. Call it for all guests before the first window. */
void guest_init(struct guest *g);
/* Unmaps all RAM of the guest. Ranges of guest_window() stay valid, but read as zeros. */
void guest_reset(struct guest *g);
/* Unmaps everything. The caller has freed all ranges of guest_window(). */
void guest_fini(struct guest *g);

/*
 * Maps @size bytes at guest address @addr: file @fd from @offset on. If @fd is -1, the range is
 * known but not accessible. The descriptor is duplicated. Returns 0 or a negative errno: -EINVAL
 * (empty, not aligned to pages, beyond the file's end, or a file of hugepages), -EEXIST (overlap),
 * -ENOSPC.
 */
int guest_map(struct guest *g, uint64_t addr, uint64_t size, int fd, uint64_t offset,
	      bool writable);
/* Unmaps the mappings inside a range. Returns -EINVAL if the range cuts a mapping or has none. */
int guest_unmap(struct guest *g, uint64_t addr, uint64_t size);

/*
 * Makes all RAM inaccessible, or accessible again: guest_at() returns NULL, and the ranges of
 * guest_window() read as zeros, as without RAM. Mappings stay.
 */
void guest_block(struct guest *g, bool block);

/*
 * Frees the memory that writes to pages without RAM have taken, in a part of the windows (ranges of
 * guest pages). Call it often: a peer can write to such pages at any time. 64 calls free all.
 */
void guest_drop_writes(struct guest *g);

/*
 * Returns the address of @len bytes at guest address @addr, NULL if they are not RAM of one mapping
 * or, with @write, read-only. The pointer is valid until the next message of the monitor.
 */
void *guest_at(struct guest *g, uint64_t addr, uint64_t len, bool write);

/*
 * Maps @n pages of 2^@log_sz bytes at the guest addresses @pa as one range. Returns NULL if a page
 * is not writable RAM, or if all windows together would be too large or need too many mappings of
 * this process (logged). Free it with guest_window_free().
 */
void *guest_window(struct guest *g, const uint64_t *pa, uint32_t n, unsigned int log_sz);
void guest_window_free(struct guest *g, void *window);

/* Installs the SIGBUS handler for all guests that guest_init() initialized. Call it once. */
void guest_catch_sigbus(void);
/* Returns the number of pages that the SIGBUS handler has replaced since the program started. */
unsigned int guest_lost_pages(void);

#endif
