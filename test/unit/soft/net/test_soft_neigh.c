/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */

#include "bb_test.h"
#include "frames.h"
#include "soft_neigh.h"

#define SEC UINT64_C(1000000000)

static struct {
	uint32_t n;
	bool full; /* the port has no room for a request */
	bool unicast;
	uint8_t ip[16];
} asked;

static bool
ask(void *arg, const uint8_t addr[16], const uint8_t *mac)
{
	assert_ptr_equal(arg, &asked);
	asked.n++;
	asked.unicast = mac != NULL;
	memcpy(asked.ip, addr, 16);
	return !asked.full;
}

static struct soft_neigh t;
static uint8_t mac[6];

static const uint8_t *
mac_of(const char *text)
{
	return (const uint8_t *)text;
}

static enum soft_neigh_result
find(const char *addr, uint64_t now)
{
	memset(mac, 0, 6);
	return soft_neigh_find(&t, ip_of(addr), now, NULL, mac);
}

static enum soft_neigh_state
state_of(const char *addr)
{
	const struct soft_neigh_entry *e = soft_neigh_peek(&t, ip_of(addr));

	return e == NULL ? SOFT_NEIGH_FREE : (enum soft_neigh_state)e->state;
}

static int
setup(void **st)
{
	(void)st;
	memset(&asked, 0, sizeof(asked));
	soft_neigh_init(&t, ask, &asked);
	return 0;
}

#define T(name) TEST_WITH(setup, NULL, name)

T(test_unknown_neighbour_is_asked_and_learned)
{
	assert_int_equal(find("192.0.2.2", 5), SOFT_NEIGH_PENDING);
	assert_int_equal(asked.n, 1);
	assert_false(asked.unicast);
	assert_memory_equal(asked.ip, ip_of("192.0.2.2"), 16);
	/* One request per second, however often the address is looked up. */
	assert_int_equal(find("192.0.2.2", 6), SOFT_NEIGH_PENDING);
	soft_neigh_tick(&t, 5 + SEC - 1);
	assert_int_equal(asked.n, 1);
	soft_neigh_heard(&t, ip_of("192.0.2.2"), mac_of(MAC_PEER), SOFT_NEIGH_REPLIED, 7);
	assert_int_equal(find("192.0.2.2", 8), SOFT_NEIGH_FOUND);
	assert_memory_equal(mac, MAC_PEER, 6);
	assert_int_equal(t.asking, 0);
	soft_neigh_tick(&t, 20 * SEC);
	assert_int_equal(asked.n, 1);
}

T(test_silent_neighbour_fails_after_retries)
{
	assert_int_equal(find("2001:db8::2", 0), SOFT_NEIGH_PENDING);
	for (uint64_t i = 1; i < SOFT_NEIGH_TRIES; i++) {
		soft_neigh_tick(&t, i * SEC);
		assert_int_equal(asked.n, i + 1);
		assert_int_equal(find("2001:db8::2", i * SEC), SOFT_NEIGH_PENDING);
	}
	soft_neigh_tick(&t, 3 * SEC);
	assert_int_equal(asked.n, 3);
	assert_int_equal(find("2001:db8::2", 3 * SEC), SOFT_NEIGH_UNREACHABLE);
	assert_int_equal(t.stats.failed, 1);
	/* Not requested again at once, only after a while. */
	soft_neigh_tick(&t, 6 * SEC - 1);
	assert_int_equal(find("2001:db8::2", 6 * SEC - 1), SOFT_NEIGH_UNREACHABLE);
	assert_int_equal(asked.n, 3);
	soft_neigh_tick(&t, 6 * SEC);
	assert_int_equal(find("2001:db8::2", 6 * SEC), SOFT_NEIGH_PENDING);
	assert_int_equal(asked.n, 4);
	/* A late answer is accepted. */
	soft_neigh_heard(&t, ip_of("2001:db8::2"), mac_of(MAC_PEER), SOFT_NEIGH_REPLIED, 7 * SEC);
	assert_int_equal(find("2001:db8::2", 7 * SEC), SOFT_NEIGH_FOUND);
}

