/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Shared by the files of bb_perf.
 *
 * There are one or more queue pairs (--qp), and each has memory with two halves, named "out" and
 * "in". Messages are sent from "out", and the results of READs and atomics arrive there too. The
 * peer may access only "in": its WRITEs, READs, atomics and SENDs use that half. As in perftest,
 * message n of a bandwidth test starts in a slot of a cycle buffer (struct msg_cycle). The messages
 * of all other tests start at offset 0 of their half.
 *
 * A test runs one size, or one size after the other (--all). All counters but the totals are those
 * of the current size.
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

#define UD_GRH     40         /* bytes of the GRH before the data of a received UD message */
#define PERF_QKEY  0x11111111 /* Q_Key of ibv_ud_pingpong and perftest */
#define PAGE       4096       /* pingpong -c checks one byte per page */
#define POLL_BURST 16
#define MAX_READS  16u /* maximum outstanding READs and atomics, as in perftest */
/*
 * Bits of a wr_id: WR_RECV marks a receive. The bits from WR_QP_SHIFT on are the index of the queue
 * pair. The bits below are the number of the receive or, for a send, the number of sends up to and
 * including it.
 */
#define WR_RECV     (UINT64_C(1) << 63)
#define WR_QP_SHIFT 48
#define WR_NUMBER   ((UINT64_C(1) << WR_QP_SHIFT) - 1)

/* One queue pair of this process, the peer's queue pair, and their memory. */
struct perf_qp {
	struct bb_qp *qp;
	struct bb_ah *ah; /* address handle of the peer; UD only */
	struct bb_qp_addr addr;
	struct msg_keys own, peer;
	uint32_t index;
	uint8_t *out, *in;
	const uint8_t *src;    /* source of message 0 of SENDs and WRITEs */
	uint64_t posted, done; /* requests posted, and completed */
	uint64_t signaled;     /* value of posted after the last request with a completion */
	uint64_t recv_posted, recv_done;
	uint64_t total_sent, total_received; /* sends and receives completed in earlier sizes */
	/*
	 * With --check: two words for each slot. The first is the hash of the slot's last contents.
	 * The second is 1 if that hash is valid, otherwise 0.
	 */
	uint64_t *slot_hashes;
};

/* Parts of the time of --duration. Only WINDOW_OPEN, the middle half, is measured. */
enum window_state {
	WINDOW_IDLE, /* the time has not begun: no --duration, or no first receive yet */
	WINDOW_START,
	WINDOW_OPEN, /* completed messages are measured */
	WINDOW_TAIL,
	WINDOW_ENDED,
};

struct window {
	enum window_state state;
	uint64_t until; /* TSC at which the state ends */
	uint64_t count; /* messages completed before the measured part of the time began */
	bool cut;       /* the peer ended the test before --duration was over */
};

struct figures {
	double min, median, mean, p99, max; /* us */
	double peak, average;               /* MiB/s; peak: 0 if unknown */
	double rate;                        /* 10^6 messages/s */
	double seconds;                     /* measured time */
	bool latency, bandwidth;            /* true if these figures are valid */
};

/* Result of the messages of one size, summed over all queue pairs. */
struct size_result {
	uint32_t size;
	uint64_t messages;       /* messages measured */
	uint64_t sent, received; /* messages sent and completed; messages received */
	uint64_t samples;        /* number of latencies */
	struct figures figures;
	struct msg_report peer; /* the peer's report; valid if peer_reported */
	bool peer_reported;
};

/* Measurements. All cycles are TSC cycles. */
struct result {
	struct hist lat;     /* histogram of round trips, in cycles */
	uint64_t start, end; /* TSC at the first and at the last message */
	/* duration of the fastest interval, and number of messages in that interval */
	uint64_t peak_cycles;
	uint64_t peak_messages;
	uint64_t messages; /* number of messages completed, or received by the server of a SEND test
			    */
	uint64_t served;   /* number of the peer's requests that the device has executed */
	uint64_t checked;  /* number of bytes verified with --check */
	uint64_t words_grown;   /* total amount by which the peer's atomics have increased the words
				   in memory */
	struct msg_report peer; /* the client's report of a bandwidth test */
	bool peer_reported;
	struct size_result sizes[SIZE_COUNT];
	uint32_t n_sizes; /* number of finished sizes */
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
	struct perf_qp *qps; /* o.qps queue pairs */
	struct bb_mr *mr;
	uint8_t *mem;
	/* bytes of the half "out"; the half "in" has the same size, unless it has receive slots */
	size_t half_size;
	size_t in_size;
	uint32_t size;   /* message size of the current test, in bytes */
	uint32_t cq_mod; /* a completion every cq_mod requests */
	uint64_t target; /* number of messages in one direction, summed over all queue pairs */
	struct msg_cycle layout;
	struct window window;
	uint32_t mtu, cycle, line;
	/*
	 * distance in bytes from one receive slot to the next, and number of the receive slots;
	 * slot 0 is at the start of the half "in" of a queue pair's memory
	 */
	uint32_t recv_step, recv_slots;
	uint32_t rq_depth;     /* depth of a receive queue: number of receive slots for the smallest
				  message */
	uint64_t posted, done; /* requests posted, and completed; all queue pairs */
	uint64_t recv_done;    /* receives completed, summed over all queue pairs */
	uint64_t total_sent, total_received; /* messages sent and received in earlier sizes */
	const uint8_t *last_msg;             /* data of the last received message */
	uint64_t last_post;                  /* TSC of the last post */
	uint32_t
		peer_version; /* version of perftest in hundredths; 0 if the peer is not perftest */
	int fd;               /* socket of the TCP connection; -1 if there is none */
	struct perf_cm *cm;   /* with --rdma-cm instead of TCP; else NULL */
	/* Fields that perf_idle() and perf_overdue() use. */
	uint32_t spins;
	uint64_t last_progress; /* TSC of the last message or completion */
	uint64_t limit;       /* TSC cycles without activity after which the peer counts as lost */
	uint64_t last_served; /* value of perf_served() when last_progress was set */
	bool peer_gone;       /* the peer has closed its end of the TCP connection */
	/* true if silence is no sign of a lost peer: the device does not count its requests */
	bool patient;
	/*
	 * Used with --check. bytes_known: true if every byte that the peer sends is known; valid if
	 * peer_judged is true.
	 */
	bool bytes_known, peer_judged;
	struct result res;
	uint64_t tsc_hz;
};

