#include "hccl/parallel/layout/redistribution.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "hccl/parallel/layout/common_terms.hpp"

namespace hcclsim::hccl {
namespace {

using Kind = RedistributionKind;

/// MindSpore's inference: which steps lead from one map to another one in common terms.
class StepInference {
 public:
  StepInference(const CommonTerms& terms, bool all_to_all)
      : terms_(terms), all_to_all_(all_to_all), slice_(terms.shape) {
    for (std::uint32_t dim = 0; dim < terms.from.size(); ++dim) {
      left_[dim] = terms.from[dim];
      if (terms.from[dim] != uncut) slice_ = resized(std::nullopt, dim, terms.from[dim]);
    }
  }

  [[nodiscard]] std::vector<RedistributionStep> infer() {
    while (!left_.empty()) {
      const std::size_t before = steps_.size();
      exchange();
      end_cuts();
      if (steps_.size() == before && !left_.empty()) {
        auto& [dim, axis] = *left_.begin();
        gather(dim, axis);
        axis = uncut;
      }
    }
    return std::move(steps_);
  }

 private:
  static constexpr std::uint32_t uncut = CommonTerms::uncut;

  [[nodiscard]] std::uint32_t size(std::uint32_t axis) const { return terms_.devices.size_from_right(axis); }

  /// The axis of the tensor that is left to be done and cut along an axis of the matrix.
  [[nodiscard]] std::optional<std::uint32_t> cut_along(std::uint32_t axis) const {
    const auto found = std::ranges::find_if(left_, [&](const auto& entry) { return entry.second == axis; });
    return found == left_.end() ? std::nullopt : std::optional(found->first);
  }

  void exchange() {
    for (std::size_t before = ~std::size_t{0}; before != steps_.size() && !left_.empty();) {
      before = steps_.size();
      begin_cuts();
      for (std::size_t permuted = ~std::size_t{0}; permuted != steps_.size();) {
        permuted = steps_.size();
        permute();
      }
    }
  }

  void begin_cuts() {
    for (auto entry = left_.begin(); entry != left_.end();) {
      const auto [dim, axis] = *entry;
      const std::uint32_t wanted = terms_.to[dim];
      const bool begins = axis == uncut && wanted != uncut && !cut_along(wanted).has_value();
      if (begins) slice(dim, wanted);
      entry = begins || axis == wanted ? left_.erase(entry) : std::next(entry);
    }
  }

  void permute() {
    for (auto entry = left_.begin(); entry != left_.end();) {
      const auto [dim, axis] = *entry;
      const std::uint32_t wanted = terms_.to[dim];
      const std::optional<std::uint32_t> other = axis == uncut && wanted != uncut ? cut_along(wanted) : std::nullopt;
      if (other.has_value()) {
        move_cut(*other, dim, wanted);
        left_[*other] = uncut;
      }
      entry = other.has_value() || axis == wanted ? left_.erase(entry) : std::next(entry);
    }
  }

  void end_cuts() {
    for (auto entry = left_.begin(); entry != left_.end();) {
      auto& [dim, axis] = *entry;
      const bool ends = axis != uncut && std::ranges::find(terms_.to, axis) == terms_.to.end();
      if (ends) {
        gather(dim, axis);
        axis = uncut;
      }
      entry = ends && terms_.to[dim] == uncut ? left_.erase(entry) : std::next(entry);
    }
  }

  /// The shape of a part when `joined` is no longer cut along an axis of the matrix, and `cut` is; neither need be.
  [[nodiscard]] models::Shape resized(std::optional<std::uint32_t> joined, std::optional<std::uint32_t> cut,
                                      std::uint32_t axis) const {
    models::Shape shape = slice_;
    if (joined.has_value()) shape.resize(*joined, shape.size(*joined) * size(axis));
    if (cut.has_value()) shape.resize(*cut, shape.size(*cut) / size(axis));
    return shape;
  }

  void add(RedistributionStep step, std::uint32_t axis, const models::Shape& after) {
    step.devices = terms_.devices;
    step.axis = axis;
    step.before = std::exchange(slice_, after);
    step.after = after;
    steps_.push_back(std::move(step));
  }

