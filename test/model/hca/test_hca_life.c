/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The life of the function, as a driver sees it: resets, a client that dies, a fatal error, a port
 * that goes down. Queues run on the software device, and there is traffic in each test.
 */
#include <errno.h>
#include <unistd.h>

#include <rte_common.h>

#include "front_guest.h"
#include "hca_rig.h"
#include "hca_time.h"
#include "mlx5_cmd.h"

#define TIMES    50
#define POSTS    16
#define DEVCTL   0x68u /* device control register, in configuration space */
#define FLR      0xa810u
#define EVENTS   8u /* log2 of the entries of the EQ */
#define EQ_BYTES 64u
#define EVENT_NS 30000000000u /* maximum wait for an event */

struct life {
	struct rig rig;
	struct g_guest g;
	struct g_owner owner;
	struct g_path self; /* path to the device itself, valid on an Ethernet port */
	uint32_t eqn, ci;
};

/* Two functions of one process, each with a guest of its own. */
struct two {
	struct life a, b;
};

static struct two *polled; /* the functions that run in each poll; NULL: only the caller's */

static void
via_command(void *arg, const void *in, uint32_t inlen, void *out, uint32_t outlen)
{
	(void)rig_exec(&((struct life *)arg)->rig, in, inlen, out, outlen);
}

static void
via_doorbell(void *arg, uint32_t uar, uint32_t off, const void *data, uint32_t len)
{
	rig_store(&((struct life *)arg)->rig, (uint64_t)uar * PAGE + off, data, len);
}

static void
via_poll(void *arg)
{
	(void)hca_poll(&((struct life *)arg)->rig.h);
	if (polled != NULL) {
		(void)hca_poll(&polled->a.rig.h);
		(void)hca_poll(&polled->b.rig.h);
	}
}

static const struct g_via via = {via_command, via_doorbell, via_poll};

/* Gives the port an address, as Linux's driver does: MAC 02:..:@number, and the GID made of it. */
static void
set_address(struct life *l, uint8_t number)
{
	uint8_t *a = box(&l->g, BB_PRM_OP_SET_ROCE_ADDRESS, 0, BB_PRM_SZ_SET_ROCE_ADDRESS_IN);
	const uint8_t gid[16] = {0xfe, 0x80, [8] = 0, 0, 0, 0xff, 0xfe, 0, 0, number};

	l->self = (struct g_path){.index = 3, .mac = {2, 0, 0, 0, 0, number}};
	memcpy(l->self.gid, gid, sizeof(gid));
	bb_prm_set(a, BB_PRM_SET_ROCE_ADDRESS_ROCE_ADDRESS_INDEX, l->self.index);
	a = bb_prm_sub(a, BB_PRM_SET_ROCE_ADDRESS_ROCE_ADDRESS);
	memcpy(bb_prm_sub(a, BB_PRM_ROCE_ADDR_SOURCE_L3_ADDRESS), gid, sizeof(gid));
	memcpy(a + BB_PRM_ROCE_ADDR_SOURCE_MAC_47_32.byte + 2, l->self.mac, 6);
	bb_prm_set(a, BB_PRM_ROCE_ADDR_ROCE_VERSION, 2);
	assert_status(&l->g, OK);
	l->g.path = &l->self;
}

/* Loads the driver: the function up to INIT_HCA, an EQ for all events, and a user with a QP. */
static void
load(struct life *l)
{
	memset(l->rig.ram, 0, RAM_SIZE);
	memset(&l->g, 0, sizeof(l->g));
	l->g.f = l->rig.h.front;
	l->g.ram = (uint8_t *)((uintptr_t)l->rig.ram - (uintptr_t)RAM_ADDR);
	l->g.via = &via;
	l->g.via_arg = l;
	l->g.bell = 0x800;
	rig_init_hca(&l->rig);
	l->eqn = rig_eq(&l->rig, EVENTS, 0, ~UINT64_C(0), EQ_ADDR);
	l->ci = 0;
	l->g.eqn = l->eqn;
	if (l->rig.h.o.eth)
		set_address(l, (uint8_t)(1 + (l->rig.h.o.device[4] - '0')));
	g_owner_open(&l->g, &l->owner);
}

