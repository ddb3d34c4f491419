/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Reads commands. At a terminal rte_cmdline edits, completes and remembers lines. Lines of files
 * and pipes are used as they are. Tests in the background keep running while input is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <unistd.h>

#include <rte_cycles.h>

#include <cmdline.h>
#include <cmdline_parse.h>
#include <cmdline_rdline.h>
#include <cmdline_socket.h>

#include "session.h"

#define PROMPT    "testrdma> "
#define TICK_MS   10  /* poll timeout while a test runs or a command waits */
#define IDLE_MS   200 /* poll timeout while idle; a signal also ends poll() */
#define CTRL_C    3
#define REDISPLAY "\014" /* Ctrl-L, which makes rte_cmdline print the prompt again */

struct input {
	int fd;
	const char *file;   /* name of the file; NULL for standard input */
	uint32_t n_lines;   /* number of lines that were read */
	int rc;             /* 0, or -errno after a failed read */
	struct cmdline *cl; /* rte_cmdline of a terminal; NULL for files and pipes */
	char line[SESSION_LINE];
	size_t len;
	char pending[SESSION_LINE]; /* bytes that were read and are not processed yet */
	size_t at, end;
	bool too_long; /* the current line is longer than the buffer */
	bool eof;
};

static void
redisplay(struct input *in)
{
	fflush(stdout);
	if (in->cl != NULL)
		cmdline_in(in->cl, REDISPLAY, 1);
}

/* Returns true if the event that the command "wait" waits for has occurred. */
static bool
wait_ended(struct session *s)
{
	if (s->run.server == NULL)
		return !s->run.running;
	if (serve_counted(s->run.server).times_empty == s->clients_awaited)
		return false;
	/* Makes the next "wait" wait for the next client. */
	s->clients_awaited++;
	return true;
}

/* Returns true if statistics are printed periodically. */
static bool
interval_on(const struct session *s)
{
	return s->set.interval > 0 && (s->run.running || s->run.server != NULL);
}

/*
 * Does the work between inputs: continues tests, prints statistics, and ends a "wait" that is over.
 */
static void
background(struct session *s, struct input *in)
{
	bool ran = s->run.running;

	if (ran && !runner_poll(&s->run)) {
		redisplay(in);
	} else if (interval_on(s) && (double)(rte_rdtsc() - s->last_shown_at) >=
					     s->set.interval * (double)s->t.tsc_hz) {
		if (in->cl != NULL)
			printf("\r");
		show_interval(s);
		redisplay(in);
	}
	if (s->wait_until != 0 && (wait_ended(s) || rte_rdtsc() >= s->wait_until))
		s->wait_until = 0;
}

static void
terminal_char(struct session *s, struct input *in, char c)
{
	if (c == CTRL_C && (s->run.running || s->run.server != NULL)) {
		printf("^C\n");
		s->wait_until = 0;
		runner_stop(&s->run);
		runner_unlisten(&s->run);
		redisplay(in);
	} else if (cmdline_in(in->cl, &c, 1) < 0) {
		in->eof = true; /* Ctrl-D ends the input */
	}
}

static void
line_char(struct session *s, struct input *in, char c)
{
	if (c != '\n') {
		if (in->len < sizeof(in->line) - 1)
			in->line[in->len++] = c != '\0' ? c : '?';
		else
			in->too_long = true;
		return;
	}
	in->line[in->len] = '\0';
	s->file_line = ++in->n_lines;
	printf("%s%s\n", PROMPT, in->line);
	fflush(stdout);
	if (in->too_long)
		command_error(s, "the command has more than %zu characters and was not executed",
			      sizeof(in->line) - 1);
	else
		command_line(s, in->line);
	in->len = 0;
	in->too_long = false;
}

