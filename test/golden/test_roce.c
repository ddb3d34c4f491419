/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Packets that Linux's rdma_rxe sent. Each is parsed, built again from the parsed fields and
 * compared byte for byte; its ICRC is recomputed. A packet that cannot be parsed fails the test.
 * The number of packets of each opcode must be that of the recordings.
 */
#include "golden.h"
#include "pcap.h"
#include "roce_frame.h"

static void
check_packet(const struct roce_frame *f, const uint8_t *ip, const struct bb_roce_pkt *pkt,
	     const char *where)
{
	uint8_t out[ROCE_FRAME_MAX];
	struct bb_roce_iov iov = {pkt->payload, pkt->len};
	struct roce_frame again;
	size_t len, ip_bytes = f->ip_len == 20 ? 0 : f->ip_len;

	if (!roce_frame_icrc_ok(f, ip))
		fail_msg("%s: ICRC is not what we compute", where);
	len = roce_frame_build(out, &f->net, pkt, &iov, 1);
	assert_int_equal(len, f->ip_len + 8 + f->bth_len + BB_ROCE_ICRC_LEN);
	assert_true(roce_frame_split(&again, out, len));
	/* The UDP checksum is the kernel's choice, the IPv4 ID its counter. */
	assert_memory_equal(out, ip, ip_bytes);
	assert_memory_equal(again.udp, f->udp, 6);
	if (memcmp(again.bth, f->bth, f->bth_len) != 0)
		fail_msg("%s: bytes built differ", where);
	if (ip_bytes != 0)
		assert_memory_equal(again.icrc, f->icrc, BB_ROCE_ICRC_LEN);
}

static unsigned int
read_all(const char *name, struct tally *t)
{
	struct pcap r;
	unsigned int n = 0;
	const uint8_t *p;
	char where[128];
	size_t len;

	pcap_open(&r, name);
	while (pcap_next(&r, &p, &len)) {
		enum bb_roce_drop why;
		struct bb_roce_pkt pkt;
		struct roce_frame f;

		snprintf(where, sizeof(where), "%s, packet %u", name, ++n);
		assert_true(len > PCAP_ETH_LEN);
		if (!roce_frame_split(&f, p + PCAP_ETH_LEN, len - PCAP_ETH_LEN))
			fail_msg("%s: not RoCEv2", where);
		why = bb_roce_parse(&pkt, f.bth, f.bth_len);
		if (why != BB_ROCE_OK)
			fail_msg("%s: %s", where, bb_roce_drop_str(why));
		check_packet(&f, p + PCAP_ETH_LEN, &pkt, where);
		assert_int_equal(pkt.pkey, 0xffff);
		tally_add(t, "%s, %s", bb_roce_ops[pkt.opcode].name,
			  f.ip_len == 40 ? "IPv6" : "IPv4");
		if ((pkt.syndrome & BB_ROCE_AETH_KIND) != 0)
			tally_add(t, "syndrome 0x%02x", pkt.syndrome);
		if (bb_roce_pad(pkt.len) != 0)
			tally_add(t, "pad %u", bb_roce_pad(pkt.len));
	}
	free(r.bytes);
	tally_print(t, name);
	return n;
}

struct count {
	const char *name;
	unsigned int n;
};

static void
expect(const struct tally *t, const struct count *want, unsigned int rows)
{
	assert_int_equal(t->rows, rows);
	for (unsigned int i = 0; i < rows; i++)
		if (tally_get(t, want[i].name) != want[i].n)
			fail_msg("%u of \"%s\", not %u", tally_get(t, want[i].name), want[i].name,
				 want[i].n);
}

TEST(test_recorded_conversations_parse_and_rebuild)
{
	static const struct count want[] = {
		{"RC WRITE_ONLY, IPv4", 13},
		{"RC ACK, IPv4", 55},
		{"RC WRITE_FIRST, IPv4", 5},
		{"RC WRITE_MIDDLE, IPv4", 5},
		{"RC WRITE_LAST, IPv4", 5},
		{"RC READ_REQUEST, IPv4", 13},
		{"RC READ_RESP_ONLY, IPv4", 8},
		{"RC READ_RESP_FIRST, IPv4", 5},
		{"RC READ_RESP_MIDDLE, IPv4", 5},
		{"RC READ_RESP_LAST, IPv4", 5},
		{"RC FETCH_ADD, IPv4", 5},
		{"RC ATOMIC_ACK, IPv4", 10},
		{"RC CMP_SWAP, IPv4", 5},
		{"RC SEND_ONLY, IPv4", 22},
		{"RC SEND_FIRST, IPv4", 5},
		{"RC SEND_MIDDLE, IPv4", 5},
		{"RC SEND_LAST, IPv4", 5},
		{"UD SEND_ONLY, IPv4", 20},
		{"RC WRITE_ONLY, IPv6", 10},
		{"RC ACK, IPv6", 10},
		{"RC READ_REQUEST, IPv6", 5},
		{"RC READ_RESP_ONLY, IPv6", 5},
		{"pad 3", 5},
		{"UC WRITE_ONLY, IPv4", 10},
		{"RC WRITE_ONLY_IMM, IPv4", 10},
	};
	struct tally t = {.rows = 0};

	assert_int_equal(read_all("rxe-6.1-conversations.pcap", &t), 246);
	expect(&t, want, sizeof(want) / sizeof(want[0]));
}

