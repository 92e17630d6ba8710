#include "hccl/ps/running/diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "base/error.hpp"

namespace hcclsim::hccl {

PsDiagnosis::PsDiagnosis(const PsOptions& options, PsWire& wire, const PsTimeline& timeline, const PsMembers& members,
                         PsProgress& progress, const PsServers& servers, const PsExchange& exchange,
                         const PsSteps& steps)
    : options_(options),
      faults_(*options.faults),
      wire_(wire),
      timeline_(timeline),
      members_(members),
      progress_(progress),
      servers_(servers),
      exchange_(exchange),
      steps_(steps) {
  progress.set_watch(*this);
}

/// What it computes itself takes as long as it takes, and one that stands still waits for nobody.
bool PsDiagnosis::waits(std::uint32_t worker) const {
  if (progress_.finished(worker) || members_.state() == PsState::starting) return false;
  if (!stop_of(members_.worker(worker), timeline_.now()).empty()) return false;
  const PsSteps::Stage stage = steps_.stage(worker);
  if (stage == PsSteps::Stage::computed) return exchange_.left(worker) > 0;
  return stage != PsSteps::Stage::idle && stage != PsSteps::Stage::computing;
}

std::optional<std::uint32_t> PsDiagnosis::first_waiting() const {
  std::optional<std::uint32_t> first;
  for (std::uint32_t worker = 0; worker < progress_.workers(); ++worker) {
    if (!waits(worker)) continue;
    if (!first.has_value() || progress_.since(worker) < progress_.since(*first)) first = worker;
  }
  return first;
}

void PsDiagnosis::on_event(std::uint64_t /*tag*/) {
  const std::optional<std::uint32_t> first = timeline_.ended() ? std::nullopt : first_waiting();
  if (!first.has_value()) return;
  const Seconds overdue = progress_.since(*first) + options_.exec_timeout;
  if (overdue <= timeline_.now()) report_timeout(*first);
  progress_.watch_until(overdue);
}

/// Why the node stands still; empty if it does not, or is on no NPU.
std::string PsDiagnosis::stop_of(std::uint32_t node, Seconds date) const {
  const PsHost host = wire_.host(node);
  return host.cpu || !faults_.stopped(host.number, date) ? std::string() : faults_.cause(host.number, date);
}

/// Why nothing comes from one node to the other, or back.
std::string PsDiagnosis::stop_between(std::uint32_t node, std::uint32_t other, Seconds date) const {
  for (const auto& [from, to] : {std::pair(node, other), std::pair(other, node)}) {
    const sim::Route* const way = wire_.route(from, to);
    if (way != nullptr && faults_.stops(*way, date)) return faults_.cause(*way, date);
  }
  return {};
}

/// Of a worker that computes: why it takes so long, or has taken so long.
std::string PsDiagnosis::slowness_of(std::uint32_t worker, Seconds date) const {
  const PsHost host = wire_.host(members_.worker(worker));
  if (waits(worker) || host.cpu) return {};
  const std::string cause = faults_.cause(host.number, date);
  return cause.empty() ? faults_.cause_before(host.number, date) : cause;
}

/// Of the servers with which the worker has something to do, or of the ways to them.
std::string PsDiagnosis::stop_at_servers(std::uint32_t worker, Seconds date) const {
  using Doing = PsExchange::Doing;
  const bool rows = steps_.stage(worker) == PsSteps::Stage::rows;
  std::set<std::uint32_t> nodes;
  for (std::uint32_t piece = 0; piece < servers_.pieces().size(); ++piece) {
    const Doing doing = exchange_.doing(worker)[piece];
    const bool under_way = doing == Doing::pushing || doing == Doing::pulling;
    if (steps_.awaits_initial_weights(worker, piece) || rows || under_way) nodes.insert(servers_.node_of(piece));
  }
  for (const std::uint32_t node : nodes) {
    if (std::string cause = stop_of(node, date); !cause.empty()) return members_.id(node) + ": " + cause;
    if (std::string cause = stop_between(members_.worker(worker), node, date); !cause.empty()) return cause;
  }
  return {};
}

/// Of any message that a fault holds, or slows down.
std::string PsDiagnosis::cause_of_messages(Seconds date) const {
  std::string text;
  for (const PsWire::UnderWay& message : wire_.under_way()) {
    const sim::Route* const way = wire_.route(message.from, message.to);
    if (way == nullptr) continue;
    const std::string cause = faults_.cause(*way, date);
    if (cause.empty() || (!text.empty() && !faults_.stops(*way, date))) continue;
    text = fmt::format("{} of {} bytes from {} to {} is under way since {:.9g} s: {}", name_of(message.traffic),
                       message.bytes, members_.id(message.from), members_.id(message.to), message.since, cause);
    if (faults_.stops(*way, date)) break;
  }
  return text;
}

/// The worker for which servers wait: the one that is farthest behind.
std::optional<std::uint32_t> PsDiagnosis::last_worker(std::uint32_t but) const {
  const auto place = [this](std::uint32_t worker) {
    using Doing = PsExchange::Doing;
    const auto count = [&](Doing doing) { return std::ranges::count(exchange_.doing(worker), doing); };
    const PsSteps::Stage stage = steps_.stage(worker);
    return std::tuple(progress_.step(worker), stage >= PsSteps::Stage::rows, stage == PsSteps::Stage::computed,
                      count(Doing::done), count(Doing::pulling), count(Doing::pushing));
  };
  std::optional<std::uint32_t> last;
  for (std::uint32_t worker = 0; worker < progress_.workers(); ++worker) {
    if (worker == but || progress_.finished(worker) || !(place(worker) < place(but))) continue;
    if (!last.has_value() || place(worker) < place(*last)) last = worker;
  }
  return last;
}

/// What a worker does, or waits for.
std::string PsDiagnosis::standing(std::uint32_t worker) const {
  using Doing = PsExchange::Doing;
  const std::uint32_t node = members_.worker(worker);
  std::string text = fmt::format("\n  {}", members_.id(node));
  if (!members_.of(node).registered) return text + " has not registered";
  text += fmt::format(", step {}: ", progress_.step(worker) + 1);
  const auto since = [&](const std::string& what) {
    return text + fmt::format("{} since {:.9g} s", what, progress_.since(worker));
  };
  switch (steps_.stage(worker)) {
    case PsSteps::Stage::initial_weights:
      return since("its initial weights are under way");
    case PsSteps::Stage::gated:
      return since("waits for slower workers");
    case PsSteps::Stage::barrier:
      return since("waits for the cluster to be scaled");
    case PsSteps::Stage::rows:
      return since("waits for rows of tables");
    case PsSteps::Stage::idle:
    case PsSteps::Stage::computing:
      return since("computes");
    case PsSteps::Stage::computed:
      break;
  }
  const std::vector<Doing>& all = exchange_.doing(worker);
  for (const Doing doing : {Doing::pushing, Doing::pulling}) {
    const auto found = std::ranges::find(all, doing);
    if (found == all.end()) continue;
    const PsPiece& piece = servers_.pieces()[static_cast<std::size_t>(found - all.begin())];
    const bool push = doing == Doing::pushing;
    return since(fmt::format("is to {} {} {} {}", push ? "push" : "pull", options_.parameters[piece.key].name,
                             push ? "to" : "from", members_.id(members_.server(piece.server))));
  }
  return text + "waits for gradients to be reduced among the workers";
}

/// What trail_from() asks, as it is at a date.
struct PsDiagnosis::Facts {
  const PsDiagnosis& of;
  Seconds date = 0;

