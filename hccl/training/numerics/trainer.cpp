#include "hccl/training/numerics/trainer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <span>
#include <variant>

#include "base/counter_random.hpp"
#include "base/error.hpp"
#include "device/numerics/loops/gradient_checks.hpp"
#include "hccl/parallel/sharding/sharded_stages.hpp"

namespace hcclsim::hccl {
namespace {

/// Bytes for a message, in the largest unit of which there is one.
std::string size_text(Bytes bytes) {
  const auto amount = static_cast<double>(bytes);
  if (amount >= giga) return fmt::format("{:.1f} GB", amount / giga);
  if (amount >= 1e6) return fmt::format("{:.1f} MB", amount / 1e6);
  return fmt::format("{} bytes", bytes);
}

/// What this process takes already; 0 if the system does not say.
Bytes resident_bytes() {
  std::ifstream file("/proc/self/statm");
  Bytes pages = 0;
  Bytes resident_pages = 0;
  if (!(file >> pages >> resident_pages)) return 0;
  return resident_pages * static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
}

/// The network with the tables that stages have split by hand: made data suit them.
models::Graph with_split_tables(models::Graph network, const std::vector<ShardedGraph>& stages) {
  for (const ShardedGraph& stage : stages) {
    for (const models::Operator& op : stage.graph.operators) {
      if (op.row_parts.empty() || op.original == models::no_original) continue;
      network.operators[op.original].row_parts = op.row_parts;
    }
  }
  return network;
}

/// Workers that read samples at the same time.
unsigned reading_workers(const std::vector<StageSetup>& setups, unsigned workers) {
  return setups.front().places(workers);
}

}  // namespace

Trainer::Trainer(models::Graph graph, std::vector<ShardedGraph> stages, const Plan& plan, TrainerOptions options)
    : options_(std::move(options)),
      graph_(with_split_tables(std::move(graph), stages)),
      npus_(plan.ranks()),
      wire_(plan.roles.front().program->gradient_type_text()),
      tasks_(numeric_tasks(plan)),
      buckets_(plan.roles.front().segments),
      pool_(options_.workers),
      data_(options_.dataset != nullptr ? options_.dataset
                                        : models::open_dataset(options_.data, graph_, options_.seed)) {
  if (plan.compression.has_value() && !options_.gradients_mean) {
    bad_input("unsupported", "a compression hook gives the mean of the gradients: their sum has no --compress");
  }
  if (plan.compression.has_value() && options_.loss_scale.kind() == device::LossScaler::Kind::dynamic) {
    bad_input(
        "unsupported",
        "--compress does not go with a dynamic loss scale: a hook is not told which steps overflow; give a static "
        "one");
  }
  if (stages.empty()) stages.push_back(replicated(graph_, plan.ranks()));
  if (const std::size_t roles = computing_roles(plan).size(); stages.size() != roles) {
    internal_error("graphs of {} stages for {} roles", stages.size(), roles);
  }
  find_owners(stages);
  if (!stages.front().parameters.empty()) parts_.emplace(stages.front(), stages.back());
  if (cut() && (options_.own_weights || plan.compression.has_value())) {
    bad_input("numerics", "{}: where operators are cut over NPUs, {}", graph_.title,
              options_.own_weights ? "all draw their weights from one seed, and broadcast none"
                                   : "the numbers of a compression hook are not computed: leave out --compress, or "
                                     "--numerics");
  }
  std::vector<StageSetup> setups;
  for (std::uint32_t role = 0; role < stages.size(); ++role) {
    setups.emplace_back(plan, role, graph_, std::move(stages[role]), tasks_, options_.computation,
                        options_.make_schedule);
  }
  for (const StageSetup& setup : setups) {
    if (!plan.compression.has_value() || !setup.communication.shares_parameters()) continue;
    bad_input(
        "numerics",
        "{}: where replicas share or deal parameters, the numbers of a compression hook are not computed: leave out "
        "--compress, or --numerics",
        graph_.title);
  }
  require_memory(setups);
  for (const StageSetup& setup : setups) {
    stages_.push_back(
        std::make_unique<TrainedStage>(setup, options_.optimizer, options_.computation.overflow, options_.seed, pool_));
  }
  for (Owner& owner : owners_) {
    owner.slot = stages_[owner.stage]->slot_of(static_cast<std::uint32_t>(owner.slot));
  }
  options_.shuffle = options_.shuffle && data_->shuffles();
  const Rank replicas = stages_.front()->replicas();
  if (options_.own_weights) {
    std::vector<std::uint64_t> seeds{options_.seed};
    for (Rank replica = 1; replica < replicas; ++replica) {
      seeds.push_back(counter_bits(options_.seed, random_stream::replicas, replica));
    }
    for (const auto& stage : stages_) stage->store().start_apart(pool_, seeds);
  }
  const Rank readers = cut() ? 1 : replicas;
  for (Rank reader = 0; reader < readers; ++reader) {
    samplers_.emplace_back(data_->size(), graph_.batch() * micro_batches(), reader, readers, options_.seed,
                           options_.shuffle);
  }
}

Trainer::~Trainer() = default;

/// The first stage that has a parameter owns it.
void Trainer::find_owners(const std::vector<ShardedGraph>& stages) {
  std::vector<bool> found(graph_.parameters.size(), false);
  owners_.resize(graph_.parameters.size());
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for (std::uint32_t number = 0; number < stages[stage].graph.parameters.size(); ++number) {
      const std::uint32_t original = stages[stage].graph.parameters[number].original;
      const std::uint32_t parameter = original == models::no_original ? number : original;
      if (found[parameter]) continue;
      found[parameter] = true;
      owners_[parameter] = {stage, number};
    }
  }
  if (std::ranges::find(found, false) != found.end()) internal_error("{}: stages lack parameters", graph_.title);
}

