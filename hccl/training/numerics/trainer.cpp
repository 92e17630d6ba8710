#include "hccl/training/numerics/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/counter_random.hpp"
#include "base/error.hpp"
#include "device/numerics/loops/gradient_checks.hpp"

namespace hcclsim::hccl {
namespace {

/// First of the streams of random numbers from which the ranks draw their seeds of dropout: beyond those of weights
/// (parameters) and of synthetic data (samples).
constexpr std::uint64_t dropout_streams = std::uint64_t{5} << 48U;

/// Floating-point operations per second of one worker, for estimates in messages: ResNet50 runs at 52e9 (64x64, batch
/// 2) to 100e9 (224x224) on one core with AVX-512 or AVX2 of about 3 GHz.
constexpr double worker_speed = 50e9;

/// Workers that have a replica to compute.
unsigned busy_workers(const TrainerOptions& options, const device::WorkerPool& pool) {
  return std::min<unsigned>(pool.workers(), options.npus);
}

/// Bytes for a message, in the largest unit of which there is one.
std::string size_text(Bytes bytes) {
  const auto amount = static_cast<double>(bytes);
  if (amount >= giga) return fmt::format("{:.1f} GB", amount / giga);
  if (amount >= 1e6) return fmt::format("{:.1f} MB", amount / 1e6);
  return fmt::format("{} bytes", bytes);
}

/// Refuses a shape that does not fit into memory before anything of that size is allocated.
const device::Program& checked(const device::Program& program, const TrainerOptions& options, unsigned workers) {
  const Bytes needed = Replicas::bytes(program, options.optimizer, options.npus) +
                       GradientExchange::wire_bytes(options.schedules.front()->type, program.elements(), options.npus) +
                       workers * program.workspace_bytes();
  if (options.memory_limit == 0 || needed <= options.memory_limit) return program;
  const Seconds time = models::step_flops(program.graph()) * options.npus / (worker_speed * workers);
  bad_input("memory",
            "{} replicas of {} at {} need {}, and about {:.2g} s per iteration on {} workers; the limit is {}. Take a "
            "smaller numeric shape (--numeric-input, --numeric-batch), fewer NPUs or workers, or raise --memory-limit",
            options.npus, program.graph().title, to_string(program.graph().operators.front().output), size_text(needed),
            time, workers, size_text(options.memory_limit));
}

}  // namespace

/// A worker's place: a workspace and the batch of the replica that it computes.
struct Trainer::Seat {
  explicit Seat(const device::Program& program) : workspace(program) {}
  device::Workspace workspace;
  models::Batch batch;
};

Trainer::Trainer(models::Graph graph, std::span<const std::uint32_t> production_order, TrainerOptions options)
    : options_(std::move(options)),
      pool_(options_.workers),
      program_(std::move(graph), production_order, options_.program),
      data_(models::open_dataset(options_.data, program_.graph(), options_.seed)),
      replicas_(checked(program_, options_, busy_workers(options_, pool_)), options_.optimizer, options_.npus),
      exchange_(program_.parameters(), options_.segments, options_.schedules, options_.program.overflow),
      outputs_(options_.npus) {
  options_.shuffle = options_.shuffle && data_->shuffles();
  for (Rank rank = 0; rank < options_.npus; ++rank) {
    samplers_.emplace_back(data_->size(), program_.graph().batch(), rank, options_.npus, options_.seed,
                           options_.shuffle);
  }
  for (unsigned worker = 0; worker < busy_workers(options_, pool_); ++worker) {
    seats_.push_back(std::make_unique<Seat>(program_));
  }
  device::initialise(program_, options_.seed, pool_, replicas_.variants().front().weights);
}

Trainer::~Trainer() = default;

IterationFigures Trainer::step(bool checked) {
  const double scale = options_.loss_scale.scale();
  IterationFigures figures{
      .iteration = iteration_, .learning_rate = options_.learning_rate.at(iteration_), .loss_scale = scale};
  compute_gradients(static_cast<float>(scale));

  std::uint64_t correct = 0;
  bool flagged = false;
  for (const device::StepOutput& output : outputs_) {
    figures.loss += output.loss / options_.npus;
    correct += output.correct;
    flagged = flagged || output.overflow;
  }
  const models::Graph& graph = program_.graph();
  const auto rows = static_cast<double>(graph.input_of(graph.operators.back()).batch);  // of the logits
  figures.accuracy = static_cast<double>(correct) / (rows * options_.npus);

  const double divisor = (options_.gradients_mean ? options_.npus : 1) * scale;
  const auto unscale = static_cast<float>(1 / divisor);
  const GradientExchange::Outcome outcome =
      exchange_.run(pool_, replicas_.gradients(), unscale, checked ? &reduction_check_ : nullptr);
  if (!outcome.identical) replicas_.split(pool_);

  figures.gradient_norm = device::norm(pool_, replicas_.gradients_of(0), unscale);
  figures.overflow = flagged || outcome.overflow || (options_.loss_scale.checks_overflow() && !gradients_finite());
  figures.skipped = !options_.loss_scale.update(figures.overflow);
  if (!figures.skipped) {
    const double clip = options_.clip_norm ? device::clip_factor(figures.gradient_norm, *options_.clip_norm) : 1;
    update(figures.learning_rate, static_cast<float>(clip / divisor));
  }
  ++iteration_;
  return figures;
}

std::vector<GradientSample> Trainer::gradient_samples(std::uint32_t parameters) {
  models::Batch batch;
  models::fill(batch, *data_, samplers_.front().batch_of(iteration_));
  device::Weights weights(replicas_.weights_of(0));
  return check_gradients(program_, weights, batch, {}, parameters, options_.seed, pool_);
}

void Trainer::compute_gradients(float loss_scale) {
  std::atomic<Rank> next = 0;
  pool_.for_each(seats_.size(), [&](std::size_t number, unsigned) {
    Seat& seat = *seats_[number];
    for (Rank rank = next++; rank < options_.npus; rank = next++) {
      models::fill(seat.batch, *data_, samplers_[rank].batch_of(iteration_));
      outputs_[rank] = seat.workspace.step(replicas_.weights_of(rank), seat.batch, step_input(rank, loss_scale),
                                           replicas_.gradients_of(rank));
    }
  });
}

device::StepInput Trainer::step_input(Rank rank, float loss_scale) const {
  return {.loss_scale = loss_scale, .dropout_seed = counter_bits(options_.seed, dropout_streams + rank, iteration_)};
}

/// Whether the optimizer may see the reduced gradients; looked at only where that would have a consequence.
bool Trainer::gradients_finite() {
  return std::all_of(replicas_.variants().begin(), replicas_.variants().end(), [&](const Variant& variant) {
    return device::all_finite(pool_, replicas_.gradients_of(variant.members.front()));
  });
}

void Trainer::update(double learning_rate, float scale) {
  for (Variant& variant : replicas_.variants()) {
    variant.optimizer.step(pool_, variant.weights.values(), replicas_.gradients_of(variant.members.front()), scale,
                           learning_rate);
    variant.weights.prepare(pool_);
  }
}

ReplicaCheck Trainer::replica_check() const {
  ReplicaCheck check;
  const auto compare = [&](std::span<const float> one, std::span<const float> other) {
    if (std::memcmp(one.data(), other.data(), one.size_bytes()) == 0) return;
    for (std::size_t i = 0; i < one.size(); ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(one[i]) ^ std::bit_cast<std::uint32_t>(other[i]);
      if (bits == 0) continue;
      check.differing_bits += static_cast<unsigned>(std::popcount(bits));
      check.largest_difference =
          std::max(check.largest_difference, std::abs(static_cast<double>(one[i]) - static_cast<double>(other[i])));
    }
  };
  const Variant& first = replicas_.variants().front();
  for (const Variant& variant : replicas_.variants()) {
    if (&variant != &first) compare(first.weights.values(), variant.weights.values());
  }
  for (Rank rank = 1; rank < options_.npus; ++rank) compare(replicas_.gradients_of(0), replicas_.gradients_of(rank));
  return check;
}

}  // namespace hcclsim::hccl
