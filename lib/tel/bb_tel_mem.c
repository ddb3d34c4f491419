/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Telemetry: registered memory. */
#include <inttypes.h>
#include <stdio.h>

#include <rte_common.h>

#include "bb_mem_table.h"
#include "bb_tel_dev.h"

static void
each_mr(const struct bb_dev *dev, struct bb_tel_page *page)
{
	const struct bb_mr_priv *mr;
	const struct bb_pd *pd;

	/*
	 * An MR may have only an lkey or only an rkey. So the list contains the key by which log
	 * lines name the MR, bb_mr_name().
	 */
	LIST_FOREACH(pd, &dev->pd_list, link)
		LIST_FOREACH(mr, &pd->mr_list, link)
			bb_tel_page_add(page, bb_mr_name(&mr->pub));
}

static const void *
find_mr(struct bb_dev *dev, uint32_t key)
{
	return bb_mr_by_key(dev, key);
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

/* Adds the address as text, because many JSON readers cannot read all 64-bit numbers. */
static void
add_addr(struct rte_tel_data *d, const char *name, uint64_t addr)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, addr);
	rte_tel_data_add_dict_string(d, name, text);
}

static void
add_mr(struct rte_tel_data *d, const void *object)
{
	const struct bb_mr_priv *mr = object;
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

static const struct bb_tel_kind mrs = {
	.list = "mrs",
	.none = "no explicit registration has that key: see /bluebell/mr/list",
	.each = each_mr,
	.find = find_mr,
	.add = add_mr,
};

static int
mr_list(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return bb_tel_list(&mrs, params, d);
}

static int
mr_info(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return bb_tel_info(&mrs, params, d);
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
