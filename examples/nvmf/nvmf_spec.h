/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Opcodes, status codes and positions of fields of NVM Express 1.3 and NVMe over Fabrics 1.1.
 *
 * A position AT_* is a byte offset; all numbers are little endian. Sources: Linux
 * include/linux/nvme.h and include/linux/nvme-rdma.h, SPDK include/spdk/nvme_spec.h and
 * include/spdk/nvmf_spec.h.
 */
#ifndef NVMF_SPEC_H
#define NVMF_SPEC_H

#include <stdint.h>

#define NVMF_SQE          64u  /* bytes of a command */
#define NVMF_CQE          16u  /* bytes of a completion */
#define NVMF_NQN          256u /* bytes of the field of a qualified name, with its NUL */
#define NVMF_NQN_MAX      223u /* characters of a qualified name */
#define NVMF_PAGE         4096u
#define NVMF_NSID_ALL     0xffffffffu
#define NVMF_CNTLID_ANY   0xffffu
#define NVMF_DISCOVERY    "nqn.2014-08.org.nvmexpress.discovery"
#define NVMF_VERSION      0x00010300u
#define NVMF_ADMIN_DEPTH  32u /* smallest admin queue that a discovery entry may name */
#define NVMF_CONNECT_DATA 1024u

/* Byte offsets in every command, and values of its flags. */
#define AT_OPCODE  0
#define AT_FLAGS   1
#define AT_CID     2
#define AT_NSID    4
#define AT_FCTYPE  4 /* type of a Fabrics command, which has no NSID */
#define AT_SGL     24
#define AT_CDW10   40
#define AT_CDW11   44
#define AT_CDW12   48
#define FLAG_FUSED 0x03
#define FLAG_PSDT  0xc0
#define PSDT_SGL   0x40 /* data is described by an SGL: the only format over Fabrics */

/*
 * Byte offsets in an SGL descriptor. AT_SGL_TYPE: type in the high half of the byte, subtype in the
 * low half.
 */
#define AT_SGL_ADDR    0
#define AT_SGL_LEN     8 /* the length has 4 bytes, or 3 if keyed */
#define AT_SGL_KEY     11
#define AT_SGL_TYPE    15
#define SGL_IN_CAPSULE 0x01 /* data block in the capsule; the address is an offset in its data */
#define SGL_KEYED      0x40
#define SGL_KEYED_INV  0x4f /* keyed; the response must invalidate the key */

/* Byte offsets in a completion. */
#define AT_CQE_RESULT 0
#define AT_CQE_SQHD   8
#define AT_CQE_SQID   10
#define AT_CQE_CID    12
#define AT_CQE_STATUS 14 /* the status code is in bits 15:1 */

enum nvmf_fctype {
	FC_PROPERTY_SET = 0x00,
	FC_CONNECT = 0x01,
	FC_PROPERTY_GET = 0x04,
};

enum nvmf_opcode {
	ADM_GET_LOG_PAGE = 0x02,
	ADM_IDENTIFY = 0x06,
	ADM_ABORT = 0x08,
	ADM_SET_FEATURES = 0x09,
	ADM_GET_FEATURES = 0x0a,
	ADM_ASYNC_EVENT = 0x0c,
	ADM_KEEP_ALIVE = 0x18,

	NVM_FLUSH = 0x00,
	NVM_WRITE = 0x01,
	NVM_READ = 0x02,
	NVM_COMPARE = 0x05,
	NVM_WRITE_ZEROES = 0x08,
	NVM_DSM = 0x09,

	OPC_FABRICS = 0x7f,
};

/* Status code type in bits 10:8, status code in bits 7:0; bit 14: the host must not retry. */
enum nvmf_status {
	SC_OK = 0x000,
	SC_INVALID_OPCODE = 0x001,
	SC_INVALID_FIELD = 0x002,
	SC_CID_CONFLICT = 0x003,
	SC_DATA_TRANSFER = 0x004,
	SC_INTERNAL = 0x006,
	SC_ABORT_REQUESTED = 0x007,
	SC_INVALID_NAMESPACE = 0x00b,
	SC_COMMAND_SEQUENCE = 0x00c,
	SC_SGL_LENGTH = 0x00f,
	SC_SGL_TYPE = 0x011,
	SC_SGL_OFFSET = 0x016,
	SC_KATO_INVALID = 0x01a,
	SC_WRITE_PROTECTED = 0x020,
	SC_LBA_RANGE = 0x080,
	SC_CAPACITY = 0x081,
	SC_ASYNC_LIMIT = 0x105,
	SC_INVALID_LOG_PAGE = 0x109,
	SC_NOT_SAVEABLE = 0x10d,
	SC_NOT_CHANGEABLE = 0x10e,
	SC_CONNECT_FORMAT = 0x180,
	SC_CONNECT_BUSY = 0x181,
	SC_CONNECT_PARAM = 0x182,
	SC_CONNECT_HOST = 0x184,
	SC_WRITE_FAULT = 0x280,
	SC_READ_ERROR = 0x281,
	SC_COMPARE_FAILED = 0x285,
	SC_CODE = 0x7ff, /* mask of type and code */
	SC_DNR = 0x4000,
};

/* Private data of connection requests, replies and rejections: Linux include/linux/nvme-rdma.h. */
#define NVMF_CM_REQ 32u
#define NVMF_CM_REP 32u
#define NVMF_CM_REJ 4u

