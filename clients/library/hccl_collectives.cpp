// HCCL's collectives and messages.
// NOLINTBEGIN(readability-identifier-naming): names are the interface's
#include <hccl/hccl.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "clients/library/hccl_calls.hpp"

using namespace hcclsim::clients;  // NOLINT(google-build-using-namespace)

namespace {

/// A call of one of these functions, from its arguments to its result.
class Communication {
 public:
  Communication(const char* function, CollectiveCall collective, HcclComm comm, aclrtStream stream)
      : function_(function),
        arguments_{.collective = collective, .communicator = number_of(comm), .stream = number_of(stream)} {}

  Communication& move(const void* from, const void* to, std::uint64_t count, HcclDataType type) {
    arguments_.send = number_of(from);
    arguments_.receive = number_of(to);
    arguments_.count = count;
    arguments_.type = type;
    return *this;
  }
  Communication& reduce(HcclReduceOp op) {
    arguments_.op = op;
    return *this;
  }
  /// The root, or the other end of a message.
  Communication& with(std::uint32_t peer) {
    arguments_.peer = peer;
    return *this;
  }
  /// Lists of the program, each of a number for every rank, or for every pair of them.
  Communication& blocks(std::initializer_list<const void*> lists, bool pairs = false) {
    if (std::ranges::count(lists, nullptr) > 0) {
      problem_ = "counts or displacements are null";
      return *this;
    }
    const Answer facts = ask(Call::communicator_facts, {arguments_.communicator});
    const std::uint64_t ranks = facts.status == 0 ? facts.values[0] : 0;
    for (const void* const list : lists) {
      counts_ += bytes_of(static_cast<const std::uint64_t*>(list), pairs ? ranks * ranks : ranks);
    }
    return *this;
  }

  [[nodiscard]] HcclResult issue() const {
    if (problem_ != nullptr) return failed(function_, HCCL_E_PTR, problem_);
    return result_of(function_, ask(Call::collective, {}, std::string(bytes_of(&arguments_)) + counts_));
  }

 private:
  const char* function_;
  CollectiveArguments arguments_;
  std::string counts_{};
  const char* problem_ = nullptr;
};

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
                         HcclComm comm, aclrtStream stream) {
  Communication call(__func__, CollectiveCall::allreduce, comm, stream);
  return call.move(sendBuf, recvBuf, count, dataType).reduce(op).issue();
}

HcclResult HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType, uint32_t root, HcclComm comm,
                         aclrtStream stream) {
  Communication call(__func__, CollectiveCall::broadcast, comm, stream);
  return call.move(buf, buf, count, dataType).with(root).issue();
}

HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType, HcclReduceOp op,
                             HcclComm comm, aclrtStream stream) {
  Communication call(__func__, CollectiveCall::reduce_scatter, comm, stream);
  return call.move(sendBuf, recvBuf, recvCount, dataType).reduce(op).issue();
}

HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts, const void* sendDispls, void* recvBuf,
                              uint64_t recvCount, HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                              aclrtStream stream) {
  Communication call(__func__, CollectiveCall::reduce_scatter_v, comm, stream);
  return call.move(sendBuf, recvBuf, recvCount, dataType).reduce(op).blocks({sendCounts, sendDispls}).issue();
}

HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType, uint32_t root,
                       HcclComm comm, aclrtStream stream) {
  Communication call(__func__, CollectiveCall::scatter, comm, stream);
  return call.move(sendBuf, recvBuf, recvCount, dataType).with(root).issue();
}

HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, HcclDataType dataType, HcclComm comm,
                         aclrtStream stream) {
  return Communication(__func__, CollectiveCall::allgather, comm, stream)
      .move(sendBuf, recvBuf, sendCount, dataType)
      .issue();
}

HcclResult HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf, const void* recvCounts,
                          const void* recvDispls, HcclDataType dataType, HcclComm comm, aclrtStream stream) {
  Communication call(__func__, CollectiveCall::allgather_v, comm, stream);
  return call.move(sendBuf, recvBuf, sendCount, dataType).blocks({recvCounts, recvDispls}).issue();
}

HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
                      uint32_t root, HcclComm comm, aclrtStream stream) {
  Communication call(__func__, CollectiveCall::reduce, comm, stream);
  return call.move(sendBuf, recvBuf, count, dataType).reduce(op).with(root).issue();
}

HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount, HcclDataType sendType, const void* recvBuf,
                        uint64_t recvCount, HcclDataType recvType, HcclComm comm, aclrtStream stream) {
  if (sendCount != recvCount || sendType != recvType) {
    return failed(__func__, HCCL_E_PARA, "what is sent and what is received differ in count or type");
  }
  return Communication(__func__, CollectiveCall::alltoall, comm, stream)
      .move(sendBuf, recvBuf, sendCount, sendType)
      .issue();
}

HcclResult HcclAlltoAllV(const void* sendBuf, const void* sendCounts, const void* sdispls, HcclDataType sendType,
                         const void* recvBuf, const void* recvCounts, const void* rdispls, HcclDataType recvType,
                         HcclComm comm, aclrtStream stream) {
  if (sendType != recvType) return failed(__func__, HCCL_E_PARA, "sendType and recvType differ");
  Communication call(__func__, CollectiveCall::alltoall_v, comm, stream);
  return call.move(sendBuf, recvBuf, 0, sendType).blocks({sendCounts, sdispls, recvCounts, rdispls}).issue();
}

HcclResult HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix, HcclDataType sendType, const void* recvBuf,
                          HcclDataType recvType, HcclComm comm, aclrtStream stream) {
  if (sendType != recvType) return failed(__func__, HCCL_E_PARA, "sendType and recvType differ");
  Communication call(__func__, CollectiveCall::alltoall_vc, comm, stream);
  return call.move(sendBuf, recvBuf, 0, sendType).blocks({sendCountMatrix}, true).issue();
}

HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) {
  return Communication(__func__, CollectiveCall::barrier, comm, stream).issue();
}

HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank, HcclComm comm,
                    aclrtStream stream) {
  Communication call(__func__, CollectiveCall::send, comm, stream);
  return call.move(sendBuf, nullptr, count, dataType).with(destRank).issue();
}

HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank, HcclComm comm,
                    aclrtStream stream) {
  Communication call(__func__, CollectiveCall::receive, comm, stream);
  return call.move(nullptr, recvBuf, count, dataType).with(srcRank).issue();
}

HcclResult HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum, HcclComm comm, aclrtStream stream) {
  if (sendRecvInfo == nullptr) return failed(__func__, HCCL_E_PTR, "null");
  if (itemNum == 0) return HCCL_SUCCESS;
  std::vector<BatchItem> items;
  for (std::uint32_t i = 0; i < itemNum; ++i) {
    const HcclSendRecvItem& item = sendRecvInfo[i];
    if (item.sendRecvType != HCCL_SEND && item.sendRecvType != HCCL_RECV) {
      return failed(__func__, HCCL_E_PARA,
                    "sendRecvType of item " + std::to_string(i) + ": only HCCL_SEND and HCCL_RECV");
    }
    items.push_back({.receives = item.sendRecvType == HCCL_RECV ? 1U : 0U,
                     .type = item.dataType,
                     .peer = item.remoteRank,
                     .address = number_of(item.buf),
                     .count = item.count});
  }
  return result_of(__func__,
                   ask(Call::batch, {number_of(comm), number_of(stream)}, bytes_of(items.data(), items.size())));
}

#pragma GCC visibility pop
}
// NOLINTEND(readability-identifier-naming)
