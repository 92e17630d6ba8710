#include "hccl/check/check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "hccl/check/cuts.hpp"
#include "hccl/check/distances.hpp"
#include "hccl/check/form.hpp"
#include "hccl/check/matching.hpp"
#include "hccl/check/meaning.hpp"
#include "hccl/check/races.hpp"
#include "hccl/check/symmetry/symmetric_checks.hpp"
#include "hccl/check/symmetry/symmetry.hpp"

namespace hcclsim::hccl {
namespace {

/// Returns whether there were no findings.
bool add_findings(CheckReport& report, std::string level, const Findings& findings) {
  report.levels.push_back({std::move(level), findings.empty(), findings.count(), findings.kept()});
  return findings.empty();
}

/// Checks the levels from L0 on; `form` has the findings of unrolling. With a rotation, the program is that of the
/// ranks that stand for all.
void check_levels(const TaskProgram& program, const Rotation* rotation, const CheckOptions& options, Findings& form,
                  CheckReport& report) {
  if (program.first_part.size() > program.unrolled()) check_form(program, options, form);  // it was unrolled
  if (!add_findings(report, "L0", form)) return;

  if (options.last_level == 0) return;

  Findings matching(options.most_findings);
  Findings deadlock(options.most_findings);
  Findings races(options.most_findings);
  check_matching(program, matching);
  if (matching.empty()) check_progress(program, options, matching, deadlock);
  const bool completes = matching.empty() && deadlock.empty();
  bool order_is_free = false;
  if (completes) {
    order_is_free = rotation != nullptr ? check_races_by_rotation(program, *rotation, matching, races)
                                        : check_races(program, matching, races);
  }
  if (!add_findings(report, "L1", matching) || options.last_level == 1) return;
  if (!add_findings(report, "L2", deadlock) || options.last_level == 2) return;
  const bool ordered = add_findings(report, "L3", races);
  if (options.last_level == 3) return;
  if (!ordered && rotation != nullptr) return;  // the lockstep decides for all runs only without races

  Findings meaning(options.most_findings);
  Findings order(options.most_findings);
  CheckOptions fixed_order = options;
  if (order_is_free) fixed_order.recorded_order.reset();  // there is none to compare with
  const std::optional<ReductionOrder> found =
      rotation != nullptr ? check_meaning_by_rotation(program, *rotation, fixed_order, meaning, order)
                          : check_meaning(program, fixed_order, meaning, order);
  if (!add_findings(report, "L4", meaning) || !ordered || options.last_level == 4) return;
  report.order = found;
  if (report.order) report.order->free = order_is_free;
  if (order_is_free && options.recorded_order && order.wanted()) {
    order.keep(
        {"order-changed",
         fmt::format("recorded is the order {:016x}; this schedule reduces integers in any order, which may be another "
                     "one in every run, so that it has no signature",
                     *options.recorded_order)});
  }
  add_findings(report, "L5", order);
  if (options.last_level < 7) return;
  report.distances = distances_of(program);
  add_cuts(program, options, *report.distances);
  report.levels.push_back({"L7"});
}

CheckReport with_verdict(CheckReport report, const Rotation* rotation, const CheckOptions& options) {
  for (const LevelReport& level : report.levels) {
    if (level.ok) continue;
    report.verdict = verdict_against(level);
    return report;
  }
  report.ok = true;
  if (options.last_level < 5) {
    report.verdict = fmt::format("nothing wrong up to L{}; the levels above were not checked", options.last_level);
    return report;
  }
  report.verdict = "correct in every interleaving: each wait takes the same post in all of them";
  if (report.order && report.order->free) {
    report.verdict += "; order free: reductions of integers come out the same in any order";
  }
  if (rotation != nullptr) {
    const std::string shown = rotation->period() == 1 ? "one rank" : fmt::format("{} ranks", rotation->period());
    report.verdict += fmt::format("; shown for {}, of all others by rotation symmetry", shown);
  }
  return report;
}

}  // namespace

CheckReport check(const Schedule& schedule, const CheckOptions& options) {
  CheckReport report;
  Findings form(options.most_findings);
  std::optional<Rotation> rotation;
  if (schedule.ranks >= options.rotation_from) rotation = Rotation::of(schedule);
  if (rotation && !races_fit_by_rotation(schedule, *rotation)) rotation.reset();
  const Rotation* const alike = rotation ? &*rotation : nullptr;
  const TaskProgram program = unroll(schedule, form, rotation ? std::optional(rotation->period()) : std::nullopt);
  check_levels(program, alike, options, form, report);
  return with_verdict(std::move(report), alike, options);
}

CheckReport check(const TaskProgram& program, const CheckOptions& options) {
  CheckReport report;
  Findings form(options.most_findings);
  check_levels(program, nullptr, options, form, report);
  return with_verdict(std::move(report), nullptr, options);
}

std::string verdict_against(const LevelReport& level) {
  return fmt::format("wrong: {} finds {}", level.level, level.findings.front().kind);
}

void add_level(CheckReport& report, LevelReport level) {
  if (!level.ok && report.ok) {
    report.ok = false;
    report.verdict = verdict_against(level);
  }
  const auto next = std::find_if(report.levels.begin(), report.levels.end(),
                                 [&](const LevelReport& other) { return other.level > level.level; });
  report.levels.insert(next, std::move(level));
}

}  // namespace hcclsim::hccl
