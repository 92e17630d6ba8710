#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"
#include "sim/faults/fault.hpp"

/// Faults on the links and NPUs of a loaded cluster. All of them are known beforehand, so whoever runs ahead of the
/// simulated clock can ask what will be at any date. Of faults of one kind that overlap on a link or NPU the one that
/// begins last counts, of those that begin together the one that is given last; an NPU stands still as long as any
/// fault holds it. Several jobs on one platform have all their faults in common, and each its own numbers of the NPUs.
namespace hcclsim::sim {

/// The faults that are given for one of several jobs.
struct JobFaults {
  const Cluster& cluster;  ///< with the job's numbers of the NPUs
  std::vector<Fault> faults;
  Rank ranks = 0;  ///< of the job, the first ones of the cluster
};

class FaultPlan {
 public:
  static constexpr Seconds never = std::numeric_limits<Seconds>::infinity();

  /// `ranks` take part, the first ones of the cluster; or, if there are any, those `among` them. Throws
  /// Error(bad_input, "fault") for links that are not there, NPUs that do not take part, and links that a fault would
  /// make faster than a platform file may. The cluster must outlive it.
  FaultPlan(const Cluster& cluster, std::vector<Fault> faults, Rank ranks, std::span<const Rank> among = {});

  /// The same; null if there are no faults.
  [[nodiscard]] static std::shared_ptr<const FaultPlan> of(const Cluster& cluster, const std::vector<Fault>& faults,
                                                           Rank ranks, std::span<const Rank> among = {}) {
    return faults.empty() ? nullptr : std::make_shared<const FaultPlan>(cluster, faults, ranks, among);
  }
  /// The faults of all these jobs together, as each of them sees them: its plan has its numbers of the NPUs. Ranks in a
  /// fault are those of the job that it is given for. Nulls if there are no faults. Throws as above.
  [[nodiscard]] static std::vector<std::shared_ptr<const FaultPlan>> of_jobs(std::span<const JobFaults> jobs);

  [[nodiscard]] std::span<const Fault> faults() const { return faults_; }
  /// The links that one of them is about.
  [[nodiscard]] std::vector<LinkId> links_of(const Fault& fault) const;
  /// Whether something happens to the link, or to the NPU, at any date.
  [[nodiscard]] bool touches(LinkId link) const { return at_link_[link] != none; }
  /// The same of all links.
  [[nodiscard]] std::vector<bool> touched_links() const;
  [[nodiscard]] bool touches_npu(Rank rank) const {
    return rank < cluster_->size() && touches_host(cluster_->npu(rank).host);
  }
  /// The last date at which something begins or ends.
  [[nodiscard]] Seconds last_change() const;

  // Transfers
  /// Dates at which bandwidths change, or NPUs stop or go on; ascending.
  [[nodiscard]] const std::vector<Seconds>& dates_of_transfers() const { return dates_of_transfers_; }
  /// Links whose bandwidth changes.
  [[nodiscard]] const std::vector<LinkId>& changing_links() const { return changing_links_; }
  /// Factor on the link's capacity at a date; 0: it is cut.
  [[nodiscard]] double bandwidth_factor(LinkId link, Seconds date) const;
  /// How long the link would take, without faults, for what it can carry between two dates.
  [[nodiscard]] Seconds time_at_full_bandwidth(LinkId link, Seconds from, Seconds to) const;
  /// The largest of all dates, at least 1.
  [[nodiscard]] double largest_factor(LinkId link) const;
  /// Whether the rates of transfers over the route depend on the date.
  [[nodiscard]] bool changes(const Route& route) const;
  /// Whether transfers stand still at a date: a link is cut, or an NPU at an end is stopped.
  [[nodiscard]] bool stops(const Route& route, Seconds date) const;
  /// Latency of a transfer that begins at a date.
  [[nodiscard]] Seconds latency(const Route& route, Seconds date) const;
  /// When a notify that is sent at a date gets through: at once, or when nothing stops the route any more.
  [[nodiscard]] Seconds passes(const Route& route, Seconds date) const;

