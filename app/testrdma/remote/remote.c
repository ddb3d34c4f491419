/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <ctype.h>
#include <errno.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_cycles.h>

#include "remote.h"
#include "stall.h"

#define CHUNK        (UINT64_C(1) << 20) /* maximum bytes of one WRITE or READ that copies memory */
#define WAIT_SECONDS 30                  /* maximum wait for an event of the CM */

/*
 * Polls the connection manager until it has an event of @conn. @return false if it had none in
 * WAIT_SECONDS.
 */
static bool
event_wait(struct tester *t, struct bb_conn *conn, struct bb_cm_event *ev)
{
	uint64_t end = rte_rdtsc() + WAIT_SECONDS * t->tsc_hz;

	while (rte_rdtsc() < end && !tester_stopping(t))
		if (bb_cm_poll(t->cm, ev, 1) == 1 && ev->conn == conn)
			return true;
	return false;
}

/*
 * Prints why a connection failed: the reason of the CM, and the text of the listening process if it
 * has sent one.
 */
static void
refused(const struct tester *t, const struct bb_cm_event *ev)
{
	const char *text = ev->private_data;
	uint32_t i;

	for (i = 0; text != NULL && i < ev->private_len && isprint((unsigned char)text[i]) != 0;
	     i++)
		;
	if (ev->type == BB_CM_REJECTED && i > 0 && i == ev->private_len)
		say("--connect %s: the target rejected the connection: %.*s", t->o.connect, (int)i,
		    text);
	else
		say("--connect %s: %s: %s%s", t->o.connect, bb_cm_event_name(ev->type), ev->why,
		    ev->status == -ECONNREFUSED ? "; start testrdma -- --listen at the target first"
						: "");
}

static int
pair_connect(struct tester *t, struct pair *p, const struct sockaddr_storage *addr,
	     struct remote_hello *hello)
{
	struct bb_conn_param param;
	struct bb_region region;
	struct bb_cm_event ev;
	int rc;

	hello->index = rte_cpu_to_be_32(p->index);
	bb_conn_param_init(&param);
	param.access = BB_ACCESS_REMOTE_WRITE;
	param.ack_timeout = REMOTE_ACK_TIMEOUT;
	param.private_data = hello;
	param.private_len = sizeof(*hello);
	param.initiator_depth = (uint8_t)RTE_MIN(16u, t->attr.max_rd_atomic);
	rc = bb_conn_connect(t->cm, (const struct sockaddr *)addr, p->qp, &param, &p->conn);
	if (rc != 0) {
		say("--connect %s: the connection cannot be started: %s", t->o.connect,
		    strerror(-rc));
		return rc;
	}
	if (!event_wait(t, p->conn, &ev)) {
		say("--connect %s: %s", t->o.connect,
		    tester_stopping(t) ? "stopped while waiting for an answer"
				       : "no answer; does the peer run testrdma -- --listen?");
		return -ETIMEDOUT;
	}
	if (ev.type != BB_CM_ESTABLISHED) {
		refused(t, &ev);
		return -ECONNREFUSED;
	}
	rc = bb_conn_region(p->conn, REMOTE_REGION, &region);
	if (rc != 0 || region.len < t->remote.len + (uint64_t)t->npairs * REMOTE_CTL) {
		say("--connect %s: the target offers too little memory; do both ends run the "
		    "same version of testrdma?",
		    t->o.connect);
		return -EPROTO;
	}
	p->target_delta = region.addr - (uint64_t)(uintptr_t)t->remote.mem;
	p->target_rkey = region.rkey;
	return 0;
}

