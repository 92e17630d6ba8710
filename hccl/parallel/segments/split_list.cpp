#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "hccl/parallel/segments/split.hpp"

// The lists of split.hpp in the form in which a user writes them.
namespace hcclsim::hccl {
namespace {

/// The elements of "1,2,3" or "[1, 2, 3]"; `what` names the list and `example` shows one in error messages.
std::vector<std::string_view> elements_of(std::string_view text, std::string_view what, std::string_view example) {
  std::string_view list = trimmed(text);
  const bool opened = list.starts_with('[');
  const bool closed = list.ends_with(']');
  if (opened != closed) {
    bad_input("split", "{} '{}': a bracket is missing; write {} or [{}]", what, text, example, example);
  }
  if (opened) list = trimmed(list.substr(1, list.size() - 2));
  if (list.empty()) bad_input("split", "{}: the list is empty; write for example {}", what, example);
  std::vector<std::string_view> elements = split_trimmed(list, ',');
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (elements[i].empty()) {
      bad_input("split", "{} '{}': element {} is empty; write for example {}", what, text, i, example);
    }
  }
  return elements;
}

}  // namespace

std::vector<std::uint32_t> parse_index_list(std::string_view text) {
  constexpr std::string_view what = "split by index";
  std::vector<std::uint32_t> indices;
  for (const std::string_view element : elements_of(text, what, "20,100,160")) {
    const std::optional<std::uint32_t> index = parse_number<std::uint32_t>(element);
    if (!index.has_value()) {
      bad_input("split", "{} '{}': '{}' is not an index; accepted: whole numbers from 0 to 4294967295{}", what, text,
                element, element.find('.') != std::string_view::npos ? " (percentages go to the split by size)" : "");
    }
    indices.push_back(*index);
  }
  return indices;
}

std::vector<std::uint32_t> parse_fusion_index(std::string_view text) {
  std::vector<std::uint32_t> list = parse_index_list(text);
  const auto wrong = std::adjacent_find(list.begin(), list.end(), std::greater_equal<>());
  if (wrong != list.end()) {
    bad_input("split", "MindSpore wants indices that ascend, got {} after {}", *(wrong + 1), *wrong);
  }
  return list;
}

std::vector<double> parse_size_list(std::string_view text) {
  constexpr std::string_view what = "split by size";
  std::vector<double> percentages;
  for (const std::string_view element : elements_of(text, what, "60,20,20")) {
    const std::optional<double> percent = parse_number<double>(element);
    if (!percent.has_value() || *percent < 0) {
      bad_input("split", "{} '{}': '{}' is not a percentage; accepted: numbers from 0 to 100", what, text, element);
    }
    percentages.push_back(*percent);
  }
  return percentages;
}

}  // namespace hcclsim::hccl
