/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * nvmf_target: an NVMe over Fabrics target.
 *
 * Read next: nvmf.h (the engine), nvmf_rdma.h (the transport), nvmf_queue.c (from the capsule to
 * the response).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_malloc.h>

#include "nvmf_program.h"
#include "nvmf_rdma.h"

/* Time in ms that a host has for its Connect command. */
#define CONNECT_MS 10000u
/* Time in seconds for which a new target waits until a killed one has unlocked its files. */
#define WAIT_S 10u

static struct options options;
static struct nvmf_subsys subsystems[MAX_SUBSYSTEMS];
static int failed; /* -errno of io_uring */
static char traddr[INET6_ADDRSTRLEN], trsvcid[8];

static bool
no_pci(const void *o)
{
	return eal_spec_no_pci(((const struct options *)o)->device);
}

static const struct program program = {
	.name = "nvmf_target",
	.memory_mb = 512,
	.options = (const struct option[]){{"subsystem", 1, NULL, 0},
					   {"namespace", 1, NULL, 0},
					   {"device", 1, NULL, 0},
					   {"listen", 1, NULL, 0},
					   {NULL, 0, NULL, 0}},
	.help = nvmf_help,
	.parse = nvmf_options_parse,
	.no_pci = no_pci,
};

/* ---- Namespaces */

static int
open_memory(const struct space *from, struct nvmf_ns *ns, uint8_t shift)
{
	void *mem =
		mmap(NULL, from->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED) {
		say("--namespace malloc: no memory of %" PRIu64 " bytes: %s", from->size,
		    strerror(errno));
		return -ENOMEM;
	}
	nvmf_ns_memory(ns, mem, from->size, shift);
	return 0;
}

/* Opens namespace @i of a subsystem. @mem has the buffers of all requests. */
static int
open_space(const struct options *o, struct subsystem *s, uint32_t i, void *mem, size_t len)
{
	const struct space *from = &s->space[i];
	const struct backing_attr attr = {.path = from->path,
					  .size = from->size,
					  .block = o->block,
					  .wait_s = WAIT_S,
					  .buffered = from->buffered,
					  .read_only = from->read_only};
	uint8_t shift = (uint8_t)__builtin_ctz(o->block);
	uint32_t depth = o->depth < NVMF_ADMIN_DEPTH ? NVMF_ADMIN_DEPTH : o->depth;
	int rc = 0;

	switch (from->kind) {
	case SPACE_NULL:
		nvmf_ns_null(&s->ns[i], from->size, shift);
		break;
	case SPACE_MEMORY:
		rc = open_memory(from, &s->ns[i], shift);
		break;
	case SPACE_FILE:
		rc = nvmf_file_open(&s->file[i], &attr, &s->ns[i]);
		if (rc == 0)
			rc = nvmf_file_start(&s->file[i], o->uring, o->queues * depth, mem, len);
		break;
	}
	s->ns[i].read_only = from->read_only;
	return rc;
}

