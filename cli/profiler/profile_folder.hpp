#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/files/output_folder.hpp"
#include "base/units.hpp"
#include "cli/options/timeline_options.hpp"
#include "cli/profiler/profiled_rank.hpp"
#include "device/hbm.hpp"

/// The set of files that the frameworks' profilers leave of a cluster: a folder per rank,
/// <worker>_<time>_ascend_ms/ASCEND_PROFILER_OUTPUT, as MindStudio reads them.
namespace hcclsim::cli {

class ProfileFolder {
 public:
  /// Opens the folder. Throws Error(bad_input, "output").
  explicit ProfileFolder(const ProfileOptions& options) : options_(options), folder_(options.folder) {}

  using HbmOfRank = std::function<const device::HbmAccount&(Rank)>;

  /// Writes the files of these ranks, one rank after the other; the trace must have them.
  void write(const hccl::TimedStep& step, const std::vector<Rank>& ranks, device::Generation generation,
             const HbmOfRank& hbm);
  /// Makes the folder appear.
  void commit() { folder_.commit(); }

 private:
  const ProfileOptions options_;
  OutputFolder folder_;
};

}  // namespace hcclsim::cli
