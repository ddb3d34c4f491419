/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Checks that the kernel and libmlx5 make before memory is registered, for umems, MRs, device
 * memory and dma-bufs. Also the page size that the kernel chooses. The comment at each rule names
 * its source.
 */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include <rte_bitops.h>
#include <rte_common.h>

#include "soft_ctl.h"
#include "soft_kernel.h"

/* Applies the rule of the kernel's ib_check_mr_access(). */
static int
writes_need_local_write(uint32_t access)
{
	if ((access & (MLX5_ACCESS_REMOTE_WRITE | MLX5_ACCESS_REMOTE_ATOMIC)) != 0 &&
	    (access & MLX5_ACCESS_LOCAL_WRITE) == 0) {
		SOFT_LOG(ERR,
			 "invalid access 0x%x: REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE",
			 access);
		return -EINVAL;
	}
	return 0;
}

int
soft_kernel_umem_access(uint32_t access)
{
	/* Flags that the kernel's devx_umem_get() accepts. */
	const uint32_t known =
		MLX5_ACCESS_LOCAL_WRITE | MLX5_ACCESS_REMOTE_WRITE | MLX5_ACCESS_REMOTE_READ;

	if ((access & ~known) != 0) {
		SOFT_LOG(
			ERR,
			"invalid access 0x%x of a umem: a kernel may set LOCAL_WRITE, REMOTE_WRITE and REMOTE_READ",
			access);
		return -EINVAL;
	}
	return writes_need_local_write(access);
}

int
soft_kernel_mr_access(uint32_t access, bool odp)
{
	/*
	 * Flags of IB_ACCESS_SUPPORTED: bits 0 to 7, and the optional bits 20 to 29, which the
	 * kernel never rejects.
	 */
	const uint32_t known = 0xffu | 0x3ffu << 20;

	if ((access & ~known) != 0) {
		SOFT_LOG(ERR, "invalid access 0x%x of an MR: bits outside 0x%x are unknown", access,
			 known);
		return -EINVAL;
	}
	if (writes_need_local_write(access) != 0)
		return -EINVAL;
	if ((access & MLX5_ACCESS_ON_DEMAND) != 0 && !odp) {
		SOFT_LOG(ERR,
			 "invalid access 0x%x of an MR: ON_DEMAND is set, but the device has no "
			 "on-demand paging",
			 access);
		return -EOPNOTSUPP;
	}
	return 0;
}

bool
soft_kernel_writable(uint32_t access)
{
	return (access & (MLX5_ACCESS_LOCAL_WRITE | MLX5_ACCESS_REMOTE_WRITE |
			  MLX5_ACCESS_REMOTE_ATOMIC | MLX5_ACCESS_MW_BIND)) != 0;
}

int
soft_kernel_mr_iova(uint64_t addr, uint64_t iova)
{
	/* The kernel's ib_uverbs_reg_mr() makes this check, too. */
	if (((addr ^ iova) & 4095) == 0)
		return 0;
	SOFT_LOG(ERR,
		 "cannot register an MR at 0x%" PRIx64 " with iova 0x%" PRIx64
		 ": address and iova must have the same offset in a page of 4096 bytes",
		 addr, iova);
	return -EINVAL;
}

int
soft_kernel_mr_rereg(uint32_t flags, const void *addr, uint64_t len)
{
	const uint32_t known = MLX5_REREG_TRANSLATION | MLX5_REREG_PD | MLX5_REREG_ACCESS;

	/* The kernel's ib_uverbs_rereg_mr() makes this check, too. */
	if (flags == 0 || (flags & ~known) != 0 ||
	    ((flags & MLX5_REREG_TRANSLATION) != 0 && (addr == NULL || len == 0))) {
		SOFT_LOG(ERR,
			 "cannot re-register an MR with flags 0x%x (1 to 0x%x) and %" PRIu64
			 " bytes at %p (memory is required with TRANSLATION)",
			 flags, known, len, addr);
		return -EINVAL;
	}
	return 0;
}

bool
soft_kernel_rereg_in_place(uint32_t from, uint32_t to)
{
	const uint32_t can = MLX5_ACCESS_LOCAL_WRITE | MLX5_ACCESS_REMOTE_WRITE |
			     MLX5_ACCESS_REMOTE_READ | MLX5_ACCESS_REMOTE_ATOMIC |
			     MLX5_ACCESS_RELAXED_ORDERING;

	return ((from ^ to) & ~can) == 0;
}

