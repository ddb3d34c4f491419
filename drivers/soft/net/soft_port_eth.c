/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The ethdev of a port: capabilities, queues and mbufs. Uses the public API of ethdev only. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_bitops.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_ethdev.h>
#include <rte_kvargs.h>
#include <rte_mempool.h>
#include <rte_version.h>

#include "soft.h"
#include "soft_port_priv.h"

/*
 * net_memif can chain transmit slots since 23.03. Before 26.03 a slot kept the flag "more slots
 * follow" from the previous pass over the ring. Chains ran together, so the receiver wrote past its
 * mbufs.
 */
#define MEMIF_CHAINS                                                                               \
	(RTE_VERSION < RTE_VERSION_NUM(23, 3, 0, 0) || RTE_VERSION >= RTE_VERSION_NUM(26, 3, 0, 0))

/*
 * PMDs that were tested and whose source was read. Meaning of the fields:
 *
 * zero_copy: mbufs of a chain may refer to foreign memory (external buffers). The PMD reads that
 * memory by virtual address, and copies it in the burst.
 *
 * retains_mbufs: the PMD retains mbufs after the burst, because it does not copy them. net_ring
 * passes the mbuf itself to the receiver.
 *
 * any_frame: the PMD carries frames longer than the 1518 bytes that DPDK 22.11 reports, as far as
 * the PMD's own options allow. So framesz= may be larger. (net_tap does not have this flag, because
 * longer frames stay in its queue for ever.)
 *
 * buffers: a frame must fit one buffer of the PMD. If a frame takes several buffers, net_memif of
 * DPDK 22.11 writes past the free slots of a nearly full ring, because eth_memif_tx() does not
 * count the first slot. buffer_key is the vdev's option for the buffer size, buffer_size its
 * default in bytes.
 *
 * on_interrupts: when the peer connects or disconnects, the PMD works on EAL's interrupt thread. If
 * another thread stops the PMD meanwhile, both free the same memory, because no lock prevents that.
 * So the port starts and stops the PMD on the interrupt thread. During polls soft_netif_gate.c
 * makes the interrupt thread wait.
 *
 * unread_lost: a stop discards the frames that the peer has not read yet. So the port waits before
 * a stop: see soft_port_lingers().
 *
 * no_restart: a stop closes the PMD's sockets for ever (eth_dev_stop() of net_af_packet). So the
 * PMD stays started for the next open in this process.
 *
 * once: the queues are set up only once, because their sockets own the interface until the ethdev
 * is closed. The PMD can be stopped, and must be, because rte_eal_cleanup() closes no running
 * ethdev.
 *
 * mbufs: size of the pool if the PMD needs more than POOL_MBUFS mbufs. (net_af_xdp holds 2048 for
 * the kernel to fill, up to 2048 that the kernel sends, and as many received mbufs.)
 *
 * front: bytes that the PMD reserves in each mbuf before the frame. (The kernel writes a frame
 * after XDP_PACKET_HEADROOM, and drops a frame that does not fit the remaining room.)
 */
static const struct pmd {
	const char *driver;
	bool zero_copy, retains_mbufs, any_frame, no_restart, once, on_interrupts, unread_lost;
	/*
	 * The vdev has the options framesz and blocksz. framesz is a power of two and counts the
	 * kernel's header of each packet, too. The MTU of Linux's interface limits the frames that
	 * the PMD sends, and may be larger.
	 */
	bool own_frames;
	const char *frame_hint; /* Advice for the log if the PMD limits the frame size itself. */
	const char *start_hint; /* Likely cause, for the log, if the PMD does not start. */
	const char *buffer_key;
	uint32_t buffer_size, mbufs, front;
} pmds[] = {
	{.driver = "net_ring", .zero_copy = true, .retains_mbufs = true, .any_frame = true},
	{.driver = "net_memif",
	 .zero_copy = MEMIF_CHAINS,
	 .any_frame = true,
	 .on_interrupts = true,
	 .unread_lost = true,
	 .frame_hint = "and bsize= of the vdev, at both ends",
	 .start_hint = "; a port with role=client needs its role=server to run first",
	 .buffer_key = "bsize",
	 .buffer_size = 2048},
	{.driver = "net_tap", .zero_copy = true},
	{.driver = "net_af_packet",
	 .zero_copy = true,
	 .any_frame = true,
	 .no_restart = true,
	 .own_frames = true},
	{.driver = "net_af_xdp", .once = true, .mbufs = 8191, .front = 256},
};

