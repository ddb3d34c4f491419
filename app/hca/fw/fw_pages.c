/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Pages that the driver lends to the firmware. The firmware stores nothing in these pages, because
 * its state is in this process. So commands do not wait for pages, and succeed if the driver has
 * none.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "bb_bytes.h"
#include "fw.h"
#include "hca_log.h"

/* Values of op_mod. */
enum {
	QUERY_BOOT = 1,
	QUERY_INIT = 2,
	QUERY_REGULAR = 3
};
enum {
	PAGES_CANT_GIVE = 0,
	PAGES_GIVE = 1,
	PAGES_TAKE = 2
};

/*
 * Returns how many pages the firmware needs: those of the start, and whole blocks for the contexts
 * of the guest's objects.
 */
static uint32_t
needed(const struct hca *h)
{
	uint32_t n = front_context_pages(h->front);

	n = (n + FW_BLOCK_PAGES - 1) / FW_BLOCK_PAGES * FW_BLOCK_PAGES;
	n += FW_BOOT_PAGES + FW_INIT_PAGES;
	return n < HCA_MAX_PAGES ? n : HCA_MAX_PAGES;
}

/*
 * Returns how many pages the driver must give, as a negative number how many it may take back. The
 * firmware keeps one block in reserve, so that a program that creates and destroys one object in a
 * loop causes no requests.
 */
static int32_t
wanted(const struct hca *h)
{
	int32_t n = (int32_t)needed(h) - (int32_t)h->fw.n_pages;

	return n > 0 || n < -(int32_t)FW_BLOCK_PAGES ? n : 0;
}

/* Linux serves the event by a work queue (pagealloc.c). One request at a time is outstanding. */
void
fw_update_pages(struct hca *h)
{
	struct hca_fw *fw = &h->fw;
	int32_t n = wanted(h);
	uint8_t event[8] = {0};

	__atomic_store_n(&h->stats.pages, fw->n_pages, __ATOMIC_RELAXED);
	if (!fw->initialized || fw->page_request || n == 0 || fw->declined == needed(h) ||
	    hca_event_eq(h, BB_PRM_EVENT_PAGE_REQUEST) == 0)
		return;
	fw->page_request = true;
	hca_count(&h->stats.page_requests);
	HCA_LOG(DEBUG, "page request: %d pages, the driver has lent %u", n, fw->n_pages);
	bb_prm_set(event, BB_PRM_PAGE_EVENT_NUM_PAGES, (uint32_t)n);
	hca_event(h, BB_PRM_EVENT_PAGE_REQUEST, 0, event, sizeof(event));
}

int
fw_query_pages(struct fw_cmd *c)
{
	uint32_t n = 0;

	if (c->op_mod == QUERY_BOOT)
		n = FW_BOOT_PAGES;
	else if (c->op_mod == QUERY_INIT)
		n = FW_INIT_PAGES;
	else if (c->op_mod == QUERY_REGULAR)
		n = c->h->fw.initialized ? (uint32_t)wanted(c->h) : 0;
	else
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "QUERY_PAGES op_mod %u (1 to 3)",
				 c->op_mod);
	bb_prm_set(c->out, BB_PRM_QUERY_PAGES_OUT_NUM_PAGES, n);
	return BB_PRM_STAT_OK;
}

static int
give_pages(struct fw_cmd *c, uint32_t n)
{
	const uint8_t *list = bb_prm_csub(c->in, BB_PRM_MANAGE_PAGES_PAS);
	struct hca_fw *fw = &c->h->fw;
	uint64_t *pages, pa;
	uint32_t i;

	if (n > (c->inlen - BB_PRM_MANAGE_PAGES_PAS.byte) / 8)
		return fw_refuse(c, BB_PRM_STAT_BAD_INP_LEN,
				 "%u pages do not fit an input of %u bytes", n, c->inlen);
	if (n > HCA_MAX_PAGES - fw->n_pages)
		return fw_refuse(c, BB_PRM_STAT_LIM_ERR, "%u pages added to %u (at most %u in all)",
				 n, fw->n_pages, HCA_MAX_PAGES);
	for (i = 0; i < n; i++) {
		pa = bb_get64(list + 8u * i);
		if (pa % HCA_PAGE != 0 || guest_at(&c->h->guest, pa, HCA_PAGE, true) == NULL)
			return fw_refuse(c, BB_PRM_STAT_BAD_PARAM,
					 "page 0x%" PRIx64 " is not RAM of the guest", pa);
	}
	pages = realloc(fw->pages, (fw->n_pages + n + 1) * sizeof(*pages));
	if (pages == NULL)
		return fw_refuse(c, BB_PRM_STAT_NO_RES, "no memory");
	fw->pages = pages;
	for (i = 0; i < n; i++)
		pages[fw->n_pages++] = bb_get64(list + 8u * i);
	return BB_PRM_STAT_OK;
}

static int
take_pages(struct fw_cmd *c, uint32_t n)
{
	uint8_t *list = bb_prm_sub(c->out, BB_PRM_MANAGE_PAGES_OUT_PAS);
	struct hca_fw *fw = &c->h->fw;
	uint32_t i, keep = fw->initialized ? needed(c->h) : 0;

	if (n > (c->outlen - BB_PRM_MANAGE_PAGES_OUT_PAS.byte) / 8)
		return fw_refuse(c, BB_PRM_STAT_BAD_OUTP_LEN,
				 "%u pages do not fit an output of %u bytes", n, c->outlen);
	if (keep > fw->n_pages)
		keep = fw->n_pages;
	if (n > fw->n_pages - keep)
		n = fw->n_pages - keep;
	for (i = 0; i < n; i++)
		bb_prm_set64(list + 8u * i, BB_PRM_F(0, 0, 64), fw->pages[--fw->n_pages]);
	bb_prm_set(c->out, BB_PRM_MANAGE_PAGES_OUT_OUTPUT_NUM_ENTRIES, n);
	return BB_PRM_STAT_OK;
}

static int
manage_pages(struct fw_cmd *c)
{
	uint32_t n = bb_prm_get(c->in, BB_PRM_MANAGE_PAGES_INPUT_NUM_ENTRIES);

	switch (c->op_mod) {
	case PAGES_CANT_GIVE:
		HCA_LOG(WARNING, "MANAGE_PAGES: the driver has no pages for the firmware");
		return BB_PRM_STAT_OK;
	case PAGES_GIVE:
		return give_pages(c, n);
	case PAGES_TAKE:
		return take_pages(c, n);
	default:
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "MANAGE_PAGES op_mod %u (0 to 2)",
				 c->op_mod);
	}
}

int
fw_manage_pages(struct fw_cmd *c)
{
	/* The list of pages begins after these bytes of either mailbox. */
	int st = fw_need(c, BB_PRM_MANAGE_PAGES_PAS.byte, BB_PRM_MANAGE_PAGES_OUT_PAS.byte);
	struct hca_fw *fw = &c->h->fw;

	if (st != BB_PRM_STAT_OK)
		return st;
	if (bb_prm_get(c->in, BB_PRM_MANAGE_PAGES_FUNCTION_ID) != 0)
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "pages of another function");
	st = manage_pages(c);
	/* This answers the page request. After a failure the next request waits for a new need. */
	fw->page_request = false;
	fw->declined = st != BB_PRM_STAT_OK || c->op_mod == PAGES_CANT_GIVE ? needed(c->h) : 0;
	return st;
}
