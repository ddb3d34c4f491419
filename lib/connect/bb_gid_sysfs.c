/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The kernel's data on the interface of a GID:
 *
 *   /sys/class/infiniband/DEV/ports/P/gid_attrs/ndevs/I   name of the interface
 *                                        (Documentation/ABI/stable/sysfs-class-infiniband)
 *   /proc/net/vlan/NAME                  "NAME  VID: 7 ..." for a VLAN interface
 *   /sys/class/net/NAME/bonding_slave    exists for a slave of a bond
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bb_gid_priv.h"

/* Reads the first line of a file, without its newline. Returns false if the file has no line. */
static bool
first_line(const char *path, char *line, int len)
{
	FILE *f = fopen(path, "re");
	bool ok;

	if (f == NULL)
		return false;
	ok = fgets(line, len, f) != NULL;
	fclose(f);
	if (ok)
		line[strcspn(line, "\n")] = '\0';
	return ok;
}

const char *
bb_kernel_name(const char *dev, const char *driver)
{
	const size_t n = strlen(driver);

	return strncmp(dev, driver, n) == 0 && dev[n] == ':' ? dev + n + 1 : dev;
}

void
bb_gid_sysfs(const char *root, const char *dev, uint32_t port, struct bb_gid_entry *e)
{
	char path[256], line[256];
	const char *vid;
	unsigned int vlan;

	/*
	 * Ignore a device name that would lead to another folder. A PCI address such as
	 * "0000:3b:00.0" is also no name in this folder, so opening the file then fails.
	 */
	if (strchr(dev, '/') != NULL || dev[0] == '.')
		return;
	snprintf(path, sizeof(path), "%s/sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/%u", root,
		 dev, port, e->index);
	if (!first_line(path, line, sizeof(line)) || line[0] == '\0' || line[0] == '.' ||
	    strchr(line, '/') != NULL || strlen(line) >= sizeof(e->netdev))
		return;
	strcpy(e->netdev, line);
	snprintf(path, sizeof(path), "%s/proc/net/vlan/%s", root, e->netdev);
	if (first_line(path, line, sizeof(line))) {
		vid = strstr(line, "VID:");
		if (vid != NULL && sscanf(vid + 4, "%u", &vlan) == 1 && vlan <= 4094)
			e->vlan = (uint16_t)vlan;
	}
	snprintf(path, sizeof(path), "%s/sys/class/net/%s/bonding_slave", root, e->netdev);
	e->bond_slave = access(path, F_OK) == 0;
}
