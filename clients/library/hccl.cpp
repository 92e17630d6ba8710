// HCCL's functions: they ask the simulator, which knows all communicators.
// NOLINTBEGIN(readability-identifier-naming): names are the interface's
#include <hccl/hccl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "clients/library/api.hpp"

using namespace hcclsim::clients;  // NOLINT(google-build-using-namespace)

namespace {

HcclResult failed(const char* function, HcclResult result, const std::string& message) {
  return static_cast<HcclResult>(fail(function, static_cast<int>(result), message));
}

HcclResult result_of(const char* function, const Answer& answer) {
  if (!connected()) return HCCL_E_INTERNAL;
  return static_cast<HcclResult>(status_of(function, answer));
}

/// A structure as it lies in memory.
template <typename Value>
std::string_view bytes_of(const Value* values, std::size_t count = 1) {
  return {reinterpret_cast<const char*>(values), count * sizeof(Value)};
}

HcclResult communicate(const char* function, const CollectiveArguments& arguments, std::string_view counts = {}) {
  std::string bytes(bytes_of(&arguments));
  bytes += counts;
  return result_of(function, ask(Call::collective, {}, bytes));
}

/// The numbers of ranks of a communicator; 0 if it is none.
std::uint32_t ranks_of(HcclComm comm) {
  const Answer answer = ask(Call::communicator_facts, {number_of(comm)});
  return answer.status == 0 ? static_cast<std::uint32_t>(answer.values[0]) : 0;
}

std::string_view counts_at(const void* counts, std::uint32_t number) {
  return bytes_of(static_cast<const std::uint64_t*>(counts), number);
}

/// The settings of a communicator; empty: none are given.
std::string settings_of(const HcclCommConfig* config) {
  return config == nullptr ? std::string() : std::string(bytes_of(config));
}

bool is_initialised(const HcclCommConfig* config) {
  std::uint32_t magic = 0;
  std::memcpy(&magic, config->reserved + sizeof(std::size_t), sizeof magic);
  return magic == HCCL_COMM_CONFIG_MAGIC_WORD;
}

HcclResult begin_from_root(const char* function, std::uint32_t ranks, const HcclRootInfo* root, std::uint32_t rank,
                           const HcclCommConfig* config, HcclComm* comm) {
  if (root == nullptr || comm == nullptr) return failed(function, HCCL_E_PTR, "null");
  if (config != nullptr && !is_initialised(config)) {
    return failed(function, HCCL_E_PARA, "config: call HcclCommConfigInit first");
  }
  std::uint64_t number = 0;
  std::memcpy(&number, root->internal, sizeof number);
  const Answer answer = ask(Call::begin_communicator, {ranks, number, rank}, settings_of(config));
  if (answer.status == 0) *comm = handle_of(answer.values[0]);
  return result_of(function, answer);
}

HcclResult begin_from_table(const char* function, const char* file, std::uint32_t rank, const HcclCommConfig* config,
                            HcclComm* comm) {
  if (file == nullptr || comm == nullptr) return failed(function, HCCL_E_PTR, "null");
  const std::string settings = settings_of(config);
  const Answer answer = ask(Call::begin_from_table, {rank, settings.size()}, settings + file);
  if (answer.status == 0) *comm = handle_of(answer.values[0]);
  return result_of(function, answer);
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank, HcclComm* comm) {
  return begin_from_table(__func__, clusterInfo, rank, nullptr, comm);
}

HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t rank, HcclCommConfig* config,
                                         HcclComm* comm) {
  return begin_from_table(__func__, clusterInfo, rank, config, comm);
}

HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo) {
  if (rootInfo == nullptr) return failed(__func__, HCCL_E_PTR, "null");
  const Answer answer = ask(Call::root_info, {});
  std::memset(rootInfo, 0, sizeof *rootInfo);
  std::memcpy(rootInfo->internal, answer.values.data(), sizeof answer.values[0]);
  return result_of(__func__, answer);
}

HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank, HcclComm* comm) {
  return begin_from_root(__func__, nRanks, rootInfo, rank, nullptr, comm);
}

HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                      const HcclCommConfig* config, HcclComm* comm) {
  if (config == nullptr) return failed(__func__, HCCL_E_PTR, "config is null");
  return begin_from_root(__func__, nRanks, rootInfo, rank, config, comm);
}

HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms) {
  if (devices == nullptr || comms == nullptr) return failed(__func__, HCCL_E_PTR, "null");
  std::vector<std::int32_t> on_server;
  for (std::uint32_t i = 0; i < ndev; ++i) on_server.push_back(device_on_server(devices[i]));
  const Answer answer = ask(Call::begin_all, {}, bytes_of(on_server.data(), on_server.size()));
  if (answer.status == 0) {
    for (std::uint32_t i = 0; i < ndev; ++i) {
      std::uint64_t number = 0;
      std::memcpy(&number, answer.bytes.data() + i * sizeof number, sizeof number);
      comms[i] = handle_of(number);
    }
  }
  return result_of(__func__, answer);
}

