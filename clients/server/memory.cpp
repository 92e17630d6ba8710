#include "clients/server/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::clients {
namespace {

constexpr std::uint64_t first_address = std::uint64_t{1} << 56U;  // no address of a host: to read there is a fault
constexpr Bytes alignment = 512;
constexpr Bytes granularity = Bytes{2} << 20U;
constexpr std::uint64_t physical_tag = std::uint64_t{0x5054} << 48U;

constexpr Bytes poisoned_file_bytes = Bytes{64} << 20U;

Bytes round_up(Bytes bytes, Bytes unit) { return (bytes + unit - 1) / unit * unit; }

[[noreturn]] void no_pages(Bytes bytes) {
  simulated_failure("memory", "{} bytes for a device: {}", bytes, std::strerror(errno));
}

/// A file of poison: memory that shows it takes none until it is written.
int poisoned_file() {
  static const int file = [] {
    const int made = ::memfd_create("poison", MFD_CLOEXEC);
    const bool has_room = made >= 0 && ::ftruncate(made, static_cast<off_t>(poisoned_file_bytes)) == 0;
    void* const bytes = has_room ? ::mmap(nullptr, poisoned_file_bytes, PROT_WRITE, MAP_SHARED, made, 0) : MAP_FAILED;
    if (bytes == MAP_FAILED) no_pages(poisoned_file_bytes);
    std::memset(bytes, poison_byte, poisoned_file_bytes);
    ::munmap(bytes, poisoned_file_bytes);
    return made;
  }();
  return file;
}

}  // namespace

Pages::Pages(Bytes bytes, bool poisoned) : bytes_(bytes) {
  void* const got = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) no_pages(bytes);
  data_ = static_cast<std::byte*>(got);
  for (Bytes at = 0; poisoned && at < bytes; at += poisoned_file_bytes) {
    const Bytes part = std::min(poisoned_file_bytes, bytes - at);
    void* const placed =
        ::mmap(data_ + at, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, poisoned_file(), 0);
    if (placed == MAP_FAILED) no_pages(bytes);
  }
}

Pages::~Pages() { ::munmap(data_, bytes_); }

DeviceMemory::DeviceMemory(Rank npus, Bytes bytes_of_npu_memory, bool poisoned)
    : total_(bytes_of_npu_memory),
      poisoned_(poisoned),
      used_(npus, 0),
      room_(first_address / std::bit_ceil(std::uint64_t{npus})) {
  for (Rank npu = 0; npu < npus; ++npu) next_.push_back(first_address + npu * room_);
}

std::optional<std::uint64_t> DeviceMemory::add(std::uint32_t process, Rank npu, Bytes bytes, bool reserved) {
  const Bytes unit = reserved ? granularity : alignment;
  const std::uint64_t address = round_up(next_[npu], unit);
  const std::uint64_t end = first_address + (npu + 1) * room_;
  const Bytes gap = unit + alignment;  // so that what runs over the end is found
  if (address + gap >= end || bytes > end - address - gap) return std::nullopt;
  next_[npu] = address + round_up(bytes, unit) + alignment;
  blocks_[address] = {.pages = std::make_shared<Pages>(bytes, poisoned_),
                      .bytes = bytes,
                      .npu = npu,
                      .process = process,
                      .reserved = reserved};
  return address;
}

std::optional<std::uint64_t> DeviceMemory::allocate(std::uint32_t process, Rank npu, Bytes bytes) {
  if (bytes > total_ || !take(npu, round_up(bytes, alignment))) return std::nullopt;
  return add(process, npu, bytes, false);
}

bool DeviceMemory::take(Rank npu, Bytes bytes) {
  if (bytes > free_bytes(npu)) return false;
  used_[npu] += bytes;
  return true;
}

bool DeviceMemory::free(std::uint32_t process, std::uint64_t address) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end() || found->second.process != process || found->second.reserved) return false;
  used_[found->second.npu] -= round_up(found->second.bytes, alignment);
  forget(found);
  return true;
}

void DeviceMemory::forget(std::map<std::uint64_t, Block>::iterator block) {
  block->second.pages->set_freed();
  freed_[block->first] = block->second.bytes;
  blocks_.erase(block);
}

void DeviceMemory::free_all(std::uint32_t process, std::optional<Rank> npu) {
  const auto goes = [&](const auto& one) { return one.process == process && (!npu.has_value() || one.npu == *npu); };
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    const auto one = block++;
    if (!goes(one->second)) continue;
    if (one->second.reserved) {
      forget(one);
    } else {
      free(process, one->first);
    }
  }
  std::erase_if(physical_, [&](const auto& one) {
    if (!goes(one.second)) return false;
    used_[one.second.npu] -= one.second.bytes;
    return true;
  });
}

std::optional<std::uint64_t> DeviceMemory::reserve(std::uint32_t process, Rank npu, Bytes bytes) {
  return add(process, npu, bytes, true);
}

