#pragma once

#include <optional>

#include "models/zoo/decoder.hpp"
#include "models/zoo/zoo.hpp"

/// The sizes of language models that make_model() builds, for whoever writes them down for another program.
namespace hcclsim::models {

/// A decoder with what the user has chosen; nothing for a network of another family. Throws as make_model().
[[nodiscard]] std::optional<zoo::Decoder> decoder_of(const ModelOptions& options);
/// Likewise of GPT-2 and GPT-3.
[[nodiscard]] std::optional<zoo::Transformer> gpt_of(const ModelOptions& options);

}  // namespace hcclsim::models
