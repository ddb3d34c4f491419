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

int
uverbs_fd(void)
{
	return device;
}

const struct uverbs_created *
uverbs_created(void)
{
	return &created;
}

/* ---- Commands */

int
uverbs_reply(const struct uverbs_cmd *c, const void *core, size_t core_len, const void *drv,
	     size_t drv_len)
{
	if (c->out == NULL || c->out_len < core_len)
		return EINVAL;
	memset(c->out, 0, c->out_len);
	memcpy(c->out, core, core_len);
	if (drv_len > c->out_len - core_len)
		drv_len = c->out_len - core_len;
	memcpy(c->out + core_len, drv, drv_len);
	return 0;
}

void
uverbs_context(struct mlx5_ib_alloc_ucontext_resp *resp)
{
	*resp = (struct mlx5_ib_alloc_ucontext_resp){
		.qp_tab_size = 1 << 18,
		.bf_reg_size = 512,
		.cache_line_size = 64,
		.max_sq_desc_sz = 1008,
		.max_rq_desc_sz = 512,
		.max_send_wqebb = 32768,
		.max_recv_wr = 32768,
		.max_srq_recv_wr = 32767,
		.num_ports = 1,
		.response_length = sizeof(*resp),
		.cqe_version = 1,
		.log_uar_size = 12,
		.num_uars_per_page = 1,
	};
}

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

/* Splits a command into its body and the part that the provider adds. */
static void
split(struct uverbs_cmd *c, size_t body)
{
	if (body > c->in_len)
		body = c->in_len;
	c->drv_in = c->in + body;
	c->drv_len = c->in_len - body;
}

/* Executes a command with the default response. Returns 0 or an errno. */
static int
execute(uint32_t command, struct uverbs_cmd *c)
{
	struct ib_uverbs_create_cq cq = {0};
	struct ib_uverbs_ex_create_cq excq = {0};
	const struct ib_uverbs_alloc_pd_resp pd = {.pd_handle = 1};
	const struct mlx5_ib_alloc_pd_resp pdn = {.pdn = 7};
	const struct ib_uverbs_ex_modify_qp_resp modified = {.response_length = sizeof(modified)};

	switch (command) {
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
		split(c, sizeof(struct ib_uverbs_create_qp));
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

static ssize_t
command(const uint8_t *buf, size_t len)
{
	struct ib_uverbs_ex_cmd_hdr ex;
	struct ib_uverbs_cmd_hdr hdr;
	struct uverbs_cmd c = {0};
	uint64_t to;
	int rc;

	if (len < sizeof(hdr))
		return EINVAL;
	memcpy(&hdr, buf, sizeof(hdr));
	c.in = buf + sizeof(hdr);
	c.in_len = len - sizeof(hdr);
	if ((hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED) != 0) {
		if (c.in_len < sizeof(ex))
			return EINVAL;
		memcpy(&ex, c.in, sizeof(ex));
		c.in += sizeof(ex);
		c.in_len -= sizeof(ex);
		c.out = (uint8_t *)(uintptr_t)ex.response;
		c.out_len = (hdr.out_words + (size_t)ex.provider_out_words) * 8;
		if (hdr.in_words * (size_t)8 > c.in_len)
			return EINVAL;
		split(&c, hdr.in_words * (size_t)8);
	} else {
		split(&c, c.in_len);
		/* A command with a response begins with the address of the response buffer. */
		if (hdr.out_words != 0 && c.in_len >= sizeof(to)) {
			memcpy(&to, c.in, sizeof(to));
			c.out = (uint8_t *)(uintptr_t)to;
			c.out_len = hdr.out_words * (size_t)4;
		}
	}
	rc = kernel != NULL ? kernel->write(hdr.command, &c) : ENOSYS;
	if (rc == ENOSYS)
		rc = execute(hdr.command, &c);
	if (getenv("UVERBS_TRACE") != NULL)
		fprintf(stderr, "uverbs: command 0x%x: %s\n", hdr.command, strerror(rc));
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
	ssize_t rc;

	if (fd != device || fd < 0)
		return syscall(SYS_write, fd, buf, len);
	rc = command(buf, len);
	if (rc == 0)
		return (ssize_t)len;
	errno = (int)rc;
	return -1;
}

/*
 * Maps plain memory as a register page, because the devices of the baselines use the doorbell
 * record.
 */
#define MMAP(name, offset_t)                                                                       \
	void *name(void *addr, size_t len, int prot, int flags, int fd, offset_t offset)           \
	{                                                                                          \
		void *at = NULL;                                                                   \
                                                                                                   \
		if (fd == device && fd >= 0) {                                                     \
			if (kernel != NULL && kernel->map != NULL)                                 \
				at = kernel->map(offset);                                          \
			if (at != NULL)                                                            \
				return at;                                                         \
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
