/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Makes the files that libibverbs, perftest, UCX and others read in /sys (see Documentation/ABI of
 * Linux).
 */
#define _GNU_SOURCE /* nftw() */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload.h"
#include "tree.h"

#define PCI  "/sys/devices/pci0000:00/0000:03:00.0"
#define IB   PCI "/infiniband/mlx5_0"
#define PORT IB "/ports/1"
#define NODE "/sys/class/infiniband_verbs"

struct tree {
	const char *root;    /* the folder with the files that stand for /sys and /dev */
	char made[PATH_MAX]; /* the folder that was made last */
	int error;           /* the first error in making the files */
};

/* Creates a folder and those above it. Returns 0 or an errno. Changes @name, and restores it. */
static int
make_folder(char *name)
{
	char *last = strrchr(name, '/');
	int ret;

	if (mkdir(name, 0700) == 0 || errno == EEXIST)
		return 0;
	if (errno != ENOENT || last == NULL)
		return errno;
	*last = '\0';
	ret = make_folder(name);
	*last = '/';
	return ret != 0 || mkdir(name, 0700) == 0 ? ret : errno;
}

/* Creates the folders above the file @name. */
static void
folders(struct tree *t, const char *name)
{
	char folder[PATH_MAX];
	int ret;

	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(name, '/') - name), name);
	if (strcmp(folder, t->made) == 0)
		return;
	ret = make_folder(folder);
	if (ret != 0 && t->error == 0)
		t->error = ret;
	memcpy(t->made, folder, sizeof(folder));
}

static void __attribute__((format(printf, 3, 4)))
put(struct tree *t, const char *path, const char *fmt, ...)
{
	char name[PATH_MAX];
	va_list ap;
	FILE *f;

	snprintf(name, sizeof(name), "%s%s", t->root, path);
	folders(t, name);
	f = fopen(name, "we");
	if (f != NULL) {
		va_start(ap, fmt);
		vfprintf(f, fmt, ap);
		va_end(ap);
	}
	if ((f == NULL || fclose(f) != 0) && t->error == 0)
		t->error = errno;
}

static void
put_link(struct tree *t, const char *path, const char *to)
{
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%s%s", t->root, path);
	folders(t, name);
	if (symlink(to, name) != 0 && t->error == 0)
		t->error = errno;
}

static void
put_pci(struct tree *t)
{
	put(t, PCI "/modalias", "pci:v000015B3d0000101Bsv000015B3sd00000007bc02sc07i00\n");
	put(t, PCI "/vendor", "0x15b3\n");
	put(t, PCI "/device", "0x101b\n");
	put(t, PCI "/subsystem_vendor", "0x15b3\n");
	put(t, PCI "/subsystem_device", "0x0007\n");
	put(t, PCI "/class", "0x020700\n");
	put(t, PCI "/numa_node", "-1\n");
	put(t, PCI "/current_link_speed", "16.0 GT/s PCIe\n");
	put(t, PCI "/current_link_width", "16\n");
	put(t, PCI "/max_link_speed", "16.0 GT/s PCIe\n");
	put(t, PCI "/max_link_width", "16\n");
	put(t, PCI "/uevent", "DRIVER=mlx5_core\nPCI_SLOT_NAME=0000:03:00.0\n");
}

static void
put_gid(struct tree *t, uint32_t i, const struct bb_gid *gid)
{
	char path[200], text[48] = "";
	size_t at = 0;
	uint32_t k;

	for (k = 0; k < 16; k += 2)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%02x%02x",
				       k != 0 ? ":" : "", gid->raw[k], gid->raw[k + 1]);
	snprintf(path, sizeof(path), PORT "/gids/%u", i);
	put(t, path, "%s\n", text);
	if (gid->type == BB_GID_IB)
		return;
	snprintf(path, sizeof(path), PORT "/gid_attrs/types/%u", i);
	put(t, path, "%s\n", gid->type == BB_GID_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
	snprintf(path, sizeof(path), PORT "/gid_attrs/ndevs/%u", i);
	put(t, path, "lo\n");
}

