/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Opens, resets and polls the device of a guest, and reports its capabilities. */
#define _GNU_SOURCE /* asprintf() */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "front_priv.h"

/*
 * Options that the device needs if a kernel's driver uses it. uar_share=0: each UAR page has one
 * number and one owner.
 */
#define OPTIONS "uar_share=0"
/* Peers in shared memory access the device's memory without its engine, which alone can wait. */
#define NO_ODP ",no_odp"

/*
 * Splits "soft0,key=value,..." into the name of the device and its options. Rejects progress= other
 * than inline, because only the program's own thread may call the functions of struct front_host.
 */
static int
take_name(struct front *f, const char *device_and_opts)
{
	const char *comma = strchr(device_and_opts, ',');
	size_t n = comma != NULL ? (size_t)(comma - device_and_opts) : strlen(device_and_opts);

	if (n == 0 || n >= sizeof(f->device)) {
		FRONT_LOG(ERR,
			  "invalid device \"%s\": give the name of a device, then its options\n",
			  device_and_opts);
		return -EINVAL;
	}
	if (strstr(device_and_opts, ",progress=") != NULL &&
	    strstr(device_and_opts, ",progress=inline") == NULL) {
		FRONT_LOG(ERR,
			  "device \"%s\": the program itself must run the device: leave out "
			  "progress=\n",
			  device_and_opts);
		return -EINVAL;
	}
	memcpy(f->device, device_and_opts, n);
	return asprintf(&f->opts, OPTIONS "%s%s", comma != NULL ? comma : "",
			strstr(device_and_opts, ",shm=") != NULL ? NO_ODP : "") >= 0
		       ? 0
		       : -ENOMEM;
}

/* Subscribes the kernel's context to events of the port. */
static int
watch_port(struct front *f)
{
	static const uint16_t port[] = {BB_PRM_EVENT_PORT_CHANGE};

	return f->cmd->event_subscribe(f->users[0].ctx, NULL, port, 1, 0);
}

/* Empties the GID table, which the guest's driver fills. Has no effect on an InfiniBand port. */
static void
forget_addresses(struct front *f)
{
	uint32_t i;

	for (i = 0; i < FRONT_ADDRESSES; i++)
		(void)front_set_address(f, i, NULL, NULL);
}

/* Opens the contexts that exist without a command: the kernel's, and that of shared objects. */
static int
open_contexts(struct front *f)
{
	int ret = front_user_open(f, &f->users[0], 0);

	if (ret != 0)
		return ret;
	ret = front_user_open(f, &f->shared, FRONT_UID_SHARED);
	if (ret != 0)
		goto close_kernel;
	ret = watch_port(f);
	if (ret == 0) {
		forget_addresses(f);
		return 0;
	}
	(void)front_user_close(f, &f->shared);
close_kernel:
	(void)front_user_close(f, &f->users[0]);
	return ret;
}

/* Closes a user if it is open. Returns 0 or a negative errno (logged). */
static int
close_user(struct front *f, struct front_user *u)
{
	int ret = u->ctx != NULL ? front_user_close(f, u) : 0;

	if (ret != 0)
		FRONT_LOG(ERR, "cannot close user %u, which has %u objects: %s\n", u->uid, u->objs,
			  strerror(-ret));
	return ret;
}

/* Closes the contexts of all users. Returns 0 or a negative errno: some contexts are still open. */
static int
close_contexts(struct front *f)
{
	int ret = close_user(f, &f->shared), rc;
	uint32_t uid;

	for (uid = 0; uid < FRONT_MAX_UIDS; uid++) {
		rc = close_user(f, &f->users[uid]);
		ret = ret != 0 ? ret : rc;
	}
	return ret;
}

int
front_open(const char *device_and_opts, const struct front_host *host, struct front **out)
{
	struct front *f = calloc(1, sizeof(*f));
	int ret;

	if (f == NULL)
		return -ENOMEM;
	f->host = *host;
	f->memory = (struct soft_host){
		.arg = host->arg,
		.window = host->window,
		.unwindow = host->unwindow,
	};
	f->cmd = &soft_cmd_if;
	f->shared_fd = -1;
	f->next_number = 1;
	f->round = 1;
	ret = take_name(f, device_and_opts);
	if (ret == 0)
		ret = open_contexts(f);
	if (ret == 0) {
		*out = f;
		return 0;
	}
	free(f->opts);
	free(f);
	return ret;
}

void
front_stop(struct front *f, bool stop)
{
	f->stopped = stop;
}

/*
 * Destroys all objects of a kind. A key must go before the keys that it refers to, which may be
 * newer. So repeats the pass while it destroys objects. The device limits the depth of references.
 */
static void
destroy_all(struct front *f, enum front_kind kind)
{
	struct front_obj *o, *next;
	uint32_t n;
	int ret;

	do {
		n = f->n_of_kind[kind];
		ret = 0;
		for (o = LIST_FIRST(&f->kinds[kind]); o != NULL; o = next) {
			int rc;

			next = LIST_NEXT(o, of_kind);
			rc = front_obj_destroy(f, o);
			ret = ret != 0 ? ret : rc;
		}
	} while (ret != 0 && f->n_of_kind[kind] < n);
	if (ret != 0)
		FRONT_LOG(ERR, "reset: cannot destroy %u objects of kind %d: %s\n",
			  f->n_of_kind[kind], kind, strerror(-ret));
}

