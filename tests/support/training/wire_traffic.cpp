#include "tests/support/training/wire_traffic.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "hccl/parallel/layout/redistribution.hpp"
#include "hccl/parallel/sharding/operator_sharding.hpp"
#include "hccl/schedule/walk.hpp"

namespace hcclsim::test {
namespace {

using hccl::OperatorSharding;
using hccl::TensorLayout;
using models::Operator;
using models::OperatorId;
using models::OperatorKind;
using models::Value;

/// Bytes that each rank of a Schedule moves between ranks.
std::vector<Bytes> moved_by(const hccl::Schedule& schedule) {
  std::vector<Bytes> moved(schedule.ranks, 0);
  for (Rank rank = 0; rank < schedule.ranks; ++rank) {
    hccl::for_each_task(schedule, rank, [&](std::uint32_t, const hccl::QueueWalk& walk) {
      const bool between = hccl::is_transfer(walk.task()->kind) && walk.peer(schedule, rank) != rank;
      if (between) moved[rank] += walk.bytes(schedule, rank);
    });
  }
  return moved;
}

/// Elements of the sums that all devices together send.
class Count {
 public:
  explicit Count(const ShardedTraining& training)
      : training_(training),
        graph_(training.network),
        whole_(graph_),
        has_gradient_(graph_.needs_gradient()),
        layouts_(graph_.operators.size()),
        users_(graph_.parameters.size()) {
    for (const Operator& op : graph_.operators) {
      for (const std::uint32_t parameter : op.parameters) ++users_[parameter];
    }
    for (OperatorId id = 0; id < graph_.operators.size(); ++id) {
      if (graph_.operators[id].kind == OperatorKind::input) continue;
      const auto found = training.strategies.find(graph_.operators[id].name);
      shardings_.emplace(id,
                         hccl::shard_operator(whole_, id, found == training.strategies.end() ? nullptr : &found->second,
                                              training.devices));
    }
  }

  /// Of a micro-batch, at least.
  std::uint64_t of_operators() {
    for (const auto& [id, sharding] : shardings_) {
      const Operator& op = graph_.operators[id];
      for (std::size_t i = 0; i < op.inputs.size(); ++i) count_input(id, op.inputs[i], sharding.inputs[i]);
      count_sum(id, sharding);
      if (op.kind == OperatorKind::batch_norm) count_norm(id, sharding);
      if (op.kind == OperatorKind::loss) count_loss(op, sharding);
      if (op.kind == OperatorKind::convolution || op.kind == OperatorKind::max_pool) count_borders(id, sharding);
      if (op.kind == OperatorKind::attention) count_ring(op, sharding);
      if (op.kind == OperatorKind::dispatch) count_experts(sharding);
      for (std::uint32_t output = 0; output < sharding.outputs.size(); ++output) {
        layouts_[id].push_back(output == 0 ? sharding.result() : sharding.outputs[output]);
      }
    }
    return elements_;
  }

  /// That may come on top of it.
  [[nodiscard]] std::uint64_t more() const { return more_; }
  /// Of a step.
  std::uint64_t of_parameters(std::uint64_t gathers) {
    std::set<std::uint32_t> seen;
    std::uint64_t sum = 0;
    for (const auto& [id, sharding] : shardings_) {
      const Operator& op = graph_.operators[id];
      for (std::size_t i = 0; i < op.parameters.size(); ++i) {
        if (seen.insert(op.parameters[i]).second)
          sum += of_parameter(op, op.parameters[i], sharding.parameters[i], gathers);
      }
    }
    return sum;
  }

 private:
  [[nodiscard]] static std::uint64_t size(const TensorLayout& layout) { return layout.slice_shape().elements(); }
  [[nodiscard]] std::uint64_t devices() const { return training_.devices; }

