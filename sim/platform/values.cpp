#include "sim/platform/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <span>

#include "base/text.hpp"
#include "base/units.hpp"

namespace hcclsim::sim {
namespace {

// SimGrid's units: a prefix of this table and a base unit, or a unit of time.
struct Factor {
  std::string_view name;
  double factor;
};
constexpr std::array<Factor, 13> bandwidth_prefixes{{{"", 1},
                                                     {"k", 1e3},
                                                     {"M", 1e6},
                                                     {"G", 1e9},
                                                     {"T", 1e12},
                                                     {"P", 1e15},
                                                     {"E", 1e18},
                                                     {"Ki", 0x1p10},
                                                     {"Mi", 0x1p20},
                                                     {"Gi", 0x1p30},
                                                     {"Ti", 0x1p40},
                                                     {"Pi", 0x1p50},
                                                     {"Ei", 0x1p60}}};
constexpr std::array<std::string_view, 9> flop_prefixes{"", "k", "M", "G", "T", "P", "E", "Z", "Y"};
constexpr std::array<std::string_view, 9> flop_words{"",     "kilo", "mega",  "giga", "tera",
                                                     "peta", "exa",  "zetta", "yotta"};
constexpr std::array<Factor, 9> times{{{"w", 604800},
                                       {"d", 86400},
                                       {"h", 3600},
                                       {"m", 60},
                                       {"s", 1},
                                       {"ms", 1e-3},
                                       {"us", 1e-6},
                                       {"ns", 1e-9},
                                       {"ps", 1e-12}}};

bool has_unit(std::string_view unit, std::span<const std::string_view> prefixes, std::string_view base) {
  if (!unit.ends_with(base)) return false;
  unit.remove_suffix(base.size());
  return std::find(prefixes.begin(), prefixes.end(), unit) != prefixes.end();
}

/// Bytes per second of one of a unit such as "GBps" or "Gibps"; 0 if it is none.
double bandwidth_unit(std::string_view unit) {
  for (const auto& [name, factor] : bandwidth_prefixes) {
    if (!unit.starts_with(name)) continue;
    if (unit.substr(name.size()) == "Bps") return factor;
    if (unit.substr(name.size()) == "bps") return factor / 8;
  }
  return 0;
}

/// Seconds of one of a unit such as "us"; 0 if it is none.
Seconds time_unit(std::string_view unit) {
  const auto* const found = std::ranges::find(times, unit, &Factor::name);
  return found == times.end() ? 0 : found->factor;
}

bool is_speed_unit(std::string_view unit) {
  return has_unit(unit, flop_prefixes, "f") || has_unit(unit, flop_words, "flops");
}

/// What is wrong with a quantity: its number, its unit or its sign. `value_of` is 0 for what is no unit.
template <typename Value>
std::string quantity_fault(std::string_view text, Value (*value_of)(std::string_view), bool zero_allowed,
                           std::string_view example) {
  const std::optional<Quantity> quantity = parse_quantity(text);
  if (!quantity) return fmt::format("'{}' is not a number with a unit, such as {}", text, example);
  if (quantity->number < 0) return fmt::format("'{}' is negative", text);
  if (quantity->number == 0 && quantity->unit.empty()) {
    return zero_allowed ? std::string() : fmt::format("'{}' must be positive", text);
  }
  if (quantity->unit.empty()) return fmt::format("'{}' has no unit; write for example {}", text, example);
  if (value_of(quantity->unit) == 0)
    return fmt::format("'{}' has the unknown unit '{}'; write for example {}", text, quantity->unit, example);
  if (quantity->number == 0 && !zero_allowed) return fmt::format("'{}' must be positive", text);
  return {};
}

}  // namespace

std::string bandwidth_fault(std::string_view text) {
  std::string fault = quantity_fault(text, bandwidth_unit, false, "25GBps or 100Gbps");
  if (!fault.empty()) return fault;
  const Quantity quantity = parse_quantity(text).value();
  return plausible_bandwidth_fault(text, quantity.number * bandwidth_unit(quantity.unit));
}

std::string plausible_bandwidth_fault(std::string_view text, double bytes_per_second) {
  constexpr double lowest = 1;
  constexpr double highest = 1e15;
  if (bytes_per_second >= lowest && bytes_per_second <= highest) return {};
  return fmt::format("'{}' is no plausible bandwidth: accepted are 1Bps to 1000TBps", text);
}

std::string latency_fault(std::string_view text) {
  constexpr Seconds highest = 1000;
  std::string fault = quantity_fault(text, time_unit, true, "1.5us or 0s");
  if (!fault.empty()) return fault;
  const Quantity quantity = parse_quantity(text).value();
  if (quantity.number * time_unit(quantity.unit) <= highest) return {};
  return fmt::format("'{}' is no plausible latency: accepted are 0s to {}s", text, highest);
}

std::string speeds_fault(std::string_view text) {
  for (const std::string_view speed : split(text, ',')) {
    if (std::string fault = quantity_fault(trimmed(speed, " "), is_speed_unit, false, "2.6Gf"); !fault.empty())
      return fault;
  }
  return {};
}

std::string count_fault(std::string_view text) {
  const std::optional<std::uint32_t> count = parse_number<std::uint32_t>(text);
  return count && *count > 0 ? std::string() : fmt::format("'{}' is not a whole number of at least 1", text);
}

std::string number_fault(std::string_view text) {
  const std::optional<Quantity> quantity = parse_quantity(text);
  return quantity && quantity->unit.empty() ? std::string() : fmt::format("'{}' is not a number", text);
}

std::optional<std::vector<std::uint32_t>> parse_radical(std::string_view text, std::size_t limit) {
  std::vector<std::uint32_t> numbers;
  for (const std::string_view group : split(text, ',')) {
    const std::size_t dash = group.find('-');
    const std::optional<std::uint32_t> first = parse_number<std::uint32_t>(group.substr(0, dash));
    const std::optional<std::uint32_t> last =
        dash == std::string_view::npos ? first : parse_number<std::uint32_t>(group.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first >= limit - numbers.size()) return std::nullopt;
    for (std::uint32_t number = *first; number <= *last; ++number) numbers.push_back(number);
  }
  return numbers;
}

std::optional<std::uint64_t> topology_hosts(std::string_view topology, std::string_view parameters) {
  // Every number is at least 1; the product of `counted` of them is the number of hosts.
  const auto product = [](std::string_view list, std::size_t counted) -> std::optional<std::uint64_t> {
    std::uint64_t hosts = 1;
    std::size_t i = 0;
    for (const std::string_view part : split(list, ',')) {
      const std::optional<std::uint32_t> number = parse_number<std::uint32_t>(part);
      if (!number || *number == 0) return std::nullopt;
      if (i++ < counted) hosts = std::min<std::uint64_t>(hosts * *number, std::uint64_t{1} << 32);
    }
    return hosts;
  };
  if (topology == "TORUS") return product(parameters, parameters.size());
  const std::vector<std::string_view> parts = split(parameters, ';');
  if (parts.size() != 4) return std::nullopt;
  if (topology == "FAT_TREE") {
    const std::optional<std::uint32_t> levels = parse_number<std::uint32_t>(parts[0]);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (!levels || !product(parts[i], 0) || split(parts[i], ',').size() != *levels) return std::nullopt;
    }
    return product(parts[1], parts[1].size());
  }
  // DRAGONFLY: groups, links; chassis, links; routers, links; nodes.
  std::uint64_t hosts = 1;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::string part(parts[i]);
    std::erase(part, ' ');
    const std::optional<std::uint64_t> number = product(part, 1);
    if (!number || split(part, ',').size() != (i < 3 ? 2U : 1U)) return std::nullopt;
    hosts = std::min<std::uint64_t>(hosts * *number, std::uint64_t{1} << 32);
  }
  return hosts;
}

