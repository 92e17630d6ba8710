// Schedules in both forms. What is read must come back unchanged from either form.

#include <zlib.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/memory_file.hpp"
#include "hccl/schedule/file/schedule_file.hpp"
#include "tests/fuzz/targets.hpp"

namespace hcclsim::fuzz {
namespace {

/// As the checker reads it, which collects defects, and as all others do.
int read(const std::string& contents) {
  const MemoryFile file(contents);
  std::vector<hccl::Defect> defects;
  const Verdict with_defects = attempt([&] { static_cast<void>(hccl::read_schedule(file.path(), &defects)); });
  return attempt([&] {
    const hccl::Schedule schedule = hccl::read_schedule(file.path()).schedule;
    require(with_defects == accepted && defects.empty(), "defects in a schedule that was accepted");
    require(hccl::parse_schedule_text(hccl::text_of(schedule), "text") == schedule,
            "the text form is another schedule");
    require(hccl::parse_schedule_binary(hccl::binary_of(schedule), "binary") == schedule,
            "the binary form is another schedule");
  });
}

}  // namespace

int fuzz_schedule_text(Input input) { return read(text_of(input)); }

/// A file as it is, and with its length and checksum set right, so that what they protect is reached.
int fuzz_schedule_binary(Input input) {
  std::string contents = text_of(input);
  const int verdict = read(contents);
  constexpr std::size_t checksum_at = 12;
  constexpr std::size_t length_at = 16;
  constexpr std::size_t preamble = 24;
  if (verdict == accepted || contents.size() < preamble) return verdict;
  const std::uint64_t length = contents.size() - preamble;
  const auto checksum =
      static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(contents.data() + preamble), length));
  std::memcpy(contents.data() + checksum_at, &checksum, sizeof checksum);
  std::memcpy(contents.data() + length_at, &length, sizeof length);
  return read(contents);
}

}  // namespace hcclsim::fuzz
