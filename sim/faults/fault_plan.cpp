#include "sim/faults/fault_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
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
  bad_input("fault", "--fault: '{}': no {} of {} is named '{}'{}; {}", fault.text, what, platform, fault.pattern,
            did_you_mean(fault.pattern, names), there);
}

/// "0 to 7", or "2, 3, 6".
std::string accepted(std::span<const Rank> ranks) {
  const bool all = ranks.back() - ranks.front() + 1 == ranks.size();
  return all ? fmt::format("{} to {}", ranks.front(), ranks.back()) : fmt::format("{}", fmt::join(ranks, ", "));
}

/// "0-3,7"; nothing if it is not made of numbers. `ranks`, ascending, take part.
std::optional<std::vector<Rank>> ranks_in(const Fault& fault, std::span<const Rank> ranks) {
  if (fault.pattern.find_first_not_of("0123456789,- ") != std::string::npos) return std::nullopt;
  std::vector<Rank> all;
  for (const std::string_view part : split_trimmed(fault.pattern, ',')) {
    const std::size_t dash = part.find('-');
    const std::optional<Rank> first = parse_number<Rank>(trimmed(part.substr(0, dash)));
    const std::optional<Rank> last =
        dash == std::string_view::npos ? first : parse_number<Rank>(trimmed(part.substr(dash + 1)));
    if (!first.has_value() || !last.has_value() || *last < *first) {
      bad_input("fault", "--fault: '{}': '{}' is neither a rank nor a range of ranks, such as 0-3,7", fault.text, part);
    }
    for (Rank rank = *first; rank <= *last; ++rank) {
      if (std::ranges::binary_search(ranks, rank)) {
        all.push_back(rank);
        continue;
      }
      bad_input("fault", "--fault: '{}': NPU {} does not take part; accepted: {}, or a pattern of host names",
                fault.text, rank, accepted(ranks));
    }
  }
  return all;
}

std::string_view words_of(FaultKind kind) {
  return kind == FaultKind::lost ? "is lost" : kind == FaultKind::paused ? "is paused" : "has not begun";
}

/// `ranks`, ascending, take part.
std::vector<Rank> npus_of(const Cluster& cluster, const Fault& fault, std::span<const Rank> ranks) {
  if (std::optional<std::vector<Rank>> given = ranks_in(fault, ranks)) return *std::move(given);
  std::vector<Rank> found;
  std::vector<std::string> names;
  for (const Rank rank : ranks) {
    names.push_back(cluster.npu(rank).name);
    if (fits(fault.pattern, names.back())) found.push_back(rank);
  }
  if (found.empty()) refuse_pattern(fault, "NPU that takes part", cluster.path(), names);
  return found;
}

}  // namespace

FaultPlan::FaultPlan(const Cluster& cluster) : cluster_(&cluster), at_link_(cluster.links().size(), none) {}

FaultPlan::FaultPlan(const Cluster& cluster, std::vector<Fault> faults, Rank ranks, std::span<const Rank> among)
    : FaultPlan(cluster) {
  std::vector<Rank> taking_part(among.begin(), among.end());
  if (among.empty()) {
    taking_part.resize(ranks);
    std::iota(taking_part.begin(), taking_part.end(), Rank{0});
  }
  std::ranges::sort(taking_part);
  add(cluster, faults, taking_part);
  make_courses();
}

std::vector<std::shared_ptr<const FaultPlan>> FaultPlan::of_jobs(std::span<const JobFaults> jobs) {
  std::vector<std::shared_ptr<const FaultPlan>> plans(jobs.size());
  if (std::ranges::all_of(jobs, [](const JobFaults& job) { return job.faults.empty(); })) return plans;
  FaultPlan all(jobs.front().cluster);
  for (const JobFaults& job : jobs) {
    std::vector<Rank> ranks(job.ranks);
    std::iota(ranks.begin(), ranks.end(), Rank{0});
    all.add(job.cluster, job.faults, ranks);
  }
  all.make_courses();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    all.cluster_ = &jobs[i].cluster;
    plans[i] = std::make_shared<const FaultPlan>(all);
  }
  return plans;
}

