#include "cli/print/run/iteration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

constexpr int bar_columns = 100;
/// More allreduces than this are drawn without names.
constexpr std::size_t most_named_allreduces = 9;

struct BarSpan {
  std::string name;
  char fill;
  Seconds start;
  Seconds end;
};

/// One line of the bar. A span gets at least one column between its borders and moves those behind it if it must.
std::string draw(const std::vector<BarSpan>& spans, Seconds zero, Seconds duration) {
  const auto column = [&](Seconds date) {
    return static_cast<std::size_t>(std::lround((date - zero) / duration * bar_columns));
  };
  std::string line;
  for (const BarSpan& span : spans) {
    const bool adjoins = !line.empty() && column(span.start) < line.size();
    if (!adjoins) {
      line.resize(std::max(line.size(), column(span.start)), ' ');
      line += '|';
    }
    const std::size_t inner = line.size();
    const std::size_t width = std::max<std::size_t>(column(span.end) > inner ? column(span.end) - inner : 0, 1);
    if (span.name.size() <= width) line += span.name;
    line.resize(inner + width, span.fill);
    line += '|';
  }
  return line;
}

}  // namespace

std::string step_trace_csv(const std::vector<hccl::IterationPoints>& iterations) {
  if (iterations.empty()) internal_error("a step trace needs an iteration");
  std::string text =
      "Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),FP to BP Time(us),"
      "Iteration Refresh(us),Data Aug Bound(us)";
  const std::size_t flags = iterations.front().overflow_flag.has_value() ? 1 : 0;
  for (std::size_t i = 0; i < iterations.front().allreduces.size() + flags; ++i) {
    text += ",Reduce Start(us),Reduce Duration(us)";
  }
  text += '\n';
  const auto out = std::back_inserter(text);
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    const hccl::IterationPoints& point = iterations[i];
    fmt::format_to(out, "{},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f}", i + 1, point.fp_start * microseconds_per_second,
                   point.bp_end * microseconds_per_second, point.iteration_end * microseconds_per_second,
                   (point.iteration_end - point.fp_start) * microseconds_per_second,
                   (point.bp_end - point.fp_start) * microseconds_per_second,
                   (point.iteration_end - point.bp_end) * microseconds_per_second);
    if (i == 0) {
      text += ",N/A";  // there is no iteration before it
    } else {
      fmt::format_to(out, ",{:.3f}", (point.fp_start - iterations[i - 1].iteration_end) * microseconds_per_second);
    }
    std::vector<sim::Interval> allreduces = point.allreduces;
    if (point.overflow_flag.has_value()) allreduces.push_back(*point.overflow_flag);
    for (const sim::Interval& allreduce : allreduces) {
      fmt::format_to(out, ",{:.3f},{:.3f}", allreduce.start * microseconds_per_second,
                     (allreduce.end - allreduce.start) * microseconds_per_second);
    }
    text += '\n';
  }
  return text;
}

std::vector<std::string> iteration_bar(const hccl::IterationPoints& iteration) {
  const Seconds duration = iteration.iteration_end - iteration.fp_start;
  if (duration <= 0) return {};
  std::vector<BarSpan> compute;
  if (iteration.bp_start > iteration.fp_start) compute.push_back({"FP", '.', iteration.fp_start, iteration.bp_start});
  if (iteration.bp_end > iteration.bp_start) compute.push_back({"BP", '.', iteration.bp_start, iteration.bp_end});

  std::vector<sim::Interval> allreduces = iteration.allreduces;
  const auto takes_time = [](const sim::Interval& allreduce) { return allreduce.length() > 0; };
  if (std::ranges::none_of(allreduces, takes_time)) allreduces.clear();  // one NPU
  const bool beside = !allreduces.empty() && allreduces.front().start < iteration.bp_end;
  std::vector<BarSpan> communication;
  for (std::size_t i = 0; i < allreduces.size(); ++i) {
    const bool named = allreduces.size() <= most_named_allreduces;
    communication.push_back({named ? fmt::format("AR{}", i + 1) : "", '#', allreduces[i].start, allreduces[i].end});
  }
  if (allreduces.size() > most_named_allreduces) {
    communication = {{fmt::format("AR1-{}", allreduces.size()), '#', allreduces.front().start, allreduces.back().end}};
  }
  Seconds tail_update = communication.empty() ? iteration.bp_end : std::max(iteration.bp_end, communication.back().end);
  auto& last_line = beside ? communication : compute;
  if (!beside) compute.insert(compute.end(), communication.begin(), communication.end());
  if (iteration.overflow_flag.has_value()) {
    const auto& flag = *iteration.overflow_flag;
    if (flag.start > tail_update) last_line.push_back({"C", '.', tail_update, flag.start});
    if (flag.end > flag.start) last_line.push_back({"F", '#', flag.start, flag.end});
    tail_update = flag.end;
  }
  if (iteration.device_end() > tail_update) last_line.push_back({"U", '.', tail_update, iteration.device_end()});
  if (const auto& written = iteration.checkpoint) last_line.push_back({"W", '.', written->start, written->end});
  std::vector<std::string> lines{draw(compute, iteration.fp_start, duration)};
  if (beside) lines.push_back(draw(communication, iteration.fp_start, duration));
  return lines;
}

}  // namespace hcclsim::cli
