/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Memory of rings and doorbell records: EAL memory, registered once per slab.
 *
 * A slab is one umem with one page size. Its size is 2 MiB, or that of the ring if the ring is
 * larger. Rings start on 4 KiB boundaries. Objects use pages of 4 KiB, the smallest page of the
 * device.
 *
 * Firmware gets the start of an object in 64ths of the umem's page: page_offset of the contexts
 * (kernel: mlx5_umem_find_best_quantized_pgoff(), UCX: UCT_GDAKI_CQ_PAGE_OFFSET_SHIFT). With umem
 * pages above 64 * 4 KiB most rings would start between two 64ths, so such pages are not used.
 *
 * page_offset has 6 bits in the contexts of CQs and QPs, but 5 bits in a wq, which an RMP uses. So
 * an RMP must start in the first half of the umem's page. The kernel may choose any of the page
 * sizes that a slab allows. Therefore RMPs get slabs that allow only pages of the host, and start
 * at such a page.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_malloc.h>
#include <rte_memory.h>

#include "mlx5.h"

#define SLAB_SIZE ((size_t)2 << 20)
/*
 * Largest usable page size of a umem, in bytes. Firmware names an offset in units of 1/64 of the
 * page. With this page size the unit is 4 KiB, so a queue may start at each 4 KiB boundary.
 */
#define MAX_UMEM_PAGE (UINT64_C(64) * MLX5_QMEM_PAGE)
#define OFFSET_BITS   6u /* bits of page_offset that name all 64ths of a page */

struct mlx5_slab {
	LIST_ENTRY(mlx5_slab) link;
	uint8_t *base;
	size_t len;
	int socket;
	struct mlx5_umem *umem;
	uint32_t pages;     /* number of pages of MLX5_QMEM_PAGE bytes */
	uint64_t umem_page; /* largest page size of the umem, in bytes */
	uint32_t free;
	uint32_t next;  /* page at which the next search for free pages starts */
	uint8_t used[]; /* one flag per page */
};

#define DBR_SIZE     8u
#define DBR_PER_PAGE (MLX5_QMEM_PAGE / DBR_SIZE)

struct mlx5_dbr_page {
	LIST_ENTRY(mlx5_dbr_page) link;
	struct mlx5_qbuf buf;
	uint32_t free;
	uint64_t used[DBR_PER_PAGE / 64];
};

void
mlx5_qmem_init(struct mlx5_qmem *qmem, struct mlx5_ctx *ctx)
{
	qmem->ctx = ctx;
	LIST_INIT(&qmem->slabs);
	qmem->n_slabs = 0;
	qmem->alone = false;
}

/*
 * Returns the host's page size in bytes, which is 64 KiB on some Arm machines. The kernel uses no
 * smaller page for a umem (ib_umem_find_best_pgsz()). Without hugepages EAL reports 4 KiB on all
 * machines, so EAL's value is not used.
 */
static uint64_t
host_page(void)
{
	const long page = sysconf(_SC_PAGESIZE);

	return page > (long)MLX5_QMEM_PAGE ? (uint64_t)page : MLX5_QMEM_PAGE;
}

/*
 * Returns the largest page size that the umem may use, in bytes. @max, the real page size, and the
 * address and length of the slab limit this size.
 */
static uint64_t
max_page_size(const void *base, size_t len, uint64_t max)
{
	const struct rte_memseg_list *msl = rte_mem_virt2memseg_list(base);
	uint64_t pg = host_page();

	if (msl != NULL)
		pg = RTE_MAX(pg, msl->page_sz);
	pg = RTE_MIN(pg, max);
	while (pg > MLX5_QMEM_PAGE && (((uintptr_t)base | len) & (pg - 1)) != 0)
		pg >>= 1;
	return pg;
}

static void *
slab_mem(const struct mlx5_qmem *qmem, size_t *len, size_t need, int socket)
{
	/*
	 * Use whole hugepages if there are any, so that the kernel can use large pages for the
	 * umem.
	 */
	size_t align = rte_eal_has_hugepages() && !qmem->alone ? SLAB_SIZE : host_page();
	void *base;

	*len = qmem->alone ? need : RTE_ALIGN_CEIL(need, SLAB_SIZE);
	base = rte_malloc_socket("bb_queues", *len, align, socket);
	if (base == NULL && socket != SOCKET_ID_ANY)
		base = rte_malloc_socket("bb_queues", *len, align, SOCKET_ID_ANY);
	if (base == NULL) {
		*len = RTE_ALIGN_CEIL(need, host_page());
		base = rte_malloc_socket("bb_queues", *len, host_page(), SOCKET_ID_ANY);
	}
	return base;
}

