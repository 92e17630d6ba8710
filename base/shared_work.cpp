#include "base/shared_work.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <new>

#include "base/user_error.hpp"

namespace hcclsim {

SharedWork::SharedWork() {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "several processes write it");
  void* const memory = ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refused_by_system("memory that processes share", errno);
  counts_ = new (memory) Counts;
}

SharedWork::~SharedWork() { ::munmap(counts_, sizeof(Counts)); }

}  // namespace hcclsim
