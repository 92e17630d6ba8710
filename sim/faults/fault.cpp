#include "sim/faults/fault.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"

namespace hcclsim::sim {
namespace {

struct FaultRow {
  std::string_view element;
  std::string_view key;
  FaultKind kind;
  bool has_value;
};

constexpr std::array<FaultRow, 6> fault_rows{{{"link", "bandwidth", FaultKind::bandwidth, true},
                                              {"link", "latency", FaultKind::latency, true},
                                              {"npu", "speed", FaultKind::speed, true},
                                              {"npu", "paused", FaultKind::paused, false},
                                              {"npu", "lost", FaultKind::lost, false},
                                              {"npu", "late", FaultKind::late, true}}};

/// TARGET[=VALUE] and the words that say when.
struct FaultText {
  std::string_view element;
  std::string_view pattern;
  std::string_view key;
  std::string_view value;
  bool has_value = false;
  std::vector<std::string_view> when;
};

FaultText take_apart(std::string_view text) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.rfind("].");  // a pattern may hold brackets, too
  if (open == std::string_view::npos || close == std::string_view::npos || close <= open + 1) {
    bad_input("fault",
              "'{}' is not a fault; accepted: link[PATTERN].KEY=VALUE and npu[NPUS].KEY, with 'at TIME' or 'from TIME "
              "to TIME', such as 'link[hccs-0-1].bandwidth=0 at 5ms'",
              text);
  }
  FaultText parts;
  parts.element = text.substr(0, open);
  parts.pattern = text.substr(open + 1, close - open - 1);
  const std::string_view rest = text.substr(close + 2);
  const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  const std::string_view setting = rest.substr(0, end);
  const std::size_t equals = setting.find('=');
  parts.has_value = equals != std::string_view::npos;
  parts.key = setting.substr(0, equals);
  if (parts.has_value) parts.value = setting.substr(equals + 1);
  for (const std::string_view word : split_trimmed(rest.substr(end), ' ')) {
    if (!word.empty()) parts.when.push_back(word);
  }
  return parts;
}

const FaultRow& row_of(std::string_view text, const FaultText& parts) {
  std::vector<std::string> keys;
  for (const FaultRow& row : fault_rows) {
    if (row.element != parts.element) continue;
    if (row.key == parts.key) return row;
    keys.emplace_back(row.key);
  }
  if (keys.empty()) {
    bad_input("fault", "'{}': '{}' has no faults; accepted: link[PATTERN].KEY and npu[NPUS].KEY", text, parts.element);
  }
  bad_input("fault", "'{}': unknown key '{}'{}; accepted of {}: {}", text, parts.key, did_you_mean(parts.key, keys),
            parts.element, names_in(keys, [](const std::string& key) { return std::string_view(key); }));
}

/// Some months: a date has digits for nanoseconds then.
constexpr Seconds latest = 1e7;

/// A time of 0 or more.
Seconds parse_fault_time(std::string_view text, std::string_view word) {
  Seconds time = 0;
  try {
    time = parse_duration(word);
  } catch (const Error& error) {
    bad_input("fault", "'{}': {}", text, error.what());
  }
  if (time > latest) bad_input("fault", "'{}': {} is too late; dates are at most {:g}s", text, word, latest);
  if (time >= 0) return time;
  bad_input("fault", "'{}': {} is before the beginning; give a time of 0s or more", text, word);
}

void set_times(std::string_view text, const std::vector<std::string_view>& when, Fault& fault) {
  if (when.empty()) return;
  if (when.size() == 2 && when[0] == "at") {
    fault.from = parse_fault_time(text, when[1]);
  } else if (when.size() == 4 && when[0] == "from" && when[2] == "to") {
    fault.from = parse_fault_time(text, when[1]);
    fault.to = parse_fault_time(text, when[3]);
    if (fault.to <= fault.from) bad_input("fault", "'{}': it ends before it begins", text);
  } else {
    bad_input("fault", "'{}': when it happens is given as 'at TIME' or 'from TIME to TIME', such as 'at 5ms'", text);
  }
}

/// "50%", as a factor.
std::optional<double> parse_percentage(std::string_view value) {
  const std::optional<Quantity> quantity = parse_quantity(value);
  if (!quantity.has_value() || quantity->unit != "%") return std::nullopt;
  return quantity->number / 100;
}

void set_link_value(std::string_view text, std::string_view value, Fault& fault) {
  const bool bandwidth = fault.kind == FaultKind::bandwidth;
  const std::optional<double> part = value == "0" ? std::optional<double>(0) : parse_percentage(value);
  try {
    fault.relative = part.has_value();
    fault.value = fault.relative ? *part : bandwidth ? parse_bandwidth(value) : parse_duration(value);
  } catch (const Error& error) {
    bad_input("fault", "'{}': {}; or a part of what the platform file says, such as 50%, or 0", text, error.what());
  }
  if (!(fault.value >= 0)) bad_input("fault", "'{}': {} is negative; give 0 or more", text, value);
  if (fault.value == 0) return;
  if (fault.relative) {
    constexpr double least = 1e-12;
    constexpr double most = 1e6;
    if (fault.value >= least && fault.value <= most) return;
    bad_input("fault", "'{}': {} is out of range; give 0, or {:g}% to {:g}%", text, value, 100 * least, 100 * most);
  }
  // As platform files have them (sim/platform/values.cpp).
  const double least = bandwidth ? 1 : 0;
  const double most = bandwidth ? 1e15 : 1e4;
  if (fault.value >= least && fault.value <= most) return;
  bad_input("fault", "'{}': {} is out of range; give {}", text, value,
            bandwidth ? "0, or 1Bps to 1000TBps" : "0s to 10000s");
}

void set_value(std::string_view text, std::string_view value, Fault& fault) {
  if (fault.of_links()) {
    set_link_value(text, value, fault);
  } else if (fault.kind == FaultKind::late) {
    fault.to = parse_fault_time(text, value);
    if (fault.to == 0) bad_input("fault", "'{}': an NPU that is 0s late is not late; give a time above 0s", text);
  } else {
    // As in device::Skew.
    constexpr double lowest = 0.001;
    constexpr double highest = 1000;
    const std::optional<double> factor = parse_number<double>(value);
    if (!factor.has_value() || !(*factor >= lowest && *factor <= highest)) {
      bad_input("fault",
                "'{}': a speed is a factor from {} to {}, such as 0.5; an NPU that stands still is paused or "
                "lost",
                text, lowest, highest);
    }
    fault.value = *factor;
  }
}

}  // namespace

