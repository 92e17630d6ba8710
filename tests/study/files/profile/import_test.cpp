// Profiles in the vendor's formats (tests/data/profile, whose figures can be checked in the head), and the profile of a
// simulated step that gives the same step again.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hccl/training/step_view.hpp"
#include "hccl/training/training.hpp"
#include "models/zoo/zoo.hpp"
#include "study/files/profile/back_test.hpp"
#include "study/files/profile/import.hpp"
#include "tests/support/simulation.hpp"
#include "tests/support/training/programs.hpp"
#include "tests/support/training/steps.hpp"

namespace hcclsim::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double import_tolerance = 1e-12;

const std::string data = std::string(HCCLSIM_TEST_DATA) + "/profile/";

// Elements of gradients of mlp:64,32,10, which other files call by other names.
constexpr std::uint64_t fc2_bias = 10;
constexpr std::uint64_t fc2_weight = 32 * 10;
constexpr std::uint64_t fc1_weight = 64 * 32;

struct Step {
  explicit Step(const std::vector<std::string>& files, const std::string& model = "mlp:64,32,10")
      : graph(models::make_model({model, 32, {}, {}, true})),
        soc(device::find_soc("Ascend910A", notes)),
        model_program(make_program(graph, soc, {}, notes)) {
    notes.clear();
    std::vector<std::string> paths;
    for (const std::string& file : files) paths.push_back(file.starts_with('/') ? file : data + file);
    program = imported_program(read_profiles(paths), graph, soc, {}, 1, imported, notes);
  }

  [[nodiscard]] models::Kernel kernel(const std::string& name) const {
    for (const models::Kernel& kernel : program.kernels) {
      if (kernel.name == name) return kernel;
    }
    ADD_FAILURE() << name;
    return {};
  }
  [[nodiscard]] Seconds duration(const std::string& name) const { return kernel(name).duration; }
  /// When the gradient of so many elements is complete in a step that nothing delays.
  [[nodiscard]] Seconds ready(std::uint64_t elements) const {
    const auto gradient = std::ranges::find(program.gradients, elements, &models::Gradient::elements);
    if (gradient == program.gradients.end()) throw std::runtime_error(fmt::format("no gradient of {}", elements));
    Seconds date = 0;
    for (std::uint32_t i = 0; i <= gradient->kernel; ++i) date += program.kernels[i].duration;
    return date;
  }

  std::vector<std::string> notes;
  models::Graph graph;
  device::Soc soc;
  models::Program model_program;
  ImportedProfile imported;
  models::Program program;
};

TEST(ProfileImport, OpSummaryReplacesKernels) {
  const Step step({"op_summary_0_1.csv"});
  EXPECT_NEAR(step.duration("fc1:cast"), 10 * microsecond, import_tolerance);
  EXPECT_NEAR(step.duration("fc1:forward+relu"), 103 * microsecond,
              import_tolerance);  // mean of 100 and 102, and 2 idle before it
  EXPECT_NEAR(step.kernel("fc1:forward+relu").idle, 2 * microsecond, import_tolerance);
  EXPECT_EQ(step.kernel("fc1:cast").idle, 0);
  EXPECT_NEAR(step.duration("loss:forward"), 20 * microsecond, import_tolerance);
  EXPECT_NEAR(step.duration("fc2:weight_gradient") + step.duration("fc2:data_gradient+mask"), 50 * microsecond,
              import_tolerance);
  EXPECT_NEAR(step.duration("fc1:weight_gradient"), 62 * microsecond, import_tolerance);
  EXPECT_NEAR(step.duration("fc1.weight:momentum"), 7 * microsecond, import_tolerance);
  const KernelMatch& match = *step.imported.kernels;
  EXPECT_EQ(match.iterations, 2U);
  EXPECT_EQ(match.replaced, 14U);
  EXPECT_TRUE(match.modelled.empty());
  // It is none of the model's, but the kernel behind it waits for it.
  ASSERT_EQ(match.unmatched.size(), 1U);
  EXPECT_EQ(match.unmatched.front().name, "trans_TransData_12");
  EXPECT_NEAR(match.unmatched_time, 5 * microsecond, import_tolerance);
  EXPECT_EQ(match.not_simulated_time, 0);
  EXPECT_NEAR(step.duration("fc2:bias_gradient"), 11 * microsecond, import_tolerance);
  const Phases& phases = step.imported.measured;
  EXPECT_NEAR(*phases.forward, 171 * microsecond, import_tolerance);
  EXPECT_NEAR(*phases.backward, 130 * microsecond, import_tolerance);
  EXPECT_NEAR(*phases.update, 20 * microsecond, import_tolerance);
  EXPECT_NEAR(*phases.step, 500 * microsecond, import_tolerance);
  ASSERT_EQ(phases.allreduces.size(), 2U);
  EXPECT_NEAR(phases.allreduces.back(), 30 * microsecond, import_tolerance);
}