  [[nodiscard]] static std::uint32_t key(std::uint32_t worker) { return worker; }
  [[nodiscard]] std::string line(std::uint32_t worker) const { return of.standing(worker); }
  [[nodiscard]] Origin<std::uint32_t> origin(std::uint32_t worker) const {
    std::string cause = of.stop_of(of.members_.worker(worker), date);
    if (cause.empty()) cause = of.stop_at_servers(worker, date);
    if (cause.empty()) cause = of.slowness_of(worker, date);
    const std::optional<std::uint32_t> last = of.last_worker(worker);
    if (!cause.empty() || !last.has_value()) return {.cause = std::move(cause)};
    return {.next = {*last}};
  }
};

Trail PsDiagnosis::trail(std::uint32_t worker, Seconds date) const {
  Trail trail = trail_from(worker, Facts{*this, date});
  if (trail.cause.empty()) trail.cause = cause_of_messages(date);
  return trail;
}

void PsDiagnosis::report_timeout(std::uint32_t worker) const {
  const Seconds since = progress_.since(worker);
  const Seconds date = since + options_.exec_timeout;
  simulated_failure(
      "timeout", "{} waits since {:.9g} s, and HCCL_EXEC_TIMEOUT lets it wait {:.6g} s: the job ends at {:.9g} s{}",
      members_.id(members_.worker(worker)), since, options_.exec_timeout, date, text_of(trail(worker, date)));
}

void PsDiagnosis::report() const {
  const std::optional<std::uint32_t> first = first_waiting();
  if (first.has_value() && !std::isinf(options_.exec_timeout)) {
    const Seconds overdue = progress_.since(*first) + options_.exec_timeout;
    if (!trail(*first, overdue).cause.empty()) report_timeout(*first);
    return;
  }
  std::optional<std::uint32_t> from = first;
  for (std::uint32_t worker = 0; worker < progress_.workers() && !from.has_value(); ++worker) {
    if (!progress_.finished(worker)) from = worker;
  }
  if (!from.has_value()) return;
  const Trail found = trail(*from, sim::FaultPlan::never);
  if (found.cause.empty()) return;
  simulated_failure("deadlock", "the job with parameter servers stands still{}{}",
                    first.has_value() ? ": nothing ends a wait without HCCL_EXEC_TIMEOUT" : "", text_of(found));
}

}  // namespace hcclsim::hccl
