/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The commands of a session, and the parsing of a command line. */
#include <math.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <rte_cycles.h>

#include "session.h"

static bool
takes_no_argument(struct session *s, unsigned int argc, char **argv)
{
	if (argc == 1)
		return true;
	command_error(s, "%s takes no argument; leave out \"%s\"", argv[0], argv[1]);
	return false;
}

static void
start_run(struct session *s, unsigned int argc, char **argv)
{
	struct options fitted = s->set;

	if (!takes_no_argument(s, argc, argv))
		return;
	if (s->run.running) {
		command_error(s, "start: a test is already running; stop it first");
		return;
	}
	if (s->run.server != NULL) {
		command_error(s, "start: this program listens, so its clients run the tests; "
				 "enter disconnect first");
		return;
	}
	if (options_fit(&fitted) != 0) {
		command_error(s, "start: the settings above do not fit each other; change one of "
				 "them");
		return;
	}
	s->t.o = fitted;
	if (runner_start(&s->run) != 0) {
		command_error(s, "start: the test was not started; show config lists the settings");
		return;
	}
	runner_totals(&s->run, &s->last_shown);
	s->last_shown_at = rte_rdtsc();
}

static void
stop_run(struct session *s, unsigned int argc, char **argv)
{
	if (!takes_no_argument(s, argc, argv))
		return;
	if (!s->run.running && s->run.server == NULL)
		command_error(s, "stop: no test is running, and no listener; start runs the tests");
	runner_stop(&s->run);
	runner_unlisten(&s->run);
}

static void
wait_run(struct session *s, unsigned int argc, char **argv)
{
	uint64_t hz = rte_get_tsc_hz();
	double seconds = 0;
	char *end;

	if (!s->run.running && s->run.server == NULL) {
		command_error(s, "wait: no test is running, and no listener; start runs the tests");
		return;
	}
	if (argc > 1) {
		seconds = strtod(argv[1], &end);
		if (*end != '\0' || !isfinite(seconds) || seconds < 0 || seconds > 86400 ||
		    argc > 2) {
			command_error(s, "wait: give a number of seconds from 0 to 86400, or "
					 "nothing");
			return;
		}
	} else if (s->run.running && isinf(s->t.o.duration)) {
		command_error(s, "wait: the running test has no end; give wait SECONDS, then "
				 "stop, or set duration SECONDS before start");
		return;
	}
	s->wait_until = argc == 1 ? UINT64_MAX : rte_rdtsc() + 1 + (uint64_t)(seconds * (double)hz);
}

/* Parses the address in @argv into s->peer. Fails if the address in s->peer is in use. */
static bool
peer_set(struct session *s, unsigned int argc, char **argv)
{
	struct sockaddr_storage addr;

	if (argc != 2 || strlen(argv[1]) >= sizeof(s->peer) || bb_cm_addr(argv[1], &addr) != 0) {
		command_error(s, "%s%s%s: give an address and a port, as in 192.0.2.1:18515",
			      argv[0], argc > 1 ? " " : "", argc > 1 ? argv[1] : "");
		return false;
	}
	/* Refuses to change s->peer while a test runs, because the test uses it. */
	if (s->run.running) {
		command_error(s, "%s: a test is running; enter stop first", argv[0]);
		return false;
	}
	if (s->run.server != NULL) {
		command_error(s, "%s: this program listens at port %u; enter disconnect first",
			      argv[0], serve_counted(s->run.server).port);
		return false;
	}
	return true;
}

static void
connect_run(struct session *s, unsigned int argc, char **argv)
{
	if (!peer_set(s, argc, argv))
		return;
	strcpy(s->peer, argv[1]);
	s->set.connect = s->peer;
}

static void
listen_run(struct session *s, unsigned int argc, char **argv)
{
	if (!peer_set(s, argc, argv))
		return;
	if (s->set.connect != NULL) {
		command_error(s,
			      "listen: the tests of this program use the target %s; enter "
			      "disconnect first",
			      s->set.connect);
		return;
	}
	strcpy(s->peer, argv[1]);
	s->clients_awaited = 0;
	s->t.o = s->set;
	s->t.o.listen = s->peer;
	if (runner_listen(&s->run) != 0)
		command_error(s, "listen: the listener was not created; the lines above say why");
	s->last_shown_at = rte_rdtsc();
}

static void
disconnect_run(struct session *s, unsigned int argc, char **argv)
{
	if (!takes_no_argument(s, argc, argv))
		return;
	if (s->run.server != NULL) {
		runner_unlisten(&s->run);
		return;
	}
	if (s->set.connect == NULL) {
		command_error(s, "disconnect: there is no listener to end, and no target set by "
				 "connect");
		return;
	}
	if (s->run.running) {
		command_error(s, "disconnect: a test is running; enter stop first");
		return;
	}
	runner_close(&s->run);
	s->set.connect = NULL;
}

