#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "clients/server/accesses.hpp"
#include "clients/server/core.hpp"

/// Devices, memory, streams, events and functions of the host, as the functions of ACL ask for them. A task is given to
/// its stream at the date of the thread that asks; its bytes move when the stream has come to its end.
namespace hcclsim::clients {

/// A task in a stream, as far as others have to know of it.
struct StreamTask {
  std::string name{};         ///< for people
  Accesses::Number uses = 0;  ///< its number there; 0: nobody watches what it uses
};

/// A stream of a program.
struct ClientStream {
  hccl::StreamId id{};
  Rank npu = 0;
  std::uint32_t process = 0;
  std::uint32_t number = 0;  ///< of the NPU, for people
  bool destroyed = false;
  bool is_default = false;
  bool is_hidden = false;          ///< the simulator's own: no program can name it
  std::uint32_t holds = 0;         ///< tasks that wait until something that was issued later has happened
  std::uint64_t pending = 0;       ///< tasks that move data and are not done
  std::deque<StreamTask> tasks{};  ///< those
};

class Devices {
 public:
  explicit Devices(Core& core);

  std::optional<Result> handle(ThreadId id, const Question& question);

  /// The stream of a handle that the thread's process may use; null: none. 0 is the default stream of its device.
  [[nodiscard]] ClientStream* stream_of(ThreadId id, std::uint64_t handle);
  [[nodiscard]] std::uint64_t handle_of(const ClientStream& stream) const;
  /// Whether the thread can use the stream of a handle, which stream_of() has found: a refusal, or status 0.
  [[nodiscard]] Result usable(ThreadId id, std::uint64_t handle, const ClientStream* stream) const;
  /// Makes a stream for the simulator's own use.
  [[nodiscard]] ClientStream& hidden_stream(std::uint32_t process, Rank npu, std::uint32_t number);
  /// The next tasks of the stream do not begin before the date.
  void reach(ClientStream& stream, Seconds date) { core_.runtime.wait_until(stream.id, date); }
  /// A task that ends when all before it in the stream have; then calls the function.
  void begin_task(ClientStream& stream, std::string name, Uses uses = {});
  void end_task(ClientStream& stream, std::function<void()> done);

  /// The device has failed: all who wait for one are told.
  void fail_all();
  /// A process is gone. Throws Error(simulated_failure, "client") if its streams are not done.
  void end_process(std::uint32_t process);
  /// What streams have not done, line by line.
  [[nodiscard]] std::string unfinished() const;
  /// A copy within the device's memory, or from another NPU's.
  void copy_within(ClientStream& stream, const DeviceSpan& to, const DeviceSpan& from);
  [[nodiscard]] bool saturates(Rank npu) const { return saturating_.contains(npu); }
  /// What the devices of a server can do together.
  [[nodiscard]] std::uint32_t devices_of(std::uint32_t server) const;
  [[nodiscard]] std::optional<Rank> npu_of(std::uint32_t server, std::uint64_t device) const;

  /// Called when a process gives up an NPU, with all that it had there.
  std::function<void(std::uint32_t process, Rank npu)> on_release{};

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
  struct HostFunction {
    std::uint64_t function = 0;
    std::uint64_t argument = 0;
    ClientStream* stream = nullptr;
    bool blocks = false;
  };
  /// Functions that have come for a thread of a process, and the thread that asks for them.
  struct Desk {
    std::deque<HostFunction> functions{};
    std::optional<ThreadId> waiting{};
    Deadlines::Number deadline = 0;
  };
  /// Pinned memory of a program that a copy under way reads or writes.
  struct HostUse {
    std::uint32_t process = 0;
    std::uint64_t address = 0;
    Bytes bytes = 0;
    std::string what{};
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
  /// What programs have of an NPU.
  struct OnNpu {
    std::uint32_t streams = 0;
    std::uint32_t events = 0;
    std::uint32_t numbered_streams = 0;  // those that were destroyed, and our own, too
  };
  using DeskKey = std::pair<std::uint32_t, std::uint64_t>;  // process, and its number of a thread

