/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Functions that the application calls on a connection. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_common.h>
#include <rte_log.h>

#include "bb_cm_priv.h"

void
bb_conn_param_init(struct bb_conn_param *param)
{
	memset(param, 0, sizeof(*param));
	param->size = sizeof(*param);
	param->initiator_depth = 16;
	param->responder_resources = 16;
	param->retry_count = 7;
	param->rnr_retry_count = 7;
	param->min_rnr_timer = 1;
	param->ack_timeout = 14;
	param->path.port = 1;
	bb_gid_want_init(&param->gid);
	param->timeout_ms = 10000;
	param->backoff_min_ms = 10;
	param->backoff_max_ms = 1000;
}

int
bb_cm_addr(const char *text, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)addr;
	struct sockaddr_in *v4 = (struct sockaddr_in *)addr;
	const char *colon, *p;
	char host[64];
	uint32_t port = 0;
	size_t n;

	if (text == NULL || addr == NULL)
		return -EINVAL;
	colon = strrchr(text, ':');
	if (colon == NULL || colon[1] == '\0')
		return -EINVAL;
	for (p = colon + 1; *p != '\0'; p++) {
		if (*p < '0' || *p > '9' || port > UINT16_MAX)
			return -EINVAL;
		port = port * 10 + (uint32_t)(*p - '0');
	}
	n = (size_t)(colon - text);
	if (port > UINT16_MAX || n >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = '\0';
	memset(addr, 0, sizeof(*addr));
	if (n >= 2 && host[0] == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
		return inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1 ? 0 : -EINVAL;
	}
	if (n == 0) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
		return 0;
	}
	v4->sin_family = AF_INET;
	v4->sin_port = htons((uint16_t)port);
	return inet_pton(AF_INET, host, &v4->sin_addr) == 1 ? 0 : -EINVAL;
}

/* ---- Parameters */

static int
check_qp(const struct bb_cm *cm, const struct bb_qp *qp)
{
	int ret = bb_qp_unowned(qp, "connect");

	if (ret != 0)
		return ret;
	if (qp->ctrl->pd->dev != cm->dev) {
		BB_LOG(ERR,
		       "QP 0x%x is of device %s, the CM of device %s: use a QP of the CM's "
		       "device",
		       qp->qpn, qp->ctrl->pd->dev->name, cm->dev->name);
		return -EINVAL;
	}
	/*
	 * On iWARP, receives must be posted before the connection is made (see bb_conn_accept()),
	 * so INIT is valid.
	 */
	if (cm->dev->iwarp && qp->state == BB_QP_INIT && qp->ctrl->init.type == BB_QPT_RC)
		return 0;
	if (qp->state != BB_QP_RESET || qp->ctrl->init.type == BB_QPT_UD) {
		BB_LOG(ERR, "QP 0x%x is %s and in %s: a connection needs an RC or UC QP in RESET",
		       qp->qpn, bb_qp_type_name(qp->ctrl->init.type), bb_qp_state_name(qp->state));
		return -EINVAL;
	}
	return 0;
}

static int
check_private(const void *data, uint32_t len, uint32_t max)
{
	if (data == NULL && len != 0) {
		BB_LOG(ERR, "connect: %u bytes of private data, but the pointer to them is NULL",
		       len);
		return -EINVAL;
	}
	if (len <= max)
		return 0;
	BB_LOG(ERR, "connect: %u bytes of private data are too long: this call allows %u", len,
	       max);
	return -EMSGSIZE;
}