HcclResult HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum, uint32_t* rankIds, uint64_t subCommId,
                                   uint32_t subCommRankId, HcclCommConfig* config, HcclComm* subComm) {
  if (comm == nullptr || subComm == nullptr || config == nullptr) return failed(__func__, HCCL_E_PTR, "null");
  constexpr std::uint64_t no_communicator = 0xffffffff;
  if (rankIds == nullptr && subCommId == no_communicator) {  // the rank takes no part
    *subComm = nullptr;
    return HCCL_SUCCESS;
  }
  if (rankIds == nullptr) return failed(__func__, HCCL_E_PTR, "rankIds is null");
  const std::string settings = settings_of(config);
  const Answer answer = ask(Call::begin_sub, {number_of(*comm), subCommId, subCommRankId, settings.size()},
                            settings + std::string(bytes_of(rankIds, rankNum)));
  if (answer.status == 0) *subComm = handle_of(answer.values[0]);
  return result_of(__func__, answer);
}

HcclResult HcclCommDestroy(HcclComm comm) {
  return result_of(__func__, ask(Call::destroy_communicator, {number_of(comm)}));
}

HcclResult HcclGetCommName(HcclComm comm, char* commName) {
  if (commName == nullptr) return failed(__func__, HCCL_E_PTR, "null");
  const Answer answer = ask(Call::communicator_facts, {number_of(comm)});
  if (answer.status == 0) std::strcpy(commName, answer.bytes.substr(0, COMM_NAME_MAX_LENGTH - 1).c_str());
  return result_of(__func__, answer);
}

HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize) {
  if (rankSize == nullptr) return failed(__func__, HCCL_E_PTR, "null");
  const Answer answer = ask(Call::communicator_facts, {number_of(comm)});
  if (answer.status == 0) *rankSize = static_cast<uint32_t>(answer.values[0]);
  return result_of(__func__, answer);
}

HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank) {
  if (rank == nullptr) return failed(__func__, HCCL_E_PTR, "null");
  const Answer answer = ask(Call::communicator_facts, {number_of(comm)});
  if (answer.status == 0) *rank = static_cast<uint32_t>(answer.values[1]);
  return result_of(__func__, answer);
}

HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError) {
  if (asyncError == nullptr) return failed(__func__, HCCL_E_PTR, "null");
  const Answer answer = ask(Call::async_error, {number_of(comm)});
  if (answer.status == 0) *asyncError = static_cast<HcclResult>(answer.values[0]);
  return result_of(__func__, answer);
}

const char* HcclGetErrorString(HcclResult code) {
  static constexpr std::array<const char*, 24> texts{"no error",
                                                     "invalid parameter",
                                                     "null pointer",
                                                     "no memory",
                                                     "internal error",
                                                     "not supported",
                                                     "not found",
                                                     "resource unavailable",
                                                     "system call failed",
                                                     "time-out",
                                                     "a file cannot be opened",
                                                     "TCP connection failed",
                                                     "RoCE connection failed",
                                                     "TCP transfer failed",
                                                     "RoCE transfer failed",
                                                     "the runtime of the device failed",
                                                     "the driver failed",
                                                     "the profiler failed",
                                                     "the AI core failed",
                                                     "the network failed",
                                                     "not ready, try again",
                                                     "a remote NPU failed",
                                                     "suspended",
                                                     "unknown error"};
  return texts[std::min<std::size_t>(static_cast<std::size_t>(code), texts.size() - 1)];
}

uint32_t HcclGetCommConfigCapability(void) { return HCCL_COMM_CONFIG_RESERVED; }

HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue) {
  if (config != HCCL_DETERMINISTIC) return failed(__func__, HCCL_E_PARA, "only HCCL_DETERMINISTIC can be set");
  return result_of(__func__, ask(Call::set_deterministic, {as_number(configValue.value)}));
}

HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue* configValue) {
  if (configValue == nullptr) return failed(__func__, HCCL_E_PTR, "null");
  if (config != HCCL_DETERMINISTIC) return failed(__func__, HCCL_E_PARA, "only HCCL_DETERMINISTIC can be asked for");
  const Answer answer = ask(Call::get_deterministic, {});
  configValue->value = static_cast<int32_t>(answer.values[0]);
  return result_of(__func__, answer);
}