static void
start(struct life *l, const char *device)
{
	assert_int_equal(rig_open(&l->rig, device), 0);
	assert_int_equal(rig_version(&l->rig), 0);
	assert_int_equal(rig_map(&l->rig, RAM_ADDR, RAM_SIZE, 0), 0);
	load(l);
}

/* The client dies and another connects to the same device. */
static void
connect_again(struct life *l)
{
	rig_next_client(&l->rig);
	assert_int_equal(rig_version(&l->rig), 0);
	assert_int_equal(rig_map(&l->rig, RAM_ADDR, RAM_SIZE, 0), 0);
}

static void
assert_no_windows(struct life *l)
{
	uint32_t i;

	for (i = 0; i < GUEST_WINDOW_LISTS; i++)
		assert_null(l->rig.h.guest.windows[i]);
	assert_int_equal(l->rig.h.guest.runs, 0);
}

/* Posts writes and executes a part of them. */
static void
traffic(struct life *l)
{
	int i;

	for (i = 0; i < POSTS; i++)
		g_post_write(&l->g, &l->owner);
	g_poll(&l->g);
}

static void
assert_write_moves_data(struct life *l)
{
	uint8_t *from = g_at(&l->g, &l->owner.from, G_VA_FROM % PAGE);

	*from = (uint8_t)(*from + 1);
	g_post_write(&l->g, &l->owner);
	assert_int_equal(g_cqe(&l->g, &l->owner.cq)[63] >> 4, 0);
	assert_int_equal(*g_at(&l->g, &l->owner.to, G_VA_TO % PAGE), *from);
}

/* Returns the next entry of the EQ; polls until there is one. */
static const uint8_t *
next_event(struct life *l)
{
	const uint8_t *e = rig_ram(&l->rig, EQ_ADDR + (l->ci % (1u << EVENTS)) * EQ_BYTES);
	const uint64_t end = hca_now() + EVENT_NS;

	while ((e[63] & 1u) != (l->ci >> EVENTS & 1) && hca_now() < end)
		g_poll(&l->g);
	assert_int_equal(e[63] & 1u, l->ci >> EVENTS & 1);
	l->ci++;
	rig_set_reg(&l->rig, RIG_UAR * PAGE + 0x48, l->eqn << 24 | (l->ci & 0xffffff));
	return e;
}

/* Returns the next entry of @type. */
static const uint8_t *
event_of(struct life *l, uint8_t type)
{
	const uint8_t *e;

	do
		e = next_event(l);
	while (e[1] != type);
	return e;
}

#define T(device_, name_)                                                                          \
	TEST_ON(NULL, NULL, struct life, start(f, device_), rig_close(&f->rig), name_)

T("soft0,link=ib", test_flr_under_traffic_leaves_a_device_that_loads_again)
{
	int i;

	for (i = 0; i < TIMES; i++) {
		assert_write_moves_data(f);
		traffic(f);
		rig_write32(&f->rig, VFU_CONFIG, DEVCTL, FLR);
		assert_no_windows(f);
		load(f);
	}
	assert_write_moves_data(f);
}

T("soft0,link=ib", test_teardown_under_traffic_leaves_a_device_that_loads_again)
{
	int i;

	for (i = 0; i < TIMES; i++) {
		traffic(f);
		assert_int_equal(rig_short(&f->rig, BB_PRM_OP_TEARDOWN_HCA, 0, 0, 0, NULL), 0);
		assert_no_windows(f);
		assert_int_equal(rig_short(&f->rig, BB_PRM_OP_DISABLE_HCA, 0, 0, 0, NULL), 0);
		rig_write32(&f->rig, VFU_CONFIG, DEVCTL, FLR); /* else pages remain */
		load(f);
	}
	assert_write_moves_data(f);
}

