/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Choice of a GID: rank, ambiguity and moved indexes. sysfs is a directory tree that the test
 * makes.
 */
#include "../core/core_fixture.h"

#include <arpa/inet.h>
#include <sys/stat.h>

#include "bb_gid_priv.h"

static struct bb_gid_entry
entry(const char *addr, enum bb_gid_type type, uint8_t index)
{
	struct bb_gid_entry e = {.type = type, .index = index};

	if (strchr(addr, ':') != NULL) {
		assert_int_equal(inet_pton(AF_INET6, addr, e.raw), 1);
	} else {
		e.raw[10] = e.raw[11] = 0xff;
		assert_int_equal(inet_pton(AF_INET, addr, e.raw + 12), 1);
	}
	return e;
}

static int
pick(const struct bb_gid_entry *list, unsigned int n, const struct bb_gid_want *want)
{
	uint32_t rank;

	return bb_gid_pick(list, n, want, &rank);
}

/* Each entry ranks above those before it, in whatever order the list has them. */
TEST(test_each_entry_ranks_above_those_before_it)
{
	struct bb_gid_entry list[10], turned[10];
	struct bb_gid_want want = DEFAULTS(gid_want);

	list[0] = entry("fe80::1", BB_GID_ROCE_V1, 0);
	list[1] = entry("192.0.2.1", BB_GID_ROCE_V1, 1);
	list[2] = entry("192.0.2.9", BB_GID_ROCE_V2, 2);
	list[2].bond_slave = true;
	list[3] = entry("fe80::1", BB_GID_ROCE_V2, 3);
	list[4] = entry("192.0.2.7", BB_GID_ROCE_V2, 4);
	list[4].vlan = 7;
	list[5] = entry("fd00::1", BB_GID_ROCE_V2, 5);
	list[6] = entry("2001:db8::1", BB_GID_ROCE_V2, 6);
	list[7] = entry("192.0.2.1", BB_GID_ROCE_V2, 7);
	for (unsigned int n = 1; n <= 8; n++) {
		assert_int_equal(pick(list, n, &want), n - 1);
		for (unsigned int i = 0; i < n; i++)
			turned[i] = list[n - 1 - i];
		assert_int_equal(pick(turned, n, &want), 0);
	}
	want.family = BB_GID_IPV6;
	assert_int_equal(pick(list, 8, &want), 6);
	want.family = BB_GID_ANY_FAMILY;
	want.vlan = 7;
	assert_int_equal(pick(list, 8, &want), 4);
	want.vlan = 8;
	assert_int_equal(pick(list, 8, &want), -ENOENT);
	want.vlan = 0;
	assert_int_equal(pick(list, 8, &want), 7);
	want.only_roce_v2 = true;
	assert_int_equal(pick(list, 2, &want), -ENOENT);
}

/* Scopes of addresses: which may be chosen at all, and which rank below a global address. */
TEST(test_link_local_gives_way_and_no_host_is_never_chosen)
{
	static const char *const link[] = {
		"fe80::1",   "febf::1",     "169.254.0.1", "169.254.255.254",
		"127.0.0.1", "127.255.0.1", "::1"};
	static const char *const none[] = {
		"::",      "ff02::1",   "ff0e::101",       "0.0.0.0",
		"0.1.2.3", "224.0.0.1", "239.255.255.255", "255.255.255.255"};
	static const char *const global[] = {
		"2001:db8::1", "fec0::1",    "fd12::1",     "10.0.0.1",    "172.16.0.1",
		"192.168.1.1", "100.64.0.1", "169.253.0.1", "169.255.0.1", "198.18.0.1"};
	struct bb_gid_entry list[2];
	struct bb_gid_want want = DEFAULTS(gid_want);
	char text[128];

	for (unsigned int i = 0; i < RTE_DIM(link); i++) {
		list[0] = entry(link[i], BB_GID_ROCE_V2, 0);
		assert_int_equal(bb_gid_scope(list[0].raw), BB_GID_SCOPE_LINK);
		assert_int_equal(pick(list, 1, &want), 0);
		assert_non_null(strstr(bb_gid_text(&list[0], text, sizeof(text)), ", link-local"));
		for (unsigned int k = 0; k < RTE_DIM(global); k++) {
			list[1] = entry(global[k], BB_GID_ROCE_V2, 1);
			assert_int_equal(bb_gid_scope(list[1].raw), BB_GID_SCOPE_GLOBAL);
			assert_int_equal(pick(list, 2, &want), 1);
		}
	}
	for (unsigned int i = 0; i < RTE_DIM(none); i++) {
		list[0] = entry(none[i], BB_GID_ROCE_V2, 0);
		assert_int_equal(pick(list, 1, &want), -ENOENT);
		memcpy(want.raw, list[0].raw, 16);
		want.exact = true;
		assert_int_equal(pick(list, 1, &want), -ENOENT);
		assert_non_null(
			strstr(bb_gid_text(&list[0], text, sizeof(text)), ", not the address"));
		bb_gid_want_init(&want);
		list[1] = entry("fe80::1", BB_GID_ROCE_V2, 1);
		assert_int_equal(pick(list, 2, &want), 1);
	}
	/* Two link-local addresses of one family rank equally; those of two families do not. */
	list[0] = entry("169.254.1.1", BB_GID_ROCE_V2, 0);
	list[1] = entry("169.254.1.2", BB_GID_ROCE_V2, 1);
	assert_int_equal(pick(list, 2, &want), -ENOTUNIQ);
	list[1] = entry("fe80::1", BB_GID_ROCE_V2, 1);
	assert_int_equal(pick(list, 2, &want), 0);
}

