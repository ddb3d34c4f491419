/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Capabilities that rows need, or whose absence they need to see a refusal. */
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../fakes/process.h"
#include "conform.h"

static bool
both(const struct fx *fx, bool a, bool b)
{
	return a && (b || !fx->two);
}

/*
 * Two long buffers and the 5 GiB of the largest region: address space, and the right to pin all
 * of it on a real device.
 */
static bool
long_buffers(const struct fx *fx)
{
	const size_t len = 2 * LONG_MESSAGE + (UINT64_C(1) << 30);
	struct rlimit limit;
	void *p;

#if defined(__SANITIZE_THREAD__)
	/* ThreadSanitizer adds four bytes per touched byte. */
	return false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
	return false;
#endif
#endif
	if (!fx->a.attr.software &&
	    (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur < len ||
	     (size_t)sysconf(_SC_AVPHYS_PAGES) < len / (size_t)sysconf(_SC_PAGESIZE)))
		return false;
	p = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	munmap(p, len);
	return true;
}

/* Needs for the absence of the need whose bit is one lower. */
static const uint64_t absent = NEED_NO_ATOMICS | NEED_NO_COUNTERS | NEED_NO_DM | NEED_NO_DMABUF |
			       NEED_NO_SRQ | NEED_NO_ODP | NEED_NO_RELAXED | NEED_NO_CQ_RESIZE |
			       NEED_NO_CQ_MODERATION | NEED_NO_CLOCK | NEED_NO_COMPRESSION |
			       NEED_NO_MW | NEED_NO_MKEY | NEED_NO_MKEY_LAYOUT |
			       NEED_NO_MKEY_INTERLEAVED | NEED_NO_MW_ATOMICS | NEED_NO_MCAST;

/* Returns true if a device has what a need of the device asks for. */
static bool
has(const struct bb_dev_attr *a, enum need need)
{
	switch (need) {
	case NEED_ATOMICS:
		return a->atomics;
	case NEED_COUNTERS:
		return a->counters;
	case NEED_DM:
		return a->max_dm_size != 0;
	case NEED_DMABUF:
		return a->dmabuf;
	case NEED_SRQ:
		return a->max_srq != 0;
	case NEED_ODP:
		return a->odp;
	case NEED_RELAXED:
		return a->relaxed_ordering;
	case NEED_CQ_RESIZE:
		return a->cq_resize;
	case NEED_CQ_MODERATION:
		return a->cq_moderation;
	case NEED_CLOCK:
		return a->clock_hz != 0;
	case NEED_COMPRESSION:
		return a->cqe_compression;
	case NEED_ODP_IMPLICIT:
		return a->odp_implicit;
	case NEED_MW:
		return a->memory_windows;
	case NEED_MW_ATOMICS:
		return a->memory_window_atomics;
	case NEED_MKEY:
		return a->max_mkey_pieces != 0;
	case NEED_MKEY_LAYOUT:
		return a->mkey_layout;
	case NEED_MKEY_INTERLEAVED:
		return a->mkey_interleaved;
	case NEED_REREG:
		return a->mr_rereg;
	case NEED_UMEM:
		return a->max_umem != 0;
	case NEED_MASKED_4:
		return (a->masked_atomics & 4) != 0;
	case NEED_MASKED_8:
		return (a->masked_atomics & 8) != 0;
	case NEED_NO_MASKED:
		return a->masked_atomics == 0;
	case NEED_LONG:
		return a->max_msg_size >= LONG_MESSAGE;
	case NEED_IMM:
	case NEED_UNRELIABLE:
	case NEED_RNR:
		return !a->iwarp;
	case NEED_READ_LIST:
		return a->max_read_sge > 1;
	case NEED_MCAST:
	case NEED_MCAST_COPIES:
		return a->max_mcast_grp != 0;
	case NEED_SOFTWARE:
		return a->software;
	default:
		return false;
	}
}