T(test_request_without_room_is_sent_when_there_is_room)
{
	uint64_t now;

	asked.full = true;
	assert_int_equal(find("192.0.2.2", SEC), SOFT_NEIGH_PENDING);
	soft_neigh_tick(&t, SEC + SOFT_NEIGH_FULL_NS - 1);
	assert_int_equal(asked.n, 1);
	soft_neigh_tick(&t, SEC + SOFT_NEIGH_FULL_NS);
	assert_int_equal(asked.n, 2);
	assert_int_equal(t.stats.asked, 0);
	asked.full = false;
	soft_neigh_tick(&t, SEC + 2 * SOFT_NEIGH_FULL_NS);
	assert_int_equal(asked.n, 3);
	assert_int_equal(t.stats.asked, 1);
	/* That does not prolong the time of the try. */
	soft_neigh_tick(&t, 2 * SEC - 1);
	assert_int_equal(asked.n, 3);
	soft_neigh_tick(&t, 2 * SEC);
	assert_int_equal(asked.n, 4);

	/*
	 * On a port that stays full the neighbour becomes unreachable, as one that never answers.
	 */
	asked.full = true;
	for (now = 2 * SEC; now <= 5 * SEC; now += SOFT_NEIGH_FULL_NS) {
		assert_int_equal(find("192.0.2.2", now), SOFT_NEIGH_PENDING);
		if (now >= 4 * SEC)
			break;
		soft_neigh_tick(&t, now);
	}
	soft_neigh_tick(&t, now);
	assert_int_equal(find("192.0.2.2", now), SOFT_NEIGH_UNREACHABLE);
	assert_int_equal(t.stats.asked, 2);

	/* An entry stays usable while it is probed; an answer ends the probe. */
	asked.full = false;
	now += SOFT_NEIGH_FAILED_NS;
	soft_neigh_tick(&t, now);
	assert_int_equal(find("192.0.2.2", now), SOFT_NEIGH_PENDING);
	soft_neigh_heard(&t, ip_of("192.0.2.2"), mac_of("\2\0\0\0\0\2"), SOFT_NEIGH_REPLIED, now);
	now += SOFT_NEIGH_REACHABLE_NS;
	soft_neigh_tick(&t, now);
	asked.full = true;
	assert_int_equal(find("192.0.2.2", now), SOFT_NEIGH_FOUND);
	assert_int_equal(state_of("192.0.2.2"), SOFT_NEIGH_PROBE);
	soft_neigh_heard(&t, ip_of("192.0.2.2"), mac_of("\2\0\0\0\0\2"), SOFT_NEIGH_REPLIED, now);
	asked.n = 0;
	soft_neigh_tick(&t, now + SOFT_NEIGH_FULL_NS);
	assert_int_equal(asked.n, 0);
	assert_int_equal(state_of("192.0.2.2"), SOFT_NEIGH_REACHABLE);
}

