/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Completion channels: sleep until a CQ has something (man ibv_create_comp_channel).
 *
 * A thread that has polled its CQs empty arms them and waits:
 *
 *     bb_cq_arm(cq, false);
 *     while ((n = bb_cq_poll(cq, wc, 32)) != 0)
 *             handle(wc, n);
 *     bb_channel_wait(ch, 100, &which);
 *
 * The poll behind the arm is not needed for correctness, as arming with completions
 * that nobody has polled yet raises the event; it saves the wait. Polling without arming
 * works at any time. An event says that there is, or was, something to poll; it does not
 * say how much, and the CQ may have been polled empty meanwhile.
 *
 * A software device that runs inside its owner's polls (progress=inline) does nothing
 * while its owner sleeps: wait with bb_channel_wait(), which runs it, and not on the
 * descriptor alone. On hardware and on a software device with a thread or lcore of its
 * own the descriptor is enough.
 */
#ifndef BB_CHANNEL_H
#define BB_CHANNEL_H

#include "bb_cq.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A completion channel, opaque. */
struct bb_channel;

/**
 * Create a channel. CQs are put on it by bb_cq_attr.channel.
 * @return 0; -ENOTSUP kernel or firmware has no completion events; -EMFILE out of file
 *   descriptors; -ENOMEM.
 */
int bb_channel_create(struct bb_dev *dev, struct bb_channel **ch);

/** Destroy it. -EBUSY while CQs are on it. */
int bb_channel_destroy(struct bb_channel *ch);

/**
 * Its file descriptor, for poll() and epoll: readable while an event waits. Never read
 * it, nor change it; it lives as long as the channel.
 */
int bb_channel_fd(const struct bb_channel *ch);

/**
 * Take one event. Never blocks. One thread at a time per channel, and not while one of
 * its CQs is being destroyed. The CQ's owner arms it again when it wants the next one.
 * @param cq the CQ that had a completion.
 * @return 0; -EAGAIN none waits; -EIO the device is gone.
 */
int bb_channel_get(struct bb_channel *ch, struct bb_cq **cq);

/**
 * bb_channel_get() that waits. Runs a software device with progress=inline meanwhile, as
 * far as the calling thread owns queues of it; thread rules as bb_channel_get().
 * @param timeout_ms milliseconds; 0: do not wait; negative: for ever.
 * @return 0; -EAGAIN none came in time; -EINTR a signal came; -EIO the device is gone.
 */
int bb_channel_wait(struct bb_channel *ch, int timeout_ms, struct bb_cq **cq);

#ifdef __cplusplus
}
#endif

#endif
