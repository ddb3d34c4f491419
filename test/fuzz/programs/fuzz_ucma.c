/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Two rdma_cm nodes. The input is what their programs write: commands with any fields and lengths,
 * and which MADs arrive, change or are lost. Afterwards all files are closed, and the time runs on:
 * then no ID and no connection is left. A file is readable exactly while it has an event.
 */
#define UP_MADS 256u
#include "fuzz.h"
#include "ucma_pair.h"

#define IDS 12u

static uint8_t scratch[4096]; /* the program's memory for responses and options */

static void
put(struct fuzz_in *in, void *to, size_t len)
{
	uint8_t *p = to;

	for (size_t i = 0; i < len; i++)
		p[i] = fuzz_u8(in);
}

/* A response's address: in the scratch memory, or one that faults. */
static uint64_t
response(struct fuzz_in *in)
{
	const uint8_t v = fuzz_u8(in);

	return v < 240 ? (uintptr_t)scratch : v;
}

static void
put_addr(struct fuzz_in *in, void *to)
{
	const uint8_t v = fuzz_u8(in);
	struct sockaddr_in a = {
		.sin_family = (v & 0x80) != 0 ? v : AF_INET,
		.sin_port = htons(100 + (v >> 2 & 3)),
		.sin_addr.s_addr = htonl((v & 3) == 3   ? INADDR_LOOPBACK
					 : (v & 3) == 0 ? 0
							: 0x0a000000u + (v & 3)),
	};

	memcpy(to, &a, sizeof(a));
}

static void
put_param(struct fuzz_in *in, struct rdma_ucm_conn_param *p)
{
	p->qp_num = 2 + fuzz_u8(in);
	p->private_data_len = fuzz_u8(in) & 0x3f;
	p->responder_resources = fuzz_u8(in);
	p->retry_count = fuzz_u8(in);
	p->valid = (fuzz_u8(in) & 7) != 0;
}

/* A command that is right in most of its fields. */
static size_t
command(struct fuzz_in *in, uint32_t cmd, uint8_t *body)
{
	union {
		struct rdma_ucm_create_id create;
		struct rdma_ucm_destroy_id destroy;
		struct rdma_ucm_bind_ip bind_ip;
		struct rdma_ucm_resolve_ip resolve_ip;
		struct rdma_ucm_query query;
		struct rdma_ucm_connect connect;
		struct rdma_ucm_listen listen;
		struct rdma_ucm_accept accept;
		struct rdma_ucm_reject reject;
		struct rdma_ucm_init_qp_attr init;
		struct rdma_ucm_set_option option;
		struct rdma_ucm_migrate_id migrate;
		struct rdma_ucm_join_ip_mcast join_ip;
		struct rdma_ucm_join_mcast join;
		uint32_t id;
	} c;
	const uint32_t id = fuzz_u8(in) % (IDS + 2);

	memset(&c, 0, sizeof(c));
	switch (cmd) {
	case RDMA_USER_CM_CMD_CREATE_ID:
		c.create.uid = fuzz_u8(in);
		c.create.ps = (fuzz_u8(in) & 1) != 0 ? RDMA_PS_TCP : RDMA_PS_UDP;
		c.create.response = response(in);
		break;
	case RDMA_USER_CM_CMD_BIND_IP:
		put_addr(in, &c.bind_ip.addr);
		c.bind_ip.id = id;
		break;
	case RDMA_USER_CM_CMD_RESOLVE_IP:
		put_addr(in, &c.resolve_ip.dst_addr);
		c.resolve_ip.timeout_ms = fuzz_u8(in);
		c.resolve_ip.id = id;
		break;
	case RDMA_USER_CM_CMD_CONNECT:
		put_param(in, &c.connect.conn_param);
		c.connect.id = id;
		break;
	case RDMA_USER_CM_CMD_LISTEN:
		c.listen.id = id;
		c.listen.backlog = fuzz_u8(in);
		break;
	case RDMA_USER_CM_CMD_ACCEPT:
		put_param(in, &c.accept.conn_param);
		c.accept.uid = fuzz_u8(in);
		c.accept.id = id;
		break;
	case RDMA_USER_CM_CMD_REJECT:
		c.reject.id = id;
		c.reject.private_data_len = fuzz_u8(in);
		c.reject.reason = fuzz_u8(in) & 0x3f;
		break;
	case RDMA_USER_CM_CMD_INIT_QP_ATTR:
		c.init.response = response(in);
		c.init.id = id;
		c.init.qp_state = fuzz_u8(in);
		break;
	case RDMA_USER_CM_CMD_SET_OPTION:
		c.option.optval = response(in);
		c.option.id = id;
		c.option.optname = fuzz_u8(in) & 7;
		c.option.optlen = (fuzz_u8(in) & 1) != 0 ? 1 : 4;
		break;
	case RDMA_USER_CM_CMD_MIGRATE_ID:
		c.migrate.response = response(in);
		c.migrate.id = id;
		c.migrate.fd = fuzz_u8(in);
		break;
	case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
		c.join_ip.response = response(in);
		c.join_ip.uid = fuzz_u8(in);
		c.join_ip.id = id;
		put_addr(in, &c.join_ip.addr);
		break;
	case RDMA_USER_CM_CMD_JOIN_MCAST:
		c.join.response = response(in);
		c.join.uid = fuzz_u8(in);
		c.join.id = id;
		put_addr(in, &c.join.addr);
		c.join.addr_size = (fuzz_u8(in) & 1) != 0 ? 16 : fuzz_u8(in);
		c.join.join_flags = fuzz_u8(in) & 3;
		break;
	case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
	case RDMA_USER_CM_CMD_DISCONNECT:
	case RDMA_USER_CM_CMD_NOTIFY:
		c.id = id;
		((uint32_t *)(void *)&c)[1] = fuzz_u8(in);
		break;
	default: /* the response's address first, then the ID */
		c.query.response = response(in);
		c.query.id = id;
	}
	memcpy(body, &c, sizeof(c));
	return sizeof(c);
}

