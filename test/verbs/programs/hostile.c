/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A verbs program that misuses its descriptors, as the argument says. Each case ends with "right"
 * and exit status 0 if all calls were refused as expected; a crash is the failure that it looks
 * for.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_user_cm.h>
#include <rdma/rdma_user_ioctl.h>

#define CHECK(condition_)                                                                          \
	do {                                                                                       \
		if (!(condition_)) {                                                               \
			printf("line %d: %s (%s)\n", __LINE__, #condition_, strerror(errno));      \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static struct ibv_context *
open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list != NULL && list[0] != NULL ? ibv_open_device(list[0]) : NULL;

	if (list != NULL)
		ibv_free_device_list(list);
	return ctx;
}

/* The node is closed beneath the library: its calls fail, and another context is not disturbed. */
static void
closed(void)
{
	struct ibv_context *ctx = open_device(), *other = open_device();
	struct ibv_pd *pd;

	CHECK(ctx != NULL && other != NULL);
	CHECK(close(ctx->async_fd) == 0);
	CHECK(close(ctx->cmd_fd) == 0);
	CHECK(ibv_alloc_pd(ctx) == NULL);
	pd = ibv_alloc_pd(other);
	CHECK(pd != NULL && ibv_dealloc_pd(pd) == 0);
	CHECK(ibv_close_device(other) == 0);
}

static void
lengths(void)
{
	struct ibv_context *ctx = open_device();
	uint32_t words[16] = {0};
	unsigned int i;

	CHECK(ctx != NULL);
	for (i = 0; i < 64; i++) {
		words[0] = i;
		words[1] = 0xffffffff; /* lengths of the command and of the response */
		CHECK(write(ctx->cmd_fd, words, i) < 0);
	}
	CHECK(ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, NULL) < 0 && errno == EFAULT);
	words[0] = 0xffff;
	CHECK(ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, words) < 0 && errno == EINVAL);
	CHECK(read(ctx->cmd_fd, words, sizeof(words)) < 0);
	CHECK(write(ctx->async_fd, words, sizeof(words)) < 0);
	CHECK(ibv_close_device(ctx) == 0);
}

/* Another file takes the number of the node. */
static void
replaced(void)
{
	struct ibv_context *ctx = open_device();
	int null = open("/dev/null", O_RDWR);
	struct ibv_port_attr port;

	CHECK(ctx != NULL && null >= 0);
	/* Calls that fail replace nothing. */
	CHECK(dup2(-1, ctx->cmd_fd) == -1 && dup3(null, ctx->cmd_fd, O_APPEND) == -1);
	CHECK(ibv_query_port(ctx, 1, &port) == 0 && port.state == IBV_PORT_ACTIVE);
	CHECK(dup2(null, ctx->cmd_fd) == ctx->cmd_fd);
	CHECK(write(ctx->cmd_fd, "x", 1) == 1);
	/* The command goes to /dev/null, which answers nothing. */
	(void)ibv_alloc_pd(ctx);
}

/* Makes a queue pair. Returns its number, 0 if that fails. */
static uint32_t
qpn_of(struct ibv_context *ctx)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.send_cq = cq,
		.recv_cq = cq,
	};
	struct ibv_qp *qp = pd != NULL && cq != NULL ? ibv_create_qp(pd, &attr) : NULL;
	const uint32_t qpn = qp != NULL ? qp->qp_num : 0;

	CHECK(qp == NULL || ibv_destroy_qp(qp) == 0);
	CHECK(cq == NULL || ibv_destroy_cq(cq) == 0);
	CHECK(pd == NULL || ibv_dealloc_pd(pd) == 0);
	return qpn;
}

/* Makes all queue pairs that the device has, and one more. A destroyed one makes room again. */
static void
all_qps(void)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ctx != NULL ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_cq *cq = pd != NULL ? ibv_create_cq(ctx, 16, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.send_cq = cq,
		.recv_cq = cq,
	};
	struct ibv_device_attr dev;
	struct ibv_qp *qp, *last = NULL;
	int i;

	CHECK(cq != NULL && ibv_query_device(ctx, &dev) == 0);
	printf("%d queue pairs\n", dev.max_qp);
	for (i = 0; i < dev.max_qp; i++) {
		qp = ibv_create_qp(pd, &attr);
		CHECK(qp != NULL);
		last = qp;
	}
	CHECK(ibv_create_qp(pd, &attr) == NULL && errno == EAGAIN);
	CHECK(ibv_destroy_qp(last) == 0);
	CHECK(ibv_create_qp(pd, &attr) != NULL);
}