/*
 * Number of mbufs: enough for both rings, for a burst in each direction, and for the mbufs that the
 * PMD holds.
 */
#define POOL_MBUFS 2047
#define POOL_CACHE 64
/* Bytes. net_af_packet needs mbufs as large as its default frames. */
#define MIN_FRAME 2048u

/*
 * Mbufs and data room of ports whose queues stay set up after a close, because the PMD cannot be
 * restarted (no_restart) or sets up its queues only once (once).
 */
static struct {
	struct rte_mempool *pool;
	uint32_t room;
	bool open;
} running[RTE_MAX_ETHPORTS];

static const struct pmd *
find_pmd(const char *driver)
{
	static const struct pmd other;
	unsigned int i;

	for (i = 0; i < RTE_DIM(pmds); i++)
		if (strcmp(pmds[i].driver, driver) == 0)
			return &pmds[i];
	return &other;
}

/* Returns the bytes of the longest IP packet that the PMD reports; computed as ethdev does. */
static uint32_t
reported_l3(const struct rte_eth_dev_info *info)
{
	uint32_t overhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;

	if (info->max_mtu != UINT16_MAX && info->max_rx_pktlen > info->max_mtu)
		overhead = info->max_rx_pktlen - info->max_mtu;
	if (info->max_rx_pktlen <= overhead)
		return info->max_mtu;
	return RTE_MIN((uint32_t)info->max_mtu, info->max_rx_pktlen - overhead);
}

/* Checks that the PMD's buffers can hold the port's frames. Returns 0 or -EINVAL, logged. */
static int
check_buffers(const char *dev, const struct soft_port_opts *o, const struct pmd *pmd,
	      const struct rte_eth_dev_info *info, const struct soft_port_eth *eth)
{
	const struct rte_devargs *args = rte_dev_devargs(info->device);
	const char *text = args != NULL && args->args != NULL ? args->args : "", *value;
	uint32_t size = pmd->buffer_size;
	struct rte_kvargs *list;

	if (pmd->buffer_key == NULL)
		return 0;
	list = rte_kvargs_parse(text, NULL);
	value = list != NULL ? rte_kvargs_get(list, pmd->buffer_key) : NULL;
	if (value != NULL)
		size = (uint32_t)strtoul(value, NULL, 0);
	rte_kvargs_free(list);
	if (eth->frame <= size)
		return 0;
	SOFT_LOG(ERR,
		 "%s: frames of %u bytes do not fit the buffers of %u bytes of %s (%s): give its "
		 "vdev %s=%u, at both ends",
		 dev, eth->frame, size, o->name, eth->driver, pmd->buffer_key,
		 RTE_ALIGN_CEIL(eth->frame, 64u));
	return -EINVAL;
}