Bytes Trainer::needed_memory(const std::vector<StageSetup>& setups) const {
  Bytes needed = resident_bytes() + reading_workers(setups, pool_.workers()) * data_->read_cost().bytes;
  for (const StageSetup& setup : setups) {
    needed += setup.bytes(options_.optimizer, pool_.workers());
    if (options_.own_weights) needed += setup.communication.replicas * setup.computation.weights_bytes();
  }
  return needed;
}

/// Refuses a shape that does not fit into memory before anything of that size is allocated.
void Trainer::require_memory(const std::vector<StageSetup>& setups) const {
  const Bytes needed = needed_memory(setups);
  if (options_.memory_limit == 0 || needed <= options_.memory_limit) return;
  const models::Dataset::ReadCost read = data_->read_cost();
  const unsigned workers = reading_workers(setups, pool_.workers());
  const std::string decoding =
      read.sample.empty() ? ""
                          : fmt::format(" ({} of it on each worker to decode {})", size_text(read.bytes), read.sample);
  const bool mostly_decoding = 2 * workers * read.bytes > needed;
  bad_input("memory",
            "{} replicas of {} at {} need {}{} on {} workers; the limit is {}. Take {}, or raise --memory-limit",
            setups.front().communication.replicas, graph_.title, to_string(graph_.operators.front().shape()),
            size_text(needed), decoding, workers, size_text(options_.memory_limit),
            mostly_decoding ? "smaller images or fewer workers (--workers)"
                            : "a smaller numeric shape (--numeric-input, --numeric-batch), fewer NPUs or workers");
}

void Trainer::start_up(const Plan& plan) {
  for (const Role& role : plan.roles) {
    for (const PlanTask& task : role.tasks) {
      const auto* work = std::get_if<CollectiveTask>(&task.work);
      if (work == nullptr) continue;
      stages_.at(role.stage)->store().start_together(pool_, *plan.collectives[work->collective].schedules.front());
    }
  }
}