HcclResult HcclCommSuspend(HcclComm comm) { return result_of(__func__, ask(Call::suspend, {number_of(comm), 0})); }
HcclResult HcclCommResume(HcclComm comm) { return result_of(__func__, ask(Call::suspend, {number_of(comm), 1})); }

HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
                         HcclComm comm, aclrtStream stream) {
  return communicate(__func__, {.collective = CollectiveCall::allreduce,
                                .type = dataType,
                                .op = op,
                                .send = number_of(sendBuf),
                                .receive = number_of(recvBuf),
                                .count = count,
                                .communicator = number_of(comm),
                                .stream = number_of(stream)});
}

HcclResult HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType, uint32_t root, HcclComm comm,
                         aclrtStream stream) {
  return communicate(__func__, {.collective = CollectiveCall::broadcast,
                                .type = dataType,
                                .peer = root,
                                .send = number_of(buf),
                                .receive = number_of(buf),
                                .count = count,
                                .communicator = number_of(comm),
                                .stream = number_of(stream)});
}

HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType, HcclReduceOp op,
                             HcclComm comm, aclrtStream stream) {
  return communicate(__func__, {.collective = CollectiveCall::reduce_scatter,
                                .type = dataType,
                                .op = op,
                                .send = number_of(sendBuf),
                                .receive = number_of(recvBuf),
                                .count = recvCount,
                                .communicator = number_of(comm),
                                .stream = number_of(stream)});
}

HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts, const void* sendDispls, void* recvBuf,
                              uint64_t recvCount, HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                              aclrtStream stream) {
  if (sendCounts == nullptr || sendDispls == nullptr) return failed(__func__, HCCL_E_PTR, "null");
  const std::uint32_t ranks = ranks_of(comm);
  std::string counts(counts_at(sendCounts, ranks));
  counts += counts_at(sendDispls, ranks);
  return communicate(__func__,
                     {.collective = CollectiveCall::reduce_scatter_v,
                      .type = dataType,
                      .op = op,
                      .send = number_of(sendBuf),
                      .receive = number_of(recvBuf),
                      .count = recvCount,
                      .communicator = number_of(comm),
                      .stream = number_of(stream)},
                     counts);
}

HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType, uint32_t root,
                       HcclComm comm, aclrtStream stream) {
  return communicate(__func__, {.collective = CollectiveCall::scatter,
                                .type = dataType,
                                .peer = root,
                                .send = number_of(sendBuf),
                                .receive = number_of(recvBuf),
                                .count = recvCount,
                                .communicator = number_of(comm),
                                .stream = number_of(stream)});
}

HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, HcclDataType dataType, HcclComm comm,
                         aclrtStream stream) {
  return communicate(__func__, {.collective = CollectiveCall::allgather,
                                .type = dataType,
                                .send = number_of(sendBuf),
                                .receive = number_of(recvBuf),
                                .count = sendCount,
                                .communicator = number_of(comm),
                                .stream = number_of(stream)});
}

HcclResult HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf, const void* recvCounts,
                          const void* recvDispls, HcclDataType dataType, HcclComm comm, aclrtStream stream) {
  if (recvCounts == nullptr || recvDispls == nullptr) return failed(__func__, HCCL_E_PTR, "null");
  const std::uint32_t ranks = ranks_of(comm);
  std::string counts(counts_at(recvCounts, ranks));
  counts += counts_at(recvDispls, ranks);
  return communicate(__func__,
                     {.collective = CollectiveCall::allgather_v,
                      .type = dataType,
                      .send = number_of(sendBuf),
                      .receive = number_of(recvBuf),
                      .count = sendCount,
                      .communicator = number_of(comm),
                      .stream = number_of(stream)},
                     counts);
}

HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
                      uint32_t root, HcclComm comm, aclrtStream stream) {
  return communicate(__func__, {.collective = CollectiveCall::reduce,
                                .type = dataType,
                                .op = op,
                                .peer = root,
                                .send = number_of(sendBuf),
                                .receive = number_of(recvBuf),
                                .count = count,
                                .communicator = number_of(comm),
                                .stream = number_of(stream)});
}

HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount, HcclDataType sendType, const void* recvBuf,
                        uint64_t recvCount, HcclDataType recvType, HcclComm comm, aclrtStream stream) {
  if (sendCount != recvCount || sendType != recvType) {
    return failed(__func__, HCCL_E_PARA, "what is sent and what is received differ in count or type");
  }
  return communicate(__func__, {.collective = CollectiveCall::alltoall,
                                .type = sendType,
                                .send = number_of(sendBuf),
                                .receive = number_of(recvBuf),
                                .count = sendCount,
                                .communicator = number_of(comm),
                                .stream = number_of(stream)});
}

