/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Shared by the files of bb_perf.
 *
 * There is one queue pair and two halves of memory. Messages are sent from out, where results of
 * READs and atomics also arrive. The peer may write, read or send to in. As in perftest, message n
 * of a bandwidth test starts in a slot of a cycle buffer (struct msg_cycle); messages of all other
 * tests start at 0.
 *
 * Functions that can fail because of the peer or the network return 0, or -1 after they have
 * printed the reason.
 */
#ifndef PERF_H
#define PERF_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <bluebell.h>
#include <rte_branch_prediction.h>

#include "histogram.h"
#include "options.h"
#include "perf_msg.h"
#include "program.h"

#define UD_GRH     40         /* bytes before the data of a datagram */
#define PERF_QKEY  0x11111111 /* the same in all these programs */
#define PAGE       4096       /* interval at which pingpong -c checks a message */
#define POLL_BURST 16
/*
 * Set in the wr_id of receives. The wr_id of a send is the number of sends up to and including it.
 */
#define WR_RECV (UINT64_C(1) << 63)

/* Measurements. Cycles are TSC cycles. */
struct result {
	struct hist lat;      /* cycles of a round trip */
	uint64_t start, end;  /* TSC at the first and last message */
	uint64_t peak_cycles; /* cycles of the fastest interval, and messages in it */
	uint64_t peak_messages;
	uint64_t messages;      /* completed or received */
	uint64_t served;        /* requests of the peer that the device has executed */
	uint64_t checked;       /* bytes verified with --check */
	uint64_t words_grown;   /* total by which atomics have increased the words at the target */
	struct msg_report peer; /* report of the client of a bandwidth test */
	bool peer_reported;
};

struct perf {
	struct options o;
	bool server;
	struct bb_dev *dev;
	struct bb_dev_attr attr;
	struct bb_port_attr port;
	struct bb_path path;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_qp *qp;
	struct bb_ah *ah; /* UD */
	struct bb_mr *mr;
	uint8_t *mem, *out, *in;
	size_t half; /* bytes of each half */
	struct msg_cycle places;
	uint32_t mtu, cycle, line;
	uint32_t recv_step, recv_slots; /* receive slots start at in + slot * recv_step */
	uint64_t recv_posted, recv_done;
	uint64_t posted, done; /* number of requests */
	const uint8_t *src;    /* source of sends and WRITEs, slot 0 */
	const uint8_t *last;   /* last received message */
	uint64_t last_post;    /* TSC */
	struct bb_qp_addr addr;
	struct msg_keys own, peer;
	uint32_t peer_version; /* hundredths; 0 if the peer is not perftest */
	int fd;                /* TCP connection, -1 if none */
	/* Waiting: */
	uint32_t spins;
	uint64_t moved;      /* TSC of the last activity */
	uint64_t limit;      /* cycles without activity after which the peer counts as lost */
	uint64_t served_was; /* value of perf_served() at that time */
	bool peer_gone;      /* the peer closed its end of the connection */
	/* --check: a hash of the last contents of each slot; true if the peer's bytes are known. */
	uint64_t *seen;
	bool known;
	struct result res;
	uint64_t tsc_hz;
};

/* options.c */
extern const struct program perf_program;

/* setup.c */
int perf_open(struct perf *p);
/* Creates memory, queues and keys; MTU and sizes must be agreed. */
int perf_create(struct perf *p);
/* Connects to the QP in p->peer, to RTS. */
int perf_connect(struct perf *p);
void perf_close(struct perf *p);

/* tcp.c */
int tcp_open(struct perf *p);
/*
 * For a client that cannot run: connects to its server and closes, so that the server stops
 * waiting.
 */
void tcp_decline(const struct perf *p);
int tcp_write(struct perf *p, const void *buf, size_t len);
/* Reads exactly @len bytes and runs the device meanwhile. @what: name of the message for errors. */
int tcp_read(struct perf *p, void *buf, size_t len, const char *what);
/* Waits until the peer closes its end: until then it may need ACKs. */
void tcp_finish(struct perf *p);
void tcp_close(struct perf *p);

/* handshake.c: the peer's messages before and after the RDMA. */
int pingpong_begin(struct perf *p);
int perftest_begin(struct perf *p);
int perftest_end(struct perf *p);

/* wait.c */
/* Called when nothing arrived. Returns -1 to give up. */
int perf_idle(struct perf *p);
/* Records activity. */
void perf_moved(struct perf *p);
/* Runs the device for a while, because acknowledgements of the last message may be lost. */
void perf_linger(struct perf *p, double seconds);
/* Returns the number of requests that the device has executed for peers. */
uint64_t perf_served(struct perf *p);
/* Returns true if the peer has closed its end of the TCP connection. */
bool perf_peer_gone(const struct perf *p);

/* post.c */
/*
 * Posts message p->posted, from its slot to its slot; bb_qp_ring() publishes it.
 * @return 1; 0 if the queue is full; -1.
 */
int perf_post(struct perf *p, bool signaled);
int perf_post_recvs(struct perf *p);
/* Polls completions into p->done and p->recv_done; checks received messages. */
int perf_step(struct perf *p);
/* Polls until @done requests and @received receives have completed. */
int perf_wait(struct perf *p, uint64_t done, uint64_t received);

/* run_lat.c, run_bw.c: the RDMA of each kind of test. */
int run_pingpong(struct perf *p);
int run_write_lat(struct perf *p);
int run_lat(struct perf *p);
int run_send_lat(struct perf *p);
int run_bw(struct perf *p);
int run_send_bw_server(struct perf *p);

/* check.c */
int check_start(struct perf *p);
void check_stop(struct perf *p);
/* Checks message @n of a SEND test, or the result of READ @n, against its earlier contents. */
int check_message(struct perf *p, uint64_t n, const uint8_t *data);
/*
 * Checks the bytes of @half outside of its first @used messages, which must have the value @value.
 */
int check_gap(const struct perf *p, const uint8_t *half, uint64_t used, uint8_t value);
/* Checks the value that an atomic on the peer's word returned. */
int check_atomic(struct perf *p, uint64_t n, uint64_t old);
/* Target: checks what the peer did to this side's memory. */
int check_target(struct perf *p);
/* Fills, and checks, message @n of a pingpong client. */
void check_pingpong_fill(struct perf *p, uint64_t n);
int check_pingpong(struct perf *p, uint64_t n, const uint8_t *data);
/*
 * Checks all bytes of a write_lat message except the last, which counts messages, and overwrites
 * them for the next message.
 */
int check_write_lat(struct perf *p, uint64_t n);

/* check_reads.c: READs all slots again, after the timed part. */
int check_reads(struct perf *p);

/* report.c, json.c */
void report_start(const struct perf *p);
void report_result(const struct perf *p);
struct figures {
	double min, median, mean, p99, max; /* us */
	double peak, average;               /* MiB/s */
	double rate;                        /* 10^6 messages/s */
	bool latency, bandwidth;            /* which figures are valid */
};
void report_figures(const struct perf *p, struct figures *f);
int json_open(const char *path);
int json_close(const struct perf *p, int status);

static inline bool
is_client(const struct perf *p)
{
	return !p->server;
}

static inline bool
is_ud(const struct perf *p)
{
	return p->o.type == BB_QPT_UD;
}

#endif