  void slice(std::uint32_t dim, std::uint32_t axis) {
    add({.kind = Kind::slice, .dim = dim}, axis, resized(std::nullopt, dim, axis));
  }
  void gather(std::uint32_t dim, std::uint32_t axis) {
    add({.kind = Kind::all_gather, .dim = dim}, axis, resized(dim, std::nullopt, axis));
  }
  void move_cut(std::uint32_t from, std::uint32_t to, std::uint32_t axis) {
    if (all_to_all_) {
      add({.kind = Kind::all_to_all, .split_dim = to, .concat_dim = from}, axis, resized(from, to, axis));
    } else {
      gather(from, axis);
      slice(to, axis);
    }
  }

  const CommonTerms& terms_;
  bool all_to_all_;
  models::Shape slice_;                          ///< of a device
  std::map<std::uint32_t, std::uint32_t> left_;  ///< axes of the tensor that are not done, and what cuts them
  std::vector<RedistributionStep> steps_;
};

void add_reshape(std::vector<RedistributionStep>& steps, const models::Shape& before, const models::Shape& after) {
  if (before == after) return;
  steps.push_back({.kind = Kind::reshape, .before = before, .after = after});
}

/// Of each axis of a factored shape, the axis of the tensor that it is a factor of.
std::vector<std::size_t> owners(const models::Shape& factored, const models::Shape& own) {
  std::vector<std::size_t> owners;
  std::size_t axis = 0;
  std::uint64_t left = own.size(0);
  for (const std::uint32_t factor : factored.sizes()) {
    while (left == 1 && factor != 1) left = own.size(++axis);
    owners.push_back(axis);
    left /= factor;
  }
  return owners;
}

/// The steps said on a tensor's own axes; nothing if a step is along a factor that others stand before.
std::optional<std::vector<RedistributionStep>> on_own_axes(std::vector<RedistributionStep> steps,
                                                           const std::vector<std::size_t>& owners, std::size_t rank) {
  const auto shape_of = [&](const models::Shape& factored) {
    std::vector<std::uint32_t> sizes(rank, 1);
    for (std::size_t factor = 0; factor < owners.size(); ++factor) sizes[owners[factor]] *= factored.size(factor);
    return models::Shape(std::move(sizes));
  };
  for (RedistributionStep& step : steps) {
    const std::vector<std::uint32_t*> dims =
        step.kind == Kind::all_to_all ? std::vector{&step.split_dim, &step.concat_dim} : std::vector{&step.dim};
    for (std::uint32_t* dim : dims) {
      const std::size_t own = owners[*dim];
      for (std::size_t factor = *dim; factor-- > 0 && owners[factor] == own;) {
        if (step.before.size(factor) > 1) return std::nullopt;
      }
      *dim = static_cast<std::uint32_t>(own);
    }
    step.before = shape_of(step.before);
    step.after = shape_of(step.after);
  }
  return steps;
}

/// The steps between two layouts, with a reshape before and behind them where common terms have another shape.
std::optional<std::vector<RedistributionStep>> direct_steps(const TensorLayout& from, const TensorLayout& to,
                                                            const RedistributionRules& rules) {
  const std::optional<CommonTerms> terms = common_terms(from, to);
  if (!terms.has_value()) return std::nullopt;
  std::vector<RedistributionStep> moves = StepInference(*terms, rules.all_to_all).infer();
  std::vector<RedistributionStep> steps;
  const models::Shape begin = from.slice_shape();
  const models::Shape end = to.slice_shape();
  if (moves.empty()) {
    add_reshape(steps, begin, end);
    return steps;
  }
  if (rules.own_axes && from.shape == to.shape && from.shape != terms->shape) {
    auto own = on_own_axes(moves, owners(terms->shape, from.shape), from.shape.rank());
    if (own.has_value()) return own;
  }
  add_reshape(steps, begin, moves.front().before);
  steps.insert(steps.end(), moves.begin(), moves.end());
  add_reshape(steps, moves.back().after, end);
  return steps;
}

void append(std::vector<RedistributionStep>& steps, const std::vector<RedistributionStep>& more) {
  for (const RedistributionStep& step : more) {
    if (step.kind == Kind::reshape && !steps.empty() && steps.back().kind == Kind::reshape) {
      steps.back().after = step.after;
    } else {
      steps.push_back(step);
    }
  }
}

/// The whole tensor on every device, and then the parts.
std::vector<RedistributionStep> through_the_whole(const TensorLayout& from, const TensorLayout& to,
                                                  const RedistributionRules& rules) {
  const TensorLayout whole_from = replicated(from.devices, from.shape);
  const TensorLayout whole_to = replicated(to.devices, to.shape);
  std::vector<RedistributionStep> steps = direct_steps(from, whole_from, rules).value();
  std::vector<RedistributionStep> between;
  add_reshape(between, from.shape, to.shape);
  append(steps, between);
  append(steps, direct_steps(whole_to, to, rules).value());
  return steps;
}

/// What a step costs beside MindSpore's addition.
RedistributionCost cost_of_step(const RedistributionStep& step) {
  const auto elements = static_cast<double>(step.before.elements());
  if (step.kind == Kind::slice) return {.computation = elements};
  const std::uint32_t joined = step.kind == Kind::all_to_all ? step.concat_dim : step.dim;
  const double ranks = step.ranks();
  const double computation = joined == 0 ? elements : elements + 2 * ranks * elements;
  if (step.kind == Kind::all_to_all) return {2 * elements, 2 * elements, computation};
  return {ranks * elements / 2, elements / 2, computation};
}

}  // namespace

std::string_view name_of(RedistributionKind kind) {
  constexpr std::array<std::string_view, 6> names{"all_to_all", "all_gather",     "slice",
                                                  "reshape",    "reduce_scatter", "pad"};
  return names.at(static_cast<std::size_t>(kind));
}

std::vector<std::vector<Rank>> RedistributionStep::groups() const {
  return devices.groups({static_cast<std::uint32_t>(devices.sizes.size()) - 1 - axis});
}

Bytes RedistributionStep::sent(Bytes element) const {
  if (!communicates(kind)) return 0;
  const Bytes others = ranks() - 1;
  return kind == Kind::all_gather ? bytes(element) * others : bytes(element) / ranks() * others;
}

std::vector<RedistributionStep> redistribute(const TensorLayout& from, const TensorLayout& to,
                                             const RedistributionRules& rules) {
  check_layout(from, "the layout that a tensor has");
  check_layout(to, "the layout that a tensor is to have");
  if (from.devices.devices() != to.devices.devices()) {
    bad_input("runtime-error", "a tensor cannot go from {} devices ({}) to {} ({})", from.devices.devices(),
              fmt::join(from.devices.sizes, ","), to.devices.devices(), fmt::join(to.devices.sizes, ","));
  }
  if (from.shape.elements() != to.shape.elements()) {
    bad_input("runtime-error", "a tensor of {} elements ({}) cannot be one of {} ({})", from.shape.elements(),
              models::to_string(from.shape), to.shape.elements(), models::to_string(to.shape));
  }
  const std::optional<std::vector<RedistributionStep>> steps = direct_steps(from, to, rules);
  return steps.has_value() ? *steps : through_the_whole(from, to, rules);
}

std::vector<RedistributionStep> backward_of(const std::vector<RedistributionStep>& steps) {
  constexpr std::array<Kind, 6> duals{Kind::all_to_all, Kind::reduce_scatter, Kind::pad,
                                      Kind::reshape,    Kind::all_gather,     Kind::slice};
  std::vector<RedistributionStep> backward(steps.rbegin(), steps.rend());
  for (RedistributionStep& step : backward) {
    step.kind = duals.at(static_cast<std::size_t>(step.kind));
    std::swap(step.split_dim, step.concat_dim);
    std::swap(step.before, step.after);
  }
  return backward;
}

RedistributionCost cost_of(const std::vector<RedistributionStep>& steps, const RedistributionCostRules& rules) {
  RedistributionCost cost;
  bool reshapes = false;
  for (const RedistributionStep& step : steps) {
    if (step.kind == Kind::reshape) {
      reshapes = true;
      continue;
    }
    const RedistributionCost own = cost_of_step(step);
    cost.forward += own.forward;
    cost.backward += own.backward;
    cost.computation += own.computation;
    if (communicates(step.kind) && rules.counts_as_mindspore) {
      cost.computation += static_cast<double>(step.before.elements());
    }
  }
  if (reshapes) cost.computation += 2 * static_cast<double>(steps.front().before.elements());
  const auto element = static_cast<double>(rules.element);
  cost = {cost.forward * element, cost.backward * element, cost.computation * element};
  if (rules.boolean && cost.communication() > 0) {
    cost.forward = std::numeric_limits<double>::infinity();
    cost.backward = std::numeric_limits<double>::infinity();
  }
  return cost;
}

}  // namespace hcclsim::hccl
