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
	OPT_DOORBELL,
	OPT_ODP,
	OPT_VERSION
};

static const struct option long_options[] = {
	{"socket", required_argument, NULL, 's'},
	{"device", required_argument, NULL, 'd'},
	{"vf", no_argument, NULL, OPT_VF},
	{"link", required_argument, NULL, OPT_LINK},
	{"guid", required_argument, NULL, OPT_GUID},
	{"doorbell", required_argument, NULL, OPT_DOORBELL},
	{"odp", no_argument, NULL, OPT_ODP},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static const char help[] =
	"usage: bb_hca [EAL options --] --socket PATH [options] [--socket PATH ...]...\n"
	"\n"
	"Gives a virtual machine a ConnectX-6: a PCI function that Linux's own mlx5 driver drives.\n"
	"Its queues run on a software device of Bluebell. QEMU 10.1 or later connects to the socket\n"
	"(-device vfio-user-pci). If QEMU ends, the next one may connect to the same bb_hca.\n"
	"Options before -- are for DPDK's EAL; without -- all options are for bb_hca.\n"
	"\n"
	"Each --socket begins a function. The options after it are those of this function. Options\n"
	"before the first --socket are for all functions. Guests at two functions reach each other.\n"
	"\n"
	"Options\n"
	"  -s, --socket PATH     socket for QEMU. bb_hca makes it and removes it at the end. Up to 8\n"
	"  -d, --device SPEC     software device with its options, such as soft0,seed=1. Each\n"
	"                        function needs its own (default: soft0, soft1 and so on)\n"
	"      --link LAYER      link layer of the port, ib (default) or eth. With eth the guest has a\n"
	"                        netdev. The netdevs of all functions are on one Ethernet\n"
	"      --vf              be a virtual function; default: a physical function\n"
	"      --guid HEX        GUID of the node, 64 bits in hexadecimal (default\n"
	"                        0200000000bb0001). Give each bb_hca its own. Before the first\n"
	"                        --socket: GUID of the first function; each further function has\n"
	"                        the next number\n"
	"      --doorbell MODE   trap (default): each doorbell is a message from QEMU. shared: bb_hca\n"
	"                        polls the doorbells of the guest's programs in shared memory\n"
	"      --odp             let the guest register memory whose pages Linux loads on demand. Linux's\n"
	"                        driver then creates thousands of keys when it loads, unless --vf\n"
	"                        is given. Not with a device that has shm=\n"
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
	"  Two functions for two guests:\n"
	"    bb_hca --socket /tmp/a.sock --socket /tmp/b.sock --vf\n"
	"  In the guest:\n"
	"    modprobe mlx5_ib && ibv_devinfo\n";

static void
print_help(FILE *out)
{
	fputs(help, out);
}

static int
parse_link(struct function *f, const char *arg)
{
	f->hca.eth = strcmp(arg, "eth") == 0;
	if (f->hca.eth || strcmp(arg, "ib") == 0)
		return 0;
	say("--link %s: give ib or eth", arg);
	return -1;
}

static int
parse_guid(struct function *f, const char *arg)
{
	char *end;

	errno = 0;
	f->hca.guid = strtoull(arg, &end, 16);
	if (errno == 0 && end != arg && *end == '\0' && f->hca.guid != 0 && arg[0] != '-')
		return 0;
	say("--guid %s: give up to 16 hexadecimal digits, not all 0", arg);
	return -1;
}

static int
parse_doorbell(struct function *f, const char *arg)
{
	f->hca.shared = strcmp(arg, "shared") == 0;
	if (f->hca.shared || strcmp(arg, "trap") == 0)
		return 0;
	say("--doorbell %s: give trap or shared", arg);
	return -1;
}

/*
 * Adds a PCI function for --socket @socket. It starts with the options in @all, which precede the
 * first --socket. Returns NULL after printing the error.
 */
static struct function *
begin_function(struct options *o, const struct function *all, const char *socket)
{
	struct function *f;

	if (o->n_functions == HCA_MAX_FUNCTIONS) {
		say("--socket %s: more than %d functions", socket, HCA_MAX_FUNCTIONS);
		return NULL;
	}
	if (socket[0] == '\0' || strlen(socket) > SOCKET_PATH) {
		say("--socket %s: the path has %zu bytes (1 to %d)", socket, strlen(socket),
		    SOCKET_PATH);
		return NULL;
	}
	f = &o->functions[o->n_functions];
	*f = *all;
	f->socket = socket;
	f->hca.guid += o->n_functions++;
	return f;
}

/* Parses an option of the function @f. */
static int
parse_one(struct options *o, int c, struct function *f)
{
	switch (c) {
	case 'd':
		f->spec = optarg;
		return 0;
	case OPT_VF:
		f->hca.vf = true;
		return 0;
	case OPT_LINK:
		return parse_link(f, optarg);
	case OPT_GUID:
		return parse_guid(f, optarg);
	case OPT_DOORBELL:
		return parse_doorbell(f, optarg);
	case OPT_ODP:
		f->odp = true;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	default:
		say("see bb_hca --help");
		return -1;
	}
}

/* Checks the device specification of function @i and appends the option for the link layer. */
static int
complete_device(struct function *f, unsigned int i)
{
	const char *comma;
	int n;

	snprintf(f->name, sizeof(f->name), "soft%u", i);
	if (f->spec == NULL)
		f->spec = f->name;
	if (strncmp(f->spec, "soft", 4) != 0) {
		say("--device %s: give a software device, such as soft0", f->spec);
		return -1;
	}
	if (strstr(f->spec, ",link=") != NULL) {
		say("--device %s: remove link=, and give --link ib or --link eth", f->spec);
		return -1;
	}
	if (f->odp && strstr(f->spec, ",shm=") != NULL) {
		say("--odp with --device %s: remove shm=, or --odp", f->spec);
		return -1;
	}
	n = snprintf(f->device, sizeof(f->device), "%s,link=%s%s", f->spec,
		     f->hca.eth ? "eth" : "ib", f->odp ? "" : ",no_odp");
	if (n < 0 || (size_t)n >= sizeof(f->device)) {
		say("--device: more than %zu characters", sizeof(f->device) - 10);
		return -1;
	}
	comma = strchr(f->spec, ',');
	if (f->spec != f->name)
		snprintf(f->name, sizeof(f->name), "%.*s",
			 comma != NULL ? (int)(comma - f->spec) : (int)strlen(f->spec), f->spec);
	f->hca.device = f->device;
	return 0;
}

/* Returns true if the netdev of a function is on the bridge of the process. */
static bool
on_bridge(const struct function *f)
{
	return f->hca.eth && strstr(f->spec, ",port=") == NULL;
}

static int
check_together(struct options *o)
{
	struct function *f = o->functions;
	unsigned int i, k;

	if (o->n_functions == 0) {
		say("--socket PATH is missing: QEMU connects to it; see bb_hca --help");
		return -1;
	}
	for (i = 0; i < o->n_functions; i++) {
		if (f[i].hca.guid == 0) {
			say("--socket %s: the GUID after ffffffffffffffff is 0; give --guid",
			    f[i].socket);
			return -1;
		}
		if (complete_device(&f[i], i) != 0)
			return -1;
		for (k = 0; k < i; k++) {
			if (strcmp(f[i].name, f[k].name) == 0) {
				say("--device %s of two functions: give each function its own",
				    f[i].name);
				return -1;
			}
			if (f[i].hca.guid == f[k].hca.guid) {
				say("--guid %llx of two functions: give each function its own",
				    (unsigned long long)f[i].hca.guid);
				return -1;
			}
			if (on_bridge(&f[i]) && on_bridge(&f[k]) &&
			    (uint32_t)f[i].hca.guid == (uint32_t)f[k].hca.guid) {
				say("--guid %llx and %llx: the lower 32 bits, which are the end of "
				    "the MAC, must differ",
				    (unsigned long long)f[i].hca.guid,
				    (unsigned long long)f[k].hca.guid);
				return -1;
			}
		}
	}
	return 0;
}

static int
options_parse(void *options, int argc, char **argv)
{
	static struct function all;
	struct function *f = &all;
	struct options *o = options;
	int c;

	memset(o, 0, sizeof(*o));
	all = (struct function){.hca.guid = DEFAULT_GUID};
	while ((c = getopt_long(argc, argv, "s:d:vh", long_options, NULL)) != -1) {
		if (c == 'h') {
			print_help(stdout);
			return 1;
		}
		if (c == OPT_VERSION) {
			printf("bb_hca %s, %s\n", HCA_VERSION, rte_version());
			return 1;
		}
		if (c == 's')
			f = begin_function(o, &all, optarg);
		if (f == NULL || (c != 's' && parse_one(o, c, f) != 0))
			return -1;
	}
	if (optind < argc) {
		say("\"%s\" is not an option; see bb_hca --help", argv[optind]);
		return -1;
	}
	return check_together(o);
}

static bool
options_no_pci(const void *options)
{
	const struct options *o = options;
	unsigned int i;

	for (i = 0; i < o->n_functions; i++)
		if (!eal_spec_no_pci(o->functions[i].device))
			return false;
	return true;
}

const struct program hca_program = {
	.name = "bb_hca",
	.memory_mb = 64,
	.options = long_options,
	.help = print_help,
	.parse = options_parse,
	.no_pci = options_no_pci,
};
