/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Completion channels: a thread sleeps until a CQ has a completion (man ibv_create_comp_channel).
 *
 * Poll the CQs until they are empty, then arm them and wait:
 *
 *     bb_cq_arm(cq, false);
 *     while ((n = bb_cq_poll(cq, wc, 32)) != 0)
 *             handle(wc, n);
 *     bb_channel_wait(ch, 100, &which);
 *
 * The poll after the arm is not needed for correctness, because arming a CQ with unpolled
 * completions raises the event. It only saves the wait. A CQ may be polled at any time without
 * being armed. An event means that a completion has arrived. It gives no number of completions, and
 * the CQ may have been polled empty meanwhile.
 *
 * A software device that runs inside its owner's polls (progress=inline) does nothing while its
 * owner sleeps. Wait with bb_channel_wait(), which runs the device, and not on the descriptor
 * alone. On hardware, and on a software device with its own thread or lcore, waiting on the
 * descriptor is enough.
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
 * Creates a channel. CQs are attached to it by bb_cq_attr.channel.
 * @return 0; -ENOTSUP kernel or firmware has no completion events; -EMFILE no free file descriptor;
 * -ENOMEM.
 */
int bb_channel_create(struct bb_dev *dev, struct bb_channel **ch);

/** Destroys the channel. Returns 0, or -EBUSY while CQs are attached. */
int bb_channel_destroy(struct bb_channel *ch);

/**
 * Returns the channel's file descriptor, for poll() and epoll. It is readable while an event is
 * pending. Do not read, change or close it. It is valid as long as the channel.
 */
int bb_channel_fd(const struct bb_channel *ch);

/**
 * Takes one event. Never blocks. One thread at a time per channel, and not while one of its CQs is
 * being destroyed. For the next event the CQ's owner arms the CQ again.
 * @param cq the CQ that had a completion.
 * @return 0; -EAGAIN no event is pending; -EIO the device failed.
 */
int bb_channel_get(struct bb_channel *ch, struct bb_cq **cq);

/**
 * Takes one event and waits for it if necessary. Meanwhile it runs a software device with
 * progress=inline, for the queues that the calling thread owns. Thread rules as bb_channel_get().
 * @param timeout_ms milliseconds; 0: do not wait; negative: no limit.
 * @return 0; -EAGAIN no event within the timeout; -EINTR a signal arrived; -EIO the device failed.
 */
int bb_channel_wait(struct bb_channel *ch, int timeout_ms, struct bb_cq **cq);

#ifdef __cplusplus
}
#endif

#endif
