/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Ports against Linux's own stack, in a network namespace of this process: af_packet and af_xdp
 * ports on one end of a veth pair, and a tap. ping sends the pings; ARP and neighbour entries are
 * the kernel's.
 */
#define _GNU_SOURCE /* unshare() */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <rte_dev.h>
#include <rte_ethdev.h>

#include "port_fixture.h"

#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif

/* Linux has address .1, the port .2, in a network for each kind of port. */
struct net {
	const char *vdev, *linux_if;
	const char *linux4, *port4, *linux6, *port6;
	const char *set_up; /* command that configures Linux's interface after the port has
			     * started */
	uint32_t framesz, max;
};
static const struct net veth = {
	.vdev = "net_af_packet0",
	.linux_if = "vb",
	.linux4 = "192.0.2.1",
	.port4 = "192.0.2.2",
	.linux6 = "2001:db8::1",
	.port6 = "2001:db8::2",
	.set_up = "true",
	.max = 1024,
};
/* Tests add and remove its ethdev. */
static const struct net spare = {
	.vdev = "net_af_packet2",
	.linux_if = "vz",
	.linux4 = "198.19.0.1",
	.port4 = "198.19.0.2",
	.linux6 = "2001:db8:4::1",
	.port6 = "2001:db8:4::2",
	.set_up = "true",
	.max = 1024,
};
static const struct net jumbo_veth = {
	.vdev = "net_af_packet1",
	.linux_if = "vd",
	.linux4 = "203.0.113.1",
	.port4 = "203.0.113.2",
	.linux6 = "2001:db8:2::1",
	.port6 = "2001:db8:2::2",
	.set_up = "true",
	.framesz = 8192, /* mbufs as large as the frames of the vdev */
	.max = 4096,
};
static const struct net tap = {
	.vdev = "net_tap0",
	.linux_if = "bbtap",
	.linux4 = "198.51.100.1",
	.port4 = "198.51.100.2",
	.linux6 = "2001:db8:1::1",
	.port6 = "2001:db8:1::2",
	/* The PMD gives its own MAC to Linux's end when it starts, but two hosts must differ. */
	.set_up = "ip link set bbtap address 02:00:00:00:00:77",
	.max = 1024,
};

/* The PMD reports 3502 bytes, and sets the MTU of its interface to what the port needs. */
static const struct net xdp = {
	.vdev = "net_af_xdp0",
	.linux_if = "vy",
	.linux4 = "198.18.0.1",
	.port4 = "198.18.0.2",
	.linux6 = "2001:db8:3::1",
	.port6 = "2001:db8:3::2",
	.set_up = "ip link show vx | grep -q 'mtu 2132 '",
	.max = 2048,
};

static struct rig host;

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SEC + (uint64_t)t.tv_nsec;
}

/* Runs a command line while the port is polled. Returns its exit status. */
static int
shell(const char *fmt, ...)
{
	char line[512];
	int status;
	va_list ap;
	pid_t pid;

	va_start(ap, fmt);
	assert_true(vsnprintf(line, sizeof(line), fmt, ap) < (int)sizeof(line));
	va_end(ap);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (host.p != NULL)
			soft_port_poll(host.p, now_ns());
		usleep(100);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
mac_of_if(const char *name, uint8_t mac[6])
{
	struct ifreq ifr = {0};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_true(fd >= 0);
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	assert_int_equal(ioctl(fd, SIOCGIFHWADDR, &ifr), 0);
	memcpy(mac, ifr.ifr_hwaddr.sa_data, 6);
	close(fd);
}

/* The port sends requests, Linux answers. */
static void
asks(const struct net *n, const char *addr)
{
	uint64_t end = now_ns() + 60 * SEC;
	uint8_t mac[6], want[6];
	enum soft_port_sent sent;

	mac_of_if(n->linux_if, want);
	while ((sent = soft_port_reach(host.p, ip_of(addr), now_ns(), mac)) != SOFT_PORT_SENT) {
		if (now_ns() > end)
			fail_msg("%s is not found: %d", addr, sent);
		soft_port_poll(host.p, now_ns());
	}
	assert_memory_equal(mac, want, 6);
}

/* Returns a UDP socket of Linux on the RoCE port, and its peer. */
static int
udp_socket(const char *local, const char *remote, struct sockaddr_storage *peer, socklen_t *len)
{
	bool v6 = strchr(local, ':') != NULL;
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(4791)};
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(4791)};
	int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), one = 1, ret;

	assert_true(fd >= 0);
	/* Without UDP checksums in both directions, as rdma_rxe. */
	if (v6) {
		assert_int_equal(setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, &one, 4), 0);
		assert_int_equal(setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX - 1, &one, 4), 0);
		inet_pton(AF_INET6, local, &a6.sin6_addr);
		ret = bind(fd, (struct sockaddr *)&a6, sizeof(a6));
		inet_pton(AF_INET6, remote, &a6.sin6_addr);
		memcpy(peer, &a6, *len = sizeof(a6));
	} else {
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &one, 4), 0);
		inet_pton(AF_INET, local, &a4.sin_addr);
		ret = bind(fd, (struct sockaddr *)&a4, sizeof(a4));
		inet_pton(AF_INET, remote, &a4.sin_addr);
		memcpy(peer, &a4, *len = sizeof(a4));
	}
	assert_int_equal(ret, 0);
	return fd;
}

