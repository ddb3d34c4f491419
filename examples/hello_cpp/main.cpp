/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* hello_write in C++17: one RDMA WRITE between two queue pairs of a device. */
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

#include <bluebell.hpp>

namespace
{

const char greeting[] = "hello from the other queue pair";

int
hello(const char *spec)
{
	using buffer = std::vector<char, bluebell::allocator<char>>;
	buffer from(4096), to(4096);
	std::memcpy(from.data(), greeting, sizeof(greeting));

	/* Each object needs those above it. They are destroyed from the last one up. */
	bluebell::device dev(spec);
	bluebell::pd pd(dev);
	bluebell::mr src(pd, from);
	bluebell::mr dst(pd, to, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE);
	bluebell::cq cq(dev);
	bluebell::qp_init_attr init;
	init.send_cq = init.recv_cq = cq;
	init.sq_depth = 16;
	init.rq_depth = 0;
	bluebell::qp a(pd, init), b(pd, init);

	bluebell::qp_attr attr;
	attr.path.sgid_index = dev.gid();
	attr.access = BB_ACCESS_REMOTE_WRITE;
	auto addr_a = a.addr(1, dev.gid()), addr_b = b.addr(1, dev.gid());
	a.connect(addr_a, addr_b, attr);
	b.connect(addr_b, addr_a, attr);

	bluebell::check(a.post_write(1, src.sge(0, sizeof(greeting)), dst.addr(), dst.rkey()),
			"post_write");
	a.ring();
	bb_wc wc = cq.wait(std::chrono::seconds(2));
	if (wc.status != BB_WC_SUCCESS) {
		std::fprintf(stderr, "the write failed: %s\n", bluebell::cause(wc));
		return 1;
	}
	std::printf("%s: write %lu completed; the target's memory says: %s\n", spec,
		    static_cast<unsigned long>(wc.wr_id), to.data());
	return std::strcmp(to.data(), greeting) == 0 ? 0 : 1;
}

} // namespace

int
main(int argc, char **argv)
{
	/* Without options EAL gets plain pages, which every machine has. Hugepages are faster. */
	char no_huge[] = "--no-huge", mb[] = "-m64", no_shconf[] = "--no-shconf",
	     no_pci[] = "--no-pci";
	char *plain[] = {argv[0], no_huge, mb, no_shconf, no_pci, nullptr};
	const bool given = argc > 1 && std::strcmp(argv[1], "--") != 0;

	if (argc > 1 && std::strcmp(argv[argc - 1], "--help") == 0)
		return std::puts("usage: hello_cpp [EAL_OPTIONS] [-- DEVICE]\n"
				 "DEVICE is soft0 (default), the software ConnectX, or a card as "
				 "mlx5_0") < 0;
	try {
		bluebell::eal eal(given ? argc : 5, given ? argv : plain);
		const int at = given ? eal.used() : 1; /* argv[at] is "--" */
		return hello(at + 1 < argc ? argv[at + 1] : "soft0");
	} catch (const std::exception &e) {
		std::fprintf(stderr, "hello_cpp: %s\n", e.what());
		return 1;
	}
}
