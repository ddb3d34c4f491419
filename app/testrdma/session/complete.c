/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Commands for rte_cmdline.
 *
 * rte_cmdline uses one list of instances both to parse and to complete a line. It reports only "Bad
 * arguments" if no instance matches, and calls a line ambiguous if two match. So one instance
 * accepts every line when rte_cmdline parses, and passes the line to command_line(), which prints
 * helpful errors. A result buffer that is not NULL shows that rte_cmdline parses. The other
 * instances exist for completion only, because their last token never matches.
 */
#include <stdlib.h>

#include <cmdline.h>
#include <cmdline_parse.h>

#include "session.h"

/* A token that matches any of several words. */
struct word_token {
	struct cmdline_token_hdr hdr;
	const char *const *words;
	unsigned int n;
	bool hidden; /* this instance does not list the words, because another instance does */
	const char *help;
};

static int
word_parse(struct cmdline_token_hdr *hdr, const char *buf, void *res, unsigned int size)
{
	const struct word_token *token = (const struct word_token *)(const void *)hdr;
	unsigned int i;
	size_t len = 0;

	(void)res;
	(void)size;
	while (!cmdline_isendoftoken(buf[len]))
		len++;
	for (i = 0; i < token->n; i++)
		if (strlen(token->words[i]) == len && memcmp(token->words[i], buf, len) == 0)
			return (int)len;
	return -1;
}

static int
word_count(struct cmdline_token_hdr *hdr)
{
	return (int)((const struct word_token *)(const void *)hdr)->n;
}

static int
word_get(struct cmdline_token_hdr *hdr, int i, char *dst, unsigned int size)
{
	const struct word_token *token = (const struct word_token *)(const void *)hdr;

	if (token->hidden)
		return -1;
	return snprintf(dst, size, "%s", token->words[i]) < (int)size ? 0 : -1;
}

static int
word_help(struct cmdline_token_hdr *hdr, char *dst, unsigned int size)
{
	snprintf(dst, size, "%s", ((const struct word_token *)(const void *)hdr)->help);
	return 0;
}

static struct cmdline_token_ops word_ops = {word_parse, word_count, word_get, word_help};

/* The last token of an instance that exists for completion only. It never matches. */
struct last_token {
	struct cmdline_token_hdr hdr;
	const char *help;
};

static int
never_parse(struct cmdline_token_hdr *hdr, const char *buf, void *res, unsigned int size)
{
	(void)hdr;
	(void)buf;
	(void)res;
	(void)size;
	return -1;
}

static int
never_get(struct cmdline_token_hdr *hdr, int i, char *dst, unsigned int size)
{
	(void)hdr;
	(void)i;
	(void)dst;
	(void)size;
	return -1;
}

static int
one(struct cmdline_token_hdr *hdr)
{
	(void)hdr;
	return 1;
}

static int
last_help(struct cmdline_token_hdr *hdr, char *dst, unsigned int size)
{
	snprintf(dst, size, "%s", ((const struct last_token *)(const void *)hdr)->help);
	return 0;
}

/*
 * Two kinds of last tokens. For free_text_ops rte_cmdline prints the help text, for line_end_ops it
 * prints "[RETURN]".
 */
static struct cmdline_token_ops free_text_ops = {never_parse, NULL, NULL, last_help};
static struct cmdline_token_ops line_end_ops = {never_parse, NULL, NULL, NULL};

static int
line_parse(struct cmdline_token_hdr *hdr, const char *buf, void *res, unsigned int size)
{
	size_t len = strcspn(buf, "\r\n");

	(void)hdr;
	if (res == NULL || len >= size)
		return -1;
	memcpy(res, buf, len);
	((char *)res)[len] = '\0';
	return (int)len;
}

static struct cmdline_token_ops line_ops = {line_parse, one, never_get, NULL};
static struct cmdline_token_hdr line = {&line_ops, 0};

/* A token that matches nothing and completes nothing. */
static struct cmdline_token_ops nothing_ops = {never_parse, one, never_get, NULL};
static struct cmdline_token_hdr nothing = {&nothing_ops, 0};

static void
line_run(void *parsed, struct cmdline *cl, void *data)
{
	(void)cl;
	command_line(data, parsed);
}

