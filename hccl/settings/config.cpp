#include "hccl/settings/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "hccl/settings/variables.hpp"

namespace hcclsim::hccl {
namespace {

using device::Generation;

/// HCCL counts a unit of time-out of 910A's notifies in multiples of this, up to 255 of them.
constexpr std::uint64_t timeout_unit_a1 = 68;
constexpr std::uint64_t longest_timeout_a1 = 17340;
constexpr std::uint64_t longest_timeout = 2147483647;
/// Collectives that run on the vector cores cannot wait longer than this, and not without a limit.
constexpr Seconds longest_timeout_aiv = 1091;

[[noreturn]] void refuse(const HcclSetting& setting, std::string_view accepted) {
  bad_input("environment", "{} '{}': accepted: {}", setting.origin, setting.value, accepted);
}

bool is_blank(std::string_view text) { return text.find_first_not_of(' ') == std::string_view::npos; }

/// The settings that are not blank, by variable.
class Settings {
 public:
  explicit Settings(std::span<const HcclSetting> settings) : settings_(settings) {}

  [[nodiscard]] const HcclSetting* find(std::string_view variable) const {
    const auto found = std::find_if(settings_.begin(), settings_.end(), [&](const HcclSetting& setting) {
      return setting.variable == variable && !is_blank(setting.value);
    });
    return found == settings_.end() ? nullptr : &*found;
  }
  [[nodiscard]] std::optional<std::uint64_t> whole(std::string_view variable, WholeRange range) const {
    const HcclSetting* const setting = find(variable);
    if (setting == nullptr) return std::nullopt;
    const auto value = parse_whole(setting->value, range);
    if (!value.has_value()) refuse(*setting, to_string(range));
    return value;
  }