IterationFigures Trainer::step(bool checked) {
  const double scale = options_.loss_scale.scale();
  Progress progress{
      .figures = {.iteration = iteration_, .learning_rate = options_.learning_rate.at(iteration_), .loss_scale = scale},
      .divisor = divisor() * scale,
      .checked = checked};
  if (checked) reduction_check_ = {};
  step_whole_ = false;
  divisor_of_step_ = progress.divisor;
  for (const auto& stage : stages_) stage->begin_step();
  for (const NumericTask& task : tasks_) carry_out(task, progress);
  ++iteration_;
  step_whole_ = true;
  return progress.figures;
}

/// Of the sums of gradients, as far as it is that of all parameters. What a compression hook gives is the mean.
double Trainer::divisor() const {
  const double replicas = stages_.front()->replicas();
  const double again = options_.mean_again ? replicas : 1;
  if (cut()) return again / options_.added_losses;
  const bool summed = stages_.front()->store().compression() == nullptr;
  return (options_.gradients_mean && summed ? replicas : 1) * again;
}

void Trainer::carry_out(const NumericTask& task, Progress& progress) {
  TrainedStage& stage = *stages_[task.role];
  const double repetitions = options_.loss_repeated_mean && !cut() ? stage.replicas() : 1;
  const TrainedStage::Source from = source(static_cast<float>(progress.figures.loss_scale / repetitions));
  switch (task.kind) {
    case NumericTask::Kind::gather:
      for (const std::uint32_t number : task.items) stage.store().gather(pool_, number);
      break;
    case NumericTask::Kind::step:
    case NumericTask::Kind::forward:
    case NumericTask::Kind::backward:
      stage.compute(task, from);
      break;
    case NumericTask::Kind::message:
      stage.send(task, *stages_[task.to], from);
      break;
    case NumericTask::Kind::reduce:
    case NumericTask::Kind::mirror: {
      const CheckedPart part = progress.checked ? options_.checked_part : CheckedPart::none;
      const auto unscale = static_cast<float>(1 / progress.divisor);
      const bool overflow = task.kind == NumericTask::Kind::mirror
                                ? stage.store().mirror(pool_, task.items, unscale, part, reduction_check_)
                                : stage.store().reduce(pool_, task.items, unscale, part, reduction_check_);
      progress.figures.overflow = overflow || progress.figures.overflow;
      if (CompressedReduction* compressed = stage.store().compression(); compressed != nullptr) {
        progress.compression.difference += compressed->last_error().difference;
        progress.compression.mean += compressed->last_error().mean;
        progress.figures.compression_error = progress.compression.relative();
      }
      break;
    }
    case NumericTask::Kind::check:
      measure(progress);
      progress.finite =
          std::ranges::all_of(stages_, [&](const auto& other) { return other->store().gradients_finite(pool_); });
      progress.figures.overflow = progress.figures.overflow || std::isinf(progress.figures.gradient_norm);
      break;
    case NumericTask::Kind::update:
      measure(progress);
      update(task, progress);
      break;
    case NumericTask::Kind::broadcast:
      for (const std::uint32_t number : task.items) stage.store().broadcast(pool_, number);
      break;
  }
  if (task.ends) stage.end(task.micro_batch);
}

/// Of the gradients of all stages, once they are reduced.
void Trainer::measure(Progress& progress) {
  if (progress.measured) return;
  progress.measured = true;
  add_up_outputs(progress.figures);
  for (const auto& stage : stages_) {
    stage->store().finish_gradients(pool_);
    if (options_.mirrors_mean && cut()) stage->take_means();
  }
  const auto unscale = static_cast<float>(1 / progress.divisor);
  for (const auto& stage : stages_) {
    progress.figures.gradient_norm = std::hypot(progress.figures.gradient_norm, stage->store().norm(pool_, unscale));
  }
}

CompressionHook<float>* Trainer::compression() const {
  CompressedReduction* const compressed = stages_.front()->store().compression();
  return compressed == nullptr ? nullptr : &compressed->hook();
}

