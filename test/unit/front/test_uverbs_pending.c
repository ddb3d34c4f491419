/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The ring of asynchronous events: its order when it grows, and the events of destroyed objects. */
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_log.h>

#include "bb_test.h"
#include "uverbs_priv.h"

static struct uverbs_file file = {.event_lock = PTHREAD_MUTEX_INITIALIZER};
static struct uverbs_events ring;

static void
start(void)
{
	ring = (struct uverbs_events){.file = &file, .kind = UV_ASYNC};
	ring.fd = eventfd(0, EFD_CLOEXEC);
	assert_true(ring.fd >= 0);
	file.async = &ring;
}

static void
end(void)
{
	close(ring.fd);
	free(ring.event);
}

static void
add(uint64_t handle, uint16_t type)
{
	const struct mlx5_cmd_event event = {.type = type};

	uverbs_pending_add(&ring, &event, UVERBS_COOKIE | handle);
}

/* Takes the next event, which must be that of a handle and type. */
static void
take(uint64_t handle, uint16_t type)
{
	struct mlx5_cmd_event event;

	assert_true(uverbs_pending_take(&ring, &event));
	assert_int_equal(event.cookie, UVERBS_COOKIE | handle);
	assert_int_equal(event.type, type);
}

/* The descriptor is readable if and only if events are pending. */
static void
pending(bool any)
{
	struct pollfd p = {.fd = ring.fd, .events = POLLIN};
	struct mlx5_cmd_event event;

	assert_int_equal(poll(&p, 1, 0), any);
	if (!any)
		assert_false(uverbs_pending_take(&ring, &event));
}

TEST(test_ring_that_grows_keeps_the_order_of_events)
{
	unsigned int i;

	start();
	/* The ring is full, and its oldest event is in the middle. */
	for (i = 0; i < UVERBS_MAX_EVENTS; i++)
		add(i, 1);
	for (i = 0; i < 100; i++)
		take(i, 1);
	for (i = 0; i < 5 * UVERBS_MAX_EVENTS; i++)
		add(i, 2);
	for (i = 100; i < UVERBS_MAX_EVENTS; i++)
		take(i, 1);
	for (i = 0; i < 5 * UVERBS_MAX_EVENTS; i++) {
		pending(true);
		take(i, 2);
	}
	pending(false);
	end();
}

TEST(test_drop_removes_the_events_of_one_object)
{
	unsigned int i;

	start();
	for (i = 0; i < UVERBS_MAX_EVENTS; i++)
		add(i % 4, 1);
	for (i = 0; i < 101; i++)
		take(i % 4, 1);
	for (i = 0; i < 101; i++)
		add((1 + i) % 4, 2);
	uverbs_pending_drop(&file, 2);
	for (i = 101; i < UVERBS_MAX_EVENTS; i++)
		if (i % 4 != 2)
			take(i % 4, 1);
	for (i = 0; i < 101; i++)
		if ((1 + i) % 4 != 2)
			take((1 + i) % 4, 2);
	pending(false);
	end();
}

TEST(test_descriptor_is_not_readable_after_a_drop_of_all_events)
{
	start();
	uverbs_pending_drop(&file, 1);
	add(1, 1);
	add(1, 2);
	pending(true);
	uverbs_pending_drop(&file, 2);
	pending(true);
	uverbs_pending_drop(&file, 1);
	pending(false);
	add(1, 3);
	pending(true);
	take(1, 3);
	pending(false);
	/* The program has closed the descriptor. */
	file.async = NULL;
	uverbs_pending_drop(&file, 1);
	end();
}

TEST(test_events_above_the_maximum_are_lost)
{
	unsigned int i;

	start();
	for (i = 0; i < UVERBS_MAX_ASYNC_EVENTS; i++)
		add(i, 1);
	assert_false(ring.lost);
	add(i, 1);
	add(i, 1);
	assert_true(uverbs_pending_lost(&ring) && !uverbs_pending_lost(&ring));
	assert_int_equal(ring.n, UVERBS_MAX_ASYNC_EVENTS);
	take(0, 1);
	end();
}

TEST_MAIN(0)
