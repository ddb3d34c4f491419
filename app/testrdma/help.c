/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */

#include "testrdma.h"

static const char before_ops[] =
	"usage: testrdma [EAL options] -- [options]\n"
	"\n"
	"Connects queue pairs of one RDMA device, runs every operation at every size, and prints\n"
	"a line for each test: rate, bandwidth, latency, cost. Options before -- are for DPDK's\n"
	"EAL (-l lcores, -m MB, --no-huge, ...), options after it for testrdma.\n"
	"\n"
	"Tests\n"
	"  -d, --device SPEC     device to open: soft0 (default, the software ConnectX; no card\n"
	"                        needed), mlx5_0, a PCI address; options follow a comma, as in\n"
	"                        soft0,progress=lcore,lcore=1\n"
	"  -o, --op LIST         operations, separated by commas (default: all but the modes)\n";

static const char after_ops[] =
	"  -s, --size LIST       bytes of a message: 8,64,4K, a range 8..1M (in steps of factor 4,\n"
	"                        with both ends), 8..1M:x2, 64..512:+64 (default 8..1M).\n"
	"                        Atomics always have 8 bytes and one test\n"
	"      --mix LIST        weights of mixed: write:70,read:30 (default write:50,read:50),\n"
	"                        also fetch_add, cmp_swap; the shares are exact\n"
	"      --rate N          an open loop of N operations a second over all lcores. Latencies\n"
	"                        count from the time when an operation was due, so a stall shows\n"
	"                        in all operations due in it. There is no latency phase, and\n"
	"                        --signal-every defaults to 1\n"
	"      --duration S      seconds of each test, half for the rate, half for latency,\n"
	"                        preparation and verification included. Default: 30 seconds\n"
	"                        shared by all tests, at most 2 for each, so that the whole run\n"
	"                        takes well under a minute\n"
	"      --patience S      seconds without a completion that end a test (default 30)\n"
	"\n"
	"Settings\n"
	"      --depth N         operations in flight on each queue pair (default 128). Fewer if\n"
	"                        the memory for large messages is short\n"
	"      --burst N         operations for one doorbell (default 32)\n"
	"      --signal-every N  ask for a completion every N operations (default 16)\n"
	"      --inline N        put messages of up to N bytes into the WQE (default 0: never)\n"
	"      --db MODE         blueflame (default): copy a single WQE to the doorbell register;\n"
	"                        doorbell: write only 8 bytes there\n"
	"      --qps N           connected pairs of queue pairs (default 1), on each lcore;\n"
	"                        also --qps-per-lcore\n"
	"      --worker-lcores N run on N lcores at a time, each with its own queues and memory;\n"
	"                        more than 1 need N lcores beside EAL's main lcore\n"
	"      --sgl N           gather (READ: scatter) each message in N SGEs (default 1)\n"
	"      --offset N        start data N bytes after a 64-byte boundary (default 0)\n"
	"      --seed N          seed of the data patterns (default 1)\n"
	"\n"
	"Checks\n"
	"      --verify          compare every byte with a pattern that differs per operation,\n"
	"                        the guard bytes around it, sources that must not change, and the\n"
	"                        old and new value of each atomic, between the timed spans.\n"
	"                        testrdma always checks order, status, length and immediate data\n"
	"                        of completions\n"
	"\n"
	"Two processes, on one host or on two\n"
	"      --listen A:P      be the target of processes that connect to address A (optional),\n"
	"                        port P; end after the last connection\n"
	"      --connect A:P     run the operations on the target that listens there. testrdma\n"
	"                        reads its memory back for checks; the target posts receives,\n"
	"                        answers and writes as the operation needs\n"
	"\n"
	"Commands\n"
	"  -i, --interactive     a prompt: set, show, start, stop, help and more. TAB completes,\n"
	"                        arrow up recalls lines. Tests run in the background, on worker\n"
	"                        lcores or in a thread; one test without --duration runs until\n"
	"                        you stop it. Standard input may be a pipe: testrdma reports a\n"
	"                        wrong command in it, executes the rest, and exits with 1\n"
	"      --cmdline-file F  take commands from F, as load F at the prompt; with -i, the prompt\n"
	"                        follows\n"
	"\n"
	"Output\n"
	"      --interval S      a line of statistics every S seconds: operations done and their\n"
	"                        latency or, by the target, requests served (default 0: none)\n"
	"      --csv             results as CSV on standard output, everything else on stderr\n"
	"      --json FILE       write all results to FILE as JSON\n"
	"  -h, --help            print this text\n"
	"      --version         print the versions of testrdma and DPDK\n"
	"\n"
	"Columns: latencies reach from the post to the poll of the completion, one operation at a\n"
	"time, with one reading of the TSC; cyc/op are TSC cycles of the calling lcore in the rate\n"
	"phase (with the software device's work, if it runs there); db/op doorbells.\n"
	"\n"
	"Exit status: 0 all tests ran without an error; 1 an error, or a test could not start;\n"
	"2 wrong usage; 130 stopped by Ctrl-C after a summary (143: by SIGTERM).\n"
	"\n"
	"Examples\n"
	"  No card, everything in one thread:\n"
	"    testrdma -l 0 -- --verify\n"
	"  The software device on its own core:\n"
	"    testrdma -l 0-1 -- --device soft0,progress=lcore,lcore=1 --op write,read --size 64\n"
	"  Small writes at the highest rate, then one by one:\n"
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
