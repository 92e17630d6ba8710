#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "study/compare/baseline/compared_figures.hpp"

/// What a command found compared with what it found before, both as the JSON that it prints: of every command but
/// `run`, whose parts have rules of their own (study/compare/baseline/baseline.hpp). Elements of a list (sizes,
/// schedules, levels) are a part each and are matched by what names them, so their order does not count, and those that
/// the baseline does not have are not compared; everything else is one part more.
namespace hcclsim::study {

enum class ResultKind : std::uint8_t { collective, schedule_check, schedule_time, schedule_diff };

/// "collective", "schedule check".
[[nodiscard]] std::string_view name_of(ResultKind kind);

/// Reads the file; throws Error(bad_input, "baseline") if it is not what the command prints with --format json.
[[nodiscard]] Json read_baseline(const std::string& file, ResultKind kind);

/// Both as one object, or as a list of them, by file, where the command takes several. Figures agree within `tolerance`
/// · |baseline's|; everything else must be equal. Sentences (notes, verdicts) are not compared.
[[nodiscard]] BaselineComparison compare_results(ResultKind kind, const Json& baseline, const Json& now,
                                                 double tolerance);

}  // namespace hcclsim::study
