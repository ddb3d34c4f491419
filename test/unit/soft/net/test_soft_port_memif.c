/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Ports on net_memif, both ends in one process. Its PMD reports a smaller limit than it carries
 * and copies in the burst. Its link is up when the other end is connected, and its buffers limit
 * the frame size.
 */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include <rte_version.h>

/* Before port_fixture.h, which has a global variable r. */
#include "soft_netif.h"

#include "port_fixture.h"

static struct rig ends[2] = {{.name = "net_memif0"}, {.name = "net_memif1"}};

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SEC + (uint64_t)t.tv_nsec;
}

/*
 * Replaces the function of libc. While an end pauses, the other end polls if the test has set
 * polled_by_pause, as the process of the other end would.
 */
static struct rig *polled_by_pause;
/* A port that the main thread closes, and the number of its pauses before the stop. */
static struct soft_netif *closing;
static uint32_t pauses;
static pthread_t main_thread;

int
usleep(useconds_t us)
{
	const struct timespec t = {.tv_nsec = (long)us * 1000};

	if (closing != NULL && us == SOFT_PORT_LINGER_US &&
	    pthread_equal(pthread_self(), main_thread)) {
		/* EAL's interrupt thread waits for the port's lock, and can get it. */
		assert_int_equal(__atomic_load_n(&closing->gate, __ATOMIC_ACQUIRE),
				 SOFT_NETIF_GATED);
		soft_netif_lock(closing);
		soft_netif_unlock(closing);
		pauses++;
	}
	if (polled_by_pause != NULL)
		soft_port_poll(polled_by_pause->p, now_ns());
	return nanosleep(&t, NULL);
}

static void
options(struct rig *e, uint32_t framesz, uint32_t mtu)
{
	memset(&e->o, 0, sizeof(e->o));
	strcpy(e->o.name, e->name);
	rig_address(&e->o, e == &ends[0] ? US4 : PEER4, 24);
	rig_address(&e->o, e == &ends[0] ? US6 : PEER6, 64);
	e->o.framesz = framesz;
	e->o.mtu = mtu;
	e->roce = 0;
}

static void
poll_both(void)
{
	soft_port_poll(ends[0].p, now_ns());
	soft_port_poll(ends[1].p, now_ns());
}

/* Sends; waits for a neighbour, a full ring or the link. */
static void
send_it(const struct out *o)
{
	uint64_t end = now_ns() + 60 * SEC;
	enum soft_port_sent why;

	while (rig_send(ends[0].p, &o->tx, 1, now_ns(), &why) == 0) {
		if (why != SOFT_PORT_PENDING && why != SOFT_PORT_FULL && why != SOFT_PORT_DOWN)
			fail_msg("not sent: %d", why);
		if (now_ns() > end)
			fail_msg("not sent in 60 s: %d", why);
		poll_both();
	}
}

TEST(test_memif_options_set_the_mtu)
{
	struct soft_port_info info;
	struct soft_port *p = NULL;

	/* The PMD reports 1518 bytes. */
	options(&ends[0], 0, 0);
	assert_int_equal(soft_port_open("soft0", &ends[0].o, &rig_ops, &ends[0], &p), 0);
	soft_port_info(p, &info);
	assert_int_equal(info.mtu, 1024);
	assert_false(info.up);
	soft_port_close(p);
	p = NULL;
	options(&ends[0], 0, 2048);
	assert_int_equal(soft_port_open("soft0", &ends[0].o, &rig_ops, &ends[0], &p), -EINVAL);
	assert_null(p);
	options(&ends[0], 2150, 2048);
	assert_int_equal(soft_port_open("soft0", &ends[0].o, &rig_ops, &ends[0], &p), 0);
	soft_port_info(p, &info);
	assert_int_equal(info.mtu, 2048);
	soft_port_close(p);
	/* A frame must fit one of its buffers, which have 2048 bytes by default. */
	p = NULL;
	strcpy(ends[0].o.name, "net_memif2");
	assert_int_equal(soft_port_open("soft0", &ends[0].o, &rig_ops, &ends[0], &p), -EINVAL);
	assert_null(p);
}

TEST(test_memif_without_listener_connects_once)
{
	struct soft_port_opts o = {.name = "net_memif3"};
	char args[64];

	snprintf(args, sizeof(args), "id=3,role=client,socket=@bb%d-nobody", getpid());
	assert_int_equal(rte_eal_hotplug_add("vdev", o.name, args), 0);
	rig_address(&o, US4, 24);
	rig_refused(&o, -ECONNREFUSED,
		    "a port with role=client needs its role=server to run first");
	assert_int_equal(rte_eal_hotplug_remove("vdev", o.name), 0);
}

