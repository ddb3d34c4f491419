/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * bb_hca: a ConnectX for a virtual machine.
 *
 * The monitor (QEMU, -device vfio-user-pci) connects to a socket. Its messages (vfu.h) access
 * configuration space (pci.c) and BAR 0 (bar.c): initialization segment, MSI-X table, and pages of
 * doorbell registers. A doorbell of the command queue (cmdq.c) executes a command. The firmware
 * (fw.h) executes the commands of the PCI function itself and of its event queues (eq.c).
 * drivers/front executes the commands of all other objects, and runs their queues on the software
 * device.
 *
 * The guest is not trusted. The program checks each length and address from the guest. If one is
 * wrong, the command fails with a status, the access is ignored, or the device goes to a fatal
 * state.
 *
 * Thread rule: one thread uses a struct hca.
 */
#ifndef HCA_H
#define HCA_H

#include <stdbool.h>
#include <stdint.h>

#include "front.h"
#include "guest.h"
#include "vfu.h"

#define HCA_PCI_COMMAND  0x04 /* offset of the command register in configuration space */
#define HCA_BAR0_SIZE    (64u << 20)
#define HCA_PAGE         4096u
#define HCA_N_MSIX       32u
#define HCA_EQS          64u /* EQ numbers are 1 to HCA_EQS - 1 */
#define HCA_LOG_EQ       22u /* log2 of the maximum number of entries of an EQ */
#define HCA_CAP_BYTES    256u
#define HCA_ROCE_ADDRESS 32u         /* bytes of a RoCE address in a mailbox */
#define HCA_MAX_BOX      (16u << 20) /* maximum bytes of a command's input or output */
#define HCA_MAX_PAGES    65536u      /* maximum number of pages lent to the firmware */

/*
 * Offsets in BAR 0: the MSI-X table and pending bits, which QEMU emulates, the first page of
 * doorbell registers, and device memory.
 */
#define HCA_MSIX_TABLE 0x2000u
#define HCA_MSIX_PBA   0x3000u
#define HCA_UAR_FIRST  0x10000u
#define HCA_DM_FIRST   (FRONT_DM_FIRST * HCA_PAGE)

/* Health syndromes (Linux drivers/net/ethernet/mellanox/mlx5/core/health.c). */
enum hca_health {
	HCA_HEALTH_OK = 0,
	HCA_HEALTH_FETCH_PCI = 0xa,
	HCA_HEALTH_HW = 0xb,
	HCA_HEALTH_EQ_OVERRUN = 0xc,
	HCA_HEALTH_EQ = 0xd,
};

/* Interface states of the initialization segment (Linux driver.h: mlx5 nic interface). */
enum hca_nic {
	HCA_NIC_FULL = 0,
	HCA_NIC_DISABLED = 1,
	HCA_NIC_RESET = 7,
};

struct hca_opts {
	const char *device; /* software device to open, such as "soft0" or "soft0,link=ib" */
	bool vf;            /* a virtual function */
	bool eth;           /* link layer Ethernet, not InfiniBand */
	bool shared;        /* the guest stores to the register pages of its users directly */
	uint64_t guid;
};

struct hca_eq {
	bool used, armed;
	uint8_t log_size, log_page;
	uint32_t vector, uar;
	uint32_t pi, ci;  /* producer index; consumer index that the guest reported last */
	uint64_t mask[4]; /* event types */
	uint64_t *pages;
	uint32_t n_pages;
};

/* A copy of a mailbox of the guest in the memory of this process. */
struct hca_box {
	uint8_t *data;
	uint32_t size; /* allocated bytes */
};

struct hca_cmdq {
	uint64_t addr;    /* guest address of the queue, 0 until the driver has written it */
	uint32_t high;    /* upper half of addr, as the driver has written it; takes effect when the
			     driver writes the lower half */
	uint32_t waiting; /* bit mask of the entries whose doorbells have come, and that must wait:
			     the function is not a bus master, or other entries took a turn */
	uint32_t spent;   /* bytes of input and output of the commands of this turn */
	struct hca_box in, out;
	uint64_t *blocks; /* guest addresses of the output's blocks */
	uint32_t max_blocks;
};