static void
put_port(struct tree *t, const struct tree_port *port)
{
	uint32_t i;

	put(t, PORT "/state", "4: ACTIVE\n");
	put(t, PORT "/phys_state", "5: LinkUp\n");
	put(t, PORT "/rate", "100 Gb/sec (4X EDR)\n");
	put(t, PORT "/lid", "0x%x\n", port->lid);
	put(t, PORT "/lid_mask_count", "0\n");
	put(t, PORT "/sm_lid", "0x0\n");
	put(t, PORT "/sm_sl", "0\n");
	put(t, PORT "/cap_mask", "0x04010000\n");
	put(t, PORT "/link_layer", "%s\n", port->ib ? "InfiniBand" : "Ethernet");
	put(t, PORT "/pkeys/0", "0xffff\n");
	for (i = 0; i < TREE_GIDS; i++)
		if (port->valid[i])
			put_gid(t, i, &port->gid[i]);
}

static int
put_all(struct tree *t, const struct tree_port *port)
{
	/* The GUID is the EUI-64 in the last 8 bytes of the link-local GID. */
	const uint8_t *id = port->gid[0].raw + 8;
	char guid[20];

	snprintf(guid, sizeof(guid), "%02x%02x:%02x%02x:%02x%02x:%02x%02x", id[0], id[1], id[2],
		 id[3], id[4], id[5], id[6], id[7]);
	put_pci(t);
	put(t, PCI "/net/lo/type", "772\n");
	put(t, IB "/node_type", "1: CA\n");
	put(t, IB "/fw_ver", "20.31.1014\n");
	put(t, IB "/hca_type", "MT4123\n");
	put(t, IB "/hw_rev", "0\n");
	put(t, IB "/board_id", "BLUEBELL00001\n");
	put(t, IB "/node_guid", "%s\n", guid);
	put(t, IB "/sys_image_guid", "%s\n", guid);
	put(t, IB "/node_desc", "Bluebell software ConnectX\n");
	put_link(t, IB "/device", "../..");
	put_link(t, "/sys/class/infiniband/mlx5_0",
		 "../../devices/pci0000:00/0000:03:00.0/infiniband/mlx5_0");
	put(t, NODE "/abi_version", "6\n");
	put(t, NODE "/uverbs0/ibdev", "mlx5_0\n");
	put(t, NODE "/uverbs0/abi_version", "1\n");
	put(t, NODE "/uverbs0/dev", "%d:%d\n", VERBS_MAJOR, VERBS_MINOR);
	put_link(t, NODE "/uverbs0/device", "../../../devices/pci0000:00/0000:03:00.0");
	put(t, VERBS_NODE, "the software ConnectX of bb_verbs\n");
	put(t, VERBS_CM_NODE, "connections of the software ConnectX of bb_verbs\n");
	put(t, "/sys/class/misc/rdma_cm/abi_version", "4\n");
	put(t, "/sys/class/misc/rdma_cm/dev", "%d:%d\n", VERBS_CM_MAJOR, VERBS_CM_MINOR);
	put_port(t, port);
	return -t->error;
}

/* ---- Removal */

