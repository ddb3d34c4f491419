/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Creates the device, queues, connections and memory. They are created once and used by every test.
 */

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_malloc.h>

#include "remote.h"
#include "stall.h"

#define POOL_BYTES   (32u << 20) /* bytes of slots per side, unless one message needs more */
#define LINK_SECONDS 30 /* seconds to wait for the link to the target's process to come up */
#define VERIFY_SLOTS 4  /* with --verify, memory has this many slots per operation of --depth */

static void
error(const char *what, int rc)
{
	say("%s failed: %s", what, strerror(-rc));
}

static int
open_device(struct tester *t)
{
	struct bb_dev_info info[16];
	int rc, n, i;

	rc = bb_dev_open(t->o.device, &t->dev);
	if (rc != 0) {
		say("--device %s: cannot be opened: %s", t->o.device, strerror(-rc));
		if (rc != -ENODEV && rc != -EINVAL)
			return -EXIT_FAILED;
		n = bb_dev_list(info, RTE_DIM(info));
		fprintf(stderr, "testrdma: the devices are:");
		for (i = 0; i < n && i < (int)RTE_DIM(info); i++)
			fprintf(stderr, " %s", info[i].name);
		fprintf(stderr, "\n");
		return -EXIT_USAGE;
	}
	rc = bb_dev_query(t->dev, &t->attr);
	if (rc != 0) {
		error("querying the device", rc);
		return -EXIT_FAILED;
	}
	return 0;
}

static int
limit(const char *option, uint64_t value, uint64_t max)
{
	if (value <= max)
		return 0;
	say("--%s %" PRIu64 ": the device allows %" PRIu64 " at most", option, value, max);
	return -EXIT_USAGE;
}

/* Checks the options against the limits of the device. */
int
tester_check(const struct tester *t)
{
	const struct options *o = &t->o;
	uint64_t max_mr = t->attr.max_mr_size, max_size = t->attr.max_msg_size;
	uint32_t i;
	int rc = 0;

	if (max_mr < max_size)
		max_size = max_mr;
	for (i = 0; i < o->nsizes && rc == 0; i++)
		rc = limit("size", o->sizes[i], max_size);
	if (rc == 0)
		rc = limit("depth", o->depth,
			   t->attr.max_qp_wr - (o->connect != NULL ? ORDERS_MAX : 0));
	if (rc == 0)
		rc = limit("sgl", o->sgl, RTE_MIN(t->attr.max_sge, t->attr.max_recv_sge));
	if (rc == 0)
		rc = limit("inline", o->max_inline, t->attr.max_inline);
	if (rc == 0)
		rc = limit("qps", o->qps, t->attr.max_qp / 2);
	if (rc == 0 && options_two_way(o))
		rc = limit("qps", o->qps, MAX_QPS / 2);
	if (rc == 0 && (uint64_t)o->qps * (options_two_way(o) ? 2 * o->depth : o->depth + 1) >
			       t->attr.max_cqe) {
		say("--qps %u times --depth %u is more than the %u CQEs of a CQ of this device; "
		    "give less of one",
		    o->qps, o->depth, t->attr.max_cqe);
		rc = -EXIT_USAGE;
	}
	for (i = 0; i < o->nops && rc == 0; i++) {
		if ((o->ops[i]->atomic || (o->ops[i]->pick != NULL && options_mix_atomic(o))) &&
		    !t->attr.atomics) {
			say("--op %s: this device has no atomics", o->ops[i]->name);
			rc = -EXIT_USAGE;
		}
	}
	return rc;
}

/* Picks the first active port, and its first RoCE v2 GID if there is one. */
static int
pick_path(struct tester *t, struct bb_path *path)
{
	uint64_t end = rte_rdtsc() + LINK_SECONDS * t->tsc_hz;
	struct bb_port_attr port;
	struct bb_gid gid;
	uint32_t i;

	path->port = 0;
	/* Waits for a link that comes up only when the peer exists, such as that of net_memif. */
	do {
		for (i = 1; i <= t->attr.ports && path->port == 0; i++)
			if (bb_port_query(t->dev, i, &port) == 0 && port.state == BB_PORT_ACTIVE)
				path->port = (uint8_t)i;
		bb_dev_progress(t->dev);
	} while (path->port == 0 && t->o.connect != NULL && !tester_stopping(t) &&
		 rte_rdtsc() < end);
	if (path->port == 0) {
		say("no port of %s is active: check the link", bb_dev_name(t->dev));
		return -EXIT_FAILED;
	}
	path->sgid_index = 0;
	if (port.link_layer != BB_LINK_ETHERNET)
		return 0;
	for (i = 0; i < port.gids && i <= UINT8_MAX; i++) {
		if (bb_gid_query(t->dev, path->port, i, &gid) == 0 && gid.type == BB_GID_ROCE_V2) {
			path->sgid_index = (uint8_t)i;
			return 0;
		}
	}
	say("port %u of %s has no RoCE v2 GID: give its netdev an address", path->port,
	    bb_dev_name(t->dev));
	return -EXIT_FAILED;
}

