#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

/// The learning rate as a function of the iteration, counted from 0 at the start of training (a resumed run continues
/// its count). There is no state, so every rank and every resumed run computes the same.
namespace hcclsim::device {

/// How the learning rate decreases during training.
struct LearningRateSchedule {
  enum class Kind : std::uint8_t {
    constant,
    step,        ///< times `factor` after every `iterations`
    milestones,  ///< times `factor` at each of the iterations `milestones`
    cosine,      ///< half a cosine from the base rate at 0 to `floor` at `iterations`, and `floor` from there on
  };

  Kind kind = Kind::constant;
  std::uint64_t iterations = 1;
  std::vector<std::uint64_t> milestones{};  ///< rising
  double factor = 1;
  double floor = 0;  ///< a learning rate
};

/// Parses "constant", "step:30:0.1" (times 0.1 every 30 iterations), "step:100,200:0.1" (at iterations 100 and 200),
/// "cosine:1000", "cosine:1000:0.001" (its floor); throws Error(bad_input, "option").
[[nodiscard]] LearningRateSchedule parse_learning_rate_schedule(std::string_view text);

class LearningRate {
 public:
  /// `base` is the rate before it is first reduced. In the first `warm_up` iterations the schedule's rate is multiplied
  /// by 1/warm_up, 2/warm_up, …; they count as iterations of the schedule. Throws Error(bad_input, "option") for a base
  /// that is negative or not finite, and for a floor above it.
  explicit LearningRate(double base = 0.1, LearningRateSchedule schedule = {}, std::uint64_t warm_up = 0);

  [[nodiscard]] double at(std::uint64_t iteration) const;

 private:
  [[nodiscard]] double scheduled(std::uint64_t iteration) const;

  double base_;
  LearningRateSchedule schedule_;
  std::uint64_t warm_up_;
};

}  // namespace hcclsim::device
