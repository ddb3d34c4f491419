/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Steps as text: "write qp=0 flags=8 n=1 key0=2 ...", one per line; '#' starts a comment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diff.h"

#define SGES "n key0 buf0 off0 len0 key1 buf1 off1 len1 key2 buf2 off2 len2 "

static const struct {
	const char *name, *args;
} ops[OPS] = {
	[OP_PD_ALLOC] = {"pd_alloc", "pd"},
	[OP_PD_FREE] = {"pd_free", "pd"},
	[OP_MR_REG] = {"mr_reg", "mr pd buf off len access"},
	[OP_MR_REREG] = {"mr_rereg", "mr flags pd buf off len access"},
	[OP_MR_DEREG] = {"mr_dereg", "mr"},
	[OP_CQ_CREATE] = {"cq_create", "cq depth"},
	[OP_CQ_DESTROY] = {"cq_destroy", "cq"},
	[OP_QP_CREATE] = {"qp_create",
			  "qp pd scq rcq sq rq sge rsge inline signal bf all type srq"},
	[OP_QP_DESTROY] = {"qp_destroy", "qp"},
	[OP_MODIFY] = {"modify", "qp to peer access drop add rnr_retry retry qkey"},
	[OP_WRITE] = {"write", "qp flags " SGES "rkey rbuf roff"},
	[OP_WRITE_IMM] = {"write_imm", "qp flags " SGES "rkey rbuf roff imm"},
	[OP_READ] = {"read", "qp flags " SGES "rkey rbuf roff"},
	[OP_SEND] = {"send", "qp flags " SGES "rkey rbuf roff"},
	[OP_SEND_IMM] = {"send_imm", "qp flags " SGES "rkey rbuf roff imm"},
	[OP_WRITE_INLINE] = {"write_inline", "qp flags len seed rkey rbuf roff"},
	[OP_WRITE_IMM_INLINE] = {"write_imm_inline", "qp flags len seed rkey rbuf roff imm"},
	[OP_SEND_INLINE] = {"send_inline", "qp flags len seed rkey rbuf roff"},
	[OP_SEND_IMM_INLINE] = {"send_imm_inline", "qp flags len seed rkey rbuf roff imm"},
	[OP_CMP_SWAP] = {"cmp_swap", "qp flags key buf off len rkey rbuf roff x y"},
	[OP_FETCH_ADD] = {"fetch_add", "qp flags key buf off len rkey rbuf roff x y"},
	[OP_NOP] = {"nop", "qp flags"},
	[OP_RECV] = {"recv", "qp flags " SGES},
	[OP_RING] = {"ring", "qp"},
	[OP_RING_RECV] = {"ring_recv", "qp"},
	[OP_FILL] = {"fill", "buf off len seed"},
	[OP_AH_CREATE] = {"ah_create", "ah pd dev gid tclass flow hops"},
	[OP_AH_DESTROY] = {"ah_destroy", "ah"},
	[OP_SEND_UD] = {"send_ud", "qp flags " SGES "ah dest qkey"},
	[OP_SEND_UD_IMM] = {"send_ud_imm", "qp flags " SGES "ah dest qkey imm"},
	[OP_SEND_UD_INLINE] = {"send_ud_inline", "qp flags len seed ah dest qkey"},
	[OP_POST_LIST] = {"post_list", "qp"},
	[OP_RECV_LIST] = {"recv_list", "qp"},
	[OP_MASKED_CMP_SWAP] = {"masked_cmp_swap",
				"qp flags key buf off len rkey rbuf roff x y x_mask y_mask"},
	[OP_MASKED_FETCH_ADD] = {"masked_fetch_add",
				 "qp flags key buf off len rkey rbuf roff x y x_mask y_mask"},
	[OP_MW_ALLOC] = {"mw_alloc", "mw pd type"},
	[OP_MW_FREE] = {"mw_free", "mw"},
	[OP_BIND] = {"bind", "qp flags mw mr buf off len access tag wrong_call"},
	[OP_LOCAL_INV] = {"local_inv", "qp flags key"},
	[OP_SEND_INV] = {"send_inv", "qp flags " SGES "rkey"},
	[OP_SEND_INV_INLINE] = {"send_inv_inline", "qp flags len seed rkey"},
	[OP_DM_ALLOC] = {"dm_alloc", "dm len align"},
	[OP_DM_FREE] = {"dm_free", "dm"},
	[OP_DM_WRITE] = {"dm_write", "dm off len seed"},
	[OP_MR_REG_DM] = {"mr_reg_dm", "mr pd dm off len access"},
	[OP_SRQ_CREATE] = {"srq_create", "srq pd depth sge limit"},
	[OP_SRQ_DESTROY] = {"srq_destroy", "srq"},
	[OP_SRQ_MODIFY] = {"srq_modify", "srq limit"},
	[OP_SRQ_RECV] = {"srq_recv", "srq flags " SGES},
	[OP_SRQ_RING] = {"srq_ring", "srq"},
	[OP_MKEY_CREATE] = {"mkey_create", "mkey pd access max_pieces " SGES},
	[OP_MKEY_DESTROY] = {"mkey_destroy", "mkey"},
	[OP_MKEY_LIST] = {"mkey_list", "qp flags mkey access " SGES},
	[OP_MKEY_INTERLEAVED] = {"mkey_interleaved",
				 "qp flags mkey access repeat n key0 buf0 off0 len0 skip0 "
				 "key1 buf1 off1 len1 skip1"},
	[OP_SEND_UD_IMM_INLINE] = {"send_ud_imm_inline", "qp flags len seed ah dest qkey imm"},
};

