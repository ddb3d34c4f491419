/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Capture of the packets that a device sends and receives, for Wireshark. The format is pcapng
 * (draft-ietf-opsawg-pcapng): one section, one interface, one Enhanced Packet Block per packet, the
 * direction in epb_flags, times in nanoseconds.
 *
 * DPDK's librte_pcapng does not fit. Version 22.11 writes an interface for each ethdev, always of
 * type Ethernet, takes mbufs of a mempool, and numbers interfaces by the mbuf's port. Packets
 * through memory have neither an ethdev nor an mbuf.
 *
 * The link type is raw IP, even for a port over Ethernet. The file shows the RoCEv2 packets, which
 * are the same on every link. Use tcpdump to see the ARP packets and VLAN tags of an ethdev.
 *
 * Packets are collected in a buffer. The buffer is written when it is full, when the capture ends,
 * and in a poll when its oldest packet has waited SOFT_CAPTURE_IDLE_NS. Each write(2) ends with a
 * whole block, so the file of a killed process is complete up to the last write. A failed write
 * ends the capture and truncates the file to whole blocks.
 */
#include "soft_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "soft_wire.h"

#define BUF_LEN (128u << 10)

#define BLOCK_SECTION   0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET    6u
#define BYTE_ORDER_OWN  0x1a2b3c4du
#define LINKTYPE_RAW    101u /* Raw IP: the version field of the header selects IPv4 or IPv6. */

#define OPT_END         0u
#define OPT_COMMENT     1u
#define OPT_SHB_APPL    4u
#define OPT_IF_NAME     2u
#define OPT_IF_TSRESOL  9u
#define OPT_EPB_FLAGS   2u
#define NANOSECONDS     9u  /* Value of if_tsresol: the resolution is 10^-9 s. */
#define MAX_NOTE        64u /* Longest comment of a packet, bytes. */
#define PACKET_OVERHEAD (28u + 8u + 4u + MAX_NOTE + 4u + 4u)

struct soft_capture {
	pthread_mutex_t lock;
	const struct soft_dev *dev;
	char path[SOFT_CAPTURE_PATH];
	int fd;
	bool stopped;     /* True if the file is full, or a write failed. */
	uint64_t max;     /* Limit of the file's size, bytes. */
	uint64_t written; /* Bytes written to the file; only whole blocks. */
	uint64_t epoch;   /* Difference between the real time and soft_dev_ns(), ns. */
	uint64_t oldest;  /* Time of the oldest packet in the buffer, by soft_dev_ns(), ns. */
	uint32_t used;
	uint32_t packet; /* Offset of the newest packet's block in the buffer. */
	uint8_t buf[BUF_LEN];
};

/* ---- pcapng blocks */

static void
put(struct soft_capture *c, const void *p, uint32_t len)
{
	memcpy(c->buf + c->used, p, len);
	c->used += len;
}

static void
put16(struct soft_capture *c, uint32_t v)
{
	uint16_t v16 = (uint16_t)v;

	put(c, &v16, sizeof(v16));
}

static void
put32(struct soft_capture *c, uint32_t v)
{
	put(c, &v, sizeof(v));
}

static void
put_padded(struct soft_capture *c, const void *p, uint32_t len)
{
	static const uint8_t zeros[4];

	put(c, p, len);
	put(c, zeros, -len & 3);
}

static void
put_option(struct soft_capture *c, uint32_t code, const void *p, uint32_t len)
{
	put16(c, code);
	put16(c, len);
	put_padded(c, p, len);
}

static uint32_t
block_begin(struct soft_capture *c, uint32_t type)
{
	uint32_t at = c->used;

	put32(c, type);
	put32(c, 0);
	return at;
}

static void
block_end(struct soft_capture *c, uint32_t at)
{
	uint32_t len;

	put16(c, OPT_END);
	put16(c, 0);
	len = c->used - at + 4;
	memcpy(c->buf + at + 4, &len, sizeof(len));
	put32(c, len);
}

