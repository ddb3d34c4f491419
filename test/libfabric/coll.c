/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * An MPI program that checks every byte: collectives and exchanges of 4 bytes to 1 MiB. With an
 * argument it repeats them that many times, and prints a line for each.
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#define MAX 262144

static int a[MAX], b[MAX], me, ranks, bad;

static void
check(int got, int want)
{
	bad += got != want;
}

static void
reductions(int n)
{
	int i;

	for (i = 0; i < n; i++)
		a[i] = me * 7 + i;
	MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < n; i++)
		check(b[i], 7 * ranks * (ranks - 1) / 2 + i * ranks);
	MPI_Reduce(a, b, n, MPI_INT, MPI_MAX, ranks - 1, MPI_COMM_WORLD);
	for (i = 0; i < n && me == ranks - 1; i++)
		check(b[i], (ranks - 1) * 7 + i);
}

static void
exchanges(int n)
{
	const int next = (me + 1) % ranks, before = (me + ranks - 1) % ranks, part = n / ranks;
	int i;

	MPI_Sendrecv(a, n, MPI_INT, next, 1, b, n, MPI_INT, before, 1, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	for (i = 0; i < n; i++)
		check(b[i], before * 7 + i);
	if (me == 0)
		for (i = 0; i < n; i++)
			b[i] = i * 3;
	MPI_Bcast(b, n, MPI_INT, 0, MPI_COMM_WORLD);
	for (i = 0; i < n; i++)
		check(b[i], i * 3);
	if (part == 0)
		return;
	MPI_Alltoall(a, part, MPI_INT, b, part, MPI_INT, MPI_COMM_WORLD);
	for (i = 0; i < part * ranks; i++)
		check(b[i], i / part * 7 + me * part + i % part);
	MPI_Allgather(a, part, MPI_INT, b, part, MPI_INT, MPI_COMM_WORLD);
	for (i = 0; i < part * ranks; i++)
		check(b[i], i / part * 7 + i % part);
}

int
main(int argc, char **argv)
{
	int all, n, round, rounds = argc > 1 ? atoi(argv[1]) : 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (round = 0; round < rounds; round++) {
		for (n = 1; n <= MAX; n *= 8) {
			reductions(n);
			exchanges(n);
		}
		MPI_Barrier(MPI_COMM_WORLD);
		if (me == 0) {
			printf("round %d\n", round);
			fflush(stdout);
		}
	}
	MPI_Reduce(&bad, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (me == 0)
		printf("%d ranks, %d wrong\n", ranks, all);
	MPI_Finalize();
	return bad != 0;
}