/// Elements to which the same faults happen share what comes of them.
void FaultPlan::touch(std::uint32_t& course, std::uint32_t fault) {
  const auto [next, is_new] = courses_with_.try_emplace({course, fault}, static_cast<std::uint32_t>(courses_.size()));
  if (is_new) {
    std::vector<std::uint32_t> all = course == none ? std::vector<std::uint32_t>() : courses_[course].faults;
    all.push_back(fault);
    courses_.push_back({.faults = std::move(all)});
  }
  course = next->second;
}

void FaultPlan::add(const Cluster& cluster, std::span<const Fault> faults, std::span<const Rank> among) {
  for (const Fault& fault : faults) {
    // Links are of all jobs: what is given for several of them happens once.
    if (fault.of_links() && std::ranges::find(faults_, fault.text, &Fault::text) != faults_.end()) continue;
    const auto number = static_cast<std::uint32_t>(faults_.size());
    faults_.push_back(fault);
    if (fault.of_links()) {
      if (cluster.routing().kind == RoutingKind::ideal) {
        bad_input(
            "fault",
            "--fault: '{}': routing ideal takes links side by side as one, which none of them can fail by itself; "
            "give dmodk, ecmp or file",
            fault.text);
      }
      for (const LinkId link : links_of(fault)) touch(at_link_[link], number);
    } else {
      for (const Rank rank : npus_of(cluster, fault, among)) {
        const HostId host = cluster.npu(rank).host;
        if (host >= at_host_.size()) at_host_.resize(host + 1, none);
        touch(at_host_[host], number);
      }
    }
    if (fault.kind == FaultKind::latency || fault.kind == FaultKind::speed) continue;
    dates_of_transfers_.push_back(fault.from);
    if (fault.to < never) dates_of_transfers_.push_back(fault.to);
  }
}

