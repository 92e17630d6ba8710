#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "clients/server/memory.hpp"

/// Which tasks of streams use which memory of the NPUs, as long as they are under way, so that programs are found that
/// do not wait for them (`hcclsim exec --poison`).
namespace hcclsim::clients {

struct ClientStream;

/// What a task uses.
struct Uses {
  std::vector<DeviceSpan> reads{};
  std::vector<DeviceSpan> writes{};
};

class Accesses {
 public:
  using Number = std::uint64_t;  ///< of a task, in the order in which they were issued

  /// A task is issued in a stream. `what` names it, for people.
  Number issue(const ClientStream& stream, std::string what, Uses uses);
  /// Its turn has come. Throws Error(simulated_failure, "client") if it reads what another task under way writes, or
  /// writes what that one uses: a task that has begun, or one that was issued before in another stream and has not
  /// begun, unless it waits in its stream for something that was issued later.
  void begin(Number number);
  void end(Number number) { tasks_.erase(number); }

 private:
  struct Task {
    const ClientStream* stream = nullptr;
    std::string what{};
    Uses uses{};
    bool begun = false;
  };

  std::map<Number, Task> tasks_;
  Number next_ = 1;
};

}  // namespace hcclsim::clients
