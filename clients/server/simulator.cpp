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
#include "clients/server/devices/allocations.hpp"

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
            .failure = failure_},
      meetings_(core_),
      device_waits_(core_),
      streams_(core_, device_waits_, device_handles_, options.poison ? &accesses_ : nullptr),
      events_(core_, device_waits_, device_handles_, streams_),
      host_functions_(core_, device_handles_, streams_),
      devices_(core_),
      copies_(core_, devices_, device_handles_, streams_),
      communicators_(core_, communicator_handles_),
      peer_memory_(core_, communicator_handles_, communicators_),
      beginnings_(core_, devices_, meetings_, communicators_, options.connect_timeout),
      communication_(core_, meetings_, options.connect_timeout, devices_, streams_, copies_, communicators_,
                     peer_memory_),
      call_groups_(core_, streams_, beginnings_, communication_),
      processes_(core_, meetings_) {
  trace_.select(options.traced, platform.cluster.size(), true);
  hosts_.on_end = [this](std::uint32_t process) {
    if (hosts_.process(process).status != 0) return;
    call_groups_.end_process(process);
    memory_.free_all(process);
    streams_.end_process(process);
  };
  hosts_.has_events = [this] {
    return !failure_.has_value() && loop_.first_date().has_value() && !deadlines_.hosts_are_due();
  };
  devices_.on_release = [this](std::uint32_t process, Rank npu) {
    streams_.release(process, npu);
    events_.release(process, npu);
    memory_.free_all(process, npu);
    communicators_.release(process, npu);
  };
}

std::optional<Result> Simulator::handle(ThreadId id, const Question& question) {
  switch (question.call) {
    case Call::root_info:
    case Call::begin_all:
    case Call::begin_sub:
      return beginnings_.handle(id, question);
    case Call::destroy_communicator:
    case Call::communicator_facts:
    case Call::async_error:
    case Call::set_deterministic:
    case Call::get_deterministic:
    case Call::suspend:
    case Call::status_by_name:
    case Call::graph_layers:
    case Call::graph_ranks:
    case Call::graph_type:
    case Call::graph_sizes:
    case Call::graph_link:
      return communicators_.handle(id, question);
    case Call::set_range:
    case Call::unset_range:
    case Call::activate_range:
    case Call::deactivate_range:
    case Call::begin_window:
    case Call::end_window:
    case Call::find_window:
      return peer_memory_.handle(id, question);
    case Call::begin_communicator:
    case Call::begin_from_table:
    case Call::collective:
    case Call::batch:
    case Call::begin_group:
    case Call::end_group:
      return call_groups_.handle(id, question);
    case Call::exchange:
    case Call::send_bytes:
    case Call::receive_bytes:
    case Call::abort:
      return processes_.handle(id, question);
    default:
      return handle_of_device(id, question);
  }
}

std::optional<Result> Simulator::handle_of_device(ThreadId id, const Question& question) {
  switch (question.call) {
    case Call::date:
    case Call::device_count:
    case Call::set_device:
    case Call::get_device:
    case Call::reset_device:
    case Call::finalize:
    case Call::peer_access:
    case Call::soc_name:
    case Call::set_saturation:
    case Call::device_topology:
      return devices_.handle(id, question);
    case Call::allocate:
    case Call::free:
    case Call::memory_info:
    case Call::reserve_address:
    case Call::release_address:
    case Call::allocate_physical:
    case Call::free_physical:
    case Call::map_memory:
    case Call::unmap_memory:
      return allocation(core_, devices_, id, question);
    case Call::copy:
    case Call::fill:
    case Call::free_host:
      return copies_.handle(id, question);
    case Call::create_stream:
    case Call::destroy_stream:
    case Call::synchronize_stream:
    case Call::query_stream:
    case Call::synchronize_device:
    case Call::launch_kernel:
      return streams_.handle(id, question);
    case Call::launch_function:
    case Call::subscribe:
    case Call::unsubscribe:
    case Call::next_function:
    case Call::function_done:
      return host_functions_.handle(id, question);
    default:
      return events_.handle(id, question);
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
  device_waits_.fail_all();
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
  return text + communication_.missing_calls() + streams_.unfinished();
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