T("soft0,link=ib", test_client_that_dies_under_traffic_leaves_a_device_that_loads_again)
{
	int i;

	for (i = 0; i < TIMES; i++) {
		traffic(f);
		connect_again(f);
		assert_no_windows(f);
		load(f);
	}
	assert_write_moves_data(f);
}

T("soft0,link=ib", test_ram_that_vanishes_under_traffic_is_no_access_outside)
{
	int i;

	for (i = 0; i < TIMES; i++) {
		traffic(f);
		assert_int_equal(rig_unmap(&f->rig, RAM_ADDR, RAM_SIZE), 0);
		g_post_write(&f->g, &f->owner);
		g_poll(&f->g);
		g_poll(&f->g);
		assert_int_equal(rig_map(&f->rig, RAM_ADDR, RAM_SIZE, 0), 0);
		rig_write32(&f->rig, VFU_CONFIG, DEVCTL, FLR);
		assert_no_windows(f);
		load(f);
	}
	assert_write_moves_data(f);
}

/* Linux clears the bit before another kernel starts, whose memory the device must not touch. */
T("soft0,link=ib", test_nothing_reaches_memory_while_the_function_is_no_bus_master)
{
	uint8_t *to = g_at(&f->g, &f->owner.to, G_VA_TO % PAGE);
	uint8_t *from = g_at(&f->g, &f->owner.from, G_VA_FROM % PAGE);
	uint8_t *copy = test_calloc(1, RAM_SIZE);
	int i;

	assert_write_moves_data(f);
	*from = 0x5c;
	*to = 0;
	/* In execution, and posted meanwhile: a doorbell, a CQ's doorbell and a command. */
	g_post_write(&f->g, &f->owner);
	rig_write32(&f->rig, VFU_CONFIG, 4, 2);
	g_post_write(&f->g, &f->owner);
	memcpy(copy, f->rig.ram, RAM_SIZE);
	for (i = 0; i < 1000; i++)
		g_poll(&f->g);
	assert_memory_equal(copy, f->rig.ram, RAM_SIZE);
	/* Both WRITEs go on. */
	rig_write32(&f->rig, VFU_CONFIG, 4, 6);
	assert_int_equal(g_cqe(&f->g, &f->owner.cq)[63] >> 4, 0);
	assert_int_equal(g_cqe(&f->g, &f->owner.cq)[63] >> 4, 0);
	assert_int_equal(*to, 0x5c);
	test_free(copy);
}

/* The device fails at its third request. The driver loads as Linux's recovery does. */
T("soft0,link=ib,fault=dev_fatal:3", test_driver_recovers_from_a_fatal_error)
{
	uint32_t counter, i;
	int times;

	for (times = 0; times < 3; times++) {
		assert_write_moves_data(f);
		traffic(f);
		for (i = 0; i < 1000 && f->rig.h.health == HCA_HEALTH_OK; i++)
			g_poll(&f->g);
		assert_int_equal(rig_reg(&f->rig, 0x23c) >> 16 & 0xff, HCA_HEALTH_HW);
		assert_int_equal(rig_reg(&f->rig, 0x14) >> 8 & 7, HCA_NIC_DISABLED);
		counter = rig_reg(&f->rig, 0x1010);
		g_post_write(&f->g, &f->owner);
		rig_set_reg(&f->rig, 0x18, 1);
		g_poll(&f->g);
		usleep(11000);
		assert_int_not_equal(rig_reg(&f->rig, 0x1010), counter);
		load(f);
		assert_int_equal(rig_reg(&f->rig, 0x1010) >> 24, 0);
	}
	assert_write_moves_data(f);
}

