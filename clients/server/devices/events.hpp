#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "clients/server/core.hpp"
#include "clients/server/devices/device_waits.hpp"
#include "clients/server/devices/streams.hpp"
#include "clients/server/handles.hpp"

namespace hcclsim::clients {

/// Keeps the events of programs: their records in streams, and the streams and threads that wait for those.
class Events {
 public:
  Events(Core& core, DeviceWaits& waits, Handles& handles, Streams& streams)
      : core_(core), waits_(waits), handles_(handles), streams_(streams), on_npu_(core.cluster.size(), 0) {}

  /// Answers questions about events.
  std::optional<Result> handle(ThreadId id, const Question& question);
  /// A process gives up an NPU, with its events there.
  void release(std::uint32_t process, Rank npu);

 private:
  struct Event {
    hccl::EventId id{};
    std::uint32_t process = 0;
    Rank npu = 0;
    std::uint64_t records = 0;
    std::uint64_t done = 0;
    std::uint64_t reset = 0;  // so many of the records
    EventMaker maker = EventMaker::create;
    bool is_flag = false;  // … that a record sets and a reset clears, on which streams can wait before any record
    std::uint64_t awaited = 0;  // of a flag: the latest record for which a stream waits …
    std::uint64_t spent = 0;    // … and the latest that a reset clears, which may still be to come, too
    Seconds date = 0;           // of the last record that is done
    std::uint64_t waits = 0;
    std::uint64_t passed = 0;
    std::vector<std::pair<ThreadId, std::uint64_t>> waiting{};       // until so many records are done
    std::vector<std::pair<ClientStream*, std::uint64_t>> streams{};  // … held by the flag

    /// Of a flag: the record for which a wait that is issued now waits, the latest that is not reset or the next one.
    [[nodiscard]] std::uint64_t record_to_wait_for() const { return std::max(records, spent + 1); }
    [[nodiscard]] bool is_recorded() const;
  };

  Result create(const HostThread& thread, EventMaker maker, std::uint64_t flags);
  void end(Event& event);
  void record(ThreadId id, Event& event, ClientStream& stream);
  Result wait(ThreadId id, Event& event, ClientStream& stream);
  void reset(Event& event, ClientStream& stream);
  std::optional<Result> synchronize(ThreadId id, Event& event, std::int64_t milliseconds);
  static Result time_between(const Event& begin, const Event& end);
  [[nodiscard]] Event* find(ThreadId id, std::uint64_t handle);

  Core& core_;
  DeviceWaits& waits_;
  Handles& handles_;
  Streams& streams_;
  std::map<std::uint64_t, std::unique_ptr<Event>> events_;
  std::vector<std::uint32_t> on_npu_;  // how many programs have
};

}  // namespace hcclsim::clients
