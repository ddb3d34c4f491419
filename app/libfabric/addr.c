/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Chooses the protocol that establishes connections, and the addresses of endpoints. With TCP they
 * are addresses of the host. With the messages of librdmacm (BB_CM_RDMA) they are addresses of the
 * device.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "fab.h"

#define MAX_GIDS 256u /* maximum number of GIDs of a kernel device that are examined */

/* Returns true if a device of that name is a software device. */
static bool
is_soft(const char *device)
{
	return device == NULL || strncmp(device, "soft", 4) == 0;
}

int
fab_transport(bool *rdma)
{
	const char *cm = fab_param("cm"), *device = fab_param("device");

	if (cm == NULL)
		*rdma = !is_soft(device) || (device != NULL && strstr(device, ",ip=") != NULL);
	else
		*rdma = strcmp(cm, "rdma") == 0;
	if (cm == NULL || *rdma || strcmp(cm, "tcp") == 0)
		return 0;
	FAB_WARN(CORE, "FI_BLUEBELL_CM=%s is invalid: use tcp or rdma, or leave it unset\n", cm);
	return -FI_EINVAL;
}

/* Reads an address of at most @len characters. Returns false if the text is no address. */
static bool
parse(const char *text, size_t len, struct sockaddr_storage *addr)
{
	struct sockaddr_in *in = (void *)addr;
	struct sockaddr_in6 *in6 = (void *)addr;
	char copy[INET6_ADDRSTRLEN];

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	memset(addr, 0, sizeof(*addr));
	if (inet_pton(AF_INET, copy, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		return true;
	}
	if (inet_pton(AF_INET6, copy, &in6->sin6_addr) != 1)
		return false;
	in6->sin6_family = AF_INET6;
	/* The text is a GID that contains an IPv4 address. */
	if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
		memcpy(&in->sin_addr, &in6->sin6_addr.s6_addr[12], sizeof(in->sin_addr));
		in->sin_family = AF_INET;
	}
	return true;
}

static bool
matches(const struct sockaddr_storage *addr, uint32_t format)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;

	if (addr->ss_family == AF_INET)
		return format != FI_SOCKADDR_IN6;
	return format != FI_SOCKADDR_IN && !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) &&
	       !IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
}

/* Finds the first option ip= whose address has the format @format. */
static bool
soft_address(const char *device, uint32_t format, struct sockaddr_storage *addr)
{
	const char *ip = device;

	while ((ip = strstr(ip, ",ip=")) != NULL) {
		ip += strlen(",ip=");
		if (parse(ip, strcspn(ip, "/,"), addr) && matches(addr, format))
			return true;
	}
	return false;
}

/*
 * Finds the first GID with the address format @format of a kernel device (sysfs-class-infiniband).
 */
static bool
kernel_address(const char *device, uint32_t format, struct sockaddr_storage *addr)
{
	const char *colon = strrchr(device, ':');
	char path[256], line[64];
	unsigned int i;
	bool found = false;
	FILE *f;

	if (colon != NULL)
		device = colon + 1;
	for (i = 0; i < MAX_GIDS && !found && strchr(device, '/') == NULL; i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/%.*s/ports/1/gids/%u",
			 (int)strcspn(device, ","), device, i);
		f = fopen(path, "re");
		if (f == NULL)
			break;
		found = fgets(line, sizeof(line), f) != NULL &&
			parse(line, strcspn(line, "\n"), addr) && matches(addr, format);
		fclose(f);
	}
	return found;
}

int
fab_device_address(uint32_t format, bool routed, struct sockaddr_storage *addr)
{
	const char *device = fab_param("device");
	bool rdma;
	int ret = fab_transport(&rdma);

	if (ret != 0)
		return ret;
	if (!rdma || (routed && !is_soft(device)))
		return -ENOENT;
	if (device != NULL && (is_soft(device) ? soft_address(device, format, addr)
					       : kernel_address(device, format, addr)))
		return 0;
	if (!is_soft(device))
		return -ENOENT;
	FI_INFO(&fab_provider, FI_LOG_CORE,
		"FI_BLUEBELL_CM=rdma needs an address of the device: add ip= to "
		"FI_BLUEBELL_DEVICE, or set FI_BLUEBELL_CM=tcp\n");
	return -FI_ENODATA;
}

/* ---- Private data */

size_t
fab_cm_max(const struct fab_dev *d)
{
	return d->rdma ? FAB_CM_RDMA : FAB_CM_DATA;
}

/*
 * Messages of librdmacm carry private data of a fixed size. So the first byte is the number of
 * bytes that follow, as in libfabric's provider verbs (prov/verbs/src/verbs_cm.c).
 */
const void *
fab_cm_pack(const struct fab_dev *d, struct fab_cm_room *room, const void *data, size_t *len)
{
	if (!d->rdma)
		return data;
	room->bytes[0] = (uint8_t)*len;
	if (*len != 0)
		memcpy(&room->bytes[1], data, *len);
	*len += 1;
	return room->bytes;
}

int
fab_cm_check(const struct fab_dev *d, const char *call, size_t len)
{
	if (len <= fab_cm_max(d))
		return 0;
	FAB_WARN(EP_CTRL, "%s has %zu bytes of data: at most %zu (FI_OPT_CM_DATA_SIZE)\n", call,
		 len, fab_cm_max(d));
	return -FI_EINVAL;
}

const void *
fab_cm_unpack(const struct fab_dev *d, const struct bb_cm_event *ev, size_t *len)
{
	const uint8_t *bytes = ev->private_data;

	*len = ev->private_len;
	/*
	 * The CM rejects some requests itself. Its private data are a text that the peer's
	 * application did not send.
	 */
	if (ev->type == BB_CM_REJECTED && ev->reason != BB_REJECT_CONSUMER)
		*len = 0;
	if (!d->rdma || *len == 0)
		return bytes;
	/* The peer may send a length that exceeds the data. */
	*len = bytes[0] < *len ? bytes[0] : *len - 1;
	return bytes + 1;
}

int
fab_peer_set(struct fi_info *info, const void *addr)
{
	const struct sockaddr *any = addr;
	const size_t len = any->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						      : sizeof(struct sockaddr_in);
	void *copy = malloc(len);

	if (copy == NULL)
		return -FI_ENOMEM;
	memcpy(copy, addr, len);
	free(info->dest_addr);
	info->dest_addr = copy;
	info->dest_addrlen = len;
	return 0;
}
