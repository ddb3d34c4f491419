/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <fnmatch.h>
#include <stdarg.h>

#include "conform.h"

static char *
copy(const char *text)
{
	char *p = strdup(text);

	if (p == NULL)
		abort();
	return p;
}

struct row *
row_add(struct rows *rows, const char *man, void (*run)(struct fx *fx, const struct row *row),
	const char *group, const char *cell, ...)
{
	char name[256], tail[160];
	struct row *row;
	va_list ap;

	if (rows->n == rows->cap) {
		rows->cap = rows->cap == 0 ? 1024 : 2 * rows->cap;
		rows->row = realloc(rows->row, rows->cap * sizeof(*rows->row));
		if (rows->row == NULL)
			abort();
	}
	va_start(ap, cell);
	vsnprintf(tail, sizeof(tail), cell, ap);
	va_end(ap);
	snprintf(name, sizeof(name), "%s/%s", group, tail);
	row = &rows->row[rows->n++];
	memset(row, 0, sizeof(*row));
	row->name = copy(name);
	row->group = copy(group);
	row->man = man;
	row->run = run;
	row->type = BB_QPT_RC;
	return row;
}

void
rows_generate(struct rows *rows)
{
	memset(rows, 0, sizeof(*rows));
	rows_device(rows);
	rows_memory(rows);
	rows_mr(rows);
	rows_memory_rights(rows);
	rows_dm(rows);
	rows_umem(rows);
	rows_devx(rows);
	rows_mkey(rows);
	rows_mw(rows);
	rows_data(rows);
	rows_long(rows);
	rows_atomic(rows);
	rows_post(rows);
	rows_list(rows);
	rows_unreliable(rows);
	rows_mcast(rows);
	rows_error(rows);
	rows_recv_error(rows);
	rows_srq(rows);
	rows_completion(rows);
	rows_cq(rows);
	rows_event(rows);
	rows_async(rows);
	rows_qp(rows);
	rows_life(rows);
	rows_recover(rows);
	rows_order(rows);
}

bool
row_each_gid(const struct row *row)
{
	static const char *const areas[] = {"data/", "atomic/", "unreliable/"};

	for (unsigned int i = 0; i < RTE_DIM(areas); i++)
		if (strncmp(row->name, areas[i], strlen(areas[i])) == 0)
			return true;
	return false;
}

bool
row_assumed(const struct row *row)
{
	return strcmp(row->man, ASSUMED) == 0;
}

uint64_t
row_needs(const struct row *row)
{
	uint64_t needs = row->needs;

	if (row->op != NULL && row->op->has_imm)
		needs |= NEED_IMM;
	if (row->op != NULL && row->op->wc == BB_WC_RDMA_READ && row->pieces > 1)
		needs |= NEED_READ_LIST;
	if (row->type != BB_QPT_RC || strncmp(row->group, "unreliable/u", 12) == 0)
		needs |= NEED_UNRELIABLE;
	return needs;
}

void
rows_free(struct rows *rows)
{
	for (unsigned int i = 0; i < rows->n; i++) {
		free(rows->row[i].name);
		free(rows->row[i].group);
	}
	free(rows->row);
	memset(rows, 0, sizeof(*rows));
}

/* A filter is a comma-separated list of patterns; a pattern without '*' matches anywhere. */
bool
row_matches(const struct row *row, const char *filter)
{
	char *list, *word, *save = NULL;
	bool hit = false;

	if (filter == NULL)
		return true;
	list = copy(filter);
	for (word = strtok_r(list, ",", &save); word != NULL && !hit;
	     word = strtok_r(NULL, ",", &save)) {
		if (strpbrk(word, "*?[") != NULL)
			hit = fnmatch(word, row->name, 0) == 0;
		else
			hit = strstr(row->name, word) != NULL;
	}
	free(list);
	return hit;
}
