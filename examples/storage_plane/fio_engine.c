/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * An I/O engine for fio. fio's engines/skeleton_external.c describes the functions of an engine.
 *
 *   fio --ioengine=external:.../storage_fio.so --device=soft0,shm=desk,ip=192.0.2.2/24
 *     --target=127.0.0.1:18700 --size=1G --rw=randread --bs=4k --iodepth=32 --name=test
 *
 * A commit of fio rings the doorbell. fio's fsync= sends a flush, and sync=1 makes each write a FUA
 * write.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <fio.h>
#include <optgroup.h>

#include "fio_blk.h"

struct storage_options {
	void *pad; /* no option may have offset 0, which fio interprets as "no offset" */
	char *device;
	char *target;
	char *eal;
};

struct storage {
	struct fio_blk *blk;
	struct fio_blk_done *done;
	uint32_t depth;
	uint32_t ndone;
	bool told;
};

static struct fio_option options[] = {
	{
		.name = "device",
		.lname = "Device of Bluebell",
		.type = FIO_OPT_STR_STORE,
		.off1 = offsetof(struct storage_options, device),
		.help = "soft0,shm=desk,ip=192.0.2.2/24, mlx5_0, ...; each job one of its own",
		.def = "soft0",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "target",
		.lname = "Queue of a storage_target",
		.type = FIO_OPT_STR_STORE,
		.off1 = offsetof(struct storage_options, target),
		.help = "Address and port, as in 192.0.2.1:18700",
		.def = "127.0.0.1:18700",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "eal",
		.lname = "Arguments of EAL",
		.type = FIO_OPT_STR_STORE,
		.off1 = offsetof(struct storage_options, eal),
		.help = "Separated by spaces; the default uses no hugepages",
		.def = "--no-huge -m 256 --no-pci --no-shconf --no-telemetry "
		       "--log-level=lib.eal:error",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{.name = NULL},
};

/* Runs in fio's first process before it forks the jobs. EAL does not survive a fork, so do not
 * start it. */
static int
storage_setup(struct thread_data *td)
{
	if (td->o.size == 0) {
		log_err("storage: give size=, at most the size of the target\n");
		return 1;
	}
	if (td->files_index == 0) {
		add_file(td, td->o.filename != NULL ? td->o.filename : "storage", 0, 0);
		td->o.nr_files = td->o.nr_files != 0 ? td->o.nr_files : 1;
		td->o.open_files++;
	}
	td->files[0]->real_file_size = td->o.size + td->o.start_offset;
	return 0;
}

static int
storage_init(struct thread_data *td)
{
	const struct storage_options *o = td->eo;
	struct fio_blk_attr attr = {.eal = o->eal,
				    .device = o->device,
				    .addr = o->target,
				    .depth = td->o.iodepth,
				    .threads = td->o.use_thread};
	struct storage *s = calloc(1, sizeof(*s));
	uint64_t capacity = 0;
	char why[192] = "no memory";
	int rc = s == NULL ? -ENOMEM : 0;

	if (rc == 0)
		rc = fio_blk_open(&attr, &s->blk, &capacity, &s->depth, why, sizeof(why));
	if (rc != 0) {
		log_err("storage: %s: %s\n", o->target, why);
		free(s);
		td_verror(td, -rc, "storage_init");
		return 1;
	}
	td->io_ops_data = s;
	s->done = calloc(td->o.iodepth, sizeof(*s->done));
	if (td->o.size + td->o.start_offset > capacity || s->done == NULL) {
		log_err("storage: the target has %llu bytes, size= asks for more\n",
			(unsigned long long)capacity);
		return 1;
	}
	return 0;
}

static void
storage_cleanup(struct thread_data *td)
{
	struct storage *s = td->io_ops_data;

	if (s == NULL)
		return;
	fio_blk_close(s->blk);
	free(s->done);
	free(s);
	td->io_ops_data = NULL;
}

static int
storage_iomem_alloc(struct thread_data *td, size_t len)
{
	struct storage *s = td->io_ops_data;

	td->orig_buffer = fio_blk_alloc(s->blk, len);
	if (td->orig_buffer != NULL)
		return 0;
	log_err("storage: no memory for %zu bytes: give EAL more, with -m MB in eal=\n", len);
	return 1;
}

static void
storage_iomem_free(struct thread_data *td)
{
	struct storage *s = td->io_ops_data;

	if (s != NULL)
		fio_blk_free(s->blk);
	td->orig_buffer = NULL;
}

static enum fio_q_status
storage_queue(struct thread_data *td, struct io_u *io_u)
{
	struct storage *s = td->io_ops_data;
	enum fio_blk_op op;
	int rc;

	fio_ro_check(td, io_u);
	if (io_u->ddir == DDIR_READ) {
		op = FIO_BLK_READ;
	} else if (io_u->ddir == DDIR_WRITE) {
		op = td->o.sync_io != 0 ? FIO_BLK_WRITE_FUA : FIO_BLK_WRITE;
	} else if (ddir_sync(io_u->ddir)) {
		op = FIO_BLK_FLUSH;
	} else {
		io_u->error = EOPNOTSUPP;
		return FIO_Q_COMPLETED;
	}
	rc = fio_blk_submit(s->blk, op, io_u->xfer_buf, (uint32_t)io_u->xfer_buflen, io_u->offset,
			    io_u);
	if (rc == 0)
		return FIO_Q_QUEUED;
	if (rc == -EAGAIN)
		return FIO_Q_BUSY;
	io_u->error = -rc;
	return FIO_Q_COMPLETED;
}

static int
storage_commit(struct thread_data *td)
{
	struct storage *s = td->io_ops_data;

	fio_blk_ring(s->blk);
	io_u_mark_submit(td, 1);
	return 0;
}

static int
storage_getevents(struct thread_data *td, unsigned int min, unsigned int max,
		  const struct timespec *t)
{
	struct storage *s = td->io_ops_data;
	struct timespec now, end = {0, 0};
	const char *broken;

	s->ndone = 0;
	if (t != NULL) {
		clock_gettime(CLOCK_MONOTONIC, &end);
		end.tv_sec += t->tv_sec;
		end.tv_nsec += t->tv_nsec;
	}
	if (max > td->o.iodepth)
		max = td->o.iodepth;
	do {
		s->ndone += fio_blk_poll(s->blk, s->done + s->ndone, max - s->ndone);
		broken = fio_blk_broken(s->blk);
		if (broken != NULL && !s->told) {
			log_err("storage: %s\n", broken);
			s->told = true;
		}
		if (t != NULL) {
			clock_gettime(CLOCK_MONOTONIC, &now);
			if (now.tv_sec > end.tv_sec + 1 ||
			    (now.tv_sec - end.tv_sec) * 1000000000ll + now.tv_nsec - end.tv_nsec >=
				    0)
				break;
		}
	} while (s->ndone < min);
	return (int)s->ndone;
}

static struct io_u *
storage_event(struct thread_data *td, int event)
{
	struct storage *s = td->io_ops_data;
	struct io_u *io_u = s->done[event].user;

	io_u->error = -s->done[event].error;
	io_u->resid = io_u->error != 0 ? io_u->xfer_buflen : 0;
	return io_u;
}

static int
storage_nothing(struct thread_data *td, struct fio_file *f)
{
	(void)td;
	(void)f;
	return 0;
}

/* fio looks up this name in the shared library. */
extern struct ioengine_ops ioengine;
struct ioengine_ops ioengine = {
	.name = "storage",
	.version = FIO_IOOPS_VERSION,
	.flags = FIO_DISKLESSIO | FIO_NOEXTEND | FIO_NODISKUTIL | FIO_MEMALIGN,
	.setup = storage_setup,
	.init = storage_init,
	.cleanup = storage_cleanup,
	.iomem_alloc = storage_iomem_alloc,
	.iomem_free = storage_iomem_free,
	.queue = storage_queue,
	.commit = storage_commit,
	.getevents = storage_getevents,
	.event = storage_event,
	.open_file = storage_nothing,
	.close_file = storage_nothing,
	.invalidate = storage_nothing,
	.options = options,
	.option_struct_size = sizeof(struct storage_options),
};
