/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * An MPI program that checks what it receives: a ping-pong and a stream between neighbours with
 * sizes from 8 bytes to 1 MiB, and collectives of all ranks. Prints "right" and the latency and
 * bandwidth of rank 0, which no verdict depends on.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX    (1u << 20)
#define WINDOW 16

static int rank, size;
static uint8_t *out, *in;

static void
need(int ok, const char *what, unsigned int n)
{
	if (ok)
		return;
	printf("rank %d: wrong %s of %u bytes\n", rank, what, n);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void
fill(uint8_t *to, unsigned int n, int from)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		to[i] = (uint8_t)(i * 7 + i / 251 + (unsigned int)from * 31);
}

static void
check(const uint8_t *got, unsigned int n, int from, const char *what)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		need(got[i] == (uint8_t)(i * 7 + i / 251 + (unsigned int)from * 31), what, n);
}

/* Ranks 0 and 1, 2 and 3 and so on exchange messages. */
static double
pingpong(unsigned int n, unsigned int times)
{
	const int peer = rank ^ 1;
	double start = MPI_Wtime();
	unsigned int i;

	for (i = 0; i < times; i++) {
		if (rank % 2 == 0)
			MPI_Send(out, (int)n, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
		MPI_Recv(in, (int)n, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank % 2 != 0)
			MPI_Send(out, (int)n, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
	}
	check(in, n, peer, "message");
	return (MPI_Wtime() - start) / times / 2 * 1e6;
}

static double
stream(unsigned int n, unsigned int times)
{
	const int to = (rank + 1) % size, from = (rank + size - 1) % size;
	MPI_Request r[2 * WINDOW];
	double start = MPI_Wtime();
	unsigned int i, k;

	for (i = 0; i < times; i++) {
		for (k = 0; k < WINDOW; k++) {
			MPI_Irecv(in + (size_t)k * n, (int)n, MPI_BYTE, from, 2, MPI_COMM_WORLD,
				  &r[k]);
			MPI_Isend(out, (int)n, MPI_BYTE, to, 2, MPI_COMM_WORLD, &r[WINDOW + k]);
		}
		MPI_Waitall(2 * WINDOW, r, MPI_STATUSES_IGNORE);
	}
	for (k = 0; k < WINDOW; k++)
		check(in + (size_t)k * n, n, from, "stream");
	return (double)n * WINDOW * times / (MPI_Wtime() - start) / 1e6;
}

static void
collectives(unsigned int n)
{
	uint64_t mine = (uint64_t)rank + 1, sum = 0;
	int i;

	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	need(sum == (uint64_t)size * (uint64_t)(size + 1) / 2, "sum", 8);
	memset(in, 0, n);
	if (rank == size - 1)
		memcpy(in, out, n);
	MPI_Bcast(in, (int)n, MPI_BYTE, size - 1, MPI_COMM_WORLD);
	check(in, n, size - 1, "broadcast");
	MPI_Allgather(out, (int)n, MPI_BYTE, in, (int)n, MPI_BYTE, MPI_COMM_WORLD);
	for (i = 0; i < size; i++)
		check(in + (size_t)i * n, n, i, "gathered part");
	for (i = 0; i < size; i++)
		fill(in + (size_t)i * n, n, rank);
	MPI_Alltoall(MPI_IN_PLACE, 0, MPI_BYTE, in, (int)n, MPI_BYTE, MPI_COMM_WORLD);
	for (i = 0; i < size; i++)
		check(in + (size_t)i * n, n, i, "exchanged part");
}

int
main(int argc, char **argv)
{
	unsigned int n;
	double us, mbs;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	out = malloc(MAX);
	in = malloc((size_t)MAX * WINDOW);
	need(out != NULL && in != NULL && size % 2 == 0 && size <= WINDOW, "number of ranks", 0);
	fill(out, MAX, rank);
	for (n = 8; n <= MAX; n *= 8) {
		us = pingpong(n, 20);
		mbs = stream(n, 4);
		collectives(n);
		if (rank == 0)
			printf("%u bytes: %.2f us, %.0f MB/s\n", n, us, mbs);
	}
	if (rank == 0)
		printf("right\n");
	free(out);
	free(in);
	MPI_Finalize();
	return 0;
}
