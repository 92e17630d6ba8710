#include "hccl/runtime/fold/link_shift.hpp"

#include <cstddef>

namespace hcclsim::hccl {

LinkShift::LinkShift(const sim::Cluster& cluster, const std::vector<bool>& touched)
    : cluster_(&cluster),
      touched_(&touched),
      next_(cluster.links().size(), none),
      previous_(next_),
      orbit_(next_.size(), 0) {}

void LinkShift::begin_region(Rank ranks) {
  ranks_ = ranks;
  added_.clear();
}

void LinkShift::forget_region() {
  for (const sim::LinkId link : added_) {
    previous_[next_[link]] = none;
    next_[link] = none;
    orbit_[link] = 0;
  }
  added_.clear();
}

bool LinkShift::add(const sim::Route& route, const sim::Route& image) {
  if (route.links.size() != image.links.size() || route.latency != image.latency ||
      route.transport != image.transport || route.write_factor != image.write_factor ||
      route.read_factor != image.read_factor || route.further != nullptr || image.further != nullptr) {
    return false;  // queue pairs go ways of their own, which are not compared
  }
  for (std::size_t i = 0; i < route.links.size(); ++i) {
    if (!add(route.links[i], image.links[i])) return false;
  }
  return true;
}

bool LinkShift::add(sim::LinkId link, sim::LinkId image) {
  if (next_[link] == image) return orbit_[link] == ranks_;
  const auto links = cluster_->links();
  const bool alike = cluster_->capacity(link) == cluster_->capacity(image) &&
                     links[link].shared == links[image].shared && links[link].kind == links[image].kind;
  if (next_[link] != none || previous_[image] != none || !alike) return false;
  // What is touched stays what it is, and so does everything that uses it.
  if ((is_touched(link) || is_touched(image)) && (link != image || ranks_ != 1)) return false;
  next_[link] = image;
  previous_[image] = link;
  orbit_[link] = ranks_;
  added_.push_back(link);
  return true;
}

bool LinkShift::keeps(const sim::Route& route) const {
  return ranks_ == 1 || std::ranges::none_of(route.links, [this](sim::LinkId link) { return is_touched(link); });
}

}  // namespace hcclsim::hccl
