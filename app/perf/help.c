/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "perf.h"

static const char before_protocols[] =
	"usage: bb_perf [EAL options] -- --protocol NAME [options] [HOST]\n"
	"\n"
	"Plays the part of rdma-core's ibv_*_pingpong or of perftest's ib_* programs on a\n"
	"Bluebell device, against one of these programs, unchanged, on any other RDMA device,\n"
	"or against another bb_perf. Without HOST it is the server and waits for a client; with\n"
	"HOST, a name or an IP address, it is the client of the server there. What stands before\n"
	"-- goes to DPDK's EAL (-l lcores, --vdev=..., --no-huge -m MB, ...), the rest is ours.\n"
	"\n"
	"Start the server first. Size, iterations and type of queue pair must be the same at\n"
	"both ends: the programs do not tell each other.\n"
	"\n"
	"What to run\n"
	"  -P, --protocol NAME   the peer's program, and the queue pairs it can have:\n";

static const char after_protocols[] =
	"      --connection T    type of queue pair: RC (default), UC or UD\n"
	"  -s, --size N          bytes of a message (default: the program's own; 64, 4K, 1M)\n"
	"  -n, --iters N         messages each way (default: the program's own)\n"
	"      --atomic OP       fetch_add (default, adds 1) or cmp_swap\n"
	"      --check           look at the payload, as far as the peer's program lets one:\n"
	"                        see below\n"
	"\n"
	"Between whom\n"
	"  -d, --device SPEC     device: soft0,port=net_tap0,ip=192.0.2.9/24, mlx5_0, a PCI\n"
	"                        address (default soft0)\n"
	"      --ib-port N       port of the device (default: the first that is up)\n"
	"  -g, -x, --gid-index N of that port (default: the first RoCE v2 one of IPv4, else of\n"
	"                        IPv6). The peer's must be of the same IP version: -g 1 or so\n"
	"                        there, -x for perftest\n"
	"  -p, --port N          TCP port (default 18515)\n"
	"\n"
	"How\n"
	"  -m, --mtu N           path MTU. Default: the port's, and with perftest the smaller\n"
	"                        of both ends; 1024 with pingpong, where the peer's -m counts\n"
	"      --tx-depth N      requests under way (default 128; latency 1)\n"
	"      --rx-depth N      receives that wait (default 512, pingpong 500; UC and UD: as many\n"
	"                        as messages, up to 8192). Fewer when messages are large\n"
	"      --cq-mod N        a completion every N requests (default 100; 1 above 8192 bytes)\n"
	"      --inline N        put messages of up to N bytes into the WQE (default 220 for\n"
	"                        latency, 0 for bandwidth; what the device can do)\n"
	"      --outs N          READs and atomics under way (default 16, the device's, or what\n"
	"                        the peer allows)\n"
	"      --qp-timeout N    ack timeout of 4.096 us << N (default 14: 67 ms). On a busy\n"
	"                        machine, or with a peer in an emulator, give 18: a second\n"
	"      --silence S       give up when nothing has come for S seconds (default 60)\n"
	"\n"
	"What to print\n"
	"      --json FILE       write the results to FILE as JSON\n"
	"  -h, --help            this text\n"
	"      --version         versions of bb_perf and DPDK\n"
	"\n"
	"Latency is half of the time from one message to the next, as perftest has it, for READ,\n"
	"atomics and pingpong all of it. MB/s are 2^20 bytes; the peak is the best stretch of at\n"
	"least a tenth of the messages. The server of a WRITE, READ or atomic test does nothing\n"
	"itself and shows what the client has measured, or what its device has served.\n"
	"\n"
	"--check. pingpong: a client sends other bytes in every message and compares what comes\n"
	"back; a server looks for a zero in front of each page, which a client sends with -c.\n"
	"write_lat: every byte, in every message. send_*, read_*: perftest sends random bytes, but\n"
	"the same again from the same place; between two bb_perf they are known. atomic_*: old\n"
	"values without gap, at the target their sum. It costs time: leave it out to measure.\n"
	"\n"
	"Exit status: 0 all ran and was right; 1 something was wrong or could not be set up;\n"
	"2 wrong usage; 130 stopped by Ctrl-C (143: by SIGTERM).\n"
	"\n"
	"Examples\n"
	"  A server, on an interface that DPDK shares with Linux, for ib_write_lat elsewhere:\n"
	"    bb_perf -l 0 --no-huge -m 256 --no-pci --vdev=net_af_packet0,iface=eth1 -- \\\n"
	"        -P write_lat -d soft0,port=net_af_packet0,ip=192.0.2.9/24\n"
	"    ib_write_lat -d mlx5_0 192.0.2.1         # the other host; 192.0.2.1 is Linux's\n"
	"  A client of ibv_rc_pingpong -d rxe0 -g 1 -c:\n"
	"    bb_perf -l 0 --no-huge -m 256 --no-pci --vdev=net_af_packet0,iface=eth1 -- \\\n"
	"        -P rc_pingpong -d soft0,port=net_af_packet0,ip=192.0.2.9/24 --check 192.0.2.2\n"
	"  A card, 4 KiB READs, results for a script:\n"
	"    bb_perf -l 2 -- -P read_bw -d mlx5_0 -s 4K --json read.json 192.0.2.2\n";

void
options_help(FILE *out)
{
	fputs(before_protocols, out);
	protocol_list(out);
	fputs(after_protocols, out);
}
