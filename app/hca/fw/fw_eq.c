/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The commands of event queues. */
#include <inttypes.h>
#include <stdlib.h>

#include "bb_bytes.h"
#include "fw.h"
#include "hca_log.h"

#define EQC_ARMED        0x9u /* Linux eq.c: MLX5_EQ_STATE_ARMED, _FIRED */
#define EQC_FIRED        0xau
#define LOG_ADAPTER_PAGE 12u
#define MAX_LOG_PAGE     31u

/* Copies the list of the EQ's pages. Returns a status. */
static int
eq_pages(struct fw_cmd *c, struct hca_eq *eq)
{
	const uint8_t *list = bb_prm_csub(c->in, BB_PRM_CREATE_EQ_PAS);
	uint64_t size = UINT64_C(1) << eq->log_page, pa;
	uint32_t i;

	eq->n_pages = (uint32_t)((((uint64_t)BB_PRM_SZ_EQE << eq->log_size) + size - 1) / size);
	if (eq->n_pages > (c->inlen - BB_PRM_SZ_CREATE_EQ_IN) / 8)
		return fw_refuse(
			c, BB_PRM_STAT_BAD_INP_LEN,
			"an EQ of 2^%u entries needs %u pages of 2^%u bytes, the list has %u",
			eq->log_size, eq->n_pages, eq->log_page,
			(c->inlen - BB_PRM_SZ_CREATE_EQ_IN) / 8);
	eq->pages = calloc(eq->n_pages, sizeof(*eq->pages));
	if (eq->pages == NULL)
		return fw_refuse(c, BB_PRM_STAT_NO_RES, "no memory");
	for (i = 0; i < eq->n_pages; i++) {
		pa = bb_get64(list + 8u * i) & ~UINT64_C(0xfff);
		if (pa % size != 0 || guest_at(&c->h->guest, pa, size, true) == NULL)
			return fw_refuse(c, BB_PRM_STAT_BAD_PARAM,
					 "page 0x%" PRIx64 " of 2^%u bytes is not RAM of the guest",
					 pa, eq->log_page);
		eq->pages[i] = pa;
	}
	return BB_PRM_STAT_OK;
}

int
fw_create_eq(struct fw_cmd *c)
{
	const uint8_t *eqc = bb_prm_csub(c->in, BB_PRM_CREATE_EQ_EQC);
	struct hca_eq eq = {
		.used = true,
		.log_size = (uint8_t)bb_prm_get(eqc, BB_PRM_EQC_LOG_EQ_SIZE),
		.log_page = (uint8_t)(bb_prm_get(eqc, BB_PRM_EQC_LOG_PAGE_SIZE) + LOG_ADAPTER_PAGE),
		.vector = bb_prm_get(eqc, BB_PRM_EQC_INTR),
		.uar = bb_prm_get(eqc, BB_PRM_EQC_UAR_PAGE),
	};
	uint32_t eqn = 1, i;

	if (fw_need(c, BB_PRM_SZ_CREATE_EQ_IN, 16) != 0)
		return BB_PRM_STAT_BAD_INP_LEN;
	if (eq.log_size > HCA_LOG_EQ || eq.log_page > MAX_LOG_PAGE)
		return fw_refuse(
			c, BB_PRM_STAT_BAD_PARAM,
			"EQ of 2^%u entries (at most 2^%u), pages of 2^%u bytes (at most 2^%u)",
			eq.log_size, HCA_LOG_EQ, eq.log_page, MAX_LOG_PAGE);
	if (bb_prm_get(eqc, BB_PRM_EQC_PAGE_OFFSET) != 0)
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "page_offset of an EQ is not 0");
	if (eq.vector >= HCA_N_MSIX)
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "vector %u (0 to %u)", eq.vector,
				 HCA_N_MSIX - 1);
	if (eq.uar < HCA_UAR_FIRST / HCA_PAGE || eq.uar >= FRONT_UAR_END)
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM, "register page 0x%x", eq.uar);
	if (c->h->o.shared && eq.uar >= FRONT_UAR_SHARED)
		return fw_refuse(c, BB_PRM_STAT_BAD_PARAM,
				 "register page 0x%x of an EQ is shared memory (--doorbell shared)",
				 eq.uar);
	while (eqn < HCA_EQS && c->h->eqs[eqn].used)
		eqn++;
	if (eqn == HCA_EQS)
		return fw_refuse(c, BB_PRM_STAT_NO_RES, "all %u EQs are in use", HCA_EQS - 1);
	for (i = 0; i < 4; i++)
		eq.mask[i] = bb_get64(
			(const uint8_t *)bb_prm_csub(c->in, BB_PRM_CREATE_EQ_EVENT_BITMASK) +
			8u * i);
	if (eq_pages(c, &eq) != BB_PRM_STAT_OK) {
		hca_eq_free(&eq);
		return BB_PRM_STAT_BAD_PARAM;
	}
	c->h->eqs[eqn] = eq;
	bb_prm_set(c->out, BB_PRM_CREATE_EQ_OUT_EQ_NUMBER, eqn);
	HCA_LOG(DEBUG,
		"created EQ %u: 2^%u entries, vector %u, register page 0x%x, events 0x%" PRIx64,
		eqn, eq.log_size, eq.vector, eq.uar, eq.mask[0]);
	return BB_PRM_STAT_OK;
}

