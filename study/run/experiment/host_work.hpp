#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hccl/training/step_view.hpp"
#include "hccl/training/training.hpp"
#include "sim/cluster.hpp"
#include "study/run/experiment/input_reading.hpp"
#include "study/spec/run_spec.hpp"

/// What hosts do for a step: prepare its batches, issue its kernels, write its weights away.
namespace hcclsim::study {

/// Puts it into the options of a simulation, which name the ranks, stages and iterations. The data workers of a server
/// are shared evenly by its ranks, each of which prepares `reading.samples`; of stages the first one copies samples,
/// the last one labels. Notes say what is assumed.
void add_host_work(const HostSpec& spec, const InputReading& reading, sim::Cluster& cluster, const std::string& soc,
                   hccl::TrainingStep& training, std::vector<std::string>& notes);

/// What hosts did for the last iteration of a rank.
struct HostFigures {
  struct Input {
    double images_per_second = 0;  ///< of the server
    Rank ranks = 0;                ///< of the server, which share them
    std::uint32_t prefetch = 0;
    std::uint64_t samples = 0;  ///< of a batch
    Seconds batch = 0;          ///< to prepare it
    Bytes copied = 0;           ///< to the device
    Seconds copy = 0;           ///< that took
  };
  struct Issuing {
    Seconds launch = 0;     ///< per kernel
    std::size_t calls = 0;  ///< kernels and communication
    Seconds busy = 0;       ///< with all of them
  };
  struct Checkpoints {
    Bytes bytes = 0;  ///< that the rank writes
    Seconds time = 0;
    std::vector<std::uint32_t> behind{};  ///< iterations of the training, from 1 on
  };
  std::optional<Input> input{};  ///< none where the rank reads nothing
  std::optional<Issuing> issuing{};
  std::optional<Checkpoints> checkpoints{};
};

[[nodiscard]] HostFigures host_figures(const hccl::TrainingStep& training, double images_per_second,
                                       const hccl::TimedStep& step, const hccl::StepView& view);

}  // namespace hcclsim::study
