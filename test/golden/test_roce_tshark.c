/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * An independent reader of our packets. tshark dissects one packet of each opcode, over IPv4 and
 * IPv6, and must find every field as it was built. Without tshark the test is skipped.
 */
#include <inttypes.h>
#include <unistd.h>

#include "golden.h"
#include "roce_frame.h"

#define SKIP      77
#define MAX_LINE  4096u
#define IP6_ETHER 0x86ddu
#define IP4_ETHER 0x0800u

/* Fields requested from tshark, in this order; a field that the packet lacks is empty. */
enum {
	F_OPCODE,
	F_SE,
	F_MIGREQ,
	F_PAD,
	F_TVER,
	F_PKEY,
	F_DQPN,
	F_ACKREQ,
	F_PSN,
	F_QKEY,
	F_SQPN,
	F_VA,
	F_RKEY,
	F_DMALEN,
	F_SWAP,
	F_COMPARE,
	F_SYNDROME,
	F_MSN,
	F_ORIG,
	F_IMM,
	F_IETH,
	F_ICRC,
	F_SPORT,
	F_IP4_DSFIELD,
	F_IP6_TCLASS,
	F_IP6_FLOW,
	FIELDS
};
static const char *const names[FIELDS] = {
	[F_OPCODE] = "infiniband.bth.opcode",
	[F_SE] = "infiniband.bth.se",
	[F_MIGREQ] = "infiniband.bth.m",
	[F_PAD] = "infiniband.bth.padcnt",
	[F_TVER] = "infiniband.bth.tver",
	[F_PKEY] = "infiniband.bth.p_key",
	[F_DQPN] = "infiniband.bth.destqp",
	[F_ACKREQ] = "infiniband.bth.a",
	[F_PSN] = "infiniband.bth.psn",
	[F_QKEY] = "infiniband.deth.q_key",
	[F_SQPN] = "infiniband.deth.srcqp",
	[F_VA] = "infiniband.reth.va",
	[F_RKEY] = "infiniband.reth.r_key",
	[F_DMALEN] = "infiniband.reth.dmalen",
	[F_SWAP] = "infiniband.atomiceth.swapdt",
	[F_COMPARE] = "infiniband.atomiceth.cmpdt",
	[F_SYNDROME] = "infiniband.aeth.syndrome",
	[F_MSN] = "infiniband.aeth.msn",
	[F_ORIG] = "infiniband.atomicacketh.origremdt",
	[F_IMM] = "infiniband.immdt",
	[F_IETH] = "infiniband.ieth",
	[F_ICRC] = "infiniband.invariant.crc",
	[F_SPORT] = "udp.srcport",
	[F_IP4_DSFIELD] = "ip.dsfield",
	[F_IP6_TCLASS] = "ipv6.tclass",
	[F_IP6_FLOW] = "ipv6.flow",
};

struct sent {
	struct bb_roce_pkt pkt;
	struct bb_roce_net net;
	bool ip6;
	uint32_t icrc; /* first byte on the wire in the most significant byte */
};
static struct sent sent[128];
static unsigned int sent_n;

static uint64_t
rnd(void)
{
	static uint64_t x = 77;

	x = x * 6364136223846793005u + 1442695040888963407u;
	return x ^ x >> 29;
}

static void
put_le32(FILE *f, uint32_t v)
{
	for (unsigned int i = 0; i < 4; i++)
		fputc((int)(v >> 8 * i & 0xff), f);
}