static int
open_subsystem(struct options *o, struct subsystem *from, struct nvmf_subsys *to, void *mem,
	       size_t len)
{
	uint32_t i;
	int rc;

	*to = (struct nvmf_subsys){
		.nqn = from->nqn,
		.serial = from->serial,
		.any_host = from->hosts == 0,
		.hosts = from->host,
		.nhosts = from->hosts,
		.ns = from->active,
		.max_ns = from->spaces,
	};
	for (i = 0; i < from->spaces; i++) {
		rc = open_space(o, from, i, mem, len);
		if (rc == 0)
			rc = nvmf_ns_add(to, i + 1, &from->ns[i]);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static void
close_spaces(struct options *o)
{
	uint32_t i, j;

	for (i = 0; i < o->subsystems; i++) {
		struct subsystem *s = &o->subsystem[i];

		for (j = 0; j < s->spaces; j++) {
			if (s->space[j].kind == SPACE_FILE)
				nvmf_file_close(&s->file[j]);
			else if (s->space[j].kind == SPACE_MEMORY && s->ns[j].ctx != NULL)
				munmap(s->ns[j].ctx, s->space[j].size);
		}
	}
}

/* ---- Address in the discovery log */

/* Writes the device's address @family into traddr if --listen names all addresses. */
static int
address_of_device(struct bb_dev *dev, int family)
{
	struct bb_gid_want want;
	struct bb_gid gid;
	uint8_t index;
	int rc;

	bb_gid_want_init(&want);
	want.family = family == AF_INET ? BB_GID_IPV4 : BB_GID_IPV6;
	rc = bb_gid_choose(dev, 1, &want, &index);
	if (rc == 0)
		rc = bb_gid_query(dev, 1, index, &gid);
	if (rc == 0)
		inet_ntop(family, gid.raw + (family == AF_INET ? 12 : 0), traddr, sizeof(traddr));
	else
		say("%s: no address for the discovery log: %s; name it by --listen",
		    bb_dev_name(dev), strerror(-rc));
	return rc;
}

static int
find_address(struct bb_dev *dev, const char *listen, uint8_t *adrfam)
{
	struct sockaddr_storage addr;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&addr;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&addr;
	bool any;

	(void)bb_cm_addr(listen, &addr); /* the options have checked it */
	*adrfam = addr.ss_family == AF_INET ? 1 : 2;
	if (addr.ss_family == AF_INET) {
		any = v4->sin_addr.s_addr == INADDR_ANY;
		inet_ntop(AF_INET, &v4->sin_addr, traddr, sizeof(traddr));
	} else {
		any = IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
		inet_ntop(AF_INET6, &v6->sin6_addr, traddr, sizeof(traddr));
	}
	/* The port has the same offset in the addresses of IPv4 and IPv6. */
	snprintf(trsvcid, sizeof(trsvcid), "%u", ntohs(v4->sin_port));
	if (!any)
		return 0;
	/* ":4420" means both families; a host is most likely to have an address of IPv4. */
	if (listen[0] == ':')
		*adrfam = 1;
	return address_of_device(dev, *adrfam == 1 ? AF_INET : AF_INET6);
}

/* ---- Run */

/* Polls the files, and stops the loop after a signal or an error of io_uring. */
static unsigned int
watch(void *arg)
{
	struct nvmf_rdma *r = arg;
	unsigned int work = 0;
	uint32_t i, j;
	int rc;

	for (i = 0; i < options.subsystems; i++) {
		for (j = 0; j < options.subsystem[i].spaces; j++) {
			if (options.subsystem[i].space[j].kind != SPACE_FILE)
				continue;
			work += nvmf_file_poll(&options.subsystem[i].file[j], &rc);
			if (rc == 0 || failed != 0)
				continue;
			say("%s: io_uring accepts no more requests: %s",
			    options.subsystem[i].space[j].path, strerror(-rc));
			failed = rc;
		}
	}
	if (stop_signal != 0 || failed != 0)
		bb_loop_stop(r->loop);
	return work;
}

static void
report(const struct nvmf_rdma *r)
{
	uint64_t reads = 0, writes = 0;
	uint32_t i, j;

	for (i = 0; i < options.subsystems; i++) {
		for (j = 0; j < options.subsystem[i].spaces; j++) {
			reads += options.subsystem[i].ns[j].reads;
			writes += options.subsystem[i].ns[j].writes;
		}
	}
	printf("nvmf_target: %" PRIu64 " reads, %" PRIu64 " writes, %" PRIu64
	       " queues connected, %" PRIu64 " refused\n",
	       reads, writes, r->accepted, r->rejected);
}

static int
serve(struct nvmf_target *t, struct bb_dev *dev, void *mem)
{
	static struct nvmf_rdma r;
	struct nvmf_rdma_attr attr = {.dev = dev,
				      .listen = options.listen,
				      .conns = options.queues,
				      .connect_ms = CONNECT_MS};
	int rc;

	rc = nvmf_rdma_open(&r, &attr, t, mem);
	if (rc != 0)
		return rc;
	r.turn = watch;
	r.turn_arg = &r;
	printf("nvmf_target: %s at %s port %u\n", bb_dev_name(dev), traddr,
	       bb_listener_port(r.listener));
	fflush(stdout);
	rc = bb_loop_run(r.loop);
	nvmf_rdma_end(&r);
	while (!nvmf_rdma_idle(&r))
		(void)bb_loop_run_once(r.loop);
	nvmf_rdma_close(&r);
	report(&r);
	return rc != 0 ? rc : failed;
}

static int
run(struct options *o)
{
	struct nvmf_target_attr attr = {
		.subsys = subsystems,
		.nsubsys = o->subsystems,
		.max_io = o->max_io,
		.in_capsule = o->in_capsule,
		.io_queues = o->io_queues,
		.io_depth = o->depth,
		.ctrls = o->queues,
		.traddr = traddr,
		.trsvcid = trsvcid,
		.ops = &nvmf_rdma_ops,
	};
	size_t len = nvmf_rdma_memory(&attr, o->queues);
	struct nvmf_target *t = NULL;
	struct bb_dev *dev = NULL;
	void *mem = NULL;
	uint32_t i;
	int rc;

	rc = bb_dev_open(o->device, &dev);
	if (rc != 0) {
		say("--device %s: cannot be opened: %s; the lines above say why", o->device,
		    strerror(-rc));
		return EXIT_FAILED;
	}
	rc = find_address(dev, o->listen, &attr.adrfam);
	if (rc == 0) {
		mem = rte_malloc("queues", len, NVMF_PAGE);
		rc = mem == NULL ? -ENOMEM : 0;
		if (rc != 0)
			say("no memory for %u queues, %zu MiB: give EAL more, -m MB, or smaller "
			    "--queues, --depth or --max-io",
			    o->queues, len >> 20);
	}
	for (i = 0; i < o->subsystems && rc == 0; i++)
		rc = open_subsystem(o, &o->subsystem[i], &subsystems[i], mem, len);
	if (rc == 0)
		rc = nvmf_target_create(&attr, &t);
	if (rc == 0)
		rc = serve(t, dev, mem);
	if (t != NULL)
		nvmf_target_destroy(t);
	rte_free(mem);
	close_spaces(o);
	bb_dev_close(dev);
	return rc == 0 ? 0 : EXIT_FAILED;
}

int
main(int argc, char **argv)
{
	int eal_argc, rc;

	rc = program_args(&program, &options, argc, argv, &eal_argc);
	if (rc != 0)
		return rc < 0 ? EXIT_USAGE : 0;
	/* Without this, a write above the limit of ulimit -f would kill the process. */
	signal(SIGXFSZ, SIG_IGN);
	if (program_start(eal_argc, argv) != 0)
		return EXIT_FAILED;
	rc = run(&options);
	program_end();
	return rc;
}
