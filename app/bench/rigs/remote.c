/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Starts, controls and ends the second process. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>

#include "remote.h"

#define END_SECONDS 30     /* time for the second process to exit */
#define IDLE_CHECK  0xffff /* polls without a result between two checks of the clock */

struct remote_shared *remote_shared;

static struct {
	pid_t pid;     /* process id of the second process; 0 while there is none */
	int sock, mem; /* descriptors: socket for messages, and shared memory; -1 if closed */
} remote = {.sock = -1, .mem = -1};

static void
set_pid(pid_t pid)
{
	remote.pid = pid;
	measure_peer_process(pid);
}

static int
make_shared(void)
{
	remote.mem = memfd_create("bluebell-bench", 0);
	if (remote.mem < 0)
		return -errno;
	if (ftruncate(remote.mem, sizeof(*remote_shared)) != 0)
		return -errno;
	remote_shared = mmap(NULL, sizeof(*remote_shared), PROT_READ | PROT_WRITE, MAP_SHARED,
			     remote.mem, 0);
	if (remote_shared == MAP_FAILED) {
		remote_shared = NULL;
		return -errno;
	}
	return 0;
}

/* Runs in the child process before exec, so makes only async-signal-safe calls. */
static void
exec_program(const char *path, const char *const *argv)
{
	cpu_set_t set;

	/*
	 * Makes the kernel kill this process when the first process dies. This process may be
	 * polling, and would not notice that the first process has died.
	 */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Ignores SIGINT. The first process handles it and closes the socket. */
	signal(SIGINT, SIG_IGN);
	/*
	 * The main lcore uses the peer CPU. EAL's helper threads mostly sleep and may use both
	 * CPUs.
	 */
	CPU_ZERO(&set);
	CPU_SET(cpu_self, &set);
	CPU_SET(cpu_peer, &set);
	sched_setaffinity(0, sizeof(set), &set);
	execv(path, (char *const *)(uintptr_t)argv);
	_exit(127);
}

/*
 * Builds the arguments of the second process. It uses the same kind of memory as this process, and
 * the EAL options that the command line gives for the second process.
 */
static void
make_args(const char **argv, const char *lcore, const char *fds)
{
	static const char *const huge[] = {"--in-memory", "--single-file-segments"};
	static const char *const nohuge[] = {"--no-huge", "-m", "1024"};
	static const char *const all[] = {
		"bench", "-l", "", "--no-pci", "--no-shconf", "--no-telemetry", "--log-level=4"};
	const bool pages = rte_eal_has_hugepages() != 0;
	unsigned int i, n = 0;

	for (i = 0; i < RTE_DIM(all); i++)
		argv[n++] = i == 2 ? lcore : all[i];
	for (i = 0; i < (pages ? RTE_DIM(huge) : RTE_DIM(nohuge)); i++)
		argv[n++] = pages ? huge[i] : nohuge[i];
	for (i = 0; i < opts.n_peer_eal; i++)
		argv[n++] = opts.peer_eal[i];
	argv[n++] = (char *)(uintptr_t) "--";
	argv[n++] = (char *)(uintptr_t) "--serve";
	argv[n++] = fds;
	argv[n] = NULL;
}

static int
spawn(int sock)
{
	char lcore[16], fds[32], path[512];
	const char *argv[BENCH_MAX_PEER_EAL + 16];
	ssize_t len;
	pid_t pid;

	/*
	 * Executes the program by its path instead of the link /proc/self/exe, because debuggers
	 * and valgrind need the path.
	 */
	len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (len < 0)
		return -errno;
	path[len] = '\0';
	snprintf(lcore, sizeof(lcore), "%u", cpu_peer);
	snprintf(fds, sizeof(fds), "%d,%d", sock, remote.mem);
	make_args(argv, lcore, fds);
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		exec_program(path, argv);
	set_pid(pid);
	return 0;
}

