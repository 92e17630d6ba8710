#include "study/run/experiment/balanced_stages.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "hccl/parallel/pipeline/stage_graphs.hpp"
#include "hccl/parallel/plan/plan_walk.hpp"
#include "hccl/parallel/step_plan.hpp"
#include "study/run/experiment/stages.hpp"

namespace hcclsim::study {
namespace {

/// Layer of each operator: what is before the first belongs to it, what is behind the last to the last.
std::vector<std::uint32_t> layers_of_operators(const models::Graph& network) {
  std::vector<std::uint32_t> layers;
  bool begun = false;
  for (const models::Operator& op : network.operators) {
    begun = begun || op.layer != models::no_layer;
    layers.push_back(op.layer != models::no_layer ? op.layer : begun ? network.layers - 1 : 0);
  }
  return layers;
}

/// Bytes that a cut before each layer sends forward, once to each later part at most.
std::vector<Bytes> bytes_of_cuts(const models::Graph& network, const std::vector<std::uint32_t>& layers,
                                 Bytes bytes_of_number) {
  std::vector<std::vector<std::uint32_t>> last_reader(network.operators.size());
  for (models::OperatorId id = 0; id < network.operators.size(); ++id) {
    last_reader[id].resize(network.operators[id].outputs.size(), 0);
    for (const models::Value input : network.operators[id].inputs) {
      std::uint32_t& last = last_reader[input.op][input.output];
      last = std::max(last, layers[id]);
    }
  }
  std::vector<Bytes> bytes(network.layers, 0);
  for (models::OperatorId id = 0; id < network.operators.size(); ++id) {
    if (network.operators[id].kind == models::OperatorKind::input) continue;
    for (std::size_t output = 0; output < last_reader[id].size(); ++output) {
      const Bytes own = network.operators[id].outputs[output].shape.elements() * bytes_of_number;
      for (std::uint32_t layer = layers[id] + 1; layer <= last_reader[id][output]; ++layer) bytes[layer] += own;
    }
  }
  return bytes;
}

/// Tries cuts of a network.
class Balancer {
 public:
  Balancer(const hccl::ShardedGraph& network, const ParallelSpec& spec, const hccl::PipelineShape& shape,
           const device::Soc& soc, const device::ProgramOptions& how, LinkTimes& links)
      : sharded_(network),
        network_(network.graph),
        spec_(spec),
        step_{.framework = hccl::Framework::mindspore,
              .npus = shape.stages * network.devices,
              .shape = shape,
              .hcom_parallel = true},
        soc_(soc),
        how_(how),
        links_(links) {
    how_.sharding = {};
  }

  std::vector<std::uint32_t> best() {
    std::vector<std::uint32_t> best;
    Seconds least = std::numeric_limits<Seconds>::infinity();
    for (std::vector<std::uint32_t>& cut : candidates()) {
      const Seconds step = step_of(cut);
      if (step >= least) continue;
      least = step;
      best = std::move(cut);
    }
    return best;
  }

 private:
  [[nodiscard]] std::uint32_t parts() const { return step_.shape.stages * step_.shape.chunks; }

  /// The even cut first, if there is one; then those whose slowest part is as fast as can be, where so much of the time
  /// of messages counts as the part's own: much of it passes while the stage computes.
  std::vector<std::vector<std::uint32_t>> candidates() {
    std::vector<std::vector<std::uint32_t>> cuts;
    const auto add = [&](std::vector<std::uint32_t> cut) {
      if (std::ranges::find(cuts, cut) == cuts.end()) cuts.push_back(std::move(cut));
    };
    if (network_.layers % parts() == 0) {
      add(hccl::even_parts(network_.layers, step_.shape.stages, step_.shape.chunks));
    }
    const std::vector<std::uint32_t> layers = layers_of_operators(network_);
    const std::vector<double> times = layer_times(layers);
    const std::vector<Bytes> bytes = bytes_of_cuts(network_, layers, size_of(how_.precision.compute));
    for (const double share : {0.0, 0.25, 0.5, 1.0, 2.0}) {
      add(hccl::balanced_parts(times, parts(), [&](std::uint32_t part, std::size_t layer) {
        const std::uint32_t stages = step_.shape.stages;
        const std::uint32_t from = (part - 1) % stages;
        const std::uint32_t to = part % stages;
        Seconds time = links_.message(from, to, bytes[layer]);
        if (!step_.shape.forward_only) time += links_.message(to, from, bytes[layer]);
        return share * time;
      }));
    }
    return cuts;
  }

  /// Time of each layer, with what is before the first and behind the last.
  [[nodiscard]] std::vector<double> layer_times(const std::vector<std::uint32_t>& layers) const {
    std::vector<std::string> ignored;
    const models::Program program = make_program(network_, soc_, how_, ignored);
    std::vector<double> times(network_.layers, 0);
    for (const models::Kernel& kernel : program.micro_batch()) {
      if (kernel.op != models::no_operator) times[layers[kernel.op]] += kernel.duration;
    }
    return times;
  }

  Seconds step_of(const std::vector<std::uint32_t>& cut) {
    std::vector<hccl::StageProgram> programs;
    for (const hccl::ShardedGraph& stage : cut_into_stages(sharded_, spec_, step_.shape, cut)) {
      std::vector<std::string> ignored;
      programs.push_back(
          hccl::fuse_communication(make_program(stage.graph, soc_, how_, ignored), {}, false, stage.mirrors));
      programs.back().families = stage.families;
      programs.back().cut = !stage.families.empty();
    }
    const auto unscheduled = [](const hccl::Communicator& /*group*/, const hccl::Operation& operation) {
      auto schedule = std::make_shared<hccl::Schedule>();
      static_cast<hccl::Operation&>(*schedule) = operation;
      return std::shared_ptr<const hccl::Schedule>(std::move(schedule));
    };
    const Rank devices = sharded_.devices;
    const hccl::Plan plan = hccl::make_plan(programs, step_, unscheduled);
    return first_step(plan,
                      [&](const hccl::PlanTask& task, Rank rank) {
                        const std::uint32_t stage = rank / devices;
                        if (const auto* send = std::get_if<hccl::SendTask>(&task.work)) {
                          const auto peer = static_cast<Rank>(rank + send->offset);
                          return links_.message(stage, peer / devices, plan.messages[send->message].bytes);
                        }
                        const auto& call = std::get<hccl::CollectiveTask>(task.work);
                        const hccl::PlannedCollective& collective = plan.collectives[call.collective];
                        const std::vector<hccl::Communicator>& groups = plan.families[collective.family].groups;
                        const double passes = collective.operation.collective == hccl::Collective::allreduce ? 2 : 1;
                        return passes * links_.ring(groups, collective.operation.payload());
                      })
        .end;
  }

  const hccl::ShardedGraph& sharded_;
  const models::Graph& network_;
  const ParallelSpec& spec_;
  hccl::StepSpec step_;  // but for what only exact times depend on
  const device::Soc& soc_;
  device::ProgramOptions how_;
  LinkTimes& links_;
};

}  // namespace

std::vector<std::uint32_t> balanced_layers(const hccl::ShardedGraph& network, const ParallelSpec& spec,
                                           const hccl::PipelineShape& shape, const device::Soc& soc,
                                           const device::ProgramOptions& how, LinkTimes& links) {
  return Balancer(network, spec, shape, soc, how, links).best();
}

}  // namespace hcclsim::study
