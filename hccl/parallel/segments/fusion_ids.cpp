#include "hccl/parallel/segments/fusion_ids.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::hccl {

std::vector<FusionId> parse_fusion_ids(std::string_view text) {
  std::vector<FusionId> ids;
  for (const std::string_view item : split_trimmed(text, ';')) {
    const std::size_t equal = item.rfind('=');
    const std::string_view pattern = trimmed(item.substr(0, equal));
    const auto id =
        equal == std::string_view::npos ? std::nullopt : parse_number<std::uint32_t>(trimmed(item.substr(equal + 1)));
    if (pattern.empty() || !id.has_value()) {
      bad_input("option",
                "set_comm_fusion '{}': '{}' is not understood; accepted: PATTERN=ID with ; between them, IDs of 0 or "
                "more",
                text, item);
    }
    ids.push_back({std::string(pattern), *id});
  }
  return ids;
}

std::vector<std::uint32_t> ids_of(std::span<const std::string> parameters, std::span<const FusionId> patterns) {
  std::vector<std::uint32_t> ids(parameters.size(), 1);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (const FusionId& one : patterns) {
      if (matches(one.pattern, parameters[i])) ids[i] = one.id;
    }
  }
  return ids;
}

void require_matches(std::span<const std::string> parameters, std::span<const FusionId> patterns) {
  for (const FusionId& one : patterns) {
    const auto fits = [&](const std::string& parameter) { return matches(one.pattern, parameter); };
    if (std::ranges::any_of(parameters, fits)) continue;
    bad_input("option", "set_comm_fusion: no parameter is called '{}'; 'hcclsim models show MODEL' lists them",
              one.pattern);
  }
}

FusionRule with_ids(const FusionRule& rule, std::vector<std::uint32_t> ids) {
  if (ids.empty()) return rule;
  const bool differ = std::ranges::adjacent_find(ids, std::ranges::not_equal_to{}) != ids.end();
  FusionRule by_ids = rule;
  by_ids.mode = FusionMode::id;
  by_ids.last.clear();
  by_ids.ids = std::move(ids);
  if (differ) return by_ids;
  const bool none = by_ids.ids.front() == 0 && !rule.counts_as_mindspore;
  if (!none) return rule;
  by_ids.mode = FusionMode::none;
  by_ids.ids.clear();
  return by_ids;
}

}  // namespace hcclsim::hccl
