#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

/// Threads that share out independent pieces of work. Each piece is computed by one thread (oneDNN's OpenMP is limited
/// to one), so the bits of a result do not depend on the number of workers.
namespace hcclsim::device {

/// Makes oneDNN compute with one thread when the calling thread makes or runs a primitive.
void use_one_thread();

class WorkerPool {
 public:
  /// Number of a worker: 0 … workers() − 1, worker 0 being the calling thread.
  using Work = std::function<void(std::size_t item, unsigned worker)>;

  /// 0: one worker per processor that this process may use. Throws Error(bad_input) of kind "workers" if the system
  /// does not give that many threads.
  explicit WorkerPool(unsigned workers = 0);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool();

  [[nodiscard]] unsigned workers() const { return static_cast<unsigned>(threads_.size()) + 1; }

  /// Calls work(item, worker) once for every item 0 … count − 1, in any order, and returns when all have ended. If any
  /// throws, the exception of the smallest item is thrown again after all others have ended. Not to be called by work.
  void for_each(std::size_t count, const Work& work);

 private:
  void live(unsigned worker);
  void stop();
  void take_items(unsigned worker);

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable started_;
  std::condition_variable ended_;
  const Work* work_ = nullptr;
  std::size_t count_ = 0;
  std::size_t next_ = 0;
  std::size_t failed_item_ = 0;
  std::exception_ptr failure_;
  unsigned busy_ = 0;       // threads that have not yet ended the current round
  std::size_t rounds_ = 0;  // rounds begun, so that a thread sees a new one
  bool stopping_ = false;
};

/// The number of blocks of `block` elements that cover `elements`, for loops over flat buffers that are shared out in
/// blocks. The blocks do not depend on the number of workers, so sums over blocks stay the same.
[[nodiscard]] constexpr std::size_t block_count(std::size_t elements, std::size_t block) {
  return (elements + block - 1) / block;
}

}  // namespace hcclsim::device
