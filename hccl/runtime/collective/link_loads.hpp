#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"

/// What a collective has moved over each link. A message uses a few links of thousands, a collective of a whole cluster
/// most of them: few are kept in a list, many in a table of all links.
namespace hcclsim::hccl {

class LinkLoads {
 public:
  /// A link that is not shared is there for each of `ranks`.
  LinkLoads(const sim::Cluster& cluster, std::size_t ranks) : cluster_(cluster), ranks_(ranks) {}

  void add(sim::LinkId link, double bytes) {
    if (!table_.empty()) {
      table_[link].bytes += bytes;
      return;
    }
    const auto found = std::ranges::lower_bound(few_, link, {}, &Few::link);
    if (found != few_.end() && found->link == link) {
      found->load.bytes += bytes;
    } else {
      few_.insert(found, {link, {bytes, time_per_byte(link)}});
      if (few_.size() > most_in_list) make_table();
    }
  }

  /// How long the link needs for all that it has carried.
  [[nodiscard]] Seconds time(sim::LinkId link) const {
    if (!table_.empty()) return table_[link].bytes * table_[link].time_per_byte;
    const auto found = std::ranges::lower_bound(few_, link, {}, &Few::link);
    return found != few_.end() && found->link == link ? found->load.bytes * found->load.time_per_byte : 0;
  }

  /// Calls visit(link, bytes) for the links in their order.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const Few& one : few_) visit(one.link, one.load.bytes);
    for (sim::LinkId link = 0; link < table_.size(); ++link) visit(link, table_[link].bytes);
  }

 private:
  struct Load {
    double bytes = 0;
    Seconds time_per_byte = 0;
  };
  struct Few {
    sim::LinkId link = 0;
    Load load{};
  };
  static constexpr std::size_t most_in_list = 16;

  [[nodiscard]] Seconds time_per_byte(sim::LinkId link) const {
    const double ranks = cluster_.links()[link].shared ? 1 : static_cast<double>(ranks_);
    return 1 / (cluster_.capacity(link) * ranks);
  }

  void make_table() {
    table_.resize(cluster_.links().size());
    for (sim::LinkId link = 0; link < table_.size(); ++link) table_[link].time_per_byte = time_per_byte(link);
    for (const Few& one : few_) table_[one.link].bytes = one.load.bytes;
    few_.clear();
  }

  const sim::Cluster& cluster_;
  std::size_t ranks_;
  std::vector<Few> few_;  // ascending; or all in
  std::vector<Load> table_;
};

}  // namespace hcclsim::hccl
