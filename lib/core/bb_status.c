/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Completion statuses: the mapping from a CQE's syndrome to a status, and the text of each status.
 */
#include "bb_core.h"

/* The mapping is that of libmlx5 (providers/mlx5/cq.c, error CQEs). */
enum bb_wc_status
bb_wc_status_of(uint8_t syndrome)
{
	switch (syndrome) {
	case BB_SYN_LOCAL_LENGTH:
		return BB_WC_LOC_LEN_ERR;
	case BB_SYN_LOCAL_QP_OP:
		return BB_WC_LOC_QP_OP_ERR;
	case BB_SYN_LOCAL_PROT:
		return BB_WC_LOC_PROT_ERR;
	case BB_SYN_WR_FLUSH:
		return BB_WC_WR_FLUSH_ERR;
	case BB_SYN_MW_BIND:
		return BB_WC_MW_BIND_ERR;
	case BB_SYN_BAD_RESP:
		return BB_WC_BAD_RESP_ERR;
	case BB_SYN_LOCAL_ACCESS:
		return BB_WC_LOC_ACCESS_ERR;
	case BB_SYN_REMOTE_INVAL_REQ:
		return BB_WC_REM_INV_REQ_ERR;
	case BB_SYN_REMOTE_ACCESS:
		return BB_WC_REM_ACCESS_ERR;
	case BB_SYN_REMOTE_OP:
		return BB_WC_REM_OP_ERR;
	case BB_SYN_RETRY_EXC:
		return BB_WC_RETRY_EXC_ERR;
	case BB_SYN_RNR_RETRY_EXC:
		return BB_WC_RNR_RETRY_EXC_ERR;
	case BB_SYN_REMOTE_ABORTED:
		return BB_WC_REM_ABORT_ERR;
	default:
		return BB_WC_GENERAL_ERR;
	}
}

const char *
bb_wc_status_name(enum bb_wc_status status)
{
	switch (status) {
	case BB_WC_SUCCESS:
		return "success";
	case BB_WC_LOC_LEN_ERR:
		return "local length error";
	case BB_WC_LOC_QP_OP_ERR:
		return "local QP operation error";
	case BB_WC_LOC_PROT_ERR:
		return "local protection error";
	case BB_WC_WR_FLUSH_ERR:
		return "flushed in error";
	case BB_WC_MW_BIND_ERR:
		return "memory window bind error";
	case BB_WC_BAD_RESP_ERR:
		return "bad response error";
	case BB_WC_LOC_ACCESS_ERR:
		return "local access error";
	case BB_WC_REM_INV_REQ_ERR:
		return "remote invalid request error";
	case BB_WC_REM_ACCESS_ERR:
		return "remote access error";
	case BB_WC_REM_OP_ERR:
		return "remote operation error";
	case BB_WC_RETRY_EXC_ERR:
		return "transport retry counter exceeded";
	case BB_WC_RNR_RETRY_EXC_ERR:
		return "RNR retry counter exceeded";
	case BB_WC_REM_ABORT_ERR:
		return "remote abort error";
	case BB_WC_GENERAL_ERR:
		return "general error";
	}
	return "?";
}

static const char *
status_cause(enum bb_wc_status status)
{
	switch (status) {
	case BB_WC_SUCCESS:
		return "nothing went wrong";
	case BB_WC_LOC_LEN_ERR:
		return "a message was longer than the receive posted for it, or longer than the "
		       "device's largest; post receives as large as the peer's largest send";
	case BB_WC_LOC_QP_OP_ERR:
		return "the device could not run the WQE as written: an opcode the QP does not "
		       "do, a bad size, or an attribute of the QP; compare the WQE shown";
	case BB_WC_LOC_PROT_ERR:
		return "a local piece is not covered by its lkey: wrong or deregistered key, another "
		       "PD's, past the end of the MR, or no LOCAL_WRITE where data is written";
	case BB_WC_WR_FLUSH_ERR:
		return "the QP was already in ERR when its turn came: look at the first error of this "
		       "QP, not at this one";
	case BB_WC_MW_BIND_ERR:
		return "a memory window was not bound, or an indirect key not laid out or "
		       "invalidated: the MR lacks MW_BIND or LOCAL_WRITE, is of another PD or does "
		       "not hold the range, or the window is bound already or is another QP's";
	case BB_WC_BAD_RESP_ERR:
		return "the peer's answer did not fit the request: the two sides disagree about the "
		       "connection (path MTU, PSN), or something else uses the peer's QP number";
	case BB_WC_LOC_ACCESS_ERR:
		return "an access to local memory was refused while a peer's request was served: look "
		       "at the rights of the MR and of the QP";
	case BB_WC_REM_INV_REQ_ERR:
		return "the peer found the request invalid: its QP does not grant the operation "
		       "(access at INIT), longer than its receive or its largest message, packets of "
		       "another path MTU, an unaligned atomic, or more READs than its "
		       "max_dest_rd_atomic";
	case BB_WC_REM_ACCESS_ERR:
		return "the peer refused the access: wrong or deregistered rkey, past the end of its "
		       "MR, or the right is missing in its MR or its QP";
	case BB_WC_REM_OP_ERR:
		return "the peer could not finish the request: it met an error of its own there, look "
		       "at its log";
	case BB_WC_RETRY_EXC_ERR:
		return "the peer did not answer: it is gone, not in RTR, unreachable (GID, VLAN, a path "
		       "MTU that a link does not carry), or its device is not run (a software device with inline progress needs its owner to poll)";
	case BB_WC_RNR_RETRY_EXC_ERR:
		return "the peer had no receive posted, longer than rnr_retry allows: let it post "
		       "more, or set rnr_retry to 7";
	case BB_WC_REM_ABORT_ERR:
		return "the peer aborted the request";
	case BB_WC_GENERAL_ERR:
		return "the syndrome is undocumented: look at the device's log";
	}
	return "the status is not known";
}

