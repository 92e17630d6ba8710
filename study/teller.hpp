#pragma once

#include <functional>

#include "base/child_process.hpp"

/// Tells how far something is while it works for long without an end of anything: in a process of its own, which ends
/// with the Teller. Processes that are forked later may count for it (base/shared_work.hpp).
namespace hcclsim::study {

class Teller {
 public:
  /// Calls `tell` some times per second, in that process.
  explicit Teller(std::function<void()> tell);

 private:
  Child process_;
};

}  // namespace hcclsim::study
