#include "clients/server/communicators/communicators.hpp"

#include <utility>

#include <hccl/hccl_types.h>

#include "clients/server/communicators/rank_graph.hpp"

namespace hcclsim::clients {

const ClientCommunicator* Communicators::find(ThreadId id, std::uint64_t handle) const {
  const auto found = communicators_.find(handle);
  if (found == communicators_.end() || found->second.destroyed) return nullptr;
  return found->second.process == core_.hosts.thread(id).process ? &found->second : nullptr;
}

Result Communicators::handle(ThreadId id, const Question& question) {
  const auto& values = question.values;
  switch (question.call) {
    case Call::set_deterministic:
      if (values[0] > 2) return refused(HCCL_E_PARA, "HCCL_DETERMINISTIC: 0, 1 or 2");
      determinism_ = static_cast<hccl::Determinism>(values[0]);
      return {};
    case Call::get_deterministic:
      return {.values = {static_cast<std::uint64_t>(determinism_.value_or(core_.platform.config.determinism))}};
    case Call::status_by_name:
      return status_of(id, question.bytes);
    case Call::destroy_communicator:
      return destroy(id, values[0]);
    default:
      break;
  }
  const ClientCommunicator* const own = find(id, values[0]);
  if (own == nullptr) return unknown(values[0]);
  switch (question.call) {
    case Call::communicator_facts:
      return {.values = {own->group->ranks(), own->rank}, .bytes = own->group->name};
    case Call::async_error: {
      const bool timed_out = core_.failure.has_value() && core_.failure->kind() == "timeout";
      return {.values = {static_cast<std::uint64_t>(!core_.failure.has_value() ? HCCL_SUCCESS
                                                    : timed_out                ? HCCL_E_TIMEOUT
                                                                               : HCCL_E_REMOTE)}};
    }
    case Call::suspend:
      communicators_[values[0]].suspended = values[1] == 0;
      return {};
    default:
      return rank_graph(core_, *own, question);
  }
}

Result Communicators::add(std::shared_ptr<const CommunicatorGroup> group, Rank rank, std::uint32_t process) {
  if (!core_.memory.take(group->npus[rank], group->config.communicator_bytes())) {
    return refused(HCCL_E_MEMORY, "no memory is left for the communicator's buffers");
  }
  const std::uint64_t handle = handles_.next(HandleKind::communicator);
  communicators_[handle] = {.group = std::move(group), .rank = rank, .process = process};
  return {.values = {handle}};
}

Result Communicators::status_of(ThreadId id, const std::string& name) const {
  const HostThread& thread = core_.hosts.thread(id);
  const ClientCommunicator* found = nullptr;
  for (const auto& [handle, one] : communicators_) {
    if (one.destroyed || one.process != thread.process || one.group->name != name) continue;
    const bool is_own = thread.npu == one.npu();
    if (found == nullptr || is_own) found = &one;
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
  const auto found = communicators_.find(handle);
  const bool is_own = found != communicators_.end() && found->second.process == core_.hosts.thread(id).process;
  if (!is_own || (found->second.destroyed && !found->second.released)) return unknown(handle);
  if (!std::exchange(found->second.released, false)) end(found->second);
  return {};
}

void Communicators::end(ClientCommunicator& communicator) {
  communicator.destroyed = true;
  core_.memory.give_back(communicator.npu(), communicator.group->config.communicator_bytes());
}

void Communicators::release(std::uint32_t process, Rank npu) {
  for (auto& [handle, one] : communicators_) {
    if (one.process != process || one.npu() != npu || one.destroyed) continue;
    end(one);
    one.released = true;
  }
}

}  // namespace hcclsim::clients
