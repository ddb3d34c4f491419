/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Telemetry: registered memory. */
#include <inttypes.h>
#include <stdio.h>

#include <rte_common.h>

#include "bb_mem_table.h"
#include "bb_tel_dev.h"

static int
mr_list(const char *cmd, const char *params, struct rte_tel_data *d)
{
	const struct bb_mr_priv *mr;
	struct bb_tel_args args;
	struct bb_tel_page page;
	const struct bb_pd *pd;
	struct bb_dev *dev;

	(void)cmd;
	dev = bb_tel_begin(&args, params, d);
	if (dev == NULL)
		return 0;
	if (bb_tel_page_begin(&page, &args, d)) {
		/* An MR may have one key only. */
		LIST_FOREACH(pd, &dev->pd_list, link)
			LIST_FOREACH(mr, &pd->mr_list, link)
				bb_tel_page_add(&page, bb_mr_name(&mr->pub));
		bb_tel_page_end(&page, "mrs", d);
	}
	bb_tel_end(dev);
	return 0;
}

static const char *
kind_name(enum bb_drv_mr_kind kind)
{
	switch (kind) {
	case BB_DRV_MR_MEM:
		return "memory";
	case BB_DRV_MR_DM:
		return "device memory";
	case BB_DRV_MR_DMABUF:
		return "dma-buf";
	case BB_DRV_MR_INDIRECT:
		return "indirect";
	case BB_DRV_MR_MW:
		return "memory window";
	}
	return "?";
}

/* In text: as a number, many readers of JSON take no 64 bits. */
static void
add_addr(struct rte_tel_data *d, const char *name, uint64_t addr)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, addr);
	rte_tel_data_add_dict_string(d, name, text);
}

static void
add_mr(struct rte_tel_data *d, const struct bb_mr_priv *mr)
{
	char access[BB_ACCESS_TEXT_MAX];

	rte_tel_data_add_dict_string(d, "kind", kind_name(mr->kind));
	if (mr->pub.lkey != BB_LKEY_NONE)
		bb_tel_dict_uint(d, "lkey", mr->pub.lkey);
	if (mr->pub.rkey != 0)
		bb_tel_dict_uint(d, "rkey", mr->pub.rkey);
	add_addr(d, "addr", (uintptr_t)mr->pub.addr);
	bb_tel_dict_uint(d, "length", RTE_MIN((uint64_t)mr->pub.len, (uint64_t)INT64_MAX));
	add_addr(d, "iova", mr->pub.iova);
	bb_access_text(mr->pub.access, access);
	rte_tel_data_add_dict_string(d, "access", access);
	bb_tel_dict_uint(d, "windows", __atomic_load_n(&mr->windows, __ATOMIC_RELAXED));
	bb_tel_dict_uint(d, "mkeys", mr->mkeys);
}

static int
mr_info(const char *cmd, const char *params, struct rte_tel_data *d)
{
	const struct bb_mr_priv *mr;
	struct bb_tel_args args;
	struct bb_dev *dev;
	uint64_t key;

	(void)cmd;
	dev = bb_tel_begin(&args, params, d);
	if (dev == NULL)
		return 0;
	if (!bb_tel_last_uint(&args, &key, d))
		goto end;
	mr = bb_mr_by_key(dev, (uint32_t)key);
	if (mr == NULL) {
		bb_tel_refuse(d, "no explicit registration has that key: see /bluebell/mr/list");
		goto end;
	}
	rte_tel_data_start_dict(d);
	add_mr(d, mr);
end:
	bb_tel_end(dev);
	return 0;
}

static int
mr_stats(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct bb_mem_stats sum = {0}, s;
	struct bb_tel_args args;
	struct bb_dev *dev;
	struct bb_pd *pd;

	(void)cmd;
	dev = bb_tel_begin(&args, params, d);
	if (dev == NULL)
		return 0;
	LIST_FOREACH(pd, &dev->pd_list, link) {
		(void)bb_mem_stats(pd, &s);
		sum.mrs += s.mrs;
		sum.heap += s.heap;
		sum.mempool += s.mempool;
		sum.retired += s.retired;
		sum.bytes += s.bytes;
	}
	rte_tel_data_start_dict(d);
	bb_tel_dict_uint(d, "pds", dev->pds);
	bb_tel_end(dev);
	bb_tel_dict_uint(d, "mrs", sum.mrs);
	bb_tel_dict_uint(d, "heap", sum.heap);
	bb_tel_dict_uint(d, "mempool", sum.mempool);
	bb_tel_dict_uint(d, "retired", sum.retired);
	bb_tel_dict_uint(d, "bytes", sum.bytes);
	return 0;
}

RTE_INIT(bb_tel_mem_init)
{
	rte_telemetry_register_cmd("/bluebell/mr/list", mr_list,
				   "Keys of explicit registrations. Parameters: device[,first]");
	rte_telemetry_register_cmd("/bluebell/mr/info", mr_info,
				   "Range, keys and rights. Parameters: device,lkey or rkey");
	rte_telemetry_register_cmd("/bluebell/mr/stats", mr_stats,
				   "Registrations of all PDs, automatic ones too. "
				   "Parameters: device");
}