void Trainer::update(const NumericTask& task, Progress& progress) {
  IterationFigures& figures = progress.figures;
  TrainedStage& stage = *stages_[task.role];
  if (!progress.updates.has_value()) {
    progress.updates = options_.loss_scale.update(figures.overflow || !progress.finite);
    figures.skipped = !*progress.updates;
  }
  if (figures.skipped) return;
  const double clip = options_.clip_norm ? device::clip_factor(figures.gradient_norm, *options_.clip_norm) : 1;
  stage.store().update(pool_, figures.learning_rate, static_cast<float>(clip / progress.divisor));
}

void Trainer::add_up_outputs(IterationFigures& figures) const {
  const Rank replicas = stages_.front()->replicas();
  double correct = 0;
  for (const auto& stage : stages_) {
    for (const device::StepOutput& output : stage->outputs()) {
      figures.loss += output.loss / replicas;
      correct += output.correct;
      figures.overflow = figures.overflow || output.overflow;
    }
  }
  const Rank batches = cut() ? 1 : replicas;
  figures.accuracy = correct / (static_cast<double>(graph_.label_rows()) * batches * micro_batches());
}

void Trainer::read_samples(Rank sampler, std::uint32_t micro_batch, models::Batch& batch) const {
  const std::vector<std::uint64_t> samples = samplers_[sampler].batch_of(iteration_);
  models::fill(batch, *data_, std::span(samples).subspan(std::size_t{micro_batch} * graph_.batch(), graph_.batch()));
}

TrainedStage::Source Trainer::source(float loss_scale) {
  const auto open = [this](std::uint32_t micro_batch) {
    if (cut()) read_samples(0, micro_batch, parts_->whole);
  };
  const auto read = [this](Rank replica, std::uint32_t micro_batch, models::Batch& batch) {
    if (cut()) {
      parts_->take(replica, batch);
    } else {
      read_samples(replica, micro_batch, batch);
    }
  };
  const auto input = [this, loss_scale](Rank replica, std::uint32_t micro_batch) {
    const std::uint64_t reader = cut() ? 0 : replica;
    const std::uint64_t first = (reader * micro_batches() + micro_batch) * graph_.batch();
    return device::StepInput{.loss_scale = loss_scale,
                             .dropout_seed = counter_bits(options_.seed, random_stream::dropout, iteration_),
                             .first_sample = first};
  };
  return {open, read, input};
}

std::vector<float> Trainer::weights(std::uint32_t parameter) {
  const Owner& owner = owners_[parameter];
  return stages_[owner.stage]->read(0, owner.slot);
}

std::vector<GradientSample> Trainer::gradient_samples(std::uint32_t parameters) {
  models::Batch batch;
  read_samples(0, 0, batch);
  // That of a single stage of whole operators; of others, any order does.
  std::vector<std::uint32_t> order(graph_.parameters.size());
  std::iota(order.rbegin(), order.rend(), 0);
  const bool one_stage = stages_.size() == 1 && !cut();
  const device::Computation whole =
      one_stage ? stages_.front()->computation() : device::Computation(graph_, order, options_.computation);
  device::Weights all(whole);
  for (std::size_t slot = 0; slot < whole.parameters().size(); ++slot) {
    whole.to_storage(slot, weights(whole.parameters()[slot].parameter), whole.parameters()[slot].in(all.values()));
  }
  all.prepare(pool_);
  return check_gradients(whole, all, batch, {}, parameters, options_.seed, pool_);
}

bool Trainer::weights_finite() {
  return std::ranges::all_of(stages_, [&](const auto& stage) { return stage->store().weights_finite(pool_); });
}

ReplicaCheck Trainer::replica_check() const {
  ReplicaCheck check;
  for (const auto& stage : stages_) stage->store().compare_replicas(check, step_whole_);
  return check;
}

}  // namespace hcclsim::hccl