/* The scope and prefix of the peer's address choose the local address that the peer can reach. */
TEST(test_address_follows_the_peer)
{
	static const struct {
		const char *peer;
		int want;
	} cases[] = {{"fe80::9", 0},     {"fd00::9", 1},  {"2001:db8::9", 2},
		     {"169.254.9.9", 3}, {"10.0.0.9", 4}, {"192.0.2.9", 4}};
	struct bb_gid_entry list[5];
	struct bb_gid_want want;

	list[0] = entry("fe80::1", BB_GID_ROCE_V2, 0);
	list[1] = entry("fd00::1", BB_GID_ROCE_V2, 1);
	list[2] = entry("2001:db8::1", BB_GID_ROCE_V2, 2);
	list[3] = entry("169.254.1.1", BB_GID_ROCE_V2, 3);
	list[4] = entry("192.0.2.1", BB_GID_ROCE_V2, 4);
	for (unsigned int i = 0; i < RTE_DIM(cases); i++) {
		const struct bb_gid_entry peer = entry(cases[i].peer, BB_GID_ROCE_V2, 0);

		bb_gid_want_init(&want);
		want.family = bb_gid_is_ipv4(peer.raw) ? BB_GID_IPV4 : BB_GID_IPV6;
		want.peer_given = true;
		memcpy(want.peer, peer.raw, 16);
		assert_int_equal(pick(list, 5, &want), cases[i].want);
	}
	/* No address has the scope of the peer's. */
	bb_gid_want_init(&want);
	want.family = BB_GID_IPV6;
	want.peer_given = true;
	memcpy(want.peer, entry("fe80::9", BB_GID_ROCE_V2, 0).raw, 16);
	assert_int_equal(pick(list + 2, 3, &want), 0);
}

TEST(test_equal_ranks_are_ambiguous_unless_one_address)
{
	struct bb_gid_entry list[3];
	struct bb_gid_want want = DEFAULTS(gid_want);

	list[0] = entry("fe80::1", BB_GID_ROCE_V2, 0);
	list[1] = entry("192.0.2.1", BB_GID_ROCE_V2, 1);
	list[2] = entry("192.0.2.2", BB_GID_ROCE_V2, 2);
	assert_int_equal(pick(list, 3, &want), -ENOTUNIQ);
	memcpy(want.raw, list[2].raw, 16);
	want.exact = true;
	assert_int_equal(pick(list, 3, &want), 2);
	want.exact = false;
	want.prefer = true;
	assert_int_equal(pick(list, 3, &want), 2);
	/*
	 * The address disappears: the other one is chosen, unless the caller asked for an exact
	 * match.
	 */
	assert_int_equal(pick(list, 2, &want), 1);
	want.exact = true;
	assert_int_equal(pick(list, 2, &want), -ENOENT);
	bb_gid_want_init(&want);
	list[2] = list[1];
	list[2].index = 9;
	assert_int_equal(pick(list, 3, &want), 1);
	list[1].index = 10;
	assert_int_equal(pick(list, 3, &want), 2);
	strcpy(list[1].netdev, "eth0");
	assert_int_equal(pick(list, 3, &want), -ENOTUNIQ);
	strcpy(want.netdev, "eth0");
	assert_int_equal(pick(list, 3, &want), 1);
	/* One address on two VLANs of an interface. */
	list[2] = list[1];
	list[1].vlan = 5;
	list[2].vlan = 7;
	assert_int_equal(pick(list, 3, &want), -ENOTUNIQ);
	want.vlan = 7;
	assert_int_equal(pick(list, 3, &want), 2);
}

