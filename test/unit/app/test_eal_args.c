/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Arguments of EAL that a program adds, for given command lines and free hugepages. */
#include <errno.h>
#include <string.h>

#include <sys/stat.h>

#include "bb_test.h"
#include "eal_args.h"

#define ALL_PAGES 512
#define NO_PAGES  0

/* Completes the words of @line for 512 MB; returns the added words, joined by spaces. */
static const char *
added(const char *line, uint64_t free_mb, bool no_pci, bool *plain)
{
	const struct eal_need need = {512, free_mb, no_pci};
	char copy[256], *argv[16], *out[16 + EAL_ARGS_MAX_ADDED + 1];
	static char text[256];
	int i, argc = 0, n;
	char *word;

	snprintf(copy, sizeof(copy), "program %s", line);
	for (word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
		argv[argc++] = word;
	n = eal_args_complete(argc, argv, &need, out, plain);
	assert_in_range(n, argc, argc + EAL_ARGS_MAX_ADDED);
	assert_null(out[n]);
	text[0] = '\0';
	for (i = 0; i < n; i++) {
		if (i < argc) {
			assert_ptr_equal(out[i], argv[i]);
			continue;
		}
		if (i > argc)
			strcat(text, " ");
		strcat(text, out[i]);
	}
	return text;
}

TEST(test_line_without_memory_gets_plain_pages_if_hugepages_are_short)
{
	static const char *const lines[] = {"", "-l 0", "-l 0 --no-telemetry --log-level=lib.eal:4",
					    "--vdev=net_af_packet0,iface=eth1 -n 4"};
	bool plain;
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_string_equal(added(lines[i], NO_PAGES, false, &plain),
				    "--no-huge -m 512 --no-shconf");
		assert_true(plain);
	}
	assert_string_equal(added("", ALL_PAGES - 1, true, &plain),
			    "--no-huge -m 512 --no-shconf --no-pci");
	assert_true(plain);
}

TEST(test_line_without_memory_gets_hugepages_if_enough_are_free)
{
	bool plain = true;

	assert_string_equal(added("-l 0", ALL_PAGES, false, &plain),
			    "--in-memory --single-file-segments");
	assert_false(plain);
}

TEST(test_option_for_memory_is_left_alone)
{
	static const char *const lines[] = {
		"-m 64",        "-m64",          "--socket-mem=64", "--socket-mem 64,64",
		"--in-memory",  "--in-mem",      "--huge-dir=/mnt", "--huge-unlink=always",
		"--legacy-mem", "--match-alloc", "--proc-type=auto"};
	bool plain = true;
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_string_equal(added(lines[i], NO_PAGES, false, &plain), "");
		assert_false(plain);
		assert_string_equal(added(lines[i], ALL_PAGES, false, &plain), "");
	}
}

TEST(test_plain_pages_of_user_get_no_shared_files)
{
	bool plain = true;

	assert_string_equal(added("--no-huge -m 64", NO_PAGES, false, &plain), "--no-shconf");
	assert_false(plain);
	assert_string_equal(added("--no-hug", ALL_PAGES, false, &plain), "--no-shconf");
	assert_string_equal(added("--no-huge --no-shconf", NO_PAGES, false, &plain), "");
	assert_string_equal(added("--no-huge --file-prefix=a", NO_PAGES, false, &plain), "");
}

TEST(test_name_of_files_is_left_alone)
{
	bool plain;

	assert_string_equal(added("--file-prefix a", NO_PAGES, false, &plain), "--no-huge -m 512");
	assert_true(plain);
	assert_string_equal(added("--file-prefix=a", ALL_PAGES, false, &plain), "");
	assert_false(plain);
}

TEST(test_pci_option_of_user_is_left_alone)
{
	static const char *const lines[] = {"-a 0000:03:00.0", "-a0000:03:00.0", "--allow=03:00.0",
					    "--allo 03:00.0",  "-b 03:00.0",     "--block 03:00.0",
					    "--no-pci"};
	char line[64];
	bool plain;
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(line, sizeof(line), "--in-memory %s", lines[i]);
		assert_string_equal(added(line, NO_PAGES, true, &plain), "");
	}
	assert_string_equal(added("--in-memory", NO_PAGES, true, &plain), "--no-pci");
}

TEST(test_only_software_devices_without_physical_port_need_no_pci)
{
	assert_true(eal_spec_no_pci("soft0"));
	assert_true(eal_spec_no_pci("soft0,shm=desk,ip=192.0.2.1/24"));
	assert_true(eal_spec_no_pci("soft0,port=net_tap0,ip=192.0.2.1/24"));
	assert_false(eal_spec_no_pci("soft0,ip=192.0.2.1/24,port=0000:03:00.0"));
	assert_false(eal_spec_no_pci("mlx5_0"));
	assert_false(eal_spec_no_pci("0000:03:00.0"));
}

static void
write_file_of(const char *dir, const char *size, const char *name, const char *number)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, size);
	assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
	snprintf(path, sizeof(path), "%s/%s/%s", dir, size, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(number, f);
	fclose(f);
}

static void
write_file(const char *dir, const char *size, const char *number)
{
	write_file_of(dir, size, "free_hugepages", number);
}

/* Another program uses hugepages: the number of all pages must grow by the missing ones. */
TEST(test_used_hugepages_count_for_the_number_to_reserve)
{
	char dir[] = "/tmp/bb_hugepages_XXXXXX", command[64];

	assert_non_null(mkdtemp(dir));
	assert_int_equal(eal_hugepages_to_reserve(dir, 511), 256);
	write_file(dir, "hugepages-2048kB", "121\n");
	write_file_of(dir, "hugepages-2048kB", "nr_hugepages", "128\n");
	assert_int_equal(eal_hugepages_to_reserve(dir, 256), 135);
	assert_int_equal(eal_hugepages_to_reserve(dir, 242), 128);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

TEST(test_free_hugepages_of_all_sizes_are_added)
{
	char dir[] = "/tmp/bb_hugepages_XXXXXX", command[64];

	assert_non_null(mkdtemp(dir));
	assert_int_equal(eal_free_hugepages(dir), 0);
	write_file(dir, "hugepages-2048kB", "3\n");
	assert_int_equal(eal_free_hugepages(dir), 6);
	write_file(dir, "hugepages-1048576kB", "2\n");
	write_file(dir, "other", "7\n");
	assert_int_equal(eal_free_hugepages(dir), 2054);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(eal_free_hugepages(dir), 0);
}

TEST_MAIN(0)