HcclResult HcclAlltoAllV(const void* sendBuf, const void* sendCounts, const void* sdispls, HcclDataType sendType,
                         const void* recvBuf, const void* recvCounts, const void* rdispls, HcclDataType recvType,
                         HcclComm comm, aclrtStream stream) {
  const std::array<const void*, 4> all{sendCounts, sdispls, recvCounts, rdispls};
  if (std::ranges::count(all, nullptr) > 0) return failed(__func__, HCCL_E_PTR, "null");
  if (sendType != recvType) return failed(__func__, HCCL_E_PARA, "sendType and recvType differ");
  const std::uint32_t ranks = ranks_of(comm);
  std::string counts;
  for (const void* const values : all) counts += counts_at(values, ranks);
  return communicate(__func__,
                     {.collective = CollectiveCall::alltoall_v,
                      .type = sendType,
                      .send = number_of(sendBuf),
                      .receive = number_of(recvBuf),
                      .communicator = number_of(comm),
                      .stream = number_of(stream)},
                     counts);
}

HcclResult HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix, HcclDataType sendType, const void* recvBuf,
                          HcclDataType recvType, HcclComm comm, aclrtStream stream) {
  if (sendCountMatrix == nullptr) return failed(__func__, HCCL_E_PTR, "sendCountMatrix is null");
  if (sendType != recvType) return failed(__func__, HCCL_E_PARA, "sendType and recvType differ");
  const std::uint32_t ranks = ranks_of(comm);
  return communicate(__func__,
                     {.collective = CollectiveCall::alltoall_vc,
                      .type = sendType,
                      .send = number_of(sendBuf),
                      .receive = number_of(recvBuf),
                      .communicator = number_of(comm),
                      .stream = number_of(stream)},
                     counts_at(sendCountMatrix, ranks * ranks));
}

HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) {
  return communicate(
      __func__, {.collective = CollectiveCall::barrier, .communicator = number_of(comm), .stream = number_of(stream)});
}

HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank, HcclComm comm,
                    aclrtStream stream) {
  return communicate(__func__, {.collective = CollectiveCall::send,
                                .type = dataType,
                                .peer = destRank,
                                .send = number_of(sendBuf),
                                .count = count,
                                .communicator = number_of(comm),
                                .stream = number_of(stream)});
}

HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank, HcclComm comm,
                    aclrtStream stream) {
  return communicate(__func__, {.collective = CollectiveCall::receive,
                                .type = dataType,
                                .peer = srcRank,
                                .receive = number_of(recvBuf),
                                .count = count,
                                .communicator = number_of(comm),
                                .stream = number_of(stream)});
}

HcclResult HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum, HcclComm comm, aclrtStream stream) {
  if (sendRecvInfo == nullptr) return failed(__func__, HCCL_E_PTR, "null");
  if (itemNum == 0) return failed(__func__, HCCL_E_PARA, "no items");
  std::vector<BatchItem> items;
  for (std::uint32_t i = 0; i < itemNum; ++i) {
    const HcclSendRecvItem& item = sendRecvInfo[i];
    items.push_back({.receives = item.sendRecvType == HCCL_RECV ? 1U : 0U,
                     .type = item.dataType,
                     .peer = item.remoteRank,
                     .address = number_of(item.buf),
                     .count = item.count});
  }
  return result_of(__func__,
                   ask(Call::batch, {number_of(comm), number_of(stream)}, bytes_of(items.data(), items.size())));
}

HcclResult HcclGroupStart(void) { return result_of(__func__, ask(Call::begin_group, {})); }
HcclResult HcclGroupEnd(void) { return result_of(__func__, ask(Call::end_group, {})); }

HcclResult HcclCommSetMemoryRange(HcclComm comm, void* baseVirPtr, size_t size, size_t /*alignment*/,
                                  uint64_t /*flags*/) {
  return result_of(__func__, ask(Call::set_range, {number_of(comm), number_of(baseVirPtr), size}));
}

HcclResult HcclCommUnsetMemoryRange(HcclComm comm, void* baseVirPtr) {
  return result_of(__func__, ask(Call::unset_range, {number_of(comm), number_of(baseVirPtr)}));
}

HcclResult HcclCommActivateCommMemory(HcclComm comm, void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                                      uint64_t /*flags*/) {
  if (offset != 0) return failed(__func__, HCCL_E_PARA, "offset: only 0");
  return result_of(__func__, ask(Call::activate_range, {number_of(comm), number_of(virPtr), size, number_of(handle)}));
}

HcclResult HcclCommDeactivateCommMemory(HcclComm comm, void* virPtr) {
  return result_of(__func__, ask(Call::deactivate_range, {number_of(comm), number_of(virPtr)}));
}

#pragma GCC visibility pop
}
// NOLINTEND(readability-identifier-naming)
