/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Options of nvmf_target, and its subsystems and namespaces. */
#ifndef NVMF_PROGRAM_H
#define NVMF_PROGRAM_H

#include "backing.h"
#include "nvmf.h"
#include "program.h"

#define EXIT_FAILED 1
#define EXIT_USAGE  2

#define MAX_SUBSYSTEMS 16u
#define MAX_NAMESPACES 32u /* of a subsystem */
#define MAX_HOSTS      32u /* of a subsystem */

/* ---- Namespaces on files and block devices, by io_uring and O_DIRECT: nvmf_file.c */

struct nvmf_file {
	struct backing b;
	struct io_queue *q;
	bool open;
};

/* Opens a file or device for @ns. Returns 0 or -errno, and prints the error. */
int nvmf_file_open(struct nvmf_file *f, const struct backing_attr *attr, struct nvmf_ns *ns);
/*
 * Creates the queue of requests for @depth requests with buffers in @mem. The calling thread
 * becomes the owner. Returns 0 or -errno, and prints the error.
 */
int nvmf_file_start(struct nvmf_file *f, bool uring, uint32_t depth, void *mem, size_t len);
/*
 * Ends completed requests, and passes new ones to the kernel. Returns the number of completed ones,
 * and sets *@rc to 0 or to -errno: the kernel accepts no more requests.
 */
unsigned int nvmf_file_poll(struct nvmf_file *f, int *rc);
/* Closes a file without outstanding requests. */
void nvmf_file_close(struct nvmf_file *f);

/* ---- Options */

enum space_kind {
	SPACE_MEMORY,
	SPACE_NULL,
	SPACE_FILE,
};

/* A namespace as the options describe it. */
struct space {
	enum space_kind kind;
	const char *path; /* of a file */
	uint64_t size;    /* 0: the present size of the file */
	bool read_only, buffered;
};

struct subsystem {
	const char *nqn, *serial;
	const char *host[MAX_HOSTS];
	struct space space[MAX_NAMESPACES];
	struct nvmf_ns ns[MAX_NAMESPACES], *active[MAX_NAMESPACES];
	struct nvmf_file file[MAX_NAMESPACES];
	uint32_t hosts, spaces;
};

struct options {
	const char *device, *listen;
	struct subsystem subsystem[MAX_SUBSYSTEMS];
	uint32_t subsystems;
	uint32_t block, depth, max_io, in_capsule, io_queues, queues;
	bool uring;
};

int nvmf_options_parse(void *o, int argc, char **argv);
void nvmf_help(FILE *out);

#endif
