#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"

/// The memory of the simulated NPUs, with real bytes in this process. Addresses are numbers without meaning to
/// programs' hosts, all different, and given out once, so that the use of memory that was freed is found.
namespace hcclsim::clients {

/// In every byte of memory that was not written yet, with --poison: a number that is large or none in most types.
inline constexpr int poison_byte = 0x7f;

/// Bytes that the system gives out page by page, as they are used: zeroed, or poisoned.
class Pages {
 public:
  /// Throws Error(simulated_failure, "memory") if the system does not give so much.
  Pages(Bytes bytes, bool poisoned);
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages();

  [[nodiscard]] std::byte* data() const { return data_; }
  /// The program has given them back, though who still uses them keeps them.
  [[nodiscard]] bool freed() const { return freed_; }
  void set_freed() { freed_ = true; }

 private:
  std::byte* data_ = nullptr;
  Bytes bytes_;
  bool freed_ = false;
};

/// Bytes of an NPU, kept alive by who uses them.
struct DeviceSpan {
  std::shared_ptr<const Pages> pages{};
  std::byte* data = nullptr;
  Bytes bytes = 0;
  Rank npu = 0;
  std::uint64_t address = 0;  ///< as programs have it
};

/// A span, or why there is none.
struct FoundSpan {
  DeviceSpan span{};
  std::string problem{};  ///< empty: none
};

class DeviceMemory {
 public:
  /// NPUs of so many bytes each.
  DeviceMemory(Rank npus, Bytes bytes_of_npu, bool poisoned);

  /// An address, or nothing if the NPU has not so much left.
  [[nodiscard]] std::optional<std::uint64_t> allocate(std::uint32_t process, Rank npu, Bytes bytes);
  /// False if there is no such block of the process.
  bool free(std::uint32_t process, std::uint64_t address);
  /// What a process has on all NPUs, or on one.
  void free_all(std::uint32_t process, std::optional<Rank> npu = std::nullopt);

  /// Addresses without memory; nothing if the NPU has not so many left.
  [[nodiscard]] std::optional<std::uint64_t> reserve(std::uint32_t process, Rank npu, Bytes bytes);
  [[nodiscard]] std::optional<std::uint64_t> allocate_physical(std::uint32_t process, Rank npu, Bytes bytes);
  // What is wrong, empty: nothing.
  [[nodiscard]] std::string release(std::uint32_t process, std::uint64_t address);
  [[nodiscard]] std::string free_physical(std::uint64_t handle);
  [[nodiscard]] std::string map(std::uint32_t process, std::uint64_t address, Bytes bytes, std::uint64_t handle);
  [[nodiscard]] std::string unmap(std::uint32_t process, std::uint64_t address);

  /// Memory that the communication takes for itself. False if there is not so much.
  bool take(Rank npu, Bytes bytes);
  void give_back(Rank npu, Bytes bytes) { used_[npu] -= bytes; }

  /// Whether the process has reserved all of these addresses together.
  [[nodiscard]] bool is_reserved(std::uint32_t process, std::uint64_t address, Bytes bytes) const;
  /// Whether an address is that of a device, of whatever process.
  [[nodiscard]] static bool is_device(std::uint64_t address);
  /// So many bytes at an address, of a program's process.
  [[nodiscard]] FoundSpan find(std::uint32_t process, std::uint64_t address, Bytes bytes) const;

  [[nodiscard]] Bytes total() const { return total_; }
  [[nodiscard]] Bytes free_bytes(Rank npu) const { return total_ - used_[npu]; }

 private:
  struct Block {
    std::shared_ptr<Pages> pages;
    Bytes bytes = 0;
    Rank npu = 0;
    std::uint32_t process = 0;
    bool reserved = false;                    // its bytes can be used where they are mapped
    std::map<Bytes, std::uint64_t> mapped{};  // end of each mapping by its beginning … and its handle below
    std::map<Bytes, std::uint64_t> handles{};
  };
  struct Physical {
    Bytes bytes = 0;
    Rank npu = 0;
    std::uint32_t process = 0;
    bool mapped = false;
  };

  std::optional<std::uint64_t> add(std::uint32_t process, Rank npu, Bytes bytes, bool reserved);
  /// A block that is given back.
  void forget(std::map<std::uint64_t, Block>::iterator block);
  [[nodiscard]] std::map<std::uint64_t, Block>::const_iterator block_at(std::uint64_t address) const;

  Bytes total_;
  bool poisoned_;
  std::vector<Bytes> used_;
  std::uint64_t room_;               // addresses of each NPU
  std::vector<std::uint64_t> next_;  // address of each NPU
  std::map<std::uint64_t, Block> blocks_;
  std::map<std::uint64_t, Bytes> freed_;
  std::map<std::uint64_t, Physical> physical_;
  std::uint64_t next_physical_ = 1;
};

}  // namespace hcclsim::clients
