/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The rdma_cm node of the process: descriptors of drivers/front/ucma on QP1 of the process's
 * device. Any thread may call these functions.
 */
#ifndef CM_H
#define CM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mlx5_ctx;

/* An open file of the node: an event channel of librdmacm. */
struct cm_file;

/*
 * Looks up the open file of a descriptor of the program, and takes a reference, which cm_put()
 * releases. Returns NULL if the descriptor is not of the node.
 */
typedef struct cm_file *cm_find_fn(int fd);

/*
 * Opens the node on the device of the process. The first call creates QP1 and starts a thread that
 * receives MADs and handles timeouts. @node_guid: as /sys shows it, in host order. Sets *fd to a
 * descriptor that is readable while an event is pending. Returns 0 or a negative errno.
 */
int cm_open(struct mlx5_ctx *ctx, uint64_t node_guid, cm_find_fn *find, struct cm_file **file,
	    int *fd);
/*
 * Executes a command. Waits for an event unless the descriptor is O_NONBLOCK. A thread that is
 * cancelled while it waits releases the caller's reference. Returns 0 or an errno.
 */
int cm_write(struct cm_file *file, const void *buf, size_t len);
void cm_get(struct cm_file *file);
/*
 * Releases a reference, such as that of cm_open(). Releasing the last reference closes the file. As
 * in the kernel, a thread that waits for an event holds its file open.
 */
void cm_put(struct cm_file *file);

/*
 * Closes all open files of the node when the process exits, so that peers learn of the end, and
 * destroys QP1. Later calls of threads that still run do not return.
 */
void cm_stop(void);

/* Runs in a child of fork(): drops all open files of the node, which stay with the parent. */
void cm_forget(void);

#endif
