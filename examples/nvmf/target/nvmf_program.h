/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Parts of nvmf_target: its configuration, its storage, telemetry. */
#ifndef NVMF_PROGRAM_H
#define NVMF_PROGRAM_H

#include "backing.h"
#include "ini.h"
#include "nvmf.h"
#include "program.h"

#define EXIT_FAILED 1
#define EXIT_USAGE  2

#define MAX_SUBSYSTEMS 16u
#define MAX_NAMESPACES 32u /* maximum namespaces of a subsystem */
#define MAX_HOSTS      32u /* maximum hosts of a subsystem */
#define MAX_LISTENERS  8u
#define MAX_LCORES     8u
#define CONFIG_SERIAL  21u /* bytes of a serial number, with its NUL */

/* ---- Namespaces on files and block devices, by io_uring and O_DIRECT: nvmf_file.c */

struct nvmf_file {
	struct backing b;
	struct io_queue *q;
	bool open;
};

/* Opens a file or device for @ns. Returns 0 or -errno, and prints the error. */
int nvmf_file_open(struct nvmf_file *f, const struct backing_attr *attr, struct nvmf_ns *ns);
/*
 * Creates @f's queue for @depth requests, whose buffers are in @mem, to the file that @of has
 * opened. @of is @f or that of another thread. The calling thread becomes the queue's owner.
 * Returns 0 or -errno, and prints the error.
 */
int nvmf_file_start(struct nvmf_file *f, struct nvmf_file *of, bool uring, uint32_t depth,
		    void *mem, size_t len);
/*
 * Ends completed requests, and passes new ones to the kernel. Returns the number of completed ones.
 * Sets *@rc to 0, or to -errno if the kernel accepts no more requests.
 */
unsigned int nvmf_file_poll(struct nvmf_file *f, int *rc);
/* Closes a file without outstanding requests. */
void nvmf_file_close(struct nvmf_file *f);

/* ---- Configuration: nvmf_options.c, nvmf_config.c */

enum space_kind {
	SPACE_MEMORY,
	SPACE_NULL,
	SPACE_FILE,
};

/* A namespace as the configuration describes it. */
struct space {
	enum space_kind kind;
	char *path;    /* path of a file, allocated; NULL for other kinds */
	uint64_t size; /* 0: the present size of the file */
	uint32_t nsid;
	uint32_t line; /* line of the configuration file; 0: the command line */
	bool read_only, buffered;
};

struct subsystem {
	const char *nqn, *serial;
	const char *host[MAX_HOSTS];
	struct space space[MAX_NAMESPACES];
	uint32_t hosts, spaces;
	uint32_t line; /* line of the configuration file; 0: the command line */
};

/* The options, and the settings of the file that --config names. */
struct config {
	const char *file; /* NULL: no --config */
	const char *device;
	const char *listen[MAX_LISTENERS];
	uint32_t listeners;
	bool listen_of_file; /* the addresses are from the file */
	struct subsystem subsystem[MAX_SUBSYSTEMS];
	uint32_t subsystems;
	struct subsystem *current; /* subsystem that the next settings belong to; NULL: none */
	uint32_t block, depth, max_io, in_capsule, io_queues, queues, keep_alive, sleep_us;
	bool uring;
	/* current line of the file; 0: the command line */
	uint32_t line;
	struct ini ini; /* holds the strings of the file */
	/* default serial numbers, computed from the names */
	char serials[MAX_SUBSYSTEMS][CONFIG_SERIAL];
};

/*
 * Parses the options of the command line, and the file. The strings of @argv must stay. Returns 0,
 * 1 after --help, or -1 after printing the error.
 */
int config_parse(void *config, int argc, char **argv);
/* Parses the options of the last config_parse() again. Returns 0 or -1. */
int config_parse_again(struct config *c);
void config_free(struct config *c);
void config_help(FILE *out);
/*
 * Prints that the value of a setting is invalid, with the line of the file or as an option of the
 * command line. Returns -1.
 */
