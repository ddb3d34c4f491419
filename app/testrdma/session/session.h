/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A session: executes commands from a terminal, a pipe or a file. */
#ifndef SESSION_H
#define SESSION_H

#include "runner.h"

#define SESSION_WORDS 16
#define SESSION_LINE  1024
#define SESSION_FILES 8 /* number of files that may be open at a time */

#define FAULTS           10
#define FAULT_DIRECTIONS 2
#define FAULT_VALUE      24
#define FAULT_OPTION     16 /* room for the longest device option of a fault, ",tx_reorder=" */

/*
 * Values of the command "fault": per direction, and in the order of kinds[] in fault.c. Empty if
 * not set. Faults without a direction are in value[0].
 */
struct faults {
	char value[FAULT_DIRECTIONS][FAULTS][FAULT_VALUE];
};

struct session {
	struct tester t;
	struct runner run;
	struct options set;       /* user settings for the next start, before validation */
	struct totals last_shown; /* totals at the last line of statistics */
	uint64_t last_shown_at;   /* TSC of the last line of statistics */
	uint64_t wait_until;      /* TSC at which the command "wait" ends; 0 if no wait is active */
	uint32_t n_wrong;         /* number of wrong commands, except typed ones */
	bool typed; /* the current command was typed at a terminal, so the user sees its error */
	const char *file;    /* file of the current command; NULL if none */
	uint32_t file_line;  /* number of the line in file that has the command, from 1 */
	uint32_t file_depth; /* number of files that are open; a file may load others */
	bool files_ended;    /* set by Ctrl-C at the terminal: no further commands of the open files
				are executed */
	struct input *terminal; /* input of the terminal; NULL if there is none */
	const char *device;     /* device specification without faults */
	char spec[512];         /* device specification with faults */
	struct faults faults;
	char peer[128];           /* string to which set.connect or set.listen points */
	uint32_t clients_awaited; /* number of clients that "wait" has waited for while listening */
	/* Executes the commands of a file, for "load" (session_file()). */
	int (*load)(struct session *s, const char *path);
	bool ended;
};

/*
 * Runs a session with the options in @first. Executes the commands of their file, then those on
 * standard input. @return the exit status.
 */
int session_run(const struct options *first);

/*
 * command_error.c: prints the error of a command. If the command is from a file, prints the file
 * and the line first. Counts the error unless the command was typed. A caller that prints the
 * error's text itself on stderr calls command_error_begin(), which does everything except printing
 * the text.
 */
void command_error_begin(struct session *s);
void command_error(struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- commands.c */

/* A possible argument of a command, for completion and help. */
struct argument {
	const char *name;
	const char *help;
	const char *const *values; /* possible values, terminated by NULL; NULL for free text */
	const char *form;          /* syntax of what follows the name; NULL if nothing follows */
};

struct command {
	const char *name;
	const char *form; /* syntax of the command's arguments */
	const char *help;
	const struct argument *args; /* terminated by a NULL name; NULL for free text */
	void (*run)(struct session *s, unsigned int argc, char **argv);
};

extern const struct command commands[]; /* terminated by a NULL name */

/* Executes a command line. */
void command_line(struct session *s, const char *line);

/* ---- settings.c: the command "set" */

extern const struct argument setting_args[];
void settings_init(void);
void setting_run(struct session *s, unsigned int argc, char **argv);
void setting_show(const struct session *s);

/* ---- show.c */

extern const struct argument show_args[];
void show_run(struct session *s, unsigned int argc, char **argv);
/* Prints the line of "set interval": the operations done, or served, since the previous line. */
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

/* ---- complete.c: instances for rte_cmdline */

struct cmdline_inst;
struct cmdline_inst **complete_create(struct session *s);
void complete_free(struct cmdline_inst **ctx);

#endif
