/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Functions that the files of the engine share. */
#ifndef NVMF_PRIV_H
#define NVMF_PRIV_H

#include "nvmf.h"

/* Adds to a counter that only this thread writes and other threads read. */
#define COUNT(counter, n) __atomic_store_n(&(counter), (counter) + (n), __ATOMIC_RELAXED)

/* Defined in nvmf_req.c. */

/* Ends a request. @result is the first 8 bytes of the completion. */
void nvmf_end(struct nvmf_req *r, uint32_t status, uint64_t result);
/* Ends a request with an error that the host must not retry. */
void nvmf_refuse(struct nvmf_req *r, uint32_t status);
/*
 * Checks that the host's buffer has exactly @want bytes. Returns true, or ends the request with
 * the status SC_SGL_LENGTH.
 */
bool nvmf_exact(struct nvmf_req *r, uint32_t want);
/*
 * Reads @want bytes of the host's data, points r->data to them, then calls @next. The caller has
 * checked the length of the host's buffer.
 */
void nvmf_pull(struct nvmf_req *r, uint32_t want, void (*next)(struct nvmf_req *r));
/*
 * Makes the command use namespace @ns instead of the one that it has used so far. @ns NULL: none.
 */
void nvmf_req_ns(struct nvmf_req *r, struct nvmf_ns *ns);
/*
 * Starts a request to r->ns, and calls @next with its result, now or later. If the namespace was
 * removed, ends the command instead.
 */
void nvmf_start(struct nvmf_req *r, const struct nvmf_io *io, void (*next)(struct nvmf_req *, int));

/* Frees a request of an open queue without a response. Called while a capsule is executed. */
void nvmf_req_discard(struct nvmf_req *r);
/* Puts a request on the free list of its queue. */
void nvmf_req_release(struct nvmf_req *r);

/* Defined in nvmf_connect.c. */
void nvmf_fabrics(struct nvmf_req *r);

/* nvmf_ctrl.c: controllers and their events */
struct nvmf_ctrl *nvmf_ctrl_create(struct nvmf_target *t, struct nvmf_subsys *s);
void nvmf_ctrl_end(struct nvmf_ctrl *c);
/* Closes all I/O queues of a controller by ops->close(q, @why), and detaches them from it. */
void nvmf_ctrl_end_io(struct nvmf_ctrl *c, const char *why);
/* Closes all queues, for the reason @why. The controller executes no more commands. */
void nvmf_ctrl_fail(struct nvmf_ctrl *c, const char *why);
/*
 * Resets a controller that the host disables: discards its Asynchronous Event Requests and closes
 * its I/O queues.
 */
void nvmf_ctrl_disable(struct nvmf_ctrl *c);
/* Makes a queue hold its controller. */
void nvmf_ctrl_hold(struct nvmf_queue *q, struct nvmf_ctrl *c);
/* Releases the controller that a queue holds, if any, and frees it if it has ended. */
void nvmf_ctrl_unhold(struct nvmf_queue *q);
/* Calls nvmf_ctrl_unhold() if no request of a queue is left, and none can start. */
void nvmf_ctrl_unhold_idle(struct nvmf_queue *q);
/* Returns whether closed I/O queues of a controller still have requests. */
bool nvmf_ctrl_lingers(const struct nvmf_ctrl *c);
/*
 * Returns whether nvmf_ctrl_lingers() for a controller of subsystem @s and of the host in Connect's
 * @data.
 */
bool nvmf_host_busy(const struct nvmf_target *t, const struct nvmf_subsys *s, const uint8_t *data);
void nvmf_ctrl_alive(struct nvmf_ctrl *c);
void nvmf_ctrl_kato(struct nvmf_ctrl *c, uint32_t ms);
/* Returns whether a host of subsystem @s may have the keep-alive time @ms. */
bool nvmf_kato_valid(const struct nvmf_target *t, const struct nvmf_subsys *s, uint32_t ms);
void nvmf_ctrl_event(struct nvmf_ctrl *c, uint32_t bit);
void nvmf_ctrl_events_send(struct nvmf_ctrl *c);
struct nvmf_ns *nvmf_ctrl_ns(const struct nvmf_ctrl *c, uint32_t nsid);
bool nvmf_host_allowed(const struct nvmf_subsys *s, const char *hostnqn);

/* nvmf_admin.c, nvmf_identify.c, nvmf_log.c, nvmf_io.c: commands */
void nvmf_admin(struct nvmf_req *r);
void nvmf_identify(struct nvmf_req *r);
void nvmf_log_page(struct nvmf_req *r);
void nvmf_nvm(struct nvmf_req *r);

#endif
