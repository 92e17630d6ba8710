#include "hccl/runtime/private_links.hpp"

#include <algorithm>
#include <limits>

#include "hccl/schedule/walk.hpp"

namespace hcclsim::hccl {

PrivateLinks::PrivateLinks(sim::Cluster& cluster) : cluster_(cluster), uses_(cluster.links().size()) {}

void PrivateLinks::add(const Communicator& group, const Seats& seats, const Schedule& schedule, std::uint32_t stream) {
  for (std::size_t place = 0; place < seats.members.size(); ++place) {
    const Rank rank = seats.members[place];
    const std::uint64_t own = std::uint64_t{seats.npus[place]} << 32 | stream;
    for_each_way(schedule, rank, [&](std::uint32_t stage, const QueueWalk& walk) {
      const Rank here = group.ranks[rank];
      const Rank peer = group.ranks[walk.peer(schedule, rank)];
      const bool reads = hccl::reads(walk.task()->kind);
      const Use use{.stream = own, .stage = next_stage_ + stage, .queue = walk.place().queue};
      constexpr Bytes all = std::numeric_limits<Bytes>::max();  // all queue pairs
      visit_ways(cluster_.route(reads ? peer : here, reads ? here : peer), all, [&](const sim::Route& way, double) {
        for (const sim::LinkId link : way.links) add_way(link, use);
      });
    });
  }
  next_stage_ += schedule.stage_count();
}

void PrivateLinks::add(const sim::Route& route, Rank npu, std::uint32_t stream) {
  const Use use{.stream = std::uint64_t{npu} << 32 | stream, .stage = next_stage_++};
  for (const sim::LinkId link : route.links) add_way(link, use);
}

void PrivateLinks::add_way(sim::LinkId link, const Use& use) {
  Use& known = uses_[link];
  const bool other_stream = known.stream != nobody && known.stream != use.stream;
  const bool other_queue = known.stream != nobody && known.stage == use.stage && known.queue != use.queue;
  const bool shared = cluster_.links()[link].shared && (known.shared || other_stream || other_queue);
  known = use;
  known.shared = shared;
}

void PrivateLinks::meet(PrivateLinks& other) {
  for (std::size_t link = 0; link < uses_.size(); ++link) {
    if (!loads(link) || !other.loads(link)) continue;
    uses_[link].shared = true;
    other.uses_[link].shared = true;
  }
}

BytesPerSecond PrivateLinks::rate(const sim::Route& route) const {
  if (route.further != nullptr) return 0;  // its queue pairs may share links with each other
  BytesPerSecond rate = std::numeric_limits<double>::infinity();
  for (const sim::LinkId link : route.links) {
    if (uses_[link].shared) return 0;
    // Both ways of a folded transfer may go over one link, or a route over a link twice: its bytes pass it as often.
    const auto passes = cluster_.links()[link].shared ? std::ranges::count(route.links, link) : 1;
    rate = std::min(rate, cluster_.capacity(link) / static_cast<double>(passes));
  }
  return rate;
}

std::vector<std::string> PrivateLinks::idle(const sim::FaultPlan& faults) const {
  std::vector<std::string> idle;
  for (const sim::Fault& fault : faults.faults()) {
    const auto is_used = [this](sim::LinkId link) { return uses_[link].stream != nobody; };
    if (fault.of_links() && std::ranges::none_of(faults.links_of(fault), is_used)) idle.push_back(fault.text);
  }
  return idle;
}

}  // namespace hcclsim::hccl
