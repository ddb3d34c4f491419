/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Prints the asynchronous events of devices, a line each: the device and the event's name. Runs
 * until it is killed. usage: port_events [EAL options --] DEVICE...
 */
#include <stdio.h>

#include <unistd.h>

#include <rte_eal.h>

#include "bluebell.h"

#define MAX_DEVICES 4

int
main(int argc, char **argv)
{
	struct bb_dev *devs[MAX_DEVICES];
	struct bb_event event;
	int eal, i, n;

	eal = rte_eal_init(argc, argv);
	if (eal < 0 || argc - eal - 1 > MAX_DEVICES)
		return 1;
	n = argc - eal - 1;
	for (i = 0; i < n; i++)
		if (bb_dev_open(argv[eal + 1 + i], &devs[i]) != 0)
			return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready\n");
	for (;; usleep(10000))
		for (i = 0; i < n; i++)
			while (bb_event_get(devs[i], &event) == 0)
				printf("%s: %s\n", argv[eal + 1 + i], bb_event_name(event.type));
}