/* options.c */
extern const struct program perf_program;

/* setup.c */
int perf_open(struct perf *p);
/* Prints that @what failed with @rc. Returns EXIT_FAILED. */
int perf_error(const char *what, int rc);
/* Connects each queue pair to the queue pair that the peer's keys name, and moves it to RTS. */
int perf_connect(struct perf *p);
/* Destroys the queue pairs and their address handles. Returns 0 or a logged error. */
int perf_destroy_qps(struct perf *p);
void perf_close(struct perf *p);

/* create.c */
/*
 * Creates memory, queues and keys, and begins the first size. Call it after MTU and cycle buffer
 * are agreed with the peer.
 */
int perf_create(struct perf *p);
/* Starts a size: adds the counters to the totals, and resets counters and measurements. */
void perf_begin_size(struct perf *p, uint32_t size);

/* silence.c */
/* Records that a message or a completion arrived. */
void perf_progress(struct perf *p);
/* Returns the number of requests that the device has executed for peers. */
uint64_t perf_served(struct perf *p);
/* Returns true if the peer has been silent for --silence seconds. */
bool perf_overdue(struct perf *p);

/*
 * peer.c: the connection that carries the handshake messages. These functions call those of tcp.c
 * or, with --rdma-cm, of cm.c.
 */
int peer_open(struct perf *p);
int peer_write(struct perf *p, const void *buf, size_t len);
int peer_read(struct perf *p, void *buf, size_t len, const char *what);
/* Returns true if the peer has closed its end of the connection. */
bool peer_gone(struct perf *p);
void peer_finish(struct perf *p);

/* tcp.c */
int tcp_open(struct perf *p);
/*
 * Connects to the server and closes the connection. A client that cannot run calls it, so that its
 * server stops waiting.
 */
void tcp_decline(const struct perf *p);
int tcp_write(struct perf *p, const void *buf, size_t len);
/*
 * Reads exactly @len bytes. Runs the device while it waits. @what: name of the message in error
 * texts.
 */
int tcp_read(struct perf *p, void *buf, size_t len, const char *what);
/*
 * Waits until the peer closes its end of the TCP connection. Runs the device meanwhile, because the
 * peer may still need ACKs.
 */
void tcp_finish(struct perf *p);
/*
 * tcp_finish() for pingpong, if the peer is bb_perf, too. Returns false if the peer closes the
 * connection earlier, as ibv_*_pingpong does after the handshake.
 */
bool tcp_pingpong_finish(struct perf *p);
void tcp_close(struct perf *p);
/* Returns true if the peer has closed the TCP connection. */
bool tcp_peer_gone(const struct perf *p);

/* cm.c: connections of rdma_cm, for --rdma-cm */
/*
 * Establishes the connection for the handshake messages: connects to the server, or waits for a
 * client.
 */
int cm_open(struct perf *p);
/* Lets the server accept connections of the queue pairs of the test. */
int cm_expect(struct perf *p);
/* Connects all queue pairs of the test, and moves them to RTS. */
int cm_connect(struct perf *p);
/* Sends @len bytes as one message. Returns when the peer's device has it. */
int cm_write(struct perf *p, const void *buf, size_t len);
/* Reads a message of exactly @len bytes. @what: name of the message in error texts. */
int cm_read(struct perf *p, void *buf, size_t len, const char *what);
/* Returns true if the peer has disconnected. Polls the connection manager. */
bool cm_peer_gone(struct perf *p);
/* Ends all connections, and waits until the peer has replied to the disconnects. */
void cm_finish(struct perf *p);
/* Frees the connections and the other objects of --rdma-cm. */
void cm_close(struct perf *p);

