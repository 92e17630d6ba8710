// Allreduce in one process with a thread for each NPU. Rank r gives r + i for element i; every rank gets the sum.
//
//   g++ -o 1_allreduce 1_allreduce.cpp $(hcclsim exec --flags)
//   hcclsim exec --platform atlas800t-a2 -- ./1_allreduce

#include <hccl/hccl.h>

#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

constexpr std::uint64_t elements = std::uint64_t{1} << 20U;

void work(std::uint32_t rank, std::uint32_t ranks, const HcclRootInfo& root, std::vector<float>& result) {
  CHECK(aclrtSetDevice(static_cast<int>(rank)));
  HcclComm comm = nullptr;
  CHECK(HcclCommInitRootInfo(ranks, &root, rank, &comm));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));

  std::vector<float> data(elements);
  for (std::uint64_t i = 0; i < elements; ++i) data[i] = static_cast<float>(rank + i % 1000);
  const std::size_t bytes = elements * sizeof(float);
  void* send = nullptr;
  void* receive = nullptr;
  CHECK(aclrtMalloc(&send, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMalloc(&receive, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(send, bytes, data.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));

  aclrtEvent begin = nullptr;
  aclrtEvent end = nullptr;
  CHECK(aclrtCreateEvent(&begin));
  CHECK(aclrtCreateEvent(&end));
  CHECK(aclrtRecordEvent(begin, stream));
  CHECK(HcclAllReduce(send, receive, elements, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream));
  CHECK(aclrtRecordEvent(end, stream));
  CHECK(aclrtSynchronizeStream(stream));
  float milliseconds = 0;
  CHECK(aclrtEventElapsedTime(&milliseconds, begin, end));

  CHECK(aclrtMemcpy(result.data(), bytes, receive, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  std::printf("rank %u: %.2f us\n", rank, milliseconds * 1e3);
  CHECK(aclrtDestroyEvent(begin));
  CHECK(aclrtDestroyEvent(end));
  CHECK(aclrtFree(send));
  CHECK(aclrtFree(receive));
  CHECK(aclrtDestroyStream(stream));
  CHECK(HcclCommDestroy(comm));
  CHECK(aclrtResetDevice(static_cast<int>(rank)));
}

}  // namespace

int main() {
  CHECK(aclInit(nullptr));
  std::uint32_t ranks = 0;
  CHECK(aclrtGetDeviceCount(&ranks));
  CHECK(aclrtSetDevice(0));
  HcclRootInfo root;
  CHECK(HcclGetRootInfo(&root));

  std::vector<std::vector<float>> results(ranks, std::vector<float>(elements));
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { work(rank, ranks, root, results[rank]); });
  }
  for (std::thread& thread : threads) thread.join();

  std::uint64_t wrong = 0;
  for (const std::vector<float>& result : results) {
    for (std::uint64_t i = 0; i < elements; ++i) {
      const auto expected = static_cast<float>(ranks * (i % 1000) + ranks * (ranks - 1) / 2);
      if (result[i] != expected) ++wrong;
    }
  }
  std::printf("%s, %u NPUs: %llu wrong elements\n", aclrtGetSocName(), ranks, static_cast<unsigned long long>(wrong));
  CHECK(aclFinalize());
  return wrong == 0 ? 0 : 1;
}