static void
program(struct up *up, struct fuzz_in *in, uint8_t op)
{
	struct up_host *h = &up->host[op & 1];
	const unsigned int file = op >> 1 & 1;
	const uint32_t cmd = fuzz_u8(in) % (RDMA_USER_CM_CMD_JOIN_MCAST + 2);
	uint8_t body[sizeof(struct rdma_ucm_accept) + 64] = {0};
	size_t len;

	if (h->files[file].f == NULL)
		return;
	if ((op & 4) != 0) {
		len = fuzz_u16(in) % sizeof(body);
		put(in, body, len < 32 ? len : 32); /* the rest is zero */
	} else {
		len = command(in, cmd, body);
	}
	(void)up_command(h, file, cmd, body, len, (op & 8) != 0 ? fuzz_u16(in) % 1024 : 1024);
}

static void
network(struct up *up, struct fuzz_in *in, uint8_t op)
{
	struct up_mad m;

	if (up->next == up->nmads)
		return;
	m = up->mads[up->next];
	switch (op & 3) {
	case 0:
		for (unsigned int n = fuzz_u8(in) & 3; n > 0; n--) {
			const uint8_t at = fuzz_u8(in);

			m.mad[at] = fuzz_u8(in);
		}
		break;
	case 1: /* lost */
		up->next++;
		return;
	default:
		up->next++;
	}
	up_deliver(up, &m);
}

static void
check_readable(const struct up *up)
{
	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int j = 0; j < 2; j++) {
			const struct up_file *f = &up->host[i].files[j];
			const struct {
				struct rdma_ucm_cmd_hdr hdr;
				struct rdma_ucm_get_event get;
			} c = {{RDMA_USER_CM_CMD_GET_EVENT, sizeof(c.get), 1024}, {0}};

			/* A response that faults leaves the event where it is. */
			if (f->f != NULL)
				check((ucma_write(f->f, &c, sizeof(c), up->now) == -EFAULT) ==
					      f->readable,
				      "readable differs from the queue");
		}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct up *up = up_new(IDS);
	struct fuzz_in in = {data, len};

	up->mem = scratch;
	up->mem_len = sizeof(scratch);
	while (in.left > 0 && up->nmads < UP_MADS / 2) {
		const uint8_t op = fuzz_u8(&in);

		if (op < 160)
			program(up, &in, op);
		else if (op < 224)
			network(up, &in, op);
		else if (op < 232)
			up_close(&up->host[op & 1], op >> 1 & 1);
		else if (op < 240)
			up->host[op & 1].reach = (op & 2) != 0   ? 0
						 : (op & 4) != 0 ? -EAGAIN
								 : -EHOSTUNREACH;
		else
			up_time(up, (uint64_t)fuzz_u16(&in) << 16);
		check_readable(up);
	}
	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int j = 0; j < UP_FILES; j++)
			up_close(&up->host[i], j);
	for (unsigned int i = 0; i < 2; i++)
		check(ucma_ids(up->host[i].u) == 0, "an ID is left");
	/* Requests that had no answer end with their timeouts, which peers may have prolonged. */
	for (unsigned int i = 0; i < 40; i++) {
		up->nmads = up->next = 0;
		up_time(up, 60 * UP_SEC);
	}
	for (unsigned int i = 0; i < 2; i++)
		check(ucma_connections(up->host[i].u) == 0, "a connection is left");
	up_free(up);
	return 0;
}
