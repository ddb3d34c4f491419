/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * An I/O engine for fio. fio's engines/skeleton_external.c describes the functions of an engine.
 *
 *   fio --ioengine=external:.../nvmf_fio.so --device=soft0,shm=desk,ip=192.0.2.2/24
 *     --target=192.0.2.1:4420 --subsystem=nqn.2026-01.org.example:disk --size=1G --rw=randread
 *     --bs=4k --iodepth=32 --name=test
 *
 * A commit of fio rings the doorbell. fio's fsync= sends a flush, sync=1 makes each write a FUA
 * write, and a trim becomes a BB_NVMF_DISCARD.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <fio.h>
#include <optgroup.h>

#include "fio_nvmf.h"

struct nvmf_options {
	void *pad; /* no option may have offset 0, which fio interprets as "no offset" */
	char *device;
	char *target;
	char *subsystem;
	char *eal;
	unsigned int nsid;
	unsigned int reconnect;
};

struct nvmf_job {
	struct fio_nvmf f;
	struct bb_nvmf_done *done;
	uint32_t ndone;
	bool reported;
};

static struct fio_option options[] = {
	{
		.name = "device",
		.lname = "Device of Bluebell",
		.type = FIO_OPT_STR_STORE,
		.off1 = offsetof(struct nvmf_options, device),
		.help = "soft0,shm=desk,ip=192.0.2.2/24, mlx5_0, ...; each job one of its own",
		.def = "soft0",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "target",
		.lname = "Address of the target",
		.type = FIO_OPT_STR_STORE,
		.off1 = offsetof(struct nvmf_options, target),
		.help = "Address and port, as in 192.0.2.1:4420",
		.def = "192.0.2.1:4420",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "subsystem",
		.lname = "Subsystem of the target",
		.type = FIO_OPT_STR_STORE,
		.off1 = offsetof(struct nvmf_options, subsystem),
		.help = "Qualified name, as in nqn.2026-01.org.example:disk",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "nsid",
		.lname = "Number of the namespace",
		.type = FIO_OPT_INT,
		.off1 = offsetof(struct nvmf_options, nsid),
		.help = "From 1 on",
		.def = "1",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "reconnect",
		.lname = "Seconds to restore a connection",
		.type = FIO_OPT_INT,
		.off1 = offsetof(struct nvmf_options, reconnect),
		.help = "0: a lost connection ends the job",
		.def = "0",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "eal",
		.lname = "Arguments of EAL",
		.type = FIO_OPT_STR_STORE,
		.off1 = offsetof(struct nvmf_options, eal),
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
nvmf_setup(struct thread_data *td)
{
	if (td->o.size == 0) {
		log_err("nvmf: give size=, at most the size of the target\n");
		return 1;
	}
	if (td->files_index == 0) {
		add_file(td, td->o.filename != NULL ? td->o.filename : "nvmf", 0, 0);
		td->o.nr_files = td->o.nr_files != 0 ? td->o.nr_files : 1;
		td->o.open_files++;
	}
	td->files[0]->real_file_size = td->o.size + td->o.start_offset;
	return 0;
}

static int
nvmf_init(struct thread_data *td)
{
	const struct nvmf_options *o = td->eo;
	struct fio_nvmf_attr attr = {
		.eal = o->eal, .device = o->device, .threads = td->o.use_thread};
	struct nvmf_job *s = calloc(1, sizeof(*s));
	char why[192] = "no memory";
	int rc = s == NULL ? -ENOMEM : 0;

	bb_nvmf_attr_init(&attr.nvmf);
	attr.nvmf.addr = o->target;
	attr.nvmf.subnqn = o->subsystem;
	attr.nvmf.nsid = o->nsid;
	attr.nvmf.depth = td->o.iodepth;
	attr.nvmf.reconnect_ms = o->reconnect * 1000;
	if (rc == 0)
		rc = fio_nvmf_open(&s->f, &attr, why, sizeof(why));
	if (rc != 0) {
		log_err("nvmf: %s: %s\n", o->target, why);
		free(s);
		td_verror(td, -rc, "nvmf_init");
		return 1;
	}
	td->io_ops_data = s;
	s->done = calloc(td->o.iodepth, sizeof(*s->done));
	if (td->o.size + td->o.start_offset > bb_nvmf_shape(s->f.nvmf)->capacity ||
	    s->done == NULL) {
		log_err("nvmf: the target has %llu bytes, size= asks for more\n",
			(unsigned long long)bb_nvmf_shape(s->f.nvmf)->capacity);
		return 1;
	}
	return 0;
}

static void
nvmf_cleanup(struct thread_data *td)
{
	struct nvmf_job *s = td->io_ops_data;

	if (s == NULL)
		return;
	fio_nvmf_close(&s->f);
	free(s->done);
	free(s);
	td->io_ops_data = NULL;
}

static int
nvmf_iomem_alloc(struct thread_data *td, size_t len)
{
	struct nvmf_job *s = td->io_ops_data;

	td->orig_buffer = fio_nvmf_alloc(&s->f, len);
	if (td->orig_buffer != NULL)
		return 0;
	log_err("nvmf: no memory for %zu bytes: give EAL more, with -m MB in eal=\n", len);
	return 1;
}

static void
nvmf_iomem_free(struct thread_data *td)
{
	struct nvmf_job *s = td->io_ops_data;

	if (s != NULL)
		fio_nvmf_free(&s->f);
	td->orig_buffer = NULL;
}

static enum fio_q_status
nvmf_queue(struct thread_data *td, struct io_u *io_u)
{
	struct nvmf_job *s = td->io_ops_data;
	struct bb_nvmf_request req = {.user = io_u};
	int rc;

	fio_ro_check(td, io_u);
	if (io_u->ddir == DDIR_READ) {
		req.op = BB_NVMF_READ;
	} else if (io_u->ddir == DDIR_WRITE) {
		req.op = BB_NVMF_WRITE;
		req.flags = td->o.sync_io != 0 ? BB_NVMF_FUA : 0;
	} else if (io_u->ddir == DDIR_TRIM) {
		req.op = BB_NVMF_DISCARD;
	} else if (ddir_sync(io_u->ddir)) {
		req.op = BB_NVMF_FLUSH;
	} else {
		io_u->error = EOPNOTSUPP;
		return FIO_Q_COMPLETED;
	}
	if (req.op != BB_NVMF_FLUSH) {
		req.length = (uint32_t)io_u->xfer_buflen;
		req.offset = io_u->offset;
		req.mem = io_u->xfer_buf;
		req.mr = s->f.mr;
	}
	rc = bb_nvmf_submit(s->f.nvmf, &req);
	if (rc == 0)
		return FIO_Q_QUEUED;
	if (rc == -EAGAIN)
		return FIO_Q_BUSY;
	io_u->error = -rc;
	return FIO_Q_COMPLETED;
}

static int
nvmf_commit(struct thread_data *td)
{
	struct nvmf_job *s = td->io_ops_data;

	bb_nvmf_ring(s->f.nvmf);
	io_u_mark_submit(td, 1);
	return 0;
}

static int
nvmf_getevents(struct thread_data *td, unsigned int min, unsigned int max, const struct timespec *t)
{
	struct nvmf_job *s = td->io_ops_data;
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
		s->ndone += bb_nvmf_poll(s->f.nvmf, s->done + s->ndone, max - s->ndone);
		broken = bb_nvmf_broken(s->f.nvmf);
		if (broken != NULL && !s->reported) {
			log_err("nvmf: %s\n", broken);
			s->reported = true;
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
nvmf_event(struct thread_data *td, int event)
{
	struct nvmf_job *s = td->io_ops_data;
	struct io_u *io_u = s->done[event].user;

	io_u->error = -s->done[event].error;
	io_u->resid = io_u->error != 0 ? io_u->xfer_buflen : 0;
	return io_u;
}

static int
nvmf_nothing(struct thread_data *td, struct fio_file *f)
{
	(void)td;
	(void)f;
	return 0;
}

/* fio looks up this name in the shared library. */
extern struct ioengine_ops ioengine;
struct ioengine_ops ioengine = {
	.name = "nvmf",
	.version = FIO_IOOPS_VERSION,
	.flags = FIO_DISKLESSIO | FIO_NOEXTEND | FIO_NODISKUTIL | FIO_MEMALIGN,
	.setup = nvmf_setup,
	.init = nvmf_init,
	.cleanup = nvmf_cleanup,
	.iomem_alloc = nvmf_iomem_alloc,
	.iomem_free = nvmf_iomem_free,
	.queue = nvmf_queue,
	.commit = nvmf_commit,
	.getevents = nvmf_getevents,
	.event = nvmf_event,
	.open_file = nvmf_nothing,
	.close_file = nvmf_nothing,
	.invalidate = nvmf_nothing,
	.options = options,
	.option_struct_size = sizeof(struct nvmf_options),
};
