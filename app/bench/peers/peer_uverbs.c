/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Plays the kernel for libibverbs. Functions of this program with the names of libc's functions
 * intercept the calls of libibverbs on a uverbs device. The device node is /dev/null, on which
 * every ioctl() fails with ENOTTY. This looks like a kernel older than the ioctl interface, so
 * libibverbs uses write().
 *
 * The layouts of commands and responses are those of <rdma/ib_user_verbs.h> and <rdma/mlx5-abi.h>.
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* otherwise open() would be renamed to open64() */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "peer_sysfs.h"
#include "peer_uverbs.h"

#define NODE "/dev/infiniband/uverbs0"

static int device = -1; /* descriptor by which libibverbs has opened the device */
static struct uverbs_created created;
static const struct uverbs_kernel *kernel;

int
uverbs_start(const struct uverbs_kernel *with)
{
	kernel = with;
	return peer_sysfs_start();
}

const struct uverbs_created *
uverbs_created(void)
{
	return &created;
}

/* ---- Commands */

static int
get_context(const struct uverbs_cmd *c)
{
	struct mlx5_ib_alloc_ucontext_resp drv;
	struct ib_uverbs_get_context_resp core = {
		.async_fd = (uint32_t)eventfd(0, EFD_CLOEXEC),
		.num_comp_vectors = 1,
	};

	uverbs_context(&drv);
	/*
	 * Offers doorbell registers by mmap(), as kernels did before they had a command to allocate
	 * registers.
	 */
	drv.tot_bfregs = 16;
	return uverbs_reply(c, &core, sizeof(core), &drv, sizeof(drv));
}

static int
create_cq(const struct uverbs_cmd *c, uint32_t cqe, bool ex)
{
	const struct mlx5_ib_create_cq_resp drv = {.cqn = 0x42};
	const struct ib_uverbs_ex_create_cq_resp core = {
		.base = {.cq_handle = 1, .cqe = cqe},
		.response_length = sizeof(core),
	};

	return uverbs_reply(c, &core, ex ? sizeof(core) : sizeof(core.base), &drv, sizeof(drv));
}

static int
create_qp(const struct uverbs_cmd *c, size_t caps_at, bool ex)
{
	const struct mlx5_ib_create_qp_resp drv = {.bfreg_index = 2};
	uint32_t caps[5] = {0}; /* five capabilities, from max_send_wr to max_inline_data */
	struct ib_uverbs_ex_create_qp_resp core;
	struct mlx5_ib_create_qp in = {0};

	if (c->in_len >= caps_at + sizeof(caps))
		memcpy(caps, c->in + caps_at, sizeof(caps));
	memcpy(&in, c->drv_in, c->drv_len < sizeof(in) ? c->drv_len : sizeof(in));
	created.uidx = in.uidx;
	core = (struct ib_uverbs_ex_create_qp_resp){
		.base =
			{
				.qp_handle = 1,
				.qpn = 0x123,
				.max_send_wr = caps[0],
				.max_recv_wr = caps[1],
				.max_send_sge = caps[2],
				.max_recv_sge = caps[3],
				.max_inline_data = caps[4],
			},
		.response_length = sizeof(core),
	};
	return uverbs_reply(c, &core, ex ? sizeof(core) : sizeof(core.base), &drv, sizeof(drv));
}