int
remote_connect(struct tester *t)
{
	struct remote_hello hello = {
		.magic = rte_cpu_to_be_32(REMOTE_MAGIC),
		.version = rte_cpu_to_be_32(REMOTE_VERSION),
		.bytes = rte_cpu_to_be_64(t->remote.len),
		.addr = rte_cpu_to_be_64((uint64_t)(uintptr_t)t->local.mem),
		.rkey = rte_cpu_to_be_32(t->local.mr->rkey),
		.conns = rte_cpu_to_be_32(t->npairs),
		.depth = rte_cpu_to_be_32(options_two_sided(&t->o) ? t->o.depth : 1),
		.sgl = rte_cpu_to_be_32(t->o.sgl),
		.max_inline = rte_cpu_to_be_32(t->o.max_inline),
	};
	struct sockaddr_storage addr;
	struct bb_cm_attr attr;
	uint64_t token;
	uint32_t i;
	int rc;

	/*
	 * The token is random, because a process that guesses it could access the memory of this
	 * test.
	 */
	if (getrandom(&token, sizeof(token), 0) != (ssize_t)sizeof(token)) {
		say("--connect: no random number from the kernel: getrandom(): %s",
		    strerror(errno));
		return -EIO;
	}
	hello.token = token;
	if (bb_cm_addr(t->o.connect, &addr) != 0) {
		say("--connect %s: give an address and a port, as in 192.0.2.1:18515",
		    t->o.connect);
		return -EINVAL;
	}
	bb_cm_attr_init(&attr);
	rc = bb_cm_create(t->dev, &attr, &t->cm);
	if (rc != 0) {
		say("--connect: the connection manager cannot be created: %s", strerror(-rc));
		return rc;
	}
	for (i = 0; i < t->npairs && rc == 0; i++)
		rc = pair_connect(t, &t->pairs[i], &addr, &hello);
	return rc;
}

void
remote_close(struct tester *t)
{
	struct bb_cm_event ev;
	uint32_t i;

	for (i = 0; i < t->npairs; i++) {
		struct pair *p = &t->pairs[i];

		if (p->conn == NULL)
			continue;
		/*
		 * Waits until the connection has ended, except after a fatal error, because the
		 * peer may then be suspended.
		 */
		if (bb_conn_disconnect(p->conn, NULL, 0) == 0 && !t->fatal)
			event_wait(t, p->conn, &ev);
		bb_conn_destroy(p->conn);
		p->conn = NULL;
	}
	if (t->cm != NULL)
		bb_cm_destroy(t->cm);
	t->cm = NULL;
}

/*
 * Posts one WRITE (@push) or READ that copies @len bytes at offset @off. Uses the QP of the first
 * pair.
 */
static bool
copy_chunk(struct tester *t, uint64_t off, uint32_t len, bool push)
{
	uint64_t raddr = (uint64_t)(uintptr_t)t->remote.mem + t->pairs[0].target_delta + off;
	uint64_t end = rte_rdtsc() + WAIT_SECONDS * t->tsc_hz;
	struct bb_sge sge = {.addr = (uint64_t)(uintptr_t)t->remote.mem + off,
			     .len = len,
			     .lkey = t->remote.mr->lkey};
	const struct pair *p = &t->pairs[0];
	struct bb_wc wc = {.status = BB_WC_GENERAL_ERR};
	unsigned int n = 0;
	int rc;

	rc = push ? bb_post_write(p->qp, WR_COPY, &sge, 1, raddr, p->target_rkey, BB_SEND_SIGNALED)
		  : bb_post_read(p->qp, WR_COPY, &sge, 1, raddr, p->target_rkey, BB_SEND_SIGNALED);
	if (rc == 0) {
		bb_qp_ring(p->qp);
		while ((n = bb_cq_poll(t->scq, &wc, 1)) == 0 || wc.wr_id != WR_COPY) {
			if (n == 1)
				send_completed(t, &wc);
			if (t->fatal || rte_rdtsc() >= end || stall_abandoned(t, rte_rdtsc()))
				break;
		}
	}
	if (n == 1 && wc.wr_id == WR_COPY && wc.status == BB_WC_SUCCESS)
		return true;
	if (t->fatal)
		return false;
	report_fail(t, "the target's memory could not be %s for checking: %s",
		    push ? "written" : "read back",
		    n == 1 ? bb_wc_status_cause(wc.status, wc.vendor_err) : "no completion");
	t->fatal = true;
	return false;
}

static void
copy(struct tester *t, bool push)
{
	uint64_t off, len = 2 * EDGE + (uint64_t)t->nflows * t->test->slots * t->remote.lay.stride;

	if (t->cm == NULL || t->fatal)
		return;
	for (off = 0; off < len; off += CHUNK)
		if (!copy_chunk(t, off, (uint32_t)RTE_MIN(CHUNK, len - off), push))
			return;
}

void
remote_push(struct tester *t)
{
	copy(t, true);
}

void
remote_pull(struct tester *t)
{
	copy(t, false);
}
