#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "device/hbm.hpp"
#include "hccl/parallel/pipeline/schedule.hpp"
#include "hccl/parallel/plan/live_memory.hpp"
#include "hccl/training/training.hpp"
#include "study/spec/parallel_spec.hpp"

/// What a run tells of stages and replicas, and of the work that the NPUs have done.
namespace hcclsim::study {

struct Experiment;

/// Communication during which a rank computes nothing, by kind. Kinds exclude each other: of several at a time that one
/// counts which the next kernel waits for (hccl/training/waits.hpp), and if it waits for none the first in this order.
struct ExposedTimes {
  Seconds messages = 0;   ///< between stages, from when both ends are there
  Seconds gradients = 0;  ///< reductions, waiting for other replicas included
  Seconds weights = 0;    ///< gathers
  Seconds checks = 0;     ///< overflow flag, global norm; of several stages from when the last one is there
  Seconds results = 0;    ///< of a network that is not trained; likewise
  Seconds operators = 0;  ///< of the network itself

  [[nodiscard]] Seconds sum() const { return messages + gradients + weights + checks + results + operators; }
};

/// The rank of a stage that has the place of the printed rank in it, in the last iteration: step = compute + bubble +
/// host + wait + exposed.sum().
struct StageFigures {
  std::uint32_t stage = 0;
  Rank first_rank = 0;
  Rank ranks = 0;
  std::vector<std::uint32_t> layers;  ///< of each chunk; empty: the network is not cut
  Seconds step = 0;                   ///< from the end of the iteration before, of the last rank of the pipeline
  Seconds compute = 0;
  // Idle without communication:
  /// Its host has yet to bring the batch, to issue what comes next, to work on a table that it keeps, or to write a
  /// checkpoint.
  Seconds host = 0;
  Seconds bubble = 0;  ///< other than that, up to what would be if neither links nor hosts took time
  Seconds wait = 0;    ///< beyond both: others are late
  ExposedTimes exposed;
  Seconds ideal_bubble = 0;      ///< idle if neither links nor hosts took time
  std::uint32_t live_cells = 0;  ///< most micro-batches, times chunks, that have run forward and not backward
  device::HbmAccount hbm;
};

/// Communication of one kind by a rank in a step.
struct Traffic {
  std::uint32_t stage = 0;
  std::string kind;  ///< "allreduce", "send", …; "operator allreduce" of operators that are cut
  Rank group_size = 0;
  std::uint64_t count = 0;
  Bytes bytes = 0;  ///< that the rank sends if nothing is sent twice: a ring's
};

/// Work of a transformer.
struct Throughput {
  double samples_per_second = 0;  ///< of all replicas
  double tokens_per_second = 0;   ///< the same; 0: its samples are no tokens
  double mfu = 0;                 ///< operations of the network / what the cubes could do
  double hfu = 0;                 ///< the same with those that are done again
  Flops peak = 0;                 ///< of one NPU, per second
  DataType peak_type = DataType::fp16;
};

struct ParallelResult {
  /// Data parallelism of whole batches and parameters alone: in text its segments are told, not its stage.
  bool plain = false;
  hccl::PipelineShape shape;
  Rank data = 1;                 ///< replicas
  OperatorParallel operators{};  ///< of each of them
  Rank shard = 1;                ///< ranks that share parameters
  std::string sharing;           ///< "off", "on", "zero1", …
  std::uint32_t parameters = 0;  ///< of all stages
  std::uint32_t whole = 0;       ///< of them, those that are not shared
  std::string fusion;            ///< "size 64 MB", …; empty: gradients are split into segments
  std::uint32_t micro_batch = 0;
  std::vector<StageFigures> stages;
  std::vector<Traffic> traffic;
  Seconds ideal = 0;                           ///< the step if links took no time (hccl::ideal_step)
  std::vector<hccl::LiveAtPeak> peak_tensors;  ///< of the rank that is printed

  /// The stage that computes most, and so leaves least to gain elsewhere; the first of several.
  [[nodiscard]] const StageFigures& most_loaded() const;
  /// The stage whose NPUs need most HBM; the first of several.
  [[nodiscard]] const StageFigures& fullest() const;
};

/// The rank of a stage with the place of the printed rank.
[[nodiscard]] Rank printed_rank(const hccl::TrainingStep& training, std::uint32_t stage);

/// What the network is called, without the stage that a program is of.
[[nodiscard]] std::string network_title(const models::Program& program);

/// Of a step whose trace has the printed_rank() of every stage.
[[nodiscard]] ParallelResult parallel_result(const Experiment& experiment, const hccl::TimedStep& step);

/// Of a transformer.
[[nodiscard]] std::optional<Throughput> throughput(const Experiment& experiment, Seconds step);

}  // namespace hcclsim::study