/* A copy of a WQE to a BlueFlame register, as far as its stores have arrived. */
struct hca_bf {
	uint32_t uar, reg; /* register page, offset of the register */
	uint32_t len;      /* bytes of the copy that have arrived; 0 if no copy is pending */
	uint64_t since;    /* time of the first store, in ns */
	uint8_t data[256];
};

struct hca_fw {
	bool enabled, initialized;
	uint32_t issi;
	uint64_t *pages; /* guest addresses of the pages that the driver has lent */
	uint32_t n_pages;
	bool page_request; /* the driver has not answered the last page request yet */
	uint32_t declined; /* number of pages that the firmware needed when the driver could not
			      give pages, 0 if it could */
	uint8_t caps[2][HCA_CAP_BYTES]; /* general capabilities: maximum, current */
	uint8_t nic_vport[HCA_CAP_BYTES];
	uint8_t roce[FRONT_ADDRESSES]
		    [HCA_ROCE_ADDRESS]; /* RoCE addresses, as the driver set them */
	uint32_t port_caps;             /* capability mask of the InfiniBand port */
};

/* Counters since the start of the program. Other threads may read them. */
struct hca_stats {
	uint64_t clients;        /* clients that connected */
	uint64_t commands;       /* commands executed, those with an error status included */
	uint64_t command_errors; /* commands with an error status, or that could not be delivered */
	uint64_t doorbells;      /* doorbells of queues that arrived as messages, without those
				    of event queues */
	uint64_t shared_stores;  /* as front_shared_stores() */
	uint64_t events;         /* entries written to event queues */
	uint64_t interrupts;     /* MSI-X vectors raised */
	uint64_t resets;         /* resets of the function, including those when a client
				    disconnects */
	uint64_t fatal_errors;
	uint64_t page_requests;     /* requests to the driver to give pages or to take pages back */
	uint64_t pages;             /* pages that the driver has lent to the firmware now */
	struct front_frames frames; /* of an Ethernet port */
};

struct hca {
	struct hca_opts o;
	struct guest guest;
	struct vfu vfu;
	struct front_host host;
	struct front *front;
	uint8_t config[HCA_PAGE];
	uint32_t nic_state;     /* enum hca_nic */
	enum hca_health health; /* if not HCA_HEALTH_OK, the device is in the fatal state until the
				   next reset */
	struct hca_cmdq cmdq;
	struct hca_eq eqs[HCA_EQS];
	struct hca_bf bf;
	struct hca_fw fw;
	struct hca_stats stats;
};

/* Adds 1 to *@counter. Only the thread that owns the struct hca may call it. */
static inline void
hca_count(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

/* state.c: the states in which the device stops. */
/*
 * Moves the device to the fatal state: the health buffer shows @why, the interface state is
 * HCA_NIC_DISABLED, and the device executes nothing until a reset. The driver's next write of a
 * command queue is such a reset.
 */
void hca_fatal(struct hca *h, enum hca_health why);
/*
 * Stops the device, and blocks the guest's memory, while the function is not a bus master or the
 * device is in the fatal state. Otherwise starts it again.
 */
void hca_update_dma(struct hca *h);
/* Returns true if the function is a bus master: it may access the guest's memory. */
bool hca_is_master(const struct hca *h);

/* eq.c: event queues. */
void hca_eq_post(struct hca *h, uint32_t eqn, uint8_t type, uint8_t sub, const void *data,
		 unsigned int len);
/* Posts an event to the EQ that has @type in its mask. Does nothing if no EQ has it. */
void hca_event(struct hca *h, uint8_t type, uint8_t sub, const void *data, unsigned int len);
/* Returns false if the EQ that has @type in its mask is full. */
bool hca_event_room(const struct hca *h, uint8_t type);
/* Returns the number of the EQ that has @type in its mask, 0 if there is none. */
uint32_t hca_event_eq(const struct hca *h, uint8_t type);
/*
 * Handles a doorbell of an EQ: @value has the consumer index and the EQ number. @arm: the driver
 * requests an interrupt.
 */
void hca_eq_doorbell(struct hca *h, uint32_t uar, uint32_t value, bool arm);
void hca_eq_free(struct hca_eq *eq);

#endif
