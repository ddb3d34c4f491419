/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Direct access to memory of malloc() in another process, which the kernel copies. The checks are
 * those of test_shm_keys.c, with long requests, because short ones go as packets. The system calls
 * are wrapped, so that they can fail.
 */
#include <sys/uio.h>

#include "../../../fakes/process.h"
#include "shm_direct_env.h"

#define LONG 4096u

static enum {
	WORKS,
	FORBIDDEN,
	PARTLY
} calls;
static unsigned int n_calls;
static int error; /* of a call that is FORBIDDEN */

ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n,
				 const struct iovec *there, unsigned long parts,
				 unsigned long flags);
ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n,
				const struct iovec *there, unsigned long parts,
				unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n,
				 const struct iovec *there, unsigned long parts,
				 unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n,
				const struct iovec *there, unsigned long parts,
				unsigned long flags);

ssize_t
__wrap_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n,
			 const struct iovec *there, unsigned long parts, unsigned long flags)
{
	n_calls++;
	errno = error;
	return calls == FORBIDDEN ? -1
				  : __real_process_vm_writev(pid, here, n, there,
							     calls == PARTLY ? 1 : parts, flags);
}

ssize_t
__wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n,
			const struct iovec *there, unsigned long parts, unsigned long flags)
{
	n_calls++;
	errno = error;
	return calls == FORBIDDEN ? -1
				  : __real_process_vm_readv(pid, here, n, there,
							    calls == PARTLY ? 1 : parts, flags);
}

/* Opens both devices with memory of malloc(). */
static void
begin_malloc(const char *more)
{
	setenv("ACTOR_MALLOC", "1", 1);
	begin(more);
	unsetenv("ACTOR_MALLOC");
	calls = WORKS;
	error = EPERM;
	n_calls = 0;
}

/* Connects the QPs, and repeats long requests until one is executed directly. */
static void
joined(const struct differ *d, enum actor_verb verb)
{
	uint64_t before;
	uint32_t i;

	join(d);
	before = direct();
	for (i = 0; direct() == before; i++) {
		if (i == 1000)
			fail_msg("all goes by packets");
		post(&a, verb, 0, LONG, mr_b.raddr, mr_b.rkey);
		completes(&a, BB_WC_SUCCESS);
	}
	blank(&b);
}

/* The owner of the memory waits at most two seconds for the end of an access. */
T(test_very_long_requests_are_executed_in_pieces)
{
	static const struct differ none;
	const uint32_t len = (6u << 20) + 333;
	uint64_t raddr, before;
	uint32_t rkey;

	begin_malloc("");
	joined(&none, ACTOR_WRITE);
	more_mr(0, ACTOR_BUF, ALL, false, &raddr, &rkey);
	before = direct();
	n_calls = 0;
	fill(&a, 0, len, 5);
	post(&a, ACTOR_WRITE, 0, len, raddr + 65, rkey);
	completes(&a, BB_WC_SUCCESS);
	holds(&b, 65, len, 5);
	assert_true(n_calls >= 2);
	n_calls = 0;
	blank(&a);
	post(&a, ACTOR_READ_VERB, 64, len, raddr + 65, rkey);
	completes(&a, BB_WC_SUCCESS);
	holds(&a, 64, len, 5);
	assert_true(n_calls >= 2);
	assert_int_equal(direct(), before + 2);
	more_mr(0, len - 1, ALL, false, &raddr, &rkey);
	blank(&b);
	bad(ACTOR_WRITE, raddr, len, rkey, BB_WC_REM_ACCESS_ERR);
	stop();
}

