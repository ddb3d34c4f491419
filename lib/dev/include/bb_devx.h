/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * DEVX: command mailboxes of the application's own, passed on to an mlx5 device unchanged.
 *
 * With the id of bb_umem_reg() and what this header gives (PD number, event queue, UAR) an
 * application creates device objects that Bluebell does not know, beside Bluebell's queues and on
 * the same context. Layouts of mailboxes are those of the mlx5 programming interface
 * (include/linux/mlx5/mlx5_ifc.h of Linux); the kernel decides which commands a user may give.
 *
 * Devices of the mlx5 driver have DEVX, the software device among them, which knows the commands
 * that the guide of memory lists. On others each call returns -ENOTSUP.
 *
 * The library does not read the mailboxes. The application destroys its objects before what they
 * name (CQ, PD, umem, UAR) and before bb_dev_close(), which returns -EBUSY while one lives.
 *
 * Any thread; control-path rules are those of bb_dev.h (man mlx5dv_devx_obj_create).
 */
#ifndef BB_DEVX_H
#define BB_DEVX_H

#include "bb_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Smallest and largest mailbox, in bytes: a command's header, and what the kernel's ABI takes. */
#define BB_DEVX_MAILBOX_MIN 16u
#define BB_DEVX_MAILBOX_MAX 65535u

/** An object created by bb_devx_obj_create(). */
struct bb_devx_obj;
struct bb_pd;

/**
 * Run a command that is no object's: a query, or one from 0xb00 to 0xcff.
 * @param in mailbox, in network byte order; its uid field stays 0.
 * @param out answer, in memory of its own; its first 16 bytes are zeroed before the command.
 * @return 0; -EREMOTEIO the device refused the command: status in the first byte of @p out,
 *   syndrome in bytes 4 to 7; another errno from a kernel that refused it, or from a kernel before
 *   5.17 for a refusal by the device; -EINVAL also for a mailbox that is NULL, shorter than
 *   @ref BB_DEVX_MAILBOX_MIN or longer than @ref BB_DEVX_MAILBOX_MAX; -ENOTSUP no DEVX.
 */
int bb_devx_general_cmd(struct bb_dev *dev, const void *in, size_t inlen, void *out, size_t outlen);

/**
 * Create an object. Its number is in @p out, where the command's layout says.
 * @return as bb_devx_general_cmd(); -ENOMEM.
 */
int bb_devx_obj_create(struct bb_dev *dev, const void *in, size_t inlen, void *out, size_t outlen,
		       struct bb_devx_obj **obj);

/**
 * Run a command that changes @p obj, whose number the mailbox must name.
 * @return as bb_devx_general_cmd().
 */
int bb_devx_obj_modify(struct bb_devx_obj *obj, const void *in, size_t inlen, void *out,
		       size_t outlen);

/** Run a command that reads @p obj; as bb_devx_obj_modify(). */
int bb_devx_obj_query(struct bb_devx_obj *obj, const void *in, size_t inlen, void *out,
		      size_t outlen);

/**
 * Destroy it. On an error it lives on, and the call may be repeated.
 * @return 0; -EBUSY or another errno while objects name it.
 */
int bb_devx_obj_destroy(struct bb_devx_obj *obj);

/**
 * Number of the event queue of completion vector @p vector, which CREATE_CQ's c_eqn takes.
 * @return 0; -EINVAL or -ENOENT no such vector; -ENOTSUP no DEVX.
 */
int bb_devx_query_eqn(struct bb_dev *dev, uint32_t vector, uint32_t *eqn);

/** Number of a PD, which CREATE_QP's pd takes. @return 0; -ENOTSUP no DEVX. */
int bb_devx_pd_number(const struct bb_pd *pd, uint32_t *pdn);

/**
 * Doorbell page of an lcore; read-only for the application.
 *
 * It is the page that Bluebell's own queues of that lcore ring. That lcore's thread alone stores to
 * it. On a software device that its owner runs (progress=inline), queues that name the page run in
 * bb_dev_progress() and in polls of that lcore.
 */
struct bb_devx_uar {
	struct bb_dev *dev;
	uint32_t lcore;
	uint32_t page_id; /**< uar_page of CREATE_CQ and CREATE_QP */
	void *reg_addr;   /**< register of send queues: one store of 8 bytes rings */
	void *base_addr;  /**< the page; CQs are armed at + 0x20 */
};

/**
 * Take a reference to the doorbell page of @p lcore, creating it if the lcore has none.
 * @return 0; -EINVAL no such lcore; -ENOMEM; what the kernel says, as -EPERM; -ENOTSUP no DEVX.
 */
int bb_devx_uar_alloc(struct bb_dev *dev, uint32_t lcore, struct bb_devx_uar **uar);

/**
 * Give it back.
 * @return 0; -EBUSY while an object of bb_devx_obj_create() lives on the device: the library does
 *   not know which of them name the page.
 */
int bb_devx_uar_free(struct bb_devx_uar *uar);

#ifdef __cplusplus
}
#endif

#endif
