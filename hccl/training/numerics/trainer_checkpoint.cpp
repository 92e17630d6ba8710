#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
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

/// What may change on the way and changes the weights: values of the rule in use.
std::map<std::string, std::string> settings_of(const TrainerOptions& options) {
  using enum models::Optimizer;
  const device::OptimizerSettings& optimizer = options.optimizer;
  const auto text = [](double value) { return fmt::format("{}", value); };
  std::map<std::string, std::string> settings{
      {"weight-decay", text(optimizer.weight_decay)},
      {"decay-norms", optimizer.decay_norm_parameters ? "on" : "off"},
      {"label-smoothing", fmt::format("{}", options.computation.label_smoothing)},
      {"clip-norm", options.clip_norm.has_value() ? text(*options.clip_norm) : "none"}};
  const models::Optimizer rule = optimizer.rule;
  if (rule == momentum || rule == nesterov || rule == lars) settings["momentum"] = text(optimizer.momentum);
  if (rule == lars) settings["trust-coefficient"] = text(optimizer.trust_coefficient);
  if (rule == adam || rule == adamw || rule == lamb) {
    settings["beta1"] = text(optimizer.beta1);
    settings["beta2"] = text(optimizer.beta2);
  }
  if (optimizer.epsilon.has_value()) settings["epsilon"] = text(*optimizer.epsilon);
  return settings;
}

/// How often reduced gradients are divided.
std::string divisions(const TrainerOptions& options) {
  if (options.mean_again) return options.gradients_mean ? "twice" : "by devices";
  return options.gradients_mean ? "on" : "off";
}

/// What a hook keeps, as the header of a file lists it.
CheckpointHook hook_of(const HookState<float>& state) {
  CheckpointHook hook{.steps = state.steps,
                      .draws = state.draws,
                      .elements_before = state.statistics.before,
                      .elements_after = state.statistics.after,
                      .next_report = state.next_report};
  const auto add = [&](std::uint32_t bucket, const char* kind, std::uint32_t rank, const std::vector<float>& values) {
    if (!values.empty()) hook.tensors.push_back({bucket, kind, rank, values.size()});
  };
  for (const auto& [bucket, ranks] : state.buckets) {
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) add(bucket, "error", rank, ranks[rank].error);
    add(bucket, "p", 0, ranks.front().p);
    add(bucket, "q", 0, ranks.front().q);
  }
  return hook;
}

/// The numbers of a tensor of a hook.
template <typename State>
auto& values_of(State& state, const CheckpointHookTensor& tensor) {
  auto& of_rank = state.buckets.at(tensor.bucket).at(tensor.rank);
  if (tensor.kind == "error") return of_rank.error;
  return tensor.kind == "p" ? of_rank.p : of_rank.q;
}

/// Reads the tensors of a hook.
HookState<float> read_hook(CheckpointReader& reader, const std::string& path, const CompressedReduction& compressed,
                           Rank ranks) {
  const std::optional<CheckpointHook>& kept = reader.checkpoint().hook;
  if (!kept.has_value()) bad_input("checkpoint", "{} lacks what the compression hook kept", path);
  const CheckpointHook& hook = *kept;
  HookState<float> state{.steps = hook.steps,
                         .draws = hook.draws,
                         .statistics = {hook.elements_before, hook.elements_after},
                         .next_report = hook.next_report};
  for (const CheckpointHookTensor& tensor : hook.tensors) {
    if (tensor.rank >= ranks || tensor.elements != compressed.kept_elements(tensor.bucket, tensor.kind)) {
      bad_input("checkpoint", "{} has {} elements of '{}' of bucket {}, rank {}, which the compression hook has not",
                path, tensor.elements, printable(tensor.kind), tensor.bucket, tensor.rank);
    }
    state.buckets[tensor.bucket].resize(ranks);
    std::vector<float>& values = values_of(state, tensor);
    values.resize(tensor.elements);
    reader.read(values);
  }
  for (auto& [bucket, of_ranks] : state.buckets) {
    for (HookState<float>::OfRank& of_rank : of_ranks) {
      of_rank.p = of_ranks.front().p;
      of_rank.q = of_ranks.front().q;
    }
  }
  return state;
}

}  // namespace

