#include "study/plans.hpp"

#include <algorithm>
#include <map>
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
  std::map<std::pair<std::uint32_t, std::string>, std::pair<Lines, Lines>> streams;
  for (const hccl::StreamText& stream : one.streams) streams[{stream.stage, stream.stream}].first = &stream.lines;
  for (const hccl::StreamText& stream : other.streams) streams[{stream.stage, stream.stream}].second = &stream.lines;
  std::vector<PlanDifference> found;
  for (const auto& [name, lines] : streams) {
    const auto line = [](Lines of, std::size_t place) {
      return of != nullptr && place < of->size() ? (*of)[place] : std::string();
    };
    const auto [first, second] = lines;
    const std::size_t count = std::max(first == nullptr ? 0 : first->size(), second == nullptr ? 0 : second->size());
    for (std::size_t place = 0; place < count; ++place) {
      if (line(first, place) == line(second, place)) continue;
      found.push_back({name.first, name.second, place, line(first, place), line(second, place)});
    }
  }
  return found;
}

}  // namespace hcclsim::study
