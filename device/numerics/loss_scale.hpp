#pragma once

#include <cstdint>
#include <string_view>

/// Loss scaling: the loss is multiplied by a scale before back-propagation, so that small gradients survive in fp16,
/// and the gradients are divided by it before the update. With a dynamic scale an update whose gradients are not finite
/// (the scale was too large, or the training diverges) is left out. The rules and the defaults are those of MindSpore's
/// FixedLossScaleManager(drop_overflow_update=False), which does not check for overflow and costs no time, and of its
/// DynamicLossScaleManager (https://www.mindspore.cn/docs/en/r2.2/api_python/mindspore.amp.html).
namespace hcclsim::device {

class LossScaler {
 public:
  enum class Kind : std::uint8_t {
    none,     ///< scale 1, every update is applied
    fixed,    ///< one scale; every update is applied
    dynamic,  ///< after an overflow half the scale, but at least 1; after a window of good steps twice the scale
  };

  /// What changes from step to step; saved in checkpoints.
  struct State {
    float scale = 1;
    std::uint64_t good_steps = 0;  ///< since the last overflow or doubling; below the window
    bool operator==(const State&) const = default;
  };

  /// No loss scaling.
  LossScaler() = default;

  /// Parses "none", "static:S" (1 ≤ S ≤ 2^127), "dynamic", "dynamic:INITIAL", "dynamic:INITIAL:WINDOW" (2^24 and 2000
  /// steps where not given); throws Error(bad_input, "option").
  [[nodiscard]] static LossScaler parse(std::string_view text);

  [[nodiscard]] Kind kind() const { return kind_; }
  /// Whether a step must find out if its gradients overflowed.
  [[nodiscard]] bool checks_overflow() const { return kind_ == Kind::dynamic; }
  [[nodiscard]] float scale() const { return state_.scale; }

  /// To be called once per step; `overflow` says whether any gradient on any rank is not finite (only a dynamic scale
  /// uses it). Returns whether the weights are to be updated with the gradients. The dynamic scale stays at or below
  /// 2^127.
  [[nodiscard]] bool update(bool overflow);

  [[nodiscard]] State state() const { return state_; }
  /// Goes on from the state of a scaler that was parsed from the same text; throws Error(bad_input, "checkpoint") for a
  /// state that such a scaler cannot have.
  void restore(const State& state);

 private:
  LossScaler(Kind kind, float scale, std::uint64_t window) : kind_(kind), window_(window), state_{scale, 0} {}

  Kind kind_ = Kind::none;
  std::uint64_t window_ = 0;
  State state_;
};

}  // namespace hcclsim::device