Checkpoint Trainer::checkpoint() const {
  ParameterStore& store = stages_.front()->store();
  const device::LossScaler::State scale = options_.loss_scale.state();
  Checkpoint result{.model = graph_.title,
                    .parameters = {},
                    .tensors = tensor_kinds(store.kinds() - 1),
                    .iteration = iteration_,
                    .seed = options_.seed,
                    .optimizer = std::string(name_of(options_.optimizer.rule)),
                    .optimizer_steps = store.optimizer_steps(),
                    .loss_scale = scale.scale,
                    .loss_scale_streak = scale.good_steps,
                    .options = {}};
  for (const models::Parameter& parameter : graph_.parameters)
    result.parameters.push_back({parameter.name, parameter.shape});
  using Kind = device::LossScaler::Kind;
  const Kind scaling = options_.loss_scale.kind();
  const auto optional_name = [](const std::optional<DataType>& type) {
    return std::string(type.has_value() ? name_of(*type) : "none");
  };
  result.options = {{"npus", std::to_string(npus_)},
                    {"input", to_string(graph_.operators.front().shape())},
                    {"data", options_.data},
                    {"shuffle", options_.shuffle ? "on" : "off"},
                    {"communication", wire_},
                    {"compute", std::string(name_of(options_.computation.compute))},
                    {"round", optional_name(options_.computation.round)},
                    {"loss_scale", scaling == Kind::none    ? "none"
                                   : scaling == Kind::fixed ? "static"
                                                            : "dynamic"},
                    {"gradients_mean", divisions(options_)}};
  if (options_.loss_repeated_mean) result.options["loss_repeated_mean"] = "on";
  const Rank replicas = stages_.front()->replicas();
  if (replicas != npus_) result.options["replicas"] = std::to_string(replicas);
  if (micro_batches() > 1) result.options["micro_batches"] = std::to_string(micro_batches());
  if (const CompressionHook<float>* hook = compression(); hook != nullptr) {
    result.options["compress"] = to_string(hook->settings());
    result.options["buckets"] = to_string(buckets_);
    result.hook = hook_of(hook->state());
  }
  result.settings = settings_of(options_);
  return result;
}

void Trainer::for_each_tensor(const std::function<void(std::size_t kind, TrainedStage& stage, std::size_t slot)>& use) {
  for (std::size_t kind = 0; kind < stages_.front()->store().kinds(); ++kind) {
    for (const Owner& owner : owners_) use(kind, *stages_[owner.stage], owner.slot);
  }
}

void Trainer::require_checkpoints() const {
  if (compression() == nullptr || stages_.size() == 1) return;
  const CompressionKind kind = compression()->settings().kind;
  if (kind == CompressionKind::fp16 || kind == CompressionKind::bf16) return;  // they keep nothing
  bad_input(
      "numerics",
      "{}: a checkpoint holds what one compression hook keeps, and each of the {} stages has one: leave out --save "
      "and --load, or --compress",
      graph_.title, stages_.size());
}

void Trainer::save(const std::string& path, std::span<const Seconds> ends) {
  require_checkpoints();
  std::size_t variants = 1;
  for (const auto& stage : stages_) variants = std::max(variants, stage->store().variants());
  if (variants > 1) {
    throw Error(
        ErrorCode::check_failed, "replicas",
        fmt::format("{}: not written, for the replicas hold {} different sets of weights and a checkpoint holds "
                    "one",
                    path, variants));
  }
  Checkpoint header = checkpoint();
  header.iteration_ends.assign(ends.begin(), ends.end());
  CheckpointWriter writer(path, header);
  for_each_tensor(
      [&](std::size_t kind, TrainedStage& stage, std::size_t slot) { writer.write(stage.read(kind, slot)); });
  if (header.hook.has_value()) {
    const HookState<float>& state = compression()->state();
    for (const CheckpointHookTensor& tensor : header.hook->tensors) writer.write(values_of(state, tensor));
  }
  writer.commit();
}

void Trainer::save_gradients(const std::string& path) const {
  if (const ReplicaCheck replicas = replica_check(); replicas.differing_bits > 0) {
    throw Error(ErrorCode::check_failed, "replicas",
                fmt::format("{}: not written, for the gradients of the replicas differ in {} bits and a file holds one "
                            "of each",
                            path, replicas.differing_bits));
  }
  Checkpoint header = checkpoint();
  header.tensors = {"gradients"};
  header.hook.reset();
  CheckpointWriter writer(path, header);
  const auto unscale = static_cast<float>(1 / divisor_of_step_);
  for (const Owner& owner : owners_) {
    std::vector<float> gradient = stages_[owner.stage]->read_gradient(owner.slot);
    for (float& value : gradient) value *= unscale;
    writer.write(gradient);
  }
  writer.commit();
}

std::vector<std::string> Trainer::load(const std::string& path) {
  require_checkpoints();
  CheckpointReader reader(path);
  const Checkpoint& file = reader.checkpoint();
  const Checkpoint own = checkpoint();
  require_same_run(path, file, own);
  std::vector<float> whole;
  for_each_tensor([&](std::size_t kind, TrainedStage& stage, std::size_t slot) {
    whole.resize(stage.parts().whole_elements(slot));
    reader.read(whole);
    stage.write(kind, slot, whole);
  });
  if (CompressedReduction* compressed = stages_.front()->store().compression(); compressed != nullptr) {
    compressed->hook().restore(read_hook(reader, path, *compressed, stages_.front()->replicas()));
  }
  for (const auto& stage : stages_) {
    stage->store().restore_steps(file.optimizer_steps);
    stage->store().prepare(pool_);
  }
  if (options_.loss_scale.kind() == device::LossScaler::Kind::dynamic) {
    options_.loss_scale.restore({static_cast<float>(file.loss_scale), file.loss_scale_streak});
  }
  iteration_ = file.iteration;
  return changed_settings(file, own);
}

}  // namespace hcclsim::hccl
