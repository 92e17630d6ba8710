// Words and lists that options take, and what Slurm says to `sweep submit`.

#include <string>

#include "device/numerics/learning_rate.hpp"
#include "hccl/collective/algorithm.hpp"
#include "models/zoo/zoo.hpp"
#include "sim/platform/options.hpp"
#include "study/communication/measure/names.hpp"
#include "study/compare/sweep/slurm.hpp"
#include "study/compare/tune/spec.hpp"
#include "study/run/split/comparison.hpp"
#include "tests/fuzz/targets.hpp"

namespace hcclsim::fuzz {

int fuzz_option_texts(Input input) {
  const std::string text = text_of(input);
  int verdict = refused;
  const auto also = [&](auto read) {
    if (attempt([&] { static_cast<void>(read(text)); }) == accepted) verdict = accepted;
  };
  also(sim::parse_fabric);
  also([](const std::string& pods) { return sim::parse_super_pods(pods, 8); });
  also([](const std::string& name) { return models::make_model({.name = name, .batch = 2}); });
  also(device::parse_learning_rate_schedule);
  also([](const std::string& name) { return hccl::parse_algorithm(hccl::Collective::allreduce, name); });
  also(hccl::parse_levels);
  also(study::parse_collective_with_payload);
  also(study::parse_size);
  also(study::parse_counts);
  also(study::parse_bandwidth_range);
  also(study::parse_strategies);
  also(study::parse_job_id);
  static_cast<void>(study::parse_slurm_tasks(text, 8));  // lines that it does not know do not count
  return verdict;
}

}  // namespace hcclsim::fuzz
