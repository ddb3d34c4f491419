/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* lib/cpp/include/bluebell.hpp on soft0. */
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <bluebell.hpp>

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);    \
			std::exit(1);                                                              \
		}                                                                                  \
	} while (0)

namespace {

/* Calls @p call and returns the errno of the exception, 0 if there is none. */
template <typename Call>
int
thrown(Call call)
{
	try {
		call();
	} catch (const std::system_error &e) {
		return e.code().value();
	}
	return 0;
}

struct pair {
	explicit pair(const bluebell::device &dev)
	    : pd(dev), mr(pd, memory, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ |
					      BB_ACCESS_REMOTE_ATOMIC),
	      cq(dev)
	{
		bluebell::qp_init_attr init;
		init.send_cq = init.recv_cq = cq;
		init.sq_depth = init.rq_depth = 8;
		a = std::make_unique<bluebell::qp>(pd, init);
		b = std::make_unique<bluebell::qp>(pd, init);
		bluebell::qp_attr attr;
		attr.path.sgid_index = dev.gid();
		attr.access = BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ | BB_ACCESS_REMOTE_ATOMIC;
		auto addr_a = a->addr(1, dev.gid()), addr_b = b->addr(1, dev.gid());
		a->connect(addr_a, addr_b, attr);
		b->connect(addr_b, addr_a, attr);
	}

