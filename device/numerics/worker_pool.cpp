#include "device/numerics/worker_pool.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <system_error>

#include "base/error.hpp"

// libgomp's, which oneDNN computes with: declared here because no file of ours is compiled with OpenMP.
extern "C" void omp_set_num_threads(int threads);

namespace hcclsim::device {
namespace {

unsigned usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<unsigned>(CPU_COUNT(&set));
}

/// Throws unless the system gives the memory that every worker begins with: its stack, and a part of the heap with
/// room to align it. libgomp ends the process where it does not get it.
void require_memory_for(unsigned workers) {
  constexpr std::size_t bytes_of_worker = std::size_t{64} << 20U;
  const std::size_t bytes = workers * bytes_of_worker;
  void* const memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) {
    munmap(memory, bytes);
    return;
  }
  bad_input("workers", "the system refuses the {} MiB that {} begin{} with; raise the limit of memory (ulimit -v){}",
            bytes >> 20U, workers == 1 ? "a worker" : fmt::format("{} workers", workers), workers == 1 ? "s" : "",
            workers == 1 ? "" : ", or take fewer workers where the command has an option of that name");
}

}  // namespace

void use_one_thread() { omp_set_num_threads(1); }

WorkerPool::WorkerPool(unsigned workers) {
  if (workers == 0) workers = usable_processors();
  require_memory_for(workers);
  use_one_thread();  // a setting of the calling thread, hence once more in live()
  try {
    for (unsigned worker = 1; worker < workers; ++worker) {
      threads_.emplace_back([this, worker] { live(worker); });
    }
  } catch (const std::system_error& error) {
    const unsigned begun = this->workers();
    stop();
    bad_input("workers", "the system refuses more than {} of {} workers: {}; take fewer (--workers)", begun, workers,
              error.code().message());
  }
}

WorkerPool::~WorkerPool() { stop(); }

void WorkerPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  started_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::for_each(std::size_t count, const Work& work) {
  if (count == 0) return;
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    count_ = count;
    next_ = 0;
    failure_ = nullptr;
    busy_ = static_cast<unsigned>(threads_.size());
    ++rounds_;
  }
  started_.notify_all();
  take_items(0);
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

void WorkerPool::live(unsigned worker) {
  use_one_thread();
  std::size_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      started_.wait(lock, [&] { return stopping_ || rounds_ != seen; });
      if (stopping_) return;
      seen = rounds_;
    }
    take_items(worker);
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) ended_.notify_one();
  }
}

void WorkerPool::take_items(unsigned worker) {
  while (true) {
    std::size_t item = 0;
    {
      const std::lock_guard lock(mutex_);
      if (next_ == count_) return;
      item = next_++;
    }
    try {
      (*work_)(item, worker);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_ || item < failed_item_) {
        failure_ = std::current_exception();
        failed_item_ = item;
      }
    }
  }
}

}  // namespace hcclsim::device
