#pragma once

#include <cstdint>
#include <vector>

#include "hccl/check/findings.hpp"
#include "hccl/check/program/task_program.hpp"

/// Level L7 against the topology: which bytes have to cross the borders of groups of ranks (servers, die pairs), and
/// which do.
///
/// For every byte of the payload and every schedule: a group has to send what others need of its ranks' contributions
/// (one byte if they are reduced), and has to receive what its ranks need of the others' contributions.
///
///     collective       out of a group                            into a group
///     allreduce        payload                                   payload
///     reduce           payload, without the root                 payload, with the root
///     broadcast        payload, with the root                    payload, without the root
///     reduce-scatter   blocks of ranks outside                   blocks of its ranks
///     scatter          with the root: blocks of ranks outside    without the root: blocks of its ranks
///     allgather        blocks of its ranks                       blocks of ranks outside
///     gather           without the root: blocks of its ranks     with the root: blocks of ranks outside
///     alltoall, send   blocks from its ranks to others           blocks from others to its ranks
///
/// With more than one group, all groups together send at least the sum of these, and in an allreduce 2(G−1) payloads:
/// before the first of G groups has the whole reduction of a byte, each other group has sent its share; after that,
/// each of them still has to receive something. Bytes divided by the speed of the border give a lower bound of the
/// time.
namespace hcclsim::hccl {

struct GroupBytes {
  Bytes out = 0;
  Bytes in = 0;
};

/// The bytes that have to leave and enter each group; `group` gives the group of each rank, numbered from 0.
[[nodiscard]] std::vector<GroupBytes> least_crossing(const Operation& operation,
                                                     const std::vector<std::uint32_t>& group);
/// The bytes that leave and enter each group in the program.
[[nodiscard]] std::vector<GroupBytes> crossing(const TaskProgram& program, const std::vector<std::uint32_t>& group);

/// The least bytes that have to cross a level, and how long that takes; `crossing` stays 0.
[[nodiscard]] CutDistance least_of(const Operation& operation, const CutLevel& level);

/// Adds the cuts of the options, and the least time, to the result of distances_of.
void add_cuts(const TaskProgram& program, const CheckOptions& options, Distances& distances);

}  // namespace hcclsim::hccl
