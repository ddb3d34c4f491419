/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Attributes with their defaults: struct bb_cq_attr attr = DEFAULTS(cq_attr); */
#ifndef BB_DEFAULTS_H
#define BB_DEFAULTS_H

#define DEFAULTS(name_)                                                                            \
	({                                                                                         \
		struct bb_##name_ defaults_;                                                       \
		bb_##name_##_init(&defaults_);                                                     \
		defaults_;                                                                         \
	})

#endif
