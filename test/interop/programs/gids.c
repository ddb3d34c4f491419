/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Lists the GIDs of a device's first port and chooses one, for gids.py.
 *
 *   gids EAL-OPTIONS -- DEVICE
 *
 * Answers each input line. For "list" it prints the GIDs and an empty line. For a wish it prints
 * the chosen GID or the error. A wish is "any", "ipv4", "ipv6", "vlan=N", "netdev=NAME" or
 * "addr=IPV4", or several of them separated by commas.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bluebell.h>
#include <rte_eal.h>

static struct bb_gid_entry list[BB_GID_MAX];

static int
parse(char *text, struct bb_gid_want *want)
{
	char *word, *rest = text;

	bb_gid_want_init(want);
	while ((word = strsep(&rest, ",")) != NULL) {
		if (strcmp(word, "ipv4") == 0)
			want->family = BB_GID_IPV4;
		else if (strcmp(word, "ipv6") == 0)
			want->family = BB_GID_IPV6;
		else if (strncmp(word, "vlan=", 5) == 0)
			want->vlan = atoi(word + 5);
		else if (strncmp(word, "netdev=", 7) == 0)
			snprintf(want->netdev, sizeof(want->netdev), "%s", word + 7);
		else if (strncmp(word, "addr=", 5) == 0 &&
			 inet_pton(AF_INET, word + 5, want->raw + 12) == 1)
			want->exact = true;
		else if (strcmp(word, "any") != 0)
			return -EINVAL;
	}
	if (want->exact) {
		want->raw[10] = 0xff;
		want->raw[11] = 0xff;
	}
	return 0;
}

/* The table may have changed. */
static int
read_list(struct bb_dev *dev, bool show)
{
	int i, n = bb_gid_list(dev, 1, list, BB_GID_MAX);
	char line[128];

	for (i = 0; show && i < n; i++)
		printf("%s\n", bb_gid_text(&list[i], line, sizeof(line)));
	if (show)
		printf("\n");
	return n;
}

static int
wish(struct bb_dev *dev, char *text)
{
	struct bb_gid_want want;
	char line[128];
	uint8_t index;
	int n, ret;

	if (parse(text, &want) != 0)
		return -EINVAL;
	ret = bb_gid_choose(dev, 1, &want, &index);
	if (ret != 0) {
		printf("%s\n", strerrorname_np(-ret));
		return 0;
	}
	n = read_list(dev, false);
	for (int i = 0; i < n; i++)
		if (list[i].index == index)
			printf("%s\n", bb_gid_text(&list[i], line, sizeof(line)));
	return n < 0 ? n : 0;
}

int
main(int argc, char **argv)
{
	int args = rte_eal_init(argc, argv), rc = 0;
	struct bb_dev *dev;
	char line[128];

	if (args < 0 || argc - args != 2 || bb_dev_open(argv[args + 1], &dev) != 0)
		return 2;
	setlinebuf(stdout);
	while (rc >= 0 && fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		rc = strcmp(line, "list") == 0 ? read_list(dev, true) : wish(dev, line);
	}
	if (bb_dev_close(dev) != 0)
		rc = -EBUSY;
	rte_eal_cleanup();
	return rc < 0;
}