static int
choose_mtu(const char *dev, const struct soft_port_opts *o, const struct pmd *pmd,
	   const struct rte_eth_dev_info *info, struct soft_port_eth *eth)
{
	uint32_t reported = reported_l3(info), l3 = reported;
	uint32_t need = o->mtu + SOFT_PORT_L3_OVERHEAD;

	if (o->framesz != 0) {
		l3 = o->framesz - SOFT_PORT_L2_OVERHEAD;
		if (l3 > reported && !pmd->any_frame) {
			SOFT_LOG(ERR,
				 "%s: framesz=%u is too large: %s (%s) carries packets of at most "
				 "%u bytes: give framesz=%u or less",
				 dev, o->framesz, o->name, eth->driver, reported,
				 reported + SOFT_PORT_L2_OVERHEAD);
			return -EINVAL;
		}
	}
	if (o->mtu != 0 && need > l3) {
		if (pmd->own_frames) {
			uint32_t frame = rte_align32pow2(need + SOFT_PORT_L2_OVERHEAD + 64);

			SOFT_LOG(ERR,
				 "%s: mtu=%u does not fit: %s (%s) reports packets of at most %u "
				 "bytes; give the device framesz=%u and its vdev "
				 "framesz=%u,blocksz=%u, and set the interface's MTU to %u by "
				 "\"ip link set ... mtu\"",
				 dev, o->mtu, o->name, eth->driver, l3, frame, frame,
				 RTE_MAX(frame, (uint32_t)sysconf(_SC_PAGESIZE)), need);
		} else if (o->framesz != 0 || pmd->any_frame)
			SOFT_LOG(ERR,
				 "%s: mtu=%u does not fit: %s (%s) reports packets of at most %u "
				 "bytes; give framesz=%u %s",
				 dev, o->mtu, o->name, eth->driver, l3,
				 need + SOFT_PORT_L2_OVERHEAD,
				 pmd->frame_hint != NULL ? pmd->frame_hint : "too");
		else
			SOFT_LOG(ERR,
				 "%s: mtu=%u does not fit: %s (%s) carries packets of at most %u "
				 "bytes; give mtu=%u or less",
				 dev, o->mtu, o->name, eth->driver, l3, soft_port_mtu_of(l3));
		return -EINVAL;
	}
	eth->mtu = o->mtu != 0 ? o->mtu : soft_port_mtu_of(l3);
	if (eth->mtu == 0) {
		SOFT_LOG(ERR,
			 "%s: %s (%s) carries packets of at most %u bytes, too short for the "
			 "smallest MTU of 256 bytes: give framesz=%u",
			 dev, o->name, eth->driver, l3, SOFT_PORT_MIN_FRAME);
		return -EINVAL;
	}
	/*
	 * Echo requests (ping) have the same size limit as RoCE packets: that of a full RoCE
	 * packet, or Ethernet's default MTU if larger.
	 */
	l3 = RTE_MIN(l3, RTE_MAX(eth->mtu + SOFT_PORT_L3_OVERHEAD, 1500u));
	eth->frame = l3 + SOFT_PORT_L2_OVERHEAD;
	return 0;
}

static struct rte_mempool *
make_pool(const char *dev, const char *kind, uint16_t id, uint32_t mbufs, uint32_t room)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *pool;

	snprintf(name, sizeof(name), "bb_%s_%u_%u", kind, id, room);
	/*
	 * A pool of this name may exist from an earlier port of this process, because a receiver of
	 * net_ring still held its mbufs or the PMD retains the pool (net_tap). There is one pool
	 * per size.
	 */
	pool = rte_mempool_lookup(name);
	if (pool != NULL)
		return pool;
	pool = rte_pktmbuf_pool_create(name, mbufs, POOL_CACHE, 0, (uint16_t)room, SOCKET_ID_ANY);
	if (pool == NULL)
		SOFT_LOG(ERR,
			 "%s: cannot create a pool of %u mbufs with %u bytes of data: %s: give EAL "
			 "more memory (-m, or hugepages)",
			 dev, mbufs, room, rte_strerror(rte_errno));
	return pool;
}

/* Frees a pool, unless a receiver of net_ring or the PMD still holds some of its mbufs. */
static void
drop_pool(const struct soft_port_eth *eth, struct rte_mempool *pool)
{
	if (pool != NULL && pool != running[eth->id].pool && rte_mempool_full(pool))
		rte_mempool_free(pool);
}