/*
 * The parent of a daemon has opened the device and ends. Its child opens the device, and prints the
 * number of a queue pair.
 */
static void
daemonized(void)
{
	struct ibv_context *ctx = open_device();
	int end[2];
	char byte;

	CHECK(ctx != NULL && qpn_of(ctx) != 0 && pipe(end) == 0);
	fflush(stdout);
	if (fork() != 0)
		_exit(0);
	close(end[1]);
	CHECK(setsid() > 0 && read(end[0], &byte, 1) == 0);
	ctx = open_device();
	CHECK(ctx != NULL);
	printf("daemon has QPN 0x%x\n", qpn_of(ctx));
	CHECK(ibv_close_device(ctx) == 0);
}

/*
 * A context of the parent fails in a child of fork(), which has a device of its own. The parent's
 * calls continue.
 */
static void
forked(void)
{
	struct ibv_context *ctx = open_device(), *own;
	struct ibv_pd *pd;
	int status;
	pid_t pid;

	CHECK(ctx != NULL);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		CHECK(ibv_alloc_pd(ctx) == NULL && errno == ENODEV);
		own = open_device();
		CHECK(own != NULL && qpn_of(own) != 0);
		CHECK(ibv_close_device(own) == 0);
		CHECK(close(ctx->cmd_fd) == 0);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	pd = ibv_alloc_pd(ctx);
	CHECK(pd != NULL && ibv_dealloc_pd(pd) == 0);
	CHECK(ibv_close_device(ctx) == 0);
}

/* Returns the number of open sockets of the process. */
static unsigned int
sockets(void)
{
	struct stat st;
	unsigned int n = 0;
	int fd;

	for (fd = 0; fd < 1024; fd++)
		n += fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
	return n;
}

/* Returns the number of sockets of a program that this process executes. */
static int
executed(void)
{
	FILE *f = popen("ls -l /proc/self/fd | grep socket: | wc -l", "r");
	int n = -1;

	CHECK(f != NULL && fscanf(f, "%d", &n) == 1 && pclose(f) == 0);
	return n;
}

/*
 * With a DPDK port: a child of fork() cannot open the device, has none of the port's sockets, and
 * its end does not disturb the parent. A program that is executed gets no sockets, too.
 */
static void
forked_port(void)
{
	const unsigned int before = sockets();
	const int inherited = executed();
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd;
	int status;
	pid_t pid;

	CHECK(ctx != NULL && sockets() > before);
	CHECK(executed() == inherited);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		CHECK(ibv_alloc_pd(ctx) == NULL && errno == ENODEV);
		CHECK(sockets() == before);
		CHECK(open_device() == NULL);
		CHECK(close(ctx->cmd_fd) == 0);
		exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	pd = ibv_alloc_pd(ctx);
	CHECK(pd != NULL && ibv_dealloc_pd(pd) == 0);
	CHECK(ibv_close_device(ctx) == 0);
}

/* A child of fork() cannot open the device. It ends, also if it does not get an answer. */
static void
refused_child(void)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		alarm(60);
		CHECK(open_device() == NULL);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

/* With a DPDK port that cannot be created: each open fails, also in a child. */
static void
failed_port(void)
{
	CHECK(open_device() == NULL);
	CHECK(open_device() == NULL);
	refused_child();
}

/*
 * With a DPDK port: EAL gets no memory and does not start. Further opens fail, too, also when
 * there is memory.
 */
static void
failed_eal(void)
{
	struct rlimit limit, small;
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f != NULL && fscanf(f, "%lu", &pages) == 1 && fclose(f) == 0);
	CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
	small = limit;
	small.rlim_cur = pages * (unsigned long)sysconf(_SC_PAGESIZE) + (64 << 20);
	CHECK(setrlimit(RLIMIT_AS, &small) == 0);
	CHECK(open_device() == NULL);
	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
	CHECK(open_device() == NULL);
	refused_child();
}

