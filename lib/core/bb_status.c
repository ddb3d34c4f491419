/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Completion statuses: the mapping from a CQE's syndrome to a status, and the text of each status.
 * Names of fates.
 */
#include "bb_core.h"
#include "bb_recover.h"

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
		return "a message was longer than the receive posted for it, or than the "
		       "device's max_msg_size; post receives as large as the peer's largest send";
	case BB_WC_LOC_QP_OP_ERR:
		return "the device cannot execute the WQE: an opcode that the QP's type lacks, a "
		       "wrong size, or a wrong attribute of the QP; check the WQE shown";
	case BB_WC_LOC_PROT_ERR:
		return "an lkey does not cover its SGE: wrong or deregistered key, key of "
		       "another PD, range past the end of the MR, or no LOCAL_WRITE where data "
		       "is written";
	case BB_WC_WR_FLUSH_ERR:
		return "the QP was already in ERR: look at the first error of this QP instead";
	case BB_WC_MW_BIND_ERR:
		return "the bind of a memory window, or the layout or invalidation of an "
		       "indirect key, failed: the MR lacks MW_BIND or LOCAL_WRITE, has another "
		       "PD or does not contain the range, or the window is already bound or "
		       "belongs to another QP";
	case BB_WC_BAD_RESP_ERR:
		return "the peer's response did not match the request: the two QPs were "
		       "connected with different path MTUs or PSNs, or another host uses the "
		       "peer's QP number";
	case BB_WC_LOC_ACCESS_ERR:
		return "a peer's request was denied access to local memory: check the access "
		       "rights of the MR and of the QP";
	case BB_WC_REM_INV_REQ_ERR:
		return "the peer rejected the request as invalid: its QP does not allow the "
		       "operation (access at INIT), the path MTUs differ, or an atomic is "
		       "unaligned. Or the message exceeds its receive or max_msg_size, or the "
		       "READs its max_dest_rd_atomic";
	case BB_WC_REM_ACCESS_ERR:
		return "the peer denied the access: wrong or deregistered rkey, range past the "
		       "end of its MR, or an access right missing in its MR or its QP";
	case BB_WC_REM_OP_ERR:
		return "the peer failed to execute the request because of a local error there: "
		       "look at the peer's log";
	case BB_WC_RETRY_EXC_ERR:
		return "the peer did not answer: it has exited, is not in RTR, or is unreachable "
		       "(GID, VLAN, MTU of a link). Or its device makes no progress: with "
		       "progress=inline, a software device works only in its owner's polls";
	case BB_WC_RNR_RETRY_EXC_ERR:
		return "the peer had no receive posted for longer than rnr_retry allows: let the "
		       "peer post more receives, or set rnr_retry to 7";
	case BB_WC_REM_ABORT_ERR:
		return "the peer aborted the request";
	case BB_WC_GENERAL_ERR:
		return "the device reported an undocumented syndrome: look at the device's log";
	}
	return "unknown completion status";
}

/*
 * Vendor syndromes. NVIDIA's libdpcp publishes the codes (err_cqe decoding, BSD-3-Clause). The
 * causes in the texts below are this library's interpretation.
 *
 * Each code below is the lowest of a group of eight codes. The low three bits of a code give the
 * result of a key check.
 */
static bool
vendor_is_key_check(uint8_t v)
{
	switch (v & ~7u) {
	case 0x10: /* key check while the device fetched a receive WQE */
	case 0x18: /* key check while the device executed an atomic of the peer */
	case 0x20: /* key check while the device executed a READ of the peer */
	case 0x28: /* key check while the device wrote to a receive buffer */
	case 0x30: /* key check while the device accessed a data buffer */
	case 0x38: /* key check while the device executed a WRITE of the peer */
	case 0x50: /* key check while the device gathered data to send */
	case 0x60: /* key check while the device fetched a send WQE */
	case 0xc0: /* key check while the device executed a WRITE with immediate of the peer */
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
		return "the key does not cover the range, or the card cannot reach the memory "
		       "over PCIe: unmapped since the registration, or memory of a GPU that this "
		       "card cannot address";
	case 2:
		return "the key does not belong to the QP's PD: key of another PD, wrong key, or "
		       "deregistered memory";
	case 3:
		return "the MR lacks the right for this access: LOCAL_WRITE where received or read "
		       "data lands, REMOTE_* for a peer's request";
	case 4:
		return "the range begins or ends outside its MR";
	case 6:
		return "the memory of the key is no longer mapped";
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
		return "the CQ overflowed: its depth is less than the number of WQEs of its "
		       "queues";
	case 0x68:
		return "the device does not support the format of the WQE; check the WQE shown";
	case 0x69:
		return "the message is longer than the device's max_msg_size";
	case 0x6d:
		return "the QP's type does not support this opcode";
	case 0x6e:
	case 0x77:
		return "the size (ds) of the WQE does not match its segments; check the WQE shown";
	case 0x71:
		return "the WQE has an undefined opcode; check the WQE shown";
	case 0x80:
	case 0x81:
	case 0x97:
		return "the peer did not answer within timeout and retry_cnt: it has exited, is "
		       "not in RTR, is unreachable (GID, VLAN, MTU), or its device makes no "
		       "progress";
	case 0x83:
		return "responses of the peer were lost repeatedly: check for packet drops, PFC "
		       "and the path MTU";
	case 0x85:
		return "the peer repeatedly saw gaps in the PSNs of this QP: packets are "
		       "dropped, or sq_psn differs from the peer's rq_psn";
	case 0x87:
		return "the peer had no receive posted for longer than rnr_retry allows: let the "
		       "peer post more receives, or set rnr_retry to 7";
	case 0x88:
		return "the peer denied the access: wrong or deregistered rkey, range past the "
		       "end of its MR, or an access right missing in its MR or its QP";
	case 0x89:
		return "the peer had a local error while it executed the request (often the lkey "
		       "of its receive buffer): look at the peer's log";
	case 0x8a:
		return "the peer rejected the request as invalid: its QP does not allow the "
		       "operation (access at INIT), the path MTUs differ, or an atomic is "
		       "unaligned. Or the message exceeds its receive, or the READs its "
		       "max_dest_rd_atomic";
	case 0x90:
	case 0x91:
	case 0x92:
		return "the local QP does not allow the peer's operation: set its access rights "
		       "at INIT";
	case 0x93:
		return "a page fault on an ON_DEMAND region was not resolved";
	case 0xd1:
		return "an atomic's address is not aligned to its size";
	case 0xd2:
		return "the peer has more READs and atomics in flight than max_dest_rd_atomic "
		       "allows";
	case 0xd3:
	case 0xd4:
	case 0xd5:
	case 0xdb:
		return "the message is longer than the receive posted for it, or than the "
		       "device's max_msg_size";
	case 0xf5:
	case 0xf9:
		return "the QP was already in ERR: look at the first error of this QP instead";
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

const char *
bb_wr_fate_name(enum bb_wr_fate fate)
{
	switch (fate) {
	case BB_WR_DONE:
		return "done";
	case BB_WR_FAILED:
		return "failed";
	case BB_WR_NOT_DONE:
		return "not done";
	case BB_WR_UNKNOWN:
		return "unknown";
	}
	return "?";
}
