#pragma once

#include <string>

namespace hcclsim::cli {

/// The HTML report that a command is to write beside what it prints.
struct HtmlReport {
  std::string path;     ///< empty: none
  std::string title;    ///< empty: what was simulated
  std::string command;  ///< that makes it again, for a shell
};

}  // namespace hcclsim::cli
