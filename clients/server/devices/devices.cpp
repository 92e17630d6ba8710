#include "clients/server/devices/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include <acl/acl_rt.h>

namespace hcclsim::clients {

Devices::Devices(Core& core) : core_(core) {
  for (Rank npu = 0; npu < core.cluster.size(); ++npu) {
    const sim::Npu& one = core.cluster.npu(npu);
    npu_of_device_[{one.server, one.device}] = npu;
  }
}

std::optional<Result> Devices::handle(ThreadId id, const Question& question) {
  HostThread& thread = core_.hosts.thread(id);
  const std::uint32_t server = core_.hosts.process(thread.process).server;
  switch (question.call) {
    case Call::date:
      return Result{.values = {std::bit_cast<std::uint64_t>(thread.date)}};
    case Call::device_count:
      return Result{.values = {devices_of(server), server}, .bytes = fmt::format("server{}", server)};
    case Call::soc_name:
      return Result{.bytes = core_.platform.soc.name};
    case Call::set_device:
      return set_device(id, question.values[0], question.values[1] != 0);
    case Call::get_device:
      if (!thread.npu.has_value()) return refused(ACL_ERROR_RT_CONTEXT_NULL, "the thread has set no device");
      return Result{.values = {core_.cluster.npu(*thread.npu).device}};
    case Call::reset_device: {
      const std::optional<Rank> npu = npu_of(server, question.values[0]);
      if (!npu.has_value()) return refused(ACL_ERROR_RT_INVALID_DEVICEID, "there is no such device");
      release(thread.process, *npu, question.values[1] != 0);
      return Result{};
    }
    case Call::finalize: {
      const auto used = used_;
      for (const auto& [place, times] : used) {
        if (place.first == thread.process) release(place.first, place.second, true);
      }
      return Result{};
    }
    case Call::device_topology:
      return topology(id, question);
    case Call::peer_access:
      return peer_access(id, question);
    default:  // set_saturation
      if (!thread.npu.has_value()) return refused(ACL_ERROR_RT_CONTEXT_NULL, "the thread has set no device");
      if (question.values[0] != 0 && question.values[1] != 0) saturating_.insert(*thread.npu);
      if (question.values[0] != 0 && question.values[1] == 0) saturating_.erase(*thread.npu);
      return Result{.values = {saturates(*thread.npu) ? 1U : 0U}};
  }
}

std::uint32_t Devices::devices_of(std::uint32_t server) const {
  const auto is_there = [&](const auto& one) { return one.first.first == server; };
  return static_cast<std::uint32_t>(std::ranges::count_if(npu_of_device_, is_there));
}

std::optional<Rank> Devices::npu_of(std::uint32_t server, std::uint64_t device) const {
  const auto found = npu_of_device_.find({server, static_cast<std::uint32_t>(device)});
  return found == npu_of_device_.end() || device > ~std::uint32_t{0} ? std::nullopt : std::optional(found->second);
}

Result Devices::set_device(ThreadId id, std::uint64_t device, bool counts) {
  HostThread& thread = core_.hosts.thread(id);
  const std::uint32_t server = core_.hosts.process(thread.process).server;
  const std::optional<Rank> npu = npu_of(server, device);
  if (!npu.has_value()) {
    return refused(ACL_ERROR_RT_INVALID_DEVICEID, fmt::format("there is no device {}: the server has {}",
                                                              static_cast<std::int64_t>(device), devices_of(server)));
  }
  thread.npu = npu;
  used_[{thread.process, *npu}] += counts ? 1 : 0;
  return {};
}

void Devices::release(std::uint32_t process, Rank npu, bool by_force) {
  const auto used = used_.find({process, npu});
  if (used == used_.end()) return;
  if (!by_force && used->second > 1) {
    --used->second;
    return;
  }
  used_.erase(used);
  for (const auto& thread : core_.hosts.threads()) {
    if (thread->process == process && thread->npu == npu) thread->npu.reset();
  }
  if (on_release) on_release(process, npu);
}

Result Devices::peer_access(ThreadId id, const Question& question) {
  const HostThread& thread = core_.hosts.thread(id);
  if (!thread.npu.has_value()) return refused(ACL_ERROR_RT_CONTEXT_NULL, "the thread has set no device");
  const std::optional<Rank> peer = npu_of(core_.hosts.process(thread.process).server, question.values[0]);
  if (!peer.has_value()) return refused(ACL_ERROR_RT_INVALID_DEVICEID, "there is no such device");
  if (peer == thread.npu) return refused(ACL_ERROR_RT_PARAM_INVALID, "this is the thread's own device");
  const auto [first, last] = std::minmax(*peer, *thread.npu);
  if (question.values[1] != 0) {
    peers_.emplace(thread.process, first, last);
  } else if (peers_.erase({thread.process, first, last}) == 0) {
    return refused(ACL_ERROR_RT_PARAM_INVALID, "peer access was not enabled");
  }
  return {};
}

bool Devices::have_access(std::uint32_t process, Rank npu, Rank other) const {
  const auto [first, last] = std::minmax(npu, other);
  return npu == other || peers_.contains({process, first, last});
}

Result Devices::topology(ThreadId id, const Question& question) {
  const std::uint32_t server = core_.hosts.process(core_.hosts.thread(id).process).server;
  const std::optional<Rank> one = npu_of(server, question.values[0]);
  const std::optional<Rank> other = npu_of(server, question.values[1]);
  if (!one.has_value() || !other.has_value()) return refused(ACL_ERROR_RT_INVALID_DEVICEID, "there is no such device");
  if (one == other) return refused(ACL_ERROR_RT_PARAM_INVALID, "the devices are the same");
  std::uint64_t links = 0;
  for (const sim::LinkId link : core_.cluster.route(*one, *other).links) {
    switch (core_.cluster.links()[link].kind) {
      case sim::LinkKind::hccs:
        links |= ACL_DEVICES_TOPO_HCCS;
        break;
      case sim::LinkKind::pcie:
        links |= ACL_DEVICES_TOPO_PHB;
        break;
      case sim::LinkKind::sio:
        links |= ACL_DEVICES_TOPO_SIO;
        break;
      case sim::LinkKind::ub:
        links |= ACL_DEVICES_TOPO_HCCS_SW;
        break;
      case sim::LinkKind::roce:
      case sim::LinkKind::other:
        links |= ACL_DEVICES_TOPO_SYS;
        break;
    }
  }
  return {.values = {links}};
}

}  // namespace hcclsim::clients