/* The port goes down at the second request, and up again after three lost ones. */
T("soft0,link=ib,fault=port_down:2", test_port_events_arrive_in_order_with_the_port_number)
{
	const uint8_t *e;

	assert_write_moves_data(f);
	g_post_write(&f->g, &f->owner);
	e = event_of(f, BB_PRM_EVENT_PORT_CHANGE);
	assert_int_equal(e[3], BB_PRM_PORT_CHANGE_DOWN);
	assert_int_equal(e[32 + 8] >> 4, 1);
	e = event_of(f, BB_PRM_EVENT_PORT_CHANGE);
	assert_int_equal(e[3], BB_PRM_PORT_CHANGE_ACTIVE);
	assert_int_equal(e[32 + 8] >> 4, 1);
	assert_int_equal(g_cqe(&f->g, &f->owner.cq)[63] >> 4, 0);
}

/* By this command Linux's mlx5e finds out whether its netdev has a carrier, after each port event.
 */
static uint32_t
vport_state(struct life *l)
{
	uint8_t out[16];

	assert_int_equal(rig_short(&l->rig, BB_PRM_OP_QUERY_VPORT_STATE, 0, 0, 0, out), 0);
	return bb_prm_get(out, BB_PRM_VPORT_STATE_OUT_STATE);
}

T("soft0,link=eth,fault=port_down:2", test_vport_has_the_state_of_the_port)
{
	assert_write_moves_data(f);
	assert_int_equal(vport_state(f), 1);
	g_post_write(&f->g, &f->owner);
	assert_int_equal(event_of(f, BB_PRM_EVENT_PORT_CHANGE)[3], BB_PRM_PORT_CHANGE_DOWN);
	assert_int_equal(vport_state(f), 0);
	assert_int_equal(event_of(f, BB_PRM_EVENT_PORT_CHANGE)[3], BB_PRM_PORT_CHANGE_ACTIVE);
	assert_int_equal(vport_state(f), 1);
	assert_int_equal(g_cqe(&f->g, &f->owner.cq)[63] >> 4, 0);
}

static void
start_two(struct two *t, const char *a, const char *b)
{
	polled = NULL;
	start(&t->a, a);
	start(&t->b, b);
	polled = t;
}

static void
end_two(struct two *t)
{
	polled = NULL;
	rig_close(&t->a.rig);
	rig_close(&t->b.rig);
}

/* Makes another QP of the function's owner, and returns the owner with this QP. */
static struct g_owner
new_qp(struct life *l)
{
	struct g_owner o = l->owner;

	memset(&o.qp, 0, sizeof(o.qp));
	g_qp(&l->g, &o.qp, o.uid, BB_PRM_QP_ST_RC, o.pd, o.uar, o.cq.cqn);
	return o;
}

/* Writes from the memory of the guest at @a to that of the guest at @b. */
static void
write_across(struct two *t, const struct g_path *to_a, const struct g_path *to_b)
{
	struct g_owner a = new_qp(&t->a), b = new_qp(&t->b);
	uint8_t *from = g_at(&t->a.g, &a.from, G_VA_FROM % PAGE);

	t->a.g.path = to_b;
	t->b.g.path = to_a;
	g_qp_up(&t->a.g, &a.qp, a.uid, a.pd, a.cq.cqn, b.qp.qpn);
	g_qp_up(&t->b.g, &b.qp, b.uid, b.pd, b.cq.cqn, a.qp.qpn);
	a.to_key = b.to_key;
	*from = 0x77;
	g_post_write(&t->a.g, &a);
	assert_int_equal(g_cqe(&t->a.g, &a.cq)[63] >> 4, 0);
	assert_int_equal(*g_at(&t->b.g, &b.to, G_VA_TO % PAGE), 0x77);
	assert_int_equal(*g_at(&t->a.g, &t->a.owner.to, G_VA_TO % PAGE), 0);
}

static uint16_t
lid_of(struct life *l)
{
	struct mlx5_ctx *ctx = front_ctx(l->rig.h.front);
	struct mlx5_port p;

	assert_int_equal(ctx->cmd->port_query(ctx, 1, &p), 0);
	return (uint16_t)p.lid;
}

#define TWO(a_, b_, name_) TEST_ON(NULL, NULL, struct two, start_two(f, a_, b_), end_two(f), name_)

