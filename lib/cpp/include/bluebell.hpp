/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Bluebell for C++17: objects that destroy themselves, and exceptions on the control path.
 *
 * Each class owns one object of the C API, can be moved and not copied, and converts to a pointer,
 * so it can be passed to every function of bluebell.h. Destroy children before parents: declare
 * them after their parents, as C++ destroys in reverse order.
 *
 * Errors: a constructor and a call of the control path throw std::system_error with the errno and
 * the name of the C function; the log has a line with advice. Calls of the data path are noexcept
 * and return what the C function returns.
 *
 * Threads: as the C functions.
 */
#ifndef BLUEBELL_HPP
#define BLUEBELL_HPP

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

#include <bluebell.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>

namespace bluebell
{

/** Throws std::system_error if @p ret is a negative errno, else returns it. */
inline int
check(int ret, const char *call)
{
	if (ret < 0)
		throw std::system_error(-ret, std::generic_category(), call);
	return ret;
}

/** Returns the cause of a completion with an error, in words. */
inline const char *
cause(const bb_wc &wc) noexcept
{
	return bb_wc_status_cause(static_cast<bb_wc_status>(wc.status), wc.vendor_err);
}

/** Owns a pointer of the C API. The destructor calls @p Destroy. */
template <typename T, auto Destroy> class handle
{
public:
	handle() noexcept = default;
	/** Takes over @p object; NULL is allowed. */
	explicit handle(T *object) noexcept : object_(object)
	{
	}
	handle(handle &&other) noexcept : object_(other.release())
	{
	}
	handle &
	operator=(handle &&other) noexcept
	{
		if (this != &other) {
			destroy();
			object_ = other.release();
		}
		return *this;
	}
	/**
	 * Destroys the object. If the library refuses, because a child still exists (-EBUSY), the
	 * object stays and the log names the child.
	 */
	~handle()
	{
		destroy();
	}
	/** Destroys the object before the end of its scope, and throws if the library refuses. */
	void
	close()
	{
		if (object_ == nullptr)
			return;
		if constexpr (std::is_void_v<decltype(Destroy(object_))>)
			Destroy(object_);
		else
			check(Destroy(object_), "close");
		object_ = nullptr;
	}
	/** Gives up the ownership. */
	T *
	release() noexcept
	{
		return std::exchange(object_, nullptr);
	}
	T *
	get() const noexcept
	{
		return object_;
	}
	operator T *() const noexcept
	{
		return object_;
	}
	T *
	operator->() const noexcept
	{
		return object_;
	}

private:
	void
	destroy() noexcept
	{
		if (object_ != nullptr)
			static_cast<void>(Destroy(object_));
	}

	T *object_ = nullptr;
};

/** EAL for the program: the constructor calls rte_eal_init(), the destructor rte_eal_cleanup(). */
class eal
{
public:
	eal(int argc, char **argv) : used_(rte_eal_init(argc, argv))
	{
		if (used_ < 0)
			throw std::system_error(rte_errno, std::generic_category(), "rte_eal_init");
	}
	eal(const eal &) = delete;
	eal &operator=(const eal &) = delete;
	~eal()
	{
		rte_eal_cleanup();
	}
	/**
	 * Returns the index of the last argument that EAL used. The program's own arguments follow
	 * after it.
	 */
	int
	used() const noexcept
	{
		return used_;
	}

private:
	int used_;
};

/**
 * Allocates EAL's memory, for containers whose memory is registered: std::vector<T, allocator<T>>.
 */
template <typename T> struct allocator {
	using value_type = T;

	allocator() noexcept = default;
	template <typename U> allocator(const allocator<U> &) noexcept
	{
	}
	T *
	allocate(std::size_t n)
	{
		if (n > SIZE_MAX / sizeof(T))
			throw std::bad_alloc();
		void *p = rte_malloc(nullptr, n * sizeof(T), RTE_CACHE_LINE_SIZE);
		if (p == nullptr)
			throw std::bad_alloc();
		return static_cast<T *>(p);
	}
	void
	deallocate(T *p, std::size_t) noexcept
	{
		rte_free(p);
	}
	template <typename U>
	bool
	operator==(const allocator<U> &) const noexcept
	{
		return true;
	}
	template <typename U>
	bool
	operator!=(const allocator<U> &) const noexcept
	{
		return false;
	}
};

/** An attribute struct of the C API that its constructor initializes with @p Init. */
template <typename T, auto Init> struct attributes : T {
	attributes() noexcept : T()
	{
		Init(this);
	}
};
using cq_attr = attributes<bb_cq_attr, bb_cq_attr_init>;
using qp_init_attr = attributes<bb_qp_init_attr, bb_qp_init_attr_init>;
using qp_attr = attributes<bb_qp_attr, bb_qp_attr_init>;
using srq_attr = attributes<bb_srq_attr, bb_srq_attr_init>;
using loop_attr = attributes<bb_loop_attr, bb_loop_attr_init>;
using cm_attr = attributes<bb_cm_attr, bb_cm_attr_init>;
using conn_param = attributes<bb_conn_param, bb_conn_param_init>;

namespace detail
{

/* Calls create(args..., &object) and returns the object. */
template <typename T, typename Create, typename... Args>
T *
make(const char *call, Create create, Args... args)
{
	T *object = nullptr;

	check(create(args..., &object), call);
	return object;
}

} // namespace detail

/** A device (bb_dev.h). */
class device : public handle<bb_dev, bb_dev_close>
{
public:
	explicit device(const char *spec)
	    : handle(detail::make<bb_dev>("bb_dev_open", bb_dev_open, spec))
	{
	}
	bb_dev_attr
	query() const
	{
		bb_dev_attr attr;
		check(bb_dev_query(get(), &attr), "bb_dev_query");
		return attr;
	}
	bb_port_attr
	port(std::uint32_t number = 1) const
	{
		bb_port_attr attr;
		check(bb_port_query(get(), number, &attr), "bb_port_query");
		return attr;
	}
	/** Returns the index of the GID that bb_gid_choose() selects without requirements. */
	std::uint8_t
	gid(std::uint32_t port_number = 1) const
	{
		std::uint8_t index = 0;
		check(bb_gid_choose(get(), port_number, nullptr, &index), "bb_gid_choose");
		return index;
	}
};

/** A protection domain (bb_mem.h). */
class pd : public handle<bb_pd, bb_pd_free>
{
public:
	explicit pd(const device &dev)
	    : handle(detail::make<bb_pd>("bb_pd_alloc", bb_pd_alloc, dev.get()))
	{
	}
};

/** A memory region (bb_mem.h). The memory must outlive it. */
class mr : public handle<bb_mr, bb_mr_dereg>
{
public:
	/** @param access rights of enum bb_access, for example BB_ACCESS_REMOTE_WRITE. */
	mr(const pd &domain, void *addr, std::size_t len, std::uint32_t access = 0)
	    : handle(detail::make<bb_mr>("bb_mr_reg", bb_mr_reg, domain.get(), addr, len, access))
	{
	}
	/** Registers the elements of a container that has data() and size(). */
	template <typename Container, typename = decltype(std::declval<Container &>().data())>
	mr(const pd &domain, Container &data, std::uint32_t access = 0)
	    : mr(domain, static_cast<void *>(data.data()), data.size() * sizeof(*data.data()),
		 access)
	{
	}
	/**
	 * Returns an SGE of @p len bytes of the region from @p offset on; without @p len, up to the
	 * end of the region.
	 */
	bb_sge
	sge(std::size_t offset = 0, std::size_t len = SIZE_MAX) const
	{
		const bb_mr *m = get();
		if (offset > m->len || (len != SIZE_MAX && len > m->len - offset) ||
		    (len == SIZE_MAX && m->len - offset > UINT32_MAX) ||
		    (len != SIZE_MAX && len > UINT32_MAX))
			throw std::system_error(ERANGE, std::generic_category(), "mr::sge");
		bb_sge s{};
		s.addr = m->iova + offset;
		s.len = static_cast<std::uint32_t>(len == SIZE_MAX ? m->len - offset : len);
		s.lkey = m->lkey;
		return s;
	}
	/** Returns the address that peers use for byte @p offset of the region. */
	std::uint64_t
	addr(std::size_t offset = 0) const noexcept
	{
		return get()->iova + offset;
	}
	std::uint32_t
	rkey() const noexcept
	{
		return get()->rkey;
	}
};

/** A channel that reports completions through a file descriptor (bb_channel.h). */
class channel : public handle<bb_channel, bb_channel_destroy>
{
public:
	explicit channel(const device &dev)
	    : handle(detail::make<bb_channel>("bb_channel_create", bb_channel_create, dev.get()))
	{
	}
};

/** A completion queue (bb_cq.h). */
class cq : public handle<bb_cq, bb_cq_destroy>
{
public:
	explicit cq(const device &dev, const bb_cq_attr &attr = cq_attr())
	    : handle(detail::make<bb_cq>("bb_cq_create", bb_cq_create, dev.get(), &attr))
	{
	}
	/** Returns the number of completions written to @p wc, at most @p n. */
	unsigned int
	poll(bb_wc *wc, unsigned int n) noexcept
	{
		return bb_cq_poll(get(), wc, n);
	}
	template <std::size_t N>
	unsigned int
	poll(std::array<bb_wc, N> &wc) noexcept
	{
		return bb_cq_poll(get(), wc.data(), static_cast<unsigned int>(N));
	}
	/**
	 * Polls until a completion arrives. Throws ETIMEDOUT after @p timeout. The caller checks
	 * the completion's status.
	 */
	bb_wc
	wait(std::chrono::nanoseconds timeout)
	{
		auto end = std::chrono::steady_clock::now() + timeout;
		bb_wc wc;
		while (poll(&wc, 1) == 0)
			if (std::chrono::steady_clock::now() > end)
				throw std::system_error(ETIMEDOUT, std::generic_category(),
							"cq::wait");
		return wc;
	}
};

/** A shared receive queue (bb_srq.h). */
class srq : public handle<bb_srq, bb_srq_destroy>
{
public:
	explicit srq(const pd &domain, const bb_srq_attr &attr = srq_attr())
	    : handle(detail::make<bb_srq>("bb_srq_create", bb_srq_create, domain.get(), &attr))
	{
	}
};

/** An address handle (bb_ah.h). */
class ah : public handle<bb_ah, bb_ah_destroy>
{
public:
	ah(const pd &domain, const bb_path &path)
	    : handle(detail::make<bb_ah>("bb_ah_create", bb_ah_create, domain.get(), &path))
	{
	}
};

/** A queue pair (bb_qp.h). Other posts of bb_post.h take the object in place of the pointer. */
class qp : public handle<bb_qp, bb_qp_destroy>
{
public:
	qp(const pd &domain, const bb_qp_init_attr &attr)
	    : handle(detail::make<bb_qp>("bb_qp_create", bb_qp_create, domain.get(), &attr))
	{
	}
	/** Returns the address of the queue pair, which its peer passes to connect(). */
	struct bb_qp_addr
	addr(std::uint8_t port, std::uint8_t gid_index) const
	{
		struct bb_qp_addr out;
		check(bb_qp_addr(get(), port, gid_index, &out), "bb_qp_addr");
		return out;
	}
	/** Moves the queue pair to RTS. */
	void
	connect(const struct bb_qp_addr &local, const struct bb_qp_addr &remote,
		const bb_qp_attr &attr)
	{
		check(bb_qp_connect(get(), &local, &remote, &attr), "bb_qp_connect");
	}
	void
	modify(const bb_qp_attr &attr, std::uint32_t mask)
	{
		check(bb_qp_modify(get(), &attr, mask), "bb_qp_modify");
	}
	int
	post_write(std::uint64_t wr_id, const bb_sge &sge, std::uint64_t raddr, std::uint32_t rkey,
		   std::uint32_t flags = BB_SEND_SIGNALED) noexcept
	{
		return bb_post_write(get(), wr_id, &sge, 1, raddr, rkey, flags);
	}
	int
	post_read(std::uint64_t wr_id, const bb_sge &sge, std::uint64_t raddr, std::uint32_t rkey,
		  std::uint32_t flags = BB_SEND_SIGNALED) noexcept
	{
		return bb_post_read(get(), wr_id, &sge, 1, raddr, rkey, flags);
	}
	int
	post_send(std::uint64_t wr_id, const bb_sge &sge,
		  std::uint32_t flags = BB_SEND_SIGNALED) noexcept
	{
		return bb_post_send(get(), wr_id, &sge, 1, flags);
	}
	int
	post_fetch_add(std::uint64_t wr_id, const bb_sge &old, std::uint64_t raddr,
		       std::uint32_t rkey, std::uint64_t add,
		       std::uint32_t flags = BB_SEND_SIGNALED) noexcept
	{
		return bb_post_fetch_add(get(), wr_id, &old, raddr, rkey, add, flags);
	}
	int
	post_cmp_swap(std::uint64_t wr_id, const bb_sge &old, std::uint64_t raddr,
		      std::uint32_t rkey, std::uint64_t compare, std::uint64_t swap,
		      std::uint32_t flags = BB_SEND_SIGNALED) noexcept
	{
		return bb_post_cmp_swap(get(), wr_id, &old, raddr, rkey, compare, swap, flags);
	}
	int
	post_recv(std::uint64_t wr_id, const bb_sge &sge) noexcept
	{
		return bb_post_recv(get(), wr_id, &sge, 1);
	}
	/** Passes the posted requests to the device: one doorbell. */
	void
	ring() noexcept
	{
		bb_qp_ring(get());
	}
	/** Passes the posted receives to the device. */
	void
	ring_recv() noexcept
	{
		bb_qp_ring_recv(get());
	}
};

/** A poll loop of one lcore (bb_loop.h). */
using loop = handle<bb_loop, bb_loop_destroy>;
/** Objects of connections (bb_connect.h); create them with the C functions. */
using cm = handle<bb_cm, bb_cm_destroy>;
using listener = handle<bb_listener, bb_listener_destroy>;
using conn = handle<bb_conn, bb_conn_destroy>;
/** Other objects of the C API. */
using dm = handle<bb_dm, bb_dm_free>;
using mw = handle<bb_mw, bb_mw_free>;
using mkey = handle<bb_mkey, bb_mkey_destroy>;
using umem = handle<bb_umem, bb_umem_dereg>;

} // namespace bluebell

#endif