TEST(ProfileImport, KernelDetailsLeaveTheRestToTheModel) {
  const Step step({"kernel_details.csv"});
  EXPECT_EQ(step.imported.files.front().kind, "kernel_details");
  EXPECT_NEAR(step.duration("fc1:forward+relu"), 90 * microsecond, import_tolerance);
  EXPECT_THAT(step.imported.kernels->modelled, ElementsAre("fc1:cast", "fc2:cast"));
  EXPECT_EQ(step.duration("fc1:cast"), step.model_program.kernels.front().duration);
  // Updates that name no parameter share their time as the cost model does.
  const auto last_by_first = [](const models::Program& program) {
    const auto update = [&](const models::Gradient& gradient) {
      return test::kernels_of(program, gradient.name, models::Phase::update).front().duration;
    };
    return update(program.gradients.back()) / update(program.gradients.front());
  };
  EXPECT_NEAR(last_by_first(step.program), last_by_first(step.model_program), 1e-12);
  EXPECT_NEAR(*step.imported.measured.update, 20 * microsecond, import_tolerance);
}

TEST(ProfileImport, StepTraceScalesTheModel) {
  const Step step({"step_trace_0_1.csv"});
  const Phases& phases = step.imported.measured;
  EXPECT_NEAR(*phases.forward_backward, 301 * microsecond, import_tolerance);  // of the second and the third iteration
  EXPECT_NEAR(phases.allreduces.front(), 52 * microsecond, import_tolerance);
  EXPECT_NEAR(*phases.tail, 109 * microsecond, import_tolerance);
  EXPECT_NEAR(*phases.step, 420 * microsecond, import_tolerance);
  EXPECT_NEAR(*phases.last_update, 27 * microsecond, import_tolerance);
  EXPECT_NEAR(step.ready(fc1_weight), 301 * microsecond, import_tolerance);
  const models::Kernel& scaled = step.program.kernels.at(1);
  const models::Kernel& modelled = step.model_program.kernels.at(1);
  EXPECT_NEAR(scaled.duration / modelled.duration, *step.imported.scale, 1e-12);
}

TEST(ProfileImport, SummaryIsDatedByItsTraceNodes) {
  const Step step({"gradient_summary.csv", "op_summary_traced.csv"});
  ASSERT_EQ(step.program.gradients.size(), 4U);
  EXPECT_NEAR(step.ready(fc2_bias), 181 * microsecond, import_tolerance);
  EXPECT_NEAR(step.ready(fc2_weight), 211 * microsecond, import_tolerance);
  EXPECT_NEAR(step.ready(fc1_weight), 301 * microsecond, import_tolerance);
  EXPECT_EQ(step.program.gradients.back().elements, fc1_weight);
}

TEST(ProfileImport, SummaryWithoutDatesMustBeOfTheModel) {
  const Step step({"gradient_summary.csv"});
  EXPECT_EQ(step.ready(fc1_weight), Step({}).ready(fc1_weight));
}

