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
 * completions raises the event. The poll only saves the wait for that event. A CQ may be polled at
 * any time without being armed. An event means that at least one completion has arrived, but not
 * how many. The CQ may be empty by then, because a poll has consumed the completions.
 *
 * A software device with progress=inline runs only inside the polls of the thread that owns its
 * queues. While that thread sleeps, the device does nothing. So wait with bb_channel_wait(), which
 * runs the device, and not on the descriptor alone. On hardware, and on a software device with its
 * own thread or lcore, waiting on the descriptor is enough.
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
 * Creates a channel. A CQ is attached to the channel if bb_cq_attr.channel is set at its creation.
 * @return 0; -ENOTSUP if the kernel or the firmware has no completion events; -EMFILE if no file
 * descriptor is free; -ENOMEM.
 */
int bb_channel_create(struct bb_dev *dev, struct bb_channel **ch);

/** Destroys the channel. Returns 0, or -EBUSY while CQs are attached. */
int bb_channel_destroy(struct bb_channel *ch);

/**
 * Returns the channel's file descriptor, for poll() and epoll. The descriptor is readable while an
 * event is pending, and valid until the channel is destroyed. Do not read, change or close the
 * descriptor.
 */
int bb_channel_fd(const struct bb_channel *ch);

/**
 * Consumes one event. Never blocks. Only one thread at a time may call this function for a channel.
 * No thread may call it while a CQ of the channel is being destroyed. Each arm of a CQ gives one
 * event, so the CQ's owner must arm the CQ again to get the next one.
 * @param cq the CQ that had a completion.
 * @return 0; -EAGAIN if no event is pending; -EIO if the device failed.
 */
int bb_channel_get(struct bb_channel *ch, struct bb_cq **cq);

/**
 * Consumes one event, and waits for one if none is pending. During the wait the call runs a
 * software device with progress=inline, for the queues that the calling thread owns. The thread
 * rules are those of bb_channel_get().
 * @param timeout_ms milliseconds; 0: do not wait; negative: no limit.
 * @return 0; -EAGAIN if no event arrived within the timeout; -EINTR if a signal arrived while the
 * call slept; -EIO if the device failed. The call does not notice a signal that arrives before it
 * sleeps, so a program that waits for signals must give a timeout.
 */
int bb_channel_wait(struct bb_channel *ch, int timeout_ms, struct bb_cq **cq);

#ifdef __cplusplus
}
#endif

#endif
