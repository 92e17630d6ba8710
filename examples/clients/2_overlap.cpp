// Streams that overlap: gradients are computed one after the other, and each is reduced in a second stream while the
// next ones are computed. Prints the simulated time of a step one after the other, and overlapped.
//
//   g++ -o 2_overlap 2_overlap.cpp $(hcclsim exec --flags)
//   hcclsim exec --platform atlas800t-a2 --processes 8 -- ./2_overlap

#include <hccl/hccl.h>
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

/// Ends the program with a message if a function of ACL or HCCL has failed.
#define CHECK(call)                                                            \
  do {                                                                         \
    const int check_status = static_cast<int>(call);                           \
    if (check_status != 0) {                                                   \
      std::fprintf(stderr, "%s failed with status %d\n", #call, check_status); \
      std::exit(1);                                                            \
    }                                                                          \
  } while (false)

namespace {

constexpr int gradients = 8;
constexpr std::uint64_t elements = std::uint64_t{1} << 20U;
constexpr double kernel_us = 120;

struct Step {
  HcclComm comm = nullptr;
  aclrtStream compute = nullptr;
  aclrtStream communicate = nullptr;
  std::vector<void*> buffers;
};

/// Simulated milliseconds of a step.
float run(const Step& step, bool overlapped) {
  aclrtEvent begin = nullptr;
  aclrtEvent end = nullptr;
  aclrtEvent ready = nullptr;
  for (aclrtEvent* const event : {&begin, &end, &ready}) CHECK(aclrtCreateEvent(event));
  aclrtStream stream = overlapped ? step.communicate : step.compute;
  CHECK(aclrtRecordEvent(begin, step.compute));
  for (void* const buffer : step.buffers) {
    CHECK(hcclsimLaunchKernel("backward", kernel_us, step.compute));
    CHECK(aclrtRecordEvent(ready, step.compute));
    CHECK(aclrtStreamWaitEvent(stream, ready));
    CHECK(HcclAllReduce(buffer, buffer, elements, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, step.comm, stream));
  }
  CHECK(aclrtRecordEvent(end, stream));
  CHECK(aclrtSynchronizeEvent(end));
  float milliseconds = 0;
  CHECK(aclrtEventElapsedTime(&milliseconds, begin, end));
  for (aclrtEvent event : {begin, end, ready}) CHECK(aclrtDestroyEvent(event));
  return milliseconds;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(aclInit(nullptr));
  std::uint32_t devices = 0;
  CHECK(aclrtGetDeviceCount(&devices));
  CHECK(aclrtSetDevice(rank % static_cast<int>(devices)));
  HcclRootInfo root{};
  if (rank == 0) CHECK(HcclGetRootInfo(&root));
  MPI_Bcast(&root, sizeof root, MPI_CHAR, 0, MPI_COMM_WORLD);

  Step step;
  CHECK(HcclCommInitRootInfo(static_cast<std::uint32_t>(ranks), &root, static_cast<std::uint32_t>(rank), &step.comm));
  CHECK(aclrtCreateStream(&step.compute));
  CHECK(aclrtCreateStream(&step.communicate));
  for (int i = 0; i < gradients; ++i) {
    CHECK(aclrtMalloc(&step.buffers.emplace_back(), elements * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMemset(step.buffers.back(), elements * sizeof(float), 0, elements * sizeof(float)));
  }
  const float serial = run(step, false);
  const float overlapped = run(step, true);
  if (rank == 0) {
    std::printf("%d gradients of 4 MiB, %.0f us of computation each\n", gradients, kernel_us);
    std::printf("one after the other %9.2f us\n", serial * 1e3);
    std::printf("overlapped          %9.2f us\n", overlapped * 1e3);
  }
  for (void* const buffer : step.buffers) CHECK(aclrtFree(buffer));
  CHECK(HcclCommDestroy(step.comm));
  CHECK(aclrtDestroyStream(step.compute));
  CHECK(aclrtDestroyStream(step.communicate));
  CHECK(aclFinalize());
  MPI_Finalize();
  return 0;
}
