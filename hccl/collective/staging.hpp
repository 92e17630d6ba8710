#pragma once

#include <functional>

#include "base/units.hpp"
#include "hccl/schedule/schedule.hpp"
#include "hccl/settings/launch_mode.hpp"

/// From an algorithm to what a program calls. An algorithm works in place on one buffer with all blocks, the *work
/// memory* (algorithm/builder.hpp). A program has its own buffers, and it depends on the launch mode whether other NPUs
/// may access them:
///
/// *Graph*: the communication of a whole graph is prepared in advance, and peers access the user's buffers. The work
/// memory is the output if that is large enough on all ranks: in place, and also out of place for allreduce, allgather
/// and broadcast, whose input is copied into the output first. Other collectives out of place get a buffer `ccl` of the
/// payload's size.
///
/// *Op*: every call is independent, and peers access only the communicator's own buffer `ccl`, of HCCL_BUFFSIZE bytes.
/// A rank's contribution is copied into it, and its result out of it, over its HBM. A payload that does not fit is
/// processed in windows: all stages for the first elements of every block, then for the next (Schedule::window). The
/// scratch memory of an algorithm must fit into the communicator's second buffer, which has the same size.
///
///     collective      copied in                        copied out
///     allreduce       payload                          payload
///     reduce-scatter  all blocks                       own block
///     allgather       own block                        all blocks
///     broadcast       payload, at the root             payload; in place not at the root
///     reduce          payload                          payload, at the root
///     scatter         all blocks, at the root          own block; in place not at the root
///     gather          own block                        all blocks, at the root
///     alltoall        all blocks                       nothing: peers' blocks are read into the output
///     send-recv       all blocks                       nothing
///
/// (HCCL's documentation of the CCL buffer and of HCCL_BUFFSIZE, which each communicator takes twice.) The algorithms
/// of alltoall and send-recv work out of place, from `input` to `output`; so they need the copy even if the call is in
/// place. A single rank copies its input to its output.
namespace hcclsim::hccl {

struct Staging {
  LaunchMode launch = LaunchMode::graph;
  Bytes buffer_bytes = Bytes{200} << 20U;  ///< HCCL_BUFFSIZE: of `ccl`, and of scratch memory; op only
};

/// Builds an algorithm's schedule for an operation in place; for alltoall and send-recv, from `input` to `output`.
using BuildAlgorithm = std::function<Schedule(const Operation&)>;

/// The schedule of `operation` in the form that the user calls. `build` gets an operation with the elements of one
/// window and sizes scratch memory for it; the closed forms also hold for shorter windows. Throws Error(bad_input,
/// "operation") if the buffer cannot hold the smallest window, 128 bytes of every block.
[[nodiscard]] Schedule staged(const Operation& operation, const Staging& staging, const BuildAlgorithm& build);

}  // namespace hcclsim::hccl
