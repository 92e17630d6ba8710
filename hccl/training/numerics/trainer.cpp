#include "hccl/training/numerics/trainer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>

#include "base/counter_random.hpp"
#include "base/error.hpp"
#include "device/numerics/loops/gradient_checks.hpp"

namespace hcclsim::hccl {
namespace {

/// First of the streams of random numbers from which the ranks draw their seeds of dropout: beyond those of weights
/// (parameters) and of synthetic data (samples).
constexpr std::uint64_t dropout_streams = std::uint64_t{5} << 48U;

/// Workers that have a replica to compute.
unsigned busy_workers(Rank npus, const device::WorkerPool& pool) { return std::min<unsigned>(pool.workers(), npus); }

/// Parameters by their gradients.
std::vector<std::uint32_t> production_order(const Plan& plan) {
  std::vector<std::uint32_t> order;
  for (const auto& gradient : plan.roles.front().program->gradients) order.push_back(gradient.parameter);
  return order;
}

/// The schedules of the segments.
std::vector<std::shared_ptr<const Schedule>> reductions(const Plan& plan) {
  std::vector<std::shared_ptr<const Schedule>> schedules(plan.roles.front().segments.size());
  for (const PlannedCollective& collective : plan.collectives) {
    if (collective.segment != Purpose::none) schedules[collective.segment] = collective.schedules.front();
  }
  return schedules;
}

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

/// Refuses a shape that does not fit into memory before anything of that size is allocated.
const device::Computation& checked(const device::Computation& computation, const models::Dataset& data,
                                   const TrainerOptions& options, Rank npus, DataType wire, unsigned workers) {
  const models::Dataset::ReadCost read = data.read_cost();
  const Bytes needed = resident_bytes() + Replicas::bytes(computation, options.optimizer, npus) +
                       GradientExchange::wire_bytes(wire, computation.elements(), npus) +
                       workers * (computation.workspace_bytes() + read.bytes);
  if (options.memory_limit == 0 || needed <= options.memory_limit) return computation;
  const models::Graph& graph = computation.graph();
  const std::string decoding =
      read.sample.empty() ? ""
                          : fmt::format(" ({} of it on each worker to decode {})", size_text(read.bytes), read.sample);
  const bool mostly_decoding = 2 * workers * read.bytes > needed;
  bad_input("memory",
            "{} replicas of {} at {} need {}{} on {} workers; the limit is {}. Take {}, or raise --memory-limit", npus,
            graph.title, to_string(graph.operators.front().shape()), size_text(needed), decoding, workers,
            size_text(options.memory_limit),
            mostly_decoding ? "smaller images or fewer workers (--workers)"
                            : "a smaller numeric shape (--numeric-input, --numeric-batch), fewer NPUs or workers");
}

}  // namespace

/// A worker's place: a workspace and the batch of the replica that it computes.
struct Trainer::Seat {
  explicit Seat(const device::Computation& computation) : workspace(computation) {}
  device::Workspace workspace;
  models::Batch batch;
};

Trainer::Trainer(models::Graph graph, const Plan& plan, TrainerOptions options)
    : options_(std::move(options)),
      npus_(plan.ranks()),
      wire_(plan.roles.front().program->gradient_type()),
      tasks_(numeric_tasks(plan)),
      pool_(options_.workers),
      computation_(std::move(graph), production_order(plan), options_.computation),
      data_(models::open_dataset(options_.data, computation_.graph(), options_.seed)),
      replicas_(checked(computation_, *data_, options_, npus_, wire_, busy_workers(npus_, pool_)), options_.optimizer,
                npus_),
      exchange_(computation_.parameters(), plan.roles.front().segments, reductions(plan),
                options_.computation.overflow),
      outputs_(npus_) {
  options_.shuffle = options_.shuffle && data_->shuffles();
  for (Rank rank = 0; rank < npus_; ++rank) {
    samplers_.emplace_back(data_->size(), computation_.graph().batch(), rank, npus_, options_.seed, options_.shuffle);
  }
  for (unsigned worker = 0; worker < busy_workers(npus_, pool_); ++worker) {
    seats_.push_back(std::make_unique<Seat>(computation_));
  }
  device::initialise(computation_, options_.seed, pool_, replicas_.variants().front().weights);
}

Trainer::~Trainer() = default;

IterationFigures Trainer::step(bool checked) {
  bool finite = true;
  const double scale = options_.loss_scale.scale();
  const double divisor = (options_.gradients_mean ? npus_ : 1) * scale;
  const auto unscale = static_cast<float>(1 / divisor);
  IterationFigures figures{
      .iteration = iteration_, .learning_rate = options_.learning_rate.at(iteration_), .loss_scale = scale};
  if (checked) reduction_check_ = {};
  step_whole_ = false;
  for (const NumericTask& task : tasks_) {
    switch (task.kind) {
      case NumericTask::Kind::compute:
        compute_gradients(figures);
        break;
      case NumericTask::Kind::reduce:
        figures.overflow = reduce(task.items, unscale, checked) || figures.overflow;
        figures.gradient_norm = device::norm(pool_, replicas_.gradients_of(0), unscale);
        break;
      case NumericTask::Kind::check:
        finite = gradients_finite();
        figures.overflow = figures.overflow || std::isinf(figures.gradient_norm);
        break;
      case NumericTask::Kind::update: {
        if (task.items.size() != computation_.parameters().size()) internal_error("an update of some parameters only");
        figures.skipped = !options_.loss_scale.update(figures.overflow || !finite);
        if (figures.skipped) break;
        const double clip = options_.clip_norm ? device::clip_factor(figures.gradient_norm, *options_.clip_norm) : 1;
        update(figures.learning_rate, static_cast<float>(clip / divisor));
        break;
      }
    }
  }
  ++iteration_;
  step_whole_ = true;
  return figures;
}

bool Trainer::reduce(const std::vector<std::uint32_t>& segments, float unscale, bool checked) {
  const GradientExchange::Outcome outcome =
      exchange_.run(pool_, segments, replicas_.gradients(), unscale,
                    checked ? options_.checked_part : CheckedPart::none, reduction_check_);
  if (!outcome.identical) replicas_.split(pool_);
  return outcome.overflow;
}

std::vector<GradientSample> Trainer::gradient_samples(std::uint32_t parameters) {
  models::Batch batch;
  models::fill(batch, *data_, samplers_.front().batch_of(iteration_));
  device::Weights weights(replicas_.weights_of(0));
  return check_gradients(computation_, weights, batch, {}, parameters, options_.seed, pool_);
}

void Trainer::compute_gradients(IterationFigures& figures) {
  const auto loss_scale = static_cast<float>(figures.loss_scale);
  std::atomic<Rank> next = 0;
  pool_.for_each(seats_.size(), [&](std::size_t number, unsigned) {
    Seat& seat = *seats_[number];
    for (Rank rank = next++; rank < npus_; rank = next++) {
      models::fill(seat.batch, *data_, samplers_[rank].batch_of(iteration_));
      outputs_[rank] = seat.workspace.step(replicas_.weights_of(rank), seat.batch, step_input(rank, loss_scale),
                                           replicas_.gradients_of(rank));
    }
  });
  std::uint64_t correct = 0;
  for (const device::StepOutput& output : outputs_) {
    figures.loss += output.loss / npus_;
    correct += output.correct;
    figures.overflow = figures.overflow || output.overflow;
  }
  const models::Graph& graph = computation_.graph();
  const auto rows = static_cast<double>(graph.input_of(graph.operators.back()).batch());  // of the logits
  figures.accuracy = static_cast<double>(correct) / (rows * npus_);
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

bool Trainer::weights_finite() {
  return std::all_of(replicas_.variants().begin(), replicas_.variants().end(),
                     [&](const Variant& variant) { return device::all_finite(pool_, variant.weights.values()); });
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
  for (Rank rank = 1; rank < npus_ && step_whole_; ++rank)
    compare(replicas_.gradients_of(0), replicas_.gradients_of(rank));
  return check;
}

}  // namespace hcclsim::hccl