TEST(ProfileImport, RecordBeginsWhereTheModelOrTheStepTraceSays) {
  const Step alone({"Ascend910A_gradient_fusion.json"});
  EXPECT_NEAR(alone.ready(fc2_bias), Step({}).ready(fc2_bias), import_tolerance);
  EXPECT_NEAR(alone.ready(fc1_weight) - alone.ready(fc2_bias), 120 * microsecond, import_tolerance);
  EXPECT_THAT(alone.notes, testing::Contains(HasSubstr("a step trace would tell")));
  const Step dated({"Ascend910A_gradient_fusion.json", "step_trace_0_1.csv"});
  EXPECT_NEAR(dated.ready(fc2_bias), 181 * microsecond, import_tolerance);
  EXPECT_NEAR(dated.ready(fc1_weight), 301 * microsecond, import_tolerance);
}

/// An op_summary of all iterations of a simulated rank, with all digits.
std::string op_summary(const sim::Trace& trace) {
  std::string text = "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Stream ID\n";
  for (const sim::Span& span : trace.spans()) {
    if (span.kind != sim::SpanKind::kernel && span.kind != sim::SpanKind::collective) continue;
    const bool kernel = span.kind == sim::SpanKind::kernel;
    text += fmt::format("{},N/A,{},{:.17f},{:.17f},{}\n",
                        kernel ? trace.name(span.name) : fmt::format("hcom_allReduce__{}", span.start),
                        kernel ? "AI_CORE" : "COMMUNICATION", span.start / microsecond,
                        (span.end - span.start) / microsecond, span.stream);
  }
  return text;
}

hccl::TimedStep simulate(sim::Cluster& cluster, const Step& step, bool parallel) {
  std::vector<std::string> notes;
  hccl::TrainingStep training = test::data_parallel(
      {.npus = cluster.size(), .hcom_parallel = parallel},
      hccl::segments_from_last_indices(std::vector<std::uint32_t>{100, 160}), {.fold = hccl::Fold::off});
  training.stages.front().program = std::make_shared<models::Program>(step.program);
  return simulate_training(cluster, step.soc, device::read_task_costs(cluster, notes), training);
}

TEST(ProfileImport, AStepImportedAgainIsTheSame) {
  sim::Cluster cluster(test::write_platform({.npus_per_server = 4}));
  for (const bool parallel : {false, true}) {
    SCOPED_TRACE(parallel ? "hcom_parallel on" : "hcom_parallel off");
    Step measured({}, "resnet50");
    // A step unlike the cost model's.
    double factor = 0.5;
    for (models::Kernel& kernel : measured.program.kernels) {
      kernel.duration *= kernel.phase == models::Phase::update ? 1.5 : (factor += 0.01);
    }
    const hccl::TimedStep result = simulate(cluster, measured, parallel);
    const std::string file = test::write_temporary("op_summary.csv", op_summary(result.trace));
    const Step again({file}, "resnet50");
    EXPECT_EQ(again.imported.kernels->replaced, 541U);
    const hccl::TimedStep repeated = simulate(cluster, again, parallel);
    EXPECT_NEAR(repeated.step_times.front() / result.step_times.front(), 1, 1e-9);
    const auto view = hccl::StepView::of(repeated.plan, repeated.trace, 0);
    const BackTest test = back_test(again.imported, simulated_phases(view, repeated.step_times.front()));
    EXPECT_EQ(test.rows.size(), 7U);  // FP, BP, FP+BP, AR1, AR2, update, step
    for (const BackTestRow& row : test.rows) EXPECT_NEAR(row.error(), 0, 1e-8) << row.phase;
  }
}

TEST(ProfileImport, OtherSplitsAreNotCompared) {
  ImportedProfile imported;
  imported.measured = {.allreduces = {1, 2, 3}, .overlapped = false, .step = 10};
  imported.sources = {{"st.csv", "step_trace", 1, imported.measured}};
  const BackTest test = back_test(imported, {.allreduces = {1, 2}, .overlapped = true, .step = 9});
  ASSERT_EQ(test.rows.size(), 1U);
  EXPECT_DOUBLE_EQ(test.rows.front().error(), -0.1);
  EXPECT_THAT(test.notes, ElementsAre(HasSubstr("3 allreduces were measured and 2"), HasSubstr("--hcom-parallel off")));
}

}  // namespace
}  // namespace hcclsim::study
