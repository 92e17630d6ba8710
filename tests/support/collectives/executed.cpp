#include "tests/support/collectives/executed.hpp"

#include "base/error.hpp"
#include "hccl/execute/data_flow.hpp"

namespace hcclsim::test {

using namespace hccl;

std::vector<Values> executed(const Schedule& schedule, std::vector<Values> input) {
  const std::vector<Values> before = input;
  std::vector<Values> output;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (Rank rank = 0; rank < schedule.ranks; ++rank) {
    output.emplace_back(schedule.size(Buffer::output, rank) / sizeof(std::int64_t), -77777);
    if (schedule.in_place) output.back() = input[rank];
    if (!schedule.in_place) from.push_back(reinterpret_cast<const std::byte*>(input[rank].data()));
    to.push_back(reinterpret_cast<std::byte*>(output.back().data()));
  }
  device::WorkerPool workers(1);
  execute(DataFlow(schedule), from, to, device::Overflow::infinity, workers);
  if (input != before) internal_error("an input was changed");
  return output;
}

}  // namespace hcclsim::test
