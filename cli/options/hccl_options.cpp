#include "cli/options/hccl_options.hpp"
#include "cli/options/parse/command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::cli {
namespace {

struct HcclOption {
  const char* key;
  /// Empty: --hccl-intra, which stands for two switches.
  const char* variable;
  const char* type;
  const char* description;
};
constexpr std::array<HcclOption, hccl_option_count> hccl_options{{
    {"hccl-algo", "HCCL_ALGO", "LEVELS", "HCCL_ALGO: algorithms between servers, such as level0:NA;level1:ring"},
    {"hccl-buffsize", "HCCL_BUFFSIZE", "MB", "HCCL_BUFFSIZE: each of a communicator's two buffers (200)"},
    {"hccl-deterministic", "HCCL_DETERMINISTIC", "true|false|strict", "HCCL_DETERMINISTIC (false)"},
    {"hccl-intra", "", "pcie|roce", "HCCL_INTRA_PCIE_ENABLE or HCCL_INTRA_ROCE_ENABLE is 1 (pcie)"},
    {"hccl-exec-timeout", "HCCL_EXEC_TIMEOUT", "SECONDS", "HCCL_EXEC_TIMEOUT: longest wait for another NPU (1836)"},
    {"hccl-connect-timeout", "HCCL_CONNECT_TIMEOUT", "SECONDS", "HCCL_CONNECT_TIMEOUT (120)"},
    {"hccl-op-expansion-mode", "HCCL_OP_EXPANSION_MODE", "MODE", "HCCL_OP_EXPANSION_MODE (HOST; A3: AI_CPU)"},
    {"hccl-inter-hccs-disable", "HCCL_INTER_HCCS_DISABLE", "TRUE|FALSE", "HCCL_INTER_HCCS_DISABLE (FALSE)"},
    {"hccl-rdma-qps", "HCCL_RDMA_QPS_PER_CONNECTION", "N", "HCCL_RDMA_QPS_PER_CONNECTION (1)"},
    {"hccl-multi-qp-threshold", "HCCL_MULTI_QP_THRESHOLD", "KB", "HCCL_MULTI_QP_THRESHOLD (512)"},
}};

constexpr const char* intra_pcie = "HCCL_INTRA_PCIE_ENABLE";
constexpr const char* intra_roce = "HCCL_INTRA_ROCE_ENABLE";

/// Variable -> setting.
using Settings = std::map<std::string, hccl::HcclSetting>;

Settings settings_of_environment() {
  constexpr std::string_view prefix = "HCCL_";
  Settings settings;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (!text.starts_with(prefix) || equals == std::string_view::npos) continue;
    const std::string name(text.substr(0, equals));
    settings[name] = {name, std::string(text.substr(equals + 1)), name};
  }
  return settings;
}

void take_intra(Settings& settings, const std::string& value, const std::string& origin) {
  settings.erase(intra_pcie);
  settings.erase(intra_roce);
  if (value.empty()) return;
  if (value != "pcie" && value != "roce") {
    bad_input("option", "{} '{}': accepted: pcie, roce", origin, value);
  }
  const char* const variable = value == "pcie" ? intra_pcie : intra_roce;
  settings[variable] = {variable, "1", origin};
}

}  // namespace

void add_hccl_options(Command& command, HcclOptions& options) {
  for (std::size_t i = 0; i < hccl_option_count; ++i) {
    const HcclOption& option = hccl_options[i];
    command.add(std::string("--") + option.key, text(options[i]), option.description)
        .value_name(option.type)
        .group("What HCCL's environment variables say");
  }
}

std::vector<hccl::HcclSetting> hccl_settings(const OptionOrigins& origins, const HcclOptions& options) {
  Settings settings = settings_of_environment();
  for (std::size_t i = 0; i < hccl_option_count; ++i) {
    const HcclOption& option = hccl_options[i];
    if (!origins.given(option.key)) continue;
    const std::string& value = options[i];
    const std::string variable = option.variable;
    if (variable.empty()) {
      take_intra(settings, value, origins.name(option.key));
    } else {
      settings[variable] = {variable, value, origins.name(option.key)};
    }
  }
  std::vector<hccl::HcclSetting> list;
  for (auto& [variable, setting] : settings) list.push_back(std::move(setting));
  return list;
}

void require_one_algorithm(const OptionOrigins& origins, const HcclOptions& options, const std::string& key,
                           hccl::Algorithm algorithm) {
  if (trimmed(options.front()).empty()) return;
  // Of a hierarchy HCCL_ALGO says the algorithms of the levels.
  if (algorithm != hccl::Algorithm::automatic && algorithm != hccl::Algorithm::hierarchical) {
    origins.require_one_of("hccl-algo", key);
  }
  origins.require_one_of("hccl-algo", "levels");
}

std::string unmodelled_line(const std::vector<std::string>& origins) {
  if (origins.empty()) return {};
  return fmt::format("Set but not modelled, without effect: {}\n", fmt::join(origins, ", "));
}

std::string remarks_text(const std::vector<std::string>& unmodelled, const std::vector<std::string>& notes) {
  std::string text = unmodelled_line(unmodelled);
  for (const std::string& note : notes) text += fmt::format("Note: {}\n", note);
  return text;
}

void print_remarks_apart(const std::vector<std::string>& unmodelled, const std::vector<std::string>& notes) {
  std::fputs(remarks_text(unmodelled, notes).c_str(), stderr);
}

}  // namespace hcclsim::cli
