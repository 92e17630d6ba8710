// Streams that overlap: gradients are computed one after the other, and each is reduced in a second stream while the
// next ones are computed. Prints the simulated time of a step one after the other, and overlapped.
//
//   g++ -o 2_overlap 2_overlap.cpp $(hcclsim exec --flags)
//   hcclsim exec --platform atlas800t-a2 --processes 8 -- ./2_overlap

#include <hccl/hccl.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "world.hpp"

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
  const World world = begin_world(argc, argv);
  Step step;
  step.comm = world.comm;
  CHECK(aclrtCreateStream(&step.compute));
  CHECK(aclrtCreateStream(&step.communicate));
  for (int i = 0; i < gradients; ++i) {
    CHECK(aclrtMalloc(&step.buffers.emplace_back(), elements * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMemset(step.buffers.back(), elements * sizeof(float), 0, elements * sizeof(float)));
  }
  const float serial = run(step, false);
  const float overlapped = run(step, true);
  if (world.rank == 0) {
    std::printf("%d gradients of 4 MiB, %.0f us of computation each\n", gradients, kernel_us);
    std::printf("one after the other %9.2f us\n", serial * 1e3);
    std::printf("overlapped          %9.2f us\n", overlapped * 1e3);
  }
  for (void* const buffer : step.buffers) CHECK(aclrtFree(buffer));
  CHECK(aclrtDestroyStream(step.compute));
  CHECK(aclrtDestroyStream(step.communicate));
  end_world(world);
  return 0;
}