static void
put_head(struct soft_capture *c)
{
	static const char appl[] = "Bluebell, a software device";
	static const uint8_t resol = NANOSECONDS;
	uint32_t at;

	at = block_begin(c, BLOCK_SECTION);
	put32(c, BYTE_ORDER_OWN);
	put16(c, 1);
	put16(c, 0);
	put32(c, UINT32_MAX); /* Length of the section: unknown. */
	put32(c, UINT32_MAX);
	put_option(c, OPT_SHB_APPL, appl, sizeof(appl) - 1);
	block_end(c, at);
	at = block_begin(c, BLOCK_INTERFACE);
	put16(c, LINKTYPE_RAW);
	put16(c, 0);
	put32(c, 0); /* The length of packets is not limited. */
	put_option(c, OPT_IF_NAME, c->dev->name, (uint32_t)strlen(c->dev->name));
	put_option(c, OPT_IF_TSRESOL, &resol, sizeof(resol));
	block_end(c, at);
}

/* ---- File access */

/* Returns the length of the whole blocks within the first @n bytes of the buffer. */
static uint32_t
complete_blocks(const struct soft_capture *c, uint32_t n)
{
	uint32_t at = 0, len;

	while (at + 8 <= n) {
		memcpy(&len, c->buf + at + 4, sizeof(len));
		if (len > n - at)
			break;
		at += len;
	}
	return at;
}

/* Writes the buffer to the file. Returns 0 or the negative errno of a failed write. */
static int
flush(struct soft_capture *c)
{
	uint32_t done = 0;
	int ret = 0;

	while (done < c->used) {
		ssize_t n = write(c->fd, c->buf + done, c->used - done);

		if (n > 0) {
			done += (uint32_t)n;
		} else if (n == 0 || errno != EINTR) {
			ret = n == 0 ? -ENOSPC : -errno;
			break;
		}
	}
	if (ret != 0) {
		done = complete_blocks(c, done);
		/*
		 * If truncation fails, too, the file has an incomplete last block, which readers
		 * report.
		 */
		if (ftruncate(c->fd, (off_t)(c->written + done)) != 0)
			ret = -errno;
	}
	c->written += done;
	c->used = 0;
	return ret;
}

static void
flush_or_stop(struct soft_capture *c)
{
	int ret = flush(c);

	if (ret == 0)
		return;
	c->stopped = true;
	SOFT_LOG(ERR,
		 "%s: capture=%s: cannot write to the file: %s: the capture ends after %" PRIu64
		 " bytes, traffic continues",
		 c->dev->name, c->path, strerror(-ret), c->written);
}

/*
 * Creates @path, or opens an existing file without following a symbolic link. Does not change the
 * file, and does not block if it is a FIFO. Returns the descriptor or a negative errno.
 */
static int
make_or_open(const char *path, bool *made)
{
	const int flags = O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
	int fd = open(path, flags | O_CREAT | O_EXCL, 0600);

	*made = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, flags);
	return fd < 0 ? -errno : fd;
}

/*
 * Checks that an existing file is a regular file of this user without other hard links. Sets its
 * mode so that only this user can read it. Returns 0, or a negative errno with the reason in @why.
 *
 * fchmod() fails for a file of another user. It compares the real users in the kernel, even if a
 * user namespace shows several users as one (drivers/soft/shm/soft_shm_user.c).
 */
static int
check_existing(int fd, const char **why)
{
	struct stat st;

	*why = NULL;
	if (fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		*why = "not a regular file: name another one";
		return -EINVAL;
	}
	if (st.st_uid != geteuid()) {
		*why = "the file belongs to another user: remove the file or name another one";
		return -EPERM;
	}
	if (st.st_nlink != 1) {
		*why = "the file has several names (hard links): remove the file or name another "
		       "one";
		return -EPERM;
	}
	return fchmod(fd, 0600) == 0 ? 0 : -errno;
}

/*
 * Opens a capture file of this user that no other capture writes. Returns the descriptor or a
 * negative errno, which is logged.
 */
static int
open_file(const char *name, const char *path)
{
	const char *why = NULL;
	bool made;
	int fd = make_or_open(path, &made), ret;

	if (fd < 0) {
		SOFT_LOG(ERR, "%s: capture=%s: cannot open the file: %s", name, path,
			 fd == -ELOOP ? "the path is a symbolic link: name the file itself"
				      : strerror(-fd));
		return fd;
	}
	ret = made ? 0 : check_existing(fd, &why);
	if (ret != 0)
		goto fail;
	/*
	 * flock() locks belong to the open file description, so the lock also excludes another
	 * device of this process.
	 */
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		why = "another capture writes to the file: name another one";
		ret = -EBUSY;
		goto fail;
	}
	if (ftruncate(fd, 0) == 0)
		return fd;
	ret = -errno;

