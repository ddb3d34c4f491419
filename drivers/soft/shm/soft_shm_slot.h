/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Devices that share their addresses, as the processes of a host share a card (option host).
 *
 * Each such device has a slot of the addresses: a range of QPNs, and the prefix of the IDs of its
 * connections (soft_hooks.h). So a peer finds the device of a packet by the packet's QPN.
 *
 * The table of slots and services is the kernel's table of abstract socket names. An entry is the
 * name of a socket, and its owner is the process that has the socket. The kernel gives a name to
 * one process only, and takes it back when the process ends, even by SIGKILL. No process can
 * change the entry of another one. Names begin with the fabric and a GID (soft_shm_address()):
 *
 *	/SLOT              listening socket of the device in a slot. A device without the option
 *	                   host listens at the name without a suffix, and has all QPNs
 *	/n/SLOT            mark: the slot is in use; 0 for a device without the option host
 *	/n/SLOT/HOST       mark: the slot belongs to the host of this name
 *	/p/SERVICE         a process of the host has this service ID of rdma_cm: a port
 *	/p/SERVICE/SLOT    mark: the process is in this slot. Only the process that has /p/SERVICE
 *	                   makes this mark, so that no other process gets the REQs meanwhile
 *	/p/SERVICE/any     mark: the process has the port at all addresses of the host
 *
 * The names of a multicast group begin with its GID. There SLOT is the number of a member, from 1
 * on (soft_shm_group.c).
 *
 * A mark is a datagram socket that is never read. connect() on a datagram socket finds whether a
 * name exists, without an effect on its owner. A user of the host that is not trusted can take
 * names, as with devices that do not share addresses; soft_shm_user() checks each connection.
 */
#ifndef SOFT_SHM_SLOT_H
#define SOFT_SHM_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "soft.h"
#include "soft_hooks.h"

struct soft_shm;

/* Slots (ranges of QPNs) 1 to SOFT_SHM_SLOTS - 1 are for devices that share their addresses. */
#define SOFT_SHM_SLOTS (1u << (SOFT_LOG_MAX_QP - SOFT_LOG_QPNS))
/* Slot of a device that does not share its addresses: it has all QPNs. */
#define SOFT_SHM_ALL 0u
/* Stands for any slot (range of QPNs) that is in use. */
#define SOFT_SHM_ANY UINT32_MAX
/* Returned instead of a slot if no process can get the packet now: the link drops it. */
#define SOFT_SHM_NO_SLOT (UINT32_MAX - 1)

/* Returns the slot that has a QPN if its address is shared. SOFT_SHM_ANY for a QPN of no slot. */
static inline uint32_t
soft_shm_slot_of(uint32_t qpn)
{
	const uint32_t slot = qpn >> SOFT_LOG_QPNS;

	return slot != SOFT_SHM_ALL && slot < SOFT_SHM_SLOTS ? slot : SOFT_SHM_ANY;
}

/*
 * Takes a free slot of the device's addresses, or all of the addresses without the option host.
 * Returns 0; -EADDRINUSE if a device without the option, or another host, has an address, or no
 * slot is free; or another negative errno. Errors are logged.
 */
int soft_shm_slot_take(struct soft_shm *shm);
void soft_shm_slot_give(struct soft_shm *shm);

/* Lock and unlock the table of the process's service IDs, around fork(). */
void soft_shm_services_lock(void);
void soft_shm_services_unlock(void);
/* Releases all service IDs in a child of fork(), and initializes the lock again. */
void soft_shm_services_forget(void);

/* Returns a datagram socket for soft_shm_slot_marked(), or a negative errno. */
int soft_shm_probe(void);
/* Returns true if the slot of an address is in use. @probe: from soft_shm_probe(). */
bool soft_shm_slot_marked(const struct soft_shm *shm, int probe, const uint8_t gid[16],
			  uint32_t slot);
/*
 * Marks a slot of an address as used. Returns the descriptor of the mark, -EADDRINUSE if another
 * device has the slot, or another negative errno.
 */
int soft_shm_slot_mark(const struct soft_shm *shm, const uint8_t gid[16], uint32_t slot);
/* Returns true if a process has taken the slot (range of QPNs) of an address. */
bool soft_shm_slot_used(const struct soft_shm *shm, const uint8_t gid[16], uint32_t slot);

/*
 * Returns the slot to which a MAD for QPN 1 of an address goes. @mad: first @len bytes of the MAD.
 * A request goes to the process that listens at its service ID, other messages to the process whose
 * ID they name. Returns SOFT_SHM_ANY if no process does. Processes of the host then may reject it.
 * Returns SOFT_SHM_NO_SLOT for a request to a service ID that a process is just taking or giving
 * back: the sender repeats the request.
 */
uint32_t soft_shm_mad_slot(const struct soft_shm *shm, const uint8_t gid[16], const uint8_t *mad,
			   uint32_t len);
/* Bytes of a MAD that soft_shm_mad_slot() reads. */
#define SOFT_SHM_MAD_HEAD 40u

#endif
