#pragma once

#include <cstdint>
#include <span>

/// Losses at the end of networks, each the mean over rows. Softmax cross-entropy is of a row of logits against its
/// label. With label smoothing ε the target is 1 − ε + ε / classes for the label and ε / classes for every other class.
/// Sigmoid cross-entropy is of one logit z per row against a label y of 0 or 1: log(1 + e^z) − y·z; smoothed, y is
/// 1 − ε/2 or ε/2.
namespace hcclsim::device {

struct LossOfRows {
  double loss = 0;  ///< mean over the rows, summed in double precision in the order of the rows
  /// Rows whose largest logit (the first of equal ones) is the label's, or whose logit is above 0 just if the label
  /// is 1.
  std::uint32_t correct = 0;
};

/// `logits` has one row per label, and all rows have the same number of classes. Writes the gradient of loss ·
/// loss_scale by the logits to `slopes` unless it is empty. Throws Error(bad_input) of kind "labels" for a label that
/// is not a class.
LossOfRows cross_entropy(std::span<const float> logits, std::span<const std::int32_t> labels, float smoothing,
                         float loss_scale, std::span<float> slopes);

/// Softmax cross-entropy of which a rank has some of the classes of every row, one of several equal parts. It goes in
/// three steps; between them what the ranks have found is put together.
struct ClassPart {
  std::size_t number = 0;
  std::size_t parts = 1;
};
/// First the greatest logit of every row, of which the greatest over the ranks goes on.
void row_maxima(std::span<const float> logits, std::size_t rows, std::span<float> maxima);
/// Then for every row the sum of the exponentials of the logits less `maxima`, and behind all of these for every row
/// the logits less `maxima` times their targets, added up; the sums over the ranks go on. Throws as cross_entropy.
void row_sums(std::span<const float> logits, ClassPart part, std::span<const std::int32_t> labels, float smoothing,
              std::span<const float> maxima, std::span<float> sums);
/// Last the loss, which all ranks get, and the gradients of a rank's own logits. Rows that are right are counted by the
/// rank that has their label, once for every rank; of equal logits on several ranks it does not tell which is first.
LossOfRows cross_entropy_of_part(std::span<const float> logits, ClassPart part, std::span<const std::int32_t> labels,
                                 float smoothing, float loss_scale, std::span<const float> maxima,
                                 std::span<const float> sums, std::span<float> slopes);

/// As cross_entropy with one logit per label.
LossOfRows sigmoid_cross_entropy(std::span<const float> logits, std::span<const std::int32_t> labels, float smoothing,
                                 float loss_scale, std::span<float> slopes);

}  // namespace hcclsim::device
