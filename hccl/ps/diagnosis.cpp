#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "hccl/ps/running_job.hpp"

// Why a job with faults does not go on: from the worker that has waited longest, by way of its servers to the worker
// for which they wait, and so on, to an NPU that stands still or is slow, or a link that is cut. A wait that is too
// long is looked at when the clock stands at the date of its time-out.
namespace hcclsim::hccl {

void RunningJob::went_on(std::uint32_t worker) {
  workers_[worker].progress = loop_.now();
  if (faults_ == nullptr || std::isinf(options_.exec_timeout)) return;
  loop_.watch(*this, 0, loop_.now() + options_.exec_timeout);
}

/// What it computes itself takes as long as it takes, and one that stands still waits for nobody.
bool RunningJob::waits(const Worker& worker) const {
  if (worker.finished || state_ == PsState::starting) return false;
  if (!stop_of(worker.node, loop_.now()).empty()) return false;
  if (!worker.running) return worker.gated || worker.at_barrier || !worker.initial.empty();
  return worker.awaits_rows || (worker.computed && worker.pieces_left > 0);
}

std::optional<std::uint32_t> RunningJob::first_waiting() const {
  std::optional<std::uint32_t> first;
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    if (!waits(workers_[worker])) continue;
    if (!first.has_value() || workers_[worker].progress < workers_[*first].progress) first = worker;
  }
  return first;
}

void RunningJob::on_event(std::uint64_t /*tag*/) {
  const std::optional<std::uint32_t> first = ended_ ? std::nullopt : first_waiting();
  if (!first.has_value()) return;
  const Seconds overdue = workers_[*first].progress + options_.exec_timeout;
  if (overdue <= loop_.now()) report_timeout(*first);
  loop_.watch(*this, 0, overdue);
}

/// Why the node stands still; empty if it does not, or is on no NPU.
std::string RunningJob::stop_of(std::uint32_t node, Seconds date) const {
  const PsHost host = wire_.host(node);
  return host.cpu || !faults_->stopped(host.number, date) ? std::string() : faults_->cause(host.number, date);
}

/// Why nothing comes from one node to the other, or back.
std::string RunningJob::stop_between(std::uint32_t node, std::uint32_t other, Seconds date) {
  for (const auto& [from, to] : {std::pair(node, other), std::pair(other, node)}) {
    const sim::Route* const way = wire_.route(from, to);
    if (way != nullptr && faults_->stops(*way, date)) return faults_->cause(*way, date);
  }
  return {};
}

/// Of a worker that computes: why it takes so long, or has taken so long.
std::string RunningJob::slowness_of(const Worker& worker, Seconds date) const {
  const PsHost host = wire_.host(worker.node);
  if (waits(worker) || host.cpu) return {};
  const std::string cause = faults_->cause(host.number, date);
  return cause.empty() ? faults_->cause_before(host.number, date) : cause;
}

/// Of the servers with which the worker has something to do, or of the ways to them.
std::string RunningJob::stop_at_servers(std::uint32_t worker, Seconds date) {
  const Worker& me = workers_[worker];
  std::set<std::uint32_t> nodes;
  for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) {
    const bool initial = !me.initial.empty() && me.initial[piece];
    const bool under_way = me.doing[piece] == Doing::pushing || me.doing[piece] == Doing::pulling;
    if (initial || me.awaits_rows || under_way) nodes.insert(server_of(piece).node);
  }
  for (const std::uint32_t node : nodes) {
    if (std::string cause = stop_of(node, date); !cause.empty()) return id_of(node) + ": " + cause;
    if (std::string cause = stop_between(me.node, node, date); !cause.empty()) return cause;
  }
  return {};
}

/// Of any message that a fault holds, or slows down.
std::string RunningJob::cause_of_messages(Seconds date) {
  std::string text;
  for (const PsWire::UnderWay& message : wire_.under_way()) {
    const sim::Route* const way = wire_.route(message.from, message.to);
    if (way == nullptr) continue;
    const std::string cause = faults_->cause(*way, date);
    if (cause.empty() || (!text.empty() && !faults_->stops(*way, date))) continue;
    text = fmt::format("{} of {} bytes from {} to {} is under way since {:.9g} s: {}", name_of(message.traffic),
                       message.bytes, id_of(message.from), id_of(message.to), message.since, cause);
    if (faults_->stops(*way, date)) break;
  }
  return text;
}

