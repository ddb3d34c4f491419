/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "child.h"
#include "ucx.h"

#define SECONDS 60
#define COLUMNS 8 /* number of columns of a result line; the last has messages per second */
#define MAX_ENV 512

/* Returns the path of ucx_perftest, NULL if it is not in PATH. */
static const char *
program(void)
{
	static char path[512];
	char *copy, *dir, *save = NULL;
	const char *dirs = getenv("PATH");

	if (path[0] != '\0')
		return path;
	copy = strdup(dirs != NULL ? dirs : "/usr/bin");
	for (dir = copy != NULL ? strtok_r(copy, ":", &save) : NULL; dir != NULL;
	     dir = strtok_r(NULL, ":", &save)) {
		snprintf(path, sizeof(path), "%s/ucx_perftest", dir);
		if (access(path, X_OK) == 0)
			break;
		path[0] = '\0';
	}
	free(copy);
	return path[0] != '\0' ? path : NULL;
}

bool
ucx_present(void)
{
	return program() != NULL;
}

/* Returns a TCP port that is free now, for the handshake of both processes; 0 if there is none. */
static unsigned int
free_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(a);
	unsigned int port = 0;

	if (fd < 0)
		return 0;
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 &&
	    getsockname(fd, (struct sockaddr *)&a, &len) == 0)
		port = ntohs(a.sin_port);
	close(fd);
	return port;
}

/*
 * Builds the environment of ucx_perftest: the environment of this process without UCX_*, then the
 * settings of the test.
 */
static void
make_env(const char *tls, char *own, size_t size, char **env)
{
	static char warn[] = "UCX_WARN_UNUSED_ENV_VARS=n", dev[] = "UCX_NET_DEVICES=lo",
		    locale[] = "LC_ALL=C";
	unsigned int i, n = 0;

	for (i = 0; environ[i] != NULL && n < MAX_ENV - 5; i++)
		if (strncmp(environ[i], "UCX_", 4) != 0 && strncmp(environ[i], "LC_", 3) != 0)
			env[n++] = environ[i];
	snprintf(own, size, "UCX_TLS=%s", tls);
	env[n++] = own;
	env[n++] = warn;
	env[n++] = locale;
	if (strcmp(tls, "tcp") == 0)
		env[n++] = dev;
	env[n] = NULL;
}

/* Returns the last number of the last line that has eight numbers separated by commas. */
static double
parse(char *text)
{
	double v, mr = -1;
	char *line, *save = NULL, *at, *end;
	unsigned int i;

	for (line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		for (i = 0, at = line; i < COLUMNS; i++, at = end + 1) {
			v = strtod(at, &end);
			if (end == at || *end != (i == COLUMNS - 1 ? '\0' : ','))
				break;
		}
		if (i == COLUMNS && v > 0)
			mr = v;
	}
	return mr;
}

/*
 * Waits until the server process ends, which it does when its client is done. With @at_once kills
 * it first.
 */
static void
end_server(pid_t pid, bool at_once)
{
	uint64_t start = tsc();

	if (at_once)
		kill(pid, SIGKILL);
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		if (!at_once && ns_since(start) > SECONDS * 1e9) {
			kill(pid, SIGKILL);
			at_once = true;
		}
		usleep(1000);
	}
}

/* Runs a test with a server and a client process. Returns messages per second. */
static double
run(const struct ucx_test *t)
{
	const char *path = program();
	char n[24], warm[24], size[16], port[16], tls[64], text[16384];
	const char *client[] = {path, "127.0.0.1", "-t", t->test, "-f", "-v", "-p", port,
				"-s", size,        "-n", n,       "-w", warm, NULL};
	const char *server[] = {path, "-p", port, NULL};
	char *env[MAX_ENV];
	double mr = -1;
	uint64_t start;
	int rc;
	pid_t pid;

	if (path == NULL || !have_peer_cpu())
		return -1;
	snprintf(n, sizeof(n), "%lu", (unsigned long)t->n);
	snprintf(warm, sizeof(warm), "%lu", (unsigned long)(t->n / 10 + 1));
	snprintf(size, sizeof(size), "%u", t->size);
	snprintf(port, sizeof(port), "%u", free_port());
	make_env(t->tls, tls, sizeof(tls), env);
	pid = child_spawn(path, server, env, cpu_peer, -1);
	if (pid < 0)
		return -1;
	start = tsc();
	/*
	 * Runs the client again while it fails, because the server needs a moment before it
	 * listens.
	 */
	do {
		usleep(5000);
		rc = child_run(path, client, env, text, sizeof(text));
	} while (rc == -EAGAIN && ns_since(start) < SECONDS * 1e9);
	end_server(pid, rc != 0);
	if (rc == 0)
		mr = parse(text);
	if (mr <= 0)
		fprintf(stderr, "bench: ucx_perftest -t %s with UCX_TLS=%s gives no result\n",
			t->test, t->tls);
	return mr;
}

double
ucx_latency(void *test)
{
	double mr = run(test);

	/*
	 * Computes the time from the rate, because ucx_perftest prints the rate with more digits
	 * than the time.
	 */
	return mr > 0 ? 1e9 / mr : -1;
}

double
ucx_rate(void *test)
{
	double mr = run(test);

	return mr > 0 ? mr / 1e6 : -1;
}

double
ucx_bandwidth(void *test)
{
	const struct ucx_test *t = test;
	double mr = run(t);

	return mr > 0 ? mr * t->size / 1e9 : -1;
}