/* Datagrams between Linux's UDP and the port: lengths, checksums and addresses are right. */
static void
carries(const char *local, const char *remote, uint32_t max)
{
	const uint32_t sizes[] = {0, 1, 300, max};
	uint8_t got[8192];
	struct soft_port_hold hold;
	struct sockaddr_storage peer;
	enum soft_port_sent why;
	uint32_t seen;
	socklen_t to_len;
	struct out o;
	ssize_t n;
	int fd = udp_socket(local, remote, &peer, &to_len);

	soft_port_hold_init(&hold);
	for (uint32_t i = 0; i < RTE_DIM(sizes); i++) {
		out_init(&o, remote, local, sizes[i], &hold);
		assert_int_equal(rig_send(host.p, &o.tx, 1, now_ns(), &why), 1);
		for (uint64_t end = now_ns() + 60 * SEC; (n = recv(fd, got, sizeof(got), 0)) < 0;) {
			assert_true(now_ns() < end);
			soft_port_poll(host.p, now_ns());
		}
		assert_int_equal(n, o.tx.hdr_len + sizes[i] + bb_roce_pad(sizes[i]) + 4);
		assert_memory_equal(got, o.hdr, o.tx.hdr_len);
		assert_memory_equal(got + o.tx.hdr_len, data, sizes[i]);
		/* In the other direction. */
		seen = host.roce;
		assert_int_equal(sendto(fd, got, (size_t)n, 0, (struct sockaddr *)&peer, to_len),
				 n);
		for (uint64_t end = now_ns() + 60 * SEC; host.roce == seen;) {
			assert_true(now_ns() < end);
			soft_port_poll(host.p, now_ns());
		}
		assert_int_equal(host.rx.l4_len, 8 + n);
		assert_memory_equal(host.got.b + host.rx.l4_off + 8, got, (size_t)n);
		assert_memory_equal(host.rx.net.src, ip_of(local), 16);
	}
	assert_false(soft_port_hold_busy(&hold));
	close(fd);
}

static void
with_linux(const struct net *n)
{
	struct soft_port_info info;
	char mac[18];

	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 31 + (i >> 8));
	memset(&host, 0, sizeof(host));
	strcpy(host.o.name, n->vdev);
	rig_address(&host.o, n->port4, 24);
	rig_address(&host.o, n->port6, 64);
	host.o.framesz = n->framesz;
	rig_open(&host);
	soft_port_info(host.p, &info);
	assert_int_equal(info.mtu, n->max);
	rte_ether_format_addr(mac, sizeof(mac), (struct rte_ether_addr *)host.mac);
	for (uint32_t i = 0; i < 6u * 3; i++)
		if (mac[i] >= 'A')
			mac[i] |= 0x20;
	assert_int_equal(shell("%s", n->set_up), 0);
	assert_int_equal(shell("ip addr add %s/24 dev %s && ip addr add %s/64 dev %s nodad",
			       n->linux4, n->linux_if, n->linux6, n->linux_if),
			 0);
	assert_int_equal(shell("ping -q -c 3 -i 0.2 -W 60 %s >/dev/null", n->port4), 0);
	assert_int_equal(shell("ping -q -c 3 -i 0.2 -W 60 -s 1400 %s >/dev/null", n->port4), 0);
	assert_int_equal(shell("ping -6 -q -c 3 -i 0.2 -W 60 %s >/dev/null", n->port6), 0);
	assert_int_equal(shell("ip neigh show %s | grep -q 'lladdr %s'", n->port4, mac), 0);
	assert_int_equal(shell("ip -6 neigh show %s | grep -q 'lladdr %s'", n->port6, mac), 0);
	/* No host has this address. */
	assert_int_not_equal(shell("ping -q -c 1 -W 1 %s9 >/dev/null", n->port4), 0);
	asks(n, n->linux4);
	asks(n, n->linux6);
	carries(n->linux4, n->port4, n->max);
	carries(n->linux6, n->port6, n->max);
	soft_port_close(host.p);
	host.p = NULL;
}

