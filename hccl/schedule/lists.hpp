#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "hccl/schedule/validate.hpp"

namespace hcclsim::hccl {

/// Reports what is wrong with the lists of stage `number`: ranks, queues and windows that are not there (a rank has
/// `queues`), queues that already follow something else, peers, notifies and intervals beyond what there is. The groups
/// of the schedule must be right. Places begin within the stage.
void check_lists(const Schedule& schedule, std::size_t number, std::uint32_t queues,
                 const std::function<void(FieldPlace place, std::string problem)>& report);

}  // namespace hcclsim::hccl