static int
check_param(const struct bb_cm *cm, const struct bb_conn_param *p, uint32_t max_private)
{
	const char *why = NULL;
	char text[128] = "";
	int ret = bb_attr_size_check(p->size, sizeof(*p), "bb_conn_param_init");

	if (ret == 0)
		ret = check_private(p->private_data, p->private_len, max_private);
	if (ret != 0)
		return ret;
	if (p->nregions > BB_REGION_MAX) {
		BB_LOG(ERR, "connect: %u regions are too many: a connection allows %u", p->nregions,
		       BB_REGION_MAX);
		return -EMSGSIZE;
	}
	if (p->nregions != 0 && !cm->ops->messages) {
		BB_LOG(ERR,
		       "connect: %s cannot send regions: write them into the private "
		       "data with bb_region_pack()",
		       cm->ops->name);
		return -ENOTSUP;
	}
	if (p->recover_ms != 0 && !cm->ops->messages) {
		BB_LOG(ERR,
		       "connect: recover_ms %u: connections of %s cannot be recovered; set "
		       "recover_ms to 0",
		       p->recover_ms, cm->ops->name);
		return -ENOTSUP;
	}
	if (p->retry_count > 7 || p->rnr_retry_count > 7)
		snprintf(text, sizeof(text),
			 "retry_count %u and rnr_retry_count %u must be at most 7", p->retry_count,
			 p->rnr_retry_count);
	else if (p->ack_timeout > 31 || p->min_rnr_timer > 31)
		snprintf(text, sizeof(text),
			 "ack_timeout %u and min_rnr_timer %u must be at most 31", p->ack_timeout,
			 p->min_rnr_timer);
	else if (p->path_mtu != 0 && p->path_mtu < 256)
		snprintf(text, sizeof(text),
			 "path_mtu %u must be 0 (the port's) or at least 256 bytes", p->path_mtu);
	else if (p->timeout_ms == 0)
		why = "timeout_ms is 0: give at least 1 millisecond";
	else if (p->recover_ms != 0 &&
		 (p->backoff_min_ms == 0 || p->backoff_max_ms < p->backoff_min_ms))
		snprintf(text, sizeof(text),
			 "backoff_min_ms %u must be 1 to backoff_max_ms, which is %u",
			 p->backoff_min_ms, p->backoff_max_ms);
	else if (p->nregions != 0 && p->regions == NULL)
		why = "regions is NULL, but nregions is not 0";
	else if (p->nregions != 0)
		why = bb_region_check(p->regions, p->nregions);
	if (why == NULL && text[0] == '\0')
		return 0;
	BB_LOG(ERR, "connect: invalid parameters: %s", why != NULL ? why : text);
	return -EINVAL;
}

/* Copies the parameters into the connection, with the data that they point to. */
static int
copy_param(struct bb_conn *c, const struct bb_conn_param *p)
{
	const size_t regions = p->nregions * sizeof(*p->regions);
	uint8_t *bytes = malloc(regions + p->private_len + 1);

	if (bytes == NULL)
		return -ENOMEM;
	free(c->own_bytes);
	c->own_bytes = bytes;
	c->param = *p;
	/* The value is an upper limit, so round it down to a valid MTU. */
	c->param.path_mtu = rte_align32prevpow2(p->path_mtu);
	if (regions != 0)
		memcpy(bytes, p->regions, regions);
	if (p->private_len != 0)
		memcpy(bytes + regions, p->private_data, p->private_len);
	c->param.regions = (const struct bb_region *)(const void *)bytes;
	c->param.private_data = bytes + regions;
	return 0;
}

/* ---- Connect, accept, reject */

int
bb_conn_connect(struct bb_cm *cm, const struct sockaddr *addr, struct bb_qp *qp,
		const struct bb_conn_param *param, struct bb_conn **conn)
{
	struct bb_conn *c;
	socklen_t len;
	int ret;

	if (cm == NULL || addr == NULL || qp == NULL || param == NULL || conn == NULL ||
	    (addr->sa_family != AF_INET && addr->sa_family != AF_INET6))
		return -EINVAL;
	len = addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	ret = check_param(cm, param, cm->ops->max_private_req);
	if (ret == 0)
		ret = check_qp(cm, qp);
	if (ret != 0)
		return ret;
	if (cm->stats.conns - cm->stats.half_open >= cm->attr.max_conns) {
		BB_LOG(ERR, "connect: no new connection: the CM already has %u, its max_conns",
		       cm->attr.max_conns);
		return -ENOSPC;
	}
	c = bb_cm_conn_new(cm);
	if (c == NULL)
		return -ENOMEM;
	c->active = true;
	bb_cm_own_qp(c, qp);
	memcpy(&c->addr, addr, len);
	ret = copy_param(c, param);
	if (ret == 0)
		ret = bb_cm_own_end(c);
	if (ret != 0)
		goto fail;
	bb_cm_set_state(c, BB_CONN_CONNECTING);
	c->deadline = bb_cm_after(cm, param->timeout_ms);
	ret = cm->ops->connect(c);
	if (ret != 0)
		goto fail;
	*conn = c;
	return 0;

fail:
	cm->ops->disconnect(c, true);
	bb_cm_conn_free(c);
	return ret;
}

