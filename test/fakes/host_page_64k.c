/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Replaces sysconf() by -Wl,--wrap=sysconf: a host with pages of 64 KiB, as some Arm hosts have.
 */
#include <unistd.h>

long __real_sysconf(int name);
long __wrap_sysconf(int name);

long
__wrap_sysconf(int name)
{
	return name == _SC_PAGESIZE ? 65536 : __real_sysconf(name);
}
