/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Ctrl-C and SIGTERM ask a program for its end; what has been done by then is still reported. */
#ifndef STOP_H
#define STOP_H

#include <signal.h>

/* The signal that asked for the end, 0: none did. */
extern volatile sig_atomic_t stop_signal;

/*
 * The first SIGINT or SIGTERM from here on sets stop_signal; the second one ends the program as by
 * default. SIGPIPE, when nobody reads what is printed, sets it, too: files are still written whole.
 * @param flags of sigaction(2): SA_RESTART, or 0 for calls that are to end with EINTR
 */
void stop_catch(int flags);

#endif
