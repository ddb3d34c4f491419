/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * fault: what the network of the software device does to packets. They are options of the device,
 * so it is opened anew, with them, by the next start.
 */
#include <stdlib.h>

#include "session.h"

#define PERCENT "a percentage up to 100"

static const struct {
	const char *name, *option;
	const char *value, *unit, *example;
	double most; /* of the number that it begins with */
	char then;   /* the character between it and another one, or NUL */
	bool whole;
} kinds[FAULTS] = {
	{"drop", "tx_drop", PERCENT, " %", "1", 100, '\0', false},
	{"duplicate", "tx_dup", PERCENT, " %", "1", 100, '\0', false},
	{"reorder", "tx_reorder", PERCENT, " %", "1", 100, '\0', false},
	{"corrupt", "tx_corrupt", PERCENT, " %", "0.1", 100, '\0', false},
	{"delay", "tx_delay", "microseconds, up to 1000000", " us", "50", 1e6, '\0', true},
	{"stall", "tx_stall", "PERCENT:MILLISECONDS, up to 100:3600000", " (%:ms)", "1:20", 100,
	 ':', false},
};

/* The digits at @s, with a point unless @whole; behind them. NULL: there are none, or too many. */
static const char *
number_end(const char *s, bool whole, double most)
{
	const size_t n = strspn(s, whole ? "0123456789" : "0123456789.");
	char *end;
	double v;

	if (n == 0 || s[0] == '.')
		return NULL;
	v = strtod(s, &end);
	return end == s + n && v <= most ? end : NULL;
}

static bool
value_fits(unsigned int kind, const char *value)
{
	const char *end = number_end(value, kinds[kind].whole, kinds[kind].most);

	if (end != NULL && kinds[kind].then != '\0')
		end = *end == kinds[kind].then ? number_end(end + 1, true, 3600000) : NULL;
	return end != NULL && *end == '\0' && strlen(value) < FAULT_VALUE;
}

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

/* As it is set by fault, or came with --device, "-" if neither. */
static void
value_now(const struct session *s, unsigned int kind, char *text, size_t size)
{
	char key[24];
	const char *own;

	snprintf(key, sizeof(key), ",%s=", kinds[kind].option);
	own = strstr(s->device, key);
	if (s->faults[kind][0] != '\0')
		snprintf(text, size, "%s%s", s->faults[kind], kinds[kind].unit);
	else if (own != NULL)
		snprintf(text, size, "%.*s%s", (int)strcspn(own + strlen(key), ","),
			 own + strlen(key), kinds[kind].unit);
	else
		snprintf(text, size, "-");
}

/* What is set, and what can be. */
static void
show(const struct session *s)
{
	unsigned int i;

	printf("device %s\n%-10s %-12s %-40s %s\n", s->set.device, "fault", "now", "value",
	       "what it does");
	for (i = 0; i < FAULTS; i++) {
		char now[FAULT_VALUE + 8];

		value_now(s, i, now, sizeof(now));
		printf("%-10s %-12s %-40s %s\n", kinds[i].name, now, kinds[i].value,
		       fault_args[i].help);
	}
	printf("Set one with fault KIND VALUE, as fault %s %s; fault none ends those. The device\n"
	       "is opened anew for it, so nothing may run. What was lost and came twice: show errors.\n",
	       kinds[0].name, kinds[0].example);
	if (!s->t.attr.software)
		printf("This device has none of them: only the software device has.\n");
}

void
fault_run(struct session *s, unsigned int argc, char **argv)
{
	char set[FAULTS][FAULT_VALUE], spec[sizeof(s->spec)];
	unsigned int i;

	if (argc == 1) {
		show(s);
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
	} else if (i < FAULTS && argc == 3 && value_fits(i, argv[2])) {
		snprintf(set[i], FAULT_VALUE, "%s", argv[2]);
	} else if (i < FAULTS) {
		session_wrong(s, "fault %s%s%s: give %s, as in fault %s %s", argv[1],
			      argc > 2 ? " " : "", argc > 2 ? argv[2] : "", kinds[i].value,
			      kinds[i].name, kinds[i].example);
		return;
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