/*
 * Replies to a connection request. Returns -ENOTCONN if the socket reports that the peer is lost,
 * which may happen before the CM has read the close.
 */
static int
reply(struct bb_conn *c, uint8_t type, uint32_t reason, const void *priv, uint32_t len)
{
	int ret = c->cm->ops->send(c, type, reason, priv, len);

	return ret == -EPIPE || ret == -ECONNRESET || ret == -ETIMEDOUT ? -ENOTCONN : ret;
}

int
bb_conn_accept(struct bb_conn *c, struct bb_qp *qp, const struct bb_conn_param *param)
{
	struct bb_cm *cm;
	int ret;

	if (c == NULL || qp == NULL || param == NULL)
		return -EINVAL;
	cm = c->cm;
	if (c->state == BB_CONN_CLOSED && !c->active)
		return -ENOTCONN;
	if (c->state != BB_CONN_REQUESTED)
		return -EINVAL;
	ret = check_param(cm, param, cm->ops->max_private_rep);
	if (ret == 0)
		ret = check_qp(cm, qp);
	if (ret != 0)
		return ret;
	if (cm->ops->addresses && c->peer.qp_type != (uint8_t)qp->ctrl->init.type) {
		BB_LOG(ERR,
		       "QP 0x%x is %s, but the peer's QP is of another type: create both "
		       "QPs with one type",
		       qp->qpn, bb_qp_type_name(qp->ctrl->init.type));
		return -EPROTOTYPE;
	}
	ret = copy_param(c, param);
	if (ret != 0)
		return ret;
	bb_cm_own_qp(c, qp);
	ret = bb_cm_own_end(c);
	if (ret != 0)
		goto fail;
	bb_cm_depths(c);
	ret = bb_cm_qp_up(c);
	if (ret != 0)
		goto fail;
	ret = reply(c, BB_CM_REP, 0, c->param.private_data, c->param.private_len);
	if (ret != 0) {
		struct bb_qp_attr attr;

		/* Restore the state that the QP had before the call. */
		bb_qp_attr_init(&attr);
		attr.state = BB_QP_RESET;
		(void)bb_qp_modify(qp, &attr, BB_QP_STATE);
		goto fail;
	}
	bb_cm_accepted_path(c);
	bb_cm_set_state(c, BB_CONN_ACCEPTED);
	c->deadline = bb_cm_after(cm, param->timeout_ms);
	return 0;

fail:
	bb_cm_release_qp(c);
	c->qp = NULL;
	return ret;
}

int
bb_conn_reject(struct bb_conn *c, const void *private_data, uint32_t private_len)
{
	int ret;

	if (c == NULL)
		return -EINVAL;
	if (c->state == BB_CONN_CLOSED && !c->active)
		return -ENOTCONN;
	if (c->state != BB_CONN_REQUESTED)
		return -EINVAL;
	ret = check_private(private_data, private_len, c->cm->ops->max_private_rej);
	if (ret != 0)
		return ret;
	ret = reply(c, BB_CM_REJ, BB_REJECT_CONSUMER, private_data, private_len);
	bb_cm_set_state(c, BB_CONN_CLOSED);
	c->deadline = 0;
	c->cm->stats.rejected++;
	return ret;
}

int
bb_conn_migrate(struct bb_conn *c, struct bb_cm *to)
{
	int ret;

	if (c == NULL || to == NULL)
		return -EINVAL;
	if (c->state == BB_CONN_CLOSED && !c->active)
		return -ENOTCONN;
	if (c->state != BB_CONN_REQUESTED || to == c->cm || to->dev != c->cm->dev ||
	    to->ops != c->cm->ops)
		return -EINVAL;
	if (to->ops->migrate == NULL)
		return -ENOTSUP;
	ret = to->ops->migrate(c, to);
	if (ret == 0)
		bb_cm_conn_free(c);
	return ret;
}

