#include "device/numerics/learning_rate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hcclsim::device {
namespace {

using Kind = LearningRateSchedule::Kind;

[[noreturn]] void refuse_schedule(std::string_view text, std::string_view problem) {
  bad_input("option",
            "learning-rate schedule '{}': {}; give constant, step:ITERATIONS:FACTOR, step:AT,AT,…:FACTOR, "
            "cosine:ITERATIONS or cosine:ITERATIONS:FLOOR",
            text, problem);
}

std::uint64_t parse_iterations(std::string_view text, std::string_view field) {
  const std::optional<std::uint64_t> iterations = parse_count<std::uint64_t>(field);
  if (!iterations) refuse_schedule(text, fmt::format("'{}' is not a number of iterations (1 or more)", field));
  return *iterations;
}

LearningRateSchedule parse_step(std::string_view text, std::span<const std::string_view> fields) {
  if (fields.size() != 3) refuse_schedule(text, "it takes iterations and a factor");
  LearningRateSchedule schedule{.kind = Kind::step};
  const std::vector<std::string_view> at = split(fields[1], ',');
  if (at.size() == 1) {
    schedule.iterations = parse_iterations(text, at.front());
  } else {
    schedule.kind = Kind::milestones;
    for (const std::string_view field : at) {
      const std::uint64_t iteration = parse_iterations(text, field);
      if (!schedule.milestones.empty() && iteration <= schedule.milestones.back()) {
        refuse_schedule(text,
                        fmt::format("iteration {} does not come after {}", iteration, schedule.milestones.back()));
      }
      schedule.milestones.push_back(iteration);
    }
  }
  const std::optional<double> factor = parse_number<double>(fields[2]);
  if (!factor || *factor <= 0) refuse_schedule(text, fmt::format("factor '{}' is not a number above 0", fields[2]));
  schedule.factor = *factor;
  return schedule;
}

LearningRateSchedule parse_cosine(std::string_view text, std::span<const std::string_view> fields) {
  if (fields.size() != 2 && fields.size() != 3) refuse_schedule(text, "it takes iterations and perhaps a floor");
  LearningRateSchedule schedule{.kind = Kind::cosine, .iterations = parse_iterations(text, fields[1])};
  if (fields.size() == 2) return schedule;
  const std::optional<double> floor = parse_number<double>(fields[2]);
  if (!floor || *floor < 0)
    refuse_schedule(text, fmt::format("floor '{}' is not a learning rate (0 or more)", fields[2]));
  schedule.floor = *floor;
  return schedule;
}

}  // namespace

LearningRateSchedule parse_learning_rate_schedule(std::string_view text) {
  const std::vector<std::string_view> fields = split(text, ':');
  if (fields.front() == "step") return parse_step(text, fields);
  if (fields.front() == "cosine") return parse_cosine(text, fields);
  if (fields.front() != "constant") refuse_schedule(text, fmt::format("unknown kind '{}'", fields.front()));
  if (fields.size() != 1) refuse_schedule(text, "constant takes nothing more");
  return {};
}

LearningRate::LearningRate(double base, LearningRateSchedule schedule, std::uint64_t warm_up)
    : base_(base), schedule_(std::move(schedule)), warm_up_(warm_up) {
  if (!(base >= 0 && std::isfinite(base))) bad_input("option", "learning rate is {}, must be 0 or more", base);
  if (schedule_.kind == Kind::cosine && schedule_.floor > base) {
    bad_input("option", "learning rate falls to {}, which is above its begin {}", schedule_.floor, base);
  }
}

double LearningRate::at(std::uint64_t iteration) const {
  const double rate = scheduled(iteration);
  if (iteration >= warm_up_) return rate;
  return rate * (static_cast<double>(iteration) + 1) / static_cast<double>(warm_up_);
}

double LearningRate::scheduled(std::uint64_t iteration) const {
  switch (schedule_.kind) {
    case Kind::constant:
      break;
    case Kind::step: {
      const std::uint64_t passed = iteration / schedule_.iterations;
      return base_ * std::pow(schedule_.factor, static_cast<double>(passed));
    }
    case Kind::milestones: {
      const auto passed = std::ranges::upper_bound(schedule_.milestones, iteration) - schedule_.milestones.begin();
      return base_ * std::pow(schedule_.factor, static_cast<double>(passed));
    }
    case Kind::cosine: {
      if (iteration >= schedule_.iterations) return schedule_.floor;
      const double part = static_cast<double>(iteration) / static_cast<double>(schedule_.iterations);
      return schedule_.floor + (base_ - schedule_.floor) * (1 + std::cos(std::numbers::pi * part)) / 2;
    }
  }
  return base_;
}

}  // namespace hcclsim::device
