#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "sim/cluster.hpp"

/// What a platform holds, for people: its servers and NPUs, its links by kind with their ranges, what tasks cost, and
/// one route.
namespace hcclsim::study {

/// "Atlas 800: eight 910A …", the name and the description of a file, which is not checked.
[[nodiscard]] std::string platform_title(const std::string& file);

/// Links of one kind and name with the same figures; the two directions of a SPLITDUPLEX link are one.
struct LinkGroup {
  sim::Link example{};
  std::size_t count = 0;
  bool duplex = false;
  std::string first{};  ///< names, without direction
  std::string last{};
};

struct TaskValue {
  std::string property;
  std::string value;
  std::string meaning;
  bool in_file = false;  ///< else it is the default
};

struct RouteSummary {
  Rank source = 0;
  Rank destination = 0;
  sim::Npu from{};
  sim::Npu to{};
  sim::Transport transport = sim::Transport::sdma;
  std::vector<sim::Link> links{};
  BytesPerSecond write = 0;  ///< of one task on the idle route
  BytesPerSecond read = 0;
  std::vector<std::pair<std::string, Seconds>> alpha{};  ///< parts of a small transfer
};

struct PlatformSummary {
  std::string file;
  std::optional<std::string> name{};  ///< as the file has it
  Rank npus = 0;
  std::uint32_t servers = 0;
  std::size_t super_pods = 0;                 ///< that the file names; 1 if it does not
  std::map<std::string, std::size_t> socs{};  ///< NPUs by type
  std::vector<LinkGroup> links{};
  std::vector<TaskValue> tasks{};
  std::optional<RouteSummary> route{};
};

/// Loads the platform in a child. Throws Error(bad_input, "route") if it has no such NPUs.
[[nodiscard]] PlatformSummary summarize_platform(const std::string& file, std::optional<std::pair<Rank, Rank>> route);

struct PlatformSize {
  Rank npus = 0;
  std::uint32_t servers = 0;
};
/// What the check of a file cannot know, SimGrid tells: loads it in a child and finds the ways between NPU 0 and the
/// others. Throws what is wrong with it.
[[nodiscard]] PlatformSize load_platform(const std::string& file);

}  // namespace hcclsim::study