  /// What is wanted in another layout is made once.
  void count_input(OperatorId reader, Value value, const TensorLayout& to) {
    const OperatorId maker = value.op;
    if (graph_.operators[maker].kind == OperatorKind::input && layouts_[maker].empty()) layouts_[maker].push_back(to);
    const std::string key =
        std::to_string(maker) + "." + std::to_string(value.output) + to_string(to) + models::to_string(to.shape);
    if (!made_.insert(key).second) return;
    const auto strategy = training_.strategies.find(graph_.operators[reader].name);
    const bool again = strategy != training_.strategies.end() && strategy->second.gathers_again;
    const std::vector<hccl::RedistributionStep> steps = redistribute(
        layouts_[maker].at(value.output), to, {.all_to_all = training_.sharding.enable_alltoall, .own_axes = true});
    for (const hccl::RedistributionStep& step : steps) {
      const std::uint64_t larger = std::max(step.before.elements(), step.after.elements());
      if (!communicates(step.kind)) continue;
      const std::uint64_t sent = devices() / step.ranks() * (step.ranks() - 1) * larger;
      elements_ += sent * ((has_gradient_[maker] ? 2 : 1) + (again ? 1 : 0));
    }
  }

  void count_sum(OperatorId id, const OperatorSharding& sharding) {
    if (sharding.partial.empty()) return;
    std::uint64_t ranks = 1;
    for (const std::uint32_t axis : sharding.partial) ranks *= sharding.matrix.size_from_right(axis);
    const std::uint64_t once = devices() / ranks * (ranks - 1) * size(sharding.outputs.front());
    const std::uint64_t passes = has_gradient_[id] ? 2 : 1;
    elements_ += once * passes * (sharding.scattered.has_value() ? 1 : 2);
  }

  /// A sum over a group of n ranks in groups of so many devices.
  [[nodiscard]] std::uint64_t summed(std::uint64_t ranks, std::uint64_t elements) const {
    return devices() / ranks * 2 * (ranks - 1) * elements;
  }

  void count_norm(OperatorId id, const OperatorSharding& sharding) {
    const std::uint64_t ranks = std::uint64_t{sharding.cut("batch")} * sharding.cut("height") * sharding.cut("width");
    elements_ +=
        2 * summed(ranks, 2 * std::uint64_t{graph_.operators[id].shape().channels()} / sharding.cut("channels"));
  }

  void count_loss(const Operator& op, const OperatorSharding& sharding) {
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const TensorLayout& logits = sharding.inputs[i];
      const auto classes = logits.map.size() - 1;
      const std::uint64_t rows = size(logits) / (logits.shape.size(classes) / logits.cuts(classes));
      elements_ += summed(logits.cuts(classes), rows) + summed(logits.cuts(classes), 2 * rows);
    }
  }

  /// Rows and columns at each inner border, of both sides together, and pixels where two borders cross: images go to
  /// all eight neighbours at once. Where devices of a row do not follow each other they go along the columns first, and
  /// along the rows with what has come, zeros above and below the image too.
  void count_borders(OperatorId id, const OperatorSharding& sharding) {
    const Operator& op = graph_.operators[id];
    if (op.window.kernel <= op.window.stride) return;
    const std::uint64_t height = sharding.cut("height");
    const std::uint64_t width = sharding.cut("width");
    const models::Shape part = sharding.inputs.front().slice_shape();
    const std::uint64_t passes = has_gradient_[op.inputs.front().op] ? 2 : 1;
    const std::uint64_t images = passes * devices() / (height * width) * part.size(0) * part.size(1);
    const std::uint64_t lines = op.window.kernel - op.window.stride;
    elements_ += images * width * (height - 1) * lines * part.size(3);
    if (height == 1) {  // with the padding above and below
      elements_ += images * (width - 1) * lines * (part.size(2) + 2 * std::uint64_t{op.window.padding});
      return;
    }
    elements_ += images * (width - 1) * lines * (height * part.size(2) + (height - 1) * lines);
    more_ += images * (width - 1) * lines * lines;
  }

