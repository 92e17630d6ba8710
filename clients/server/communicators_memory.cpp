#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include <hccl/hccl_types.h>

#include "clients/server/communicators.hpp"

// Memory that the peers of a communicator access directly: ranges, in which a program activates what is mapped there,
// and windows of symmetric memory.
namespace hcclsim::clients {
namespace {

constexpr std::uint64_t window_tag = std::uint64_t{0x54} << 56U;

using Ranges = std::map<std::uint64_t, Bytes>;

/// Whether one range has these bytes, or, if ranges may be joined, several that follow each other without a gap.
bool covers(const Ranges& ranges, std::uint64_t address, Bytes bytes, bool joined) {
  auto next = ranges.upper_bound(address);
  if (next == ranges.begin()) return false;
  std::uint64_t end = std::prev(next)->first + std::prev(next)->second;
  if (address >= end) return false;
  for (; joined && next != ranges.end() && next->first == end; ++next) end += next->second;
  return bytes <= end - address;
}

bool overlap(const Ranges& ranges, std::uint64_t address, Bytes bytes) {
  return std::ranges::any_of(
      ranges, [&](const auto& one) { return one.first < address + bytes && address < one.first + one.second; });
}

bool is_used(const ClientCommunicator& own, std::uint64_t address, Bytes bytes) {
  return overlap(own.active, address, bytes) || overlap(own.window_bytes, address, bytes);
}

}  // namespace

Result Communicators::range(ClientCommunicator& own, const Question& question) const {
  const std::uint64_t address = question.values[1];
  const Bytes bytes = question.values[2];
  if (address == 0) return refused(HCCL_E_PTR, "the address is null");
  switch (question.call) {
    case Call::set_range:
      if (!core_.memory.is_reserved(own.process, address, bytes)) {
        return refused(HCCL_E_PARA, "this range was not reserved with aclrtReserveMemAddress");
      }
      if (overlap(own.ranges, address, bytes)) return refused(HCCL_E_PARA, "the range overlaps one that was set");
      own.ranges[address] = bytes;
      return {};
    case Call::unset_range: {
      const auto found = own.ranges.find(address);
      if (found == own.ranges.end()) return refused(HCCL_E_NOT_FOUND, "this range was not set");
      if (is_used(own, address, found->second)) return refused(HCCL_E_PARA, "memory in the range is active");
      own.ranges.erase(found);
      return {};
    }
    case Call::activate_range: {
      if (bytes == 0 || !covers(own.ranges, address, bytes, false)) {
        return refused(HCCL_E_PARA, "the memory is in no range that was set");
      }
      const FoundSpan found = core_.memory.find(own.process, address, bytes);
      if (!found.problem.empty()) return refused(HCCL_E_PARA, found.problem);
      if (is_used(own, address, bytes)) return refused(HCCL_E_PARA, "the memory overlaps what is active");
      own.active[address] = bytes;
      return {};
    }
    default:
      if (own.active.erase(address) == 0) return refused(HCCL_E_NOT_FOUND, "this memory was not activated");
      return {};
  }
}

Result Communicators::window(ClientCommunicator& own, const Question& question) {
  const auto [handle, address, bytes, a, b, c, d, e] = question.values;
  if (address == 0) return refused(HCCL_E_PTR, "the address is null");
  if (question.call == Call::find_window) {
    for (const auto& [number, one] : windows_) {
      const std::uint64_t offset = address - one.address;
      const bool has =
          one.communicator == handle && address >= one.address && offset < one.bytes && bytes <= one.bytes - offset;
      if (has) return {.values = {number, offset}};
    }
    return refused(HCCL_E_NOT_FOUND, "no window of comm has these bytes");
  }
  if (bytes == 0) return refused(HCCL_E_PARA, "size is 0");
  if (!core_.memory.is_reserved(own.process, address, bytes)) {
    return refused(HCCL_E_PARA, "addr was not reserved with aclrtReserveMemAddress, or not so many bytes");
  }
  const FoundSpan found = core_.memory.find(own.process, address, bytes);
  if (!found.problem.empty()) return refused(HCCL_E_PARA, found.problem);
  if (is_used(own, address, bytes)) return refused(HCCL_E_PARA, "the memory overlaps what is registered");
  const auto add = [](Bytes sum, const auto& one) { return sum + one.second; };
  const Bytes taken = std::accumulate(own.window_bytes.begin(), own.window_bytes.end(), Bytes{0}, add);
  if (bytes > own.group->window_bytes - taken) {
    return refused(HCCL_E_MEMORY,
                   fmt::format("size is {}: of the {} GB for the windows of a rank (hcclSymWinMaxMemSizePerRank) {} "
                               "bytes are left",
                               bytes, own.group->window_bytes >> 30U, own.group->window_bytes - taken));
  }
  std::vector<Bytes>& sizes = own.group->window_sizes;
  if (own.windows < sizes.size() && sizes[own.windows] != bytes) {
    return refused(HCCL_E_PARA, fmt::format("size is {}, another rank has registered {} as its window {}", bytes,
                                            sizes[own.windows], own.windows));
  }
  if (own.windows == sizes.size()) sizes.push_back(bytes);
  ++own.windows;
  own.window_bytes[address] = bytes;
  const std::uint64_t number = window_tag | next_handle_++;
  windows_[number] = {.communicator = handle, .address = address, .bytes = bytes};
  return {.values = {number}};
}

Result Communicators::end_window(ThreadId id, std::uint64_t number) {
  if (number == 0) return refused(HCCL_E_PTR, "winHandle is null");
  const auto found = windows_.find(number);
  ClientCommunicator* const own = found == windows_.end() ? nullptr : find(id, found->second.communicator);
  if (own == nullptr) return refused(HCCL_E_PARA, "winHandle is no window, or it or its communicator is gone");
  own->window_bytes.erase(found->second.address);
  windows_.erase(found);
  return {};
}

bool is_active(const ClientCommunicator& own, std::uint64_t address, Bytes bytes) {
  return covers(own.active, address, bytes, true) || covers(own.window_bytes, address, bytes, false);
}

}  // namespace hcclsim::clients
