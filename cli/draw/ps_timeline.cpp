#include "cli/draw/ps_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"

namespace hcclsim::cli {
namespace {

constexpr double microseconds_per_second = 1e6;
constexpr int scheduler = 0;  // number of its process; that of worker w is w + 1

Json name_of_process(std::size_t process, const std::string& name) {
  return {{"name", "process_name"}, {"ph", "M"}, {"pid", process}, {"args", {{"name", name}}}};
}

Json span(const hccl::PsStep& step, const char* what, Seconds start, Seconds end) {
  return {{"name", fmt::format("step {} {}", step.step, what)},
          {"ph", "X"},
          {"pid", step.worker + 1},
          {"tid", 0},
          {"ts", start * microseconds_per_second},
          {"dur", (end - start) * microseconds_per_second}};
}

}  // namespace

std::string ps_timeline(const study::PsResult& result) {
  Json events = Json::array();
  events.push_back(name_of_process(scheduler, "cluster"));
  std::uint32_t workers = result.workers;
  for (const hccl::PsStep& step : result.outcome.steps) workers = std::max(workers, step.worker + 1);
  for (std::uint32_t worker = 0; worker < workers; ++worker) {
    events.push_back(name_of_process(worker + 1, fmt::format("worker-{}", worker)));
  }
  for (const hccl::PsEvent& event : result.outcome.events) {
    events.push_back({{"name", fmt::format("{}: {}", event.node, event.what)},
                      {"ph", "i"},
                      {"s", "g"},
                      {"pid", scheduler},
                      {"tid", 0},
                      {"ts", event.date * microseconds_per_second},
                      {"args", {{"state", std::string(name_of(event.state))}}}});
  }
  for (const hccl::PsStep& step : result.outcome.steps) {
    events.push_back(span(step, "passes", step.start, step.computed));
    events.push_back(span(step, "until the last pull", step.computed, step.end));
  }
  return Json{{"traceEvents", events}}.dump() + "\n";
}

}  // namespace hcclsim::cli