  // NPUs
  /// When an NPU that has a task for so long from `start` on is done with it; never if it is lost before.
  [[nodiscard]] Seconds end_of_task(Rank rank, Seconds start, Seconds duration) const;
  /// The same of a kernel, whose duration is that at full speed.
  [[nodiscard]] Seconds end_of_kernel(Rank rank, Seconds start, Seconds duration) const;
  /// When an NPU that is late, and its host, begin; 0 if it is not late.
  [[nodiscard]] Seconds begins(Rank rank) const;
  /// When an NPU that is free from `date` on begins something.
  [[nodiscard]] Seconds resumes(Rank rank, Seconds date) const { return end_of_task(rank, date, 0); }
  /// Whether it stands still at a date.
  [[nodiscard]] bool stopped(Rank rank, Seconds date) const { return is_stopped(cluster_->npu(rank).host, date); }

  // For people
  /// What stops, or slows down, transfers over the route, or the NPU, at a date: "link hccs-0-1_UP is cut (…)"; empty
  /// if nothing does.
  [[nodiscard]] std::string cause(const Route& route, Seconds date) const;
  [[nodiscard]] std::string cause(Rank rank, Seconds date) const;
  /// The same of what was over last before that date: "NPU 3 was paused until 0.02 s (…)".
  [[nodiscard]] std::string cause_before(const Route& route, Seconds date) const;
  [[nodiscard]] std::string cause_before(Rank rank, Seconds date) const;

 private:
  static constexpr std::uint32_t none = 0xffffffff;

  /// Which fault counts from a date on.
  struct Step {
    Seconds from = 0;
    std::uint32_t fault = none;
  };
  using Timeline = std::vector<Step>;  // begins at date 0
  /// What happens to all links, or NPUs, with the same faults. Timelines of kinds that none of them has are empty.
  struct Course {
    std::vector<std::uint32_t> faults;
    Timeline bandwidth{};
    Timeline latency{};
    Timeline speed{};
    Timeline stop{};
  };

  explicit FaultPlan(const Cluster& cluster);
  /// Faults of NPUs that are `among` these, ascending.
  void add(const Cluster& cluster, std::span<const Fault> faults, std::span<const Rank> among);
  /// To be called when all are added.
  void make_courses();

  [[nodiscard]] bool touches_host(HostId host) const { return host < at_host_.size() && at_host_[host] != none; }
  void touch(std::uint32_t& course, std::uint32_t fault);
  template <typename Counts>
  [[nodiscard]] Timeline timeline(const std::vector<std::uint32_t>& among, const Counts& counts) const;
  void make_timelines(Course& course) const;
  [[nodiscard]] const Fault* at(const Timeline& timeline, Seconds date) const;
  /// The fault among those of a kind that `counts` that was over last before a date; null if there is none.
  template <typename Counts>
  [[nodiscard]] const Fault* last_over(const Course* course, Seconds date, const Counts& counts) const;
  [[nodiscard]] static Seconds next_change(const Timeline& timeline, Seconds date);
  /// Null: nothing happens to it.
  [[nodiscard]] const Course* course_of(LinkId link) const;
  [[nodiscard]] const Course* course_of_npu(Rank rank) const { return course_of_host(cluster_->npu(rank).host); }
  [[nodiscard]] const Course* course_of_host(HostId host) const;
  [[nodiscard]] double factor(LinkId link, const Fault& fault) const {
    return fault.relative ? fault.value : fault.value / cluster_->links()[link].bandwidth;
  }
  [[nodiscard]] bool is_cut(const Route& route, Seconds date) const;
  [[nodiscard]] bool is_stopped(HostId host, Seconds date) const;
  /// A kernel's work is slowed down by the NPU's speed.
  [[nodiscard]] Seconds end_of_work(Rank rank, Seconds start, Seconds work, bool kernel) const;

  const Cluster* cluster_;
  std::vector<Fault> faults_;
  std::vector<std::uint32_t> at_link_;  // of each link: its course, or none
  std::vector<std::uint32_t> at_host_;  // of each host of an NPU
  std::vector<Course> courses_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> courses_with_;  // course, one more fault -> course
  std::vector<LinkId> changing_links_;
  std::vector<Seconds> dates_of_transfers_;
};

}  // namespace hcclsim::sim
