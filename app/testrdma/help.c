/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */

#include "testrdma.h"

static const char before_ops[] =
	"usage: testrdma [EAL options] -- [options]\n"
	"\n"
	"Connects queue pairs of one RDMA device with each other, runs every operation in\n"
	"every size, and prints a row for each: rate, bandwidth, latency, cost. What stands\n"
	"before -- goes to DPDK's EAL (-l lcores, -m MB, --no-huge, ...), the rest is ours.\n"
	"\n"
	"What to run\n"
	"  -d, --device SPEC     device to open: soft0 (default, the software ConnectX; no card\n"
	"                        needed), mlx5_0, a PCI address; options follow a comma, as in\n"
	"                        soft0,progress=lcore,lcore=1\n"
	"  -o, --op LIST         operations, with commas between (default: all but the modes)\n";

static const char after_ops[] =
	"  -s, --size LIST       bytes of a message: 8,64,4K, a range 8..1M (times 4; both ends\n"
	"                        are in it), 8..1M:x2, 64..512:+64 (default 8..1M).\n"
	"                        Atomics are always 8 bytes and have one row.\n"
	"      --mix LIST        weights of mixed: write:70,read:30 (default write:50,read:50),\n"
	"                        also fetch_add, cmp_swap; each has exactly its share\n"
	"      --rate N          an open loop of N operations a second, of all lcores together;\n"
	"                        latencies count from when an operation was due, so a stall\n"
	"                        shows in all that were due meanwhile. There is no latency\n"
	"                        phase then, and --signal-every is 1 if nothing is said\n"
	"      --duration S      seconds of each row, half for the rate, half for latency;\n"
	"                        preparing and verifying included. Default: 30 seconds shared by\n"
	"                        all rows, at most 2 for each, so that every operation in every\n"
	"                        size is through in well under a minute.\n"
	"      --patience S      seconds without a completion until a row is given up (30)\n"
	"\n"
	"How\n"
	"      --depth N         operations under way on each queue pair (default 128). Fewer\n"
	"                        when the memory for large messages is not there.\n"
	"      --burst N         operations handed over by one doorbell (default 32)\n"
	"      --signal-every N  ask for a completion every N operations (default 16)\n"
	"      --inline N        put messages of up to N bytes into the WQE (default 0: never)\n"
	"      --db MODE         blueflame (default): a single WQE goes to the device whole;\n"
	"                        doorbell: 8 bytes always\n"
	"      --qps N           connected pairs of queue pairs (default 1), on each lcore;\n"
	"                        also --qps-per-lcore\n"
	"      --worker-lcores N run on N lcores at a time, each with queues and memory of its\n"
	"                        own; more than 1 need as many beside EAL's main lcore\n"
	"      --sgl N           gather (READ: scatter) each message in N pieces (default 1)\n"
	"      --offset N        start data N bytes behind a 64-byte boundary (default 0)\n"
	"      --seed N          of the data patterns (default 1)\n"
	"\n"
	"What to check\n"
	"      --verify          compare every byte with a pattern that differs per operation,\n"
	"                        the guard bytes around it, sources that must not change, old\n"
	"                        and new value of each atomic. Done between the timed spans.\n"
	"                        Order, status, length and immediate data of completions are\n"
	"                        always checked.\n"
	"\n"
	"Two processes, on one host or on two\n"
	"      --listen A:P      be the target of one that connects to address A (may be left\n"
	"                        out), port P; ends when all who came have gone\n"
	"      --connect A:P     run the operations on who listens there. What is checked of its\n"
	"                        memory is read back from it; it posts receives, answers and\n"
	"                        writes back as the operation needs it.\n"
	"\n"
	"Commands\n"
	"  -i, --interactive     a prompt: set, show, start, stop, help and more. TAB\n"
	"                        completes, arrow up brings back. Rows run in the background, on\n"
	"                        lcores beside the main one or in a thread of their own; one row\n"
	"                        without --duration runs until it is stopped. Standard input may\n"
	"                        be a pipe; a wrong command in it is said, the rest is done, and\n"
	"                        the exit status is 1.\n"
	"      --cmdline-file F  take commands from F; with -i, the prompt follows\n"
	"\n"
	"What to print\n"
	"      --interval S      a line of statistics every S seconds, of the operations done\n"
	"                        or, by who listens, served (default 0: none)\n"
	"      --csv             rows as CSV on standard output, everything else on stderr\n"
	"      --json FILE       write all results to FILE as JSON\n"
	"  -h, --help            this text\n"
	"      --version         versions of testrdma and DPDK\n"
	"\n"
	"Columns: lat is from the post to the moment the completion is seen, one operation at\n"
	"a time, one reading of the TSC included; cyc/op are TSC cycles of the calling lcore in\n"
	"the rate phase (with the software device's work, if it runs there); db/op doorbells.\n"
	"\n"
	"Exit status: 0 all ran and was right; 1 something was wrong or could not be set up;\n"
	"2 wrong usage; 130 stopped by Ctrl-C after a summary (143: by SIGTERM).\n"
	"\n"
	"Examples\n"
	"  No card, no hugepages, everything in one thread:\n"
	"    testrdma -l 0 --no-huge -m 512 --no-pci -- --verify\n"
	"  The software device on a core of its own:\n"
	"    testrdma -l 0-1 -- --device soft0,progress=lcore,lcore=1 --op write,read --size 64\n"
	"  Small writes as fast as they go, then one by one:\n"
	"    testrdma -l 0 -- --op write --size 8 --inline 64 --burst 32 --signal-every 32\n"
	"    testrdma -l 0 -- --op write --size 8 --inline 64 --burst 1 --signal-every 1\n"
	"  A prompt, with the traffic on lcore 1:\n"
	"    testrdma -l 0-1 -- -i\n"
	"  A card, results for a script:\n"
	"    testrdma -l 2 -- --device mlx5_0 --verify --json out.json\n";

void
options_help(FILE *out)
{
	unsigned int i;

	fputs(before_ops, out);
	for (i = 0; i < nengines; i++)
		fprintf(out, "                          %-13s %s\n", engines[i]->name,
			engines[i]->help);
	fputs(after_ops, out);
}