/* Processes the input up to and including a command that waits. */
static void
input_take(struct session *s, struct input *in)
{
	while (in->at < in->end && !s->ended && !in->eof && !s->files_ended) {
		char c = in->pending[in->at];

		/*
		 * After a command that waits, leaves the input unprocessed. Ctrl-C is the
		 * exception, because it ends the wait.
		 */
		if (s->wait_until != 0 && (in->cl == NULL || c != CTRL_C))
			return;
		in->at++;
		if (in->cl != NULL)
			terminal_char(s, in, c);
		else
			line_char(s, in, c);
	}
}

static void
input_read(struct session *s, struct input *in)
{
	struct pollfd pfd = {.fd = in->fd, .events = POLLIN};
	bool listen = in->at == in->end && (s->wait_until == 0 || in->cl != NULL);
	bool soon = s->run.running || s->wait_until != 0 || interval_on(s);
	ssize_t n;

	if (poll(&pfd, listen ? 1 : 0, soon ? TICK_MS : IDLE_MS) <= 0 || !listen)
		return;
	n = read(in->fd, in->pending, sizeof(in->pending));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		in->eof = true;
		in->rc = n < 0 ? -errno : 0;
		/* Processes the last line even if it has no newline. */
		if (in->cl == NULL && in->len > 0)
			line_char(s, in, '\n');
		return;
	}
	in->at = 0;
	in->end = (size_t)n;
}

/*
 * Ends the session after Ctrl-C or SIGTERM; the caller then prints the summary. Returns true if the
 * session is over.
 */
static bool
signalled(struct session *s)
{
	s->ended |= stop_signal != 0;
	return s->ended;
}

/* After the last command, waits for the end of a run that ends by itself. */
static void
finish(struct session *s, struct input *in)
{
	struct serve_counts c;

	s->wait_until = 0;
	while (s->run.running && stop_signal == 0 && !isinf(s->t.o.duration)) {
		poll(NULL, 0, TICK_MS);
		background(s, in);
	}
	runner_stop(&s->run);
	/*
	 * Serves until all clients have disconnected, as the program does with --listen and no
	 * commands.
	 */
	while (s->run.server != NULL && stop_signal == 0) {
		c = serve_counted(s->run.server);
		if (c.times_empty > 0 && c.present == 0)
			break;
		poll(NULL, 0, TICK_MS);
		background(s, in);
	}
	runner_unlisten(&s->run);
}

/*
 * Reads what the user types while a file is executed. Keeps it until the file has ended. Ctrl-C
 * ends all files that are open, the test and the listener.
 */
static void
terminal_watch(struct session *s)
{
	struct input *in = s->terminal;
	struct pollfd pfd;
	ssize_t n;

	if (in == NULL || in->eof)
		return;
	if (in->at == in->end)
		in->at = in->end = 0;
	pfd = (struct pollfd){.fd = in->fd, .events = POLLIN};
	if (in->end == sizeof(in->pending) || poll(&pfd, 1, 0) <= 0)
		return;
	n = read(in->fd, in->pending + in->end, sizeof(in->pending) - in->end);
	if (n <= 0)
		return;
	in->end += (size_t)n;
	if (memchr(in->pending + in->end - n, CTRL_C, (size_t)n) == NULL)
		return;
	printf("^C\n");
	in->at = in->end = 0;
	s->wait_until = 0;
	s->files_ended = true;
	runner_stop(&s->run);
	runner_unlisten(&s->run);
}

/* Executes the commands of an input. */
static void
commands_from(struct session *s, struct input *in)
{
	while (!signalled(s) && !s->files_ended && (!in->eof || s->wait_until != 0)) {
		input_take(s, in);
		if (!s->ended && !in->eof)
			input_read(s, in);
		else if (!s->ended)
			poll(NULL, 0, TICK_MS);
		background(s, in);
		if (in->file != NULL)
			terminal_watch(s);
	}
	/*
	 * After "quit" or a signal, tests and the listener stop. The listener also stops if the
	 * input of a terminal ended, because the user ended it.
	 */
	if (s->ended)
		runner_stop(&s->run);
	if (s->ended || in->cl != NULL)
		runner_unlisten(&s->run);
}