static bool
met(const struct fx *fx, enum need need)
{
	const struct bb_dev_attr *a = &fx->a.attr, *b = &fx->b.attr;

	switch (need) {
	case NEED_TWO_DEVICES:
		return fx->two;
	case NEED_INFINIBAND:
		return fx->a.port.link_layer == BB_LINK_INFINIBAND;
	case NEED_ETHERNET:
		return fx->a.port.link_layer == BB_LINK_ETHERNET;
	case NEED_PSNS:
		/* The only indication is in the spec. */
		return strstr(fx->spec, "shm=") == NULL || strstr(fx->spec, "shm_packets") != NULL;
	case NEED_PASSIVE:
		return !b->target_progress;
	case NEED_UDMABUF:
		return access("/dev/udmabuf", R_OK | W_OK) == 0;
	case NEED_MEMORY:
		return long_buffers(fx);
	case NEED_PROCESS_VM:
		/* Of a software device, unless an option disables what it needs the call for. */
		return !a->software || strstr(fx->spec, "no_odp") != NULL || kernel_copies_memory();
	case NEED_QP_CONNECT:
		return fx->link == NULL;
	case NEED_GLOBAL_ATOMICS:
		/* The target's device executes them. */
		return b->atomics_global;
	case NEED_MCAST_COPIES:
		/*
		 * The kernel's rxe receives only groups that its host has joined, too. The only
		 * indication is in the spec.
		 */
		if (strstr(fx->spec, "rxe") != NULL)
			return false;
		break;
	default:
		break;
	}
	if ((need & absent) != 0)
		return both(fx, !has(a, need >> 1), !has(b, need >> 1));
	return both(fx, has(a, need), has(b, need));
}

