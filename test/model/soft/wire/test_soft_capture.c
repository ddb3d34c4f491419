/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The option "capture": the file's records of a device's packets, read by this test and by
 * tshark, and the file when it cannot be written.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../soft_rig.h"
#include "bb_roce_op.h"
#include "capture_read.h"

#define MTU 1024u /* of rig_link_default() */
#define PSN 0xfffffeu

static char path[64];

static int
new_path(void **state)
{
	(void)state;
	capture_path(path, sizeof(path));
	return 0;
}

static int
remove_file(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

#define T(name) TEST_WITH(new_path, remove_file, name)

static void
spec(char *args, size_t size, const char *more)
{
	snprintf(args, size, "wire=1,capture=%s%s", path, more);
}

static void
pair_open(struct rig_pair *p, const char *more)
{
	struct rig_link l = rig_link_default();
	char args[160];

	spec(args, sizeof(args), more);
	/* The PSNs wrap. */
	l.sq_psn = PSN;
	l.retry = 7;
	/* Without loss no packet is sent again, however slow the machine. */
	l.timeout = strstr(more, "drop") != NULL ? 14 : 0;
	rig_pair_open(p, args, false, &l);
	memset(p->mb.p, 0, p->mb.len);
	for (size_t i = 0; i < p->ma.len; i++)
		p->ma.p[i] = (uint8_t)(i * 7 + i / 251);
}

static void
wait_ok(struct rig_pair *p)
{
	struct rig_cqe e;

	rig_wait(&p->ca, p->u[0], &e);
	assert_int_equal(e.opcode, 0);
	assert_int_equal(e.counter, p->a.last);
}

static void
write_one(struct rig_pair *p, uint32_t len)
{
	rig_write(&p->a, &p->ma, 0, len, &p->mb, 0, RIG_CQE);
	rig_ring(&p->a);
	wait_ok(p);
}

#define PACKETS 9u /* packets of a conversation */

static void
converse(struct rig_pair *p)
{
	write_one(p, 2 * MTU + 1);
	assert_memory_equal(p->mb.p, p->ma.p, 2 * MTU + 1);
	rig_read(&p->a, &p->ma, 4 * MTU, MTU + 3, &p->mb, 0, RIG_CQE);
	rig_ring(&p->a);
	wait_ok(p);
	rig_recv(&p->b, &p->mb, 8 * MTU, MTU);
	rig_send(&p->a, &p->ma, 0, 61, RIG_CQE);
	rig_ring(&p->a);
	wait_ok(p);
}

#ifdef TSHARK
/* Returns the next column of a line. */
static char *
column(char **at)
{
	char *col = strsep(at, "\t");

	assert_non_null(col);
	return col;
}

static uint64_t
number(char **at)
{
	char *col = column(at), *end;
	uint64_t v = strtoull(col, &end, 0);

	assert_true(end != col && *end == '\0');
	return v;
}

static void
same_line(const struct capture_pkt *k, char *line)
{
	uint32_t ip_len = k->ip[0] >> 4 == 4 ? 20 : 40, i;
	char *at = line, *col;
	uint64_t seconds;

	line[strcspn(line, "\n")] = '\0';
	col = column(&at);
	seconds = strtoull(col, &col, 10);
	assert_int_equal(*col, '.');
	assert_int_equal(strlen(col), 10);
	assert_int_equal(seconds * 1000000000u + strtoull(col + 1, NULL, 10), k->ns);
	assert_int_equal(number(&at), k->dir);
	assert_string_equal(column(&at), "soft0");
	assert_string_equal(column(&at), k->note);
	assert_int_equal(number(&at), k->pkt.opcode);
	assert_int_equal(number(&at), k->pkt.psn);
	assert_int_equal(number(&at), k->pkt.dqpn);
	col = column(&at);
	assert_int_equal(strlen(col), 2 * (k->len - ip_len - 8));
	/* Compares the ICRC, too, which tshark does not check; read_roce() did. */
	for (i = ip_len + 8; i < k->len; i++, col += 2) {
		char byte[3] = {col[0], col[1], '\0'};

		assert_int_equal(strtoul(byte, NULL, 16), k->ip[i]);
	}
	assert_null(at);
}

/* An independent reader finds the same packets, comments and nanoseconds. */
T(test_tshark_reads_the_same_packets)
{
	static char line[65536];
	struct rig_pair p;
	struct capture c;
	char cmd[512];
	uint32_t n = 0;
	FILE *f;

	pair_open(&p, ",tx_dup=100");
	converse(&p);
	rig_pair_close(&p);
	capture_read(&c, path);
	snprintf(cmd, sizeof(cmd),
		 "tshark -n -r %s -T fields -e frame.time_epoch -e frame.packet_flags_direction "
		 "-e frame.interface_name -e frame.comment -e infiniband.bth.opcode "
		 "-e infiniband.bth.psn -e infiniband.bth.destqp "
		 "-e udp.payload 2>/dev/null",
		 path);
	f = popen(cmd, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		assert_true(n < c.n);
		same_line(&c.pkt[n++], line);
	}
	assert_int_equal(pclose(f), 0);
	assert_int_equal(n, c.n);
	assert_true(n >= 4 * PACKETS);
	capture_free(&c);
}
#else

/* Packets of the requester and the responder for one WRITE, READ and SEND each. */
static const struct {
	uint8_t opcode;
	bool b; /* sent by the responder */
	uint32_t psn, len, from;
} conversation[PACKETS] = {
	{BB_ROCE_WRITE_FIRST, false, PSN, MTU, 0},
	{BB_ROCE_WRITE_MIDDLE, false, PSN + 1, MTU, MTU},
	{BB_ROCE_WRITE_LAST, false, 0, 1, 2 * MTU},
	{BB_ROCE_ACK, true, 0, 0, 0},
	{BB_ROCE_READ_REQUEST, false, 1, 0, 0},
	{BB_ROCE_READ_RESP_FIRST, true, 1, MTU, 0},
	{BB_ROCE_READ_RESP_LAST, true, 2, 3, MTU},
	{BB_ROCE_SEND_ONLY, false, 3, 61, 0},
	{BB_ROCE_ACK, true, 3, 0, 0},
};

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

T(test_every_packet_is_captured_at_both_ends)
{
	uint32_t seen[2] = {0, 0}, i;
	struct rig_pair p;
	struct capture c;
	uint64_t from, to;

	from = now_ns();
	pair_open(&p, "");
	converse(&p);
	to = now_ns();
	rig_pair_close(&p);
	capture_read(&c, path);
	assert_string_equal(c.interface, "soft0");
	/* Each packet is sent and received: both ends are on the device. */
	assert_int_equal(c.n, 2 * PACKETS);
	for (i = 0; i < c.n; i++) {
		struct capture_pkt *k = &c.pkt[i];
		uint32_t n = seen[k->dir - 1]++;

		assert_true(n < PACKETS);
		assert_true(k->icrc_ok);
		assert_string_equal(k->note, "");
		assert_int_equal(k->pkt.opcode, conversation[n].opcode);
		assert_int_equal(k->pkt.psn, conversation[n].psn);
		assert_int_equal(k->pkt.dqpn, conversation[n].b ? p.a.qpn : p.b.qpn);
		assert_int_equal(k->pkt.len, conversation[n].len);
		for (uint32_t at = 0; at < k->pkt.len; at++)
			assert_int_equal(k->payload[at],
					 (uint8_t)((conversation[n].from + at) * 7 +
						   (conversation[n].from + at) / 251));
		/* The clocks of the timestamps may drift apart slightly. */
		assert_true(k->ns + 1000000000u >= from && k->ns <= to + 1000000000u);
		assert_true(i == 0 || k->ns >= c.pkt[i - 1].ns);
	}
	assert_int_equal(seen[0], seen[1]);
	capture_free(&c);
}

static uint32_t
count(const struct capture *c, uint32_t dir, const char *note)
{
	uint32_t n = 0, i;

	for (i = 0; i < c->n; i++)
		n += c->pkt[i].dir == dir && strcmp(c->pkt[i].note, note) == 0;
	return n;
}

/*
 * A packet that is lost when sent is in the file with a comment; a received packet is as it
 * arrived.
 */
T(test_faults_are_captured_as_comments)
{
	uint32_t damaged[2] = {0, 0}, i, out, in;
	struct rig_pair p;
	struct capture c;

	pair_open(&p, ",seed=5,tx_drop=5,tx_dup=5,tx_corrupt=5,rx_drop=5,rx_corrupt=5");
	for (i = 0; i < 300; i++)
		write_one(&p, 8);
	/* Receives the last duplicates. */
	rig_polls(p.u[0], 10);
	rig_pair_close(&p);
	capture_read(&c, path);
	for (i = 0, out = 0, in = 0; i < c.n; i++) {
		const struct capture_pkt *k = &c.pkt[i];

		/*
		 * A packet that was damaged when sent is damaged in the file; one that is damaged
		 * on receipt is intact.
		 */
		if (k->dir == CAPTURE_OUT && !k->icrc_ok)
			assert_non_null(strstr(k->note, "tx_corrupt"));
		damaged[k->dir - 1] += !k->icrc_ok;
		out += k->dir == CAPTURE_OUT && strstr(k->note, "tx_drop") == NULL;
		in += k->dir == CAPTURE_IN;
		if (strstr(k->note, "rx_corrupt") != NULL && k->dir == CAPTURE_IN)
			assert_null(strstr(k->note, "tx_"));
	}
	assert_int_equal(in, out);
	assert_int_equal(damaged[0], damaged[1]);
	assert_true(damaged[1] > 0);
	assert_true(count(&c, CAPTURE_OUT, "tx_drop") > 0);
	assert_true(count(&c, CAPTURE_OUT, "tx_dup") > 0);
	assert_true(count(&c, CAPTURE_OUT, "tx_corrupt") > 0);
	assert_true(count(&c, CAPTURE_IN, "rx_drop") > 0);
	assert_true(count(&c, CAPTURE_IN, "rx_corrupt") > 0);
	capture_free(&c);
}

static int
open_with(const char *name, const char *file, const char *more)
{
	struct mlx5_ctx *ctx;
	char args[512];
	int ret;

	snprintf(args, sizeof(args), "capture=%s%s", file, more);
	ret = soft_cmd_if.open(name, args, &ctx);
	if (ret == 0)
		OK(soft_cmd_if.close(ctx));
	return ret;
}

T(test_unusable_files_and_options_are_refused)
{
	char fifo[80], ro[80], long_name[300];
	struct mlx5_ctx *ctx;
	struct capture c;
	FILE *f;

	assert_int_equal(open_with("soft0", "/nonexistent/a", ",wire=1"), -ENOENT);
	assert_int_equal(open_with("soft0", "/tmp", ",wire=1"), -EISDIR);
	assert_int_equal(open_with("soft0", "/dev/null", ",wire=1"), -EINVAL);
	assert_int_equal(open_with("soft0", "", ",wire=1"), -EINVAL);
	assert_int_equal(open_with("soft0", path, ""), -EINVAL);
	assert_int_equal(open_with("soft0", path, ",wire=1,capture_max=0"), -EINVAL);
	assert_int_equal(open_with("soft0", path, ",wire=1,capture_max=1048577"), -EINVAL);
	memset(long_name, 'a', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	assert_int_equal(open_with("soft0", long_name, ",wire=1"), -EINVAL);
	assert_int_equal(access(path, F_OK), -1);
	/* A pipe without a reader does not block the device. */
	snprintf(fifo, sizeof(fifo), "%s.fifo", path);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(open_with("soft0", fifo, ",wire=1"), -ENXIO);
	unlink(fifo);
	if (geteuid() != 0) {
		snprintf(ro, sizeof(ro), "%s.ro", path);
		assert_int_equal(close(open(ro, O_CREAT | O_RDONLY, 0400)), 0);
		assert_int_equal(open_with("soft0", ro, ",wire=1"), -EACCES);
		unlink(ro);
	}
	/*
	 * Two devices capture to one file. Its former contents are erased, even if no packet
	 * follows.
	 */
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs("what was here before, longer than an empty capture is: ................"
			  "................................................................",
			  f) >= 0);
	fclose(f);
	{
		char args[160];

		spec(args, sizeof(args), "");
		OK(soft_cmd_if.open("soft0", args, &ctx));
		assert_int_equal(open_with("soft1", path, ",wire=1"), -EBUSY);
		/*
		 * The device that captures is opened again, with the same options or with others.
		 */
		assert_int_equal(open_with("soft0", path, ""), 0);
		assert_int_equal(open_with("soft0", "/tmp/other", ""), -EBUSY);
		OK(soft_cmd_if.close(ctx));
	}
	capture_read(&c, path);
	assert_int_equal(c.n, 0);
	capture_free(&c);
	assert_int_equal(open_with("soft1", path, ",wire=1"), 0);
}

/* A refused capture does not change the file's mode and owner. */
static void
refused_as_it_was(const char *file, int ret)
{
	struct stat before, after;

	assert_int_equal(stat(file, &before), 0);
	assert_int_equal(open_with("soft0", file, ",wire=1"), ret);
	assert_int_equal(stat(file, &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_equal(after.st_uid, before.st_uid);
}

static void
make_file(const char *file, mode_t mode)
{
	int fd = open(file, O_CREAT | O_EXCL | O_WRONLY, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "data", 4), 4);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

T(test_capture_follows_no_link_and_takes_no_foreign_file)
{
	char other[80];
	struct stat st;

	snprintf(other, sizeof(other), "%s.other", path);
	make_file(other, 0644);
	/* Symbolic links: to a file, and dangling. */
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(open_with("soft0", path, ",wire=1"), -ELOOP);
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(st.st_size, 4);
	unlink(other);
	assert_int_equal(open_with("soft0", path, ",wire=1"), -ELOOP);
	assert_int_equal(access(other, F_OK), -1);
	unlink(path);
	/* A hard link to another file of the user. */
	make_file(other, 0644);
	assert_int_equal(link(other, path), 0);
	refused_as_it_was(path, -EPERM);
	unlink(other);
	/* The user's own file: other users cannot read it from now on. */
	assert_int_equal(open_with("soft0", path, ",wire=1"), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* Another user's file, which is writable for everyone. */
	if (geteuid() == 0) {
		assert_int_equal(chmod(path, 0666), 0);
		assert_int_equal(chown(path, 65534, 65534), 0);
		refused_as_it_was(path, -EPERM);
	}
}

/* The file ends at its size limit; traffic continues. */
T(test_capture_ends_at_its_size_limit)
{
	struct rig_pair p;
	struct capture c;
	uint32_t i;

	pair_open(&p, ",capture_max=1");
	for (i = 0; i < 20; i++) {
		memset(p.mb.p, 0, 100000);
		write_one(&p, 100000);
		assert_memory_equal(p.mb.p, p.ma.p, 100000);
	}
	rig_pair_close(&p);
	capture_read(&c, path);
	assert_in_range(c.size, (1u << 20) - 2 * MTU, 1u << 20);
	assert_true(c.n > 800);
	capture_free(&c);
}

/* A failing write, within a block or not: no space, or permissions removed later. */
T(test_traffic_continues_after_a_failed_write)
{
	struct rlimit was, small;
	struct rig_pair p;
	struct capture c;
	uint32_t i;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	pair_open(&p, "");
	small = was;
	small.rlim_cur = 200001;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (i = 0; i < 20; i++) {
		memset(p.mb.p, 0, 100000);
		write_one(&p, 100000);
		assert_memory_equal(p.mb.p, p.ma.p, 100000);
	}
	rig_pair_close(&p);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	capture_read(&c, path);
	assert_in_range(c.size, 200001 - 2 * MTU, 200001);
	assert_true(c.n > 100);
	capture_free(&c);
	/* Not even the file header fits. */
	small.rlim_cur = 10;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(open_with("soft0", path, ",wire=1"), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	signal(SIGXFSZ, SIG_DFL);
}

/* A killed process leaves the packets that had waited for the flush interval, if it was polling. */
T(test_killed_process_leaves_its_packets)
{
	struct capture c;
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct rig_pair p;
		uint32_t n;

		pair_open(&p, "");
		converse(&p);
		do {
			rig_poll(p.u[0]);
			capture_read(&c, path);
			n = c.n;
			capture_free(&c);
		} while (n < 2 * PACKETS);
		raise(SIGKILL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	capture_read(&c, path);
	assert_int_equal(c.n, 2 * PACKETS);
	capture_free(&c);
}

#endif

int
main(void)
{
#ifdef TSHARK
	if (system("tshark -v >/dev/null 2>&1") != 0) {
		printf("SKIP: tshark is not installed\n");
		return 77;
	}
#endif
	return bb_test_run(__FILE__, NULL, NULL);
}
