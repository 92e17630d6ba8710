#include <fmt/format.h>

#include "base/json.hpp"
#include "cli/print/schedule/schedule_report.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {

std::string execution_text(const study::ScheduleExecution& execution, const std::string& file, std::uint64_t seed) {
  const auto& [schedule, check] = execution;
  std::string text =
      fmt::format("{}: {} {} among {} ranks, payload {} {}, on random data with seed {}\n", file, schedule.algorithm,
                  name_of(schedule.collective), schedule.ranks,
                  with_thousands(schedule.payload() / size_of(schedule.type)), name_of(schedule.type), seed);
  text += fmt::format("{} elements compared", with_thousands(check.elements));
  if (reduces(schedule.collective)) {
    text += fmt::format("; {}, at most {} reduction{} in a row", name_of(schedule.op), check.additions,
                        check.additions == 1 ? "" : "s");
    if (is_float(schedule.type)) {
      text += fmt::format("; largest difference from fp64 {:.3g}", check.largest_difference);
      if (check.largest_difference > 0) text += fmt::format(" where {:.3g} is the bound", check.bound);
    }
  }
  text += '\n';
  if (check.ok()) return text + "right\n";
  const hccl::WrongElement& first = *check.first_wrong;
  return text + fmt::format("wrong: {} elements; the first is element {} of rank {}: {} instead of {}\n",
                            with_thousands(check.wrong), first.element, first.rank, first.found, first.expected);
}

std::string execution_json(const study::ScheduleExecution& execution, const std::string& file, std::uint64_t seed) {
  const auto& [schedule, check] = execution;
  Json json{{"format_version", 1},
            {"file", file},
            {"collective", name_of(schedule.collective)},
            {"algorithm", schedule.algorithm},
            {"ranks", schedule.ranks},
            {"bytes", schedule.payload()},
            {"dtype", name_of(schedule.type)},
            {"op", name_of(schedule.op)},
            {"seed", seed},
            {"ok", check.ok()},
            {"elements", check.elements},
            {"wrong", check.wrong},
            {"additions", check.additions},
            {"largest_difference", check.largest_difference},
            {"bound", check.bound},
            {"first_wrong", nullptr}};
  if (check.first_wrong.has_value()) {
    const hccl::WrongElement& first = *check.first_wrong;
    json["first_wrong"] = {
        {"rank", first.rank}, {"element", first.element}, {"expected", first.expected}, {"found", first.found}};
  }
  return json.dump(2) + '\n';
}

}  // namespace hcclsim::cli
