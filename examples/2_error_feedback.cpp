#include <fmt/format.h>

#include <string>

#include "hccl/compression/settings.hpp"
#include "study/run/numerics/numerics.hpp"
#include "study/run/run.hpp"

namespace {

using namespace hcclsim;  // NOLINT(google-build-using-namespace): a short program

/// The loss of a small network after 150 steps on four NPUs, with its gradients reduced by a hook; empty: plainly.
double last_loss(const std::string& hook) {
  study::RunSpec spec;
  spec.platform.file = "atlas800-9000";
  spec.model = {.name = "mlp:64,128,96,10", .batch = 8};
  spec.npus = 4;
  spec.simulation.iterations = 150;
  spec.numerics.emplace();
  spec.numerics->learning_rate = device::LearningRate(0.02);
  if (!hook.empty()) spec.step.compression = hccl::CompressionPlan{hccl::parse_compression(hook)};
  return study::on_experiment(spec, [&spec](study::Experiment& experiment) {
    study::TrainingClock clock(experiment, spec.simulation.iterations, {});
    study::RunResult result = study::simulate_run(experiment);
    static_cast<void>(
        study::compute_numerics(experiment, result.step, result.start_up_plan(), clock, {}, result.numerics.emplace()));
    return result.numerics->iterations.back().loss;
  });
}

}  // namespace

/// PowerSGD of rank 1 sends a hundredth of the gradients. What a step does not send is added to the next one, so the
/// network converges as it does plainly; without that it stays behind.
int main() {
  const double plain = last_loss("");
  const double with_feedback = last_loss("batched-powersgd:start=2");
  const double without = last_loss("batched-powersgd:start=2,error-feedback=off");
  fmt::print("plain allreduce          {}\n", plain < 0.1 ? "converges" : "does not converge");
  fmt::print("PowerSGD, error feedback {}\n", with_feedback < 0.1 ? "converges" : "does not converge");
  fmt::print("PowerSGD without it      {}\n", without < 0.1 ? "converges" : "does not converge");
}
