#include "study/run/experiment/plans.hpp"

#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "hccl/parallel/plan/plan_file.hpp"
#include "hccl/parallel/plan/plan_walk.hpp"
#include "study/run/experiment/on_experiment.hpp"

namespace hcclsim::study {
namespace {

PlanDocument document_of(hccl::Plan plan) {
  PlanDocument document{.plan = std::move(plan)};
  document.ideal = walk(document.plan).end;
  for (const hccl::Role& role : document.plan.roles) document.tasks += role.tasks.size();
  return document;
}

}  // namespace

PlanDocument plan_of_run(const RunSpec& spec) {
  // The Plan comes back as text: what reads it has the names and times that a document tells.
  auto [text, comm_reuse] = on_experiment(spec, [](Experiment& experiment) {
    return std::pair(plan_json(experiment.plan()).dump(1), experiment.comm_reuse);
  });
  PlanDocument document = document_of(hccl::plan_of_json("the Plan of the run", Json::parse(text)));
  document.comm_reuse = std::move(comm_reuse);
  return document;
}

PlanDocument read_plan(const std::string& file) {
  return document_of(hccl::plan_of_json(file, parse_json_text(read_text_file(file, "plan"), file, "plan")));
}

std::vector<hccl::StreamText> streams_of(const PlanDocument& document) { return hccl::streams_of(document.plan); }

std::string json_of(const PlanDocument& document) { return plan_json(document.plan).dump(1); }

std::vector<hccl::PlanDifference> differences(const PlanDocument& one, const PlanDocument& other) {
  return hccl::differences(one.plan, other.plan);
}

}  // namespace hcclsim::study
