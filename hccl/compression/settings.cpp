#include "hccl/compression/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/text.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::array<std::string_view, 5> kind_names{"batched-powersgd", "powersgd", "fp16", "bf16", "topk"};
constexpr std::array<std::string_view, 3> method_names{"auto", "gram-schmidt", "qr"};

/// A key of the text form.
struct Key {
  std::string_view name;
  bool powersgd = true;  ///< of both hooks of PowerSGD
  bool topk = false;
  std::string_view accepted;
  bool (*read)(CompressionSettings& settings, std::string_view value);
  std::string (*write)(const CompressionSettings& settings);
};

template <auto member>
bool read_count(CompressionSettings& settings, std::string_view value) {
  using Count = std::remove_reference_t<decltype(settings.*member)>;
  const auto number = parse_number<Count>(value);
  if (number.has_value()) settings.*member = *number;
  return number.has_value();
}

template <auto member>
bool read_switch(CompressionSettings& settings, std::string_view value) {
  if (value != "on" && value != "off") return false;
  settings.*member = value == "on";
  return true;
}

template <auto member>
std::string write_number(const CompressionSettings& settings) {
  return fmt::format("{}", settings.*member);
}

template <auto member>
std::string write_switch(const CompressionSettings& settings) {
  return settings.*member ? "on" : "off";
}

bool read_rate(CompressionSettings& settings, std::string_view value) {
  return read_count<&CompressionSettings::min_compression_rate>(settings, value) && settings.min_compression_rate > 0;
}
bool read_epsilon(CompressionSettings& settings, std::string_view value) {
  return read_count<&CompressionSettings::epsilon>(settings, value) && settings.epsilon >= 0;
}
bool read_ratio(CompressionSettings& settings, std::string_view value) {
  return read_count<&CompressionSettings::ratio>(settings, value) && settings.ratio > 0 && settings.ratio <= 1;
}
bool read_method(CompressionSettings& settings, std::string_view value) {
  const auto* const found = std::ranges::find(method_names, value);
  if (found == method_names.end()) return false;
  settings.orthogonalization = static_cast<Orthogonalization>(found - method_names.begin());
  return true;
}
std::string write_method(const CompressionSettings& settings) {
  return std::string(name_of(settings.orthogonalization));
}

using Settings = CompressionSettings;
constexpr std::string_view whole = "a whole number below 2^64";
constexpr std::string_view on_or_off = "on or off";
constexpr std::array keys{
    Key{"rank", true, false, "a whole number from 1 to 4294967295", read_count<&Settings::rank>,
        write_number<&Settings::rank>},
    Key{"start", true, true, whole, read_count<&Settings::start>, write_number<&Settings::start>},
    Key{"min-compression-rate", true, false, "a number greater than 0", read_rate,
        write_number<&Settings::min_compression_rate>},
    Key{"error-feedback", true, true, on_or_off, read_switch<&Settings::error_feedback>,
        write_switch<&Settings::error_feedback>},
    Key{"warm-start", true, false, on_or_off, read_switch<&Settings::warm_start>, write_switch<&Settings::warm_start>},
    Key{"epsilon", true, false, "a number of at least 0", read_epsilon, write_number<&Settings::epsilon>},
    Key{"seed", true, false, whole, read_count<&Settings::seed>, write_number<&Settings::seed>},
    Key{"orthogonalization", true, false, "auto, gram-schmidt or qr", read_method, write_method},
    Key{"batch-tensors-with-same-shape", true, false, on_or_off, read_switch<&Settings::batch_same_shape>,
        write_switch<&Settings::batch_same_shape>},
    Key{"compression-stats-logging-frequency", true, false, whole, read_count<&Settings::statistics_every>,
        write_number<&Settings::statistics_every>},
    Key{"ratio", false, true, "a number greater than 0, at most 1", read_ratio, write_number<&Settings::ratio>},
};

bool is_of(const Key& key, const CompressionSettings& settings) {
  return settings.is_powersgd() ? key.powersgd : settings.kind == CompressionKind::topk && key.topk;
}

