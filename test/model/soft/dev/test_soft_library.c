/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * How a program loads the library of the software device, linked like an installed program. Each
 * test runs in a child process, because a loaded library stays loaded. usage: model_soft_library
 * LIBBLUEBELL-SOFT.SO
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "bare_eal.h"
#include "log_catch.h"

#include <bluebell.h>

#define SONAME  "libbluebell-soft.so.0"
#define NODE    "BLUEBELL_PRIVATE_"
#define THREADS 8
#define HINT    "set BB_DRIVER_PATH to its folder"

static const char *soft_library;
static char folder[] = "/tmp/bbsoftXXXXXX";
static char file[sizeof(folder) + sizeof(SONAME)];

static int
count_loaded(struct dl_phdr_info *info, size_t size, void *count)
{
	(void)size;
	if (strstr(info->dlpi_name, "bluebell-soft") != NULL || strstr(info->dlpi_name, folder))
		++*(int *)count;
	return 0;
}

/* Returns the number of software device libraries in this process. */
static int
loaded(void)
{
	int count = 0;

	dl_iterate_phdr(count_loaded, &count);
	return count;
}

/*
 * Copies @path to BB_DRIVER_PATH/libbluebell-soft.so.0; changes the release in the version node
 * if @other_release.
 */
static void
copy_library(const char *path, bool other_release)
{
	FILE *in = fopen(path, "rb"), *out = fopen(file, "wb");
	struct stat st;
	size_t len;
	char *bytes, *node;

	assert_non_null(in);
	assert_non_null(out);
	assert_int_equal(fstat(fileno(in), &st), 0);
	len = (size_t)st.st_size;
	bytes = malloc(len);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, len, in), len);
	if (other_release) {
		node = memmem(bytes, len, NODE, strlen(NODE));
		assert_non_null(node);
		node[strlen(NODE)] ^= 1;
	}
	assert_int_equal(fwrite(bytes, 1, len, out), len);
	assert_int_equal(fclose(out), 0);
	fclose(in);
	free(bytes);
}

static bool
is_listed(void)
{
	struct bb_dev_info info[16];
	int i, n = bb_dev_list(info, RTE_DIM(info));

	for (i = 0; i < n; i++) {
		if (strcmp(info[i].name, "soft0") == 0 && strcmp(info[i].driver, "mlx5") == 0)
			return true;
	}
	return false;
}

static void
open_and_close(void)
{
	struct bb_dev *dev = NULL;

	OK(bb_dev_open("soft0", &dev));
	assert_non_null(dev);
	OK(bb_dev_close(dev));
	assert_int_equal(loaded(), 1);
	assert_true(is_listed());
}

/*
 * Opens with the test's file, which must fail with a log line of the file, then @cause, and
 * @rest; then opens with the right file.
 */
static void
refuse(int error, const char *cause, const char *rest)
{
	struct bb_dev *const untouched = (struct bb_dev *)folder, *dev = untouched;
	char text[512];

	snprintf(text, sizeof(text), "%s%s", file, cause);
	log_begin();
	assert_int_equal(bb_dev_open("soft0", &dev), error);
	assert_ptr_equal(dev, untouched);
	log_expect(text);
	log_begin();
	assert_int_equal(bb_dev_open("soft1,wire=1", &dev), error);
	log_expect(rest);
	assert_int_equal(loaded(), 0);

	assert_int_equal(unsetenv("BB_DRIVER_PATH"), 0);
	open_and_close();
}

TEST(test_opens_from_the_folder_of_the_library)
{
	assert_int_equal(unsetenv("BB_DRIVER_PATH"), 0);
	assert_true(is_listed());
	assert_int_equal(loaded(), 0);
	open_and_close();
}

TEST(test_opens_from_BB_DRIVER_PATH)
{
	copy_library(soft_library, false);
	assert_true(is_listed());
	assert_int_equal(loaded(), 0);
	open_and_close();
}

static void *
open_in_thread(void *arg)
{
	struct bb_dev *dev;
	char spec[16];

	snprintf(spec, sizeof(spec), "soft%d", *(int *)arg);
	*(int *)arg = bb_dev_open(spec, &dev);
	return *(int *)arg == 0 ? dev : NULL;
}

