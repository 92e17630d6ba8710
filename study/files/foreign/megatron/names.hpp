#pragma once

#include <string>
#include <string_view>

/// Names of the arguments of Megatron-LM, and of MindSpeed and MindSpeed-LLM, which extend it; without dashes. Megatron
/// takes no shortened names.
namespace hcclsim::study {

/// Whether it says nothing of a step's time: logs, checkpoints, data, seeds, schedules of rates.
[[nodiscard]] bool has_no_effect_on_steps(std::string_view name);
/// Whether any of them has this name.
[[nodiscard]] bool is_megatron_argument(std::string_view name);
/// " (did you mean --X?)" for a name that is close to a known one, else "".
[[nodiscard]] std::string nearest_megatron_argument(std::string_view name);

}  // namespace hcclsim::study
