/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * fi_getinfo(): compares the hints of the application with what the provider has. It opens no
 * device, because a program asks every installed provider and uses one.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fab.h"

/* Ordering guarantees of an RC queue pair. A WRITE or SEND may pass an earlier READ. */
#define ORDER                                                                                      \
	(FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS | FI_ORDER_WAW | FI_ORDER_WAS | FI_ORDER_SAW | \
	 FI_ORDER_SAS | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAW)

/* Completions come in the order of posts: FI_ORDER_STRICT, whose name newer headers deprecate. */
#define COMP_ORDER 0x1ffu

/*
 * mr_mode and mode of applications from before API 1.5; newer headers lack the names. MR_BASIC
 * means FAB_MR_MODE without FI_MR_LOCAL, and LOCAL_MR means FI_MR_LOCAL.
 */
#define MR_BASIC 1
#define LOCAL_MR (1ULL << 55)

#define REFUSE(...)                                                                                \
	do {                                                                                       \
		FI_INFO(&fab_provider, FI_LOG_CORE, __VA_ARGS__);                                  \
		return -FI_ENODATA;                                                                \
	} while (0)

/*
 * Returns the protocol number. With messages of librdmacm it is that of libfabric's provider verbs,
 * because peers of the two providers can connect.
 */
static uint32_t
protocol(void)
{
	bool rdma = false;

	(void)fab_transport(&rdma);
	return rdma ? FI_PROTO_RDMA_CM_IB_RC : FAB_PROTOCOL;
}

static int
check_ep(const struct fi_ep_attr *a)
{
	if (a == NULL)
		return 0;
	if (a->type != FI_EP_UNSPEC && a->type != FI_EP_MSG)
		REFUSE("only FI_EP_MSG; prepend ofi_rxm for FI_EP_RDM: \"bluebell;ofi_rxm\"\n");
	if (a->protocol != FI_PROTO_UNSPEC && a->protocol != protocol())
		REFUSE("protocol %u is not supported: leave FI_PROTO_UNSPEC\n", a->protocol);
	if (a->max_msg_size > FAB_MAX_MSG)
		REFUSE("max_msg_size %zu, at most %u\n", a->max_msg_size, FAB_MAX_MSG);
	if (a->tx_ctx_cnt > 1)
		REFUSE("tx_ctx_cnt %zu, at most 1\n", a->tx_ctx_cnt);
	if (a->rx_ctx_cnt > 1 && a->rx_ctx_cnt != FI_SHARED_CONTEXT)
		REFUSE("rx_ctx_cnt %zu: 1 or FI_SHARED_CONTEXT\n", a->rx_ctx_cnt);
	return 0;
}

static int
check_tx(const struct fi_tx_attr *a)
{
	if (a == NULL)
		return 0;
	if ((a->caps & ~FAB_CAPS) != 0)
		REFUSE("tx_attr caps %#lx are not supported\n",
		       (unsigned long)(a->caps & ~FAB_CAPS));
	if ((a->op_flags & ~FAB_TX_FLAGS) != 0)
		REFUSE("tx_attr op_flags %#lx are not supported\n",
		       (unsigned long)(a->op_flags & ~FAB_TX_FLAGS));
	if ((a->msg_order & ~ORDER) != 0)
		REFUSE("tx_attr msg_order %#lx is not guaranteed\n",
		       (unsigned long)(a->msg_order & ~ORDER));
	if ((a->comp_order & ~COMP_ORDER) != 0)
		REFUSE("tx_attr comp_order %#lx is not guaranteed\n",
		       (unsigned long)(a->comp_order & ~COMP_ORDER));
	if (a->inject_size > FAB_INJECT || a->size > FAB_MAX_DEPTH || a->iov_limit > FAB_IOV ||
	    a->rma_iov_limit > 1)
		REFUSE("tx_attr: inject_size %zu (at most %u), size %zu (%u), iov_limit %zu (%u), "
		       "rma_iov_limit %zu (1)\n",
		       a->inject_size, FAB_INJECT, a->size, FAB_MAX_DEPTH, a->iov_limit, FAB_IOV,
		       a->rma_iov_limit);
	return 0;
}