TEST(test_memif_carries_frames)
{
	static const uint32_t sizes[] = {0, 8, 257, 2000, 4096};
	struct soft_port_hold hold;
	struct soft_port_info info;
	enum soft_port_sent why;
	uint32_t i, v6, n = 0;
	struct out o;

	for (i = 0; i < 2; i++) {
		options(&ends[i], 4198, 0);
		rig_open(&ends[i]);
	}
	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 31 + (i >> 8));
	r = &ends[0];
	soft_port_hold_init(&hold);
	for (i = 0; i < RTE_DIM(sizes); i++) {
		for (v6 = 0; v6 < 2; v6++) {
			out_init(&o, v6 ? US6 : US4, v6 ? PEER6 : PEER4, sizes[i], &hold);
			send_it(&o);
			n++;
			/* memif has no loss: every packet it took arrives. */
			for (uint64_t end = now_ns() + 60 * SEC;
			     ends[1].roce != n && now_ns() < end;)
				poll_both();
			assert_int_equal(ends[1].roce, n);
			check_packet(&ends[1].got, &o, ends[1].mac, 0);
			/* Copied, and released, when the PMD took it. */
			assert_false(soft_port_hold_busy(&hold));
		}
	}
	/*
	 * Zero copy from 257 bytes on, where net_memif sends chains correctly: see
	 * soft_port_eth.c.
	 */
	soft_port_info(ends[0].p, &info);
	assert_int_equal(info.zero_copy, RTE_VERSION < RTE_VERSION_NUM(23, 3, 0, 0) ||
						 RTE_VERSION >= RTE_VERSION_NUM(26, 3, 0, 0));
	assert_int_equal(stats().tx_zero_copy, info.zero_copy ? 6 : 0);
	/* More frames than the queue of the port, or a ring of the PMD, takes at once. */
	out_init(&o, US4, PEER4, 8, &hold);
	while (rig_send(ends[0].p, &o.tx, 1, now_ns(), &why) == 1)
		n++;
	assert_true(n - ends[1].roce > 1024);
	polled_by_pause = &ends[1];
	for (i = 0; i < SOFT_PORT_LINGER_NAPS && soft_port_lingers(ends[0].p); i++)
		usleep(SOFT_PORT_LINGER_US);
	polled_by_pause = NULL;
	soft_port_close(ends[0].p);
	assert_int_equal(ends[1].roce, n);
	soft_port_close(ends[1].p);
}

static const struct soft_port_ops no_ops;

/*
 * The port waits before it closes, so that the peer can read the last frames. Meanwhile the peer
 * may exit, and EAL's interrupt thread then unmaps the rings.
 */
TEST(test_memif_port_is_gated_until_its_last_flush)
{
	struct soft_dev *dev = calloc(1, sizeof(*dev));
	struct soft_netif *nif;
	uint64_t end;

	assert_non_null(dev);
	options(&ends[0], 0, 0);
	strcpy(dev->name, "soft0");
	dev->opts.port = ends[0].o;
	assert_int_equal(soft_netif_open(dev, &no_ops), 0);
	nif = dev->netif;
	options(&ends[1], 0, 0);
	rig_open(&ends[1]);
	for (end = now_ns() + 60 * SEC; soft_netif_ready(dev, ip_of(PEER4)) != 0;) {
		assert_true(now_ns() < end);
		soft_port_poll(ends[1].p, now_ns());
	}
	main_thread = pthread_self();
	closing = nif;
	soft_netif_close(dev);
	closing = NULL;
	assert_in_range(pauses, 1, SOFT_PORT_LINGER_NAPS);
	soft_port_close(ends[1].p);
	free(dev);
}

int
main(void)
{
	char server[128], client[128];
	const char *const vdevs[] = {server, client, "--vdev=net_memif2,id=2"};

	/* An abstract socket of this process: it leaves no file. */
	snprintf(server, sizeof(server),
		 "--vdev=net_memif0,role=server,socket=@bb%d,socket-abstract=yes,bsize=4224",
		 getpid());
	snprintf(client, sizeof(client),
		 "--vdev=net_memif1,role=client,socket=@bb%d,socket-abstract=yes,bsize=4224",
		 getpid());
	if (rig_eal(vdevs, 3) != 0)
		return 1;
	return bb_test_run(__FILE__, NULL, NULL);
}
