/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The troubleshooting guide quotes log lines. This program makes the described mistakes through
 * the public API and checks that the log has the guide's words. Quoted texts that this program
 * cannot provoke are in elsewhere[], with the reason. usage: model_guide_texts
 * TROUBLESHOOTING_RST
 */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include <bluebell.h>
#include <rte_malloc.h>

#include "../../../fakes/bare_eal.h"
#include "../../../fakes/log_catch.h"
#include "../../../fakes/ring_port.h"

#define PAGE      4096u
#define MAX_TERMS 64

static struct {
	char text[128];
	bool met;
} terms[MAX_TERMS];
static unsigned int n_terms;

static const char *guide;

static struct {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_qp *qp, *peer;
	struct bb_qp_addr addr, peer_addr;
	uint8_t *mem;
} s;

/*
 * Returns true if @log contains @text. A printf() conversion in @text matches any text of one
 * line.
 */
static bool
says(const char *log, const char *text)
{
	const char *at = log, *end;
	char piece[128];

	while (*text != '\0') {
		size_t n = strcspn(text, "%");

		snprintf(piece, sizeof(piece), "%.*s", (int)n, text);
		end = strstr(at, piece);
		if (end == NULL || (at != log && memchr(at, '\n', (size_t)(end - at)) != NULL))
			return false;
		at = end + n;
		text += n;
		if (*text == '%')
			text += 1 + strcspn(text + 1, "diuxs") + 1;
	}
	return true;
}

/* Checks that the log since log_begin() contains @text, which the guide quotes. */
static void
told(const char *text)
{
	bool ok;
	unsigned int i;

	for (i = 0; i < n_terms && strcmp(terms[i].text, text) != 0; i++)
		;
	if (i == n_terms)
		fail_msg("the guide does not quote \"%s\"", text);
	terms[i].met = true;
	fflush(log_file);
	ok = says(log_text, text);
	if (!ok)
		print_error("log is \"%s\", the guide has \"%s\"\n", log_text, text);
	log_stop();
	assert_true(ok);
}

TEST(test_open_without_eal_logs_a_guide_text)
{
	struct bb_dev *dev;

	log_begin();
	assert_int_equal(bb_dev_open("soft0", &dev), -EINVAL);
	told("EAL is not initialised");
}

static void
make_qp(struct bb_qp **qp)
{
	struct bb_qp_init_attr init;

	bb_qp_init_attr_init(&init);
	init.send_cq = init.recv_cq = s.cq;
	OK(bb_qp_create(s.pd, &init, qp));
}

TEST(test_failed_opens_log_guide_texts)
{
	struct bb_cq_attr attr;
	struct bb_dev *dev;

	assert_true(bare_eal_init() >= 0);
	s.mem = rte_zmalloc(NULL, 2 * PAGE, PAGE);
	assert_non_null(s.mem);
	OK(bb_dev_open("soft0", &s.dev));
	OK(bb_pd_alloc(s.dev, &s.pd));
	bb_cq_attr_init(&attr);
	attr.depth = 1024;
	OK(bb_cq_create(s.dev, &attr, &s.cq));
	make_qp(&s.qp);
	make_qp(&s.peer);

	log_begin();
	assert_int_equal(bb_dev_open("soft3,no_devx", &dev), -EOPNOTSUPP);
	told("%s: no DEVX");
	log_begin();
	assert_int_equal(bb_dev_open("soft3,port=net_nothing0,ip=192.0.2.1/24", &dev), -EINVAL);
	told("there is no such ethdev");
}

TEST(test_bad_attributes_log_guide_texts)
{
	struct bb_cq_attr attr = {.depth = 64};
	struct bb_cq *cq;

	log_begin();
	assert_int_equal(bb_cq_create(s.dev, &attr, &cq), -EINVAL);
	told("invalid attributes: their size field is %u, not %zu");
	bb_cq_attr_init(&attr);
	log_begin();
	assert_int_equal(bb_cq_create_v(s.dev, &attr, BB_LAYOUT_VERSION + 1, &cq), -EPROTO);
	told("the program was built for queue layout %u, but the library has layout %u");
	attr.depth = 1u << 22; /* 256 MiB of CQEs: all of EAL's memory */
	log_begin();
	assert_int_equal(bb_cq_create(s.dev, &attr, &cq), -ENOMEM);
	told("no EAL memory for");
}

static void
connect_both(void)
{
	struct bb_qp_attr qa;

	bb_qp_attr_init(&qa);
	OK(bb_qp_addr(s.qp, 1, 0, &s.addr));
	OK(bb_qp_addr(s.peer, 1, 0, &s.peer_addr));
	OK(bb_qp_connect(s.qp, &s.addr, &s.peer_addr, &qa));
}

