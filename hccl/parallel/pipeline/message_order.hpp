#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hccl/comm/communicator.hpp"
#include "hccl/parallel/pipeline/schedule.hpp"
#include "models/program.hpp"

/// The order in which the stages of a pipeline take part in their messages, one after the other: a send and its receive
/// wait for each other, so an order that two stages do not share ends in a deadlock.
///
/// All messages of a step are put into one order, and each stage takes its own in it: by the date at which the cell
/// that reads the message would start if communication took no time (a forward cell takes 1, a backward cell 2, on
/// every stage). A cell has ended before that date if it makes what the message carries, and begins then if it reads
/// it. So cells and messages together have an order in which each comes behind all it waits for, and there is no
/// deadlock, whatever cells and messages take in truth.
///
/// Of messages for the same date, 1f1b takes gradients before activations and earlier micro-batches first: a stage
/// receives the gradient of a micro-batch, sends the last activation, sends the gradient on, receives the next
/// activation. The others take those of even stages first, then those of odd ones: even stages send before they
/// receive, odd ones receive before they send.
namespace hcclsim::hccl {

/// A stage's end of a message.
struct MessageTurn {
  std::uint32_t kernel = 0;  ///< of the stage's program: a send or a receive
  std::uint32_t micro_batch = 0;

  bool operator==(const MessageTurn&) const = default;
};

/// The messages of each stage. Throws Error(bad_input, "pipeline") if a send has no receive or cells wait for each
/// other.
[[nodiscard]] std::vector<std::vector<MessageTurn>> message_order(std::span<const models::Program* const> programs,
                                                                  const PipelineShape& shape, Rank ranks_per_stage);

}  // namespace hcclsim::hccl
