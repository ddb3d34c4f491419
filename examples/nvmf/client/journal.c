/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Journal: a text file that lists the writes that a target has acknowledged. With it another run
 * checks that their data is still there. The first line has parameters. Then there is a line for
 * each written block: its offset, the number of the last acknowledged write, and the number of the
 * last write sent. The last line has the number of blocks.
 *
 *   nvmf_client 1 bs 4096 seed 1
 *   12288 17 19
 *   end 1
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "output.h"

#define HEADER  "nvmf_client 1 bs %u seed %" PRIu64 "\n"
#define SCANNED "nvmf_client 1 bs %" SCNu32 " seed %" SCNu64 "\n"

int
journal_write(const struct options *o, const struct job *jobs, uint32_t n)
{
	FILE *f = output_open("journal", o->journal);
	uint64_t lines = 0, k;
	uint32_t i;

	if (f == NULL)
		return -1;
	fprintf(f, HEADER, o->bs, o->seed);
	for (i = 0; i < n; i++) {
		const struct job *j = &jobs[i];

		for (k = 0; j->table != NULL && k < j->blocks; k++) {
			if (j->table[k].sent == 0)
				continue;
			fprintf(f, "%" PRIu64 " %u %u\n", (j->first + k) * o->bs, j->table[k].acked,
				j->table[k].sent);
			lines++;
		}
	}
	fprintf(f, "end %" PRIu64 "\n", lines);
	return output_close(f, "journal", o->journal);
}

static struct block *
find(struct job *jobs, uint32_t n, uint64_t block)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (block >= jobs[i].first && block - jobs[i].first < jobs[i].blocks)
			return &jobs[i].table[block - jobs[i].first];
	return NULL;
}

static const char *
scan(FILE *f, const struct options *o, struct job *jobs, uint32_t n, char why[128])
{
	uint64_t offset, seed, lines = 0, told;
	uint32_t bs;
	struct block b, *to;
	char line[128];

	if (fgets(line, sizeof(line), f) == NULL || sscanf(line, SCANNED, &bs, &seed) != 2)
		return "is no journal of nvmf_client";
	if (bs != o->bs || seed != o->seed) {
		snprintf(why, 128, "is of another run: give --bs %u --seed %" PRIu64, bs, seed);
		return why;
	}
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "end %" SCNu64 "\n", &told) == 1)
			return told == lines ? NULL : "has lost lines";
		memset(&b, 0, sizeof(b));
		if (sscanf(line, "%" SCNu64 " %u %u\n", &offset, &b.acked, &b.sent) != 3 ||
		    offset % bs != 0 || b.acked > b.sent)
			return "has a line that is damaged";
		to = find(jobs, n, offset / bs);
		if (to == NULL)
			return "has blocks outside of --offset and --size, or of the device";
		*to = b;
		lines++;
	}
	return "is cut short";
}

/* Limits each job to the blocks that the journal names. */
static void
count_named(struct job *jobs, uint32_t n)
{
	uint64_t k;
	uint32_t i;

	for (i = 0; i < n; i++) {
		jobs[i].ios = 0;
		for (k = 0; k < jobs[i].blocks; k++)
			jobs[i].ios += jobs[i].table[k].sent != 0;
	}
}

int
journal_read(const struct options *o, struct job *jobs, uint32_t n)
{
	FILE *f = fopen(o->check, "r");
	const char *wrong;
	char why[128];

	if (f == NULL) {
		say("--check %s: %s", o->check, strerror(errno));
		return -errno;
	}
	wrong = scan(f, o, jobs, n, why);
	fclose(f);
	if (wrong == NULL) {
		count_named(jobs, n);
		return 0;
	}
	say("--check %s: the file %s", o->check, wrong);
	return -EINVAL;
}