static int
slab_create(struct mlx5_qmem *qmem, size_t need, uint64_t max_page, int socket,
	    struct mlx5_slab **out)
{
	struct mlx5_ctx *ctx = qmem->ctx;
	struct mlx5_slab *s;
	uint64_t pgsz;
	size_t len;
	void *base;
	int ret;

	base = slab_mem(qmem, &len, need, socket);
	if (base == NULL) {
		BB_LOG(ERR,
		       "%s: no EAL memory for %zu bytes of queues: give EAL more (-m, or "
		       "hugepages)",
		       ctx->name, need);
		return -ENOMEM;
	}
	s = calloc(1, sizeof(*s) + len / MLX5_QMEM_PAGE);
	if (s == NULL) {
		BB_LOG(ERR, "%s: out of memory for the description of queue memory", ctx->name);
		ret = -ENOMEM;
		goto free_mem;
	}
	max_page = max_page_size(base, len, max_page);
	/* All sizes up to the largest: the kernel uses the largest that fits the memory. */
	pgsz = qmem->alone ? BB_UMEM_ANY_PAGE : (max_page << 1) - MLX5_QMEM_PAGE;
	ret = ctx->cmd->umem_reg(ctx, base, len, BB_ACCESS_LOCAL_WRITE, pgsz, &s->umem);
	/*
	 * Kernels before 5.12 choose the page size themselves, and an object must start where its
	 * umem starts (devx_umem_reg_cmd_alloc()). So from now on each ring gets its own umem.
	 */
	if (ret == -EOPNOTSUPP && !qmem->alone) {
		qmem->alone = true;
		ret = ctx->cmd->umem_reg(ctx, base, len, BB_ACCESS_LOCAL_WRITE, BB_UMEM_ANY_PAGE,
					 &s->umem);
	}
	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot register %zu bytes of queue memory: %s%s", ctx->name, len,
		       strerror(-ret), bb_mem_hint(ret, false));
		goto free_slab;
	}
	s->base = base;
	s->len = len;
	s->socket = socket;
	s->pages = (uint32_t)((qmem->alone ? need : len) / MLX5_QMEM_PAGE);
	s->umem_page = max_page;
	s->free = s->pages;
	LIST_INSERT_HEAD(&qmem->slabs, s, link);
	qmem->n_slabs++;
	*out = s;
	return 0;

free_slab:
	free(s);
free_mem:
	rte_free(base);
	return ret;
}

/*
 * Destroys a slab. If that fails, the device may still write to the memory, so the slab stays and
 * the call can be repeated.
 */
static int
slab_destroy(struct mlx5_qmem *qmem, struct mlx5_slab *s)
{
	int ret = qmem->ctx->cmd->umem_dereg(qmem->ctx, s->umem);

	if (ret != 0) {
		BB_LOG(ERR, "%s: cannot deregister %zu bytes of queue memory: %s", qmem->ctx->name,
		       s->len, strerror(-ret));
		return ret;
	}
	LIST_REMOVE(s, link);
	qmem->n_slabs--;
	rte_free(s->base);
	free(s);
	return 0;
}

int
mlx5_qmem_fini(struct mlx5_qmem *qmem)
{
	int ret = 0;

	while (!LIST_EMPTY(&qmem->slabs) && ret == 0)
		ret = slab_destroy(qmem, LIST_FIRST(&qmem->slabs));
	return ret;
}

/*
 * Returns the first of @n contiguous free pages from @from on, a multiple of @align. Returns
 * s->pages if there are too few.
 */
static uint32_t
slab_find(const struct mlx5_slab *s, uint32_t from, uint32_t n, uint32_t align)
{
	uint32_t i, run = 0;

	for (i = from; i < s->pages; i++) {
		if (s->used[i])
			run = 0;
		else if (run != 0 || i % align == 0)
			run++;
		if (run == n)
			return i + 1 - n;
	}
	return s->pages;
}

int
mlx5_qmem_alloc(struct mlx5_qmem *qmem, size_t len, struct bb_prm_field page_offset, int socket,
		struct mlx5_qbuf *buf)
{
	/* Pages of the umem, in bytes, and the unit of the ring's start, in pages of a slab. */
	uint64_t max_page = MAX_UMEM_PAGE;
	uint32_t n, align = 1, at = 0;
	struct mlx5_slab *s;
	int ret;

