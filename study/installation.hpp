#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What of hcclsim, and of what it works together with, is there on this computer.
namespace hcclsim::study {

enum class PartStatus : std::uint8_t { ok, missing, broken };
[[nodiscard]] std::string_view name_of(PartStatus status);

struct InstalledPart {
  std::string name;
  PartStatus status = PartStatus::ok;
  bool required = false;  ///< nothing works without it
  std::string detail;     ///< where it is, how many there are, what is wrong with it
  std::string needed_for;
};

/// Looks for platform files, the SimGrid module, a folder for temporary files, and programs in the folders of PATH.
[[nodiscard]] std::vector<InstalledPart> examine_installation();

/// Whether all that is required is ok.
[[nodiscard]] bool is_complete(const std::vector<InstalledPart>& parts);

}  // namespace hcclsim::study