static int
create_cqs(struct tester *t, uint32_t rq_depth)
{
	uint32_t orders = t->o.connect != NULL ? ORDERS_MAX : 0;
	bool two_way = options_two_way(&t->o);
	struct bb_cq_attr attr;
	int rc;

	bb_cq_attr_init(&attr);
	attr.depth = t->o.qps * (t->o.depth * (two_way ? 2 : 1) + orders);
	attr.lcore = t->lcore;
	rc = bb_cq_create(t->dev, &attr, &t->scq);
	if (rc != 0) {
		error("creating the CQ of sends", rc);
		return -EXIT_FAILED;
	}
	attr.depth = t->o.qps * (two_way ? RTE_MAX(2 * rq_depth, 1u) : rq_depth + 1);
	rc = bb_cq_create(t->dev, &attr, &t->rcq);
	if (rc != 0) {
		error("creating the CQ of receives", rc);
		return -EXIT_FAILED;
	}
	return 0;
}

static int
create_pair(struct tester *t, struct pair *p, const struct bb_path *path, uint32_t rq_depth)
{
	struct pair *twin = p->twin;
	struct bb_qp_init_attr init;
	struct bb_qp_addr here, there;
	struct bb_qp_attr attr;
	int rc;

	bb_qp_init_attr_init(&init);
	init.send_cq = t->scq;
	init.recv_cq = twin != NULL ? t->rcq : t->scq;
	init.sq_depth = t->o.depth + (t->o.connect != NULL ? ORDERS_MAX : 0);
	init.rq_depth = twin != NULL ? rq_depth : 0;
	init.max_sge = t->o.sgl;
	init.max_recv_sge = t->o.sgl;
	init.max_inline = t->o.max_inline;
	init.signal_every = t->o.signal_every;
	init.db_mode = t->o.blueflame ? BB_DB_BLUEFLAME : BB_DB_DOORBELL;
	rc = bb_qp_create(t->pd, &init, &p->qp);
	if (rc != 0)
		return rc;
	p->qp->user = p;
	if (twin != NULL)
		twin->peer = p->qp;
	if (t->o.connect != NULL)
		return 0;
	init.recv_cq = t->rcq;
	init.rq_depth = rq_depth;
	if (twin == NULL) {
		init.send_cq = t->rcq;
		init.sq_depth = 1;
		init.signal_every = 1;
	}
	rc = bb_qp_create(t->pd, &init, &p->peer);
	if (rc != 0)
		return rc;
	p->peer->user = twin != NULL ? twin : p;
	if (twin != NULL)
		twin->qp = p->peer;

	rc = bb_qp_addr(p->qp, path->port, path->sgid_index, &here);
	if (rc == 0)
		rc = bb_qp_addr(p->peer, path->port, path->sgid_index, &there);
	if (rc != 0)
		return rc;
	bb_qp_attr_init(&attr);
	attr.path.port = path->port;
	attr.path.sgid_index = path->sgid_index;
	attr.max_rd_atomic = (uint8_t)RTE_MIN(attr.max_rd_atomic, t->attr.max_rd_atomic);
	attr.max_dest_rd_atomic =
		(uint8_t)RTE_MIN(attr.max_dest_rd_atomic, t->attr.max_dest_rd_atomic);
	attr.access = twin != NULL ? BB_ACCESS_REMOTE_WRITE : 0;
	rc = bb_qp_connect(p->qp, &here, &there, &attr);
	if (rc != 0)
		return rc;
	attr.access = BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ;
	if (t->attr.atomics)
		attr.access |= BB_ACCESS_REMOTE_ATOMIC;
	return bb_qp_connect(p->peer, &there, &here, &attr);
}

/*
 * Initializes pair @i, which has no queues yet. If the run has two-way modes, also initializes the
 * pair of the reverse direction.
 */
