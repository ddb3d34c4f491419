/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Telemetry: poll loops. Loops have numbers, because an lcore may own several loops. The lock of
 * this file ensures that a loop is not freed while an endpoint reads it. The endpoints read the
 * counters that the loop's thread has published.
 */
#include <pthread.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "bb_loop_priv.h"
#include "bb_tel.h"

static pthread_mutex_t loops_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, bb_loop) loops = LIST_HEAD_INITIALIZER(loops);
static uint32_t loops_next;

void
bb_loop_tel_add(struct bb_loop *loop)
{
	pthread_mutex_lock(&loops_lock);
	loop->number = loops_next++;
	LIST_INSERT_HEAD(&loops, loop, link);
	pthread_mutex_unlock(&loops_lock);
}

void
bb_loop_tel_remove(struct bb_loop *loop)
{
	pthread_mutex_lock(&loops_lock);
	LIST_REMOVE(loop, link);
	pthread_mutex_unlock(&loops_lock);
}

static int
loop_list(const char *cmd, const char *params, struct rte_tel_data *d)
{
	const struct bb_loop *loop;
	struct bb_tel_args args;
	struct bb_tel_page page;

	(void)cmd;
	if (!bb_tel_args_init(&args, params))
		return bb_tel_refuse(d, "the parameters are too long");
	if (!bb_tel_page_begin(&page, &args, d))
		return 0;
	pthread_mutex_lock(&loops_lock);
	LIST_FOREACH(loop, &loops, link)
		bb_tel_page_add(&page, loop->number);
	pthread_mutex_unlock(&loops_lock);
	bb_tel_page_end(&page, "loops", d);
	return 0;
}

static void
add_loop(struct rte_tel_data *d, const struct bb_loop *loop)
{
	struct bb_loop_stats s;

	bb_loop_stats(loop, &s);
	bb_tel_dict_uint(d, "loop", loop->number);
	bb_tel_dict_uint(d, "lcore", loop->lcore);
	bb_tel_dict_uint(d, "running", bb_loop_running(loop));
	bb_tel_dict_uint(d, "iterations", s.iterations);
	bb_tel_dict_uint(d, "idle_iterations", s.idle);
	bb_tel_dict_uint(d, "completions", s.completions);
	bb_tel_dict_uint(d, "work", s.work);
	bb_tel_dict_uint(d, "busy_cycles", s.busy_cycles);
	bb_tel_dict_uint(d, "idle_cycles", s.idle_cycles);
	bb_tel_dict_uint(d, "busy_permille",
			 bb_tel_permille(s.busy_cycles, s.busy_cycles + s.idle_cycles));
	bb_tel_dict_uint(d, "tsc_hz", rte_get_tsc_hz());
}

static int
loop_info(const char *cmd, const char *params, struct rte_tel_data *d)
{
	const struct bb_loop *loop;
	struct bb_tel_args args;
	uint64_t number;

	(void)cmd;
	if (!bb_tel_args_init(&args, params) || !bb_tel_arg_uint(&args, UINT32_MAX, &number) ||
	    args.next != NULL)
		return bb_tel_refuse(d, "the only parameter is a number from /bluebell/loop/list");
	pthread_mutex_lock(&loops_lock);
	LIST_FOREACH(loop, &loops, link)
		if (loop->number == number)
			break;
	if (loop != NULL) {
		rte_tel_data_start_dict(d);
		add_loop(d, loop);
	}
	pthread_mutex_unlock(&loops_lock);
	if (loop == NULL)
		bb_tel_refuse(d, "no loop has that number: see /bluebell/loop/list");
	return 0;
}

RTE_INIT(bb_loop_tel_init)
{
	rte_telemetry_register_cmd("/bluebell/loop/list", loop_list,
				   "Numbers of the poll loops. Parameters: [first]");
	rte_telemetry_register_cmd("/bluebell/loop/info", loop_info,
				   "Iterations, completions, busy and idle cycles. "
				   "Parameters: number");
}
