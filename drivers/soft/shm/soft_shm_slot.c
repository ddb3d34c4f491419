/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bb_bytes.h"
#include "soft_ctl.h"
#include "soft_hooks.h"
#include "soft_shm.h"
#include "soft_shm_slot.h"

/* Time to wait for a process that ends: the kernel takes back its names one after another, us. */
#define LEAVE_US    1000
#define LEAVE_TRIES 50

/* ---- Names of sockets */

static socklen_t __attribute__((format(printf, 4, 5)))
name_of(const struct soft_shm *shm, const uint8_t gid[16], struct sockaddr_un *sun, const char *fmt,
	...)
{
	char suffix[SOFT_SHM_SUFFIX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(suffix, sizeof(suffix), fmt, ap);
	va_end(ap);
	return soft_shm_address(shm->dev->opts.port.shm, gid, suffix, sun);
}

int
soft_shm_probe(void)
{
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/*
 * Makes a mark: a datagram socket with the given abstract name. Returns its descriptor, or a
 * negative errno.
 */
static int
mark(const struct sockaddr_un *sun, socklen_t len)
{
	int fd = soft_shm_probe(), ret;

	if (fd < 0 || bind(fd, (const struct sockaddr *)sun, len) == 0)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

/*
 * Returns true if the name exists, so that its mark is set. @probe: any datagram socket of this
 * process.
 */
static bool
marked(int probe, const struct sockaddr_un *sun, socklen_t len)
{
	return connect(probe, (const struct sockaddr *)sun, len) == 0;
}

bool
soft_shm_slot_marked(const struct soft_shm *shm, int probe, const uint8_t gid[16], uint32_t slot)
{
	struct sockaddr_un sun;
	const socklen_t len = name_of(shm, gid, &sun, "/n/%u", slot);

	return marked(probe, &sun, len);
}

bool
soft_shm_slot_used(const struct soft_shm *shm, const uint8_t gid[16], uint32_t slot)
{
	const int probe = soft_shm_probe();
	bool used;

	if (probe < 0)
		return false;
	used = soft_shm_slot_marked(shm, probe, gid, slot);
	close(probe);
	return used;
}

int
soft_shm_slot_mark(const struct soft_shm *shm, const uint8_t gid[16], uint32_t slot)
{
	struct sockaddr_un sun;
	const socklen_t len = name_of(shm, gid, &sun, "/n/%u", slot);

	return mark(&sun, len);
}

/* ---- The slot (range of QPNs) that the device takes */

/*
 * Returns a hash of the host's name (FNV-1a), because a name of 31 letters does not fit a socket
 * address.
 */
static uint64_t
host_hash(const char *host)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (; *host != '\0'; host++)
		hash = (hash ^ (uint8_t)*host) * UINT64_C(1099511628211);
	return hash;
}

static socklen_t
host_name(const struct soft_shm *shm, const uint8_t gid[16], uint32_t slot, struct sockaddr_un *sun)
{
	return name_of(shm, gid, sun, "/n/%u/%016" PRIx64, slot,
		       host_hash(shm->dev->opts.port.host));
}

/* Closes the marks of the device's slot, the newest first. */
static void
drop_marks(struct soft_shm *shm)
{
	while (shm->n_marks != 0)
		close(shm->mark[--shm->n_marks]);
}

static int
add_mark(struct soft_shm *shm, const struct sockaddr_un *sun, socklen_t len)
{
	const int fd = mark(sun, len);

	if (fd < 0)
		return fd;
	shm->mark[shm->n_marks++] = fd;
	return 0;
}

/*
 * Takes a slot at all addresses of the device. Makes the mark with the host's name first, so that
 * every slot in use has that mark. Returns 0 or a negative errno: -EBUSY if a process of the host
 * has the slot, -EADDRINUSE if a process of another host has it.
 */
static int
take(struct soft_shm *shm, uint32_t slot)
{
	struct sockaddr_un sun;
	uint8_t gid[16];
	socklen_t len;
	uint32_t i;
	int ret = 0;

	for (i = 0; ret == 0 && soft_shm_gid(&shm->dev->opts.port, i, gid); i++) {
		if (slot != SOFT_SHM_ALL) {
			len = host_name(shm, gid, slot, &sun);
			ret = add_mark(shm, &sun, len);
			if (ret == -EADDRINUSE)
				ret = -EBUSY;
		}
		if (ret == 0) {
			len = name_of(shm, gid, &sun, "/n/%u", slot);
			ret = add_mark(shm, &sun, len);
		}
	}
	if (ret != 0)
		drop_marks(shm);
	return ret;
}

/* Returns true if a slot (range of QPNs) of an address is in use, but not by this host. */
static bool
foreign(const struct soft_shm *shm, int probe, const uint8_t gid[16], uint32_t slot)
{
	struct sockaddr_un sun;
	socklen_t len;
	int i;

	for (i = 0; i < LEAVE_TRIES && soft_shm_slot_marked(shm, probe, gid, slot); i++) {
		len = host_name(shm, gid, slot, &sun);
		if (slot != SOFT_SHM_ALL && shm->slot != SOFT_SHM_ALL && marked(probe, &sun, len))
			return false;
		usleep(LEAVE_US);
	}
	return i == LEAVE_TRIES;
}

/*
 * Checks that no device outside of this host has one of the addresses. Runs after take(), so that
 * of two devices that start at once at least one finds the other. Returns 0 or a negative errno.
 */
static int
check_others(struct soft_shm *shm)
{
	const int probe = soft_shm_probe();
	uint8_t gid[16];
	uint32_t i, slot;
	int ret = probe < 0 ? probe : 0;

	for (i = 0; ret == 0 && soft_shm_gid(&shm->dev->opts.port, i, gid); i++)
		for (slot = 0; ret == 0 && slot < SOFT_SHM_SLOTS; slot++)
			if (slot != shm->slot && foreign(shm, probe, gid, slot))
				ret = -EADDRINUSE;
	if (probe >= 0)
		close(probe);
	return ret;
}

int
soft_shm_slot_take(struct soft_shm *shm)
{
	const struct soft_port_opts *o = &shm->dev->opts.port;
	int ret = -EBUSY;

	shm->slot = SOFT_SHM_ALL;
	if (o->host[0] == '\0') {
		ret = take(shm, SOFT_SHM_ALL);
	} else {
		while (ret == -EBUSY && ++shm->slot < SOFT_SHM_SLOTS)
			ret = take(shm, shm->slot);
	}
	if (ret == 0)
		ret = check_others(shm);
	if (ret == 0)
		return 0;
	drop_marks(shm);
	if (ret == -EBUSY) {
		SOFT_LOG(ERR,
			 "%s: host=%s: %u processes already share the addresses, which is the "
			 "limit: end one of them",
			 shm->dev->name, o->host, SOFT_SHM_SLOTS - 1);
		return -EADDRINUSE;
	}
	if (ret == -EADDRINUSE)
		SOFT_LOG(
			ERR,
			"%s: shm=%s: a device %s already has an address of this device: give every "
			"host of a fabric its own ip=, and every process of a host the same host=",
			shm->dev->name, o->shm,
			o->host[0] != '\0' ? "without host=, or with another host="
					   : "with the option host=");
	else
		SOFT_LOG(ERR, "%s: shm=%s: cannot create a socket: %s", shm->dev->name, o->shm,
			 strerror(-ret));
	return ret;
}

void
soft_shm_slot_give(struct soft_shm *shm)
{
	drop_marks(shm);
}

/* ---- Destinations of MADs */

/*
 * Byte offsets in a MAD (Linux: struct ib_mad_hdr of rdma/ib_mad.h, and CM_REQ_SERVICE_ID,
 * CM_SIDR_REQ_SERVICEID, CM_REP_REMOTE_COMM_ID and so on of rdma/ibta_vol1_c12.h).
 */
#define MAD_CLASS     1
#define MAD_ATTR_ID   16
#define MAD_LOCAL_ID  24 /* in a SIDR_REP the ID of the requester */
#define MAD_REMOTE_ID 28
#define MAD_SERVICE   32

#define CLASS_CM 7
/* Linux: CM_REQ_ATTR_ID, CM_SIDR_REQ_ATTR_ID and CM_SIDR_REP_ATTR_ID of rdma/ib_cm.h. */
#define ATTR_REQ      0x10
#define ATTR_SIDR_REQ 0x17
#define ATTR_SIDR_REP 0x18

/*
 * Returns the slot of the process that has a service ID; SOFT_SHM_ANY if no process has it;
 * SOFT_SHM_NO_SLOT if that process has not marked its slot yet, or is giving the service ID back.
 */
static uint32_t
service_slot(const struct soft_shm *shm, const uint8_t gid[16], uint32_t service)
{
	const int probe = soft_shm_probe();
	uint32_t slot = SOFT_SHM_ANY, i;
	struct sockaddr_un sun;
	socklen_t len = name_of(shm, gid, &sun, "/p/%08x", service);

	if (probe < 0)
		return SOFT_SHM_ANY;
	if (marked(probe, &sun, len)) {
		slot = SOFT_SHM_NO_SLOT;
		for (i = 1; i < SOFT_SHM_SLOTS && slot == SOFT_SHM_NO_SLOT; i++) {
			len = name_of(shm, gid, &sun, "/p/%08x/%u", service, i);
			if (marked(probe, &sun, len))
				slot = i;
		}
	}
	close(probe);
	return slot;
}

uint32_t
soft_shm_mad_slot(const struct soft_shm *shm, const uint8_t gid[16], const uint8_t *mad,
		  uint32_t len)
{
	const struct soft_shm_tx *tx = soft_shm_find(shm, gid, SOFT_SHM_ANY);
	uint32_t attr, id;

	/* Calls no kernel for an address that was never resolved. */
	if (tx == NULL || tx->slot == SOFT_SHM_ALL)
		return SOFT_SHM_ANY;
	if (len < SOFT_SHM_MAD_HEAD || mad[MAD_CLASS] != CLASS_CM)
		return SOFT_SHM_ANY;
	attr = bb_get32(mad + MAD_ATTR_ID) >> 16;
	if (attr == ATTR_REQ || attr == ATTR_SIDR_REQ)
		return bb_get32(mad + MAD_SERVICE) != 0
			       ? SOFT_SHM_ANY
			       : service_slot(shm, gid, bb_get32(mad + MAD_SERVICE + 4));
	id = bb_get32(mad + (attr == ATTR_SIDR_REP ? MAD_LOCAL_ID : MAD_REMOTE_ID));
	id >>= 32 - SOFT_ID_PREFIX_BITS;
	return id != SOFT_SHM_ALL && id < SOFT_SHM_SLOTS ? id : SOFT_SHM_ANY;
}

/* ---- Service IDs of the process */

/* A service ID that this process has taken at addresses of its host. */
struct soft_service {
	LIST_ENTRY(soft_service) link;
	uint32_t n;
	int mark[];
};

/*
 * Service IDs of the process, so that a child of fork() can close its copies of their marks. The
 * lock is held while a mark is made or closed, so that the child knows all copies.
 */
static pthread_mutex_t services_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, soft_service) services = LIST_HEAD_INITIALIZER(services);

uint32_t
soft_id_prefix(const struct mlx5_ctx *ctx)
{
	const struct soft_dev *dev = ((const struct soft_ctx *)(const void *)ctx)->dev;

	return dev->shm != NULL ? dev->shm->slot : 0;
}

/* Returns the error if another process of the host has a service ID at an address. */
static int
taken(const struct soft_shm *shm, const uint8_t gid[16], uint32_t service)
{
	const int probe = soft_shm_probe();
	struct sockaddr_un sun;
	const socklen_t len = name_of(shm, gid, &sun, "/p/%08x/any", service);
	int ret = probe < 0 ? probe : marked(probe, &sun, len) ? -EADDRNOTAVAIL : -EADDRINUSE;

	if (probe >= 0)
		close(probe);
	return ret;
}

/* Makes a mark and adds it to the service ID @s. Returns 0 or a negative errno. */
static int
service_mark(struct soft_service *s, const struct sockaddr_un *sun, socklen_t len)
{
	const int fd = mark(sun, len);

	if (fd < 0)
		return fd;
	s->mark[s->n++] = fd;
	return 0;
}

/* Releases a service ID. Under services_lock. */
static void
give(struct soft_service *s)
{
	LIST_REMOVE(s, link);
	while (s->n != 0)
		close(s->mark[--s->n]);
	free(s);
}

int
soft_service_take(struct mlx5_ctx *ctx, const uint8_t (*gid)[16], uint32_t n, bool any,
		  uint32_t service_id, struct soft_service **out)
{
	const struct soft_shm *shm = ((const struct soft_ctx *)(const void *)ctx)->dev->shm;
	struct soft_service *s;
	struct sockaddr_un sun;
	socklen_t len;
	uint32_t i;
	int ret = 0;

	*out = NULL;
	if (shm == NULL || shm->slot == SOFT_SHM_ALL)
		return 0;
	s = calloc(1, sizeof(*s) + 3 * n * sizeof(s->mark[0]));
	if (s == NULL)
		return -ENOMEM;
	pthread_mutex_lock(&services_lock);
	LIST_INSERT_HEAD(&services, s, link);
	for (i = 0; i < n && ret == 0; i++) {
		/*
		 * The name of the service comes first: a process that does not get it must not mark
		 * its slot, because the REQs would go there.
		 */
		len = name_of(shm, gid[i], &sun, "/p/%08x", service_id);
		ret = service_mark(s, &sun, len);
		if (ret == -EADDRINUSE)
			ret = any ? -EADDRNOTAVAIL : taken(shm, gid[i], service_id);
		len = name_of(shm, gid[i], &sun, "/p/%08x/any", service_id);
		if (ret == 0 && any)
			ret = service_mark(s, &sun, len);
		len = name_of(shm, gid[i], &sun, "/p/%08x/%u", service_id, shm->slot);
		if (ret == 0)
			ret = service_mark(s, &sun, len);
	}
	if (ret == 0)
		*out = s;
	else
		give(s);
	pthread_mutex_unlock(&services_lock);
	return ret;
}

void
soft_service_give(struct soft_service *s)
{
	if (s == NULL)
		return;
	pthread_mutex_lock(&services_lock);
	give(s);
	pthread_mutex_unlock(&services_lock);
}

void
soft_shm_services_lock(void)
{
	pthread_mutex_lock(&services_lock);
}

void
soft_shm_services_unlock(void)
{
	pthread_mutex_unlock(&services_lock);
}

void
soft_shm_services_forget(void)
{
	struct soft_service *s;

	pthread_mutex_init(&services_lock, NULL);
	LIST_FOREACH(s, &services, link)
		while (s->n != 0)
			close(s->mark[--s->n]);
	LIST_INIT(&services);
}
