// Profiles of real steps, logs of measured communication, stored runs, published figures.

#include <cmath>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/memory_file.hpp"
#include "models/zoo/zoo.hpp"
#include "study/communication/calibrate/bandwidth_log.hpp"
#include "study/compare/baseline/baseline.hpp"
#include "study/compare/validate/validation_file.hpp"
#include "study/files/profile/import.hpp"
#include "study/jobs/job/msjob/read_msjob.hpp"
#include "study/jobs/job/simulate_job.hpp"
#include "tests/fuzz/targets.hpp"

namespace hcclsim::fuzz {
namespace {

/// What profiles are put in the place of: the network of tests/data/profile.
struct Modelled {
  models::Graph graph = models::make_model({.name = "mlp:64,32,10"});
  std::vector<std::string> notes{};
  device::Soc soc = device::find_soc("Ascend910A", notes);
};

/// A run of two segments on two ranks, as `run --format json` prints it.
const Json& stored_run() {
  static const Json run = Json::parse(R"({
    "format_version": 2, "model": "tiny", "platform": "lab.xml", "npus": 2, "batch": 32, "rank": 1, "iterations": 3,
    "amp": "O2", "framework": "tf", "hcom_parallel": false, "network": "simgrid", "segment_log": "[0,1] [2,2]",
    "segments": [
      {"first": 0, "last": 1, "bytes": 8, "ready_s": 1.0, "start_s": 2.0, "end_s": 3.0, "algorithm": "ring"},
      {"first": 2, "last": 2, "bytes": 4, "ready_s": 2.0, "start_s": 3.0, "end_s": 4.0, "algorithm": "ring"}],
    "trace": {"fp_start_s": 0.0, "bp_end_s": 2.0, "allreduce": [{"start_s": 2.0, "end_s": 3.0}]},
    "gradients": [{"index": 0, "name": "b", "bytes": 4, "ready_s": 0.5}, {"index": 1, "name": "a", "bytes": 4}],
    "step_time_s": 5.0, "images_per_s": 25.6, "ranks": [{"first": 0, "last": 1, "step_time_s": 5.0}],
    "numerics": {"iterations": [{"iteration": 1, "loss": 0.5}], "replica_difference": {"bits": 0}},
    "advice": null, "notes": []})");
  return run;
}

}  // namespace

/// A file of any kind. One that is read is imported, too.
int fuzz_profile(Input input) {
  static const Modelled modelled;
  const MemoryFile file(text_of(input));
  return attempt([&] {
    const std::vector<std::string> files{file.path()};
    const study::Profiles profiles = study::read_profiles(files);
    study::ImportedProfile imported;
    std::vector<std::string> notes;
    const models::Program program =
        study::imported_program(profiles, modelled.graph, modelled.soc, {}, 1, imported, notes);
    for (const models::Kernel& kernel : program.kernels) {
      require(std::isfinite(kernel.duration) && kernel.duration >= 0, "a kernel's duration is negative or not finite");
    }
  });
}

int fuzz_calibration_log(Input input) {
  const std::string text = text_of(input);
  return attempt([&] {
    const study::CollectiveLog log = study::parse_collective_log(text, "log");
    require(!log.rows.empty(), "a log without rows");
    for (const auto& row : log.rows) require(row.size > 0 && row.time > 0, "a size or time that is not positive");
  });
}

int fuzz_communication(Input input) {
  const std::string text = text_of(input);
  return attempt([&] {
    for (const auto& transfer : study::parse_communication(text, "communication.json")) {
      require(transfer.bytes > 0 && transfer.time > 0 && transfer.count > 0, "a transfer that is none");
    }
  });
}

int fuzz_baseline(Input input) {
  const MemoryFile file(text_of(input));
  return attempt([&] {
    const Json baseline = study::read_baseline(file.path());
    static_cast<void>(study::compare_runs(baseline, stored_run(), 0.01));
    require(study::compare_runs(baseline, baseline, 0).differences() == 0, "a run differs from itself");
  });
}

int fuzz_validation(Input input) {
  const MemoryFile file(text_of(input));
  return attempt([&] {
    const std::vector<study::PublishedFigure> figures = study::read_published_figures(file.path());
    require(!figures.empty(), "a file without figures");
    for (const study::PublishedFigure& figure : figures) {
      require(figure.measured > 0 && figure.factor > 0 && figure.uncertainty >= 0, "a number out of its range");
      require(!figure.command.empty() && !figure.id.empty() && !figure.what.empty(), "a figure that lacks something");
    }
  });
}

/// A job that is accepted comes to an end, whatever it asks for.
int fuzz_msjob(Input input) {
  return attempt([&] {
    const study::MsJob job = study::parse_msjob(text_of(input), "input");
    require(!job.name.empty() && !job.replicas.empty(), "a job that lacks something");
    for (const study::ReplicaSpec& spec : job.replicas) require(!spec.pod.trainer().image.empty(), "no image");
    constexpr std::uint32_t many = 100;
    if (job.pods() > many) return;
    study::JobScenario scenario;
    scenario.until = 10'000;
    const std::vector<study::JobServer> servers{
        {.name = "server0", .npus = {0, 1}, .npu_resource = "huawei.com/Ascend910", .cpus = 8}};
    const study::JobOutcome outcome = study::simulate_job(
        job, servers, scenario, [](const study::TrainingHosts&) { return study::StepTimes{.first = 1.0}; });
    require(outcome.end <= scenario.until, "simulated beyond the end");
  });
}

}  // namespace hcclsim::fuzz