static void
write_frame(FILE *f, uint8_t opcode, bool ip6)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	uint8_t frame[ROCE_FRAME_MAX], payload[64];
	struct sent *s = &sent[sent_n++];
	struct bb_roce_iov iov = {payload, 0};
	struct bb_roce_pkt *k = &s->pkt;
	size_t len;

	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)rnd();
	/* tshark takes packets of UD to QP 1 and some payloads for management datagrams. */
	payload[0] = 0xee;
	s->ip6 = ip6;
	for (size_t i = 0; i < 16; i++) {
		s->net.src[i] = (uint8_t)rnd();
		s->net.dst[i] = (uint8_t)rnd();
	}
	s->net.src[0] = s->net.dst[0] = 0x20;
	if (!ip6) {
		memcpy(s->net.src, mapped, 12);
		memcpy(s->net.dst, mapped, 12);
		s->net.src[12] = s->net.dst[12] = 10;
	}
	s->net.sport = (uint16_t)(0xc000 | rnd());
	s->net.tclass = (uint8_t)rnd();
	s->net.hop_limit = 64;
	s->net.flow_label = (uint32_t)rnd() & 0xfffff;
	k->opcode = opcode;
	k->flags = (uint8_t)(rnd() & 0x1f);
	k->pkey = (uint16_t)rnd();
	k->dqpn = ((uint32_t)rnd() & 0xffffff) | 0x100;
	k->psn = (uint32_t)rnd() & 0xffffff;
	k->va = rnd();
	k->rkey = (uint32_t)rnd();
	k->dmalen = (uint32_t)rnd();
	k->swap_add = rnd();
	k->compare = rnd();
	k->syndrome = (uint8_t)(rnd() & 0x1f);
	k->msn = (uint32_t)rnd() & 0xffffff;
	k->orig = rnd();
	k->imm = (uint32_t)rnd();
	k->qkey = (uint32_t)rnd();
	k->sqpn = ((uint32_t)rnd() & 0xffffff) | 0x100;
	if (bb_roce_ops[opcode].flags & BB_ROCE_F_PAYLOAD)
		k->len = 29 + sent_n % 4;
	iov.len = k->len;
	len = roce_frame_build(frame, &s->net, k, &iov, 1);
	for (size_t i = 0; i < 4; i++)
		s->icrc = s->icrc << 8 | frame[len - 4 + i];
	put_le32(f, sent_n);
	put_le32(f, 0);
	put_le32(f, (uint32_t)len + 14);
	put_le32(f, (uint32_t)len + 14);
	for (size_t i = 0; i < 12; i++)
		fputc(2, f);
	fputc(ip6 ? IP6_ETHER >> 8 : IP4_ETHER >> 8, f);
	fputc(ip6 ? IP6_ETHER & 0xff : IP4_ETHER & 0xff, f);
	assert_int_equal(fwrite(frame, 1, len, f), len);
}

static void
expect(const struct sent *s, char *const *col, int field, bool has, uint64_t want)
{
	char *end;

	if (!has) {
		if (col[field][0] != '\0')
			fail_msg("%s: tshark found %s = %s", bb_roce_ops[s->pkt.opcode].name,
				 names[field], col[field]);
		return;
	}
	if (strtoull(col[field], &end, 0) != want || end == col[field] || *end != '\0')
		fail_msg("%s: %s is \"%s\", not 0x%" PRIx64, bb_roce_ops[s->pkt.opcode].name,
			 names[field], col[field], want);
}

/* tshark prints bytes as hex digits without a prefix. */
static void
expect_bytes(const struct sent *s, char *const *col, int field, bool has, uint32_t value)
{
	char want[16] = "";

	if (has)
		snprintf(want, sizeof(want), "%08x", value);
	if (strcmp(col[field], want) != 0)
		fail_msg("%s: %s is \"%s\", not \"%s\"", bb_roce_ops[s->pkt.opcode].name,
			 names[field], col[field], want);
}

