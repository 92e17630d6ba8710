#pragma once

#include <functional>
#include <string>
#include <vector>

/// What hcclsim needs of the machine that it is installed on, each part tried.
namespace hcclsim::study {

struct InstalledPart {
  std::string name;
  bool needed = false;  ///< by every user
  bool works = false;
  std::string found{};    ///< a version, a path, a number
  std::string purpose{};  ///< what it is for
  std::string remedy{};   ///< what to do where it does not work
};

/// The part with what `work` has found; where that throws, with what was wrong in its remedy.
[[nodiscard]] InstalledPart tried(InstalledPart part, const std::function<std::string()>& work);

/// The needed ones first. A platform is loaded, SimGrid too, and a product is computed, each in a child.
[[nodiscard]] std::vector<InstalledPart> installed_parts();

}  // namespace hcclsim::study
