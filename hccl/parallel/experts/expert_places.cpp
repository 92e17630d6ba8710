#include "hccl/parallel/experts/expert_places.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

/// An exchange of rows, in parts that differ.
bool exchanges_rows(const models::Operator& op) {
  return op.kind == models::OperatorKind::all_to_all && !op.counts.empty();
}

bool goes_to_experts(const models::Operator& op) { return exchanges_rows(op) && op.joined_axis == 1; }

/// Rows that come to each expert of a place, with the last one filled up; there may be none.
std::uint32_t rows_at(const models::Operator& op, Rank place) {
  std::uint64_t elements = 0;
  for (Rank from = 0; from < op.group.ranks; ++from) elements += op.counts[from * op.group.ranks + place];
  const std::uint64_t rows = elements / op.shape().size(2);
  const std::uint32_t experts = op.shape().size(0);
  return static_cast<std::uint32_t>((rows + experts - 1) / experts);
}

}  // namespace

bool experts_differ(const models::Graph& stage) { return std::ranges::any_of(stage.operators, exchanges_rows); }

models::Graph graph_of_place(models::Graph stage, Rank place) {
  std::vector<std::optional<std::uint32_t>> rows(stage.operators.size());  // of operators that work on them
  for (models::OperatorId id = 0; id < stage.operators.size(); ++id) {
    models::Operator& op = stage.operators[id];
    if (goes_to_experts(op)) {
      rows[id] = rows_at(op, place);
    } else if (!op.inputs.empty() && !exchanges_rows(op)) {
      rows[id] = rows[op.inputs.front().op];
    }
    if (!rows[id].has_value()) continue;
    // Devices of an expert's features put their rows together, and share them out again.
    if (op.kind == models::OperatorKind::all_gather) *rows[id] *= op.group.ranks;
    if (op.kind == models::OperatorKind::reduce_scatter) *rows[id] /= op.group.ranks;
    for (models::Tensor& output : op.outputs) output.shape.resize(1, *rows[id]);
  }
  return stage;
}

std::vector<Rank> expert_places(const ShardedGraph& stage) {
  const auto exchange = std::ranges::find_if(stage.graph.operators, exchanges_rows);
  if (exchange == stage.graph.operators.end()) internal_error("{}: its devices do the same", stage.graph.title);
  std::vector<Rank> places(stage.devices, 0);
  for (const std::vector<Rank>& group : stage.families[exchange->group.family]) {
    for (std::size_t place = 0; place < group.size(); ++place) places[group[place]] = static_cast<Rank>(place);
  }
  return places;
}

std::shared_ptr<const models::Program> program_of_place(const models::Program& program,
                                                        const models::Program& at_place) {
  if (program.micro_batch_kernels != at_place.micro_batch_kernels) {
    internal_error("{}: {} kernels, at another place {}", program.title, program.micro_batch_kernels,
                   at_place.micro_batch_kernels);
  }
  auto made = std::make_shared<models::Program>(program);
  for (std::uint32_t number = 0; number < program.micro_batch_kernels; ++number) {
    models::Kernel kernel = at_place.kernels[number];
    kernel.communication = program.kernels[number].communication;
    made->kernels[number] = std::move(kernel);
  }
  return made;
}

}  // namespace hcclsim::hccl
