#pragma once

#include <cstdint>
#include <string>

#include "base/units.hpp"
#include "hccl/compression/hook_steps.hpp"
#include "hccl/compression/settings.hpp"

namespace hcclsim::study {

/// What compression does to a run: what a step sends, and its time against that of the plain allreduces.
struct CompressionResult {
  hccl::CompressionSettings settings;
  std::string text;  ///< the settings, as --compress takes them

  // Of a step
  std::uint64_t elements_before = 0;
  std::uint64_t elements_after = 0;  ///< as compression_stats() counts them
  Bytes bytes_before = 0;
  Bytes bytes_after = 0;
  hccl::HookMemory memory;
  bool compared = false;        ///< whether the two times are simulated
  Seconds plain_step = 0;       ///< of the same run without compression
  Seconds compressed_step = 0;  ///< of the same run if all its steps are compressed

  // Of the iterations of the run
  std::uint32_t plain_iterations = 0;
  std::uint32_t compressed_iterations = 0;
  std::uint64_t compressed_before = 0;  ///< of a training that goes on, before them

  [[nodiscard]] Seconds saved() const { return plain_step - compressed_step; }
  /// compression_stats() of PowerSGDState after these iterations: elements over all compressed steps of the training.
  [[nodiscard]] std::uint64_t compressed() const { return compressed_before + compressed_iterations; }
  [[nodiscard]] std::uint64_t stats_before() const { return compressed() * elements_before; }
  [[nodiscard]] std::uint64_t stats_after() const { return compressed() * elements_after; }
  [[nodiscard]] double rate() const;
};

}  // namespace hcclsim::study
