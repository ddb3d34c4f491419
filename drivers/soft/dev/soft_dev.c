/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_lcore.h>

#include "soft_capture.h"
#include "soft_ctl.h"
#include "soft_dm.h"
#include "soft_hooks.h"
#include "soft_link.h"
#include "soft_netif.h"
#include "soft_shm.h"
#include "soft_wire.h"

static int
soft_list(struct bb_dev_info *info, unsigned int n)
{
	if (info != NULL && n > 0) {
		memset(info, 0, sizeof(*info));
		strcpy(info->name, "soft0");
		strcpy(info->driver, "mlx5");
	}
	return 1;
}

/* Parses a device name: soft0 to soft15. Rejects other spellings, such as soft01. */
static int
parse_name(const char *name, uint32_t *index)
{
	char own[BB_DEV_NAME_MAX];
	uint32_t i;

	for (i = 0; i < SOFT_MAX_DEVS; i++) {
		snprintf(own, sizeof(own), "soft%u", i);
		if (strcmp(name, own) == 0) {
			*index = i;
			return 0;
		}
	}
	if (strncmp(name, "soft", 4) == 0)
		SOFT_LOG(ERR, "%s: no such device: the software devices are soft0 to soft%d", name,
			 SOFT_MAX_DEVS - 1);
	return -ENODEV;
}

static bool
opts_equal(const struct soft_opts *a, const struct soft_opts *b)
{
	return a->progress == b->progress && a->lcore == b->lcore && a->nap == b->nap &&
	       a->mmap == b->mmap && a->shuffle == b->shuffle && a->scan == b->scan &&
	       a->seed == b->seed && a->seeded == b->seeded && a->link_ib == b->link_ib &&
	       a->grh_required == b->grh_required && a->log_max_msg == b->log_max_msg &&
	       a->uar_share == b->uar_share && a->no_atomic == b->no_atomic &&
	       a->no_ext_atomic == b->no_ext_atomic && a->no_bf == b->no_bf &&
	       strcmp(a->bf_copy, b->bf_copy) == 0 && a->no_counters == b->no_counters &&
	       a->no_clock == b->no_clock && a->no_compress == b->no_compress &&
	       a->no_cq_moderation == b->no_cq_moderation && a->no_cq_resize == b->no_cq_resize &&
	       a->wire == b->wire && a->no_keep == b->no_keep && a->window == b->window &&
	       a->virtual_time == b->virtual_time && a->flap_up == b->flap_up &&
	       a->flap_down == b->flap_down &&
	       memcmp(&a->tx_fault, &b->tx_fault, sizeof(a->tx_fault)) == 0 &&
	       memcmp(&a->rx_fault, &b->rx_fault, sizeof(a->rx_fault)) == 0 &&
	       strcmp(a->capture, b->capture) == 0 && a->capture_mib == b->capture_mib &&
	       a->no_devx == b->no_devx && a->no_dm == b->no_dm && a->no_mkey == b->no_mkey &&
	       a->no_ksm == b->no_ksm && a->no_umr == b->no_umr &&
	       a->no_umr_atomic == b->no_umr_atomic && a->no_interleaved == b->no_interleaved &&
	       a->no_mw == b->no_mw && a->dm == b->dm && a->no_dmabuf == b->no_dmabuf &&
	       a->dmabuf_memfd == b->dmabuf_memfd && a->no_odp == b->no_odp &&
	       a->no_relaxed == b->no_relaxed && a->no_srq == b->no_srq &&
	       a->log_max_mkey == b->log_max_mkey && soft_opts_defect(a) == soft_opts_defect(b) &&
	       a->fault == b->fault && a->fault_at == b->fault_at &&
	       soft_port_opts_equal(&a->port, &b->port);
}

/* Sets a locally administered MAC address for the device. */
static void
dev_mac(struct soft_dev *dev)
{
	const struct soft_port_opts *o = &dev->opts.port;

	if (o->shm[0] != '\0')
		soft_shm_mac(o->ip[0].addr, dev->mac);
	else
		soft_dev_own_mac(dev);
}

/*
 * Starts the device's network: its port if the options name one, else an address in the network
 * within this process.
 */
