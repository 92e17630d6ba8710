#include "clients/server/communicators/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

#include <hccl/hccl.h>

#include "base/error.hpp"

namespace hcclsim::clients {
namespace {

constexpr std::uint64_t most_window_gb = 1U << 20U;  // more than any NPU has memory for

/// Nothing is set in what the program has not given.
HcclCommConfig settings_of(const std::string& bytes) {
  HcclCommConfig settings;
  HcclCommConfigInit(&settings);
  std::memcpy(&settings, bytes.data(), std::min(bytes.size(), sizeof settings));
  return settings;
}

/// What of the settings has no effect here.
std::string ignored(const HcclCommConfig& settings) {
  std::string names;
  const auto add = [&](bool is_set, const char* name) {
    if (is_set) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  };
  add(settings.aclGraphZeroCopyEnable != 0, "aclGraphZeroCopyEnable");
  add(settings.hcclExecTimeOut != HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET, "hcclExecTimeOut");
  add(settings.hcclRetryEnable[0] != '\0', "hcclRetryEnable");
  add(settings.hcclBufferName[0] != '\0', "hcclBufferName");
  add(settings.hcclQos != HCCL_COMM_QOS_CONFIG_NOT_SET, "hcclQos");
  return names;
}

}  // namespace

std::string problem_of_settings(const std::string& bytes) {
  if (bytes.empty()) return {};
  const HcclCommConfig settings = settings_of(bytes);
  std::uint32_t magic = 0;
  std::memcpy(&magic, settings.reserved + sizeof(std::size_t), sizeof magic);
  if (magic != HCCL_COMM_CONFIG_MAGIC_WORD) return "call HcclCommConfigInit first";
  const auto ends = [](const auto& text) { return std::ranges::find(text, '\0') != std::end(text); };
  if (!ends(settings.hcclCommName)) {
    return fmt::format("hcclCommName: at most {} bytes, and a 0 after them", COMM_NAME_MAX_LENGTH - 1);
  }
  if (!ends(settings.hcclAlgo)) {
    return fmt::format("hcclAlgo: at most {} bytes, and a 0 after them", HCCL_COMM_ALGO_MAX_LENGTH - 1);
  }
  try {
    static_cast<void>(hccl::parse_algo_setting(settings.hcclAlgo));
  } catch (const Error& error) {
    return fmt::format("hcclAlgo: {}", error.what());
  }
  if (settings.hcclBufferSize == 0) return "hcclBufferSize: at least 1 (MB)";
  const bool known =
      settings.hcclDeterministic <= 2 || settings.hcclDeterministic == HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET;
  if (!known) return fmt::format("hcclDeterministic: {}; accepted: 0, 1, 2", settings.hcclDeterministic);
  if (settings.hcclOpExpansionMode > 4) {
    return fmt::format("hcclOpExpansionMode: {}; accepted: 0 to 4", settings.hcclOpExpansionMode);
  }
  if (settings.hcclSymWinMaxMemSizePerRank == 0 || settings.hcclSymWinMaxMemSizePerRank > most_window_gb) {
    return fmt::format("hcclSymWinMaxMemSizePerRank: {}; accepted: 1 to {} (GB)", settings.hcclSymWinMaxMemSizePerRank,
                       most_window_gb);
  }
  return {};
}

std::string apply_settings(const std::string& bytes, CommunicatorGroup& group) {
  const HcclCommConfig settings = settings_of(bytes);
  if (settings.hcclCommName[0] != '\0') group.name = settings.hcclCommName;
  if (settings.hcclBufferSize != HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET) {
    group.config.buffer_bytes = Bytes{settings.hcclBufferSize} << 20U;
  }
  if (settings.hcclDeterministic != HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET) {
    group.config.determinism = static_cast<hccl::Determinism>(settings.hcclDeterministic);
  }
  if (settings.hcclAlgo[0] != '\0') group.config.algo = hccl::parse_algo_setting(settings.hcclAlgo);
  group.window_bytes = Bytes{settings.hcclSymWinMaxMemSizePerRank} << 30U;
  return ignored(settings);
}

}  // namespace hcclsim::clients
