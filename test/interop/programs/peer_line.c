/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peer_line.h"

#define MAX_ARGS 24
#define PATTERN  251

static struct {
	char *name;
	char *value;
} args[MAX_ARGS];
static int nb_args;

static struct {
	uint8_t *mem;
	uint64_t size;
} mems[LINE_TABLE];

void
line_ok(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("ok ");
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
}

void
line_fail(int err, const char *what)
{
	printf("error %d %s: %s\n", err, what, strerror(err));
}

void
line_done(int rc, const char *what)
{
	if (rc != 0)
		line_fail(rc, what);
	else
		line_ok("%s", "");
}

const char *
line_text(const char *name, const char *otherwise)
{
	for (int i = 0; i < nb_args; i++)
		if (strcmp(args[i].name, name) == 0)
			return args[i].value;
	return otherwise;
}

uint64_t
line_number(const char *name, uint64_t otherwise)
{
	const char *s = line_text(name, NULL);

	return s == NULL ? otherwise : strtoull(s, NULL, 0);
}

unsigned int
line_side(void)
{
	return line_number("on", 0) == 1;
}

unsigned int
line_index(const char *name)
{
	uint64_t n = line_number(name, 0);

	return line_side() * LINE_OBJECTS + (n < LINE_OBJECTS ? (unsigned int)n : 0);
}

unsigned int
line_access(const char *letters)
{
	unsigned int flags = 0;

	for (; *letters != '\0'; letters++)
		flags |= *letters == 'l'   ? LINE_ACCESS_LOCAL_WRITE
			 : *letters == 'w' ? LINE_ACCESS_REMOTE_WRITE
			 : *letters == 'r' ? LINE_ACCESS_REMOTE_READ
			 : *letters == 'a' ? LINE_ACCESS_REMOTE_ATOMIC
			 : *letters == 'b' ? LINE_ACCESS_MW_BIND
					   : 0;
	return flags;
}

enum line_op
line_op(void)
{
	/* In the order of enum line_op. */
	static const char *const names[LINE_OPS] = {
		"send", "send_imm",  "send_inv", "write",     "write_imm",
		"read", "fetch_add", "cmp_swap", "local_inv", "bind"};
	const char *name = line_text("op", "");
	unsigned int i;

	for (i = 0; i < LINE_OPS; i++)
		if (strcmp(names[i], name) == 0)
			break;
	return (enum line_op)i;
}

void
line_mem_set(unsigned int mr, void *mem, uint64_t size)
{
	mems[mr].mem = mem;
	mems[mr].size = size;
}

uint8_t *
line_place(uint64_t len)
{
	unsigned int mr = line_index("mr");
	uint64_t off = line_number("off", 0);

	if (mems[mr].mem == NULL || len > mems[mr].size || off > mems[mr].size - len) {
		line_fail(ERANGE, "mr");
		return NULL;
	}
	return mems[mr].mem + off;
}

int64_t
line_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static void
cmd_fill(void)
{
	uint64_t i, len = line_number("len", 0), seed = line_number("seed", 0);
	uint8_t *p = line_place(len);

	if (p == NULL)
		return;
	for (i = 0; i < len; i++)
		p[i] = (seed + i) % PATTERN;
	line_done(0, NULL);
}

static void
cmd_verify(void)
{
	uint64_t i, len = line_number("len", 0), seed = line_number("seed", 0);
	uint8_t *p = line_place(len);

	if (p == NULL)
		return;
	for (i = 0; i < len && p[i] == (seed + i) % PATTERN; i++)
		;
	if (i < len)
		line_ok("differs=%" PRIu64, i);
	else
		line_ok("differs=no");
}

static void
cmd_peek(void)
{
	uint8_t *p = line_place(sizeof(uint64_t));
	uint64_t value;

	if (p == NULL)
		return;
	memcpy(&value, p, sizeof(value));
	line_ok("value=0x%" PRIx64, value);
}

static void
cmd_poke(void)
{
	uint8_t *p = line_place(sizeof(uint64_t));
	uint64_t value = line_number("value", 0);

	if (p == NULL)
		return;
	memcpy(p, &value, sizeof(value));
	line_done(0, NULL);
}

static int
run_one(const char *word, const struct line_command *commands, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (strcmp(commands[i].name, word) == 0) {
			commands[i].run();
			return 1;
		}
	}
	return 0;
}

void
line_run(char *line, const struct line_command *commands, unsigned int n)
{
	static const struct line_command memory[] = {
		{"fill", cmd_fill}, {"verify", cmd_verify}, {"peek", cmd_peek}, {"poke", cmd_poke}};
	char *save, *word = strtok_r(line, " \n", &save), *pair, *value;

	if (word == NULL)
		return;
	for (nb_args = 0; nb_args < MAX_ARGS; nb_args++) {
		pair = strtok_r(NULL, " \n", &save);
		value = pair == NULL ? NULL : strchr(pair, '=');
		if (value == NULL)
			break;
		*value = '\0';
		args[nb_args].name = pair;
		args[nb_args].value = value + 1;
	}
	if (!run_one(word, commands, n) &&
	    !run_one(word, memory, sizeof(memory) / sizeof(memory[0])))
		line_fail(EINVAL, word);
}
