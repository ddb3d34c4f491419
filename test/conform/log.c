/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Captures EAL's log in memory, so that rows can check what the library logs. */
#include <strings.h>

#include <rte_log.h>

#include "conform.h"

#define LINES 256
#define WIDTH 512

/* The device may log from a thread of its own. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char line[LINES][WIDTH];
static unsigned int n_lines; /* since log_clear(); the last LINES are stored */
static size_t at;            /* bytes of the line being written */
static FILE *stream;

static ssize_t
take(void *cookie, const char *buf, size_t size)
{
	(void)cookie;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < size; i++) {
		char *l = line[n_lines % LINES];

		if (buf[i] == '\n') {
			l[at] = '\0';
			at = 0;
			n_lines++;
		} else if (at + 1 < WIDTH) {
			l[at++] = buf[i];
		}
	}
	pthread_mutex_unlock(&lock);
	return (ssize_t)size;
}

int
log_start(void)
{
	const cookie_io_functions_t io = {.write = take};

	stream = fopencookie(NULL, "w", io);
	if (stream == NULL)
		return -ENOMEM;
	setvbuf(stream, NULL, _IOLBF, 2048);
	return rte_openlog_stream(stream);
}

void
log_stop(void)
{
	rte_openlog_stream(stderr);
	if (stream != NULL)
		fclose(stream);
	stream = NULL;
}

void
log_clear(void)
{
	pthread_mutex_lock(&lock);
	n_lines = 0;
	at = 0;
	pthread_mutex_unlock(&lock);
}

unsigned int
log_lines(void)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = n_lines;
	pthread_mutex_unlock(&lock);
	return n;
}

static unsigned int
first_kept(void)
{
	return n_lines > LINES ? n_lines - LINES : 0;
}

/* Returns whether the software device logged the line; a card or the kernel would not log it. */
static bool
of_device(const char *text)
{
	return strncmp(text, "soft: ", 6) == 0;
}

/* Counts lines with @word, without those of the software device if @own. */
static unsigned int
having(const char *word, bool own)
{
	unsigned int i, n = 0;

	pthread_mutex_lock(&lock);
	for (i = first_kept(); i < n_lines; i++)
		n += strcasestr(line[i % LINES], word) != NULL &&
		     !(own && of_device(line[i % LINES]));
	pthread_mutex_unlock(&lock);
	return n;
}

unsigned int
log_having(const char *word)
{
	return having(word, false);
}

void
log_last(char *buf, size_t size)
{
	pthread_mutex_lock(&lock);
	snprintf(buf, size, "%s", n_lines == 0 ? "" : line[(n_lines - 1) % LINES]);
	pthread_mutex_unlock(&lock);
}

void
log_dump(FILE *out)
{
	pthread_mutex_lock(&lock);
	for (unsigned int i = first_kept(); i < n_lines; i++)
		fprintf(out, "    log: %s\n", line[i % LINES]);
	pthread_mutex_unlock(&lock);
}

static unsigned int
device_lines(void)
{
	unsigned int i, n = 0;

	pthread_mutex_lock(&lock);
	for (i = first_kept(); i < n_lines; i++)
		n += of_device(line[i % LINES]);
	pthread_mutex_unlock(&lock);
	return n;
}

void
check_refused(struct fx *fx, const char *call, int got, int want, const char *word)
{
	unsigned int lines = log_lines(), device = device_lines();
	char last[WIDTH];

	log_last(last, sizeof(last));
	CHECK(fx, got == want, "%s: returned %d (%s), expected %d (%s)", call, got,
	      got < 0 ? strerror(-got) : "not refused", want, strerror(-want));
	CHECK(fx, lines != 0, "%s: refused as it should be, but nothing is logged", call);
	CHECK(fx, lines - device <= 1 && device <= 1,
	      "%s: refused as it should be, but %u lines were logged (and %u by the software "
	      "device), the last: %s",
	      call, lines - device, device, last);
	/* The library or its driver must log it: on a card there is no other log. */
	CHECK(fx, having(word, true) != 0, "%s: the library's log says nothing of \"%s\": %s", call,
	      word, last);
}
