/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Ping-pong of two MPI ranks: prints the bytes and the microseconds one way for each size. */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#define MAX 65536

int
main(int argc, char **argv)
{
	static const int sizes[] = {64, MAX};
	const int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	static char buf[MAX];
	double start = 0;
	unsigned int s;
	int me, i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	for (s = 0; s < 2; s++) {
		/* The first tenth warms up. */
		for (i = -rounds / 10; i < rounds; i++) {
			if (i == 0)
				start = MPI_Wtime();
			if (me == 0)
				MPI_Send(buf, sizes[s], MPI_CHAR, 1, 0, MPI_COMM_WORLD);
			MPI_Recv(buf, sizes[s], MPI_CHAR, 1 - me, 0, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			if (me == 1)
				MPI_Send(buf, sizes[s], MPI_CHAR, 0, 0, MPI_COMM_WORLD);
		}
		if (me == 0)
			printf("%d bytes, %.3f us one way\n", sizes[s],
			       (MPI_Wtime() - start) / rounds / 2 * 1e6);
	}
	MPI_Finalize();
	return 0;
}
