#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/csv.hpp"
#include "base/json.hpp"
#include "cli/profiler/profile_folder.hpp"
#include "study/run/run.hpp"

/// Steps that are simulated, and the profiles that are written of them.
namespace hcclsim::cli {

/// A small GPT of four layers on this platform.
inline study::RunSpec profiled_gpt(const std::string& platform, Rank npus) {
  study::RunSpec spec;
  spec.platform.file = platform;
  spec.model = {
      .name = "gpt2-small", .batch = 4, .sequence = 16, .layers = 4, .hidden = 128, .heads = 2, .vocabulary = 256};
  spec.step.framework = study::Framework::mindspore;
  spec.step.hcom_parallel = true;
  spec.npus = npus;
  return spec;
}

struct ProfiledFigures {
  Seconds step = 0;
  Seconds computing = 0;
  std::vector<Seconds> ready;  ///< gradients of the printed rank
  Bytes hbm_peak = 0;
};

/// A path that does not exist.
inline std::string fresh_folder(const std::string& name) {
  const std::string path = testing::TempDir() + "profile_" + name;
  std::filesystem::remove_all(path);
  return path;
}

/// Simulates, and writes the profile of all ranks into the folder.
inline ProfiledFigures write_profile(const study::RunSpec& spec, const std::string& folder, ProfileLevel level) {
  return study::on_experiment(spec, [&](study::Experiment& experiment) -> ProfiledFigures {
    std::vector<Rank> ranks(experiment.npus);
    std::iota(ranks.begin(), ranks.end(), Rank{0});
    study::RunWishes wishes;
    wishes.traced = ranks;
    wishes.tasks = level == ProfileLevel::level1;
    study::RunResult result = simulate_run(experiment, std::move(wishes));
    ProfileOptions options;
    options.folder = folder;
    options.level = level;
    ProfileFolder files(options);
    files.write(result.step, ranks, experiment.soc.generation, [&](Rank rank) -> const device::HbmAccount& {
      return experiment.hbm_of_stages.at(rank / experiment.training.step.stage_ranks());
    });
    files.commit();
    return {result.step_time(), result.view.computing, result.view.gradient_ready, experiment.hbm().peak()};
  });
}

/// The same without a profile.
inline ProfiledFigures simulated_figures(const study::RunSpec& spec) {
  return study::on_experiment(spec, [](study::Experiment& experiment) -> ProfiledFigures {
    study::RunResult result = simulate_run(experiment);
    return {result.step_time(), result.view.computing, result.view.gradient_ready, experiment.hbm().peak()};
  });
}

inline std::string text_of(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A file of a rank, in ASCEND_PROFILER_OUTPUT.
inline std::string output_of(const std::string& folder, Rank rank, const std::string& name) {
  return folder + "/rank" + std::to_string(rank) + "_20260101000000000_ascend_ms/ASCEND_PROFILER_OUTPUT/" + name;
}

/// A column of a CSV file, as numbers.
inline std::vector<double> column_of(const std::string& path, std::string_view name) {
  const std::string text = text_of(path);
  CsvFile csv(text, path, "test");
  const std::size_t column = csv.column(name);
  std::vector<double> values;
  while (csv.next()) values.push_back(csv.number(column));
  return values;
}

}  // namespace hcclsim::cli
