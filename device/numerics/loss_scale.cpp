#include "device/numerics/loss_scale.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::device {
namespace {

constexpr float factor = 2;
constexpr float default_initial = 0x1p24F;
constexpr std::uint64_t default_window = 2000;
constexpr float largest_scale = 0x1p127F;

bool is_scale(double scale) { return scale >= 1 && scale <= double{largest_scale}; }

[[noreturn]] void refuse_loss_scale(std::string_view text, std::string_view problem) {
  bad_input("option", "loss scale '{}': {}; give none, static:SCALE, dynamic, dynamic:INITIAL or dynamic:INITIAL:STEPS",
            text, problem);
}

float parse_scale(std::string_view text, std::string_view field) {
  const std::optional<double> scale = parse_number<double>(field);
  if (!scale || !is_scale(*scale)) refuse_loss_scale(text, fmt::format("'{}' is not a number from 1 to 2^127", field));
  return static_cast<float>(*scale);
}

}  // namespace

LossScaler LossScaler::parse(std::string_view text) {
  const std::vector<std::string_view> fields = split(text, ':');
  if (fields.front() == "none" && fields.size() == 1) return {};
  if (fields.front() == "static" && fields.size() == 2) return {Kind::fixed, parse_scale(text, fields[1]), 0};
  if (fields.front() == "dynamic" && fields.size() <= 3) {
    const float initial = fields.size() > 1 ? parse_scale(text, fields[1]) : default_initial;
    const std::optional<std::uint64_t> window =
        fields.size() > 2 ? parse_count<std::uint64_t>(fields[2]) : default_window;
    if (!window) refuse_loss_scale(text, fmt::format("'{}' is not a number of steps (1 or more)", fields[2]));
    return {Kind::dynamic, initial, *window};
  }
  refuse_loss_scale(text, "not one of the forms");
}

bool LossScaler::update(bool overflow) {
  if (kind_ != Kind::dynamic) return true;
  if (overflow) {
    state_ = {std::max(state_.scale / factor, 1.0F), 0};
  } else if (++state_.good_steps == window_) {
    state_ = {std::min(state_.scale, largest_scale / factor) * factor, 0};
  }
  return !overflow;
}

void LossScaler::restore(const State& state) {
  const bool possible =
      kind_ == Kind::dynamic ? is_scale(state.scale) && state.good_steps < window_ : state == State{state_.scale, 0};
  if (!possible) {
    bad_input("checkpoint", "loss scale {} after {} good steps does not belong to this loss scaling", state.scale,
              state.good_steps);
  }
  state_ = state;
}

}  // namespace hcclsim::device
