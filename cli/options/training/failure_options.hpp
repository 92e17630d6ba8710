#pragma once

#include <cstdint>
#include <optional>

#include "cli/options/parse/origins.hpp"
#include "study/spec/run_spec.hpp"

/// Options of `hcclsim run` that have to do with a job that runs for days. All of them are refused without
/// --mtbf, but those of checkpoints, which a step has without failures too.
namespace hcclsim::cli {

/// Their group in help.
inline constexpr const char* failure_group = "A job of days";

/// What was given.
struct FailureOptions {
  std::optional<Seconds> npu_mtbf{};
  std::optional<std::uint64_t> checkpoint_every{};
  std::optional<BytesPerSecond> checkpoint_bandwidth{};
  std::optional<Seconds> restart{};
  std::optional<Seconds> length{};
  std::optional<std::uint32_t> runs{};
};

void add_failure_options(Command& command, FailureOptions& options);

/// Throws Error(bad_input, "option").
void finish_failure_options(const OptionOrigins& origins, const FailureOptions& options, study::RunSpec& spec);

}  // namespace hcclsim::cli
