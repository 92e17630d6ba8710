#pragma once

#include <span>

#include "base/json.hpp"
#include "sim/faults/fault.hpp"

namespace hcclsim::cli {

/// Faults as they were given.
[[nodiscard]] inline Json faults_json(std::span<const sim::Fault> faults) {
  Json texts = Json::array();
  for (const sim::Fault& fault : faults) texts.push_back(fault.text);
  return texts;
}

}  // namespace hcclsim::cli
