#include "study/plans.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "hccl/parallel/plan_walk.hpp"
#include "study/run/run.hpp"

namespace hcclsim::study {
namespace {

PlanDocument document_of(const hccl::Plan& plan) {
  PlanDocument document{.streams = streams_of(plan), .json = plan_json(plan).dump(1), .roles = plan.roles.size()};
  document.ideal = walk(plan).end;
  document.ranks = plan.ranks();
  for (const hccl::Role& role : plan.roles) document.tasks += role.tasks.size();
  return document;
}

}  // namespace

PlanDocument plan_of_run(const RunSpec& spec) {
  // The Plan comes back as text: what reads it has the names and times that a document tells.
  const std::string text =
      on_experiment(spec, [](Experiment& experiment) { return plan_json(experiment.plan()).dump(1); });
  return document_of(hccl::plan_of_json("the Plan of the run", Json::parse(text)));
}

PlanDocument read_plan(const std::string& file) {
  const auto json = Json::try_parse(read_text_file(file, "plan"));
  if (!json.has_value()) bad_input("plan", "{}: it is not JSON", file);
  return document_of(hccl::plan_of_json(file, *json));
}

std::vector<PlanDifference> differences(const PlanDocument& one, const PlanDocument& other) {
  using Lines = const std::vector<std::string>*;
  using Name = std::tuple<std::uint32_t, std::uint32_t, std::string>;  // stage, role of it, stream
  struct Compared {
    std::string whose;
    Lines first = nullptr;
    Lines second = nullptr;
  };
  std::map<Name, Compared> streams;
  for (const hccl::StreamText& stream : one.streams) {
    streams[{stream.stage, stream.role, stream.stream}] = {stream.whose, &stream.lines, nullptr};
  }
  for (const hccl::StreamText& stream : other.streams) {
    Compared& compared = streams[{stream.stage, stream.role, stream.stream}];
    if (compared.whose.empty()) compared.whose = stream.whose;
    compared.second = &stream.lines;
  }
  std::vector<PlanDifference> found;
  for (const auto& [name, compared] : streams) {
    const auto line = [](Lines of, std::size_t place) {
      return of != nullptr && place < of->size() ? (*of)[place] : std::string();
    };
    const auto& [whose, first, second] = compared;
    const std::size_t count = std::max(first == nullptr ? 0 : first->size(), second == nullptr ? 0 : second->size());
    for (std::size_t place = 0; place < count; ++place) {
      if (line(first, place) == line(second, place)) continue;
      found.push_back({std::get<0>(name), whose, std::get<2>(name), place, line(first, place), line(second, place)});
    }
  }
  return found;
}

}  // namespace hcclsim::study