int config_wrong(const struct config *c, const char *name, const char *value, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Adds a subsystem, or a host or namespace of the current one. Returns 0 or -1. */
int config_subsystem(struct config *c, const char *nqn);
int config_host(struct config *c, const char *nqn);
int config_namespace(struct config *c, const char *spec);
int config_serial(struct config *c, const char *text);
/* ---- Subsystems and their storage: nvmf_storage.c, nvmf_reload.c */

enum slot_state {
	SLOT_FREE,
	SLOT_OPENED, /* a change is being prepared */
	SLOT_ACTIVE,
	SLOT_REMOVED, /* commands or controllers still use it */
};

/* A namespace of a subsystem, and its files. */
struct slot {
	enum slot_state state;
	struct space space; /* configuration of the namespace, with its own copy of the path */
	/* The namespace and its file for each lcore. All lcores use the backing of file[0]. */
	struct nvmf_ns ns[MAX_LCORES];
	struct nvmf_file file[MAX_LCORES];
	uint64_t new_blocks; /* blocks after the change that is being prepared */
	uint64_t old_size;   /* bytes of the file before the change that is being prepared */
};

/* A subsystem. Its states are those of enum slot_state. */
struct entry {
	enum slot_state state;
	struct nvmf_subsys *s; /* the subsystem in the engine of the first lcore */
	char nqn[NVMF_NQN_MAX + 1], serial[CONFIG_SERIAL];
	char host[MAX_HOSTS][NVMF_NQN_MAX + 1];
	const char *hosts[MAX_HOSTS];
	struct nvmf_ns *active[MAX_LCORES][MAX_NAMESPACES];
	struct slot slot[MAX_NAMESPACES]; /* entry N has NSID N + 1 */
	/* its new configuration while a change is prepared; NULL: remove it */
	const struct subsystem *wanted;
};

struct storage {
	struct nvmf_subsys subsys[MAX_LCORES][MAX_SUBSYSTEMS];
	struct entry entry[MAX_SUBSYSTEMS];
	struct nvmf_target *t; /* engine of the first lcore */
	struct nvmf_target *targets[MAX_LCORES];
	uint32_t lcores;
	/* Executes @fn for each lcore but the first one, in the thread of that lcore, and waits. */
	void (*run)(void (*fn)(struct storage *s, uint32_t lcore, void *arg), void *arg);
	/* -errno of a worker: it cannot open or poll a namespace; else 0 */
	int rc;
	const struct config *config; /* configuration at the start of the program */
	void *mem;                   /* buffers of all requests */
	size_t len;
	struct slot *polled[MAX_LCORES][MAX_SUBSYSTEMS * MAX_NAMESPACES]; /* slots with files */
	uint32_t npolled[MAX_LCORES];
	uint32_t removed;               /* number of slots and entries in the state SLOT_REMOVED */
	uint64_t old_reads, old_writes; /* numbers of commands of namespaces that were removed */
	uint64_t reloads, failed_reloads;
};

/* Sets all subsystems to inactive. */
void storage_init(struct storage *s, const struct config *c);
/*
 * Changes the subsystems to those of @c: opens and removes namespaces, reports that to the hosts.
 * Returns 0; or -errno, prints the error and changes nothing.
 * @param wait_s seconds to wait until another target unlocks a file
 */
int storage_apply(struct storage *s, const struct config *c, uint32_t wait_s);
/* Reads the configuration file again and applies it. Returns 0 or -errno, and prints the result. */
int storage_reload(struct storage *s);
/* Returns the number of queues that an lcore serves. */
uint32_t storage_queues(const struct storage *s);
/* Polls the files of an lcore. Returns as nvmf_file_poll(). */
unsigned int storage_poll(struct storage *s, uint32_t lcore, int *rc);
/* Returns true if an lcore has requests to files that have not ended. */
bool storage_outstanding(const struct storage *s, uint32_t lcore);
/* Applies the state of the first lcore's subsystems to those of all other lcores. */
void storage_sync(struct storage *s);
/* Returns the sum over all lcores of the counter at offset @at of struct nvmf_ns. */
uint64_t slot_sum(const struct slot *slot, size_t at);
/* Closes all namespaces after the last queue has ended. */
void storage_close(struct storage *s);

/* nvmf_storage.c: steps of storage_apply() */
int slot_open(struct storage *s, struct slot *to, const struct space *from, uint32_t wait_s);
void slot_close(struct storage *s, struct slot *slot);

/* ---- Telemetry: nvmf_telemetry.c */

struct nvmf_rdma;

void telemetry_register(struct storage *s, struct nvmf_rdma *r);
/*
 * Executes the telemetry command that waits, if any, in the thread of the loop. Returns 0 if there
 * is none.
 */
unsigned int telemetry_poll(void);

#endif
