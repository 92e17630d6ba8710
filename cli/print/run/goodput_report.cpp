#include "cli/print/run/goodput_report.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace hcclsim::cli {
namespace {

/// In the largest unit of which there is one.
std::string time_text(Seconds time) {
  constexpr Seconds minute = 60;
  constexpr Seconds hour = 3600;
  constexpr Seconds day = 86400;
  if (time >= day) return fmt::format("{:.2f} d", time / day);
  if (time >= hour) return fmt::format("{:.2f} h", time / hour);
  if (time >= minute) return fmt::format("{:.2f} min", time / minute);
  if (time >= 1) return fmt::format("{:.2f} s", time);
  return fmt::format("{:.2f} ms", time * 1e3);
}

std::string every_text(const study::FailingJob& job) {
  return fmt::format("every {} steps ({})", with_thousands(job.checkpoint_every),
                     time_text(static_cast<double>(job.checkpoint_every) * job.step));
}

std::string range_text(const study::Goodput& goodput) {
  return fmt::format("{:.2f} % ({:.2f}..{:.2f})", goodput.mean.goodput() * 100, goodput.least * 100,
                     goodput.most * 100);
}

Json json_of(const study::Goodput& goodput) {
  return {{"checkpoint_every", goodput.job.checkpoint_every},
          {"goodput", goodput.mean.goodput()},
          {"goodput_least", goodput.least},
          {"goodput_most", goodput.most},
          {"failures", goodput.mean.failures},
          {"total_s", goodput.mean.total()},
          {"steps_s", goodput.mean.steps},
          {"checkpoints_s", goodput.mean.checkpoints},
          {"lost_s", goodput.mean.lost},
          {"restarts_s", goodput.mean.restarts}};
}

}  // namespace

std::string goodput_text(const study::GoodputResult& result, Rank npus) {
  const study::Goodput& asked = result.asked;
  std::string text = fmt::format(
      "Job of {} steps ({}): one of {} NPUs fails every {}; a checkpoint ({:.2f} GB per rank) takes {}, a restart {}\n",
      with_thousands(asked.job.steps), time_text(asked.mean.steps), with_thousands(npus), time_text(asked.job.mtbf),
      static_cast<double>(result.checkpoint_bytes) / giga, time_text(asked.job.checkpoint),
      time_text(asked.job.restart));
  text += fmt::format(
      "Goodput {} of {} runs with a checkpoint {}{}: {} = steps {} + checkpoints {} + lost work {} + restarts {}; "
      "{:.1f} "
      "failures\n",
      range_text(asked), result.runs, every_text(asked.job), result.optimum.has_value() ? "" : ", Daly's interval",
      time_text(asked.mean.total()), time_text(asked.mean.steps), time_text(asked.mean.checkpoints),
      time_text(asked.mean.lost), time_text(asked.mean.restarts), asked.mean.failures);
  if (result.optimum.has_value()) {
    text +=
        fmt::format("Daly's interval, {}: goodput {}\n", every_text(result.optimum->job), range_text(*result.optimum));
  }
  return text;
}

Json goodput_json(const study::GoodputResult& result) {
  const study::FailingJob& job = result.asked.job;
  Json json{{"steps", job.steps},
            {"step_s", job.step},
            {"mtbf_s", job.mtbf},
            {"checkpoint_bytes", result.checkpoint_bytes},
            {"checkpoint_s", job.checkpoint},
            {"restart_s", job.restart},
            {"runs", result.runs},
            {"asked", json_of(result.asked)},
            {"optimum", nullptr}};
  if (result.optimum.has_value()) json["optimum"] = json_of(*result.optimum);
  return json;
}

}  // namespace hcclsim::cli
