#include "clients/server/communicators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include <hccl/hccl.h>

#include "clients/server/rank_graph.hpp"
#include "hccl/comm/placement.hpp"
#include "hccl/comm/rank_table.hpp"

namespace hcclsim::clients {
namespace {

constexpr std::uint64_t most_window_gb = 1U << 20U;  // more than any NPU has memory for
constexpr std::uint64_t communicator_tag = std::uint64_t{0x53} << 56U;

/// What the program asks for in HcclCommConfig, of which it may have given a beginning; nothing is set in the rest.
HcclCommConfig settings_of(const std::string& bytes) {
  HcclCommConfig settings;
  HcclCommConfigInit(&settings);
  std::memcpy(&settings, bytes.data(), std::min(bytes.size(), sizeof settings));
  return settings;
}

/// What of the settings has no effect here.
std::string ignored(const HcclCommConfig& settings) {
  std::string names;
  const auto add = [&](bool is_set, const char* name) {
    if (is_set) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  };
  add(settings.aclGraphZeroCopyEnable != 0, "aclGraphZeroCopyEnable");
  add(settings.hcclExecTimeOut != HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET, "hcclExecTimeOut");
  add(settings.hcclRetryEnable[0] != '\0', "hcclRetryEnable");
  add(settings.hcclBufferName[0] != '\0', "hcclBufferName");
  add(settings.hcclQos != HCCL_COMM_QOS_CONFIG_NOT_SET, "hcclQos");
  return names;
}

/// What is wrong with settings that are given; empty: nothing.
std::string problem_of(const std::string& bytes) {
  if (bytes.empty()) return {};
  const HcclCommConfig settings = settings_of(bytes);
  std::uint32_t magic = 0;
  std::memcpy(&magic, settings.reserved + sizeof(std::size_t), sizeof magic);
  if (magic != HCCL_COMM_CONFIG_MAGIC_WORD) return "call HcclCommConfigInit first";
  const auto ends = [](const auto& text) { return std::ranges::find(text, '\0') != std::end(text); };
  if (!ends(settings.hcclCommName)) {
    return fmt::format("hcclCommName: at most {} bytes, and a 0 after them", COMM_NAME_MAX_LENGTH - 1);
  }
  if (!ends(settings.hcclAlgo)) {
    return fmt::format("hcclAlgo: at most {} bytes, and a 0 after them", HCCL_COMM_ALGO_MAX_LENGTH - 1);
  }
  try {
    static_cast<void>(hccl::parse_algo_setting(settings.hcclAlgo));
  } catch (const Error& error) {
    return fmt::format("hcclAlgo: {}", error.what());
  }
  if (settings.hcclBufferSize == 0) return "hcclBufferSize: at least 1 (MB)";
  const bool known =
      settings.hcclDeterministic <= 2 || settings.hcclDeterministic == HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET;
  if (!known) return fmt::format("hcclDeterministic: {}; accepted: 0, 1, 2", settings.hcclDeterministic);
  if (settings.hcclOpExpansionMode > 4) {
    return fmt::format("hcclOpExpansionMode: {}; accepted: 0 to 4", settings.hcclOpExpansionMode);
  }
  if (settings.hcclSymWinMaxMemSizePerRank == 0 || settings.hcclSymWinMaxMemSizePerRank > most_window_gb) {
    return fmt::format("hcclSymWinMaxMemSizePerRank: {}; accepted: 1 to {} (GB)", settings.hcclSymWinMaxMemSizePerRank,
                       most_window_gb);
  }
  return {};
}

}  // namespace

Communicators::Communicators(Core& core, Meetings& meetings, Seconds connect_timeout)
    : core_(core), meetings_(meetings), connect_timeout_(connect_timeout) {}

ClientCommunicator* Communicators::find(ThreadId id, std::uint64_t handle) {
  const auto found = handles_.find(handle);
  const bool usable =
      found != handles_.end() && !found->second->destroyed && found->second->process == core_.hosts.thread(id).process;
  return usable ? found->second.get() : nullptr;
}

std::optional<Result> Communicators::handle(ThreadId id, const Question& question) {
  const HostThread& thread = core_.hosts.thread(id);
  const auto& values = question.values;
  switch (question.call) {
    case Call::root_info:
      if (!thread.npu.has_value()) return refused(HCCL_E_RUNTIME, "the thread has set no device (aclrtSetDevice)");
      return Result{.values = {++roots_}};
    case Call::begin_communicator:
    case Call::begin_from_table:
    case Call::begin_sub:
      return begin(id, question);
    case Call::begin_all:
      return begin_all(id, question);
    case Call::set_deterministic:
      if (values[0] > 2) return refused(HCCL_E_PARA, "HCCL_DETERMINISTIC: 0, 1 or 2");
      determinism_ = static_cast<hccl::Determinism>(values[0]);
      return Result{};
    case Call::get_deterministic:
      return Result{.values = {static_cast<std::uint64_t>(determinism_.value_or(core_.platform.config.determinism))}};
    default:
      break;
  }
  if (question.call == Call::status_by_name) return status_of(id, question.bytes);
  if (question.call == Call::end_window) return end_window(id, values[0]);
  if (question.call == Call::destroy_communicator) return destroy(id, values[0]);
  ClientCommunicator* const own = find(id, values[0]);
  if (own == nullptr) return unknown(values[0]);
  switch (question.call) {
    case Call::graph_layers:
    case Call::graph_ranks:
    case Call::graph_type:
    case Call::graph_sizes:
    case Call::graph_link:
      return rank_graph(core_, *own, question);
    case Call::begin_window:
    case Call::find_window:
      return window(*own, question);
    case Call::communicator_facts:
      return Result{.values = {own->group->ranks(), own->rank}, .bytes = own->group->name};
    case Call::async_error: {
      const bool timed_out = core_.failure.has_value() && core_.failure->kind() == "timeout";
      return Result{.values = {static_cast<std::uint64_t>(!core_.failure.has_value() ? HCCL_SUCCESS
                                                          : timed_out                ? HCCL_E_TIMEOUT
                                                                                     : HCCL_E_REMOTE)}};
    }
    case Call::suspend:
      own->suspended = values[1] == 0;
      return Result{};
    default:
      return range(*own, question);
  }
}

Result Communicators::status_of(ThreadId id, const std::string& name) const {
  const HostThread& thread = core_.hosts.thread(id);
  const ClientCommunicator* found = nullptr;
  for (const auto& [handle, one] : handles_) {
    if (one->destroyed || one->process != thread.process || one->group->name != name) continue;
    const bool is_own = thread.npu == one->group->npus[one->rank];
    if (found == nullptr || is_own) found = one.get();
  }
  if (found == nullptr) return refused(HCCL_E_NOT_FOUND, "the process has no communicator " + name);
  return {
      .values = {static_cast<std::uint64_t>(found->suspended ? HCCL_COMM_STATUS_SUSPENDING : HCCL_COMM_STATUS_READY)}};
}

Result Communicators::unknown(std::uint64_t handle) {
  return handle == 0 ? refused(HCCL_E_PTR, "comm is null")
                     : refused(HCCL_E_PARA,
                               "comm is no communicator, or it was destroyed (HcclCommDestroy, aclrtResetDevice, "
                               "aclFinalize)");
}

Result Communicators::destroy(ThreadId id, std::uint64_t handle) {
  const auto found = handles_.find(handle);
  const bool is_own = found != handles_.end() && found->second->process == core_.hosts.thread(id).process;
  if (!is_own || (found->second->destroyed && !found->second->released)) return unknown(handle);
  if (!std::exchange(found->second->released, false)) end(*found->second);
  return {};
}

void Communicators::end(ClientCommunicator& communicator) {
  communicator.destroyed = true;
  core_.memory.give_back(communicator.group->npus[communicator.rank], communicator.group->config.communicator_bytes());
}

void Communicators::release(std::uint32_t process, Rank npu) {
  for (const auto& [handle, one] : handles_) {
    if (one->process != process || one->group->npus[one->rank] != npu || one->destroyed) continue;
    end(*one);
    one->released = true;
  }
}

Result Communicators::read_root(const Question& question, Beginning& beginning) const {
  const auto [ranks, root, rank, a, b, c, d, e] = question.values;
  if (root == 0 || root > roots_) return refused(HCCL_E_PARA, "rootInfo is not from HcclGetRootInfo");
  beginning = {.meeting = fmt::format("root {}", root),
               .name = fmt::format("hccl_root_{}", root),
               .rank = static_cast<Rank>(rank),
               .ranks = static_cast<Rank>(ranks),
               .settings = question.bytes,
               .root = root,
               .function = "HcclCommInitRootInfo"};
  return {};
}

Result Communicators::read_table(const Question& question, Beginning& beginning) const {
  const std::string file = question.bytes.substr(question.values[1]);
  try {
    const hccl::RankTable table = hccl::read_rank_table(file);
    hccl::Placement placement = find_npus(table, core_.cluster);
    require_none(placement.problems, file);
    beginning = {.meeting = "table " + file,
                 .name = "hccl_world_group",
                 .rank = static_cast<Rank>(question.values[0]),
                 .ranks = static_cast<Rank>(placement.npus.size()),
                 .settings = question.bytes.substr(0, question.values[1]),
                 .function = "HcclCommInitClusterInfo",
                 .npus = std::move(placement.npus)};
  } catch (const Error& error) {
    return refused(HCCL_E_PARA, error.what());
  }
  return {};
}

Result Communicators::read_sub(ThreadId id, const Question& question, Beginning& beginning) {
  const auto [handle, sub, rank, settings_bytes, a, b, c, d] = question.values;
  ClientCommunicator* const parent = find(id, handle);
  if (parent == nullptr) return unknown(handle);
  std::vector<std::uint32_t> ids((question.bytes.size() - settings_bytes) / sizeof(std::uint32_t));
  std::memcpy(ids.data(), question.bytes.data() + settings_bytes, ids.size() * sizeof(std::uint32_t));
  std::vector<Rank> npus;
  std::set<std::uint32_t> seen;
  for (const std::uint32_t member : ids) {
    if (member >= parent->group->ranks() || !seen.insert(member).second) {
      return refused(HCCL_E_PARA, fmt::format("rankIds: {} is {}", member,
                                              member >= parent->group->ranks() ? "no rank of comm" : "there twice"));
    }
    npus.push_back(parent->group->npus[member]);
  }
  if (rank >= ids.size()) return refused(HCCL_E_PARA, fmt::format("subCommRankId {}: rankNum is {}", rank, ids.size()));
  if (ids[rank] != parent->rank) {
    return refused(HCCL_E_PARA,
                   fmt::format("rankIds[{}] is {}, the caller is rank {} of comm", rank, ids[rank], parent->rank));
  }
  beginning = {.meeting = fmt::format("sub {} {}", parent->group->number, sub),
               .name = fmt::format("{}_sub_{}", parent->group->name, sub),
               .rank = static_cast<Rank>(rank),
               .ranks = static_cast<Rank>(ids.size()),
               .settings = question.bytes.substr(0, settings_bytes),
               .function = "HcclCreateSubCommConfig",
               .npus = std::move(npus)};
  return {};
}

Result Communicators::prepare(ThreadId id, std::optional<Rank> npu, const Question& question, Beginning& beginning) {
  Result wrong = question.call == Call::begin_communicator ? read_root(question, beginning)
                 : question.call == Call::begin_from_table ? read_table(question, beginning)
                                                           : read_sub(id, question, beginning);
  if (wrong.status != 0) return wrong;
  if (!npu.has_value()) return refused(HCCL_E_RUNTIME, "the thread has set no device (aclrtSetDevice)");
  beginning.npu = *npu;
  if (beginning.ranks == 0 || beginning.rank >= beginning.ranks) {
    return refused(HCCL_E_PARA, fmt::format("rank {} of {}", beginning.rank, beginning.ranks));
  }
  if (!beginning.npus.empty() && beginning.npus[beginning.rank] != *npu) {
    const sim::Npu& own = core_.cluster.npu(*npu);
    const sim::Npu& other = core_.cluster.npu(beginning.npus[beginning.rank]);
    return refused(HCCL_E_PARA,
                   fmt::format("rank {} is device {} of server {}, the thread has set device {} of server {}",
                               beginning.rank, other.device, other.server, own.device, own.server));
  }
  const std::string problem = problem_of(beginning.settings);
  if (!problem.empty()) return refused(HCCL_E_PARA, "config: " + problem);
  if (used_roots_.contains(beginning.root)) {
    return refused(HCCL_E_PARA, "rootInfo has made a communicator already: each needs one of its own");
  }
  if (beginning.root == 0) {  // a rank can begin the same several times, one after the other
    const std::uint64_t instance = instances_[fmt::format("{} rank {}", beginning.meeting, beginning.rank)]++;
    beginning.meeting = fmt::format("{} #{}", beginning.meeting, instance);
  }
  const std::string objection = meetings_.problem(beginning.meeting, beginning.rank, beginning.ranks);
  return objection.empty() ? Result{} : refused(HCCL_E_PARA, objection);
}

std::string Communicators::waits_of(const Beginning& beginning) const {
  return fmt::format("waits in {} as rank {} for {}", beginning.function, beginning.rank,
                     meetings_.missing(beginning.meeting));
}

std::optional<Result> Communicators::begin(ThreadId id, const Question& question) {
  Beginning own;
  Result wrong = prepare(id, core_.hosts.thread(id).npu, question, own);
  if (wrong.status != 0) return wrong;
  core_.hosts.park(id, [this, own] { return waits_of(own); });
  join(id, own, [this, id](Seconds date, Result result) { core_.hosts.resume(id, date, std::move(result)); });
  return std::nullopt;
}

std::optional<Result> Communicators::begin_together(ThreadId id,
                                                    const std::vector<std::pair<Question, std::optional<Rank>>>& all) {
  struct Together {
    std::vector<std::uint64_t> handles;
    std::size_t left = 0;
    Result worst{};
    Seconds date = 0;
  };
  const auto together = std::make_shared<Together>();
  together->handles.resize(all.size());
  together->left = all.size();
  const auto begun = [this, id, together](std::size_t place, Seconds date, const Result& result) {
    together->handles[place] = result.values[0];
    if (result.status != 0 && together->worst.status == 0) together->worst = result;
    together->date = std::max(together->date, date);
    if (--together->left > 0) return;
    Result whole = together->worst;
    if (whole.status == 0) {
      whole.values = {};
      whole.bytes.assign(reinterpret_cast<const char*>(together->handles.data()),
                         together->handles.size() * sizeof together->handles[0]);
    }
    core_.hosts.resume(id, together->date, std::move(whole));
  };
  core_.hosts.park(id, [] { return std::string("waits in HcclGroupEnd for ranks of communicators that begin"); });
  for (std::size_t place = 0; place < all.size(); ++place) {
    Beginning own;
    const Result wrong = prepare(id, all[place].second, all[place].first, own);
    if (wrong.status != 0) {
      begun(place, core_.hosts.thread(id).date, wrong);
    } else {
      join(id, own, [begun, place](Seconds date, const Result& result) { begun(place, date, result); });
    }
  }
  return std::nullopt;
}

void Communicators::join(ThreadId id, const Beginning& beginning, const Begun& begun) {
  const std::uint32_t process = core_.hosts.thread(id).process;
  const auto done = [this, own = beginning, process, begun](const std::map<Rank, Guest>* guests, Seconds date) {
    if (guests == nullptr) {
      begun(date, refused(HCCL_E_TIMEOUT,
                          fmt::format("rank {} has waited {:.6g} s (HCCL_CONNECT_TIMEOUT) for {}{}", own.rank,
                                      connect_timeout_, meetings_.missing(own.meeting, date - connect_timeout_),
                                      core_.hosts.ended_processes())));
      return;
    }
    std::shared_ptr<CommunicatorGroup>& group = forming_[own.meeting];
    if (group == nullptr) group = form(own, *guests);
    if (own.root != 0) used_roots_.insert(own.root);
    const std::uint64_t handle = add_handle(group, own.rank, process);
    begun(date, handle == 0 ? refused(HCCL_E_MEMORY, "no memory is left for the communicator's buffers")
                            : Result{.values = {handle}});
  };
  const Guest guest{.thread = id, .process = process, .npu = beginning.npu, .bytes = beginning.settings, .done = done};
  meetings_.join(beginning.meeting, beginning.rank, beginning.ranks, guest, connect_timeout_);
}

std::shared_ptr<CommunicatorGroup> Communicators::form(const Beginning& beginning,
                                                       const std::map<Rank, Guest>& guests) {
  std::vector<Rank> npus;
  std::vector<std::uint32_t> processes;
  for (const auto& [rank, guest] : guests) {
    const auto same = std::ranges::find(npus, guest.npu);
    if (same != npus.end()) {
      simulated_failure("client", "{}: ranks {} and {} are on the same NPU {}", beginning.function, same - npus.begin(),
                        rank, guest.npu);
    }
    npus.push_back(guest.npu);
    processes.push_back(guest.process);
  }
  return add_group(beginning.name, std::move(npus), std::move(processes), beginning.settings);
}

std::shared_ptr<CommunicatorGroup> Communicators::add_group(std::string name, std::vector<Rank> npus,
                                                            std::vector<std::uint32_t> processes,
                                                            const std::string& settings_bytes) {
  const HcclCommConfig settings = settings_of(settings_bytes);
  auto group = std::make_shared<CommunicatorGroup>();
  group->name = settings.hcclCommName[0] != '\0' ? settings.hcclCommName : std::move(name);
  group->number = groups_++;
  group->npus = std::move(npus);
  group->processes = std::move(processes);
  group->config = core_.platform.config;
  if (settings.hcclBufferSize != HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET) {
    group->config.buffer_bytes = Bytes{settings.hcclBufferSize} << 20U;
  }
  if (settings.hcclDeterministic != HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET) {
    group->config.determinism = static_cast<hccl::Determinism>(settings.hcclDeterministic);
  }
  if (settings.hcclAlgo[0] != '\0') group->config.algo = hccl::parse_algo_setting(settings.hcclAlgo);
  group->window_bytes = Bytes{settings.hcclSymWinMaxMemSizePerRank} << 30U;
  if (const std::string names = ignored(settings); !names.empty()) {
    core_.hosts.note(fmt::format("the HcclCommConfig of {} sets {}, which has no effect", group->name, names));
  }
  const hccl::Communicator communicator{group->name, group->npus};
  group->topology = topology_of(communicator, core_.cluster);
  group->id = core_.runtime.create_communicator(communicator);
  group->calls.assign(group->npus.size(), 0);
  return group;
}

std::uint64_t Communicators::add_handle(std::shared_ptr<CommunicatorGroup> group, Rank rank, std::uint32_t process) {
  if (!core_.memory.take(group->npus[rank], group->config.communicator_bytes())) return 0;
  const std::uint64_t handle = communicator_tag | next_handle_++;
  handles_[handle] = std::make_unique<ClientCommunicator>(
      ClientCommunicator{.group = std::move(group), .rank = rank, .process = process});
  return handle;
}

Result Communicators::begin_all(ThreadId id, const Question& question) {
  const std::uint32_t process = core_.hosts.thread(id).process;
  const std::uint32_t server = core_.hosts.process(process).server;
  std::vector<std::int32_t> devices(question.bytes.size() / sizeof(std::int32_t));
  std::memcpy(devices.data(), question.bytes.data(), question.bytes.size());
  if (devices.empty()) return refused(HCCL_E_PARA, "ndev is 0");
  std::vector<Rank> npus;
  for (const std::int32_t device : devices) {
    std::optional<Rank> npu;
    for (Rank one = 0; one < core_.cluster.size(); ++one) {
      const sim::Npu& there = core_.cluster.npu(one);
      if (there.server == server && static_cast<std::int32_t>(there.device) == device) npu = one;
    }
    if (!npu.has_value()) return refused(HCCL_E_PARA, fmt::format("devices[{}]: there is no such device", npus.size()));
    const auto same = std::ranges::find(npus, *npu);
    if (same != npus.end()) {
      return refused(HCCL_E_PARA, fmt::format("devices[{}] is devices[{}]", npus.size(), same - npus.begin()));
    }
    npus.push_back(*npu);
  }
  const std::vector<std::uint32_t> processes(npus.size(), process);
  const auto group = add_group(fmt::format("hccl_all_{}", groups_), npus, processes, {});
  std::string handles;
  for (Rank rank = 0; rank < group->ranks(); ++rank) {
    const std::uint64_t handle = add_handle(group, rank, process);
    if (handle == 0) return refused(HCCL_E_MEMORY, "no memory is left for the communicator's buffers");
    handles.append(reinterpret_cast<const char*>(&handle), sizeof handle);
  }
  return {.bytes = handles};
}

}  // namespace hcclsim::clients
