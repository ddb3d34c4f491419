/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "itch.h"

#define MAX_BYTES (UINT64_C(1) << 32)

static int
fault_at(struct itch_fault *fault, const char *what, uint64_t offset, uint32_t message)
{
	*fault = (struct itch_fault){what, offset, message};
	return -EBADMSG;
}

/*
 * Locates and checks the messages. It is called before the checksum is compared. So the error of a
 * truncated or badly assembled file names the message, and not only a wrong checksum.
 */
static int
find_messages(struct itch_file *f, struct itch_fault *fault)
{
	const uint8_t *end = f->image + f->size, *p = f->image + ITCH_HEADER;
	const char *wrong;
	struct itch_msg m;
	uint64_t ns = 0;
	uint32_t i, len;

	for (i = 0; i < f->h.messages; i++, p += len) {
		uint64_t at = (uint64_t)(p - f->image);

		if (end - p < 2)
			return fault_at(fault, "is missing: the file ends", at, i + 1);
		len = (uint32_t)p[0] << 8 | p[1];
		p += 2;
		if (len > (uint64_t)(end - p))
			return fault_at(fault, "is incomplete: the file ends", at, i + 1);
		wrong = itch_decode(p, len, &m);
		if (wrong == NULL && m.locate > f->h.symbols)
			wrong = "has a symbol beyond the number in the header";
		if (wrong == NULL && m.type != ITCH_SYSTEM && m.locate == 0)
			wrong = "has no symbol";
		if (wrong == NULL && m.ns < ns)
			wrong = "is older than the message before it";
		if (wrong != NULL)
			return fault_at(fault, wrong, at, i + 1);
		ns = m.ns;
		f->msg[i] = p;
	}
	if (p != end)
		return fault_at(fault, "there is data after the last message",
				(uint64_t)(p - f->image), 0);
	return 0;
}

int
itch_file_open(struct itch_file *f, uint8_t *image, size_t size, struct itch_fault *fault)
{
	const char *wrong;
	size_t room;
	int rc;

	memset(f, 0, sizeof(*f));
	f->image = image;
	f->size = size;
	wrong = itch_header_decode(image, size, &f->h);
	if (wrong != NULL)
		return fault_at(fault, wrong, 0, 0);
	if (f->h.bytes < size - ITCH_HEADER)
		return fault_at(fault, "it is longer than its header says",
				ITCH_HEADER + f->h.bytes, 0);
	/*
	 * Limits the array by the file's size, because the header may be wrong. The search ends
	 * where the file ends.
	 */
	room = size / (2 + ITCH_MIN);
	f->msg = calloc((f->h.messages < room ? f->h.messages : room) + 1, sizeof(*f->msg));
	if (f->msg == NULL)
		return -ENOMEM;
	rc = find_messages(f, fault);
	if (rc != 0)
		return rc;
	if (f->h.bytes != size - ITCH_HEADER)
		return fault_at(fault, "it is shorter than its header says", size, 0);
	if (itch_crc(0, image + ITCH_HEADER, size - ITCH_HEADER) != f->h.crc)
		return fault_at(fault, "its checksum is wrong: bytes were changed", ITCH_HEADER, 0);
	return 0;
}

int
itch_file_read(struct itch_file *f, const char *path, struct itch_fault *fault)
{
	FILE *in = fopen(path, "rb");
	uint8_t *image = NULL;
	struct stat st;
	size_t size;
	int rc;

	memset(f, 0, sizeof(*f));
	if (in == NULL || fstat(fileno(in), &st) != 0) {
		rc = -errno;
		goto out;
	}
	if (S_ISDIR(st.st_mode)) {
		rc = -EISDIR;
		goto out;
	}
	if ((uint64_t)st.st_size > MAX_BYTES) {
		rc = -EFBIG;
		goto out;
	}
	size = (size_t)st.st_size;
	image = malloc(size + 1);
	if (image == NULL) {
		rc = -ENOMEM;
		goto out;
	}
	/*
	 * Reads at most the size from fstat(): 0 for a file that is not regular, and the old size
	 * for a file that grows.
	 */
	size = fread(image, 1, size, in);
	if (ferror(in)) {
		rc = -EIO;
		free(image);
		goto out;
	}
	rc = itch_file_open(f, image, size, fault);
out:
	if (in != NULL)
		fclose(in);
	return rc;
}

void
itch_file_free(struct itch_file *f)
{
	free(f->msg);
	free(f->image);
	memset(f, 0, sizeof(*f));
}
