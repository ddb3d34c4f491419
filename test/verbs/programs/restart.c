/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Calls that wait for events, while signals arrive: rdma_get_cm_event(), ibv_get_cq_event() and
 * ibv_get_async_event(). A handler with SA_RESTART must not end a call, a handler without it must.
 * Arguments: the IPv4 address of the device; with "exit_cm", "exit_command" or "exit_poll", a
 * handler calls exit(0) during a call of rdma_cm, during a command, or during ibv_poll_cq(). With
 * "close_poll", a handler closes a descriptor of the device during ibv_poll_cq(), with "close_fork"
 * while another thread calls fork().
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define SIGNALS 20
#define GAP_US  2000

static struct rdma_event_channel *cm;
static struct rdma_cm_id *id;
static struct ibv_comp_channel *comp;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_qp *qp;
static struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = 1};

static volatile sig_atomic_t handled;
static bool ended; /* the call has returned; atomic */
static bool restarts;
static pthread_t caller;

static void
fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void
handler(int sig)
{
	(void)sig;
	handled++;
}

/* ---- Calls, and what raises the event of each */

static int
get_cm(void)
{
	struct rdma_cm_event *ev;

	if (rdma_get_cm_event(cm, &ev) != 0)
		return -1;
	rdma_ack_cm_event(ev);
	return 0;
}

static void
raise_cm(void)
{
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&own, 1000) != 0)
		fail("rdma_resolve_addr");
}

static int
get_cq(void)
{
	struct ibv_cq *of;
	void *arg;

	if (ibv_get_cq_event(comp, &of, &arg) != 0)
		return -1;
	ibv_ack_cq_events(of, 1);
	return 0;
}

static int
get_async(void)
{
	struct ibv_async_event ev;

	if (ibv_get_async_event(id->verbs, &ev) != 0)
		return -1;
	ibv_ack_async_event(&ev);
	return 0;
}

static void
modify(enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask) != 0)
		fail("ibv_modify_qp");
}

/* Makes a queue pair and its receive, which completes when the queue pair fails. */
static void
make_qp(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_recv_wr wr = {0}, *bad;

	if (qp != NULL)
		ibv_destroy_qp(qp);
	if (srq == NULL)
		srq = ibv_create_srq(pd, &srq_attr);
	attr.srq = cq != NULL ? NULL : srq;
	if (cq == NULL) {
		cq = ibv_create_cq(pd->context, 16, NULL, comp, 0);
		attr.send_cq = attr.recv_cq = cq;
	}
	qp = ibv_create_qp(pd, &attr);
	if (srq == NULL || cq == NULL || qp == NULL || ibv_req_notify_cq(cq, 0) != 0)
		fail("ibv_create_qp");
	modify(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (attr.srq == NULL && ibv_post_recv(qp, &wr, &bad) != 0)
		fail("ibv_post_recv");
}

static void
raise_qp(void)
{
	modify(IBV_QPS_ERR, 0);
}

/* ---- Signals */

static void *
signal_caller(void *raise_event)
{
	while (restarts ? handled < SIGNALS : !__atomic_load_n(&ended, __ATOMIC_ACQUIRE)) {
		usleep(GAP_US);
		pthread_kill(caller, SIGUSR1);
	}
	if (restarts)
		(*(void (**)(void))raise_event)();
	return NULL;
}

/* Returns the errno of the call, 0 if it has got an event. */
static int
interrupted(int (*get)(void), void (*raise_event)(void), int flags)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = flags};
	pthread_t thread;
	int error;

	sigaction(SIGUSR1, &sa, NULL);
	handled = 0;
	restarts = flags != 0;
	__atomic_store_n(&ended, false, __ATOMIC_RELEASE);
	caller = pthread_self();
	if (pthread_create(&thread, NULL, signal_caller, &raise_event) != 0)
		fail("pthread_create");
	error = get() == 0 ? 0 : errno;
	__atomic_store_n(&ended, true, __ATOMIC_RELEASE);
	/* After an error the thread still waits for its signals. */
	while (restarts && error != 0 && handled < SIGNALS)
		usleep(GAP_US);
	pthread_join(thread, NULL);
	return error;
}

