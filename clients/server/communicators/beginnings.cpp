#include "clients/server/communicators/beginnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <hccl/hccl.h>

#include "clients/server/communicators/settings.hpp"
#include "hccl/comm/placement.hpp"
#include "hccl/comm/rank_table.hpp"

namespace hcclsim::clients {

std::optional<Result> Beginnings::handle(ThreadId id, const Question& question) {
  if (question.call == Call::begin_all) return begin_all(id, question);
  if (question.call != Call::root_info) return begin(id, question);
  if (core_.hosts.thread(id).npu.has_value()) return Result{.values = {++roots_}};
  return refused(HCCL_E_RUNTIME, "the thread has set no device (aclrtSetDevice)");
}

Result Beginnings::read_root(const Question& question, Beginning& beginning) const {
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

Result Beginnings::read_table(const Question& question, Beginning& beginning) const {
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

Result Beginnings::read_sub(ThreadId id, const Question& question, Beginning& beginning) const {
  const auto [handle, sub, rank, settings_bytes, a, b, c, d] = question.values;
  const ClientCommunicator* const parent = communicators_.find(id, handle);
  if (parent == nullptr) return Communicators::unknown(handle);
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

Result Beginnings::prepare(ThreadId id, std::optional<Rank> npu, const Question& question, Beginning& beginning) {
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
  const std::string problem = problem_of_settings(beginning.settings);
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

std::optional<Result> Beginnings::begin(ThreadId id, const Question& question) {
  Beginning own;
  Result wrong = prepare(id, core_.hosts.thread(id).npu, question, own);
  if (wrong.status != 0) return wrong;
  core_.hosts.park(id, [this, own] {
    return fmt::format("waits in {} as rank {} for {}", own.function, own.rank, meetings_.missing(own.meeting));
  });
  join(id, own, [this, id](Seconds date, Result result) { core_.hosts.resume(id, date, std::move(result)); });
  return std::nullopt;
}

std::optional<Result> Beginnings::begin_together(ThreadId id,
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

void Beginnings::join(ThreadId id, const Beginning& beginning, const Begun& begun) {
  const std::uint32_t process = core_.hosts.thread(id).process;
  const auto done = [this, own = beginning, process, begun](const std::map<Rank, Guest>* guests, Seconds date) {
    if (guests == nullptr) {
      begun(date, refused(HCCL_E_TIMEOUT,
                          fmt::format("rank {} has waited {:.6g} s (HCCL_CONNECT_TIMEOUT) for {}{}", own.rank, timeout_,
                                      meetings_.missing(own.meeting, date - timeout_), core_.hosts.ended_processes())));
      return;
    }
    std::shared_ptr<const CommunicatorGroup>& group = forming_[own.meeting];
    if (group == nullptr) group = form(own, *guests);
    if (own.root != 0) used_roots_.insert(own.root);
    begun(date, communicators_.add(group, own.rank, process));
  };
  const Guest guest{.thread = id, .process = process, .npu = beginning.npu, .bytes = beginning.settings, .done = done};
  meetings_.join(beginning.meeting, beginning.rank, beginning.ranks, guest, timeout_);
}

std::shared_ptr<const CommunicatorGroup> Beginnings::form(const Beginning& beginning,
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
  return make_group(beginning.name, std::move(npus), std::move(processes), beginning.settings);
}

std::shared_ptr<const CommunicatorGroup> Beginnings::make_group(std::string name, std::vector<Rank> npus,
                                                                std::vector<std::uint32_t> processes,
                                                                const std::string& settings) {
  auto group = std::make_shared<CommunicatorGroup>(CommunicatorGroup{.name = std::move(name),
                                                                     .number = groups_++,
                                                                     .npus = std::move(npus),
                                                                     .processes = std::move(processes),
                                                                     .config = core_.platform.config});
  if (const std::string names = apply_settings(settings, *group); !names.empty()) {
    core_.hosts.note(fmt::format("the HcclCommConfig of {} sets {}, which has no effect", group->name, names));
  }
  const hccl::Communicator communicator{group->name, group->npus};
  group->topology = topology_of(communicator, core_.cluster);
  group->id = core_.runtime.create_communicator(communicator);
  return group;
}

Result Beginnings::begin_all(ThreadId id, const Question& question) {
  const std::uint32_t process = core_.hosts.thread(id).process;
  const std::uint32_t server = core_.hosts.process(process).server;
  std::vector<std::int32_t> devices(question.bytes.size() / sizeof(std::int32_t));
  std::memcpy(devices.data(), question.bytes.data(), question.bytes.size());
  if (devices.empty()) return refused(HCCL_E_PARA, "ndev is 0");
  std::vector<Rank> npus;
  for (const std::int32_t device : devices) {
    const std::optional<Rank> npu = devices_.npu_of(server, static_cast<std::uint64_t>(std::int64_t{device}));
    if (!npu.has_value()) return refused(HCCL_E_PARA, fmt::format("devices[{}]: there is no such device", npus.size()));
    const auto same = std::ranges::find(npus, *npu);
    if (same != npus.end()) {
      return refused(HCCL_E_PARA, fmt::format("devices[{}] is devices[{}]", npus.size(), same - npus.begin()));
    }
    npus.push_back(*npu);
  }
  const std::vector<std::uint32_t> processes(npus.size(), process);
  const auto group = make_group(fmt::format("hccl_all_{}", groups_), npus, processes, {});
  std::string handles;
  for (Rank rank = 0; rank < group->ranks(); ++rank) {
    Result added = communicators_.add(group, rank, process);
    if (added.status != 0) return added;
    handles.append(reinterpret_cast<const char*>(added.values.data()), sizeof added.values[0]);
  }
  return {.bytes = handles};
}

}  // namespace hcclsim::clients