/*
 * Returns the EQ that a command names. Refuses the command and returns NULL if there is no such EQ.
 */
static struct hca_eq *
named_eq(struct fw_cmd *c, struct bb_prm_field f)
{
	uint32_t eqn = bb_prm_get(c->in, f);

	if (eqn < HCA_EQS && c->h->eqs[eqn].used)
		return &c->h->eqs[eqn];
	(void)fw_refuse(c, BB_PRM_STAT_BAD_RES, "EQ %u does not exist", eqn);
	return NULL;
}

int
fw_destroy_eq(struct fw_cmd *c)
{
	struct hca_eq *eq = named_eq(c, BB_PRM_DESTROY_EQ_EQ_NUMBER);

	if (eq == NULL)
		return BB_PRM_STAT_BAD_RES;
	hca_eq_free(eq);
	return BB_PRM_STAT_OK;
}

int
fw_query_eq(struct fw_cmd *c)
{
	const struct hca_eq *eq = named_eq(c, BB_PRM_QUERY_EQ_EQ_NUMBER);
	uint8_t *eqc = bb_prm_sub(c->out, BB_PRM_QUERY_EQ_OUT_EQC);

	if (eq == NULL)
		return BB_PRM_STAT_BAD_RES;
	if (fw_need(c, 16, BB_PRM_SZ_QUERY_EQ_OUT) != 0)
		return BB_PRM_STAT_BAD_OUTP_LEN;
	bb_prm_set(eqc, BB_PRM_EQC_ST, eq->armed ? EQC_ARMED : EQC_FIRED);
	bb_prm_set(eqc, BB_PRM_EQC_LOG_EQ_SIZE, eq->log_size);
	bb_prm_set(eqc, BB_PRM_EQC_UAR_PAGE, eq->uar);
	bb_prm_set(eqc, BB_PRM_EQC_INTR, eq->vector);
	bb_prm_set(eqc, BB_PRM_EQC_LOG_PAGE_SIZE, eq->log_page - LOG_ADAPTER_PAGE);
	bb_prm_set(eqc, BB_PRM_EQC_CONSUMER_COUNTER, eq->ci);
	bb_prm_set(eqc, BB_PRM_EQC_PRODUCER_COUNTER, eq->pi);
	bb_prm_set64(c->out, BB_PRM_F(BB_PRM_QUERY_EQ_OUT_EVENT_BITMASK.byte, 0, 64), eq->mask[0]);
	return BB_PRM_STAT_OK;
}