/*
 * Called when an ethdev is removed: forgets its queues, because DPDK gives its id to the next
 * ethdev. If a port has it open, the port frees the pool.
 */
static int
forget_queues(uint16_t id, enum rte_eth_event_type event, void *arg, void *ret)
{
	struct rte_mempool *pool = running[id].pool;

	(void)event;
	(void)arg;
	(void)ret;
	running[id].pool = NULL;
	if (pool != NULL && !running[id].open && rte_mempool_full(pool))
		rte_mempool_free(pool);
	return 0;
}

static int
watch_removal(const char *dev, const struct soft_port_opts *o, const struct soft_port_eth *eth)
{
	/* A further registration of the same callback has no effect. */
	int ret =
		rte_eth_dev_callback_register(eth->id, RTE_ETH_EVENT_DESTROY, forget_queues, NULL);

	if (ret != 0)
		SOFT_LOG(ERR, "%s: port=%s: cannot watch the ethdev's removal: %s", dev, o->name,
			 rte_strerror(-ret));
	return ret;
}

/*
 * Returns the data room of an mbuf in bytes: enough for a whole frame, so that each received frame
 * has one segment.
 */
static uint32_t
room_of(const struct soft_port_opts *o, const struct pmd *pmd, const struct soft_port_eth *eth)
{
	uint32_t room = RTE_MAX(RTE_MAX(eth->frame, o->framesz), MIN_FRAME);

	return RTE_ALIGN_CEIL(room + pmd->front, 64u) + RTE_PKTMBUF_HEADROOM;
}

static int
make_pools(const char *dev, const struct soft_port_opts *o, const struct pmd *pmd,
	   struct soft_port_eth *eth)
{
	eth->pool = make_pool(dev, "port", eth->id, pmd->mbufs != 0 ? pmd->mbufs : POOL_MBUFS,
			      room_of(o, pmd, eth));
	if (eth->pool == NULL)
		return -ENOMEM;
	if (!eth->zero_copy)
		return 0;
	eth->ext = make_pool(dev, "ext", eth->id, POOL_MBUFS, 0);
	if (eth->ext != NULL)
		return 0;
	drop_pool(eth, eth->pool);
	return -ENOMEM;
}

static int
set_up_queues(const char *dev, const struct soft_port_opts *o, const struct rte_eth_dev_info *info,
	      struct soft_port_eth *eth)
{
	uint32_t l3 = RTE_MIN(eth->frame - SOFT_PORT_L2_OVERHEAD, reported_l3(info));
	uint16_t rx = SOFT_PORT_DESC, tx = SOFT_PORT_DESC;
	struct rte_eth_conf conf = {
		.rxmode.mtu = l3,
		.rxmode.offloads = info->rx_offload_capa &
				   (RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM),
		.txmode.offloads = info->tx_offload_capa &
				   (RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_MULTI_SEGS),
	};
	int ret;

	ret = rte_eth_dev_configure(eth->id, 1, 1, &conf);
	if (ret == -EBUSY) {
		SOFT_LOG(ERR,
			 "%s: port=%s is already started: stop that ethdev, because the device "
			 "needs the port for itself",
			 dev, o->name);
		return ret;
	}
	if (ret != 0) {
		SOFT_LOG(ERR,
			 "%s: port=%s: cannot configure the PMD %s with one receive queue, one "
			 "send queue and MTU %u: %s",
			 dev, o->name, eth->driver, l3, rte_strerror(-ret));
		return ret;
	}
	ret = rte_eth_dev_adjust_nb_rx_tx_desc(eth->id, &rx, &tx);
	if (ret == 0)
		ret = rte_eth_rx_queue_setup(eth->id, 0, rx, SOCKET_ID_ANY, NULL, eth->pool);
	if (ret == 0)
		ret = rte_eth_tx_queue_setup(eth->id, 0, tx, SOCKET_ID_ANY, NULL);
	if (ret == -ENOMEM)
		SOFT_LOG(ERR,
			 "%s: port=%s: the PMD %s needs mbufs larger than the frames of %u bytes: "
			 "set framesz= to the frame size of the PMD",
			 dev, o->name, eth->driver, eth->frame);
	else if (ret != 0)
		SOFT_LOG(ERR, "%s: port=%s: cannot set up the queues of %s: %s", dev, o->name,
			 eth->driver, rte_strerror(-ret));
	return ret;
}

