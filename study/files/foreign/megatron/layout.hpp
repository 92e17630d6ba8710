#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hcclsim::study {

/// Layers of each part of a pipeline as Megatron's --pipeline-model-parallel-layout has them: E the table of tokens, t
/// a layer, m a further token, L the loss; | ends a part, x*N and (…)*N repeat, commas say nothing. Parts are those of
/// all stages, again and again. Nothing if the text is no layout.
[[nodiscard]] std::optional<std::vector<std::uint64_t>> layers_of_layout(std::string_view text);

}  // namespace hcclsim::study