int
bb_conn_disconnect(struct bb_conn *c, const void *private_data, uint32_t private_len)
{
	int ret;

	if (c == NULL)
		return -EINVAL;
	ret = check_private(private_data, private_len, c->cm->ops->max_private_dreq);
	if (ret != 0)
		return ret;
	switch (c->state) {
	case BB_CONN_CONNECTING:
	case BB_CONN_LOST:
		/* The peer may get no message; in that case its own time limit ends the attempt. */
		bb_cm_give_up(c, 0, "this side cancelled the connection");
		return 0;
	case BB_CONN_ACCEPTED:
	case BB_CONN_ESTABLISHED:
		break;
	case BB_CONN_REQUESTED:
		return -EINVAL;
	default:
		return -ENOTCONN;
	}
	bb_cm_drop_successor(c);
	(void)bb_cm_qp_error(c);
	bb_cm_set_state(c, BB_CONN_DISCONNECTING);
	c->deadline = bb_cm_after(c->cm, c->param.timeout_ms);
	if (c->cm->ops->send(c, BB_CM_DREQ, 0, private_data, private_len) != 0 && !c->queued)
		bb_cm_broken(c, 0, "the disconnect request cannot be sent");
	return 0;
}

void
bb_conn_destroy(struct bb_conn *c)
{
	if (c == NULL)
		return;
	c->cm->ops->disconnect(c, false);
	bb_cm_conn_free(c);
}

int
bb_conn_recover(struct bb_conn *c)
{
	if (c == NULL)
		return -EINVAL;
	if (c->state != BB_CONN_ESTABLISHED)
		return -ENOTCONN;
	if (!bb_cm_is_recoverable(c))
		return -EINVAL;
	if (c->queued)
		return -EBUSY;
	bb_cm_lost(c, 0, "bb_conn_recover() was called");
	return 0;
}

/* ---- Queries */

static void
addr_text(const struct sockaddr_storage *addr, char *buf, size_t len)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)addr;
	char host[INET6_ADDRSTRLEN] = "";

	if (addr->ss_family == AF_INET6 && inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host)))
		snprintf(buf, len, "[%s]:%u", host, ntohs(v6->sin6_port));
	else if (addr->ss_family == AF_INET &&
		 inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host)))
		snprintf(buf, len, "%s:%u", host, ntohs(v4->sin_port));
}

void
bb_conn_query_v(const struct bb_conn *c, struct bb_conn_info *out)
{
	struct bb_conn_info now = {0}, *info = &now;

	info->state = c->state;
	info->qp = c->qp;
	addr_text(&c->addr, info->peer, sizeof(info->peer));
	info->remote = c->peer.addr;
	info->peer_initiator_depth = c->peer.initiator_depth;
	info->peer_responder_resources = c->peer.responder_resources;
	info->peer_retry_count = c->peer.retry_count;
	info->peer_rnr_retry_count = c->peer.rnr_retry_count;
	info->peer_sq_depth = c->peer.sq_depth;
	info->peer_rq_depth = c->peer.rq_depth;
	info->peer_srq = (c->peer.flags & BB_CM_SRQ) != 0;
	info->recoverable = bb_cm_is_recoverable(c);
	info->initiator_depth = c->rd_init;
	info->responder_resources = c->rd_resp;
	info->path_mtu = c->peer.addr.mtu == 0 ? c->own.addr.mtu
					       : RTE_MIN(c->own.addr.mtu, c->peer.addr.mtu);
	info->sgid_index = c->param.path.sgid_index;
	info->recoveries = c->recoveries;
	info->tries = c->tries;
	(void)bb_out(out, &now, sizeof(now));
}

int
bb_conn_region(const struct bb_conn *c, const char *name, struct bb_region *region)
{
	uint32_t i;

	for (i = 0; i < c->npeer_regions; i++) {
		if (strncmp(c->peer_regions[i].name, name, BB_REGION_NAME) == 0) {
			*region = c->peer_regions[i];
			return 0;
		}
	}
	return -ENOENT;
}

void
bb_conn_user_set(struct bb_conn *c, void *user)
{
	c->user = user;
}

void *
bb_conn_user(const struct bb_conn *c)
{
	return c->user;
}
