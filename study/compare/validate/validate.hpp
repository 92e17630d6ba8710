#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "study/compare/validate/validation_file.hpp"

/// Published figures beside what the simulator says of them.
namespace hcclsim::study {

struct ValidatedFigure {
  PublishedFigure published;
  double simulated = 0;  ///< in the unit of the published one

  [[nodiscard]] double error() const { return simulated / published.measured - 1; }
  /// Its error is above what is expected.
  [[nodiscard]] bool is_off() const;
};

/// Errors of the predictions of a group, as fractions.
struct ValidationErrors {
  std::size_t predictions = 0;
  double mean = 0;   ///< of their absolute values
  double worst = 0;  ///< the largest absolute value
};
[[nodiscard]] ValidationErrors errors_of(const std::vector<const ValidatedFigure*>& figures);

struct ValidationGroup {
  std::string what;
  std::vector<const ValidatedFigure*> figures;  ///< in their order
};
/// The figures by what they are, in the order in which that comes first.
[[nodiscard]] std::vector<ValidationGroup> groups_of(const std::vector<ValidatedFigure>& figures);

/// What the program prints for these words as JSON.
using JsonOfCommand = std::function<std::string(const PublishedFigure& figure)>;

/// Simulates all figures, each command once and several at a time, every one in a child. Throws Error(bad_input,
/// "validation") where the JSON has no such number, and what a command throws.
[[nodiscard]] std::vector<ValidatedFigure> validate(std::vector<PublishedFigure> figures, const JsonOfCommand& json_of);

}  // namespace hcclsim::study
