/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * What the files of bb_perf share.
 *
 * One queue pair, two halves of memory: out is what messages are sent from (of READs and atomics:
 * where results land), in is what the peer may write, read or send to. As in perftest a message n
 * of a bandwidth test begins at places of a cycle buffer (struct msg_cycle), those of all other
 * tests at 0.
 *
 * Functions that can fail for the peer's or the network's sake return 0, or -1 when the reason
 * has been printed.
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

#define UD_GRH     40         /* bytes in front of the data of a datagram */
#define PERF_QKEY  0x11111111 /* of all these programs */
#define PAGE       4096       /* steps in which pingpong -c looks at a message */
#define POLL_BURST 16
/* wr_id of receives; of sends it is how many there are with this one. */
#define WR_RECV (UINT64_C(1) << 63)

/* What is measured. Cycles are of the TSC. */
struct result {
	struct hist lat;      /* cycles, both ways */
	uint64_t start, end;  /* of the messages */
	uint64_t peak_cycles; /* of the fastest stretch, and the messages in it */
	uint64_t peak_messages;
	uint64_t messages;    /* seen complete, or received */
	uint64_t served;      /* requests of the peer that the device has carried out */
	uint64_t checked;     /* bytes compared with --check */
	uint64_t words_grown; /* by how much atomics have raised the words at the target, summed */
	struct msg_report peer; /* what a client of a bandwidth test has measured */
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
	size_t half; /* bytes of each */
	struct msg_cycle places;
	uint32_t mtu, cycle, line;
	uint32_t recv_step, recv_slots; /* receives begin at in + slot * recv_step */
	uint64_t recv_posted, recv_done;
	uint64_t posted, done; /* requests */
	const uint8_t *src;    /* where sends and WRITEs take their data, place 0 */
	const uint8_t *last;   /* the message that was received last */
	uint64_t last_post;    /* TSC */
	struct bb_qp_addr addr;
	struct msg_keys own, peer;
	uint32_t peer_version; /* hundredths; 0: no perftest */
	int fd;                /* TCP connection, -1: none */
	/* Waiting. */
	uint32_t spins;
	uint64_t moved;      /* TSC when something last happened */
	uint64_t limit;      /* cycles without anything until it counts as lost */
	uint64_t served_was; /* requests of the peer at that time */
	bool peer_gone;      /* its end of the connection is closed */
	/* --check: a hash of what each place has had; the peer's bytes are those we would send. */
	uint64_t *seen;
	bool known;
	struct result res;
	uint64_t tsc_hz;
};

/* setup.c */
int perf_open(struct perf *p);
/* Memory, queues and keys; MTU and sizes are agreed. */
int perf_create(struct perf *p);
/* To RTS, to the QP that p->peer names. */
int perf_connect(struct perf *p);
void perf_close(struct perf *p);

/* tcp.c */
int tcp_open(struct perf *p);
/* A client that cannot run connects to its server and closes, so that the server does not wait. */
void tcp_decline(const struct perf *p);
int tcp_write(struct perf *p, const void *buf, size_t len);
/* Exactly @len bytes; the device is kept going meanwhile. @what: for the line that says so. */
int tcp_read(struct perf *p, void *buf, size_t len, const char *what);
/* Wait until the peer closes its end: until then it may need ACKs. */
void tcp_finish(struct perf *p);
void tcp_close(struct perf *p);
/* Look whether the peer has closed. */
bool tcp_peer_gone(const struct perf *p);

/* handshake.c: the peer's words before and behind the RDMA. */
int pingpong_begin(struct perf *p);
int perftest_begin(struct perf *p);
int perftest_end(struct perf *p);

/* wait.c */
/* Nothing has come. -1: no use in going on. */
int perf_idle(struct perf *p);
/* Something has happened. */
void perf_moved(struct perf *p);
/* Keep the device going for a while: acknowledgements of the last message may be lost. */
void perf_linger(struct perf *p, double seconds);
/* Requests the device has carried out for peers. */
uint64_t perf_served(struct perf *p);

/* post.c */
/*
 * Post message p->posted, from its place to its place; bb_qp_ring() publishes it.
 * @return 1; 0 no room; -1.
 */
int perf_post(struct perf *p, bool signaled);
int perf_post_recvs(struct perf *p);
/* Take what has completed into p->done and p->recv_done; looks at received messages. */
int perf_step(struct perf *p);
/* Steps until that many requests, that many receives are there. */
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
/* Message @n of a SEND test, or the result of READ @n: are its bytes what they were before? */
int check_message(struct perf *p, uint64_t n, const uint8_t *data);
/* Behind the timed part: READ all places again. */
int check_reads(struct perf *p);
/* The value that an atomic of the peer's word returned. */
int check_atomic(struct perf *p, uint64_t n, uint64_t old);
/* A target: what has the peer done to our memory? */
int check_target(struct perf *p);
/* Bytes of message @n of a pingpong client; is that what came back? */
void check_pingpong_fill(struct perf *p, uint64_t n);
int check_pingpong(struct perf *p, uint64_t n, const uint8_t *data);
/* All bytes of a message of write_lat but the last, which counts; spoils them for the next. */
int check_write_lat(struct perf *p, uint64_t n);

/* report.c, json.c */
void report_start(const struct perf *p);
void report_result(const struct perf *p);
struct figures {
	double min, median, mean, p99, max; /* us */
	double peak, average;               /* MiB/s */
	double rate;                        /* 10^6 messages/s */
	bool latency, bandwidth;            /* which of them there are */
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