/* Executes a command with the default response. Returns 0 or an errno. */
static int
execute(struct uverbs_cmd *c)
{
	struct ib_uverbs_create_cq cq = {0};
	struct ib_uverbs_ex_create_cq excq = {0};
	const struct ib_uverbs_alloc_pd_resp pd = {.pd_handle = 1};
	const struct mlx5_ib_alloc_pd_resp pdn = {.pdn = 7};
	const struct ib_uverbs_ex_modify_qp_resp modified = {.response_length = sizeof(modified)};

	switch (c->command) {
	case IB_USER_VERBS_CMD_GET_CONTEXT:
		return get_context(c);
	case IB_USER_VERBS_CMD_ALLOC_PD:
		return uverbs_reply(c, &pd, sizeof(pd), &pdn, sizeof(pdn));
	case IB_USER_VERBS_CMD_CREATE_CQ:
		memcpy(&cq, c->in, c->in_len < sizeof(cq) ? c->in_len : sizeof(cq));
		return create_cq(c, cq.cqe, false);
	case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_CQ:
		memcpy(&excq, c->in, c->in_len < sizeof(excq) ? c->in_len : sizeof(excq));
		return create_cq(c, excq.cqe, true);
	case IB_USER_VERBS_CMD_CREATE_QP:
		uverbs_cmd_split(c, sizeof(struct ib_uverbs_create_qp));
		return create_qp(c, offsetof(struct ib_uverbs_create_qp, max_send_wr), false);
	case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_QP:
		return create_qp(c, offsetof(struct ib_uverbs_ex_create_qp, max_send_wr), true);
	case IB_USER_VERBS_CMD_MODIFY_QP:
		return 0;
	case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_QP:
		return uverbs_reply(c, &modified, sizeof(modified), NULL, 0);
	default:
		return EOPNOTSUPP;
	}
}

static int
command(const uint8_t *buf, size_t len)
{
	struct uverbs_cmd c;
	int rc = uverbs_cmd_parse(&c, buf, len);

	if (rc != 0)
		return rc;
	rc = kernel != NULL ? kernel->write(&c) : ENOSYS;
	if (rc == ENOSYS)
		rc = execute(&c);
	if (getenv("UVERBS_TRACE") != NULL)
		fprintf(stderr, "uverbs: command 0x%x: %s\n", c.command, strerror(rc));
	return rc;
}

/* ---- libc */

static bool
is_node(const char *path)
{
	return strcmp(path, NODE) == 0;
}

static int
open_at(const char *path, int flags, mode_t mode)
{
	int fd =
		(int)syscall(SYS_openat, AT_FDCWD, is_node(path) ? "/dev/null" : path, flags, mode);

	if (is_node(path))
		device = fd;
	return fd;
}

/*
 * Defines both names of each function, because libraries call either name, depending on how they
 * were built.
 */
#define OPEN(name)                                                                                 \
	int name(const char *path, int flags, ...)                                                 \
	{                                                                                          \
		va_list ap;                                                                        \
		mode_t mode;                                                                       \
                                                                                                   \
		va_start(ap, flags);                                                               \
		mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(ap, mode_t) : 0;              \
		va_end(ap);                                                                        \
		return open_at(path, flags, mode);                                                 \
	}
OPEN(open)
OPEN(open64)

#define STAT(name)                                                                                 \
	int name(const char *path, struct name *st)                                                \
	{                                                                                          \
		return (int)syscall(SYS_newfstatat, AT_FDCWD, is_node(path) ? "/dev/null" : path,  \
				    st, 0);                                                        \
	}
STAT(stat)
STAT(stat64)

ssize_t
write(int fd, const void *buf, size_t len)
{
	if (fd != device || fd < 0)
		return syscall(SYS_write, fd, buf, len);
	errno = command(buf, len);
	return errno == 0 ? (ssize_t)len : -1;
}

/*
 * Maps plain memory as a register page, because the devices of the baselines use the doorbell
 * record.
 */
#define MMAP(name, offset_t)                                                                       \
	void *name(void *addr, size_t len, int prot, int flags, int fd, offset_t offset)           \
	{                                                                                          \
		if (fd == device && fd >= 0) {                                                     \
			flags = MAP_SHARED | MAP_ANONYMOUS;                                        \
			fd = -1;                                                                   \
			offset = 0;                                                                \
		}                                                                                  \
		return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);              \
	}
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

/* Fails for RDMA netlink sockets, which would show the existing devices. */
int
socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return (int)syscall(SYS_socket, domain, type, protocol);
}
