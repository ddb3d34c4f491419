/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The command "fault": makes the software device inject faults into packets and into the port.
 * Faults are device options, so the next start opens the device again with them.
 */
#include <stdlib.h>

#include "session.h"

#define PERCENT "a percentage up to 100"
#define HOUR_MS 3600000
#define HOUR    "3600000"

/* Direction of the packets that a fault applies to. */
enum {
	OUT,
	IN
};
static const char *const directions[FAULT_DIRECTIONS] = {[OUT] = "tx", [IN] = "rx"};

static const struct {
	/*
	 * name: argument of the command. option: device option; for packet faults without its
	 * prefix tx_ or rx_.
	 */
	const char *name, *option;
	/* Texts for the help: name of the value, its unit, and an example. */
	const char *value, *unit, *example;
	double most;  /* largest value; for "A:B" the largest A */
	char then;    /* separator in a value "A:B", or NUL */
	bool alone;   /* the value may be "A" without ":B" */
	bool whole;   /* the value, or A of "A:B", is a whole number */
	bool packets; /* the fault applies to sent or to received packets; otherwise it applies to
			 the port */
} kinds[FAULTS] = {
	{"drop", "drop", PERCENT, " %", "1", 100, '\0', false, false, true},
	{"duplicate", "dup", PERCENT, " %", "1", 100, '\0', false, false, true},
	{"reorder", "reorder", PERCENT, " %", "1", 100, '\0', false, false, true},
	{"corrupt", "corrupt", PERCENT, " %", "0.1", 100, '\0', false, false, true},
	{"ecn", "ecn", PERCENT, " %", "1", 100, '\0', false, false, true},
	{"delay", "delay", "microseconds, up to 1000000", " us", "50", 1e6, '\0', false, true,
	 true},
	{"stall", "stall", "PERCENT:MILLISECONDS, up to 100:" HOUR, " (%:ms)", "1:20", 100, ':',
	 false, false, true},
	{"full", "full", "PACKETS or PACKETS:MILLISECONDS", " (n:ms)", "1000:50", 4294967295.0, ':',
	 true, true, true},
	{"flap", "flap", "UP:DOWN in milliseconds, each up to " HOUR, " ms", "200:10", HOUR_MS, ':',
	 false, true, false},
	{"seed", "seed", "a whole number of 64 bits", "", "7", 18446744073709551615.0, '\0', false,
	 true, false},
};

/*
 * Returns the end of the number at @s. Returns NULL if @s has no number, or one above @most.
 * @whole: the number must not have a decimal point.
 */
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

	if (end != NULL && kinds[kind].then != '\0' && !(kinds[kind].alone && *end == '\0'))
		end = *end == kinds[kind].then ? number_end(end + 1, true, HOUR_MS) : NULL;
	return end != NULL && *end == '\0' && strlen(value) < FAULT_VALUE;
}

static const char *const packet_kinds[] = {"drop",  "duplicate", "reorder", "corrupt", "ecn",
					   "delay", "stall",     "full",    NULL};

/* The faults in the order of kinds[], then the other words that may follow "fault". */
const struct argument fault_args[] = {
	{"drop", "PERCENT of packets are lost", NULL, "PERCENT"},
	{"duplicate", "PERCENT of packets are duplicated", NULL, "PERCENT"},
	{"reorder", "PERCENT of packets are delayed, so others overtake them", NULL, "PERCENT"},
	{"corrupt", "PERCENT of packets have one bit changed", NULL, "PERCENT"},
	{"ecn", "PERCENT of packets get the congestion mark of a switch (ECN)", NULL, "PERCENT"},
	{"delay", "MICROSECONDS of delay of each packet", NULL, "MICROSECONDS"},
	{"stall", "PERCENT:MILLISECONDS, percent of packets that stall the link, and for how long",
	 NULL, "PERCENT:MILLISECONDS"},
	{"full", "PACKETS[:MILLISECONDS], packets after which the link is full, and for how long",
	 NULL, "PACKETS[:MILLISECONDS]"},
	{"flap", "UP:DOWN, milliseconds for which the port is up and down by turns", NULL,
	 "UP:DOWN"},
	{"seed", "NUMBER, seed of the random choice of packets", NULL, "NUMBER"},
	{"rx", "KIND VALUE, one of these faults for incoming packets", packet_kinds, "KIND VALUE"},
	{"tx", "KIND VALUE, one of these faults for outgoing packets, as without tx", packet_kinds,
	 "KIND VALUE"},
	{"none", "no faults", NULL, NULL},
	{NULL, NULL, NULL, NULL},
};