std::optional<std::uint64_t> DeviceMemory::allocate_physical(std::uint32_t process, Rank npu, Bytes bytes) {
  if (!take(npu, bytes)) return std::nullopt;
  const std::uint64_t handle = physical_tag | next_physical_++;
  physical_[handle] = {.bytes = bytes, .npu = npu, .process = process};
  return handle;
}

std::string DeviceMemory::release(std::uint32_t process, std::uint64_t address) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end() || found->second.process != process || !found->second.reserved) {
    return fmt::format("0x{:x} was not reserved, or was released", address);
  }
  if (!found->second.mapped.empty()) return "memory is still mapped there";
  forget(found);
  return {};
}

std::string DeviceMemory::free_physical(std::uint64_t handle) {
  const auto found = physical_.find(handle);
  if (found == physical_.end()) return "this is no physical memory, or it was freed";
  if (found->second.mapped) return "the memory is still mapped";
  used_[found->second.npu] -= found->second.bytes;
  physical_.erase(found);
  return {};
}

std::string DeviceMemory::map(std::uint32_t process, std::uint64_t address, Bytes bytes, std::uint64_t handle) {
  const auto physical = physical_.find(handle);
  if (physical == physical_.end()) return "this is no physical memory, or it was freed";
  if (physical->second.mapped) return "the memory is mapped already; mapping it twice is not simulated";
  if (bytes != physical->second.bytes) {
    return fmt::format("size is {}, the memory has {} bytes", bytes, physical->second.bytes);
  }
  const auto found = block_at(address);
  if (found == blocks_.end() || !found->second.reserved || found->second.process != process) {
    return fmt::format("0x{:x} was not reserved", address);
  }
  Block& block = blocks_[found->first];
  const Bytes begin = address - found->first;
  if (bytes > block.bytes - begin) return "the memory leaves what was reserved";
  for (const auto& [other, end] : block.mapped) {
    if (other < begin + bytes && begin < end) return "other memory is mapped there";
  }
  block.mapped[begin] = begin + bytes;
  block.handles[begin] = handle;
  physical->second.mapped = true;
  return {};
}

std::string DeviceMemory::unmap(std::uint32_t process, std::uint64_t address) {
  const auto found = block_at(address);
  if (found == blocks_.end() || !found->second.reserved || found->second.process != process) {
    return fmt::format("0x{:x} was not reserved", address);
  }
  Block& block = blocks_[found->first];
  const auto handle = block.handles.find(address - found->first);
  if (handle == block.handles.end()) return fmt::format("nothing is mapped at 0x{:x}", address);
  physical_[handle->second].mapped = false;
  block.mapped.erase(handle->first);
  block.handles.erase(handle);
  return {};
}

bool DeviceMemory::is_reserved(std::uint32_t process, std::uint64_t address, Bytes bytes) const {
  const auto found = block_at(address);
  if (bytes == 0 || found == blocks_.end()) return false;
  const Block& block = found->second;
  return block.reserved && block.process == process && bytes <= block.bytes - (address - found->first);
}

bool DeviceMemory::is_device(std::uint64_t address) { return address >= first_address && address < 2 * first_address; }

std::map<std::uint64_t, DeviceMemory::Block>::const_iterator DeviceMemory::block_at(std::uint64_t address) const {
  const auto behind = blocks_.upper_bound(address);
  if (behind == blocks_.begin()) return blocks_.end();
  const auto found = std::prev(behind);
  return address < found->first + found->second.bytes ? found : blocks_.end();
}

FoundSpan DeviceMemory::find(std::uint32_t process, std::uint64_t address, Bytes bytes) const {
  if (address == 0) return {.problem = "null"};
  if (!is_device(address)) return {.problem = fmt::format("0x{:x} is not memory of a device", address)};
  const auto found = block_at(address);
  if (found == blocks_.end()) {
    const auto behind = freed_.upper_bound(address);
    const bool was_freed = behind != freed_.begin() && address < std::prev(behind)->first + std::prev(behind)->second;
    return {.problem = fmt::format("0x{:x} {}", address, was_freed ? "was freed" : "is in no block of a device")};
  }
  const Block& block = found->second;
  if (block.process != process) return {.problem = fmt::format("0x{:x} belongs to another process", address)};
  const Bytes offset = address - found->first;
  if (bytes > block.bytes - offset) {
    return {.problem = fmt::format("{} bytes at 0x{:x} leave their block, which has {} from there", bytes, address,
                                   block.bytes - offset)};
  }
  for (Bytes at = offset; block.reserved && at < offset + bytes;) {
    const auto next = block.mapped.upper_bound(at);
    if (next == block.mapped.begin() || std::prev(next)->second <= at) {
      return {.problem = fmt::format("no memory is mapped at 0x{:x}", found->first + at)};
    }
    at = std::prev(next)->second;
  }
  return {.span = {.pages = block.pages,
                   .data = block.pages->data() + offset,
                   .bytes = bytes,
                   .npu = block.npu,
                   .address = address}};
}

}  // namespace hcclsim::clients
