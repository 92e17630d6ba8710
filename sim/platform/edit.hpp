#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/memory_file.hpp"

/// Edits of a platform: what its file says of links, NPUs and tasks, changed before SimGrid reads it, so that the
/// question "what if the links were faster" needs no second file. An edit names what it changes by a pattern:
///
///     link[PATTERN].bandwidth, .latency, .nominal, .low, .high, .read, .write
///     npu[PATTERN].KEY          KEY of an NPU, such as hbm_bandwidth (docs/formats.md)
///     host[PATTERN].npu         makes hosts NPUs of a type, such as Ascend910B2
///     cluster[PATTERN].bandwidth, .latency     links that SimGrid makes for a <cluster>, such as a fat tree
///     platform.KEY              KEY of the outermost zone: sdma.setup_us, link.hccs.read, npu.clock_ghz, ...
///
/// A PATTERN is that of a shell (*, ?, [0-3]) and must match the id of at least one element of the file: of a <link>,
/// of a <host> that is an NPU (or a <cluster> of them), of any <host> or <cluster> of hosts, of a <cluster>. What a
/// user says of a link's bandwidth, or of what tasks reach over it, is a figure without a range; what tasks reach keeps
/// its ratio to a bandwidth. Edits apply in their order.
namespace hcclsim::sim {

struct PlatformEdit {
  std::string target;  ///< "link[hccs*].bandwidth"
  std::string value;   ///< "20GBps"
};

/// Takes "TARGET=VALUE" apart; throws Error(bad_input, "option") for another form and unknown keys.
[[nodiscard]] PlatformEdit parse_platform_edit(std::string_view text);
/// Throws Error(bad_input, "option") unless the target has one of the forms above.
void check_edit_target(std::string_view target);
/// The edit that makes hosts NPUs.
[[nodiscard]] PlatformEdit npus_edit(const std::string& hosts, const std::string& soc);
/// Whether some edit makes hosts NPUs.
[[nodiscard]] bool make_npus(std::span<const PlatformEdit> edits);

/// A platform file with edits, held in memory and readable under a path while the object lives.
class EditedPlatform {
 public:
  /// `path` is a valid platform file. Throws Error(bad_input, "platform") if an edit matches nothing, or if the result
  /// does not pass the check of platform files.
  EditedPlatform(const std::string& path, std::span<const PlatformEdit> edits);

  /// A path that this process can read the edited file from.
  [[nodiscard]] std::string path() const { return file_.path(); }

 private:
  MemoryFile file_;
};

}  // namespace hcclsim::sim