static void
check(const char *name, int (*get)(void), void (*raise_event)(void))
{
	const int with = interrupted(get, raise_event, SA_RESTART);
	const int without = interrupted(get, raise_event, 0);

	if (with != 0 || without != EINTR) {
		fprintf(stderr, "%s: %s with SA_RESTART, %s without\n", name, strerror(with),
			strerror(without));
		exit(1);
	}
	printf("%s\n", name);
}

/* ---- A handler that calls exit() */

/* Function below whose next call in this thread raises the signal. */
static __thread enum {
	NONE,
	EVENTFD,
	WRITE,
	VM_WRITEV
} raises;

static void
raise_in(int function)
{
	if ((int)raises != function)
		return;
	raises = NONE;
	raise(SIGUSR1);
}

/* Replaces the function by which bb_verbs makes a completion channel. */
int
eventfd(unsigned int value, int flags)
{
	raise_in(EVENTFD);
	return (int)syscall(SYS_eventfd2, value, flags);
}

/* Replaces the function by which the device makes a completion channel readable. */
ssize_t
write(int fd, const void *buf, size_t len)
{
	static ssize_t (*real)(int, const void *, size_t);

	raise_in(WRITE);
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "write");
	return real(fd, buf, len);
}

/* Replaces the function by which bb_verbs writes the response of a command of rdma_cm. */
ssize_t
process_vm_writev(pid_t pid, const struct iovec *to, unsigned long n_to, const struct iovec *from,
		  unsigned long n_from, unsigned long flags)
{
	raise_in(VM_WRITEV);
	return syscall(SYS_process_vm_writev, pid, to, n_to, from, n_from, flags);
}

static void
exit_handler(int sig)
{
	(void)sig;
	exit(0);
}

#define SPARE_FD 100 /* no thread of the device opens a file with so high a number */

static int spare; /* descriptor of a second context */

static enum {
	NO_FORK,
	FORK, /* the thread fork_once() calls fork() */
	FORKING,
} fork_now; /* atomic */

/* Runs in fork() before the handlers of the device, which were registered earlier. */
static void
before_fork(void)
{
	__atomic_store_n(&fork_now, FORKING, __ATOMIC_RELEASE);
}

static void *
fork_once(void *arg)
{
	int status;
	pid_t pid;

	(void)arg;
	while (__atomic_load_n(&fork_now, __ATOMIC_ACQUIRE) != FORK)
		usleep(GAP_US);
	pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		fail("fork");
	return NULL;
}

static void
close_handler(int sig)
{
	(void)sig;
	close(spare);
	handled++;
}

/*
 * Gives fork() the time to take locks. On a machine that needs more time the test passes without
 * the overlap.
 */
static void
close_in_fork_handler(int sig)
{
	const struct timespec time = {.tv_nsec = 50000000};

	__atomic_store_n(&fork_now, FORK, __ATOMIC_RELEASE);
	while (__atomic_load_n(&fork_now, __ATOMIC_ACQUIRE) != FORKING)
		;
	(void)nanosleep(&time, NULL);
	close_handler(sig);
}

/* Gives a second context the descriptor that the handler closes. */
static void
open_spare(struct ibv_device *device)
{
	struct ibv_context *second = ibv_open_device(device);

	if (second == NULL)
		fail("ibv_open_device");
	spare = fcntl(second->cmd_fd, F_DUPFD, SPARE_FD);
	if (spare < 0 || close(second->cmd_fd) != 0)
		fail("fcntl");
	second->cmd_fd = spare;
}

/* The program has closed the descriptor in a handler: a file that gets its number is no node. */
static int
check_closed(void)
{
	const int null = open("/dev/null", O_WRONLY);

	if (null < 0 || fcntl(null, F_DUPFD, spare) != spare || write(spare, "x", 1) != 1)
		fail("write");
	return 0;
}

/* A program that ends frees its objects. In the middle of a poll these commands fail. */
static void
clean_up(void)
{
	if (qp != NULL)
		(void)ibv_destroy_qp(qp);
	(void)ibv_close_device(id->verbs);
}