/*
 * Executes the commands of a file. Executes the next command only after a command such as "wait"
 * has ended. Continues after a wrong command. Returns 0, or -errno if the file cannot be opened or
 * read.
 */
static int
session_file(struct session *s, const char *path)
{
	struct input in = {.fd = open(path, O_RDONLY | O_CLOEXEC), .file = path};
	const char *outer = s->file;
	uint32_t outer_line = s->file_line;
	bool typed = s->typed;

	if (in.fd < 0)
		return -errno;
	s->file = path;
	s->file_depth++;
	/*
	 * The commands of the file were not typed, even if the user typed "load". So their errors
	 * count for the exit status.
	 */
	s->typed = false;
	commands_from(s, &in);
	s->typed = typed;
	s->file = outer;
	s->file_line = outer_line;
	if (--s->file_depth == 0)
		s->files_ended = false;
	close(in.fd);
	return in.rc;
}

static int
from_stdin(struct session *s)
{
	struct input in = {.fd = STDIN_FILENO};
	struct cmdline_inst **ctx;
	struct cmdline *cl;

	if (isatty(STDIN_FILENO) != 1) {
		commands_from(s, &in);
		return 0;
	}
	printf("help lists the commands, TAB completes, quit ends\n");
	fflush(stdout);
	ctx = complete_create(s);
	cl = ctx != NULL ? cmdline_stdin_new(ctx, PROMPT) : NULL;
	if (cl == NULL) {
		complete_free(ctx);
		say("no memory for the prompt");
		return -1;
	}
	in.cl = cl;
	s->terminal = &in;
	s->typed = true;
	commands_from(s, &in);
	s->typed = false;
	s->terminal = NULL;
	cmdline_stdin_exit(cl);
	complete_free(ctx);
	printf("\n");
	return 0;
}

static int
commands_all(struct session *s)
{
	struct input none = {.fd = -1};
	const char *path = s->set.cmdline_file;
	int rc = 0;

	if (!options_session(&s->set)) {
		/*
		 * No commands were given, and a run on several lcores needs a session. Executes
		 * "start" and waits for its end.
		 */
		command_line(s, "start");
	} else {
		if (path != NULL)
			rc = session_file(s, path);
		if (rc != 0)
			say("--cmdline-file %s: %s; give a file of commands", path, strerror(-rc));
		if (rc == 0 && s->set.interactive && !s->ended)
			rc = from_stdin(s);
	}
	finish(s, &none);
	return rc;
}

static int
status(const struct session *s)
{
	if (stop_signal != 0)
		return s->run.errors > 0 ? EXIT_FAILED : 128 + stop_signal;
	return s->run.errors > 0 || s->n_wrong > 0 ? EXIT_FAILED : 0;
}

int
session_run(const struct options *first)
{
	static struct session session;
	struct session *s = &session;
	int rc;

	settings_init();
	s->set = *first;
	s->device = first->device;
	s->load = session_file;
	s->t.o = *first;
	rc = -tester_open_device(&s->t);
	json_start(&s->t);
	if (rc == 0 && runner_init(&s->run, &s->t) != 0) {
		say("no memory; give EAL more (-m MB, hugepages)");
		rc = EXIT_FAILED;
	}
	s->last_shown_at = rte_rdtsc();
	if (rc == 0) {
		rc = commands_all(s) != 0 ? EXIT_USAGE : status(s);
		runner_free(&s->run);
	}
	s->t.ntests = s->run.tests;
	s->t.passed = s->run.passed;
	s->t.failed = s->run.failed;
	s->t.errors = s->run.errors;
	s->t.verified = s->run.verified;
	if (json_close(&s->t, rc) != 0 && rc == 0)
		rc = EXIT_FAILED;
	tester_close_device(&s->t);
	return rc;
}
