#include "study/communication/measure/redistribution.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "hccl/collective/selection/selection.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/runtime/simulate.hpp"
#include "hccl/runtime/simulate_each.hpp"
#include "study/platform/on_platform.hpp"

namespace hcclsim::study {
namespace {

constexpr std::array<std::string_view, 5> obeyed_by_redistribution{"HCCL_ALGO", "HCCL_BUFFSIZE", "HCCL_DETERMINISTIC",
                                                                   "HCCL_EXEC_TIMEOUT", "HCCL_INTER_HCCS_DISABLE"};

hccl::CollectiveRequest request_of(const hccl::RedistributionStep& step, const RedistributionSpec& spec,
                                   const hccl::HcclConfig& config) {
  hccl::CollectiveRequest request{.launch = spec.launch, .config = config};
  const bool gathers = step.kind == hccl::RedistributionKind::all_gather;
  hccl::Operation& operation = request.operation;
  operation.collective = gathers ? hccl::Collective::allgather : hccl::Collective::alltoall;
  operation.ranks = step.ranks();
  operation.elements = step.before.elements() / (gathers ? 1 : step.ranks());
  operation.type = spec.type;
  operation.in_place = false;
  return request;
}

/// The calls of all groups, each on a stream of its own.
std::vector<hccl::CollectiveCall> calls_of(const hccl::RedistributionStep& step, const RedistributionSpec& spec,
                                           LoadedPlatform& platform) {
  const hccl::CollectiveRequest request = request_of(step, spec, platform.config);
  std::vector<std::pair<hccl::Topology, std::shared_ptr<const hccl::Schedule>>> made;
  std::vector<hccl::CollectiveCall> calls;
  for (std::vector<Rank>& ranks : step.groups()) {
    platform.note_group(ranks);
    const hccl::Topology topology = hccl::topology_of({.name = "group", .ranks = ranks}, platform.cluster);
    auto same = std::ranges::find(made, topology, &decltype(made)::value_type::first);
    if (same == made.end()) {
      platform.note_algorithm(spec.platform.hccl_settings, request, topology);
      made.emplace_back(topology, hccl::make_collective(request, topology, platform.soc));
      same = std::prev(made.end());
    }
    calls.push_back({.name = std::string(name_of(step.kind)),
                     .schedule = same->second,
                     .ranks = std::move(ranks),
                     .stream = static_cast<std::uint32_t>(calls.size())});
  }
  return calls;
}

using TimesOnPlatform = std::pair<PlatformFacts, std::vector<CollectiveOfStep>>;

TimesOnPlatform simulate_steps(const std::vector<hccl::RedistributionStep>& steps, const RedistributionSpec& spec,
                               LoadedPlatform& platform) {
  platform.require_ranks("the device matrix", spec.from.devices.devices());
  std::vector<std::vector<hccl::CollectiveCall>> points;
  for (const hccl::RedistributionStep& step : steps) {
    if (communicates(step.kind)) points.push_back(calls_of(step, spec, platform));
  }
  std::vector<CollectiveOfStep> collectives;
  if (!points.empty()) {
    const hccl::SimulateOptions options{
        .network = spec.network, .launch = spec.launch, .exec_timeout = platform.config.exec_timeout, .fold = true};
    for (const auto& result : simulate_each(platform.cluster, platform.soc, platform.costs, options, points)) {
      CollectiveOfStep collective{.algorithm = points[collectives.size()].front().schedule->algorithm};
      for (const hccl::CollectiveTime& call : result.calls) {
        collective.time = std::max(collective.time, call.per_iteration);
      }
      collectives.push_back(std::move(collective));
    }
  }
  return {platform.facts(), std::move(collectives)};
}

}  // namespace

RedistributionTimes time_redistribution(const RedistributionSpec& spec) {
  RedistributionTimes times{.on = {}, .steps = redistribute(spec.from, spec.to, spec.rules), .collectives = {}};
  TimesOnPlatform found =
      on_platform(spec.platform, obeyed_by_redistribution, spec.network,
                  [&](LoadedPlatform& platform) { return simulate_steps(times.steps, spec, platform); });
  times.on = std::move(found.first);
  auto next = found.second.begin();
  for (const hccl::RedistributionStep& step : times.steps) {
    std::optional<CollectiveOfStep>& collective = times.collectives.emplace_back();
    if (!communicates(step.kind)) continue;
    times.total += next->time;
    collective = std::move(*next++);
  }
  return times;
}

}  // namespace hcclsim::study
