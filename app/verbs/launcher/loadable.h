/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The program that bb_verbs starts. */
#ifndef LOADABLE_H
#define LOADABLE_H

#include <stdbool.h>

/*
 * Returns true if @name is a program that can be started, and that loads the libraries in
 * LD_PRELOAD. Otherwise prints the cause.
 */
bool program_may_start(const char *name);

#endif
