#pragma once

#include "base/units.hpp"
#include "hccl/parallel/plan/plan.hpp"
#include "tests/support/training/sharded_training.hpp"

/// Bytes that the collectives of a step send, counted twice: task by task in the Schedules of its Plan, and by hand
/// from what its operators are cut into.
namespace hcclsim::test {

/// Of all ranks, transfers of all collectives; messages between stages not.
[[nodiscard]] Bytes wire_bytes(const hccl::Plan& plan);

/// By closed forms, with the bytes S that a device has, n devices in a group, and all devices: all_reduce 2 · (n − 1) ·
/// S per group; all_gather, reduce_scatter and all_to_all (n − 1) · S, of the larger side. From strategies:
///  - an operator that leaves addends: one all_reduce or reduce_scatter of its result, and its dual;
///  - a tensor that readers want otherwise: what layouts say, once for all that want the same, and its dual;
///  - batch norm over a group: two numbers of each channel, in both passes; a loss with cut classes: three of each row;
///  - windows over cut images: the pixels that lie across borders, in both passes;
///  - ring attention: keys and values n − 1 times in either pass, their gradients n times;
///  - experts: four all_to_alls of what is dispatched;
///  - a parameter: its gradient over its copies, with every micro-batch where sums are kept in parts, and what shares
///    of it need to be gathered.
/// Of trainings in which nothing is computed again. The two numbers differ where ZeRO 3 gathers parameters for every
/// pass that reads them, which of the backward passes some do, by what operators stand where; and where images are cut
/// along both axes over devices of which those of a row do not follow each other.
struct ExpectedBytes {
  Bytes least = 0;
  Bytes most = 0;
};
[[nodiscard]] ExpectedBytes expected_bytes(const ShardedTraining& training);

}  // namespace hcclsim::test
