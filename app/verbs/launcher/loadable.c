/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "loadable.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Returns the file that execvp() would run, NULL if there is none. An empty element of PATH is the
 * current folder.
 */
static const char *
find_program(const char *name, char *path, size_t size)
{
	const char *at = getenv("PATH");
	size_t len;

	if (strchr(name, '/') != NULL)
		return name;
	for (at = at != NULL ? at : "/usr/bin:/bin";; at += len + 1) {
		len = strcspn(at, ":");
		if (snprintf(path, size, "%.*s/%s", len != 0 ? (int)len : 1, len != 0 ? at : ".",
			     name) < (int)size &&
		    access(path, X_OK) == 0)
			return path;
		if (at[len] == '\0')
			return NULL;
	}
}

/*
 * Reads the header of an ELF file. Returns false if the file is none, such as a script, or is not
 * readable.
 */
static bool
read_header(int fd, Elf64_Ehdr *h)
{
	return pread(fd, h, sizeof(*h), 0) == (ssize_t)sizeof(*h) &&
	       memcmp(h->e_ident, ELFMAG, SELFMAG) == 0;
}

/* Returns true if a 64-bit ELF file names a dynamic linker, which loads LD_PRELOAD. */
static bool
has_linker(int fd, const Elf64_Ehdr *h)
{
	Elf64_Phdr p;
	uint32_t i;

	for (i = 0; i < h->e_phnum; i++)
		if (pread(fd, &p, sizeof(p), (off_t)(h->e_phoff + i * sizeof(p))) !=
			    (ssize_t)sizeof(p) ||
		    p.p_type == PT_INTERP)
			return true; /* execve() reports a header that cannot be read */
	return false;
}

/* Returns NULL if the program in @fd would load the device's library, otherwise the cause. */
static const char *
refusal(int fd)
{
	const int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const char *why = NULL;
	Elf64_Ehdr own, h;

	if (read_header(fd, &h) && read_header(self, &own)) {
		if (h.e_ident[EI_CLASS] != own.e_ident[EI_CLASS] || h.e_machine != own.e_machine)
			why = "is built for another processor or word size than bb_verbs, so it "
			      "cannot load the device's library: build it as bb_verbs is built";
		else if (!has_linker(fd, &h))
			why = "is linked statically, so it would not load the device's library: "
			      "link it with the shared libraries of libc and libibverbs";
	}
	if (self >= 0)
		close(self);
	return why;
}

bool
program_may_start(const char *name)
{
	char path[PATH_MAX];
	const char *file = find_program(name, path, sizeof(path)), *why;
	struct stat st;
	int fd;

	if (file == NULL || stat(file, &st) != 0 || access(file, X_OK) != 0) {
		fprintf(stderr, "bb_verbs: %s: %s\n", name,
			file == NULL ? "not found in PATH" : strerror(errno));
		return false;
	}
	/* The dynamic linker ignores LD_PRELOAD for such programs. */
	if ((st.st_mode & (S_ISUID | S_ISGID)) != 0) {
		fprintf(stderr,
			"bb_verbs: %s is setuid or setgid, so it would not load the device's "
			"library: start a copy without that right\n",
			file);
		return false;
	}
	fd = S_ISREG(st.st_mode) ? open(file, O_RDONLY | O_CLOEXEC) : -1;
	why = fd >= 0 ? refusal(fd) : NULL;
	if (fd >= 0)
		close(fd);
	if (why != NULL)
		fprintf(stderr, "bb_verbs: %s %s\n", file, why);
	return why == NULL;
}
