/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <string.h>
#include <unistd.h>

#include "raw.h"

/* Bytes of a memif buffer, which holds a packet of MTU 4096 with all its headers. */
#define MEMIF_BUFFER   4608
#define MEMIF_LOG_RING 10

void
raw_memif_text(char *text, size_t size, bool server, uint32_t id, uint32_t serial)
{
	/*
	 * The socket is abstract, so it needs no file. Its name contains the pid of this process,
	 * and the second process gets the name in its command.
	 */
	static pid_t pid;

	if (pid == 0)
		pid = getpid();
	snprintf(text, size,
		 "net_memif%u,role=%s,id=%u,bsize=%u,rsize=%u,socket=@bluebell-bench-%d-%u-%u,"
		 "socket-abstract=yes",
		 id, server ? "server" : "client", id, MEMIF_BUFFER, MEMIF_LOG_RING, pid, id,
		 serial);
}

int
raw_open(struct raw *raw, uint32_t index, const char *here, const char *there)
{
	struct remote_msg msg = {.op = REMOTE_NET_OPEN, .net = index};
	int rc = remote_start();

	raw->index = index;
	if (rc == 0)
		rc = baseline_net_open(&raw->net, here);
	if (rc != 0)
		return rc;
	snprintf(msg.text, sizeof(msg.text), "%s", there);
	rc = remote_call(&msg);
	if (rc != 0)
		baseline_net_close(&raw->net);
	return rc;
}

int
raw_open_memif(struct raw *raw, uint32_t index, uint32_t id)
{
	char here[REMOTE_TEXT], there[REMOTE_TEXT];
	static uint32_t serial;

	serial++;
	raw_memif_text(here, sizeof(here), true, id, serial);
	raw_memif_text(there, sizeof(there), false, id, serial);
	return raw_open(raw, index, here, there);
}

void
raw_close(struct raw *raw)
{
	struct remote_msg msg = {.op = REMOTE_NET_CLOSE, .net = raw->index};

	/*
	 * Closes both ends while no process polls them, because net_memif crashes if its peer
	 * closes during a poll.
	 */
	remote_call(&msg);
	baseline_net_close(&raw->net);
}

/*
 * Sends the pings in two groups of equal size. Times the first group as a whole, and writes that
 * time to *@ns. Times each ping of the second group.
 */
static int
pings(struct baseline_net *net, const struct raw_run *r, double *ns)
{
	const uint64_t half = r->n / 2;
	uint64_t k, t = tsc();
	int rc;

	rc = baseline_net_ping(net, 1, half, r->size);
	*ns = ns_since(t);
	t = tsc();
	for (k = half; k < r->n && rc == 0; k++) {
		rc = baseline_net_ping(net, k, k + 1, r->size);
		sample_round_trip(&t);
	}
	return rc;
}

/*
 * Returns the time in ns that all packets took. With @ping returns the time of the first half of
 * the pings. Returns a negative number on an error.
 */
static double
run(const struct raw_run *r, bool ping)
{
	struct remote_msg msg = {
		.op = ping ? REMOTE_NET_ECHO : REMOTE_NET_SINK,
		.net = r->raw->index,
		.n = r->n,
		.size = r->size,
		.window = r->window,
	};
	struct baseline_net *net = &r->raw->net;
	int rc = 0;
	double ns = -1;
	uint64_t t;

	if (remote_send(&msg) != 0)
		return -1;
	/* Does not measure ping 0, because it waits for the link and wakes the second process. */
	if (ping)
		rc = baseline_net_ping(net, 0, 1, r->size);
	if (rc == 0 && ping) {
		rc = pings(net, r, &ns);
	} else if (rc == 0) {
		t = tsc();
		rc = baseline_net_source(net, r->n, r->size, r->window);
		ns = ns_since(t);
	}
	if (rc == 0 && remote_wait(&msg) == 0)
		return ns;
	if (rc != 0)
		remote_stop(&msg);
	fprintf(stderr, "bench: the run with raw packets of %u bytes failed: %s\n", r->size,
		strerror(rc != 0 ? -rc : -msg.rc));
	return -1;
}

double
raw_latency(void *arg)
{
	const struct raw_run *r = arg;
	double ns = run(r, true);

	return ns > 0 ? ns / (double)(r->n / 2 - 1) / 2 : -1;
}

double
raw_rate(void *arg)
{
	const struct raw_run *r = arg;
	double ns = run(r, false);

	return ns > 0 ? 1000 * (double)r->n / ns : -1;
}

double
raw_bandwidth(void *arg)
{
	const struct raw_run *r = arg;
	double ns = run(r, false);

	return ns > 0 ? (double)r->n * r->size / ns : -1;
}
