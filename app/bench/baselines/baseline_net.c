/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <isa-l/crc.h>
#include <rte_alarm.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "baseline_net.h"
#include "remote.h"

#define MBUFS 2047
#define ROOM  8192
/* net_af_xdp fills 2048 mbufs at once, and needs mbufs no larger than a page. */
#define XDP_MBUFS 8191
#define XDP_ROOM  2560
#define CACHE     250
#define BURST     32
#define DESC      256
/* bytes of a credit packet, which reports how many packets its sender has received */
#define CREDIT 64

static const uint8_t header[14] = {0x02, 0xbb, 0, 0, 0, 2, 0x02, 0xbb, 0, 0, 0, 1, 0x88, 0xb5};

int
vdev_make(const char *text)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	const char *args = strchr(text, ',');
	uint16_t port;
	int rc;

	if (args == NULL || (size_t)(args - text) >= sizeof(name)) {
		fprintf(stderr,
			"bench: \"%s\" is not a vdev with arguments, such as "
			"net_memif0,role=server\n",
			text);
		return -EINVAL;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(args - text), text);
	if (rte_eth_dev_get_port_by_name(name, &port) == 0)
		return 0;
	rc = rte_eal_hotplug_add("vdev", name, args + 1);
	if (rc != 0)
		fprintf(stderr, "bench: vdev %s cannot be created: %s\n", text, strerror(-rc));
	return rc;
}

static int
start_port(struct baseline_net *net)
{
	struct rte_eth_conf conf = {.rxmode.mtu = RTE_ETHER_MTU};
	struct rte_eth_dev_info info;
	uint16_t rx = DESC, tx = DESC;
	int rc;

	rc = rte_eth_dev_info_get(net->port, &info);
	if (rc == 0 && info.max_mtu < conf.rxmode.mtu)
		conf.rxmode.mtu = info.max_mtu;
	if (rc == 0)
		rc = rte_eth_dev_configure(net->port, 1, 1, &conf);
	if (rc == 0)
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(net->port, &rx, &tx);
	if (rc == 0)
		rc = rte_eth_rx_queue_setup(net->port, 0, rx, SOCKET_ID_ANY, NULL, net->pool);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(net->port, 0, tx, SOCKET_ID_ANY, NULL);
	return rc == 0 ? rte_eth_dev_start(net->port) : rc;
}

int
baseline_net_open(struct baseline_net *net, const char *vdev)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	bool xdp = strncmp(vdev, "net_af_xdp", strlen("net_af_xdp")) == 0;
	uint32_t i;
	int rc;

	memset(net, 0, sizeof(*net));
	rc = vdev_make(vdev);
	if (rc != 0)
		return rc;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(vdev, ","), vdev);
	rc = rte_eth_dev_get_port_by_name(name, &net->port);
	if (rc != 0)
		goto fail;
	net->open = true;
	rc = -ENOMEM;
	net->from = rte_zmalloc("bench_net_from", BASELINE_NET_SET, 4096);
	net->to = rte_zmalloc("bench_net_to", BASELINE_NET_SET, 4096);
	net->pool = rte_pktmbuf_pool_create(name, xdp ? XDP_MBUFS : MBUFS, CACHE, 0,
					    xdp ? XDP_ROOM : ROOM, SOCKET_ID_ANY);
	if (net->from == NULL || net->to == NULL || net->pool == NULL)
		goto fail;
	for (i = 0; i < BASELINE_NET_SET; i++)
		net->from[i] = (uint8_t)(i * 31 + (i >> 12));
	rc = start_port(net);
	if (rc == 0)
		return 0;
fail:
	fprintf(stderr, "bench: the port of vdev %s cannot be started: %s\n", vdev, strerror(-rc));
	baseline_net_close(net);
	return rc;
}

struct stop {
	uint16_t port;
	bool done;
};

static void
stop_port(void *arg)
{
	struct stop *s = arg;

	rte_eth_dev_stop(s->port);
	__atomic_store_n(&s->done, true, __ATOMIC_RELEASE);
}

/*
 * Stops the port on EAL's interrupt thread. On that thread net_memif detects that the peer is gone,
 * and frees the same regions as rte_eth_dev_stop(), without a lock. So running the stop there
 * ensures that each region is freed once.
 */
static void
stop_on_interrupt_thread(uint16_t port)
{
	struct stop s = {.port = port};

	if (rte_eal_alarm_set(1, stop_port, &s) != 0)
		stop_port(&s);
	while (!__atomic_load_n(&s.done, __ATOMIC_ACQUIRE))
		usleep(20);
}

void
baseline_net_close(struct baseline_net *net)
{
	char name[RTE_ETH_NAME_MAX_LEN];

	if (net->open && rte_eth_dev_get_name_by_port(net->port, name) == 0) {
		stop_on_interrupt_thread(net->port);
		rte_eal_hotplug_remove("vdev", name);
	}
	rte_mempool_free(net->pool);
	rte_free(net->from);
	rte_free(net->to);
	memset(net, 0, sizeof(*net));
}

/*
 * Waits until the link of the port is up. For a memif this means that the peer process is there.
 * The query of the link also starts the memif's connection.
 */
static int
wait_link(const struct baseline_net *net)
{
	struct rte_eth_link link;
	unsigned int i;

	for (i = 0; i < REMOTE_SECONDS * 100; i++) {
		if (rte_eth_link_get_nowait(net->port, &link) == 0 &&
		    link.link_status == RTE_ETH_LINK_UP)
			return 0;
		usleep(10000);
	}
	return -ENETDOWN;
}

