#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hccl/check/contract.hpp"
#include "hccl/check/findings.hpp"
#include "hccl/check/program/task_program.hpp"

namespace hcclsim::hccl {

/// Levels L4 and L5, for a program that completes. One run is done with symbols instead of numbers: every byte holds a
/// tree of contributions. Without races, all runs give the same result.
///
/// L4: every byte of the result holds what the collective asks for (contract.hpp), and no task reads bytes that were
/// never written or reduces bytes from different places of the payload. Kinds of findings: "undefined", "offset",
/// "contribution"; of a barrier, "barrier".
///
/// L5: the shape of the trees. Kinds of findings: "ranks-differ", "order-changed". Empty if L4 has findings.
[[nodiscard]] std::optional<ReductionOrder> check_meaning(const TaskProgram& program, const CheckOptions& options,
                                                          Findings& meaning, Findings& order);

/// Level L4 of a barrier, which moves no bytes, for a program that completes: no rank ends before every rank has begun.
/// So the beginning of every rank must happen before the end of every other rank; whether it does is the same in every
/// run.
void check_barrier(const TaskProgram& program, Findings& findings);

/// What bytes hold in place of `holding`, for messages. wrong_multiplicities: "hold the contribution of rank 3 not at
/// all, …", from the number of contributions of every rank. The other one: "hold bytes 0+64 of the reduction, not
/// 64+64", for bytes that come from places `shift` further.
[[nodiscard]] std::string wrong_multiplicities(const std::vector<std::uint64_t>& counts, const Holding& holding);
[[nodiscard]] std::string wrong_place(Bytes begin, Bytes length, std::int64_t shift, const Holding& holding);

}  // namespace hcclsim::hccl
