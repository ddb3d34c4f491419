/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Memory that bb_verbs shares with peers: one case for each thing that a program may do with it
 * meanwhile. Each case ends with "right" and exit status 0.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"

#define ROUNDS 30

static uint8_t *volatile region;
static volatile bool done;

void
wait_for(pid_t pid, int want)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(want == 0 ? status == 0 : WIFSIGNALED(status) && WTERMSIG(status) == want);
}

/* Peers reach private memory directly: they need no turn of the target's CPU. */
static void
direct(void)
{
	uint8_t *p = pages(4, 1);
	struct ibv_mr *mr = reg(p, 4 * PAGE);

	CHECK(is_shared(p) && p[3 * PAGE] == 1);
	check_direct(mr, p, 7);
	check_direct(mr, p + 4 * PAGE - 8, 9);
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* The target never sends, so its QP stays in RTR. The first packet of the peer makes it known. */
static void
receiver(void)
{
	uint8_t *p = pages(1, 1);
	struct ibv_mr *mr = reg(p, PAGE);

	check_access(mr, p, 7);
	check_direct(mr, p, 9);
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* Messages of the peer, whose data comes in the CQE or, if it is long, in the buffer. */
static void
messages(void)
{
	uint32_t longest = 80, len, i;
	uint8_t *p = pages(1, 0);
	struct ibv_mr *mr = reg(p, PAGE);
	uint64_t v;

	for (len = 1; len <= longest; len++) {
		memset(p, 0xee, longest + 1);
		post_receive(mr, p, longest);
		v = len;
		CHECK(order(OP_SEND, false, NULL, (void *)(uintptr_t)len, &v) == IBV_WC_SUCCESS);
		CHECK(wait_message() == len);
		for (i = 0; i <= longest; i++)
			CHECK(p[i] == (i < len ? len : 0xee));
	}
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* The program's own request reads a region, a page of which was unmapped after the registration. */
static void
on_demand(void)
{
	uint8_t *p = pages(2, 1);
	struct ibv_mr *mr = ibv_reg_mr(pd, p, 2 * PAGE, IBV_ACCESS_ON_DEMAND);

	CHECK(munmap(p + PAGE, PAGE) == 0 && post_from(mr, p, 2 * PAGE) == IBV_WC_LOC_PROT_ERR);
}

/* Peers reach only what was registered, and only while it is. */
static void
bounds(void)
{
	uint8_t *p = pages(2, 1);
	struct ibv_mr *mr = reg(p + 64, PAGE);
	uint64_t v = 7;

	CHECK(order(OP_WRITE, false, mr, p + 64 + PAGE - 4, &v) == IBV_WC_REM_ACCESS_ERR);
	CHECK(p[64 + PAGE - 4] == 1 && p[64 + PAGE] == 1);
	CHECK(ibv_dereg_mr(mr) == 0);
}

static void
deregistered(void)
{
	uint8_t *p = pages(1, 1);
	struct ibv_mr *mr = reg(p, PAGE), old = *mr;
	uint64_t v = 7;

	check_direct(mr, p, 7);
	CHECK(ibv_dereg_mr(mr) == 0);
	memset(p, 1, PAGE);
	CHECK(order(OP_WRITE, false, &old, p, &v) == IBV_WC_REM_ACCESS_ERR);
	CHECK(p[0] == 1);
}

/* ---- Other threads */

/* Counts in the last word of a page: a write that gets lost is noticed at the next one. */
static void *
count(void *arg)
{
	const size_t at = (size_t)(uintptr_t)arg * PAGE - 8;
	volatile uint64_t *p = NULL;
	uint64_t v = 0;

	while (!done) {
		if ((volatile uint64_t *)(void *)(region + at) != p) {
			p = (volatile uint64_t *)(void *)(region + at);
			v = *p;
		}
		CHECK(*p == v);
		*p = ++v;
	}
	return NULL;
}

static void
writers(void)
{
	struct ibv_mr *mr[ROUNDS];
	pthread_t thread[2];
	unsigned int i;

	region = pages(2, 0);
	for (i = 0; i < 2; i++)
		CHECK(pthread_create(&thread[i], NULL, count, (void *)(uintptr_t)(i + 1)) == 0);
	for (i = 0; i < ROUNDS; i++) {
		mr[i] = reg(region, 2 * PAGE);
		CHECK(is_shared(region));
		sched_yield();
		/* Makes the region private again, and shares it again. */
		if (i % 4 == 3) {
			pid_t pid = fork();

			if (pid == 0)
				_exit(0);
			wait_for(pid, 0);
		}
		if (i % 2 == 1)
			region = pages(2, 0);
	}
	done = true;
	for (i = 0; i < 2; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	for (i = 0; i < ROUNDS; i++)
		CHECK(ibv_dereg_mr(mr[i]) == 0);
}

/* Reads from /dev/zero to a page that the region shares with other data. */
static void *
read_zeros(void *arg)
{
	const int fd = open("/dev/zero", O_RDONLY);

	(void)arg;
	while (!done)
		CHECK(read(fd, region + PAGE - 8, 8) == 8);
	close(fd);
	return NULL;
}

/* A system call that writes beside the region never fails because of the registration. */
static void
system_calls(void)
{
	struct ibv_mr *mr[ROUNDS];
	pthread_t thread;
	unsigned int i;

	region = pages(2, 0);
	CHECK(pthread_create(&thread, NULL, read_zeros, NULL) == 0);
	for (i = 0; i < ROUNDS; i++) {
		mr[i] = reg(region, PAGE - 8);
		check_access(mr[i], region, i);
		region = pages(2, 0);
	}
	done = true;
	CHECK(pthread_join(thread, NULL) == 0);
	for (i = 0; i < ROUNDS; i++)
		CHECK(ibv_dereg_mr(mr[i]) == 0);
}

/* ---- Processes */

/* A child has the memory as it was at fork(), and its writes are its own. */
static void
forked(void)
{
	uint8_t *p = pages(2, 1);
	struct ibv_mr *mr = reg(p, 2 * PAGE);
	int go[2];
	pid_t pid;
	char c;

	check_direct(mr, p, 7);
	CHECK(pipe(go) == 0);
	p[8] = 5;
	pid = fork();
	if (pid == 0) {
		CHECK(read(go[0], &c, 1) == 1);
		CHECK(p[8] == 5 && p[PAGE] == 1);
		p[PAGE] = 2;
		_exit(0);
	}
	p[8] = 6;
	check_direct(mr, p, 9);
	CHECK(write(go[1], "x", 1) == 1);
	wait_for(pid, 0);
	CHECK(p[PAGE] == 1 && p[8] == 6);
	check_direct(mr, p, 11);
	CHECK(ibv_dereg_mr(mr) == 0);
}

static void
vforked(void)
{
	char program[] = "true", *argv[] = {program, NULL};
	uint8_t *p = pages(1, 1);
	struct ibv_mr *mr = reg(p, PAGE);
	pid_t pid = vfork();

	if (pid == 0) {
		p[8] = 3; /* the memory of the parent */
		_exit(0);
	}
	wait_for(pid, 0);
	CHECK(p[8] == 3);
	CHECK(posix_spawnp(&pid, "true", NULL, NULL, argv, environ) == 0);
	wait_for(pid, 0);
	check_direct(mr, p, 7);
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* A child that no handler of fork() sees cannot write to the memory of its parent. */
static void
cloned(void)
{
	uint8_t *p = pages(1, 1);
	struct ibv_mr *mr = reg(p, PAGE);
	pid_t pid;

	check_direct(mr, p, 7);
	/* As ibv_fork_init() of programs does it: the pages stay out of children all the same. */
	CHECK(madvise(p, PAGE, MADV_DOFORK) == 0);
	p[8] = 1;
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		p[8] = 2;
		_exit(0);
	}
	wait_for(pid, SIGSEGV);
	CHECK(p[8] == 1);
	check_direct(mr, p, 9);
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* ---- Ends */

/* The peer is killed while it writes. */
static void
killed(void)
{
	uint8_t *p = pages(2, 1);
	struct ibv_mr *mr = reg(p, 2 * PAGE);
	uint64_t v = 7;

	check_direct(mr, p, 7);
	p[0] = 0;
	CHECK(order(OP_FLOOD, false, mr, p, &v) == IBV_WC_SUCCESS);
	while (*(volatile uint64_t *)(void *)p == 0)
		;
	CHECK(kill(peer, SIGKILL) == 0);
	wait_for(peer, SIGKILL);
	CHECK(ibv_dereg_mr(mr) == 0);
	memset(p, 1, 2 * PAGE);
	mr = reg(p, 2 * PAGE);
	CHECK(is_shared(p));
	CHECK(ibv_dereg_mr(mr) == 0);
}

/* Is killed while the peer writes; the peer must see errors of its requests, and end. */
static void
dies(void)
{
	uint8_t *p = pages(2, 1);
	struct ibv_mr *mr = reg(p, 2 * PAGE);
	uint64_t v = 7;

	check_direct(mr, p, 7);
	CHECK(order(OP_FLOOD, false, mr, p, &v) == IBV_WC_SUCCESS);
	printf("dies: peer %d\n", (int)peer);
	fflush(stdout);
	kill(getpid(), SIGKILL);
}

/* ---- Memory that stays private to the process */

static void *
register_arena(void *arg)
{
	const size_t len = 16 * PAGE;
	uint8_t *p = malloc(len);
	struct ibv_mr *mr;

	(void)arg;
	CHECK(p != NULL);
	mr = reg(p, len);
	CHECK(!is_shared(p + PAGE));
	check_access(mr, p + (-(uintptr_t)p & 7), 7);
	CHECK(ibv_dereg_mr(mr) == 0);
	free(p);
	return NULL;
}

static void
by_packets(void)
{
	uint64_t on_stack[PAGE / 4];
	int fd = memfd_create("other", 0);
	struct ibv_mr *mr = reg(on_stack, sizeof(on_stack));
	pthread_t thread;
	uint8_t *p;

	CHECK(!is_shared(on_stack));
	check_access(mr, on_stack, 7);
	CHECK(ibv_dereg_mr(mr) == 0);
	CHECK(fd >= 0 && ftruncate(fd, PAGE) == 0);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	mr = reg(p, PAGE);
	CHECK(!is_shared(p));
	check_access(mr, p, 7);
	CHECK(ibv_dereg_mr(mr) == 0);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED);
	mr = reg(p, PAGE);
	CHECK(!is_shared(p));
	check_access(mr, p, 9);
	CHECK(ibv_dereg_mr(mr) == 0);
	CHECK(pthread_create(&thread, NULL, register_arena, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
}

/* Memory on the heap, as perftest uses it; all is well if the heap grows and shrinks later. */
static void
heap(void)
{
	uint8_t *p = aligned_alloc(PAGE, 2 * PAGE), *more[64];
	struct ibv_mr *mr;
	unsigned int i;

	CHECK(p != NULL);
	memset(p, 1, 2 * PAGE);
	mr = reg(p, 2 * PAGE);
	CHECK(is_shared(p));
	check_direct(mr, p, 7);
	for (i = 0; i < 64; i++) {
		more[i] = calloc(1, 5000 + 3000 * i);
		CHECK(more[i] != NULL && more[i][4000] == 0);
		memset(more[i], 9, 4096);
	}
	for (i = 0; i < 64; i++)
		free(more[i]);
	check_direct(mr, p, 7);
	CHECK(p[8] == 1 && ibv_dereg_mr(mr) == 0);
	p = realloc(p, 1000000);
	CHECK(p != NULL && p[8] == 1);
	free(p);
}

/* ---- Sleep */

/* Waits until a thread is in poll(): the device's thread, which sleeps. */
static void
wait_asleep(void)
{
#ifdef SYS_poll
	const long want = SYS_poll;
#else
	const long want = SYS_ppoll;
#endif
	bool asleep = false;
	struct dirent *d;
	char path[300];
	long number;
	FILE *f;
	DIR *dir;

	while (!asleep) {
		dir = opendir("/proc/self/task");
		CHECK(dir != NULL);
		while ((d = readdir(dir)) != NULL) {
			snprintf(path, sizeof(path), "/proc/self/task/%s/syscall", d->d_name);
			f = fopen(path, "r");
			if (f == NULL)
				continue;
			asleep |= fscanf(f, "%ld", &number) == 1 && number == want;
			fclose(f);
		}
		closedir(dir);
	}
}

/* An idle device sleeps; a doorbell, a packet of the peer and a command wake it. */
static void
woken(void)
{
	uint8_t on_stack[64];
	struct ibv_mr *mr = reg(on_stack, sizeof(on_stack));
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		wait_asleep();
		CHECK(post_empty() == IBV_WC_SUCCESS);
		wait_asleep();
		check_access(mr, on_stack + (-(uintptr_t)on_stack & 7), i);
		wait_asleep();
		CHECK(ibv_dereg_mr(mr) == 0);
		mr = reg(on_stack, sizeof(on_stack));
	}
	CHECK(ibv_dereg_mr(mr) == 0);
}

/*
 * A child that lives has a copy of every descriptor, also of that which protects the doorbells
 * while the device's thread sleeps.
 */
static void
forked_asleep(void)
{
	int go[2];
	pid_t pid;
	char c;

	CHECK(pipe(go) == 0);
	wait_asleep();
	pid = fork();
	if (pid == 0) {
		close(go[1]); /* so that the read ends if the parent does */
		_exit(read(go[0], &c, 1) != 1);
	}
	CHECK(post_empty() == IBV_WC_SUCCESS);
	wait_asleep();
	CHECK(post_empty() == IBV_WC_SUCCESS);
	CHECK(write(go[1], "x", 1) == 1);
	wait_for(pid, 0);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} cases[] = {{"direct", direct},
		     {"receiver", receiver},
		     {"messages", messages},
		     {"on_demand", on_demand},
		     {"block", block},
		     {"bounds", bounds},
		     {"deregistered", deregistered},
		     {"writers", writers},
		     {"system_calls", system_calls},
		     {"forked", forked},
		     {"vforked", vforked},
		     {"cloned", cloned},
		     {"unmapped", unmapped},
		     {"unmapped_receive", unmapped_receive},
		     {"unmapped_fork", unmapped_fork},
		     {"unmapped_while_forking", unmapped_while_forking},
		     {"unmapped_flood", unmapped_flood},
		     {"unmapped_rights", unmapped_rights},
		     {"freed", freed},
		     {"local_unmapped", local_unmapped},
		     {"local_moved", local_moved},
		     {"local_freed", local_freed},
		     {"local_shrunk", local_shrunk},
		     {"stack_unmapped", stack_unmapped},
		     {"own_mappings", own_mappings},
		     {"truncated", truncated},
		     {"handled", handled},
		     {"masked", masked},
		     {"crashes", crashes},
		     {"crashes_truncated", crashes_truncated},
		     {"remapped", remapped},
		     {"advised", advised},
		     {"descriptors", descriptors},
		     {"descriptors_gone", descriptors_gone},
		     {"descriptor_of_part", descriptor_of_part},
		     {"killed", killed},
		     {"dies", dies},
		     {"by_packets", by_packets},
		     {"heap", heap},
		     {"woken", woken},
		     {"forked_asleep", forked_asleep}};
	unsigned int i;

	if (argc == 2 && strcmp(argv[1], "--peer") == 0)
		return run_peer();
	for (i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name) != 0)
			continue;
		if (cases[i].fn == handled)
			signal(SIGSEGV, handler_before_device);
		start(strcmp(cases[i].name, "receiver") != 0);
		cases[i].fn();
		printf("%s: right\n", cases[i].name);
		return 0;
	}
	fprintf(stderr, "usage: %s CASE\n", argv[0]);
	return 2;
}
