#include <fmt/format.h>

#include "base/error.hpp"
#include "hccl/training/numerics/checkpoint.hpp"
#include "hccl/training/numerics/trainer.hpp"

namespace hcclsim::hccl {
namespace {

/// Names of the optimizer's state by the number of its tensors: none, velocity, moments.
std::vector<std::string> tensor_kinds(std::size_t states) {
  if (states == 0) return {"weights"};
  if (states == 1) return {"weights", "velocity"};
  return {"weights", "first_moment", "second_moment"};
}

}  // namespace

Checkpoint Trainer::checkpoint() {
  const models::Graph& graph = computation_.graph();
  device::OptimizerState& optimizer = replicas_.variants().front().optimizer;
  const device::LossScaler::State scale = options_.loss_scale.state();
  Checkpoint result{.model = graph.title,
                    .parameters = {},
                    .tensors = tensor_kinds(optimizer.tensors().size()),
                    .iteration = iteration_,
                    .seed = options_.seed,
                    .optimizer = std::string(name_of(options_.optimizer.rule)),
                    .optimizer_steps = optimizer.steps(),
                    .loss_scale = scale.scale,
                    .loss_scale_streak = scale.good_steps,
                    .options = {}};
  for (const models::Parameter& parameter : graph.parameters)
    result.parameters.push_back({parameter.name, parameter.shape});
  using Kind = device::LossScaler::Kind;
  const Kind scaling = options_.loss_scale.kind();
  const auto optional_name = [](const std::optional<DataType>& type) {
    return std::string(type.has_value() ? name_of(*type) : "none");
  };
  result.options = {{"npus", std::to_string(npus_)},
                    {"input", to_string(graph.operators.front().shape())},
                    {"data", options_.data},
                    {"shuffle", options_.shuffle ? "on" : "off"},
                    {"communication", std::string(name_of(wire_))},
                    {"compute", std::string(name_of(options_.computation.compute))},
                    {"round", optional_name(options_.computation.round)},
                    {"loss_scale", scaling == Kind::none    ? "none"
                                   : scaling == Kind::fixed ? "static"
                                                            : "dynamic"},
                    {"gradients_mean", options_.gradients_mean ? "on" : "off"}};
  return result;
}

void Trainer::for_each_tensor(const std::function<void(std::span<float> flat, std::size_t slot)>& use) {
  std::vector<std::size_t> slot_of(computation_.parameters().size());
  for (std::size_t slot = 0; slot < slot_of.size(); ++slot) slot_of[computation_.parameters()[slot].parameter] = slot;
  Variant& variant = replicas_.variants().front();
  std::vector<std::span<float>> buffers = variant.optimizer.tensors();
  buffers.insert(buffers.begin(), variant.weights.values());
  for (const std::span<float> flat : buffers) {
    for (const std::size_t slot : slot_of) use(flat, slot);
  }
}

void Trainer::save(const std::string& path) {
  if (replicas_.variants().size() > 1) {
    throw Error(
        ErrorCode::check_failed, "replicas",
        fmt::format("{}: not written, for the replicas hold {} different sets of weights and a checkpoint holds "
                    "one",
                    path, replicas_.variants().size()));
  }
  CheckpointWriter writer(path, checkpoint());
  std::vector<float> plain;
  for_each_tensor([&](std::span<float> flat, std::size_t slot) {
    plain.resize(computation_.parameters()[slot].elements);
    computation_.to_plain(slot, flat, plain);
    writer.write(plain);
  });
  writer.commit();
}

void Trainer::load(const std::string& path) {
  CheckpointReader reader(path);
  const Checkpoint& file = reader.checkpoint();
  require_same_run(path, file, checkpoint());
  std::vector<float> plain;
  for_each_tensor([&](std::span<float> flat, std::size_t slot) {
    plain.resize(computation_.parameters()[slot].elements);
    reader.read(plain);
    computation_.to_storage(slot, plain, flat);
  });
  Variant& variant = replicas_.variants().front();
  variant.optimizer.restore_steps(file.optimizer_steps);
  variant.weights.prepare(pool_);
  if (options_.loss_scale.kind() == device::LossScaler::Kind::dynamic) {
    options_.loss_scale.restore({static_cast<float>(file.loss_scale), file.loss_scale_streak});
  }
  iteration_ = file.iteration;
}

}  // namespace hcclsim::hccl