static void
print_end(int status)
{
	if (WIFSIGNALED(status))
		fprintf(stderr, "bench: the second process was ended by signal %d (%s)\n",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		fprintf(stderr, "bench: the second process ended with status %d\n",
			WEXITSTATUS(status));
}

/* Reaps the second process and frees what it used. Kills it first if @kill_it. */
static void
release_process(bool kill_it)
{
	int status;

	if (remote.pid != 0) {
		if (kill_it)
			kill(remote.pid, SIGKILL);
		if (waitpid(remote.pid, &status, 0) == remote.pid && !kill_it)
			print_end(status);
	}
	set_pid(0);
	remote_end();
}

int
remote_start(void)
{
	struct remote_msg msg = {.op = REMOTE_HELLO};
	int sv[2], rc;

	if (remote.pid != 0)
		return 0;
	if (!have_peer_cpu())
		return -ENODEV;
	rc = make_shared();
	if (rc == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv) != 0)
		rc = -errno;
	if (rc != 0)
		goto fail;
	remote.sock = sv[0];
	/*
	 * Does not let the child inherit this end of the socket. Otherwise the child would keep
	 * this end open, and could not detect that this process has closed it.
	 */
	if (fcntl(sv[0], F_SETFD, FD_CLOEXEC) != 0)
		rc = -errno;
	else
		rc = spawn(sv[1]);
	close(sv[1]);
	if (rc == 0)
		rc = remote_call(&msg);
	if (rc == 0)
		return 0;
fail:
	fprintf(stderr, "bench: the second process cannot be started: %s\n", strerror(-rc));
	remote_end();
	return rc;
}

int
remote_send(const struct remote_msg *msg)
{
	if (remote.pid == 0)
		return -EPIPE;
	__atomic_store_n(&remote_shared->stop, 0, __ATOMIC_RELEASE);
	if (send(remote.sock, msg, sizeof(*msg), MSG_NOSIGNAL) == (ssize_t)sizeof(*msg))
		return 0;
	release_process(false);
	return -EPIPE;
}

int
remote_wait(struct remote_msg *msg)
{
	struct pollfd p = {.fd = remote.sock, .events = POLLIN};
	int n;

	if (remote.pid == 0)
		return -EPIPE;
	do
		n = poll(&p, 1, REMOTE_SECONDS * 1000);
	while (n < 0 && errno == EINTR);
	if (n <= 0) {
		fprintf(stderr, "bench: the second process did not answer in %d s and was ended\n",
			REMOTE_SECONDS);
		release_process(true);
		return -ETIMEDOUT;
	}
	if (recv(remote.sock, msg, sizeof(*msg), 0) != (ssize_t)sizeof(*msg)) {
		release_process(false);
		return -EPIPE;
	}
	return msg->rc;
}

int
remote_call(struct remote_msg *msg)
{
	int rc = remote_send(msg);

	return rc == 0 ? remote_wait(msg) : rc;
}

int
remote_stop(struct remote_msg *msg)
{
	if (remote.pid == 0)
		return -EPIPE;
	__atomic_store_n(&remote_shared->stop, 1, __ATOMIC_RELEASE);
	return remote_wait(msg);
}

bool
remote_has_reply(void)
{
	struct pollfd p = {.fd = remote.sock, .events = POLLIN};

	return remote.pid == 0 || poll(&p, 1, 0) != 0;
}

bool
remote_gone(void)
{
	struct pollfd p = {.fd = remote.sock, .events = 0};

	return remote.pid == 0 || (poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR)) != 0);
}

bool
remote_give_up(uint64_t *idle, uint64_t *since)
{
	if ((*idle)++ == 0)
		*since = tsc();
	if ((*idle & IDLE_CHECK) != 0)
		return false;
	if (ns_since(*since) > REMOTE_SECONDS * 1e9)
		return true;
	if (remote.sock >= 0)
		return remote_gone();
	/* This is the second process. The first process sets stop when it gives up. */
	return remote_shared != NULL &&
	       __atomic_load_n(&remote_shared->stop, __ATOMIC_ACQUIRE) != 0;
}

/*
 * Waits for the end of the second process, which exits because remote_end() has closed its socket.
 * Kills it after END_SECONDS.
 */
static void
reap(void)
{
	unsigned int i;
	int status;

	for (i = 0; waitpid(remote.pid, &status, WNOHANG) == 0; i++) {
		if (i == END_SECONDS * 1000) {
			fprintf(stderr,
				"bench: the second process did not end in %d s and is killed\n",
				END_SECONDS);
			kill(remote.pid, SIGKILL);
			waitpid(remote.pid, &status, 0);
			break;
		}
		usleep(1000);
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		print_end(status);
	set_pid(0);
}

void
remote_end(void)
{

	if (remote_shared != NULL)
		__atomic_store_n(&remote_shared->stop, 1, __ATOMIC_RELEASE);
	if (remote.sock >= 0)
		close(remote.sock);
	remote.sock = -1;
	if (remote.pid != 0)
		reap();
	if (remote_shared != NULL)
		munmap(remote_shared, sizeof(*remote_shared));
	remote_shared = NULL;
	if (remote.mem >= 0)
		close(remote.mem);
	remote.mem = -1;
}
