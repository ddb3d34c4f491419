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

#include <rte_malloc.h>

#include "nvmf_program.h"
#include "nvmf_rdma.h"

/* Time in ms that a host has for its Connect command. */
#define CONNECT_MS 10000u
/* Time in seconds for which a new target waits until a killed one has unlocked its files. */
#define WAIT_S 10u

static struct config config;
static struct storage storage;
static int failed; /* -errno of io_uring */
static volatile sig_atomic_t reload_wanted;
static char traddr[MAX_LISTENERS][INET6_ADDRSTRLEN], trsvcid[MAX_LISTENERS][8];
static struct nvmf_port ports[MAX_LISTENERS];

static bool
no_pci(const void *o)
{
	return eal_spec_no_pci(((const struct config *)o)->device);
}

static const struct program program = {
	.name = "nvmf_target",
	.memory_mb = 512,
	.options = (const struct option[]){{"subsystem", 1, NULL, 0},
					   {"namespace", 1, NULL, 0},
					   {"device", 1, NULL, 0},
					   {"listen", 1, NULL, 0},
					   {"config", 1, NULL, 0},
					   {NULL, 0, NULL, 0}},
	.help = config_help,
	.parse = config_parse,
	.no_pci = no_pci,
};

/* ---- Addresses in the discovery log */

/* Writes the device's address of @family to @to, for a listener at all addresses. */
static int
address_of_device(struct bb_dev *dev, int family, char to[INET6_ADDRSTRLEN])
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
		inet_ntop(family, gid.raw + (family == AF_INET ? 12 : 0), to, INET6_ADDRSTRLEN);
	else
		say("%s: no address for the discovery log: %s; name it by --listen",
		    bb_dev_name(dev), strerror(-rc));
	return rc;
}

static int
find_address(struct bb_dev *dev, uint32_t i)
{
	const char *listen = config.listen[i];
	struct sockaddr_storage addr;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&addr;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&addr;
	bool any;

	(void)bb_cm_addr(listen, &addr); /* the options have checked it */
	ports[i] = (struct nvmf_port){traddr[i], trsvcid[i], addr.ss_family == AF_INET ? 1 : 2};
	if (addr.ss_family == AF_INET) {
		any = v4->sin_addr.s_addr == INADDR_ANY;
		inet_ntop(AF_INET, &v4->sin_addr, traddr[i], sizeof(traddr[i]));
	} else {
		any = IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
		inet_ntop(AF_INET6, &v6->sin6_addr, traddr[i], sizeof(traddr[i]));
	}
	if (!any)
		return 0;
	/* ":4420" means both families; a host is most likely to have an address of IPv4. */
	if (listen[0] == ':')
		ports[i].adrfam = 1;
	return address_of_device(dev, ports[i].adrfam == 1 ? AF_INET : AF_INET6, traddr[i]);
}

/* ---- Run */

static void
on_hangup(int sig)
{
	(void)sig;
	reload_wanted = 1;
}

/* Polls the files, executes commands of the administrator, and stops the loop. */
static unsigned int
watch(void *arg)
{
	struct nvmf_rdma *r = arg;
	unsigned int work;
	int rc;

	work = storage_poll(&storage, &rc);
	if (rc != 0 && failed == 0)
		failed = rc;
	work += telemetry_poll();
	if (reload_wanted != 0) {
		reload_wanted = 0;
		(void)storage_reload(&storage);
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

	for (i = 0; i < MAX_SUBSYSTEMS; i++) {
		for (j = 0; j < MAX_NAMESPACES; j++) {
			reads += storage.entry[i].slot[j].ns.reads;
			writes += storage.entry[i].slot[j].ns.writes;
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
				      .listen = config.listen,
				      .listeners = config.listeners,
				      .conns = config.queues,
				      .connect_ms = CONNECT_MS};
	uint32_t i;
	int rc;

	rc = nvmf_rdma_open(&r, &attr, t, mem);
	if (rc != 0)
		return rc;
	r.turn = watch;
	r.turn_arg = &r;
	telemetry_register(&storage, &r);
	for (i = 0; i < config.listeners; i++) {
		snprintf(trsvcid[i], sizeof(trsvcid[i]), "%u", bb_listener_port(r.listener[i]));
		printf("nvmf_target: %s at %s port %s\n", bb_dev_name(dev), traddr[i], trsvcid[i]);
	}
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
run(struct config *c)
{
	struct nvmf_target_attr attr = {
		.subsys = storage.subsys,
		.nsubsys = MAX_SUBSYSTEMS,
		.max_io = c->max_io,
		.in_capsule = c->in_capsule,
		.io_queues = c->io_queues,
		.io_depth = c->depth,
		.ctrls = c->queues,
		.keep_alive = c->keep_alive,
		.ports = ports,
		.nports = c->listeners,
		.ops = &nvmf_rdma_ops,
	};
	size_t len = nvmf_rdma_memory(&attr, c->queues);
	struct bb_dev *dev = NULL;
	void *mem = NULL;
	uint32_t i;
	int rc;

	storage_init(&storage, c);
	rc = bb_dev_open(c->device, &dev);
	if (rc != 0) {
		say("--device %s: cannot be opened: %s; the lines above say why", c->device,
		    strerror(-rc));
		return EXIT_FAILED;
	}
	for (i = 0; i < c->listeners && rc == 0; i++)
		rc = find_address(dev, i);
	if (rc == 0) {
		mem = rte_malloc("queues", len, NVMF_PAGE);
		rc = mem == NULL ? -ENOMEM : 0;
		if (rc != 0)
			say("no memory for %u queues, %zu MiB: give EAL more, -m MB, or smaller "
			    "--queues, --depth or --max-io",
			    c->queues, len >> 20);
	}
	storage.mem = mem;
	storage.len = len;
	if (rc == 0)
		rc = nvmf_target_create(&attr, &storage.t);
	if (rc == 0)
		rc = storage_apply(&storage, c, WAIT_S);
	if (rc == 0)
		rc = serve(storage.t, dev, mem);
	if (storage.t != NULL)
		nvmf_target_destroy(storage.t);
	rte_free(mem);
	storage_close(&storage);
	bb_dev_close(dev);
	return rc == 0 ? 0 : EXIT_FAILED;
}

int
main(int argc, char **argv)
{
	const struct sigaction hangup = {.sa_handler = on_hangup, .sa_flags = SA_RESTART};
	int eal_argc, rc;

	rc = program_args(&program, &config, argc, argv, &eal_argc);
	if (rc != 0)
		return rc < 0 ? EXIT_USAGE : 0;
	/* Without this, a write above the limit of ulimit -f would kill the process. */
	signal(SIGXFSZ, SIG_IGN);
	sigaction(SIGHUP, &hangup, NULL);
	if (program_start(eal_argc, argv) != 0)
		return EXIT_FAILED;
	rc = run(&config);
	program_end();
	config_free(&config);
	return rc;
}
