/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Memory that a program has unmapped, or whose file it has truncated, while it is registered
 * (soft_pin.c). See also soft_fill() in soft_hooks.h.
 */
#ifndef SOFT_GAPS_H
#define SOFT_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mlx5_ctx;

/*
 * Maps memory as mmap() does, but not where a registered region was that the program has unmapped:
 * requests to the region would access the new memory. Call it in a soft_memory_fn, or between
 * soft_share_pause() and soft_share_resume().
 */
void *soft_map_aside(struct mlx5_ctx *ctx, size_t len, int prot, int flags, int fd, uint64_t off);

/*
 * Does what soft_fill() does, for a handler of SIGBUS: replaces the page at @at, which is after the
 * end of its file, by a page of zeros.
 */
bool soft_fill_cut(struct mlx5_ctx *ctx, const void *at);

#endif