enum nvmf_cm_status {
	NVMF_CM_LENGTH = 1,
	NVMF_CM_FORMAT = 2,
	NVMF_CM_QID = 3,
	NVMF_CM_HSQSIZE = 4,
	NVMF_CM_HRQSIZE = 5,
	NVMF_CM_RESOURCES = 6,
	NVMF_CM_IRD = 7,
};

/* Byte offsets in the command Connect (AT_CON_*) and in its data (AT_COND_*). */
#define AT_CON_RECFMT   40
#define AT_CON_QID      42
#define AT_CON_SQSIZE   44 /* 0's based */
#define AT_CON_CATTR    46
#define AT_CON_KATO     48   /* milliseconds */
#define CATTR_NO_FLOW   0x04 /* the host disables flow control of the submission queue */
#define AT_COND_HOSTID  0
#define AT_COND_CNTLID  16
#define AT_COND_SUBNQN  256
#define AT_COND_HOSTNQN 512
#define CONNECT_IN_DATA 0x10000u /* the invalid parameter is in the data, not in the command */

/* Property Get and Property Set: byte offsets in the command (AT_PROP_*), and properties. */
#define AT_PROP_ATTRIB 40 /* bits 2:0 are the size: 0 for 4 bytes, 1 for 8 bytes */
#define AT_PROP_OFFSET 44
#define AT_PROP_VALUE  48
#define PROP_CAP       0x00
#define PROP_VS        0x08
#define PROP_CC        0x14
#define PROP_CSTS      0x1c
#define CC_EN          0x1u
#define CC_FORMAT      0x00003ff0u /* CSS, MPS, AMS: only 0 of each is supported */
#define CC_SHN         0x0000c000u
#define CC_ENTRIES     0x00ff0000u /* IOSQES, IOCQES */
#define CC_ENTRIES_NVM 0x00460000u /* entries of 64 and 16 bytes, as powers of two */
#define CSTS_RDY       0x1u
#define CSTS_CFS       0x2u
#define CSTS_SHST_BUSY 0x4u /* the shutdown is in progress */
#define CSTS_SHST_DONE 0x8u

/* Identify: values of CNS, which is in bits 7:0 of CDW10. */
#define CNS_NAMESPACE   0x00
#define CNS_CONTROLLER  0x01
#define CNS_ACTIVE_LIST 0x02
#define CNS_DESCRIPTORS 0x03

/*
 * Set Features and Get Features: numbers of features, in bits 7:0 of CDW10. The value is in CDW11.
 */
#define FEAT_ARBITRATION 0x01
#define FEAT_POWER       0x02
#define FEAT_TEMPERATURE 0x04
#define FEAT_ERRORS      0x05
#define FEAT_CACHE       0x06
#define FEAT_QUEUES      0x07
#define FEAT_ATOMICITY   0x0a
#define FEAT_ASYNC       0x0b
#define FEAT_KATO        0x0f
#define FEAT_HOST_ID     0x81
#define FEAT_SAVE        0x80000000u /* bit SV of Set Features */
#define FEAT_SELECT      0x700u      /* field SEL of Get Features */

/* Get Log Page: numbers of pages, in bits 7:0 of CDW10. */
#define LOG_ERROR      0x01
#define LOG_SMART      0x02
#define LOG_FIRMWARE   0x03
#define LOG_CHANGED_NS 0x04
#define LOG_EFFECTS    0x05
#define LOG_DISCOVERY  0x70
#define LOG_RETAIN     0x8000u /* bit RAE: keeps the event of the page masked */

/*
 * Asynchronous events: ASYNC_* is the bit of CDW11 of FEAT_ASYNC that enables an event, EVENT_* the
 * result in the completion.
 */
#define ASYNC_NS_ATTR   0x00000100u
#define ASYNC_DISCOVERY 0x80000000u
#define EVENT_NS_ATTR   0x00040002u /* notice, namespace attribute changed, log page 4 */
#define EVENT_DISCOVERY 0x0070f002u /* notice, discovery log page changed, log page 0x70 */

/* Byte offsets and bits of Read, Write, Compare, Write Zeroes and Dataset Management. */
#define AT_SLBA     40
#define AT_NLB      48 /* 2 bytes, 0's based */
#define CDW12_FUA   0x40000000u
#define CDW12_DTYPE 0x00f00000u /* directives, which the target does not have */
#define DSM_AD      0x4u        /* CDW11 of Dataset Management: deallocate */
#define DSM_RANGE   16u
#define DSM_RANGES  256u

static inline uint16_t
get16(const void *at)
{
	const uint8_t *p = at;

	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t
get32(const void *at)
{
	const uint8_t *p = at;

	return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static inline uint64_t
get64(const void *at)
{
	const uint8_t *p = at;

	return get32(p) | (uint64_t)get32(p + 4) << 32;
}

static inline void
put16(void *at, uint32_t v)
{
	uint8_t *p = at;

	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static inline void
put32(void *at, uint32_t v)
{
	uint8_t *p = at;

	put16(p, v);
	put16(p + 2, v >> 16);
}

static inline void
put64(void *at, uint64_t v)
{
	uint8_t *p = at;

	put32(p, (uint32_t)v);
	put32(p + 4, (uint32_t)(v >> 32));
}

#endif