/* Skips if the kernel has no packet rings, as QEMU's emulation of Linux. */
static void
need_rings(void)
{
	const int version = TPACKET_V2, fd = socket(AF_PACKET, SOCK_RAW, 0);
	const int ret = setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version));

	close(fd);
	if (ret != 0) {
		printf("SKIP: no rings of packet sockets\n");
		skip();
	}
}

TEST(test_af_packet_works_with_the_kernels_stack)
{
	need_rings();
	with_linux(&veth);
}

/* net_af_packet cannot be started twice: it keeps running between two devices. */
TEST(test_af_packet_keeps_running_between_devices)
{
	need_rings();
	assert_int_equal(shell("ip addr flush dev vb; ip neigh flush dev vb"), 0);
	with_linux(&veth);
}

/* Frames longer than the PMD reports need its own option, the interface's MTU, and framesz=. */
TEST(test_af_packet_carries_jumbo_frames_with_its_options)
{
	need_rings();
	with_linux(&jumbo_veth);
}

/* Adds an af_packet port on the interface ve. */
static void
add_ve(void)
{
	need_rings();
	assert_int_equal(rte_eal_hotplug_add("vdev", spare.vdev, "iface=ve"), 0);
}

/* Sets or clears CAP_NET_ADMIN of this thread. */
static void
set_net_admin(bool on)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct cap[2];

	assert_int_equal(syscall(SYS_capget, &head, cap), 0);
	if (on)
		cap[0].effective |= 1u << CAP_NET_ADMIN;
	else
		cap[0].effective &= ~(1u << CAP_NET_ADMIN);
	assert_int_equal(syscall(SYS_capset, &head, cap), 0);
}

static void
refused_without_net_admin(int ret, const char *hint)
{
	struct soft_port_opts o = {0};

	strcpy(o.name, spare.vdev);
	rig_address(&o, spare.port4, 24);
	set_net_admin(false);
	rig_refused(&o, ret, hint);
	set_net_admin(true);
}

/* DPDK sets flags of the interface when it starts the port. A refusal costs nothing. */
TEST(test_af_packet_without_net_admin_is_refused_and_opens_later)
{
	add_ve();
	refused_without_net_admin(-EPERM, "run the program with CAP_NET_ADMIN");
	with_linux(&spare);
	assert_int_equal(rte_eal_hotplug_remove("vdev", spare.vdev), 0);
}

TEST(test_af_packet_leaves_a_larger_mtu_as_it_is)
{
	add_ve();
	assert_int_equal(shell("ip link set ve mtu 9000 && ip link set vz mtu 9000 && "
			       "ip addr flush dev vz; ip neigh flush dev vz"),
			 0);
	with_linux(&spare);
	assert_int_equal(shell("ip link show ve | grep -q 'mtu 9000 '"), 0);
	assert_int_equal(rte_eal_hotplug_remove("vdev", spare.vdev), 0);
}

TEST(test_af_packet_raises_a_smaller_mtu_or_says_how)
{
	add_ve();
	assert_int_equal(shell("ip link set ve mtu 1400 && ip link set vz mtu 1500 && "
			       "ip addr flush dev vz; ip neigh flush dev vz"),
			 0);
	refused_without_net_admin(-EINVAL, "\"ip link set ve mtu 1500\"");
	with_linux(&spare);
	assert_int_equal(shell("ip link show ve | grep -q 'mtu 1500 '"), 0);
	assert_int_equal(rte_eal_hotplug_remove("vdev", spare.vdev), 0);
}

/* DPDK gives the id of a removed ethdev to the next one, whose queues are not set up yet. */
TEST(test_af_packet_works_after_its_ethdev_was_removed_and_added)
{
	uint16_t id, again;

	add_ve();
	assert_int_equal(rte_eth_dev_get_port_by_name(spare.vdev, &id), 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(shell("ip addr flush dev vz; ip neigh flush dev vz"), 0);
		with_linux(&spare);
		assert_int_equal(rte_eal_hotplug_remove("vdev", spare.vdev), 0);
		add_ve();
		assert_int_equal(rte_eth_dev_get_port_by_name(spare.vdev, &again), 0);
		assert_int_equal(again, id);
	}
	assert_int_equal(rte_eal_hotplug_remove("vdev", spare.vdev), 0);
}

/* net_tap of DPDK 22.11 reports 1522 bytes, newer ones 9728. */
static bool
tap_jumbo(void)
{
	struct rte_eth_dev_info info;
	uint16_t id;

	assert_int_equal(rte_eth_dev_get_port_by_name(tap.vdev, &id), 0);
	assert_int_equal(rte_eth_dev_info_get(id, &info), 0);
	return info.max_rx_pktlen >= 4198;
}

