/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#define _GNU_SOURCE /* fopencookie */
#include <errno.h>

#include <rte_log.h>

#include "bb_test.h"
#include "frames.h"
#include "soft_ctl.h"
#include "soft_port_opts.h"

static char log_text[4096];

static ssize_t
log_write(void *c, const char *buf, size_t size)
{
	size_t have = strlen(log_text);
	size_t n = size < sizeof(log_text) - 1 - have ? size : sizeof(log_text) - 1 - have;

	(void)c;
	memcpy(log_text + have, buf, n);
	log_text[have + n] = '\0';
	return (ssize_t)size;
}

static int
setup(void **st)
{
	(void)st;
	log_text[0] = '\0';
	return 0;
}

static struct soft_opts opts;

static int
parse(const char *args)
{
	soft_opts_default(&opts);
	return soft_opts_parse("soft0", args, &opts);
}

/* Asserts that the options are rejected with a line that has @word. */
static void
refused(const char *args, const char *word)
{
	struct soft_opts before;

	log_text[0] = '\0';
	soft_opts_default(&before);
	assert_int_equal(parse(args), -EINVAL);
	assert_memory_equal(&opts.port, &before.port, sizeof(opts.port));
	if (strstr(log_text, word) == NULL)
		fail_msg("\"%s\": no \"%s\" in: %s", args, word, log_text);
}

#define T(name) TEST_WITH(setup, NULL, name)

T(test_valid_options_are_accepted)
{
	assert_int_equal(parse("port=net_memif0,ip=192.0.2.1/24,ip=2001:db8::1/64,vlan=12,"
			       "mtu=2048,framesz=2400,neigh=192.0.2.2@02:00:00:00:00:02,"
			       "neigh=2001:db8::2@02:00:00:00:00:03,progress=inline"),
			 0);
	assert_string_equal(opts.port.name, "net_memif0");
	assert_int_equal(opts.port.n_ip, 2);
	assert_memory_equal(opts.port.ip[0].addr, ip_of("192.0.2.1"), 16);
	assert_int_equal(opts.port.ip[0].prefix, 96 + 24);
	assert_memory_equal(opts.port.ip[1].addr, ip_of("2001:db8::1"), 16);
	assert_fields(opts.port, ip[1].prefix, 64, vlan, 12, mtu, 2048, framesz, 2400, n_neigh, 2);
	assert_memory_equal(opts.port.neigh[0].mac, "\x02\0\0\0\0\x02", 6);
	assert_memory_equal(opts.port.neigh[1].ip, ip_of("2001:db8::2"), 16);
	assert_int_equal(parse("port=net_ring0"), 0);
	assert_int_equal(parse("progress=inline"), 0);
	assert_int_equal(opts.port.name[0], '\0');
}

T(test_bad_option_is_refused_by_name)
{
	static const char *const bad[][2] = {
		{"port=", "port needs a value"},
		{"port=x,ip", "ip needs a value (valid: ip=ADDRESS/PREFIX (again for more))"},
		{"shm=f,ip=192.0.2.1/24,shm_packets=2", "(valid: shm_packets=0|1)"},
		{"ip=192.0.2.1/24", "port=ETHDEV"},
		{"mtu=1024", "port=ETHDEV"},
		{"port=x,ip=192.0.2.1", "192.0.2.1/24 or"},
		{"port=x,ip=192.0.2.1/33", "192.0.2.1/24 or"},
		{"port=x,ip=192.0.2.1/0", "192.0.2.1/24 or"},
		{"port=x,ip=192.0.2.1/-1", "192.0.2.1/24 or"},
		{"port=x,ip=192.0.2.1/24x", "192.0.2.1/24 or"},
		{"port=x,ip=192.0.2.256/24", "192.0.2.1/24 or"},
		{"port=x,ip=2001:db8::1/129", "2001:db8::1/64"},
		{"port=x,ip=::ffff:192.0.2.1/120", "2001:db8::1/64"},
		{"port=x,ip=224.0.0.1/24", "not that of a host"},
		{"port=x,ip=0.0.0.0/8", "not that of a host"},
		{"port=x,ip=127.0.0.1/8", "not that of a host"},
		{"port=x,ip=255.255.255.255/8", "not that of a host"},
		{"port=x,ip=ff02::1/64", "not that of a host"},
		{"port=x,ip=::1/64", "not that of a host"},
		{"port=x,ip=::/64", "not that of a host"},
		{"port=x,ip=fe80::1/64", "derives its link-local address from the MAC"},
		{"port=x,ip=192.0.2.1/24,ip=192.0.2.1/25", "twice"},
		{"port=x,vlan=0", "(valid: vlan=1..4094)"},
		{"port=x,vlan=4095", "vlan"},
		{"port=x,mtu=1500", "(valid: mtu=256|512|1024|2048|4096)"},
		{"port=x,mtu=128", "mtu"},
		{"port=x,mtu=8192", "mtu"},
		{"port=x,framesz=357", "framesz"},
		{"port=x,framesz=9729", "framesz"},
		{"port=x,framesz=1e3", "(valid: framesz=358..9728)"},
		{"port=x,mtu=4096,framesz=4197", "framesz=4198"},
		{"port=x,neigh=192.0.2.2", "192.0.2.2@02"},
		{"port=x,neigh=192.0.2.2@01:00:00:00:00:02", "192.0.2.2@02"},
		{"port=x,neigh=192.0.2.2@00:00:00:00:00:00", "192.0.2.2@02"},
		{"port=x,neigh=192.0.2.2@02:00:00:00:00", "192.0.2.2@02"},
		{"port=x,neigh=224.0.0.9@02:00:00:00:00:02", "192.0.2.2@02"},
		{"port=x,link=ib", "link=ib"},
		{"port=x,gateway=192.0.2.9", "unknown option"},
	};
	char args[1024] = "port=x";

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refused(bad[i][0], bad[i][1]);
	memset(args + 5, 'n', SOFT_PORT_NAME);
	args[5 + SOFT_PORT_NAME] = '\0';
	refused(args, "port");
	strcpy(args, "port=x");
	for (unsigned int i = 0; i <= SOFT_PORT_IPS; i++)
		snprintf(args + strlen(args), 64, ",ip=192.0.2.%u/24", i + 1);
	refused(args, "too many ip= options at ip=192.0.2.9/24 (at most 8)");
	strcpy(args, "port=x");
	for (unsigned int i = 0; i <= SOFT_PORT_NEIGHS; i++)
		snprintf(args + strlen(args), 64, ",neigh=192.0.2.%u@02:00:00:00:00:01", i + 1);
	refused(args, "too many neigh= options");
}