T(test_used_entry_is_confirmed)
{
	find("192.0.2.2", 0);
	soft_neigh_heard(&t, ip_of("192.0.2.2"), mac_of(MAC_PEER), SOFT_NEIGH_REPLIED, 0);
	soft_neigh_tick(&t, 30 * SEC);
	assert_int_equal(state_of("192.0.2.2"), SOFT_NEIGH_STALE);
	assert_int_equal(asked.n, 1);
	/* The entry is in use: the MAC still serves while the neighbour is probed by unicast. */
	assert_int_equal(find("192.0.2.2", 31 * SEC), SOFT_NEIGH_FOUND);
	assert_memory_equal(mac, MAC_PEER, 6);
	assert_int_equal(asked.n, 2);
	assert_true(asked.unicast);
	soft_neigh_heard(&t, ip_of("192.0.2.2"), mac_of(MAC_PEER), SOFT_NEIGH_REPLIED, 32 * SEC);
	assert_int_equal(state_of("192.0.2.2"), SOFT_NEIGH_REACHABLE);
	/* No answer this time: the entry is dropped, and a broadcast request is sent. */
	soft_neigh_tick(&t, 62 * SEC);
	assert_int_equal(find("192.0.2.2", 63 * SEC), SOFT_NEIGH_FOUND);
	soft_neigh_tick(&t, 64 * SEC);
	soft_neigh_tick(&t, 65 * SEC);
	assert_int_equal(asked.n, 5);
	assert_int_equal(find("192.0.2.2", 65 * SEC), SOFT_NEIGH_FOUND);
	soft_neigh_tick(&t, 66 * SEC);
	assert_int_equal(state_of("192.0.2.2"), SOFT_NEIGH_FREE);
	assert_int_equal(find("192.0.2.2", 67 * SEC), SOFT_NEIGH_PENDING);
	assert_false(asked.unicast);
}

T(test_idle_entry_expires)
{
	find("192.0.2.2", 0);
	soft_neigh_heard(&t, ip_of("192.0.2.2"), mac_of(MAC_PEER), SOFT_NEIGH_REPLIED, 0);
	soft_neigh_tick(&t, 30 * SEC);
	soft_neigh_tick(&t, 30 * SEC + SOFT_NEIGH_IDLE_NS - 1);
	assert_int_equal(state_of("192.0.2.2"), SOFT_NEIGH_STALE);
	soft_neigh_tick(&t, 30 * SEC + SOFT_NEIGH_IDLE_NS);
	assert_int_equal(state_of("192.0.2.2"), SOFT_NEIGH_FREE);
	assert_fields(t, count, 0, stats.expired, 1);
	assert_true(t.next_deadline == SOFT_NEIGH_NEVER);
}

T(test_only_a_request_makes_an_entry_without_a_lookup)
{
	const char *other = "\x02\xcc\x00\x00\x00\x03";

	/*
	 * Without a lookup, an answer or a mention makes no entry; a request from the neighbour
	 * does.
	 */
	soft_neigh_heard(&t, ip_of("192.0.2.2"), mac_of(MAC_PEER), SOFT_NEIGH_REPLIED, 0);
	soft_neigh_heard(&t, ip_of("192.0.2.2"), mac_of(MAC_PEER), SOFT_NEIGH_MENTIONED, 0);
	assert_int_equal(t.count, 0);
	soft_neigh_heard(&t, ip_of("192.0.2.2"), mac_of(MAC_PEER), SOFT_NEIGH_ASKED_US, 0);
	assert_int_equal(state_of("192.0.2.2"), SOFT_NEIGH_STALE);
	/* A mention updates a known entry; a message without override does not. */
	soft_neigh_heard(&t, ip_of("192.0.2.2"), mac_of(other), SOFT_NEIGH_MENTIONED, 0);
	find("192.0.2.2", 0);
	assert_memory_equal(mac, other, 6);
	assert_int_equal(t.stats.changed, 1);
	soft_neigh_heard(&t, ip_of("192.0.2.2"), mac_of(other), SOFT_NEIGH_REPLIED, 0);
	soft_neigh_heard(&t, ip_of("192.0.2.2"), mac_of(MAC_PEER), SOFT_NEIGH_WEAKLY, 0);
	assert_int_equal(state_of("192.0.2.2"), SOFT_NEIGH_STALE);
	find("192.0.2.2", 0);
	assert_memory_equal(mac, other, 6);
	/* Where no MAC is known, any is used. */
	find("192.0.2.9", 0);
	soft_neigh_heard(&t, ip_of("192.0.2.9"), mac_of(MAC_PEER), SOFT_NEIGH_WEAKLY, 0);
	assert_int_equal(find("192.0.2.9", 0), SOFT_NEIGH_FOUND);
}

