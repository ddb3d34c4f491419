/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Opcodes of the base transport header (BTH) and their properties (IBTA vol. 1, 9.2 table 38). The
 * upper three bits of the opcode byte are the transport, the lower five the operation. The table
 * covers RC, UC, UD and the CNP.
 */
#ifndef BB_ROCE_OP_H
#define BB_ROCE_OP_H

#include <stdint.h>

enum bb_roce_type {
	BB_ROCE_RC = 0x00,
	BB_ROCE_UC = 0x20,
	BB_ROCE_UD = 0x60,
};
#define BB_ROCE_TYPE(opcode) ((opcode)&0xe0u)

enum bb_roce_op {
	BB_ROCE_SEND_FIRST = 0x00,
	BB_ROCE_SEND_MIDDLE = 0x01,
	BB_ROCE_SEND_LAST = 0x02,
	BB_ROCE_SEND_LAST_IMM = 0x03,
	BB_ROCE_SEND_ONLY = 0x04,
	BB_ROCE_SEND_ONLY_IMM = 0x05,
	BB_ROCE_WRITE_FIRST = 0x06,
	BB_ROCE_WRITE_MIDDLE = 0x07,
	BB_ROCE_WRITE_LAST = 0x08,
	BB_ROCE_WRITE_LAST_IMM = 0x09,
	BB_ROCE_WRITE_ONLY = 0x0a,
	BB_ROCE_WRITE_ONLY_IMM = 0x0b,
	BB_ROCE_READ_REQUEST = 0x0c,
	BB_ROCE_READ_RESP_FIRST = 0x0d,
	BB_ROCE_READ_RESP_MIDDLE = 0x0e,
	BB_ROCE_READ_RESP_LAST = 0x0f,
	BB_ROCE_READ_RESP_ONLY = 0x10,
	BB_ROCE_ACK = 0x11,
	BB_ROCE_ATOMIC_ACK = 0x12,
	BB_ROCE_CMP_SWAP = 0x13,
	BB_ROCE_FETCH_ADD = 0x14,
	BB_ROCE_SEND_LAST_INV = 0x16,
	BB_ROCE_SEND_ONLY_INV = 0x17,
};
/*
 * Congestion notification packet. It names a queue pair, but its PSN is not part of the queue
 * pair's PSN sequence.
 */
#define BB_ROCE_CNP     0x81u
#define BB_ROCE_CNP_PAD 16u /* zero bytes after the BTH of a CNP, counted as part of the header */

/* Properties of an opcode, and the headers after its BTH in the order in which they appear. */
enum {
	BB_ROCE_F_KNOWN = 1u << 0,
	BB_ROCE_F_REQUEST = 1u << 1, /* sent to the responder; without this flag the packet is sent
					to the requester */
	BB_ROCE_F_FIRST = 1u << 2, /* first packet of a message; ONLY, READ_REQUEST and atomics have
				      both FIRST and LAST */
	BB_ROCE_F_LAST = 1u << 3,  /* last packet of a message */
	BB_ROCE_F_PAYLOAD = 1u << 4, /* may carry payload */
	BB_ROCE_F_SEND = 1u << 5,    /* part of a SEND */
	BB_ROCE_F_WRITE = 1u << 6,   /* part of an RDMA WRITE */
	BB_ROCE_F_ATOMIC = 1u << 7,  /* CMP_SWAP or FETCH_ADD */
	BB_ROCE_F_READ_RESP = 1u << 8,
	BB_ROCE_F_DETH = 1u << 9,
	BB_ROCE_F_RETH = 1u << 10,
	BB_ROCE_F_ATOMICETH = 1u << 11,
	BB_ROCE_F_AETH = 1u << 12,
	BB_ROCE_F_ATOMICACK = 1u << 13,
	BB_ROCE_F_IMM = 1u << 14,
	BB_ROCE_F_IETH = 1u << 15,
};

struct bb_roce_op_info {
	const char *name; /* such as "RC SEND_FIRST"; NULL if the opcode is not assigned */
	uint16_t flags;   /* BB_ROCE_F_* */
	uint8_t hdr_len;  /* bytes of the BTH and all headers after it, without payload */
};

/*
 * Table of RC, UC, UD and CNP opcodes, indexed by the opcode byte. The CNP has only
 * BB_ROCE_F_KNOWN. Unassigned opcodes and opcodes of other transports have flags 0.
 */
extern const struct bb_roce_op_info bb_roce_ops[256];

#endif