/* Makes a UD queue pair that sends to itself. Returns its address handle. */
static struct ibv_ah *
make_ud(struct ibv_pd *pd)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD,
					.cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct ibv_ah_attr to = {
		.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 1}};

	attr.send_cq = attr.recv_cq = cq;
	qp = ibv_create_qp(pd, &attr);
	if (qp == NULL || ibv_query_gid(pd->context, 1, 1, &to.grh.dgid) != 0)
		fail("ibv_create_qp");
	modify(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	modify(IBV_QPS_RTR, 0);
	modify(IBV_QPS_RTS, IBV_QP_SQ_PSN);
	return ibv_create_ah(pd, &to);
}

/*
 * Polls until this thread, not that of the device, executes a request and raises its event. Returns
 * after the handler.
 */
static void
signal_in_a_poll(struct ibv_pd *pd)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_wc wc;

	comp = ibv_create_comp_channel(pd->context);
	cq = ibv_create_cq(pd->context, 16, NULL, comp, 0);
	if (comp == NULL || cq == NULL)
		fail("ibv_create_cq");
	wr.wr.ud.ah = make_ud(pd);
	wr.wr.ud.remote_qpn = qp->qp_num;
	if (wr.wr.ud.ah == NULL)
		fail("ibv_create_ah");
	while (!handled) {
		if (ibv_req_notify_cq(cq, 0) != 0 || ibv_post_send(qp, &wr, &bad) != 0)
			fail("ibv_post_send");
		raises = WRITE;
		while (ibv_poll_cq(cq, 1, &wc) == 0)
			;
		raises = NONE;
		/* The device raises no event before the program has got the last one. */
		if (!handled && get_cq() != 0)
			fail("ibv_get_cq_event");
	}
}

/* With memory that peers share, fork() waits until no thread runs the device. */
static void
make_region(struct ibv_pd *pd)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	const size_t len = 65536;
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || ibv_reg_mr(pd, p, len, access) == NULL)
		fail("ibv_reg_mr");
}

static int
close_in_a_poll(struct ibv_pd *pd, bool forks)
{
	pthread_t thread;

	signal(SIGUSR1, forks ? close_in_fork_handler : close_handler);
	open_spare(id->verbs->device);
	if (forks) {
		make_region(pd);
		if (pthread_atfork(before_fork, NULL, NULL) != 0 ||
		    pthread_create(&thread, NULL, fork_once, NULL) != 0)
			fail("pthread_create");
	}
	signal_in_a_poll(pd);
	if (forks)
		pthread_join(thread, NULL);
	return check_closed();
}

/* Returns 0 only if a handler closes: in other cases the handler ends the process with 0. */
static int
signal_in_a_call(const char *which)
{
	struct ibv_pd *pd;

	signal(SIGUSR1, exit_handler);
	raises = strcmp(which, "exit_cm") == 0 ? VM_WRITEV : NONE;
	if (rdma_bind_addr(id, (struct sockaddr *)&own) != 0)
		fail("rdma_bind_addr");
	pd = ibv_alloc_pd(id->verbs);
	if (pd == NULL || atexit(clean_up) != 0)
		fail("ibv_alloc_pd");
	if (strncmp(which, "close_", strlen("close_")) == 0)
		return close_in_a_poll(pd, strcmp(which, "close_fork") == 0);
	if (strcmp(which, "exit_poll") == 0)
		signal_in_a_poll(pd);
	raises = EVENTFD;
	comp = ibv_create_comp_channel(pd->context);
	return raises == NONE ? 4 : 3;
}

int
main(int argc, char **argv)
{
	struct ibv_pd *pd;

	if (argc < 2 || inet_pton(AF_INET, argv[1], &own.sin_addr) != 1)
		return 2;
	cm = rdma_create_event_channel();
	if (cm == NULL || rdma_create_id(cm, &id, NULL, RDMA_PS_TCP) != 0)
		fail("rdma_create_id");
	if (argc > 2)
		return signal_in_a_call(argv[2]);
	check("rdma_get_cm_event", get_cm, raise_cm);
	pd = ibv_alloc_pd(id->verbs);
	comp = ibv_create_comp_channel(id->verbs);
	if (pd == NULL || comp == NULL)
		fail("ibv_create_comp_channel");
	make_qp(pd);
	check("ibv_get_async_event", get_async, raise_qp);
	make_qp(pd);
	check("ibv_get_cq_event", get_cq, raise_qp);
	return 0;
}
