#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/sim/simulate.hpp"

/// A third simulation of transfers beside the two networks, as plain as can be: all rates from scratch at every date.
namespace hcclsim::sim {

/// What the plain simulation knows of a platform: capacities, and the ways of the jobs.
struct Way {
  std::vector<LinkId> links;
  Seconds latency = 0;
  double factor = 1;
};

/// From a date to another, a link has this part of its capacity, or an NPU does nothing.
struct PlainFault {
  LinkId link = 0;
  Rank npu = 0;
  bool of_link = true;
  double factor = 0;
  Seconds from = 0;
  Seconds to = std::numeric_limits<double>::infinity();
};

struct Plain {
  std::vector<double> capacity;
  std::vector<bool> shared;
  std::vector<Way> ways;             // by job
  std::vector<PlainFault> faults{};  // none overlap on a link
};

/// Rates by raising all of them together until something is full, from scratch.
inline std::vector<double> max_min_rates(const Plain& plain, const std::vector<bool>& flowing) {
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

/// The platform as it is at a date.
inline Plain plain_at(const Plain& plain, Seconds date) {
  Plain now = plain;
  for (const PlainFault& fault : plain.faults) {
    if (fault.of_link && fault.from <= date && date < fault.to) now.capacity[fault.link] *= fault.factor;
  }
  return now;
}

/// Those of the jobs that flow at a date: nothing on their way is cut, and neither of their NPUs stands still.
inline std::vector<bool> moving(const Plain& now, const std::vector<Job>& jobs, std::vector<bool> flowing,
                                Seconds date) {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (const LinkId link : now.ways[i].links) flowing[i] = flowing[i] && now.capacity[link] > 0;
    for (const PlainFault& fault : now.faults) {
      const bool at_an_end = !fault.of_link && (fault.npu == jobs[i].from || fault.npu == jobs[i].to);
      if (at_an_end && fault.from <= date && date < fault.to) flowing[i] = false;
    }
  }
  return flowing;
}

inline std::vector<Seconds> plain_simulation(const Plain& plain, const std::vector<Job>& jobs) {
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
    const Plain at_now = plain_at(plain, now);
    const std::vector<bool> moves = moving(at_now, jobs, flowing, now);
    const std::vector<double> rate = max_min_rates(at_now, moves);
    Seconds next = std::numeric_limits<double>::infinity();
    for (const PlainFault& fault : plain.faults) {
      if (fault.from > now) next = std::min(next, fault.from);
      if (fault.to > now) next = std::min(next, fault.to);
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (!begun[i]) next = std::min(next, start[i]);
      if (moves[i]) next = std::min(next, now + left[i] / rate[i]);
    }
    if (!std::isfinite(next)) return end;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (!moves[i]) continue;
      left[i] -= rate[i] * (next - now);
      if (left[i] > rate[i] * 1e-15 * (1 + next)) continue;  // less moves no date
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

inline Plain plain_of(const std::string& path, const std::vector<Job>& jobs, const Prepare& prepare) {
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

inline std::vector<Job> random_jobs(std::uint64_t seed, std::size_t count, Rank size) {
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

inline Rank size_of_cluster(const std::string& path) {
  const auto sizes = numbers_of_child([&] { return std::vector<double>{static_cast<double>(Cluster(path).size())}; });
  return static_cast<Rank>(sizes.front());
}

}  // namespace hcclsim::sim
