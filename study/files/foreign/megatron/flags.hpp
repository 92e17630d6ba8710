#pragma once

#include <span>
#include <string>
#include <string_view>

/// Arguments of Megatron-LM, and of MindSpeed and MindSpeed-LLM, which extend it, as one table; without dashes. The
/// programs take no shortened names.
namespace hcclsim::study {

/// What becomes of an argument.
enum class MegatronFlagKind {
  mapped,     ///< options of run, by code; one that this code did not ask for says nothing, for the reason
  no_effect,  ///< on the time and memory of a step
  left_out,   ///< accepted: the reason says in what the simulated step differs, and to which side
  refused     ///< it changes the step, and no option stands for it
};

struct MegatronFlag {
  static constexpr int any = -1;

  std::string_view name;  ///< "model.*": all that begin so
  MegatronFlagKind kind;
  int values;              ///< how many words follow it; 0: it is a switch
  std::string_view needs;  ///< arguments without which it says nothing, one of "a|b" at least; empty: none
  std::string_view off;    ///< values that switch it off, "0,none"
  std::string_view reason;
};

/// nullptr for a name that is not known.
[[nodiscard]] const MegatronFlag* find_megatron_flag(std::string_view name);
/// " (did you mean --X?)" for a name that is close to a known one, else "".
[[nodiscard]] std::string nearest_megatron_argument(std::string_view name);
/// The name in use for an older one that programs still take; else the name.
[[nodiscard]] std::string_view current_megatron_name(std::string_view name);

/// Arguments of MindSpeed whose absence says something: what it says is as `reason` has it.
[[nodiscard]] std::span<const MegatronFlag> megatron_flags_missed();

// Parts of the table.
[[nodiscard]] std::span<const MegatronFlag> megatron_flags_of_bookkeeping();
[[nodiscard]] std::span<const MegatronFlag> megatron_flags_of_network();
[[nodiscard]] std::span<const MegatronFlag> megatron_flags_of_experts();
[[nodiscard]] std::span<const MegatronFlag> megatron_flags_of_spreading();
[[nodiscard]] std::span<const MegatronFlag> megatron_flags_of_kernels();
[[nodiscard]] std::span<const MegatronFlag> megatron_flags_of_tuning();

}  // namespace hcclsim::study
