#pragma once

#include <atomic>
#include <cstdint>

/// How much of its work a command has done. Simulations run in children (base/child_process.hpp), so the counts are in
/// memory that a process shares with those that it forks later.
namespace hcclsim {

class SharedWork {
 public:
  SharedWork();
  SharedWork(const SharedWork&) = delete;
  SharedWork(SharedWork&&) = delete;
  SharedWork& operator=(const SharedWork&) = delete;
  SharedWork& operator=(SharedWork&&) = delete;
  ~SharedWork();

  /// So many more steps, sizes or whatever is counted are to come.
  void plan(std::uint64_t count) { counts_->planned += count; }
  /// One of them is done.
  void done() { ++counts_->done; }
  [[nodiscard]] std::uint64_t planned() const { return counts_->planned; }
  [[nodiscard]] std::uint64_t completed() const { return counts_->done; }

 private:
  struct Counts {
    std::atomic<std::uint64_t> planned = 0;
    std::atomic<std::uint64_t> done = 0;
  };

  Counts* counts_;
};

}  // namespace hcclsim
