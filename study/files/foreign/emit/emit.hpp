#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "study/spec/run_spec.hpp"

/// A run as the launch file of another program, which says the same step: the way back of mapping.hpp. What a program
/// has no words for is left out of the text; step_differences() finds it when the text is read again.
namespace hcclsim::study {

enum class LaunchProgram : std::uint8_t { megatron, mindformers, fsdp2 };

/// "megatron", "mindformers", "mindspeed-fsdp2".
[[nodiscard]] std::string_view name_of(LaunchProgram program);

/// Inverse of name_of; throws Error(bad_input, "option").
[[nodiscard]] LaunchProgram parse_launch_program(std::string_view name);

/// What is written down.
struct EmittedRun {
  const RunSpec& spec;
  Rank npus = 1;
  std::uint32_t of_server = 8;  ///< of the NPUs, those in the first one's server
  BatchSizes sizes{};           ///< of a replica
  std::string comments{};       ///< lines that begin with #
};

/// A script that starts Megatron. `script`: one whose arguments are kept but for those of the plan, with what becomes
/// of these as comments; empty: all arguments are made of the run. Throws Error(bad_input, "foreign") for a network
/// that Megatron's arguments cannot describe, and what reading the script throws.
[[nodiscard]] std::string megatron_script(const EmittedRun& run, const std::string& script,
                                          const std::vector<std::string>& ignored);
/// YAML of MindSpore Transformers. Throws likewise.
[[nodiscard]] std::string mindformers_file(const EmittedRun& run);
/// YAML of MindSpeed-LLM's FSDP2. Throws likewise.
[[nodiscard]] std::string fsdp2_file(const EmittedRun& run);

/// Which gradients are reduced together; nothing where `--split` says it.
[[nodiscard]] std::optional<hccl::FusionRules> fusion_rules_of(const RunSpec& spec);

/// An option of `run` that decides a step, where two runs differ.
struct StepDifference {
  std::string option;  ///< with dashes
  std::string wanted;
  std::string other;
};

/// Those of a run and of what was read back from its launch file.
[[nodiscard]] std::vector<StepDifference> step_differences(const EmittedRun& wanted, const RunSpec& other);

}  // namespace hcclsim::study
