/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Ctrl-C and SIGTERM stop a program; results up to then are still reported. */
#ifndef STOP_H
#define STOP_H

#include <signal.h>

/* The signal that requested the stop, 0 if none did. */
extern volatile sig_atomic_t stop_signal;

/*
 * From now on the first SIGINT or SIGTERM sets stop_signal; the second one ends the program by
 * default. SIGPIPE, raised if the output has no reader, sets it too: files are still completed.
 * @param flags of sigaction(2): SA_RESTART, or 0 if calls must return with EINTR
 */
void stop_catch(int flags);

#endif
