#pragma once

#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "sim/faults/fault_plan.hpp"
#include "sim/network/network.hpp"

/// Helpers of the tests of sim/: every simulation runs in a child process, as SimGrid holds one per process.
namespace hcclsim::sim {

/// Path of a platform file in tests/data/platforms.
inline std::string platform(const std::string& name) { return fmt::format("{}/platforms/{}", HCCLSIM_TEST_DATA, name); }

/// Runs `work` in a child and returns the numbers that it returned, to the last bit.
inline std::vector<double> numbers_of_child(const std::function<std::vector<double>()>& work) {
  std::istringstream text(run_in_child([&] {
    std::string result;
    for (const double number : work()) result += fmt::format("{:a} ", number);
    return result;
  }));
  std::vector<double> numbers;
  for (std::string word; text >> word;) numbers.push_back(std::stod(word));
  return numbers;
}

/// A transfer to simulate.
struct Job {
  Rank from = 0;
  Rank to = 0;
  Access access = Access::write;
  Bytes bytes = 0;
  Seconds date = 0;
};

/// Notes when each job is complete.
class Completions final : public EventHandler {
 public:
  Completions(EventLoop& loop, std::size_t jobs) : dates(jobs, -1), loop_(loop) {}
  void on_event(std::uint64_t job) override { dates.at(job) = loop_.now(); }

  std::vector<Seconds> dates;

 private:
  EventLoop& loop_;
};

/// What is done to a cluster before its routes are asked for.
using Prepare = std::function<void(Cluster&)>;
/// The same values for links of every kind.
inline std::map<LinkKind, LinkValues> everywhere(LinkValues values) {
  std::map<LinkKind, LinkValues> all;
  for (const LinkKind kind : {LinkKind::hccs, LinkKind::pcie, LinkKind::sio, LinkKind::ub, LinkKind::roce}) {
    all[kind] = values;
  }
  return all;
}
inline Prepare use(LinkValues values) {
  return [values](Cluster& cluster) { cluster.use(everywhere(values)); };
}

/// Runs all jobs in one simulation; returns the date at which each was complete, −1 if it never was.
inline std::vector<Seconds> simulate(const std::string& path, NetworkKind kind, const std::vector<Job>& jobs,
                                     const Prepare& prepare = use(LinkValues::used),
                                     const std::vector<std::string>& faults = {}) {
  return numbers_of_child([&] {
    Cluster cluster(path);
    prepare(cluster);
    EventLoop loop;
    std::vector<Fault> parsed;
    for (const std::string& fault : faults) parsed.push_back(parse_fault(fault));
    const FaultPlan plan(cluster, parsed, cluster.size());
    const auto network = make_network(kind, cluster, loop, faults.empty() ? nullptr : &plan);
    Completions completions(loop, jobs.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const Job& job = jobs[i];
      network->transfer(cluster.route(job.from, job.to), job.access, job.bytes, job.date, {job.from, 0}, completions,
                        i);
    }
    loop.run();
    return completions.dates;
  });
}

}  // namespace hcclsim::sim
