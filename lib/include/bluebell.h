/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * All of Bluebell's public API except bb_mbuf.h, which includes rte_mbuf.h.
 *
 * Results of the calls:
 *
 * - A single post returns 0 when its request is queued, -EAGAIN when the queue is full, and
 *   another negative errno when the request can never be posted. Flags are its last argument.
 * - A burst (a list of posts, a poll) returns the number of entries done, unsigned. A smaller
 *   number than requested means that there was no room, or no further entry. @p err of a list of
 *   posts reports a request that can never be posted.
 * - A call of the control path returns 0 or a negative errno. A call that returns a number (a
 *   count, a descriptor) returns that number or a negative errno. A new object is returned through
 *   the last argument, which is written only on success.
 *
 * A struct that the library reads or fills begins with its size in bytes, which the functions of
 * these headers set. A program that was built with older headers gets the fields that those headers
 * define. A program that was built with newer headers reads 0 in fields that the library does not
 * know. bb_wc, bb_wr_end, bb_qp_addr, bb_region and bb_lkey_cache have no size field: any change
 * of these structs changes BB_LAYOUT_VERSION, which is checked when a program creates a queue.
 */
#ifndef BLUEBELL_H
#define BLUEBELL_H

#include "bb_ah.h"
#include "bb_channel.h"
#include "bb_connect.h"
#include "bb_cq.h"
#include "bb_dev.h"
#include "bb_devx.h"
#include "bb_dm.h"
#include "bb_ep.h"
#include "bb_error.h"
#include "bb_gid.h"
#include "bb_loop.h"
#include "bb_mem.h"
#include "bb_mkey.h"
#include "bb_mw.h"
#include "bb_post.h"
#include "bb_qp.h"
#include "bb_recover.h"
#include "bb_region.h"
#include "bb_replay.h"
#include "bb_srq.h"
#include "bb_umem.h"
#include "bb_version.h"
#include "bb_wr.h"

#endif
