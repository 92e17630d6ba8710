#include "sim/faults/fault_plan.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"

namespace hcclsim::sim {
namespace {

bool stops_an_npu(FaultKind kind) {
  return kind == FaultKind::paused || kind == FaultKind::lost || kind == FaultKind::late;
}

/// The name of a link in the file, where a SPLITDUPLEX link is one.
std::string_view name_in_file(std::string_view name) {
  for (const std::string_view direction : {"_UP", "_DOWN"}) {
    if (name.ends_with(direction)) return name.substr(0, name.size() - direction.size());
  }
  return name;
}

bool fits(const std::string& pattern, std::string_view name) {
  return ::fnmatch(pattern.c_str(), std::string(name).c_str(), 0) == 0;
}

[[noreturn]] void refuse_pattern(const Fault& fault, std::string_view what, const std::string& platform,
                                 const std::vector<std::string>& names) {
  const std::string there = names.empty()
                                ? "it has none"
                                : fmt::format("it has {}, from {} to {}", names.size(), names.front(), names.back());
  bad_input("fault", "'{}': no {} of {} is named '{}'{}; {}", fault.text, what, platform, fault.pattern,
            did_you_mean(fault.pattern, names), there);
}

/// "0-3,7"; nothing if it is not made of numbers.
std::optional<std::vector<Rank>> ranks_in(const Fault& fault, Rank ranks) {
  if (fault.pattern.find_first_not_of("0123456789,- ") != std::string::npos) return std::nullopt;
  std::vector<Rank> all;
  for (const std::string_view part : split_trimmed(fault.pattern, ',')) {
    const std::size_t dash = part.find('-');
    const std::optional<Rank> first = parse_number<Rank>(trimmed(part.substr(0, dash)));
    const std::optional<Rank> last =
        dash == std::string_view::npos ? first : parse_number<Rank>(trimmed(part.substr(dash + 1)));
    if (!first.has_value() || !last.has_value() || *last < *first) {
      bad_input("fault", "'{}': '{}' is neither a rank nor a range of ranks, such as 0-3,7", fault.text, part);
    }
    if (*last >= ranks) {
      bad_input("fault", "'{}': NPU {} does not take part; accepted: 0 to {}", fault.text, *last, ranks - 1);
    }
    for (Rank rank = *first; rank <= *last; ++rank) all.push_back(rank);
  }
  return all;
}

std::string_view words_of(FaultKind kind) {
  return kind == FaultKind::lost ? "is lost" : kind == FaultKind::paused ? "is paused" : "has not begun";
}

}  // namespace

FaultPlan::FaultPlan(const Cluster& cluster, std::vector<Fault> faults, Rank ranks)
    : cluster_(cluster), faults_(std::move(faults)), at_link_(cluster.links().size(), none), at_npu_(ranks, none) {
  // Elements to which the same faults happen share what comes of them.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> with;
  const auto touch = [&](std::uint32_t& course, std::uint32_t fault) {
    const auto [next, is_new] = with.try_emplace({course, fault}, static_cast<std::uint32_t>(courses_.size()));
    if (is_new) {
      std::vector<std::uint32_t> all = course == none ? std::vector<std::uint32_t>() : courses_[course].faults;
      all.push_back(fault);
      courses_.push_back({.faults = std::move(all)});
    }
    course = next->second;
  };
  for (std::uint32_t number = 0; number < faults_.size(); ++number) {
    const Fault& fault = faults_[number];
    if (fault.of_links()) {
      if (cluster.routing().kind == RoutingKind::ideal) {
        bad_input("fault",
                  "'{}': routing ideal takes links side by side as one, which none of them can fail by itself; "
                  "give dmodk, ecmp or file",
                  fault.text);
      }
      for (const LinkId link : links_of(fault)) touch(at_link_[link], number);
    } else {
      for (const Rank rank : npus_of(fault, ranks)) touch(at_npu_[rank], number);
    }
    if (fault.kind == FaultKind::latency || fault.kind == FaultKind::speed) continue;
    dates_of_transfers_.push_back(fault.from);
    if (fault.to < never) dates_of_transfers_.push_back(fault.to);
  }
  std::ranges::sort(dates_of_transfers_);
  const auto same = std::unique(dates_of_transfers_.begin(), dates_of_transfers_.end());
  dates_of_transfers_.erase(same, dates_of_transfers_.end());
  for (Course& course : courses_) make_timelines(course);
  for (LinkId link = 0; link < at_link_.size(); ++link) {
    if (touches(link) && !courses_[at_link_[link]].bandwidth.empty()) changing_links_.push_back(link);
  }
}

std::vector<LinkId> FaultPlan::links_of(const Fault& fault) const {
  std::vector<LinkId> found;
  const std::span<const Link> links = cluster_.links();
  for (LinkId link = 0; link < links.size(); ++link) {
    const std::string& name = links[link].name;
    if (fits(fault.pattern, name) || fits(fault.pattern, name_in_file(name))) found.push_back(link);
  }
  if (!found.empty()) return found;
  std::vector<std::string> names;
  for (const Link& link : links) {
    const std::string_view name = name_in_file(link.name);
    if (names.empty() || names.back() != name) names.emplace_back(name);
  }
  refuse_pattern(fault, "link", cluster_.path(), names);
}

std::vector<Rank> FaultPlan::npus_of(const Fault& fault, Rank ranks) const {
  if (std::optional<std::vector<Rank>> given = ranks_in(fault, ranks)) return *std::move(given);
  std::vector<Rank> found;
  std::vector<std::string> names;
  for (Rank rank = 0; rank < ranks; ++rank) {
    names.push_back(cluster_.npu(rank).name);
    if (fits(fault.pattern, names.back())) found.push_back(rank);
  }
  if (found.empty()) refuse_pattern(fault, "NPU that takes part", cluster_.path(), names);
  return found;
}

/// Empty if none of the faults is of a kind that `counts`.
template <typename Counts>
FaultPlan::Timeline FaultPlan::timeline(const std::vector<std::uint32_t>& among, const Counts& counts) const {
  std::vector<std::uint32_t> counted;
  std::vector<Seconds> dates{0};
  for (const std::uint32_t number : among) {
    const Fault& fault = faults_[number];
    if (!counts(fault.kind)) continue;
    counted.push_back(number);
    dates.push_back(fault.from);
    if (fault.to < never) dates.push_back(fault.to);
  }
  Timeline timeline;
  if (counted.empty()) return timeline;
  std::ranges::sort(dates);
  for (const Seconds date : dates) {
    Step step{.from = date};
    for (const std::uint32_t number : counted) {
      const Fault& fault = faults_[number];
      const bool holds = fault.from <= date && date < fault.to;
      if (holds && (step.fault == none || fault.from >= faults_[step.fault].from)) step.fault = number;
    }
    if (timeline.empty() || timeline.back().fault != step.fault) timeline.push_back(step);
  }
  return timeline;
}

void FaultPlan::make_timelines(Course& course) const {
  const auto is = [](FaultKind kind) { return [kind](FaultKind other) { return kind == other; }; };
  course.bandwidth = timeline(course.faults, is(FaultKind::bandwidth));
  course.latency = timeline(course.faults, is(FaultKind::latency));
  course.speed = timeline(course.faults, is(FaultKind::speed));
  course.stop = timeline(course.faults, stops_an_npu);
}

/// The fault that counts at a date; null if none does.
const Fault* FaultPlan::at(const Timeline& timeline, Seconds date) const {
  const auto next = std::ranges::upper_bound(timeline, date, {}, &Step::from);
  if (next == timeline.begin()) return nullptr;
  const std::uint32_t fault = std::prev(next)->fault;
  return fault == none ? nullptr : &faults_[fault];
}

Seconds FaultPlan::next_change(const Timeline& timeline, Seconds date) {
  const auto next = std::ranges::upper_bound(timeline, date, {}, &Step::from);
  return next == timeline.end() ? never : next->from;
}

Seconds FaultPlan::last_change() const {
  Seconds last = 0;
  for (const Fault& fault : faults_) last = std::max({last, fault.from, fault.to < never ? fault.to : 0});
  return last;
}

double FaultPlan::bandwidth_factor(LinkId link, Seconds date) const {
  const Course* course = course_of(link);
  const Fault* fault = course == nullptr ? nullptr : at(course->bandwidth, date);
  return fault == nullptr ? 1 : factor(link, *fault);
}

double FaultPlan::largest_factor(LinkId link) const {
  double largest = 1;
  const Course* course = course_of(link);
  for (std::size_t i = 0; course != nullptr && i < course->bandwidth.size(); ++i) {
    const std::uint32_t fault = course->bandwidth[i].fault;
    if (fault != none) largest = std::max(largest, factor(link, faults_[fault]));
  }
  return largest;
}

bool FaultPlan::changes(const Route& route) const {
  const auto changing = [this](LinkId link) { return touches(link) && !course_of(link)->bandwidth.empty(); };
  const auto stopping = [this](Rank rank) { return touches_npu(rank) && !course_of_npu(rank)->stop.empty(); };
  return std::ranges::any_of(route.links, changing) || stopping(route.source) || stopping(route.destination);
}

bool FaultPlan::stops(const Route& route, Seconds date) const {
  return is_stopped(route.source, date) || is_stopped(route.destination, date) || is_cut(route, date);
}

bool FaultPlan::is_cut(const Route& route, Seconds date) const {
  return std::ranges::any_of(route.links, [&](LinkId link) { return bandwidth_factor(link, date) == 0; });
}

bool FaultPlan::is_stopped(Rank rank, Seconds date) const {
  const Course* course = course_of_npu(rank);
  return course != nullptr && at(course->stop, date) != nullptr;
}

Seconds FaultPlan::latency(const Route& route, Seconds date) const {
  Seconds latency = route.latency;
  for (const LinkId link : route.links) {
    const Course* course = course_of(link);
    const Fault* fault = course == nullptr ? nullptr : at(course->latency, date);
    if (fault == nullptr) continue;
    const Seconds before = cluster_.links()[link].latency;
    latency += (fault->relative ? fault->value * before : fault->value) - before;
  }
  return std::max(latency, 0.0);
}

Seconds FaultPlan::passes(const Route& route, Seconds date) const {
  while (date < never && is_cut(route, date)) {
    Seconds next = never;
    for (const LinkId link : route.links) {
      if (const Course* course = course_of(link)) next = std::min(next, next_change(course->bandwidth, date));
    }
    date = next;
  }
  return date;
}

Seconds FaultPlan::end_of_task(Rank rank, Seconds start, Seconds duration) const {
  return end_of_work(rank, start, duration, false);
}

Seconds FaultPlan::end_of_kernel(Rank rank, Seconds start, Seconds duration) const {
  return end_of_work(rank, start, duration, true);
}

Seconds FaultPlan::end_of_work(Rank rank, Seconds start, Seconds work, bool kernel) const {
  const Course* course = course_of_npu(rank);
  if (course == nullptr) return start + work;
  Seconds date = start;
  while (true) {
    const bool stopped = at(course->stop, date) != nullptr;
    const Fault* slow = kernel ? at(course->speed, date) : nullptr;
    const double speed = slow == nullptr ? 1 : slow->value;
    const Seconds next = std::min(next_change(course->stop, date), kernel ? next_change(course->speed, date) : never);
    if (!stopped && date + work / speed <= next) return date + work / speed;
    if (next == never) return never;
    if (!stopped) work -= (next - date) * speed;
    date = next;
  }
}

std::string FaultPlan::cause(const Route& route, Seconds date) const {
  std::string slower;
  for (const LinkId link : route.links) {
    const Course* course = course_of(link);
    const Fault* fault = course == nullptr ? nullptr : at(course->bandwidth, date);
    if (fault == nullptr) continue;
    const double factor = bandwidth_factor(link, date);
    const std::string& name = cluster_.links()[link].name;
    if (factor == 0) return fmt::format("link {} is cut ({})", name, fault->text);
    slower = fmt::format("link {} has {:.4g} % of its bandwidth ({})", name, factor * 100, fault->text);
  }
  for (const Rank end : {route.source, route.destination}) {
    if (is_stopped(end, date)) return cause(end, date);
  }
  return slower;
}

std::string FaultPlan::cause(Rank rank, Seconds date) const {
  const Course* course = course_of_npu(rank);
  if (course == nullptr) return {};
  if (const Fault* fault = at(course->stop, date)) {
    return fmt::format("NPU {} {} ({})", rank, words_of(fault->kind), fault->text);
  }
  if (const Fault* fault = at(course->speed, date)) {
    return fmt::format("NPU {} computes {:.4g} times as fast ({})", rank, fault->value, fault->text);
  }
  return {};
}

const FaultPlan::Course* FaultPlan::course_of(LinkId link) const {
  return touches(link) ? &courses_[at_link_[link]] : nullptr;
}

const FaultPlan::Course* FaultPlan::course_of_npu(Rank rank) const {
  return touches_npu(rank) ? &courses_[at_npu_[rank]] : nullptr;
}

}  // namespace hcclsim::sim
