#pragma once

#include <cstdint>
#include <vector>

#include "hccl/parallel/plan/plan.hpp"

/// A Plan as work with real numbers, in one order for all roles in which everything is there when it is read. There is
/// no clock, so what streams do beside each other comes one behind the other: what a rank computes of a micro-batch in
/// one direction is one task, at the place of its first kernels, with all collectives that its program has there, for
/// which its ranks stop together (stage_collectives.hpp); messages follow the pass that sends them, and a pass
/// the messages that it reads; weights are gathered before the pass that reads them; the updates of all roles come
/// last. What follows each other and can be done together is one task.
namespace hcclsim::hccl {

struct NumericTask {
  enum class Kind : std::uint8_t {
    gather,     ///< weights; items: numbers in Role::gathers
    step,       ///< forward and backward of a micro-batch
    forward,    ///< of a chunk of a micro-batch
    backward,   ///< likewise
    message,    ///< from one role to another
    reduce,     ///< gradients; items: segments
    mirror,     ///< parts of gradients, over the replicas that keep the same ones; items: segments
    check,      ///< are the reduced gradients finite? of all roles, no items
    update,     ///< items: gradients, production order; of dealt parameters those of the first replica
    broadcast,  ///< weights that one replica has updated; items: numbers in ReplicaCommunication::broadcasts
  };
  Kind kind = Kind::step;
  std::uint32_t role = 0;  ///< its number in computing_roles()
  std::uint32_t chunk = 0;
  std::uint32_t micro_batch = 0;
  bool ends = false;  ///< no later pass or message of this role is of this micro-batch
  std::vector<std::uint32_t> items{};
  // Of a message: the operators of both ends in their graphs, and the role that receives it.
  models::OperatorId sender = 0;
  models::OperatorId receiver = 0;
  std::uint32_t to = 0;
  bool returns = false;  ///< it is a gradient

  [[nodiscard]] bool computes() const { return kind == Kind::step || kind == Kind::forward || kind == Kind::backward; }
};

/// Of one step.
[[nodiscard]] std::vector<NumericTask> numeric_tasks(const Plan& plan);

}  // namespace hcclsim::hccl