Fault parse_fault(std::string_view given) {
  const std::string_view text = trimmed(given);
  const FaultText parts = take_apart(text);
  const FaultRow& row = row_of(text, parts);
  Fault fault{.text = std::string(text), .kind = row.kind, .pattern = std::string(trimmed(parts.pattern))};
  if (row.has_value != parts.has_value) {
    bad_input("fault", "'{}': {}.{} {}", text, row.element, row.key,
              row.has_value ? "needs a value behind '='" : "has no value");
  }
  if (row.kind == FaultKind::late && !parts.when.empty()) {
    bad_input("fault", "'{}': the value says until when the NPU is late; leave out '{}'", text,
              fmt::join(parts.when, " "));
  }
  set_times(text, parts.when, fault);
  if (row.has_value) set_value(text, parts.value, fault);
  if (row.kind == FaultKind::lost && std::isfinite(fault.to)) {
    bad_input("fault", "'{}': an NPU that is lost does not come back; say 'at TIME', or paused", text);
  }
  if (row.kind == FaultKind::paused && !std::isfinite(fault.to)) {
    bad_input("fault", "'{}': a pause ends; say 'from TIME to TIME', or lost", text);
  }
  return fault;
}

std::vector<Fault> parse_faults(std::string_view text) {
  std::vector<Fault> faults;
  if (trimmed(text) == "none") return faults;
  int depth = 0;  // of brackets, in which a comma is part of a pattern
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && text[at] == '[') ++depth;
    if (at < text.size() && text[at] == ']') --depth;
    if (at < text.size() && (text[at] != ',' || depth > 0)) continue;
    faults.push_back(parse_fault(text.substr(begin, at - begin)));
    begin = at + 1;
  }
  return faults;
}

}  // namespace hcclsim::sim
