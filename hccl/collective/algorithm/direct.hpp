#pragma once

#include "hccl/collective/algorithm/builder.hpp"

/// Send and receive: messages go from `input` to `output` as they are. Without counts every rank has one for the next
/// rank; with counts element [s][d] goes from s to d, in the place that an alltoall would give it, which is what
/// HCCL's BatchSendRecv does with a list. One pair that has elements is HCCL's Send and Recv. Pairs without elements do
/// not know of each other, and a message to oneself is a copy.
///
/// A rank sends on one queue and receives on another, nearest rank above first on the one and nearest rank below first
/// on the other. Nobody waits for ever: among the messages that are still to come those over the shortest distance have
/// nothing before them on either side.
///
///     steps  of a rank: its messages out, and at the same time its messages in
///     time   of one message of n bytes: alpha + n·beta; of those to the next ranks the same
///
/// alpha: post "you may read", wait, read, post "I have read", wait. HCCL likewise takes a stream for sending and one
/// for receiving in a batch (HCCL's batch send-recv executor).
namespace hcclsim::hccl {

[[nodiscard]] Schedule direct_send_recv(const Operation& operation);

}  // namespace hcclsim::hccl
