/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The option defect. The option is accepted only in a build with -Ddefects=true. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft_ctl.h"

#ifdef SOFT_SEEDED
/*
 * Names in the order of enum soft_defect. For each name, a test must fail on a device that has the
 * defect.
 */
static const char *const defects[SOFT_DEFECTS] = {
	"none",        "flip_bit",     "misplace",     "lose_write", "skip_cqe",    "early_cqe",
	"wqe_counter", "owner_bit",    "no_bounds",    "no_pd",      "no_access",   "atomic_split",
	"atomic_old",  "no_fence",     "no_doorbell",  "rnr_lost",   "imm_swap",    "recv_len",
	"read_len",    "sge_lost",     "tail_lost",    "inline_pad", "empty_write", "tear",
	"read_pd",     "qp_right",     "no_solicited", "retry_free", "quiet_error", "flush_lost",
	"overfill",    "replay_twice", "event_lost",   "psn_wrap",
};

/*
 * Defects of the code that executes requests without packets. They have no effect on a device that
 * sends packets.
 */
static const uint64_t loop_defects =
	UINT64_C(1) << SOFT_DEFECT_EARLY_CQE | UINT64_C(1) << SOFT_DEFECT_NO_FENCE |
	UINT64_C(1) << SOFT_DEFECT_RNR_LOST | UINT64_C(1) << SOFT_DEFECT_SGE_LOST |
	UINT64_C(1) << SOFT_DEFECT_TAIL_LOST | UINT64_C(1) << SOFT_DEFECT_INLINE_PAD |
	UINT64_C(1) << SOFT_DEFECT_EMPTY_WRITE | UINT64_C(1) << SOFT_DEFECT_TEAR |
	UINT64_C(1) << SOFT_DEFECT_QP_RIGHT | UINT64_C(1) << SOFT_DEFECT_RETRY_FREE |
	UINT64_C(1) << SOFT_DEFECT_OVERFILL | UINT64_C(1) << SOFT_DEFECT_REPLAY_TWICE |
	UINT64_C(1) << SOFT_DEFECT_PSN_WRAP;

static_assert(SOFT_DEFECTS <= 64, "a bit for each");

int
soft_defect_opt(const char *value, struct soft_opts *opts)
{
	unsigned long number;
	unsigned int i;
	char *end;

	if (value == NULL)
		return -EINVAL;
	for (i = 0; i < SOFT_DEFECTS; i++) {
		if (strcmp(value, defects[i]) == 0) {
			opts->defect = i;
			return 0;
		}
	}
	number = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || *end != '\0' || number >= SOFT_DEFECTS)
		return -EINVAL;
	opts->defect = (uint32_t)number;
	return 0;
}

const char *
soft_defect_of_loop(const struct soft_opts *opts)
{
	return (loop_defects >> opts->defect & 1) != 0 ? defects[opts->defect] : NULL;
}
#else
int
soft_defect_opt(const char *value, struct soft_opts *opts)
{
	(void)opts;
	if (value == NULL)
		return -EINVAL;
	return strcmp(value, "none") == 0 || strcmp(value, "0") == 0 ? 0 : -ENOTSUP;
}

const char *
soft_defect_of_loop(const struct soft_opts *opts)
{
	(void)opts;
	return NULL;
}
#endif
