/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The front of the software ConnectX: executes the commands of a kernel's driver, for the kernel
 * and for its users.
 *
 * A command names its user by the uid in its mailbox. Uid 0 is the kernel, which may use each
 * object. Uid 0xffff owns objects that all users share. CREATE_UCTX makes other uids; each uses its
 * own objects and the shared objects. The front keeps a context of the device for each uid, and a
 * handle for each object. The device executes the mailboxes as they are.
 *
 * Mailboxes name memory by lists of guest pages. The program that hosts the guest gives functions
 * to the front that make the pages accessible.
 *
 * Thread rule: one thread at a time calls the functions of a front and gets its callbacks.
 */
#ifndef FRONT_H
#define FRONT_H

#include <stdbool.h>
#include <stdint.h>

struct front;
struct mlx5_ctx;
struct bb_gid;

/*
 * Numbers of register pages (UARs): FRONT_UAR_FIRST to FRONT_UAR_END - 1. A number is also the
 * index of a 4 KiB page of the BAR.
 */
#define FRONT_UAR_FIRST 0x40u
#define FRONT_UAR_END   0x2000u
/* First register page that front_share_doorbells() shares. */
#define FRONT_UAR_SHARED 0x1000u

/* Place of device memory in the BAR: 4 KiB pages FRONT_DM_FIRST to FRONT_DM_END - 1. */
#define FRONT_DM_FIRST 0x2000u
#define FRONT_DM_END   0x3000u

/*
 * Functions of the program that hosts the guest: access to the guest's memory, and to its event
 * queues.
 */
struct front_host {
	void *arg; /* first argument of each function */
	/*
	 * Maps @n guest pages of 2^@log_sz bytes, at the guest addresses @pa, as one range of this
	 * process. Returns NULL if a page is not RAM, or if mappings ran out. The range stays
	 * valid until unwindow(), even if the guest's memory map changes.
	 */
	void *(*window)(void *arg, const uint64_t *pa, uint32_t n, unsigned int log_sz);
	void (*unwindow)(void *arg, void *window, uint32_t n, unsigned int log_sz);
	/*
	 * Returns the memory at guest address @pa, NULL if the @len bytes are not all RAM, or, with
	 * @write, read-only. The front uses the pointer before it returns to the program.
	 */
	void *(*at)(void *arg, uint64_t pa, uint64_t len, bool write);
	/*
	 * Writes an entry to event queue @eqn. Copies @data, up to 28 bytes, to the entry from byte
	 * 32 on.
	 */
	void (*eqe)(void *arg, uint32_t eqn, uint8_t type, uint8_t sub, const void *data,
		    unsigned int len);
	/* Writes an entry to the event queue that has @type in its mask. */
	void (*event)(void *arg, uint8_t type, uint8_t sub, const void *data, unsigned int len);
	/*
	 * Returns true if that queue has room for an entry, or if no queue has @type. NULL: there
	 * is always room.
	 */
	bool (*room)(void *arg, uint8_t type);
	/*
	 * The device failed and executes nothing more. The program must report it to the guest's
	 * driver. front_reset() then makes the device usable again.
	 */
	void (*fatal)(void *arg);
};

/*
 * Opens a device, such as "soft0" or "soft0,link=ib", for a guest. The device runs only in
 * front_poll() and front_doorbell() (progress=inline). @host must stay valid until front_close().
 * Returns 0 or a negative errno (logged).
 */
int front_open(const char *device_and_opts, const struct front_host *host, struct front **f);
void front_close(struct front *f);
/*
 * Adds what the netdev of a guest needs to the device's port: SQs, RQs and flow tables, which send
 * and receive Ethernet frames. The frames of a device with the option port= pass through that port,
 * and the guest sets the port's addresses. All other ports of this process for which
 * front_ethernet() was called share one link. Call it once, after front_open() of a device with an
 * Ethernet port. Returns 0, -ENOMEM, or -EINVAL: the device's options set addresses (logged).
 */
int front_ethernet(struct front *f);
/*
 * Gets the MAC of the port= of the device and the bytes of its longest frame, without the CRC.
 * Returns false if the frames stay in the process.
 */
bool front_ethernet_port(struct front *f, uint8_t mac[6], uint32_t *frame);

/* Counters of the frames of an Ethernet port. Drops are those of received frames. */
struct front_frames {
	uint64_t tx_frames, tx_bytes, rx_frames, rx_bytes;
	uint64_t dropped_steering; /* no flow table entry matched, or the entry drops frames */
	uint64_t dropped_no_wqe;
	uint64_t dropped_too_long;
	uint64_t dropped_error; /* the RQ or its CQ was in error, or the port was stopped */
};
/* Returns the counters, NULL without front_ethernet(). Valid until front_close(). */
const struct front_frames *front_frames(const struct front *f);
/*
 * Stops or starts the device: the guest must not be accessed while its PCI function may not use
 * DMA, or is in a fatal state. While the device is stopped, doorbells wait until it is started, no
 * queue runs, and received frames are dropped. Peers in other processes get no answers. The caller
 * must make the guest's memory inaccessible for peers in this process. A new front is not stopped.
 */