/* Longest pause between two searches for processes that use the files, seconds. */
#define MAX_PAUSE 60

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void
tree_remove(const char *root)
{
	(void)nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/*
 * Reads the start time of a process, in clock ticks after boot, from field 22 of /proc/PID/stat.
 * Returns 0 if the process has ended.
 */
static unsigned long long
start_time(const char *pid)
{
	unsigned long long start = 0;
	char path[64], text[1024], *at;
	size_t len = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	f = fopen(path, "re");
	if (f != NULL) {
		len = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
	}
	text[len] = '\0';
	/* Field 2 is a name that may have spaces and parentheses. */
	at = strrchr(text, ')');
	if (at == NULL || sscanf(at + 1,
				 " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
				 "%*d %*d %*d %*d %llu",
				 &start) != 1)
		return 0;
	return start;
}

/* Returns the user that started a process, -1 if it has ended. */
static long
real_uid(const char *pid)
{
	char path[NAME_MAX + 32], line[256];
	long uid = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/status", pid);
	f = fopen(path, "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "Uid: %ld", &uid) == 1)
			break;
	if (f != NULL)
		fclose(f);
	return uid;
}

/*
 * Returns true if a process whose environment is not readable may use the files: the user started
 * it, later than this process. Such a process has made itself unreadable, or has other rights.
 */
static bool
may_use(const char *pid)
{
	return real_uid(pid) == (long)getuid() && start_time(pid) >= start_time("self");
}

/* Returns true if a process was started with these files: its environment names them. */
static bool
used_by(const char *pid, const char *root)
{
	char path[NAME_MAX + 32], *line = NULL, want[PATH_MAX];
	bool used = false;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/environ", pid);
	snprintf(want, sizeof(want), "%s=%s", VERBS_ENV_TREE, root);
	f = fopen(path, "re");
	if (f == NULL)
		return errno == EACCES && may_use(pid);
	while (!used && getdelim(&line, &size, 0, f) > 0)
		used = strcmp(line, want) == 0;
	free(line);
	fclose(f);
	return used;
}

/* Returns true if any process uses the files, such as a daemon whose parent has ended. */
static bool
used(const char *root)
{
	const struct dirent *e;
	bool found = false;
	DIR *dir = opendir("/proc");

	while (dir != NULL && !found && (e = readdir(dir)) != NULL)
		found = e->d_name[0] >= '1' && e->d_name[0] <= '9' && used_by(e->d_name, root);
	if (dir != NULL)
		closedir(dir);
	return found;
}

/*
 * Replaces standard input, output and error, and closes all other descriptors but @fd, which gets
 * the number 3. Another process may wait until none has a descriptor that this process inherited.
 */
static void
leave_descriptors(int fd)
{
	int null;
	long i, n;

	/* If the user has closed standard input, @fd may be 0. */
	fd = fcntl(fd, F_DUPFD, 4);
	null = open("/dev/null", O_RDWR);
	for (i = 0; i <= 2; i++)
		(void)dup2(null, (int)i);
	(void)dup2(fd, 3);
	if (syscall(SYS_close_range, 4, ~0u, 0) == 0)
		return;
	/* A kernel before Linux 5.9, or a seccomp profile. */
	n = sysconf(_SC_OPEN_MAX);
	for (i = 4; i < n && i < 1 << 16; i++)
		(void)close((int)i);
}

/*
 * Waits until the process of @pidfd and those that it has left behind have ended, then removes the
 * files. Runs in a separate process.
 */
static void __attribute__((noreturn)) sweep(int pidfd, const char *root)
{
	struct pollfd p = {.fd = 3, .events = POLLIN};
	unsigned int seconds = 1;

	leave_descriptors(pidfd);
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	for (; used(root); seconds = seconds < MAX_PAUSE / 2 ? 2 * seconds : MAX_PAUSE)
		sleep(seconds);
	tree_remove(root);
	_exit(0);
}

int
tree_watch(const char *root)
{
	const int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	pid_t pid;

	if (pidfd < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		setsid();
		if (fork() == 0)
			sweep(pidfd, root);
		_exit(0);
	}
	close(pidfd);
	if (pid < 0)
		return -errno;
	waitpid(pid, NULL, 0);
	return 0;
}

/* Creates an empty folder in @parent. Returns 0 or -errno. */
static int
root_in(const char *parent, char *root, size_t size)
{
	if ((size_t)snprintf(root, size, "%s/bb_verbs-XXXXXX", parent) >= size)
		return -ENAMETOOLONG;
	return mkdtemp(root) != NULL ? 0 : -errno;
}

/* Makes the files in a new folder in @parent. Returns 0 or -errno. */
static int
make_in(const char *parent, const struct tree_port *port, char *root, size_t size)
{
	struct tree t = {.root = root};
	int ret = root_in(parent, root, size);

	if (ret != 0)
		return ret;
	ret = put_all(&t, port);
	if (ret != 0)
		tree_remove(root);
	return ret;
}

int
tree_make(const struct tree_port *port, char *root, size_t size)
{
	const char *tmp = getenv("TMPDIR");
	int ret;

	if (tmp != NULL && tmp[0] != '\0')
		return make_in(tmp, port, root, size);
	ret = make_in("/dev/shm", port, root, size); /* in memory, so it is fast */
	/* A container's /dev/shm is small, and may be full. */
	return ret == 0 ? 0 : make_in("/tmp", port, root, size);
}
