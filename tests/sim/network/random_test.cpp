#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>
#include <tuple>

#include "sim/platform/check.hpp"
#include "sim/platform/generate.hpp"
#include "tests/sim/random_zones.hpp"
#include "tests/sim/simulate.hpp"

// Random traffic on platforms of every kind: simgrid = fluid, and both = a third simulation that is as plain as can be.
namespace hcclsim::sim {
namespace {

/// What the plain simulation knows of a platform: capacities, and the ways of the jobs.
struct Way {
  std::vector<LinkId> links;
  Seconds latency = 0;
  double factor = 1;
};

struct Plain {
  std::vector<double> capacity;
  std::vector<bool> shared;
  std::vector<Way> ways;  // by job
};

/// Rates by raising all of them together until something is full, from scratch.
std::vector<double> max_min_rates(const Plain& plain, const std::vector<bool>& flowing) {
  const std::size_t jobs = plain.ways.size();
  std::vector<double> rate(jobs, 0);
  std::vector<bool> open = flowing;
  while (std::find(open.begin(), open.end(), true) != open.end()) {
    std::vector<double> used(plain.capacity.size(), 0);
    std::vector<int> raised(plain.capacity.size(), 0);
    for (std::size_t i = 0; i < jobs; ++i) {
      if (!flowing[i]) continue;
      for (const LinkId link : plain.ways[i].links) {
        if (open[i]) ++raised[link];
        if (!open[i]) used[link] += rate[i];
      }
    }
    const auto level_of = [&](LinkId link) {
      if (!plain.shared[link]) return plain.capacity[link];
      return (plain.capacity[link] - used[link]) / raised[link];
    };
    double level = std::numeric_limits<double>::infinity();
    for (LinkId link = 0; link < plain.capacity.size(); ++link) {
      if (raised[link] > 0) level = std::min(level, level_of(link));
    }
    std::vector<bool> full(plain.capacity.size(), false);
    for (LinkId link = 0; link < plain.capacity.size(); ++link) {
      full[link] = raised[link] > 0 && level_of(link) <= level * (1 + 1e-13);
    }
    for (std::size_t i = 0; i < jobs; ++i) {
      if (!open[i]) continue;
      rate[i] = level;
      for (const LinkId link : plain.ways[i].links) {
        if (full[link]) open[i] = false;
      }
    }
  }
  return rate;
}

std::vector<Seconds> plain_simulation(const Plain& plain, const std::vector<Job>& jobs) {
  std::vector<Seconds> end(jobs.size(), -1);
  std::vector<double> left;
  std::vector<bool> flowing(jobs.size(), false);
  std::vector<Seconds> start;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    left.push_back(static_cast<double>(jobs[i].bytes) * plain.ways[i].factor);
    start.push_back(jobs[i].date + plain.ways[i].latency);
  }
  std::vector<bool> begun(jobs.size(), false);
  Seconds now = 0;
  while (true) {
    const std::vector<double> rate = max_min_rates(plain, flowing);
    Seconds next = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (!begun[i]) next = std::min(next, start[i]);
      if (flowing[i]) next = std::min(next, now + left[i] / rate[i]);
    }
    if (!std::isfinite(next)) return end;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (!flowing[i]) continue;
      left[i] -= rate[i] * (next - now);
      if (left[i] > rate[i] * 1e-15) continue;
      flowing[i] = false;
      end[i] = next;
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (begun[i] || start[i] > next) continue;
      begun[i] = true;
      flowing[i] = left[i] > 0;
      if (!flowing[i]) end[i] = next;
    }
    now = next;
  }
}

Plain plain_of(const std::string& path, const std::vector<Job>& jobs, const Prepare& prepare) {
  Plain plain;
  const auto numbers = numbers_of_child([&] {
    Cluster cluster(path);
    prepare(cluster);
    std::vector<double> all{static_cast<double>(cluster.links().size())};
    for (LinkId link = 0; link < cluster.links().size(); ++link) {
      all.push_back(cluster.capacity(link));
      all.push_back(cluster.links()[link].shared ? 1 : 0);
    }
    for (const Job& job : jobs) {
      const Route& route = cluster.route(job.from, job.to);
      all.insert(all.end(), {route.latency, job.access == Access::write ? route.write_factor : route.read_factor,
                             static_cast<double>(route.links.size())});
      all.insert(all.end(), route.links.begin(), route.links.end());
    }
    return all;
  });
  auto next = numbers.begin();
  for (auto links = static_cast<int>(*next++); links > 0; --links) {
    plain.capacity.push_back(*next++);
    plain.shared.push_back(*next++ == 1);
  }
  while (next != numbers.end()) {
    Way way;
    way.latency = *next++;
    way.factor = *next++;
    for (auto links = static_cast<int>(*next++); links > 0; --links) way.links.push_back(static_cast<LinkId>(*next++));
    plain.ways.push_back(way);
  }
  return plain;
}

std::vector<Job> random_jobs(std::uint64_t seed, std::size_t count, Rank size) {
  std::mt19937_64 random(seed);
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < count; ++i) {
    const auto from = static_cast<Rank>(random() % size);
    const auto to = static_cast<Rank>((from + 1 + random() % (size - 1)) % size);
    // Some sizes and dates coincide, as they do in collectives; some transfers are empty.
    const Bytes bytes = random() % 16 == 0 ? 0 : random() % 2 == 0 ? Bytes{250000} : random() % 5000000;
    const Seconds date = static_cast<double>(random() % 2 == 0 ? random() % 8 * 50000 : random() % 400000) * 1e-9;
    jobs.push_back({from, to, random() % 2 == 0 ? Access::write : Access::read, bytes, date});
  }
  return jobs;
}

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

Rank size_of_cluster(const std::string& path) {
  const auto sizes = numbers_of_child([&] { return std::vector<double>{static_cast<double>(Cluster(path).size())}; });
  return static_cast<Rank>(sizes.front());
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
