#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <tuple>

#include "sim/platform/check.hpp"
#include "sim/platform/generate.hpp"
#include "tests/sim/network/plain_simulation.hpp"
#include "tests/sim/random_zones.hpp"
#include "tests/sim/simulate.hpp"

// Random traffic on platforms of every kind: simgrid = fluid, and both = a third simulation that is as plain as can be.
namespace hcclsim::sim {
namespace {

void expect_agreement(const std::string& path, const std::vector<Job>& jobs, const Prepare& prepare) {
  const auto simgrid = simulate(path, NetworkKind::simgrid, jobs, prepare);
  const auto fluid = simulate(path, NetworkKind::fluid, jobs, prepare);
  const auto plain = plain_simulation(plain_of(path, jobs, prepare), jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    SCOPED_TRACE(fmt::format("{} job {}", path, i));
    ASSERT_GE(plain[i], 0);
    EXPECT_NEAR(fluid[i], plain[i], 1e-9 * plain[i]);
    EXPECT_NEAR(simgrid[i], fluid[i], 1e-9 * fluid[i]);
  }
}

using Case = std::tuple<std::string, std::uint64_t>;

class RandomTraffic : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Platforms, RandomTraffic,
                         ::testing::Combine(::testing::Values("star8", "fat_tree8", "lab", "zones"),
                                            ::testing::Values(1, 2, 3)),
                         [](const auto& tested) {
                           return fmt::format("{}_seed{}", std::get<0>(tested.param), std::get<1>(tested.param));
                         });

TEST_P(RandomTraffic, BothNetworksAgreeWithThePlainSimulation) {
  const auto& [name, seed] = GetParam();
  const std::string path = platform(name + ".xml");
  const std::vector<Job> jobs = random_jobs(seed, 120, size_of_cluster(path));
  expect_agreement(path, jobs, use(LinkValues::used));
  expect_agreement(path, jobs, use(LinkValues::low));
}

TEST_P(RandomTraffic, ASecondRunGivesTheSameBits) {
  const auto& [name, seed] = GetParam();
  const std::vector<Job> jobs = random_jobs(seed + 100, 200, 4);
  for (const NetworkKind kind : {NetworkKind::simgrid, NetworkKind::fluid}) {
    SCOPED_TRACE(name_of(kind));
    EXPECT_EQ(simulate(platform(name + ".xml"), kind, jobs), simulate(platform(name + ".xml"), kind, jobs));
  }
}

/// On platforms of random zones: links of every kind that several routes share, in zones within zones.
void expect_agreement_on_random_zones(std::uint32_t first, std::uint32_t platforms) {
  std::uint32_t compared = 0;
  for (std::uint32_t seed = first; compared < platforms; ++seed) {
    const PlatformText file(RandomZones(seed).file());
    const auto fatal = [](const PlatformProblem& problem) { return problem.fatal; };
    if (std::ranges::any_of(check_platform(file.path()), fatal)) continue;  // all hosts are CPUs
    const Rank size = size_of_cluster(file.path());
    if (size < 2) continue;
    expect_agreement(file.path(), random_jobs(seed, 60, size), use(LinkValues::used));
    ++compared;
  }
}

TEST(RandomZones, BothNetworksAgreeWithThePlainSimulation) { expect_agreement_on_random_zones(0, 25); }

TEST(RandomZones, BothNetworksAgreeWithThePlainSimulationAtLength) { expect_agreement_on_random_zones(1000, 500); }

TEST(ShippedPlatforms, BothNetworksAgreeWithThePlainSimulation) {
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(HCCLSIM_PLATFORM_DIR)) {
    if (file.path().extension() != ".xml") continue;
    ++files;
    const std::string path = file.path();
    expect_agreement(path, random_jobs(7, 150, size_of_cluster(path)), use(LinkValues::used));
    expect_agreement(path, random_jobs(8, 150, size_of_cluster(path)), use(LinkValues::high));
  }
  EXPECT_GE(files, 7);
}

TEST(ShippedPlatforms, BothNetworksAgreeOverRoceBetweenServers) {
  const std::string path = std::string(HCCLSIM_PLATFORM_DIR) + "/atlas900-a3-superpod.xml";
  expect_agreement(path, random_jobs(10, 400, 64), [](Cluster& cluster) { cluster.use_roce_between_servers(); });
}

void expect_agreement_on_generated(const PlatformOptions& options, Rank npus) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("hcclsim_random_traffic_{}.xml", ::getpid());
  std::ofstream(path) << generate_platform(options);
  expect_agreement(path, random_jobs(9, 400, npus), use(LinkValues::used));
  std::filesystem::remove(path);
}

TEST(GeneratedPlatforms, BothNetworksAgreeWithThePlainSimulation) {
  for (const std::string fabric : {"star", "fat-tree:levels=3,oversubscription=2,leaf=rail"}) {
    SCOPED_TRACE(fabric);
    PlatformOptions options;
    options.soc = "910A";
    options.servers = 8;
    options.fabric = parse_fabric(fabric);
    expect_agreement_on_generated(options, 64);
  }
}

TEST(GeneratedPlatforms, BothNetworksAgreeBetweenSuperPods) {
  PlatformOptions options;
  options.soc = "910_9391";
  options.servers = 3;
  options.npus_per_server = 8;
  options.super_pods = {2, 1};
  expect_agreement_on_generated(options, 24);
}

}  // namespace
}  // namespace hcclsim::sim
