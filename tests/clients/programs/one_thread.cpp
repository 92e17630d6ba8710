// One thread that does all for the NPUs of its process: groups of calls. Prints what one_thread.txt has.

#include <hccl/hccl.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "examples/clients/check.hpp"

namespace {

constexpr std::uint32_t npus = 4;
constexpr std::uint64_t count = 100;

std::vector<HcclComm> comms(npus, nullptr);
std::vector<float*> buffers(npus, nullptr);

void set_values() {
  for (std::uint32_t npu = 0; npu < npus; ++npu) {
    CHECK(aclrtSetDevice(static_cast<int>(npu)));
    const std::vector<float> host(count, static_cast<float>(npu + 1));
    CHECK(aclrtMemcpy(buffers[npu], count * sizeof(float), host.data(), count * sizeof(float),
                      ACL_MEMCPY_HOST_TO_DEVICE));
  }
}

float value(std::uint32_t npu, std::uint64_t place) {
  float host = 0;
  CHECK(aclrtSetDevice(static_cast<int>(npu)));
  CHECK(aclrtMemcpy(&host, sizeof host, buffers[npu] + place, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST));
  return host;
}

void synchronize() {
  for (std::uint32_t npu = 0; npu < npus; ++npu) {
    CHECK(aclrtSetDevice(static_cast<int>(npu)));
    CHECK(aclrtSynchronizeStream(nullptr));
  }
}

/// Communicators of all NPUs, which begin together.
void begin() {
  HcclRootInfo root{};
  CHECK(aclrtSetDevice(0));
  CHECK(HcclGetRootInfo(&root));
  CHECK(HcclGroupStart());
  for (std::uint32_t npu = 0; npu < npus; ++npu) {
    CHECK(aclrtSetDevice(static_cast<int>(npu)));
    CHECK(HcclCommInitRootInfo(npus, &root, npu, &comms[npu]));
  }
  CHECK(HcclGroupEnd());
  for (std::uint32_t npu = 0; npu < npus; ++npu) {
    std::uint32_t rank = 0;
    CHECK(HcclGetRankId(comms[npu], &rank));
    std::printf("NPU %u: rank %u\n", npu, rank);
  }
}

/// Each NPU's default stream, groups in a group.
void add_up() {
  CHECK(HcclGroupStart());
  for (std::uint32_t npu = 0; npu < npus; ++npu) {
    CHECK(aclrtSetDevice(static_cast<int>(npu)));
    CHECK(HcclGroupStart());
    CHECK(HcclAllReduce(buffers[npu], buffers[npu], count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comms[npu], nullptr));
    CHECK(HcclGroupEnd());
  }
  CHECK(HcclGroupEnd());
  synchronize();
  for (std::uint32_t npu = 0; npu < npus; ++npu) std::printf("NPU %u: sum %g\n", npu, value(npu, count - 1));
}

/// Half to the next rank, in two messages, all of whom send first; then a fifth of it to itself.
void send() {
  constexpr std::uint64_t quarter = count / 4;
  for (int again = 0; again < 2; ++again) {  // with transports, too
    CHECK(HcclGroupStart());
    for (std::uint32_t npu = 0; npu < npus; ++npu) {
      CHECK(aclrtSetDevice(static_cast<int>(npu)));
      for (std::uint64_t part = 0; part < 2; ++part) {
        CHECK(HcclSend(buffers[npu] + part * quarter, quarter, HCCL_DATA_TYPE_FP32, (npu + 1) % npus, comms[npu],
                       nullptr));
      }
      for (std::uint64_t part = 2; part < 4; ++part) {
        CHECK(HcclRecv(buffers[npu] + part * quarter, quarter, HCCL_DATA_TYPE_FP32, (npu + npus - 1) % npus, comms[npu],
                       nullptr));
      }
    }
    CHECK(HcclGroupEnd());
    synchronize();
  }
  for (std::uint32_t npu = 0; npu < npus; ++npu) {
    CHECK(aclrtSetDevice(static_cast<int>(npu)));
    std::vector<HcclSendRecvItem> items{{HCCL_RECV, buffers[npu], count / 10, HCCL_DATA_TYPE_FP32, npu},
                                        {HCCL_SEND, buffers[npu] + count / 2, count / 10, HCCL_DATA_TYPE_FP32, npu}};
    CHECK(HcclBatchSendRecv(items.data(), 2, comms[npu], nullptr));
    CHECK(HcclBatchSendRecv(items.data(), 0, comms[npu], nullptr));  // nothing
    CHECK(HcclGroupStart());
    CHECK(HcclSend(buffers[npu] + count / 2, 1, HCCL_DATA_TYPE_FP32, npu, comms[npu], nullptr));
    CHECK(HcclRecv(buffers[npu] + count / 10, 1, HCCL_DATA_TYPE_FP32, npu, comms[npu], nullptr));
    CHECK(HcclGroupEnd());
  }
  synchronize();
  for (std::uint32_t npu = 0; npu < npus; ++npu) {
    std::printf("NPU %u: %g %g %g %g\n", npu, value(npu, 0), value(npu, count / 10), value(npu, count / 10 + 1),
                value(npu, count / 2));
  }
}

/// What is refused, and goes on.
void refused() {
  std::vector<HcclSendRecvItem> items{{HCCL_SEND, buffers[0], 2, HCCL_DATA_TYPE_FP32, 0},
                                      {HCCL_RECV, buffers[0] + 2, 1, HCCL_DATA_TYPE_FP32, 0}};
  CHECK(aclrtSetDevice(0));
  std::printf("other counts to itself: %d\n", HcclBatchSendRecv(items.data(), 2, comms[0], nullptr));
  std::printf("to itself alone: %d\n", HcclBatchSendRecv(items.data(), 1, comms[0], nullptr));
  std::printf("to itself without a batch: %d\n", HcclSend(buffers[0], 1, HCCL_DATA_TYPE_FP32, 0, comms[0], nullptr));
  items[0].sendRecvType = static_cast<HcclSendRecvType>(9);
  std::printf("unknown kind of item: %d\n", HcclBatchSendRecv(items.data(), 1, comms[0], nullptr));
  std::printf("end without start: %d\n", HcclGroupEnd());
  std::printf("first call without a group: %d\n",
              HcclBroadcast(buffers[0], 1, HCCL_DATA_TYPE_FP32, 0, comms[0], nullptr));
}

}  // namespace

int main() {
  CHECK(aclInit(nullptr));
  begin();
  for (std::uint32_t npu = 0; npu < npus; ++npu) {
    CHECK(aclrtSetDevice(static_cast<int>(npu)));
    void* memory = nullptr;
    CHECK(aclrtMalloc(&memory, count * sizeof(float), ACL_MEM_MALLOC_NORMAL_ONLY));
    buffers[npu] = static_cast<float*>(memory);
  }
  set_values();
  add_up();
  set_values();
  send();
  refused();
  CHECK(HcclGroupStart());
  for (HcclComm comm : comms) CHECK(HcclCommDestroy(comm));
  CHECK(HcclGroupEnd());
  CHECK(aclFinalize());
  return 0;
}
