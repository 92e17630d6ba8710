#include "clients/server/communicators/peer_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include <hccl/hccl_types.h>

namespace hcclsim::clients {
namespace {

/// Whether one range has these bytes, or, if ranges may be joined, several that follow each other without a gap.
bool covers(const std::map<std::uint64_t, Bytes>& ranges, std::uint64_t address, Bytes bytes, bool joined) {
  auto next = ranges.upper_bound(address);
  if (next == ranges.begin()) return false;
  std::uint64_t end = std::prev(next)->first + std::prev(next)->second;
  if (address >= end) return false;
  for (; joined && next != ranges.end() && next->first == end; ++next) end += next->second;
  return bytes <= end - address;
}

bool overlap(const std::map<std::uint64_t, Bytes>& ranges, std::uint64_t address, Bytes bytes) {
  return std::ranges::any_of(
      ranges, [&](const auto& one) { return one.first < address + bytes && address < one.first + one.second; });
}

}  // namespace

bool PeerMemory::OfRank::is_used(std::uint64_t address, Bytes bytes) const {
  return overlap(active, address, bytes) || overlap(window_bytes, address, bytes);
}

bool PeerMemory::has_any(const ClientCommunicator& own) const {
  const auto found = of_ranks_.find(&own);
  return found != of_ranks_.end() && !(found->second.active.empty() && found->second.window_bytes.empty());
}

bool PeerMemory::is_active(const ClientCommunicator& own, std::uint64_t address, Bytes bytes) const {
  const auto found = of_ranks_.find(&own);
  return found != of_ranks_.end() && (covers(found->second.active, address, bytes, true) ||
                                      covers(found->second.window_bytes, address, bytes, false));
}

Result PeerMemory::handle(ThreadId id, const Question& question) {
  const auto [handle, address, bytes, a, b, c, d, e] = question.values;
  if (question.call == Call::end_window) return end_window(id, handle);
  const ClientCommunicator* const own = communicators_.find(id, handle);
  if (own == nullptr) return Communicators::unknown(handle);
  if (address == 0) return refused(HCCL_E_PTR, "the address is null");
  switch (question.call) {
    case Call::begin_window:
      return begin_window(*own, handle, address, bytes);
    case Call::find_window:
      return find_window(handle, address, bytes);
    default:
      return range(*own, question.call, address, bytes);
  }
}

Result PeerMemory::range(const ClientCommunicator& communicator, Call call, std::uint64_t address, Bytes bytes) {
  OfRank& own = of_ranks_[&communicator];
  switch (call) {
    case Call::set_range:
      if (!core_.memory.is_reserved(communicator.process, address, bytes)) {
        return refused(HCCL_E_PARA, "this range was not reserved with aclrtReserveMemAddress");
      }
      if (overlap(own.ranges, address, bytes)) return refused(HCCL_E_PARA, "the range overlaps one that was set");
      own.ranges[address] = bytes;
      return {};
    case Call::unset_range: {
      const auto found = own.ranges.find(address);
      if (found == own.ranges.end()) return refused(HCCL_E_NOT_FOUND, "this range was not set");
      if (own.is_used(address, found->second)) return refused(HCCL_E_PARA, "memory in the range is active");
      own.ranges.erase(found);
      return {};
    }
    case Call::activate_range: {
      if (bytes == 0 || !covers(own.ranges, address, bytes, false)) {
        return refused(HCCL_E_PARA, "the memory is in no range that was set");
      }
      const FoundSpan found = core_.memory.find(communicator.process, address, bytes);
      if (!found.problem.empty()) return refused(HCCL_E_PARA, found.problem);
      if (own.is_used(address, bytes)) return refused(HCCL_E_PARA, "the memory overlaps what is active");
      own.active[address] = bytes;
      return {};
    }
    default:
      if (own.active.erase(address) == 0) return refused(HCCL_E_NOT_FOUND, "this memory was not activated");
      return {};
  }
}

Result PeerMemory::find_window(std::uint64_t handle, std::uint64_t address, Bytes bytes) const {
  for (const auto& [number, one] : windows_) {
    const std::uint64_t offset = address - one.address;
    const bool has =
        one.communicator == handle && address >= one.address && offset < one.bytes && bytes <= one.bytes - offset;
    if (has) return {.values = {number, offset}};
  }
  return refused(HCCL_E_NOT_FOUND, "no window of comm has these bytes");
}

Result PeerMemory::begin_window(const ClientCommunicator& communicator, std::uint64_t handle, std::uint64_t address,
                                Bytes bytes) {
  if (bytes == 0) return refused(HCCL_E_PARA, "size is 0");
  if (!core_.memory.is_reserved(communicator.process, address, bytes)) {
    return refused(HCCL_E_PARA, "addr was not reserved with aclrtReserveMemAddress, or not so many bytes");
  }
  const CommunicatorGroup& group = *communicator.group;
  OfRank& own = of_ranks_[&communicator];
  const FoundSpan found = core_.memory.find(communicator.process, address, bytes);
  if (!found.problem.empty()) return refused(HCCL_E_PARA, found.problem);
  if (own.is_used(address, bytes)) return refused(HCCL_E_PARA, "the memory overlaps what is registered");
  const auto add = [](Bytes sum, const auto& one) { return sum + one.second; };
  const Bytes taken = std::accumulate(own.window_bytes.begin(), own.window_bytes.end(), Bytes{0}, add);
  if (bytes > group.window_bytes - taken) {
    return refused(HCCL_E_MEMORY,
                   fmt::format("size is {}: of the {} GB for the windows of a rank (hcclSymWinMaxMemSizePerRank) {} "
                               "bytes are left",
                               bytes, group.window_bytes >> 30U, group.window_bytes - taken));
  }
  std::vector<Bytes>& sizes = window_sizes_[&group];
  if (own.windows < sizes.size() && sizes[own.windows] != bytes) {
    return refused(HCCL_E_PARA, fmt::format("size is {}, another rank has registered {} as its window {}", bytes,
                                            sizes[own.windows], own.windows));
  }
  if (own.windows == sizes.size()) sizes.push_back(bytes);
  ++own.windows;
  own.window_bytes[address] = bytes;
  const std::uint64_t number = handles_.next(HandleKind::window);
  windows_[number] = {.communicator = handle, .address = address, .bytes = bytes};
  return {.values = {number}};
}

Result PeerMemory::end_window(ThreadId id, std::uint64_t number) {
  if (number == 0) return refused(HCCL_E_PTR, "winHandle is null");
  const auto found = windows_.find(number);
  const ClientCommunicator* const own =
      found == windows_.end() ? nullptr : communicators_.find(id, found->second.communicator);
  if (own == nullptr) return refused(HCCL_E_PARA, "winHandle is no window, or it or its communicator is gone");
  of_ranks_[own].window_bytes.erase(found->second.address);
  windows_.erase(found);
  return {};
}

}  // namespace hcclsim::clients
