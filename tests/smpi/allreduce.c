/* smpi_allreduce COUNT: times one MPI_Allreduce of COUNT floats and prints the slowest rank's seconds. Compiled with
 * smpicc and run by smpirun, it is an independent witness of what an algorithm takes on a platform file. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int count = argc > 1 ? atoi(argv[1]) : 0;
  float* in = calloc((size_t)count + 1, sizeof(float));
  float* out = calloc((size_t)count + 1, sizeof(float));
  if (in == NULL || out == NULL) return 1;
  const double start = MPI_Wtime();
  MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  const double time = MPI_Wtime() - start;
  double slowest = 0;
  MPI_Reduce(&time, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%.17g\n", slowest);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
