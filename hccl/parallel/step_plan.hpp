#pragma once

#include <span>

#include "hccl/parallel/plan/plan.hpp"
#include "hccl/parallel/stage_program.hpp"
#include "hccl/parallel/step_spec.hpp"

/// The Plan of a training step. With D ranks per stage, rank r is device r mod D of stage r / D. The devices of a stage
/// do the same, each on its part of the batch and of the operators. There is a role per stage, or one for each program
/// that its devices have and each list of reductions in which they take part. Data parallelism has one stage.
///
/// *Operators.* Communication operators of the program run in a stream of their own: each waits for the kernel that
/// makes its input, and what reads its output waits for it.
///
/// *Reductions.* Gradients are reduced once per step, when the last micro-batch has contributed; where sums of
/// gradients are kept in parts, once per micro-batch. With `hcom_parallel` a reduction starts when its last gradient is
/// ready and the one before it has ended, else all of them follow the backward pass in series. Gradients of parameters
/// that replicas share are reduced and scattered over the ranks that share them, and then, once per step, summed over
/// the ranks that have the same part. What travels together is of one family; a gradient to which one rank alone
/// contributes is not reduced.
///
/// *Weights* are gathered at the beginning of the step in the order in which the forward pass uses them, which may
/// begin meanwhile; with ZeRO 3 for every use, one collective ahead.
///
/// *Updates* follow the backward pass in the compute stream, or, with StepSpec::has_update_stream(), run in a stream of
/// their own, where each waits for its own reduction only. Dynamic loss scaling and clipping put the program's checks
/// between reduction and update, in the stream of the updates: a check of a gradient waits for the task that its update
/// would wait for. When all checks are done, the overflow flag is reduced in the communication stream, and the factor
/// of the clip is computed from the norms; a rank that lacks some gradients needs the norms of the others. No update
/// starts before both. A Plan does not know whether a step overflows: a step whose update is skipped is timed like any
/// other.
namespace hcclsim::hccl {

/// Before the passes over a Plan (compression, reuse, input, checkpoints).
[[nodiscard]] Plan make_plan(std::span<const StageProgram> stages, const StepSpec& step,
                             const ScheduleMaker& make_schedule);

}  // namespace hcclsim::hccl