static inline void
fill(struct baseline_net *net, struct rte_mbuf *m, uint64_t seq, uint32_t size)
{
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t crc;

	memcpy(p, header, sizeof(header));
	memcpy(p + sizeof(header), net->from + (seq * size & (BASELINE_NET_SET - 1) & ~4095u),
	       size);
	memcpy(p + sizeof(header), &seq, sizeof(seq));
	crc = crc32_gzip_refl(0, p + sizeof(header), size);
	memcpy(p + sizeof(header) + size, &crc, sizeof(crc));
	m->data_len = (uint16_t)(size + BASELINE_NET_OVERHEAD);
	m->pkt_len = m->data_len;
}

/* Returns true if the packet is correct. Writes the packet's number to *@seq. */
static inline bool
check_packet(struct baseline_net *net, struct rte_mbuf *m, uint32_t size, uint64_t *seq)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *) + sizeof(header);
	uint32_t crc;

	if (m->nb_segs != 1 || m->data_len != size + BASELINE_NET_OVERHEAD)
		return false;
	memcpy(&crc, p + size, sizeof(crc));
	if (crc32_gzip_refl(0, (uint8_t *)(uintptr_t)p, size) != crc)
		return false;
	memcpy(seq, p, sizeof(*seq));
	memcpy(net->to + (*seq * size & (BASELINE_NET_SET - 1) & ~4095u), p, size);
	return true;
}

/* Sends @n packets, numbered from @seq. */
static int
send_burst(struct baseline_net *net, uint16_t n, uint64_t seq, uint32_t size)
{
	uint64_t idle = 0, since = 0;
	struct rte_mbuf *m[BURST];
	uint16_t i, sent = 0, k;

	if (rte_pktmbuf_alloc_bulk(net->pool, m, n) != 0)
		return -ENOBUFS;
	for (i = 0; i < n; i++)
		fill(net, m[i], seq + i, size);
	while (sent < n) {
		k = rte_eth_tx_burst(net->port, 0, m + sent, n - sent);
		sent = (uint16_t)(sent + k);
		if (k != 0)
			idle = 0;
		else if (remote_give_up(&idle, &since))
			break;
	}
	if (sent == n)
		return 0;
	rte_pktmbuf_free_bulk(m + sent, n - sent);
	return -ETIMEDOUT;
}

/*
 * Receives available packets. Packets must have the numbers from net->rx_seq on, without a gap.
 * With @credits the packets are credit packets, whose numbers need only grow. Returns the number of
 * packets, or a negative errno if a packet is wrong.
 */
static int
recv_burst(struct baseline_net *net, uint32_t size, bool credits)
{
	struct rte_mbuf *m[BURST];
	uint16_t i, n = rte_eth_rx_burst(net->port, 0, m, BURST);
	bool good = true;
	uint64_t seq;

	for (i = 0; i < n && good; i++) {
		good = check_packet(net, m[i], size, &seq) &&
		       (credits ? seq > net->rx_seq : seq == net->rx_seq);
		net->rx_seq = credits && good ? seq : net->rx_seq + 1;
	}
	if (n != 0)
		rte_pktmbuf_free_bulk(m, n);
	return good ? n : -EBADMSG;
}

/* Waits until packets arrive, and receives at least one. */
static int
recv_some(struct baseline_net *net, uint32_t size, bool credits)
{
	uint64_t idle = 0, since = 0;
	int n;

	do
		n = recv_burst(net, size, credits);
	while (n == 0 && !remote_give_up(&idle, &since));
	return n == 0 ? -ETIMEDOUT : n;
}

int
baseline_net_ping(struct baseline_net *net, uint64_t from, uint64_t n, uint32_t size)
{
	int rc = from == 0 ? wait_link(net) : 0;
	uint64_t i;

	net->rx_seq = from;
	for (i = from; i < n && rc >= 0; i++) {
		rc = send_burst(net, 1, i, size);
		if (rc == 0)
			rc = recv_some(net, size, false);
	}
	return rc < 0 ? rc : 0;
}

int
baseline_net_echo(struct baseline_net *net, uint64_t n, uint32_t size)
{
	int rc = wait_link(net);
	uint64_t i;

	net->rx_seq = 0;
	for (i = 0; i < n && rc >= 0; i++) {
		rc = recv_some(net, size, false);
		if (rc > 0)
			rc = send_burst(net, 1, i, size);
	}
	return rc < 0 ? rc : 0;
}

int
baseline_net_source(struct baseline_net *net, uint64_t n, uint32_t size, uint64_t window)
{
	uint64_t sent = 0;
	int rc = wait_link(net);

	net->rx_seq = 0;
	while (net->rx_seq < n && rc >= 0) {
		while (rc >= 0 && sent < n && sent - net->rx_seq + BURST <= window) {
			const uint16_t k = (uint16_t)RTE_MIN((uint64_t)BURST, n - sent);

			rc = send_burst(net, k, sent, size);
			sent += k;
		}
		if (rc >= 0)
			rc = recv_some(net, CREDIT, true);
	}
	return rc < 0 ? rc : 0;
}

int
baseline_net_sink(struct baseline_net *net, uint64_t n, uint32_t size, uint64_t window)
{
	uint64_t credited = 0;
	int rc = wait_link(net);

	net->rx_seq = 0;
	while (net->rx_seq < n && rc >= 0) {
		rc = recv_some(net, size, false);
		if (rc >= 0 && (net->rx_seq == n || net->rx_seq - credited >= window / 2)) {
			credited = net->rx_seq;
			rc = send_burst(net, 1, credited, CREDIT);
		}
	}
	return rc < 0 ? rc : 0;
}