void read_pair(CompressionSettings& settings, std::string_view pair, std::vector<std::string_view>& seen) {
  const std::size_t sign = pair.find('=');
  const std::string_view name = trimmed(pair.substr(0, sign));
  const auto* const key = std::ranges::find(keys, name, &Key::name);
  if (key == keys.end() || !is_of(*key, settings)) {
    std::string accepted;
    for (const Key& one : keys) {
      if (is_of(one, settings)) accepted.append(accepted.empty() ? "" : ", ").append(one.name);
    }
    bad_input("option", "--compress {}: there is no key {}; accepted: {}", name_of(settings.kind), printable(name),
              accepted.empty() ? "none" : accepted);
  }
  if (std::ranges::find(seen, name) != seen.end()) {
    bad_input("option", "--compress {}: {} is given twice; accepted: each key once", name_of(settings.kind), name);
  }
  seen.push_back(key->name);
  const std::string_view value = sign == std::string_view::npos ? "" : trimmed(pair.substr(sign + 1));
  if (!key->read(settings, value)) {
    bad_input("option", "--compress {}: {} has the value '{}'; accepted: {}", name_of(settings.kind), name,
              printable(value), key->accepted);
  }
}

}  // namespace

std::string_view name_of(CompressionKind kind) { return kind_names.at(static_cast<std::size_t>(kind)); }

std::string_view name_of(Orthogonalization method) { return method_names.at(static_cast<std::size_t>(method)); }

CompressionSettings parse_compression(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = trimmed(text.substr(0, colon));
  const auto* const found = std::ranges::find(kind_names, name);
  if (found == kind_names.end()) {
    bad_input("option", "--compress: there is no compression {}; accepted: {}", printable(name),
              names_in(kind_names, std::identity()));
  }
  CompressionSettings settings{.kind = static_cast<CompressionKind>(found - kind_names.begin())};
  if (!settings.is_powersgd()) settings.start = 0;
  if (settings.kind == CompressionKind::fp16 || settings.kind == CompressionKind::bf16) settings.error_feedback = false;
  if (colon != std::string_view::npos) {
    std::vector<std::string_view> seen;
    for (const std::string_view pair : split(text.substr(colon + 1), ',')) read_pair(settings, pair, seen);
  }
  settings.statistics_every = std::max<std::uint64_t>(settings.statistics_every, 1);
  require_valid(settings);
  return settings;
}

std::string to_string(const CompressionSettings& settings) {
  std::string text(name_of(settings.kind));
  char separator = ':';
  for (const Key& key : keys) {
    if (!is_of(key, settings)) continue;
    text += fmt::format("{}{}={}", std::exchange(separator, ','), key.name, key.write(settings));
  }
  return text;
}

std::vector<std::string> notes_on(const CompressionSettings& settings) {
  std::vector<std::string> notes;
  if (settings.kind != CompressionKind::batched_powersgd) return notes;
  const CompressionSettings defaults;
  const auto unused = [&](bool differs, std::string_view key) {
    if (differs) notes.push_back(fmt::format("{} has no effect with batched-powersgd: powersgd alone uses it", key));
  };
  unused(settings.min_compression_rate != defaults.min_compression_rate, "min-compression-rate");
  unused(settings.epsilon != defaults.epsilon, "epsilon");
  unused(settings.batch_same_shape != defaults.batch_same_shape, "batch-tensors-with-same-shape");
  return notes;
}

void require_valid(const CompressionSettings& settings) {
  if (!settings.is_powersgd()) return;
  if (settings.rank < 1) {
    bad_input("value-error", "--compress {}: rank is {}; accepted: 1 and more, such as 1, 2, 4 … 32",
              name_of(settings.kind), settings.rank);
  }
  if ((settings.error_feedback || settings.warm_start) && settings.start <= 1) {
    bad_input(
        "value-error",
        "--compress {}: start is {}, but with error-feedback or warm-start it must be greater than 1, for buckets "
        "are rebuilt after the first step; accepted: 2 and more, or both off",
        name_of(settings.kind), settings.start);
  }
}

}  // namespace hcclsim::hccl