void front_stop(struct front *f, bool stop);

/*
 * Limits of a port with front_ethernet(), which the program reports to the guest: log2 of the
 * maximum number of objects.
 */
#define FRONT_LOG_MAX_ETH_QUEUES 10u /* of each kind: SQ, RQ, TIS, TIR, RQT */
#define FRONT_LOG_MAX_TABLES     8u
/*
 * Destroys all objects and users, as a function-level reset and TEARDOWN_HCA do. Reopens a device
 * that has failed. If it cannot be reopened (logged), each command gets an error.
 */
void front_reset(struct front *f);

/*
 * Executes a command. @in must not be memory that the guest can change. Returns false if the opcode
 * is unknown, or @in is shorter than 16 bytes. Otherwise @out has the status and the syndrome.
 */
bool front_command(struct front *f, const void *in, uint32_t inlen, void *out, uint32_t outlen);

/*
 * Executes a store of the guest: @len bytes at offset @off of register page @uar. Call it in the
 * order of the stores. A BlueFlame copy of a WQE must be one call with whole blocks of 64 bytes.
 * Ignores a store to a page that no user has, and a store that is not a doorbell. The program that
 * hosts the guest must handle the registers of event queues (0x40 to 0x4f) itself.
 */
void front_doorbell(struct front *f, uint32_t uar, uint32_t off, const void *data, uint32_t len);

/*
 * Shares the register pages of users with the guest: pages FRONT_UAR_SHARED to FRONT_UAR_END - 1.
 * The pages of uid 0, the kernel, get numbers below. The guest then stores to shared pages without
 * a call of front_doorbell(), and front_poll() finds the stores. The device reads the doorbell
 * records, so the guest may store any value to any shared page at any time. The device reads the
 * registers 0x800 and 0xa00 of a shared page and its arm register, and executes no BlueFlame
 * copies: it reads each WQE from memory. Call it after front_open() or front_reset(), before the
 * next command. Each call makes a new file, so that a monitor that has mapped the last file cannot
 * access the pages of the next guest. Returns the descriptor of the file, which stays valid until
 * the next call or front_close(), or a negative errno (logged); -EBUSY: a register page is
 * allocated. Register page N begins at byte N * 4096 of the file, which no process can resize.
 */
int front_share_doorbells(struct front *f);
/*
 * Returns how often front_poll() has found stores in a shared register page that a CQ or QP uses.
 * Stores to one page between two polls count once. Any thread may call it.
 */
uint64_t front_shared_stores(const struct front *f);

/*
 * Returns the process address of @len bytes of device memory at offset @off of the BAR. Returns
 * NULL if they are not all in one allocation. The pointer is valid until the next command.
 */
uint8_t *front_dm(struct front *f, uint64_t off, uint32_t len);

/* Number of entries of the GID table of an Ethernet port. */
#define FRONT_ADDRESSES 16u

/*
 * Sets entry @index of the GID table of an Ethernet port, and the MAC that goes with it. @gid NULL:
 * empties the entry. The table is empty after front_open() and front_reset(). Returns 0; -EINVAL:
 * no such entry; -EOPNOTSUPP: the options of the device set its addresses.
 */
int front_set_address(struct front *f, uint32_t index, const struct bb_gid *gid,
		      const uint8_t mac[6]);

/*
 * Runs the device and delivers events. Returns the milliseconds until the program must call
 * again: 0 if there is work, -1 if nothing is pending until the next command or doorbell.
 */
int front_poll(struct front *f);
/* Returns true if QPs have work for the next front_poll(). Devices may give work to each other. */
bool front_left(const struct front *f);

/*
 * Returns the number of 4 KiB pages of context memory that a ConnectX takes from its driver for the
 * objects that exist.
 */
uint32_t front_context_pages(const struct front *f);

/*
 * Gets the capabilities of @type (enum bb_prm_cap), current or maximum, as far as they concern
 * objects, memory and the port. The program that hosts the guest must add those of event queues and
 * of the PCI function. Returns 0, or -ENOENT if the device lacks @type; @out is then all 0.
 */
int front_caps(struct front *f, uint16_t type, bool current, uint8_t out[256]);

/*
 * Returns the kernel's context, for port_query() and other queries of mlx5_cmd.h. Returns NULL if
 * the device failed and could not be opened again. A reset may replace the context.
 */
struct mlx5_ctx *front_ctx(struct front *f);

#endif
