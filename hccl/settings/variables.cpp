#include "hccl/settings/variables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "base/text.hpp"

namespace hcclsim::hccl {
namespace {

struct NumberVariable {
  std::string_view name;
  WholeRange range;
};
constexpr std::array<NumberVariable, 9> numbers{{
    {"HCCL_WHITELIST_DISABLE", {0, 1}},
    {"HCCL_DIAGNOSE_ENABLE", {0, 1}},
    {"HCCL_ENTRY_LOG_ENABLE", {0, 1}},
    {"HCCL_CONCURRENT_ENABLE", {0, 1}},
    {"HCCL_RDMA_TC", {0, 255, 4}},  // a DSCP times four
    {"HCCL_RDMA_SL", {0, 7}},
    {"HCCL_RDMA_RETRY_CNT", {1, 7}},
    {"HCCL_IF_BASE_PORT", {1024, 65520}},
    {"HCCL_CONNECT_TIMEOUT", {120, 7200, 1, "seconds"}},
}};
/// Exponent of the shortest time after which RDMA sends again: 4.096 us · 2^value.
constexpr WholeRange rdma_timeout_a1{5, 24};
constexpr WholeRange rdma_timeout_later{5, 20};

struct WordVariable {
  std::string_view name;
  std::array<std::string_view, 2> words;
  bool any_case;
};
constexpr std::array<WordVariable, 2> words{{
    {"HCCL_SOCKET_FAMILY", {"AF_INET", "AF_INET6"}, false},
    {"HCCL_RDMA_PCIE_DIRECT_POST_NOSTRICT", {"TRUE", "FALSE"}, true},
}};

std::string refused_by(const WholeRange& range, std::string_view value) {
  return parse_whole(value, range).has_value() ? std::string() : to_string(range);
}

}  // namespace

std::optional<std::uint64_t> parse_whole(std::string_view text, const WholeRange& range) {
  const std::optional<std::uint64_t> value = parse_number<std::uint64_t>(text);
  const bool fits = value.has_value() && *value >= range.lowest && *value <= range.highest && *value % range.step == 0;
  return fits ? value : std::nullopt;
}

std::string to_string(const WholeRange& range) {
  if (range.lowest == 0 && range.highest == 1) return "0, 1";
  const std::string unit = range.unit.empty() ? "" : fmt::format(" of {}", range.unit);
  std::string text = fmt::format("a whole number{} from {} to {}", unit, range.lowest, range.highest);
  if (range.step != 1) text += fmt::format(" that {} divides", range.step);
  return text;
}

std::string upper_case(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

std::string_view product_of(device::Generation generation) {
  constexpr std::array<std::string_view, 3> names{"910A", "A2", "A3"};
  return names[static_cast<std::size_t>(generation)];
}

std::string refused_by(std::string_view variable, std::string_view value, device::Generation generation) {
  for (const NumberVariable& number : numbers) {
    if (number.name == variable) return refused_by(number.range, value);
  }
  if (variable == "HCCL_RDMA_TIMEOUT") {
    return refused_by(generation == device::Generation::a1 ? rdma_timeout_a1 : rdma_timeout_later, value);
  }
  for (const WordVariable& word : words) {
    if (word.name != variable) continue;
    const std::string given = word.any_case ? upper_case(value) : std::string(value);
    const bool known = std::find(word.words.begin(), word.words.end(), given) != word.words.end();
    return known ? std::string() : fmt::format("{}", fmt::join(word.words, ", "));
  }
  return {};
}

}  // namespace hcclsim::hccl
