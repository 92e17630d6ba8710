#pragma once

#include <string>
#include <vector>

#include "study/files/foreign/mapping.hpp"

namespace hcclsim::study {

/// What a script that starts Megatron-LM (or MindSpeed) asks for: the arguments behind the `*.py` of its only command
/// that has them; devices from nproc_per_node · nnodes of its launcher. Networks: GPT (layer norm, GELU, learned
/// positions, tied logits), BERT by the name of the program, and LLaMA and Mixtral (RMS norm, SwiGLU, rotary
/// positions). What is not given has Megatron's default. The script is not executed. Throws Error(bad_input,
/// "foreign").
[[nodiscard]] ForeignMapping map_megatron(const std::string& file, const std::vector<std::string>& ignored);
/// The same of a text.
[[nodiscard]] ForeignMapping map_megatron_text(const std::string& text, const std::string& file,
                                               const std::vector<std::string>& ignored);

}  // namespace hcclsim::study