static int
connected(void **state)
{
	(void)state;
	if (s.qp->state == BB_QP_RESET)
		connect_both();
	return 0;
}

TEST_WITH(connected, NULL, test_memory_mistakes_log_guide_texts)
{
	struct bb_wc wc;
	struct bb_mr *mr;
	struct bb_mw *mw;
	void *p;

	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	log_begin();
	assert_int_equal(bb_mr_reg(s.pd, p, PAGE, BB_ACCESS_LOCAL_WRITE, &mr), -EFAULT);
	told("the memory must be mapped, and writable");
	munmap(p, PAGE);

	OK(bb_mr_reg(s.pd, s.mem, PAGE, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_MW_BIND, &mr));
	OK(bb_mw_alloc(s.pd, BB_MW_TYPE_2, &mw));
	OK(bb_post_bind_mw(s.qp, 1, mw, bb_inc_rkey(mw->rkey), mr, (uintptr_t)s.mem, 64,
			   BB_ACCESS_REMOTE_WRITE, BB_SEND_SIGNALED));
	bb_qp_ring(s.qp);
	while (bb_cq_poll(s.cq, &wc, 1) == 0)
		;
	assert_int_equal(wc.status, BB_WC_SUCCESS);
	log_begin();
	assert_int_equal(bb_mr_dereg(mr), -EBUSY);
	told("%u memory window%s bound to it");
	OK(bb_mw_free(mw));
	OK(bb_mr_dereg(mr));
}

TEST(test_wrong_states_log_guide_texts)
{
	struct bb_qp_init_attr init;
	struct bb_cq_attr attr;
	struct bb_qp_attr qa;
	struct bb_cq *cq;
	struct bb_qp *qp;

	bb_qp_attr_init(&qa);
	qa.state = BB_QP_RTS;
	log_begin();
	assert_int_equal(bb_qp_modify(s.peer, &qa, BB_QP_STATE), -EINVAL);
	told("the order is RESET, INIT, RTR, RTS");
	qa.state = BB_QP_SQD;
	log_begin();
	assert_int_equal(bb_qp_modify(s.qp, &qa, BB_QP_STATE), -ENOTSUP);
	told("state SQD is not supported");
	log_begin();
	assert_int_equal(bb_qp_connect(s.peer, &s.addr, &s.peer_addr, &qa), -EINVAL);
	told("the local address names QP 0x%x: give this QP's own address first");

	bb_cq_attr_init(&attr);
	OK(bb_cq_create(s.dev, &attr, &cq));
	bb_qp_init_attr_init(&init);
	init.send_cq = init.recv_cq = cq;
	init.sq_depth = attr.depth;
	log_begin();
	assert_int_equal(bb_qp_create(s.pd, &init, &qp), -ENOSPC);
	told("the CQ is too small for the %s");
	OK(bb_cq_destroy(cq));
}

static void *
no_lcore(void *arg)
{
	struct bb_cq_attr attr;
	struct bb_cq *cq;

	bb_cq_attr_init(&attr);
	*(int *)arg = bb_cq_create(s.dev, &attr, &cq);
	return NULL;
}

TEST(test_thread_without_lcore_logs_a_guide_text)
{
	pthread_t thread;
	int rc = 0;

	log_begin();
	assert_int_equal(pthread_create(&thread, NULL, no_lcore, &rc), 0);
	pthread_join(thread, NULL);
	assert_int_equal(rc, -EINVAL);
	told("this thread is not an lcore");
}

/* A stray write into the library's record of a request. */
TEST(test_corrupt_records_log_a_guide_text)
{
	struct bb_sge sge = {.addr = (uintptr_t)s.mem, .len = 8};
	struct bb_qp_recovery r = {.max = 0};

	OK(bb_post_write(s.qp, 1, &sge, 1, 0, 0, 0));
	memset(s.qp->sq.wqes, 0x5a, (s.qp->sq.mask + 1) * sizeof(*s.qp->sq.wqes));
	log_begin();
	assert_int_equal(bb_qp_recover(s.qp, NULL, NULL, NULL, &r), -EIO);
	told("the records of its send queue are corrupt");
}

TEST(test_used_address_logs_a_guide_text)
{
	struct bb_dev *a, *b;
	char spec[2][64];
	unsigned int i;

	for (i = 0; i < 2; i++)
		snprintf(spec[i], sizeof(spec[i]), "soft%u,shm=guide%d,ip=192.0.2.1/24", i + 1,
			 (int)getpid());
	OK(bb_dev_open(spec[0], &a));
	log_begin();
	assert_int_equal(bb_dev_open(spec[1], &b), -EADDRINUSE);
	told("uses the address of this device's GID index %u");
	OK(bb_dev_close(a));
}

