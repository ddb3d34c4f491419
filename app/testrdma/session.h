/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Commands from a person, a pipe or a file: the prompt. */
#ifndef SESSION_H
#define SESSION_H

#include "runner.h"

#define SESSION_WORDS 16
#define SESSION_LINE  1024

#define FAULTS           8
#define FAULT_DIRECTIONS 2
#define FAULT_VALUE      24
#define FAULT_OPTION     16 /* ",tx_reorder=" */

/* By direction, in the order of fault.c; empty: none. Those of no direction are in the first. */
struct faults {
	char value[FAULT_DIRECTIONS][FAULTS][FAULT_VALUE];
};

struct session {
	struct test t;
	struct runner run;
	struct options set;  /* as said, not yet fitted to each other: of the next start */
	struct totals shown; /* at the last statistics */
	uint64_t shown_at;   /* TSC */
	uint64_t wait_until; /* TSC; 0: commands are read */
	uint32_t wrong;      /* commands, of a file, a pipe or the program's own */
	bool typed;          /* what comes now is typed: who does that sees what is wrong with it */
	const char *device;  /* without faults */
	char spec[512];      /* with them */
	struct faults faults;
	char peer[128];  /* what set.connect, or listen, points to */
	uint32_t visits; /* while it listens: that were waited for */
	bool over;
};

/*
 * Run a session for the options in @first, from their file, then from standard input.
 * @return the exit status.
 */
int session_run(const struct options *first);

/* Something to say about a command that was wrong; counted. */
void session_wrong(struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- commands.c */

/* What can stand behind a command's name. */
struct argument {
	const char *name;
	const char *help;
	const char *const *values; /* that are known, NULL at the end; NULL: free text */
};

struct command {
	const char *name;
	const char *form; /* of what stands behind it */
	const char *help;
	const struct argument *args; /* a NULL name at the end; NULL: free text */
	void (*run)(struct session *s, unsigned int argc, char **argv);
};

extern const struct command commands[]; /* a NULL name at the end */

/* Do what a line says. */
void command_line(struct session *s, const char *line);

/* ---- settings.c: set */

extern const struct argument setting_args[];
void settings_init(void);
void setting_run(struct session *s, unsigned int argc, char **argv);
void setting_show(const struct session *s);

/* ---- show.c */

extern const struct argument show_args[];
void show_run(struct session *s, unsigned int argc, char **argv);
/* The line of set interval: what was done, or served, since the last one. */
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

/* ---- complete.c: what rte_cmdline needs to know of the commands. */

struct cmdline_inst;
struct cmdline_inst **complete_create(struct session *s);
void complete_free(struct cmdline_inst **ctx);

#endif