static int
net_start(struct soft_dev *dev)
{
	int ret;

	dev_mac(dev);
	dev->active_mtu = SOFT_ACTIVE_MTU;
	__atomic_store_n(&dev->port_down, false, __ATOMIC_RELEASE);
	dev->link = dev->opts.wire ? &soft_link_memory : NULL;
	if (dev->opts.port.name[0] != '\0') {
		dev->link = dev->opts.rx_fault.full_after != 0 ? &soft_link_port_fills
							       : &soft_link_port;
		ret = soft_netif_open(dev, &soft_link_port_rx);
		if (ret != 0)
			return ret;
	}
	soft_dev_fill_gids(dev);
	return 0;
}

/*
 * Makes all numbers of QPs and keys available. Numbers in quarantine stay reserved, even if the
 * device is closed and opened again.
 */
static int
numbers_start(struct soft_dev *dev, const struct soft_opts *opts)
{
	struct soft_ctl *ctl = dev->ctl;
	uint64_t unused;

	if (opts->seeded)
		SOFT_LOG(WARNING,
			 "%s: seed=%" PRIu64
			 " lets peers predict QP numbers and keys: give seed= in tests only",
			 dev->name, opts->seed);
	ctl->random = (struct soft_random){.seeded = opts->seeded, .state = opts->seed};
	if (opts->port.host[0] != '\0' || ctl->qp_draw.first != SOFT_FIRST_QPN)
		soft_draw_move(&ctl->qp_draw, SOFT_FIRST_QPN, 1u << SOFT_LOG_MAX_QP);
	if (opts->seeded) {
		/*
		 * Clear the whole table, because the ring of mkey_draw may have been larger before.
		 */
		memset(ctl->mkey_variant, 0, 1u << SOFT_LOG_MAX_MKEY);
		soft_draw_resize(&ctl->qp_draw, 1u << SOFT_LOG_MAX_QP, 1u << SOFT_LOG_MAX_QP);
	}
	if (opts->seeded || ctl->mkey_draw.max != (1u << opts->log_max_mkey) - ctl->mkey_draw.first)
		soft_draw_resize(&ctl->mkey_draw, SOFT_FEW_MKEYS, 1u << opts->log_max_mkey);
	return soft_random(&ctl->random, &unused);
}

/*
 * Starts the device when its first context opens it: applies the options, and starts the device's
 * thread or lcore if the options select one.
 */
static int
dev_start(struct soft_dev *dev, const struct soft_opts *opts)
{
	int ret;

	if (opts->no_devx) {
		/*
		 * mlx5dv_open_device() with MLX5DV_CONTEXT_FLAGS_DEVX fails in the same way on a
		 * device without DEVX.
		 */
		SOFT_LOG(ERR, "%s: no DEVX: option no_devx is set", dev->name);
		return -EOPNOTSUPP;
	}
	/* Lcores exist only after EAL is initialized. */
	if (opts->progress == SOFT_PROGRESS_LCORE && rte_lcore_count() == 0) {
		SOFT_LOG(ERR,
			 "%s: progress=lcore needs rte_eal_init() first: call it, or give "
			 "progress=inline or progress=thread",
			 dev->name);
		return -EINVAL;
	}
	soft_dev_set_opts(dev, opts);
	dev->odp = !opts->no_odp && soft_paged_works();
	if (!opts->no_odp && !dev->odp)
		SOFT_LOG(NOTICE,
			 "%s: on-demand paging is off: the kernel does not allow "
			 "process_vm_writev() to this process",
			 dev->name);
	ret = numbers_start(dev, opts);
	if (ret != 0)
		return ret;
	__atomic_store_n(&dev->dead, false, __ATOMIC_RELEASE);
	__atomic_store_n(&dev->fault_requests, 0, __ATOMIC_RELAXED);
	memset(&dev->cong, 0, sizeof(dev->cong));
	dev->memory = NULL;
	/* Starts the clock at a value above 0, because a deadline of 0 means "no deadline". */
	soft_time_init();
	dev->virtual_us = 1;
	dev->flap = (struct soft_flap){
		.start = soft_dev_ns(dev),
		.up = opts->flap_up * UINT64_C(1000000),
		.down = opts->flap_down * UINT64_C(1000000),
	};
	ret = net_start(dev);
	if (ret != 0)
		return ret;
	ret = soft_node_start(dev);
	if (ret != 0)
		goto close_netif;
	ret = soft_dm_start(dev);
	if (ret != 0)
		goto stop_pages;
	if (opts->capture[0] != '\0') {
		ret = soft_capture_open(dev, opts->capture, opts->capture_mib, &dev->capture);
		if (ret != 0)
			goto stop_dm;
	}
	if (opts->port.shm[0] != '\0') {
		dev->link = opts->rx_fault.full_after != 0 ? &soft_link_shm_fills : &soft_link_shm;
		ret = soft_shm_start(dev);
		if (ret != 0)
			goto close_capture;
		/* Each process that shares an address has its own range of QPNs. */
		if (dev->shm->slot != SOFT_SHM_ALL)
			soft_draw_move(&dev->ctl->qp_draw, dev->shm->slot << SOFT_LOG_QPNS,
				       (dev->shm->slot + 1) << SOFT_LOG_QPNS);
	}
	if (opts->progress == SOFT_PROGRESS_INLINE)
		return 0;
	dev->engine = soft_engine_create(dev);
	if (dev->engine == NULL) {
		SOFT_LOG(ERR, "%s: cannot open the device: out of memory for its engine",
			 dev->name);
		ret = -ENOMEM;
		goto stop_shm;
	}
	ret = soft_engine_start(dev->engine);
	if (ret != 0)
		goto destroy_engine;
	return 0;

destroy_engine:
	soft_engine_destroy(dev->engine);
	dev->engine = NULL;
stop_shm:
	soft_shm_stop(dev);
close_capture:
	soft_capture_close(dev->capture);
	dev->capture = NULL;
stop_dm:
	soft_dm_stop(dev);
stop_pages:
	soft_node_stop(dev);
close_netif:
	soft_netif_close(dev);
	return ret;
}

