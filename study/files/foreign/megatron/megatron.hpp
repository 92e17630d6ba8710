#pragma once

#include <string>
#include <vector>

#include "study/files/foreign/mapping.hpp"
#include "study/files/foreign/shell/shell_script.hpp"

namespace hcclsim::study {

/// What a script that starts Megatron-LM, MindSpeed or MindSpeed-LLM asks for: the arguments of its last command that
/// trains, and the ranks of its launcher. Networks are BERT by the name of the program, GPT, and decoders of every kind
/// that models/zoo/decoder.hpp knows. What is not given has Megatron's default. Scripts of FSDP2 go to fsdp2.hpp. The
/// script is not executed. Throws Error(bad_input, "foreign").
[[nodiscard]] ForeignMapping map_megatron(const std::string& file, const std::vector<std::string>& ignored);
/// The same of a text; `files`: those beside it.
[[nodiscard]] ForeignMapping map_megatron_text(const std::string& text, const std::string& file,
                                               const std::vector<std::string>& ignored, const ShellFiles& files = {});

}  // namespace hcclsim::study