static void
put(const char *root, const char *path, const char *text)
{
	char full[256], *p;
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (p = full + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		(void)mkdir(full, 0700);
		*p = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

TEST(test_attributes_of_a_gid_come_from_sysfs)
{
	char root[] = "/tmp/bb_gid_XXXXXX", cmd[64];
	struct bb_gid_entry e = {.index = 3};

	assert_non_null(mkdtemp(root));
	put(root, "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/3", "bond0.7\n");
	put(root, "/proc/net/vlan/bond0.7", "bond0.7  VID: 7\t REORDER_HDR: 1\n");
	put(root, "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/4", "eth1\n");
	put(root, "/sys/class/net/eth1/bonding_slave/state", "active\n");
	put(root, "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/5", "../../etc\n");
	bb_gid_sysfs(root, "mlx5_0", 1, &e);
	assert_string_equal(e.netdev, "bond0.7");
	assert_int_equal(e.vlan, 7);
	assert_false(e.bond_slave);
	memset(&e, 0, sizeof(e));
	e.index = 4;
	bb_gid_sysfs(root, "mlx5_0", 1, &e);
	assert_string_equal(e.netdev, "eth1");
	assert_int_equal(e.vlan, 0);
	assert_true(e.bond_slave);
	memset(&e, 0, sizeof(e));
	e.index = 5;
	bb_gid_sysfs(root, "mlx5_0", 1, &e);
	assert_string_equal(e.netdev, "");
	assert_string_equal(bb_kernel_name("verbs:mlx5_0", "verbs"), "mlx5_0");
	assert_string_equal(bb_kernel_name("mlx5_0", "verbs"), "mlx5_0");
	assert_string_equal(bb_kernel_name("verbs0", "verbs"), "verbs0");
	assert_string_equal(bb_kernel_name("0000:3b:00.0", "mlx5"), "0000:3b:00.0");
	bb_gid_sysfs(root, "../mlx5_0", 1, &e);
	assert_string_equal(e.netdev, "");
	/* Names with a path in them, and names and VLANs that do not exist. */
	e.index = 3;
	bb_gid_sysfs(root, "x/../mlx5_0", 1, &e);
	assert_string_equal(e.netdev, "");
	put(root, "/sys/class/infiniband/.mlx5_0/ports/1/gid_attrs/ndevs/3", "eth0\n");
	bb_gid_sysfs(root, ".mlx5_0", 1, &e);
	assert_string_equal(e.netdev, "");
	put(root, "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/6", "..\n");
	put(root, "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/7", "sixteen_letters_\n");
	put(root, "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/8", "\n");
	for (e.index = 6; e.index < 9; e.index++) {
		bb_gid_sysfs(root, "mlx5_0", 1, &e);
		assert_string_equal(e.netdev, "");
	}
	put(root, "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/9", "fifteen_letters\n");
	put(root, "/proc/net/vlan/fifteen_letters", "VID: 4095\n");
	bb_gid_sysfs(root, "mlx5_0", 1, &e);
	assert_string_equal(e.netdev, "fifteen_letters");
	assert_int_equal(e.vlan, 0);
	put(root, "/proc/net/vlan/fifteen_letters", "VID: 4094\n");
	bb_gid_sysfs(root, "mlx5_0", 1, &e);
	assert_int_equal(e.vlan, 4094);
	snprintf(cmd, sizeof(cmd), "rm -r %s", root);
	assert_int_equal(system(cmd), 0);
}

/* Through a device: the list in the log, the text, bad arguments. */
TEST_WITH(fixture_setup, fixture_teardown, test_choice_is_logged_with_the_list)
{
	struct fixture *f = *state;
	struct bb_gid_entry list[BB_GID_MAX];
	struct bb_gid_want want = DEFAULTS(gid_want);
	uint8_t index = 77;
	char text[128];
	int n = bb_gid_list(f->dev, 1, list, BB_GID_MAX);

	assert_true(n >= 1);
	want.exact = true;
	memset(want.raw, 0xcc, sizeof(want.raw));
	assert_logged(bb_gid_choose(f->dev, 1, &want, &index), -ENOENT, "no GID of port 1 matches");
	assert_int_equal(index, 77);
	memcpy(want.raw, list[0].raw, 16);
	assert_int_equal(bb_gid_choose(f->dev, 1, &want, &index), 0);
	assert_int_equal(index, list[0].index);
	want.vlan = 4095;
	assert_int_equal(bb_gid_choose(f->dev, 1, &want, &index), -EINVAL);
	want.vlan = BB_GID_ANY_VLAN - 1;
	assert_int_equal(bb_gid_choose(f->dev, 1, &want, &index), -EINVAL);
	/* Two of the four rank equally: the log names these two only. */
	assert_int_equal(n, 3);
	fake.gid_v1 = 1u << list[0].index;
	bb_gid_want_init(&want);
	log_begin();
	assert_int_equal(bb_gid_choose(f->dev, 1, &want, &index), -ENOTUNIQ);
	/* NULL sets no requirement, as the initialized attributes do. */
	assert_int_equal(bb_gid_choose(f->dev, 1, NULL, &index), -ENOTUNIQ);
	fflush(log_file);
	assert_non_null(strstr(log_text, bb_gid_text(&list[1], text, sizeof(text))));
	assert_non_null(strstr(log_text, bb_gid_text(&list[2], text, sizeof(text))));
	list[0].type = BB_GID_ROCE_V1;
	assert_null(strstr(log_text, bb_gid_text(&list[0], text, sizeof(text))));
	log_expect("several GIDs of port 1 match equally: select one by address, netdev or VLAN.");
	fake.gid_v1 = 0;
	assert_true(bb_gid_choose(f->dev, 9, &want, &index) < 0);
	list[0] = entry("192.0.2.1", BB_GID_ROCE_V2, 4);
	list[0].vlan = 5;
	strcpy(list[0].netdev, "eth0.5");
	assert_string_equal(bb_gid_text(&list[0], text, sizeof(text)),
			    "192.0.2.1 RoCE v2, index 4, eth0.5, VLAN 5");
}

static unsigned int
lines(const char *what)
{
	const char *at = log_text;
	unsigned int n = 0;

	fflush(log_file);
	for (; at != NULL && (at = strstr(at, what)) != NULL; at++)
		n++;
	return n;
}

TEST_WITH(fixture_setup, fixture_teardown, test_refusal_is_logged_once_and_counted)
{
	struct fixture *f = *state;
	struct bb_gid_last_log last = {0};
	struct bb_gid_want want = DEFAULTS(gid_want);
	struct bb_gid gid;
	uint8_t index = 77;

	want.exact = true;
	memset(want.raw, 0xcc, sizeof(want.raw));
	log_begin();
	for (int i = 0; i < 100; i++)
		assert_int_equal(bb_gid_choose_logged(f->dev, 1, &want, &index, &last), -ENOENT);
	assert_int_equal(lines("no GID of port 1"), 1);
	assert_int_equal(last.repeats, 99);
	/* The list differs, the answer does not. */
	fake.gid_shift = 8;
	for (int i = 0; i < 3; i++)
		assert_int_equal(bb_gid_choose_logged(f->dev, 1, &want, &index, &last), -ENOENT);
	assert_int_equal(lines("no GID of port 1"), 2);
	assert_int_equal(lines("99 more times"), 1);
	assert_int_equal(index, 77);
	/* The address appears and disappears again. */
	assert_int_equal(bb_gid_query(f->dev, 1, 0, &gid), 0);
	memcpy(want.raw, gid.raw, 16);
	for (int i = 0; i < 2; i++)
		assert_int_equal(bb_gid_choose_logged(f->dev, 1, &want, &index, &last), 0);
	assert_int_equal(lines("2 more times"), 1);
	assert_int_equal(last.what, 0);
	fake.gid_shift = 0;
	for (int i = 0; i < 2; i++)
		assert_int_equal(bb_gid_choose_logged(f->dev, 1, &want, &index, &last), -ENOENT);
	assert_int_equal(lines("no GID of port 1"), 3);
	/* Without a bb_gid_last_log each refusal is logged. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(bb_gid_choose(f->dev, 1, &want, &index), -ENOENT);
	assert_int_equal(lines("no GID of port 1"), 5);
	log_expect("no GID of port 1 matches");
}

TEST_MAIN(fake_eal_init())
