#include "tests/support/training.hpp"

#include "hccl/collective/algorithm/ring.hpp"
#include "models/lowering/lower.hpp"
#include "models/zoo/zoo.hpp"

namespace hcclsim::test {
namespace {

std::vector<std::vector<float>> plain(const device::Computation& computation, std::span<const float> flat) {
  std::vector<std::vector<float>> tensors(computation.parameters().size());
  for (std::size_t slot = 0; slot < tensors.size(); ++slot) {
    std::vector<float>& tensor = tensors[computation.parameters()[slot].parameter];
    tensor.resize(computation.parameters()[slot].elements);
    computation.to_plain(slot, flat, tensor);
  }
  return tensors;
}

}  // namespace

std::vector<std::uint32_t> production_order(const models::Graph& graph) {
  std::vector<std::uint32_t> order;
  for (const models::Gradient& gradient : lower(graph, {}).gradients) order.push_back(gradient.parameter);
  return order;
}

std::unique_ptr<hccl::Trainer> make_trainer(const TrainingSetup& setup) {
  models::Graph graph = models::make_model({.name = setup.model, .batch = setup.batch, .input = setup.input});
  const std::vector<std::uint32_t> order = production_order(graph);
  hccl::TrainerOptions options = setup.options;
  options.npus = setup.npus;
  std::vector<std::uint32_t> last_indices = setup.last_indices;
  last_indices.push_back(static_cast<std::uint32_t>(order.size() - 1));
  options.segments = hccl::segments_from_last_indices(last_indices);
  for (const hccl::Segment& segment : options.segments) {
    hccl::Operation spec{.ranks = setup.npus, .type = setup.wire};
    for (std::uint32_t g = segment.first; g <= segment.last; ++g) spec.elements += graph.parameters[order[g]].elements;
    options.schedules.push_back(
        std::make_shared<hccl::Schedule>(setup.build ? setup.build(spec) : hccl::ring_allreduce(spec, true)));
  }
  return std::make_unique<hccl::Trainer>(std::move(graph), order, std::move(options));
}

std::vector<std::vector<float>> weights_of(const hccl::Trainer& trainer, Rank rank) {
  return plain(trainer.computation(), trainer.replicas().weights_of(rank).values());
}

std::vector<std::vector<float>> gradients_of(const hccl::Trainer& trainer, Rank rank) {
  return plain(trainer.computation(), trainer.replicas().gradients_of(rank));
}

}  // namespace hcclsim::test
