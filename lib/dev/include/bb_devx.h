/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * DEVX: command mailboxes that the application builds and Bluebell passes to an mlx5 device
 * unchanged.
 *
 * An application can create device objects that Bluebell does not know, beside Bluebell's queues
 * and on the same context. Such objects refer to memory by the id of bb_umem_reg(), and to the PD,
 * event queue and UAR by the numbers that functions of this header return. The mailbox layouts are
 * those of the mlx5 programming interface (include/linux/mlx5/mlx5_ifc.h of Linux). The kernel
 * decides which commands a user may execute.
 *
 * Devices of the mlx5 driver have DEVX, including the software device. The guide of memory lists
 * the commands that the software device knows. On devices of other drivers each call returns
 * -ENOTSUP.
 *
 * The library does not read the mailboxes. The application destroys its objects before the objects
 * that they name (CQ, PD, umem, UAR). All these objects must be destroyed before bb_dev_close(),
 * which returns -EBUSY while one exists.
 *
 * Any thread may call these functions; the control-path rules of bb_dev.h apply (man
 * mlx5dv_devx_obj_create).
 */
#ifndef BB_DEVX_H
#define BB_DEVX_H

#include "bb_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Smallest size of a mailbox in bytes: the size of a command's header. */
#define BB_DEVX_MAILBOX_MIN 16u
/** Largest size of a mailbox in bytes: the limit of the kernel's ABI. */
#define BB_DEVX_MAILBOX_MAX 65535u

/** An object created by bb_devx_obj_create(), opaque. */
struct bb_devx_obj;
struct bb_pd;

/**
 * Executes a command that concerns no object of bb_devx_obj_create(): a query, or a command from
 * 0xb00 to 0xcff.
 * @param in input mailbox in network byte order; its uid field must be 0.
 * @param out output mailbox with the reply, in memory that does not overlap @p in; its first 16
 * bytes are zeroed before the command.
 * @return 0; -EREMOTEIO if the device rejected the command, with the status in the first byte of @p
 * out and the syndrome in bytes 4 to 7; -EINVAL also if a mailbox is NULL, shorter than @ref
 * BB_DEVX_MAILBOX_MIN or longer than @ref BB_DEVX_MAILBOX_MAX; -ENOTSUP if the device has no DEVX.
 * Any other errno comes from the kernel. Kernels before 5.17 return such an errno instead of
 * -EREMOTEIO if the device rejected the command.
 */
int bb_devx_general_cmd(struct bb_dev *dev, const void *in, size_t inlen, void *out, size_t outlen);

/**
 * Creates an object. The device writes the number of the object to @p out, where the layout of the
 * command defines it.
 * @return as bb_devx_general_cmd(); -ENOMEM.
 */
int bb_devx_obj_create(struct bb_dev *dev, const void *in, size_t inlen, void *out, size_t outlen,
		       struct bb_devx_obj **obj);

/**
 * Executes a command that modifies @p obj. The mailbox must contain the object's number.
 * @return as bb_devx_general_cmd().
 */
int bb_devx_obj_modify(struct bb_devx_obj *obj, const void *in, size_t inlen, void *out,
		       size_t outlen);

/** Executes a command that reads @p obj. The rules of bb_devx_obj_modify() apply. */
int bb_devx_obj_query(struct bb_devx_obj *obj, const void *in, size_t inlen, void *out,
		      size_t outlen);

/**
 * Destroys the object. If the call fails, the object still exists and the call may be repeated.
 * @return 0; -EBUSY or another errno while other objects refer to @p obj.
 */
int bb_devx_obj_destroy(struct bb_devx_obj *obj);

/**
 * Returns the number of the event queue of completion vector @p vector, for field c_eqn of
 * CREATE_CQ.
 * @return 0; -EINVAL or -ENOENT if there is no such vector; -ENOTSUP if the device has no DEVX.
 */
int bb_devx_query_eqn(struct bb_dev *dev, uint32_t vector, uint32_t *eqn);

/**
 * Returns the number of a PD, for field pd of CREATE_QP. bb_pd_free() then refuses the PD while any
 * object of bb_devx_obj_create() exists. @return 0; -ENOTSUP if the device has no DEVX.
 */
int bb_devx_pd_number(struct bb_pd *pd, uint32_t *pdn);

/**
 * Doorbell page of an lcore; read-only for the application.
 *
 * Bluebell's own queues of that lcore ring the same page. Only that lcore's thread may store to it.
 * On a software device with progress=inline, queues that use the page run in bb_dev_progress() and
 * in polls of that lcore.
 */
struct bb_devx_uar {
	struct bb_dev *dev;
	uint32_t lcore;
	uint32_t page_id; /**< page number, for field uar_page of CREATE_CQ and CREATE_QP */
	void *reg_addr;   /**< doorbell register of send queues; one 8-byte store rings the doorbell
			   */
	void *base_addr;  /**< start of the doorbell page; CQs are armed at offset 0x20 */
};

/**
 * Takes a reference to the doorbell page of @p lcore. Creates the page if the lcore has none.
 * @return 0; -EINVAL if there is no such lcore; -ENOMEM; an errno of the kernel, such as -EPERM;
 * -ENOTSUP if the device has no DEVX.
 */
int bb_devx_uar_alloc(struct bb_dev *dev, uint32_t lcore, struct bb_devx_uar **uar);

/**
 * Releases a reference that bb_devx_uar_alloc() took.
 * @return 0; -EBUSY while any object of bb_devx_obj_create() exists on the device, because the
 * library does not know which objects use the page.
 */
int bb_devx_uar_free(struct bb_devx_uar *uar);

#ifdef __cplusplus
}
#endif

#endif
