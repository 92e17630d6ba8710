#include "device/numerics/memory_block.hpp"

#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace hcclsim::device {

MemoryBlock::MemoryBlock(std::size_t bytes) : bytes_(bytes) {
  if (bytes_ == 0) return;
  void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    bad_input("memory", "the system refuses {} MiB for tensors: use fewer NPUs or workers, a smaller batch or input",
              bytes_ >> 20U);
  }
  madvise(mapped, bytes_, MADV_HUGEPAGE);  // fewer faults and TLB misses where the system has huge pages
  data_ = static_cast<std::byte*>(mapped);
}

MemoryBlock::MemoryBlock(const MemoryBlock& other) : MemoryBlock(other.bytes_) {
  if (bytes_ != 0) std::memcpy(data_, other.data_, bytes_);
}

MemoryBlock::MemoryBlock(MemoryBlock&& other) noexcept
    : bytes_(std::exchange(other.bytes_, 0)), data_(std::exchange(other.data_, nullptr)) {}

MemoryBlock::~MemoryBlock() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace hcclsim::device