static void
dev_stop(struct soft_dev *dev)
{
	uint32_t i;

	if (dev->engine != NULL) {
		soft_engine_stop(dev->engine);
		soft_engine_destroy(dev->engine);
		dev->engine = NULL;
	}
	soft_wire_log_lost(dev);
	for (i = 0; i < SOFT_LOSTS; i++)
		__atomic_store_n(&dev->lost[i], 0, __ATOMIC_RELAXED);
	soft_shm_stop(dev);
	soft_capture_close(dev->capture);
	dev->capture = NULL;
	soft_dm_stop(dev);
	soft_node_stop(dev);
	soft_netif_close(dev);
}

int
soft_open_host(const char *name, const char *args, const struct soft_host *host,
	       enum soft_role role, struct mlx5_ctx **out)
{
	struct soft_opts opts;
	struct soft_dev *dev;
	struct soft_ctx *ctx;
	uint32_t index;
	int ret;

	ret = parse_name(name, &index);
	if (ret != 0)
		return ret;
	dev = soft_dev_get(index);
	ctx = calloc(1, sizeof(*ctx));
	if (dev == NULL || ctx == NULL) {
		SOFT_LOG(ERR, "%s: cannot open the device: out of memory", name);
		free(ctx);
		return -ENOMEM;
	}
	pthread_mutex_lock(&dev->lock);
	/*
	 * If the device is already open, @args may leave out options. Each option that @args names
	 * must have the value that the open device has.
	 */
	if (dev->contexts != 0)
		opts = dev->opts;
	else
		soft_opts_default(&opts);
	ret = soft_opts_parse(name, args, &opts);
	if (ret == 0 && dev->contexts == 0)
		ret = dev_start(dev, &opts);
	else if (ret == 0 && !opts_equal(&opts, &dev->opts)) {
		SOFT_LOG(ERR,
			 "%s: already open with other options than \"%s\": give the same options, "
			 "or open another of soft0 to soft%d",
			 name, args, SOFT_MAX_DEVS - 1);
		ret = -EBUSY;
	}
	if (ret == 0) {
		ctx->pub.cmd = &soft_cmd_if;
		ctx->pub.comp_vectors = SOFT_EQS;
		ctx->pub.dmabuf = !opts.no_dmabuf;
		ctx->pub.cq_resize = true;
		ctx->pub.uar_memory = true;
		strcpy(ctx->pub.bf_copy, opts.bf_copy);
		ctx->pub.target_progress = opts.wire && opts.progress == SOFT_PROGRESS_INLINE;
		strcpy(ctx->pub.name, dev->name);
		ctx->dev = dev;
		ctx->host = host;
		ctx->role = role;
		soft_dev_count_contexts(dev, 1);
		pthread_mutex_lock(&dev->ctl->event_lock);
		LIST_INSERT_HEAD(&dev->ctl->ctxs, ctx, link);
		pthread_mutex_unlock(&dev->ctl->event_lock);
	}
	pthread_mutex_unlock(&dev->lock);
	if (ret != 0) {
		free(ctx);
		return ret;
	}
	*out = &ctx->pub;
	return 0;
}