/* Reads the PMD's capabilities and derives the port's capabilities. */
static int
look(const char *dev, const struct soft_port_opts *o, const struct pmd **pmd,
     struct rte_eth_dev_info *info, struct soft_port_eth *eth)
{
	struct rte_ether_addr mac;
	int ret;

	ret = rte_eth_dev_info_get(eth->id, info);
	if (ret == 0)
		ret = rte_eth_macaddr_get(eth->id, &mac);
	if (ret != 0) {
		SOFT_LOG(ERR, "%s: port=%s: cannot read the properties of the ethdev: %s", dev,
			 o->name, rte_strerror(-ret));
		return ret;
	}
	/* net_ring has no MAC and passes all frames, so any MAC works. */
	if (!rte_is_valid_assigned_ether_addr(&mac))
		mac = (struct rte_ether_addr){
			{0x02, 0xbb, 0, 1, (uint8_t)(eth->id >> 8), (uint8_t)eth->id}};
	memcpy(eth->mac, mac.addr_bytes, 6);
	snprintf(eth->driver, sizeof(eth->driver), "%s", info->driver_name);
	*pmd = find_pmd(eth->driver);
	eth->ip_csum = (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0;
	eth->multi_segs = (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
	eth->zero_copy = eth->multi_segs && (*pmd)->zero_copy;
	eth->retains_mbufs = (*pmd)->retains_mbufs;
	eth->on_interrupts = (*pmd)->on_interrupts;
	eth->unread_lost = (*pmd)->unread_lost;
	ret = choose_mtu(dev, o, *pmd, info, eth);
	return ret != 0 ? ret : check_buffers(dev, o, *pmd, info, eth);
}

/*
 * Takes ownership of the ethdev, so that no other device and no other program that respects
 * ethdev's ownership uses it.
 */
static int
own(const char *dev, const struct soft_port_opts *o, struct soft_port_eth *eth)
{
	struct rte_eth_dev_owner owner = {0}, other;

	if (rte_eth_dev_owner_new(&owner.id) != 0)
		return -ENOMEM;
	snprintf(owner.name, sizeof(owner.name), "bluebell %s", dev);
	if (rte_eth_dev_owner_set(eth->id, &owner) == 0) {
		eth->owner = owner.id;
		return 0;
	}
	if (rte_eth_dev_owner_get(eth->id, &other) != 0)
		other.name[0] = '\0';
	SOFT_LOG(ERR, "%s: port=%s: the ethdev is owned by \"%s\": name another port", dev, o->name,
		 other.name);
	return -EBUSY;
}

/* A function call to execute on EAL's interrupt thread. */
struct alarm_call {
	int (*fn)(uint16_t id);
	uint16_t id;
	int ret;
	bool done;
};

static void
run_alarm_call(void *arg)
{
	struct alarm_call *c = arg;

	c->ret = c->fn(c->id);
	__atomic_store_n(&c->done, true, __ATOMIC_RELEASE);
}

static int
start_or_stop(const struct pmd *pmd, int (*fn)(uint16_t id), uint16_t id)
{
	struct alarm_call c = {.fn = fn, .id = id};

	if (!pmd->on_interrupts || rte_eal_alarm_set(1, run_alarm_call, &c) != 0)
		return fn(id);
	while (!__atomic_load_n(&c.done, __ATOMIC_ACQUIRE))
		usleep(20);
	return c.ret;
}

int
soft_port_eth_start(const char *dev, const struct soft_port_opts *o, struct soft_port_eth *eth)
{
	struct rte_eth_dev_info info;
	const struct pmd *pmd;
	int ret;

	memset(eth, 0, sizeof(*eth));
	if (rte_eth_dev_get_port_by_name(o->name, &eth->id) != 0) {
		SOFT_LOG(ERR,
			 "%s: port=%s: there is no such ethdev: create a vdev by EAL's option "
			 "--vdev, or name a PCI device by -a; if you gave such an option, EAL has "
			 "logged why it failed",
			 dev, o->name);
		return -EINVAL; /* -ENODEV would mean that the device itself does not exist. */
	}
	ret = own(dev, o, eth);
	if (ret != 0)
		return ret;
	ret = look(dev, o, &pmd, &info, eth);
	if (ret != 0)
		goto disown;
	if (running[eth->id].pool != NULL && room_of(o, pmd, eth) > running[eth->id].room) {
		SOFT_LOG(ERR,
			 "%s: port=%s: %s cannot be restarted and runs with the smaller mbufs of "
			 "an earlier open: give the framesz= of that open",
			 dev, o->name, eth->driver);
		ret = -EINVAL;
		goto disown;
	}
	ret = make_pools(dev, o, pmd, eth);
	if (ret != 0)
		goto disown;
	if (running[eth->id].pool != NULL && pmd->no_restart) {
		running[eth->id].open = true;
		return 0;
	}
	if (running[eth->id].pool == NULL)
		ret = set_up_queues(dev, o, &info, eth);
	/*
	 * ethdev rejects an MTU above the maximum that the PMD reports, so such an MTU is not set.
	 * Frames of that length occur only with framesz=, on a PMD that carries frames of any
	 * length (any_frame).
	 */
	if (ret == 0 && eth->frame - SOFT_PORT_L2_OVERHEAD <= reported_l3(&info))
		ret = soft_port_set_mtu(dev, o, eth, pmd->own_frames ? info.if_index : 0);
	if (ret == 0)
		ret = soft_port_set_filters(dev, o, eth, pmd->no_restart);
	if (ret == 0 && (pmd->no_restart || pmd->once))
		ret = watch_removal(dev, o, eth);
	if (ret != 0)
		goto drop_pools;
	ret = start_or_stop(pmd, rte_eth_dev_start, eth->id);
	if (ret != 0) {
		/* A PMD returns -1 for a generic error, although -1 is also the value of -EPERM. */
		if (ret == -1 && pmd->start_hint != NULL)
			ret = -ECONNREFUSED;
		SOFT_LOG(ERR, "%s: port=%s: cannot start %s: %s%s", dev, o->name, eth->driver,
			 rte_strerror(-ret), pmd->start_hint != NULL ? pmd->start_hint : "");
		goto drop_pools;
	}
	if (pmd->no_restart || pmd->once) {
		running[eth->id].pool = eth->pool;
		running[eth->id].room = room_of(o, pmd, eth);
	}
	running[eth->id].open = true;
	return 0;

drop_pools:
	drop_pool(eth, eth->ext);
	drop_pool(eth, eth->pool);
disown:
	(void)rte_eth_dev_owner_unset(eth->id, eth->owner);
	return ret;
}

void
soft_port_eth_stop(struct soft_port_eth *eth)
{
	const struct pmd *pmd = find_pmd(eth->driver);
	int ret;

	running[eth->id].open = false;
	if (!pmd->no_restart) {
		ret = start_or_stop(pmd, rte_eth_dev_stop, eth->id);
		if (ret != 0)
			SOFT_LOG(ERR, "cannot stop ethdev port %u (%s): %s", eth->id, eth->driver,
				 rte_strerror(-ret));
	}
	drop_pool(eth, eth->pool);
	drop_pool(eth, eth->ext);
	(void)rte_eth_dev_owner_unset(eth->id, eth->owner);
}