/* A device that is opened again: its lists are compared as a whole. */
T(test_options_of_a_reopened_device_are_compared_as_a_whole)
{
	struct soft_opts first;

	assert_int_equal(parse("port=x,ip=192.0.2.1/24,neigh=192.0.2.2@02:00:00:00:00:02"), 0);
	first = opts;
	assert_int_equal(soft_opts_parse("soft0", "ip=192.0.2.1/24", &opts), 0);
	assert_true(soft_port_opts_equal(&first.port, &opts.port));
	assert_int_equal(soft_opts_parse("soft0", "ip=192.0.2.1/25", &opts), 0);
	assert_false(soft_port_opts_equal(&first.port, &opts.port));
	opts = first;
	assert_int_equal(soft_opts_parse("soft0", "neigh=192.0.2.2@02:00:00:00:00:03", &opts), 0);
	assert_false(soft_port_opts_equal(&first.port, &opts.port));
}

TEST(test_mtu_follows_the_frame_size)
{
	assert_int_equal(soft_port_mtu_of(1500), 1024); /* as rdma_rxe on Ethernet */
	assert_int_equal(soft_port_mtu_of(4200), 4096); /* as rdma_rxe at 4200 */
	assert_int_equal(soft_port_mtu_of(4180), 4096);
	assert_int_equal(soft_port_mtu_of(4179), 2048);
	assert_int_equal(soft_port_mtu_of(340), 256);
	assert_int_equal(soft_port_mtu_of(339), 0);
	assert_int_equal(soft_port_mtu_of(9000), 4096);
}

TEST(test_addresses_are_parsed_or_refused)
{
	uint8_t ll[16];

	soft_port_link_local((const uint8_t *)"\x52\x54\x00\x12\x34\x56", ll);
	assert_memory_equal(ll, ip_of("fe80::5054:ff:fe12:3456"), 16);
	assert_true(soft_ip_in_prefix(ip_of("192.0.2.77"), ip_of("192.0.2.1"), 96 + 24));
	assert_false(soft_ip_in_prefix(ip_of("192.0.3.77"), ip_of("192.0.2.1"), 96 + 24));
	assert_true(soft_ip_in_prefix(ip_of("192.0.3.77"), ip_of("192.0.2.1"), 96 + 23));
	assert_true(soft_ip_in_prefix(ip_of("192.0.2.126"), ip_of("192.0.2.1"), 96 + 25));
	assert_false(soft_ip_in_prefix(ip_of("192.0.2.128"), ip_of("192.0.2.1"), 96 + 25));
	assert_true(soft_ip_in_prefix(ip_of("192.0.2.1"), ip_of("192.0.2.1"), 128));
	assert_false(soft_ip_in_prefix(ip_of("192.0.2.0"), ip_of("192.0.2.1"), 128));
}

int
main(void)
{
	cookie_io_functions_t io = {.write = log_write};
	FILE *f = fopencookie(NULL, "w", io);

	if (f == NULL)
		return 1;
	setvbuf(f, NULL, _IONBF, 0);
	rte_openlog_stream(f);
	return bb_test_run(__FILE__, NULL, NULL);
}
