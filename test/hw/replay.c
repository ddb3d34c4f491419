/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <stdlib.h>
#include <string.h>

#include "bb_core.h"
#include "bb_cqe.h"
#include "mlx5.h"
#include "record.h"
#include "replay.h"

static const json_t *commands;

/* Reads hex digits, at most @size bytes; missing bytes are 0. */
static void
from_hex(const char *text, uint8_t *to, size_t size)
{
	char digits[3] = "";
	size_t i;

	memset(to, 0, size);
	for (i = 0; i < size && text[2 * i] != 0 && text[2 * i + 1] != 0; i++) {
		memcpy(digits, text + 2 * i, 2);
		to[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
}

/* Returns the recorded answer to the same query. */
static int
general(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out, size_t outlen)
{
	json_t *asked = record_hex(in, inlen);
	const json_t *c, *found = NULL;
	size_t i;

	(void)ctx;
	json_array_foreach(commands, i, c)
	{
		if (json_equal(json_object_get(c, "in"), asked))
			found = c;
	}
	json_decref(asked);
	if (found == NULL || !json_is_string(json_object_get(found, "out")))
		return -ENODATA;
	from_hex(json_string_value(json_object_get(found, "out")), out, outlen);
	return (int)json_integer_value(json_object_get(found, "ret"));
}

int
replay_attr(struct bb_dev *dev, const json_t *recorded, struct bb_dev_attr *attr)
{
	struct mlx5_dev *d = mlx5_dev_of(dev);
	const struct mlx5_cmd_if *real = d->cmd;
	const struct mlx5_caps caps = d->caps;
	struct mlx5_cmd_if cmd = *real;
	int ret;

	commands = json_object_get(recorded, "commands");
	cmd.general = general;
	d->cmd = &cmd;
	d->ctx->cmd = &cmd;
	memset(&d->caps, 0, sizeof(d->caps));
	ret = mlx5_caps_query(d);
	if (ret == 0)
		mlx5_caps_attr(d, attr);
	d->caps = caps;
	d->cmd = real;
	d->ctx->cmd = real;
	return ret;
}

static json_t *
read_cqe(const json_t *end)
{
	const char *text = json_string_value(json_object_get(end, "cqe"));
	enum bb_wc_status status = BB_WC_SUCCESS;
	struct bb_cqe cqe;
	uint8_t opcode;

	if (text == NULL)
		return json_null();
	from_hex(text, (uint8_t *)&cqe, sizeof(cqe));
	opcode = cqe.op_own >> 4;
	if (opcode == BB_CQE_REQ_ERR || opcode == BB_CQE_RESP_ERR)
		status = bb_wc_status_of(bb_cqe_syndrome(&cqe));
	return json_string(bb_wc_status_name(status));
}

json_t *
replay_cqes(const json_t *recorded)
{
	json_t *all = json_object();
	const json_t *op;
	size_t i;

	json_array_foreach(json_object_get(recorded, "ops"), i, op)
	{
		const char *name = json_string_value(json_object_get(op, "name"));

		if (name != NULL)
			json_object_set_new(all, name,
					    json_pack("{s:o, s:o}", "sender",
						      read_cqe(json_object_get(op, "sender")),
						      "receiver",
						      read_cqe(json_object_get(op, "receiver"))));
	}
	return all;
}