static uint32_t
in_wire_order(uint32_t v)
{
	uint8_t b[4];

	memcpy(b, &v, 4);
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void
check_line(const struct sent *s, char *line)
{
	const struct bb_roce_pkt *k = &s->pkt;
	uint32_t f = bb_roce_ops[k->opcode].flags;
	bool reth = f & BB_ROCE_F_RETH, atomic = f & BB_ROCE_F_ATOMICETH;
	char *col[FIELDS], *at = line;

	line[strcspn(line, "\n")] = '\0';
	for (int i = 0; i < FIELDS; i++) {
		col[i] = strsep(&at, "\t");
		if (col[i] == NULL)
			fail_msg("%s: tshark gave %d fields", bb_roce_ops[k->opcode].name, i);
	}
	assert_null(at);
	expect(s, col, F_OPCODE, true, k->opcode);
	expect(s, col, F_SE, true, (k->flags & BB_ROCE_SE) != 0);
	expect(s, col, F_MIGREQ, true, (k->flags & BB_ROCE_MIGREQ) != 0);
	expect(s, col, F_PAD, true, (4 - k->len % 4) % 4);
	expect(s, col, F_TVER, true, 0);
	expect(s, col, F_PKEY, true, k->pkey);
	expect(s, col, F_DQPN, true, k->dqpn);
	expect(s, col, F_ACKREQ, true, (k->flags & BB_ROCE_ACKREQ) != 0);
	expect(s, col, F_PSN, true, k->psn);
	expect(s, col, F_QKEY, f & BB_ROCE_F_DETH, k->qkey);
	expect(s, col, F_SQPN, f & BB_ROCE_F_DETH, k->sqpn);
	expect(s, col, F_VA, reth || atomic, k->va);
	expect(s, col, F_RKEY, reth || atomic, k->rkey);
	expect(s, col, F_DMALEN, reth, k->dmalen);
	expect(s, col, F_SWAP, atomic, k->swap_add);
	expect(s, col, F_COMPARE, atomic, k->compare);
	expect(s, col, F_SYNDROME, f & BB_ROCE_F_AETH, k->syndrome);
	expect(s, col, F_MSN, f & BB_ROCE_F_AETH, k->msn);
	expect(s, col, F_ORIG, f & BB_ROCE_F_ATOMICACK, k->orig);
	expect_bytes(s, col, F_IMM, f & BB_ROCE_F_IMM, in_wire_order(k->imm));
	expect_bytes(s, col, F_IETH, f & BB_ROCE_F_IETH, k->imm);
	/* tshark stops at the zeros of a CNP. */
	expect(s, col, F_ICRC, k->opcode != BB_ROCE_CNP, s->icrc);
	expect(s, col, F_SPORT, true, s->net.sport);
	expect(s, col, F_IP4_DSFIELD, !s->ip6, s->net.tclass);
	expect(s, col, F_IP6_TCLASS, s->ip6, s->net.tclass);
	expect(s, col, F_IP6_FLOW, s->ip6, s->net.flow_label);
}

TEST(test_tshark_decodes_every_opcode)
{
	char path[] = "/tmp/bluebell-tshark-XXXXXX", line[MAX_LINE];
	int fd = mkstemp(path), opcode, i;
	unsigned int n = 0;
	size_t cmd_len;
	char *cmd;
	FILE *f;

	assert_true(fd >= 0);
	f = fdopen(fd, "wb");
	assert_non_null(f);
	put_le32(f, 0xa1b2c3d4);
	put_le32(f, 2 | 4 << 16);
	put_le32(f, 0);
	put_le32(f, 0);
	put_le32(f, 65535);
	put_le32(f, 1);
	for (opcode = 0; opcode < 256; opcode++)
		if (bb_roce_ops[opcode].flags != 0) {
			write_frame(f, (uint8_t)opcode, false);
			write_frame(f, (uint8_t)opcode, true);
		}
	assert_int_equal(fclose(f), 0);

	f = open_memstream(&cmd, &cmd_len);
	/*
	 * tshark shows immediate data twice, the header and its content; the first one is used.
	 */
	fprintf(f, "tshark -n -r %s -T fields -E occurrence=f", path);
	for (i = 0; i < FIELDS; i++)
		fprintf(f, " -e %s", names[i]);
	fprintf(f, " 2>/dev/null");
	fclose(f);
	f = popen(cmd, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		assert_true(n < sent_n);
		check_line(&sent[n++], line);
	}
	assert_int_equal(pclose(f), 0);
	free(cmd);
	unlink(path);
	assert_int_equal(n, sent_n);
	printf("tshark agrees about %u packets\n", n);
}

int
main(void)
{
	if (system("tshark -v >/dev/null 2>&1") != 0) {
		printf("SKIP: tshark is not installed\n");
		return SKIP;
	}
	return bb_test_run(__FILE__, NULL, NULL);
}