/* Writes the name of a fault's device option with separators, such as ",tx_drop=". */
static void
option_name(unsigned int kind, unsigned int dir, char name[FAULT_OPTION])
{
	snprintf(name, FAULT_OPTION, ",%s%s%s=", kinds[kind].packets ? directions[dir] : "",
		 kinds[kind].packets ? "_" : "", kinds[kind].option);
}

/* Builds the device specification with the faults in @set. @return true if it fits into @spec. */
static bool
spec_make(struct session *s, const struct faults *set, char *spec, size_t size)
{
	char name[FAULT_OPTION];
	const char *base = s->device;
	bool packets = false;
	unsigned int i, dir;
	size_t len;

	for (i = 0; i < FAULTS; i++)
		for (dir = 0; dir < FAULT_DIRECTIONS; dir++)
			packets |= kinds[i].packets && set->value[dir][i][0] != '\0';
	/*
	 * Packet faults need packets. Without port= and shm= the QPs of a device exchange packets
	 * only with wire=1, so adds wire=1.
	 */
	len = (size_t)snprintf(spec, size, "%s%s", base,
			       packets && strstr(base, "wire=") == NULL &&
					       strstr(base, "port=") == NULL &&
					       strstr(base, "shm=") == NULL
				       ? ",wire=1"
				       : "");
	for (i = 0; i < FAULTS; i++) {
		for (dir = 0; dir < FAULT_DIRECTIONS && len < size; dir++) {
			if (set->value[dir][i][0] == '\0')
				continue;
			option_name(i, dir, name);
			len += (size_t)snprintf(spec + len, size - len, "%s%s", name,
						set->value[dir][i]);
		}
	}
	return len < size;
}

/*
 * Closes the device and opens it with @spec. If that fails, opens it with the previous
 * specification.
 */
static int
reopen(struct session *s, const char *spec)
{
	char before[sizeof(s->spec)];

	runner_close(&s->run);
	tester_close_device(&s->t);
	snprintf(before, sizeof(before), "%s", s->t.o.device);
	snprintf(s->spec, sizeof(s->spec), "%s", spec);
	s->t.o.device = s->set.device = s->spec;
	if (tester_open_device(&s->t) == 0)
		return 0;
	tester_close_device(&s->t);
	snprintf(s->spec, sizeof(s->spec), "%s", before);
	if (tester_open_device(&s->t) != 0)
		s->ended = true; /* tester_open_device() has printed the reason */
	return -1;
}

/*
 * Writes the current value of a fault to @text: the value of the command "fault", or else the value
 * in --device, or else "-".
 */
static void
value_now(const struct session *s, unsigned int kind, unsigned int dir, char *text, size_t size)
{
	const char *set = s->faults.value[dir][kind], *own;
	char name[FAULT_OPTION];

	option_name(kind, dir, name);
	own = strstr(s->device, name);
	if (set[0] != '\0')
		snprintf(text, size, "%s%s", set, kinds[kind].unit);
	else if (own != NULL)
		snprintf(text, size, "%.*s%s", (int)strcspn(own + strlen(name), ","),
			 own + strlen(name), kinds[kind].unit);
	else
		snprintf(text, size, "-");
}

