/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Ctrl-C and SIGTERM stop a program, which then still reports the results that it has so far. */
#ifndef STOP_H
#define STOP_H

#include <signal.h>

/* The signal that requested the stop, 0 if none did. */
extern volatile sig_atomic_t stop_signal;

/*
 * Installs the signal handlers. The first SIGINT or SIGTERM sets stop_signal; the second one kills
 * the program, as the default action does. SIGPIPE is raised if the program's output has no reader.
 * It sets stop_signal too, so that the program still completes its result files. @param flags of
 * sigaction(2): SA_RESTART, or 0 if system calls must return with EINTR
 *
 * SIGXFSZ is ignored: a file that exceeds the limit of file sizes (ulimit -f) then gives EFBIG.
 */
void stop_catch(int flags);

#endif
