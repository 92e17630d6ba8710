#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "clients/server/core.hpp"
#include "clients/server/devices/devices.hpp"
#include "clients/server/devices/streams.hpp"
#include "clients/server/handles.hpp"

namespace hcclsim::clients {

/// Makes tasks of streams that copy from and to the memory of devices, and that fill it.
class Copies {
 public:
  Copies(Core& core, const Devices& devices, Handles& handles, Streams& streams)
      : core_(core), devices_(devices), handles_(handles), streams_(streams) {}

  /// Answers questions to copy, to fill, and to free memory of the host.
  std::optional<Result> handle(ThreadId id, const Question& question);
  /// A copy within the device's memory, or from another NPU's, which does not begin before the date.
  void copy_within(ClientStream& stream, Seconds date, const DeviceSpan& to, const DeviceSpan& from);

 private:
  /// Pinned memory of a program that a copy under way reads or writes.
  struct HostUse {
    std::uint32_t process = 0;
    std::uint64_t address = 0;
    Bytes bytes = 0;
    std::string what{};

    [[nodiscard]] bool meets(std::uint32_t of, std::uint64_t at, Bytes some) const {
      return process == of && address < at + some && at < address + bytes;
    }
  };
  /// A copy of which one end, or both, are in the memory of a program's process.
  struct HostCopy {
    std::uint32_t process = 0;
    std::uint64_t source = 0;
    std::uint64_t destination = 0;
    DeviceSpan from{};  // no pages: it is the process's memory
    DeviceSpan to{};
    Bytes bytes = 0;
    bool later = false;   // the program does not wait for it
    bool pinned = false;  // the source

    [[nodiscard]] bool from_host() const { return from.pages == nullptr; }
    [[nodiscard]] bool to_host() const { return to.pages == nullptr; }
    /// Of what the process must leave alone.
    [[nodiscard]] std::uint64_t host_address() const { return from_host() ? source : destination; }
  };

  std::optional<Result> copy(ThreadId id, const Question& question);
  std::optional<Result> fill(ThreadId id, const Question& question);
  /// The stream of the handle, or one that the program cannot name for what is done at once.
  FoundStream stream_for(ThreadId id, std::uint64_t handle, bool at_once);
  /// A refusal, or status 0: the copy is in the stream.
  Result copy_host(ClientStream& stream, Seconds date, const HostCopy& copy);
  /// The stream has come to the end of the copy: its bytes move. `taken`: what the host has given; `is_watched`: it
  /// must still be the same. Throws Error(simulated_failure, "client") if memory is gone, or was written to.
  void move(const HostCopy& copy, const std::string& where, std::vector<std::byte>& taken, bool is_watched) const;
  /// Why the process has no such memory to copy from or to; empty: it has. Takes what it gives.
  [[nodiscard]] std::string take_from_host(const HostCopy& copy, std::vector<std::byte>& taken) const;
  /// Whether nothing that is under way may use the memory of the process before the copy does.
  [[nodiscard]] bool is_left_alone(const HostCopy& copy) const;
  /// Throws Error(simulated_failure, "client") if a copy under way uses the program's memory, which is freed.
  void free_host(std::uint32_t process, std::uint64_t address, Bytes bytes) const;

  Core& core_;
  const Devices& devices_;
  Handles& handles_;
  Streams& streams_;
  std::map<std::uint64_t, HostUse> host_uses_;  // by a number of their own
};

}  // namespace hcclsim::clients
