#pragma once

#include <string_view>

#include "models/zoo/decoder.hpp"
#include "models/zoo/zoo.hpp"

namespace hcclsim::models::zoo {

/// The sizes of a paper with what the user has chosen in their place. `network`: its name, for messages. Throws
/// Error(bad_input) of kind "model" for sizes that cannot be.
[[nodiscard]] Transformer chosen_sizes(std::string_view network, const ModelOptions& options, Transformer published);
[[nodiscard]] Decoder chosen_sizes(std::string_view network, const ModelOptions& options, Decoder published);

}  // namespace hcclsim::models::zoo
