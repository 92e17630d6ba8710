#pragma once

#include <string>
#include <vector>

#include "study/run/spec.hpp"

/// The options of MindSpore's set_auto_parallel_context: from a file, and each by its own name.
namespace hcclsim::cli {

class Command;
class OptionOrigins;

struct ContextOptions {
  std::string file{};                 ///< empty: none
  std::string compat{};               ///< "mindspore-2.3"; empty: as documented
  std::vector<std::string> values{};  ///< of every option, as it was given; empty: it was not
};

void add_context_options(Command& command, ContextOptions& options);
/// Changes the run as the context says, if there is one. Throws Error(bad_input).
void finish_context_options(const OptionOrigins& origins, const ContextOptions& options, study::RunSpec& spec);

}  // namespace hcclsim::cli