  void count_ring(const Operator& op, const OperatorSharding& sharding) {
    const std::uint64_t ranks = sharding.cut("positions");
    if (ranks == 1) return;
    std::uint64_t block = 0;
    if (op.inputs.size() == 1) {
      block = size(sharding.inputs.front()) / (op.heads + 2 * op.kv_heads) * 2 * op.kv_heads;
    } else {
      block = size(sharding.inputs[1]) + size(sharding.inputs[2]);
    }
    elements_ += devices() * block * (2 * (ranks - 1) + ranks);
  }

  void count_experts(const OperatorSharding& sharding) {
    const std::uint64_t ranks = training_.experts;
    elements_ += 4 * devices() / ranks * (ranks - 1) * size(sharding.outputs.front());
  }

  [[nodiscard]] std::uint64_t of_parameter(const Operator& op, std::uint32_t parameter, const TensorLayout& layout,
                                           std::uint64_t gathers) const {
    const bool of_experts = op.kind == OperatorKind::expert_linear;
    const std::uint64_t experts = of_experts ? training_.experts : 1;
    const std::uint64_t copies = layout.copies() / experts;
    const std::uint64_t part = size(layout) / experts;
    const std::string& kind = training_.optimizer_parallel;
    const std::uint64_t micro_batches = training_.shape.micro_batches;
    if (copies == 1) return 0;
    if (kind == "off") return summed(copies, part);
    const std::uint64_t share = (part + copies - 1) / copies;
    const std::uint64_t once = devices() * (copies - 1) * share;
    const bool at_the_end = training_.shape.stages > 1 && users_[parameter] > 1;  // others hand their gradients back
    const std::uint64_t reduced = kind == "zero1" || at_the_end ? 1 : micro_batches;
    return once * (reduced + (kind == "zero3" ? gathers * micro_batches : 1));
  }

  const ShardedTraining& training_;
  const models::Graph& graph_;
  hccl::WholeGraph whole_;
  std::vector<bool> has_gradient_;
  std::vector<std::vector<TensorLayout>> layouts_;
  std::vector<std::uint32_t> users_;  // of parameters
  std::map<OperatorId, OperatorSharding> shardings_;
  std::set<std::string> made_;
  std::uint64_t elements_ = 0;
  std::uint64_t more_ = 0;  // at most
};

}  // namespace

Bytes wire_bytes(const hccl::Plan& plan) {
  std::map<const hccl::Schedule*, std::vector<Bytes>> known;
  Bytes sum = 0;
  for (Rank rank = 0; rank < plan.ranks(); ++rank) {
    for (const hccl::PlanTask& task : plan.role(rank).tasks) {
      const auto* work = std::get_if<hccl::CollectiveTask>(&task.work);
      if (work == nullptr) continue;
      const hccl::PlannedCollective& collective = plan.collectives[work->collective];
      const auto& groups = plan.families[collective.family].groups;
      for (std::size_t group = 0; group < groups.size(); ++group) {
        const auto member = std::ranges::find(groups[group].ranks, rank);
        if (member == groups[group].ranks.end()) continue;
        const hccl::Schedule* schedule = collective.schedules[group].get();
        const auto [moved, is_new] = known.try_emplace(schedule);
        if (is_new) moved->second = moved_by(*schedule);
        sum += moved->second[static_cast<std::size_t>(member - groups[group].ranks.begin())];
      }
    }
  }
  return sum;
}

ExpectedBytes expected_bytes(const ShardedTraining& training) {
  Count count(training);
  const std::uint64_t micro_batches = training.shape.micro_batches;
  const std::uint64_t of_operators = count.of_operators() * micro_batches;
  return {.least = (of_operators + count.of_parameters(1)) * sizeof(float),
          .most = (of_operators + count.more() * micro_batches + count.of_parameters(2)) * sizeof(float)};
}

}  // namespace hcclsim::test