TEST(test_dropped_packets_log_guide_texts)
{
	static const char *const texts[] = {"packets dropped:", "frames dropped:"};
	struct ring_port port;
	struct bb_cq_attr attr;
	char spec[128];
	struct bb_dev *dev;
	struct bb_cq *cq;
	unsigned int i;
	struct bb_wc wc;

	assert_true(ring_port_open(&port));
	snprintf(spec, sizeof(spec), "soft4,port=%s,ip=192.0.2.1/24", port.name);
	assert_true(rte_log_set_level_pattern("bluebell.soft", RTE_LOG_INFO) >= 0);
	bb_cq_attr_init(&attr);
	for (i = 0; i < RTE_DIM(texts); i++) {
		OK(bb_dev_open(spec, &dev));
		OK(bb_cq_create(dev, &attr, &cq));
		assert_true(ring_port_give(&port, i == 1));
		while (rte_ring_count(port.in) != 0)
			assert_int_equal(bb_cq_poll(cq, &wc, 1), 0);
		OK(bb_cq_destroy(cq));
		log_begin();
		OK(bb_dev_close(dev));
		told(texts[i]);
	}
	assert_true(rte_log_set_level_pattern("bluebell.soft", RTE_LOG_NOTICE) >= 0);
}

TEST(test_objects_of_the_tests_are_freed)
{
	OK(bb_qp_destroy(s.qp));
	OK(bb_qp_destroy(s.peer));
	OK(bb_cq_destroy(s.cq));
	OK(bb_pd_free(s.pd));
	OK(bb_dev_close(s.dev));
	rte_free(s.mem);
}

/* Quoted texts that need more than one process, another user, seconds of time or a card. */
static const char *const elsewhere[] = {
	"devices cannot be opened in a secondary process",
	"give this user rights to /dev/infiniband/uverbs*", /* unit verbs_life */
	"cannot load the software device from %s",          /* model soft_library */
	"is not the software device of this libbluebell",   /* model soft_library */
	"add bluebell-soft to the packages",                /* test/consumer/run */
	"the process is at a limit",                        /* ulimit -v fails sanitizers */
	"the limit of locked memory is reached",            /* unit verbs_attr */
	"lookups of these addresses find no lkey",          /* unit mem */
	"the CQ belongs to lcore %u",                       /* unit loop: needs two lcores */
	"overrun: all %u CQEs are unread",                  /* model soft_*: raw commands */
	"a port with role=client needs its role=server to run first", /* soft_port_memif */
	"no answer from",                                             /* model, interop */
	"mtu=%u does not fit",                                        /* soft_port_linux */
	"which is not trusted",                                       /* needs another user */
	"queue of connections has been full",                         /* model shm_call */
	"devices cannot be opened in a child of fork()",              /* model mlx5_process */
	"a connection owns the QP",                                   /* model connect_owner */
};

TEST(test_every_guide_text_is_provoked_or_listed)
{
	unsigned int i, k, known = 0;

	for (i = 0; i < n_terms; i++) {
		for (k = 0; k < RTE_DIM(elsewhere) && strcmp(elsewhere[k], terms[i].text) != 0; k++)
			;
		if (k < RTE_DIM(elsewhere))
			known++;
		else if (!terms[i].met)
			fail_msg("nothing here provokes \"%s\"", terms[i].text);
	}
	assert_int_equal(known, RTE_DIM(elsewhere)); /* the guide quotes each of them */
}

/* Reads definition lists whose term is one literal: ``text`` followed by an indented line. */
static void
read_guide(void)
{
	char line[256], before[256] = "";
	FILE *f = fopen(guide, "r");
	size_t n;

	if (f == NULL) {
		perror(guide);
		exit(1);
	}
	while (fgets(line, sizeof(line), f) != NULL) {
		n = strlen(before);
		if (strncmp(line, "    ", 4) == 0 && n > 5 && strncmp(before, "``", 2) == 0 &&
		    strcmp(before + n - 3, "``\n") == 0 && n_terms < MAX_TERMS)
			snprintf(terms[n_terms++].text, sizeof(terms[0].text), "%.*s", (int)n - 5,
				 before + 2);
		strcpy(before, line);
	}
	fclose(f);
}

int
main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	guide = argv[1];
	read_guide();
	return bb_test_run(__FILE__, NULL, NULL);
}
