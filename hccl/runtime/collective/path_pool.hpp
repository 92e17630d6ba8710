#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "hccl/runtime/collective/path_time.hpp"

/// The paths that the queues and posts of a collective carry on. Most of them are the same at a time: a post has that
/// of its queue, a wait takes that of the post. So they are shared, and copied only when one of them goes on.
namespace hcclsim::hccl {

class PathPool {
 public:
  using Id = std::uint32_t;
  static constexpr Id none = std::numeric_limits<Id>::max();

  /// A new path with one holder.
  [[nodiscard]] Id add(const PathTime& path) {
    if (free_.empty()) {
      paths_.push_back({path, 1});
      return static_cast<Id>(paths_.size() - 1);
    }
    const Id id = free_.back();
    free_.pop_back();
    paths_[id] = {path, 1};
    return id;
  }

  /// The path with one holder more.
  [[nodiscard]] Id share(Id id) {
    ++paths_[id].holders;
    return id;
  }

  /// A holder gives the path up; of none, nothing happens.
  void drop(Id id) {
    if (id != none && --paths_[id].holders == 0) free_.push_back(id);
  }

  /// The holder takes the path of another one, given up by that one, in place of its own.
  void replace(Id& own, Id other) {
    drop(own);
    own = other;
  }

  [[nodiscard]] const PathTime& operator[](Id id) const { return paths_[id].path; }

  /// The holder's path, which others do not see any more, to be changed.
  [[nodiscard]] PathTime& own(Id& id) {
    if (paths_[id].holders > 1) {
      --paths_[id].holders;
      const PathTime copy = paths_[id].path;
      id = add(copy);
    }
    return paths_[id].path;
  }

 private:
  struct Path {
    PathTime path;
    std::uint32_t holders = 0;
  };

  std::vector<Path> paths_;
  std::vector<Id> free_;
};

}  // namespace hcclsim::hccl
