#pragma once

#include <cstdint>
#include <span>

/// The loss at the end of every network: softmax cross-entropy of a row of logits against its label, the mean over the
/// rows. With label smoothing ε the target is 1 − ε + ε / classes for the label and ε / classes for every other class.
namespace hcclsim::device {

struct LossOfRows {
  double loss = 0;            ///< mean over the rows, summed in double precision in the order of the rows
  std::uint32_t correct = 0;  ///< rows whose largest logit (the first of equal ones) is the label's
};

/// `logits` has one row per label, and all rows have the same number of classes. Writes the gradient of loss ·
/// loss_scale by the logits to `slopes` unless it is empty. Throws Error(bad_input) of kind "labels" for a label that
/// is not a class.
LossOfRows cross_entropy(std::span<const float> logits, std::span<const std::int32_t> labels, float smoothing,
                         float loss_scale, std::span<float> slopes);

}  // namespace hcclsim::device
