// Checkpoints, as they are and with every checksum right.

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_file.hpp"
#include "hccl/training/numerics/checkpoint.hpp"
#include "tests/fuzz/targets.hpp"

namespace hcclsim::fuzz {
namespace {

int read(const std::string& contents) {
  const MemoryFile file(contents);
  return attempt([&] {
    hccl::CheckpointReader reader(file.path());
    const hccl::Checkpoint& checkpoint = reader.checkpoint();
    hccl::require_same_run(file.path(), checkpoint, checkpoint);
    std::vector<float> tensor;
    for (std::size_t kind = 0; kind < checkpoint.tensors.size(); ++kind) {
      for (const hccl::CheckpointParameter& parameter : checkpoint.parameters) {
        tensor.resize(parameter.elements());
        reader.read(tensor);
      }
    }
  });
}

template <typename Number>
void append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::uint32_t checksum(std::uint32_t before, std::string_view bytes) {
  return static_cast<std::uint32_t>(::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

int fuzz_checkpoint(Input input) { return read(text_of(input)); }

/// Records, each behind two bytes with its length, in a file whose frames and checksums (docs/formats.md) are right.
int fuzz_checkpoint_records(Input input) {
  std::string contents = "HCCLCKPT";
  append(contents, std::uint32_t{1});
  std::uint32_t all = checksum(0, contents);
  std::uint64_t records = 0;
  for (; input.size() > 2; ++records) {
    const std::size_t bytes = std::min<std::size_t>(input[0] | input[1] << 8, input.size() - 2);
    const std::string payload = text_of(input.subspan(2, bytes));
    input = input.subspan(2 + bytes);
    std::string frame;
    append(frame, static_cast<std::uint32_t>(bytes));
    append(frame, checksum(checksum(0, frame), payload));
    all = checksum(all, frame);
    contents += frame + payload;
  }
  append(contents, std::uint32_t{0});
  append(contents, all);
  append(contents, records);
  return read(contents);
}

}  // namespace hcclsim::fuzz
