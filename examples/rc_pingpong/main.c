/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* ibv_rc_pingpong of rdma-core with Bluebell: doc/guides/start/porting.rst explains each part. */
#include "eal_args.h" /* of app/common */
#include <bluebell.h>
#include <netdb.h>
#include <rte_cycles.h>
#include <rte_malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SIZE   4096u
#define ROUNDS 1000u
/* Library calls return 0 or a negative errno. On an error the log has a line with advice. */
#define TRY(call)                                                                                  \
	do {                                                                                       \
		int err = (call);                                                                  \
		if (err < 0) {                                                                     \
			fprintf(stderr, "%s: %s\n", #call, strerror(-err));                        \
			return err;                                                                \
		}                                                                                  \
	} while (0)

struct end {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_mr *mr;
	struct bb_cq *cq;
	struct bb_qp *qp;
	char *buf; /* the message to send, and after it the received one */
};

/* Connects to @server, or waits for a client if it is NULL. Returns a TCP socket or -errno. */
static int
tcp_open(const char *server, const char *port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	int one = 1, fd = -1, ret = -1, error = 0;
	struct addrinfo *list, *info;

	if (getaddrinfo(server, port, &hints, &list) != 0)
		return -EADDRNOTAVAIL;
	for (info = list; info != NULL && ret != 0; info = info->ai_next) {
		if (fd >= 0)
			close(fd);
		fd = socket(info->ai_family, SOCK_STREAM, 0);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		ret = server != NULL ? connect(fd, info->ai_addr, info->ai_addrlen)
				     : bind(fd, info->ai_addr, info->ai_addrlen);
		if (ret != 0 && error == 0)
			error = errno; /* of the preferred address */
	}
	freeaddrinfo(list);
	if (ret != 0)
		return -error;
	if (server != NULL)
		return fd;
	if (listen(fd, 1) != 0)
		return -errno;
	printf("waiting for a client at TCP port %s\n", port);
	fflush(stdout);
	return (fd = accept(fd, NULL, NULL)) >= 0 ? fd : -errno;
}

/* Opens the device and creates the objects of one end. */
static int
open_end(struct end *e, const char *device)
{
	struct bb_qp_init_attr init;
	struct bb_cq_attr cq_attr;

	e->buf = rte_zmalloc("messages", 2 * SIZE, 4096);
	TRY(e->buf != NULL ? 0 : -ENOMEM);
	TRY(bb_dev_open(device, &e->dev));
	TRY(bb_pd_alloc(e->dev, &e->pd));
	TRY(bb_mr_reg(e->pd, e->buf, 2 * SIZE, BB_ACCESS_LOCAL_WRITE, &e->mr));
	bb_cq_attr_init(&cq_attr);
	TRY(bb_cq_create(e->dev, &cq_attr, &e->cq));
	bb_qp_init_attr_init(&init); /* default: RC */
	init.send_cq = init.recv_cq = e->cq;
	init.sq_depth = init.rq_depth = 1;
	return bb_qp_create(e->pd, &init, &e->qp);
}

/* Posts a receive. The first one is posted before the QP is connected. */
static int
post_receive(struct end *e)
{
	struct bb_sge sge = {(uintptr_t)e->buf + SIZE, SIZE, e->mr->lkey};

	TRY(bb_post_recv(e->qp, 0, &sge, 1));
	bb_qp_ring_recv(e->qp);
	return 0;
}

/* Sends the address as bytes that are the same on every machine. */
static int
send_address(int fd, const struct bb_qp_addr *addr)
{
	uint8_t packed[BB_QP_ADDR_PACKED];

	TRY(bb_qp_addr_pack(addr, packed, sizeof(packed)));
	return send(fd, packed, sizeof(packed), MSG_NOSIGNAL) == sizeof(packed) ? 0 : -EPIPE;
}

/* Polls until bytes arrive over TCP: the software device answers its peer during polls. */
static int
receive(struct end *e, int fd, void *bytes, ssize_t len)
{
	struct bb_wc wc;

	while (recv(fd, bytes, 1, MSG_DONTWAIT | MSG_PEEK) < 0)
		bb_cq_poll(e->cq, &wc, 1);
	return recv(fd, bytes, (size_t)len, MSG_WAITALL) == len ? 0 : -ECONNRESET;
}

/* Exchanges the addresses and connects. The server reports its address when it can receive. */
static int
connect_end(struct end *e, int fd, bool server)
{
	uint8_t packed[BB_QP_ADDR_PACKED];
	struct bb_qp_addr local, remote;
	struct bb_qp_attr attr;

	bb_qp_attr_init(&attr); /* default: port 1 */
	attr.timeout = 19;      /* 2 s: the peer's process may wait that long for a CPU */
	TRY(bb_gid_choose(e->dev, attr.path.port, NULL, &attr.path.sgid_index));
	TRY(bb_qp_addr(e->qp, attr.path.port, attr.path.sgid_index, &local));
	if (!server)
		TRY(send_address(fd, &local));
	TRY(receive(e, fd, packed, sizeof(packed)));
	TRY(bb_qp_addr_unpack(packed, sizeof(packed), &remote));
	TRY(bb_qp_connect(e->qp, &local, &remote, &attr));
	return server ? send_address(fd, &local) : 0;
}

/* Sends and receives all messages. The client sends first. */
static int
play(struct end *e, bool server)
{
	struct bb_sge sge = {(uintptr_t)e->buf, SIZE, e->mr->lkey};
	unsigned int posted = 0, sent = 0, received = 0;
	struct bb_wc wc;

	while (sent < ROUNDS || received < ROUNDS) {
		if (posted < ROUNDS && posted == sent && received + !server > posted) {
			memset(e->buf, (int)posted++, SIZE);
			TRY(bb_post_send(e->qp, 1, &sge, 1, BB_SEND_SIGNALED));
			bb_qp_ring(e->qp);
		}
		if (bb_cq_poll(e->cq, &wc, 1) == 0)
			continue;
		if (wc.status != BB_WC_SUCCESS)
			return -EIO; /* the log has the cause */
		sent += wc.opcode == BB_WC_SEND;
		if (wc.opcode == BB_WC_RECV) {
			if (wc.byte_len != SIZE || e->buf[2 * SIZE - 1] != (char)received++)
				return -EBADMSG;
			TRY(post_receive(e));
		}
	}
	return 0;
}

/* Runs one end. */
static int
run(struct end *e, const char *device, const char *port, const char *server)
{
	uint64_t cycles;
	int fd, done = 0;

	TRY(open_end(e, device));
	TRY(post_receive(e));
	TRY(fd = tcp_open(server, port));
	TRY(connect_end(e, fd, server == NULL));
	cycles = rte_get_timer_cycles();
	TRY(play(e, server == NULL));
	cycles = rte_get_timer_cycles() - cycles;
	printf("%u rounds of %u bytes, %.1f us each\n", ROUNDS, SIZE,
	       1e6 * (double)cycles / (double)rte_get_timer_hz() / ROUNDS);
	TRY(send(fd, &done, 1, MSG_NOSIGNAL) == 1 ? 0 : -EPIPE);
	return receive(e, fd, &done, 1); /* the peer may wait for an ACK, which a poll sends */
}

/* Starts EAL with the arguments before "--". Adds --no-huge if too few hugepages are free. */
int
main(int argc, char **argv)
{
	bool help = strcmp(argv[argc - 1], "--help") == 0;
	static struct end e;
	int at = 0, rc; /* argv[at] is "--" */

	while (at < argc && strcmp(argv[at], "--") != 0)
		at++;
	if (argc - at < 3 || argc - at > 4) {
		fputs("usage: rc_pingpong [EAL_OPTIONS] -- DEVICE PORT [SERVER]\n",
		      help ? stdout : stderr);
		return help ? 0 : 2;
	}
	rc = eal_start_completed("rc_pingpong", at, argv, 256, true);
	rc = rc < 0 ? rc : run(&e, argv[at + 1], argv[at + 2], argv[at + 3]);
	bb_qp_destroy(e.qp); /* children before parents; NULL is refused silently */
	bb_cq_destroy(e.cq);
	bb_mr_dereg(e.mr);
	bb_pd_free(e.pd);
	bb_dev_close(e.dev);
	rte_free(e.buf);
	return rc == 0 ? 0 : 1;
}
