#include "hccl/check/contract.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::array<Collective, 3> known{Collective::allreduce, Collective::reduce_scatter, Collective::allgather};

}  // namespace

Contract::Contract(const TaskProgram& program)
    : program_(program),
      starts_sliced_(program.collective == Collective::allgather),
      ends_sliced_(program.collective == Collective::reduce_scatter) {
  if (std::find(known.begin(), known.end(), program.collective) != known.end()) return;
  bad_input("schedule", "what the collective '{}' has to do is not known", name_of(program.collective));
}

Holding Contract::slice(Rank rank) const {
  const Operation::Block block = program_.block(Buffer::output, rank, rank);
  const Bytes element = size_of(program_.type);
  return {block.offset * element, block.elements * element};
}

Holding Contract::initial(Rank rank) const {
  Holding holding = starts_sliced_ ? slice(rank) : Holding{0, program_.payload()};
  holding.only = rank;
  return holding;
}

std::vector<Holding> Contract::required(Rank rank) const {
  std::vector<Holding> all;
  if (starts_sliced_) {
    for (Rank owner = 0; owner < program_.ranks; ++owner) all.push_back(initial(owner));
  } else {
    all.push_back(ends_sliced_ ? slice(rank) : Holding{0, program_.payload()});
  }
  std::erase_if(all, [](const Holding& holding) { return holding.length == 0; });
  return all;
}

Bytes Contract::least_sent() const {
  // Each of the two halves of an allreduce, and each of the other two collectives, moves (p−1)/p of the payload.
  const Bytes half = program_.payload() - (program_.payload() + program_.ranks - 1) / program_.ranks;
  return starts_sliced_ || ends_sliced_ ? half : 2 * half;
}

Bytes Contract::least_reduced() const {
  return starts_sliced_ ? 0 : program_.payload() - (program_.payload() + program_.ranks - 1) / program_.ranks;
}

}  // namespace hcclsim::hccl
