/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Result files on a full disk, which a file size limit simulates, and paths that cannot be
 * created.
 */
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "bb_test.h"
#include "output.h"

#define ROOM 4096

static char folder[] = "/tmp/bb_output.XXXXXX";
static char path[sizeof(folder) + 8];

static int
setup(void **state)
{
	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/file", folder);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

TEST(test_file_appears_whole_at_close)
{
	struct stat st;
	FILE *f;

	assert_true(output_try("json", NULL));
	assert_true(output_try("json", path));
	assert_int_not_equal(stat(path, &st), 0);
	f = output_open("json", path);
	assert_non_null(f);
	fputs("all of it", f);
	assert_int_equal(output_close(f, "json", path), 0);
	/* Trying a path leaves an existing file's content alone. */
	assert_true(output_try("json", path));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, strlen("all of it"));
	assert_false(output_try("json", folder));
	assert_null(output_open("json", folder));
}

/*
 * `--json >(program)`: trying the pipe must not close it; the program still receives the output.
 */
TEST(test_trying_a_pipe_does_not_close_it)
{
	struct pollfd end = {.events = POLLIN};

	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	end.fd = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(end.fd >= 0);
	assert_true(output_try("json", path));
	assert_int_equal(poll(&end, 1, 0), 0);
	close(end.fd);
	unlink(path);
}

/* Cut short by one long write, by many short ones, and by the final flush. */
TEST(test_output_cut_short_is_an_error)
{
	static const size_t pieces[][2] = {{4 * ROOM, 1}, {100, ROOM}, {ROOM + 1, 1}};
	static char data[4 * ROOM];
	struct rlimit was, room;
	struct stat st;
	FILE *f;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	room = (struct rlimit){ROOM, was.rlim_max};
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		int rc;

		assert_int_equal(setrlimit(RLIMIT_FSIZE, &room), 0);
		f = output_open("json", path);
		assert_non_null(f);
		for (size_t k = 0; k < pieces[i][1]; k++)
			fwrite(data, 1, pieces[i][0], f);
		rc = output_close(f, "json", path);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
		assert_true(rc == -EFBIG || rc == -EIO);
		assert_int_not_equal(stat(path, &st), 0);
	}
	/* A device file is not removed. */
	f = output_open("json", "/dev/full");
	assert_non_null(f);
	fputs("x", f);
	assert_int_equal(output_close(f, "json", "/dev/full"), -ENOSPC);
	assert_int_equal(stat("/dev/full", &st), 0);
}

/* Asserts that @path can be neither tried nor opened, and that the file @named is unchanged. */
static void
refused_as_it_was(const char *named)
{
	struct stat before, after;

	assert_int_equal(stat(named, &before), 0);
	assert_false(output_try("json", path));
	assert_null(output_open("json", path));
	assert_int_equal(stat(named, &after), 0);
	assert_fields(after, st_size, before.st_size, st_mode, before.st_mode);
	assert_int_equal(after.st_uid, before.st_uid);
}

static void
make_file(const char *name, mode_t mode)
{
	int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "data", 4), 4);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

TEST(test_links_are_not_followed)
{
	char other[sizeof(path) + 8];

	unlink(path);
	snprintf(other, sizeof(other), "%s.other", path);
	make_file(other, 0640);
	assert_int_equal(symlink(other, path), 0);
	refused_as_it_was(other);
	unlink(other);
	assert_false(output_try("json", path));
	assert_null(output_open("json", path));
	assert_int_equal(access(other, F_OK), -1);
	unlink(path);
	make_file(other, 0640);
	assert_int_equal(link(other, path), 0);
	refused_as_it_was(other);
	unlink(other);
	unlink(path);
}

TEST(test_a_file_of_another_user_is_refused)
{
	if (geteuid() != 0)
		skip();
	unlink(path);
	make_file(path, 0666);
	assert_int_equal(chown(path, 65534, 65534), 0);
	refused_as_it_was(path);
	unlink(path);
	/* A pipe whose reader belongs to another user. */
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(chown(path, 65534, 65534), 0);
	{
		int end = open(path, O_RDONLY | O_NONBLOCK);

		assert_true(end >= 0);
		assert_null(output_open("json", path));
		close(end);
	}
	unlink(path);
}

TEST(test_an_own_file_gets_no_wider_mode_than_a_new_one)
{
	static const mode_t masks[] = {022, 077, 0};
	struct stat st;
	FILE *f;

	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		const mode_t was = umask(masks[i]);

		unlink(path);
		make_file(path, 0606);
		assert_true(output_try("json", path));
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0606);
		f = output_open("json", path);
		assert_non_null(f);
		fputs("x", f);
		assert_int_equal(output_close(f, "json", path), 0);
		assert_int_equal(umask(was), masks[i]);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0606 & ~masks[i]);
		assert_int_equal(st.st_size, 1);
	}
}

/* `--json >(program)` of bash, and `--json /dev/stdout >>file`. */
TEST(test_a_path_of_a_descriptor_is_that_descriptor)
{
	char name[64], got[8] = "";
	int ends[2];
	FILE *f;

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(pipe(ends), 0);
		snprintf(name, sizeof(name), "%s/%d", i == 0 ? "/dev/fd" : "/proc/self/fd",
			 ends[1]);
		assert_true(output_try("json", name));
		f = output_open("json", name);
		assert_non_null(f);
		fputs("line", f);
		assert_int_equal(output_close(f, "json", name), 0);
		assert_int_equal(read(ends[0], got, sizeof(got)), 4);
		close(ends[0]);
		close(ends[1]);
		assert_null(output_open("json", name));
	}
	unlink(path);
	make_file(path, 0600);
	ends[0] = open(path, O_WRONLY | O_APPEND);
	assert_true(ends[0] >= 0);
	snprintf(name, sizeof(name), "/dev/fd/%d", ends[0]);
	f = output_open("json", name);
	assert_non_null(f);
	fputs("+", f);
	assert_int_equal(output_close(f, "json", name), 0);
	assert_int_equal(lseek(ends[0], 0, SEEK_END), 5);
	close(ends[0]);
}

/* Returns the exit status of a program that prints a line to @fd. */
static int
printed_to(int fd)
{
	int status;
	pid_t pid;

	assert_true(fd >= 0);
	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		signal(SIGPIPE, SIG_IGN);
		dup2(fd, STDOUT_FILENO);
		output_watch();
		printf("a line\n");
		exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(fd);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(test_failed_flush_of_stdout_is_a_failure)
{
	int ends[2];

	assert_int_equal(printed_to(open(path, O_WRONLY | O_CREAT, 0600)), 0);
	assert_int_equal(printed_to(open("/dev/full", O_WRONLY)), EXIT_FAILURE);
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	assert_int_equal(printed_to(ends[1]), EXIT_FAILURE);
}

TEST_MAIN_WITH(setup, teardown, 0)
