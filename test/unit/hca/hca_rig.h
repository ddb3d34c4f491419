/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A virtual machine for bb_hca without QEMU: a client of vfio-user on a socket pair, RAM in a
 * memfd, eventfds, and a driver that posts commands. The front is a fake: it records its calls.
 */
#ifndef HCA_RIG_H
#define HCA_RIG_H

#include "bb_dev.h"
#include "bb_prm_hca.h"
#include "bb_test.h"
#include "fw.h"
#include "hca_pci.h"

/* Guest-physical layout. */
#define RAM_ADDR  UINT64_C(0x100000)
#define RAM_SIZE  (8u << 20)
#define CMDQ_ADDR RAM_ADDR
#define IN_ADDR   (RAM_ADDR + 0x10000) /* mailbox blocks */
#define OUT_ADDR  (RAM_ADDR + 0x40000)
#define EQ_ADDR   (RAM_ADDR + 0x80000)
#define FREE_ADDR (RAM_ADDR + 0x100000)
#define BOX_STEP  1024u

#define RIG_UAR 0x40u

struct rig {
	struct hca h;
	int fd; /* the client's end */
	int ram_fd;
	uint8_t *ram;
	uint16_t next_id;
	uint8_t reply[VFU_MAX_MSG]; /* body of the last reply */
	uint32_t reply_len;
	uint8_t token;
	int event_fd[4]; /* of vectors 0 to 3, -1 before rig_irqs() */
};

/* Calls of the fake front. */
struct fake_bell {
	uint32_t uar, off, len;
	uint8_t data[256];
};
extern struct fake_front {
	unsigned int opens, resets, commands, bells, polls;
	bool stopped;
	const struct front_host *host;
	int shared_fd;  /* file of front_share_doorbells(), -1 before its call */
	uint8_t in[64]; /* start of the last command */
	uint32_t inlen;
	uint8_t status; /* status of the next commands */
	bool unknown;   /* opcodes are not the front's */
	/* Calls of front_set_address(), the arguments of the last one, and the value to return. */
	unsigned int addresses, address_index;
	bool address_set;
	struct bb_gid address;
	uint8_t mac[6];
	int address_ret;
	int poll_ms;
	uint32_t context_pages;
	struct fake_bell bell[8];
	uint8_t dm[64]; /* device memory at the start of its range of BAR 0 */
} fake_front;

/* Opens the device, connects, maps RAM. */
int rig_setup(void **state);
/* The same without VERSION and RAM. */
int rig_setup_bare(void **state);
int rig_teardown(void **state);
/* The same as rig_setup_bare(), with a device of the caller's. Returns 0 or -1. */
int rig_open(struct rig *r, const char *device);
void rig_close(struct rig *r);
/* Closes the client's connection, and connects another client. */
void rig_next_client(struct rig *r);

/*
 * Sends a message and lets the server execute it. Returns the error of the reply, 0 if it has none,
 * -1 if there was no reply, -2 if the server ended the connection.
 */
int rig_call(struct rig *r, uint16_t cmd, const void *body, uint32_t len, const int *fds,
	     unsigned int n_fds);
/* Sends bytes as they are, and lets the server receive. Returns vfu_receive()'s value. */
int rig_raw(struct rig *r, const void *bytes, uint32_t len);
int rig_version(struct rig *r);
int rig_map(struct rig *r, uint64_t addr, uint64_t size, uint64_t offset);
int rig_unmap(struct rig *r, uint64_t addr, uint64_t size);
/* Gives eventfds to vectors 0 to 3. */
void rig_irqs(struct rig *r);
/* Number of interrupts of a vector since the last call. */
uint64_t rig_raised(struct rig *r, unsigned int vector);

uint32_t rig_read32(struct rig *r, uint32_t region, uint64_t off); /* little endian */
void rig_write32(struct rig *r, uint32_t region, uint64_t off, uint32_t v);
/* Stores up to 256 bytes to BAR 0 as they are. */
void rig_store(struct rig *r, uint64_t off, const void *data, uint32_t len);
uint32_t rig_reg(struct rig *r, uint32_t off); /* BAR 0, big endian */
void rig_set_reg(struct rig *r, uint32_t off, uint32_t v);

uint8_t *rig_ram(struct rig *r, uint64_t addr);

/* Makes the function a bus master. */
void rig_master(struct rig *r);
/* Makes the function a bus master, and gives the device the command queue. */
void rig_start(struct rig *r);
/* Brings the function up to INIT_HCA. */
void rig_init_hca(struct rig *r);

/*
 * Fills in entry 0 of the command queue and its mailboxes with @in. The test may then change them,
 * and calls rig_sign() and rig_ring().
 */
uint8_t *rig_command(struct rig *r, const void *in, uint32_t inlen, uint32_t outlen);
void rig_sign(uint8_t *entry);
/* Rings the doorbell of entry 0. Returns the delivery status, -1 if the device did not answer. */
int rig_ring(struct rig *r);
/* Copies the output of entry 0. */
void rig_output(struct rig *r, void *out, uint32_t outlen);
/* All of these. Returns the command's status; delivery must succeed. */
int rig_exec(struct rig *r, const void *in, uint32_t inlen, void *out, uint32_t outlen);
/* A command of 16 bytes each way: opcode, op_mod and the dwords at bytes 8 and 12. */
int rig_short(struct rig *r, uint16_t op, uint16_t op_mod, uint32_t dw8, uint32_t dw12,
	      uint8_t out[16]);
/* Creates an EQ of 2^@log_size entries. Returns its number. */
uint32_t rig_eq(struct rig *r, unsigned int log_size, uint32_t vector, uint64_t mask,
		uint64_t addr);

#endif
