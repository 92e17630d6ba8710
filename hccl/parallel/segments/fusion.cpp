#include "hccl/parallel/segments/fusion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "hccl/parallel/segments/split.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::array<std::string_view, 5> fusion_modes{"none", "all", "size", "index", "id"};

/// Numbers tensors by the collective that carries them, from 0 on.
class SizeCounter {
 public:
  explicit SizeCounter(const FusionRule& rule) : rule_(rule) { refill(); }

  std::uint32_t next(const FusedTensor& tensor) {
    const auto size = static_cast<std::int64_t>(rule_.counts_as_mindspore ? tensor.elements : tensor.bytes);
    if (first_ || size < left_) {
      left_ -= size;
    } else {
      refill();
      ++number_;
      if (!rule_.counts_as_mindspore) left_ -= size;
    }
    first_ = false;
    return number_;
  }

 private:
  void refill() {
    const Bytes element = size_of(DataType::fp32);
    left_ = static_cast<std::int64_t>(rule_.counts_as_mindspore ? rule_.threshold / element : rule_.threshold);
  }

  const FusionRule& rule_;
  std::int64_t left_ = 0;
  std::uint32_t number_ = 0;
  bool first_ = true;
};

using Groups = std::vector<std::vector<std::uint32_t>>;

/// FusionRule::ends_above: the groups, cut; `bytes`: of each tensor by its parameter.
Groups cut_above(const Groups& groups, const FusionRule& rule, const std::map<std::uint32_t, Bytes>& bytes) {
  const Bytes threshold = rule.counts_as_mindspore ? rule.threshold / size_of(DataType::fp32) : rule.threshold;
  Groups cut;
  for (std::vector<std::uint32_t> group : groups) {
    const bool backward = rule.mode != FusionMode::id;
    if (backward) std::ranges::reverse(group);
    Bytes sum = 0;
    bool closed = true;
    for (const std::uint32_t parameter : group) {
      if (closed) cut.emplace_back();
      cut.back().push_back(parameter);
      sum += bytes.at(parameter);
      closed = sum > threshold;
      if (closed) sum = 0;
    }
  }
  for (std::vector<std::uint32_t>& group : cut) std::ranges::sort(group);
  return cut;
}

}  // namespace

std::string_view name_of(FusionMode mode) { return fusion_modes.at(static_cast<std::size_t>(mode)); }

std::vector<std::vector<std::uint32_t>> fuse(std::span<const FusedTensor> tensors, const FusionRule& rule) {
  SizeCounter counter(rule);
  std::vector<std::vector<std::uint32_t>> fused;
  std::map<std::uint64_t, std::size_t> of_key;
  const std::uint64_t alone = std::uint64_t{1} << 32U;
  for (const FusedTensor& tensor : tensors) {
    std::uint64_t key = 0;
    switch (rule.mode) {
      case FusionMode::none:
        key = alone + tensor.parameter;
        break;
      case FusionMode::all:
        break;
      case FusionMode::size:
        if (!rule.ends_above) key = counter.next(tensor);
        break;
      case FusionMode::index:
        key = static_cast<std::uint64_t>(std::ranges::lower_bound(rule.last, tensor.parameter) - rule.last.begin());
        break;
      case FusionMode::id:
        key = tensor.parameter < rule.ids.size() ? rule.ids[tensor.parameter] : 1;
        if (key == 0) key = alone + tensor.parameter;
        break;
    }
    const auto [found, is_new] = of_key.try_emplace(key, fused.size());
    if (is_new) fused.emplace_back();
    fused[found->second].push_back(tensor.parameter);
  }
  if (!rule.ends_above) return fused;
  std::map<std::uint32_t, Bytes> bytes;
  for (const FusedTensor& tensor : tensors) bytes.emplace(tensor.parameter, tensor.bytes);
  return cut_above(fused, rule, bytes);
}

