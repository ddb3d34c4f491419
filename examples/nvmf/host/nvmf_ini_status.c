/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <string.h>

#include "nvmf_ini.h"

int
nvmf_ini_status_errno(uint32_t status)
{
	switch (status & SC_CODE) {
	case SC_OK:
		return 0;
	case SC_LBA_RANGE:
		return -ERANGE;
	case SC_CAPACITY:
		return -ENOSPC;
	case SC_WRITE_PROTECTED:
		return -EROFS;
	case SC_COMPARE_FAILED:
		return -EILSEQ;
	case SC_INVALID_OPCODE:
		return -EOPNOTSUPP;
	case SC_INVALID_NAMESPACE:
		return -ENODEV;
	case SC_INVALID_FIELD:
	case SC_SGL_LENGTH:
	case SC_SGL_TYPE:
	case SC_SGL_OFFSET:
		return -EINVAL;
	default:
		return -EIO;
	}
}

const char *
nvmf_ini_status_text(uint32_t status)
{
	switch (status & SC_CODE) {
	case SC_CONNECT_BUSY:
		return "no controller is free, or commands of this host's last connection still run";
	case SC_CONNECT_PARAM:
		return "no such subsystem, or an invalid parameter";
	case SC_CONNECT_HOST:
		return "this host is not allowed";
	default:
		return strerror(-nvmf_ini_status_errno(status));
	}
}
