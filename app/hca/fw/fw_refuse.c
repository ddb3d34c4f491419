/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fw.h"
#include "hca_log.h"

#define SYNDROME_BASE 0xbb000000u

int
fw_refuse(struct fw_cmd *c, enum bb_prm_status status, const char *fmt, ...)
{
	uint32_t sum = 5381;
	const char *p;
	char text[160];
	va_list ap;

	for (p = fmt; *p != '\0'; p++)
		sum = sum * 33 + (uint8_t)*p;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sum = SYNDROME_BASE | (sum & 0xffffff);
	memset(c->out, 0, c->outlen);
	bb_prm_set(c->out, BB_PRM_CMD_STATUS, status);
	bb_prm_set(c->out, BB_PRM_CMD_SYNDROME, sum);
	HCA_LOG(WARNING, "command 0x%x, op_mod 0x%x rejected: status 0x%x, syndrome 0x%08x: %s",
		c->op, c->op_mod, status, sum, text);
	return status;
}

int
fw_need(struct fw_cmd *c, uint32_t in, uint32_t out)
{
	if (c->inlen < in)
		return fw_refuse(c, BB_PRM_STAT_BAD_INP_LEN, "input of %u bytes, %u are needed",
				 c->inlen, in);
	if (c->outlen < out)
		return fw_refuse(c, BB_PRM_STAT_BAD_OUTP_LEN, "output of %u bytes, %u are needed",
				 c->outlen, out);
	return BB_PRM_STAT_OK;
}