static void
pair_init(struct tester *t, uint32_t i)
{
	struct pair *p = &t->pairs[i];

	*p = (struct pair){
		.t = t, .index = i, .initiator = &t->local, .target = &t->remote, .in = p};
	if (t->twins == NULL)
		return;
	p->twin = p->in = &t->twins[i];
	t->twins[i] = (struct pair){.t = t,
				    .index = t->o.qps + i,
				    .initiator = &t->remote,
				    .target = &t->local,
				    .twin = p,
				    .in = p,
				    .reverse = true};
}

static int
create_pairs(struct tester *t)
{
	bool two_way = options_two_way(&t->o);
	uint32_t i, rq_depth = 0;
	struct bb_path path;
	int rc;

	for (i = 0; i < t->o.nops; i++)
		if (t->o.ops[i]->recv)
			rq_depth = t->o.depth;
	rc = pick_path(t, &path);
	if (rc == 0)
		rc = create_cqs(t, rq_depth);
	if (rc != 0)
		return rc;
	t->pairs = rte_zmalloc("pairs", t->o.qps * sizeof(*t->pairs), 64);
	t->flows = rte_zmalloc("flows", 2 * t->o.qps * sizeof(struct pair *), 64);
	if (two_way)
		t->twins = rte_zmalloc("twins", t->o.qps * sizeof(*t->twins), 64);
	if (t->pairs == NULL || t->flows == NULL || (two_way && t->twins == NULL)) {
		error("pairs", -ENOMEM);
		return -EXIT_FAILED;
	}
	for (i = 0; i < t->o.qps; i++) {
		pair_init(t, i);
		t->npairs++;
		rc = create_pair(t, &t->pairs[i], &path, rq_depth);
		if (rc != 0) {
			say("pair %u of %u was not connected: %s; the lines above say why", i + 1,
			    t->o.qps, strerror(-rc));
			return -EXIT_FAILED;
		}
	}
	return 0;
}

/* Returns the number of message slots that the operations between two checks need per pair. */
static uint64_t
slots_needed(const struct options *o)
{
	return (uint64_t)o->depth * (o->verify ? VERIFY_SLOTS : 1);
}

static uint32_t
stride_of(const struct options *o, uint32_t size)
{
	struct layout lay;

	layout_make(&lay, size, o->sgl, o->offset);
	return lay.stride;
}

/* Computes the layouts of the initiator's and the target's slots for a test of @e and @size. */
void
test_layouts(struct tester *t, const struct engine *e, uint32_t size)
{
	bool one_piece = e->atomic || (e->two_way && !e->recv_data);

	layout_make(&t->local.lay, size, one_piece ? 1 : t->o.sgl, t->o.offset);
	layout_make(&t->remote.lay, size, e->recv_data ? t->o.sgl : 1, t->o.offset);
}

/*
 * Computes the layouts of a test and its number of slots in the available memory. The window, the
 * burst and signal_every of the test are at most that number.
 */
void
test_layout(struct tester *t, struct test *test, const struct engine *e, uint32_t size)
{
	const struct options *o = &t->o;
	uint64_t room = t->local.len - 2 * EDGE;
	uint32_t flows = e->two_way ? 2 * o->qps : o->qps, stride;

	test->e = e;
	test->size = size;
	test->rate = o->rate == 0 ? 0 : RTE_MAX(o->rate / o->lcores, 1u);
	test_layouts(t, e, size);
	stride = RTE_MAX(t->local.lay.stride, t->remote.lay.stride);
	test->slots = (uint32_t)RTE_MIN(slots_needed(o), room / flows / stride);
	test->window = e->ping_pong ? 1 : RTE_MIN(o->depth, test->slots);
	test->burst = RTE_MIN(o->burst, test->window);
	test->signal_every = RTE_MIN(o->signal_every, test->window);
	test->use_inline = size <= o->max_inline && (e->to_target || e->pick != NULL);
}

static int
side_alloc(struct tester *t, struct side *s, const char *name, size_t len, uint32_t stride,
	   uint32_t access)
{
	size_t control = t->o.connect != NULL ? (size_t)t->o.qps * REMOTE_CTL : 0;
	int rc;

	s->name = name;
	s->image = rte_malloc("image", stride, 64);
	s->mem = rte_malloc("side", len + control, 4096);
	if (s->mem == NULL || s->image == NULL)
		return -ENOMEM;
	s->len = len;
	memset(s->mem + len, 0, control);
	rc = bb_mr_reg(t->pd, s->mem, len + control, access, &s->mr);
	if (rc != 0)
		error("registering memory", rc);
	return rc;
}

static void
side_free(struct side *s)
{
	if (s->mr != NULL)
		bb_mr_dereg(s->mr);
	rte_free(s->mem);
	rte_free(s->image);
	memset(s, 0, sizeof(*s));
}

