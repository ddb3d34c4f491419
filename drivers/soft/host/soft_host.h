/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Contexts for a kernel's driver, which drivers/front opens.
 *
 * Most contexts of the command interface belong to a process that uses DEVX. For them the software
 * device itself makes the kernel's checks.
 *
 * A context with a host (struct soft_host) belongs to the kernel of a virtual machine, which has
 * made these checks. So the device executes its mailboxes as firmware does. It uses the uid that
 * the kernel has filled in, and accepts page lists, which name memory of the virtual machine.
 */
#ifndef SOFT_HOST_H
#define SOFT_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "mlx5_cmd.h"

/*
 * Address of device memory in BAR 0 of a function: the capability memic_bar_start_addr. ALLOC_MEMIC
 * and keys over device memory name it by such addresses.
 */
#define SOFT_DM_BAR UINT64_C(0x2000000)

/*
 * Memory of a guest. Contexts with the same host may use one another's objects, as enum soft_role
 * says. The device calls the functions from several threads: under soft_dev.lock from its control
 * path, and without it when it executes a request that names guest addresses.
 */
struct soft_host {
	void *arg; /* first argument of each function */
	/*
	 * Maps @n pages of 2^@log_sz bytes at the guest addresses @pa as one range of the process,
	 * readable and writable. Returns NULL if a page is not memory, or if mappings ran out.
	 */
	void *(*window)(void *arg, const uint64_t *pa, uint32_t n, unsigned int log_sz);
	void (*unwindow)(void *arg, void *window, uint32_t n, unsigned int log_sz);
	/*
	 * Register pages of contexts with SOFT_ROLE_USER, which the guest shares, so that it stores
	 * to them without a call of this process. Their numbers are uar_first and above, from the
	 * start of uar_pages on. The numbers of all other pages are below. If uar_first is 0, no
	 * page is shared. uar_pages must not change while a page is allocated.
	 */
	uint32_t uar_first;
	uint8_t *uar_pages;
};

/* Objects of other contexts with the same host that a context may use, beside its own objects. */
enum soft_role {
	SOFT_ROLE_USER,   /* may use objects of contexts with SOFT_ROLE_SHARED */
	SOFT_ROLE_KERNEL, /* may use objects of every context (uid 0) */
	/*
	 * A context with this role (uid 0xffff) may use no objects of other contexts. But every
	 * context with the same host may use its objects.
	 */
	SOFT_ROLE_SHARED,
};

extern const struct mlx5_cmd_if soft_cmd_if;

/*
 * Opens a context as soft_cmd_if.open() does, with a host, which must outlive the context. Returns
 * 0 or a negative errno (logged).
 */
int soft_open_host(const char *name, const char *args, const struct soft_host *host,
		   enum soft_role role, struct mlx5_ctx **ctx);

/*
 * Returns the process address of @len bytes of device memory at @addr, an address in BAR 0. Returns
 * NULL if they are not all in one allocation. The pointer is valid until the allocation is freed.
 */
uint8_t *soft_dm_at(struct mlx5_ctx *ctx, uint64_t addr, uint64_t len);

/*
 * Returns true if the device has work that the next call of the progress function of a UAR page
 * executes. Does not count QPs that wait for room in a link. Call it on the thread that polls the
 * page.
 */
bool soft_progress_left(const struct mlx5_uar *uar);

/* Bits of the type of a page fault (Linux's MLX5_PAGE_FAULT_RESUME_*). */
#define SOFT_PF_REQUESTER 1u
#define SOFT_PF_WRITE     2u
#define SOFT_PF_RDMA      4u
/* A page of a key is missing. Without SOFT_PF_RDMA the fault is that of a WQE. */
struct soft_page_fault {
	uint8_t type;
	uint32_t token;  /* 24 bits that name the page fault; PAGE_FAULT_RESUME repeats them */
	uint16_t packet; /* bytes of the packet that needs the page */
	/* Valid for a WQE: the QP or RMP that has the WQE, and the index of the WQE. */
	uint32_t wq;
	uint16_t wqe_index;
	/* Valid with SOFT_PF_RDMA: the key, address and length that the peer's request names. */
	uint32_t rkey, len;
	uint64_t va;
};
/*
 * Fetches the next page fault, for an event to the guest's kernel. The kernel answers with
 * PAGE_FAULT_RESUME. Returns false if there is none.
 */
