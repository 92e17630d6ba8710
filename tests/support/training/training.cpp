#include "tests/support/training/training.hpp"

#include "hccl/collective/algorithm/ring.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "hccl/parallel/compressed_plan.hpp"
#include "models/lowering/lower.hpp"
#include "models/lowering/updates.hpp"
#include "models/zoo/zoo.hpp"
#include "tests/support/training/steps.hpp"

namespace hcclsim::test {
namespace {

std::vector<std::vector<float>> plain(const device::Computation& computation, std::span<const float> flat) {
  std::vector<std::vector<float>> tensors(computation.parameters().size());
  for (std::size_t slot = 0; slot < tensors.size(); ++slot) {
    std::vector<float>& tensor = tensors[computation.parameters()[slot].parameter];
    tensor.resize(computation.parameters()[slot].elements);
    computation.to_plain(slot, computation.parameters()[slot].in(flat), tensor);
  }
  return tensors;
}

}  // namespace

std::vector<std::uint32_t> production_order(const models::Graph& graph) {
  std::vector<std::uint32_t> order;
  for (const models::Gradient& gradient : lower(graph, {}).gradients) order.push_back(gradient.parameter);
  return order;
}

hccl::Plan plan_of(const models::Graph& graph, const TrainingSetup& setup) {
  auto program = std::make_shared<models::Program>(lower(graph, {}));
  for (models::Gradient& gradient : program->gradients) gradient.dtype = setup.wire;
  models::add_updates(*program, {.precision = models::precision_of(models::Amp::o0),
                                 .checks = {.overflow = setup.options.loss_scale.checks_overflow(),
                                            .global_norm = setup.options.clip_norm.has_value()}});
  std::vector<std::uint32_t> last_indices = setup.last_indices;
  last_indices.push_back(static_cast<std::uint32_t>(program->gradients.size() - 1));
  std::vector<std::string> notes;
  const device::Soc soc = device::find_soc("Ascend910A", notes);
  const hccl::ScheduleMaker build = [&](const hccl::Communicator&,
                                        const hccl::Operation& operation) -> std::shared_ptr<const hccl::Schedule> {
    if (operation.collective != hccl::Collective::allreduce) {
      return hccl::make_collective({.operation = operation}, {.ranks = operation.ranks}, soc);
    }
    const bool ring = !setup.build || operation.elements == 1;
    return std::make_shared<hccl::Schedule>(ring ? hccl::ring_allreduce(operation, true) : setup.build(operation));
  };
  hccl::Plan plan =
      data_parallel_plan(program, {.npus = setup.npus}, hccl::segments_from_last_indices(last_indices), build);
  if (!setup.compress.empty()) compress(plan, {hccl::parse_compression(setup.compress)}, soc, build);
  return plan;
}

std::unique_ptr<hccl::Trainer> make_trainer(const TrainingSetup& setup) {
  models::Graph graph = models::make_model(
      {.name = setup.model, .batch = setup.batch, .input = setup.input, .vocabulary = setup.vocabulary});
  const hccl::Plan plan = plan_of(graph, setup);
  return std::make_unique<hccl::Trainer>(std::move(graph), std::vector<hccl::ShardedGraph>{}, plan, setup.options);
}

std::vector<std::vector<float>> weights_of(const hccl::Trainer& trainer, Rank rank) {
  return plain(trainer.stage(0).computation(), trainer.stage(0).store().weights_of(rank).values());
}

std::vector<std::vector<float>> gradients_of(const hccl::Trainer& trainer, Rank rank) {
  return plain(trainer.stage(0).computation(), trainer.stage(0).store().gradients_of(rank));
}

}  // namespace hcclsim::test
