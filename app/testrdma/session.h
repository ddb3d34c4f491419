/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The prompt: commands from a terminal, a pipe or a file. */
#ifndef SESSION_H
#define SESSION_H

#include "runner.h"

#define SESSION_WORDS 16
#define SESSION_LINE  1024

#define FAULTS           10
#define FAULT_DIRECTIONS 2
#define FAULT_VALUE      24
#define FAULT_OPTION     16 /* longest such option, ",tx_reorder=" */

/*
 * By direction, in the order of fault.c; empty if not set. Faults without a direction are in the
 * first row.
 */
struct faults {
	char value[FAULT_DIRECTIONS][FAULTS][FAULT_VALUE];
};

struct session {
	struct test t;
	struct runner run;
	struct options set;  /* user settings before validation, for the next start */
	struct totals shown; /* values at the last statistics */
	uint64_t shown_at;   /* TSC */
	uint64_t wait_until; /* TSC; 0 while commands are read */
	uint32_t wrong;      /* wrong commands of a file, a pipe or the program itself */
	bool typed;          /* the current command is typed, so the user sees its error */
	const char *device;  /* without faults */
	char spec[512];      /* with faults */
	struct faults faults;
	char peer[128];  /* storage for set.connect or set.listen */
	uint32_t visits; /* while it listens: clients already waited for */
	bool over;
};

/*
 * Runs a session with the options in @first: commands from their file, then from standard input.
 * @return the exit status.
 */
int session_run(const struct options *first);

/* wrong.c: prints an error of a command; counts it unless the command was typed. */
void session_wrong(struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- commands.c */

/* A possible argument of a command. */
struct argument {
	const char *name;
	const char *help;
	const char *const *values; /* known values, NULL-terminated; NULL for free text */
};

struct command {
	const char *name;
	const char *form; /* syntax of its arguments */
	const char *help;
	const struct argument *args; /* terminated by a NULL name; NULL for free text */
	void (*run)(struct session *s, unsigned int argc, char **argv);
};

extern const struct command commands[]; /* terminated by a NULL name */

/* Executes a command line. */
void command_line(struct session *s, const char *line);

/* ---- settings.c: set */

extern const struct argument setting_args[];
void settings_init(void);
void setting_run(struct session *s, unsigned int argc, char **argv);
void setting_show(const struct session *s);

/* ---- show.c */

extern const struct argument show_args[];
void show_run(struct session *s, unsigned int argc, char **argv);
/* Prints the line of set interval: work done, or served, since the last one. */
void show_interval(struct session *s);

/* ---- show_queues.c */

void show_qp(struct session *s);
void show_cq(struct session *s);
void show_mr(struct session *s);
void show_wqe(struct session *s);
void show_errors(struct session *s);

/* ---- fault.c */

extern const struct argument fault_args[];
void fault_run(struct session *s, unsigned int argc, char **argv);

/* ---- complete.c: the commands for rte_cmdline. */

struct cmdline_inst;
struct cmdline_inst **complete_create(struct session *s);
void complete_free(struct cmdline_inst **ctx);

#endif