fail:
	SOFT_LOG(ERR, "%s: capture=%s: cannot open the file: %s", name, path,
		 why != NULL ? why : strerror(-ret));
	close(fd);
	return ret;
}

int
soft_capture_open(const struct soft_dev *dev, const char *path, uint32_t mib,
		  struct soft_capture **out)
{
	struct soft_capture *c = calloc(1, sizeof(*c));
	struct timespec now;
	int ret;

	if (c == NULL) {
		SOFT_LOG(ERR, "%s: out of memory for a capture", dev->name);
		return -ENOMEM;
	}
	c->dev = dev;
	snprintf(c->path, sizeof(c->path), "%s", path);
	c->max = (uint64_t)mib << 20;
	soft_time_init();
	clock_gettime(CLOCK_REALTIME, &now);
	c->epoch = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - soft_dev_ns(c->dev);
	c->fd = open_file(dev->name, path);
	if (c->fd < 0) {
		ret = c->fd;
		goto free_it;
	}
	/* Writes the section header now, so that the open fails if the disk is full. */
	put_head(c);
	ret = flush(c);
	if (ret != 0) {
		SOFT_LOG(ERR, "%s: capture=%s: cannot write to the file: %s", dev->name, path,
			 strerror(-ret));
		goto close_file;
	}
	pthread_mutex_init(&c->lock, NULL);
	*out = c;
	return 0;

close_file:
	close(c->fd);
free_it:
	free(c);
	return ret;
}

/*
 * Returns true if @len more bytes fit within the file's limit. Otherwise ends the capture and
 * returns false.
 */
static bool
fits(struct soft_capture *c, uint32_t len)
{
	if (c->written + c->used + len <= c->max)
		return true;
	SOFT_LOG(NOTICE,
		 "%s: capture=%s has reached its limit of %" PRIu64
		 " MiB: later packets are not recorded: raise capture_max=MIB",
		 c->dev->name, c->path, c->max >> 20);
	flush_or_stop(c);
	c->stopped = true;
	return false;
}

void
soft_capture_begin(struct soft_capture *c, enum soft_capture_dir dir, const uint8_t *ip,
		   uint32_t len, const char *note)
{
	uint32_t most = len + 3 + PACKET_OVERHEAD, flags = (uint32_t)dir;
	uint64_t now, ns;

	pthread_mutex_lock(&c->lock);
	c->packet = c->used;
	if (c->stopped || most > BUF_LEN || !fits(c, most)) {
		c->packet = c->used; /* fits() may have written the buffer to the file */
		return;
	}
	if (most > BUF_LEN - c->used)
		flush_or_stop(c);
	c->packet = c->used;
	if (c->stopped)
		return;
	/*
	 * Reads the clock with the lock held, so that packets of several engines are in the order
	 * of their times.
	 */
	now = soft_dev_ns(c->dev);
	ns = c->epoch + now;
	if (c->used == 0)
		c->oldest = now;
	block_begin(c, BLOCK_PACKET);
	put32(c, 0); /* Number of the interface: 0. */
	put32(c, (uint32_t)(ns >> 32));
	put32(c, (uint32_t)ns);
	put32(c, len);
	put32(c, len);
	put_padded(c, ip, len);
	put_option(c, OPT_EPB_FLAGS, &flags, sizeof(flags));
	if (note != NULL)
		put_option(c, OPT_COMMENT, note, (uint32_t)strnlen(note, MAX_NOTE));
	block_end(c, c->packet);
}

void
soft_capture_end(struct soft_capture *c, bool keep)
{
	if (!keep)
		c->used = c->packet;
	pthread_mutex_unlock(&c->lock);
}

bool
soft_capture_run(struct soft_capture *c)
{
	bool waits;

	pthread_mutex_lock(&c->lock);
	if (c->used != 0 && soft_dev_ns(c->dev) - c->oldest >= SOFT_CAPTURE_IDLE_NS)
		flush_or_stop(c);
	waits = c->used != 0;
	pthread_mutex_unlock(&c->lock);
	return waits;
}

void
soft_capture_flush(struct soft_capture *c)
{
	if (c == NULL)
		return;
	pthread_mutex_lock(&c->lock);
	flush_or_stop(c);
	pthread_mutex_unlock(&c->lock);
}

void
soft_capture_close(struct soft_capture *c)
{
	if (c == NULL)
		return;
	flush_or_stop(c);
	close(c->fd);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
