#pragma once

#include "hccl/collective/algorithm/builder.hpp"

/// Send and receive: messages go from `input` to `output` unchanged. Without counts every rank has one message for the
/// next rank. With counts, message [s][d] goes from s to d, at the place that an alltoall would give it, as HCCL's
/// BatchSendRecv does with a list. A single pair with elements is HCCL's Send and Recv. Pairs without elements do not
/// synchronise, and a message to the rank itself is a copy.
///
/// A rank sends on one queue, to the nearest rank above first, and receives on another, from the nearest rank below
/// first. This cannot deadlock: of all outstanding messages, those over the shortest distance are next on both sides.
///
///     steps  of a rank: its messages out, and at the same time its messages in
///     time   of one message of n bytes: alpha + n·beta; of those to the next ranks the same
///
/// alpha: post "you may read", wait, read, post "I have read", wait. HCCL likewise takes a stream for sending and one
/// for receiving in a batch (HCCL's batch send-recv executor).
namespace hcclsim::hccl {

[[nodiscard]] Schedule direct_send_recv(const Operation& operation);

}  // namespace hcclsim::hccl