static const struct {
	enum need need;
	const char *name; /* as in the list of permitted skips */
	const char *text;
} needs_text[] = {
	{NEED_ATOMICS, "atomics", "bb_dev_attr.atomics is false"},
	{NEED_NO_ATOMICS, "no-atomics", "bb_dev_attr.atomics is true"},
	{NEED_COUNTERS, "counters", "bb_dev_attr.counters is false"},
	{NEED_NO_COUNTERS, "no-counters", "bb_dev_attr.counters is true"},
	{NEED_TWO_DEVICES, "two-devices", "target and requester are one device"},
	{NEED_INFINIBAND, "infiniband", "bb_port_attr.link_layer is Ethernet"},
	{NEED_ETHERNET, "ethernet", "bb_port_attr.link_layer is InfiniBand"},
	{NEED_DM, "dm", "bb_dev_attr.max_dm_size is 0"},
	{NEED_NO_DM, "no-dm", "bb_dev_attr.max_dm_size is not 0"},
	{NEED_DMABUF, "dma-buf", "bb_dev_attr.dmabuf is false"},
	{NEED_NO_DMABUF, "no-dma-buf", "bb_dev_attr.dmabuf is true"},
	{NEED_SRQ, "srq", "bb_dev_attr.max_srq is 0"},
	{NEED_NO_SRQ, "no-srq", "bb_dev_attr.max_srq is not 0"},
	/* Before what a software device lacks without the call. */
	{NEED_PROCESS_VM, "machine-process-vm", "the kernel allows no process_vm_readv(2)"},
	{NEED_ODP, "on-demand", "bb_dev_attr.odp is false"},
	{NEED_NO_ODP, "no-on-demand", "bb_dev_attr.odp is true"},
	{NEED_RELAXED, "relaxed-ordering", "bb_dev_attr.relaxed_ordering is false"},
	{NEED_NO_RELAXED, "no-relaxed-ordering", "bb_dev_attr.relaxed_ordering is true"},
	{NEED_CQ_RESIZE, "cq-resize", "bb_dev_attr.cq_resize is false"},
	{NEED_NO_CQ_RESIZE, "no-cq-resize", "bb_dev_attr.cq_resize is true"},
	{NEED_CQ_MODERATION, "cq-moderation", "bb_dev_attr.cq_moderation is false"},
	{NEED_NO_CQ_MODERATION, "no-cq-moderation", "bb_dev_attr.cq_moderation is true"},
	{NEED_CLOCK, "clock", "bb_dev_attr.clock_hz is 0"},
	{NEED_NO_CLOCK, "no-clock", "bb_dev_attr.clock_hz is not 0"},
	{NEED_COMPRESSION, "compression", "bb_dev_attr.cqe_compression is false"},
	{NEED_NO_COMPRESSION, "no-compression", "bb_dev_attr.cqe_compression is true"},
	{NEED_ODP_IMPLICIT, "odp-implicit", "bb_dev_attr.odp_implicit is false"},
	{NEED_MW, "windows", "bb_dev_attr.memory_windows is false"},
	{NEED_NO_MW, "no-windows", "bb_dev_attr.memory_windows is true"},
	{NEED_MW_ATOMICS, "window-atomics", "bb_dev_attr.memory_window_atomics is false"},
	{NEED_NO_MW_ATOMICS, "no-window-atomics", "bb_dev_attr.memory_window_atomics is true"},
	{NEED_MKEY, "indirect-keys", "bb_dev_attr.max_mkey_pieces is 0"},
	{NEED_NO_MKEY, "no-indirect-keys", "bb_dev_attr.max_mkey_pieces is not 0"},
	{NEED_MKEY_LAYOUT, "key-layout", "bb_dev_attr.mkey_layout is false"},
	{NEED_NO_MKEY_LAYOUT, "no-key-layout", "bb_dev_attr.mkey_layout is true"},
	{NEED_MKEY_INTERLEAVED, "key-patterns", "bb_dev_attr.mkey_interleaved is false"},
	{NEED_NO_MKEY_INTERLEAVED, "no-key-patterns", "bb_dev_attr.mkey_interleaved is true"},
	{NEED_PSNS, "psns", "requests are done in the peer's memory, without packets"},
	{NEED_PASSIVE, "target-sleeps", "bb_dev_attr.target_progress is true"},
	{NEED_REREG, "re-registration", "bb_dev_attr.mr_rereg is false"},
	{NEED_UMEM, "umems", "bb_dev_attr.max_umem is 0"},
	{NEED_MASKED_4, "masked-atomics", "bb_dev_attr.masked_atomics has not 4"},
	{NEED_MASKED_8, "masked-atomics", "bb_dev_attr.masked_atomics has not 8"},
	{NEED_NO_MASKED, "no-masked-atomics", "bb_dev_attr.masked_atomics is not 0"},
	{NEED_LONG, "2-gib-messages", "bb_dev_attr.max_msg_size is under 2 GiB"},
	{NEED_GLOBAL_ATOMICS, "global-atomics", "bb_dev_attr.atomics_global is false"},
	{NEED_MCAST, "multicast", "bb_dev_attr.max_mcast_grp is 0"},
	{NEED_NO_MCAST, "no-multicast", "bb_dev_attr.max_mcast_grp is not 0"},
	{NEED_MCAST_COPIES, "multicast-copies",
	 "bb_dev_attr.max_mcast_grp is 0, or the host must join the group, too"},
	{NEED_SOFTWARE, "software", "bb_dev_attr.software is false"},
	{NEED_IMM, "immediate-data", "bb_dev_attr.iwarp is true: no immediate data"},
	{NEED_UNRELIABLE, "unreliable", "bb_dev_attr.iwarp is true: no UC, no UD"},
	{NEED_RNR, "rnr", "bb_dev_attr.iwarp is true: no RNR"},
	{NEED_READ_LIST, "read-list", "bb_dev_attr.max_read_sge is 1"},
	{NEED_QP_CONNECT, "qp-connect", "--address: pairs are connected by librdmacm"},
	/* Last: the machine matters only if the device has everything else. */
	{NEED_UDMABUF, "machine-udmabuf", "/dev/udmabuf cannot be opened"},
	{NEED_MEMORY, "machine-memory",
	 "5 GiB cannot be mapped, and locked and pinned for a device"},
};

const char *
need_of_machine(uint64_t needs)
{
	for (unsigned int i = 0; i < RTE_DIM(needs_text); i++)
		if ((needs & needs_text[i].need & NEEDS_OF_MACHINE) != 0)
			return needs_text[i].text;
	return NULL;
}

const char *
need_missing(const struct fx *fx, uint64_t needs, const char **name)
{
	for (unsigned int i = 0; i < RTE_DIM(needs_text); i++) {
		if ((needs & needs_text[i].need) == 0 || met(fx, needs_text[i].need))
			continue;
		*name = needs_text[i].name;
		return needs_text[i].text;
	}
	return NULL;
}
