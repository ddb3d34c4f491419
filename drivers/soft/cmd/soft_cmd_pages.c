/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Memory of the queues that mailboxes create: umems, or page lists, which a kernel's driver writes
 * for its own queues and for those of verbs users. Also CREATE_UMEM and DESTROY_UMEM.
 */
#include <errno.h>
#include <inttypes.h>

#include "bb_prm_kernel.h"
#include "soft_ctl.h"

#define SOFT_SYNDROME 0xbb0b0000u

#define LOG_PAGE     12u /* log2 of the size of a device page; fields log_page_size count from it */
#define LOG_MAX_PAGE 40u /* log2 of the largest page that the device accepts */
#define ENTRY        8u  /* bytes of an entry of a page list */

/* Rejects a command because the pages of its page list cannot be mapped. */
static int
no_window(struct soft_cmd *cmd, const char *what, int err)
{
	return err == -ENOMEM
		       ? SOFT_REFUSE(cmd, NO_RES, "out of memory for the %s", what)
		       : SOFT_REFUSE(cmd, BAD_PARAM,
				     "the pages of the %s are not all memory of the guest", what);
}

/*
 * Maps the pages that hold the @bytes bytes of a queue's ring. The ring begins in the first page,
 * after @m->page_offset units of 1/64 page.
 */
static int
ring_of_pages(struct soft_cmd *cmd, struct soft_queue_mem *m, uint64_t bytes)
{
	unsigned int log_sz = LOG_PAGE + m->log_page_size;
	uint64_t off = (uint64_t)m->page_offset << (log_sz - 6), n;
	int ret;

	if (log_sz > LOG_MAX_PAGE)
		return SOFT_REFUSE(cmd, BAD_PARAM, "invalid log_page_size %u (0 to %u)",
				   m->log_page_size, LOG_MAX_PAGE - LOG_PAGE);
	/* A QP with an SRQ and without a send queue has no ring, and mlx5_ib then lists no pages.
	 */
	n = bytes == 0 ? 0 : (off + bytes + (UINT64_C(1) << log_sz) - 1) >> log_sz;
	if (n > (cmd->inlen - m->list) / ENTRY)
		return SOFT_REFUSE(cmd, BAD_INP_LEN,
				   "the %s takes %" PRIu64 " pages, but the mailbox of %zu bytes "
				   "lists fewer",
				   m->what, n, cmd->inlen);
	ret = soft_umem_of_pages(cmd->ctx, cmd->in + m->list, (uint32_t)n, log_sz, off, true,
				 &m->umem);
	return ret != 0 ? no_window(cmd, m->what, ret) : 0;
}

/* Opens the page of the guest that contains a doorbell record. */
static int
record_of_page(struct soft_cmd *cmd, struct soft_queue_mem *m)
{
	uint8_t list[ENTRY];
	int ret;

	if (m->dbr_addr % 8 != 0)
		return SOFT_REFUSE(cmd, BAD_PARAM, "dbr_addr 0x%" PRIx64 " is not a multiple of 8",
				   m->dbr_addr);
	bb_prm_set64(list, BB_PRM_F(0, 0, 64), m->dbr_addr);
	ret = soft_umem_of_pages(cmd->ctx, list, 1, LOG_PAGE, 0, true, &m->db_umem);
	m->dbr_addr &= (1u << LOG_PAGE) - 1;
	return ret != 0 ? no_window(cmd, "doorbell record", ret) : 0;
}

int
soft_queue_mem_find(struct soft_cmd *cmd, struct soft_queue_mem *m)
{
	if (m->umem_valid) {
		m->umem = soft_cmd_umem(cmd, m->umem_id);
		if (m->umem == NULL)
			return SOFT_REFUSE(cmd, BAD_RES, "%s 0x%x does not exist", m->umem_field,
					   m->umem_id);
	}
	if (m->has_dbr && m->dbr_valid) {
		m->db_umem = soft_cmd_umem(cmd, m->dbr_id);
		if (m->db_umem == NULL)
			return SOFT_REFUSE(cmd, BAD_RES, "dbr_umem_id 0x%x does not exist",
					   m->dbr_id);
	}
	return 0;
}