static int
check_rx(const struct fi_rx_attr *a)
{
	if (a == NULL)
		return 0;
	if ((a->caps & ~FAB_CAPS) != 0)
		REFUSE("rx_attr caps %#lx are not supported\n",
		       (unsigned long)(a->caps & ~FAB_CAPS));
	if ((a->op_flags & ~FI_COMPLETION) != 0)
		REFUSE("rx_attr op_flags %#lx are not supported\n",
		       (unsigned long)(a->op_flags & ~FI_COMPLETION));
	if ((a->msg_order & ~ORDER) != 0)
		REFUSE("rx_attr msg_order %#lx is not guaranteed\n",
		       (unsigned long)(a->msg_order & ~ORDER));
	if ((a->comp_order & ~COMP_ORDER) != 0)
		REFUSE("rx_attr comp_order %#lx is not guaranteed\n",
		       (unsigned long)(a->comp_order & ~COMP_ORDER));
	if (a->size > FAB_MAX_DEPTH || a->iov_limit > FAB_IOV || a->total_buffered_recv != 0)
		REFUSE("rx_attr: size %zu (at most %u), iov_limit %zu (%u), total_buffered_recv "
		       "%zu (0)\n",
		       a->size, FAB_MAX_DEPTH, a->iov_limit, FAB_IOV, a->total_buffered_recv);
	return 0;
}

/*
 * Returns the bits of fi_domain_attr.mr_mode that an application with the capabilities @caps must
 * support.
 */
static int
mr_mode_of(uint64_t caps)
{
	return (caps & (FI_RMA | FI_ATOMIC)) != 0 ? FAB_MR_MODE : FI_MR_LOCAL;
}

/*
 * Returns the mode bits that an application must support: the data of a WRITE consumes a receive at
 * the target.
 */
static uint64_t
mode_of(uint64_t caps)
{
	return (caps & FI_RMA) != 0 ? FI_RX_CQ_DATA : 0;
}

/* Returns true if the application supports the mode bits. Without hints the result shows them. */
static bool
has_mode(const struct fi_info *h, uint64_t need)
{
	return h == NULL || (h->mode & need) == need ||
	       (h->rx_attr != NULL && (h->rx_attr->mode & need) == need);
}

static int
check_domain(const struct fi_domain_attr *a, uint64_t caps, uint64_t mode)
{
	const int need = mr_mode_of(caps);

	if (a == NULL)
		return 0;
	if (a->name != NULL && strcmp(a->name, fab_provider.name) != 0)
		REFUSE("domain \"%s\": the only one is \"%s\"\n", a->name, fab_provider.name);
	if (a->mr_mode == MR_BASIC && (mode & LOCAL_MR) == 0)
		REFUSE("mode lacks FI_LOCAL_MR, which FI_MR_BASIC needs: set mr_mode %#x instead\n",
		       need);
	if (a->mr_mode != MR_BASIC && (a->mr_mode & need) != need)
		REFUSE("mr_mode lacks bits %#x\n", need & ~a->mr_mode);
	if (a->mr_key_size != 0 && a->mr_key_size < sizeof(uint32_t))
		REFUSE("mr_key_size %zu, keys have 4 bytes\n", a->mr_key_size);
	if (a->cq_data_size > sizeof(uint32_t) || a->mr_iov_limit > 1)
		REFUSE("cq_data_size %zu (at most 4), mr_iov_limit %zu (1)\n", a->cq_data_size,
		       a->mr_iov_limit);
	if ((uint32_t)a->control_progress > FI_PROGRESS_MANUAL ||
	    (uint32_t)a->data_progress > FI_PROGRESS_MANUAL)
		REFUSE("control_progress %d, data_progress %d: FI_PROGRESS_AUTO or "
		       "FI_PROGRESS_MANUAL\n",
		       (int)a->control_progress, (int)a->data_progress);
	if ((a->caps & ~FAB_OTHER_CAPS) != 0)
		REFUSE("domain_attr caps %#lx are not supported\n",
		       (unsigned long)(a->caps & ~FAB_OTHER_CAPS));
	return 0;
}

