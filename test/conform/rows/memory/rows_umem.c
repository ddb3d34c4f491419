/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* umems: explicit registration, page sizes, dma-bufs, and the order of destruction. */
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conform.h"

#define MAN  "mlx5dv_devx_umem_reg(3)"
#define LW   BB_ACCESS_LOCAL_WRITE
#define RW   BB_ACCESS_REMOTE_WRITE
#define RR   BB_ACCESS_REMOTE_READ
#define SIZE 65536u

static void
undo_umem(void *umem)
{
	(void)bb_umem_dereg(umem);
}

static void
undo_map(void *mem)
{
	munmap(mem, SIZE);
}

static uint8_t *
map(struct fx *fx, int prot)
{
	uint8_t *p = mmap(NULL, SIZE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(fx, p != MAP_FAILED, "mmap(): %s", strerror(errno));
	fx_defer(fx, undo_map, p);
	return p;
}

ROW(run_reg)
{
	uint8_t *mem = map(fx, PROT_READ | PROT_WRITE);
	struct bb_umem *a, *b;

	/* Not page-aligned: the device gets page and offset. */
	OK(fx, bb_umem_reg(fx->a.dev, mem + 64, 1000, row->n, &a));
	fx_defer(fx, undo_umem, a);
	OK(fx, bb_umem_reg(fx->a.dev, mem, SIZE, row->n, &b));
	fx_defer(fx, undo_umem, b);
	CHECK(fx, a->id != b->id, "two umems have one number");
	CHECK(fx,
	      a->addr == mem + 64 && a->len == 1000 && a->access == row->n && a->dev == fx->a.dev,
	      "struct bb_umem does not say what was registered");
	REFUSED(fx, bb_dev_close(fx->a.dev), -EBUSY, "live");
}

struct refusal {
	const char *name;
	size_t len;
	uint32_t access;
	uint64_t pages;
	int err;
	const char *word;
};

static const struct refusal refusals[] = {
	{"empty", 0, LW, BB_UMEM_ANY_PAGE, -EINVAL, "length is 0"},
	{"wraps", SIZE_MAX, LW, BB_UMEM_ANY_PAGE, -EINVAL, "address space"},
	{"atomic-right", SIZE, LW | BB_ACCESS_REMOTE_ATOMIC, BB_UMEM_ANY_PAGE, -EINVAL, "only"},
	{"on-demand-right", SIZE, LW | BB_ACCESS_ON_DEMAND, BB_UMEM_ANY_PAGE, -EINVAL, "only"},
	{"write-without-local-write", SIZE, RW, BB_UMEM_ANY_PAGE, -EINVAL, "LOCAL_WRITE"},
	{"no-page-size", SIZE, LW, 0, -EINVAL, "page size"},
	{"page-sizes-under-4K", SIZE, LW, 0xfff, -EINVAL, "page size"},
	{"page-of-1G-only", SIZE, LW, 1ull << 30, -EINVAL, "pgsz_bitmap"},
	{"page-of-1M-only", SIZE, LW, 1ull << 20, -EINVAL, "pgsz_bitmap"},
};

ROW(run_refused)
{
	const struct refusal *r = row->arg;
	struct bb_umem *umem = NULL;
	struct bb_umem_attr attr = DEFAULTS(umem_attr);

	attr.addr = map(fx, PROT_READ | PROT_WRITE);
	attr.len = r->len;
	attr.access = r->access;
	attr.pgsz_bitmap = r->pages;
	REFUSED(fx, bb_umem_reg_ex(fx->a.dev, &attr, &umem), r->err, r->word);
	CHECK(fx, umem == NULL, "a refused bb_umem_reg_ex() wrote its out-pointer");
}

ROW(run_version)
{
	struct bb_umem_attr attr = DEFAULTS(umem_attr);
	struct bb_umem *umem = NULL;

	attr.size = 8;
	REFUSED(fx, bb_umem_reg_ex(fx->a.dev, &attr, &umem), -EINVAL, "bb_umem_attr_init");
}

ROW(run_fault)
{
	uint8_t *mem = map(fx, row->n == 0 ? PROT_READ : PROT_READ | PROT_WRITE);
	struct bb_umem *umem = NULL;

	if (row->n == 1)
		munmap(mem + SIZE / 2, SIZE / 2);
	REFUSED(fx, bb_umem_reg(fx->a.dev, mem, SIZE, LW, &umem), -EFAULT, "mapped");
	CHECK(fx, umem == NULL, "a refused bb_umem_reg() wrote its out-pointer");
}

/* ---- dma-bufs */

static void
undo_fd(void *fd)
{
	close((int)(intptr_t)fd);
}

ROW(run_bad_fd)
{
	struct bb_umem *umem = NULL;
	struct bb_mr *mr = NULL;
	struct bb_umem_attr attr = DEFAULTS(umem_attr);
	int fd = row->n == 0 ? 9999 : open("/dev/null", O_RDWR);

	if (row->n != 0)
		fx_defer(fx, undo_fd, (void *)(intptr_t)fd);
	attr.len = 4096;
	attr.dmabuf_fd = fd;
	REFUSED(fx, bb_umem_reg_ex(fx->a.dev, &attr, &umem), row->n == 0 ? -EBADF : -EINVAL,
		"dma-buf");
	REFUSED(fx, bb_mr_reg_dmabuf(fx->a.pd, 0, 4096, 0, fd, LW, &mr),
		row->n == 0 ? -EBADF : -EINVAL, "dma-buf");
	CHECK(fx, umem == NULL && mr == NULL, "a refused call wrote its out-pointer");
}

ROW(run_no_dmabuf)
{
	struct bb_umem *umem = NULL;
	struct bb_mr *mr = NULL;
	struct bb_umem_attr attr = DEFAULTS(umem_attr);

	attr.len = 4096;
	attr.dmabuf_fd = 0;
	REFUSED(fx, bb_umem_reg_ex(fx->a.dev, &attr, &umem), -ENOTSUP, "dma-buf");
	REFUSED(fx, bb_mr_reg_dmabuf(fx->a.pd, 0, 4096, 0, 0, LW, &mr), -ENOTSUP, "dma-buf");
}

/* Makes a dma-buf of the pages of a memfd. */
static int
dmabuf(struct fx *fx, uint8_t **mem)
{
	struct udmabuf_create create = {.flags = UDMABUF_FLAGS_CLOEXEC, .size = SIZE};
	int dev = open("/dev/udmabuf", O_RDWR), memfd = memfd_create("conform", MFD_ALLOW_SEALING),
	    fd;

	CHECK(fx, dev >= 0 && memfd >= 0, "/dev/udmabuf: %s", strerror(errno));
	fx_defer(fx, undo_fd, (void *)(intptr_t)dev);
	fx_defer(fx, undo_fd, (void *)(intptr_t)memfd);
	CHECK(fx, ftruncate(memfd, SIZE) == 0 && fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK) == 0,
	      "memfd: %s", strerror(errno));
	*mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	CHECK(fx, *mem != MAP_FAILED, "mmap(): %s", strerror(errno));
	fx_defer(fx, undo_map, *mem);
	create.memfd = (uint32_t)memfd;
	fd = ioctl(dev, UDMABUF_CREATE, &create);
	CHECK(fx, fd >= 0, "UDMABUF_CREATE: %s", strerror(errno));
	fx_defer(fx, undo_fd, (void *)(intptr_t)fd);
	return fd;
}

