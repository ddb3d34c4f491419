/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_version.h>

#include "options.h"

#define DEFAULT_GUID UINT64_C(0x0200000000bb0001)
#define SOCKET_PATH  107 /* Linux: longest sun_path without its zero byte */

enum {
	OPT_VF = 256,
	OPT_LINK,
	OPT_GUID,
	OPT_VERSION
};

static const struct option long_options[] = {
	{"socket", required_argument, NULL, 's'},
	{"device", required_argument, NULL, 'd'},
	{"vf", no_argument, NULL, OPT_VF},
	{"link", required_argument, NULL, OPT_LINK},
	{"guid", required_argument, NULL, OPT_GUID},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static const char help[] =
	"usage: bb_hca [EAL options --] --socket PATH [options]\n"
	"\n"
	"Gives a virtual machine a ConnectX-6: a PCI function that Linux's own mlx5 driver takes.\n"
	"Its queues run on a software device of Bluebell. QEMU 10.1 or later connects to the socket\n"
	"(-device vfio-user-pci). If QEMU ends, the next one may connect to the same bb_hca.\n"
	"Options before -- are for DPDK's EAL; without -- all options are for bb_hca.\n"
	"\n"
	"Options\n"
	"  -s, --socket PATH     socket for QEMU. bb_hca makes it and removes it at the end\n"
	"  -d, --device SPEC     software device with its options, such as soft0,seed=1 (default\n"
	"                        soft0)\n"
	"      --link LAYER      link layer of the port, ib (default) or eth. With eth the guest gets\n"
	"                        a network interface, which carries no packets\n"
	"      --vf              be a virtual function; default: a physical function\n"
	"      --guid HEX        GUID of the node, 64 bits in hexadecimal (default\n"
	"                        0200000000bb0001). Give each bb_hca its own\n"
	"  -v, --verbose         print each command of the guest with its mailboxes\n"
	"  -h, --help            print this text\n"
	"      --version         print the versions of bb_hca and DPDK\n"
	"\n"
	"The guest's RAM must be shared memory, so that bb_hca can map it: a memory-backend-memfd\n"
	"with share=on. Give the guest two processors or more: with one, QEMU without KVM executes\n"
	"the guest's atomic instructions without a lock, and atomics of the device get lost.\n"
	"\n"
	"Exit status: 0 stopped by a signal (Ctrl-C, SIGTERM); 1 an error; 2 wrong usage.\n"
	"\n"
	"Examples\n"
	"  A ConnectX with an InfiniBand port, and QEMU in another terminal:\n"
	"    bb_hca --socket /tmp/cx.sock\n"
	"    qemu-system-x86_64 -M q35,memory-backend=mem -smp 2 -m 1G ... \\\n"
	"        -object memory-backend-memfd,id=mem,size=1G,share=on \\\n"
	"        -device '{\"driver\": \"vfio-user-pci\",\n"
	"                  \"socket\": {\"type\": \"unix\", \"path\": \"/tmp/cx.sock\"}}'\n"
	"  In the guest:\n"
	"    modprobe mlx5_ib && ibv_devinfo\n";

static void
print_help(FILE *out)
{
	fputs(help, out);
}

static int
parse_link(struct options *o, const char *arg)
{
	o->hca.eth = strcmp(arg, "eth") == 0;
	if (o->hca.eth || strcmp(arg, "ib") == 0)
		return 0;
	say("--link %s: give ib or eth", arg);
	return -1;
}

static int
parse_guid(struct options *o, const char *arg)
{
	char *end;

	errno = 0;
	o->hca.guid = strtoull(arg, &end, 16);
	if (errno == 0 && end != arg && *end == '\0' && o->hca.guid != 0 && arg[0] != '-')
		return 0;
	say("--guid %s: give up to 16 hexadecimal digits, not all 0", arg);
	return -1;
}

static int
parse_one(struct options *o, int c, const char **device)
{
	switch (c) {
	case 's':
		o->socket = optarg;
		return 0;
	case 'd':
		*device = optarg;
		return 0;
	case OPT_VF:
		o->hca.vf = true;
		return 0;
	case OPT_LINK:
		return parse_link(o, optarg);
	case OPT_GUID:
		return parse_guid(o, optarg);
	case 'v':
		o->verbose = true;
		return 0;
	default:
		say("see bb_hca --help");
		return -1;
	}
}

static int
check_together(struct options *o, const char *device)
{
	int n;

	if (o->socket == NULL) {
		say("--socket PATH is missing: QEMU connects to it; see bb_hca --help");
		return -1;
	}
	if (o->socket[0] == '\0' || strlen(o->socket) > SOCKET_PATH) {
		say("--socket %s: the path has %zu bytes (1 to %d)", o->socket, strlen(o->socket),
		    SOCKET_PATH);
		return -1;
	}
	if (strncmp(device, "soft", 4) != 0) {
		say("--device %s: give a software device, such as soft0", device);
		return -1;
	}
	if (strstr(device, ",link=") != NULL) {
		say("--device %s: remove link=, and give --link ib or --link eth", device);
		return -1;
	}
	n = snprintf(o->device, sizeof(o->device), "%s,link=%s", device, o->hca.eth ? "eth" : "ib");
	if (n < 0 || (size_t)n >= sizeof(o->device)) {
		say("--device: more than %zu characters", sizeof(o->device) - 10);
		return -1;
	}
	o->hca.device = o->device;
	return 0;
}

static int
options_parse(void *options, int argc, char **argv)
{
	struct options *o = options;
	const char *device = "soft0";
	int c;

	memset(o, 0, sizeof(*o));
	o->hca.guid = DEFAULT_GUID;
	while ((c = getopt_long(argc, argv, "s:d:vh", long_options, NULL)) != -1) {
		if (c == 'h') {
			print_help(stdout);
			return 1;
		}
		if (c == OPT_VERSION) {
			printf("bb_hca %s, %s\n", HCA_VERSION, rte_version());
			return 1;
		}
		if (parse_one(o, c, &device) != 0)
			return -1;
	}
	if (optind < argc) {
		say("\"%s\" is not an option; see bb_hca --help", argv[optind]);
		return -1;
	}
	return check_together(o, device);
}

static bool
options_no_pci(const void *options)
{
	return eal_spec_no_pci(((const struct options *)options)->device);
}

const struct program hca_program = {
	.name = "bb_hca",
	.memory_mb = 64,
	.options = long_options,
	.help = print_help,
	.parse = options_parse,
	.no_pci = options_no_pci,
};