  std::optional<Result> handle_memory(ThreadId id, const Question& question);
  std::optional<Result> handle_stream(ThreadId id, const Question& question);
  std::optional<Result> handle_event(ThreadId id, const Question& question);
  std::optional<Result> handle_function(ThreadId id, const Question& question);

  Result set_device(ThreadId id, std::uint64_t device, bool counts);
  Result topology(ThreadId id, const Question& question);
  Result peer_access(ThreadId id, const Question& question);
  [[nodiscard]] bool have_access(std::uint32_t process, Rank npu, Rank other) const;
  /// Ends all that the process has on the NPU, if this has been asked for as often as the NPU was set, or by force.
  void release(std::uint32_t process, Rank npu, bool by_force);
  Result create_stream(const HostThread& thread);
  void end_stream(ClientStream& stream);
  void end_event(Event& event);
  std::optional<Result> copy(ThreadId id, const Question& question);
  [[nodiscard]] std::string take_from_host(const HostCopy& copy, std::vector<std::byte>& taken) const;
  /// A refusal, or status 0: the copy is in the stream.
  Result copy_host(ClientStream& stream, Seconds date, const HostCopy& copy);
  [[nodiscard]] bool is_left_alone(const HostCopy& copy) const;
  static bool meets(const HostUse& use, std::uint32_t process, std::uint64_t address, Bytes bytes);
  static void require_same(const std::vector<std::byte>& given, const std::vector<std::byte>& read,
                           const HostCopy& copy, const std::string& where);
  std::optional<Result> fill(ThreadId id, const Question& question);
  /// Throws Error(simulated_failure, "client") if a copy under way uses the program's memory, which is freed.
  Result free_host(std::uint32_t process, std::uint64_t address, Bytes bytes) const;
  std::optional<Result> after_task(ThreadId id, ClientStream& stream, const std::string& what);
  /// Waits until the stream is done with all that is in it.
  std::optional<Result> synchronize(ThreadId id, const std::vector<ClientStream*>& streams, std::int64_t milliseconds,
                                    std::int32_t timeout_status, const std::string& what);
  [[nodiscard]] static Result no_such_timeout(std::int64_t milliseconds);
  std::optional<Result> synchronize_event(ThreadId id, Event& event, std::int64_t milliseconds);
  void record(ThreadId id, Event& event, ClientStream& stream);
  Result wait(ThreadId id, Event& event, ClientStream& stream);
  void reset(Event& event, ClientStream& stream);
  void deliver(Desk& desk);
  Result function_for(const HostFunction& function);
  [[nodiscard]] Event* event_of(ThreadId id, std::uint64_t handle);
  ClientStream& add_stream(std::uint32_t process, Rank npu);
  void wait_for_device(ThreadId id, const std::string& what, std::int64_t milliseconds, std::int32_t timeout_status);
  void stop_waiting(ThreadId id, Seconds date, Result result);

  Core& core_;
  std::map<std::uint64_t, std::unique_ptr<ClientStream>> streams_;  // by handle
  std::map<std::pair<std::uint32_t, Rank>, ClientStream*> default_streams_;
  std::map<std::pair<std::pair<std::uint32_t, Rank>, std::uint32_t>, ClientStream*> hidden_streams_;
  std::map<std::uint64_t, std::unique_ptr<Event>> events_;
  std::vector<OnNpu> npus_;
  std::map<std::pair<std::uint32_t, Rank>, std::uint64_t> used_;  // how often a process has set an NPU
  std::set<std::tuple<std::uint32_t, Rank, Rank>> peers_;         // of a process: NPUs with access to each other
  std::set<Rank> saturating_;
  std::map<DeskKey, Desk> desks_;
  std::map<std::uint64_t, std::uint64_t> subscribers_;    // of streams: a thread of the program
  std::map<std::uint64_t, ClientStream*> held_;           // tickets of functions: the stream that waits
  std::map<ThreadId, Deadlines::Number> device_waiters_;  // and when they give up; 0: never
  std::map<std::pair<std::uint32_t, std::uint32_t>, Rank> npu_of_device_;  // server, device
  std::map<std::uint64_t, HostUse> host_uses_;                             // by a number of their own
  std::uint64_t next_handle_ = 1;
};

}  // namespace hcclsim::clients