int
soft_queue_mem_open(struct soft_cmd *cmd, struct soft_queue_mem *m, uint64_t bytes, uint64_t align)
{
	int ret;

	if (m->umem_valid) {
		if (m->page_offset != 0)
			return SOFT_REFUSE(cmd, BAD_PARAM,
					   "page_offset %u is set, but the umem offset takes its "
					   "place",
					   m->page_offset);
		ret = soft_cmd_page_size(cmd, m->umem, m->log_page_size, m->offset,
					 m->page_offset_field);
		if (ret == 0)
			ret = soft_cmd_umem_range(cmd, m->what, m->umem, m->offset, bytes, align);
	} else {
		m->offset = 0;
		ret = ring_of_pages(cmd, m, bytes);
	}
	if (ret == 0 && m->has_dbr)
		ret = m->dbr_valid ? soft_cmd_umem_range(cmd, "doorbell record", m->db_umem,
							 m->dbr_addr, 8, 8)
				   : record_of_page(cmd, m);
	if (ret != 0)
		soft_queue_mem_drop(m);
	return ret;
}

void
soft_queue_mem_drop(struct soft_queue_mem *m)
{
	soft_umem_discard(m->umem);
	soft_umem_discard(m->db_umem);
}

/* The kernel gives pages and an offset, but no length: the umem extends to the last page's end. */
int
soft_cmd_create_umem(struct soft_cmd *cmd)
{
	static const struct soft_field fields[] = {{BB_PRM_UMEM_LOG_PAGE_SIZE, 0x10},
						   {BB_PRM_UMEM_PAGE_OFFSET, 0x10},
						   {BB_PRM_UMEM_NUM_OF_MTT, 0x10}};
	const uint8_t *umem = bb_prm_csub(cmd->in, BB_PRM_CREATE_UMEM_UMEM);
	unsigned int log_sz = LOG_PAGE + bb_prm_get(umem, BB_PRM_UMEM_LOG_PAGE_SIZE);
	uint64_t n = bb_prm_get64(umem, BB_PRM_UMEM_NUM_OF_MTT);
	uint32_t off = bb_prm_get(umem, BB_PRM_UMEM_PAGE_OFFSET);
	const uint8_t *list = umem + BB_PRM_UMEM_MTT;
	struct soft_umem *u;
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	if (n == 0 || n > (cmd->inlen - BB_PRM_SZ_CREATE_UMEM_IN) / ENTRY)
		return SOFT_REFUSE(cmd, BAD_INP_LEN,
				   "num_of_mtt %" PRIu64 ", but the mailbox of %zu bytes lists "
				   "fewer pages, or none",
				   n, cmd->inlen);
	if (log_sz > LOG_MAX_PAGE || off >= n << log_sz)
		return SOFT_REFUSE(cmd, BAD_PARAM,
				   "invalid log_page_size %u (0 to %u), or page_offset 0x%x is "
				   "after the last page",
				   log_sz - LOG_PAGE, LOG_MAX_PAGE - LOG_PAGE, off);
	ret = soft_umem_of_pages(cmd->ctx, list, (uint32_t)n, log_sz, off,
				 soft_pages_writable(list, (uint32_t)n), &u);
	if (ret != 0)
		return no_window(cmd, "umem", ret);
	if (soft_umem_enter(cmd->ctx, u) != 0) {
		soft_umem_discard(u);
		return SOFT_REFUSE(cmd, NO_RES, "all umems are in use: destroy some");
	}
	bb_prm_set(cmd->out, BB_PRM_CREATE_UMEM_OUT_ID, u->pub.id);
	return 0;
}

int
soft_cmd_destroy_umem(struct soft_cmd *cmd)
{
	static const struct soft_field fields[] = {{BB_PRM_DESTROY_UMEM_ID, 0}};
	uint32_t id = bb_prm_get(cmd->in, BB_PRM_DESTROY_UMEM_ID);
	struct soft_umem *u = soft_cmd_umem(cmd, id);
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	if (u == NULL || u->window.at == NULL)
		return SOFT_REFUSE(cmd, BAD_RES, "umem 0x%x does not exist", id);
	if (u->refs != 0)
		return SOFT_REFUSE(cmd, RES_BUSY,
				   "umem 0x%x holds %u buffers and doorbell records: destroy the "
				   "CQs and QPs first",
				   id, u->refs);
	soft_umem_leave(u);
	u->pub.id = 0;
	soft_umem_discard(u);
	return 0;
}