/* A child of vfork() closes the node in its parent's memory, but not in its table. */
static void
vforked(void)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd;
	int status;
	pid_t pid;

	CHECK(ctx != NULL);
	pid = vfork();
	if (pid == 0) {
		close(ctx->cmd_fd);
		close(ctx->async_fd);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	pd = ibv_alloc_pd(ctx);
	CHECK(pd != NULL && ibv_dealloc_pd(pd) == 0);
	CHECK(ibv_close_device(ctx) == 0);
}

/* The node stays open until its last descriptor is closed. */
static void
duplicated(void)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd;
	int first, second;

	CHECK(ctx != NULL);
	first = dup(ctx->cmd_fd);
	second = fcntl(ctx->cmd_fd, F_DUPFD_CLOEXEC, 100);
	CHECK(first >= 0 && second >= 100);
	pd = ibv_alloc_pd(ctx);
	CHECK(pd != NULL && close(ctx->cmd_fd) == 0);
	ctx->cmd_fd = second;
	CHECK(ibv_dealloc_pd(pd) == 0);
	CHECK(close(first) == 0);
	pd = ibv_alloc_pd(ctx);
	CHECK(pd != NULL && ibv_dealloc_pd(pd) == 0);
	CHECK(ibv_close_device(ctx) == 0);
	CHECK(fcntl(second, F_GETFD) == -1 && errno == EBADF);
}

static void
range(void)
{
	struct ibv_context *ctx = open_device();
	const unsigned int low =
		(unsigned int)(ctx->cmd_fd < ctx->async_fd ? ctx->cmd_fd : ctx->async_fd);

	CHECK(close_range(low, low, 0) == 0);
	CHECK(close_range(low + 1, low + 64, 0) == 0);
	CHECK(ibv_alloc_pd(ctx) == NULL);
}

/* Returns a context that was opened anew, after @old is found to be refused. */
static struct ibv_context *
opened_again(struct ibv_context *old)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;

	CHECK(ibv_alloc_pd(old) == NULL);
	ctx = open_device();
	CHECK(ctx != NULL);
	pd = ibv_alloc_pd(ctx);
	CHECK(pd != NULL && ibv_dealloc_pd(pd) == 0);
	return ctx;
}

/* A child of fork() has the memory at @p. */
static void
check_child_has(const volatile uint8_t *p)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(*p != 7);
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

/*
 * The program closes all descriptors while it uses the device, those of the device's threads
 * included. It opens files at their numbers, to which the device must not write. The memory that it
 * has registered stays.
 */
static void
all_closed(void)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ctx != NULL ? ibv_alloc_pd(ctx) : NULL;
	uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd, i;

	CHECK(pd != NULL && p != MAP_FAILED);
	*p = 7;
	CHECK(ibv_reg_mr(pd, p, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) != NULL);
	closefrom(3);
	check_child_has(p);
	for (i = 3; i < 40; i++)
		CHECK(open("/dev/full", O_RDWR) == i);
	closefrom(3);
	ctx = opened_again(ctx);
	for (fd = 3; fd < 1024; fd++)
		(void)close(fd);
	CHECK(open("/dev/null", O_RDONLY) == 3);
	ctx = opened_again(ctx);
	CHECK(ibv_close_device(ctx) == 0);
}

#define CM_NODE "/dev/infiniband/rdma_cm"

/* Creates an ID whose number goes to @resp. Returns 0 or an errno. */
static int
create_id_at(int fd, struct rdma_ucm_create_id_resp *resp)
{
	const struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_create_id create;
	} c = {{RDMA_USER_CM_CMD_CREATE_ID, sizeof(c.create), sizeof(*resp)},
	       {.uid = 1, .response = (uintptr_t)resp, .ps = RDMA_PS_TCP}};

	return write(fd, &c, sizeof(c)) == sizeof(c) ? 0 : errno;
}

static int
create_id(int fd, uint32_t *id)
{
	struct rdma_ucm_create_id_resp resp = {0};
	int ret = create_id_at(fd, &resp);

	*id = resp.id;
	return ret;
}

static void *
wait_for_event(void *fd)
{
	static struct rdma_ucm_event_resp resp;
	const struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_get_event get;
	} c = {{RDMA_USER_CM_CMD_GET_EVENT, sizeof(c.get), sizeof(resp)},
	       {.response = (uintptr_t)&resp}};

	return write(*(int *)fd, &c, sizeof(c)) < 0 ? fd : NULL;
}