const char *
op_name(uint32_t op)
{
	return op < OPS ? ops[op].name : "?";
}

/* Returns the name of argument @i, of *@len characters. Returns NULL if there are fewer. */
static const char *
arg_name(uint32_t op, uint32_t i, size_t *len)
{
	const char *p = ops[op].args;

	for (;; i--) {
		*len = strcspn(p, " ");
		if (*len == 0)
			return NULL;
		if (i == 0)
			return p;
		p += *len + (p[*len] == ' ');
	}
}

uint32_t
op_args(uint32_t op)
{
	uint32_t n = 0;
	size_t len;

	while (arg_name(op, n, &len) != NULL)
		n++;
	return n;
}

void
step_print(FILE *f, const struct step *s)
{
	const char *name;
	size_t len;

	fprintf(f, "%s", op_name(s->op));
	/* Arguments of 0 are omitted. */
	for (uint32_t i = 0; (name = arg_name(s->op, i, &len)) != NULL; i++)
		if (s->a[i] != 0)
			fprintf(f, " %.*s=%u", (int)len, name, s->a[i]);
	fprintf(f, "\n");
}

int
seq_save(const char *path, const struct seq *seq, const char *spec, const char *why)
{
	FILE *f = fopen(path, "w");

	if (f == NULL) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -errno;
	}
	fprintf(f, "# device %s: %s\n", spec, why);
	for (uint32_t i = 0; i < seq->n; i++)
		step_print(f, &seq->s[i]);
	return fclose(f) == 0 ? 0 : -errno;
}

static int
parse_arg(struct step *s, const char *word)
{
	size_t key = strcspn(word, "="), len;
	const char *name;
	char *end;

	if (word[key] != '=')
		return -EINVAL;
	for (uint32_t i = 0; (name = arg_name(s->op, i, &len)) != NULL; i++) {
		if (len == key && strncmp(name, word, key) == 0) {
			s->a[i] = (uint32_t)strtoul(word + key + 1, &end, 0);
			return *end == '\0' && end != word + key + 1 ? 0 : -EINVAL;
		}
	}
	return -EINVAL;
}

static int
parse_line(char *line, struct step *s)
{
	char *save, *word = strtok_r(line, " \t\n", &save);

	memset(s, 0, sizeof(*s));
	while (s->op < OPS && strcmp(word, ops[s->op].name) != 0)
		s->op++;
	if (s->op == OPS)
		return -EINVAL;
	while ((word = strtok_r(NULL, " \t\n", &save)) != NULL)
		if (parse_arg(s, word) != 0)
			return -EINVAL;
	return 0;
}

int
seq_load(const char *path, struct seq *seq)
{
	FILE *f = fopen(path, "r");
	char line[512], copy[512];
	uint32_t row = 0;

	seq->n = 0;
	if (f == NULL) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -errno;
	}
	while (fgets(line, sizeof(line), f) != NULL) {
		row++;
		line[strcspn(line, "#\n")] = '\0';
		if (line[strspn(line, " \t")] == '\0')
			continue;
		strcpy(copy, line);
		if (seq->n == MAX_STEPS || parse_line(line, &seq->s[seq->n]) != 0) {
			fprintf(stderr, "%s:%u: not a step: %s\n", path, row, copy);
			fclose(f);
			return -EINVAL;
		}
		seq->n++;
	}
	fclose(f);
	return 0;
}
