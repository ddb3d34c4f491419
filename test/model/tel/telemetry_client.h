/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A client of rte_telemetry in the same process: sends requests on the socket, parses JSON
 * answers.
 */
#ifndef TELEMETRY_CLIENT_H
#define TELEMETRY_CLIENT_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <jansson.h>
#include <rte_eal.h>

#include "../../fakes/ring_port.h"
#include "../mlx5/mlx5_env.h"

/* Longest answer; DPDK reports this limit to each client. */
#define TEL_MAX 16384

struct tel {
	int fd;
	char buf[TEL_MAX + 1];
};

static inline size_t
tel_recv(struct tel *t)
{
	ssize_t n = recv(t->fd, t->buf, TEL_MAX, 0);

	assert_true(n > 0);
	t->buf[n] = '\0';
	return (size_t)n;
}

static inline void
tel_connect(struct tel *t)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	json_t *hello, *max;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/dpdk_telemetry.v2",
		 rte_eal_get_runtime_dir());
	t->fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	assert_true(t->fd >= 0);
	assert_int_equal(connect(t->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	tel_recv(t);
	hello = json_loads(t->buf, 0, NULL);
	max = json_object_get(hello, "max_output_len");
	assert_int_equal(json_integer_value(max), TEL_MAX);
	json_decref(hello);
}

static inline void
tel_close(struct tel *t)
{
	close(t->fd);
}

/*
 * Sends a request. Returns the answer, JSON with the endpoint as its only key, which the caller
 * releases.
 */
static inline json_t *
tel_ask_bytes(struct tel *t, const char *request, size_t len)
{
	json_t *all, *answer;
	json_error_t err;

	assert_int_equal(send(t->fd, request, len, 0), (ssize_t)len);
	tel_recv(t);
	all = json_loads(t->buf, 0, &err);
	if (all == NULL)
		print_error("\"%.*s\": %s: %.200s\n", (int)len, request, err.text, t->buf);
	assert_non_null(all);
	assert_int_equal(json_object_size(all), 1);
	answer = json_incref(json_object_iter_value(json_object_iter(all)));
	json_decref(all);
	return answer;
}

static inline json_t *
tel_ask(struct tel *t, const char *request)
{
	return tel_ask_bytes(t, request, strlen(request));
}

static inline json_t *
tel_ask_number(struct tel *t, const char *endpoint, const char *dev, uint64_t number)
{
	char request[128];

	snprintf(request, sizeof(request), "%s,%s%s%" PRIu64, endpoint, dev,
		 dev[0] != '\0' ? "," : "", number);
	return tel_ask(t, request);
}

static inline uint64_t
tel_uint(const json_t *answer, const char *field)
{
	const json_t *v = json_object_get(answer, field);

	if (!json_is_integer(v))
		print_error("no number \"%s\" in the answer\n", field);
	assert_true(json_is_integer(v));
	return (uint64_t)json_integer_value(v);
}

static inline const char *
tel_text(const json_t *answer, const char *field)
{
	const char *s = json_string_value(json_object_get(answer, field));

	if (s == NULL)
		print_error("no text \"%s\" in the answer\n", field);
	assert_non_null(s);
	return s;
}

/* Returns true if @list of a page contains @number. */
static inline bool
tel_listed(const json_t *answer, const char *list, uint64_t number)
{
	const json_t *a = json_object_get(answer, list);
	size_t i;

	assert_true(json_is_array(a));
	for (i = 0; i < json_array_size(a); i++)
		if ((uint64_t)json_integer_value(json_array_get(a, i)) == number)
			return true;
	return false;
}

/* Main function: runs the tests of a file with a client and a port. */
static inline int
tel_main(const char *prefix, const char *file, struct tel *client, struct ring_port *port)
{
	char program[32];
	int ret;

	/* The socket is named after the file prefix. */
	snprintf(program, sizeof(program), "%s%d", prefix, (int)getpid());
	ret = env_eal_init(program);
	if (ret != 0)
		return ret;
	if (!ring_port_open(port))
		return 1;
	tel_connect(client);
	ret = bb_test_run(file, NULL, NULL);
	tel_close(client);
	rte_eal_cleanup();
	return ret;
}

#endif