TEST(test_recorded_losses_parse_and_rebuild)
{
	static const struct count want[] = {
		{"RC WRITE_FIRST, IPv4", 6},
		{"RC WRITE_MIDDLE, IPv4", 22},
		{"RC WRITE_LAST, IPv4", 9},
		{"RC ACK, IPv4", 32},
		{"syndrome 0x60", 5},
		{"RC READ_REQUEST, IPv4", 9},
		{"RC READ_RESP_MIDDLE, IPv4", 26},
		{"RC READ_RESP_LAST, IPv4", 9},
		{"RC READ_RESP_FIRST, IPv4", 6},
		{"RC FETCH_ADD, IPv4", 14},
		{"RC ATOMIC_ACK, IPv4", 11},
		{"RC SEND_ONLY, IPv4", 31},
		{"syndrome 0x2c", 2},
	};
	struct tally t = {.rows = 0};

	assert_int_equal(read_all("rxe-6.1-loss.pcap", &t), 175);
	expect(&t, want, sizeof(want) / sizeof(want[0]));
}

/* Conversations of test/interop/talks/conversations.py and the opcodes that distinguish each. */
TEST(test_conversations_by_purpose_have_their_opcodes)
{
	static const struct {
		const char *file;
		unsigned int packets;
		struct count count[4];
	} want[] = {
		{"rxe-6.1-rc-messages.pcap",
		 85,
		 {{"RC SEND_LAST_IMM, IPv4", 2},
		  {"RC SEND_ONLY_IMM, IPv4", 5},
		  {"RC WRITE_LAST_IMM, IPv4", 2},
		  {"pad 3", 15}}},
		{"rxe-6.1-rc-ipv6.pcap",
		 85,
		 {{"RC READ_RESP_MIDDLE, IPv6", 1},
		  {"RC SEND_MIDDLE, IPv6", 2},
		  {"RC ACK, IPv6", 28},
		  {"pad 2", 5}}},
		{"rxe-6.1-rc-mtu4096.pcap",
		 34,
		 {{"RC SEND_FIRST, IPv4", 2}, {"RC READ_RESP_FIRST, IPv4", 2}}},
		{"rxe-6.1-rc-atomics.pcap",
		 8,
		 {{"RC CMP_SWAP, IPv4", 2}, {"RC FETCH_ADD, IPv4", 2}}},
		{"rxe-6.1-rc-invalidate.pcap",
		 14,
		 {{"RC SEND_ONLY_INV, IPv4", 1},
		  {"RC SEND_LAST_INV, IPv4", 1},
		  {"syndrome 0x62", 2}}},
		{"rxe-6.1-rc-errors.pcap", 18, {{"syndrome 0x62", 6}, {"syndrome 0x63", 1}}},
		{"rxe-6.1-rc-rnr.pcap", 14, {{"syndrome 0x2c", 3}, {"syndrome 0x30", 3}}},
		{"rxe-6.1-uc-messages.pcap",
		 40,
		 {{"UC SEND_MIDDLE, IPv4", 2},
		  {"UC SEND_LAST_IMM, IPv4", 2},
		  {"UC WRITE_LAST, IPv4", 2},
		  {"UC WRITE_ONLY_IMM, IPv4", 5}}},
		{"rxe-6.1-ud-messages.pcap",
		 20,
		 {{"UD SEND_ONLY, IPv4", 10}, {"UD SEND_ONLY_IMM, IPv4", 10}}},
		{"rxe-6.1-ud-ipv6.pcap",
		 20,
		 {{"UD SEND_ONLY, IPv6", 10}, {"UD SEND_ONLY_IMM, IPv6", 10}}},
		{"rxe-6.1-lossy-atomics.pcap",
		 75,
		 {{"RC FETCH_ADD, IPv4", 43}, {"RC ATOMIC_ACK, IPv4", 32}}},
	};

	for (unsigned int i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct tally t = {.rows = 0};

		assert_int_equal(read_all(want[i].file, &t), want[i].packets);
		for (unsigned int j = 0; j < 4 && want[i].count[j].name != NULL; j++)
			if (tally_get(&t, want[i].count[j].name) != want[i].count[j].n)
				fail_msg("%s: %u of \"%s\", not %u", want[i].file,
					 tally_get(&t, want[i].count[j].name),
					 want[i].count[j].name, want[i].count[j].n);
	}
}

TEST_MAIN(0)
