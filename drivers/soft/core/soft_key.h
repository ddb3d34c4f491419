/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory keys: registered memory, and indirect keys over the memory of other keys. */
#ifndef SOFT_KEY_H
#define SOFT_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "soft_hooks.h"

struct soft_dev;
struct soft_host;
struct soft_mkey;
struct soft_phys;

/* Layout of an indirect key over the memory of other keys. */
enum soft_xlt_kind {
	SOFT_XLT_LIST,    /* entries of any length, one after the other (KLM) */
	SOFT_XLT_FIXED,   /* entries of 2^log_entity bytes each (KSM) */
	SOFT_XLT_STRIDED, /* blocks of a repeating pattern */
	SOFT_XLT_PHYS,    /* no entries: physical addresses of a guest */
	SOFT_XLT_PAGES,   /* pages of a guest, each of which may be missing */
};

/* One entry of an indirect key. */
struct soft_xlt {
	uint64_t addr;
	uint64_t end; /* sum of the bytes of the entries up to this one; LIST and STRIDED only */
	uint32_t key;
	uint32_t stride;
};

/*
 * Extension of an indirect key. Without UMR the key never changes. With UMR an engine changes the
 * key in place, under soft_dev.umr_lock. It first closes the gate, so that new accesses are
 * rejected. The gate cannot be closed while an access uses the key: the engine then retries the
 * whole change later. So an access with the old layout has ended when the UMR or the invalidation
 * completes.
 */
struct soft_indirect {
	uint32_t gate; /* number of accesses that use the key now, ORed with SOFT_GATE_CLOSED, which
			  rejects new accesses; __atomic */
	bool umr, en_rinval;
	bool free;       /* the key is unusable until a UMR changes it */
	uint8_t mw_type; /* 1 or 2: type of a window; 0: the key is not a window */
	bool lw, rr, rw, atomic;
	enum soft_xlt_kind kind;
	uint32_t qpn; /* QP that may use the key; BB_MKEY_ANY_QP: any QP */
	uint64_t start, len;
	uint64_t round;  /* STRIDED: bytes of one repetition of the pattern */
	uint32_t repeat; /* STRIDED: repetitions of the pattern */
	uint32_t log_entity;
	struct soft_mkey *bound; /* MR to which a window is bound */
	struct soft_phys *phys;  /* PHYS and PAGES: the mapped parts of the guest's memory */
	/*
	 * FIXED and PAGES only: translations that UMRs of a guest's kernel load, as they are in the
	 * UMR. list_cap: their largest size in units of 16 bytes; 0 if the key is not such a key.
	 * list is NULL until the first UMR, and while the key is free.
	 */
	uint8_t *list;
	uint32_t list_cap;
	uint32_t n, cap; /* entries used; entries allocated (a strided pattern takes n + 1) */
	struct soft_xlt x[];
};
#define SOFT_GATE_CLOSED 0x80000000u
#define SOFT_LIST_UNIT   16u /* bytes of a unit of soft_indirect.list_cap */
/* Key that stands for missing memory in a list; no key has its index. */
#define SOFT_NULL_KEY 0xffu

/* Returns the byte of a list or pattern at which entry @i begins. */
static inline uint64_t
soft_xlt_begin(const struct soft_indirect *ind, uint32_t i)
{
	return i != 0 ? ind->x[i - 1].end : 0;
}

/*
 * Detour: the way to access the memory of a direct key (the key of an MR) whose memory needs
 * special access. The field len of such a key is 0, so that the check for plain keys fails at no
 * extra cost. soft_mem_refuse() then handles the key.
 */
enum soft_detour {
	SOFT_DETOUR_NONE,
	SOFT_DETOUR_PAGED,   /* ON_DEMAND: any page may be missing */
	SOFT_DETOUR_RELAXED, /* RELAXED_ORDERING: writes of peers become visible in any order */
};

/*
 * Pages of a guest, mapped as one range of this process (soft_host.h). at is NULL if nothing is
 * mapped.
 */
struct soft_window {
	const struct soft_host *host;
	void *at;
	uint32_t n;
	unsigned int log_sz;
};

/* Mapping of a file; start is NULL if nothing is mapped. */
struct soft_map {
	uint8_t *start;
	size_t len;
	uint8_t *base; /* process address of the first byte of the requested range */
};

/* Memory of the program that an MR names, as soft_pin.c has found it. */
struct soft_pin {
	bool asked;              /* soft_dev.memory() was called */
	bool found;              /* file is valid: peers may map the memory */
	struct soft_memory file; /* file that has the memory, or a part of it */
	uint8_t *program;        /* the program's address of the first byte */
	struct soft_map map;     /* the device's own mapping of all of the memory */
};

/*
 * Registered memory, or an indirect key. Immutable once published in soft_dev.mkeys, except that
 * UMR may change the low byte of the key, that the field "windows" changes, and that fork() changes
 * base and pin. An indirect key has len 0, so that the check for direct keys always fails.
 */
struct soft_mkey {
	uint32_t key; /* index << 8 | variant */
	uint32_t pdn;
	uint64_t start; /* address that requests use for the first byte (the iova) */
	uint64_t len;
	uint8_t *base; /* process address of the first byte; __atomic */
	bool lw, rr, rw, atomic;
	bool mw_bind;              /* memory windows may be bound to the key */
	uint32_t windows;          /* number of windows bound to the key; under soft_dev.umr_lock */
	struct soft_indirect *ind; /* NULL for a direct key */
	const struct mlx5_obj *obj; /* handle that CREATE_MKEY returned */
	enum soft_detour detour;
	uint64_t detour_len; /* length of the memory in bytes; valid only if detour is not NONE */
	struct soft_window window; /* pages of a guest; none if the memory is of this process */
	struct soft_dm *dm; /* device memory of a key that CREATE_MKEY made, otherwise NULL */
	bool umr_en; /* UMRs of the kernel may change the key; only for keys over a page list */
	struct soft_pin pin;
	bool filled; /* soft_fill() or soft_fill_cut() has mapped zeros; __atomic */
};

/* ---- soft_pin.c: call the functions with soft_dev.lock held */
/*
 * Maps the memory of a new MR a second time, if it is in a file, so that the device can access it
 * after the program has unmapped it. Call it before the key is published.
 */
void soft_mkey_pin(struct soft_dev *dev, struct soft_mkey *m);
/*
 * Gives the second mapping of @from to @to, a key over the same memory, if there is one. Returns
 * false otherwise. Engines may use @from until it is removed from the table.
 */
bool soft_mkey_pass_pin(struct soft_mkey *from, struct soft_mkey *to);
/* Removes the second mapping of a key that no engine uses. */
void soft_mkey_unpin(struct soft_mkey *m);

#endif
