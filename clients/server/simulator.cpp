#include "clients/server/simulator.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace hcclsim::clients {
namespace {

device::TaskCosts without_launch(device::TaskCosts costs) {
  costs.launch = 0;
  return costs;
}

}  // namespace

Simulator::Simulator(study::LoadedPlatform& platform, Hosts& hosts, const SimulatorOptions& options)
    : hosts_(hosts),
      wall_timeout_s_(options.wall_timeout_s),
      on_device_(without_launch(platform.costs)),
      cpus_(platform.cluster),
      faults_(options.faults),
      network_(sim::make_network(sim::NetworkKind::fluid, platform.cluster, loop_, faults_.get())),
      runtime_({.loop = loop_,
                .network = *network_,
                .cluster = platform.cluster,
                .costs = on_device_,
                .soc = platform.soc,
                .trace = trace_,
                .exec_timeout = platform.config.exec_timeout,
                .cpus = cpus_.size() > 0 ? &cpus_ : nullptr,
                .faults = faults_.get()}),
      memory_(platform.cluster.size(), platform.soc.hbm_bytes, options.poison),
      deadlines_(loop_),
      workers_(0),
      core_{.hosts = hosts,
            .runtime = runtime_,
            .loop = loop_,
            .trace = trace_,
            .cluster = platform.cluster,
            .platform = platform,
            .costs = platform.costs,
            .launch = options.launch,
            .memory = memory_,
            .deadlines = deadlines_,
            .workers = workers_,
            .accesses = options.poison ? &accesses_ : nullptr,
            .failure = failure_},
      meetings_(core_),
      devices_(core_),
      communicators_(core_, meetings_, options.connect_timeout),
      communication_(core_, devices_, communicators_, meetings_),
      processes_(core_, meetings_) {
  trace_.select(options.traced, platform.cluster.size(), true);
  hosts_.on_end = [this](std::uint32_t process) {
    if (hosts_.process(process).status != 0) return;
    communication_.end_process(process);
    devices_.end_process(process);
  };
  hosts_.has_events = [this] {
    return !failure_.has_value() && loop_.first_date().has_value() && !deadlines_.hosts_are_due();
  };
  devices_.on_release = [this](std::uint32_t process, Rank npu) { communicators_.release(process, npu); };
}

std::optional<Result> Simulator::handle(ThreadId id, const Question& question) {
  switch (question.call) {
    case Call::begin_communicator:
    case Call::begin_from_table:
      if (communication_.in_group(id)) return communication_.handle(id, question);
      return communicators_.handle(id, question);
    case Call::root_info:
    case Call::begin_all:
    case Call::begin_sub:
    case Call::destroy_communicator:
    case Call::communicator_facts:
    case Call::async_error:
    case Call::set_deterministic:
    case Call::get_deterministic:
    case Call::suspend:
    case Call::set_range:
    case Call::unset_range:
    case Call::activate_range:
    case Call::deactivate_range:
    case Call::begin_window:
    case Call::end_window:
    case Call::find_window:
    case Call::status_by_name:
    case Call::graph_layers:
    case Call::graph_ranks:
    case Call::graph_type:
    case Call::graph_sizes:
    case Call::graph_link:
      return communicators_.handle(id, question);
    case Call::collective:
    case Call::batch:
    case Call::begin_group:
    case Call::end_group:
      return communication_.handle(id, question);
    case Call::exchange:
    case Call::send_bytes:
    case Call::receive_bytes:
    case Call::abort:
      return processes_.handle(id, question);
    default:
      return devices_.handle(id, question);
  }
}

void Simulator::run() {
  if (wall_timeout_s_.has_value()) {
    const auto whole = std::chrono::duration<double>(*wall_timeout_s_);
    hosts_.set_end(std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(whole));
  }
  const Hosts::Handle answer = [this](ThreadId id, const Question& question) { return handle(id, question); };
  while (true) {
    const bool ran = hosts_.run_one(loop_.now(), answer);
    if (const std::optional<std::uint32_t> failed = hosts_.failed_process()) report_process(*failed);
    if (hosts_.out_of_time()) {
      simulated_failure("wall-timeout", "the program has not ended within {:.6g} s of real time (--wall-timeout):{}",
                        *wall_timeout_s_, standing());
    }
    if (ran) continue;
    if (!hosts_.any_left()) break;
    if (hosts_.wait_for_spinning(loop_.now())) continue;
    const bool waits_first = deadlines_.hosts_are_due() && hosts_.some_may_come();
    if (waits_first && hosts_.wait_outside(loop_.now())) continue;
    if (advance() || hosts_.wait_outside(loop_.now())) continue;
    if (faults_ != nullptr && !failure_.has_value()) {
      try {
        runtime_.require_finished();
      } catch (const Error& error) {  // what the fault has done, of which the program is told
        fail(error);
        continue;
      }
    }
    if (failure_.has_value()) throw Error(*failure_);
    simulated_failure("deadlock", "the program stands still at {:.9g} s, nobody can go on:{}", loop_.now(), standing());
  }
  if (failure_.has_value()) throw Error(*failure_);
}

bool Simulator::advance() {
  if (failure_.has_value() || !loop_.first_date().has_value()) return false;
  loop_.handle_first_date();
  if (!loop_.first_date().has_value()) {
    try {
      loop_.run();  // nothing is left: it throws what has gone wrong
    } catch (const Error& error) {
      if (error.kind() != "timeout") throw;
      fail(error);
    }
  }
  hosts_.time_went_on();
  return true;
}

void Simulator::fail(const Error& error) {
  failure_.emplace(error);
  devices_.fail_all();
}

std::string Simulator::standing() const {
  constexpr std::size_t most = 64;
  std::string text;
  std::size_t lines = 0;
  std::vector<ThreadId> ids(hosts_.threads().size());
  std::iota(ids.begin(), ids.end(), ThreadId{0});
  std::ranges::sort(
      ids, {}, [&](ThreadId id) { return std::pair(hosts_.threads()[id]->process, hosts_.threads()[id]->number); });
  for (const ThreadId id : ids) {
    const HostThread& thread = *hosts_.threads()[id];
    if (thread.state == HostThread::State::ended || thread.serves || ++lines > most) continue;
    text += fmt::format("\n  {}: {}", hosts_.name_of(id), hosts_.doing(id));
  }
  for (std::uint32_t number = 0; number < hosts_.processes().size(); ++number) {
    if (hosts_.process(number).ended && ++lines <= most) text += fmt::format("\n  process {}: has ended", number);
  }
  if (lines > most) text += fmt::format("\n  and {} more", lines - most);
  return text + communication_.missing_calls() + devices_.unfinished();
}

void Simulator::report_process(std::uint32_t number) const {
  const HostProcess& process = hosts_.process(number);
  std::string end = fmt::format("ended with status {}", WEXITSTATUS(process.status));
  if (WIFEXITED(process.status) && WEXITSTATUS(process.status) == lost_status) {
    end +=
        ", as it had lost its connection to the simulator: has it closed descriptors that it had not opened, or "
        "changed its user?";
  }
  if (WIFSIGNALED(process.status)) {
    end = fmt::format("was killed by signal {} ({})", WTERMSIG(process.status), ::strsignal(WTERMSIG(process.status)));
  }
  if (failure_.has_value()) {
    throw Error(failure_->code(), failure_->kind(), fmt::format("process {} {}: {}", number, end, failure_->what()));
  }
  const std::string last = process.last_error.empty() ? "" : "; what went wrong in it last: " + process.last_error;
  simulated_failure("client", "process {} {}{}", number, end, last);
}

}  // namespace hcclsim::clients