 private:
  std::span<const HcclSetting> settings_;
};

/// Where HCCL does not have the algorithm, the choice is left to it; hccl/collective/selection/algo_notes.hpp reports
/// this for the operators that run.
AlgoSetting algo_of(const Settings& settings, Generation generation) {
  const HcclSetting* const setting = settings.find("HCCL_ALGO");
  if (setting == nullptr) return {};
  try {
    AlgoSetting algo = parse_algo_setting(setting->value);
    for (std::size_t number = 0; number < algo_operators; ++number) {
      const auto op = static_cast<AlgoOperator>(number);
      algo.of(op) = available(algo.of(op), generation, op);
    }
    return algo;
  } catch (const Error& error) {
    bad_input("environment", "{} '{}': {}", setting->origin, setting->value, error.what());
  }
}

Determinism determinism_of(const Settings& settings, Generation generation, std::vector<std::string>& notes) {
  const HcclSetting* const setting = settings.find("HCCL_DETERMINISTIC");
  if (setting == nullptr) return Determinism::off;
  const std::string word = upper_case(setting->value);
  if (word == "FALSE") return Determinism::off;
  if (word == "TRUE") return Determinism::on;
  if (word != "STRICT") refuse(*setting, "true, false, strict");
  if (generation == Generation::a1) {
    refuse(*setting, fmt::format("true, false; HCCL keeps no strict order on {}", product_of(generation)));
  }
  notes.push_back(fmt::format("{} strict is simulated as true: HCCL's algorithms that keep the order are not modelled",
                              setting->origin));
  return Determinism::strict;
}

/// HCCL_INTRA_PCIE_ENABLE and HCCL_INTRA_ROCE_ENABLE, which do not affect the simulation; HCCL does not let one alone
/// be 0.
void check_intra_links(const Settings& settings) {
  constexpr WholeRange zero_or_one{0, 1};
  const auto pcie = settings.whole("HCCL_INTRA_PCIE_ENABLE", zero_or_one);
  const auto roce = settings.whole("HCCL_INTRA_ROCE_ENABLE", zero_or_one);
  if (pcie == 1 && roce == 1) {
    bad_input("environment", "{} '1' and {} '1': the links inside a server are of one kind; set one of them to 0",
              settings.find("HCCL_INTRA_PCIE_ENABLE")->origin, settings.find("HCCL_INTRA_ROCE_ENABLE")->origin);
  }
  if (pcie == 0 && !roce.has_value()) {
    refuse(*settings.find("HCCL_INTRA_PCIE_ENABLE"), "1, or 0 together with HCCL_INTRA_ROCE_ENABLE");
  }
  if (roce == 0 && !pcie.has_value()) {
    refuse(*settings.find("HCCL_INTRA_ROCE_ENABLE"), "1, or 0 together with HCCL_INTRA_PCIE_ENABLE");
  }
}

struct ExpansionMode {
  std::string_view name;
  OpExpansion mode;
  bool a2;
  bool a3;
};
constexpr std::array<ExpansionMode, 5> expansion_modes{{
    {"HOST", OpExpansion::host, true, false},
    {"HOST_TS", OpExpansion::host_ts, true, false},
    {"AI_CPU", OpExpansion::ai_cpu, false, true},
    {"AICPU_CacheDisable", OpExpansion::ai_cpu_without_cache, false, true},
    {"AIV", OpExpansion::aiv, true, true},
}};

OpExpansion expansion_of(const Settings& settings, Generation generation, std::vector<std::string>& notes) {
  const bool a3 = generation == Generation::a3;
  const OpExpansion usual = a3 ? OpExpansion::ai_cpu : OpExpansion::host;
  const HcclSetting* const setting = settings.find("HCCL_OP_EXPANSION_MODE");
  if (setting == nullptr) return usual;
  const std::string_view usual_name = a3 ? "AI_CPU" : "HOST";
  const auto has = [&](const ExpansionMode& mode) {
    return (mode.a2 && generation == Generation::a2) || (mode.a3 && a3) || mode.mode == usual;
  };
  std::vector<std::string> names;  // of the product
  for (const ExpansionMode& mode : expansion_modes) {
    if (mode.name == setting->value) {
      if (has(mode)) return mode.mode;
      notes.push_back(fmt::format("{} {}: HCCL on {} does not have this mode and takes {}", setting->origin,
                                  setting->value, product_of(generation), usual_name));
      return usual;
    }
    if (has(mode)) names.emplace_back(mode.name);
  }
  notes.push_back(fmt::format("{} '{}': HCCL on {} has {} and takes {} for anything else{}", setting->origin,
                              setting->value, product_of(generation), fmt::join(names, ", "), usual_name,
                              did_you_mean(setting->value, names)));
  return usual;
}

/// Seconds with up to two decimals of at most `longest`, or nothing.
std::optional<Seconds> parse_seconds(std::string_view text, Seconds longest) {
  const std::size_t point = text.find('.');
  const bool decimal = point != std::string_view::npos;
  const std::string_view before = text.substr(0, point);
  const std::string_view after = decimal ? text.substr(point + 1) : "0";
  const auto digits = [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (!digits(before) || !digits(after) || after.size() > 2) return std::nullopt;
  const std::optional<Seconds> value = parse_number<Seconds>(text);
  return value.has_value() && *value <= longest ? value : std::nullopt;
}

Seconds exec_timeout_of(const Settings& settings, Generation generation, OpExpansion expansion) {
  const Seconds usual = expansion == OpExpansion::aiv ? longest_timeout_aiv : HcclConfig{}.exec_timeout;
  const HcclSetting* const setting = settings.find("HCCL_EXEC_TIMEOUT");
  if (setting == nullptr) return usual;
  if (generation == Generation::a1) {
    const auto seconds = settings.whole("HCCL_EXEC_TIMEOUT", {1, longest_timeout_a1, 1, "seconds"});
    return static_cast<Seconds>(std::max<std::uint64_t>(1, *seconds / timeout_unit_a1) * timeout_unit_a1);
  }
  if (expansion == OpExpansion::host || expansion == OpExpansion::host_ts) {
    const auto seconds = settings.whole("HCCL_EXEC_TIMEOUT", {0, longest_timeout, 1, "seconds"});
    return *seconds == 0 ? std::numeric_limits<Seconds>::infinity() : static_cast<Seconds>(*seconds);
  }
  const auto seconds = parse_seconds(setting->value, longest_timeout);
  if (!seconds.has_value()) {
    refuse(*setting, fmt::format("a number of seconds from 0 to {} with at most two decimals", longest_timeout));
  }
  if (expansion == OpExpansion::aiv) return *seconds == 0 ? usual : std::min(*seconds, longest_timeout_aiv);
  return *seconds == 0 ? std::numeric_limits<Seconds>::infinity() : *seconds;
}

bool switch_of(const Settings& settings, std::string_view variable) {
  const HcclSetting* const setting = settings.find(variable);
  if (setting == nullptr) return false;
  const std::string word = upper_case(setting->value);
  if (word != "TRUE" && word != "FALSE") refuse(*setting, "TRUE, FALSE");
  return word == "TRUE";
}

}  // namespace

HcclConfig read_hccl_config(std::span<const HcclSetting> given, Generation generation,
                            std::vector<std::string>& notes) {
  const Settings settings(given);
  HcclConfig config;
  config.algo = algo_of(settings, generation);
  constexpr std::uint64_t most_megabytes = std::numeric_limits<std::uint32_t>::max();
  if (const auto megabytes = settings.whole("HCCL_BUFFSIZE", {1, most_megabytes, 1, "MB"})) {
    config.buffer_bytes = *megabytes << 20U;
  }
  config.determinism = determinism_of(settings, generation, notes);
  check_intra_links(settings);
  config.op_expansion = expansion_of(settings, generation, notes);
  config.exec_timeout = exec_timeout_of(settings, generation, config.op_expansion);
  config.inter_hccs_disabled = switch_of(settings, "HCCL_INTER_HCCS_DISABLE");
  if (const auto pairs = settings.whole("HCCL_RDMA_QPS_PER_CONNECTION", {1, 32})) {
    config.queue_pairs.count = static_cast<std::uint32_t>(*pairs);
  }
  if (const auto kilobytes = settings.whole("HCCL_MULTI_QP_THRESHOLD", {1, 8192, 1, "KB"})) {
    config.queue_pairs.least_bytes = *kilobytes << 10U;
  }
  for (const HcclSetting& setting : given) {
    if (is_blank(setting.value)) continue;
    if (const std::string accepted = refused_by(setting.variable, setting.value, generation); !accepted.empty()) {
      refuse(setting, accepted);
    }
  }
  return config;
}

const HcclSetting* find_setting(std::span<const HcclSetting> settings, std::string_view variable) {
  return Settings(settings).find(variable);
}

std::vector<std::string> unmodelled(std::span<const HcclSetting> settings, std::span<const std::string_view> modelled) {
  std::vector<std::string> origins;
  for (const HcclSetting& setting : settings) {
    if (is_blank(setting.value)) continue;
    if (std::find(modelled.begin(), modelled.end(), setting.variable) != modelled.end()) continue;
    origins.push_back(setting.origin);
  }
  return origins;
}

}  // namespace hcclsim::hccl
