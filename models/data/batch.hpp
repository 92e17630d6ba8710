#pragma once

#include <cstdint>
#include <vector>

namespace hcclsim::models {

/// What one replica computes a step on. A network takes `inputs` or `tokens`, whichever its first operator asks for.
struct Batch {
  std::uint32_t samples = 0;
  std::vector<float> inputs;         ///< images in NCHW order, or rows of features
  std::vector<std::int32_t> tokens;  ///< samples × length
  std::vector<std::int32_t> labels;  ///< one per row of the logits; of all samples loss by loss
};

}  // namespace hcclsim::models
