/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Settings of subsystems, from the command line or the configuration file. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "nvmf_program.h"

#define NQN_FORM "give a qualified name of up to %u characters, as in nqn.2026-01.org.example:disk"

int
config_wrong(const struct config *c, const char *name, const char *value, const char *fmt, ...)
{
	char why[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (c->line != 0)
		say("%s:%u: %s = %s: %s", c->ini.path, c->line, name, value, why);
	else
		say("--%s %s: %s", name, value, why);
	return -1;
}

static struct subsystem *
current(struct config *c, const char *name, const char *value)
{
	if (c->current == NULL)
		(void)config_wrong(c, name, value,
				   c->line != 0 ? "put it into a section [subsystem NQN]"
						: "give --subsystem first");
	return c->current;
}

/*
 * Writes a serial number that is computed from the subsystem's name (FNV-1a), so that it does not
 * depend on other subsystems.
 */
static void
default_serial(char to[CONFIG_SERIAL], const char *nqn)
{
	uint64_t h = 0xcbf29ce484222325ull;

	while (*nqn != '\0')
		h = (h ^ (uint8_t)*nqn++) * 0x100000001b3ull;
	snprintf(to, CONFIG_SERIAL, "BB%016" PRIX64, h);
}

int
config_subsystem(struct config *c, const char *nqn)
{
	struct subsystem *s;
	uint32_t i;

	if (c->subsystems == MAX_SUBSYSTEMS)
		return config_wrong(c, "subsystem", nqn, "at most %u subsystems", MAX_SUBSYSTEMS);
	if (!nvmf_nqn_valid(nqn) || strcmp(nqn, NVMF_DISCOVERY) == 0)
		return config_wrong(c, "subsystem", nqn, NQN_FORM, NVMF_NQN_MAX);
	for (i = 0; i < c->subsystems; i++)
		if (strcmp(c->subsystem[i].nqn, nqn) == 0)
			return config_wrong(c, "subsystem", nqn, "the name occurs twice");
	s = &c->subsystem[c->subsystems];
	default_serial(c->serials[c->subsystems], nqn);
	s->serial = c->serials[c->subsystems++];
	s->nqn = nqn;
	s->line = c->line;
	c->current = s;
	return 0;
}

int
config_host(struct config *c, const char *nqn)
{
	struct subsystem *s = current(c, "host", nqn);

	if (s == NULL)
		return -1;
	if (!nvmf_nqn_valid(nqn))
		return config_wrong(c, "host", nqn, NQN_FORM, NVMF_NQN_MAX);
	if (s->hosts == MAX_HOSTS)
		return config_wrong(c, "host", nqn, "at most %u hosts of a subsystem", MAX_HOSTS);
	s->host[s->hosts++] = nqn;
	return 0;
}

int
config_serial(struct config *c, const char *text)
{
	struct subsystem *s = current(c, "serial", text);

	if (s == NULL)
		return -1;
	if (text[0] == '\0' || strlen(text) > 20)
		return config_wrong(c, "serial", text, "give 1 to 20 characters");
	s->serial = text;
	return 0;
}

/* ---- Namespaces */

/* Parses the number of @len characters at @text, a part of the value of a namespace. */
static int
number(const struct config *c, const char *spec, const char *text, size_t len, uint64_t min,
       uint64_t max, uint64_t *out)
{
	const char *wrong = number_parse(text, len, out);

	if (wrong == NULL && *out >= min && *out <= max)
		return 0;
	return config_wrong(c, "namespace", spec,
			    "\"%.*s\" %s; give a number from %" PRIu64 " to %" PRIu64, (int)len,
			    text, wrong != NULL ? wrong : "is out of range", min, max);
}

/* Parses one of the words that follow the first comma of a namespace's value. */
static int
parse_word(const struct config *c, struct space *to, const char *spec, const char *word, size_t len)
{
	uint64_t nsid;

	if (len == 2 && memcmp(word, "ro", 2) == 0) {
		to->read_only = true;
	} else if (len == 8 && memcmp(word, "buffered", 8) == 0 && to->kind == SPACE_FILE) {
		to->buffered = true;
	} else if (len > 5 && memcmp(word, "size=", 5) == 0 && to->kind == SPACE_FILE) {
		return number(c, spec, word + 5, len - 5, 4096, INT64_MAX, &to->size);
	} else if (len > 5 && memcmp(word, "nsid=", 5) == 0) {
		if (number(c, spec, word + 5, len - 5, 1, MAX_NAMESPACES, &nsid) != 0)
			return -1;
		to->nsid = (uint32_t)nsid;
	} else {
		return config_wrong(c, "namespace", spec,
				    "\"%.*s\" is unknown: after a comma give ro, nsid=N, and for a "
				    "file size=SIZE or buffered",
				    (int)len, word);
	}
	return 0;
}

static bool
has_nsid(const struct subsystem *s, uint32_t nsid)
{
	uint32_t i;

	for (i = 0; i < s->spaces; i++)
		if (s->space[i].nsid == nsid)
			return true;
	return false;
}

/* Adds a namespace that was parsed. If it has no NSID, it gets the first free one. */
static int
add(struct config *c, struct subsystem *s, struct space *space, const char *spec)
{
	if (space->nsid != 0 && has_nsid(s, space->nsid))
		return config_wrong(c, "namespace", spec, "nsid %u occurs twice in the subsystem",
				    space->nsid);
	if (space->nsid == 0)
		for (space->nsid = 1; has_nsid(s, space->nsid); space->nsid++)
			;
	s->space[s->spaces++] = *space;
	return 0;
}

int
config_namespace(struct config *c, const char *spec)
{
	static const char *const kinds[] = {"malloc:", "null:", "file:"};
	struct subsystem *s = current(c, "namespace", spec);
	struct space space = {.line = c->line};
	const char *word = spec, *first;
	size_t len = strcspn(spec, ",");
	uint32_t i;

	if (s == NULL)
		return -1;
	if (s->spaces == MAX_NAMESPACES)
		return config_wrong(c, "namespace", spec, "at most %u namespaces of a subsystem",
				    MAX_NAMESPACES);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strncmp(spec, kinds[i], strlen(kinds[i])) == 0)
			break;
	if (i == sizeof(kinds) / sizeof(kinds[0]) || len == strlen(kinds[i]))
		return config_wrong(c, "namespace", spec,
				    "give file:PATH, malloc:SIZE or null:SIZE");
	space.kind = (enum space_kind)i;
	first = spec + strlen(kinds[i]);
	len -= strlen(kinds[i]);
	if (space.kind != SPACE_FILE &&
	    number(c, spec, first, len, 4096, 1ull << 50, &space.size) != 0)
		return -1;
	for (word = first + len; *word == ','; word += len) {
		word++;
		len = strcspn(word, ",");
		if (parse_word(c, &space, spec, word, len) != 0)
			return -1;
	}
	if (space.kind == SPACE_FILE) {
		space.path = strndup(first, strcspn(first, ","));
		if (space.path == NULL)
			return config_wrong(c, "namespace", spec, "no memory");
	}
	if (add(c, s, &space, spec) == 0)
		return 0;
	free(space.path);
	return -1;
}

void
config_free(struct config *c)
{
	uint32_t i, j;

	for (i = 0; i < c->subsystems; i++)
		for (j = 0; j < c->subsystem[i].spaces; j++)
			free(c->subsystem[i].space[j].path);
	ini_close(&c->ini);
}
