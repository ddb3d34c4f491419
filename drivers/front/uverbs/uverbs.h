/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A device node of verbs over the software ConnectX: what the kernel's ib_uverbs and mlx5_ib do for
 * libibverbs and libmlx5. Each write() and ioctl() of libmlx5 becomes a call of the device's
 * command interface. The caller intercepts the program's system calls. It has the table of the
 * program's descriptors, and passes the file that a call is for.
 *
 * Methods and attributes: <rdma/mlx5_user_ioctl_cmds.h>, <rdma/ib_user_ioctl_cmds.h>; commands:
 * <rdma/ib_user_verbs.h>, <rdma/mlx5-abi.h>. Other calls are refused as by a kernel that does not
 * know them.
 *
 * Any thread may call any function. No state is shared by the whole process.
 */
#ifndef UVERBS_H
#define UVERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ib_uverbs_ioctl_hdr;
struct mlx5_ctx;

/* An open file of the node: a context, and the objects that were created through it. */
struct uverbs_file;
/* A descriptor from which the program reads events. */
struct uverbs_events;

/* Page number at which libmlx5 maps the clock: MLX5_IB_MMAP_CORE_CLOCK in bits 8 to 15. */
#define UVERBS_CLOCK_PAGE (5u << 8)

struct uverbs_attr {
	const char *dev;  /* name of the software device, "soft0" to "soft15" */
	const char *args; /* options of the device, without progress= and mmap */
	bool clock;       /* the caller maps a clock at UVERBS_CLOCK_PAGE */
	bool link_up;     /* the program sees the port as active, even while its link is down */
	/*
	 * Enters a descriptor of events into the caller's table of descriptors. Returns 0 or a
	 * negative errno. The table holds a reference until the caller calls uverbs_events_close().
	 * Called during uverbs_write() and uverbs_ioctl().
	 */
	int (*install)(void *arg, int fd, struct uverbs_events *events);
	void *arg;
};

/*
 * Opens the node. Returns 0 or a negative errno. Sets *fd to the descriptor for the program, by
 * which the program maps registers and device memory.
 */
int uverbs_open(const struct uverbs_attr *attr, struct uverbs_file **file, int *fd);
/*
 * Call it when the program closes the node. Destroys all objects, ends waiting reads, and releases
 * the reference of uverbs_open().
 */
void uverbs_close(struct uverbs_file *file);
/*
 * Takes and releases a reference to a file. The memory of the file stays valid for its holder, even
 * if another thread closes the file.
 */
void uverbs_get(struct uverbs_file *file);
void uverbs_put(struct uverbs_file *file);

/* Executes a command of write(), or a method of ioctl(). Returns 0 or an errno. */
int uverbs_write(struct uverbs_file *file, const void *buf, size_t len);
int uverbs_ioctl(struct uverbs_file *file, struct ib_uverbs_ioctl_hdr *h);

/*
 * Reads an event; waits for one unless O_NONBLOCK is set. Returns the number of bytes or a negative
 * errno: -EIO if the node is closed. A thread that is cancelled while it waits releases the
 * caller's reference.
 */
ssize_t uverbs_events_read(struct uverbs_events *events, void *buf, size_t len);
/*
 * Call it when the program closes the descriptor. Releases the reference of uverbs_attr.install().
 */
void uverbs_events_close(struct uverbs_events *events);
void uverbs_events_get(struct uverbs_events *events);
void uverbs_events_put(struct uverbs_events *events);

#endif