/* handshake.c: exchanges the messages before and after the RDMA. */
int pingpong_begin(struct perf *p);
int perftest_begin(struct perf *p);
int perftest_end(struct perf *p);
/* Exchanges the keys of the first queue pair, as perftest does to synchronize both ends. */
int perftest_sync(struct perf *p, const char *what);
/* Exchanges bandwidth reports, and stores the peer's if it is usable. */
int perftest_reports(struct perf *p);

/* sizes.c */
/* Stores the result of the current size and prints it. */
void sizes_end(struct perf *p);
/* Runs the RDMA of all sizes, with the messages over TCP between them. */
int sizes_run(struct perf *p);

/* window.c: the time of --duration. Without this option the functions do nothing. */
void window_start(struct perf *p);
/* Starts the next part of the time (before, during, after the measurement) if it is due. */
void window_update(struct perf *p);
/* Returns true if the time of --duration is over, so that no more messages are sent. */
bool window_over(const struct perf *p);
/* Returns true during the measured part of the time; always true without --duration. */
bool window_counts(const struct perf *p);
/*
 * Called when the peer has closed its connection. Returns true if this is the normal end of the
 * test, and false if it is an error. It is the normal end only of a WRITE latency test with
 * --duration. Such a test has no final message, so the end that is ready first closes its
 * connection.
 */
bool window_cut(struct perf *p);

/* wait.c */
/*
 * Handles a poll in which no message or completion arrived. Returns 0 to continue, or -1 to give
 * up.
 */
int perf_idle(struct perf *p);
/* Prints that a signal has stopped the test. Returns -1. */
int perf_stopped(const struct perf *p);
/*
 * Runs the device for @seconds, so that it can repeat acknowledgements of the last message that
 * were lost.
 */
void perf_linger(struct perf *p, double seconds);

/* post.c */
/*
 * Posts message number q->posted. It goes from its slot to the same slot at the peer. bb_qp_ring()
 * must follow. @return 0; -EAGAIN if the queue is full; -1 after printing another error.
 */
int perf_post(struct perf *p, struct perf_qp *q, bool signaled);
/* Posts receives on all queue pairs, at most one for each expected message. */
int perf_post_recvs(struct perf *p);
/*
 * Polls completions and adds them to p->done and p->recv_done. With --check also checks received
 * messages. @return number of completions, or -1.
 */
int perf_step(struct perf *p);
/*
 * Polls until at least @done requests and @received receives have completed in all, or the time of
 * --duration is over.
 */
int perf_wait(struct perf *p, uint64_t done, uint64_t received);

/* run_lat.c, run_bw.c: the RDMA part of each type of test. */
int run_pingpong(struct perf *p);
int run_write_lat(struct perf *p);
int run_lat(struct perf *p);
int run_send_lat(struct perf *p);
int run_bw(struct perf *p);

/* check.c */
int check_start(struct perf *p);
void check_stop(struct perf *p);
/*
 * Checks message @n of a SEND test or the result of READ @n. The data must be equal to the known
 * bytes or to the earlier contents of the slot.
 */
int check_message(struct perf *p, struct perf_qp *q, uint64_t n, const uint8_t *data);
/* Drops the stored hashes of the slots, which are those of the previous size. */
void check_next_size(struct perf *p);
/* Checks that all bytes of @half outside of its first @used messages have the value @value. */
int check_gap(const struct perf *p, const uint8_t *half, uint64_t used, uint8_t value);
/* Checks the value that atomic @n on the peer's word has returned. */
int check_atomic(struct perf *p, struct perf_qp *q, uint64_t n, uint64_t old);
/* Checks what the peer's one-sided operations did to this process's memory. */
int check_target(struct perf *p);
/*
 * check_pingpong_fill() fills message @n of a pingpong client; check_pingpong() checks a received
 * message.
 */
void check_pingpong_fill(struct perf *p, uint64_t n);
int check_pingpong(struct perf *p, uint64_t n, const uint8_t *data);
/*
 * Checks all bytes of a write_lat message, except the last byte, which is a message count. Then
 * overwrites them, so that the next message must write them again.
 */
int check_write_lat(struct perf *p, uint64_t n);

/* check_reads.c: checks READs by reading all slots again after the timed part. */
int check_reads(struct perf *p);

/* report.c, json.c */
void report_start(const struct perf *p);
/* Prints the result of a size as a row of the table. Before the first row it prints the heading. */
void report_size(const struct perf *p, const struct size_result *s);
void report_result(const struct perf *p);
void report_figures(const struct perf *p, struct figures *f);
/*
 * Returns the factor from MiB/s to the unit of the tables and of the peer's reports: 1, or with
 * --report-gbits the Gb/s of one MiB/s.
 */
double report_unit(const struct perf *p);
int json_open(const char *path);
int json_close(const struct perf *p, int status);

static inline bool
is_client(const struct perf *p)
{
	return !p->server;
}

/* Returns true if this end sends messages, and posts requests. */
static inline bool
perf_sends(const struct perf *p)
{
	return !p->server || p->o.bidirectional || !p->o.proto->bandwidth;
}

static inline bool
is_ud(const struct perf *p)
{
	return p->o.type == BB_QPT_UD;
}

#endif
