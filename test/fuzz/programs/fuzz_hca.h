/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The parts that the two targets of bb_hca share: a device on a socket pair, with RAM in a memfd.
 */
#ifndef FUZZ_HCA_H
#define FUZZ_HCA_H

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bb_prm_hca.h"
#include "fuzz.h"
#include "fw.h"
#include "hca_pci.h"

#define FUZZ_RAM  (256u * 1024)
#define FUZZ_ADDR UINT64_C(0x100000)

struct fuzz_hca {
	struct hca h;
	int client, ram_fd;
	uint8_t *ram; /* the client's mapping */
};

static inline void
fuzz_hca_attach(struct fuzz_hca *f)
{
	int pair[2];

	fuzz_check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	f->client = pair[0];
	fuzz_check(hca_attach(&f->h, pair[1]) == 0);
}

/*
 * Opens a device with a client and RAM at FUZZ_ADDR. @shared: it shares register pages. Aborts on
 * an error.
 */
static inline void
fuzz_hca_open(struct fuzz_hca *f, bool shared)
{
	const struct hca_opts o = {.device = "soft0", .shared = shared, .guid = 1};

	memset(f, 0, sizeof(*f));
	fuzz_check(hca_open(&f->h, &o) == 0);
	f->ram_fd = memfd_create("ram", MFD_CLOEXEC);
	fuzz_check(f->ram_fd >= 0 && ftruncate(f->ram_fd, FUZZ_RAM) == 0);
	f->ram = mmap(NULL, FUZZ_RAM, PROT_READ | PROT_WRITE, MAP_SHARED, f->ram_fd, 0);
	fuzz_check(f->ram != MAP_FAILED);
	fuzz_check(guest_map(&f->h.guest, FUZZ_ADDR, FUZZ_RAM, f->ram_fd, 0, true) == 0);
	hca_config_write(&f->h, 4, (const uint8_t[2]){6, 0}, 2); /* bus master */
	fuzz_hca_attach(f);
}

static inline void
fuzz_hca_close(struct fuzz_hca *f)
{
	uint32_t i;

	hca_close(&f->h);
	for (i = 0; i < GUEST_WINDOW_LISTS; i++)
		fuzz_check(f->h.guest.windows[i] == NULL);
	fuzz_check(f->h.guest.n_maps == 0 && f->h.guest.runs == 0 && f->h.guest.pages == 0 &&
		   f->h.guest.bytes == 0);
	munmap(f->ram, FUZZ_RAM);
	close(f->ram_fd);
	close(f->client);
}

#endif