/*
 * The rdma_cm node: calls that it does not have, a response to an invalid address, a thread that is
 * cancelled while it waits for an event, duplicates, and a child of fork().
 */
static void
rdma_cm(void)
{
	int fd = open(CM_NODE, O_RDWR | O_CLOEXEC), second, status;
	const uint32_t garbage[64] = {99, 1};
	uint32_t id, other;
	struct stat st;
	pthread_t thread;
	char byte;
	void *end, *gone;
	pid_t pid;

	CHECK(fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode));
	CHECK(read(fd, &byte, 1) == -1 && errno == EINVAL);
	CHECK(ioctl(fd, RDMA_VERBS_IOCTL, garbage) == -1 && errno == ENOTTY);
	CHECK(write(fd, garbage, sizeof(garbage)) == -1 && errno == EINVAL);
	CHECK(write(fd, garbage, 3) == -1 && errno == EINVAL);
	CHECK(create_id(fd, &id) == 0 && create_id(fd, &other) == 0 && id != other);
	gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(gone != MAP_FAILED && create_id_at(fd, gone) == 0 && mprotect(gone, 4096, 0) == 0);
	CHECK(create_id_at(fd, gone) == EFAULT);
	CHECK(pthread_create(&thread, NULL, wait_for_event, &fd) == 0);
	usleep(20000);
	CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &end) == 0);
	CHECK(end == PTHREAD_CANCELED);
	CHECK(create_id(fd, &id) == 0);
	CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	CHECK(wait_for_event(&fd) == &fd && errno == EAGAIN);
	pid = fork();
	if (pid == 0) {
		CHECK(create_id(fd, &id) == ENODEV);
		CHECK(close(fd) == 0);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	second = dup(fd);
	CHECK(second >= 0 && close(fd) == 0 && create_id(second, &id) == 0);
	CHECK(close(second) == 0 && create_id(second, &id) == EBADF);
}

/*
 * The program closes all descriptors above its own of rdma_cm, and opens a file there. Events
 * still arrive, and the library does not write to the file.
 */
static void
rdma_cm_last(void)
{
	struct ibv_context *ctx = open_device();
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_resolve_ip resolve;
	} c = {{RDMA_USER_CM_CMD_RESOLVE_IP, sizeof(c.resolve), 0}, {.timeout_ms = 2000}};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = 1};
	const int fd = open(CM_NODE, O_RDWR | O_CLOEXEC);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	union ibv_gid gid;
	struct stat st;
	int own;

	CHECK(ctx != NULL && fd >= 0 && ibv_query_gid(ctx, 1, 1, &gid) == 0);
	CHECK(close_range((unsigned int)fd + 1, ~0u, 0) == 0);
	own = memfd_create("own", 0);
	CHECK(own >= 0 && dup2(own, fd + 1) == fd + 1);
	memcpy(&to.sin_addr, gid.raw + 12, sizeof(to.sin_addr));
	memcpy(&c.resolve.dst_addr, &to, sizeof(to));
	CHECK(create_id(fd, &c.resolve.id) == 0 && write(fd, &c, sizeof(c)) == sizeof(c));
	CHECK(poll(&p, 1, 60000) == 1 && p.revents == POLLIN);
	CHECK(fstat(own, &st) == 0 && st.st_size == 0);
	CHECK(close(fd) == 0 && ibv_close_device(ctx) == 0);
}

/* Opens the device and waits for a signal. */
static void
hold(void)
{
	CHECK(open_device() != NULL);
	puts("holds");
	fflush(stdout);
	for (;;)
		pause();
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} cases[] = {{"closed", closed},           {"lengths", lengths},
		     {"replaced", replaced},       {"forked", forked},
		     {"vforked", vforked},         {"range", range},
		     {"all_closed", all_closed},   {"all_qps", all_qps},
		     {"daemonized", daemonized},   {"duplicated", duplicated},
		     {"rdma_cm", rdma_cm},         {"rdma_cm_last", rdma_cm_last},
		     {"forked_port", forked_port}, {"failed_port", failed_port},
		     {"failed_eal", failed_eal},   {"hold", hold}};
	unsigned int i;

	for (i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name) != 0)
			continue;
		cases[i].fn();
		printf("%s: right\n", cases[i].name);
		return 0;
	}
	fprintf(stderr, "usage: %s CASE\n", argv[0]);
	return 2;
}