void FaultPlan::make_courses() {
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
  const std::span<const Link> links = cluster_->links();
  for (LinkId link = 0; link < links.size(); ++link) {
    const std::string& name = links[link].name;
    if (!fits(fault.pattern, name) && !fits(fault.pattern, name_in_file(name))) continue;
    found.push_back(link);
    // As in sim/platform/values.cpp.
    constexpr BytesPerSecond most = 1e15;
    if (fault.kind == FaultKind::bandwidth && links[link].bandwidth * factor(link, fault) > most) {
      bad_input("fault", "--fault: '{}': link {} would have {:.4g} GB/s; a link has at most 1000TBps", fault.text, name,
                links[link].bandwidth * factor(link, fault) / giga);
    }
  }
  if (!found.empty()) return found;
  std::vector<std::string> names;
  for (const Link& link : links) {
    const std::string_view name = name_in_file(link.name);
    if (names.empty() || names.back() != name) names.emplace_back(name);
  }
  refuse_pattern(fault, "link", cluster_->path(), names);
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

std::vector<bool> FaultPlan::touched_links() const {
  std::vector<bool> touched(at_link_.size());
  for (LinkId link = 0; link < touched.size(); ++link) touched[link] = touches(link);
  return touched;
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

Seconds FaultPlan::time_at_full_bandwidth(LinkId link, Seconds from, Seconds to) const {
  const Course* course = course_of(link);
  if (course == nullptr || course->bandwidth.empty()) return to - from;
  Seconds sum = 0;
  for (Seconds date = from; date < to;) {
    const Seconds next = std::min(next_change(course->bandwidth, date), to);
    sum += (next - date) * bandwidth_factor(link, date);
    date = next;
  }
  return sum;
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
  const auto stopping = [this](HostId host) { return touches_host(host) && !course_of_host(host)->stop.empty(); };
  return std::ranges::any_of(route.links, changing) || stopping(route.from) || stopping(route.to);
}

bool FaultPlan::stops(const Route& route, Seconds date) const {
  return is_stopped(route.from, date) || is_stopped(route.to, date) || is_cut(route, date);
}

bool FaultPlan::is_cut(const Route& route, Seconds date) const {
  return std::ranges::any_of(route.links, [&](LinkId link) { return bandwidth_factor(link, date) == 0; });
}

bool FaultPlan::is_stopped(HostId host, Seconds date) const {
  const Course* course = course_of_host(host);
  return course != nullptr && at(course->stop, date) != nullptr;
}

Seconds FaultPlan::latency(const Route& route, Seconds date) const {
  Seconds latency = route.latency;
  for (const LinkId link : route.links) {
    const Course* course = course_of(link);
    const Fault* fault = course == nullptr ? nullptr : at(course->latency, date);
    if (fault == nullptr) continue;
    const Seconds before = cluster_->links()[link].latency;
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

Seconds FaultPlan::begins(Rank rank) const {
  const Course* course = course_of_npu(rank);
  Seconds begin = 0;
  for (std::size_t i = 0; course != nullptr && i < course->faults.size(); ++i) {
    const Fault& fault = faults_[course->faults[i]];
    if (fault.kind == FaultKind::late) begin = std::max(begin, fault.to);
  }
  return begin;
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
    const std::string& name = cluster_->links()[link].name;
    if (factor == 0) return fmt::format("link {} is cut ({})", name, fault->text);
    slower = fmt::format("link {} has {:.4g} % of its bandwidth ({})", name, factor * 100, fault->text);
  }
  if (is_stopped(route.from, date)) return cause(route.source, date);
  if (is_stopped(route.to, date)) return cause(route.destination, date);
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

template <typename Counts>
const Fault* FaultPlan::last_over(const Course* course, Seconds date, const Counts& counts) const {
  const Fault* last = nullptr;
  for (std::size_t i = 0; course != nullptr && i < course->faults.size(); ++i) {
    const Fault& fault = faults_[course->faults[i]];
    if (counts(fault.kind) && fault.to <= date && (last == nullptr || fault.to >= last->to)) last = &fault;
  }
  return last;
}

std::string FaultPlan::cause_before(const Route& route, Seconds date) const {
  const auto of_bandwidth = [](FaultKind kind) { return kind == FaultKind::bandwidth; };
  const Fault* last = nullptr;
  LinkId which = 0;
  for (const LinkId link : route.links) {
    const Fault* fault = last_over(course_of(link), date, of_bandwidth);
    if (fault == nullptr || (last != nullptr && fault->to <= last->to)) continue;
    last = fault;
    which = link;
  }
  if (last != nullptr) {
    const std::string& name = cluster_->links()[which].name;
    const double factor = this->factor(which, *last);
    return factor == 0 ? fmt::format("link {} was cut until {:.9g} s ({})", name, last->to, last->text)
                       : fmt::format("link {} had {:.4g} % of its bandwidth until {:.9g} s ({})", name, factor * 100,
                                     last->to, last->text);
  }
  const std::string of_source = cause_before(route.source, date);
  return of_source.empty() ? cause_before(route.destination, date) : of_source;
}

std::string FaultPlan::cause_before(Rank rank, Seconds date) const {
  const Fault* last = last_over(course_of_npu(rank), date, [](FaultKind) { return true; });
  if (last == nullptr) return {};
  const std::string what = last->kind == FaultKind::speed    ? fmt::format("computed {:.4g} times as fast", last->value)
                           : last->kind == FaultKind::paused ? "was paused"
                                                             : "had not begun";
  return fmt::format("NPU {} {} until {:.9g} s ({})", rank, what, last->to, last->text);
}

const FaultPlan::Course* FaultPlan::course_of(LinkId link) const {
  return touches(link) ? &courses_[at_link_[link]] : nullptr;
}

const FaultPlan::Course* FaultPlan::course_of_host(HostId host) const {
  return touches_host(host) ? &courses_[at_host_[host]] : nullptr;
}

}  // namespace hcclsim::sim
