#include "hccl/check/contract.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

struct Row {
  std::string_view collective;
  bool starts_sliced;
  bool ends_sliced;
};

constexpr std::array<Row, 3> table{{
    {"allreduce", false, false},
    {"reduce-scatter", false, true},
    {"allgather", true, false},
}};

}  // namespace

Contract::Contract(const TaskProgram& program) : program_(program) {
  const auto* const row = std::find_if(table.begin(), table.end(),
                                       [&](const Row& entry) { return entry.collective == program.collective; });
  if (row == table.end()) {
    std::string known;
    for (const Row& entry : table) known += fmt::format("{}{}", known.empty() ? "" : ", ", entry.collective);
    bad_input("schedule", "what the collective '{}' has to do is not known; known are {}", program.collective, known);
  }
  starts_sliced_ = row->starts_sliced;
  ends_sliced_ = row->ends_sliced;
}

Holding Contract::slice(Rank rank) const {
  const Bytes even = (program_.payload + program_.ranks - 1) / program_.ranks;
  const Bytes length = (even + program_.alignment - 1) / program_.alignment * program_.alignment;
  const Bytes begin = std::min(rank * length, program_.payload);
  return {begin, std::min((rank + 1) * length, program_.payload) - begin};
}

Holding Contract::initial(Rank rank) const {
  Holding holding = starts_sliced_ ? slice(rank) : Holding{0, program_.payload};
  holding.only = rank;
  return holding;
}

std::vector<Holding> Contract::required(Rank rank) const {
  std::vector<Holding> all;
  if (starts_sliced_) {
    for (Rank owner = 0; owner < program_.ranks; ++owner) all.push_back(initial(owner));
  } else {
    all.push_back(ends_sliced_ ? slice(rank) : Holding{0, program_.payload});
  }
  std::erase_if(all, [](const Holding& holding) { return holding.length == 0; });
  return all;
}

Bytes Contract::least_sent() const {
  // Each of the two halves of an allreduce, and each of the other two collectives, moves (p−1)/p of the payload.
  const Bytes half = program_.payload - (program_.payload + program_.ranks - 1) / program_.ranks;
  return starts_sliced_ || ends_sliced_ ? half : 2 * half;
}

Bytes Contract::least_reduced() const {
  return starts_sliced_ ? 0 : program_.payload - (program_.payload + program_.ranks - 1) / program_.ranks;
}

}  // namespace hcclsim::hccl