TEST(test_threads_that_open_at_once_load_once)
{
	pthread_t thread[THREADS];
	int i, arg[THREADS];
	void *dev[THREADS];

	assert_int_equal(unsetenv("BB_DRIVER_PATH"), 0);
	for (i = 0; i < THREADS; i++) {
		arg[i] = i;
		assert_int_equal(pthread_create(&thread[i], NULL, open_in_thread, &arg[i]), 0);
	}
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], &dev[i]), 0);
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(arg[i], 0);
		OK(bb_dev_close(dev[i]));
	}
	assert_int_equal(loaded(), 1);
}

/* A verbs device may have this name: no driver is loaded for it. */
TEST(test_name_without_number_loads_nothing)
{
	struct bb_dev *dev;

	copy_library(soft_library, false);
	assert_int_equal(bb_dev_open("softroce", &dev), -ENODEV);
	assert_int_equal(bb_dev_open("mlx5_0", &dev), -ENODEV);
	assert_int_equal(loaded(), 0);
}

TEST(test_missing_file_is_refused)
{
	assert_false(is_listed());
	refuse(-ELIBACC, ": cannot open shared object file: No such file or directory", HINT);
}

TEST(test_file_that_is_no_library_is_refused)
{
	FILE *out = fopen(file, "w");
	int i;

	assert_non_null(out);
	for (i = 0; i < 1000; i++)
		fputs("no library\n", out);
	fclose(out);
	refuse(-ELIBACC, ": invalid ELF header", HINT);
}

TEST(test_truncated_library_is_refused)
{
	copy_library(soft_library, false);
	assert_int_equal(truncate(file, 20), 0);
	refuse(-ELIBACC, ": file too short", HINT);
}

TEST(test_unreadable_library_is_refused)
{
	struct bb_dev *dev = NULL;

	copy_library(soft_library, false);
	assert_int_equal(chmod(file, 0), 0);
	/* root can read all files. */
	if (geteuid() == 0) {
		assert_int_equal(chmod(folder, 0755), 0);
		assert_int_equal(seteuid(65534), 0);
	}
	assert_false(is_listed());
	log_begin();
	assert_int_equal(bb_dev_open("soft0", &dev), -ELIBACC);
	assert_null(dev);
	log_expect("cannot open shared object file: Permission denied");
	assert_int_equal(loaded(), 0);
	assert_int_equal(seteuid(getuid()), 0);
	assert_int_equal(unsetenv("BB_DRIVER_PATH"), 0);
	open_and_close();
}

TEST(test_library_of_another_release_is_refused)
{
	copy_library(soft_library, true);
	refuse(-ELIBACC, ": ", "BLUEBELL_PRIVATE_");
}

TEST(test_other_library_is_refused)
{
	Dl_info cmocka;

	assert_int_not_equal(dladdr((void *)_cmocka_run_group_tests, &cmocka), 0);
	copy_library(cmocka.dli_fname, false);
	refuse(-ELIBBAD, " is not the software device of this libbluebell", HINT);
}

/* Runs one test with its own empty BB_DRIVER_PATH. Returns the exit status. */
static int
run(const struct CMUnitTest *test)
{
	const struct CMUnitTest one[] = {*test};

	if (mkdtemp(folder) == NULL || setenv("BB_DRIVER_PATH", folder, 1) != 0 ||
	    bare_eal_init() < 0)
		return 1;
	snprintf(file, sizeof(file), "%s/" SONAME, folder);
	return cmocka_run_group_tests_name(test->name, one, NULL, NULL);
}

int
main(int argc, char **argv)
{
	int status, failed = 0, i;
	pid_t child;

	if (argc != 2)
		return 2;
	soft_library = argv[1];
	for (i = 0; i < bb_test_count; i++) {
#ifdef BB_TSAN
		/* The others have no thread. */
		if (strstr(bb_tests[i].name, "threads") == NULL)
			continue;
#endif
		fflush(stdout);
		child = fork();
		if (child == 0) {
			status = run(&bb_tests[i]);
			unlink(file);
			rmdir(folder);
			exit(status);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
			failed++;
	}
	return failed;
}
