#pragma once

#include <string>
#include <string_view>

#include "hccl/schedule/schedule.hpp"

/// The tasks of a list (TaskList) as people and scripts write them, one text each:
///
///     write 3 output[0:512] -> scratch[512:1024]      bytes 0 to 511 to rank 3
///     read_reduce 3 scratch[0:512] -> output[0:512]   the source is at the peer
///     write 3 output[0:512,1024:1536]                 two pieces, to the same place
///     copy input[0:512] -> output[0:512]
///     reduce scratch[0:512] -> output[0:512]          by_core false at its end: by the copy engine
///     post 3 notify 1                                 at rank 3
///     wait notify 1
///     local_post notify 2                             between queues of the rank
///     local_wait notify 2
namespace hcclsim::hccl {

[[nodiscard]] std::string text_of_listed(const Task& task);
/// Throws Error(bad_input, "schedule") that quotes the text and says where it is wrong.
[[nodiscard]] Task parse_listed_task(std::string_view text);

}  // namespace hcclsim::hccl
