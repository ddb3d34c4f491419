/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * fault: what the network of the software device does to packets. They are options of the device,
 * so it is opened anew, with them, by the next start.
 */
#include <stdlib.h>

#include "session.h"

static const struct {
	const char *name, *option;
} kinds[FAULTS] = {
	{"drop", "tx_drop"},       {"duplicate", "tx_dup"}, {"reorder", "tx_reorder"},
	{"corrupt", "tx_corrupt"}, {"delay", "tx_delay"},   {"stall", "tx_stall"},
};

const struct argument fault_args[] = {
	{"drop", "PERCENT of packets are lost", NULL},
	{"duplicate", "PERCENT come twice", NULL},
	{"reorder", "PERCENT are held back a while", NULL},
	{"corrupt", "PERCENT have a bit changed", NULL},
	{"delay", "MICROSECONDS that each takes", NULL},
	{"stall", "PERCENT:MILLISECONDS, so many stop for so long", NULL},
	{"none", "none of these any more", NULL},
	{NULL, NULL, NULL},
};

/* The device's specification with the faults in @set. */
static void
spec_make(struct session *s, char set[FAULTS][FAULT_VALUE], char *spec, size_t size)
{
	const char *base = s->device;
	bool any = false;
	unsigned int i;
	size_t len;

	for (i = 0; i < FAULTS; i++)
		any |= set[i][0] != '\0';
	/* On the loop port there are packets only with wire=1. */
	snprintf(spec, size, "%s%s", base,
		 any && strstr(base, "wire=") == NULL && strstr(base, "port=") == NULL &&
				 strstr(base, "shm=") == NULL
			 ? ",wire=1"
			 : "");
	for (i = 0; i < FAULTS; i++) {
		len = strlen(spec);
		if (set[i][0] != '\0')
			snprintf(spec + len, size - len, ",%s=%s", kinds[i].option, set[i]);
	}
}

/* Open the device as @spec. On an error it is as it was. */
static int
reopen(struct session *s, const char *spec)
{
	char before[sizeof(s->spec)];

	runner_close(&s->run);
	test_close_device(&s->t);
	snprintf(before, sizeof(before), "%s", s->t.o.device);
	snprintf(s->spec, sizeof(s->spec), "%s", spec);
	s->t.o.device = s->set.device = s->spec;
	if (test_open_device(&s->t) == 0)
		return 0;
	test_close_device(&s->t);
	snprintf(s->spec, sizeof(s->spec), "%s", before);
	if (test_open_device(&s->t) != 0)
		s->over = true; /* said why */
	return -1;
}

void
fault_run(struct session *s, unsigned int argc, char **argv)
{
	char set[FAULTS][FAULT_VALUE], spec[sizeof(s->spec)];
	unsigned int i;

	if (argc == 1) {
		printf("device %s\n", s->set.device);
		return;
	}
	if (s->run.running) {
		session_wrong(s, "fault: the device is opened anew for it; stop what runs first");
		return;
	}
	if (s->run.server != NULL) {
		session_wrong(s, "fault: the device is opened anew for it; disconnect first");
		return;
	}
	if (!s->t.attr.software) {
		session_wrong(s, "fault: only the software device has faults on demand");
		return;
	}
	memcpy(set, s->faults, sizeof(set));
	for (i = 0; i < FAULTS && strcmp(kinds[i].name, argv[1]) != 0; i++)
		;
	if (strcmp(argv[1], "none") == 0 && argc == 2) {
		memset(set, 0, sizeof(set));
	} else if (i < FAULTS && argc == 3 && strlen(argv[2]) < FAULT_VALUE &&
		   strspn(argv[2], "0123456789.:") == strlen(argv[2])) {
		snprintf(set[i], FAULT_VALUE, "%s", argv[2]);
	} else {
		session_wrong(s, "fault: give a kind and how much, as in fault drop 1, or none; "
				 "help fault lists them");
		return;
	}
	spec_make(s, set, spec, sizeof(spec));
	if (reopen(s, spec) != 0) {
		session_wrong(s, "fault: the device does not take it; it is as it was");
		return;
	}
	memcpy(s->faults, set, sizeof(set));
	printf("device %s\n", s->spec);
}
