/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The command "set": sets command line options for the next start, and the log level at once. */
#include <rte_log.h>

#include "session.h"

static const char *const on_off[] = {"on", "off", NULL};
static const char *const db_modes[] = {"blueflame", "doorbell", NULL};
static const char *op_names[MAX_OPS + 1];
/* Names of the log levels; the index is the level minus 1. */
static const char *const log_levels[] = {"emergency", "alert", "critical", "error", "warning",
					 "notice",    "info",  "debug",    NULL};

const struct argument setting_args[] = {
	{"op", "operations, with commas between", op_names, "VALUE"},
	{"size", "bytes of a message: 64, 8,4K, 8..1M", NULL, "VALUE"},
	{"depth", "operations in flight on each queue pair", NULL, "VALUE"},
	{"burst", "operations announced by one doorbell", NULL, "VALUE"},
	{"inline", "largest message that goes into the WQE, in bytes", NULL, "VALUE"},
	{"signal-every", "operations for each completion", NULL, "VALUE"},
	{"verify", "compare every byte", on_off, "VALUE"},
	{"lcores", "number of lcores that run the traffic", NULL, "VALUE"},
	{"qps-per-lcore", "connected pairs of queue pairs on each lcore", NULL, "VALUE"},
	{"mix", "weights of op mixed: write:70,read:30", NULL, "VALUE"},
	{"rate", "operations a second, in an open loop; 0: no limit", NULL, "VALUE"},
	{"sgl", "SGEs that each message is gathered from", NULL, "VALUE"},
	{"offset", "bytes from a 64-byte boundary to the data", NULL, "VALUE"},
	{"db", "how a single WQE goes to the device", db_modes, "VALUE"},
	{"seed", "seed of the data patterns", NULL, "VALUE"},
	{"duration", "seconds of each test; 0: one test runs until you stop it", NULL, "VALUE"},
	{"patience", "seconds without a completion that end a test", NULL, "VALUE"},
	{"interval", "seconds between statistics; 0: none", NULL, "VALUE"},
	{"log-level", "log lines from this level on; TYPE:LEVEL for one type, as lib.eal:info",
	 log_levels, "VALUE"},
	{NULL, NULL, NULL, NULL},
};

void
settings_init(void)
{
	unsigned int i;

	for (i = 0; i < nengines; i++)
		op_names[i] = engines[i]->name;
}

/*
 * Sets the log level of Bluebell or, if @value is PATTERN:LEVEL, of the log types that match
 * PATTERN. Raises EAL's global log level if that would suppress messages of this level.
 */
static void
log_level_set(struct session *s, const char *value)
{
	const char *colon = strrchr(value, ':'), *name = colon != NULL ? colon + 1 : value;
	char pattern[64] = "bluebell*";
	uint32_t level = 0;

	while (log_levels[level] != NULL && strcmp(log_levels[level], name) != 0)
		level++;
	if (log_levels[level] == NULL || colon == value) {
		command_error(s,
			      "set: log-level %s is neither a level nor TYPE:LEVEL; the levels "
			      "are emergency, alert, critical, error, warning, notice, info and "
			      "debug",
			      value);
		return;
	}
	level++;
	if (colon != NULL)
		snprintf(pattern, sizeof(pattern), "%.*s", (int)(colon - value), value);
	if (rte_log_set_level_pattern(pattern, level) != 0) {
		command_error(s, "set: log-level: %s is not a pattern of log types", pattern);
		return;
	}
	if (rte_log_get_global_level() < level)
		rte_log_set_global_level(level);
}

void
setting_run(struct session *s, unsigned int argc, char **argv)
{
	struct options changed = s->set, fitted;
	const struct argument *a;

	if (argc != 3) {
		command_error(s, "set: give a setting and its value, as in set size 64; "
				 "help set lists them");
		return;
	}
	for (a = setting_args; a->name != NULL && strcmp(a->name, argv[1]) != 0; a++)
		;
	if (a->name == NULL) {
		command_error(s, "set: unknown setting \"%s\"; help set lists the settings",
			      argv[1]);
		return;
	}
	if (strcmp(argv[1], "log-level") == 0) {
		log_level_set(s, argv[2]);
		return;
	}
	/* Changes a copy, so that an error leaves the settings unchanged. */
	if (options_set(&changed, argv[1], argv[2]) != 0) {
		command_error(s, "set: %s was not changed", argv[1]);
		return;
	}
	fitted = changed;
	if (options_fit(&fitted) != 0) {
		command_error(s, "set: %s was not changed; change the other setting first",
			      argv[1]);
		return;
	}
	s->set = changed;
	if (s->run.running && strcmp(argv[1], "interval") != 0)
		printf("%s applies from the next start\n", argv[1]);
}

/* Returns the log level of Bluebell. */
static const char *
log_level(void)
{
	int level = rte_log_get_level(rte_log_register("bluebell"));

	return level >= 1 && level <= (int)RTE_LOG_MAX ? log_levels[level - 1] : "disabled";
}

void
setting_show(const struct session *s)
{
	struct options o = s->set;
	uint32_t i, k;

	if (options_fit(&o) != 0)
		return;
	printf("op");
	for (i = 0; i < o.nops; i++)
		printf("%c%s", i == 0 ? ' ' : ',', o.ops[i]->name);
	printf("\nsize");
	for (i = 0; i < o.nsizes; i++)
		printf("%c%u", i == 0 ? ' ' : ',', o.sizes[i]);
	printf("\ndepth %u\nburst %u\ninline %u\nsignal-every %u\nverify %s\nlcores %u\n"
	       "qps-per-lcore %u\nsgl %u\noffset %u\ndb %s\nseed %" PRIu64
	       "\nduration %.6g\npatience %.6g\ninterval %.6g\n",
	       o.depth, o.burst, o.max_inline, o.signal_every, o.verify ? "on" : "off", o.lcores,
	       o.qps, o.sgl, o.offset, o.blueflame ? "blueflame" : "doorbell", o.seed,
	       s->set.duration, o.patience, o.interval);
	printf("rate %" PRIu64 "\nlog-level %s\n", o.rate, log_level());
	printf("mix");
	for (i = k = 0; i < MIX_KINDS; i++)
		if (o.mix[i] > 0)
			printf("%c%s:%u", k++ == 0 ? ' ' : ',', mix_names[i], o.mix[i]);
	printf("\n");
	if (o.connect != NULL)
		printf("connect %s\n", o.connect);
}
