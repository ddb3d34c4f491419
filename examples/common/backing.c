/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "backing.h"
#include "program.h"

/*
 * Returns true if a read with O_DIRECT succeeds. A file system that needs larger blocks accepts
 * O_DIRECT for the file, and rejects only the read.
 */
static bool
direct_works(int fd, uint32_t block)
{
	void *buf = NULL;
	ssize_t n = -1;

	if (posix_memalign(&buf, 4096, block) == 0)
		n = pread(fd, buf, block, 0);
	free(buf);
	return n == (ssize_t)block;
}

/*
 * Checks that only this user owns the file, and that the file has one name. Another owner could
 * read and change the data of clients. A hard link may be a file that this user needs for something
 * else. Returns 0 or a negative errno. Prints the error except for that of fstat().
 *
 * fchmod() finds the real owner, because in a user namespace several users may have the same
 * number.
 */
static int
check_owner(int fd, const struct backing_attr *attr)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	if (st.st_uid != geteuid() || fchmod(fd, st.st_mode & 07777) != 0) {
		say("%s belongs to another user: chown it, or serve it read-only", attr->path);
		return -EINVAL;
	}
	if (st.st_nlink != 1) {
		say("%s has several names (hard links): serve a copy, or serve it read-only",
		    attr->path);
		return -EINVAL;
	}
	return 0;
}

/* Opens the target of a symbolic link if it is a block device, as in /dev/disk/by-id. */
static int
open_linked(const char *path, int flags)
{
	int fd = open(path, flags);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? -ELOOP : -errno;
	if (fstat(fd, &st) == 0 && S_ISBLK(st.st_mode))
		return fd;
	close(fd);
	return -ELOOP;
}

static int
open_fd(struct backing *b, const struct backing_attr *attr)
{
	const int flags = O_CLOEXEC | O_NOCTTY | (attr->read_only ? O_RDONLY : O_RDWR);
	const int make = attr->size != 0 && !attr->read_only ? O_CREAT : 0;

	b->direct = false;
	b->fd = open(attr->path, flags | make | (attr->read_only ? 0 : O_NOFOLLOW), 0600);
	if (b->fd < 0)
		b->fd = errno == ELOOP ? open_linked(attr->path, flags) : -errno;
	return b->fd < 0 ? b->fd : 0;
}

static void
try_direct(struct backing *b, const struct backing_attr *attr)
{
	int flags = fcntl(b->fd, F_GETFL);

	if (attr->buffered)
		return;
	if (flags >= 0 && fcntl(b->fd, F_SETFL, flags | O_DIRECT) == 0) {
		b->direct = direct_works(b->fd, b->block);
		if (!b->direct)
			(void)fcntl(b->fd, F_SETFL, flags);
	}
	if (!b->direct)
		say("%s: the file system does not support O_DIRECT with blocks of %u bytes: data goes "
		    "through the page cache",
		    attr->path, b->block);
}

static int
find_size(struct backing *b, const struct backing_attr *attr, uint64_t *size)
{
	int logical = 1; /* bytes of a logical block of a device */
	struct stat st;

	if (fstat(b->fd, &st) != 0)
		return -errno;
	b->device = S_ISBLK(st.st_mode);
	if (!b->device && !S_ISREG(st.st_mode)) {
		say("%s is neither a file nor a block device", attr->path);
		return -EINVAL;
	}
	*size = (uint64_t)st.st_size;
	if (b->device &&
	    (ioctl(b->fd, BLKGETSIZE64, size) != 0 || ioctl(b->fd, BLKSSZGET, &logical) != 0))
		return -errno;
	/* Linux refuses to zero or discard a part of a block. */
	if (!attr->read_only && b->block % (uint32_t)logical != 0) {
		say("%s has blocks of %d bytes: give --block %d", attr->path, logical, logical);
		return -EINVAL;
	}
	if (attr->size > *size && (b->device || attr->read_only)) {
		say("%s has %" PRIu64 " bytes and cannot grow: give at most that size", attr->path,
		    *size);
		return -EINVAL;
	}
	if ((attr->size != 0 ? attr->size : *size) < b->block) {
		say("%s is empty: give its size", attr->path);
		return -EINVAL;
	}
	return 0;
}

int
backing_size(struct backing *b, const struct backing_attr *attr, uint64_t *size)
{
	int rc = find_size(b, attr, size);

	if (rc != 0 && rc != -EINVAL) /* find_size() prints the error of -EINVAL */
		say("%s: the size cannot be found: %s", attr->path, strerror(-rc));
	return rc;
}

int
backing_resize(struct backing *b, const struct backing_attr *attr)
{
	uint64_t size;
	int rc = backing_size(b, attr, &size);

	if (rc != 0)
		return rc;
	if (attr->size > size && (ftruncate(b->fd, (off_t)attr->size) != 0 || fsync(b->fd) != 0)) {
		say("%s cannot be made %" PRIu64 " bytes long: %s", attr->path, attr->size,
		    strerror(errno));
		return -EINVAL;
	}
	if (attr->size != 0)
		size = attr->size;
	b->capacity = size - size % b->block;
	return 0;
}

void
backing_shrink(struct backing *b, const struct backing_attr *attr, uint64_t size)
{
	if (ftruncate(b->fd, (off_t)size) != 0)
		say("%s cannot be made %" PRIu64 " bytes long again, and stays longer: %s",
		    attr->path, size, strerror(errno));
	b->capacity = size - size % b->block;
}

/*
 * Locks the file. After a target was killed, the kernel still executes the requests in its io_uring
 * for a while, and holds the lock until they have ended. So wait for the lock before any access.
 */
static int
lock(int fd, const struct backing_attr *attr)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	uint64_t tries = (uint64_t)attr->wait_s * 100;

	while (flock(fd, (attr->read_only ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (tries-- == 0)
			return -EBUSY;
		nanosleep(&pause, NULL);
	}
	return 0;
}

int
backing_open(struct backing *b, const struct backing_attr *attr)
{
	int rc;

	memset(b, 0, sizeof(*b));
	b->block = attr->block;
	b->read_only = attr->read_only;
	rc = open_fd(b, attr);
	if (rc != 0) {
		say("%s: cannot be opened: %s%s", attr->path, strerror(-rc),
		    rc == -ELOOP      ? "; a symbolic link may lead to a block device only"
		    : rc != -ENOENT   ? ""
		    : attr->read_only ? "; a target that only reads does not create a file"
		    : attr->size == 0 ? "; give its size to create it"
				      : "; the folder of the file does not exist");
		return rc;
	}
	rc = attr->read_only ? 0 : check_owner(b->fd, attr);
	if (rc != 0) {
		close(b->fd);
		return rc;
	}
	rc = lock(b->fd, attr);
	if (rc != 0)
		say("%s: another target serves it (waited %u s): %s", attr->path, attr->wait_s,
		    strerror(-rc));
	if (rc == 0) {
		rc = backing_resize(b, attr);
	}
	if (rc != 0) {
		close(b->fd);
		return rc;
	}
	try_direct(b, attr);
	return 0;
}

void
backing_close(struct backing *b)
{
	/*
	 * After all requests have completed, the kernel may still hold the file for a while: it
	 * releases an io_uring later than its close. The lock must not stay for that time.
	 */
	(void)flock(b->fd, LOCK_UN);
	close(b->fd);
}
