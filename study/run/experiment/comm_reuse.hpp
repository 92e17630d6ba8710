#pragma once

#include <optional>

#include "hccl/parallel/comm_reuse/comm_reuse.hpp"
#include "study/platform/platform.hpp"
#include "study/spec/run_spec.hpp"

/// Reuse of communication subgraphs on a loaded platform.
namespace hcclsim::study {

/// With the streams that the NPUs have, and the servers that the ranks are in; nothing if the spec does not ask for it.
/// Throws Error(bad_input, "unsupported") beside compression.
[[nodiscard]] std::optional<hccl::CommReuse> comm_reuse_on(const LoadedPlatform& platform, const RunSpec& spec);

}  // namespace hcclsim::study