TWO("soft0,link=ib", "soft1,link=ib", test_guests_of_two_functions_reach_each_other_by_lid)
{
	const struct g_path a = {.lid = lid_of(&f->a)}, b = {.lid = lid_of(&f->b)};

	assert_int_not_equal(a.lid, b.lid);
	write_across(f, &a, &b);
}

TWO("soft0,link=eth", "soft1,link=eth", test_guests_of_two_functions_reach_each_other_by_gid)
{
	const struct g_path to_a = f->a.self, to_b = f->b.self;

	write_across(f, &to_a, &to_b);
}

T("soft0,link=eth", test_gids_are_those_that_the_driver_sets_until_a_reset)
{
	struct mlx5_ctx *ctx = front_ctx(f->rig.h.front);
	struct bb_gid gid;
	uint32_t i;

	assert_write_moves_data(f);
	for (i = 0; i < FRONT_ADDRESSES; i++)
		assert_int_equal(ctx->cmd->gid_query(ctx, 1, i, &gid), i == 3 ? 0 : -ENOENT);
	rig_write32(&f->rig, VFU_CONFIG, DEVCTL, FLR);
	for (i = 0; i < FRONT_ADDRESSES; i++)
		assert_int_equal(ctx->cmd->gid_query(ctx, 1, i, &gid), -ENOENT);
}

/* Executes MANAGE_PAGES as Linux's driver does after a page request. Returns the pages moved. */
static uint32_t
serve_pages(struct life *l, int32_t n)
{
	static uint8_t in[16 + 8 * 256], out[16 + 8 * 256];
	uint32_t i, count = (uint32_t)(n < 0 ? -n : n);

	assert_in_range(count, 1, 256);
	memset(in, 0, sizeof(in));
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_MANAGE_PAGES);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, n < 0 ? 2 : 1);
	bb_prm_set(in, BB_PRM_MANAGE_PAGES_INPUT_NUM_ENTRIES, count);
	for (i = 0; i < count; i++)
		bb_prm_set64(in + 16 + 8 * i, BB_PRM_F(0, 0, 64), FREE_ADDR);
	assert_int_equal(rig_exec(&l->rig, in, sizeof(in), out, sizeof(out)), 0);
	return n < 0 ? bb_prm_get(out, BB_PRM_MANAGE_PAGES_OUT_OUTPUT_NUM_ENTRIES) : count;
}

static int32_t
page_request(struct life *l)
{
	const uint8_t *data =
		bb_prm_csub(event_of(l, BB_PRM_EVENT_PAGE_REQUEST), BB_PRM_EQE_EVENT_DATA);

	return (int32_t)bb_prm_get(data, BB_PRM_PAGE_EVENT_NUM_PAGES);
}

T("soft0,link=ib", test_pages_follow_the_objects_of_the_guest)
{
	const uint32_t start = FW_BOOT_PAGES + FW_INIT_PAGES, next = f->g.next;
	uint32_t qpn[200], i;
	int32_t n;

	assert_int_equal(serve_pages(f, page_request(f)), FW_BLOCK_PAGES);
	for (i = 0; i < RTE_DIM(qpn); i++) {
		f->g.next = next; /* no QP runs, so all have the same memory */
		qpn[i] = new_qp(f).qp.qpn;
		if (f->rig.h.fw.page_request)
			(void)serve_pages(f, page_request(f));
	}
	/* 201 QPs of 1 KiB, a CQ and two keys. */
	assert_int_equal(f->rig.h.fw.n_pages, start + 64);
	for (i = 0; i < RTE_DIM(qpn); i++) {
		assert_int_equal(run_on(&f->g, BB_PRM_OP_DESTROY_QP, f->owner.uid, qpn[i]), 0);
		if (!f->rig.h.fw.page_request)
			continue;
		n = page_request(f);
		assert_true(n < 0);
		assert_int_equal(serve_pages(f, n), -n);
	}
	assert_in_range(f->rig.h.fw.n_pages, start + FW_BLOCK_PAGES, start + 2 * FW_BLOCK_PAGES);
	assert_write_moves_data(f);
}

TEST_MAIN(0)
