#include "sim/trace.hpp"

#include <algorithm>

namespace hcclsim::sim {

void Trace::select(const std::vector<Rank>& ranks, Rank world_size, bool tasks) {
  selected_.assign(world_size, false);
  for (const Rank rank : ranks) selected_.at(rank) = true;
  tasks_ = tasks;
}

std::uint32_t Trace::intern(const std::string& name) {
  const auto place = std::lower_bound(index_.begin(), index_.end(), name,
                                      [](const auto& entry, const std::string& key) { return entry.first < key; });
  if (place != index_.end() && place->first == name) return place->second;
  const auto number = static_cast<std::uint32_t>(names_.size());
  index_.insert(place, {name, number});
  names_.push_back(name);
  return number;
}

}  // namespace hcclsim::sim