double topology_links(std::string_view topology, std::string_view parameters) {
  const auto numbers = [](std::string_view list) {
    std::vector<double> values;
    for (const std::string_view part : split_trimmed(list, ',')) {
      values.push_back(parse_number<std::uint32_t>(part).value_or(0));
    }
    return values;
  };
  const auto product = [](const std::vector<double>& factors) {
    return std::accumulate(factors.begin(), factors.end(), 1.0, std::multiplies<>());
  };
  if (topology == "TORUS") {
    const std::vector<double> sizes = numbers(parameters);
    return product(sizes) * static_cast<double>(sizes.size());
  }
  const std::vector<std::string_view> parts = split(parameters, ';');
  if (topology == "FAT_TREE") {
    const std::vector<double> children = numbers(parts[1]);
    const std::vector<double> parents = numbers(parts[2]);
    const std::vector<double> parallel = numbers(parts[3]);
    double nodes = product(children);
    double links = 0;
    for (std::size_t level = 0; level < children.size(); ++level) {
      links += nodes * parents[level] * parallel[level];
      nodes *= parents[level] / children[level];
    }
    return links;
  }
  const double groups = numbers(parts[0]).front();
  const double chassis = numbers(parts[1]).front();
  const double routers = numbers(parts[2]).front();
  const double hosts = groups * chassis * routers * numbers(parts[3]).front();
  const auto pairs = [](double count) { return count * (count - 1) / 2; };
  return hosts + groups * chassis * pairs(routers) + groups * routers * pairs(chassis) + pairs(groups);
}

std::string_view topology_form(std::string_view topology) {
  if (topology == "TORUS") return "X,Y,Z: the sizes of the dimensions";
  if (topology == "FAT_TREE")
    return "LEVELS;children per level;parents per level;parallel links per level, such as 2;8,4;1,8;1,1";
  return "GROUPS,links;CHASSIS,links;ROUTERS,links;NODES";
}

}  // namespace hcclsim::sim
