#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "study/files/foreign/mapping.hpp"
#include "study/files/foreign/shell/shell_script.hpp"

/// Scripts of MindSpeed-LLM that train with FSDP2: `train_fsdp2.py FILE.yaml --section.key value …`, of which the
/// command line counts before the file. The network is one of `hcclsim models list`, by the name of its weights.
namespace hcclsim::study {

/// Whether the last program that a script starts is train_fsdp2.py.
[[nodiscard]] bool starts_fsdp2(const ShellScript& script);

/// `files`: those beside the script. Throws Error(bad_input, "foreign") for a file that is not there or not YAML, a
/// network that is not known, sizes that contradict each other, and keys that change the step and have no option.
[[nodiscard]] ForeignMapping map_fsdp2(const ShellScript& script, const std::string& file,
                                       const std::vector<std::string>& ignored, const ShellFiles& files);

/// A network by a name of its weights, or of a file: "qwen3-8b" of "./Qwen3-8B-Base/".
struct NamedNetwork {
  std::string_view model;               ///< of run
  std::optional<std::uint32_t> layers;  ///< of weights that were cut: "…-layer2", "…_4L"
};
[[nodiscard]] std::optional<NamedNetwork> network_named(std::string_view name);
/// A name of weights by which network_named() finds the network; empty for one that it does not know.
[[nodiscard]] std::string weights_of(std::string_view model);
/// Its YAML alone, of which the ranks are not known.
[[nodiscard]] ForeignMapping map_fsdp2_yaml(const std::string& text, const std::string& file,
                                            const std::vector<std::string>& ignored);

}  // namespace hcclsim::study