static int
check(uint32_t version, const struct fi_info *h)
{
	uint64_t caps;
	int ret;

	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		REFUSE("API version %u.%u, which has no bits of mr_mode: use 1.5 or later\n",
		       FI_MAJOR(version), FI_MINOR(version));
	if (h == NULL)
		return 0;
	if ((h->caps & ~FAB_CAPS) != 0)
		REFUSE("caps %#lx are not supported\n", (unsigned long)(h->caps & ~FAB_CAPS));
	if (h->addr_format != FI_FORMAT_UNSPEC && h->addr_format != FI_SOCKADDR &&
	    h->addr_format != FI_SOCKADDR_IN && h->addr_format != FI_SOCKADDR_IN6)
		REFUSE("addr_format %u: FI_SOCKADDR, FI_SOCKADDR_IN or FI_SOCKADDR_IN6\n",
		       h->addr_format);
	if (h->fabric_attr != NULL && h->fabric_attr->name != NULL &&
	    strcmp(h->fabric_attr->name, fab_provider.name) != 0)
		REFUSE("fabric \"%s\": the only one is \"%s\"\n", h->fabric_attr->name,
		       fab_provider.name);
	caps = h->caps != 0 ? h->caps : FAB_CAPS;
	if (h->domain_attr != NULL && h->domain_attr->cq_data_size != 0 &&
	    !has_mode(h, mode_of(caps)))
		REFUSE("mode lacks FI_RX_CQ_DATA: the data of an fi_writedata() consumes a receive\n");
	ret = check_ep(h->ep_attr);
	if (ret == 0)
		ret = check_tx(h->tx_attr);
	if (ret == 0)
		ret = check_rx(h->rx_attr);
	if (ret == 0)
		ret = check_domain(h->domain_attr, caps, h->mode);
	return ret;
}

static size_t
or_default(size_t wanted, size_t value)
{
	return wanted != 0 ? wanted : value;
}

/* Makes an entry of fi_getinfo() from the attributes of the provider and the hints @h. */
static struct fi_info *
make(uint32_t version, const struct fi_info *h)
{
	static const struct fi_tx_attr no_tx;
	static const struct fi_rx_attr no_rx;
	static const struct fi_ep_attr no_ep;
	static const struct fi_domain_attr no_domain;
	struct fi_info *i = fi_allocinfo();
	const struct fi_tx_attr *tx = h != NULL && h->tx_attr != NULL ? h->tx_attr : &no_tx;
	const struct fi_rx_attr *rx = h != NULL && h->rx_attr != NULL ? h->rx_attr : &no_rx;
	const struct fi_ep_attr *ep = h != NULL && h->ep_attr != NULL ? h->ep_attr : &no_ep;
	const struct fi_domain_attr *domain =
		h != NULL && h->domain_attr != NULL ? h->domain_attr : &no_domain;
	uint64_t caps, mode, rx_mode;

	if (i == NULL)
		return NULL;
	caps = h != NULL && h->caps != 0 ? h->caps | FAB_OTHER_CAPS : FAB_CAPS;
	/* If the hints name no direction, the reported entry supports both directions. */
	if ((caps & FI_MSG) != 0 && (caps & (FI_SEND | FI_RECV)) == 0)
		caps |= FI_SEND | FI_RECV;
	if ((caps & (FI_RMA | FI_ATOMIC)) != 0 &&
	    (caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)) == 0)
		caps |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	mode = mode_of(caps);
	rx_mode = has_mode(h, mode) ? mode : 0;
	i->caps = caps;
	/* Has no bit that the hints lack, even if the mode of their rx_attr has the bit. */
	i->mode = h == NULL || (h->mode & mode) == mode ? mode : 0;
	if (domain->mr_mode == MR_BASIC)
		i->mode |= LOCAL_MR;
	*i->tx_attr = (struct fi_tx_attr){
		.caps = caps & (FI_MSG | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE),
		.op_flags = tx->op_flags,
		.msg_order = ORDER,
		.comp_order = COMP_ORDER,
		.inject_size = FAB_INJECT,
		.size = or_default(tx->size, FAB_DEPTH),
		.iov_limit = FAB_IOV,
		.rma_iov_limit = 1,
	};
	*i->rx_attr = (struct fi_rx_attr){
		.caps = caps &
			(FI_MSG | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE),
		.mode = rx_mode,
		.op_flags = rx->op_flags,
		.msg_order = ORDER,
		.comp_order = COMP_ORDER,
		.size = or_default(rx->size, FAB_DEPTH),
		.iov_limit = FAB_IOV,
	};
	*i->ep_attr = (struct fi_ep_attr){
		.type = FI_EP_MSG,
		.protocol = protocol(),
		.protocol_version = 1,
		.max_msg_size = FAB_MAX_MSG,
		.max_order_raw_size = FAB_MAX_MSG,
		.max_order_waw_size = FAB_MAX_MSG,
		.tx_ctx_cnt = 1,
		.rx_ctx_cnt = or_default(ep->rx_ctx_cnt, 1),
	};
	*i->domain_attr = (struct fi_domain_attr){
		.name = strdup(fab_provider.name),
		.threading = FI_THREAD_SAFE,
		/* Automatic progress serves an application that wants to make progress itself. */
		.control_progress = domain->control_progress != FI_PROGRESS_UNSPEC
					    ? domain->control_progress
					    : FI_PROGRESS_AUTO,
		.data_progress = domain->data_progress != FI_PROGRESS_UNSPEC ? domain->data_progress
									     : FI_PROGRESS_AUTO,
		.resource_mgmt = FI_RM_ENABLED,
		.mr_mode = domain->mr_mode == MR_BASIC ? MR_BASIC : mr_mode_of(caps),
		.mr_key_size = sizeof(uint32_t),
		.cq_data_size = rx_mode == mode ? sizeof(uint32_t) : 0,
		.cq_cnt = 1024,
		.ep_cnt = 16384,
		.tx_ctx_cnt = 16384,
		.rx_ctx_cnt = 16384,
		.max_ep_tx_ctx = 1,
		.max_ep_rx_ctx = 1,
		.max_ep_srx_ctx = 1,
		.cntr_cnt = 16384,
		.mr_iov_limit = 1,
		.caps = FAB_OTHER_CAPS,
		.max_err_data = FAB_CM_DATA,
		.mr_cnt = 65536,
	};
	i->fabric_attr->name = strdup(fab_provider.name);
	i->fabric_attr->prov_version = fab_provider.version;
	i->fabric_attr->api_version = version;
	if (i->domain_attr->name == NULL || i->fabric_attr->name == NULL) {
		fi_freeinfo(i);
		return NULL;
	}
	return i;
}

