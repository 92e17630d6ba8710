#include "study/platform/platform.hpp"
#include "study/platform/shipped_platforms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "hccl/collective/selection/algo_notes.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/comm/groups.hpp"
#include "hccl/comm/placement.hpp"
#include "hccl/comm/rank_table.hpp"
#include "hccl/runtime/collective/expansion.hpp"

namespace hcclsim::study {
namespace {

constexpr std::string_view inter_hccs_disable = "HCCL_INTER_HCCS_DISABLE";

/// Names RANK_TABLE_FILE in the message of an Error that `work` throws on account of its file.
template <typename Work>
void naming_origin(const RankTableChoice& choice, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    throw Error(error.code(), error.kind(),
                (choice.of_environment ? "RANK_TABLE_FILE: " : "") + std::string(error.what()));
  }
}

std::string placement_note(const RankTableChoice& choice, const hccl::RankTable& table) {
  return fmt::format("{}ranks placed as in {}, {} on {} server{}", choice.of_environment ? "RANK_TABLE_FILE: " : "",
                     table.file, table.ranks(), table.servers.size(), table.servers.size() == 1 ? "" : "s");
}

/// Renumbers the NPUs so that the listed ones come first.
void place_on(const std::vector<Rank>& npus, sim::Cluster& cluster) {
  std::vector<bool> listed(cluster.size(), false);
  for (const Rank npu : npus) {
    if (npu >= cluster.size()) {
      bad_input("option", "--npus-list {}: {} has no NPU {}; accepted: 0 to {}", hccl::rank_ranges(npus),
                cluster.path(), npu, cluster.size() - 1);
    }
    if (listed[npu]) bad_input("option", "--npus-list {}: NPU {} is there twice", hccl::rank_ranges(npus), npu);
    listed[npu] = true;
  }
  cluster.renumber(npus);
}

/// Of `obeyed`, those that have an effect here: queue pairs where they go ways of their own.
std::vector<std::string_view> with_effect(std::span<const std::string_view> obeyed, device::Generation generation,
                                          const sim::Routing& routing) {
  std::vector<std::string_view> modelled(obeyed.begin(), obeyed.end());
  if (generation != device::Generation::a3) std::erase(modelled, inter_hccs_disable);
  if (routing.kind != sim::RoutingKind::ecmp || generation == device::Generation::a1) {
    std::erase_if(modelled, [](std::string_view variable) { return std::ranges::count(queue_pairs, variable) > 0; });
  }
  return modelled;
}

}  // namespace

LoadedPlatform::LoadedPlatform(const RankTableChoice& choice, std::span<const hccl::HcclSetting> settings,
                               std::span<const std::string_view> obeyed, sim::Cluster& on)
    : PlatformFacts{.platform = platform_name(on.path()), .rank_table = choice.file}, cluster(on) {
  for (const sim::PlatformEdit& edit : cluster.edits()) {
    notes.push_back(fmt::format("platform edited: {}={}", edit.target, edit.value));
  }
  if (cluster.routing().kind != sim::RoutingKind::file) {
    notes.push_back(fmt::format("routing of the fabric: {}", text_of(cluster.routing())));
  }
  if (!choice.npus_list.empty()) {
    place_on(choice.npus_list, cluster);
    placed = static_cast<Rank>(choice.npus_list.size());
  }
  std::optional<hccl::RankTable> table;
  if (!choice.not_used_beside.empty()) {
    notes.push_back(
        fmt::format("RANK_TABLE_FILE is set but not used: {} says which NPUs take part", choice.not_used_beside));
  }
  if (!rank_table.empty()) {
    naming_origin(choice, [&] {
      table = hccl::read_rank_table(rank_table);
      place_ranks(*table, cluster);
    });
    placed = table->ranks();
    table_group = table->group;
    for (const std::string& note : table->notes) notes.push_back(fmt::format("{}: {}", table->file, note));
    notes.push_back(placement_note(choice, *table));
  }
  npus = placed.value_or(cluster.size());
  soc = device::resolve_soc(cluster, 0, soc_notes);
  npu = soc.name;
  costs = device::read_task_costs(cluster, notes);
  config = read_hccl_config(settings, soc.generation, notes);
  if (config.op_expansion != hccl::OpExpansion::aiv) costs = costs_in(config.op_expansion, std::move(costs));
  const std::vector<std::string_view> modelled = with_effect(obeyed, soc.generation, cluster.routing());
  unmodelled = hccl::unmodelled(settings, modelled);
  if (std::ranges::count(modelled, queue_pairs.front()) > 0) cluster.use_queue_pairs(config.queue_pairs);
  const bool roce = config.inter_hccs_disabled && soc.generation == device::Generation::a3 && cluster.servers() > 1;
  if (roce) cluster.use_roce_between_servers();
  if (!table.has_value()) return;
  naming_origin(choice, [&] {
    if (roce) require_roce_addresses(*table);
    require_joined_as_in(*table, cluster);
  });
}

Rank LoadedPlatform::participating(Rank asked_for) const {
  if (asked_for > cluster.size()) {
    bad_input("option", "--ranks {}: {} has {} NPUs", asked_for, cluster.path(), cluster.size());
  }
  return placed.value_or(asked_for == 0 ? cluster.size() : asked_for);
}

void LoadedPlatform::note_algorithm(std::span<const hccl::HcclSetting> settings, const hccl::CollectiveRequest& request,
                                    const hccl::Topology& topology) {
  for (std::string& note : algo_notes(settings, request, topology, soc.generation)) {
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
  }
}

void LoadedPlatform::note_group(std::span<const Rank> ranks) {
  const auto refused = hccl::refused_server(ranks, cluster, soc.generation);
  if (!refused.has_value()) return;
  std::string note = fmt::format("HCCL does not accept the {} NPUs of server {} on {}: {}; simulated all the same",
                                 refused->npus, refused->server, soc.name, hccl::group_rule_910a);
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
}

void LoadedPlatform::require_ranks(const std::string& what, Rank ranks) const {
  if (placed.has_value() && ranks > *placed) {
    bad_input("schedule", "{} is for {} ranks, the rank table {} has {}", what, ranks, rank_table, *placed);
  }
  if (ranks > cluster.size()) {
    bad_input("schedule", "{} is for {} ranks, {} has {} NPUs", what, ranks, cluster.path(), cluster.size());
  }
}

void LoadedPlatform::require_npus(const std::string& what, const std::vector<Rank>& npus) const {
  for (const Rank npu : npus) {
    const Rank there = placed.value_or(cluster.size());
    if (npu >= there) bad_input("schedule", "{}: there is no NPU {}; accepted: 0 to {}", what, npu, there - 1);
  }
}

}  // namespace hcclsim::study