FusionRule parse_fusion_rule(std::string_view text) {
  if (text == "none") return {.mode = FusionMode::none};
  if (text == "all") return {.mode = FusionMode::all};
  if (text == "auto") return {};
  if (text == "id") return {.mode = FusionMode::id};
  if (text.starts_with("index:")) {
    return {.mode = FusionMode::index, .last = parse_fusion_index(text.substr(std::string_view("index:").size()))};
  }
  if (text.starts_with("size:")) {
    const auto megabytes = parse_number<std::uint32_t>(text.substr(std::string_view("size:").size()));
    if (megabytes.has_value() && *megabytes > 0) return {.threshold = Bytes{*megabytes} << 20U};
  }
  bad_input("option",
            "'{}' is no rule of fusion; accepted: none, all, auto, id, size:<MB, 1 or more>, "
            "index:<parameters>",
            text);
}

std::string to_string(const FusionRule& rule) {
  const std::string cut =
      rule.ends_above && rule.mode != FusionMode::size ? fmt::format(" within {} MB", rule.threshold >> 20U) : "";
  switch (rule.mode) {
    case FusionMode::none:
      return "one collective per tensor";
    case FusionMode::all:
      return "one collective for all";
    case FusionMode::size:
      return fmt::format("size {} MB", rule.threshold >> 20U);
    case FusionMode::index:
      return fmt::format("index {}{}", fmt::join(rule.last, ","), cut);
    case FusionMode::id:
      return "ids of parameters" + cut;
  }
  internal_error("unknown mode of fusion");
}

FusionRules parse_fusion_rules(std::string_view text) {
  if (text.find('=') == std::string_view::npos) {
    const FusionRule rule = parse_fusion_rule(text);
    const bool index = rule.mode == FusionMode::index;
    return {rule, index ? FusionRule{} : rule, index ? FusionRule{} : rule};
  }
  FusionRules rules;
  const std::array<std::pair<std::string_view, FusionRule*>, 3> kinds{
      {{"allreduce", &rules.allreduce}, {"reducescatter", &rules.reduce_scatter}, {"allgather", &rules.allgather}}};
  for (const std::string_view item : split_trimmed(text, ';')) {
    const std::size_t equal = item.find('=');
    const std::string_view name = item.substr(0, equal);
    const auto* const kind = std::ranges::find(kinds, name, &std::pair<std::string_view, FusionRule*>::first);
    if (kind == kinds.end() || equal == std::string_view::npos) {
      bad_input("option",
                "fusion '{}': '{}' is not understood; accepted: allreduce=, reducescatter=, allgather=, with ; "
                "between them",
                text, item);
    }
    *kind->second = parse_fusion_rule(item.substr(equal + 1));
    if (kind->second->mode == FusionMode::index && kind->second != &rules.allreduce) {
      bad_input("option", "fusion '{}': index is for allreduce alone", text);
    }
  }
  return rules;
}

std::string option_text(const FusionRules& rules) {
  const auto text = [](const FusionRule& rule) -> std::string {
    switch (rule.mode) {
      case FusionMode::none:
      case FusionMode::all:
      case FusionMode::id:
        return std::string(name_of(rule.mode));
      case FusionMode::size:
        return fmt::format("size:{}", rule.threshold >> 20U);
      case FusionMode::index:
        return fmt::format("index:{}", fmt::join(rule.last, ","));
    }
    internal_error("unknown mode of fusion");
  };
  std::string allreduce = text(rules.allreduce);
  const std::string reduce_scatter = text(rules.reduce_scatter);
  const std::string allgather = text(rules.allgather);
  if (allreduce == reduce_scatter && allreduce == allgather) return allreduce;
  return fmt::format("allreduce={};reducescatter={};allgather={}", allreduce, reduce_scatter, allgather);
}

std::string to_string(const FusionRules& rules) {
  std::string allreduce = to_string(rules.allreduce);
  const std::string reduce_scatter = to_string(rules.reduce_scatter);
  const std::string allgather = to_string(rules.allgather);
  if (allreduce == reduce_scatter && allreduce == allgather) return allreduce;
  return fmt::format("allreduce {}, reduce-scatter {}, allgather {}", allreduce, reduce_scatter, allgather);
}

}  // namespace hcclsim::hccl