static int
soft_open(const char *name, const char *args, struct mlx5_ctx **out)
{
	return soft_open_host(name, args, NULL, SOFT_ROLE_USER, out);
}

static int
soft_close(struct mlx5_ctx *ctx_)
{
	struct soft_ctx *ctx = soft_ctx(ctx_);
	struct soft_dev *dev = ctx->dev;

	pthread_mutex_lock(&dev->lock);
	if (ctx->objs != 0 || ctx->umems != 0 || ctx->uars != 0 || ctx->pds != 0 || ctx->mrs != 0 ||
	    ctx->dms != 0) {
		pthread_mutex_unlock(&dev->lock);
		SOFT_LOG(ERR,
			 "%s: cannot close the device: destroy its %u objects, %u umems, %u UARs, "
			 "%u PDs, %u MRs and %u allocations of device memory first",
			 dev->name, ctx->objs, ctx->umems, ctx->uars, ctx->pds, ctx->mrs, ctx->dms);
		return -EBUSY;
	}
	if (ctx->channels != 0) {
		pthread_mutex_unlock(&dev->lock);
		SOFT_LOG(ERR,
			 "%s: cannot close the device: destroy its %u completion channels first",
			 dev->name, ctx->channels);
		return -EBUSY;
	}
	soft_event_remove(ctx, NULL);
	pthread_mutex_lock(&dev->ctl->event_lock);
	LIST_REMOVE(ctx, link);
	pthread_mutex_unlock(&dev->ctl->event_lock);
	if (dev->contexts == 1)
		dev_stop(dev);
	soft_dev_count_contexts(dev, -1);
	pthread_mutex_unlock(&dev->lock);
	free(ctx);
	return 0;
}

static int
soft_query_eqn(struct mlx5_ctx *ctx, uint32_t vector, uint32_t *eqn)
{
	if (vector >= SOFT_EQS) {
		SOFT_LOG(ERR, "%s: invalid completion vector %u (0 to %d)", ctx->name, vector,
			 SOFT_EQS - 1);
		return -EINVAL;
	}
	*eqn = SOFT_FIRST_EQN + vector;
	return 0;
}

static int
soft_clock(struct mlx5_ctx *ctx, uint64_t *now)
{
	if (soft_ctx(ctx)->dev->opts.no_clock)
		return -EOPNOTSUPP;
	*now = rte_rdtsc();
	return 0;
}

const struct mlx5_cmd_if soft_cmd_if = {
	.name = "soft",
	.list = soft_list,
	.open = soft_open,
	.close = soft_close,
	.general = soft_general,
	.obj_create = soft_obj_create,
	.obj_modify = soft_obj_modify,
	.obj_query = soft_obj_query,
	.obj_destroy = soft_obj_destroy,
	.umem_reg = soft_umem_reg,
	.umem_reg_dmabuf = soft_umem_reg_dmabuf,
	.umem_dereg = soft_umem_dereg,
	.uar_alloc = soft_uar_alloc,
	.uar_free = soft_uar_free,
	.dm_alloc = soft_dm_alloc,
	.dm_free = soft_dm_free,
	.dm_write = soft_dm_write,
	.dm_read = soft_dm_read,
	.query_eqn = soft_query_eqn,
	.pd_alloc = soft_pd_alloc,
	.pd_free = soft_pd_free,
	.mr_reg = soft_mr_reg,
	.mr_dereg = soft_mr_dereg,
	.mr_rereg = soft_mr_rereg,
	.mw_alloc = soft_mw_alloc,
	.mw_free = soft_mw_free,
	.port_query = soft_port_query,
	.gid_query = soft_gid_query,
	.pkey_query = soft_pkey_query,
	.av_resolve = soft_av_resolve,
	.av_ready = soft_av_ready,
	.event_subscribe = soft_event_subscribe,
	.event_get = soft_event_get,
	.clock = soft_clock,
	.channel_create = soft_channel_create,
	.channel_destroy = soft_channel_destroy,
	.channel_subscribe = soft_channel_subscribe,
	.channel_get = soft_channel_get,
	.drops = soft_drops,
	.qp_retries = soft_qp_retries,
	.qp1_claim = soft_qp1_claim,
	.progress_of = soft_progress_of,
};

MLX5_CMD_REGISTER(soft_cmd_if)
