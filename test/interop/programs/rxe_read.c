/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Shows that a READ of Linux's rdma_rxe completes with success while part of its data is missing.
 * Needs libibverbs and nothing else of this tree. rxe_read.txt says how to run it and why it
 * fails.
 *
 *   rxe_read answer INTERFACE IPV4          answers READs on raw frames, and ARP for IPV4
 *   rxe_read ask DEVICE GID_INDEX IPV4      posts one READ per case to IPV4, reports each
 *
 * "ask" exits with 0 if every READ that succeeds has all of its data, with 1 if one lacks some, and
 * with 2 if it cannot run.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define MTU   1024
#define PARTS 4
#define SIZE  (MTU * PARTS)
#define QPN   0x4242 /* of the answering end */
#define PORT  4791
#define WAIT  30 /* seconds until a completion counts as missing */

enum opcode {
	READ_REQUEST = 0x0c,
	READ_FIRST,
	READ_MIDDLE,
	READ_LAST,
	READ_ONLY,
	ACKNOWLEDGE,
};

/* Answers to the first request of a READ: parts of the data in order; A is an ACK. */
static const struct {
	const char *name;
	const char *order;
	uint32_t acked; /* PSN of the ACK, relative to the READ's first */
} cases[] = {
	{"no ACK", "0123", 0},
	{"ACK of the READ's last PSN before the last part", "012A3", 3},
	{"ACK of the READ's second PSN before the second part", "0A123", 1},
	{"ACK of the PSN before the READ", "01A23", (uint32_t)-1},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

struct frame {
	uint8_t to[6], from[6];
	uint16_t kind;
	uint8_t version, tos;
	uint16_t ip_len, id, fragment;
	uint8_t ttl, protocol;
	uint16_t ip_sum;
	uint32_t source, target;
	uint16_t udp_source, udp_target, udp_len, udp_sum;
	uint8_t opcode, flags;
	uint16_t pkey;
	uint32_t qpn, psn;
	uint8_t body[MTU + 8]; /* RETH; or AETH, payload, ICRC */
} __attribute__((packed));

#define HEADS offsetof(struct frame, body)

static const uint8_t own_mac[6] = {2, 0, 0, 0, 0, 9};

static void
die(const char *what)
{
	fprintf(stderr, "rxe_read: %s: %s\n", what, strerror(errno));
	exit(2);
}

static uint8_t
pattern(uint32_t i)
{
	return i % 251;
}

/* ---- answer */

static uint32_t
crc32(uint32_t crc, const uint8_t *p, size_t len)
{
	while (len-- != 0) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

/* Returns the ICRC of a frame with @len bytes of body: variant fields count as ones. */
static uint32_t
icrc(const struct frame *frame, size_t len)
{
	static const uint8_t ones[8] = {255, 255, 255, 255, 255, 255, 255, 255};
	struct frame f = *frame;

	f.tos = f.ttl = 0xff;
	f.ip_sum = f.udp_sum = 0xffff;
	((uint8_t *)&f.qpn)[0] = 0xff;
	return ~crc32(crc32(~0u, ones, sizeof(ones)), &f.version, HEADS - ETHER_HDR_LEN + len);
}

static uint16_t
ip_checksum(const struct frame *f)
{
	const uint8_t *p = &f->version;
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons(~sum & 0xffff);
}

/* Sends a packet with the body in @f; the headers are derived from @request. */
static void
reply(int fd, const struct frame *request, struct frame *f, enum opcode opcode, uint32_t qpn,
      uint32_t psn, size_t len)
{
	uint32_t crc;

	memcpy(f, request, HEADS);
	memcpy(f->to, request->from, 6);
	memcpy(f->from, own_mac, 6);
	f->source = request->target;
	f->target = request->source;
	f->udp_sum = f->ip_sum = 0;
	f->ip_len = htons(HEADS - ETHER_HDR_LEN + len + 4);
	f->udp_len = htons(HEADS - ETHER_HDR_LEN - 20 + len + 4);
	f->ip_sum = ip_checksum(f);
	f->opcode = opcode;
	f->flags = 0;
	f->qpn = htonl(qpn);
	f->psn = htonl(psn & 0xffffff);
	crc = htole32(icrc(f, len));
	memcpy(f->body + len, &crc, 4);
	if (send(fd, f, HEADS + len + 4, 0) < 0)
		die("send");
}

/*
 * Answers a READ request. The request's key is the QPN of the requester. Its address has the
 * case, and in the low bits the offset from which a repeated request starts. Only the first
 * request of a QP gets the order of the case. @answered: the last QP of each case.
 */
static void
answer_read(int fd, const struct frame *request, uint32_t *answered)
{
	uint32_t psn = ntohl(request->psn) & 0xffffff, qpn, len, off, n, parts, i;
	uint64_t address;
	struct frame f;
	const char *order;
	char plain[PARTS + 1] = "0123";

	memcpy(&address, request->body, 8);
	memcpy(&qpn, request->body + 8, 4);
	memcpy(&len, request->body + 12, 4);
	address = be64toh(address);
	qpn = ntohl(qpn);
	len = ntohl(len);
	off = address % SIZE;
	n = address / SIZE;
	if (n >= CASES || len == 0 || len > SIZE - off || len % MTU != 0 || off % MTU != 0)
		return;
	parts = len / MTU;
	plain[parts] = '\0';
	order = answered[n] == qpn || len != SIZE ? plain : cases[n].order;
	answered[n] = qpn;
	for (; *order != '\0'; order++) {
		uint32_t aeth = htonl(0x1fu << 24 | 1), part = *order - '0', head;

		memcpy(f.body, &aeth, 4);
		if (*order == 'A') {
			reply(fd, request, &f, ACKNOWLEDGE, qpn, psn + cases[n].acked, 4);
			continue;
		}
		head = part == 0 || part == parts - 1 ? 4 : 0;
		for (i = 0; i < MTU; i++)
			f.body[head + i] = pattern(off + part * MTU + i);
		reply(fd, request, &f,
		      parts == 1          ? READ_ONLY
		      : part == 0         ? READ_FIRST
		      : part == parts - 1 ? READ_LAST
					  : READ_MIDDLE,
		      qpn, psn + part, head + MTU);
	}
}

static void
answer_arp(int fd, uint8_t *frame, const struct in_addr *own)
{
	if (memcmp(frame + 12, "\x08\x06", 2) != 0 || frame[21] != 1 ||
	    memcmp(frame + 38, own, 4) != 0)
		return;
	memcpy(frame, frame + 6, 6);
	memcpy(frame + 6, own_mac, 6);
	frame[21] = 2;
	memcpy(frame + 32, frame + 22, 10);
	memcpy(frame + 22, own_mac, 6);
	memcpy(frame + 28, own, 4);
	if (send(fd, frame, 42, 0) < 0)
		die("send");
}

static int
answer(const char *interface, const char *ip)
{
	struct sockaddr_ll where = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	uint32_t answered[CASES] = {0};
	struct in_addr own;
	union {
		struct frame f;
		uint8_t bytes[sizeof(struct frame)];
	} in;
	ssize_t n;
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

	where.sll_ifindex = if_nametoindex(interface);
	if (inet_pton(AF_INET, ip, &own) != 1 || fd < 0 || where.sll_ifindex == 0 ||
	    bind(fd, (struct sockaddr *)&where, sizeof(where)) != 0)
		die(interface);
	puts("answering");
	fflush(stdout);
	while ((n = recv(fd, &in, sizeof(in), 0)) >= 0) {
		if (n >= 42)
			answer_arp(fd, in.bytes, &own);
		if (n >= (ssize_t)HEADS + 16 && in.f.kind == htons(ETH_P_IP) &&
		    in.f.protocol == IPPROTO_UDP && in.f.target == own.s_addr &&
		    in.f.udp_target == htons(PORT) && in.f.opcode == READ_REQUEST &&
		    (ntohl(in.f.qpn) & 0xffffff) == QPN)
			answer_read(fd, &in.f, answered);
	}
	die("recv");
	return 2;
}

/* ---- ask */

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t buffer[SIZE];

static struct ibv_qp *
connected_qp(int gid_index, const struct in_addr *ip)
{
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.cap = {1, 1, 1, 1, 0},
					.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1};
	struct ibv_qp_attr to_init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = QPN,
				  .max_dest_rd_atomic = 1,
				  .ah_attr = {.is_global = 1, .port_num = 1}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .sq_psn = 100,
				  .timeout = 18,
				  .retry_cnt = 6,
				  .rnr_retry = 6,
				  .max_rd_atomic = 1};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	rtr.ah_attr.grh.sgid_index = gid_index;
	rtr.ah_attr.grh.hop_limit = 64;
	rtr.ah_attr.grh.dgid.raw[10] = rtr.ah_attr.grh.dgid.raw[11] = 0xff;
	memcpy(rtr.ah_attr.grh.dgid.raw + 12, ip, 4);
	if (qp == NULL ||
	    ibv_modify_qp(qp, &to_init,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ||
	    ibv_modify_qp(qp, &rtr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER) ||
	    ibv_modify_qp(qp, &rts,
			  IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))
		die("QP");
	return qp;
}

/* Runs one case; returns 1 if the READ succeeds without all of its data, else 0. */
static int
ask_one(unsigned int n, int gid_index, const struct in_addr *ip)
{
	struct ibv_qp *qp = connected_qp(gid_index, ip);
	struct ibv_sge sge = {(uintptr_t)buffer, SIZE, mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc = {0};
	uint32_t right = 0;
	time_t end = time(NULL) + WAIT;
	int found, wrong;

	memset(buffer, 0xff, SIZE);
	wr.wr.rdma.remote_addr = (uint64_t)n * SIZE;
	wr.wr.rdma.rkey = qp->qp_num;
	if (ibv_post_send(qp, &wr, &bad) != 0)
		die("ibv_post_send");
	do {
		found = ibv_poll_cq(cq, 1, &wc);
	} while (found == 0 && time(NULL) <= end);
	while (right < SIZE && buffer[right] == pattern(right))
		right++;
	wrong = found == 1 && wc.status == IBV_WC_SUCCESS && right < SIZE;
	/* After the error that ends a READ the QP changes state a moment later. */
	nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) != 0)
		die("ibv_query_qp");
	printf("%s: %s, %u of %u bytes, QP %s: %s\n", cases[n].name,
	       found == 1 ? ibv_wc_status_str(wc.status) : "no completion", right, SIZE,
	       attr.qp_state == IBV_QPS_RTS ? "RTS" : "not RTS",
	       wrong                                       ? "WRONG"
	       : found == 1 && wc.status == IBV_WC_SUCCESS ? "right"
							   : "no success");
	ibv_destroy_qp(qp);
	return wrong;
}

static int
ask(const char *device, int gid_index, const char *text)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct in_addr ip;
	int wrong = 0, i;

	for (i = 0; list != NULL && list[i] != NULL; i++)
		if (strcmp(ibv_get_device_name(list[i]), device) == 0)
			context = ibv_open_device(list[i]);
	if (context == NULL)
		die(device);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	if (pd == NULL || cq == NULL || inet_pton(AF_INET, text, &ip) != 1)
		die(text);
	mr = ibv_reg_mr(pd, buffer, SIZE, IBV_ACCESS_LOCAL_WRITE);
	if (mr == NULL)
		die("ibv_reg_mr");
	for (unsigned int n = 0; n < CASES; n++)
		wrong |= ask_one(n, gid_index, &ip);
	return wrong;
}

int
main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "answer") == 0)
		return answer(argv[2], argv[3]);
	if (argc == 5 && strcmp(argv[1], "ask") == 0)
		return ask(argv[2], atoi(argv[3]), argv[4]);
	fprintf(stderr, "usage: rxe_read answer INTERFACE IPV4 | ask DEVICE GID_INDEX IPV4\n");
	return 2;
}