T(test_static_entry_stays)
{
	assert_int_equal(soft_neigh_add_static(&t, ip_of("192.0.2.2"), mac_of(MAC_PEER)), 0);
	soft_neigh_heard(&t, ip_of("192.0.2.2"), mac_of(MAC_US), SOFT_NEIGH_REPLIED, 0);
	soft_neigh_tick(&t, 1000000 * SEC);
	assert_int_equal(find("192.0.2.2", 1000000 * SEC), SOFT_NEIGH_FOUND);
	assert_memory_equal(mac, MAC_PEER, 6);
	assert_int_equal(asked.n, 0);
}

T(test_resolutions_are_bounded)
{
	char addr[32];

	for (unsigned int i = 0; i < SOFT_NEIGH_ASKING; i++) {
		snprintf(addr, sizeof(addr), "198.51.100.%u", i + 1);
		assert_int_equal(find(addr, 0), SOFT_NEIGH_PENDING);
	}
	assert_int_equal(find("198.51.100.200", 0), SOFT_NEIGH_BUSY);
	assert_int_equal(asked.n, SOFT_NEIGH_ASKING);
	assert_int_equal(t.stats.full, 1);
	/* One request is answered, so there is room for one. */
	soft_neigh_heard(&t, ip_of("198.51.100.1"), mac_of(MAC_PEER), SOFT_NEIGH_REPLIED, 0);
	assert_int_equal(find("198.51.100.200", 0), SOFT_NEIGH_PENDING);
	assert_int_equal(find("198.51.100.201", 0), SOFT_NEIGH_BUSY);
}

/*
 * Every request from a neighbour makes an entry. The table has a fixed size and keeps the used
 * entries.
 */
T(test_flood_evicts_unused_entries)
{
	char addr[32];

	assert_int_equal(soft_neigh_add_static(&t, ip_of("192.0.2.250"), mac_of(MAC_PEER)), 0);
	assert_int_equal(find("192.0.2.251", 1), SOFT_NEIGH_PENDING);
	find("192.0.2.252", 1);
	soft_neigh_heard(&t, ip_of("192.0.2.252"), mac_of(MAC_PEER), SOFT_NEIGH_REPLIED, 1);
	for (unsigned int i = 0; i < 4 * SOFT_NEIGH_MAX; i++) {
		snprintf(addr, sizeof(addr), "198.51.%u.%u", i >> 8, i & 255);
		soft_neigh_heard(&t, ip_of(addr), mac_of(MAC_US), SOFT_NEIGH_ASKED_US, 2 + i);
		assert_int_equal(find("192.0.2.252", 2 + i), SOFT_NEIGH_FOUND);
	}
	assert_fields(t, count, SOFT_NEIGH_MAX, stats.evicted, 3 * SOFT_NEIGH_MAX + 3);
	assert_int_equal(state_of("192.0.2.250"), SOFT_NEIGH_STATIC);
	assert_int_equal(state_of("192.0.2.251"), SOFT_NEIGH_INCOMPLETE);
	assert_int_equal(state_of(addr), SOFT_NEIGH_STALE);
	assert_int_equal(state_of("198.51.0.0"), SOFT_NEIGH_FREE);
}

/* A hint may be wrong: of another neighbour, of a free entry, or beyond the table. */
T(test_wrong_hint_is_harmless)
{
	uint16_t hint = 7, wrong[] = {0, 1, 2, SOFT_NEIGH_MAX - 1, SOFT_NEIGH_MAX, UINT16_MAX};

	soft_neigh_add_static(&t, ip_of("192.0.2.2"), mac_of(MAC_PEER));
	soft_neigh_add_static(&t, ip_of("192.0.2.3"), mac_of(MAC_US));
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		hint = wrong[i];
		assert_int_equal(soft_neigh_find(&t, ip_of("192.0.2.2"), 0, &hint, mac),
				 SOFT_NEIGH_FOUND);
		assert_memory_equal(mac, MAC_PEER, 6);
		assert_int_equal(hint, 0);
	}
}

TEST_MAIN(0)
