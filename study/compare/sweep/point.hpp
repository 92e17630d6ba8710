#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

/// A point of a sweep: the inputs of one simulation, and its name, which is a hash of all that the result depends on:
/// the command, the inputs, the contents of the files that they name (the platform is always one) and the version of
/// hcclsim. The folders of these files do not count, so that a point is the same on every machine.
namespace hcclsim::study {

struct Point {
  std::string command;                          ///< "run", "collective" or "job"
  Json inputs;                                  ///< name of each axis -> its value, text; in the order of the grid
  std::map<std::string, std::string> files{};   ///< input that names a file -> path of the file
  std::map<std::string, std::string> hashes{};  ///< the same inputs -> content_hash of the file
  std::string version{};                        ///< of hcclsim
  std::string group{};                          ///< points of one group are computed from one loaded platform
  std::string id{};                             ///< as point_id() says
};

/// A name for bytes: a UUID from their SHA-1.
[[nodiscard]] std::string content_hash(std::string_view bytes);
/// The same for a file's contents; throws Error(bad_input, "sweep") if it cannot be read.
[[nodiscard]] std::string content_hash_of_file(const std::string& path);

/// The name of a point: independent of the order of its inputs.
[[nodiscard]] std::string point_id(const Point& point);

/// Throws Error(bad_input, "sweep") if a file is no longer what names the point: a result of another file would be
/// stored under this one's name. `input`: the one that names it.
void require_unchanged(const Point& point, const std::string& input);

/// Whether an axis is no option of the command but what stands behind it, the collective or the file of the job: it has
/// the command's name.
[[nodiscard]] inline bool is_argument(const std::string& axis, const std::string& command) { return axis == command; }
/// Whether an axis is an edit of the platform, such as link[hccs*].bandwidth, or an environment variable of HCCL.
[[nodiscard]] bool is_edit(const std::string& axis);
[[nodiscard]] bool is_variable(const std::string& axis);

/// The command line that computes a point by itself.
[[nodiscard]] std::string command_line(const std::string& command, const Json& inputs);
/// "batch 64, split-by-size 80,20": what tells a point from the others.
[[nodiscard]] std::string name_of_point(const Json& inputs, const std::vector<std::string>& axes);

/// One of `count` parts of a sweep, from 1; points go to parts by their names, so the parts are about equal and every
/// machine finds the same ones.
struct Shard {
  std::uint32_t index = 1;
  std::uint32_t count = 1;
};

/// "2/8"; throws Error(bad_input, "option").
[[nodiscard]] Shard parse_shard(std::string_view text);
[[nodiscard]] bool belongs(const std::string& point_id, Shard shard);

/// The inputs that differ between points, in the order of the first point's inputs, then as they come up.
[[nodiscard]] std::vector<std::string> varying_axes(const std::vector<const Json*>& inputs);

/// The values of an axis as numbers: of lists their first items; as they are written if all have the same unit, such as
/// 20 of "20GBps", else in bytes, bytes per second or seconds. Nothing if some value is none or two have the same
/// number.
[[nodiscard]] std::optional<std::vector<double>> axis_numbers(const std::vector<std::string>& values);

}  // namespace hcclsim::study
