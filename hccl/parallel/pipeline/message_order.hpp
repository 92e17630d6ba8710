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
/// that reads the message would start if communication took no time and cells their own. A cell has ended before that
/// date if it makes what the message carries, and begins then if it reads it. So cells and messages together have an
/// order in which each comes behind all it waits for, and there is no deadlock, whatever cells and messages take in
/// truth. And no message waits for one before it beyond the date at which it is needed: with links that take no time
/// the step is as long as the cells need that wait for nothing but each other. An order by other times than the cells'
/// own would make it longer where what one stage sends to another is needed much later than it is made: with
/// interleaving if the micro-batches are no multiple of the stages, or gpipe's are more than the stages. With 1f1b the
/// order is that of forward cells of 1 and backward cells of 2, as the framework has it, and does the same.
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

/// The messages of each stage; cells whose kernels have no times yet count as 1 and 2. Throws Error(bad_input,
/// "pipeline") if a send has no receive or cells wait for each other.
[[nodiscard]] std::vector<std::vector<MessageTurn>> message_order(std::span<const models::Program* const> programs,
                                                                  const PipelineShape& shape, Rank ranks_per_stage);

}  // namespace hcclsim::hccl
