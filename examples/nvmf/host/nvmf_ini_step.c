/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Steps of a connection: connecting, loss and reconnection. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "nvmf_ini.h"

void
nvmf_ini_over(struct nvmf_ini *e)
{
	e->step = INI_OVER;
	nvmf_ini_io_lost(e, false);
	nvmf_ini_io_end(e);
}

void
nvmf_ini_close(struct nvmf_ini *e)
{
	if (e->step == INI_OVER)
		return;
	snprintf(e->why, sizeof(e->why), "bb_nvmf_close() has ended the connection");
	e->error = -ECONNRESET;
	e->attr.ops->disconnect(e);
	nvmf_ini_over(e);
}

/* Returns whether another attempt makes sense at this time. */
static bool
may_try_again(const struct nvmf_ini *e, enum nvmf_ini_cause cause)
{
	uint32_t limit = e->was_live ? e->attr.nvmf.reconnect_ms : e->attr.nvmf.timeout_ms;

	/*
	 * Until the first connection works, try again only if the target has no free queue or
	 * controller.
	 */
	if (cause == INI_FATAL || (!e->was_live && cause != INI_BUSY))
		return false;
	return e->now - e->lost < limit;
}

void
nvmf_ini_lose(struct nvmf_ini *e, enum nvmf_ini_cause cause, int error, const char *fmt, ...)
{
	va_list ap;

	if (e->step == INI_PAUSE || e->step == INI_OVER)
		return;
	va_start(ap, fmt);
	vsnprintf(e->why, sizeof(e->why), fmt, ap);
	va_end(ap);
	e->error = error;
	e->attr.ops->disconnect(e);
	e->keep_alive_sent = e->admin_sent = false;
	/*
	 * reconnect_ms limits the time since @lost. This loss restarts that time if a request has
	 * completed since the previous loss (@losing is false then), or if the connection was live
	 * for reconnect_ms.
	 */
	if (!e->losing ||
	    (e->step == INI_LIVE && e->now - e->live_at >= e->attr.nvmf.reconnect_ms)) {
		e->losing = true;
		e->lost = e->now;
		e->pause = INI_PAUSE_MIN;
	}
	if (!may_try_again(e, cause)) {
		nvmf_ini_over(e);
		return;
	}
	nvmf_ini_io_lost(e, true);
	e->step = INI_PAUSE;
	e->deadline = e->now + e->pause;
	e->pause = e->pause * 2 < INI_PAUSE_MAX ? e->pause * 2 : INI_PAUSE_MAX;
}

static const char *const step_names[] = {
	[INI_CM_ADMIN] = "the request to connect the admin queue",
	[INI_CONNECT_ADMIN] = "Connect of the admin queue",
	[INI_CAP] = "Property Get",
	[INI_ENABLE] = "Property Set",
	[INI_READY] = "Property Get",
	[INI_CONTROLLER] = "Identify",
	[INI_QUEUES] = "Set Features",
	[INI_NAMESPACE] = "Identify",
	[INI_CM_IO] = "the request to connect the I/O queue",
	[INI_CONNECT_IO] = "Connect of the I/O queue",
};

const char *
nvmf_ini_step_name(enum nvmf_ini_step step)
{
	return step_names[step];
}

void
nvmf_ini_step_set(struct nvmf_ini *e, enum nvmf_ini_step step)
{
	e->step = step;
	e->deadline = e->now + e->attr.nvmf.timeout_ms;
	if (step != INI_LIVE)
		return;
	e->live_at = e->now;
	e->reconnects += e->was_live;
	e->losing = e->losing && e->was_live;
	e->was_live = true;
}

/* The private data has the layout of Linux's include/linux/nvme-rdma.h. */
void
nvmf_ini_connect_queue(struct nvmf_ini *e, uint16_t qid)
{
	uint32_t size = qid == 0 ? NVMF_ADMIN_DEPTH : e->io_size;
	uint8_t req[NVMF_CM_REQ] = {0};
	int rc;

	put16(req + 2, qid);
	put16(req + 4, size);
	put16(req + 6, size - 1);
	nvmf_ini_step_set(e, qid == 0 ? INI_CM_ADMIN : INI_CM_IO);
	rc = e->attr.ops->connect(e, qid, size, req);
	if (rc != 0)
		nvmf_ini_lose(e, INI_BROKEN, rc, "a queue cannot be created: %s", strerror(-rc));
}
