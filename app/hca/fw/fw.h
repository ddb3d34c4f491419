/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Firmware of the PCI function: executes the commands of the function itself. drivers/front
 * executes the commands of objects.
 *
 * A driver must send its commands in the order of Linux's main.c. At the start: ENABLE_HCA,
 * SET_ISSI, pages for boot, SET_HCA_CAP, pages for init, INIT_HCA, EQs, objects. At the end:
 * TEARDOWN_HCA, return of the pages, DISABLE_HCA. The firmware refuses a command at another time
 * with BAD_SYS_STATE.
 */
#ifndef HCA_FW_H
#define HCA_FW_H

#include "bb_prm_hca.h"
#include "hca.h"

/*
 * Version of the firmware that the guest sees. The major version is that of a ConnectX-6. The
 * others stand for Bluebell 0.1.0.
 */
#define FW_MAJOR         20u
#define FW_MINOR         99u
#define FW_SUBMINOR      1u
#define FW_VERSION_DWORD (FW_MAJOR << 24 | FW_MINOR << 16 | FW_SUBMINOR)

/*
 * Pages that the firmware asks for before INIT_HCA. Afterwards it asks for pages in blocks, as the
 * guest creates objects.
 */
#define FW_BOOT_PAGES  16u
#define FW_INIT_PAGES  128u
#define FW_BLOCK_PAGES 16u

/* A command. Both mailboxes have room for 4096 bytes; bytes after the input's length are zero. */
struct fw_cmd {
	struct hca *h;
	const uint8_t *in;
	uint8_t *out;
	uint32_t inlen, outlen;
	uint16_t op, op_mod;
};

/*
 * Executes a command: writes the output mailbox to @out, which the caller has filled with zeros.
 * @in and @out have at least 4096 bytes.
 */
void fw_command(struct hca *h, const uint8_t *in, uint32_t inlen, uint8_t *out, uint32_t outlen);
/* Sets the state of the firmware to its state after a reset. */
void fw_reset(struct hca *h);
void fw_fini(struct hca *h);

/*
 * Refuses a command: logs the reason and writes status and syndrome. The syndrome is 0xbb and a
 * checksum of @fmt, so that each reason has its own. @return @status
 */
int fw_refuse(struct fw_cmd *c, enum bb_prm_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Refuses a command whose mailboxes are shorter than @in and @out bytes. Returns OK otherwise. */
int fw_need(struct fw_cmd *c, uint32_t in, uint32_t out);

/* The commands. Each returns a status; it has called fw_refuse() if that is not OK. */
int fw_query_hca_cap(struct fw_cmd *c);
int fw_set_hca_cap(struct fw_cmd *c);
int fw_query_pages(struct fw_cmd *c);
int fw_manage_pages(struct fw_cmd *c);
int fw_create_eq(struct fw_cmd *c);
int fw_destroy_eq(struct fw_cmd *c);
int fw_query_eq(struct fw_cmd *c);
int fw_query_hca_vport_context(struct fw_cmd *c);
int fw_modify_hca_vport_context(struct fw_cmd *c);
int fw_query_hca_vport_gid(struct fw_cmd *c);
int fw_query_hca_vport_pkey(struct fw_cmd *c);
int fw_mad_ifc(struct fw_cmd *c);
int fw_access_reg(struct fw_cmd *c);
int fw_query_vport_state(struct fw_cmd *c);
int fw_query_vport_counter(struct fw_cmd *c);
int fw_query_nic_vport_context(struct fw_cmd *c);
int fw_modify_nic_vport_context(struct fw_cmd *c);
int fw_set_roce_address(struct fw_cmd *c);
int fw_query_roce_address(struct fw_cmd *c);
int fw_ok(struct fw_cmd *c);

/*
 * fw_pages.c: asks the driver for pages, or offers pages back, if the guest's objects need more or
 * fewer than the firmware has. Call it after each command.
 */
void fw_update_pages(struct hca *h);
/* fw_cap.c: computes the general capabilities. */
void fw_cap_reset(struct hca *h);
/* fw_port.c: sets the capability mask of the port to its value after a reset. */
void fw_port_reset(struct hca *h);
/* fw_nic.c: sets the context of the NIC vport to its value after a reset. */
void fw_nic_reset(struct hca *h);

#endif