/*
 * Tokens that rte_cmdline needs to complete one form of a command: up to three word tokens and a
 * last token.
 */
struct instance {
	struct word_token words[3];
	unsigned int n;
	struct last_token last;
	char syntax[64]; /* syntax of the line, which rte_cmdline prints in brackets after a word */
	struct cmdline_inst *inst;
};

static void
add_word(struct instance *in, const char *const *words, unsigned int n, bool hidden)
{
	struct word_token *token = &in->words[in->n];

	*token = (struct word_token){{&word_ops, 0}, words, n, hidden, in->syntax};
	in->inst->tokens[in->n++] = &token->hdr;
}

/*
 * Adds the last token of a command line's pattern: the end of the line, or free text whose syntax
 * is
 * @rest if @rest is not empty.
 */
static void
add_last(struct instance *in, const char *rest)
{
	in->last.hdr.ops = rest[0] != '\0' ? &free_text_ops : &line_end_ops;
	in->last.help = in->syntax;
	in->inst->tokens[in->n] = &in->last.hdr;
}

static struct cmdline_inst *
inst_create(struct session *s, const char *help)
{
	/* Allocates room for five tokens: three words, the last token, NULL. */
	struct cmdline_inst *inst =
		calloc(1, sizeof(*inst) + 5 * sizeof(inst->tokens[0]) + sizeof(struct instance));

	if (inst == NULL)
		return NULL;
	inst->f = line_run;
	inst->data = s;
	inst->help_str = help;
	return inst;
}

/* Creates the instance that completes a command, or one that completes an argument of it. */
static struct cmdline_inst *
completion_create(struct session *s, const struct command *c, const struct argument *a)
{
	struct cmdline_inst *inst = inst_create(s, a != NULL ? a->help : c->help);
	const char *rest = a == NULL ? c->form : a->form != NULL ? a->form : "";
	struct instance *in;
	unsigned int n = 0;

	if (inst == NULL)
		return NULL;
	in = (struct instance *)(void *)&inst->tokens[5];
	in->inst = inst;
	snprintf(in->syntax, sizeof(in->syntax), "%s%s%s%s%s", c->name, a != NULL ? " " : "",
		 a != NULL ? a->name : "", rest[0] != '\0' ? " " : "", rest);
	/*
	 * rte_cmdline gets an instance for each argument that a command can have, and one for the
	 * command without arguments. Only the instance without arguments lists the command's name,
	 * so that the name is listed once.
	 */
	add_word(in, &c->name, 1, a != NULL);
	if (a != NULL) {
		add_word(in, &a->name, 1, false);
		while (a->values != NULL && a->values[n] != NULL)
			n++;
		if (n > 0) {
			add_word(in, a->values, n, false);
			rest += strcspn(rest, " ");
		}
	}
	/*
	 * If the command has arguments, it has one further instance per argument, and those
	 * complete the rest of the line.
	 */
	if (a == NULL && c->args != NULL)
		inst->tokens[in->n] = &nothing;
	else
		add_last(in, rest);
	return inst;
}

struct cmdline_inst **
complete_create(struct session *s)
{
	struct cmdline_inst **ctx;
	const struct command *c;
	const struct argument *a;
	unsigned int n = 0;

	for (c = commands; c->name != NULL; c++) {
		n++;
		for (a = c->args; a != NULL && a->name != NULL; a++)
			n++;
	}
	ctx = calloc(n + 2, sizeof(struct cmdline_inst *));
	if (ctx == NULL)
		return NULL;
	n = 0;
	ctx[n] = inst_create(s, "a command");
	if (ctx[n] == NULL)
		goto fail;
	ctx[n++]->tokens[0] = &line;
	for (c = commands; c->name != NULL; c++) {
		ctx[n] = completion_create(s, c, NULL);
		if (ctx[n++] == NULL)
			goto fail;
		for (a = c->args; a != NULL && a->name != NULL; a++) {
			ctx[n] = completion_create(s, c, a);
			if (ctx[n++] == NULL)
				goto fail;
		}
	}
	return ctx;

fail:
	complete_free(ctx);
	return NULL;
}

void
complete_free(struct cmdline_inst **ctx)
{
	unsigned int n;

	for (n = 0; ctx != NULL && ctx[n] != NULL; n++)
		free(ctx[n]);
	free(ctx);
}