uint64_t
soft_kernel_host_page(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t
soft_kernel_umem_pgsz(uint64_t host, uint64_t addr, uint64_t len, uint64_t real_page,
		      uint64_t pgsz_bitmap)
{
	uint64_t differ = addr ^ (addr + len - 1);
	uint64_t top, page;

	/*
	 * devx_umem_find_best_pgsize(): the page size is at most the length rounded up to a power
	 * of two.
	 */
	top = len <= host ? host : rte_align64pow2(len);
	if (top != 0)
		pgsz_bitmap &= top | (top - 1);
	/*
	 * ib_umem_find_best_pgsz(): the page size is at least the host's. If the umem spans several
	 * memory pages, the page size is at most their size. If one memory page holds the whole
	 * umem, only the rounded length limits the page size.
	 */
	if (differ >= real_page)
		pgsz_bitmap &= real_page | (real_page - 1);
	pgsz_bitmap &= ~(host - 1);
	if (pgsz_bitmap == 0)
		return 0;
	/*
	 * devx_umem_find_best_pgsize(): if the page size exceeds the host's, the umem must start on
	 * a page boundary, and its length must be a multiple of the page size.
	 */
	page = UINT64_C(1) << (63 - __builtin_clzll(pgsz_bitmap));
	while (page > host && ((addr | len) & (page - 1)) != 0)
		page >>= 1;
	return page;
}

int
soft_kernel_dm(const char *name, uint64_t len, uint32_t log_align, uint64_t max,
	       uint32_t max_log_align)
{
	const char *why = NULL;

	/* The kernel's handle_alloc_dm_memic() makes this check, too. */
	if (max == 0) {
		SOFT_LOG(ERR, "%s: cannot allocate device memory: the device has none", name);
		return -EOPNOTSUPP;
	}
	/*
	 * libmlx5's alloc_dm_memic() and the kernel's mlx5_cmd_alloc_memic() make these checks,
	 * too.
	 */
	if (len > max)
		why = "the length exceeds max_memic_size";
	else if (len == 0)
		why = "the length is 0";
	else if (log_align > max_log_align)
		why = "the alignment exceeds log_max_memic_addr_alignment";
	if (why == NULL)
		return 0;
	SOFT_LOG(ERR, "%s: cannot allocate %" PRIu64 " bytes of device memory aligned to 2^%u: %s",
		 name, len, log_align, why);
	return -EINVAL;
}

int
soft_kernel_dm_mr(const char *name, uint32_t access, uint64_t off, uint64_t len, uint64_t dm_len)
{
	/* Flags of MLX5_IB_DM_MEMIC_ALLOWED_ACCESS, which contains no bit of IB_ACCESS_OPTIONAL. */
	const uint32_t known = MLX5_ACCESS_LOCAL_WRITE | MLX5_ACCESS_REMOTE_WRITE |
			       MLX5_ACCESS_REMOTE_READ | MLX5_ACCESS_REMOTE_ATOMIC |
			       MLX5_ACCESS_ZERO_BASED;
	const char *why = NULL;

	/*
	 * UVERBS_METHOD_DM_MR_REG makes this check, too, and accepts an empty range. Firmware
	 * accepts an empty range, too: pyverbs' test_create_dm_mr() registers one.
	 */
	if ((access & MLX5_ACCESS_ZERO_BASED) == 0)
		why = "ZERO_BASED must be set";
	else if ((access & ~known) != 0)
		why = "an MR of device memory cannot have one of these rights";
	else if (len > dm_len || off > dm_len - len)
		why = "the range ends after the device memory";
	if (why == NULL)
		return writes_need_local_write(access);
	SOFT_LOG(ERR,
		 "%s: cannot register %" PRIu64 " bytes at offset %" PRIu64 " of %" PRIu64
		 " bytes of device memory with access 0x%x: %s",
		 name, len, off, dm_len, access, why);
	return -EINVAL;
}

int
soft_kernel_dmabuf_mr(const char *name, uint32_t access, uint64_t offset, uint64_t iova)
{
	/* Flags that the kernel's UVERBS_METHOD_REG_DMABUF_MR accepts. */
	const uint32_t known = MLX5_ACCESS_LOCAL_WRITE | MLX5_ACCESS_REMOTE_WRITE |
			       MLX5_ACCESS_REMOTE_READ | MLX5_ACCESS_REMOTE_ATOMIC |
			       MLX5_ACCESS_RELAXED_ORDERING;

	if (((offset ^ iova) & (SOFT_KERNEL_PAGE - 1)) != 0) {
		SOFT_LOG(ERR,
			 "%s: cannot register a dma-buf as MR: offset 0x%" PRIx64
			 " and iova 0x%" PRIx64 " must have the same offset in a page of %u bytes",
			 name, offset, iova, (unsigned int)SOFT_KERNEL_PAGE);
		return -EINVAL;
	}
	if ((access & ~known) != 0) {
		SOFT_LOG(ERR,
			 "%s: cannot register a dma-buf as MR: access bits 0x%x are not allowed "
			 "(0x%x)",
			 name, access & ~known, known);
		return -EINVAL;
	}
	return writes_need_local_write(access);
}

int
soft_kernel_dm_copy(const char *name, uint64_t len, uint64_t off, uint64_t copy)
{
	/* libmlx5's mlx5_access_dm() makes this check, too. */
	if (copy > len || off > len - copy) {
		SOFT_LOG(ERR,
			 "%s: cannot copy %" PRIu64 " bytes at offset %" PRIu64
			 ": the device memory has %" PRIu64 " bytes",
			 name, copy, off, len);
		return -EFAULT;
	}
	if (((copy | off) & 3) != 0) {
		SOFT_LOG(ERR,
			 "%s: cannot copy %" PRIu64 " bytes at offset %" PRIu64
			 " of device memory: length and offset must be multiples of 4",
			 name, copy, off);
		return -EINVAL;
	}
	return 0;
}
