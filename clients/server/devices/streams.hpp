#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clients/server/core.hpp"
#include "clients/server/devices/accesses.hpp"
#include "clients/server/devices/device_waits.hpp"
#include "clients/server/handles.hpp"

/// Streams of the devices. A task is given to its stream at the date of the thread that asks; its bytes move when the
/// stream has come to its end.
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

/// A stream, or why there is none.
struct FoundStream {
  ClientStream* stream = nullptr;
  Result wrong{};  ///< status 0: nothing
};

/// Keeps the streams of programs, gives them tasks, and lets threads wait for them.
class Streams {
 public:
  /// `accesses` watches what tasks use; null: nobody does.
  Streams(Core& core, DeviceWaits& waits, Handles& handles, Accesses* accesses)
      : core_(core), waits_(waits), handles_(handles), accesses_(accesses), npus_(core.cluster.size()) {}

  /// Answers questions about streams, and waits for a whole device.
  std::optional<Result> handle(ThreadId id, const Question& question);

  /// The stream of a handle that the thread's process may use; null: none. 0 is the default stream of its device.
  [[nodiscard]] ClientStream* find(ThreadId id, std::uint64_t handle);
  /// The same, if it is on the device that the thread has set.
  [[nodiscard]] FoundStream usable(ThreadId id, std::uint64_t handle);
  [[nodiscard]] std::uint64_t handle_of(const ClientStream& stream) const;
  /// A stream for the simulator's own use, which is made when it is first asked for.
  [[nodiscard]] ClientStream& hidden(std::uint32_t process, Rank npu, std::uint32_t number);

  /// The next tasks of the stream do not begin before the date.
  void reach(ClientStream& stream, Seconds date) { core_.runtime.wait_until(stream.id, date); }
  /// A task that ends when all before it in the stream have; then calls the function.
  void begin_task(ClientStream& stream, std::string name, Uses uses = {});
  void end_task(ClientStream& stream, std::function<void()> done);
  /// The thread waits in the function `what` until the streams are done with all that is in them, for at most so many
  /// milliseconds, or without an end for -1.
  std::optional<Result> synchronize(ThreadId id, const std::vector<ClientStream*>& streams, std::int64_t milliseconds,
                                    std::int32_t timeout_status, const std::string& what);

  /// Somebody watches what tasks use.
  [[nodiscard]] bool are_watched() const { return accesses_ != nullptr; }
  /// A stream of the process waits until something that was issued later has happened.
  [[nodiscard]] bool any_held(std::uint32_t process) const;
  /// What streams have not done, line by line.
  [[nodiscard]] std::string unfinished() const;
  /// A process gives up an NPU, with its streams there.
  void release(std::uint32_t process, Rank npu);
  /// A process is gone. Throws Error(simulated_failure, "client") if its streams are not done.
  void end_process(std::uint32_t process) const;

 private:
  /// What programs have of an NPU.
  struct OnNpu {
    std::uint32_t streams = 0;
    std::uint32_t numbered = 0;  // those that were destroyed, and our own, too
  };

  ClientStream& add(std::uint32_t process, Rank npu);
  Result create(const HostThread& thread);
  void end(ClientStream& stream);

  Core& core_;
  DeviceWaits& waits_;
  Handles& handles_;
  Accesses* accesses_;
  std::map<std::uint64_t, std::unique_ptr<ClientStream>> streams_;  // by handle
  std::map<std::pair<std::uint32_t, Rank>, ClientStream*> defaults_;
  std::map<std::pair<std::pair<std::uint32_t, Rank>, std::uint32_t>, ClientStream*> hidden_;
  std::vector<OnNpu> npus_;
};

}  // namespace hcclsim::clients
