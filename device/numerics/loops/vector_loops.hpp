#pragma once

#include <cstddef>

/// The loops over flat buffers of fp32 that optimizers and checks of gradients consist of, compiled for several
/// instruction sets (instruction_sets.hpp). Sums have a fixed number of lanes, so the bits of a result depend neither
/// on the instruction set nor on how a buffer is cut for the workers.
///
/// Buffers of one call have `elements` elements and do not overlap. In the rules below w is a weight, g its gradient
/// times `gradient_scale`.
namespace hcclsim::device {

/// The factors in the rules. Each loop reads the fields that its rule names.
struct UpdateFactors {
  float gradient_scale = 1;  ///< of the stored gradient
  float decay = 0;           ///< weight decay that is added to the gradient (LAMB: to the update)
  float shrink = 1;          ///< of the weight before the update: decoupled weight decay
  float rate = 0;            ///< learning rate, with all that is constant over the tensor
  float momentum = 0;
  float beta1 = 0;
  float beta2 = 0;
  float rest1 = 1;         ///< 1 − beta1
  float rest2 = 1;         ///< 1 − beta2
  float first_scale = 1;   ///< corrects the bias of the first moment
  float second_scale = 1;  ///< corrects the bias of the square root of the second moment
  float epsilon = 0;
};

/// w −= rate · (g + decay · w)
void apply_sgd(std::size_t elements, const UpdateFactors& factors, const float* gradient, float* weight);

/// d = g + decay · w; v = momentum · v + d; w −= rate · v
void apply_momentum(std::size_t elements, const UpdateFactors& factors, const float* gradient, float* weight,
                    float* velocity);

/// d = g + decay · w; v = momentum · v + d; w −= rate · (d + momentum · v)
void apply_nesterov(std::size_t elements, const UpdateFactors& factors, const float* gradient, float* weight,
                    float* velocity);

/// v = momentum · v + rate · (g + decay · w); w −= v
void apply_lars(std::size_t elements, const UpdateFactors& factors, const float* gradient, float* weight,
                float* velocity);

/// d = g + decay · w; m = beta1 · m + rest1 · d; s = beta2 · s + rest2 · d²;
/// w = shrink · w − rate · m / (second_scale · √s + epsilon)
void apply_adam(std::size_t elements, const UpdateFactors& factors, const float* gradient, float* weight, float* first,
                float* second);

/// Sums of squares over one tensor or a block of it.
struct SquareSums {
  double weight = 0;
  double direction = 0;  ///< gradient or update
};

/// m = beta1 · m + rest1 · g; s = beta2 · s + rest2 · g². Returns the sums of w² and of u², where
/// u = first_scale · m / (second_scale · √s + epsilon) + decay · w.
[[nodiscard]] SquareSums update_lamb_moments(std::size_t elements, const UpdateFactors& factors, const float* gradient,
                                             const float* weight, float* first, float* second);

/// w −= rate · u, with u from the moments as above.
void apply_lamb(std::size_t elements, const UpdateFactors& factors, const float* first, const float* second,
                float* weight);

/// Sum of the squares, in fp64.
[[nodiscard]] double sum_of_squares(std::size_t elements, const float* values);

/// Whether all elements are finite: none is infinite or NaN.
[[nodiscard]] bool all_finite(std::size_t elements, const float* values);

}  // namespace hcclsim::device