/* Prints the current values of all faults, and the faults that can be set. */
static void
show(const struct session *s)
{
	unsigned int i;

	printf("device %s\n%-10s %-16s %-16s %-40s %s\n", s->set.device, "fault", "out", "in",
	       "value", "what it does");
	for (i = 0; i < FAULTS; i++) {
		char out[FAULT_VALUE + 8], in[FAULT_VALUE + 8] = "";

		value_now(s, i, OUT, out, sizeof(out));
		if (kinds[i].packets)
			value_now(s, i, IN, in, sizeof(in));
		printf("%-10s %-16s %-16s %-40s %s\n", kinds[i].name, out, in, kinds[i].value,
		       fault_args[i].help);
	}
	printf("Set one with fault KIND VALUE, as fault %s %s, or for incoming packets "
	       "with\nfault rx KIND VALUE; fault none ends all. The command opens the device "
	       "again, so no\ntest may run. show errors counts lost and duplicate packets.\n",
	       kinds[0].name, kinds[0].example);
	if (!s->t.attr.software)
		printf("Only the software device has faults; this device is not one.\n");
}

/* Returns true if the device supports faults and can be reopened now. */
static bool
may(struct session *s)
{
	if (s->run.running)
		command_error(
			s,
			"fault: a test is running, and a fault needs the device opened again; enter stop first");
	else if (s->run.server != NULL)
		command_error(
			s,
			"fault: this program listens, and a fault needs the device opened again; enter disconnect first");
	else if (!s->t.attr.software)
		command_error(s, "fault: this device has no faults; only the software device has");
	else
		return true;
	return false;
}

/*
 * Parses the fault and its value in @argv for direction @dir, and adds it to @set. @return false
 * after printing the error.
 */
static bool
fault_take(struct session *s, unsigned int dir, unsigned int argc, char **argv, struct faults *set)
{
	const char *before = dir == IN ? "rx " : "";
	unsigned int i;

	for (i = 0; i < FAULTS && (argc == 0 || strcmp(kinds[i].name, argv[0]) != 0); i++)
		;
	if (i == FAULTS) {
		command_error(s, "fault: give a kind of fault and its value, as in fault drop 1, "
				 "or none; help fault lists the kinds");
	} else if (dir == IN && !kinds[i].packets) {
		command_error(
			s,
			"fault rx %s: this fault is not one of packets, so it has no direction; "
			"leave out rx",
			kinds[i].name);
	} else if (argc != 2 || !value_fits(i, argv[1])) {
		command_error(s, "fault %s%s%s%s: give %s, as in fault %s%s %s", before, argv[0],
			      argc > 1 ? " " : "", argc > 1 ? argv[1] : "", kinds[i].value, before,
			      kinds[i].name, kinds[i].example);
	} else {
		snprintf(set->value[dir][i], FAULT_VALUE, "%s", argv[1]);
		return true;
	}
	return false;
}

void
fault_run(struct session *s, unsigned int argc, char **argv)
{
	unsigned int skip = 1, dir = OUT;
	char spec[sizeof(s->spec)];
	struct faults set;

	if (argc == 1) {
		show(s);
		return;
	}
	if (!may(s))
		return;
	set = s->faults;
	if (strcmp(argv[1], directions[IN]) == 0 || strcmp(argv[1], directions[OUT]) == 0) {
		dir = strcmp(argv[1], directions[IN]) == 0 ? IN : OUT;
		skip = 2;
	}
	if (strcmp(argv[1], "none") == 0 && argc == 2)
		memset(&set, 0, sizeof(set));
	else if (!fault_take(s, dir, argc - skip, argv + skip, &set))
		return;
	if (!spec_make(s, &set, spec, sizeof(spec)) || reopen(s, spec) != 0) {
		command_error(s, "fault: the device does not accept this value; no fault was "
				 "changed");
		return;
	}
	s->faults = set;
	printf("device %s\n", s->spec);
}
