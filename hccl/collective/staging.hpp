#pragma once

#include <functional>

#include "base/units.hpp"
#include "hccl/schedule/schedule.hpp"
#include "hccl/settings/launch_mode.hpp"

/// From an algorithm to what a program calls. An algorithm works in place on one buffer with all blocks, the *work
/// memory* (builder.hpp); a program has its own buffers, and HCCL may let other NPUs at them or not:
///
/// *Graph*: the communication of a whole graph is prepared in advance, and peers reach the user's buffers. The work
/// memory is the output where that is large enough on all ranks: in place, and for allreduce, allgather and broadcast
/// out of place, whose input is copied into it first. The other collectives out of place get a buffer `ccl` of the
/// payload's size.
///
/// *Op*: every call stands alone, and peers reach the communicator's own buffer `ccl` only, of HCCL_BUFFSIZE bytes.
/// What a rank contributes is copied in, and its result out, over its HBM. A payload that does not fit goes through in
/// windows: all stages for the first elements of every block, then for the next (Schedule::window). What algorithms
/// need as scratch memory must fit into the communicator's second buffer, of the same size.
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
/// (HCCL's documentation of the CCL buffer and of HCCL_BUFFSIZE, which each communicator takes twice.) Alltoall and
/// send-recv are out of place by nature: their algorithms go from `input` to `output` and need the copy in place, too.
/// A rank alone copies its input to its output.
namespace hcclsim::hccl {

struct Staging {
  LaunchMode launch = LaunchMode::graph;
  Bytes buffer_bytes = Bytes{200} << 20U;  ///< HCCL_BUFFSIZE: of `ccl`, and of scratch memory; op only
};

/// Builds an algorithm for an operation in place; of alltoall and send-recv from `input` to `output`.
using BuildAlgorithm = std::function<Schedule(const Operation&)>;

/// The schedule of `operation` in the form that the user calls. `build` gets an operation with the elements of a
/// window, for which it sizes scratch memory; the closed forms hold for shorter windows, too. Throws
/// Error(bad_input, "operation") if the buffer cannot hold the least window, 128 bytes of every block.
[[nodiscard]] Schedule staged(const Operation& operation, const Staging& staging, const BuildAlgorithm& build);

}  // namespace hcclsim::hccl
