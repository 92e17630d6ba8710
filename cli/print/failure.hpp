#pragma once

#include "base/error.hpp"
#include "base/json.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {

/// Does what simulates or prints, and returns what that returns; with `json`, a simulation that stands still or times
/// out is printed, too, as an object with an `error` (docs/formats.md), before the error is thrown on.
template <typename Work>
auto with_failure(bool json, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    const bool stands_still = error.kind() == "timeout" || error.kind() == "deadlock";
    if (json && stands_still) {
      const Json object{
          {"format_version", 2},
          {"error",
           {{"kind", error.kind()}, {"exit_status", static_cast<int>(error.code())}, {"message", error.what()}}}};
      print(object.dump(2) + '\n');
    }
    throw;
  }
}

}  // namespace hcclsim::cli
