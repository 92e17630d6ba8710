#include "hccl/training/numerics/gradient_check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/counter_random.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::uint64_t candidates = 64;  // entries of a parameter among which the largest gradient is taken
/// Steps that are tried, from the smallest on, as fractions of the root mean square of the parameter.
constexpr std::array steps{0.0008, 0.004, 0.02, 0.1};
/// Relative noise between losses of nearby weights, computed in fp32: two units in the last place.
constexpr double loss_noise = 1e-7;
/// Share of the difference of the quotients to both sides that counts as error. Where masks of ReLU flip within the
/// step, the loss has kinks; the two sides meet about equally many, in any direction, so their difference tells how far
/// their mean may be off.
constexpr double bend_share = 1.5;
/// Estimated errors that a gradient may be off: they are estimates, and ten samples are taken at a time.
constexpr double tolerated_errors = 3;
/// Relative error of a computed gradient that is taken as correct.
constexpr double gradient_noise = 0.02;

/// A parameter under test, in its row-major order.
class Probe {
 public:
  Probe(const device::Computation& computation, device::Weights& weights, device::Workspace& workspace,
        const models::Batch& batch, const device::StepInput& input, device::WorkerPool& pool, std::size_t slot)
      : computation_(computation),
        weights_(weights),
        workspace_(workspace),
        batch_(batch),
        input_(input),
        pool_(pool),
        slot_(slot),
        values_(computation.parameters()[slot].elements) {
    computation.to_plain(slot, computation.parameters()[slot].in(weights.values()), values_);
  }

  [[nodiscard]] double root_mean_square() const {
    double sum = 0;
    for (const float value : values_) sum += static_cast<double>(value) * value;
    return std::sqrt(sum / static_cast<double>(values_.size()));
  }

  struct Quotient {
    double central = 0;  // of the loss over 2h around the entry
    double bend = 0;     // half the difference of the quotients to both sides
  };

  Quotient quotient(std::uint64_t element, double h, double loss) {
    const float original = values_[element];
    const auto above = static_cast<float>(original + h);
    const auto below = static_cast<float>(original - h);
    const double loss_above = loss_with(element, above);
    const double loss_below = loss_with(element, below);
    set(element, original);
    weights_.prepare(pool_);
    const double distance = static_cast<double>(above) - static_cast<double>(below);
    return {(loss_above - loss_below) / distance, std::abs(loss_above - 2 * loss + loss_below) / distance};
  }

 private:
  double loss_with(std::uint64_t element, float value) {
    set(element, value);
    weights_.prepare(pool_);
    return workspace_.forward(weights_, batch_, input_).loss;
  }

  void set(std::uint64_t element, float value) {
    values_[element] = value;
    computation_.to_storage(slot_, values_, computation_.parameters()[slot_].in(weights_.values()));
  }

  const device::Computation& computation_;
  device::Weights& weights_;
  device::Workspace& workspace_;
  const models::Batch& batch_;
  const device::StepInput& input_;
  device::WorkerPool& pool_;
  std::size_t slot_;
  std::vector<float> values_;
};

std::uint64_t largest_candidate(std::span<const float> gradient, std::uint64_t slot, std::uint64_t seed) {
  std::uint64_t best = 0;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(candidates, gradient.size()); ++i) {
    const std::uint64_t element =
        gradient.size() <= candidates
            ? i
            : counter_bits(seed, random_stream::checked_gradients + slot, i) % gradient.size();
    if (i == 0 || std::abs(gradient[element]) > std::abs(gradient[best])) best = element;
  }
  return best;
}

GradientSample examine(Probe& probe, std::string name, std::uint64_t element, double gradient, double loss) {
  GradientSample sample{.parameter = std::move(name), .element = element, .gradient = gradient};
  // Weights that are all zero still need a step.
  const double scale = std::max(probe.root_mean_square(), 1e-3);
  double closest = std::numeric_limits<double>::infinity();  // difference over tolerance, of the clear steps
  double least = std::numeric_limits<double>::infinity();    // tolerance of the others
  for (const double step : steps) {
    const double h = step * scale;
    const Probe::Quotient whole = probe.quotient(element, h, loss);
    const Probe::Quotient half = probe.quotient(element, h / 2, loss);
    const double noise = loss_noise * std::abs(loss) / h;
    const double error = std::abs(whole.central - half.central) + bend_share * half.bend + noise;
    const double tolerance = tolerated_errors * error + gradient_noise * std::abs(gradient);
    const double difference = std::abs(half.central - gradient);
    const bool clear = tolerance <= std::max(std::abs(gradient), std::abs(half.central)) / 2;
    if (clear ? difference / tolerance >= closest : std::isfinite(closest) || tolerance >= least) continue;
    (clear ? closest : least) = clear ? difference / tolerance : tolerance;
    sample.quotient = half.central;
    sample.tolerance = tolerance;
  }
  if (std::isfinite(closest)) sample.verdict = closest <= 1 ? SampleVerdict::agrees : SampleVerdict::differs;
  // No tolerance can be told for these.
  if (!std::isfinite(gradient)) sample.verdict = SampleVerdict::differs;
  return sample;
}

}  // namespace

std::vector<GradientSample> check_gradients(const device::Computation& computation, device::Weights& weights,
                                            const models::Batch& batch, const device::StepInput& input,
                                            std::uint32_t parameters, std::uint64_t seed, device::WorkerPool& pool) {
  device::Workspace workspace(computation);
  std::vector<float> gradients(computation.elements());
  const double loss = workspace.step(weights, batch, input, gradients).loss;

  std::vector<GradientSample> samples;
  const std::size_t slots = computation.parameters().size();
  const std::size_t count = std::min<std::size_t>(parameters, slots);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t slot = i * slots / count;
    const device::ParameterSlot& parameter = computation.parameters()[slot];
    std::vector<float> plain(parameter.elements);
    computation.to_plain(slot, parameter.in(std::span(gradients)), plain);
    const std::uint64_t element = largest_candidate(plain, slot, seed);
    Probe probe(computation, weights, workspace, batch, input, pool, slot);
    samples.push_back(examine(probe, parameter.name, element, plain[element] / input.loss_scale, loss));
  }
  return samples;
}

}  // namespace hcclsim::hccl