static void
clear_run(struct session *s, unsigned int argc, char **argv)
{
	if (!takes_no_argument(s, argc, argv))
		return;
	runner_clear(&s->run);
	interval_clear();
	runner_totals(&s->run, &s->last_shown);
	s->last_shown_at = rte_rdtsc();
}

static void
load_run(struct session *s, unsigned int argc, char **argv)
{
	int rc;

	if (argc != 2) {
		command_error(s, "load: give one file of commands; its name must have no blanks");
		return;
	}
	if (s->file_depth == SESSION_FILES) {
		command_error(s, "load %s: %d files are open already; does a file load itself?",
			      argv[1], SESSION_FILES);
		return;
	}
	rc = s->load(s, argv[1]);
	if (rc != 0)
		command_error(s, "load %s: %s; give a file of commands", argv[1], strerror(-rc));
}

static void
quit_run(struct session *s, unsigned int argc, char **argv)
{
	s->ended |= takes_no_argument(s, argc, argv);
}

static const struct command *
command_find(const char *name)
{
	const struct command *c;

	for (c = commands; c->name != NULL; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

static void
unknown(struct session *s, const char *name)
{
	const struct command *c;

	command_error_begin(s);
	fprintf(stderr, "\"%s\" is not a command; the commands are:", name);
	for (c = commands; c->name != NULL; c++)
		fprintf(stderr, " %s", c->name);
	fprintf(stderr, "\n");
}

static void
help_run(struct session *s, unsigned int argc, char **argv)
{
	const struct argument *a;
	const struct command *c;

	if (argc > 2) {
		command_error(s, "help: give one command, or nothing for a list of all");
		return;
	}
	if (argc == 2) {
		c = command_find(argv[1]);
		if (c == NULL) {
			unknown(s, argv[1]);
			return;
		}
		printf("%s%s%s: %s\n", c->name, c->form[0] != '\0' ? " " : "", c->form, c->help);
		for (a = c->args; a != NULL && a->name != NULL; a++)
			printf("  %-14s %s\n", a->name, a->help);
		return;
	}
	for (c = commands; c->name != NULL; c++)
		printf("  %-10s %-13s %s\n", c->name, c->form, c->help);
	printf("TAB completes, ? lists the choices, arrow up recalls a line. # begins a "
	       "comment.\n");
}

const struct command commands[] = {
	{"show", "WHAT", "print a state; help show lists which", show_args, show_run},
	{"set", "WHAT VALUE", "change a setting of the next start; help set lists them",
	 setting_args, setting_run},
	{"start", "", "run every operation in every size, in the background", NULL, start_run},
	{"stop", "", "end the test or the listener, and print the summary", NULL, stop_run},
	{"wait", "[SECONDS]", "wait for the end of the run or of the client, at most SECONDS", NULL,
	 wait_run},
	{"listen", "ADDRESS:PORT",
	 "be the target of programs that connect; without ADDRESS at all addresses", NULL,
	 listen_run},
	{"connect", "ADDRESS:PORT", "use the target that listens there for the next starts", NULL,
	 connect_run},
	{"fault", "KIND VALUE",
	 "set a fault of outgoing packets; rx KIND VALUE: of incoming ones; alone: list all",
	 fault_args, fault_run},
	{"disconnect", "", "end the listener, or make this process the target of starts again",
	 NULL, disconnect_run},
	{"clear", "", "set statistics and latencies to zero", NULL, clear_run},
	{"load", "FILE", "execute the commands of a file; it may load other files", NULL, load_run},
	{"help", "[COMMAND]", "list the commands, or describe one", NULL, help_run},
	{"quit", "", "end the test and the program", NULL, quit_run},
	{NULL, NULL, NULL, NULL, NULL},
};

void
command_line(struct session *s, const char *text)
{
	char line[SESSION_LINE], *argv[SESSION_WORDS], *save = NULL, *word;
	const struct command *c;
	unsigned int argc = 0;

	if (snprintf(line, sizeof(line), "%s", text) >= (int)sizeof(line)) {
		command_error(s, "the command has more than %d characters and was not executed",
			      SESSION_LINE - 1);
		return;
	}
	line[strcspn(line, "#")] = '\0';
	for (word = strtok_r(line, " \t\r\n", &save); word != NULL;
	     word = strtok_r(NULL, " \t\r\n", &save)) {
		if (argc == SESSION_WORDS) {
			command_error(s, "the command has more than %d words and was not executed",
				      SESSION_WORDS);
			return;
		}
		argv[argc++] = word;
	}
	if (argc == 0)
		return;
	c = command_find(argv[0]);
	if (c != NULL)
		c->run(s, argc, argv);
	else
		unknown(s, argv[0]);
	fflush(stdout);
}