	std::vector<std::uint64_t, bluebell::allocator<std::uint64_t>> memory =
		std::vector<std::uint64_t, bluebell::allocator<std::uint64_t>>(512);
	bluebell::pd pd;
	bluebell::mr mr;
	bluebell::cq cq;
	std::unique_ptr<bluebell::qp> a, b;
};

void
test_each_operation_moves_data()
{
	bluebell::device dev("soft0");
	pair p(dev);
	auto run = [&p](int posted) {
		CHECK(posted == 0);
		p.a->ring();
		bb_wc wc = p.cq.wait(std::chrono::seconds(10));
		CHECK(wc.status == BB_WC_SUCCESS);
		return wc.wr_id;
	};

	CHECK(dev.query().max_qp > 0 && dev.port().active_mtu >= 256);
	p.memory[0] = 7;
	CHECK(run(p.a->post_write(1, p.mr.sge(0, 8), p.mr.addr(8), p.mr.rkey())) == 1 && p.memory[1] == 7);
	CHECK(run(p.a->post_read(2, p.mr.sge(16, 8), p.mr.addr(8), p.mr.rkey())) == 2 && p.memory[2] == 7);
	CHECK(run(p.a->post_fetch_add(3, p.mr.sge(24, 8), p.mr.addr(8), p.mr.rkey(), 5)) == 3);
	CHECK(p.memory[3] == 7 && p.memory[1] == 12);
	CHECK(run(p.a->post_cmp_swap(4, p.mr.sge(24, 8), p.mr.addr(8), p.mr.rkey(), 12, 1)) == 4);
	CHECK(p.memory[3] == 12 && p.memory[1] == 1);
	CHECK(p.b->post_recv(5, p.mr.sge(32, 8)) == 0);
	p.b->ring_recv();
	CHECK(p.a->post_send(6, p.mr.sge(0, 8)) == 0);
	p.a->ring();
	std::array<bb_wc, 4> wc;
	unsigned int got = 0;
	for (int i = 0; i < 1000000 && got < 2; i++)
		got += p.cq.poll(wc);
	CHECK(got == 2 && p.memory[4] == 7);
}

void
test_a_completion_with_an_error_has_a_cause()
{
	bluebell::device dev("soft0");
	pair p(dev);

	CHECK(p.a->post_write(1, p.mr.sge(0, 8), p.mr.addr(), p.mr.rkey() ^ 0x100) == 0);
	p.a->ring();
	bb_wc wc = p.cq.wait(std::chrono::seconds(10));
	CHECK(wc.status == BB_WC_REM_ACCESS_ERR && bluebell::cause(wc)[0] != '\0');
}

void
test_an_error_throws_its_errno_and_the_name_of_the_call()
{
	CHECK(thrown([] { bluebell::device("none0"); }) == ENODEV);
	try {
		bluebell::device dev("none0");
		CHECK(false);
	} catch (const std::system_error &e) {
		CHECK(std::string(e.what()).find("bb_dev_open") == 0);
	}
	bluebell::device dev("soft0");
	bluebell::pd pd(dev);
	CHECK(thrown([&] { bluebell::mr(pd, nullptr, 64); }) == EFAULT);
	CHECK(thrown([&] { bluebell::mr(pd, static_cast<char *>(nullptr), 64); }) == EFAULT);
	CHECK(thrown([&] { bluebell::qp(pd, bluebell::qp_init_attr()); }) == EINVAL);
	static char array[64];
	const std::uint32_t len = sizeof(array);
	CHECK(thrown([&] { bluebell::mr(pd, array, len); }) == 0);
	CHECK(thrown([&] { bluebell::mr(pd, array, sizeof(array)); }) == 0);
	/* What the constructors made before the throw is gone. */
	pd.close();
	dev.close();
}

void
test_close_of_a_parent_throws_and_keeps_it()
{
	bluebell::device dev("soft0");
	bluebell::pd pd(dev);
	std::array<char, 64> memory{};
	bluebell::mr mr(pd, memory);

	CHECK(thrown([&] { pd.close(); }) == EBUSY && pd.get() != nullptr);
	mr.close();
	CHECK(mr.get() == nullptr);
	mr.close();
	pd.close();
	dev.close();
}

void
test_a_move_leaves_one_owner()
{
	bluebell::device dev("soft0");
	bluebell::pd first(dev), second(dev);
	bb_pd *p = second.get();

	first = std::move(second);
	CHECK(first.get() == p && second.get() == nullptr);
	bluebell::pd third(std::move(first));
	CHECK(third.get() == p && first.get() == nullptr);
	CHECK(third.release() == p && third.get() == nullptr);
	CHECK(bb_pd_free(p) == 0);
	dev.close();
}

void
test_an_sge_outside_the_region_throws()
{
	bluebell::device dev("soft0");
	bluebell::pd pd(dev);
	std::array<char, 64> memory{};
	bluebell::mr mr(pd, memory);

	CHECK(mr.sge().len == 64 && mr.sge(60).len == 4 && mr.sge(64).len == 0);
	CHECK(thrown([&] { mr.sge(65); }) == ERANGE);
	CHECK(thrown([&] { mr.sge(60, 5); }) == ERANGE);
	CHECK(thrown([&] { mr.sge(1, SIZE_MAX - 1); }) == ERANGE);
}

void
test_waiting_for_nothing_times_out()
{
	bluebell::device dev("soft0");
	bluebell::cq cq(dev);

	CHECK(thrown([&] { cq.wait(std::chrono::milliseconds(1)); }) == ETIMEDOUT);
}

void
test_memory_that_eal_does_not_have_is_bad_alloc()
{
	bool thrown_it = false;

	try {
		bluebell::allocator<char>().allocate(SIZE_MAX / 2);
	} catch (const std::bad_alloc &) {
		thrown_it = true;
	}
	CHECK(thrown_it);
}

} // namespace

int
main()
{
	char name[] = "hpp", no_huge[] = "--no-huge", m[] = "-m", mb[] = "128", no_pci[] = "--no-pci",
	     no_shconf[] = "--no-shconf", no_telemetry[] = "--no-telemetry";
	char *argv[] = {name, no_huge, m, mb, no_pci, no_shconf, no_telemetry, nullptr};
	bluebell::eal eal(7, argv);

	test_each_operation_moves_data();
	test_a_completion_with_an_error_has_a_cause();
	test_an_error_throws_its_errno_and_the_name_of_the_call();
	test_close_of_a_parent_throws_and_keeps_it();
	test_a_move_leaves_one_owner();
	test_an_sge_outside_the_region_throws();
	test_waiting_for_nothing_times_out();
	test_memory_that_eal_does_not_have_is_bad_alloc();
	return 0;
}
