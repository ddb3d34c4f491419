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

#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_malloc.h>

#include "nvmf_program.h"
#include "nvmf_rdma.h"

/* Time in ms that a host has for its Connect command. */
#define CONNECT_MS 10000u
/* Time in seconds for which a new target waits until a killed one has unlocked its files. */
#define WAIT_S 10u

static struct config config;
static struct storage storage;
static struct nvmf_rdma lcores[MAX_LCORES];
static int failed; /* -errno of the error that ends the program, else 0 */
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

/*
 * Returns whether a CM of the device can move connection requests to another lcore. Only the
 * transport BB_CM_IB can. Logging is off during the attempt, because the library logs an error if
 * the device does not support that transport.
 */
static bool
can_move_requests(struct bb_dev *dev)
{
	const uint32_t level = rte_log_get_global_level();
	struct bb_cm_attr attr;
	struct bb_cm *cm;
	int rc;

	bb_cm_attr_init(&attr);
	attr.transport = BB_CM_IB;
	rte_log_set_global_level(RTE_LOG_CRIT);
	rc = bb_cm_create(dev, &attr, &cm);
	rte_log_set_global_level(level);
	if (rc == 0)
		(void)bb_cm_destroy(cm);
	return rc == 0;
}

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
		say("%s: no address for the discovery log: %s; give one by --listen",
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

/* ---- Signals, and the loops of all lcores */

static void
on_hangup(int sig)
{
	(void)sig;
	reload_wanted = 1;
}

/* Polls the files, executes telemetry commands and reloads, and stops the loop on a signal or
 * error. */
static unsigned int
watch(void *arg)
{
	struct nvmf_rdma *r = arg;
	unsigned int work;
	int rc;

	work = storage_poll(&storage, 0, &rc);
	if (rc == 0)
		rc = __atomic_load_n(&storage.rc, __ATOMIC_RELAXED);
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

static uint32_t
index_of(const struct nvmf_rdma *worker)
{
	return (uint32_t)(worker - lcores);
}

static unsigned int
watch_worker(void *arg)
{
	unsigned int work;
	int rc;

	work = storage_poll(&storage, index_of(arg), &rc);
	if (rc != 0)
		__atomic_store_n(&storage.rc, rc, __ATOMIC_RELAXED);
	return work;
}

static bool
outstanding(void *arg)
{
	return storage_outstanding(&storage, index_of(arg));
}

/* ---- Functions that run in the threads of the workers */

static struct {
	void (*fn)(struct storage *s, uint32_t lcore, void *arg);
	void *arg;
} job;

static void
run_job(struct nvmf_rdma *worker, void *arg)
{
	(void)arg;
	job.fn(&storage, index_of(worker), job.arg);
}

static void
run_on_workers(void (*fn)(struct storage *s, uint32_t lcore, void *arg), void *arg)
{
	job.fn = fn;
	job.arg = arg;
	nvmf_rdma_run(&lcores[0], run_job, NULL);
}

static void
end_worker(struct nvmf_rdma *worker, void *arg)
{
	(void)arg;
	nvmf_rdma_end(worker);
}

static void
report(void)
{
	uint64_t reads = storage.old_reads, writes = storage.old_writes, accepted = 0, rejected = 0;
	uint32_t i, j;

	for (i = 0; i < MAX_SUBSYSTEMS; i++) {
		for (j = 0; j < MAX_NAMESPACES; j++) {
			const struct slot *slot = &storage.entry[i].slot[j];

			reads += slot_sum(slot, offsetof(struct nvmf_ns, reads));
			writes += slot_sum(slot, offsetof(struct nvmf_ns, writes));
		}
	}
	for (i = 0; i < storage.lcores; i++) {
		accepted += lcores[i].accepted;
		rejected += lcores[i].rejected;
	}
	printf("nvmf_target: %" PRIu64 " reads, %" PRIu64 " writes, %" PRIu64
	       " queues connected, %" PRIu64 " refused\n",
	       reads, writes, accepted, rejected);
}

/* Opens the transport of lcore @i. */
static int
open_lcore(uint32_t i, uint32_t id, struct bb_dev *dev)
{
	struct nvmf_rdma *r = &lcores[i];
	struct nvmf_rdma_attr attr = {.dev = dev,
				      .lcore = id,
				      .first = i == 0 ? NULL : &lcores[0],
				      .listen = config.listen,
				      .listeners = i == 0 ? config.listeners : 0,
				      .conns = storage_queues(&storage),
				      .connect_ms = CONNECT_MS,
				      .sleep_us = config.sleep_us};
	const size_t len = nvmf_rdma_memory(&storage.t->attr, attr.conns);
	int rc;

	rc = nvmf_rdma_open(r, &attr, storage.targets[i], (uint8_t *)storage.mem + i * len);
	if (rc != 0)
		return rc;
	r->turn = i == 0 ? watch : watch_worker;
	r->outstanding = outstanding;
	r->turn_arg = r;
	return 0;
}

/* Starts the loops of all workers. */
static int
start_workers(void)
{
	uint32_t i;
	int rc;

	for (i = 1; i < storage.lcores; i++) {
		rc = bb_loop_start(lcores[i].loop);
		if (rc != 0) {
			say("lcore %u does not start: %s", bb_loop_lcore(lcores[i].loop),
			    strerror(-rc));
			return rc;
		}
		lcores[0].worker[lcores[0].workers++] = &lcores[i];
	}
	storage_sync(&storage);
	return 0;
}

/* Ends all connections, and waits until nothing uses their memory. */
static void
end_lcores(void)
{
	uint32_t i;
	bool idle;

	nvmf_rdma_end(&lcores[0]);
	nvmf_rdma_run(&lcores[0], end_worker, NULL);
	do {
		(void)bb_loop_run_once(lcores[0].loop);
		for (i = 0, idle = true; i < storage.lcores; i++)
			idle = idle && __atomic_load_n(&lcores[i].used, __ATOMIC_ACQUIRE) == 0;
	} while (!idle || !nvmf_rdma_idle(&lcores[0]));
	for (i = 1; i <= lcores[0].workers; i++) {
		(void)bb_loop_stop(lcores[i].loop);
		(void)bb_loop_wait(lcores[i].loop);
	}
	lcores[0].workers = 0;
}

static int
serve(struct bb_dev *dev)
{
	uint32_t id = rte_get_main_lcore(), i, opened;
	int rc = 0;

	for (opened = 0; opened < storage.lcores && rc == 0; opened++) {
		rc = open_lcore(opened, id, dev);
		id = rte_get_next_lcore(opened == 0 ? (unsigned int)-1 : id, 1, 0);
	}
	if (rc != 0) {
		opened--; /* open_lcore() has closed the lcore that failed */
		goto close;
	}
	telemetry_register(&storage, &lcores[0]);
	rc = start_workers();
	if (rc == 0) {
		for (i = 0; i < config.listeners; i++) {
			snprintf(trsvcid[i], sizeof(trsvcid[i]), "%u",
				 bb_listener_port(lcores[0].listener[i]));
			printf("nvmf_target: %s at %s port %s\n", bb_dev_name(dev), traddr[i],
			       trsvcid[i]);
		}
		fflush(stdout);
		rc = bb_loop_run(lcores[0].loop);
	}
	end_lcores();
	report();
close:
	while (opened-- > 0)
		nvmf_rdma_close(&lcores[opened]);
	return rc != 0 ? rc : failed;
}

static int
create_targets(struct nvmf_target_attr *attr)
{
	uint32_t i;
	int rc;

	for (i = 0; i < storage.lcores; i++) {
		attr->subsys = storage.subsys[i];
		attr->remote = i != 0;
		rc = nvmf_target_create(attr, &storage.targets[i]);
		if (rc != 0)
			return rc;
	}
	storage.t = storage.targets[0];
	return 0;
}

static int
run(struct config *c)
{
	struct nvmf_target_attr attr = {
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
	size_t len;
	struct bb_dev *dev = NULL;
	void *mem = NULL;
	uint32_t i;
	int rc;

	if (rte_lcore_count() > MAX_LCORES) {
		say("%u lcores: give at most %u by -l", rte_lcore_count(), MAX_LCORES);
		return EXIT_USAGE;
	}
	storage_init(&storage, c);
	storage.lcores = rte_lcore_count();
	storage.run = run_on_workers;
	rc = bb_dev_open(c->device, &dev);
	if (rc != 0) {
		say("--device %s: cannot be opened: %s; the lines above say why", c->device,
		    strerror(-rc));
		return EXIT_FAILED;
	}
	if (storage.lcores > 1 && !can_move_requests(dev)) {
		say("%s: librdmacm's connections cannot move to another lcore: one lcore serves all %u "
		    "queues",
		    bb_dev_name(dev), c->queues);
		storage.lcores = 1;
	}
	len = nvmf_rdma_memory(&attr, storage_queues(&storage)) * storage.lcores;
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
		rc = create_targets(&attr);
	if (rc == 0)
		rc = storage_apply(&storage, c, WAIT_S);
	if (rc == 0)
		rc = serve(dev);
	for (i = 0; i < storage.lcores; i++)
		if (storage.targets[i] != NULL)
			nvmf_target_destroy(storage.targets[i]);
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
