/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Parameters and replies of rte_telemetry endpoints. Parameters come from a socket, so their length
 * is bounded, and invalid parameters are rejected with a text. A rejection is a reply with the
 * single field "error". DPDK would send an error code to the client as null, without a reason.
 *
 * Depends on DPDK and libc only, so that the software device can use it too.
 */
#ifndef BB_TEL_H
#define BB_TEL_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_telemetry.h>
#include <rte_version.h>

/*
 * Largest size of an endpoint's parameters in bytes, including the final zero. Longer parameters
 * are invalid.
 */
#define BB_TEL_PARAMS_MAX 160
/*
 * Largest number of values in one reply. These fit into a DPDK array and into the 16 KiB of JSON of
 * a DPDK reply.
 */
#define BB_TEL_PAGE 500u

/* DPDK 23.03 renamed the telemetry functions and the type that the macros below stand for. */
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define BB_TEL_UINT       RTE_TEL_UINT_VAL
#define bb_tel_dict_uint  rte_tel_data_add_dict_uint
#define bb_tel_array_uint rte_tel_data_add_array_uint
#else
#define BB_TEL_UINT       RTE_TEL_U64_VAL
#define bb_tel_dict_uint  rte_tel_data_add_dict_u64
#define bb_tel_array_uint rte_tel_data_add_array_u64
#endif

/*
 * Writes the error text @why to the reply and returns 0. @why has at most 127 characters and must
 * not contain text from the client.
 */
static inline int
bb_tel_refuse(struct rte_tel_data *d, const char *why)
{
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "error", why);
	return 0;
}

/* Parameters separated by commas. */
struct bb_tel_args {
	char text[BB_TEL_PARAMS_MAX];
	char *next; /* NULL if no parameter is left */
};

/* Starts to parse @params, which may be NULL. Returns false if they are too long. */
static inline bool
bb_tel_args_init(struct bb_tel_args *a, const char *params)
{
	size_t len = params != NULL ? strnlen(params, sizeof(a->text)) : 0;

	a->next = NULL;
	if (len == sizeof(a->text))
		return false;
	if (len == 0)
		return true;
	memcpy(a->text, params, len);
	a->text[len] = '\0';
	a->next = a->text;
	return true;
}

/* Returns the next parameter, NULL if none is left. */
static inline const char *
bb_tel_arg(struct bb_tel_args *a)
{
	char *arg = a->next, *comma;

	if (arg == NULL)
		return NULL;
	comma = strchr(arg, ',');
	if (comma != NULL)
		*comma++ = '\0';
	a->next = comma;
	return arg;
}

/*
 * Parses the next parameter as a number: decimal, or hexadecimal with 0x. Returns false if it is
 * missing, not a number, or larger than @max.
 */
static inline bool
bb_tel_arg_uint(struct bb_tel_args *a, uint64_t max, uint64_t *v)
{
	const char *s = bb_tel_arg(a);
	unsigned long long n;
	char *end;

	/* strtoull() alone would accept a sign and spaces. */
	if (s == NULL || *s < '0' || *s > '9')
		return false;
	errno = 0;
	n = strtoull(s, &end, s[0] == '0' && (s[1] | 0x20) == 'x' ? 16 : 10);
	if (errno != 0 || *end != '\0' || n > max)
		return false;
	*v = n;
	return true;
}

/*
 * A page of a list of numbers: {"NAME": [...], "total": N}. If more numbers follow, the reply also
 * has "next": the second parameter that requests the next page.
 */
struct bb_tel_page {
	struct rte_tel_data *numbers;
	uint64_t start, total;
};

/* Starts a page of a list. Returns false if the parameters were rejected; @d then has the error. */
static inline bool
bb_tel_page_begin(struct bb_tel_page *p, struct bb_tel_args *a, struct rte_tel_data *d)
{
	p->start = 0;
	p->total = 0;
	if (a->next != NULL && (!bb_tel_arg_uint(a, UINT32_MAX, &p->start) || a->next != NULL)) {
		bb_tel_refuse(d, "the last parameter must be a number: the first entry to list");
		return false;
	}
	p->numbers = rte_tel_data_alloc();
	if (p->numbers == NULL) {
		bb_tel_refuse(d, "no memory for the list");
		return false;
	}
	rte_tel_data_start_array(p->numbers, BB_TEL_UINT);
	return true;
}

static inline void
bb_tel_page_add(struct bb_tel_page *p, uint64_t number)
{
	if (p->total >= p->start && p->total - p->start < BB_TEL_PAGE)
		bb_tel_array_uint(p->numbers, number);
	p->total++;
}

static inline void
bb_tel_page_end(struct bb_tel_page *p, const char *name, struct rte_tel_data *d)
{
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_container(d, name, p->numbers, 0);
	bb_tel_dict_uint(d, "total", p->total);
	if (p->total > p->start && p->total - p->start > BB_TEL_PAGE)
		bb_tel_dict_uint(d, "next", p->start + BB_TEL_PAGE);
}

/* Returns @part of @whole in thousandths, 0 if @whole is 0. */
static inline uint64_t
bb_tel_permille(uint64_t part, uint64_t whole)
{
	return whole == 0 ? 0 : (uint64_t)((double)part * 1000 / (double)whole + 0.5);
}

#endif
