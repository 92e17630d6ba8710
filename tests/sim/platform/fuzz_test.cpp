#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "sim/cluster.hpp"
#include "sim/platform/check.hpp"
#include "tests/support/case_name.hpp"

// What the check lets pass, SimGrid must load: files that are spoilt at random, with fixed seeds, either have a fatal
// problem or load, and then every two NPUs have a route.
namespace hcclsim::sim {
namespace {

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// A value in double quotes of a line: where it begins and its length; {0, 0} if there is none.
std::pair<std::size_t, std::size_t> find_value(const std::string& line, std::mt19937& random) {
  std::vector<std::size_t> quotes;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quotes.push_back(i);
  }
  if (quotes.size() < 2) return {0, 0};
  const std::size_t pick = random() % (quotes.size() / 2) * 2;
  return {quotes[pick] + 1, quotes[pick + 1] - quotes[pick] - 1};
}

void spoil(std::vector<std::string>& lines, std::mt19937& random) {
  const std::size_t at = random() % lines.size();
  const std::size_t other = random() % lines.size();
  switch (random() % 6) {
    case 0:
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(other), std::string(lines[at]));
      break;
    case 2:
      std::swap(lines[at], lines[other]);
      break;
    case 3:
    case 4: {  // a value becomes one of another line
      const auto [to, length] = find_value(lines[at], random);
      const auto [from, from_length] = find_value(lines[other], random);
      if (to != 0 && from != 0) lines[at].replace(to, length, std::string(lines[other], from, from_length));
      break;
    }
    case 5: {  // a character goes
      if (!lines[at].empty()) lines[at].erase(random() % lines[at].size(), 1);
      break;
    }
  }
}

/// Loads the file and finds all routes between NPUs; returns what went wrong, or nothing.
std::string load_fault(const std::string& path) {
  try {
    return run_in_child([&] {
      Cluster cluster(path);
      for (Rank from = 0; from < cluster.size(); ++from) {
        for (Rank to = 0; to < cluster.size(); ++to) {
          if (from != to) static_cast<void>(cluster.route(from, to));
        }
      }
      return std::string();
    });
  } catch (const Error& error) {
    return error.what();
  }
}

class PlatformFuzz : public testing::TestWithParam<std::string> {};

TEST_P(PlatformFuzz, WhatTheCheckLetsPassLoads) {
  const std::vector<std::string> original = read_lines(GetParam());
  std::string folder = testing::TempDir() + "/fuzz_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/spoilt.xml";
  std::size_t passed = 0;
  for (std::uint32_t seed = 0; seed < 250; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::string> lines = original;
    for (std::uint32_t times = 1 + seed % 2; times > 0; --times) spoil(lines, random);
    std::ofstream file(path);
    for (const std::string& line : lines) file << line << '\n';
    file.close();
    bool fatal = false;
    for (const PlatformProblem& problem : check_platform(path)) fatal = fatal || problem.fatal;
    if (fatal) continue;
    ++passed;
    const std::string fault = load_fault(path);
    EXPECT_EQ(fault, "") << "seed " << seed;
    if (!fault.empty()) std::filesystem::copy_file(path, fmt::format("{}/seed{}.xml", folder, seed));
  }
  // A check that refuses everything would pass the test too.
  EXPECT_GT(passed, 10U);
  EXPECT_LT(passed, 240U);
  if (!HasFailure()) std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(
    Files, PlatformFuzz,
    testing::Values(HCCLSIM_TEST_DATA "/platforms/bad/star.xml", HCCLSIM_TEST_DATA "/platforms/bad/nested.xml",
                    HCCLSIM_TEST_DATA "/platforms/lab.xml", HCCLSIM_TEST_DATA "/platforms/zones.xml",
                    HCCLSIM_PLATFORM_DIR "/atlas800-9000.xml", HCCLSIM_PLATFORM_DIR "/atlas900-a3-superpod.xml"),
    [](const auto& tested) { return test::case_name(std::filesystem::path(tested.param).stem().string()); });

}  // namespace
}  // namespace hcclsim::sim
