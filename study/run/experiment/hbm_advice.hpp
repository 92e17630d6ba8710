#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/hbm.hpp"
#include "study/spec/run_spec.hpp"

/// What can be done about a step that does not fit into HBM.
namespace hcclsim::study {

/// A purpose of HBM.
struct HbmPart {
  std::string_view name;
  Bytes bytes = 0;
};

/// In the order in which an account is printed.
[[nodiscard]] std::vector<HbmPart> parts_of(const device::HbmAccount& account);
[[nodiscard]] HbmPart largest_part(const device::HbmAccount& account);

/// What an experiment knows beside the RunSpec.
struct HbmSetting {
  Rank replicas = 1;
  std::uint32_t layers = 0;   ///< of the network; 0: it cannot be cut
  std::uint32_t samples = 1;  ///< of a micro-batch
  std::uint32_t micro_batches = 1;
  Bytes gradients = 0;  ///< of the fullest NPU
  Bytes capacity = 0;   ///< HBM of an NPU; 0: it does not matter
  bool whole = false;   ///< the step is neither cut into micro-batches nor recomputed
};

/// Options of `run` that make a part smaller and are not in use, as they would be given.
[[nodiscard]] std::vector<std::string> options_against(std::string_view part, const RunSpec& spec,
                                                       const HbmSetting& setting);

/// The end of the message of check_hbm() for the fullest of these stages, and its beginning: all that do not fit.
[[nodiscard]] std::string hbm_advice(const device::HbmAccount& fullest, const RunSpec& spec, const HbmSetting& setting);
[[nodiscard]] std::string overfull_stages(std::span<const device::HbmAccount> stages, Bytes capacity);

}  // namespace hcclsim::study