/*
 * Vendor syndromes. NVIDIA's libdpcp publishes the codes (err_cqe decoding, BSD-3-Clause). The
 * causes in the texts below are this library's interpretation.
 *
 * The codes below are the first of groups of eight. In each group the low three bits give the
 * result of a key check.
 */
static bool
vendor_is_key_check(uint8_t v)
{
	switch (v & ~7u) {
	case 0x10: /* while the device fetched a receive WQE */
	case 0x18: /* while the device executed an atomic of the peer */
	case 0x20: /* while the device executed a READ of the peer */
	case 0x28: /* while the device wrote to a receive buffer */
	case 0x30: /* while the device accessed a data buffer */
	case 0x38: /* while the device executed a WRITE of the peer */
	case 0x50: /* while the device gathered data to send */
	case 0x60: /* while the device fetched a send WQE */
	case 0xc0: /* while the device executed a WRITE with immediate of the peer */
		return true;
	default:
		return false;
	}
}

static const char *
key_check_cause(uint8_t v)
{
	switch (v & 7) {
	case 1:
		return "the key does not cover the piece, or the card cannot reach its memory over PCIe: "
		       "unmapped since, or memory of a GPU that this card cannot address";
	case 2:
		return "the key is not of the QP's PD: another PD's, mistyped, or deregistered";
	case 3:
		return "the MR lacks the right for this access: LOCAL_WRITE where received or read "
		       "data lands, REMOTE_* for a peer's request";
	case 4:
		return "the piece begins or ends outside its MR";
	case 6:
		return "the memory behind the key is not mapped any more";
	default:
		return NULL;
	}
}

static const char *
vendor_cause(uint8_t v)
{
	if (vendor_is_key_check(v))
		return key_check_cause(v);
	switch (v) {
	case 0x41:
	case 0x49:
		return "the CQ ran over: it is shallower than the WQEs of its queues";
	case 0x68:
		return "the device does not understand the WQE's format; compare the WQE shown";
	case 0x69:
		return "the message is longer than the device's max_msg_size";
	case 0x6d:
		return "the QP's type does not do this opcode";
	case 0x6e:
	case 0x77:
		return "the WQE's segments and its size (ds) do not agree; compare the WQE shown";
	case 0x71:
		return "the WQE's opcode does not exist; compare the WQE shown";
	case 0x80:
	case 0x81:
	case 0x97:
		return "no answer came within timeout and retry_cnt: the peer is gone, not in RTR, "
		       "unreachable (GID, VLAN, MTU), or its device is not run";
	case 0x83:
		return "answers were lost time and again: look for drops, PFC and the path MTU";
	case 0x85:
		return "the peer kept seeing gaps in our packets: drops on the way, or sq_psn is not "
		       "the peer's rq_psn";
	case 0x87:
		return "the peer had no receive posted, longer than rnr_retry allows: let it post "
		       "more, or set rnr_retry to 7";
	case 0x88:
		return "the peer refused the access: wrong or deregistered rkey, past the end of its "
		       "MR, or the right is missing in its MR or its QP";
	case 0x89:
		return "the peer met an error of its own while it served the request (often its receive "
		       "buffer's lkey): look at its log";
	case 0x8a:
		return "the peer found the request invalid: its QP does not grant the operation "
		       "(access at INIT), longer than its receive, packets of another path MTU, an "
		       "unaligned atomic, or more READs than its max_dest_rd_atomic";
	case 0x90:
	case 0x91:
	case 0x92:
		return "this side's QP does not grant the peer that operation: set access at INIT";
	case 0x93:
		return "a page fault on memory that is paged on demand";
	case 0xd1:
		return "an atomic's address is not aligned to its size";
	case 0xd2:
		return "more READs and atomics in flight than max_dest_rd_atomic allows";
	case 0xd3:
	case 0xd4:
	case 0xd5:
	case 0xdb:
		return "the message does not fit: longer than the receive posted for it, or than the "
		       "device's largest";
	case 0xf5:
	case 0xf9:
		return "the QP was already in ERR when its turn came: look at the first error of this "
		       "QP, not at this one";
	default:
		return NULL;
	}
}

const char *
bb_wc_status_cause(enum bb_wc_status status, uint8_t vendor_err)
{
	const char *cause = NULL;

	if (status != BB_WC_SUCCESS && status != BB_WC_WR_FLUSH_ERR)
		cause = vendor_cause(vendor_err);
	return cause != NULL ? cause : status_cause(status);
}
