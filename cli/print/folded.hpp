#pragma once

#include <vector>

#include "base/json.hpp"
#include "hccl/comm/communicator.hpp"
#include "hccl/comm/folded_class.hpp"

/// How results say that ranks stand for others (hccl/runtime/fold/rank_orbits.hpp).
namespace hcclsim::cli {

[[nodiscard]] inline Json folded_json(const std::vector<hccl::FoldedClass>& classes) {
  Json members = Json::array();
  for (const hccl::FoldedClass& one : classes) {
    members.push_back({{"simulated", one.simulated}, {"ranks", hccl::rank_ranges(one.ranks)}});
  }
  return {{"classes", classes.size()}, {"ranks_simulated", classes.size()}, {"members", std::move(members)}};
}

}  // namespace hcclsim::cli
