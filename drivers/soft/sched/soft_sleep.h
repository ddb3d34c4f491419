/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The sleep of an idle device's thread: engine/soft_sleep.c. */
#ifndef SOFT_SLEEP_H
#define SOFT_SLEEP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * After this number of posts that the device's thread executed late, soft_posted() itself runs the
 * device.
 */
#define SOFT_LATE 4

struct soft_engine;

/*
 * Runs one turn if there is work. Returns false if there was none. If another thread has the
 * engine's lock, returns true, because that thread may run a turn; if the engine's thread is about
 * to sleep, wakes it.
 */
bool soft_engine_try(struct soft_engine *e);
/*
 * Waits for the engine's lock and runs turns while there is work, at most @n. All requests whose
 * doorbells were rung before the call have been in a turn on return.
 */
void soft_engine_catch_up(struct soft_engine *e, uint32_t n);
/* Returns true if the scan of a page's doorbell records goes on. */
bool soft_engine_scans(const struct soft_engine *e);
/* Runs one turn. Returns false if another thread has the engine's lock. */
bool soft_engine_look(struct soft_engine *e);
/*
 * Sleeps until there may be work. Returns false if the thread must nap instead, because work is
 * pending or this process cannot wait for doorbells. Called by the engine's thread.
 */
bool soft_engine_sleep(struct soft_engine *e);
/* Wakes the engine's thread if it sleeps. Any thread. */
void soft_engine_rouse(struct soft_engine *e);

#endif