static void
undo_mr(void *mr)
{
	(void)bb_mr_dereg(mr);
}

/* WRITEs to a dma-buf by its offset; a mapping of the same pages shows the data. */
ROW(run_dmabuf)
{
	const uint64_t iova = 0x10000000 + row->n;
	struct bb_sge sge = sge_of(&fx->a, GUARD, 512);
	struct pair p = fx_shared(fx);
	struct bb_umem_attr attr = DEFAULTS(umem_attr);
	struct bb_umem *umem;
	struct bb_mr *mr;
	uint8_t *mem;
	int fd = dmabuf(fx, &mem);

	attr.len = SIZE;
	attr.dmabuf_fd = fd;
	OK(fx, bb_umem_reg_ex(fx->b.dev, &attr, &umem));
	fx_defer(fx, undo_umem, umem);
	OK(fx, bb_mr_reg_dmabuf(fx->b.pd, row->n, 4096, iova, fd, LW | RW | RR, &mr));
	fx_defer(fx, undo_mr, mr);
	pattern(fx->a.mem + GUARD, 512, fx->seed++);
	complete(fx, fx->a.cq, p.a,
		 bb_post_write(p.a, 1, &sge, 1, iova + 16, mr->rkey, BB_SEND_SIGNALED), 1,
		 BB_WC_SUCCESS, "a WRITE into a dma-buf");
	CHECK(fx, memcmp(mem + row->n + 16, fx->a.mem + GUARD, 512) == 0,
	      "a WRITE into a dma-buf is not in its pages");
}

void
rows_umem(struct rows *rows)
{
	static const uint32_t access[] = {0, LW, LW | RW, LW | RW | RR};
	static const char *const access_name[] = {"read-only", "lw", "lw+rw", "lw+rw+rr"};
	struct row *row;
	unsigned int i, first = rows->n;

	for (i = 0; i < RTE_DIM(access); i++)
		row_add(rows, MAN, run_reg, "umem/register", "%s", access_name[i])->n = access[i];
	for (i = 0; i < RTE_DIM(refusals); i++)
		row_add(rows, MAN, run_refused, "umem/refused", "%s", refusals[i].name)->arg =
			&refusals[i];
	row_add(rows, MAN, run_version, "umem/refused", "size-of-another-version");
	row_add(rows, MAN, run_fault, "umem/not-accessible", "read-only-to-write")->n = 0;
	row_add(rows, MAN, run_fault, "umem/not-accessible", "half-mapped")->n = 1;
	for (i = 0; i < 2; i++) {
		row = row_add(rows, "ibv_reg_dmabuf_mr(3)", run_bad_fd, "umem/dma-buf-refused",
			      "%s", i == 0 ? "not-open" : "no-dma-buf");
		row->n = i;
		row->needs = NEED_DMABUF;
	}
	row_add(rows, "ibv_reg_dmabuf_mr(3)", run_no_dmabuf, "umem/no-dma-buf", "umem-and-mr")
		->needs = NEED_NO_DMABUF;
	for (i = 0; i < 2; i++) {
		row = row_add(rows, "ibv_reg_dmabuf_mr(3)", run_dmabuf, "umem/dma-buf", "offset-%u",
			      i * 4096);
		row->n = i * 4096;
		row->needs = NEED_DMABUF | NEED_UDMABUF;
	}
	for (i = first; i < rows->n; i++)
		rows->row[i].needs |= NEED_UMEM;
}