TEST(test_af_packet_jumbo_refusal_names_its_options)
{
	struct soft_port_opts o = {.name = "net_af_packet0", .mtu = 4096};

	need_rings();
	rig_address(&o, US4, 24);
	rig_refused(&o, -EINVAL,
		    "give the device framesz=8192 and its vdev framesz=8192,blocksz=8192, and set "
		    "the interface's MTU to 4180");
	o.mtu = 2048;
	rig_refused(&o, -EINVAL,
		    "give the device framesz=4096 and its vdev framesz=4096,blocksz=4096, and set "
		    "the interface's MTU to 2132");
}

/* net_tap of DPDK 22.11 receives frames longer than it reports, so it is refused. */
TEST(test_tap_jumbo_refused)
{
	if (tap_jumbo())
		skip();
	memset(&host, 0, sizeof(host));
	strcpy(host.o.name, tap.vdev);
	host.o.framesz = 4198;
	assert_int_equal(soft_port_open("soft0", &host.o, &rig_ops, &host, &host.p), -EINVAL);
	host.o.framesz = 0;
	host.o.mtu = 2048;
	assert_int_equal(soft_port_open("soft0", &host.o, &rig_ops, &host, &host.p), -EINVAL);
	assert_null(host.p);
}

TEST(test_tap_works_with_the_kernels_stack)
{
	struct net n = tap;

	if (tap_jumbo())
		n.max = 4096;
	with_linux(&n);
}

/* Returns whether this kernel has XDP and may load programs. */
static bool
has_xdp(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_XSKMAP, .key_size = 4, .value_size = 4, .max_entries = 1};
	int map = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	int fd = socket(AF_XDP, SOCK_RAW, 0);

	if (map < 0 || fd < 0)
		printf("SKIP: no XDP: %s\n", strerror(errno));
	if (map >= 0)
		close(map);
	if (fd >= 0)
		close(fd);
	return map >= 0 && fd >= 0;
}

TEST(test_af_xdp_works_with_the_kernels_stack)
{
	if (!has_xdp())
		skip();
	if (rte_eal_hotplug_add("vdev", xdp.vdev, "iface=vx") != 0) {
		printf("SKIP: DPDK has no net_af_xdp\n");
		skip();
	}
	with_linux(&xdp);
	/* Its queues stay, and the port is opened again. */
	assert_int_equal(shell("ip addr flush dev vy; ip neigh flush dev vy"), 0);
	with_linux(&xdp);
	/* The XDP program is removed with the ethdev. */
	assert_int_equal(shell("ip -d link show vx | grep -q prog/xdp"), 0);
	assert_int_equal(rte_eal_hotplug_remove("vdev", xdp.vdev), 0);
	assert_int_not_equal(shell("ip -d link show vx | grep -q prog/xdp"), 0);
}

static void
give_up(const char *why)
{
	printf("SKIP: %s\n", why);
	exit(77);
}

/* net_af_xdp of DPDK 22.11 leaks a struct of libxdp when its ethdev is closed. */
const char *__lsan_default_suppressions(void);

const char *
__lsan_default_suppressions(void)
{
	return "leak:xsk_umem__create\n";
}

int
main(void)
{
	const char *const vdevs[] = {"--vdev=net_af_packet0,iface=va",
				     "--vdev=net_af_packet1,iface=vc,framesz=8192,blocksz=8192",
				     "--vdev=net_tap0,iface=bbtap"};

	if (unshare(CLONE_NEWNET) != 0)
		give_up("no network namespace: not root");
	if (shell("command -v ip && command -v ping") != 0)
		give_up("iproute2 or iputils-ping is not installed");
	if (access("/dev/net/tun", R_OK | W_OK) != 0)
		give_up("no /dev/net/tun");
	/* The kernel must have no address on the port's own interface: it would answer too. */
	if (shell("ip link set lo up && ip link add va type veth peer name vb && "
		  "echo 1 >/proc/sys/net/ipv6/conf/va/disable_ipv6 && "
		  "ip link set va up && ip link set vb up && "
		  "ip link add vc mtu 4180 type veth peer name vd mtu 4180 && "
		  "echo 1 >/proc/sys/net/ipv6/conf/vc/disable_ipv6 && "
		  "ip link set vc up && ip link set vd up && "
		  "ip link add vx mtu 2200 type veth peer name vy mtu 2200 && "
		  "echo 1 >/proc/sys/net/ipv6/conf/vx/disable_ipv6 && "
		  "ip link set vx up && ip link set vy up") != 0 ||
	    shell("ip link add ve type veth peer name vz && "
		  "echo 1 >/proc/sys/net/ipv6/conf/ve/disable_ipv6 && "
		  "ip link set ve up && ip link set vz up") != 0)
		give_up("no veth pair can be made here");
	if (rig_eal(vdevs, 3) != 0)
		return 1;
	return bb_test_run(__FILE__, NULL, NULL);
}