	if (page_offset.width < OFFSET_BITS) {
		max_page = host_page();
		align = (uint32_t)(max_page / MLX5_QMEM_PAGE);
	}
	len = RTE_ALIGN_CEIL(len, (size_t)MLX5_QMEM_PAGE);
	n = (uint32_t)(len / MLX5_QMEM_PAGE);
	LIST_FOREACH(s, &qmem->slabs, link) {
		if (s->socket != socket || s->free < n || s->umem_page > max_page ||
		    (qmem->alone && s->free != s->pages))
			continue;
		at = slab_find(s, s->next, n, align);
		if (at == s->pages)
			at = slab_find(s, 0, n, align);
		if (at != s->pages)
			break;
	}
	if (s == NULL) {
		ret = slab_create(qmem, len, max_page, socket, &s);
		if (ret != 0)
			return ret;
		at = 0;
	}
	memset(&s->used[at], 1, n);
	s->free -= n;
	s->next = at + n;
	buf->addr = s->base + (size_t)at * MLX5_QMEM_PAGE;
	buf->len = len;
	buf->umem_id = s->umem->id;
	buf->offset = (uint64_t)at * MLX5_QMEM_PAGE;
	buf->slab = s;
	return 0;
}

void
mlx5_qmem_free(struct mlx5_qmem *qmem, struct mlx5_qbuf *buf)
{
	struct mlx5_slab *s = buf->slab;
	uint32_t at = (uint32_t)(buf->offset / MLX5_QMEM_PAGE);
	uint32_t n = (uint32_t)(buf->len / MLX5_QMEM_PAGE);

	memset(&s->used[at], 0, n);
	s->free += n;
	s->next = RTE_MIN(s->next, at);
	buf->slab = NULL;
	/*
	 * Keep the last slab until close, so that creating and destroying one QP repeatedly does
	 * not register memory each time.
	 */
	if (s->free == s->pages && qmem->n_slabs > 1)
		(void)slab_destroy(qmem, s);
}

int
mlx5_dbr_alloc(struct mlx5_qmem *qmem, struct mlx5_dbr_list *pages, int socket,
	       struct mlx5_dbr *dbr)
{
	struct mlx5_dbr_page *p;
	uint32_t i, bit, slot;
	int ret;

	LIST_FOREACH(p, pages, link) {
		if (p->free > 0)
			break;
	}
	if (p == NULL) {
		p = calloc(1, sizeof(*p));
		if (p == NULL) {
			BB_LOG(ERR, "%s: out of memory for a page of doorbell records",
			       qmem->ctx->name);
			return -ENOMEM;
		}
		/* A doorbell record may be anywhere: contexts have its offset in bytes. */
		ret = mlx5_qmem_alloc(qmem, MLX5_QMEM_PAGE, BB_PRM_QPC_PAGE_OFFSET, socket,
				      &p->buf);
		if (ret != 0) {
			free(p);
			return ret;
		}
		p->free = DBR_PER_PAGE;
		LIST_INSERT_HEAD(pages, p, link);
	}
	for (i = 0; p->used[i] == UINT64_MAX; i++)
		;
	bit = (uint32_t)__builtin_ctzll(~p->used[i]);
	p->used[i] |= 1ull << bit;
	p->free--;
	slot = i * 64 + bit;
	dbr->rec = (uint32_t *)(void *)(p->buf.addr + (size_t)slot * DBR_SIZE);
	dbr->rec[0] = 0;
	dbr->rec[1] = 0;
	dbr->umem_id = p->buf.umem_id;
	dbr->offset = p->buf.offset + (uint64_t)slot * DBR_SIZE;
	dbr->page = p;
	return 0;
}

void
mlx5_dbr_free(struct mlx5_qmem *qmem, struct mlx5_dbr *dbr)
{
	struct mlx5_dbr_page *p = dbr->page;
	uint32_t slot = (uint32_t)((dbr->offset - p->buf.offset) / DBR_SIZE);

	p->used[slot / 64] &= ~(1ull << slot % 64);
	p->free++;
	dbr->page = NULL;
	if (p->free == DBR_PER_PAGE) {
		LIST_REMOVE(p, link);
		mlx5_qmem_free(qmem, &p->buf);
		free(p);
	}
}
