// Programs that use memory of a device too early, or in time, by name: poison CASE. For hcclsim exec --poison.

#include <hccl/hccl.h>
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "examples/clients/world.hpp"
#include "tests/clients/programs/support.hpp"

namespace {

constexpr std::size_t count = 1024;
constexpr std::size_t bytes = 4 * count;

World world;
aclrtStream stream;
aclrtStream other;
char* given;
char* result;
char* third;
std::vector<float> host(count);

void allreduce() {
  CHECK(HcclAllReduce(given, result, count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, world.comm, stream));
}

void copy(void* to, const void* from, aclrtMemcpyKind kind, aclrtStream in) {
  CHECK(aclrtMemcpyAsync(to, bytes, from, bytes, kind, in));
}

void synchronize() {
  CHECK(aclrtSynchronizeStream(stream));
  CHECK(aclrtSynchronizeStream(other));
}

/// Everything waits for what it needs: by streams, by events, and on the host.
void right() {
  void* pinned = nullptr;
  CHECK(aclrtMallocHost(&pinned, bytes));
  aclrtEvent reduced = nullptr;
  aclrtEvent taken = nullptr;
  CHECK(aclrtCreateEvent(&reduced));
  CHECK(aclrtCreateEvent(&taken));
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < count; ++i) static_cast<float*>(pinned)[i] = static_cast<float>(world.rank + i);
    copy(given, pinned, ACL_MEMCPY_HOST_TO_DEVICE, stream);
    allreduce();
    CHECK(aclrtRecordEvent(reduced, stream));
    CHECK(aclrtStreamWaitEvent(other, reduced));
    copy(third, result, ACL_MEMCPY_DEVICE_TO_DEVICE, other);
    copy(pinned, third, ACL_MEMCPY_DEVICE_TO_HOST, other);
    CHECK(aclrtRecordEvent(taken, other));
    CHECK(aclrtStreamWaitEvent(stream, taken));
    CHECK(HcclBroadcast(third, count, HCCL_DATA_TYPE_FP32, 1, world.comm, stream));
    if (world.rank == 1) copy(host.data(), third, ACL_MEMCPY_DEVICE_TO_HOST, other);  // both only read
    CHECK(aclrtLaunchHostFunc(
        stream, [](void* one) { *static_cast<float*>(one) = 3; }, pinned));
    copy(given, pinned, ACL_MEMCPY_HOST_TO_DEVICE, stream);  // what the function has written, too
    synchronize();
    WANT(static_cast<float*>(pinned)[7], world.ranks * (world.ranks - 1) / 2 + 7 * world.ranks);
  }
  std::printf("right\n");
}

void run(const std::string& name) {
  if (name == "right") return right();
  if (name == "fresh") {
    std::uint32_t word = 0;
    CHECK(aclrtMemcpy(&word, 4, third + 100, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    const Mapped mapped(32 * mib);
    std::uint32_t far = 0;
    CHECK(aclrtMemcpy(&far, 4, static_cast<char*>(mapped.address) + 31 * mib, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    std::printf("%08x %08x\n", word, far);
    return;
  }
  CHECK(hcclsimLaunchKernel("kernel", 50, stream));
  if (name == "host_destination") {  // read before it is there
    copy(host.data(), given, ACL_MEMCPY_DEVICE_TO_HOST, stream);
    std::uint32_t word = 0;
    std::memcpy(&word, &host[5], sizeof word);
    synchronize();
    std::printf("%08x, then %g\n", word, host[5]);
    return;
  }
  if (name == "pinned_source") {
    void* pinned = nullptr;
    CHECK(aclrtMallocHost(&pinned, bytes));
    copy(third, pinned, ACL_MEMCPY_HOST_TO_DEVICE, stream);
    static_cast<float*>(pinned)[10] = 1;
    synchronize();
    return;
  }
  allreduce();
  if (name == "result_to_host") CHECK(aclrtMemcpy(host.data(), bytes, result, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  if (name == "result_in_other_stream") copy(third, result, ACL_MEMCPY_DEVICE_TO_DEVICE, other);
  if (name == "input_is_written") copy(given, host.data(), ACL_MEMCPY_HOST_TO_DEVICE, other);
  if (name == "input_is_filled") CHECK(aclrtMemset(given + 400, 40, 0, 40));
  if (name == "result_is_given") {
    CHECK(HcclBroadcast(result, count, HCCL_DATA_TYPE_FP32, 0, world.comm, other));
  }
  synchronize();
}

}  // namespace

int main(int argc, char** argv) {
  world = begin_world(argc, argv);
  CHECK(aclrtCreateStream(&stream));
  CHECK(aclrtCreateStream(&other));
  for (char** const one : {&given, &result, &third}) {
    CHECK(aclrtMalloc(reinterpret_cast<void**>(one), bytes, ACL_MEM_MALLOC_NORMAL_ONLY));
  }
  for (std::size_t i = 0; i < count; ++i) host[i] = static_cast<float>(world.rank + i);
  CHECK(aclrtMemcpy(given, bytes, host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  // Transports are there.
  CHECK(HcclBroadcast(result, 1, HCCL_DATA_TYPE_FP32, 0, world.comm, stream));
  allreduce();
  CHECK(aclrtSynchronizeStream(stream));
  MPI_Barrier(MPI_COMM_WORLD);
  run(argv[1]);
  MPI_Barrier(MPI_COMM_WORLD);
  return 0;
}
