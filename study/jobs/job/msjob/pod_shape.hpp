#pragma once

#include <cstdint>
#include <string_view>

#include "study/jobs/job/msjob/yaml_value.hpp"

namespace hcclsim::study {

/// Checks the keys of an object of Kubernetes' API (core/v1, meta/v1), and the types of all that it holds, at any
/// depth, as the API server does before anything looks at values: `type` is "PodTemplateSpec" or "ObjectMeta". Throws
/// Error(bad_input, "msjob") with file, line and path.
void require_shape(const YamlValue& value, std::string_view type);

/// A quantity, in thousandths of a unit; throws the same.
[[nodiscard]] std::uint64_t read_quantity(const YamlValue& value);

}  // namespace hcclsim::study