T(test_long_requests_are_direct_and_short_ones_and_atomics_are_packets)
{
	static const struct differ none;
	uint64_t before;

	begin_malloc("");
	joined(&none, ACTOR_WRITE);
	before = direct();
	fill(&a, 0, LEN, 5);
	post(&a, ACTOR_WRITE, 0, LEN, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	holds(&b, OFF, LEN, 5);
	blank(&a);
	post(&a, ACTOR_READ_VERB, 64, LEN, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	holds(&a, 64, LEN, 5);
	fill(&a, 0, LEN, 6);
	post(&a, ACTOR_WRITE_TWO, 0, LEN, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	holds(&b, OFF, LEN, 6);
	assert_int_equal(direct(), before + 3);
	n_calls = 0;
	post(&a, ACTOR_WRITE, 0, LONG - 1, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	post(&a, ACTOR_READ_VERB, 0, LONG - 1, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	m.z = 1;
	post(&a, ACTOR_FETCH_ADD, 0, 8, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	assert_int_equal(n_calls, 0);
	assert_int_equal(direct(), before + 3);
	/* The queue goes back to direct requests after packets. */
	post(&a, ACTOR_WRITE, 0, LONG, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	assert_int_equal(direct(), before + 4);
	stop();
}

T(test_long_requests_need_no_running_target)
{
	static const struct differ none;

	begin_malloc("");
	joined(&none, ACTOR_WRITE);
	actor_stop(&b);
	fill(&a, 0, LEN, 3);
	post(&a, ACTOR_WRITE, 0, LEN, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	blank(&a);
	post(&a, ACTOR_READ_VERB, 64, LEN, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	holds(&a, 64, LEN, 3);
	kill(b.pid, SIGCONT);
	stop();
}

T(test_bounds_and_keys_are_checked)
{
	static const struct {
		enum actor_verb verb;
		uint64_t at, len;
		uint32_t key;
	} all[] = {
		{ACTOR_WRITE, UINT64_MAX, LONG, 0},
		{ACTOR_WRITE, LEN - LONG + 1, LONG, 0},
		{ACTOR_WRITE, LEN, LONG, 0},
		{ACTOR_WRITE, 0, LEN + 1, 0},
		{ACTOR_WRITE, UINT64_MAX - OFF, LONG, 0},
		{ACTOR_WRITE_TWO, LEN - LONG + 1, LONG, 0},
		{ACTOR_READ_VERB, UINT64_MAX, LONG, 0},
		{ACTOR_READ_VERB, LEN - LONG + 1, LONG, 0},
		{ACTOR_READ_VERB, 0, LEN + 1, 0},
		{ACTOR_WRITE, 0, LONG, 1},
		{ACTOR_WRITE, 0, LONG, 0x8000},
		{ACTOR_READ_VERB, 0, LONG, 1},
	};
	static const struct differ none;
	uint64_t other;
	unsigned int i;
	uint32_t rkey;

	begin_malloc("");
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		joined(&none, ACTOR_WRITE);
		bad(all[i].verb, mr_b.raddr + all[i].at, all[i].len, mr_b.rkey ^ all[i].key,
		    BB_WC_REM_ACCESS_ERR);
		part();
	}
	more_mr(ACTOR_BUF / 2, LONG, ALL, true, &other, &rkey);
	joined(&none, ACTOR_WRITE);
	bad(ACTOR_WRITE, other, LONG, rkey, BB_WC_REM_ACCESS_ERR);
	part();
	more_mr(OFF, LONG, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_READ, false, &other, &rkey);
	joined(&none, ACTOR_WRITE);
	bad(ACTOR_WRITE, other, LONG, rkey, BB_WC_REM_ACCESS_ERR);
	part();
	more_mr(OFF, LONG, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE, false, &other, &rkey);
	joined(&none, ACTOR_WRITE);
	bad(ACTOR_READ_VERB, other, LONG, rkey, BB_WC_REM_ACCESS_ERR);
	part();
	stop();
}

T(test_qp_rights_are_checked)
{
	static const struct differ no_write = {.lacks = BB_ACCESS_REMOTE_WRITE},
				   no_read = {.lacks = BB_ACCESS_REMOTE_READ};

	begin_malloc("");
	joined(&no_write, ACTOR_READ_VERB);
	bad(ACTOR_WRITE, mr_b.raddr, LONG, mr_b.rkey, BB_WC_REM_INV_REQ_ERR);
	part();
	joined(&no_read, ACTOR_WRITE);
	bad(ACTOR_READ_VERB, mr_b.raddr, LONG, mr_b.rkey, BB_WC_REM_INV_REQ_ERR);
	part();
	stop();
}

T(test_deregistered_memory_is_refused)
{
	static const struct differ none;
	uint64_t raddr;
	uint32_t old;

	begin_malloc("");
	joined(&none, ACTOR_WRITE);
	old = mr_b.rkey;
	raddr = mr_b.raddr;
	do_ok(&b, ACTOR_DEREG);
	memset(&m, 0, sizeof(m));
	m.x = OFF;
	m.y = LEN;
	m.a = ALL;
	do_ok(&b, ACTOR_MR);
	mr_b.rkey = m.rkey;
	bad(ACTOR_WRITE, raddr, LONG, old, BB_WC_REM_ACCESS_ERR);
	stop();
}

T(test_requests_become_packets_if_the_kernel_refuses)
{
	static const struct differ none;
	uint64_t before;

	begin_malloc("");
	joined(&none, ACTOR_WRITE);
	before = direct();
	/* A copy of a part: packets copy the whole. */
	calls = PARTLY;
	n_calls = 0;
	fill(&a, 0, LEN, 7);
	post(&a, ACTOR_WRITE, 0, LEN, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	holds(&b, OFF, LEN, 7);
	blank(&a);
	post(&a, ACTOR_READ_VERB, 64, LEN, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	holds(&a, 64, LEN, 7);
	assert_true(n_calls >= 2);
	/* Without permission the device asks once. */
	calls = FORBIDDEN;
	n_calls = 0;
	fill(&a, 0, LEN, 8);
	post(&a, ACTOR_WRITE, 0, LEN, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	holds(&b, OFF, LEN, 8);
	post(&a, ACTOR_WRITE, 0, LEN, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	assert_int_equal(n_calls, 1);
	assert_int_equal(direct(), before);
	stop();
}

T(test_process_that_ended_is_not_accessed_if_its_child_goes_on)
{
	static const struct differ none;
	uint64_t before;

	begin_malloc("");
	joined(&none, ACTOR_WRITE);
	before = direct();
	do_ok(&b, ACTOR_CLONE);
	assert_int_equal(waitpid(b.pid, NULL, 0), b.pid);
	b.pid = (pid_t)m.x;
	n_calls = 0;
	fill(&a, 0, LEN, 4);
	post(&a, ACTOR_WRITE, 0, LEN, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	holds(&b, OFF, LEN, 4);
	blank(&a);
	post(&a, ACTOR_READ_VERB, 64, LEN, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	holds(&a, 64, LEN, 4);
	assert_int_equal(direct(), before);
	part();
	join(&none);
	post(&a, ACTOR_WRITE, 0, LEN, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	assert_int_equal(n_calls, 0);
	assert_int_equal(direct(), 0);
	stop();
}

/* A shortage of memory may be over soon, but a process of which the kernel knows nothing is gone.
 */
T(test_only_errors_that_last_stop_the_calls)
{
	static const struct {
		int err;
		bool lasts;
	} all[] = {{ENOMEM, false}, {EFAULT, false}, {ESRCH, true}};
	static const struct differ none;
	unsigned int i;

	begin_malloc("");
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		joined(&none, ACTOR_WRITE);
		calls = FORBIDDEN;
		error = all[i].err;
		fill(&a, 0, LEN, 9 + i);
		post(&a, ACTOR_WRITE, 0, LEN, mr_b.raddr, mr_b.rkey);
		completes(&a, BB_WC_SUCCESS);
		holds(&b, OFF, LEN, 9 + i);
		n_calls = 0;
		post(&a, ACTOR_WRITE, 0, LEN, mr_b.raddr, mr_b.rkey);
		completes(&a, BB_WC_SUCCESS);
		assert_int_equal(n_calls == 0, all[i].lasts);
		calls = WORKS;
		part();
	}
	stop();
}

/* Requests wait for packets in flight only if they can then be direct. */
T(test_device_that_delays_the_last_bytes_makes_no_calls)
{
	static const struct differ none;
	uint8_t wqe[64] = {[3] = BB_WQE_RDMA_WRITE};
	struct soft_wire *w;
	unsigned int i;

	begin_malloc(",shuffle");
	join(&none);
	for (i = 0; i < 3; i++) {
		fill(&a, 0, LEN, i);
		post(&a, ACTOR_WRITE, 0, LEN, mr_b.raddr, mr_b.rkey);
		completes(&a, BB_WC_SUCCESS);
		holds(&b, OFF, LEN, i);
	}
	assert_int_equal(n_calls, 0);
	w = soft_qp_find(own_gid()->dev, a.addr.qpn)->wire;
	wqe[34] = LONG >> 8;
	assert_false(soft_shm_vm_has(w, wqe, mr_b.rkey, mr_b.raddr));
	own_gid()->dev->opts.shuffle = false;
	assert_true(soft_shm_vm_has(w, wqe, mr_b.rkey, mr_b.raddr));
	stop();
}

int
main(int argc, char **argv)
{
	if (!kernel_copies_memory()) {
		printf("skipped: process_vm_readv(): %s\n", strerror(errno));
		return 77;
	}
	return shm_main(argc, argv, __FILE__);
}