void
front_reset(struct front *f)
{
	uint32_t uid;
	int kind, ret;

	for (kind = 0; kind < FRONT_KINDS; kind++)
		destroy_all(f, kind);
	for (uid = 1; uid < FRONT_MAX_UIDS; uid++)
		(void)close_user(f, &f->users[uid]);
	forget_addresses(f);
	if (!f->dead)
		return;
	/* A failed device works again once all its contexts are closed and opened again. */
	ret = close_contexts(f);
	if (ret == 0)
		ret = open_contexts(f);
	if (ret == 0 && f->eth != NULL)
		ret = f->eth_reopen(f->eth);
	if (ret != 0)
		FRONT_LOG(ERR, "reset: cannot open %s again: %s\n", f->device, strerror(-ret));
	f->dead = ret != 0;
}

void
front_close(struct front *f)
{
	if (f == NULL)
		return;
	front_reset(f);
	if (f->eth != NULL)
		f->eth_close(f->eth);
	(void)close_contexts(f);
	front_shared_close(f);
	free(f->opts);
	free(f);
}

bool
front_left(const struct front *f)
{
	const struct front_obj *o;

	if (f->stopped)
		return false;
	LIST_FOREACH(o, &f->used_uars, used)
		if (o->progress != NULL && soft_progress_left(o->uar))
			return true;
	return false;
}

/*
 * Runs the QPs of the register pages, for at most FRONT_TURN_NS plus one turn of a page. Each page
 * runs once in a round. If the time ends before the round, the next call continues the round.
 * Returns true if QPs have work left: a page may give work to a page that has run before.
 */
static bool
run_pages(struct front *f)
{
	uint64_t now = front_now(), end = now + FRONT_TURN_NS;
	struct front_obj *o;

	LIST_FOREACH(o, &f->used_uars, used) {
		if (o->round == f->round)
			continue;
		if (now >= end)
			return true;
		o->round = f->round;
		if (front_shared_rung(f, o))
			f->busy_until = now + FRONT_BUSY_NS;
		if (o->progress != NULL)
			o->progress(o->progress_arg);
		now = front_now();
	}
	f->round++;
	return front_left(f);
}

int
front_poll(struct front *f)
{
	bool left, waits;
	int ms = -1;

	if (f->stopped)
		return f->eth != NULL ? f->eth_poll(f->eth) : -1;
	left = run_pages(f);
	/* A link that is full now may have room at the next poll. */
	if (left)
		f->busy_until = front_now() + FRONT_BUSY_NS;
	if (f->eth != NULL)
		ms = f->eth_poll(f->eth);
	waits = front_events(f);
	if (left || ms == 0 || front_now() < f->busy_until)
		return 0;
	return LIST_EMPTY(&f->kinds[FRONT_QP]) && !waits ? ms : FRONT_POLL_MS;
}

int
front_caps(struct front *f, uint16_t type, bool current, uint8_t out[256])
{
	uint8_t in[BB_PRM_SZ_QUERY_HCA_CAP_IN] = {0}, box[BB_PRM_SZ_QUERY_HCA_CAP_OUT];

	memset(out, 0, 256);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_HCA_CAP);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, (uint32_t)type << 1 | current);
	if (f->users[0].ctx == NULL ||
	    f->cmd->general(f->users[0].ctx, in, sizeof(in), box, sizeof(box)) != 0)
		return -ENOENT;
	memcpy(out, box + BB_PRM_HCA_CAP_OUT_CAPS, 256);
	if (type != BB_PRM_CAP_GENERAL)
		return 0;
	bb_prm_set(out, BB_PRM_HCA_RC, 1);
	bb_prm_set(out, BB_PRM_HCA_UC, 1);
	bb_prm_set(out, BB_PRM_HCA_UD, 1);
	bb_prm_set(out, BB_PRM_HCA_COMPACT_ADDRESS_VECTOR, 1);
	/*
	 * The probe of mlx5_ib makes XRC domains and an XRC SRQ as placeholders, and fails without
	 * them (mlx5_ib_dev_res_init(), Linux 6.1).
	 */
	bb_prm_set(out, BB_PRM_HCA_XRC, 1);
	bb_prm_set(out, BB_PRM_HCA_LOG_MAX_XRCD, FRONT_LOG_MAX_NUMBERS);
	bb_prm_set(out, BB_PRM_HCA_LOG_MAX_SRQ, FRONT_LOG_MAX_NUMBERS);
	bb_prm_set(out, BB_PRM_HCA_LOG_MAX_TRANSPORT_DOMAIN, FRONT_LOG_MAX_NUMBERS);
	/*
	 * With this bit the kernel registers memory by commands, never by UMR. On-demand paging
	 * needs UMRs (Linux 6.1, umr.h, mlx5r_umr_can_load_pas()).
	 */
	bb_prm_set(out, BB_PRM_HCA_UMR_MODIFY_ENTITY_SIZE_DISABLED,
		   !bb_prm_get(out, BB_PRM_HCA_PG));
	return 0;
}

uint8_t *
front_dm(struct front *f, uint64_t off, uint32_t len)
{
	RTE_BUILD_BUG_ON(SOFT_DM_BAR != (uint64_t)FRONT_DM_FIRST * 4096);
	return f->users[0].ctx == NULL ? NULL : soft_dm_at(f->users[0].ctx, off, len);
}

int
front_set_address(struct front *f, uint32_t index, const struct bb_gid *gid, const uint8_t mac[6])
{
	struct mlx5_ctx *ctx = f->users[0].ctx;
	int ret;

	if (ctx == NULL)
		return -EIO;
	ret = soft_frames_address_set(ctx, index, gid, mac);
	return ret != -EOPNOTSUPP ? ret : soft_roce_address_set(ctx, index, gid, mac);
}
