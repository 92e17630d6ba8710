// HCCL's communicators and settings. The simulator knows all of them.
// NOLINTBEGIN(readability-identifier-naming): names are the interface's
#include <hccl/hccl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "clients/library/hccl_calls.hpp"

using namespace hcclsim::clients;  // NOLINT(google-build-using-namespace)

namespace {

/// What HcclGroupEnd is to fill in, in the order of the calls.
std::vector<HcclComm*>& begun_in_group() {
  thread_local std::vector<HcclComm*> all;
  return all;
}

/// Fills in the communicator, or has HcclGroupEnd do it.
HcclResult begun(const char* function, const Answer& answer, HcclComm* comm) {
  const bool later = answer.values[1] != 0;
  if (answer.status == 0 && later) begun_in_group().push_back(comm);
  if (answer.status == 0) *comm = later ? nullptr : handle_of(answer.values[0]);
  return result_of(function, answer);
}

/// The settings of a communicator, as much of the structure as the program was compiled with; empty: none are given.
std::string settings_of(const HcclCommConfig* config) {
  if (config == nullptr) return {};
  std::size_t bytes = 0;
  std::memcpy(&bytes, config->reserved, sizeof bytes);
  bytes = std::clamp(bytes, sizeof config->reserved, sizeof *config);
  return std::string(bytes_of(config).substr(0, bytes));
}

HcclResult begin_from_root(const char* function, std::uint32_t ranks, const HcclRootInfo* root, std::uint32_t rank,
                           const HcclCommConfig* config, HcclComm* comm) {
  if (root == nullptr || comm == nullptr) return failed(function, HCCL_E_PTR, "null");
  std::uint64_t number = 0;
  std::memcpy(&number, root->internal, sizeof number);
  return begun(function, ask(Call::begin_communicator, {ranks, number, rank}, settings_of(config)), comm);
}

HcclResult begin_from_table(const char* function, const char* file, std::uint32_t rank, const HcclCommConfig* config,
                            HcclComm* comm) {
  if (file == nullptr || comm == nullptr) return failed(function, HCCL_E_PTR, "null");
  char* const path = ::realpath(file, nullptr);  // the program may have changed its folder
  if (path == nullptr) {
    return failed(function, HCCL_E_OPEN_FILE_FAILURE, std::string(file) + ": " + std::strerror(errno));
  }
  const std::string settings = settings_of(config);
  const Answer answer = ask(Call::begin_from_table, {rank, settings.size()}, settings + path);
  std::free(path);
  return begun(function, answer, comm);
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank, HcclComm* comm) {
  return begin_from_table(__func__, clusterInfo, rank, nullptr, comm);
}

HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t rank, HcclCommConfig* config,
                                         HcclComm* comm) {
  if (config == nullptr) return failed(__func__, HCCL_E_PTR, "config is null");
  return begin_from_table(__func__, clusterInfo, rank, config, comm);
}

HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo) {
  if (rootInfo == nullptr) return failed(__func__, HCCL_E_PTR, "null");
  const Answer answer = ask(Call::root_info, {});
  // No more than what is needed, as in HCCL: programs may have less room than the type has.
  if (answer.status == 0) std::memcpy(rootInfo->internal, answer.values.data(), sizeof answer.values[0]);
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
  for (std::uint32_t i = 0; i < ndev; ++i) {
    on_server.push_back(device_on_server(devices[i]));
    if (on_server.back() < 0) return failed(__func__, HCCL_E_PARA, no_such_device(devices[i]));
  }
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

HcclResult HcclGroupStart(void) { return result_of(__func__, ask(Call::begin_group, {})); }

HcclResult HcclGroupEnd(void) {
  const Answer answer = ask(Call::end_group, {});
  if (answer.status == 0 && answer.values[0] > 0) return HCCL_SUCCESS;  // one of a group in a group
  const std::vector<HcclComm*> all = std::exchange(begun_in_group(), {});
  if (answer.bytes.size() == all.size() * sizeof(std::uint64_t)) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::uint64_t number = 0;
      std::memcpy(&number, answer.bytes.data() + i * sizeof number, sizeof number);
      *all[i] = handle_of(number);
    }
  }
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

HcclResult HcclCommGetStatus(const char* commId, HcclCommStatus* status) {
  if (commId == nullptr || status == nullptr) return failed(__func__, HCCL_E_PTR, "null");
  const Answer answer = ask(Call::status_by_name, {}, commId);
  *status = answer.status == 0 ? static_cast<HcclCommStatus>(answer.values[0]) : HCCL_COMM_STATUS_INVALID;
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

#pragma GCC visibility pop
}
// NOLINTEND(readability-identifier-naming)