static int
create_memory(struct tester *t)
{
	uint32_t access = BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ;
	uint32_t flows = options_two_way(&t->o) ? 2 * t->o.qps : t->o.qps;
	uint64_t least, len, want = 0, pool = POOL_BYTES;
	const struct options *o = &t->o;
	uint32_t i, max_size = 8;
	int rc;

	if (t->attr.atomics)
		access |= BB_ACCESS_REMOTE_ATOMIC;
	for (i = 0; i < o->nsizes; i++)
		max_size = RTE_MAX(max_size, o->sizes[i]);
	least = (uint64_t)flows * stride_of(o, max_size);
	if (pool < least)
		pool = least;
	for (i = 0; i < o->nsizes; i++)
		want = RTE_MAX(want, flows * slots_needed(o) * stride_of(o, o->sizes[i]));
	want = RTE_MAX(want, flows * slots_needed(o) * stride_of(o, 8));

	t->scratch = rte_malloc("scratch", max_size, 64);
	if (t->scratch == NULL)
		goto no_memory;
	/* If memory is short, tries with fewer slots, down to one per pair. */
	for (len = RTE_MIN(want, pool);; len = RTE_MAX(RTE_ALIGN_FLOOR(len / 2, 64), least)) {
		rc = side_alloc(t, &t->local, "the initiator's", len + 2 * EDGE,
				stride_of(o, max_size),
				BB_ACCESS_LOCAL_WRITE | (t->twins != NULL || t->o.connect != NULL
								 ? BB_ACCESS_REMOTE_WRITE
								 : 0u));
		if (rc == 0)
			rc = side_alloc(t, &t->remote, "the target's", len + 2 * EDGE,
					stride_of(o, max_size), access);
		if (rc == 0)
			return 0;
		side_free(&t->local);
		side_free(&t->remote);
		if (rc != -ENOMEM)
			return -EXIT_FAILED;
		if (len == least)
			break;
	}
no_memory:
	say("no memory for messages of %u bytes on %u pairs: %" PRIu64
	    " MiB are needed; give EAL more (-m MB, hugepages) or less --size or --qps",
	    max_size, o->qps, ((2 * least + max_size) >> 20) + 1);
	return -EXIT_FAILED;
}

int
tester_open_device(struct tester *t)
{
	int rc;

	t->tsc_hz = rte_get_tsc_hz();
	rc = open_device(t);
	if (rc == 0)
		rc = tester_check(t);
	if (rc != 0)
		return rc;
	rc = bb_pd_alloc(t->dev, &t->pd);
	if (rc != 0) {
		error("allocating the protection domain", rc);
		return -EXIT_FAILED;
	}
	return 0;
}

int
tester_open_queues(struct tester *t)
{
	int rc = create_pairs(t);
	uint32_t i;

	if (rc == 0)
		rc = create_memory(t);
	if (rc != 0)
		return rc;
	for (i = 0; i < t->npairs; i++) {
		t->pairs[i].target_rkey = t->remote.mr->rkey;
		if (t->twins != NULL)
			t->twins[i].target_rkey = t->local.mr->rkey;
	}
	stall_begin(t);
	return t->o.connect == NULL || remote_connect(t) == 0 ? 0 : -EXIT_FAILED;
}

static void
log_close(int rc)
{
	if (rc != 0)
		say("an object of the device could not be destroyed; the lines above say why");
}

void
tester_close_queues(struct tester *t)
{
	int rc = 0;

	remote_close(t);
	while (t->npairs > 0) {
		struct pair *p = &t->pairs[--t->npairs];

		if (p->peer != NULL)
			rc |= bb_qp_destroy(p->peer);
		if (p->qp != NULL)
			rc |= bb_qp_destroy(p->qp);
	}
	rte_free(t->pairs);
	rte_free(t->twins);
	rte_free(t->flows);
	side_free(&t->local);
	side_free(&t->remote);
	rte_free(t->scratch);
	if (t->scq != NULL)
		rc |= bb_cq_destroy(t->scq);
	if (t->rcq != NULL)
		rc |= bb_cq_destroy(t->rcq);
	t->pairs = t->twins = NULL;
	t->flows = NULL;
	t->scratch = NULL;
	t->scq = t->rcq = NULL;
	log_close(rc);
}

void
tester_close_device(struct tester *t)
{
	int rc = 0;

	if (t->pd != NULL)
		rc |= bb_pd_free(t->pd);
	if (t->dev != NULL)
		rc |= bb_dev_close(t->dev);
	t->pd = NULL;
	t->dev = NULL;
	log_close(rc);
}