bool soft_page_fault_get(struct mlx5_ctx *ctx, struct soft_page_fault *fault);

/*
 * Writes a CQE of a queue that the program runs outside the device. @cqe: 64 bytes; the device adds
 * the owner bit and, unless it is an error CQE, the timestamp. Call it on the thread that polls the
 * UAR page of the CQ. Returns 0; -ENOENT: there is no such CQ; -ENOSPC: the CQ has overrun, now or
 * earlier.
 */
int soft_cqe_host(struct mlx5_ctx *ctx, uint32_t cqn, const uint8_t cqe[64]);

/*
 * Sets entry @index of the port's GID table, and the MAC of the port, as SET_ROCE_ADDRESS does.
 * @gid NULL: empties the entry; @mac is then ignored. Returns 0; -EINVAL: no such entry;
 * -EADDRINUSE: another device has the GID; -EOPNOTSUPP: the device has link=ib, port= or shm=.
 */
int soft_roce_address_set(struct mlx5_ctx *ctx, uint32_t index, const struct bb_gid *gid,
			  const uint8_t mac[6]);

/*
 * Functions for a device with port= whose port a guest's kernel uses as a netdev, too. That kernel
 * sets the addresses, resolves MACs, and gets the frames that are no RoCE datagrams for its
 * addresses. Call the functions on the thread that runs the device. Without soft_frames_open() they
 * do nothing.
 */

/*
 * Lets the guest's kernel of @ctx use the port, until the last context of the device is closed.
 * Returns 0; -ENODEV: the device has no port=; -EINVAL: the options set addresses (logged); -EBUSY:
 * a guest's kernel already uses the port; -ENOMEM.
 */
int soft_frames_open(struct mlx5_ctx *ctx);

struct soft_frames_port {
	uint8_t mac[6];
	uint32_t frame; /* bytes of the longest frame with one VLAN tag, without the CRC; 0: no port
			 */
};
void soft_frames_port(struct mlx5_ctx *ctx, struct soft_frames_port *port);
/*
 * As soft_roce_address_set(), with port=. Packets from the GID have the source MAC @mac, and
 * packets to the GID must have that destination MAC. -EOPNOTSUPP: soft_frames_open() was not
 * called.
 */
int soft_frames_address_set(struct mlx5_ctx *ctx, uint32_t index, const struct bb_gid *gid,
			    const uint8_t mac[6]);

/*
 * Receives frames, at most one burst, unless QPs of the device poll the port. @alone: the caller
 * does not run the QPs. Returns how many frames the port has received since the last call, RoCE
 * datagrams included.
 */
uint32_t soft_frames_poll(struct mlx5_ctx *ctx, bool alone);
/*
 * Copies the next received frame to @to, for the guest's kernel. Returns its length in bytes, 14 or
 * more; 0 if there is no frame.
 */
uint32_t soft_frames_get(struct mlx5_ctx *ctx, uint8_t *to, uint32_t size);
/*
 * Returns false if a frame to send must wait, because the port has no room. Returns true, although
 * the frame will be dropped, once the port has had no room for a while.
 */
bool soft_frames_ready(struct mlx5_ctx *ctx);
/* Queues a copy of a frame, without the CRC. Drops it if there is no room or the link is down. */
void soft_frames_send(struct mlx5_ctx *ctx, const uint8_t *frame, uint32_t len);
void soft_frames_flush(struct mlx5_ctx *ctx);

#endif