/* Copies an address into an entry. Returns 0 or -FI_ENOMEM. */
static int
set_addr(void **to, size_t *to_len, const void *addr, size_t len)
{
	if (addr == NULL || len == 0)
		return 0;
	free(*to);
	*to = malloc(len);
	if (*to == NULL)
		return -FI_ENOMEM;
	memcpy(*to, addr, len);
	*to_len = len;
	return 0;
}

static uint32_t
format_of(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
}

static void
set_format(struct fi_info *i)
{
	const struct sockaddr *a = i->src_addr != NULL ? i->src_addr : i->dest_addr;

	i->addr_format = a == NULL ? FI_SOCKADDR : format_of(a);
}

/* Resolves node and service to the source or destination address of an entry. */
static int
resolve(struct fi_info *i, const char *node, const char *service, uint64_t flags, uint32_t format)
{
	const struct addrinfo ask = {
		.ai_family = format == FI_SOCKADDR_IN    ? AF_INET
			     : format == FI_SOCKADDR_IN6 ? AF_INET6
			     : node == NULL              ? AF_INET
							 : AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = ((flags & FI_SOURCE) != 0 ? AI_PASSIVE : 0) |
			    ((flags & FI_NUMERICHOST) != 0 ? AI_NUMERICHOST : 0),
	};
	struct addrinfo *found;
	int ret = getaddrinfo(node, service, &ask, &found);

	if (ret != 0)
		REFUSE("%s:%s: %s\n", node != NULL ? node : "*", service != NULL ? service : "*",
		       gai_strerror(ret));
	if ((flags & FI_SOURCE) != 0)
		ret = set_addr(&i->src_addr, &i->src_addrlen, found->ai_addr, found->ai_addrlen);
	else
		ret = set_addr(&i->dest_addr, &i->dest_addrlen, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return ret;
}

/*
 * Sets the source address to the one that the host's routes give for the destination. The peers of
 * an endpoint learn this address. Connects a UDP socket to learn the address from the kernel, which
 * sends nothing for this.
 */
static int
source_of(struct fi_info *i)
{
	const int fd =
		socket(((struct sockaddr *)i->dest_addr)->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);

	if (fd < 0)
		return -errno;
	if (connect(fd, i->dest_addr, (socklen_t)i->dest_addrlen) != 0 ||
	    getsockname(fd, (struct sockaddr *)&addr, &len) != 0) {
		close(fd);
		REFUSE("no route to the destination: %s\n", strerror(errno));
	}
	close(fd);
	/* sin_port and sin6_port have the same offset. */
	((struct sockaddr_in *)&addr)->sin_port = 0;
	return set_addr(&i->src_addr, &i->src_addrlen, &addr, len);
}

/*
 * Sets the source address to an address of the device. Returns 0 without setting it if connections
 * use TCP or the kernel's routes choose the source. @format: see fab_device_address().
 */
static int
device_address(struct fi_info *i, uint32_t format)
{
	struct sockaddr_storage addr;
	const int ret = fab_device_address(format, i->dest_addr != NULL, &addr);

	if (ret != 0)
		return ret == -ENOENT ? 0 : ret;
	return set_addr(&i->src_addr, &i->src_addrlen, &addr,
			addr.ss_family == AF_INET ? sizeof(struct sockaddr_in)
						  : sizeof(struct sockaddr_in6));
}

/* Returns true if fi_getinfo() can report the address of an interface, as a source. */
static bool
usable(const struct ifaddrs *a, uint32_t format, bool loopback)
{
	const struct sockaddr_in6 *six = (const void *)a->ifa_addr;

	if (a->ifa_addr == NULL || (a->ifa_flags & IFF_UP) == 0 ||
	    ((a->ifa_flags & IFF_LOOPBACK) != 0) != loopback)
		return false;
	switch (a->ifa_addr->sa_family) {
	case AF_INET:
		return format != FI_SOCKADDR_IN6;
	case AF_INET6:
		return format != FI_SOCKADDR_IN && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
	default:
		return false;
	}
}

/*
 * Sets the source address to the first address of the host; to a loopback address only if the host
 * has no other. All processes of a job on this host must report the same address, because ofi_rxm
 * recognises a peer by it. So the application gets one address and no list to choose from.
 */
static int
first_address(struct fi_info *i, uint32_t format)
{
	struct ifaddrs *all, *a;
	int pass, ret = 0;

	if (getifaddrs(&all) != 0)
		return -errno;
	for (pass = 0; pass < 2 && ret == 0 && i->src_addr == NULL; pass++) {
		for (a = all; a != NULL && !usable(a, format, pass == 1); a = a->ifa_next)
			;
		if (a != NULL)
			ret = set_addr(&i->src_addr, &i->src_addrlen, a->ifa_addr,
				       a->ifa_addr->sa_family == AF_INET
					       ? sizeof(struct sockaddr_in)
					       : sizeof(struct sockaddr_in6));
	}
	freeifaddrs(all);
	return ret;
}

int
fab_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	    const struct fi_info *hints, struct fi_info **info)
{
	const uint32_t format = hints != NULL ? hints->addr_format : FI_FORMAT_UNSPEC;
	struct fi_info *i;
	int ret = check(version, hints);

	if (ret != 0)
		return ret;
	i = make(version, hints);
	if (i == NULL)
		return -FI_ENOMEM;
	if (hints != NULL) {
		ret = set_addr(&i->src_addr, &i->src_addrlen, hints->src_addr, hints->src_addrlen);
		if (ret == 0)
			ret = set_addr(&i->dest_addr, &i->dest_addrlen, hints->dest_addr,
				       hints->dest_addrlen);
	}
	if (ret == 0 && (node != NULL || service != NULL))
		ret = resolve(i, node, service, flags, format);
	if (ret == 0 && i->src_addr == NULL)
		ret = device_address(i, i->dest_addr != NULL ? format_of(i->dest_addr) : format);
	if (ret == 0 && i->src_addr == NULL && i->dest_addr != NULL)
		ret = source_of(i);
	if (ret == 0 && i->src_addr == NULL && i->dest_addr == NULL)
		ret = first_address(i, format);
	set_format(i);
	if (ret != 0) {
		fi_freeinfo(i);
		return ret;
	}
	*info = i;
	return 0;
}