/// The worker for which servers wait: the one that is farthest behind.
std::optional<std::uint32_t> RunningJob::last_worker(std::uint32_t but) const {
  const auto place = [this](std::uint32_t worker) {
    const Worker& one = workers_[worker];
    const auto count = [&one](Doing doing) { return std::ranges::count(one.doing, doing); };
    const bool computed = one.running && one.computed;
    return std::tuple(one.step, one.running, computed, count(Doing::done), count(Doing::pulling),
                      count(Doing::pushing));
  };
  std::optional<std::uint32_t> last;
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    if (worker == but || workers_[worker].finished || !(place(worker) < place(but))) continue;
    if (!last.has_value() || place(worker) < place(*last)) last = worker;
  }
  return last;
}

/// What a worker does, or waits for.
std::string RunningJob::standing(std::uint32_t worker) const {
  const Worker& me = workers_[worker];
  std::string text = fmt::format("\n  {}", id_of(me.node));
  if (!nodes_[me.node].registered) return text + " has not registered";
  text += fmt::format(", step {}: ", me.step + 1);
  if (!me.initial.empty()) return text + fmt::format("its initial weights are under way since {:.9g} s", me.progress);
  if (me.gated) return text + fmt::format("waits for slower workers since {:.9g} s", me.progress);
  if (me.at_barrier) return text + fmt::format("waits for the cluster to be scaled since {:.9g} s", me.progress);
  if (me.awaits_rows) return text + fmt::format("waits for rows of tables since {:.9g} s", me.progress);
  if (!me.running || !me.computed) return text + fmt::format("computes since {:.9g} s", me.progress);
  for (const Doing doing : {Doing::pushing, Doing::pulling}) {
    const auto found = std::ranges::find(me.doing, doing);
    if (found == me.doing.end()) continue;
    const PsPiece& piece = pieces_[static_cast<std::size_t>(found - me.doing.begin())];
    return text + fmt::format("{} {} {} {} since {:.9g} s", doing == Doing::pushing ? "is to push" : "is to pull",
                              options_.parameters[piece.key].name, doing == Doing::pushing ? "to" : "from",
                              id_of(servers_[piece.server].node), me.progress);
  }
  return text + "waits for gradients to be reduced among the workers";
}

std::pair<std::string, bool> RunningJob::trail(std::uint32_t worker, Seconds date) {
  std::string text;
  std::set<std::uint32_t> seen;
  for (std::optional<std::uint32_t> at = worker; at.has_value() && seen.insert(*at).second; at = last_worker(*at)) {
    const Worker& one = workers_[*at];
    text += standing(*at);
    std::string cause = stop_of(one.node, date);
    if (cause.empty()) cause = stop_at_servers(*at, date);
    if (cause.empty()) cause = slowness_of(one, date);
    if (!cause.empty()) return {fmt::format("{}\n  cause: {}", text, cause), true};
  }
  const std::string cause = cause_of_messages(date);
  if (!cause.empty()) return {text + "\n  cause: " + cause, true};
  return {text + "\n  cause: a deadlock: nobody does what is waited for", false};
}

void RunningJob::report_timeout(std::uint32_t worker) {
  const Worker& me = workers_[worker];
  const Seconds date = me.progress + options_.exec_timeout;
  simulated_failure("timeout",
                    "{} waits since {:.9g} s, and HCCL_EXEC_TIMEOUT lets it wait {:.6g} s: the job ends at {:.9g} s{}",
                    id_of(me.node), me.progress, options_.exec_timeout, date, trail(worker, date).first);
}

void RunningJob::report_faults() {
  if (hybrid_ != nullptr) hybrid_->require_finished();
  const std::optional<std::uint32_t> first = first_waiting();
  if (first.has_value() && !std::isinf(options_.exec_timeout)) {
    if (trail(*first, workers_[*first].progress + options_.exec_timeout).second) report_timeout(*first);
    return;
  }
  std::optional<std::uint32_t> from = first;
  for (std::uint32_t worker = 0; worker < workers_.size() && !from.has_value(); ++worker) {
    if (!workers_[worker].finished) from = worker;
  }
  if (!from.has_value()) return;
  const auto [text, by_fault] = trail(*from, sim::FaultPlan::never);
  if (!by_fault) return;
  simulated_failure("deadlock", "the job with parameter servers stands still{}{}",
                    first.has_value() ? ": nothing ends a wait without HCCL_EXEC_TIMEOUT" : "", text);
}

}  // namespace hcclsim::hccl
