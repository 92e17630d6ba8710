#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "hccl/ps/embedding.hpp"
#include "study/jobs/ps/spec.hpp"

/// The options of `hcclsim run` that have to do with parameter servers (--mode ps). All of them are refused without it,
/// and with it those of what such a job does not have.
namespace hcclsim::cli {

class Command;
class OptionOrigins;

inline constexpr const char* ps_group = "Parameter servers (--mode ps)";

struct PsOptions {
  bool enabled = false;  ///< --mode ps
  study::PsSpec spec{};  ///< complete after finish_ps_options()

  // As they were given
  std::string context{};
  std::string environment{};
  std::string params{};
  std::string recovery = "off";
  std::string node_delays{};
  std::vector<std::string> requests{};
  std::vector<std::string> failures{};
};

void add_ps_options(Command& command, PsOptions& options);
/// Throws Error(bad_input, "option") if such training is asked for.
void refuse_parameter_servers(const PsOptions& options, std::string_view why);
/// Checks the options against each other and against those of a run without servers, and completes the spec. `npus` is
/// the number of workers. Throws Error(bad_input).
void finish_ps_options(const OptionOrigins& origins, PsOptions& options, std::optional<Rank>& npus);

}  // namespace hcclsim::cli
