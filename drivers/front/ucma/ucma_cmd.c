/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The commands that a program writes to the node: lengths are checked here, before a command is
 * executed. Lengths and errors are those of ucma_write() of Linux drivers/infiniband/core/ucma.c.
 * Linux reads the whole struct of a command even if the program gave fewer bytes; this node rejects
 * such a command.
 */
#include <errno.h>
#include <string.h>

#include "ucma_priv.h"

#define END(type_, field_) (offsetof(struct type_, field_) + sizeof(((struct type_ *)0)->field_))

/*
 * Minimum lengths of a command and of its response. Fields that later versions of the ABI added may
 * be absent.
 */
#define COMMAND(fn_, in_, out_)                                                                    \
	{                                                                                          \
		(fn_), (uint16_t)(in_), (uint16_t)(out_)                                           \
	}
static const struct {
	ucma_fn *fn; /* NULL: no such command */
	uint16_t in, out;
} commands[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = COMMAND(ucma_create_id, sizeof(struct rdma_ucm_create_id),
					       sizeof(struct rdma_ucm_create_id_resp)),
	[RDMA_USER_CM_CMD_DESTROY_ID] = COMMAND(ucma_destroy_id, END(rdma_ucm_destroy_id, id),
						sizeof(struct rdma_ucm_destroy_id_resp)),
	[RDMA_USER_CM_CMD_BIND_IP] = COMMAND(ucma_bind_ip, END(rdma_ucm_bind_ip, id), 0),
	[RDMA_USER_CM_CMD_RESOLVE_IP] =
		COMMAND(ucma_resolve_ip, sizeof(struct rdma_ucm_resolve_ip), 0),
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] =
		COMMAND(ucma_resolve_route, sizeof(struct rdma_ucm_resolve_route), 0),
	[RDMA_USER_CM_CMD_QUERY_ROUTE] =
		COMMAND(ucma_query_route, END(rdma_ucm_query, id),
			offsetof(struct rdma_ucm_query_route_resp, ibdev_index)),
	[RDMA_USER_CM_CMD_CONNECT] = COMMAND(ucma_connect, END(rdma_ucm_connect, reserved), 0),
	[RDMA_USER_CM_CMD_LISTEN] = COMMAND(ucma_listen, sizeof(struct rdma_ucm_listen), 0),
	[RDMA_USER_CM_CMD_ACCEPT] = COMMAND(ucma_accept, END(rdma_ucm_accept, reserved), 0),
	[RDMA_USER_CM_CMD_REJECT] = COMMAND(ucma_reject, sizeof(struct rdma_ucm_reject), 0),
	[RDMA_USER_CM_CMD_DISCONNECT] =
		COMMAND(ucma_disconnect, sizeof(struct rdma_ucm_disconnect), 0),
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] =
		COMMAND(ucma_init_qp_attr, sizeof(struct rdma_ucm_init_qp_attr),
			sizeof(struct ib_uverbs_qp_attr)),
	[RDMA_USER_CM_CMD_GET_EVENT] = COMMAND(ucma_get_event, sizeof(struct rdma_ucm_get_event),
					       offsetof(struct rdma_ucm_event_resp, reserved)),
	[RDMA_USER_CM_CMD_SET_OPTION] =
		COMMAND(ucma_set_option, sizeof(struct rdma_ucm_set_option), 0),
	[RDMA_USER_CM_CMD_NOTIFY] = COMMAND(ucma_notify, sizeof(struct rdma_ucm_notify), 0),
	[RDMA_USER_CM_CMD_MIGRATE_ID] = COMMAND(ucma_migrate_id, sizeof(struct rdma_ucm_migrate_id),
						sizeof(struct rdma_ucm_migrate_resp)),
	[RDMA_USER_CM_CMD_QUERY] = COMMAND(ucma_query, sizeof(struct rdma_ucm_query),
					   offsetof(struct rdma_ucm_query_addr_resp, ibdev_index)),
	[RDMA_USER_CM_CMD_BIND] = COMMAND(ucma_bind, sizeof(struct rdma_ucm_bind), 0),
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] =
		COMMAND(ucma_resolve_addr, sizeof(struct rdma_ucm_resolve_addr), 0),
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] =
		COMMAND(ucma_join_ip_mcast, END(rdma_ucm_join_ip_mcast, id),
			sizeof(struct rdma_ucm_create_id_resp)),
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = COMMAND(ucma_leave_mcast, END(rdma_ucm_destroy_id, id),
						 sizeof(struct rdma_ucm_destroy_id_resp)),
	[RDMA_USER_CM_CMD_JOIN_MCAST] = COMMAND(ucma_join_mcast, sizeof(struct rdma_ucm_join_mcast),
						sizeof(struct rdma_ucm_create_id_resp)),
};

int
ucma_write(struct ucma_file *f, const void *buf, size_t len, uint64_t now)
{
	struct rdma_ucm_cmd_hdr h;
	union ucma_cmd c;

	if (buf == NULL)
		return -EFAULT;
	if (len < sizeof(h))
		return -EINVAL;
	memcpy(&h, buf, sizeof(h));
	if (h.cmd >= sizeof(commands) / sizeof(commands[0]) || h.in > len - sizeof(h))
		return -EINVAL;
	if (commands[h.cmd].fn == NULL)
		return -ENOSYS;
	if (h.out < commands[h.cmd].out)
		return -ENOSPC;
	if (h.in < commands[h.cmd].in)
		return -EINVAL;
	memset(&c, 0, sizeof(c));
	memcpy(&c, (const uint8_t *)buf + sizeof(h), h.in < sizeof(c) ? h.in : sizeof(c));
	f->u->now = now;
	return commands[h.cmd].fn(f, &c, h.out);
}
