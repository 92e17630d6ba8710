#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/task_cost.hpp"
#include "models/program.hpp"
#include "sim/cluster.hpp"

/// What a simulated time rests on without being known exactly: speeds of links (the ranges of the platform file), times
/// of kernels, what issuing tasks costs the host, and what vector cores take.
namespace hcclsim::study {

/// By this part kernels may be faster than the cost model says (other batches, clocks and software than those that it
/// was fitted to); how much slower depends on what was fitted (device::Soc).
inline constexpr double faster_kernels = 0.10;
/// Costs of issue are known from one public record of A2 alone; other hosts and frameworks differ by about this part.
inline constexpr double host_range = 0.25;
/// Of vector cores no measurement is published: half as much to half as much again.
inline constexpr double vector_core_range = 0.5;

/// Nor of what it takes a host to issue a kernel: from what the modelling tool adds to a vector operator, 2 us, to what
/// it adds to communication, 10 us, with assumed_host_launch in between.
inline constexpr double faster_launches = 0.6;
inline constexpr double slower_launches = 1;

struct Assumption {
  enum class Subject : std::uint8_t { links, kernels, host, vector_cores, launches };
  Subject subject = Subject::links;
  sim::LinkKind kind = sim::LinkKind::other;  ///< of links
  std::string text{};                         ///< "HCCS 10..19.3 GB/s", "kernel times -10..+10 %"
  // Of all but links: parts by which times may be shorter and longer.
  double faster = 0;
  double slower = 0;

  bool operator==(const Assumption&) const = default;
};

/// The end of the ranges that is taken: that with longer times, or that with shorter ones.
enum class RangeEnd : std::uint8_t { slow, fast };

/// The assumptions of a simulation among these ranks: of all kinds of links on their ways that have a range.
struct AssumedSubjects {
  /// Times of kernels come from the cost model: the part by which they may be longer.
  std::optional<double> slower_kernels{};
  bool host = false;          ///< hosts issue each collective
  bool vector_cores = false;  ///< vector cores carry collectives out
  bool launches = false;      ///< hosts issue each kernel, in a time that nobody gave
};
[[nodiscard]] std::vector<Assumption> assumptions_of(sim::Cluster& cluster, std::span<const Rank> ranks,
                                                     const AssumedSubjects& subjects);

/// Moves links to the end of their ranges, all others have their used values.
void assume(sim::Cluster& cluster, std::span<const Assumption> assumptions, RangeEnd end);
/// The same of the costs of issue and of vector cores, of what it takes to launch a kernel, and of a program's kernels.
[[nodiscard]] device::TaskCosts assumed(device::TaskCosts costs, std::span<const Assumption> assumptions, RangeEnd end);
[[nodiscard]] std::optional<Seconds> assumed_launch(std::optional<Seconds> launch,
                                                    std::span<const Assumption> assumptions, RangeEnd end);
[[nodiscard]] models::Program assumed(models::Program program, std::span<const Assumption> assumptions, RangeEnd end);

/// A time with one assumption at its ends. What is faster may end later: streams that wait for each other meet in
/// another order.
struct AssumptionEffect {
  std::string assumption;
  Seconds fast = 0;
  Seconds slow = 0;

  /// 0 where the ends differ by rounding alone.
  [[nodiscard]] Seconds span() const;
};

/// The least and the largest of the times with all assumptions as they are used, and at either end.
struct Uncertainty {
  Seconds fastest = 0;
  Seconds slowest = 0;
  std::vector<AssumptionEffect> effects{};  ///< one assumption at a time, the largest span first

  /// Takes the time as it is used into the range.
  void include(Seconds time) {
    fastest = std::min(fastest, time);
    slowest = std::max(slowest, time);
  }
};

/// The range between the times at the two ends.
[[nodiscard]] inline Uncertainty range_between(Seconds one, Seconds other) {
  return {std::min(one, other), std::max(one, other)};
}

/// Puts the assumption with the largest span first.
void sort_effects(Uncertainty& uncertainty);

}  // namespace hcclsim::study
